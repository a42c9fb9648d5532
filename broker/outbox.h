/* SPDX-License-Identifier: BSD-2-Clause */
/* What a program has been told and has not read yet. */
#ifndef BROKER_OUTBOX_H
#define BROKER_OUTBOX_H

#include "broker/quota.h"

/* Of one session; its user has a quota, too. Events of 10,000 connections,
 * four of each, while a debugger stops the program, are 15 MB. */
#define VB_OUTBOX_BYTES ((size_t)24 << 20)

struct vb_letter;

struct vb_outbox {
	int fd; /* the session's */
	struct vb_user *user;
	struct vb_letter *first, **last;
	size_t bytes; /* that wait */
	int error;    /* -errno: the session is to be closed */
};

/* @fd and @user stay the caller's. */
void vb_outbox_init(struct vb_outbox *o, int fd, struct vb_user *user);
void vb_outbox_fini(struct vb_outbox *o);
/* In order: sent at once, or kept behind those that wait. Too much is an
 * error, which is logged. */
void vb_outbox_put(struct vb_outbox *o, const uint8_t *bytes, size_t len);
/* There may be room in the socket. */
void vb_outbox_flush(struct vb_outbox *o);

#endif
