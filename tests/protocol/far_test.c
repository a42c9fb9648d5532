/* SPDX-License-Identifier: BSD-2-Clause */
/* Links between two processes: how they come up and go down, and what a forger
 * or a stranger can do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fabric/net_priv.h"
#include "tests/support/far.h"

#define GB    1000000000u
#define FRAME (2048 + 48)
#define PORT  3

static const struct vb_fab_link_spec plain;

static struct vb_fab_port *port_of(struct far_world *w, unsigned side)
{
	return &w->side[side].sw->port[PORT];
}

static enum vb_far_state state_of(const struct far_world *w, unsigned side)
{
	return vb_far_status(w->side[side].far)->state;
}

static void begin(struct far_world *w, const struct vb_fab_link_spec *spec)
{
	farw_init(w, 1, spec, 0);
	farw_start(w, 0);
	farw_start(w, 1);
	farw_run(w, 50 * VB_MSEC);
	assert_true(farw_is_up(w));
	farw_activate(w);
}

/* Send @count frames from side 0 to side 1. Returns how many arrive. */
static uint64_t send_some(struct far_world *w, uint64_t count)
{
	struct stream *s =
		fabt_stream(&w->t, w->side[0].ca, w->side[1].ca, FRAME);

	s->most = count;
	farw_run(w, 100 * VB_MSEC);
	return w->t.stream[w->t.streams - 1].got;
}

static void link__comes_up_and_carries_frames(void **state)
{
	struct far_world w;

	begin(&w, &plain);
	assert_int_equal(state_of(&w, 0), FAR_IS_UP);
	assert_int_equal(port_of(&w, 0)->width_active, FAB_4X);
	assert_int_equal(port_of(&w, 1)->speed_active, FAB_QDR);
	assert_int_equal(send_some(&w, 1000), 1000);
	assert_int_equal(w.t.bad_icrc + w.t.disordered + w.t.foreign, 0);
	farw_fini(&w);
}

static void link__waits_for_the_other_process(void **state)
{
	struct far_world w;

	farw_init(&w, 1, &plain, 0);
	farw_start(&w, 0);
	farw_run(&w, 10 * VB_SEC);
	assert_int_equal(state_of(&w, 0), FAR_IS_SILENT);
	assert_int_equal(port_of(&w, 0)->state, FAB_DOWN);
	/* A side without a peer sends ten hello messages in a second. */
	assert_in_range(w.side[0].sent, 95, 105);
	farw_start(&w, 1);
	farw_run(&w, 150 * VB_MSEC);
	assert_true(farw_is_up(&w));
	farw_fini(&w);
}

static void silence__takes_the_link_down_at_both_ends(void **state)
{
	struct far_world w;

	begin(&w, &plain);
	w.cut = true;
	farw_run(&w, VB_FAR_SILENCE - 200 * VB_MSEC);
	assert_int_equal(port_of(&w, 0)->state, FAB_ACTIVE);
	farw_run(&w, 300 * VB_MSEC);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(port_of(&w, i)->state, FAB_DOWN);
		assert_int_equal(port_of(&w, i)->count[FAB_LINK_DOWNED], 1);
		assert_true(w.side[i].sw->sw.state_change);
	}
	w.cut = false;
	farw_run(&w, 250 * VB_MSEC);
	assert_true(farw_is_up(&w));
	farw_activate(&w);
	assert_int_equal(send_some(&w, 100), 100);
	farw_fini(&w);
}

/* A process is killed by SIGKILL and started again at once: the other end of
 * the link sees the link go down. */
static void restart__is_seen_at_once(void **state)
{
	struct far_world w;

	begin(&w, &plain);
	farw_kill(&w, 1);
	farw_run(&w, 100 * VB_MSEC);
	assert_int_equal(port_of(&w, 0)->state, FAB_ACTIVE);
	farw_start(&w, 1);
	farw_run(&w, 50 * VB_MSEC);
	assert_int_equal(port_of(&w, 0)->count[FAB_LINK_DOWNED], 1);
	assert_int_equal(port_of(&w, 0)->state, FAB_INIT);
	assert_int_equal(port_of(&w, 1)->state, FAB_INIT);
	farw_activate(&w);
	assert_int_equal(send_some(&w, 100), 100);
	farw_fini(&w);
}

