/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests as iproute2 makes them, and the preload's answers. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>

#include "front/netlink/answer.h"
#include "front/netlink/put.h"

#define PORTID 77
#define SEQ    1234
#define QPS    500

static struct vb_nl_device devices[] = {
	{ .name = "roce_a",
	  .ports = 1,
	  .port = { { .netdev = "a",
		      .ifindex = 3,
		      .state = 4,
		      .phys_state = 5 } },
	  .index = 3,
	  .node_type = 1,
	  .guid = 0x1122 },
	{ .name = "iw_a",
	  .ports = 1,
	  .port = { { .netdev = "a",
		      .ifindex = 3,
		      .state = 1,
		      .phys_state = 3 } },
	  .index = 1000003,
	  .node_type = 4 },
};
static struct vb_census_row rows[QPS + 1];
static struct vb_census_sum sums[] = {
	{ .device = "roce_a", .alive = { [ROSTER_QP] = QPS, [ROSTER_PD] = 1 } },
};
static struct vb_counter_file files[] = {
	{ .device = "roce_a", .counts = { [CNT_SENT_PKTS] = 99 } }
};
static struct vb_nl_facts facts = {
	.devices = devices,
	.count = 2,
	.census = { .rows = rows,
		    .count = QPS + 1,
		    .sums = sums,
		    .sum_count = 1 },
	.files = files,
	.counter_of = 1,
};

static struct {
	uint8_t bytes[512];
	struct vb_nl_out out;
	struct vb_nl_request request;
} asked;

static int fill_rows(void **state)
{
	rows[0] = (struct vb_census_row){ .device = "roce_a",
					  .pid = 5,
					  .id = 9,
					  .kind = ROSTER_PD,
					  .users = QPS };
	for (unsigned i = 0; i < QPS; i++)
		rows[i + 1] = (struct vb_census_row){
			.device = "roce_a",
			.pid = 5,
			.id = i + 10,
			.kind = ROSTER_QP,
			.type = 2,
			.state = 3,
			.port = 1,
			.number = 1000 + i,
			.peer = 7,
			.pd = 9,
		};
	return 0;
}

static void ask(unsigned command, uint16_t flags)
{
	const struct nlmsghdr head = {
		.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command),
		.nlmsg_flags = flags | NLM_F_REQUEST,
		.nlmsg_seq = SEQ,
	};

	asked.out = (struct vb_nl_out){ .bytes = asked.bytes,
					.room = sizeof(asked.bytes) };
	memcpy(vb_nl_room(&asked.out, sizeof(head)), &head, sizeof(head));
	asked.request = (struct vb_nl_request){ .portid = PORTID };
}

static void with(uint16_t type, uint32_t value)
{
	vb_nl_put32(&asked.out, type, value);
}

/* Take the request that was built as one whole netlink message. */
static void sent(void)
{
	memcpy(asked.bytes, &asked.out.used, sizeof(asked.out.used));
	assert_int_equal(
		vb_nl_split(asked.bytes, asked.out.used, &asked.request),
		asked.out.used);
}

static size_t hear(struct vb_nl_cursor *c, uint8_t *to)
{
	size_t n = vb_nl_answer(&asked.request, &facts, c, to);

	assert_true(n <= VB_NL_ANSWER);
	return n;
}

static struct nlmsghdr head_of(const uint8_t *bytes)
{
	struct nlmsghdr head;

	memcpy(&head, bytes, sizeof(head));
	assert_int_equal(head.nlmsg_pid, PORTID);
	assert_int_equal(head.nlmsg_seq, SEQ);
	return head;
}

/* Returns the value of the attribute @type of a message, or of a nested
 * attribute. */
static const uint8_t *attribute(const uint8_t *at, uint32_t length,
				uint16_t type, uint16_t *size)
{
	struct nlattr a;

	*size = 0;
	for (; length >= sizeof(a);
	     at += vb_nl_align(a.nla_len), length -= vb_nl_align(a.nla_len)) {
		memcpy(&a, at, sizeof(a));
		assert_in_range(a.nla_len, sizeof(a), length);
		if ((a.nla_type & NLA_TYPE_MASK) == type) {
			*size = a.nla_len - sizeof(a);
			return at + sizeof(a);
		}
	}
	return NULL;
}

