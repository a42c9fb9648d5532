/* SPDX-License-Identifier: BSD-2-Clause */
/* The broker's slots: sockets in the order of bind(), the vault that keeps them
 * open, and the names that mark slots as taken. broker/broker.h explains
 * why. */
#ifndef BROKER_SLOTS_H
#define BROKER_SLOTS_H

#include "wire/ipc.h"

/* The number of slots: slot 0, the broker's, and those of programs. */
#define VB_SLOTS_MADE (1 + VB_MAX_PROGRAMS)

struct vb_slots {
	/* the vault's socket; -1: no socket was made or adopted yet */
	int vault;
	unsigned count;	  /* number of sockets made, for slots 0..count-1 */
	unsigned steered; /* packets are steered to slots 0..steered-1 */
	int fds[VB_SLOTS_MADE];
};

void vb_slots_init(struct vb_slots *s);
void vb_slots_fini(struct vb_slots *s);

/* Makes the first sockets of this network namespace, and the vault.
 * -EADDRINUSE: port 4791 is in use, perhaps by sockets of an earlier broker; or
 * another -errno. After an error nothing was made. */
VB_MUST_CHECK int vb_slots_create(struct vb_slots *s);

/* Takes over the sockets in @vault, which an earlier broker made; on success @s
 * owns @vault. -EINVAL: @vault has something other than distinct sockets on
 * port 4791 of this network namespace. */
VB_MUST_CHECK int vb_slots_adopt(struct vb_slots *s, int vault);

/* Returns whether @vault, which a program sent, is the vault of @s. */
bool vb_slots_is_ours(const struct vb_slots *s, int vault);

/*
 * Claims the lowest free slot and empties its socket's queue. *@name is the
 * socket bound to the slot's name; the caller sends it to the program and
 * closes it. -EUSERS: all slots are taken; or the -errno of making sockets.
 */
VB_MUST_CHECK int vb_slots_claim(struct vb_slots *s, unsigned *slot, int *name);

/*
 * Returns whether a program that shows the sockets @name and @socket has @slot.
 * @name proves it: while the slot is taken, one socket of this network
 * namespace is bound to the slot's name, a new one each time that the slot is
 * granted. @socket must be the slot's own, so that a program that bound the
 * name of a free slot itself is not believed.
 */
bool vb_slots_is_held(const struct vb_slots *s, unsigned slot, int name,
		      int socket);

/* If @slot is free, throws away the packets in its socket's queue. False: the
 * slot is still taken. */
bool vb_slots_rest(struct vb_slots *s, unsigned slot);

/* Returns the number of slots that are taken. */
unsigned vb_slots_taken(const struct vb_slots *s);

#endif
