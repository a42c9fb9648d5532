/* SPDX-License-Identifier: BSD-2-Clause */
/* Ids of rdma_cm: their types, numbers and ports. */
#include "tests/unit/rdmacm/fake.h"

#include <netinet/in.h>

static struct rdma_event_channel *channel;

static int setup(void **state)
{
	(void)fake_setup(state);
	channel = fake_channel();
	return 0;
}

static int teardown(void **state)
{
	rdma_destroy_event_channel(channel);
	return 0;
}

static bool allowed(enum rdma_port_space ps, enum ibv_qp_type type)
{
	struct rdma_cm_id *pub;
	int rc = rcm_id_make(channel, &pub, NULL, ps, type);

	if (rc == 0) {
		assert_int_equal(pub->ps, ps);
		assert_int_equal(pub->qp_type, type);
		rdma_destroy_id(pub);
		return true;
	}
	assert_int_equal(rc, -EINVAL);
	return false;
}

static void make__space_and_type(void **state)
{
	static const enum ibv_qp_type types[] = {
		IBV_QPT_RC,	  IBV_QPT_UC,	    IBV_QPT_UD,
		IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV, IBV_QPT_RAW_PACKET,
	};
	static const struct {
		enum rdma_port_space ps;
		bool allows[VB_COUNT(types)];
	} cases[] = {
		{ RDMA_PS_TCP, { 1, 0, 0, 0, 0, 0 } },
		{ RDMA_PS_UDP, { 0, 0, 1, 0, 0, 0 } },
		{ RDMA_PS_IPOIB, { 0, 0, 1, 0, 0, 0 } },
		{ RDMA_PS_IB, { 1, 1, 1, 1, 1, 0 } },
		{ (enum rdma_port_space)0x55, { 0, 0, 0, 0, 0, 0 } },
	};

	for (unsigned i = 0; i < VB_COUNT(cases); i++)
		for (unsigned t = 0; t < VB_COUNT(types); t++)
			assert_int_equal(allowed(cases[i].ps, types[t]),
					 cases[i].allows[t]);
}

/* A number is free, not 0, and below those that the broker assigns. */
static void numbers__skip_what_is_taken(void **state)
{
	struct rcm_id *a, *b, *c;

	rcm.next_number = VB_IPC_CM_INCOMING - 1;
	a = fake_id(channel, RDMA_PS_TCP, IBV_QPT_RC, RCM_NEW);
	b = fake_id(channel, RDMA_PS_TCP, IBV_QPT_RC, RCM_NEW);
	assert_int_equal(a->number, VB_IPC_CM_INCOMING - 1);
	assert_int_equal(b->number, 1);
	rcm.next_number = 1;
	c = fake_id(channel, RDMA_PS_TCP, IBV_QPT_RC, RCM_NEW);
	assert_int_equal(c->number, 2);
	rdma_destroy_id(&a->pub);
	rdma_destroy_id(&b->pub);
	rdma_destroy_id(&c->pub);
}

/* Ids whose numbers fall into one bucket of the id table. */
static void find__after_renumber_and_destroy(void **state)
{
	const uint32_t first = VB_IPC_CM_INCOMING | 3;
	const uint32_t second = first + VB_COUNT(rcm.ids);
	struct rcm_id *a = fake_id(channel, RDMA_PS_TCP, IBV_QPT_RC, RCM_NEW);
	struct rcm_id *b = fake_id(channel, RDMA_PS_TCP, IBV_QPT_RC, RCM_NEW);
	const uint32_t was = a->number;

	rcm_id_renumber(a, first);
	rcm_id_renumber(b, second);
	assert_null(rcm_id_find(was));
	assert_ptr_equal(rcm_id_find(first), a);
	assert_ptr_equal(rcm_id_find(second), b);
	/* Id b was added last, so it is the first of its bucket. */
	rdma_destroy_id(&b->pub);
	assert_null(rcm_id_find(second));
	assert_ptr_equal(rcm_id_find(first), a);
	rdma_destroy_id(&a->pub);
	assert_null(rcm_id_find(first));
}