static void cable__pulled_at_one_end_is_out_at_both(void **state)
{
	struct far_world w;

	begin(&w, &plain);
	assert_int_equal(
		vb_fab_plug(w.t.net, w.side[0].sw, PORT, false, w.t.now), 0);
	farw_run(&w, 20 * VB_MSEC);
	assert_int_equal(port_of(&w, 1)->state, FAB_DOWN);
	assert_int_equal(state_of(&w, 1), FAR_IS_DOWN);
	farw_run(&w, 5 * VB_SEC);
	assert_int_equal(port_of(&w, 1)->state, FAB_DOWN);
	assert_int_equal(
		vb_fab_plug(w.t.net, w.side[0].sw, PORT, true, w.t.now), 0);
	farw_run(&w, 50 * VB_MSEC);
	assert_true(farw_is_up(&w));
	/* Plugging in a cable that is plugged in changes nothing. */
	assert_int_equal(
		vb_fab_plug(w.t.net, w.side[0].sw, PORT, true, w.t.now), 0);
	farw_run(&w, 50 * VB_MSEC);
	assert_int_equal(port_of(&w, 1)->count[FAB_LINK_DOWNED], 1);
	farw_fini(&w);
}

/* Management disables the port of one end, and enables it again. */
static void port__disabled_by_management(void **state)
{
	struct far_world w;

	begin(&w, &plain);
	assert_int_equal(vb_fab_set_phys(w.t.net, w.side[1].sw, PORT,
					 FAB_DISABLED, w.t.now),
			 0);
	farw_run(&w, 20 * VB_MSEC);
	assert_int_equal(port_of(&w, 0)->state, FAB_DOWN);
	assert_int_equal(port_of(&w, 1)->phys, FAB_DISABLED);
	assert_int_equal(vb_fab_set_phys(w.t.net, w.side[1].sw, PORT,
					 FAB_POLLING, w.t.now),
			 0);
	farw_run(&w, 50 * VB_MSEC);
	assert_true(farw_is_up(&w));
	/* A Set of PortState to Down makes the link train anew. */
	assert_int_equal(vb_fab_set_state(w.t.net, w.side[0].sw, PORT, FAB_DOWN,
					  w.t.now),
			 0);
	farw_run(&w, 50 * VB_MSEC);
	assert_true(farw_is_up(&w));
	/* The end at which management acts does not count LinkDowned. */
	assert_int_equal(port_of(&w, 0)->count[FAB_LINK_DOWNED], 1);
	assert_int_equal(port_of(&w, 1)->count[FAB_LINK_DOWNED], 1);
	farw_fini(&w);
}

static void widths__without_one_in_common(void **state)
{
	struct far_world w;

	begin(&w, &plain);
	port_of(&w, 0)->width_enabled = FAB_1X;
	port_of(&w, 1)->width_enabled = FAB_4X;
	assert_int_equal(vb_fab_set_state(w.t.net, w.side[0].sw, PORT, FAB_DOWN,
					  w.t.now),
			 0);
	w.side[0].sent = 0;
	farw_run(&w, VB_SEC);
	assert_false(farw_is_up(&w));
	/* Ends whose ports cannot train repeat their hello messages, but
	 * seldom. */
	assert_true(w.side[0].sent < 500);
	port_of(&w, 1)->width_enabled = FAB_1X | FAB_4X;
	farw_run(&w, 250 * VB_MSEC);
	assert_true(farw_is_up(&w));
	assert_int_equal(port_of(&w, 1)->width_active, FAB_1X);
	farw_fini(&w);
}

/* Give side 0 a hello message as side 1 would send it. A case changes fields of
 * it first. */
static void forge_hello(struct far_world *w, const struct vb_far_hello *h)
{
	uint8_t bytes[VB_FAR_HELLO_BYTES];

	vb_far_hello_put(bytes, h);
	farw_forge(w, 0, bytes, sizeof(bytes));
	farw_run(w, 20 * VB_MSEC);
}

static struct vb_far_hello hello_of(const struct far_world *w, unsigned side)
{
	struct vb_far_hello h = {
		.mine = 77,
		.from = { w->side[side].sw->guid, PORT },
		.want = { w->side[!side].sw->guid, PORT },
		.phase = FAR_TRAIN,
		.width = 3,
		.speed = 7,
	};

	return h;
}

