/* SPDX-License-Identifier: BSD-2-Clause */
/* The states of multicast groups. The test sets the time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "ipoib/group.h"

#define PKEY 0x8001
#define MOST 600

static struct bed {
	struct vb_groups *t;
	vb_time now;
	unsigned joins, leaves, refusals, attached, detached, sent, begun;
	/* the join requests, oldest first */
	struct question {
		struct vb_gid mgid;
		uint32_t query;
		uint8_t join, mtu;
		bool like_broadcast;
	} asked[MOST];
	struct vb_gid last_left;
	uint8_t left_join;
} b;

static struct vb_gid broadcast;
static const struct vb_gid port_gid = { { 0xfe, 0x80, [15] = 3 } };

static void on_join(void *arg, const struct vb_group *g,
		    const struct vb_sa_mcmember *as)
{
	assert_true(b.joins < MOST);
	assert_true(vb_gid_equal(&g->record.port_gid, &port_gid));
	assert_int_equal(g->record.pkey, PKEY);
	b.asked[b.joins++] =
		(struct question){ g->mgid, g->query, g->record.join_state,
				   as ? as->mtu : 0, as };
}

static void on_leave(void *arg, const struct vb_group *g)
{
	b.leaves++;
	b.last_left = g->mgid;
	b.left_join = g->record.join_state;
}

static void on_refused(void *arg, const struct vb_group *g)
{
	b.refusals++;
}

static bool on_attach(void *arg, struct vb_group *g)
{
	b.attached++;
	g->handle = &b;
	return true;
}

static void on_detach(void *arg, struct vb_group *g)
{
	assert_ptr_equal(g->handle, &b);
	b.detached++;
}

static void on_group_send(void *arg, const struct vb_group *g,
			  const void *frame, size_t len)
{
	assert_ptr_equal(g->handle, &b);
	b.sent++;
}

static void on_begun(void *arg, const struct vb_sa_mcmember *record)
{
	assert_int_equal(record->qkey, 0xb1b);
	b.begun++;
}

static const struct vb_group_ops ops = {
	.join = on_join,
	.leave = on_leave,
	.refused = on_refused,
	.attach = on_attach,
	.detach = on_detach,
	.send = on_group_send,
	.begun = on_begun,
};

static struct vb_gid mgid_of(unsigned i)
{
	const uint8_t bytes[4] = { 239, 0, (uint8_t)(i >> 8), (uint8_t)i };
	struct vb_gid ip = vb_gid_from_ipv4(bytes);

	return vb_ip_mgid(&ip, PKEY);
}

static int make_bed(void **state)
{
	struct vb_gid all = vb_ip_broadcast();

	memset(&b, 0, sizeof(b));
	b.now = 100 * VB_SEC;
	broadcast = vb_ip_mgid(&all, PKEY);
	b.t = vb_groups_create(&ops, NULL, &broadcast, &port_gid, PKEY, b.now);
	return b.t ? 0 : -1;
}

static int end_bed(void **state)
{
	vb_groups_destroy(b.t);
	return b.attached == b.detached ? 0 : -1;
}

static void wait_for(vb_time time)
{
	for (vb_time end = b.now + time; b.now < end; b.now += VB_SEC / 4)
		vb_groups_tick(b.t, b.now);
	vb_groups_tick(b.t, b.now);
}

static struct question *last(void)
{
	return &b.asked[b.joins - 1];
}

static void answer(const struct question *q)
{
	const struct vb_sa_mcmember record = { .mgid = q->mgid,
					       .qkey = 0xb1b,
					       .mlid = 0xc000,
					       .mtu = 4,
					       .join_state = q->join };

	vb_groups_answer(b.t, q->query, &record, b.now);
}

static enum vb_group_state state_of(unsigned i)
{
	struct vb_gid mgid = mgid_of(i);
	const struct vb_group *g = vb_groups_find(b.t, &mgid);

	return g ? g->state : GROUP_NONE;
}

static void enter(unsigned i)
{
	struct vb_gid mgid = mgid_of(i);

	vb_groups_enter(b.t, &mgid, b.now);
}

static void send_to(unsigned i)
{
	struct vb_gid mgid = mgid_of(i);

	vb_groups_send(b.t, &mgid, "x", 1, b.now);
}

static void broadcast__comes_first(void **state)
{
	assert_int_equal(b.joins, 1);
	assert_true(vb_gid_equal(&b.asked[0].mgid, &broadcast));
	assert_int_equal(b.asked[0].join, SA_FULL_MEMBER);
	assert_false(b.asked[0].like_broadcast);
	enter(1);
	send_to(2);
	vb_groups_send(b.t, &broadcast, "x", 1, b.now);
	assert_int_equal(b.joins, 1);
	assert_null(vb_groups_broadcast(b.t));
	answer(last());
	assert_int_equal(b.begun, 1);
	assert_int_equal(b.sent, 1);
	assert_int_equal(vb_groups_broadcast(b.t)->qkey, 0xb1b);
	/* The other groups are joined after the broadcast group, with its
	 * parameters. */
	assert_int_equal(b.joins, 3);
	assert_int_equal(b.asked[1].join, SA_FULL_MEMBER);
	assert_int_equal(b.asked[2].join, SA_SEND_ONLY_NON_MEMBER);
	assert_true(b.asked[1].like_broadcast && b.asked[1].mtu == 4);
	answer(&b.asked[1]);
	answer(&b.asked[2]);
	assert_int_equal(b.attached, 3);
	assert_int_equal(b.sent, 2);
}

