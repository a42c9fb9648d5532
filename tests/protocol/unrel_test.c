/* SPDX-License-Identifier: BSD-2-Clause */
/* UC and UD: on any wire, a message arrives whole or not at all, every send
 * completes, and the queue pairs stay alive. */
#include "tests/support/bench.h"

#include <string.h>

#include "core/fault.h"
#include "core/why.h"
#include "tests/support/seeds.h"
#include "wire/grh.h"

#define MTU	 1024 /* path MTU of sim_attr in bytes */
#define ROOM	 8192 /* bytes of each RECV */
#define SLOTS	 32
#define MESSAGES 400
#define BAD_QKEY 0x22222222u

static const struct sim_caps uc_caps = {
	.wr = 64, .sge = 8, .inline_bytes = 256, .cqe = 1024, .type = QPT_UC
};
static const struct sim_caps ud_caps = {
	.wr = 64, .sge = 8, .inline_bytes = 256, .cqe = 1024, .type = QPT_UD
};

static enum vb_qp_state state_of(const struct bench *b, unsigned side)
{
	return atomic_load(&b->pair.qp[side]->state);
}

static uint64_t counter(const struct bench *b, enum vb_counter c)
{
	return atomic_load(&b->sim.side[1].adapter.counters[c]);
}

static struct bench *open_as(enum vb_qp_type type)
{
	return bench_open_as(&sim_attr, type == QPT_UC ? &uc_caps : &ud_caps);
}

static struct vb_ib_pkt request(const struct bench *b, uint8_t code, int nth)
{
	struct vb_qp *qp = b->pair.qp[1];
	bool ud = qp->type == QPT_UD;
	struct vb_ib_pkt pkt = bench_request(
		b, (uint8_t)((ud ? CLASS_UD : CLASS_UC) << 5 | code), nth);

	pkt.bth.ack_req = false;
	pkt.deth = (struct vb_deth){ qp->attr.qkey, 0x123 };
	return pkt;
}

static struct vb_cqe arrived(struct bench *b)
{
	struct vb_cqe e;

	assert_true(sim_poll(b->pair.recv_cq[1], &e));
	return e;
}

static void nothing_arrived(struct bench *b)
{
	bench_expect_no_wc(b->pair.recv_cq[1]);
	assert_int_equal(state_of(b, 1), QPS_RTS);
}

/* Random wires: a sender of numbered messages whose bytes follow from the
 * number, and a receiver that checks them. */

struct run {
	struct bench *b;
	struct sim_rand rand;
	uint32_t lengths[MESSAGES];
	unsigned posted, sent, seen[MESSAGES], got;
};

static uint8_t byte_of(unsigned message, unsigned at)
{
	return (uint8_t)(message * 7 + at + at / 251);
}

static uint32_t room_of(const struct run *r)
{
	return r->b->pair.qp[0]->type == QPT_UD ? MTU : ROOM;
}

static void post_message(struct run *r)
{
	unsigned n = r->posted++;
	uint32_t len = sim_below(&r->rand, room_of(r) + 1);
	uint32_t at = (n % SLOTS) * ROOM;
	struct vb_sge sge = { (uintptr_t)r->b->mem[0] + at, len,
			      r->b->mr[0]->key };
	const struct vb_send_wqe wqe = { .wr_id = n,
					 .op = WR_SEND_IMM,
					 .flags = SEND_SIGNALED,
					 .length = len,
					 .num_sge = 1,
					 .imm = n };

	r->lengths[n] = len;
	for (uint32_t i = 0; i < len; i++)
		r->b->mem[0][at + i] = byte_of(n, i);
	sim_post_send(r->b->pair.qp[0], &wqe, &sge);
}

static void post_slot(struct run *r, uint64_t slot)
{
	bench_post_recv(r->b, 1, slot, (uint32_t)slot * (ROOM + 64), ROOM + 64);
}

