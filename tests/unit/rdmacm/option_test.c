/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of an id, set by rdma_set_option(). */
#include "tests/unit/rdmacm/fake.h"

#include <endian.h>
#include <string.h>

static struct rdma_event_channel *channel;
static struct rcm_id *id;

static int setup(void **state)
{
	(void)fake_setup(state);
	channel = fake_channel();
	id = fake_id(channel, RDMA_PS_TCP, IBV_QPT_RC, RCM_NEW);
	return 0;
}

static int teardown(void **state)
{
	rdma_destroy_id(&id->pub);
	rdma_destroy_event_channel(channel);
	return 0;
}

static int set(int name, const void *value, size_t length)
{
	errno = 0;
	return rdma_set_option(&id->pub, RDMA_OPTION_ID, name, (void *)value,
			       length);
}

static void flags__on_and_off(void **state)
{
	static const struct {
		int name;
		uint8_t flag;
	} cases[] = {
		{ RDMA_OPTION_ID_REUSEADDR, IPC_CM_REUSE },
		{ RDMA_OPTION_ID_AFONLY, IPC_CM_V6ONLY },
	};
	const int on = 2, off = 0;

	for (unsigned i = 0; i < VB_COUNT(cases); i++) {
		id->flags = IPC_CM_PLAIN;
		assert_int_equal(set(cases[i].name, &on, sizeof(on)), 0);
		assert_int_equal(id->flags, IPC_CM_PLAIN | cases[i].flag);
		assert_int_equal(set(cases[i].name, &off, sizeof(off)), 0);
		assert_int_equal(id->flags, IPC_CM_PLAIN);
		assert_int_equal(set(cases[i].name, &on, 1), -1);
		assert_int_equal(errno, EINVAL);
		/* in this state of the id the option can no longer be set */
		id->state = RCM_BOUND;
		assert_int_equal(set(cases[i].name, &on, sizeof(on)), -1);
		assert_int_equal(id->flags, IPC_CM_PLAIN);
		id->state = RCM_NEW;
	}
}

static void tos__one_byte(void **state)
{
	const uint8_t tos[2] = { 0x68 };

	assert_int_equal(set(RDMA_OPTION_ID_TOS, tos, 2), -1);
	assert_int_equal(id->tos, 0);
	assert_int_equal(set(RDMA_OPTION_ID_TOS, tos, 1), 0);
	assert_int_equal(id->tos, 0x68);
}

static void ack_timeout__five_bits_of_a_requester(void **state)
{
	static const struct {
		enum ibv_qp_type type;
		int want;
	} cases[] = {
		{ IBV_QPT_RC, 0 },	  { IBV_QPT_XRC_SEND, 0 },
		{ IBV_QPT_XRC_RECV, -1 }, { IBV_QPT_UC, -1 },
		{ IBV_QPT_UD, -1 },
	};
	uint8_t value = 32;

	assert_int_equal(set(RDMA_OPTION_ID_ACK_TIMEOUT, &value, 1), -1);
	assert_false(id->timeout_set);
	value = 31;
	for (unsigned i = 0; i < VB_COUNT(cases); i++) {
		id->pub.qp_type = cases[i].type;
		id->timeout_set = false;
		assert_int_equal(set(RDMA_OPTION_ID_ACK_TIMEOUT, &value, 1),
				 cases[i].want);
		assert_int_equal(id->timeout_set, cases[i].want == 0);
	}
	assert_int_equal(id->ack_timeout, 31);
}

static void secret__own_or_joined(void **state)
{
	const uint64_t secret = 0x1122334455667788;

	assert_int_equal(set(RCM_OPTION_SECRET, &secret, 4), -1);
	assert_int_equal(set(RCM_OPTION_SECRET, &secret, 8), 0);
	assert_true(id->secret == secret);
	assert_int_equal(id->flags & IPC_CM_JOIN, 0);
	assert_int_equal(set(RCM_OPTION_JOIN, &secret, 8), 0);
	assert_int_equal(id->flags & IPC_CM_JOIN, IPC_CM_JOIN);
	id->state = RCM_BOUND;
	assert_int_equal(set(RCM_OPTION_JOIN, &secret, 8), -1);
}

static void unknown__enosys(void **state)
{
	const int on = 1;

	assert_int_equal(set(0x4321, &on, sizeof(on)), -1);
	assert_int_equal(errno, ENOSYS);
	assert_int_equal(set(RDMA_OPTION_ID_TOS, NULL, 1), -1);
	assert_int_equal(errno, ENOSYS);
	assert_int_equal(rdma_set_option(&id->pub, 77, RDMA_OPTION_ID_TOS,
					 (void *)&on, 1),
			 -1);
	assert_int_equal(errno, ENOSYS);
}

static struct ibv_path_data path(void)
{
	struct ibv_path_data d = { .flags = IBV_PATH_FLAG_GMP |
					    IBV_PATH_FLAG_PRIMARY |
					    IBV_PATH_FLAG_BIDIRECTIONAL };

	memcpy(d.path.dgid.raw, id->path.dst.raw, 16);
	memcpy(d.path.sgid.raw, id->path.src.raw, 16);
	d.path.flowlabel_hoplimit = htobe32(0x12345 << 8 | 0xff);
	d.path.tclass = 0x68;
	return d;
}

static int set_path(const struct ibv_path_data *d, size_t length)
{
	return rdma_set_option(&id->pub, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH,
			       (void *)d, length);
}

/* Of several path records the one with all three flags is used. */
static void path__stands_for_the_route(void **state)
{
	struct ibv_path_data d[2] = { path(), path() };
	struct rdma_cm_event *e;

	d[0].flags = IBV_PATH_FLAG_GMP;
	d[0].path.tclass = 1;
	id->state = RCM_RESOLVED;
	assert_int_equal(set_path(d, sizeof(d)), 0);
	assert_int_equal(id->state, RCM_ROUTED);
	assert_int_equal(id->path.flow_label, 0x12345);
	assert_int_equal(id->path.tclass, 0x68);
	assert_int_equal(rdma_get_cm_event(channel, &e), 0);
	assert_int_equal(e->event, RDMA_CM_EVENT_ROUTE_RESOLVED);
	assert_int_equal(rdma_ack_cm_event(e), 0);
}

static void path__refused(void **state)
{
	struct ibv_path_data d = path();

	/* The id's address is not resolved, so a path cannot be set. */
	assert_int_equal(set_path(&d, sizeof(d)), -1);
	id->state = RCM_RESOLVED;
	assert_int_equal(set_path(&d, sizeof(d) - 1), -1);
	assert_int_equal(set_path(NULL, sizeof(d)), -1);
	assert_int_equal(set_path(&d, 0), -1);
	d.flags = IBV_PATH_FLAG_GMP;
	assert_int_equal(set_path(&d, sizeof(d)), -1);
	d = path();
	/* refused: the path record names another peer */
	d.path.dgid.raw[15] ^= 1;
	assert_int_equal(set_path(&d, sizeof(d)), -1);
	d = path();
	/* refused: the path record names another address of this host */
	d.path.sgid.raw[15] ^= 1;
	assert_int_equal(set_path(&d, sizeof(d)), -1);
	assert_int_equal(id->state, RCM_RESOLVED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(flags__on_and_off),
		TEST(tos__one_byte),
		TEST(ack_timeout__five_bits_of_a_requester),
		TEST(secret__own_or_joined),
		TEST(unknown__enosys),
		TEST(path__stands_for_the_route),
		TEST(path__refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
