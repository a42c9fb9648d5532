/* SPDX-License-Identifier: BSD-2-Clause */
/* Which queue pair gets a frame that arrived, and which frames are dropped. */
#include "tests/unit/engine/dispatch_rig.h"

static void dispatch__a_run_is_one_step(void **state)
{
	struct rig *r = rig_up(*state, QPS_RTS);

	for (int i = 0; i < 4; i++)
		add_frame(r, CODE_SEND_ONLY);
	assert_int_equal(dispatch(r, 0), 4);
	assert_int_equal(heard.steps, 1);
	rig_down(r);
}

/* The thread that dispatches may have read the clock before the thread that
 * drove the queue pair last did. */
static void dispatch__time_never_goes_back(void **state)
{
	struct rig *r = rig_up(*state, QPS_RTS);

	r->qp->now = 500;
	add_frame(r, CODE_SEND_ONLY);
	assert_int_equal(dispatch(r, 300), 1);
	assert_int_equal(heard.at, 500);
	assert_int_equal(r->qp->now, 500);
	add_frame(r, CODE_SEND_ONLY);
	assert_int_equal(dispatch(r, 501), 1);
	assert_int_equal(heard.at, 501);
	rig_down(r);
}

static bool can_wait_now(const struct vb_qp *qp)
{
	return true;
}

static uint32_t waits_until_7(const struct vb_qp *qp)
{
	return 7;
}

/* While a queue pair can wait for more requests, it defers its doorbell, until
 * a packet arrives for it. */
static void dispatch__defers_while_it_can_wait(void **state)
{
	struct rig *r = rig_up(*state, QPS_RTS);
	struct vb_sq *sq = &r->qp->sq;

	r->ops.waits_until = waits_until_7;
	r->ops.can_wait = can_wait_now;
	add_frame(r, CODE_ACK);
	assert_int_equal(dispatch(r, 0), 1);
	assert_int_equal(heard.steps, 0);
	assert_true(vb_sq_is_deferred(sq));
	r->ops.can_wait = cannot_wait;
	add_frame(r, CODE_ACK);
	assert_int_equal(dispatch(r, 0), 1);
	assert_int_equal(heard.steps, 1);
	assert_false(vb_sq_is_deferred(sq));
	rig_down(r);
}

static void hear_in_run(struct vb_qp *qp, const struct vb_ib_pkt *pkt,
			vb_time now)
{
	heard.received++;
	heard.in_run += heard.runs;
	assert_true(vb_mr_begin_next(qp->adapter, qp->pd, 0, heard.key, 0, 1, 0,
				     &heard.use));
}

static void note_run(struct vb_qp *qp, bool begins)
{
	assert_true(begins != heard.runs);
	heard.runs = begins;
	if (!begins)
		vb_mr_end(&heard.use);
}

/* A transport is told when several frames for it in a row begin and end, and is
 * told nothing about one frame alone. */
static void dispatch__a_run_ends(void **state)
{
	struct fixture *f = *state;
	struct rig *r = rig_up(f, QPS_RTS);
	struct vb_mr *mr;
	char byte;

	assert_int_equal(vb_mr_register(f->pd, &byte, 1, 0, 0, &mr), 0);
	heard.key = mr->key;
	r->ops.recv[0] = hear_in_run;
	r->ops.run = note_run;
	for (int i = 0; i < 3; i++)
		add_frame(r, CODE_WRITE_ONLY);
	(void)dispatch(r, 0);
	assert_int_equal(heard.in_run, 3);
	assert_false(heard.runs);
	assert_int_equal(mr->users, 0);
	add_frame(r, CODE_WRITE_ONLY);
	(void)dispatch(r, 0);
	assert_int_equal(heard.received, 4);
	assert_int_equal(heard.in_run, 3);
	vb_mr_end(&heard.use);
	assert_int_equal(vb_mr_deregister(mr), 0);
	rig_down(r);
}

/* The ACK leaves behind the reply, in one train of packets. A program that sees
 * the reply must see that the ACK has come, too. */