static void check_message(struct run *r, const struct vb_cqe *e)
{
	bool ud = r->b->pair.qp[0]->type == QPT_UD;
	const uint8_t *bytes = r->b->mem[1] + e->wr_id * (ROOM + 64);
	uint32_t skip = ud ? VB_GRH_BYTES : 0;
	struct vb_grh grh;

	assert_int_equal(e->status, WC_SUCCESS);
	assert_true(e->imm < r->posted);
	assert_int_equal(e->byte_len, r->lengths[e->imm] + skip);
	assert_int_equal(e->wc_flags, WC_WITH_IMM | (ud ? WC_GRH : 0));
	assert_int_equal(e->src_qp, r->b->pair.qp[0]->qpn);
	assert_int_equal(ud, ud && vb_grh_get(bytes, &grh));
	assert_int_equal(e->sl, !ud			    ? 0
				: vb_gid_is_ipv4(&grh.dgid) ? 0xa
							    : 0x9);
	for (uint32_t i = 0; i < r->lengths[e->imm]; i++)
		assert_int_equal(bytes[skip + i], byte_of(e->imm, i));
	r->seen[e->imm]++;
	r->got++;
}

static void look(struct run *r)
{
	struct vb_cqe e;

	while (sim_poll(r->b->pair.recv_cq[1], &e)) {
		check_message(r, &e);
		post_slot(r, e.wr_id);
	}
	while (sim_poll(r->b->pair.send_cq[0], &e)) {
		assert_int_equal(e.status, WC_SUCCESS);
		assert_int_equal(e.wr_id, r->sent);
		r->sent++;
	}
}

static void play(struct run *r, enum vb_qp_type type, uint64_t seed,
		 const struct sim_wire *wire)
{
	memset(r, 0, sizeof(*r));
	r->rand.state = seed;
	r->b = open_as(type);
	r->b->sim.tap = NULL;
	r->b->sim.rand.state = seed;
	r->b->sim.wire = *wire;
	for (unsigned i = 0; i < SLOTS; i++)
		post_slot(r, i);
	while (r->sent < MESSAGES) {
		unsigned burst = 1 + sim_below(&r->rand, 8);

		while (burst-- && r->posted < MESSAGES &&
		       r->posted - r->sent < SLOTS)
			post_message(r);
		bench_wait(r->b, 50 + sim_below(&r->rand, 2000));
		look(r);
	}
	bench_wait(r->b, 100000);
	look(r);
	assert_int_equal(state_of(r->b, 0), QPS_RTS);
	assert_int_equal(state_of(r->b, 1), QPS_RTS);
	bench_close(r->b);
}

static const struct sim_wire clean = { .delay = 5 * VB_USEC };
static const struct sim_wire bad = { .delay = 5 * VB_USEC,
				     .jitter = 100 * VB_USEC,
				     .lose = 200,
				     .copy = 100,
				     .swap = 200,
				     .damage = 100 };

static void chance__a_clean_wire_loses_nothing(void **state)
{
	static const enum vb_qp_type types[] = { QPT_UC, QPT_UD };
	static struct run r;

	for (unsigned i = 0; i < 6; i++) {
		play(&r, types[i % 2], i, &clean);
		for (unsigned n = 0; n < MESSAGES; n++)
			assert_int_equal(r.seen[n], 1);
	}
}

static void chance__whole_or_absent(void **state)
{
	static const enum vb_qp_type types[] = { QPT_UC, QPT_UD };
	static struct run r;
	const unsigned runs = seeds_of(40, 8);
	unsigned absent = 0;

	for (unsigned i = 0; i < runs; i++) {
		play(&r, types[i % 2], 1000 + i, &bad);
		assert_true(r.got > MESSAGES / 4);
		for (unsigned n = 0; n < MESSAGES; n++)
			absent += r.seen[n] == 0;
	}
	assert_true(absent > 0);
}

/* WRITEs may change the memory, but the packets cause no fault of the queue
 * pair. */
