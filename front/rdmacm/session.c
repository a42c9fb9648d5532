/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The session with the broker: one UNIX socket and one thread in each process.
 * The thread reads events and answers; any thread sends. When the broker ends,
 * the thread connects to the next one (resume.c), and senders wait for that.
 */
#include "front/rdmacm/rdmacm.h"

#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fdmail.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/sync.h"
#include "base/thread.h"
#include "engine/spawn.h"
#include "wire/ipc.h"

/* How long to wait for the broker's answer. */
#define ANSWER_WAIT (10 * VB_SEC)
/* How long to wait for the next broker. */
#define SESSION_WAIT (10 * VB_SEC)
/* How long to wait for room in the socket's buffer. */
#define ROOM_WAIT (10 * VB_SEC)
/* Age of a session below which the engine may still have to open its own
 * session with the broker. */
#define KNOWN_SOON (2 * VB_SEC)
#define NAP	   (2 * VB_MSEC)
/* After MOST_SHORT sessions in a row that lasted less than SHORTEST_LIFE, the
 * thread assumes that this process is at fault and gives up. */
#define SHORTEST_LIFE VB_SEC
#define MOST_SHORT    5

struct rcm rcm = { .lock = PTHREAD_MUTEX_INITIALIZER,
		   .fd = -1,
		   .next_number = 1,
		   .answers = PTHREAD_COND_INITIALIZER };

/* Makes a message about @id. An id that a child inherited over fork() belongs
 * to the parent: its messages get kind IPC_CM_NONE, which say() does not
 * send. */
struct vb_ipc_cm rcm_message(const struct rcm_id *id, enum vb_ipc_cm_kind kind)
{
	return (struct vb_ipc_cm){ .kind = id->forks == rcm.forks
						   ? (uint8_t)kind
						   : IPC_CM_NONE,
				   .version = VB_IPC_CM_VERSION,
				   .id = id->number };
}

/*
 * Runs in a child of fork(): the session must end with the parent, and the
 * devices belong to the parent, so the child has neither. The numbers of the
 * child's own ids continue after the parent's.
 */
static void begin_again(void)
{
	rcm.fd = -1;
	rcm.lost = false;
	rcm.forks++;
	rcm_iw_after_fork();
	rcm_removals_after_fork();
	rcm_why_after_fork();
	rcm.devices = NULL;
	rcm.device_count = 0;
	rcm.has_roce = rcm.has_iwarp = rcm.has_ib = false;
	rcm.asked = false;
	rcm.known_qpn = 0;
	memset(rcm.ids, 0, sizeof(rcm.ids));
	rcm_event_after_fork();
	pthread_mutex_init(&rcm.lock, NULL);
	pthread_cond_init(&rcm.answers, NULL);
}
VB_FORGET_AT_FORK(begin_again)

/* Hands the answer @m to the thread that asked. An answer that comes after that
 * thread gave up is skipped. */
static void take_answer(const struct vb_ipc_cm *m)
{
	pthread_mutex_lock(&rcm.lock);
	if (rcm_is_answer(&rcm.question, m)) {
		rcm.answer = *m;
		rcm.answered = true;
		pthread_cond_broadcast(&rcm.answers);
	}
	pthread_mutex_unlock(&rcm.lock);
}

static struct timespec at(vb_time then)
{
	return (struct timespec){ (time_t)(then / VB_SEC),
				  (long)(then % VB_SEC) };
}

/* Waits for rcm.answers: an answer, or a change of the session. @until is
 * CLOCK_MONOTONIC, because the wall clock may be set meanwhile. The caller
 * holds rcm.lock. Returns 0, or a positive errno. */
static int await_message(vb_time until)
{
	const struct timespec then = at(until);

	return pthread_cond_clockwait(&rcm.answers, &rcm.lock, CLOCK_MONOTONIC,
				      &then);
}

bool rcm_is_answer(const struct vb_ipc_cm *asked, const struct vb_ipc_cm *done)
{
	return done->id == asked->id && done->tid == asked->tid;
}

