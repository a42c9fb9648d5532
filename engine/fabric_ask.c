/* SPDX-License-Identifier: BSD-2-Clause */
/* The client's side of a fabric's socket. */
#include "engine/fabric_ask.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fdmail.h"

#define ANSWER_TIME (10 * VB_SEC)

vb_time vb_fabric_due(void)
{
	return vb_clock_read() + ANSWER_TIME;
}

int vb_fabric_wait(int fd, short events, vb_time due)
{
	struct pollfd p = { .fd = fd, .events = events };

	for (;;) {
		vb_time now = vb_clock_read();
		vb_time left = now < due ? due - now + VB_MSEC - 1 : 0;
		int n = poll(&p, 1, (int)(left / VB_MSEC));

		if (n > 0)
			return 0;
		if (n == 0)
			return -ETIMEDOUT;
		if (errno != EINTR)
			return -errno;
	}
}

/* Send a message, with the descriptor *@with unless that is NULL. 0 or -errno;
 * -ETIMEDOUT: there was no room until @due. */
static int post(int fd, const void *bytes, size_t len, const int *with,
		vb_time due)
{
	int rc;

	do {
		rc = vb_fdmail_send(fd, bytes, len, with, with ? 1 : 0,
				    MSG_DONTWAIT);
		if (rc != -EAGAIN)
			return rc;
		rc = vb_fabric_wait(fd, POLLOUT, due);
	} while (!rc);
	return rc;
}

/* One message of at most @room bytes. Its length, or 0 at the end of file, or
 * -errno; -ETIMEDOUT: none came until @due. */
static ssize_t receive(int fd, void *bytes, size_t room, vb_time due)
{
	for (;;) {
		int rc = vb_fabric_wait(fd, POLLIN, due);
		ssize_t n;

		if (rc)
			return rc;
		n = recv(fd, bytes, room, MSG_DONTWAIT);
		if (n >= 0)
			return n;
		if (errno != EAGAIN)
			return -errno;
	}
}

/* A descriptor that the caller closes, or -errno. */
static int connect_to(const struct vb_fabric_place *place)
{
	int fd = vb_fabric_connect(place->fabric);
	uid_t uid;

	if (fd < 0 || vb_fdmail_trusts_peer(fd, &uid))
		return fd;
	close(fd);
	return -EPERM;
}

static struct vb_umad_where where(const struct vb_fabric_place *place,
				  enum vb_umad_kind kind, unsigned port)
{
	struct vb_umad_where w = {
		.head = { .magic = VB_UMAD_MAGIC, .kind = kind },
		.port = (uint8_t)port,
	};

	memcpy(w.node, place->node, sizeof(w.node));
	return w;
}

/* Send @w and read the answer: @room bytes, or a head alone that has the
 * error. */
static int ask(int fd, const struct vb_umad_where *w, void *answer, size_t room)
{
	struct vb_umad_head *head = answer;
	vb_time due = vb_fabric_due();
	int rc = post(fd, w, sizeof(*w), NULL, due);
	ssize_t n;

	if (rc)
		return rc;
	n = receive(fd, answer, room, due);
	if (n < 0)
		return (int)n;
	if ((size_t)n < sizeof(*head) || head->magic != VB_UMAD_MAGIC)
		return n == 0 ? -ECONNRESET : -EPROTO;
	if (head->result < 0)
		return head->result;
	return (size_t)n == room ? 0 : -EPROTO;
}

int vb_fabric_ask(const struct vb_fabric_place *place, unsigned port,
	     struct vb_umad_info *info)
{
	struct vb_umad_where w = where(place, UMAD_QUERY, port);
	int fd = connect_to(place), rc;

	if (fd < 0)
		return fd;
	rc = ask(fd, &w, info, sizeof(*info));
	close(fd);
	return rc;
}

int vb_fabric_attach(const struct vb_fabric_place *place, unsigned port)
{
	struct vb_umad_where w = where(place, UMAD_ATTACH, port);
	int fd = connect_to(place), rc;
	struct vb_umad_head answer;

	if (fd < 0)
		return fd;
	rc = ask(fd, &w, &answer, sizeof(answer));
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

int vb_fabric_call(int fd, const void *bytes, size_t len)
{
	vb_time due = vb_fabric_due();
	struct vb_umad_head head;
	int pair[2], rc;
	ssize_t n;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	rc = post(fd, bytes, len, &pair[1], due);
	close(pair[1]);
	if (!rc) {
		n = receive(pair[0], &head, sizeof(head), due);
		rc = n == sizeof(head) ? head.result
		     : n < 0	       ? (int)n
				       : -ECONNRESET;
	}
	close(pair[0]);
	return rc;
}
