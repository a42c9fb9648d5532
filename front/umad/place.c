/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the adapters that VERBENA_DEVICES names, and connects to their
 * fabrics. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fdmail.h"
#include "engine/fabric_path.h"
#include "front/umad/umad.h"

#define DEVICES	    "VERBENA_DEVICES"
#define PREFIX	    "ib:"
#define ANSWER_TIME (10 * VB_SEC)

/* --- places --- */

/* Parse the @len characters of @spec: FABRIC/NODE or NODE. False: the text has
 * neither form. */
static bool parse_place(const char *spec, size_t len, struct umad_place *place)
{
	const char *slash = memchr(spec, '/', len);
	size_t fabric = slash ? (size_t)(slash - spec) : 0;
	const char *node = slash ? slash + 1 : spec;
	size_t rest = len - (size_t)(node - spec);

	if (rest == 0 || rest >= sizeof(place->node) ||
	    fabric >= sizeof(place->fabric) || (slash && fabric == 0))
		return false;
	snprintf(place->fabric, sizeof(place->fabric), "%.*s",
		 slash ? (int)fabric : (int)strlen(VB_FABRIC_DEFAULT),
		 slash ? spec : VB_FABRIC_DEFAULT);
	snprintf(place->node, sizeof(place->node), "%.*s", (int)rest, node);
	return true;
}

/* Find the place number @index in the list. False: the list is shorter, and
 * *@count is its length. */
static bool walk(unsigned index, struct umad_place *place, unsigned *count)
{
	const char *s = getenv(DEVICES);
	struct umad_place ignored;

	*count = 0;
	while (s && *s) {
		size_t len = strcspn(s, ",");

		if (strncmp(s, PREFIX, strlen(PREFIX)) == 0 &&
		    parse_place(s + strlen(PREFIX), len - strlen(PREFIX),
				*count == index ? place : &ignored) &&
		    (*count)++ == index)
			return true;
		s += len + (s[len] == ',');
	}
	return false;
}

unsigned umad_places(void)
{
	struct umad_place ignored;
	unsigned count;

	(void)walk(UINT_MAX, &ignored, &count);
	return VB_MIN(count, (unsigned)UMAD_MAX_DEVICES);
}

bool umad_place(unsigned index, struct umad_place *place)
{
	unsigned count;

	return walk(index, place, &count);
}

int umad_place_index(const char *name)
{
	unsigned long index;
	char *end;

	if (!name)
		return umad_places() ? 0 : -1;
	if (strncmp(name, "ib", 2) != 0 || name[2] < '0' || name[2] > '9')
		return -1;
	index = strtoul(name + 2, &end, 10);
	return *end || index >= umad_places() ? -1 : (int)index;
}

/* --- connections --- */

vb_time umad_due(void)
{
	return vb_clock_read() + ANSWER_TIME;
}

int umad_wait(int fd, short events, vb_time due)
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

/* Send a message, with the descriptor *@with unless @with is NULL. 0 or -errno;
 * -ETIMEDOUT: the socket had no room until @due. */
static int post(int fd, const void *bytes, size_t len, const int *with,
		vb_time due)
{
	int rc;

	do {
		rc = vb_fdmail_send(fd, bytes, len, with, with ? 1 : 0,
				    MSG_DONTWAIT);
		if (rc != -EAGAIN)
			return rc;
		rc = umad_wait(fd, POLLOUT, due);
	} while (!rc);
	return rc;
}

/* Receive one message of at most @room bytes. Returns its length, or 0 at the
 * end of file, or -errno; -ETIMEDOUT: no message came until @due. */
static ssize_t receive(int fd, void *bytes, size_t room, vb_time due)
{
	for (;;) {
		int rc = umad_wait(fd, POLLIN, due);
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

int umad_connect(const struct umad_place *place)
{
	int fd = vb_fabric_connect(place->fabric);
	uid_t uid;

	if (fd < 0 || vb_fdmail_trusts_peer(fd, &uid))
		return fd;
	close(fd);
	return -EPERM;
}

static struct vb_umad_where where(const struct umad_place *place,
				  enum vb_umad_kind kind, unsigned port)
{
	struct vb_umad_where w = {
		.head = { .magic = VB_UMAD_MAGIC, .kind = kind },
		.port = (uint8_t)port,
	};

	memcpy(w.node, place->node, sizeof(w.node));
	return w;
}

/* Send the request @w and read the answer: @room bytes, or only a head that has
 * the error. */
static int ask(int fd, const struct vb_umad_where *w, void *answer, size_t room)
{
	struct vb_umad_head *head = answer;
	vb_time due = umad_due();
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

int umad_ask(const struct umad_place *place, unsigned port,
	     struct vb_umad_info *info)
{
	struct vb_umad_where w = where(place, UMAD_QUERY, port);
	int fd = umad_connect(place), rc;

	if (fd < 0)
		return fd;
	rc = ask(fd, &w, info, sizeof(*info));
	close(fd);
	return rc;
}

int umad_attach(const struct umad_place *place, unsigned port)
{
	struct vb_umad_where w = where(place, UMAD_ATTACH, port);
	int fd = umad_connect(place), rc;
	struct vb_umad_head answer;

	if (fd < 0)
		return fd;
	rc = ask(fd, &w, &answer, sizeof(answer));
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

int umad_call(int fd, const void *bytes, size_t len)
{
	vb_time due = umad_due();
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