static uint32_t number(const uint8_t *message, uint16_t type)
{
	const struct nlmsghdr head = head_of(message);
	uint32_t value;
	uint16_t size;
	const uint8_t *at =
		attribute(message + sizeof(head), head.nlmsg_len - sizeof(head),
			  type, &size);

	assert_non_null(at);
	if (size == 1)
		return *at;
	memcpy(&value, at, sizeof(value));
	return value;
}

static int error_of(const uint8_t *message)
{
	int error;

	assert_int_equal(head_of(message).nlmsg_type, NLMSG_ERROR);
	memcpy(&error, message + NLMSG_HDRLEN, sizeof(error));
	return error;
}

static int only_error(void)
{
	struct vb_nl_cursor c = { 0 };
	uint8_t bytes[VB_NL_ANSWER];

	sent();
	assert_true(hear(&c, bytes) > 0);
	assert_true(c.done);
	assert_int_equal(hear(&c, bytes + NLMSG_HDRLEN + 64), 0);
	return error_of(bytes);
}

static void lists_devices(void **state)
{
	struct vb_nl_cursor c = { 0 };
	uint8_t bytes[VB_NL_ANSWER];
	uint32_t at = 0;

	ask(RDMA_NLDEV_CMD_GET, NLM_F_DUMP | NLM_F_ACK);
	sent();
	assert_true(hear(&c, bytes) > 0);
	for (unsigned i = 0; i < facts.count; i++) {
		assert_int_equal(number(bytes + at, RDMA_NLDEV_ATTR_DEV_INDEX),
				 devices[i].index);
		assert_int_equal(number(bytes + at, RDMA_NLDEV_ATTR_PORT_INDEX),
				 1);
		assert_true(head_of(bytes + at).nlmsg_flags & NLM_F_MULTI);
		at += vb_nl_align(head_of(bytes + at).nlmsg_len);
	}
	assert_int_equal(head_of(bytes + at).nlmsg_type, NLMSG_DONE);
	assert_true(c.done);
	assert_int_equal(hear(&c, bytes), 0);
}

static void tells_a_port_and_acknowledges(void **state)
{
	struct vb_nl_cursor c = { 0 };
	uint8_t bytes[VB_NL_ANSWER];

	ask(RDMA_NLDEV_CMD_PORT_GET, NLM_F_ACK);
	with(RDMA_NLDEV_ATTR_DEV_INDEX, 3);
	with(RDMA_NLDEV_ATTR_PORT_INDEX, 1);
	sent();
	assert_true(hear(&c, bytes) > 0);
	assert_int_equal(number(bytes, RDMA_NLDEV_ATTR_PORT_STATE), 4);
	assert_int_equal(number(bytes, RDMA_NLDEV_ATTR_PORT_PHYS_STATE), 5);
	assert_int_equal(number(bytes, RDMA_NLDEV_ATTR_NDEV_INDEX), 3);
	assert_false(c.done);
	assert_true(hear(&c, bytes) > 0);
	assert_int_equal(error_of(bytes), 0);
	assert_true(c.done);
}

static void no_acknowledgement_unasked(void **state)
{
	struct vb_nl_cursor c = { 0 };
	uint8_t bytes[VB_NL_ANSWER];

	ask(RDMA_NLDEV_CMD_SYS_GET, 0);
	sent();
	assert_true(hear(&c, bytes) > 0);
	assert_int_equal(number(bytes, RDMA_NLDEV_SYS_ATTR_NETNS_MODE), 0);
	assert_true(c.done);
}

