/* SPDX-License-Identifier: BSD-2-Clause */
/* The messages that wait until a program reads from its session. */
#ifndef BROKER_OUTBOX_H
#define BROKER_OUTBOX_H

#include "broker/quota.h"

/* The most bytes that may wait for one session; its user has a quota as well.
 * Four events for each of 10,000 connections, which come while a debugger stops
 * the program, need 15 MB. */
#define VB_OUTBOX_BYTES ((size_t)24 << 20)

struct vb_outbox_message;

struct vb_outbox {
	int fd; /* socket of the session */
	struct vb_user *user;
	struct vb_outbox_message *first, **last;
	size_t bytes; /* bytes of the messages that wait */
	/* -errno for which the caller must close the session; 0: none */
	int error;
};

/* Initialize an outbox. The caller still owns @fd and @user, which must outlive
 * @o. */
void vb_outbox_init(struct vb_outbox *o, int fd, struct vb_user *user);
void vb_outbox_fini(struct vb_outbox *o);
/* Sends a message of @len bytes, or queues a copy behind the waiting messages.
 * Never blocks. If too many bytes wait, sets @o->error and logs that. */
void vb_outbox_put(struct vb_outbox *o, const uint8_t *bytes, size_t len);
/* Sends the waiting messages, as far as the socket has room. */
void vb_outbox_flush(struct vb_outbox *o);

#endif