static void destroy__closes_in_the_broker(void **state)
{
	struct rcm_id *a = fake_id(channel, RDMA_PS_TCP, IBV_QPT_RC, RCM_NEW);
	struct rcm_id *b = fake_id(channel, RDMA_PS_TCP, IBV_QPT_RC, RCM_NEW);
	const uint32_t number = a->number;

	b->in_broker = false;
	rdma_destroy_id(&b->pub);
	assert_int_equal(fake.tells, 0);
	rdma_destroy_id(&a->pub);
	assert_int_equal(fake.tells, 1);
	assert_int_equal(fake.told[0].kind, IPC_CM_CLOSE);
	assert_int_equal(fake.told[0].id, number);
}

static void bind__the_broker_chooses_a_port(void **state)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	struct rdma_cm_id *pub;
	struct rcm_id *id;

	assert_int_equal(rdma_create_id(channel, &pub, NULL, RDMA_PS_UDP), 0);
	id = rcm_id_of(pub);
	/* IPC_CM_PLAIN is a flag for AF_IB, and is not sent for other ids. */
	id->flags = IPC_CM_REUSE | IPC_CM_PLAIN;
	id->secret = 99;
	assert_int_equal(rdma_bind_addr(pub, (struct sockaddr *)&any), 0);
	assert_int_equal(fake.asks, 1);
	assert_int_equal(fake.asked[0].kind, IPC_CM_BIND);
	assert_int_equal(fake.asked[0].space, RDMA_PS_UDP);
	assert_int_equal(fake.asked[0].type, IPC_CM_UD);
	assert_int_equal(fake.asked[0].flags, IPC_CM_REUSE);
	assert_int_equal(fake.asked[0].src_port, 0);
	assert_true(fake.asked[0].guid == 99);
	assert_int_equal(ntohs(rdma_get_src_port(pub)), 40000);
	assert_int_equal(id->state, RCM_BOUND);
	/* An id that is bound to the wildcard address has no device. */
	assert_null(id->device);
	assert_int_equal(rdma_bind_addr(pub, (struct sockaddr *)&any), -1);
	rdma_destroy_id(pub);
}

static void bind__an_address_chooses_its_device(void **state)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(7000),
				 .sin_addr.s_addr = htonl(0x0a4d0001) };
	struct rdma_cm_id *pub;

	assert_int_equal(rdma_create_id(channel, &pub, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(pub, (struct sockaddr *)&a), 0);
	assert_ptr_equal(rcm_id_of(pub)->device, &fake_device);
	assert_int_equal(rcm_id_of(pub)->gid_index, 3);
	assert_int_equal(rcm_id_of(pub)->path.ifindex, 7);
	assert_int_equal(fake_device.mtu, IBV_MTU_2048);
	assert_ptr_equal(pub->pd, fake_device.pd);
	assert_int_equal(fake.asked[0].src_port, 7000);
	assert_int_equal(fake.asked[0].ifindex, 7);
	rdma_destroy_id(pub);
}

/* Which entry of a device with both versions of RoCE an id uses. */
static void bind__by_the_rule_of_the_id(void **state)
{
	static const struct {
		bool both;
		enum rcm_gid_rule rule;
		int index; /* -1: no device */
	} rows[] = {
		{ false, RCM_GID_V2, 3 },
		{ true, RCM_GID_V2, 3 },
		{ false, RCM_GID_PREFERS_V1, 3 },
		{ true, RCM_GID_PREFERS_V1, 2 },
		{ false, RCM_GID_V1, -1 },
		{ true, RCM_GID_V1, 2 },
	};
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(0x0a4d0001) };

	for (unsigned i = 0; i < VB_COUNT(rows); i++) {
		struct rdma_cm_id *pub;
		struct rcm_id *id;
		const struct vb_gid gid = rcm_gid_of((struct sockaddr *)&a);
		int rc;

		fake.both_types = rows[i].both;
		rcm.gid_rule = (uint8_t)rows[i].rule;
		assert_int_equal(
			rdma_create_id(channel, &pub, NULL, RDMA_PS_TCP), 0);
		id = rcm_id_of(pub);
		rc = rcm_device_choose(id, &gid, RCM_ANY);
		assert_int_equal(rc, rows[i].index < 0 ? -ENODEV : 0);
		if (rc == 0) {
			assert_int_equal(id->gid_index, rows[i].index);
			assert_int_equal(id->v1, rows[i].index == 2);
		}
		rdma_destroy_id(pub);
	}
	rcm.gid_rule = RCM_GID_V2;
}

