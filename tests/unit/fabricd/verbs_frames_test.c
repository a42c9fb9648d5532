/* SPDX-License-Identifier: BSD-2-Clause */
/* The frames of programs, step by step: the test is the process of a fabric,
 * and the programs, too. Two adapters, with LIDs 1 and 2, are linked to one
 * switch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "tests/support/fab_run.h"
#include "tests/support/fab_star.h"
#include "tests/support/verbs_guest.h"
#include "wire/grh.h"
#include "wire/ib_hdr.h"
#include "wire/lrh.h"

#define UD_SEND	 0x64
#define MLID	 0xc001
#define PAYLOAD	 2048
#define ADAPTERS 2

static struct vb_fabricd f;
static struct vb_fab_node *ca[ADAPTERS];
static vb_time now;

/* --- fakes of the rest of the fabric's process --- */

int vb_fabricd_watch(struct vb_fabricd *d, struct fd_watch *watch,
		     uint32_t events, bool again)
{
	return 0;
}

void vb_fabricd_unwatch(struct vb_fabricd *d, struct fd_watch *watch)
{
}

void vb_fabricd_mail(void *client, const void *bytes, size_t len)
{
}

void vb_fabricd_expel(void *client)
{
	fail_msg("no program of this test breaks a ring");
}

static enum vb_fab_taken take(void *arg, struct vb_fab_node *node, uint8_t port,
			      const uint8_t *bytes, size_t len, vb_time at)
{
	return vb_fabricd_verbs_hear(arg, node, port, bytes, len, at);
}

static void on_event(void *arg, struct vb_fab_node *node, uint8_t port,
		     const struct vb_fab_event_info *info, vb_time at)
{
	if (info->event == FAB_EV_ROOM)
		vb_fabricd_verbs_room(arg, node, port, at);
}

/* --- the network --- */

static int start(void **state)
{
	const struct vb_fab_ops ops = { .on_local = take,
					.on_event = on_event,
					.arg = &f };
	const struct vb_fab_link_spec link = { .buffer = 80 };
	struct vb_fab_node *sw;

	memset(&f, 0, sizeof(f));
	now = vb_clock_read();
	f.net = vb_fab_net_create(&ops, 1);
	assert_non_null(f.net);
	sw = star_add(f.net, FAB_SWITCH, ADAPTERS);
	for (uint8_t i = 0; i < ADAPTERS; i++) {
		ca[i] = star_add(f.net, FAB_CA, 1);
		assert_int_equal(
			vb_fab_link(f.net, sw, i + 1, ca[i], 1, &link, now), 0);
		ca[i]->port[1].lid = i + 1;
		sw->sw.linear[i + 1] = i + 1;
	}
	now += VB_SEC;
	fab_run(f.net, now);
	for (uint8_t i = 0; i < ADAPTERS; i++) {
		star_activate(f.net, sw, i + 1, now);
		star_activate(f.net, ca[i], 1, now);
	}
	sw->sw.linear_top = ADAPTERS;
	return 0;
}

static int finish(void **state)
{
	vb_fabricd_verbs_free(&f);
	vb_fab_net_destroy(f.net);
	return 0;
}

static void step(vb_time span)
{
	now += span;
	while (vb_fabricd_verbs_run(&f, now))
		;
	fab_run(f.net, now);
}

/* --- the programs --- */

/* Write a BTH and a DETH. */
static void put_bth(uint8_t *bth, uint32_t dqpn, uint32_t sqpn)
{
	bth[0] = UD_SEND;
	vb_store_be(bth + 2, 0xffff, 2);
	vb_store_be(bth + 5, dqpn, 3);
	vb_store_be(bth + VB_BTH_BYTES + 5, sqpn, 3);
}

/* Put a datagram for the queue pair @dqpn at @dlid into the ring of @from, with
 * this GRH if it is not NULL. False: there is no room. */
static bool put_to(struct guest *from, uint16_t dlid, uint32_t dqpn,
		   const struct vb_grh *grh, uint32_t payload)
{
	const uint32_t head = VB_LRH_BYTES + (grh ? VB_GRH_BYTES : 0);
	const uint32_t len = head + VB_BTH_BYTES + 8 + payload + VB_ICRC_BYTES;
	const struct vb_lrh h = { .lnh = grh ? LNH_GLOBAL : LNH_LOCAL,
				  .dlid = dlid,
				  .slid = from->port.lid,
				  .words = (uint16_t)(len / 4) };
	uint8_t *at = vb_shring_begin(&from->out, len);

	if (!at)
		return false;
	memset(at, 0, len);
	vb_lrh_put(at, &h);
	if (grh)
		vb_grh_put(at + VB_LRH_BYTES, grh);
	put_bth(at + head, dqpn, from->port.slot << VB_QPN_BITS);
	vb_shring_commit(&from->out, len);
	(void)!vb_shring_publish(&from->out);
	vb_fabricd_verbs_busy(from->p, now);
	return true;
}