static void chance__hostile_packets_harm_nobody(void **state)
{
	struct sim_wire wire = bad;

	wire.hostile = true;
	wire.damage = 3000;
	for (unsigned seed = 0; seed < seeds_of(40, 6); seed++) {
		struct bench *b = open_as(seed % 2 ? QPT_UC : QPT_UD);
		struct vb_cqe e;

		b->sim.tap = NULL;
		b->sim.rand.state = seed;
		b->sim.wire = wire;
		for (unsigned n = 0; n < 200; n++) {
			/* A dropped message does not consume the RECV. */
			if (n < 64)
				bench_post_recv(b, 1, n, 4096, 4096);
			bench_post(b, 0, WR_SEND_IMM, n * 16, n * 5, 0);
			/* 5000 us: longer than the sender waits for feedback */
			bench_wait(b, 5000);
			while (sim_poll(b->pair.send_cq[0], &e))
				assert_int_equal(e.status, WC_SUCCESS);
			while (sim_poll(b->pair.recv_cq[1], &e))
				assert_int_equal(e.status, WC_SUCCESS);
		}
		assert_int_equal(state_of(b, 0), QPS_RTS);
		assert_int_equal(state_of(b, 1), QPS_RTS);
		bench_close(b);
	}
}

static void uc__a_gap_drops_the_message(void **state)
{
	struct bench *b = open_as(QPT_UC);
	struct vb_ib_pkt first = request(b, CODE_SEND_FIRST, 0);
	/* The message's second packet is lost. */
	struct vb_ib_pkt last = request(b, CODE_SEND_LAST, 2);
	struct vb_ib_pkt middle = request(b, CODE_SEND_MIDDLE, 3);
	struct vb_ib_pkt only = request(b, CODE_SEND_ONLY, 9);
	struct vb_cqe e;

	bench_post_recv(b, 1, 77, 0, 4096);
	bench_inject(b, 1, &first, MTU, 0xaa);
	bench_inject(b, 1, &last, 100, 0xbb);
	bench_inject(b, 1, &middle, MTU, 0xbb);
	nothing_arrived(b);
	assert_true(counter(b, CNT_DROP_BROKEN) >= 2);
	/* The next message uses the receive of the broken one, whatever PSN it
	 * has. */
	bench_inject(b, 1, &only, 10, 0xcc);
	e = arrived(b);
	assert_int_equal(e.wr_id, 77);
	assert_int_equal(e.byte_len, 10);
	assert_int_equal(b->mem[1][0], 0xcc);
	bench_expect_silence(b, 1);
	bench_close(b);
}

static void uc__a_message_cut_short_is_dropped(void **state)
{
	struct bench *b = open_as(QPT_UC);
	struct vb_ib_pkt first = request(b, CODE_SEND_FIRST, 0);
	struct vb_ib_pkt again = request(b, CODE_SEND_FIRST, 1);
	struct vb_ib_pkt last = request(b, CODE_SEND_LAST, 2);
	struct vb_cqe e;

	bench_post_recv(b, 1, 1, 0, 4096);
	bench_inject(b, 1, &first, MTU, 0xaa);
	bench_inject(b, 1, &again, MTU, 0xbb);
	bench_inject(b, 1, &last, 6, 0xcc);
	e = arrived(b);
	assert_int_equal(e.byte_len, MTU + 6);
	assert_int_equal(b->mem[1][0], 0xbb);
	assert_int_equal(b->mem[1][MTU], 0xcc);
	bench_close(b);
}

/* A UC packet of a wrong length is dropped. The cause of that must not replace
 * the cause of an earlier error in the queue pair. */
static void uc__a_dropped_packet_leaves_the_cause(void **state)
{
	struct bench *b = open_as(QPT_UC);
	struct vb_ib_pkt first = request(b, CODE_SEND_FIRST, 0);
	struct vb_qp *qp = b->pair.qp[1];

	vb_mutex_lock(&qp->drive);
	qp->why = WHY_LKEY_UNKNOWN;
	vb_mutex_unlock(&qp->drive);
	bench_post_recv(b, 1, 77, 0, 4096);
	bench_inject(b, 1, &first, MTU / 2, 0xaa);
	nothing_arrived(b);
	assert_int_equal(qp->why, WHY_LKEY_UNKNOWN);
	bench_close(b);
}

