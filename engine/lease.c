/* SPDX-License-Identifier: BSD-2-Clause */
/* Claims a slot of port 4791 from the broker, keeps it when another broker
 * follows, and releases it. */
#include "engine/lease.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/apart.h"
#include "base/fdmail.h"
#include "base/fork.h"
#include "base/log.h"
#include "engine/engine.h"
#include "engine/spawn.h"
#include "link/udp.h"

#define CLAIM_PATIENCE	(5 * VB_SEC)
#define CLAIM_RETRY	(5 * VB_MSEC)
/* The fewest tries while brokers end and can be started, however slow each
 * is: a program that was stopped, or that a full machine did not run, may have
 * met only one broker in CLAIM_PATIENCE, which was just ending. */
#define CLAIM_TRIES 3
#define STATUS_PATIENCE VB_SEC
#define REJOIN_ANSWER	VB_SEC
#define REJOIN_SPREAD	(VB_MSEC / 2)
#define REJOIN_FIRST	(200 * VB_MSEC)
#define REJOIN_LONGEST	(5 * VB_SEC)
#define SPAWN_LOOK	(5 * VB_MSEC)

/* An answer of the broker, with the descriptors that accompanied it. */
struct answer {
	struct vb_ipc m;
	unsigned fd_count;
	int fds[IPC_FDS];
};

static void eng_lease_nap(vb_time ns)
{
	struct timespec ts = { (time_t)(ns / VB_SEC), (long)(ns % VB_SEC) };

	nanosleep(&ts, NULL);
}

static void eng_close_if_open(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Limit the time for which calls on @fd wait to @patience; 0: calls do not wait
 * at all. */
static int limit_waiting(int fd, vb_time patience)
{
	const struct timeval limit = { (time_t)(patience / VB_SEC),
				       (suseconds_t)(patience % VB_SEC /
						     VB_USEC) };

	if (patience == 0)
		return fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) <
		    0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0)
		return -errno;
	return 0;
}

/*
 * Connect to the broker. The programs of a host share one UDP port, and so one
 * broker, which any user's program may have started. That user can read and
 * disturb the others' traffic; to prevent this, root runs `verbena broker`
 * first.
 */
static int eng_lease_connect_to(int fd)
{
	struct sockaddr_un a;
	socklen_t len = vb_ipc_address(&a, VB_IPC_BROKER);
	uid_t uid;

	if (connect(fd, (struct sockaddr *)&a, len) < 0)
		return -errno;
	if (!vb_fdmail_trusts_peer(fd, &uid))
		vb_log(LOG_INFO,
		       "lease: the broker of this host belongs to user %u",
		       (unsigned)uid);
	return 0;
}

/* Returns a socket that is connected to the broker, or -errno. */
static int connect_broker(vb_time patience)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), rc;

	if (fd < 0)
		return -errno;
	/* A child of fork closes @fd, so that the broker sees the session end
	 * when this program ends. */
	vb_fork_closes(fd);
	rc = limit_waiting(fd, patience);
	if (rc == 0)
		rc = eng_lease_connect_to(fd);
	if (rc) {
		close(fd);
		return rc;
	}
	return fd;
}

static int put_question(int fd, const struct vb_ipc *m, const int *fds,
			unsigned count)
{
	uint8_t bytes[VB_IPC_BYTES];
	size_t len = vb_ipc_put(bytes, m);

	return vb_fdmail_send(fd, bytes, len, fds, count, 0);
}

static void drop_answer(struct answer *a)
{
	/* The broker may belong to another user and have sent a file that
	 * blocks in close(), so a thread closes it. */
	vb_apart_drop(a->fds, a->fd_count);
	a->fd_count = 0;
}

/* Read the broker's answer. -ECONNRESET: the broker ended before it read the
 * question. */
static int get_answer(int fd, struct answer *a)
{
	uint8_t bytes[VB_IPC_BYTES];
	ssize_t n;

	do {
		a->fd_count = IPC_FDS;
		n = vb_fdmail_take(fd, bytes, sizeof(bytes), a->fds,
				   &a->fd_count, 0);
	} while (n == -EINTR);
	if (n <= 0)
		drop_answer(a);
	if (n <= 0)
		return n < 0 ? (int)n : -ECONNRESET;
	if (!vb_ipc_get(bytes, (size_t)n, &a->m)) {
		drop_answer(a);
		return -EPROTO;
	}
	return 0;
}

