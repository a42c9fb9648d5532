/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/fdmail.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The user number that the kernel reports, inside a user namespace, for every
 * user whom the namespace does not map. */
#define UID_OF_STRANGERS 65534

union control {
	char bytes[CMSG_SPACE(VB_FDMAIL_MOST * sizeof(int))];
	struct cmsghdr align;
};

int vb_fdmail_bind(const struct sockaddr_un *name, socklen_t len)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), rc;

	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)name, len) == 0)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

int vb_fdmail_send(int fd, const void *bytes, size_t len, const int *fds,
		   unsigned count, int flags)
{
	union control control;
	struct iovec iov = { (void *)(uintptr_t)bytes, len };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (count > VB_FDMAIL_FDS)
		return -EINVAL;
	if (count) {
		struct cmsghdr *c = &control.align;

		memset(&control, 0, CMSG_SPACE(count * sizeof(int)));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(c), fds, count * sizeof(int));
		h.msg_control = &control;
		h.msg_controllen = CMSG_SPACE(count * sizeof(int));
	}
	return sendmsg(fd, &h, flags | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

void vb_fdmail_close(const int *fds, unsigned count)
{
	while (count-- > 0)
		close(fds[count]);
}

static unsigned take_fds(struct msghdr *h, int *fds)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(h);
	size_t len;

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return 0;
	len = c->cmsg_len - CMSG_LEN(0);
	memcpy(fds, CMSG_DATA(c), len);
	return (unsigned)(len / sizeof(int));
}

/* recvmsg(), but a peer that closed with unread messages is ECONNRESET only
 * after its own last message. Linux reports the error before that message,
 * which often says why the peer closed. */
static ssize_t recv_last_words(int fd, struct msghdr *h, int flags)
{
	const struct msghdr before = *h;
	ssize_t n = recvmsg(fd, h, flags);

	if (n >= 0 || errno != ECONNRESET)
		return n;
	*h = before;
	n = recvmsg(fd, h, flags | MSG_DONTWAIT);
	if (n > 0)
		return n;
	errno = ECONNRESET;
	return -1;
}

ssize_t vb_fdmail_take(int fd, void *bytes, size_t room, int *fds,
		       unsigned *count, int flags)
{
	union control control;
	struct iovec iov = { bytes, room };
	struct msghdr h = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &control };
	ssize_t n;

	/* CMSG_LEN() and not CMSG_SPACE(), which is rounded up: the kernel
	 * would store a fourth descriptor in space for three. */
	h.msg_controllen =
		CMSG_LEN(VB_MIN(*count, VB_FDMAIL_MOST + 0u) * sizeof(int));
	*count = 0;
	n = recv_last_words(fd, &h, flags | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return -errno;
	*count = take_fds(&h, fds);
	if (!(h.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return n;
	return h.msg_flags & MSG_CTRUNC ? -EMFILE : -EMSGSIZE;
}

ssize_t vb_fdmail_recv(int fd, void *bytes, size_t room, int *fds,
		       unsigned *count, int flags)
{
	ssize_t n = vb_fdmail_take(fd, bytes, room, fds, count, flags);

	if (n >= 0)
		return n;
	vb_fdmail_close(fds, *count);
	*count = 0;
	return n;
}

bool vb_fdmail_has_option(int fd, int option, int value)
{
	socklen_t len = sizeof(int);
	int got;

	return getsockopt(fd, SOL_SOCKET, option, &got, &len) == 0 &&
	       got == value;
}

/* Does a user of this user namespace have the number @uid? */
static bool is_mapped(uid_t uid)
{
	unsigned inside, outside, count;
	bool mapped = false;
	FILE *f = fopen("/proc/self/uid_map", "re");

	if (!f)
		return false;
	while (!mapped && fscanf(f, "%u %u %u", &inside, &outside, &count) == 3)
		mapped = uid >= inside && uid - inside < count;
	fclose(f);
	return mapped;
}

bool vb_fdmail_is_stranger(uid_t uid)
{
	return uid == UID_OF_STRANGERS && !is_mapped(uid);
}

bool vb_fdmail_trusts_peer(int fd, uid_t *uid)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	*uid = (uid_t)-1;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return false;
	*uid = peer.uid;
	if (vb_fdmail_is_stranger(peer.uid))
		return false;
	return peer.uid == 0 || peer.uid == geteuid();
}
