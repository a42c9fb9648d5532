/* SPDX-License-Identifier: BSD-2-Clause */
/* The link that chooses one of two links for each frame. */
#include "link/roce.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include <errno.h>

/* A fake link that records its calls. */
struct fake {
	struct vb_link link;
	/* the first byte of each frame that was sent by this link */
	char sent[VB_TXQ_FRAMES + 1];
	unsigned sends, drops, routes, aims, lost;
	unsigned room; /* number of frames for which the link still has room */
	int member;    /* what join() returns */
	int joined;
};

static struct fake v1, v2;
static struct vb_link *both;
static struct vb_txq q;
static const struct vb_route to1 = { .v1 = true }, to2 = { .v1 = false };

static struct fake *fake_of(struct vb_link *l)
{
	return VB_CONTAINER_OF(l, struct fake, link);
}

static int fake_route(struct vb_link *l, struct vb_route *r)
{
	fake_of(l)->routes++;
	return 0;
}

static int fake_aim(struct vb_link *l, struct vb_route *r)
{
	fake_of(l)->aims++;
	return -EHOSTUNREACH;
}

static int fake_join(struct vb_link *l, const struct vb_link_group *g)
{
	struct fake *f = fake_of(l);

	f->joined += f->member >= 0;
	return f->member;
}

static void fake_leave(struct vb_link *l, int member)
{
	assert_int_equal(member, fake_of(l)->member);
	fake_of(l)->joined--;
}

static bool fake_send(struct vb_link *l, struct vb_txq *batch)
{
	struct fake *f = fake_of(l);

	f->sends++;
	for (; batch->first < batch->count; batch->first++) {
		const struct vb_tx_frame *frame = &batch->frames[batch->first];

		assert_int_equal(frame->route->v1, f == &v1);
		if (f->room == 0)
			return false;
		f->room--;
		f->sent[strlen(f->sent)] = (char)batch->bytes[frame->at];
	}
	vb_txq_reset(batch);
	return true;
}

static void fake_drop(struct vb_link *l, struct vb_txq *batch)
{
	fake_of(l)->drops++;
	fake_of(l)->lost += batch->count - batch->first;
	vb_txq_reset(batch);
}

static void fake_stats(const struct vb_link *l, struct vb_link_stats *out)
{
	*out = (struct vb_link_stats){ .tx_frames = 1, .rx_malformed = 2 };
}

static const struct vb_link_ops fake_ops = {
	.name = "fake",
	.route = fake_route,
	.aim = fake_aim,
	.join = fake_join,
	.leave = fake_leave,
	.send = fake_send,
	.drop = fake_drop,
	.stats = fake_stats,
};

static int fresh(void **state)
{
	v1 = v2 = (struct fake){ .link = { &fake_ops }, .room = 1000 };
	v1.member = 4;
	v2.member = 5;
	vb_txq_reset(&q);
	return vb_roce_open(&v1.link, &v2.link, &both);
}

static int gone(void **state)
{
	both->ops->close(both);
	return 0;
}

/* Fill the batch: a frame for each letter of @frames, which leaves by RoCEv1 if
 * the letter is a capital, and otherwise by RoCEv2. */
static void fill(const char *frames)
{
	for (; *frames; frames++) {
		memset(vb_txq_begin(&q), *frames, 16);
		vb_txq_commit(&q, 16, *frames < 'a' ? &to1 : &to2);
	}
}

static void send__each_frame_by_its_link_in_order(void **state)
{
	fill("abCDeFgH");
	assert_true(both->ops->send(both, &q));
	assert_string_equal(v1.sent, "CDFH");
	assert_string_equal(v2.sent, "abeg");
	assert_int_equal(v1.sends, 3);
	assert_int_equal(q.count, 0);
	assert_int_equal(q.used, 0);
	fill("x");
	assert_true(both->ops->send(both, &q));
	assert_string_equal(v2.sent, "abegx");
	assert_true(both->ops->send(both, &q));
}

/* If one of the two links has no room, its frames stay in the batch, and so do
 * all frames behind them. */
static void send__goes_on_where_there_was_no_room(void **state)
{
	fill("abCDeF");
	v1.room = 1;
	assert_false(both->ops->send(both, &q));
	assert_int_equal(q.first, 3);
	assert_int_equal(q.count, 6);
	assert_string_equal(v2.sent, "ab");
	assert_false(both->ops->send(both, &q));
	v1.room = 10;
	assert_true(both->ops->send(both, &q));
	assert_string_equal(v1.sent, "CDF");
	assert_string_equal(v2.sent, "abe");
}

static void drop__each_link_counts_its_own(void **state)
{
	fill("abCDeFgH");
	v1.room = 1;
	assert_false(both->ops->send(both, &q));
	both->ops->drop(both, &q);
	assert_int_equal(v1.lost, 3);
	assert_int_equal(v2.lost, 2);
	assert_int_equal(q.count, 0);
}

static void route__by_its_version(void **state)
{
	struct vb_route r = to1;

	assert_int_equal(both->ops->route(both, &r), 0);
	assert_int_equal(both->ops->aim(both, &r), -EHOSTUNREACH);
	assert_int_equal(v1.routes + 10 * v1.aims, 11);
	assert_int_equal(v2.routes + v2.aims, 0);
	r = to2;
	assert_int_equal(both->ops->route(both, &r), 0);
	assert_int_equal(v2.routes, 1);
}

static void join__by_both_and_more_than_the_table_had(void **state)
{
	const struct vb_link_group group = { .ifindex = 1 };
	int members[20], again;

	for (unsigned i = 0; i < 20; i++) {
		members[i] = both->ops->join(both, &group);
		assert_true(members[i] >= 0);
	}
	assert_int_equal(v1.joined, 20);
	assert_int_equal(v2.joined, 20);
	both->ops->leave(both, members[3]);
	assert_int_equal(v1.joined, 19);
	again = both->ops->join(both, &group);
	assert_int_equal(again, members[3]);
	for (unsigned i = 0; i < 20; i++)
		both->ops->leave(both, members[i]);
	assert_int_equal(v1.joined + v2.joined, 0);
}

static void join__where_one_cannot(void **state)
{
	const struct vb_link_group group = { .ifindex = 1 };
	int member;

	v2.member = -EINVAL;
	member = both->ops->join(both, &group);
	assert_true(member >= 0);
	both->ops->leave(both, member);
	assert_int_equal(v1.joined + v2.joined, 0);
	v1.member = -ENODEV;
	v2.member = 5;
	assert_int_equal(both->ops->join(both, &group), -ENODEV);
	assert_int_equal(v2.joined, 0);
}

static void stats__are_added(void **state)
{
	struct vb_link_stats s;

	both->ops->stats(both, &s);
	assert_int_equal(s.tx_frames, 2);
	assert_int_equal(s.rx_malformed, 4);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, fresh, gone)
	const struct CMUnitTest tests[] = {
		CASE(send__each_frame_by_its_link_in_order),
		CASE(send__goes_on_where_there_was_no_room),
		CASE(drop__each_link_counts_its_own),
		CASE(route__by_its_version),
		CASE(join__by_both_and_more_than_the_table_had),
		CASE(join__where_one_cannot),
		CASE(stats__are_added),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