/* Logs a message of another kind than the connection manager's. It may say that
 * the broker refuses one more session of this user. */
static void log_refusal(const uint8_t *bytes, size_t len)
{
	struct vb_ipc m;

	if (vb_ipc_get(bytes, len, &m) && m.kind == IPC_REFUSE)
		vb_log(LOG_WARN, "rdmacm: the broker refuses: %s", m.text);
}

int rcm_session_hear(int fd, struct vb_ipc_cm *done)
{
	uint8_t bytes[VB_IPC_CM_BYTES];
	unsigned count = 0;
	struct vb_ipc_cm m;
	ssize_t n;

	do
		n = vb_fdmail_recv(fd, bytes, sizeof(bytes), NULL, &count, 0);
	while (n == -EINTR);
	if (n <= 0)
		return n < 0 ? (int)n : -ECONNRESET;
	if (!vb_ipc_cm_get(bytes, (size_t)n, &m)) {
		log_refusal(bytes, (size_t)n);
		return -EPROTO;
	}
	if (m.kind == IPC_CM_DONE)
		*done = m;
	else if (m.kind == IPC_CM_EVENT)
		rcm_event_arrived(&m);
	return 0;
}

static void set_session(int fd, bool lost)
{
	pthread_mutex_lock(&rcm.lock);
	rcm.fd = fd;
	if (fd >= 0) {
		rcm.sessions++;
		rcm.begun = vb_clock_read();
	}
	rcm.lost = lost;
	pthread_cond_broadcast(&rcm.answers);
	pthread_mutex_unlock(&rcm.lock);
}

/* Waits for a message of the broker. Meanwhile it handles removals of devices,
 * and tells the user of peers whose answers are late. */
static void await_word(int fd)
{
	struct pollfd fds[] = { { .fd = fd, .events = POLLIN },
				{ .fd = rcm_removals_fd(), .events = POLLIN },
				{ .fd = rcm_why_fd(), .events = POLLIN } };

	do {
		fds[1].revents = fds[2].revents = 0;
		if (poll(fds, VB_COUNT(fds), -1) < 0 && errno != EINTR)
			return;
		if (fds[1].revents)
			rcm_removals_take();
		if (fds[2].revents)
			rcm_why_take();
	} while (!fds[0].revents);
}

/* Reads and handles the messages of the broker until the session ends. */
static void serve_session(int fd)
{
	struct vb_ipc_cm done;
	int rc;

	do {
		await_word(fd);
		done.kind = 0;
		rc = rcm_session_hear(fd, &done);
		if (rc == 0 && done.kind)
			take_answer(&done);
	} while (rc == 0);
}

static void *listen_to_broker(void *arg)
{
	int fd = (int)(intptr_t)arg;
	unsigned hasty = 0;

	while (fd >= 0 && hasty < MOST_SHORT) {
		vb_time begun = vb_clock_read();

		serve_session(fd);
		hasty = vb_clock_read() - begun < SHORTEST_LIFE ? hasty + 1 : 0;
		set_session(-1, true);
		close(fd);
		vb_log(LOG_INFO, "rdmacm: the broker left");
		fd = hasty < MOST_SHORT ? rcm_resume() : -EPROTO;
		set_session(fd < 0 ? -1 : fd, false);
	}
	vb_log(LOG_WARN, "rdmacm: no broker; connections stay open, but "
			 "programs get no more events about them");
	return NULL;
}

/* The send timeout limits the wait for a broker that does not read, for example
 * because it is stopped. */
static int connect_once(void)
{
	static const struct timeval patience = { ROOM_WAIT / VB_SEC, 0 };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un a;
	socklen_t len = vb_ipc_address(&a, VB_IPC_BROKER);

	if (fd < 0)
		return -errno;
	/* the session must end with the parent, so a child of fork closes
	 * this */
	vb_fork_closes(fd);
	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience,
		       sizeof(patience)) < 0 ||
	    connect(fd, (struct sockaddr *)&a, len) < 0) {
		int rc = errno == EAGAIN ? -ETIMEDOUT : -errno;

		close(fd);
		return rc;
	}
	return fd;
}

