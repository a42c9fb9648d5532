/* SPDX-License-Identifier: BSD-2-Clause */
/* A program at an adapter of a fabric, played by the test that is the fabric's
 * process as well. */
#ifndef TESTS_SUPPORT_VERBS_GUEST_H
#define TESTS_SUPPORT_VERBS_GUEST_H

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fdmail.h"
#include "base/shm.h"
#include "fabricd/verbs_priv.h"
#include "tests/support/must.h"

#define GUEST_BYTES VB_SHRING_BYTES(VB_VERBS_RING)

struct guest {
	struct verbs_program *p;
	struct vb_verbs_port port;
	int control[2], fds[VERBS_FDS];
	void *own, *theirs; /* mapped memory that the program writes, and that
			     * it reads */
	struct vb_shring_out out;
	struct vb_shring_in in;
};

/* Attaches @g to port 1 of the adapter @node. guest_leave() ends that. */
static inline void guest_attach(struct guest *g, struct vb_fabricd *f,
				struct vb_fab_node *node)
{
	const struct vb_umad_where at = { .port = 1 };
	unsigned count = VERBS_FDS;

	memset(g, 0, sizeof(*g));
	MUST(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, g->control));
	MUST(!vb_fabricd_verbs_attach(f, g, g->control[0], node, &at, &g->p));
	MUST(vb_fdmail_recv(g->control[1], &g->port, sizeof(g->port), g->fds,
			    &count, MSG_DONTWAIT) == sizeof(g->port));
	MUST(count == VERBS_FDS);
	MUST(!vb_shm_map(g->fds[VERBS_FD_PROGRAM], GUEST_BYTES, true, &g->own));
	MUST(!vb_shm_map(g->fds[VERBS_FD_FABRIC], GUEST_BYTES, false,
			 &g->theirs));
	vb_shring_open(&g->out, &g->in, g->own, g->theirs, VB_VERBS_RING);
}

static inline void guest_leave(struct guest *g)
{
	vb_fabricd_verbs_detach(g->p);
	vb_shm_unmap(g->own, GUEST_BYTES);
	vb_shm_unmap(g->theirs, GUEST_BYTES);
	for (unsigned i = 0; i < VERBS_FDS; i++)
		close(g->fds[i]);
	close(g->control[0]);
	close(g->control[1]);
}

#endif