static void says_what_is_wrong(void **state)
{
	ask(RDMA_NLDEV_CMD_GET, 0); /* a GET that names no device */
	assert_int_equal(only_error(), -EINVAL);
	ask(RDMA_NLDEV_CMD_GET, NLM_F_ACK);
	with(RDMA_NLDEV_ATTR_DEV_INDEX, 4);
	assert_int_equal(only_error(), -EINVAL);
	ask(RDMA_NLDEV_CMD_PORT_GET, 0);
	with(RDMA_NLDEV_ATTR_DEV_INDEX, 3);
	with(RDMA_NLDEV_ATTR_PORT_INDEX, 2);
	assert_int_equal(only_error(), -EINVAL);
	ask(RDMA_NLDEV_CMD_RES_PD_GET, 0);
	with(RDMA_NLDEV_ATTR_DEV_INDEX, 3);
	with(RDMA_NLDEV_ATTR_RES_PDN, 8);
	assert_int_equal(only_error(), -ENOENT);
	ask(RDMA_NLDEV_CMD_SET, NLM_F_ACK);
	assert_int_equal(only_error(), -EOPNOTSUPP);
	ask(1000, NLM_F_ACK);
	assert_int_equal(only_error(), -EINVAL);
}

/* Refuse a request that does not fit into the error message. */
static void refuses_a_long_request(void **state)
{
	static uint8_t bytes[2 * VB_NL_ANSWER];
	const uint32_t length = sizeof(bytes);
	uint8_t to[VB_NL_ANSWER];
	struct vb_nl_cursor c = { 0 };

	ask(RDMA_NLDEV_CMD_GET, 0);
	memcpy(bytes, asked.bytes, NLMSG_HDRLEN);
	memcpy(bytes, &length, sizeof(length));
	assert_int_equal(vb_nl_split(bytes, sizeof(bytes), &asked.request),
			 sizeof(bytes));
	assert_true(hear(&c, to) > 0);
	assert_int_equal(error_of(to), -EMSGSIZE);
	assert_true(c.done);
}

static void explains_a_refusal(void **state)
{
	struct vb_nl_cursor c = { 0 };
	uint8_t bytes[VB_NL_ANSWER];
	struct nlmsghdr head;
	uint16_t size;

	ask(RDMA_NLDEV_CMD_NEWLINK, NLM_F_ACK);
	asked.request.cap_ack = asked.request.ext_ack = true;
	sent();
	assert_true(hear(&c, bytes) > 0);
	head = head_of(bytes);
	assert_int_equal(head.nlmsg_flags, NLM_F_CAPPED | NLM_F_ACK_TLVS);
	assert_non_null(attribute(bytes + 2 * NLMSG_HDRLEN + 4,
				  head.nlmsg_len - 2 * NLMSG_HDRLEN - 4,
				  NLMSGERR_ATTR_MSG, &size));
}

/* Every queue pair is listed once, in as many messages as needed. */
static void lists_many_queue_pairs(void **state)
{
	struct vb_nl_cursor c = { 0 };
	uint8_t bytes[VB_NL_ANSWER];
	unsigned told = 0, datagrams = 0;
	bool done = false;

	ask(RDMA_NLDEV_CMD_RES_QP_GET, NLM_F_DUMP);
	with(RDMA_NLDEV_ATTR_DEV_INDEX, 3);
	with(RDMA_NLDEV_ATTR_PORT_INDEX, 1);
	sent();
	for (size_t n; (n = hear(&c, bytes)) > 0; datagrams++) {
		const uint8_t *table, *entry;
		struct nlmsghdr head = head_of(bytes);
		uint16_t size, inner;
		uint32_t qpn;

		done = head.nlmsg_type == NLMSG_DONE ||
		       n > vb_nl_align(head.nlmsg_len);
		if (head.nlmsg_type == NLMSG_DONE)
			continue;
		table = attribute(bytes + sizeof(head),
				  head.nlmsg_len - sizeof(head),
				  RDMA_NLDEV_ATTR_RES_QP, &size);
		assert_non_null(table);
		while (size && (entry = attribute(table, size,
						  RDMA_NLDEV_ATTR_RES_QP_ENTRY,
						  &inner))) {
			uint16_t length;

			memcpy(&qpn,
			       attribute(entry, inner, RDMA_NLDEV_ATTR_RES_LQPN,
					 &length),
			       sizeof(qpn));
			assert_int_equal(qpn, 1000 + told++);
			size -= (uint16_t)(entry + inner - table);
			table = entry + inner;
		}
	}
	assert_int_equal(told, QPS);
	assert_true(datagrams > 1);
	assert_true(done);
}