static void dispatch__answers_come_first(void **state)
{
	static const uint8_t sent[] = { CODE_SEND_ONLY, CODE_READ_RESP_ONLY,
					CODE_WRITE_ONLY, CODE_ACK };
	static const uint8_t order[] = { CODE_READ_RESP_ONLY, CODE_ACK,
					 CODE_SEND_ONLY, CODE_WRITE_ONLY };
	struct rig *r = rig_up(*state, QPS_RTS);

	for (unsigned i = 0; i < VB_COUNT(sent); i++)
		add_frame(r, sent[i]);
	assert_int_equal(dispatch(r, 0), 4);
	assert_memory_equal(heard.codes, order, sizeof(order));
	rig_down(r);
}

static enum vb_delayed_ack delayed_ack_later(struct vb_qp *qp, bool polls)
{
	return ACK_DELAYED;
}

static enum vb_delayed_ack delayed_ack_now(struct vb_qp *qp, bool polls)
{
	return ACK_NOW;
}

static bool unreplied(struct vb_qp *qp)
{
	return true;
}

static void dispatch__an_ack_waits_once(void **state)
{
	struct rig *r = rig_up(*state, QPS_RTS);

	r->ops.delayed_ack = delayed_ack_later;
	r->ops.unreplied = unreplied;
	add_frame(r, CODE_SEND_ONLY);
	dispatch(r, 0);
	/* No other thread would send a delayed ACK, so it is sent at once. */
	assert_int_equal(heard.steps, 1);
	atomic_store(&r->e.attentive, true);
	vb_sq_defer_doorbell(&r->qp->sq, 7);
	add_frame(r, CODE_SEND_ONLY);
	dispatch(r, 0);
	assert_int_equal(heard.steps, 1);
	/* The packet has resumed the doorbell, so that the program's reply is
	 * sent. */
	assert_false(vb_sq_is_deferred(&r->qp->sq));
	vb_mutex_lock(&r->e.rx);
	vb_drive_delayed_acks(&r->e, 0);
	assert_int_equal(heard.steps, 2);
	vb_drive_delayed_acks(&r->e, 0);
	vb_mutex_unlock(&r->e.rx);
	assert_int_equal(heard.steps, 2);
	r->ops.delayed_ack = delayed_ack_now;
	add_frame(r, CODE_SEND_ONLY);
	dispatch(r, 0);
	assert_int_equal(heard.steps, 3);
	assert_ptr_equal(r->e.delayed_ack_qp, r->qp);
	rig_down(r);
}

static void
dispatch__what_gathers_leaves_with_the_second_empty_poll(void **state)
{
	struct rig *r = rig_up(*state, QPS_RTS);
	struct vb_engine *e = &r->e;

	atomic_store(&e->gathers, r->qp);
	vb_drive_gathered(e, 0);
	assert_int_equal(heard.steps, 0);
	/* A program has posted a request to the queue pair since the last call
	 * of vb_drive_gathered(). */
	atomic_store(&e->gathers, r->qp);
	vb_drive_gathered(e, 0);
	assert_int_equal(heard.steps, 0);
	vb_drive_gathered(e, 0);
	assert_int_equal(heard.steps, 1);
	vb_drive_gathered(e, 0);
	assert_int_equal(heard.steps, 1);
	rig_down(r);
}

static void dispatch__state_decides(void **state)
{
	static const struct {
		enum vb_qp_state state;
		unsigned requests, responses;
	} rows[] = {
		{ QPS_RESET, 0, 0 }, { QPS_INIT, 0, 0 }, { QPS_RTR, 1, 0 },
		{ QPS_RTS, 1, 1 },   { QPS_SQD, 1, 1 },	 { QPS_ERR, 0, 0 },
	};

	for (unsigned i = 0; i < VB_COUNT(rows); i++) {
		struct rig *r = rig_up(*state, rows[i].state);

		add_frame(r, CODE_SEND_ONLY);
		assert_int_equal(dispatch(r, 0), rows[i].requests);
		add_frame(r, CODE_ACK);
		assert_int_equal(dispatch(r, 0), rows[i].responses);
		rig_down(r);
	}
}