static int ask_broker(int fd, const struct vb_ipc *m, struct answer *a)
{
	int rc = put_question(fd, m, NULL, 0);

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

/* Is the answer a slot with all its descriptors? A broker hands out the vault
 * only to programs of its own user and of root. */
static bool is_grant(const struct answer *a)
{
	return a->m.kind == IPC_GRANT && a->m.slot != 0 &&
	       a->fd_count >= IPC_FD_VAULT &&
	       vb_udp_is_roce(a->fds[IPC_FD_SOCKET]) &&
	       is_local_socket(a->fds[IPC_FD_NAME], SOCK_SEQPACKET) &&
	       (a->fd_count < IPC_FDS ||
		is_local_socket(a->fds[IPC_FD_VAULT], SOCK_DGRAM));
}

static int log_refusal(enum vb_log_level level, const struct answer *a)
{
	vb_log(level, "lease: the broker refuses: %s", a->m.text);
	return a->m.error > 0 && a->m.error < 4096 ? -a->m.error : -EPROTO;
}

static int log_no_answer(int error)
{
	static const char *const out_of_descriptors =
		"this program is out of descriptors: raise RLIMIT_NOFILE";

	vb_log(LOG_ERROR, "lease: the broker does not answer: %s",
	       error == EMFILE ? out_of_descriptors : strerror(error));
	return -error;
}

static int claim_on(int fd, struct vb_lease *l)
{
	struct vb_ipc m = question(IPC_CLAIM, 0);
	struct answer a;
	int rc = ask_broker(fd, &m, &a);

	if (rc == -ECONNRESET)
		return rc;
	if (rc) /* do not ask a broker again that did not answer */
		return log_no_answer(rc == -EAGAIN ? ETIMEDOUT : -rc);
	if (is_grant(&a)) {
		for (unsigned i = 0; i < a.fd_count; i++)
			vb_fork_closes(a.fds[i]);
		*l = (struct vb_lease){
			.slot = a.m.slot,
			.rx_fd = a.fds[IPC_FD_SOCKET],
			.name_fd = a.fds[IPC_FD_NAME],
			.vault_fd = a.fd_count == IPC_FDS ? a.fds[IPC_FD_VAULT]
							  : -1,
			.broker_fd = fd,
			.retry_at = VB_NEVER,
		};
		return 0;
	}
	drop_answer(&a);
	if (a.m.kind == IPC_REFUSE)
		return log_refusal(LOG_ERROR, &a);
	vb_log(LOG_ERROR, "lease: the broker's answer makes no sense");
	return -EPROTO;
}

static bool may_come(int rc)
{
	return rc == -ECONNREFUSED || rc == -ECONNRESET || rc == -EAGAIN;
}

/* Claim a slot once. -ECONNREFUSED: no broker is running; -ECONNRESET: the
 * broker was just ending. */
static int claim_once(struct vb_lease *l)
{
	int fd = connect_broker(CLAIM_PATIENCE), rc;

	if (fd < 0) {
		if (!may_come(fd))
			vb_log(LOG_ERROR,
			       "lease: no session with a broker: %s%s",
			       strerror(-fd),
			       fd == -EMFILE ? ": raise RLIMIT_NOFILE "
					       "(ulimit -n)"
					     : "");
		return fd;
	}
	rc = claim_on(fd, l);
	if (rc)
		close(fd);
	return rc;
}

int vb_lease_claim(struct vb_lease *l)
{
	vb_time give_up = vb_now() + CLAIM_PATIENCE;
	int spawned = 0, rc;

	for (unsigned tries = 1;; tries++) {
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
		if (vb_now() >= give_up &&
		    (tries >= CLAIM_TRIES || spawned || rc == -EAGAIN))
			break;
		if (rc != -ECONNREFUSED || spawned)
			eng_lease_nap(CLAIM_RETRY);
	}
	vb_log(LOG_ERROR, "lease: no broker: %s%s",
	       spawned == -ECANCELED ? "verbena broker --daemon fails"
				     : strerror(spawned ? -spawned : -rc),
	       spawned == -EAGAIN ? ": may this user start another process? "
				    "RLIMIT_NPROC (ulimit -u) says how many"
				  : "");
	return rc;
}

static int again_in(struct vb_lease *l, vb_time delay)
{
	l->retry_at = vb_now() + delay;
	return -EAGAIN;
}

/* There is no usable broker now: let the caller try again after a pause, which
 * doubles each time. */
static int back_off(struct vb_lease *l)
{
	vb_time delay = REJOIN_FIRST << VB_MIN(l->failures, 8u);

	eng_close_if_open(&l->broker_fd);
	l->asked = false;
	l->turn = TURN_NONE;
	l->failures++;
	return again_in(l, VB_MIN(delay, REJOIN_LONGEST));
}

/*
 * Start the next broker, because none is running. Of many programs one should
 * do so: each waits half a millisecond for each slot below its own. A program
 * without the vault leaves this to programs that can pass their vault to the
 * new broker.
 */
static int start_next_broker(struct vb_lease *l)
{
	int rc;

	if (l->vault_fd < 0 || l->turn == TURN_SPAWNED)
		return back_off(l);
	if (l->turn == TURN_NONE) {
		l->turn = TURN_WAITED;
		return again_in(l, (l->slot % 32) * REJOIN_SPREAD);
	}
	rc = vb_spawn_step(&l->spawn);
	if (rc == -EAGAIN)
		return again_in(l, SPAWN_LOOK);
	if (rc)
		return back_off(l);
	l->turn = TURN_SPAWNED;
	return again_in(l, 0);
}

/* Ask a new broker to accept this program's slot. The slot's descriptors
 * accompany the message, and prove that the slot belongs to this program. */
static int ask_to_rejoin(const struct vb_lease *l)
{
	const int fds[IPC_FDS] = { [IPC_FD_SOCKET] = l->rx_fd,
				   [IPC_FD_NAME] = l->name_fd,
				   [IPC_FD_VAULT] = l->vault_fd };
	struct vb_ipc m = question(IPC_REJOIN, l->slot);

	return put_question(l->broker_fd, &m, fds,
			    l->vault_fd >= 0 ? IPC_FDS : IPC_FD_VAULT);
}

static int call_broker(struct vb_lease *l)
{
	int fd;

	eng_close_if_open(&l->broker_fd);
	if (l->spawn.busy)
		return start_next_broker(l);
	fd = connect_broker(0);
	if (fd == -ECONNREFUSED)
		return start_next_broker(l);
	if (fd < 0)
		return back_off(l);
	l->broker_fd = fd;
	if (ask_to_rejoin(l) < 0)
		return back_off(l);
	l->asked = true;
	return again_in(l, REJOIN_ANSWER);
}

static int hear_welcome(struct vb_lease *l)
{
	struct answer a;
	int rc = get_answer(l->broker_fd, &a);

	if (rc == -EAGAIN && vb_now() < l->retry_at)
		return rc;
	if (rc)
		return back_off(l);
	drop_answer(&a);
	if (a.m.kind == IPC_REFUSE)
		(void)log_refusal(LOG_INFO, &a);
	if (a.m.kind != IPC_WELCOME)
		return back_off(l);
	l->asked = false;
	l->turn = TURN_NONE;
	l->failures = 0;
	l->retry_at = VB_NEVER;
	return 0;
}

int vb_lease_rejoin(struct vb_lease *l)
{
	return l->asked ? hear_welcome(l) : call_broker(l);
}

void vb_lease_release(struct vb_lease *l)
{
	vb_spawn_finish(&l->spawn);
	/* Close the socket of the name last: once the name is free, the broker
	 * can grant the slot to another program. */
	eng_close_if_open(&l->rx_fd);
	eng_close_if_open(&l->vault_fd);
	eng_close_if_open(&l->broker_fd);
	eng_close_if_open(&l->name_fd);
}

int vb_lease_status(struct vb_ipc *report)
{
	struct vb_ipc m = question(IPC_STATUS, 0);
	int fd = connect_broker(STATUS_PATIENCE), rc;
	struct answer a;

	if (fd < 0)
		return fd;
	rc = ask_broker(fd, &m, &a);
	close(fd);
	if (rc)
		return rc;
	drop_answer(&a);
	if (a.m.kind != IPC_REPORT)
		return -EPROTO;
	*report = a.m;
	return 0;
}
