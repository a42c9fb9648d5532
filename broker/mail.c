/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads messages of programs, and composes answers and explanations of
 * refusals. */
#include "broker/mail.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/apart.h"
#include "base/fdmail.h"

void vb_mail_close(struct vb_mail *mail)
{
	vb_apart_close(mail->fds, mail->fd_count, mail->owner);
	mail->fd_count = 0;
}

bool vb_mail_is_cm(const struct vb_mail *mail)
{
	return mail->len == VB_IPC_CM_BYTES && mail->bytes[0] >= IPC_CM_BIND;
}

int vb_mail_read(int fd, uint64_t owner, struct vb_mail *mail)
{
	ssize_t n;

	mail->owner = owner;
	mail->fd_count = vb_apart_has_room(owner) ? VB_COUNT(mail->fds) : 0;
	n = vb_fdmail_take(fd, mail->bytes, sizeof(mail->bytes), mail->fds,
			   &mail->fd_count, MSG_DONTWAIT);
	if (n < 0) {
		vb_mail_close(mail);
		return n == -EAGAIN || n == -EINTR ? 0 : (int)n;
	}
	mail->len = (size_t)n;
	if (n > 0 && (vb_mail_is_cm(mail) ||
		      vb_ipc_get(mail->bytes, mail->len, &mail->m)))
		return 1;
	vb_mail_close(mail);
	return n == 0 ? -ECONNRESET : -EPROTO;
}

struct vb_ipc vb_mail_compose(enum vb_ipc_kind kind)
{
	return (struct vb_ipc){ .kind = (uint8_t)kind,
				.version = VB_IPC_VERSION,
				.pid = (uint32_t)getpid() };
}

void vb_mail_word_refusal(int error, char text[VB_IPC_TEXT])
{
	// clang-format off
	static const struct { int error; const char *text; } reasons[] = {
		{ EUSERS, "256 programs use the adapter already" },
		{ EADDRINUSE, "UDP port 4791 is held by another program "
			      "(rdma_rxe, or another RoCE stack), or by "
			      "another user's programs" },
		{ ETOOMANYREFS, "too many descriptors are in flight: raise "
				"RLIMIT_NOFILE" },
		{ EMFILE, "the broker is out of descriptors: raise "
			  "RLIMIT_NOFILE" },
		{ EBUSY, "the broker has all the sessions it can serve" },
		{ EEXIST, "another set of sockets is in use" },
		{ EPERM, "this process does not hold that slot" },
		{ EAGAIN, "no program has brought the sockets yet" },
	};
	// clang-format on

	for (unsigned i = 0; i < VB_COUNT(reasons); i++)
		if (reasons[i].error == error) {
			snprintf(text, VB_IPC_TEXT, "%s", reasons[i].text);
			return;
		}
	snprintf(text, VB_IPC_TEXT, "the broker: %s", strerror(error));
}