static void dispatch__strangers(void **state)
{
	static const struct vb_gid other = { { 0xfe, 0x80, [15] = 9 } };
	struct rig *r = rig_up(*state, QPS_RTS);

	add_frame(r, CODE_SEND_ONLY)->src = &other;
	assert_int_equal(dispatch(r, 0), 0);
	add_frame(r, CODE_SEND_ONLY)->dst = &other;
	assert_int_equal(dispatch(r, 0), 0);
	/* The dispatcher refuses these: another class, P_Key, slot or index;
	 * half a header. */
	add_frame(r, CLASS_UC << 5 | CODE_SEND_ONLY);
	assert_int_equal(dispatch(r, 0), 0);
	add_frame(r, CODE_SEND_ONLY);
	r->bytes[0][3] ^= 1;
	assert_int_equal(dispatch(r, 0), 0);
	add_frame(r, CODE_SEND_ONLY);
	r->bytes[0][5] ^= 0x80;
	assert_int_equal(dispatch(r, 0), 0);
	add_frame(r, CODE_SEND_ONLY);
	r->bytes[0][7] ^= 1;
	assert_int_equal(dispatch(r, 0), 0);
	add_frame(r, CODE_SEND_ONLY)->len = 8;
	assert_int_equal(dispatch(r, 0), 0);
	/* The dispatcher accepts a P_Key of a limited member of the
	 * partition. */
	add_frame(r, CODE_SEND_ONLY);
	r->bytes[0][2] = 0x7f;
	assert_int_equal(dispatch(r, 0), 1);
	rig_down(r);
}

/* Returns whether the dispatcher accepts a frame whose ICRC is right only if
 * its IPv4 Identification was @id. */
static bool believes(struct rig *r, uint16_t id, vb_time now)
{
	add_frame(r, CODE_SEND_ONLY)->if_ip_id = id;
	return dispatch(r, now) == 1;
}

static void dispatch__identification(void **state)
{
	struct rig *r = rig_up(*state, QPS_RTS);
	vb_time now = VB_SEC;

	/* The peer's kernel numbers its packets with a counter: the dispatcher
	 * accepts the first Identification, and then those that follow it
	 * closely. */
	assert_true(believes(r, 40000, now));
	assert_true(believes(r, 40001, now));
	assert_true(believes(r, 40900, now));
	/* Packets that overtake each other do not set the expected
	 * Identification back. */
	assert_true(believes(r, 40899, now));
	assert_true(believes(r, 40772, now));
	assert_false(believes(r, 40771, now));
	/* A random Identification, as an error causes it, is refused. */
	assert_false(believes(r, 12345, now));
	assert_true(believes(r, 40901, now));
	/* An older Identification is refused, unless it is as small as the
	 * index of a segment. */
	assert_false(believes(r, 40000, now));
	assert_true(believes(r, 63, now));
	/* After a jump of the peer's counter, the second packet is accepted. */
	assert_false(believes(r, 50000, now));
	assert_true(believes(r, 50001, now));
	/* The peer's counter wraps, and advances while the peer sends to other
	 * hosts. */
	assert_true(believes(r, 50900, now));
	assert_false(believes(r, 60000, now));
	assert_true(believes(r, 50901, now));
	assert_true(believes(r, 60000, now + 10 * VB_SEC));
	rig_down(r);
}

static void dispatch__identification_at_random(void **state)
{
	struct rig *r = rig_up(*state, QPS_RTS);
	unsigned refused = 0;
	uint16_t id = 1;

	/* A peer that chooses its Identifications at random is accepted in the
	 * end. */
	for (int i = 0; i < 100; i++) {
		id = (uint16_t)(id * 25173u + 13849u);
		refused += !believes(r, id, VB_SEC);
	}
	assert_in_range(refused, 1, 20);
	assert_true(believes(r, 40000, VB_SEC));
	assert_true(believes(r, 20000, VB_SEC));
	rig_down(r);
}