static bool put(struct guest *from, const struct guest *to, uint32_t payload)
{
	return put_to(from, to->port.lid, to->port.slot << VB_QPN_BITS, NULL,
		      payload);
}

/* Returns how many frames have come to @g, and gives their room back. */
static unsigned count_frames(struct guest *g)
{
	unsigned n = 0;
	uint32_t len;

	while (vb_shring_next(&g->in, &len))
		n++;
	assert_int_equal(len, 0);
	if (vb_shring_release(&g->in))
		vb_fabricd_verbs_bell(&g->p->bell, EPOLLIN, now);
	return n;
}

static struct vb_gid gid_of(const struct guest *g)
{
	struct vb_gid gid;

	vb_store_be(gid.raw, g->port.gid_prefix, 8);
	vb_store_be(gid.raw + 8, g->port.guid[0], 8);
	return gid;
}

/* @from sends to @to, which reads nothing, until @from's own ring is full. */
static void flood(struct guest *from, const struct guest *to)
{
	for (unsigned idle = 0; idle < 3; step(VB_USEC))
		idle = put(from, to, PAYLOAD) ? 0 : idle + 1;
}

/* --- tests --- */

static bool is_busy(const struct verbs_program *p)
{
	for (const struct vb_chain *c = f.verbs.busy; c; c = c->next)
		if (c == &p->busy)
			return true;
	return false;
}

/* A program that has ended is freed, so no list may contain it. */
static void verbs__one_that_floods_itself_leaves(void **state)
{
	struct guest a;

	guest_attach(&a, &f, ca[0]);
	flood(&a, &a);
	assert_true(a.p->waits);
	assert_true(a.p->full_at != VB_NEVER);
	guest_leave(&a);
	assert_false(is_busy(a.p));
	assert_false(a.p->waits);
	assert_int_equal(f.verbs.full, 0);
	step(VB_MSEC);
}

static void verbs__two_that_flood_each_other_leave(void **state)
{
	struct guest a, b;

	guest_attach(&a, &f, ca[0]);
	guest_attach(&b, &f, ca[0]);
	flood(&a, &b);
	flood(&b, &a);
	assert_true(a.p->waits && b.p->waits);
	guest_leave(&a);
	assert_false(is_busy(a.p));
	guest_leave(&b);
	assert_false(is_busy(b.p));
	assert_int_equal(f.verbs.full, 0);
	step(VB_MSEC);
}

/* Let @g take one frame. True: @g must ring the fabric's process. */
static bool take_one(struct guest *g)
{
	uint32_t len;

	assert_non_null(vb_shring_next(&g->in, &len));
	return vb_shring_release(&g->in);
}

/* A program that reads without pause does not count as stopped, even if others
 * fill the room that it makes at once. */
static void verbs__one_that_reads_slowly(void **state)
{
	struct guest a, b, c;

	guest_attach(&a, &f, ca[0]);
	guest_attach(&b, &f, ca[0]);
	guest_attach(&c, &f, ca[0]);
	flood(&a, &b);
	assert_true(a.p->waits);
	for (unsigned i = 0; i < 20; i++) {
		assert_false(take_one(&b));
		assert_true(put(&c, &b, PAYLOAD));
		step(40 * VB_MSEC);
		assert_false(b.p->stalled);
	}
	assert_int_equal(b.p->dropped, 0);
	step(300 * VB_MSEC); /* from now on the program reads nothing */
	step(300 * VB_MSEC);
	assert_true(b.p->stalled);
	guest_leave(&a);
	guest_leave(&b);
	guest_leave(&c);
}

/* The fabric's process was rung because a ring has room, and finds it full
 * again: the next room must ring it again. */
static void verbs__a_ring_that_is_full_again(void **state)
{
	struct guest a, b;

	guest_attach(&a, &f, ca[0]);
	guest_attach(&b, &f, ca[0]);
	flood(&a, &b);
	while (!take_one(&b))
		;
	/* as if the fabric had given the room to other programs first */
	a.p->waits = false;
	vb_fabricd_verbs_busy(a.p, now);
	flood(&a, &b);
	vb_fabricd_verbs_bell(&b.p->bell, EPOLLIN, now);
	for (unsigned i = 0; !take_one(&b); i++)
		assert_true(i < 1000);
	guest_leave(&a);
	guest_leave(&b);
}

/* The memory that a program writes is read-only for the fabric's process, and
 * the other way round: the kernel refuses to store a byte there. */
