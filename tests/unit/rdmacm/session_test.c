/* SPDX-License-Identifier: BSD-2-Clause */
/* The session: questions and answers, refusals, and the loss of the broker. The
 * broker is the other end of a socket pair. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
// cmocka.h needs the headers above
#include <cmocka.h>

// included because its static functions are under test; fakes are below
#include "front/rdmacm/session.c"

static int broker = -1;
static unsigned events, notes;
/* what the next call of the fake rcm_resume() returns */
static int next_session;

/* Fakes of the functions of librdmacm outside of session.c. */

void rcm_event_arrived(const struct vb_ipc_cm *m)
{
	events++;
}

void rcm_event_after_fork(void)
{
}

void rcm_iw_after_fork(void)
{
}

int rcm_places_tell(int fd)
{
	return 0;
}

void rcm_removals_after_fork(void)
{
}

int rcm_removals_fd(void)
{
	return -1;
}

void rcm_removals_take(void)
{
	fail();
}

void rcm_why_begin(void)
{
}

void rcm_why_after_fork(void)
{
}

int rcm_why_fd(void)
{
	return -1;
}

void rcm_why_take(void)
{
	fail();
}

int rcm_devices_open(void)
{
	return 0;
}

void rcm_note_said(const struct vb_ipc_cm *m)
{
	notes++;
}

void rcm_note_done(const struct vb_ipc_cm *asked, const struct vb_ipc_cm *m)
{
	notes++;
}

struct rcm_id *rcm_id_find(uint32_t number)
{
	return NULL;
}

int rcm_resume(void)
{
	return next_session;
}

static int session(void)
{
	/* The test fails if a message does not come within 20 seconds. */
	static const struct timeval patience = { .tv_sec = 20 };
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	assert_int_equal(setsockopt(ends[1], SOL_SOCKET, SO_RCVTIMEO, &patience,
				    sizeof(patience)),
			 0);
	broker = ends[1];
	return ends[0];
}

static int setup(void **state)
{
	events = notes = 0;
	next_session = -EPROTO;
	rcm.fd = session();
	rcm.sessions++;
	rcm.begun = vb_clock_read();
	rcm.lost = false;
	rcm.asked = rcm.answered = false;
	return 0;
}

static int teardown(void **state)
{
	if (rcm.fd >= 0)
		close(rcm.fd);
	if (broker >= 0)
		close(broker);
	rcm.fd = broker = -1;
	return 0;
}

static void say_as_broker(const struct vb_ipc_cm *m)
{
	uint8_t bytes[VB_IPC_CM_BYTES];
	size_t n = vb_ipc_cm_put(bytes, m);

	assert_int_equal(send(broker, bytes, n, 0), n);
}

static struct vb_ipc_cm hear_as_broker(void)
{
	uint8_t bytes[VB_IPC_CM_BYTES];
	struct vb_ipc_cm m;
	ssize_t n = recv(broker, bytes, sizeof(bytes), 0);

	assert_true(n > 0);
	assert_true(vb_ipc_cm_get(bytes, (size_t)n, &m));
	return m;
}

static struct vb_ipc_cm message(enum vb_ipc_cm_kind kind)
{
	return (struct vb_ipc_cm){ .kind = (uint8_t)kind,
				   .version = VB_IPC_CM_VERSION,
				   .id = 5 };
}

static void hear__answers_and_events(void **state)
{
	struct vb_ipc_cm m = message(IPC_CM_EVENT), done = { 0 };

	m.event = IPC_CM_DISCONNECTED;
	say_as_broker(&m);
	assert_int_equal(rcm_session_hear(rcm.fd, &done), 0);
	assert_int_equal(events, 1);
	assert_int_equal(done.kind, 0);
	m = message(IPC_CM_DONE);
	m.tid = 9;
	say_as_broker(&m);
	assert_int_equal(rcm_session_hear(rcm.fd, &done), 0);
	assert_int_equal(events, 1);
	assert_int_equal(done.kind, IPC_CM_DONE);
	assert_true(done.tid == 9);
}

static void hear__the_end_and_nonsense(void **state)
{
	struct vb_ipc_cm done;

	assert_int_equal(send(broker, "nonsense", 8, 0), 8);
	assert_int_equal(rcm_session_hear(rcm.fd, &done), -EPROTO);
	close(broker);
	broker = -1;
	assert_int_equal(rcm_session_hear(rcm.fd, &done), -ECONNRESET);
}

static void answer__only_of_this_question(void **state)
{
	struct vb_ipc_cm asked = message(IPC_CM_BIND);
	struct vb_ipc_cm done = message(IPC_CM_DONE);

	asked.tid = done.tid = 7;
	assert_true(rcm_is_answer(&asked, &done));
	done.tid = 6;
	assert_false(rcm_is_answer(&asked, &done));
	done.tid = 7;
	done.id = 6;
	assert_false(rcm_is_answer(&asked, &done));
}