static void backoff__doubles_up_to_16_s(void **state)
{
	static const unsigned pauses[] = { 1, 2, 4, 8, 16, 16 };

	for (unsigned i = 0; i < VB_COUNT(pauses); i++) {
		unsigned before = b.joins;

		vb_groups_answer(b.t, last()->query, NULL, b.now);
		wait_for(pauses[i] * VB_SEC - VB_SEC / 2);
		assert_int_equal(b.joins, before);
		wait_for(VB_SEC);
		assert_int_equal(b.joins, before + 1);
	}
	answer(last());
	assert_int_equal(b.begun, 1);
}

static void joining__without_an_answer_backs_off(void **state)
{
	wait_for(VB_GROUP_ANSWER + VB_SEC / 2);
	assert_int_equal(b.joins, 1);
	answer(&b.asked[0]); /* the answer to a request that was given up */
	assert_int_equal(b.begun, 0);
	wait_for(VB_SEC);
	assert_int_equal(b.joins, 2);
}

static void answer__that_is_unfit_backs_off(void **state)
{
	struct vb_sa_mcmember wrong = { .mgid = broadcast,
					.mlid = 0xc000,
					.mtu = 4 };

	wrong.mlid = 0xbfff;
	vb_groups_answer(b.t, last()->query, &wrong, b.now);
	assert_int_equal(b.begun, 0);
	wait_for(2 * VB_SEC);
	wrong.mlid = 0xc000;
	wrong.mtu = 0;
	vb_groups_answer(b.t, last()->query, &wrong, b.now);
	assert_int_equal(b.begun, 0);
	wait_for(3 * VB_SEC);
	wrong.mtu = 4;
	wrong.mgid = mgid_of(1);
	vb_groups_answer(b.t, last()->query, &wrong, b.now);
	assert_int_equal(b.begun, 0);
	vb_groups_answer(b.t, 0xffffffff, &wrong, b.now);
	vb_groups_answer(b.t, 0, &wrong, b.now);
}

static void rejoin__all_the_broadcast_group_first(void **state)
{
	answer(last());
	enter(1);
	answer(last());
	assert_int_equal(b.joins, 2);
	vb_groups_rejoin(b.t, b.now);
	assert_int_equal(b.joins, 3);
	assert_true(vb_gid_equal(&last()->mgid, &broadcast));
	assert_int_equal(b.detached, 2);
	assert_null(vb_groups_broadcast(b.t));
	send_to(1);
	answer(last());
	assert_int_equal(b.begun, 2);
	assert_int_equal(b.joins, 4);
	answer(last());
	assert_int_equal(state_of(1), GROUP_JOINED);
	assert_int_equal(b.sent, 1);
	assert_int_equal(b.leaves, 0);
}

static void sender__becomes_a_member_and_leaves(void **state)
{
	struct vb_gid mgid = mgid_of(1);

	answer(last());
	send_to(1);
	assert_int_equal(last()->join, SA_SEND_ONLY_NON_MEMBER);
	answer(last());
	enter(1);
	assert_int_equal(last()->join, SA_FULL_MEMBER);
	assert_int_equal(b.detached, 1);
	answer(last());
	enter(1); /* the host is a member already */
	assert_int_equal(b.joins, 3);
	vb_groups_leave(b.t, &mgid);
	assert_int_equal(b.leaves, 1);
	assert_int_equal(b.left_join, SA_FULL_MEMBER | SA_SEND_ONLY_NON_MEMBER);
	assert_true(vb_gid_equal(&b.last_left, &mgid));
	assert_int_equal(state_of(1), GROUP_NONE);
	vb_groups_leave(b.t, &mgid);
	vb_groups_leave(b.t, &broadcast);
	assert_int_equal(b.leaves, 1);
}

static void sender__leaves_when_it_is_idle(void **state)
{
	answer(last());
	send_to(1);
	answer(last());
	wait_for(VB_GROUP_IDLE - VB_SEC);
	send_to(1);
	wait_for(VB_GROUP_IDLE - VB_SEC);
	assert_int_equal(state_of(1), GROUP_JOINED);
	wait_for(2 * VB_SEC);
	assert_int_equal(state_of(1), GROUP_NONE);
	assert_int_equal(b.leaves, 1);
	assert_int_equal(b.left_join, SA_SEND_ONLY_NON_MEMBER);
	enter(2);
	answer(last());
	wait_for(2 * VB_GROUP_IDLE);
	assert_int_equal(state_of(2), GROUP_JOINED);
}

