/* SPDX-License-Identifier: BSD-2-Clause */
/* Event channels: the queue, its descriptor, acknowledgements, and the event
 * that the program gets. */
#include "tests/unit/rdmacm/fake.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct rdma_event_channel *channel;
static struct rcm_id *id;

static int setup(void **state)
{
	(void)fake_setup(state);
	channel = fake_channel();
	id = fake_id(channel, RDMA_PS_TCP, IBV_QPT_RC, RCM_CONNECTING);
	return 0;
}

static int teardown(void **state)
{
	id->pub.qp = NULL;
	/* A test that failed may have left events unacknowledged, and
	 * rdma_destroy_id() waits for those. */
	id->acked = id->delivered;
	rdma_destroy_id(&id->pub);
	rdma_destroy_event_channel(channel);
	if (rcm.fd >= 0)
		close(rcm.fd);
	rcm.fd = -1;
	return 0;
}

static struct rdma_cm_event *next(void)
{
	struct rdma_cm_event *e = NULL;

	assert_int_equal(rdma_get_cm_event(channel, &e), 0);
	return e;
}

static void take(enum rdma_cm_event_type type, int status)
{
	struct rdma_cm_event *e = next();

	assert_int_equal(e->event, type);
	assert_int_equal(e->status, status);
	assert_ptr_equal(e->id, &id->pub);
	assert_int_equal(rdma_ack_cm_event(e), 0);
}

static void check_empty(void)
{
	struct rdma_cm_event *e;

	assert_false(fake_is_readable(channel->fd));
	errno = 0;
	assert_int_equal(rdma_get_cm_event(channel, &e), -1);
	assert_int_equal(errno, EAGAIN);
}

static void arrive(enum vb_ipc_cm_event event, int status)
{
	const struct vb_ipc_cm m = { .kind = IPC_CM_EVENT,
				     .event = (uint8_t)event,
				     .id = id->number,
				     .status = status };

	rcm_event_arrived(&m);
}

static void queue__in_order_and_readable_meanwhile(void **state)
{
	check_empty();
	for (int i = 1; i <= 3; i++)
		assert_int_equal(
			rcm_event_local(id, RDMA_CM_EVENT_ADDR_CHANGE, i), 0);
	for (int i = 1; i <= 3; i++) {
		assert_true(fake_is_readable(channel->fd));
		take(RDMA_CM_EVENT_ADDR_CHANGE, i);
	}
	check_empty();
	assert_int_equal(rcm_event_local(id, RDMA_CM_EVENT_ADDR_CHANGE, 4), 0);
	take(RDMA_CM_EVENT_ADDR_CHANGE, 4);
}

static void queue__without_a_channel(void **state)
{
	id->pub.channel = NULL;
	assert_int_equal(rcm_event_local(id, RDMA_CM_EVENT_ADDR_CHANGE, 0),
			 -EINVAL);
	/* an event of a connection without an id is dropped */
	arrive(IPC_CM_DISCONNECTED, 0);
	id->pub.channel = channel;
	check_empty();
}

static void unknown_id__is_dropped(void **state)
{
	const struct vb_ipc_cm m = { .event = IPC_CM_DISCONNECTED,
				     .id = id->number + 1 };

	rcm_event_arrived(&m);
	check_empty();
}

/* The messages of the broker and the events that the program gets. */
static void translation__table(void **state)
{
	static const struct {
		enum vb_ipc_cm_event event;
		int status;
		enum rdma_cm_event_type want;
		int want_status;
		bool fails_qp;
	} cases[] = {
		{ IPC_CM_ESTABLISHED, 0, RDMA_CM_EVENT_ESTABLISHED, 0, false },
		{ IPC_CM_REJECTED, 28, RDMA_CM_EVENT_REJECTED, 28, true },
		{ IPC_CM_UNREACHABLE, -EHOSTUNREACH, RDMA_CM_EVENT_UNREACHABLE,
		  -EHOSTUNREACH, true },
		{ IPC_CM_UNREACHABLE, 0, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT,
		  true },
		{ IPC_CM_DISCONNECTED, 0, RDMA_CM_EVENT_DISCONNECTED, 0,
		  false },
		{ IPC_CM_OVER, 0, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0, false },
		{ IPC_CM_FAILED, EPERM, RDMA_CM_EVENT_CONNECT_ERROR, -EPERM,
		  true },
	};

	id->pub.qp = &fake_qp;
	for (unsigned i = 0; i < VB_COUNT(cases); i++) {
		fake.move_count = 0;
		arrive(cases[i].event, cases[i].status);
		take(cases[i].want, cases[i].want_status);
		assert_int_equal(fake.move_count, cases[i].fails_qp);
	}
	check_empty();
}