static void message__of_an_inherited_id(void **state)
{
	struct rcm_id id = { .number = 5, .forks = rcm.forks };

	assert_int_equal(rcm_message(&id, IPC_CM_BIND).kind, IPC_CM_BIND);
	assert_int_equal(rcm_message(&id, IPC_CM_BIND).id, 5);
	id.forks++;
	assert_int_equal(rcm_message(&id, IPC_CM_BIND).kind, IPC_CM_NONE);
}

static void tell__sends_and_notes(void **state)
{
	struct vb_ipc_cm m = message(IPC_CM_DISCONNECT), none = message(0);

	assert_int_equal(rcm_session_tell(&m), 0);
	assert_int_equal(hear_as_broker().kind, IPC_CM_DISCONNECT);
	assert_int_equal(notes, 1);
	assert_int_equal(rcm_session_tell(&none), -ECONNRESET);
	assert_int_equal(notes, 1);
}

static void tell__without_a_session(void **state)
{
	const struct vb_ipc_cm m = message(IPC_CM_DISCONNECT);

	close(rcm.fd);
	rcm.fd = -1;
	assert_int_equal(rcm_session_tell(&m), -ECONNRESET);
	assert_int_equal(notes, 0);
}

static struct asking {
	struct vb_ipc_cm question, answer;
	int rc;
} asking;

static void *ask_in_thread(void *arg)
{
	asking.rc = rcm_session_ask(&asking.question, &asking.answer);
	return arg;
}

static pthread_t begin_asking(void)
{
	pthread_t thread;

	asking = (struct asking){ .question = message(IPC_CM_BIND) };
	assert_int_equal(pthread_create(&thread, NULL, ask_in_thread, NULL), 0);
	return thread;
}

static void answer(const struct vb_ipc_cm *question, uint64_t tid, int status,
		   uint16_t port)
{
	struct vb_ipc_cm m = message(IPC_CM_DONE);

	m.id = question->id;
	m.tid = tid;
	m.status = status;
	m.src_port = port;
	take_answer(&m);
}

/* The answer to an earlier question comes first, and is skipped. */
static void ask__skips_a_late_answer(void **state)
{
	pthread_t thread = begin_asking();
	struct vb_ipc_cm q = hear_as_broker();

	answer(&q, q.tid - 1, 0, 1111);
	answer(&q, q.tid, 0, 2222);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(asking.rc, 0);
	assert_int_equal(asking.answer.src_port, 2222);
	assert_int_equal(notes, 2);
}

static void ask__each_question_has_a_number(void **state)
{
	uint64_t tids[2];

	for (unsigned i = 0; i < 2; i++) {
		pthread_t thread = begin_asking();
		struct vb_ipc_cm q = hear_as_broker();

		tids[i] = q.tid;
		answer(&q, q.tid, 0, 1);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
	assert_true(tids[0] != tids[1]);
}

static void ask__the_brokers_error(void **state)
{
	pthread_t thread = begin_asking();
	struct vb_ipc_cm q = hear_as_broker();

	answer(&q, q.tid, EADDRINUSE, 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(asking.rc, -EADDRINUSE);
}

/* The broker ends while it is asked: the next one gets the question again. */
static void ask__the_next_broker(void **state)
{
	pthread_t thread = begin_asking();
	struct vb_ipc_cm q = hear_as_broker();
	int old = rcm.fd, old_broker = broker, fd;

	set_session(-1, true);
	close(old);
	close(old_broker);
	fd = session();
	set_session(fd, false);
	q = hear_as_broker();
	assert_int_equal(q.kind, IPC_CM_BIND);
	answer(&q, q.tid, 0, 3333);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(asking.rc, 0);
	assert_int_equal(asking.answer.src_port, 3333);
}

/* No next broker: the thread ends, and later calls fail at once. */
static void thread__ends_without_a_broker(void **state)
{
	const struct vb_ipc_cm m = message(IPC_CM_DISCONNECT);
	int fd = rcm.fd;

	close(broker);
	broker = -1;
	assert_null(listen_to_broker((void *)(intptr_t)fd));
	assert_int_equal(rcm.fd, -1);
	assert_false(rcm.lost);
	assert_int_equal(rcm_session_tell(&m), -ECONNRESET);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(hear__answers_and_events),
		TEST(hear__the_end_and_nonsense),
		TEST(answer__only_of_this_question),
		TEST(message__of_an_inherited_id),
		TEST(tell__sends_and_notes),
		TEST(tell__without_a_session),
		TEST(ask__skips_a_late_answer),
		TEST(ask__each_question_has_a_number),
		TEST(ask__the_brokers_error),
		TEST(ask__the_next_broker),
		TEST(thread__ends_without_a_broker),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