/* A connection by RoCEv1 tells the broker so, and only after the peer's MAC
 * address is known. */
static void resolve__by_roce_v1(void **state)
{
	struct sockaddr_in src = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(0x0a4d0001) };
	struct sockaddr_in dst = { .sin_family = AF_INET,
				   .sin_port = htons(7000),
				   .sin_addr.s_addr = htonl(0x0a4d0002) };

	fake.both_types = true;
	for (unsigned i = 0; i < 3; i++) {
		struct rdma_cm_id *pub;
		struct rdma_cm_event *e;

		fake.resolve_rc = i == 2 ? EHOSTUNREACH : 0;
		fake.resolves = 0;
		rcm.gid_rule = i ? RCM_GID_PREFERS_V1 : RCM_GID_V2;
		assert_int_equal(
			rdma_create_id(channel, &pub, NULL, RDMA_PS_TCP), 0);
		assert_int_equal(rdma_resolve_addr(pub, (struct sockaddr *)&src,
						   (struct sockaddr *)&dst,
						   1000),
				 0);
		assert_int_equal(rdma_get_cm_event(channel, &e), 0);
		assert_int_equal(e->event,
				 i == 2 ? RDMA_CM_EVENT_ADDR_ERROR
					: RDMA_CM_EVENT_ADDR_RESOLVED);
		assert_int_equal(e->status, i == 2 ? -EHOSTUNREACH : 0);
		assert_int_equal(fake.resolves, i > 0);
		assert_int_equal(rcm_id_of(pub)->path.flags, i ? IPC_CM_V1 : 0);
		rdma_ack_cm_event(e);
		rdma_destroy_id(pub);
	}
	rcm.gid_rule = RCM_GID_V2;
}

static void bind__a_refusal_leaves_it_new(void **state)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	struct rdma_cm_id *pub;

	assert_int_equal(rdma_create_id(channel, &pub, NULL, RDMA_PS_TCP), 0);
	fake.ask_rc = -EADDRINUSE;
	assert_int_equal(rdma_bind_addr(pub, (struct sockaddr *)&any), -1);
	assert_int_equal(errno, EADDRINUSE);
	assert_int_equal(rcm_id_of(pub)->state, RCM_NEW);
	assert_false(rcm_id_of(pub)->in_broker);
	rdma_destroy_id(pub);
	assert_int_equal(fake.tells, 0);
}

static void listen__binds_first(void **state)
{
	struct rdma_cm_id *pub;

	assert_int_equal(rdma_create_id(channel, &pub, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_listen(pub, -3), 0);
	assert_int_equal(fake.asks, 2);
	assert_int_equal(fake.asked[0].kind, IPC_CM_BIND);
	assert_int_equal(fake.asked[1].kind, IPC_CM_LISTEN);
	assert_int_equal(fake.asked[1].backlog, 0);
	assert_int_equal(rdma_listen(pub, 17), 0);
	assert_int_equal(fake.asked[2].backlog, 17);
	rcm_id_of(pub)->state = RCM_ROUTED;
	assert_int_equal(rdma_listen(pub, 17), -1);
	rdma_destroy_id(pub);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(make__space_and_type),
		TEST(numbers__skip_what_is_taken),
		TEST(find__after_renumber_and_destroy),
		TEST(destroy__closes_in_the_broker),
		TEST(bind__the_broker_chooses_a_port),
		TEST(bind__an_address_chooses_its_device),
		TEST(bind__by_the_rule_of_the_id),
		TEST(resolve__by_roce_v1),
		TEST(bind__a_refusal_leaves_it_new),
		TEST(listen__binds_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