/* A reply connects the id's queue pair, and the broker gets a message. */
static void reply__connects(void **state)
{
	struct vb_ipc_cm m = { .event = IPC_CM_REPLY,
			       .id = id->number,
			       .qpn = 0x99,
			       .mtu = IBV_MTU_512,
			       .private_bytes = 2,
			       .private_data = { 5, 6 } };
	struct rdma_cm_event *e;

	id->pub.qp = &fake_qp;
	rcm_event_arrived(&m);
	e = next();
	assert_int_equal(e->event, RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(e->param.conn.qp_num, 0x99);
	assert_int_equal(e->param.conn.private_data_len, 2);
	assert_memory_equal(e->param.conn.private_data, m.private_data, 2);
	assert_int_equal(fake.move_count, 3);
	assert_int_equal(fake.moves[1].attr.path_mtu, IBV_MTU_512);
	assert_int_equal(fake.told[0].kind, IPC_CM_ESTABLISH);
	assert_int_equal(rdma_ack_cm_event(e), 0);
}

static void reply__without_a_queue_pair(void **state)
{
	arrive(IPC_CM_REPLY, 0);
	take(RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	assert_int_equal(fake.tells, 0);
}

static void reply__queue_pair_refuses(void **state)
{
	id->pub.qp = &fake_qp;
	fake.modify_rc = ENOMEM;
	arrive(IPC_CM_REPLY, 0);
	take(RDMA_CM_EVENT_CONNECT_ERROR, -ENOMEM);
	assert_int_equal(fake.told[0].kind, IPC_CM_REJECT);
}

static struct vb_ipc_cm request(uint32_t number)
{
	return (struct vb_ipc_cm){ .event = IPC_CM_REQUEST,
				   .id = VB_IPC_CM_INCOMING | number,
				   .listener = id->number,
				   .src = id->path.src,
				   .dst = id->path.dst,
				   .src_port = 7000,
				   .dst_port = 8000,
				   .mtu = IBV_MTU_1024,
				   .responder_resources = 3,
				   .type = IPC_CM_RC };
}

static void request__becomes_an_id(void **state)
{
	const struct vb_ipc_cm m = request(5);
	struct rdma_cm_event *e;
	struct rcm_id *made;

	id->pub.context = &id;
	rcm_event_arrived(&m);
	assert_non_null(rcm.unseen);
	e = next();
	assert_null(rcm.unseen);
	assert_int_equal(e->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_ptr_equal(e->listen_id, &id->pub);
	made = rcm_id_of(e->id);
	assert_ptr_equal(rcm_id_find(m.id), made);
	assert_ptr_equal(made->pub.context, &id);
	assert_ptr_equal(made->device, &fake_device);
	assert_int_equal(made->state, RCM_CONNECTING);
	assert_int_equal(made->record.stage, RCM_ASKED);
	assert_int_equal(made->responder_resources, 3);
	assert_int_equal(rcm_port_of(&made->pub.route.addr.src_addr), 7000);
	assert_int_equal(rcm_port_of(&made->pub.route.addr.dst_addr), 8000);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	rdma_destroy_id(&made->pub);
}

/* The path MTU of the request is above the device's 2048 bytes: it is refused
 * with reason 26 and the MTU that fits (IBA 12.6.7.2). */
static void request__mtu_too_large(void **state)
{
	struct vb_ipc_cm m = request(5);
	struct rdma_cm_event *e;

	m.mtu = IBV_MTU_4096;
	rcm_event_arrived(&m);
	assert_int_equal(rdma_get_cm_event(channel, &e), -1);
	assert_int_equal(fake.told[0].kind, IPC_CM_REJECT);
	assert_int_equal(fake.told[0].status, 26);
	assert_int_equal(fake.told[0].private_bytes, 1);
	assert_int_equal(fake.told[0].private_data[0], IBV_MTU_2048);
	assert_int_equal(fake.told[1].kind, IPC_CM_CLOSE);
	assert_null(rcm_id_find(m.id));
}

static void request__at_no_address_of_a_device(void **state)
{
	struct vb_ipc_cm m = request(5);
	struct rdma_cm_event *e;

	m.src.raw[15] = 99;
	rcm_event_arrived(&m);
	assert_int_equal(rdma_get_cm_event(channel, &e), -1);
	assert_int_equal(fake.tells, 1);
	assert_int_equal(fake.told[0].kind, IPC_CM_CLOSE);
	assert_int_equal(fake.told[0].id, m.id);
	assert_null(rcm.unseen);
}

static uint32_t closed_number(int fd)
{
	uint8_t bytes[VB_IPC_CM_BYTES];
	struct vb_ipc_cm m;
	ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n < 0)
		return 0;
	assert_true(vb_ipc_cm_get(bytes, (size_t)n, &m));
	assert_int_equal(m.kind, IPC_CM_CLOSE);
	return m.id;
}

/* Requests that the program has not read are closed with their listener, and
 * only those. */
static void unseen_requests__are_refused(void **state)
{
	const struct vb_ipc_cm a = request(5), b = request(6);
	struct rcm_id *other =
		fake_id(channel, RDMA_PS_TCP, IBV_QPT_RC, RCM_BOUND);
	struct vb_ipc_cm c = request(7);
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	rcm.fd = ends[0];
	c.listener = other->number;
	rcm_event_arrived(&a);
	rcm_event_arrived(&c);
	rcm_event_arrived(&b);
	rcm_event_forget(id);
	assert_int_equal(closed_number(ends[1]), a.id);
	assert_int_equal(closed_number(ends[1]), b.id);
	assert_int_equal(closed_number(ends[1]), 0);
	assert_true(fake_is_readable(channel->fd));
	assert_non_null(rcm.unseen);
	assert_null(rcm.unseen->next_unseen);
	rcm_event_forget(other);
	assert_int_equal(closed_number(ends[1]), c.id);
	assert_null(rcm.unseen);
	check_empty();
	rdma_destroy_id(&other->pub);
	close(ends[1]);
}

static void unseen_requests__in_a_child(void **state)
{
	const struct vb_ipc_cm a = request(5), b = request(6);

	rcm_event_arrived(&a);
	rcm_event_arrived(&b);
	rcm_event_after_fork();
	assert_null(rcm.unseen);
	rcm_event_forget(id);
	assert_null(rcm.unseen);
}

static void forget__keeps_the_events_of_others(void **state)
{
	struct rcm_id *other =
		fake_id(channel, RDMA_PS_TCP, IBV_QPT_RC, RCM_BOUND);
	struct rdma_cm_event *e;

	assert_int_equal(rcm_event_local(id, RDMA_CM_EVENT_ADDR_CHANGE, 1), 0);
	assert_int_equal(rcm_event_local(other, RDMA_CM_EVENT_ADDR_CHANGE, 2),
			 0);
	assert_int_equal(rcm_event_local(id, RDMA_CM_EVENT_ADDR_CHANGE, 3), 0);
	rcm_event_forget(id);
	assert_true(fake_is_readable(channel->fd));
	e = next();
	assert_int_equal(e->status, 2);
	assert_ptr_equal(e->id, &other->pub);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	check_empty();
	rdma_destroy_id(&other->pub);
}

static void migrate__takes_the_events_along(void **state)
{
	struct rdma_event_channel *old = channel, *to = fake_channel();

	for (int i = 1; i <= 2; i++)
		assert_int_equal(
			rcm_event_local(id, RDMA_CM_EVENT_ADDR_CHANGE, i), 0);
	assert_int_equal(rdma_migrate_id(&id->pub, to), 0);
	check_empty();
	channel = to;
	take(RDMA_CM_EVENT_ADDR_CHANGE, 1);
	take(RDMA_CM_EVENT_ADDR_CHANGE, 2);
	check_empty();
	rdma_destroy_event_channel(old);
}

static void acks__are_counted(void **state)
{
	struct rdma_cm_event *e;

	assert_int_equal(rcm_event_local(id, RDMA_CM_EVENT_ADDR_CHANGE, 0), 0);
	e = next();
	assert_int_equal(id->delivered, 1);
	assert_int_equal(id->acked, 0);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	assert_int_equal(id->acked, 1);
	assert_int_equal(rdma_ack_cm_event(NULL), -1);
	assert_int_equal(errno, EINVAL);
}

static void destroyed_channel__leaves_its_ids_alone(void **state)
{
	struct rdma_event_channel *other = fake_channel();
	struct rcm_id *orphan =
		fake_id(other, RDMA_PS_TCP, IBV_QPT_RC, RCM_BOUND);

	assert_int_equal(rcm_event_local(orphan, RDMA_CM_EVENT_ADDR_CHANGE, 0),
			 0);
	rdma_destroy_event_channel(other);
	assert_null(orphan->pub.channel);
	assert_ptr_equal(id->pub.channel, channel);
	assert_int_equal(rcm_event_local(orphan, RDMA_CM_EVENT_ADDR_CHANGE, 0),
			 -EINVAL);
	rdma_destroy_id(&orphan->pub);
}

static void removal__is_told_once(void **state)
{
	pthread_mutex_lock(&rcm.lock);
	rcm_event_removed(id);
	rcm_event_removed(id);
	pthread_mutex_unlock(&rcm.lock);
	take(RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	check_empty();
}

int rdma_write_cm_event(struct rdma_cm_id *i, enum rdma_cm_event_type event,
			int status, uint64_t arg);

static void written_event__only_the_users(void **state)
{
	const enum rdma_cm_event_type user =
		(enum rdma_cm_event_type)RCM_EVENT_USER;
	const uint64_t arg = 0x1122334455667788;
	struct rdma_cm_event *e;

	assert_int_equal(
		rdma_write_cm_event(&id->pub, RDMA_CM_EVENT_ESTABLISHED, 0, 0),
		-1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(rdma_write_cm_event(NULL, user, 0, 0), -1);
	assert_int_equal(rdma_write_cm_event(&id->pub, user, -7, arg), 0);
	e = next();
	assert_int_equal(e->event, RCM_EVENT_USER);
	assert_int_equal(e->status, -7);
	assert_memory_equal(&e->param, &arg, sizeof(arg));
	assert_int_equal(rdma_ack_cm_event(e), 0);
}

/* A synchronous id's call waits for its event and returns the error of that
 * event. */
static void synchronous__errors(void **state)
{
	static const struct {
		enum rdma_cm_event_type event;
		int status, error;
	} cases[] = {
		{ RDMA_CM_EVENT_ROUTE_RESOLVED, 0, 0 },
		{ RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH, EHOSTUNREACH },
		{ RDMA_CM_EVENT_REJECTED, 28, ECONNREFUSED },
		{ RDMA_CM_EVENT_DEVICE_REMOVAL, 0, ENODEV },
	};
	struct rcm_id *sync = fake_id(NULL, RDMA_PS_TCP, IBV_QPT_RC, RCM_BOUND);

	for (unsigned i = 0; i < VB_COUNT(cases); i++) {
		errno = 0;
		assert_int_equal(
			rcm_event_local(sync, cases[i].event, cases[i].status),
			0);
		assert_int_equal(rcm_event_complete(sync),
				 cases[i].error ? -1 : 0);
		assert_int_equal(errno, cases[i].error);
		assert_int_equal(sync->pub.event->event, cases[i].event);
	}
	rdma_destroy_id(&sync->pub);
	/* An id with a channel: the call does not wait for an event. */
	assert_int_equal(rcm_event_complete(id), 0);
}

static void names__of_every_event(void **state)
{
	for (int i = 0; i <= RCM_EVENT_USER; i++) {
		const char *name = rdma_event_str((enum rdma_cm_event_type)i);

		assert_memory_equal(name, "RDMA_CM_EVENT_", 14);
	}
	assert_string_equal(rdma_event_str(RDMA_CM_EVENT_TIMEWAIT_EXIT),
			    "RDMA_CM_EVENT_TIMEWAIT_EXIT");
	assert_string_equal(
		rdma_event_str((enum rdma_cm_event_type)(RCM_EVENT_USER + 1)),
		"UNKNOWN EVENT");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* This test comes first, because a wrong count would let later
		 * tests wait for ever. */
		TEST(acks__are_counted),
		TEST(queue__in_order_and_readable_meanwhile),
		TEST(queue__without_a_channel),
		TEST(unknown_id__is_dropped),
		TEST(translation__table),
		TEST(reply__connects),
		TEST(reply__without_a_queue_pair),
		TEST(reply__queue_pair_refuses),
		TEST(request__becomes_an_id),
		TEST(request__mtu_too_large),
		TEST(request__at_no_address_of_a_device),
		TEST(unseen_requests__are_refused),
		TEST(unseen_requests__in_a_child),
		TEST(forget__keeps_the_events_of_others),
		TEST(migrate__takes_the_events_along),
		TEST(destroyed_channel__leaves_its_ids_alone),
		TEST(removal__is_told_once),
		TEST(written_event__only_the_users),
		TEST(synchronous__errors),
		TEST(names__of_every_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
