/* SPDX-License-Identifier: BSD-2-Clause */
/* The broker's slots: sockets in bind order, the vault that keeps them, and
 * names that say who is taken. broker/broker.h tells why. */
#ifndef BROKER_SLOTS_H
#define BROKER_SLOTS_H

#include "wire/ipc.h"

/* Slot 0 and the programs'. */
#define VB_SLOTS_MADE (1 + VB_MAX_PROGRAMS)

struct vb_slots {
	int vault;	  /* -1: no socket was made or adopted yet */
	unsigned count;	  /* sockets made: slots 0..count-1 */
	unsigned steered; /* of which packets reach those below this */
	int fds[VB_SLOTS_MADE];
};

void vb_slots_init(struct vb_slots *s);
void vb_slots_fini(struct vb_slots *s);

/* The first sockets of this network namespace. -EADDRINUSE: port 4791 is
 * taken, perhaps by an earlier broker's sockets; nothing was made. */
VB_MUST_CHECK int vb_slots_create(struct vb_slots *s);

/* Take over what an earlier broker made: @vault is taken on success.
 * -EINVAL: it is no vault of different sockets on this network namespace's
 * port 4791. */
VB_MUST_CHECK int vb_slots_adopt(struct vb_slots *s, int vault);

/* Is @vault, from outside, the one we hold? */
bool vb_slots_is_ours(const struct vb_slots *s, int vault);

/*
 * The lowest slot that nobody has, its queue empty: *@name is the socket
 * bound to its name, the caller's to give away and close. -EUSERS: all are
 * taken; others as creating sockets fails.
 */
VB_MUST_CHECK int vb_slots_claim(struct vb_slots *s, unsigned *slot, int *name);

/*
 * Does who shows these two hold @slot? The name is the proof: it is one
 * socket's in this network namespace, as long as the slot is taken, and another
 * one's each time that the slot is given away. @socket must be the slot's own:
 * so who has bound a free slot's name by himself is not believed.
 */
bool vb_slots_is_held(const struct vb_slots *s, unsigned slot, int name,
		      int socket);

/* A program left, perhaps: free the memory that waits in its queue. False:
 * the slot is taken still. */
bool vb_slots_rest(struct vb_slots *s, unsigned slot);

/* How many slots are taken. */
unsigned vb_slots_taken(const struct vb_slots *s);

#endif
