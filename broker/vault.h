/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The vault: a datagram socket connected to itself, in whose queue a duplicate
 * of each slot's socket is in flight. A process that has the vault keeps the
 * sockets open, can read them with MSG_PEEK and can add more; no other process
 * can send to it.
 *
 * Each message has sockets of consecutive slots. Of two messages that have a
 * socket of one slot the later counts, so that a broker can replace a socket,
 * and the vault is complete at each moment, at which the broker may be killed.
 */
#ifndef BROKER_VAULT_H
#define BROKER_VAULT_H

#include "base/fdmail.h"
#include "wire/ipc.h"

/* The number of slots: slot 0, the broker's, and those of programs. */
#define VB_SLOTS_MADE (1 + VB_MAX_PROGRAMS)
/* The most sockets in one message. */
#define VB_VAULT_GROUP VB_FDMAIL_FDS

/* What vb_vault_read() has found in a vault. The caller owns all descriptors
 * and closes them with vb_vault_close(). */
struct vb_vault_content {
	unsigned messages;
	/* number of valid entries of @fds: slots 0 to @count - 1 */
	unsigned count;
	/* number of valid entries of @before and @slots */
	unsigned replaced;
	/* by slot: the slot's socket; -1: the vault has none */
	int fds[VB_SLOTS_MADE];
	/* Earlier sockets of slots for which a later message has another. */
	int before[VB_SLOTS_MADE];
	unsigned slots[VB_SLOTS_MADE]; /* slots[i] is the slot of before[i] */
};

/* Makes an empty vault, which the caller closes. 0 or -errno. */
VB_MUST_CHECK int vb_vault_make(int *vault);
/* Adds a message with the sockets of @count (at most VB_VAULT_GROUP) slots from
 * @first on. 0 or -errno. */
VB_MUST_CHECK int vb_vault_put(int vault, unsigned first, const int *fds,
			       unsigned count);
/* Reads all messages and leaves them in the vault. 0, or -EINVAL, and @c has no
 * descriptors: @vault is no vault, or lacks a slot's socket. */
VB_MUST_CHECK int vb_vault_read(int vault, struct vb_vault_content *c);
void vb_vault_close(struct vb_vault_content *c);
/* Puts @fds, the sockets of slots 0 to @count - 1, into the vault, and drops
 * the *@messages that the vault had. *@messages: how many the vault has then.
 * 0, or -errno when the vault takes no more; the vault is complete even so. */
VB_MUST_CHECK int vb_vault_rewrite(int vault, const int *fds, unsigned count,
				   unsigned *messages);

/* Returns the number that the kernel gave to this socket only, or to its
 * network namespace only, depending on @option (SO_COOKIE, SO_NETNS_COOKIE); 0:
 * this kernel has no such numbers. */
uint64_t vb_vault_cookie(int fd, int option);

#endif
