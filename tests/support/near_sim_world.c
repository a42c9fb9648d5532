/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's functions (near/world.h) for a program of a simulation. */
#include "tests/support/near_sim_priv.h"

#include <errno.h>
#include <string.h>

#include "tests/support/must.h"

#define PIECE 8192 /* the most bytes of a copy between two steps */
/* In ns: the clock advances by half of this on average each time it is read. */
#define READ_NS 1000

static vb_time sim_near_now(void *arg)
{
	struct near_end *e = arg;

	e->net->sim->now += sim_below(&e->net->rand, READ_NS);
	near_sim_step_done(e);
	return e->net->sim->now;
}

static void sim_near_pause(void *arg, vb_time ns)
{
	struct near_end *e = arg;

	e->net->sim->now += ns ? ns : READ_NS;
	near_sim_let_other_run(e);
}

static uint32_t sim_near_random(void *arg)
{
	struct near_end *e = arg;

	return sim_rand32(&e->net->rand);
}

static bool permit_holds(const struct vb_permit *p)
{
	for (unsigned i = 0; i < VB_COUNT(p->word); i++)
		if (atomic_load(p->word[i]) != p->is[i])
			return false;
	return true;
}

/* Returns whether the byte at the address @at is mapped in @owner. Then *@left
 * is the number of mapped bytes from @at on, and *@live tells whether a valid
 * key permits access. */
static bool is_granted(const struct near_end *owner, uint64_t at,
		       uint64_t *left, bool *live)
{
	*live = false;
	*left = 0;
	for (unsigned i = 0; i < owner->grant_count; i++) {
		const struct granted *g = &owner->grants[i];

		if (at < g->base || at - g->base >= g->length)
			continue;
		*left = g->length - (at - g->base);
		*live |= g->live;
	}
	return *left > 0;
}

/* A position in a list of pieces of memory. */
struct cursor {
	const struct iovec *at;
	unsigned count;
	size_t done;
};

static size_t room_at(struct cursor *c)
{
	while (c->count && c->done == c->at->iov_len) {
		c->at++;
		c->count--;
		c->done = 0;
	}
	return c->count ? c->at->iov_len - c->done : 0;
}

static char *address(const struct cursor *c)
{
	return (char *)c->at->iov_base + c->done;
}

/* Copies the bytes in small parts, as the kernel does within process_vm_readv()
 * or process_vm_writev(). */
static ssize_t carry_bytes(struct near_end *e, struct near_end *owner, bool put,
			   struct cursor local, struct cursor remote)
{
	ssize_t sum = 0;
	size_t part;

	while ((part = VB_MIN(room_at(&local), room_at(&remote)))) {
		size_t most = 1 + sim_below(&e->net->rand, PIECE);
		uint64_t left;
		bool live;

		if (!is_granted(owner, (uintptr_t)address(&remote), &left,
				&live))
			return sum ? sum : -EFAULT;
		/* A copy may come after the key became invalid only if it began
		 * before its program was frozen, and the owner of the memory
		 * has expelled that program since. */
		if (!live && !e->expelled)
			note_crime(e->net, "a copy after deregistration");
		part = VB_MIN(part, left);
		part = VB_MIN(part, most);
		if (put)
			memcpy(address(&remote), address(&local), part);
		else
			memcpy(address(&local), address(&remote), part);
		local.done += part;
		remote.done += part;
		sum += (ssize_t)part;
		near_sim_step_done(e);
	}
	return sum;
}

static ssize_t sim_near_copy(void *arg, const struct vb_permit *permit,
			     pid_t pid, bool put, const struct iovec *local,
			     unsigned count, const struct iovec *remote,
			     unsigned remote_count)
{
	struct near_end *e = arg, *owner = &e->net->end[(pid - A_PID) % 2];
	ssize_t n;

	near_sim_step_done(e);
	if (!permit_holds(permit))
		return -ECANCELED;
	if (owner->state == END_DEAD) {
		/* By now the process number may belong to another process. */
		note_crime(e->net, "a copy by a dead process's number");
		return -ESRCH;
	}
	if (e->net->harmed && e->net->plan.harm == HARM_DENY &&
	    e->number == e->net->plan.victim)
		return -EPERM;
	e->in_copy = true;
	e->net->copies++;
	n = carry_bytes(e, owner, put, (struct cursor){ local, count, 0 },
			(struct cursor){ remote, remote_count, 0 });
	e->in_copy = false;
	e->net->bytes += n > 0 ? (uint64_t)n : 0;
	near_sim_step_done(e);
	return n;
}

static enum vb_whereabouts sim_near_find(void *arg, pid_t pid)
{
	struct near_end *e = arg;
	const struct near_end *o = &e->net->end[(pid - A_PID) % 2];

	if (o->state == END_DEAD)
		return IS_ELSEWHERE;
	if (o->state == END_STOPPED)
		return o->in_copy ? IS_UNSEEN : IS_ELSEWHERE;
	return o->in_step ? MAY_COPY : IS_ELSEWHERE;
}

static bool sim_near_has_hung_up(void *arg, const struct vb_peer *p)
{
	struct near_end *e = arg;

	return !p->is_self && (e->net->shut || other(e)->state == END_DEAD);
}

static void sim_near_hang_up(void *arg, const struct vb_peer *p)
{
	struct near_end *e = arg;

	MUST(!p->is_self);
	other(e)->expelled = true;
	near_sim_shut(e->net);
}

static void sim_near_wake(void *arg, const struct vb_peer *p)
{
	struct near_end *e = arg;

	(p->is_self ? e : other(e))->rung = true;
	near_sim_step_done(e);
}

void near_sim_set_world(struct near_end *e)
{
	e->world = (struct vb_near_world){ .now = sim_near_now,
					   .pause = sim_near_pause,
					   .random = sim_near_random,
					   .copy = sim_near_copy,
					   .find = sim_near_find,
					   .has_hung_up = sim_near_has_hung_up,
					   .hang_up = sim_near_hang_up,
					   .wake = sim_near_wake,
					   .arg = e };
}