static void stranger__is_refused_with_the_cause(void **state)
{
	struct vb_far_hello h;
	uint8_t bytes[VB_FAR_HELLO_BYTES];
	struct far_world w;

	farw_init(&w, 1, &plain, 0);
	farw_start(&w, 0);
	h = hello_of(&w, 1);
	h.from.guid++;
	forge_hello(&w, &h);
	assert_int_equal(state_of(&w, 0), FAR_IS_OTHER);
	h = hello_of(&w, 1);
	h.want.port++;
	forge_hello(&w, &h);
	assert_int_equal(state_of(&w, 0), FAR_IS_OTHER);
	h = hello_of(&w, 1);
	h.extended = true;
	forge_hello(&w, &h);
	assert_int_equal(state_of(&w, 0), FAR_IS_CREDITS);
	h = hello_of(&w, 1);
	vb_far_hello_put(bytes, &h);
	bytes[3] = 9;
	farw_forge(&w, 0, bytes, sizeof(bytes));
	assert_int_equal(state_of(&w, 0), FAR_IS_VERSION);
	assert_int_equal(vb_far_status(w.side[0].far)->version, 9);
	assert_int_equal(port_of(&w, 0)->state, FAB_DOWN);
	/* The refused hello messages do not prevent the link with the right
	 * peer. */
	farw_start(&w, 1);
	farw_run(&w, 150 * VB_MSEC);
	assert_true(farw_is_up(&w));
	farw_fini(&w);
}

/* A forger who does not get our messages does not know our nonce. So it can
 * neither end a session nor make us accept frames. */
static void forger__without_our_nonce_does_nothing(void **state)
{
	uint8_t bytes[VB_FAR_MESSAGE];
	struct vb_far_data d = { .to = 1, .seq = 1u << 30 };
	struct vb_far_hello h;
	struct far_world w;
	uint64_t before;

	begin(&w, &plain);
	for (unsigned phase = FAR_DOWN; phase <= FAR_ASK + 1; phase++) {
		h = hello_of(&w, 1);
		h.phase = (uint8_t)phase;
		h.to = phase;
		forge_hello(&w, &h);
	}
	assert_int_equal(port_of(&w, 0)->state, FAB_ACTIVE);
	before = port_of(&w, 0)->count[FAB_RCV_PKTS];
	memset(bytes, 0, sizeof(bytes));
	vb_far_data_put(bytes, &d);
	for (size_t len = 0; len < sizeof(bytes); len += 61)
		farw_forge(&w, 0, bytes, len);
	assert_true(vb_far_status(w.side[0].far)->forged > 200);
	assert_int_equal(port_of(&w, 0)->count[FAB_RCV_PKTS], before);
	/* The end answers some of the hello messages, but not each of them. */
	w.side[0].sent = 0;
	for (unsigned i = 0; i < 1000; i++) {
		h = hello_of(&w, 1);
		vb_far_hello_put(bytes, &h);
		farw_forge(&w, 0, bytes, VB_FAR_HELLO_BYTES);
	}
	assert_true(w.side[0].sent <= 1);
	assert_int_equal(send_some(&w, 100), 100);
	farw_fini(&w);
}

static bool is_taken(const uint8_t *bytes, size_t len)
{
	enum vb_far_kind kind;
	unsigned version;

	return vb_far_look(bytes, len, &kind, &version) == FAR_GOOD;
}

/* The end accepts the header @bytes as it is, and no header that differs in one
 * bit. */
