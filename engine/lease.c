/* SPDX-License-Identifier: BSD-2-Clause */
/* Claiming, keeping and giving back a slot. */
#include "engine/lease.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/fdmail.h"
#include "base/log.h"
#include "engine/engine.h"
#include "engine/spawn.h"
#include "link/udp.h"

#define CLAIM_PATIENCE (5 * VB_SEC)
#define CLAIM_RETRY    (5 * VB_MSEC)
#define REJOIN_ANSWER  (200 * VB_MSEC)
#define REJOIN_SPREAD  (VB_MSEC / 2)
#define GRANT_FDS      3

/* What the broker answered. */
struct answer {
	struct vb_ipc m;
	unsigned fd_count;
	int fds[GRANT_FDS];
};

static void nap(vb_time ns)
{
	struct timespec ts = { (time_t)(ns / VB_SEC), (long)(ns % VB_SEC) };

	nanosleep(&ts, NULL);
}

static void close_if_open(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* A session on which no call waits longer than @patience; or -errno. */
static int connect_broker(vb_time patience)
{
	const struct timeval limit = { (time_t)(patience / VB_SEC),
				       (suseconds_t)(patience % VB_SEC /
						     VB_USEC) };
	struct sockaddr_un a;
	socklen_t len = vb_ipc_address(&a, VB_IPC_BROKER);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) <
		    0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) <
		    0 ||
	    connect(fd, (struct sockaddr *)&a, len) < 0) {
		int rc = -errno;

		close(fd);
		return rc;
	}
	return fd;
}

/* @enclosed: a descriptor to send along, or -1. */
static int put_question(int fd, const struct vb_ipc *m, int enclosed)
{
	uint8_t bytes[VB_IPC_BYTES];
	size_t len = vb_ipc_put(bytes, m);

	return vb_fdmail_send(fd, bytes, len, &enclosed, enclosed >= 0, 0);
}

static void drop_answer(struct answer *a)
{
	vb_fdmail_close(a->fds, a->fd_count);
	a->fd_count = 0;
}

/* -ECONNRESET: the broker left before it read the question. */
static int get_answer(int fd, struct answer *a)
{
	uint8_t bytes[VB_IPC_BYTES];
	ssize_t n;

	do {
		a->fd_count = GRANT_FDS;
		n = vb_fdmail_recv(fd, bytes, sizeof(bytes), a->fds,
				   &a->fd_count, 0);
	} while (n == -EINTR);
	if (n <= 0)
		return n < 0 ? (int)n : -ECONNRESET;
	if (!vb_ipc_get(bytes, (size_t)n, &a->m)) {
		drop_answer(a);
		return -EPROTO;
	}
	return 0;
}

static int ask_broker(int fd, const struct vb_ipc *m, int enclosed,
		      struct answer *a)
{
	int rc = put_question(fd, m, enclosed);

	if (rc == 0)
		rc = get_answer(fd, a);
	return rc == -EPIPE ? -ECONNRESET : rc;
}

static struct vb_ipc question(enum vb_ipc_kind kind, unsigned slot)
{
	return (struct vb_ipc){ .kind = (uint8_t)kind,
				.version = VB_IPC_VERSION,
				.slot = (uint16_t)slot,
				.pid = (uint32_t)getpid() };
}

static bool is_local_socket(int fd, int type)
{
	return vb_fdmail_has_option(fd, SO_DOMAIN, AF_UNIX) &&
	       vb_fdmail_has_option(fd, SO_TYPE, type);
}

static bool is_grant(const struct answer *a)
{
	return a->m.kind == IPC_GRANT && a->m.slot != 0 &&
	       a->fd_count == GRANT_FDS && vb_udp_is_roce(a->fds[0]) &&
	       is_local_socket(a->fds[1], SOCK_SEQPACKET) &&
	       is_local_socket(a->fds[2], SOCK_DGRAM);
}

/* The text comes from another process, and goes to a terminal. */
static int log_refusal(enum vb_log_level level, struct answer *a)
{
	for (char *p = a->m.text; *p; p++)
		if (*p < ' ' || *p > '~')
			*p = '?';
	vb_log(level, "lease: the broker refuses: %s", a->m.text);
	return a->m.error > 0 && a->m.error < 4096 ? -a->m.error : -EPROTO;
}