static void uc__write_needs_key_and_right(void **state)
{
	struct vb_qp_attr no_right = sim_attr;
	struct bench *b = open_as(QPT_UC);
	struct vb_ib_pkt write = request(b, CODE_WRITE_ONLY, 0);
	uint8_t before = b->mem[1][0];

	write.reth.length = 8;
	write.reth.rkey ^= 0x100;
	bench_inject(b, 1, &write, 8, (uint8_t)~before);
	assert_int_equal(b->mem[1][0], before);
	nothing_arrived(b);
	assert_int_equal(counter(b, CNT_DROP_REFUSED), 1);
	/* The last byte of the WRITE is behind the region's end. */
	write.reth.rkey ^= 0x100;
	write.bth.psn++;
	write.reth.va += BENCH_MEM - 7;
	bench_inject(b, 1, &write, 8, (uint8_t)~before);
	assert_int_equal(counter(b, CNT_DROP_REFUSED), 2);
	nothing_arrived(b);
	bench_close(b);

	no_right.access_flags = ACCESS_LOCAL_WRITE;
	b = bench_open_as(&no_right, &uc_caps);
	before = b->mem[1][0];
	write = request(b, CODE_WRITE_ONLY, 0);
	write.reth.length = 8;
	bench_inject(b, 1, &write, 8, (uint8_t)~before);
	assert_int_equal(b->mem[1][0], before);
	assert_int_equal(counter(b, CNT_DROP_REFUSED), 1);
	nothing_arrived(b);
	bench_close(b);
}

static void uc__write_with_immediate(void **state)
{
	struct bench *b = open_as(QPT_UC);
	struct vb_cqe e;

	bench_post_recv(b, 1, 5, 4096, 0);
	bench_post(b, 0, WR_WRITE_IMM, 0, 3000, SEND_SOLICITED);
	bench_wait(b, 100);
	bench_expect_wc(b->pair.send_cq[0], 0, WC_SUCCESS);
	e = arrived(b);
	assert_int_equal(e.opcode, WC_OP_RECV_WRITE_IMM);
	assert_int_equal(e.byte_len, 3000);
	assert_memory_equal(b->mem[0], b->mem[1], 3000);
	/* No receive for the immediate data: the data is placed, and the
	 * message is dropped. */
	bench_post(b, 0, WR_WRITE_IMM, 5000, 10, 0);
	bench_wait(b, 100);
	bench_expect_wc(b->pair.send_cq[0], 1, WC_SUCCESS);
	nothing_arrived(b);
	assert_int_equal(counter(b, CNT_DROP_NO_RECV), 1);
	bench_close(b);
}

static void uc__too_long_for_its_receive(void **state)
{
	struct bench *b = open_as(QPT_UC);

	bench_post_recv(b, 1, 5, 0, 2000);
	bench_post(b, 0, WR_SEND, 0, 3000, 0);
	bench_wait(b, 100);
	bench_expect_wc(b->pair.send_cq[0], 0, WC_SUCCESS);
	nothing_arrived(b);
	assert_int_equal(counter(b, CNT_DROP_TOO_LONG), 1);
	bench_post(b, 0, WR_SEND, 0, 2000, 0);
	bench_wait(b, 100);
	assert_int_equal(arrived(b).wr_id, 5);
	bench_close(b);
}

/* Sending stops and receiving goes on; the move from SQE to RTS starts sending
 * again (IBA 10.3.1.7). */
