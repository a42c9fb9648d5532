/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proofs: is the registry of a peer that of the process at the other end of the
 * session, and can this program read that process's memory? An errand
 * (base/errand.h) reads there, since a page may come as late as the peer likes.
 * A process has two proofs at a time, for when both programs call each other,
 * and so it can keep only two threads of this program. A proof counts also when
 * its session has ended meanwhile. While all threads are taken, further proofs
 * wait for their turn, and their sessions with them.
 */
#include "near/session_priv.h"

#include <errno.h>

static long read_nonce(const void *args)
{
	return vb_registry_is_open(args);
}

static const struct vb_errand_kind proving = { .run = read_nonce };

#define MOST_OF_ONE 2
/* How long a proof may wait for a thread: hostile processes can keep all of
 * them, and a process at its limit of threads gets none. */
#define WAITS_MOST (2 * VB_SEC)

/* Is the process with the number @pid, born @born, that of @p? */
static bool is_process_of(const struct vb_peer *p, pid_t pid, uint64_t born)
{
	return pid == p->pid && born == p->born;
}

/* Has the session @of a proof that has not ended, and is its process that of
 * @p? */
static bool is_proof_of(const struct vb_peer *p, const struct vb_peer *of)
{
	return vb_proof_is_open(of) && is_process_of(p, of->pid, of->born);
}

static unsigned count_proofs(const struct vb_near *n, const struct vb_peer *p)
{
	unsigned count = 0;

	for (unsigned i = 0; i < VB_COUNT(n->left); i++)
		count += n->left[i].proof &&
			 is_process_of(p, n->left[i].pid, n->left[i].born);
	for (const struct vb_peer *c = n->callers; c; c = c->next)
		count += is_proof_of(p, c);
	for (unsigned i = 0; i < VB_SLOTS; i++) {
		const struct vb_peer *t = n->peers[i];

		count += t && t->slot == i && is_proof_of(p, t);
	}
	return count;
}

/* If a thread is free, it begins the proof of @p; else the proof waits until
 * @due. */
static void begin_or_wait(struct vb_near *n, struct vb_peer *p, vb_time due)
{
	const struct vb_registry_proof proof =
		vb_registry_proof(p->registry, p->pid);

	n->proofs_waiting -= p->proof_due != 0;
	p->proof = vb_errand_start(n->errands, &proving, &proof, sizeof(proof));
	p->proof_due = p->proof ? 0 : due;
	n->proofs_waiting += p->proof_due != 0;
}

int vb_proof_begin(struct vb_near *n, struct vb_peer *p, vb_time now)
{
	if (count_proofs(n, p) >= MOST_OF_ONE)
		return -EBUSY;
	begin_or_wait(n, p, now + WAITS_MOST);
	return 0;
}

int vb_proof_begin_waiting(struct vb_near *n, struct vb_peer *p, vb_time now)
{
	if (!p->proof_due)
		return 0;
	begin_or_wait(n, p, p->proof_due);
	return p->proof_due && now >= p->proof_due ? -EAGAIN : 0;
}

bool vb_proof_end(struct vb_peer *p, bool *open)
{
	long result;

	if (!p->proof || !vb_errand_end(p->proof, &result))
		return false;
	p->proof = NULL;
	*open = result;
	return true;
}

/* The session of @p ends while its proof may be under way: keep the proof in
 * near->left, so that the proofs of that process stay counted. There is always
 * a free place, because near->left has as many places as there can be
 * errands. */
void vb_proof_leave(struct vb_near *n, struct vb_peer *p)
{
	unsigned i = 0;

	n->proofs_waiting -= p->proof_due != 0;
	p->proof_due = 0;
	if (!p->proof)
		return;
	while (i < VB_COUNT(n->left) && n->left[i].proof)
		i++;
	if (i < VB_COUNT(n->left))
		n->left[i] = (struct vb_near_left){ p->proof, p->pid, p->born };
	else
		vb_errand_drop(p->proof);
	p->proof = NULL;
}

void vb_proof_see_off(struct vb_near *n)
{
	long result;

	for (unsigned i = 0; i < VB_COUNT(n->left); i++)
		if (n->left[i].proof &&
		    vb_errand_end(n->left[i].proof, &result))
			n->left[i].proof = NULL;
}

void vb_proof_fini(struct vb_near *n)
{
	for (unsigned i = 0; i < VB_COUNT(n->left); i++)
		if (n->left[i].proof)
			vb_errand_drop(n->left[i].proof);
}