/* The join of a group without members is tried again while the host sends to
 * it. */
static void sender__to_nobody(void **state)
{
	answer(last());
	send_to(1);
	for (unsigned i = 0; i < 40; i++) {
		if (state_of(1) == GROUP_JOINING)
			vb_groups_answer(b.t, last()->query, NULL, b.now);
		send_to(1);
		wait_for(VB_SEC / 2);
	}
	assert_in_range(b.joins, 5, 9);
	if (state_of(1) == GROUP_JOINING)
		vb_groups_answer(b.t, last()->query, NULL, b.now);
	wait_for(20 * VB_SEC);
	assert_int_equal(state_of(1), GROUP_NONE);
	/* the last join got no answer, but may have had an effect, so the port
	 * leaves */
	assert_int_equal(b.leaves, 1);
	assert_int_equal(b.sent, 0);
}

static void table__is_bounded(void **state)
{
	answer(last());
	enter(1);
	for (unsigned i = 0; i < VB_GROUP_TABLE + 10; i++) {
		b.now += VB_MSEC;
		send_to(1000 + i);
	}
	assert_int_not_equal(state_of(1), GROUP_NONE);
	assert_int_equal(state_of(1000), GROUP_NONE);
	assert_int_equal(state_of(1000 + VB_GROUP_TABLE + 9), GROUP_JOINING);
	/* A new group that the host is a member of displaces one that it only
	 * sends to; a member's group is never displaced. */
	for (unsigned i = 2; i < VB_GROUP_TABLE; i++)
		enter(i);
	enter(VB_GROUP_TABLE);
	send_to(5000);
	assert_int_equal(state_of(1), GROUP_JOINING);
	assert_int_equal(state_of(VB_GROUP_TABLE - 1), GROUP_JOINING);
	assert_int_equal(state_of(VB_GROUP_TABLE), GROUP_NONE);
	assert_int_equal(state_of(5000), GROUP_NONE);
}

static void end__leaves_all(void **state)
{
	answer(last());
	enter(1);
	answer(last());
	enter(2); /* no answer yet, but one may be under way */
	enter(3);
	vb_groups_answer(b.t, last()->query, NULL, b.now);
	vb_groups_destroy(b.t);
	assert_int_equal(b.leaves, 3);
	assert_int_equal(b.detached, 2);
	assert_true(vb_gid_equal(&b.last_left, &broadcast));
	b.t = vb_groups_create(&ops, NULL, &broadcast, &port_gid, PKEY, b.now);
}

/* The administrator enters the port into the group when the request arrives,
 * even if the host has left meanwhile. So the port must leave. */
static void member__leaves_before_the_answer(void **state)
{
	struct vb_gid mgid = mgid_of(1);

	answer(last());
	enter(1);
	vb_groups_leave(b.t, &mgid);
	assert_int_equal(b.leaves, 1);
	assert_int_equal(b.left_join, SA_FULL_MEMBER);
	/* the answer comes too late, or not at all: the port leaves, too */
	enter(1);
	wait_for(VB_GROUP_ANSWER + VB_SEC / 2);
	vb_groups_leave(b.t, &mgid);
	assert_int_equal(b.leaves, 2);
	/* the administrator has refused, so there is nothing to leave */
	enter(1);
	vb_groups_answer(b.t, last()->query, NULL, b.now);
	assert_int_equal(b.refusals, 1);
	vb_groups_leave(b.t, &mgid);
	assert_int_equal(b.leaves, 2);
}

/* A subnet manager may ask ports to join anew although it has not forgotten
 * their memberships. So the port must leave a group that it has not joined
 * again. */
static void member__leaves_before_it_joined_anew(void **state)
{
	struct vb_gid mgid = mgid_of(1);

	answer(last());
	send_to(1);
	answer(last());
	enter(1);
	answer(last());
	vb_groups_rejoin(b.t, b.now);
	vb_groups_leave(b.t, &mgid);
	assert_int_equal(b.leaves, 1);
	assert_int_equal(b.left_join, SA_FULL_MEMBER | SA_SEND_ONLY_NON_MEMBER);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_bed, end_bed)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(broadcast__comes_first),
		TEST(backoff__doubles_up_to_16_s),
		TEST(joining__without_an_answer_backs_off),
		TEST(answer__that_is_unfit_backs_off),
		TEST(rejoin__all_the_broadcast_group_first),
		TEST(sender__becomes_a_member_and_leaves),
		TEST(sender__leaves_when_it_is_idle),
		TEST(sender__to_nobody),
		TEST(table__is_bounded),
		TEST(member__leaves_before_the_answer),
		TEST(member__leaves_before_it_joined_anew),
		TEST(end__leaves_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
