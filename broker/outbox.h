/* SPDX-License-Identifier: BSD-2-Clause */
/* The messages that wait until a program reads from its session. */
#ifndef BROKER_OUTBOX_H
#define BROKER_OUTBOX_H

#include "broker/quota.h"

/* The most bytes that may wait for one session; its user has a quota, too. Four
 * events for each of 10,000 connections, which come while a debugger stops the
 * program, take 15 MB. */
#define VB_OUTBOX_BYTES ((size_t)24 << 20)

struct vb_letter;

struct vb_outbox {
	int fd; /* the session's socket */
	struct vb_user *user;
	struct vb_letter *first, **last;
	size_t bytes; /* waiting */
	int error;    /* -errno: the caller must close the session */
};

/* @fd and @user stay the caller's and must outlive @o. */
void vb_outbox_init(struct vb_outbox *o, int fd, struct vb_user *user);
void vb_outbox_fini(struct vb_outbox *o);
/* Sends a message of @len bytes, or queues a copy of it behind those that wait.
 * Never blocks. When too many bytes wait, sets @o->error and logs that. */
void vb_outbox_put(struct vb_outbox *o, const uint8_t *bytes, size_t len);
/* Sends what waits, as far as the socket has room. */
void vb_outbox_flush(struct vb_outbox *o);

#endif