static void uc__a_bad_request_stops_sending_only(void **state)
{
	struct bench *b = open_as(QPT_UC);
	struct vb_mr *mr = b->mr[0];

	bench_post_recv(b, 0, 8, 0, 100);
	b->mr[0] = NULL; /* from here on bench_post() uses lkey 0 */
	bench_post(b, 0, WR_SEND, 0, 100, 0);
	b->mr[0] = mr;
	bench_post(b, 0, WR_SEND, 0, 100, 0);
	bench_wait(b, 100);
	bench_expect_wc(b->pair.send_cq[0], 0, WC_LOC_PROT_ERR);
	bench_expect_wc(b->pair.send_cq[0], 1, WC_FLUSH_ERR);
	assert_int_equal(state_of(b, 0), QPS_SQE);
	bench_post(b, 0, WR_SEND, 0, 100, 0);
	bench_wait(b, 100);
	bench_expect_wc(b->pair.send_cq[0], 2, WC_FLUSH_ERR);
	bench_post(b, 1, WR_SEND, 0, 100, 0);
	bench_wait(b, 100);
	bench_expect_wc(b->pair.recv_cq[0], 8, WC_SUCCESS);
	sim_modify(&b->sim, b->pair.qp[0], QPS_RTS, 0, NULL);
	bench_post_recv(b, 1, 9, 0, 100);
	bench_post(b, 0, WR_SEND, 0, 100, 0);
	bench_wait(b, 100);
	bench_expect_wc(b->pair.send_cq[0], 3, WC_SUCCESS);
	assert_int_equal(arrived(b).wr_id, 9);
	bench_close(b);
}

static void uc__own_bad_receive_ends_it(void **state)
{
	struct bench *b = open_as(QPT_UC);
	struct vb_sge sge = { (uintptr_t)b->mem[1], 100, 0x777 };

	sim_post_recv(b->pair.qp[1], 3, &sge, 1);
	bench_post(b, 0, WR_SEND, 0, 100, 0);
	bench_wait(b, 100);
	bench_expect_wc(b->pair.recv_cq[1], 3, WC_LOC_PROT_ERR);
	assert_int_equal(state_of(b, 1), QPS_ERR);
	bench_close(b);
}

static void uc__answers_are_not_its_business(void **state)
{
	static const enum vb_wr_op ops[] = { WR_READ, WR_CMP_SWAP,
					     WR_SEND_INV };

	for (size_t i = 0; i < VB_COUNT(ops); i++) {
		struct bench *b = open_as(QPT_UC);

		bench_post(b, 0, ops[i], 0, 8, 0);
		bench_wait(b, 100);
		bench_expect_wc(b->pair.send_cq[0], 0, WC_LOC_QP_OP_ERR);
		bench_close(b);
	}
}

static void ud__strangers_are_dropped(void **state)
{
	struct bench *b = open_as(QPT_UD);
	struct vb_ib_pkt pkt = request(b, CODE_SEND_ONLY, 0);

	bench_post_recv(b, 1, 4, 0, 140);
	pkt.deth.qkey = BAD_QKEY;
	bench_inject(b, 1, &pkt, 100, 1);
	nothing_arrived(b);
	assert_int_equal(counter(b, CNT_DROP_QKEY), 1);
	pkt.deth.qkey = b->pair.qp[1]->attr.qkey;
	bench_inject(b, 1, &pkt, 100, 1);
	assert_int_equal(arrived(b).src_qp, 0x123);
	bench_close(b);
}

static void ud__what_does_not_fit_hurts_nobody(void **state)
{
	struct bench *b = open_as(QPT_UD);
	struct vb_ib_pkt pkt = request(b, CODE_SEND_ONLY_IMM, 0);
	struct vb_cqe e;

	/* Side 1 has no RECV for this datagram. */
	bench_inject(b, 1, &pkt, 100, 1);
	assert_int_equal(counter(b, CNT_DROP_NO_RECV), 1);
	bench_post_recv(b, 1, 4, 0, 139);
	/* The datagram with its GRH is one byte longer than the RECV. */
	bench_inject(b, 1, &pkt, 100, 1);
	assert_int_equal(counter(b, CNT_DROP_TOO_LONG), 1);
	nothing_arrived(b);
	pkt.imm = 0x01020304;
	bench_inject(b, 1, &pkt, 99, 1);
	e = arrived(b);
	assert_int_equal(e.wr_id, 4);
	assert_int_equal(e.byte_len, 139);
	assert_int_equal(e.imm, 0x01020304);
	assert_int_equal(e.wc_flags, WC_GRH | WC_WITH_IMM);
	/* A RECV of 39 bytes is too short even for the GRH of 40 bytes. */
	bench_post_recv(b, 1, 5, 0, 39);
	bench_inject(b, 1, &pkt, 0, 1);
	nothing_arrived(b);
	bench_close(b);
}