/* Connects to the broker. Where this process has RoCE devices, their engine
 * starts a broker if there is none. */
int rcm_session_connect(void)
{
	int fd = connect_once();

	if (fd != -ECONNREFUSED || rcm.has_roce)
		return fd;
	(void)!vb_spawn_broker();
	return connect_once();
}

/* Gives the broker this process's adapters of fabrics, and starts the thread.
 * It blocks all signals, so that it receives none that the program waits for.
 */
static int session_start_thread(int fd)
{
	pthread_t thread;
	int rc;

	rc = rcm_places_tell(fd);
	if (rc)
		return rc;
	rcm_why_begin();
	rc = vb_thread_start(&thread, NULL, listen_to_broker,
			    (void *)(intptr_t)fd);
	if (rc == 0)
		pthread_detach(thread);
	return -rc;
}

/* Opens the devices and, for RoCE and InfiniBand, the session, whose thread it
 * starts. For RoCE a broker runs by then: opening a device starts one if there
 * is none. The caller holds rcm.lock. */
static int start_session(void)
{
	int rc = rcm_devices_open(), fd;

	if (rc)
		return rc;
	if ((!rcm.has_roce && !rcm.has_ib) || rcm.fd >= 0 || rcm.lost)
		return 0;
	fd = rcm_session_connect();
	if (fd < 0)
		return fd;
	rc = session_start_thread(fd);
	if (rc) {
		close(fd);
		return rc;
	}
	rcm.fd = fd;
	rcm.sessions++;
	rcm.begun = vb_clock_read();
	rcm.lost = false;
	return 0;
}

int rcm_session_start(void)
{
	int rc;

	pthread_mutex_lock(&rcm.lock);
	rc = start_session();
	pthread_mutex_unlock(&rcm.lock);
	return rc;
}

/* Waits until the thread has noticed that session number @gone ended and has
 * replayed the records to the next broker; 0: no session has failed yet. The
 * caller holds rcm.lock. Sessions are compared by number, because the next
 * socket may have the same descriptor. False: there is no session. */
static bool wait_for_session(uint64_t gone)
{
	const vb_time until = vb_clock_read() + SESSION_WAIT;
	int rc = 0;

	while (rc == 0 && (rcm.lost || (rcm.fd >= 0 && rcm.sessions == gone)))
		rc = await_message(until);
	return rc == 0 && rcm.fd >= 0;
}

static int put_message(const struct vb_ipc_cm *m)
{
	uint8_t bytes[VB_IPC_CM_BYTES];
	size_t len = vb_ipc_cm_put(bytes, m);
	int rc;

	do
		rc = vb_fdmail_send(rcm.fd, bytes, len, NULL, 0, 0);
	while (rc == -EINTR);
	return rc == -EAGAIN ? -ETIMEDOUT : rc;
}

/* Sends @m. The caller holds rcm.lock, so that messages are sent in the order
 * of their records. 0 or -errno. */
static int say(const struct vb_ipc_cm *m)
{
	uint64_t gone = 0;
	int rc = -ECONNRESET;

	if (m->kind == IPC_CM_NONE)
		return rc;
	while (wait_for_session(gone)) {
		gone = rcm.sessions;
		rc = put_message(m);
		if (rc != -EPIPE && rc != -ECONNRESET)
			break;
	}
	if (rc == 0)
		rcm_note_said(m);
	return rc;
}

static bool is_session_young(void)
{
	bool young;

	pthread_mutex_lock(&rcm.lock);
	young = vb_clock_read() - rcm.begun < KNOWN_SOON;
	pthread_mutex_unlock(&rcm.lock);
	return young;
}

/*
 * Waits until the broker knows @qpn. The broker learns from the engine's own
 * session which queue pairs belong to this process, and refuses to connect a
 * queue pair that it does not know. After a change of brokers, the engine's
 * session may open later than the session of this library. So before the first
 * connection this function asks (HELLO) until the broker knows @qpn; after
 * later changes of brokers resume.c does. It asks only while the session is
 * young (asking also detects a session that has ended): in an older session the
 * engine is registered, and a queue pair that is still unknown does not belong
 * to this process.
 */
