/* SPDX-License-Identifier: BSD-2-Clause */
/* Questions to the process of a fabric, and messages with a limit of time. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fdmail.h"
#include "engine/fabric_path.h"

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

int vb_fabric_post(int fd, const void *bytes, size_t len, const int *with,
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

ssize_t vb_fabric_receive(int fd, void *bytes, size_t room, int *fds,
			  unsigned *count, vb_time due)
{
	unsigned want = *count;

	for (;;) {
		int rc = vb_fabric_wait(fd, POLLIN, due);
		ssize_t n;

		if (rc)
			return rc;
		*count = want;
		n = vb_fdmail_recv(fd, bytes, room, fds, count, MSG_DONTWAIT);
		if (n != -EAGAIN)
			return n;
	}
}

int vb_fabric_reach(const struct vb_fabric_place *place)
{
	int fd = vb_fabric_connect(place->fabric);
	uid_t uid;

	if (fd < 0 || vb_fdmail_trusts_peer(fd, &uid))
		return fd;
	close(fd);
	return -EPERM;
}

static int read_answer(int fd, void *answer, size_t room, int *fds,
		       unsigned *count, vb_time due)
{
	struct vb_umad_head *head = answer;
	ssize_t n = vb_fabric_receive(fd, answer, room, fds, count, due);

	if (n < 0)
		return (int)n;
	if ((size_t)n < sizeof(*head) || head->magic != VB_UMAD_MAGIC)
		return n == 0 ? -ECONNRESET : -EPROTO;
	if (head->result < 0)
		return head->result;
	return (size_t)n == room ? 0 : -EPROTO;
}

struct vb_umad_where vb_fabric_where(uint32_t kind,
				     const struct vb_fabric_place *place,
				     unsigned port)
{
	struct vb_umad_where w = {
		.head = { .magic = VB_UMAD_MAGIC, .kind = kind },
		.port = (uint8_t)port,
	};

	memcpy(w.node, place->node, sizeof(w.node));
	return w;
}

int vb_fabric_ask(int fd, const struct vb_umad_where *w, void *answer,
		  size_t room, int *fds, unsigned *count)
{
	vb_time due = vb_fabric_due();
	int rc = vb_fabric_post(fd, w, sizeof(*w), NULL, due);

	if (rc) {
		*count = 0;
		return rc;
	}
	rc = read_answer(fd, answer, room, fds, count, due);
	if (rc) {
		vb_fdmail_close(fds, *count);
		*count = 0;
	}
	return rc;
}

int vb_fabric_attach(const struct vb_fabric_place *place, unsigned port)
{
	const struct vb_umad_where w =
		vb_fabric_where(UMAD_ATTACH, place, port);
	struct vb_umad_head answer;
	int fd = vb_fabric_reach(place), rc;
	unsigned none = 0;

	if (fd < 0)
		return fd;
	rc = vb_fabric_ask(fd, &w, &answer, sizeof(answer), NULL, &none);
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

int vb_fabric_query(const struct vb_fabric_place *place, unsigned port,
		    struct vb_umad_info *info)
{
	const struct vb_umad_where w = vb_fabric_where(UMAD_QUERY, place, port);
	int fd = vb_fabric_reach(place), rc;
	unsigned none = 0;

	if (fd < 0)
		return fd;
	rc = vb_fabric_ask(fd, &w, info, sizeof(*info), NULL, &none);
	close(fd);
	return rc;
}

int vb_fabric_call(int fd, const void *bytes, size_t len)
{
	vb_time due = vb_fabric_due();
	struct vb_umad_head head;
	unsigned none = 0;
	int pair[2], rc;
	ssize_t n;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	rc = vb_fabric_post(fd, bytes, len, &pair[1], due);
	close(pair[1]);
	if (!rc) {
		n = vb_fabric_receive(pair[0], &head, sizeof(head), NULL, &none,
				      due);
		rc = n == sizeof(head) ? head.result
		     : n < 0	       ? (int)n
				       : -ECONNRESET;
	}
	close(pair[0]);
	return rc;
}