static void dispatch__link_local_is_of_an_interface(void **state)
{
	static const struct vb_gid local = { { 0xfe, 0x80, [15] = 1 } };
	struct rig *r = rig_up(*state, QPS_RTS);

	r->qp->route.dgid = local;
	add_frame(r, CODE_SEND_ONLY)->src = &local;
	r->e.rxq.frames[0].ifindex = r->qp->route.ifindex;
	assert_int_equal(dispatch(r, 0), 1);
	add_frame(r, CODE_SEND_ONLY)->src = &local;
	r->e.rxq.frames[0].ifindex = r->qp->route.ifindex + 1;
	assert_int_equal(dispatch(r, 0), 0);
	rig_down(r);
}

/* Each queue pair type accepts packets of its own class; UC and UD also accept
 * Verbena's own acknowledgement. */
static void dispatch__class_by_type(void **state)
{
	static const enum vb_qp_type types[] = { QPT_RC, QPT_UC, QPT_UD };
	static const enum vb_ib_class own[] = { CLASS_RC, CLASS_UC, CLASS_UD };

	for (unsigned t = 0; t < VB_COUNT(types); t++) {
		struct rig *r = rig_of(*state, types[t], QPS_RTS);

		for (unsigned c = 0; c < 6; c++) {
			add_frame(r, (uint8_t)(c << 5 | CODE_SEND_ONLY));
			/* Bytes that are a DETH or XRCETH, or otherwise
			 * payload. */
			r->e.rxq.frames[0].len = VB_BTH_BYTES + 8;
			assert_int_equal(dispatch(r, 0), c == own[t]);
			if (c == own[t])
				assert_int_equal(heard.grh, c == CLASS_UD);
		}
		add_frame(r, VB_OP_HEARD);
		assert_int_equal(dispatch(r, 0), types[t] != QPT_RC);
		rig_down(r);
	}
}

/* The dispatcher remembers the Identifications of each sender. If there are
 * more senders than table entries, it remembers those of the latest ones. */
static void dispatch__datagrams_come_from_anybody(void **state)
{
	struct rig *r = rig_of(*state, QPT_UD, QPS_RTS);
	struct vb_gid src = IPV4_GID;
	unsigned believed = 0;

	datagram_from(r, &address, 40000);
	assert_int_equal(dispatch(r, VB_SEC), 1);
	datagram_from(r, &address, 20000);
	assert_int_equal(dispatch(r, VB_SEC), 0);
	src.raw[15] = 77;
	datagram_from(r, &src, 20000);
	assert_int_equal(dispatch(r, VB_SEC), 1);
	datagram_from(r, &address, 40001);
	assert_int_equal(dispatch(r, VB_SEC), 1);
	for (unsigned i = 0; i < 4096; i++) {
		src.raw[14] = (uint8_t)(i >> 8);
		src.raw[15] = (uint8_t)i;
		datagram_from(r, &src, 30000);
		believed += dispatch(r, VB_SEC);
	}
	assert_true(believed >= 4094); /* only the two senders above may fail */
	rig_down(r);
}

/* A datagram to an address of another device of this host is dropped. */
static void dispatch__datagrams_come_to_the_port(void **state)
{
	struct rig *r = rig_of(*state, QPT_UD, QPS_RTS);
	struct vb_gid other = IPV4_GID;

	other.raw[15]++;
	datagram_from(r, &other, -1);
	assert_int_equal(dispatch(r, 0), 1);
	datagram_from(r, &address, -1);
	r->e.rxq.frames[0].dst = &other;
	assert_int_equal(dispatch(r, 0), 0);
	assert_int_equal(atomic_load(&r->f->a.counters[CNT_DROP_ADDRESS]), 1);
	rig_down(r);
}

/* A connection accepts only frames of the RoCE version that its route has. */
static void dispatch__of_the_version_of_the_route(void **state)
{
	for (unsigned i = 0; i < 4; i++) {
		struct rig *r = rig_of(*state, QPT_RC, QPS_RTS);
		bool v1 = i & 1;

		r->qp->route.v1 = i & 2;
		add_frame(r, CODE_SEND_ONLY)->v1 = v1;
		assert_int_equal(dispatch(r, 0), v1 == r->qp->route.v1);
		rig_down(r);
		r = rig_of(*state, QPT_UD, QPS_RTS);
		set_gid_types(r, i & 2 ? GID_ROCE_V1 : GID_ROCE_V2);
		datagram_from(r, &address, -1);
		r->e.rxq.frames[0].v1 = v1;
		assert_int_equal(dispatch(r, 0), v1 == !!(i & 2));
		set_gid_types(r, GID_ROCE_V2);
		rig_down(r);
	}
}