static void tells_one_object(void **state)
{
	struct vb_nl_cursor c = { 0 };
	uint8_t bytes[VB_NL_ANSWER];

	ask(RDMA_NLDEV_CMD_RES_PD_GET, 0);
	with(RDMA_NLDEV_ATTR_DEV_INDEX, 3);
	with(RDMA_NLDEV_ATTR_RES_PDN, 9);
	sent();
	assert_true(hear(&c, bytes) > 0);
	assert_int_equal(number(bytes, RDMA_NLDEV_ATTR_RES_PDN), 9);
	assert_int_equal(number(bytes, RDMA_NLDEV_ATTR_RES_PID), 5);
	assert_int_equal(number(bytes, RDMA_NLDEV_ATTR_RES_USECNT), QPS);
}

static void an_empty_list_is_its_end(void **state)
{
	struct vb_nl_cursor c = { 0 };
	uint8_t bytes[VB_NL_ANSWER];

	ask(RDMA_NLDEV_CMD_RES_MR_GET, NLM_F_DUMP);
	with(RDMA_NLDEV_ATTR_DEV_INDEX, 3);
	sent();
	assert_true(hear(&c, bytes) > 0);
	assert_int_equal(head_of(bytes).nlmsg_type, NLMSG_DONE);
	assert_true(c.done);
}

/* An answer must fit into 4096 bytes, the buffer of iproute2. */
static void counters_fit_a_datagram(void **state)
{
	struct vb_nl_cursor c = { 0 };
	uint8_t bytes[VB_NL_ANSWER];
	const uint8_t *table;
	struct nlmsghdr head;
	uint16_t size;

	ask(RDMA_NLDEV_CMD_STAT_GET, 0);
	with(RDMA_NLDEV_ATTR_DEV_INDEX, 3);
	with(RDMA_NLDEV_ATTR_PORT_INDEX, 1);
	sent();
	assert_true(hear(&c, bytes) > 0);
	head = head_of(bytes);
	table = attribute(bytes + sizeof(head), head.nlmsg_len - sizeof(head),
			  RDMA_NLDEV_ATTR_STAT_HWCOUNTERS, &size);
	assert_non_null(table);
	assert_non_null(memmem(table, size, "sent_pkts", 10));
}

static void splits_what_was_sent_together(void **state)
{
	struct vb_nl_request r;
	uint8_t two[64] = { 0 };
	uint32_t length = 18;

	memcpy(two, &length, sizeof(length));
	assert_int_equal(vb_nl_split(two, sizeof(two), &r), 20);
	assert_int_equal(r.length, 18);
	assert_int_equal(vb_nl_split(two, 17, &r), 0);
	length = 15;
	memcpy(two, &length, sizeof(length));
	assert_int_equal(vb_nl_split(two, sizeof(two), &r), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_devices),
		cmocka_unit_test(tells_a_port_and_acknowledges),
		cmocka_unit_test(no_acknowledgement_unasked),
		cmocka_unit_test(says_what_is_wrong),
		cmocka_unit_test(refuses_a_long_request),
		cmocka_unit_test(explains_a_refusal),
		cmocka_unit_test(lists_many_queue_pairs),
		cmocka_unit_test(tells_one_object),
		cmocka_unit_test(an_empty_list_is_its_end),
		cmocka_unit_test(counters_fit_a_datagram),
		cmocka_unit_test(splits_what_was_sent_together),
	};

	return cmocka_run_group_tests(tests, fill_rows, NULL);
}