static void become_known(uint32_t qpn)
{
	const struct vb_ipc_cm hello = { .kind = IPC_CM_HELLO,
					 .version = VB_IPC_CM_VERSION,
					 .qpn = qpn };
	struct vb_ipc_cm answer;
	int rc;

	while ((rc = rcm_session_ask(&hello, &answer)) == -EAGAIN &&
	       is_session_young())
		nanosleep(&(struct timespec){ 0, (long)NAP }, NULL);
	if (rc)
		return;
	pthread_mutex_lock(&rcm.lock);
	rcm.known_qpn = qpn;
	pthread_mutex_unlock(&rcm.lock);
}

/* True if @m names a queue pair that must belong to this process. A CONNECT for
 * datagrams only looks up the peer's queue pair, and the broker does not know
 * the queue pairs of a fabric's adapter, whose slots the fabric's process hands
 * out. The caller holds rcm.lock. */
static bool must_own(const struct vb_ipc_cm *m)
{
	const struct rcm_id *id = rcm_id_find(m->id);

	if (m->place)
		return false;
	return m->kind == IPC_CM_ACCEPT ||
	       (m->kind == IPC_CM_CONNECT && id && !rcm_is_ud(id));
}

static bool is_by_stranger(const struct vb_ipc_cm *m)
{
	bool stranger;

	pthread_mutex_lock(&rcm.lock);
	stranger = !rcm.known_qpn && m->qpn && must_own(m);
	pthread_mutex_unlock(&rcm.lock);
	return stranger;
}

/* Sends a message. rdma_connect() and similar calls are no cancellation points,
 * so cancellation is disabled while the socket is used. */
int rcm_session_tell(const struct vb_ipc_cm *m)
{
	int cancel = vb_cancel_off(), rc;

	if (is_by_stranger(m))
		become_known(m->qpn);
	pthread_mutex_lock(&rcm.lock);
	rc = say(m);
	pthread_mutex_unlock(&rcm.lock);
	vb_cancel_back(cancel);
	return rc;
}

/* Waits for the answer to rcm.question. -ESTALE: the session ended first, so
 * the caller asks the next broker; -ETIMEDOUT. The caller holds rcm.lock. */
static int await_answer(void)
{
	const vb_time until = vb_clock_read() + ANSWER_WAIT;
	const uint64_t session = rcm.sessions;
	int rc = 0;

	while (rc == 0 && !rcm.answered && rcm.fd >= 0 &&
	       rcm.sessions == session)
		rc = -await_message(until);
	if (rcm.answered)
		return 0;
	return rc ? rc : -ESTALE;
}

/* Sends the question @m and waits for its *@answer. The caller holds rcm.lock
 * and has set rcm.asked, so that no other question is under way. 0 or -errno,
 * also if the broker answers with an error. */
static int session_ask(const struct vb_ipc_cm *m, struct vb_ipc_cm *answer)
{
	uint64_t number = rcm.question.tid + 1;
	int rc;

	rcm.question = *m;
	rcm.question.tid = number;
	rcm.answered = false;
	rc = say(&rcm.question);
	if (rc == 0)
		rc = await_answer();
	if (rc)
		return rc;
	*answer = rcm.answer;
	rcm_note_done(m, answer);
	return answer->status > 0 ? -answer->status : 0;
}

int rcm_session_ask(const struct vb_ipc_cm *m, struct vb_ipc_cm *answer)
{
	int cancel = vb_cancel_off(), rc;

	pthread_mutex_lock(&rcm.lock);
	while (rcm.asked)
		pthread_cond_wait(&rcm.answers, &rcm.lock);
	rcm.asked = true;
	do
		rc = session_ask(m, answer);
	while (rc == -ESTALE);
	rcm.asked = false;
	pthread_cond_broadcast(&rcm.answers);
	pthread_mutex_unlock(&rcm.lock);
	vb_cancel_back(cancel);
	return rc;
}
