/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of ids, and the messages made from them for the next broker. */
#include "tests/unit/rdmacm/fake.h"

#include <stdlib.h>

// included because its static functions are under test
#include "front/rdmacm/resume.c"
#include "front/rdmacm/event_priv.h"

static struct rdma_event_channel *channel;
static struct rcm_id *id;
static struct script script;

static int setup(void **state)
{
	(void)fake_setup(state);
	channel = fake_channel();
	id = fake_id(channel, RDMA_PS_TCP, IBV_QPT_RC, RCM_BOUND);
	return 0;
}

static int teardown(void **state)
{
	free(script.lines);
	script = (struct script){ 0 };
	rdma_destroy_id(&id->pub);
	rdma_destroy_event_channel(channel);
	return 0;
}

static void said(enum vb_ipc_cm_kind kind)
{
	const struct vb_ipc_cm m = { .kind = (uint8_t)kind,
				     .id = id->number,
				     .qpn = 0x77 };

	rcm_note_said(&m);
}

static void heard(enum vb_ipc_cm_event event)
{
	const struct vb_ipc_cm m = { .event = (uint8_t)event,
				     .id = id->number,
				     .local_id = 11,
				     .remote_id = 12,
				     .peer_qpn = 13,
				     .guid = 14,
				     .tid = 15 };

	rcm_note_heard(id, &m);
}

static void stages__of_each_message(void **state)
{
	static const struct {
		enum rcm_stage from;
		enum vb_ipc_cm_kind kind;
		enum rcm_stage to;
	} said_cases[] = {
		{ RCM_IDLE, IPC_CM_CONNECT, RCM_CALLED },
		{ RCM_ASKED, IPC_CM_ACCEPT, RCM_ANSWERED },
		{ RCM_REPLIED, IPC_CM_ESTABLISH, RCM_UP },
		{ RCM_ANSWERED, IPC_CM_ESTABLISH, RCM_UP },
		{ RCM_CALLED, IPC_CM_ESTABLISH, RCM_CALLED },
		{ RCM_IDLE, IPC_CM_ESTABLISH, RCM_IDLE },
		{ RCM_ASKED, IPC_CM_REJECT, RCM_IDLE },
		{ RCM_UP, IPC_CM_DISCONNECT, RCM_UP },
	};
	static const struct {
		enum rcm_stage from;
		enum vb_ipc_cm_event event;
		enum rcm_stage to;
	} heard_cases[] = {
		{ RCM_CALLED, IPC_CM_REPLY, RCM_REPLIED },
		{ RCM_ANSWERED, IPC_CM_ESTABLISHED, RCM_UP },
		{ RCM_CALLED, IPC_CM_REJECTED, RCM_IDLE },
		{ RCM_CALLED, IPC_CM_UNREACHABLE, RCM_IDLE },
		{ RCM_UP, IPC_CM_DISCONNECTED, RCM_IDLE },
	};

	for (unsigned i = 0; i < VB_COUNT(said_cases); i++) {
		id->record.stage = said_cases[i].from;
		said(said_cases[i].kind);
		assert_int_equal(id->record.stage, said_cases[i].to);
	}
	assert_true(id->record.leaves);
	for (unsigned i = 0; i < VB_COUNT(heard_cases); i++) {
		id->record.stage = heard_cases[i].from;
		heard(heard_cases[i].event);
		assert_int_equal(id->record.stage, heard_cases[i].to);
	}
}

static void bound(uint16_t port)
{
	const struct vb_ipc_cm asked = { .kind = IPC_CM_BIND,
					 .id = id->number,
					 .space = RDMA_PS_TCP };
	const struct vb_ipc_cm done = { .src_port = port };

	rcm_note_done(&asked, &done);
}

static void listens(uint32_t backlog, int status)
{
	const struct vb_ipc_cm asked = { .kind = IPC_CM_LISTEN,
					 .id = id->number,
					 .backlog = backlog };
	const struct vb_ipc_cm done = { .status = status };

	rcm_note_done(&asked, &done);
}

static void done__only_what_succeeded(void **state)
{
	listens(5, EADDRINUSE);
	assert_false(id->record.listens);
	bound(4000);
	assert_int_equal(id->record.bound.src_port, 4000);
	listens(5, 0);
	assert_true(id->record.listens);
	assert_int_equal(id->record.backlog, 5);
}

/* Check the kinds of the script's messages behind the HELLO. */
static void check_script(unsigned count, ...)
{
	va_list kinds;

	free(script.lines);
	script = (struct script){ 0 };
	write_script(&script);
	assert_int_equal(script.rc, 0);
	assert_int_equal(script.count, count + 1);
	va_start(kinds, count);
	for (unsigned i = 1; i <= count; i++)
		assert_int_equal(script.lines[i].kind, va_arg(kinds, int));
	va_end(kinds);
}

static void script__of_nothing(void **state)
{
	check_script(0);
	assert_int_equal(script.lines[0].kind, 0);
}

static void script__a_port_and_its_listener(void **state)
{
	bound(4000);
	check_script(1, IPC_CM_BIND);
	assert_int_equal(script.lines[1].src_port, 4000);
	listens(5, 0);
	check_script(2, IPC_CM_BIND, IPC_CM_LISTEN);
	assert_int_equal(script.lines[2].backlog, 5);
	assert_int_equal(script.lines[2].id, id->number);
}

/* A request under way is sent again, and says that it may be a repetition. */
static void script__a_call(void **state)
{
	bound(4000);
	said(IPC_CM_CONNECT);
	check_script(2, IPC_CM_BIND, IPC_CM_CONNECT);
	assert_int_equal(script.lines[2].flags, IPC_CM_AGAIN);
	assert_int_equal(script.lines[0].kind, IPC_CM_HELLO);
	assert_int_equal(script.lines[0].qpn, 0x77);
}