static void ud__longer_than_the_port_carries(void **state)
{
	struct bench *b = open_as(QPT_UD);
	uint32_t mtu = b->pair.qp[0]->mtu;

	bench_post_recv(b, 1, 1, 0, 8192);
	bench_post(b, 0, WR_SEND, 0, mtu, 0);
	bench_wait(b, 100);
	bench_expect_wc(b->pair.send_cq[0], 0, WC_SUCCESS);
	assert_int_equal(arrived(b).byte_len, mtu + VB_GRH_BYTES);
	bench_post(b, 0, WR_SEND, 0, mtu + 1, 0);
	bench_wait(b, 100);
	bench_expect_wc(b->pair.send_cq[0], 1, WC_LOC_LEN_ERR);
	assert_int_equal(state_of(b, 0), QPS_SQE);
	bench_close(b);
}

/* A Q_Key whose highest bit is set stands for the queue pair's own Q_Key (IBA
 * 10.2.5). */
static void VB_UNCHECKED ud__privileged_qkey_is_the_own(void **state)
{
	struct bench *b = open_as(QPT_UD);
	struct vb_qp *qp = b->pair.qp[0];
	const struct vb_send_wqe wqe = { .op = WR_SEND };
	struct vb_send_wqe *slot;

	for (unsigned i = 0; i < 2; i++) {
		slot = vb_sq_begin(&qp->sq);
		sim_post_send(qp, &wqe, NULL);
		vb_sq_dest(&qp->sq, slot)->qkey = i ? 0x80010000u : BAD_QKEY;
		bench_wait(b, 10);
	}
	assert_int_equal(bench_next(b, 0)->deth.qkey, BAD_QKEY);
	assert_int_equal(bench_next(b, 0)->deth.qkey, qp->attr.qkey);
	bench_close(b);
}

static void ud__only_sends(void **state)
{
	struct bench *b = open_as(QPT_UD);

	bench_post(b, 0, WR_WRITE, 0, 8, 0);
	bench_wait(b, 100);
	bench_expect_wc(b->pair.send_cq[0], 0, WC_LOC_QP_OP_ERR);
	bench_close(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chance__a_clean_wire_loses_nothing),
		cmocka_unit_test(chance__whole_or_absent),
		cmocka_unit_test(chance__hostile_packets_harm_nobody),
		cmocka_unit_test(uc__a_gap_drops_the_message),
		cmocka_unit_test(uc__a_message_cut_short_is_dropped),
		cmocka_unit_test(uc__a_dropped_packet_leaves_the_cause),
		cmocka_unit_test(uc__write_needs_key_and_right),
		cmocka_unit_test(uc__write_with_immediate),
		cmocka_unit_test(uc__too_long_for_its_receive),
		cmocka_unit_test(uc__a_bad_request_stops_sending_only),
		cmocka_unit_test(uc__own_bad_receive_ends_it),
		cmocka_unit_test(uc__answers_are_not_its_business),
		cmocka_unit_test(ud__strangers_are_dropped),
		cmocka_unit_test(ud__what_does_not_fit_hurts_nobody),
		cmocka_unit_test(ud__longer_than_the_port_carries),
		cmocka_unit_test(ud__privileged_qkey_is_the_own),
		cmocka_unit_test(ud__only_sends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
