/* SPDX-License-Identifier: BSD-2-Clause */
/* The broker's slots: sockets in the order of bind(), the vault that keeps them
 * open, and the names that mark slots as taken. broker/broker.h explains
 * why. */
#ifndef BROKER_SLOTS_H
#define BROKER_SLOTS_H

#include "broker/vault.h"

/* The program that claims a slot. Trusted programs get the vault, and so have
 * all sockets; each other user gets sockets that no other user had. */
struct vb_claimant {
	uid_t uid;
	bool trusted;
};
/* The user number for a claimant whose user the kernel does not tell: two
 * such claimants need not be one user. */
#define VB_SLOTS_STRANGER ((uid_t)-1)

struct vb_slot_owner {
	enum {
		SLOT_UNLIMITED, /* only trusted programs had the socket */
		SLOT_USERS,	/* the socket is limited to the user @uid */
		/* the user @uid also has an earlier socket of the slot */
		SLOT_WITHHELD,
		/* the socket has a filter that is not the broker's */
		SLOT_LOST,
	} is;
	uid_t uid;
	/* of SLOT_WITHHELD: the epoll set has the earlier socket */
	bool watched;
};

struct vb_slots {
	/* the vault's socket; -1: no socket was made or adopted yet */
	int vault;
	/* an epoll set of the sockets that this broker replaced, while another
	 * process has them; -1: there is none yet */
	int retired;
	unsigned messages; /* number of messages in the vault */
	unsigned count;	   /* number of sockets made, for slots 0..count-1 */
	bool limited;	   /* some socket is limited to a user */
	/* which slots were taken at counted_at, with the changes since then
	 * that the broker made or saw; 0: never counted */
	bool taken[VB_SLOTS_MADE];
	vb_time counted_at;
	int fds[VB_SLOTS_MADE];
	struct vb_slot_owner owners[VB_SLOTS_MADE];
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
 * Claims the lowest free slot whose socket @who had before; or else one whose
 * socket no user had, or which gets a new socket. Empties the socket's queue.
 * *@name is the socket bound to the slot's name; the caller sends it to the
 * program and closes it. -EUSERS: all slots are taken or withheld; or the
 * -errno of making sockets.
 */
VB_MUST_CHECK int vb_slots_claim(struct vb_slots *s,
				 const struct vb_claimant *who, unsigned *slot,
				 int *name);

/* Steers packets to all sockets. Each holder of a socket can take the steering
 * away, so the broker repeats this while s->limited. 0 or -errno. */
VB_MUST_CHECK int vb_slots_steer(struct vb_slots *s);

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

/* Returns the number of slots that are taken. Binds the name of each slot. */
unsigned vb_slots_taken(struct vb_slots *s);

/* Like vb_slots_taken(), but the result may be up to 100 ms old, so that
 * programs which ask often do not make the broker bind all names each time. */
unsigned vb_slots_taken_lately(struct vb_slots *s, vb_time now);

#endif