static void verbs__each_side_writes_its_own(void **state)
{
	struct guest a;
	int zero = open("/dev/zero", O_RDONLY);

	assert_true(zero >= 0);
	guest_attach(&a, &f, ca[0]);
	assert_int_equal(read(zero, a.p->own, 1), 1);
	assert_int_equal(read(zero, a.own, 1), 1);
	assert_int_equal(read(zero, a.p->theirs, 1), -1);
	assert_int_equal(read(zero, a.theirs, 1), -1);
	guest_leave(&a);
	close(zero);
}

/* A program cannot send under another's address: source GID and length in a
 * frame's GRH must be its own. */
static void verbs__what_a_grh_may_say(void **state)
{
	const uint32_t payload = 32;
	const struct vb_gid other = { { 0xfe, 0x80, [15] = 99 } };
	struct guest a, b;
	struct vb_grh good, bad[4];

	guest_attach(&a, &f, ca[0]);
	guest_attach(&b, &f, ca[1]);
	good = (struct vb_grh){
		.sgid = gid_of(&a),
		.dgid = gid_of(&b),
		.udp_bytes = VB_BTH_BYTES + 8 + payload + VB_ICRC_BYTES,
		.iba = true,
	};
	for (unsigned i = 0; i < VB_COUNT(bad); i++)
		bad[i] = good;
	bad[0].sgid = other;
	bad[1].udp_bytes += 4;
	bad[2].iba = false;
	memset(bad[3].sgid.raw + 8, 0, 8);
	for (unsigned i = 0; i < VB_COUNT(bad); i++) {
		assert_true(put_to(&a, b.port.lid, b.port.slot << VB_QPN_BITS,
				   &bad[i], payload));
		step(10 * VB_USEC);
		assert_int_equal(a.p->refused, i + 1);
	}
	assert_true(put_to(&a, b.port.lid, b.port.slot << VB_QPN_BITS, &good,
			   payload));
	for (unsigned i = 0; i < 3; i++) /* time to cross the switch */
		step(VB_MSEC);
	assert_int_equal(count_frames(&b), 1);
	guest_leave(&a);
	guest_leave(&b);
}

/* The fabric's process runs on the processor with this number. */
#define HERE  3
#define THERE 4

static void run_on(struct guest *g, unsigned processor)
{
	struct vb_shring_side *side = g->own;

	atomic_store(&side->processor, processor + 1);
}

/* Let @to get a frame of @from that crosses the switch. */
static void cross(struct guest *from, struct guest *to)
{
	assert_true(put(from, to, 32));
	for (unsigned i = 0; i < 3; i++)
		step(VB_USEC);
	assert_int_equal(count_frames(to), 1);
}

/* The fabric's process awaits an answer only of a program that runs on another
 * processor; meanwhile that program need not ring. */
static void verbs__an_answer_is_awaited(void **state)
{
	struct guest a, b;

	guest_attach(&a, &f, ca[0]);
	guest_attach(&b, &f, ca[1]);
	step(VB_MSEC);
	assert_false(vb_fabricd_verbs_rest(&f));
	assert_false(vb_fabricd_verbs_await(&f, HERE, now));
	run_on(&a, HERE);
	run_on(&b, THERE);
	cross(&a, &b);
	assert_true(vb_fabricd_verbs_await(&f, HERE, now));
	assert_true(is_busy(b.p));
	/* the answer would come from the program on this processor */
	cross(&b, &a);
	assert_false(vb_fabricd_verbs_await(&f, HERE, now));
	cross(&b, &a);
	assert_true(vb_fabricd_verbs_await(&f, THERE, now));
	step(VB_LOOKS_ANSWER);
	assert_false(vb_fabricd_verbs_await(&f, THERE, now));
	guest_leave(&a);
	assert_false(vb_fabricd_verbs_await(&f, THERE, now));
	guest_leave(&b);
}

/* The process does not await the answer of a program that sleeps, since waking
 * that program takes too long. */
static void verbs__no_answer_of_a_sleeper_is_awaited(void **state)
{
	struct guest a, b;

	guest_attach(&a, &f, ca[0]);
	guest_attach(&b, &f, ca[1]);
	run_on(&a, HERE);
	run_on(&b, THERE);
	assert_true(vb_shring_sleep(&b.in));
	cross(&a, &b);
	assert_false(vb_fabricd_verbs_await(&f, HERE, now));
	guest_leave(&a);
	guest_leave(&b);
}

/* How often @g was rung since the last call. */
static unsigned count_bells(struct guest *g)
{
	char bells[256];
	ssize_t n =
		recv(g->fds[VERBS_FD_BELL], bells, sizeof(bells), MSG_DONTWAIT);

	return n > 0 ? (unsigned)n : 0;
}

