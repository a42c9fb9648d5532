/* SPDX-License-Identifier: BSD-2-Clause */
/* Which queue pair gets a frame that arrived at an adapter of InfiniBand. */
#include "core/migrate.h"
#include "tests/unit/engine/dispatch_rig.h"

/* On InfiniBand, if a datagram has a DGID, then DGID and DLID must both belong
 * to a port, or both to a multicast group. */
static void dispatch__datagrams_with_a_dgid(void **state)
{
	static const struct vb_gid none = { { 0xfe, 0x80, [15] = 9 } };
	static const struct vb_gid group = { { 0xff, 0x12, [15] = 1 } };
	static const struct {
		const struct vb_gid *dst;
		uint16_t dlid;
		unsigned comes;
	} rows[] = {
		{ NULL, 5, 1 },	       { &address, 5, 1 },
		{ &none, 5, 0 },       { &group, 5, 0 },
		{ &group, 0xc001, 1 }, { &address, 0xc001, 0 },
	};
	struct rig *r = rig_of(*state, QPT_UD, QPS_RTS);

	r->f->a.ports[0].addressing = &vb_addressing_ib;
	set_gid_types(r, GID_IB);
	for (unsigned i = 0; i < VB_COUNT(rows); i++) {
		datagram_from(r, &address, -1);
		r->e.rxq.frames[0].src = rows[i].dst ? &address : NULL;
		r->e.rxq.frames[0].dst = rows[i].dst;
		r->e.rxq.frames[0].slid = 1;
		r->e.rxq.frames[0].dlid = rows[i].dlid;
		assert_int_equal(dispatch(r, 0), rows[i].comes);
	}
	r->f->a.ports[0].addressing = &vb_addressing_roce;
	rig_down(r);
}

/* On InfiniBand, a connection accepts frames from every LID of the peer's
 * port. */
static void dispatch__connections_compare_lids(void **state)
{
	static const struct {
		uint8_t lmc;
		uint16_t slid;
		unsigned comes;
	} rows[] = {
		{ 0, 8, 1 },  { 0, 9, 0 },  { 2, 8, 1 },
		{ 2, 11, 1 }, { 2, 12, 0 }, { 2, 7, 0 },
	};
	struct rig *r = rig_up(*state, QPS_RTS);

	r->f->a.ports[0].addressing = &vb_addressing_ib;
	r->qp->route.ib = (struct vb_lid_path){ .dlid = 8 };
	for (unsigned i = 0; i < VB_COUNT(rows); i++) {
		struct vb_frame *f = add_frame(r, CODE_SEND_ONLY);

		atomic_store(&r->f->a.ports[0].lmc, rows[i].lmc);
		f->src = f->dst = NULL;
		f->slid = rows[i].slid;
		f->dlid = 1;
		assert_int_equal(dispatch(r, 0), rows[i].comes);
	}
	atomic_store(&r->f->a.ports[0].lmc, 0);
	r->f->a.ports[0].addressing = &vb_addressing_roce;
	rig_down(r);
}

/* A queue pair in migration state Armed accepts frames by both paths. If its
 * peer migrates to the alternate path, the queue pair follows. */
static void dispatch__an_armed_one_follows(void **state)
{
	static const struct {
		uint16_t slid, dlid;
		bool requested;
		unsigned comes;
		uint8_t becomes;
	} rows[] = {
		{ 8, 4, false, 1, MIG_ARMED },
		{ 0x30, 5, true, 0, MIG_ARMED },
		{ 9, 5, false, 1, MIG_ARMED },
		{ 9, 5, true, 1, MIG_MIGRATED },
		{ 9, 5, true, 1, MIG_MIGRATED },
	};
	struct rig *r = rig_up(*state, QPS_RTS);
	struct vb_qp *qp = r->qp;

	r->f->a.ports[0].addressing = &vb_addressing_ib;
	atomic_store(&r->f->a.ports[0].lmc, 1);
	qp->route.ib = (struct vb_lid_path){ .dlid = 8 };
	qp->attr.alt_av =
		(struct vb_av){ .dlid = 9, .src_path_bits = 1, .port_num = 1 };
	qp->attr.alt_port_num = 1;
	qp->alt_route.ib = (struct vb_lid_path){ .dlid = 9, .path_bits = 1 };
	qp->attr.path_mig_state = MIG_ARMED;
	for (unsigned i = 0; i < VB_COUNT(rows); i++) {
		struct vb_frame *f = add_frame(r, CODE_SEND_ONLY);
		uint8_t *bth = (uint8_t *)f->bytes;

		bth[1] = (uint8_t)((bth[1] & ~0x40) |
				   (rows[i].requested ? 0x40 : 0));
		f->src = f->dst = NULL;
		f->slid = rows[i].slid;
		f->dlid = rows[i].dlid;
		assert_int_equal(dispatch(r, 0), rows[i].comes);
		assert_int_equal(qp->attr.path_mig_state, rows[i].becomes);
	}
	assert_int_equal(qp->route.ib.dlid, 9);
	assert_event(r->f, EVENT_PATH_MIG);
	atomic_store(&r->f->a.ports[0].lmc, 0);
	r->f->a.ports[0].addressing = &vb_addressing_roce;
	rig_down(r);
}

/* The path bits in a datagram's completion are those of the LID to which it was
 * sent. A multicast LID has none. */
static void dispatch__datagrams_tell_their_path_bits(void **state)
{
	static const struct vb_gid group = { { 0xff, 0x12, [15] = 1 } };
	struct rig *r = rig_of(*state, QPT_UD, QPS_RTS);

	r->f->a.ports[0].addressing = &vb_addressing_ib;
	atomic_store(&r->f->a.ports[0].lmc, 3);
	datagram_from(r, NULL, -1);
	r->e.rxq.frames[0].dst = NULL;
	r->e.rxq.frames[0].dlid = 0x15;
	assert_int_equal(dispatch(r, 0), 1);
	assert_int_equal(heard.path_bits, 5);
	datagram_from(r, &address, -1);
	r->e.rxq.frames[0].dst = &group;
	r->e.rxq.frames[0].dlid = 0xc005;
	assert_int_equal(dispatch(r, 0), 1);
	assert_int_equal(heard.path_bits, 0);
	atomic_store(&r->f->a.ports[0].lmc, 0);
	r->f->a.ports[0].addressing = &vb_addressing_roce;
	rig_down(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(dispatch__datagrams_with_a_dgid),
		TEST(dispatch__an_armed_one_follows),
		TEST(dispatch__connections_compare_lids),
		TEST(dispatch__datagrams_tell_their_path_bits),
	};

	return cmocka_run_group_tests_name("dispatch_lid", tests, NULL, NULL);
}
