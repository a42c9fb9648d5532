/* SPDX-License-Identifier: BSD-2-Clause */
/* An id joins and leaves multicast groups. */
#include "tests/unit/rdmacm/fake.h"

#include <arpa/inet.h>

static struct rdma_event_channel *channel;
static struct rcm_id *id;

static int setup(void **state)
{
	(void)fake_setup(state);
	channel = fake_channel();
	id = fake_id(channel, RDMA_PS_UDP, IBV_QPT_UD, RCM_BOUND);
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
	return 0;
}

static struct sockaddr_in group(const char *text)
{
	struct sockaddr_in a = { .sin_family = AF_INET };

	assert_int_equal(inet_pton(AF_INET, text, &a.sin_addr), 1);
	return a;
}

static int join(const char *text)
{
	struct sockaddr_in a = group(text);

	return rdma_join_multicast(&id->pub, (struct sockaddr *)&a, &id);
}

static int leave(const char *text)
{
	struct sockaddr_in a = group(text);

	return rdma_leave_multicast(&id->pub, (struct sockaddr *)&a);
}

static struct rdma_cm_event *next(void)
{
	struct rdma_cm_event *e = NULL;

	assert_int_equal(rdma_get_cm_event(channel, &e), 0);
	return e;
}

static void join__attaches_when_the_event_is_read(void **state)
{
	static const uint8_t gid[16] = { [10] = 0xff, 0xff, 239, 1, 2, 3 };
	struct rdma_cm_event *e;

	id->tos = 0x20;
	assert_int_equal(join("239.1.2.3"), 0);
	/* the program makes the id's queue pair after the join */
	id->pub.qp = &fake_qp;
	assert_int_equal(fake.attaches, 0);
	e = next();
	assert_int_equal(fake.attaches, 1);
	assert_int_equal(e->event, RDMA_CM_EVENT_MULTICAST_JOIN);
	assert_int_equal(e->param.ud.qp_num, 0xffffff);
	assert_int_equal(e->param.ud.qkey, RDMA_UDP_QKEY);
	assert_ptr_equal(e->param.ud.private_data, &id);
	assert_memory_equal(e->param.ud.ah_attr.grh.dgid.raw, gid, 16);
	assert_int_equal(e->param.ud.ah_attr.grh.hop_limit, 1);
	assert_int_equal(e->param.ud.ah_attr.grh.traffic_class, 0x20);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	assert_int_equal(leave("239.1.2.3"), 0);
	assert_int_equal(fake.detaches, 1);
	assert_int_equal(leave("239.1.2.3"), -1);
	assert_int_equal(errno, EADDRNOTAVAIL);
}

/* With RoCEv1 the GID of an IPv4 group is ff0e::ffff:a.b.c.d, as on Linux. */
static void join__by_roce_v1(void **state)
{
	static const uint8_t gid[16] = { 0xff, 0x0e, [10] = 0xff, 0xff,
					 239,  1,    2,		  3 };
	struct rdma_cm_event *e;

	id->v1 = true;
	id->pub.qp = &fake_qp;
	assert_int_equal(join("239.1.2.3"), 0);
	e = next();
	assert_memory_equal(e->param.ud.ah_attr.grh.dgid.raw, gid, 16);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	assert_int_equal(leave("239.1.2.3"), 0);
	assert_int_equal(fake.detaches, 1);
	assert_int_equal(leave("239.1.2.3"), -1);
	assert_int_equal(join("10.1.2.3"), -1);
}

static void join__twice(void **state)
{
	assert_int_equal(join("239.1.2.3"), 0);
	assert_int_equal(join("239.1.2.3"), -1);
	assert_int_equal(errno, EADDRINUSE);
	assert_int_equal(join("239.1.2.4"), 0);
}

/* A group that the program left before reading the event gives no event. */
static void join__left_before_its_event(void **state)
{
	struct rdma_cm_event *e;

	id->pub.qp = &fake_qp;
	assert_int_equal(join("239.1.2.3"), 0);
	assert_int_equal(leave("239.1.2.3"), 0);
	assert_int_equal(rdma_get_cm_event(channel, &e), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(fake.attaches, 0);
}

static void join__attach_fails(void **state)
{
	struct rdma_cm_event *e;

	id->pub.qp = &fake_qp;
	fake.attach_rc = ENOMEM;
	assert_int_equal(join("239.1.2.3"), 0);
	e = next();
	assert_int_equal(e->event, RDMA_CM_EVENT_MULTICAST_ERROR);
	assert_int_equal(e->status, -ENOMEM);
	assert_int_equal(rdma_ack_cm_event(e), 0);
}

static void join__send_only_is_not_attached(void **state)
{
	struct sockaddr_in a = group("239.1.2.3");
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS |
			     RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
		.addr = (struct sockaddr *)&a,
	};
	struct rdma_cm_event *e;

	id->pub.qp = &fake_qp;
	assert_int_equal(rdma_join_multicast_ex(&id->pub, &attr, NULL), 0);
	e = next();
	assert_int_equal(e->event, RDMA_CM_EVENT_MULTICAST_JOIN);
	assert_int_equal(fake.attaches, 0);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS;
	assert_int_equal(rdma_join_multicast_ex(&id->pub, &attr, NULL), -1);
	assert_int_equal(errno, EINVAL);
	attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_RESERVED;
	assert_int_equal(rdma_join_multicast_ex(&id->pub, &attr, NULL), -1);
	assert_int_equal(errno, ENOTSUP);
}

static void join__refused(void **state)
{
	/* 10.77.0.1 is no multicast address. */
	assert_int_equal(join("10.77.0.1"), -1);
	assert_int_equal(errno, EINVAL);
	id->device = NULL;
	assert_int_equal(join("239.1.2.3"), -1);
	id->device = &fake_device;
	id->pub.qp_type = IBV_QPT_RC;
	assert_int_equal(join("239.1.2.3"), -1);
	id->pub.qp_type = IBV_QPT_UD;
	assert_false(fake_is_readable(channel->fd));
}

static void destroy__leaves_all_groups(void **state)
{
	id->pub.qp = &fake_qp;
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(join(i ? "239.1.2.3" : "239.1.2.4"), 0);
		assert_int_equal(rdma_ack_cm_event(next()), 0);
	}
	rcm_groups_forget(id);
	assert_int_equal(fake.detaches, 2);
	assert_null(id->groups);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(join__attaches_when_the_event_is_read),
		TEST(join__by_roce_v1),
		TEST(join__twice),
		TEST(join__left_before_its_event),
		TEST(join__attach_fails),
		TEST(join__send_only_is_not_attached),
		TEST(join__refused),
		TEST(destroy__leaves_all_groups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