static void script__a_connection(void **state)
{
	const struct vb_ipc_cm *m;

	bound(4000);
	said(IPC_CM_CONNECT);
	heard(IPC_CM_REPLY);
	check_script(1, IPC_CM_RESUME);
	assert_int_equal(script.lines[1].status, IPC_CM_AT_REPLY);
	said(IPC_CM_ESTABLISH);
	check_script(1, IPC_CM_RESUME);
	m = &script.lines[1];
	assert_int_equal(m->status, IPC_CM_AT_END);
	assert_int_equal(m->local_id, 11);
	assert_int_equal(m->remote_id, 12);
	assert_int_equal(m->peer_qpn, 13);
	assert_true(m->guid == 14);
	assert_true(m->tid == 15);
	assert_int_equal(m->qpn, 0x77);
	assert_int_equal(m->src_port, 4000);
	said(IPC_CM_DISCONNECT);
	check_script(2, IPC_CM_RESUME, IPC_CM_DISCONNECT);
	heard(IPC_CM_DISCONNECTED);
	check_script(1, IPC_CM_BIND);
}

static void script__an_answer(void **state)
{
	id->record.stage = RCM_ASKED;
	check_script(1, IPC_CM_RESUME);
	assert_int_equal(script.lines[1].status, IPC_CM_AT_REQUEST);
	assert_int_equal(script.lines[1].qpn, 0);
	said(IPC_CM_ACCEPT);
	check_script(2, IPC_CM_RESUME, IPC_CM_ACCEPT);
	assert_int_equal(script.lines[1].status, IPC_CM_AT_REQUEST);
	assert_int_equal(script.lines[1].qpn, 0);
	assert_int_equal(script.lines[2].qpn, 0x77);
}

/* Datagrams have no connection to resume: only a lookup is repeated. */
static void script__datagrams(void **state)
{
	id->pub.qp_type = IBV_QPT_UD;
	id->record.stage = RCM_UP;
	check_script(0);
	said(IPC_CM_CONNECT);
	check_script(1, IPC_CM_CONNECT);
	id->pub.qp_type = IBV_QPT_RC;
}

static void script__a_request_nothing_has_read(void **state)
{
	struct vb_ipc_cm m = { .event = IPC_CM_REQUEST,
			       .id = VB_IPC_CM_INCOMING | 5,
			       .listener = id->number,
			       .local_id = 21,
			       .type = IPC_CM_RC };

	rcm_event_arrived(&m);
	check_script(1, IPC_CM_RESUME);
	assert_int_equal(script.lines[1].id, m.id);
	assert_int_equal(script.lines[1].local_id, 21);
	assert_int_equal(script.lines[1].status, IPC_CM_AT_REQUEST);
	m.id++;
	rcm_event_arrived(&m);
	check_script(2, IPC_CM_RESUME, IPC_CM_RESUME);
	assert_int_equal(script.lines[1].id + script.lines[2].id, 2 * m.id - 1);
}

/* A script may have more lines than its first allocation holds. */
static void script__grows(void **state)
{
	struct script s = { 0 };
	struct vb_ipc_cm m = { .kind = IPC_CM_BIND };

	for (uint32_t i = 0; i < 1000; i++) {
		m.id = i;
		resume_add(&s, &m);
	}
	assert_int_equal(s.rc, 0);
	assert_int_equal(s.count, 1000);
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(s.lines[i].id, i);
	free(s.lines);
}

/* The next broker has given the adapter another number. */
static void places__of_the_next_broker(void **state)
{
	const struct sockaddr_in any = { .sin_family = AF_INET };
	const uint8_t was = 3;
	struct rcm_event request = { .m = { .place = 3 } };
	struct rcm_event other = { .m = { .place = 0 } };

	(void)state;
	fake_device.ib = true;
	fake_device.place = 3;
	id->path.place = 3;
	id->record.said.place = id->record.ticket.place = 3;
	id->pub.qp_type = IBV_QPT_UD;
	assert_int_equal(
		rdma_join_multicast(&id->pub, (struct sockaddr *)&any, NULL),
		0);
	pthread_mutex_lock(&rcm.lock);
	rcm_unseen_add(&request);
	rcm_unseen_add(&other);
	fake_device.place = 7;
	rcm_places_follow(&was);
	pthread_mutex_unlock(&rcm.lock);
	assert_int_equal(id->path.place, 7);
	assert_int_equal(id->record.said.place, 7);
	assert_int_equal(id->record.ticket.place, 7);
	/* the message has no number of an adapter */
	assert_int_equal(id->record.bound.place, 0);
	assert_int_equal(request.m.place, 7);
	assert_int_equal(other.m.place, 0);
	rcm_groups_each(id, add_group, &script);
	assert_int_equal(script.count, 1);
	assert_int_equal(script.lines[0].place, 7);
	/* The next broker cannot use the adapter: messages must name a number
	 * that it refuses, and not 0, which means RoCEv2. */
	fake_device.place = 0;
	rcm_places_follow(&was);
	assert_int_not_equal(id->path.place, 0);
	/* the broker after that can use the adapter */
	fake_device.place = 2;
	rcm_places_follow(&was);
	assert_int_equal(id->path.place, 2);
	rcm_unseen_remove(&request);
	rcm_unseen_remove(&other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(stages__of_each_message),
		TEST(done__only_what_succeeded),
		TEST(script__of_nothing),
		TEST(script__a_port_and_its_listener),
		TEST(script__a_call),
		TEST(script__a_connection),
		TEST(script__an_answer),
		TEST(script__datagrams),
		TEST(script__a_request_nothing_has_read),
		TEST(script__grows),
		TEST(places__of_the_next_broker),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
