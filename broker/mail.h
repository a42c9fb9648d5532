/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages between programs and the broker, with the descriptors they carry. */
#ifndef BROKER_MAIL_H
#define BROKER_MAIL_H

#include "wire/ipc.h"
#include "wire/ipc_cm.h"

#define VB_MAIL_BYTES VB_MAX_CONST(VB_IPC_BYTES, VB_IPC_CM_BYTES)

/* A message that arrived, with its descriptors, which vb_mail_close() closes.
 */
struct vb_mail {
	uint8_t bytes[VB_MAIL_BYTES];
	size_t len;
	struct vb_ipc m; /* the decoded message, unless vb_mail_is_cm() */
	unsigned fd_count;
	int fds[IPC_FDS];
	uint64_t owner; /* the sender of @fds, as vb_apart_close() takes it */
};

/* Reads one message from @fd, of @owner, without waiting. 1: @mail has it; 0:
 * none has come yet; -ECONNRESET: the program has closed the session; -EPROTO:
 * the message is malformed; or -errno of recvmsg(2). */
VB_MUST_CHECK int vb_mail_read(int fd, uint64_t owner, struct vb_mail *mail);
/* Closes the first mail->fd_count descriptors of @mail. A caller that keeps the
 * last ones lowers fd_count before. */
void vb_mail_close(struct vb_mail *mail);
/* Returns whether the message is for the connection manager (wire/ipc_cm.h). */
bool vb_mail_is_cm(const struct vb_mail *mail);

/* Returns a message of @kind with the version and the broker's process
 * number. */
struct vb_ipc vb_mail_compose(enum vb_ipc_kind kind);
/* Writes to @text the meaning of errno @error for a program that is refused. */
void vb_mail_word_refusal(int error, char text[VB_IPC_TEXT]);

#endif