static void change_each_bit(uint8_t *bytes, size_t len)
{
	assert_true(is_taken(bytes, len));
	for (size_t bit = 0; bit < 8 * len; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_false(is_taken(bytes, len));
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

/* If the carrier could change a sequence number unnoticed, an old message would
 * be accepted as a new one. */
static void header__with_a_changed_bit_is_not_taken(void **state)
{
	const struct vb_far_data d = { .to = 0x1122334455667788, .seq = 5 };
	const struct vb_far_hello h = { .mine = 1, .phase = FAR_TRAIN };
	uint8_t bytes[VB_FAR_HELLO_BYTES];

	vb_far_data_put(bytes, &d);
	change_each_bit(bytes, VB_FAR_DATA_BYTES);
	vb_far_hello_put(bytes, &h);
	change_each_bit(bytes, VB_FAR_HELLO_BYTES);
}

/* The authenticated peer misbehaves: its records have wrong lengths, its frames
 * are random bytes, and it sends more than its credits. The port counts these
 * errors, and only this link is affected. */
static void peer__that_lies_harms_only_its_link(void **state)
{
	struct far_world w;
	struct vb_far *liar;
	uint8_t bytes[4400];

	begin(&w, &plain);
	liar = w.side[1].far;
	for (unsigned i = 0; i < 3000; i++) {
		size_t len = fabt_random(&w.t) % sizeof(bytes);

		for (size_t k = 0; k < len; k++)
			bytes[k] = (uint8_t)fabt_random(&w.t);
		if (i % 3 == 0)
			bytes[0] &= 0x30; /* only VLs that the receiving port
					   * has */
		vb_far_carry(liar, bytes, len);
		if (i % 50 == 0)
			farw_run(&w, 100 * VB_USEC);
	}
	farw_run(&w, 10 * VB_MSEC);
	assert_true(port_of(&w, 0)->count[FAB_RCV_ERRORS] > 100);
	for (unsigned vl = 0; vl < DATA_VLS; vl++) {
		const struct vb_fc *f = &port_of(&w, 0)->end->flow[vl];

		assert_true(f->used <= f->size);
	}
	assert_int_equal(w.t.bad_icrc + w.t.foreign, 0);
	farw_fini(&w);
}

/* The peer sends good frames without credits. Those for which the port has no
 * room are dropped. If this goes on for OverrunErrors periods of 1 ms, the port
 * reports an event, which management sends as trap 130. */
static void peer__that_sends_without_credits_is_an_overrun(void **state)
{
	uint8_t bytes[VB_FAB_FRAME_MAX] = { 0 };
	struct far_world w;
	struct stream *s;
	uint16_t crc;
	uint64_t dropped;

	begin(&w, &plain);
	s = fabt_stream(&w.t, w.side[1].ca, w.side[0].ca, FRAME);
	s->most = 0;
	s->next = VB_NEVER;
	fabt_frame(s, 0, w.t.now, bytes);
	crc = vb_vcrc(bytes, FRAME);
	bytes[FRAME] = (uint8_t)crc;
	bytes[FRAME + 1] = (uint8_t)(crc >> 8);
	w.t.hold_of_2_32 = ~0u;
	port_of(&w, 0)->overrun_errors = 5;
	for (unsigned period = 0; period < 5; period++) {
		assert_int_equal(w.t.events[FAB_EV_OVERRUN], 0);
		for (unsigned i = 0; i < 100; i++)
			assert_int_equal(vb_fab_arrive(w.t.net, w.side[0].sw,
						       PORT, bytes, FRAME + 2,
						       w.t.now),
					 0);
		farw_run(&w, VB_MSEC);
	}
	dropped = port_of(&w, 0)->count[FAB_RCV_OVERRUN];
	assert_true(dropped > 300 && dropped < 500);
	assert_int_equal(port_of(&w, 0)->count[FAB_RCV_ERRORS], dropped);
	assert_int_equal(w.t.events[FAB_EV_OVERRUN], 1);
	assert_int_equal(port_of(&w, 0)->count[FAB_OVERRUNS], 1);
	farw_fini(&w);
}

/* A range extender has a buffer as long as the link, although the topology
 * gives no size. It keeps a long link busy, which credits of 12 bits alone
 * cannot. */
static void extender__keeps_a_long_link_full(void **state)
{
	for (unsigned extended = 0; extended < 2; extended++) {
		struct vb_fab_link_spec spec = {
			.bytes_per_sec = GB,
			.delay = 500 * VB_USEC,
			.extended = extended,
		};
		struct far_world w;
		struct stream *s;
		double rate;
		uint64_t before;

		begin(&w, &spec);
		s = fabt_stream(&w.t, w.side[0].ca, w.side[1].ca, FRAME);
		farw_run(&w, 20 * VB_MSEC);
		s = &w.t.stream[0];
		before = s->got_bytes;
		farw_run(&w, 50 * VB_MSEC);
		rate = (double)(s->got_bytes - before) / 50e6;
		print_message("1 GB/s, 500 us%s: %.3f GB/s\n",
			      extended ? ", extender" : "", rate);
		assert_true(extended ? rate > 0.95 : rate > 0.1 && rate < 0.13);
		assert_int_equal(s->lost, 0);
		farw_fini(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(link__comes_up_and_carries_frames),
		cmocka_unit_test(link__waits_for_the_other_process),
		cmocka_unit_test(silence__takes_the_link_down_at_both_ends),
		cmocka_unit_test(restart__is_seen_at_once),
		cmocka_unit_test(cable__pulled_at_one_end_is_out_at_both),
		cmocka_unit_test(port__disabled_by_management),
		cmocka_unit_test(widths__without_one_in_common),
		cmocka_unit_test(stranger__is_refused_with_the_cause),
		cmocka_unit_test(forger__without_our_nonce_does_nothing),
		cmocka_unit_test(header__with_a_changed_bit_is_not_taken),
		cmocka_unit_test(peer__that_lies_harms_only_its_link),
		cmocka_unit_test(
			peer__that_sends_without_credits_is_an_overrun),
		cmocka_unit_test(extender__keeps_a_long_link_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