/* @from sends @count frames to @to, at the same adapter, within @span. */
static void send_row(struct guest *from, struct guest *to, unsigned count,
		     vb_time span)
{
	for (unsigned i = 0; i < count; i++) {
		assert_true(put(from, to, 32));
		step(span / count);
		vb_fabricd_verbs_ring(&f, false, now);
	}
}

/* While frames for other programs come, a program that sleeps is not rung for
 * each of its frames: one bell is enough for all. It does not wait for long. */
static void verbs__one_bell_for_many_frames(void **state)
{
	struct guest a, b;

	guest_attach(&a, &f, ca[0]);
	guest_attach(&b, &f, ca[0]);
	assert_true(vb_shring_sleep(&b.in));
	send_row(&a, &b, 20, 20 * VB_USEC);
	assert_int_equal(count_bells(&b), 0);
	vb_fabricd_verbs_ring(&f, true, now); /* the process has nothing else to
					       * do */
	assert_int_equal(count_bells(&b), 1);
	vb_fabricd_verbs_ring(&f, true, now + VB_SEC);
	assert_int_equal(count_bells(&b), 0);
	assert_int_equal(count_frames(&b), 20);

	vb_shring_wake(&b.in);
	assert_true(vb_shring_sleep(&b.in));
	send_row(&a, &b, 100, 20 * VB_USEC); /* many frames within a short time
					      */
	assert_int_equal(count_bells(&b), 1);
	assert_int_equal(count_frames(&b), 100);

	vb_shring_wake(&b.in);
	assert_true(vb_shring_sleep(&b.in));
	send_row(&a, &b, 10, 100 * VB_USEC); /* few frames, over a long time */
	assert_int_equal(count_bells(&b), 1);
	guest_leave(&a);
	guest_leave(&b);
}

/* No list holds a program that has ended before it was rung. */
static void verbs__one_that_is_owed_a_bell_leaves(void **state)
{
	struct guest a, b;

	guest_attach(&a, &f, ca[0]);
	guest_attach(&b, &f, ca[0]);
	assert_true(vb_shring_sleep(&b.in));
	send_row(&a, &b, 1, VB_USEC);
	assert_non_null(f.verbs.owed);
	guest_leave(&b);
	assert_null(f.verbs.owed);
	guest_leave(&a);
}

/* A program counts as sharing this processor if it was busy lately, and ran
 * here last or has not announced where it runs. */
static void verbs__a_program_shares_the_processor(void **state)
{
	struct guest a, b;

	guest_attach(&a, &f, ca[0]);
	guest_attach(&b, &f, ca[1]);
	assert_true(vb_fabricd_verbs_share(&f, HERE));
	run_on(&a, HERE);
	run_on(&b, THERE);
	assert_true(vb_fabricd_verbs_share(&f, HERE));
	run_on(&a, THERE);
	assert_false(vb_fabricd_verbs_share(&f, HERE));
	assert_true(vb_fabricd_verbs_share(&f, THERE));
	step(VB_MSEC); /* the programs have sent nothing for a while */
	assert_false(vb_fabricd_verbs_share(&f, THERE));
	guest_leave(&a);
	guest_leave(&b);
}

/* A frame to a multicast group reaches the group's members only, even if it
 * names one queue pair. */
static void verbs__a_group_is_no_queue_pair(void **state)
{
	const struct vb_verbs_group g = {
		.head = { .kind = VERBS_JOIN },
		.mlid = MLID,
	};
	struct guest a, b;

	guest_attach(&a, &f, ca[0]);
	guest_attach(&b, &f, ca[0]);
	assert_int_equal(vb_fabricd_verbs_group(b.p, &g), 0);
	assert_true(put_to(&a, MLID, b.port.slot << VB_QPN_BITS, NULL, 32));
	step(VB_MSEC);
	assert_int_equal(count_frames(&b), 0);
	assert_int_equal(a.p->refused, 1);
	assert_true(put_to(&a, MLID, VB_QPN_MULTICAST, NULL, 32));
	step(VB_MSEC);
	assert_int_equal(count_frames(&b), 1);
	guest_leave(&a);
	guest_leave(&b);
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, start, finish)
	const struct CMUnitTest tests[] = {
		TEST(verbs__one_that_floods_itself_leaves),
		TEST(verbs__two_that_flood_each_other_leave),
		TEST(verbs__one_that_reads_slowly),
		TEST(verbs__a_ring_that_is_full_again),
		TEST(verbs__each_side_writes_its_own),
		TEST(verbs__what_a_grh_may_say),
		TEST(verbs__a_group_is_no_queue_pair),
		TEST(verbs__an_answer_is_awaited),
		TEST(verbs__no_answer_of_a_sleeper_is_awaited),
		TEST(verbs__one_bell_for_many_frames),
		TEST(verbs__one_that_is_owed_a_bell_leaves),
		TEST(verbs__a_program_shares_the_processor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