static int claim_on(int fd, struct vb_lease *l)
{
	struct vb_ipc m = question(IPC_CLAIM, 0);
	struct answer a;
	int rc = ask_broker(fd, &m, -1, &a);

	if (rc == -ECONNRESET)
		return rc;
	if (rc) {
		vb_log(LOG_ERROR, "lease: the broker does not answer: %s",
		       strerror(-rc));
		return rc;
	}
	if (is_grant(&a)) {
		*l = (struct vb_lease){ a.m.slot, a.fds[0], a.fds[1], a.fds[2],
					fd };
		return 0;
	}
	drop_answer(&a);
	if (a.m.kind == IPC_REFUSE)
		return log_refusal(LOG_ERROR, &a);
	vb_log(LOG_ERROR, "lease: the broker's answer makes no sense");
	return -EPROTO;
}

/* -ECONNREFUSED: nobody is there; -ECONNRESET: the broker was just leaving. */
static int claim_once(struct vb_lease *l)
{
	int fd = connect_broker(CLAIM_PATIENCE), rc;

	if (fd < 0)
		return fd;
	rc = claim_on(fd, l);
	if (rc)
		close(fd);
	return rc;
}

static bool may_come(int rc)
{
	return rc == -ECONNREFUSED || rc == -ECONNRESET || rc == -EAGAIN;
}

int vb_lease_claim(struct vb_lease *l)
{
	vb_time give_up = vb_now() + CLAIM_PATIENCE;
	int spawned = 0, rc;

	for (;;) {
		rc = claim_once(l);
		if (!may_come(rc))
			return rc;
		if (rc == -ECONNREFUSED)
			spawned = vb_spawn_broker();
		if (spawned == -ENOENT) {
			vb_log(LOG_ERROR,
			       "lease: no broker is running here, and there is "
			       "no verbena program to start one: set "
			       "VERBENA_BROKER to its path");
			return -ENOENT;
		}
		if (vb_now() >= give_up)
			break;
		if (rc != -ECONNREFUSED || spawned)
			nap(CLAIM_RETRY);
	}
	vb_log(LOG_ERROR, "lease: no broker: %s",
	       spawned == -ECANCELED ? "verbena broker --daemon fails"
				     : strerror(spawned ? -spawned : -rc));
	return rc;
}

/* Connect, and let one of many programs be first to start the next broker:
 * the one in the lowest slot. */
static int find_next_broker(unsigned slot)
{
	int fd = connect_broker(REJOIN_ANSWER);

	if (fd != -ECONNREFUSED)
		return fd;
	nap((slot % 32) * REJOIN_SPREAD);
	fd = connect_broker(REJOIN_ANSWER);
	if (fd != -ECONNREFUSED || vb_spawn_broker() != 0)
		return fd;
	return connect_broker(REJOIN_ANSWER);
}

static int rejoin_on(int fd, const struct vb_lease *l)
{
	struct vb_ipc m = question(IPC_REJOIN, l->slot);
	struct answer a;

	if (ask_broker(fd, &m, l->vault_fd, &a) != 0)
		return -EAGAIN;
	drop_answer(&a);
	if (a.m.kind == IPC_WELCOME)
		return 0;
	if (a.m.kind == IPC_REFUSE)
		(void)log_refusal(LOG_INFO, &a);
	return -EAGAIN;
}

int vb_lease_rejoin(struct vb_lease *l)
{
	int fd, rc;

	close_if_open(&l->broker_fd);
	fd = find_next_broker(l->slot);
	if (fd < 0)
		return -EAGAIN;
	rc = rejoin_on(fd, l);
	if (rc)
		close(fd);
	else
		l->broker_fd = fd;
	return rc;
}

void vb_lease_release(struct vb_lease *l)
{
	/* The name last: the slot is free when all else is given back. */
	close_if_open(&l->rx_fd);
	close_if_open(&l->vault_fd);
	close_if_open(&l->broker_fd);
	close_if_open(&l->name_fd);
}

int vb_lease_status(struct vb_ipc *report)
{
	struct vb_ipc m = question(IPC_STATUS, 0);
	int fd = connect_broker(VB_SEC), rc;
	struct answer a;

	if (fd < 0)
		return fd;
	rc = ask_broker(fd, &m, -1, &a);
	close(fd);
	if (rc)
		return rc;
	drop_answer(&a);
	if (a.m.kind != IPC_REPORT)
		return -EPROTO;
	*report = a.m;
	return 0;
}