static unsigned dispatch_from(struct rig *r, const struct vb_link *link)
{
	unsigned before = heard.received;

	add_frame(r, CODE_SEND_ONLY);
	vb_mutex_lock(&r->e.rx);
	vb_dispatch_from(&r->e, link, r->e.lease.slot, 0);
	vb_mutex_unlock(&r->e.rx);
	r->e.rxq.count = 0;
	return heard.received - before;
}

/* An adapter with both versions of RoCE accepts frames from two links, and any
 * other adapter from one. */
static void dispatch__an_adapter_of_two_links(void **state)
{
	struct vb_link v1 = { 0 }, v2 = { 0 }, both = { 0 }, fabric = { 0 };
	struct rig *r = rig_up(*state, QPS_RTS);
	struct vb_link *own = r->f->a.ports[0].link;

	r->e.link = &v2;
	r->e.roce.v1 = &v1;
	r->e.roce.both = &both;
	r->f->a.ports[0].link = &both;
	assert_int_equal(dispatch_from(r, &v1), 1);
	assert_int_equal(dispatch_from(r, &v2), 1);
	assert_int_equal(dispatch_from(r, &fabric), 0);
	r->f->a.ports[0].link = &v2;
	assert_int_equal(dispatch_from(r, &v1), 0);
	assert_int_equal(dispatch_from(r, &v2), 1);
	r->f->a.ports[0].link = own;
	rig_down(r);
}

static void dispatch__groups(void **state)
{
	static const struct vb_gid group = { { [10] = 0xff, 0xff, 239, 1 } };
	struct rig *r = rig_of(*state, QPT_UD, QPS_RTS);
	struct vb_group in = { .to = { .gid = group, .ifindex = 3 },
			       .qp = r->qp,
			       .qpn = atomic_load(&r->qp->qpn) };
	struct vb_group gone = { .to = { .gid = group, .ifindex = 3 },
				 .qp = r->qp,
				 .qpn = in.qpn + 1,
				 .next = &in };
	static const struct {
		bool to_group, to_all;
		uint32_t ifindex;
		unsigned copies;
	} rows[] = {
		{ true, true, 3, 1 },
		{ true, true, 4, 0 },
		{ false, true, 3, 0 },
		/* A datagram to the group's address, but with the queue pair's
		 * own number. */
		{ true, false, 3, 1 },
	};

	r->e.groups = &gone;
	for (unsigned i = 0; i < VB_COUNT(rows); i++) {
		datagram_from(r, &address, -1);
		r->e.rxq.frames[0].ifindex = rows[i].ifindex;
		if (rows[i].to_group)
			r->e.rxq.frames[0].dst = &group;
		if (rows[i].to_all)
			memset(r->bytes[0] + 5, 0xff, 3);
		assert_int_equal(dispatch(r, 0), rows[i].copies);
	}
	rig_down(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(dispatch__a_run_is_one_step),
		TEST(dispatch__time_never_goes_back),
		TEST(dispatch__defers_while_it_can_wait),
		TEST(dispatch__a_run_ends),
		TEST(dispatch__answers_come_first),
		TEST(dispatch__an_ack_waits_once),
		TEST(dispatch__what_gathers_leaves_with_the_second_empty_poll),
		TEST(dispatch__state_decides),
		TEST(dispatch__strangers),
		TEST(dispatch__class_by_type),
		TEST(dispatch__datagrams_come_from_anybody),
		TEST(dispatch__datagrams_come_to_the_port),
		TEST(dispatch__of_the_version_of_the_route),
		TEST(dispatch__an_adapter_of_two_links),
		TEST(dispatch__groups),
		TEST(dispatch__identification),
		TEST(dispatch__identification_at_random),
		TEST(dispatch__link_local_is_of_an_interface),
	};

	return cmocka_run_group_tests_name("dispatch", tests, NULL, NULL);
}
