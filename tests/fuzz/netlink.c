/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzes requests on a NETLINK_RDMA socket: each must be answered by whole
 * messages and an end. The bytes before the first 0 are also the tree's text,
 * whose devices the requests may name.
 */
#include <linux/netlink.h>
#include <stdlib.h>
#include <string.h>

#include "front/netlink/answer.h"
#include "tests/fuzz/fuzz.h"

#define QPS 100

static struct vb_census_row rows[QPS];
static struct vb_census_sum sum = { .device = "roce_a" };
static struct vb_counter_file counters = { .device = "roce_a" };

static void fill_rows(void)
{
	for (unsigned i = 0; i < QPS; i++) {
		rows[i] = (struct vb_census_row){
			.device = "roce_a",
			.id = i + 1,
			.number = i + 1,
			.kind = (uint8_t)(1 + i % (ROSTER_KINDS - 1)),
			.type = 2,
			.srq = ROSTER_SRQ,
			.port = 1,
		};
	}
}

/* Check that the messages follow each other without a gap, as the kernel's
 * do. */
static void check_messages(const uint8_t *bytes, size_t length)
{
	struct nlmsghdr head;

	for (size_t at = 0; at < length;) {
		MUST(length - at >= sizeof(head));
		memcpy(&head, bytes + at, sizeof(head));
		MUST(head.nlmsg_len >= sizeof(head));
		MUST(head.nlmsg_len <= length - at);
		at += (head.nlmsg_len + 3) & ~3u;
	}
}

static void check_answer(const struct vb_nl_request *r,
			 const struct vb_nl_facts *facts)
{
	struct vb_nl_cursor cursor = { 0 };
	uint8_t *to = malloc(VB_NL_ANSWER);
	unsigned datagrams = 0;
	size_t n;

	if (!to)
		abort();
	(void)vb_nl_needs(r);
	while ((n = vb_nl_answer(r, facts, &cursor, to)) > 0) {
		MUST(n <= VB_NL_ANSWER);
		MUST(++datagrams < 1000);
		check_messages(to, n);
	}
	MUST(cursor.done);
	free(to);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static struct vb_nl_device known = { .name = "roce_a", .index = 1 };
	struct vb_nl_facts facts = { .devices = &known, .count = 1 },
			   read = { 0 };
	struct vb_nl_request r = { .cap_ack = len % 2, .ext_ack = len % 3 };
	char *text = calloc(1, len + 1);
	size_t n;

	if (!text)
		abort();
	fill_rows();
	memcpy(text, bytes, len);
	MUST(vb_nl_read(text, &read) == 0);
	facts.census = read.census = (struct vb_census){ rows, QPS, &sum, 1 };
	facts.files = read.files = &counters;
	facts.counter_of = read.counter_of = 1;
	for (size_t at = 0; (n = vb_nl_split(bytes + at, len - at, &r)) > 0;
	     at += n) {
		check_answer(&r, &facts);
		check_answer(&r, &read);
	}
	free(read.devices);
	free(text);
	return 0;
}
