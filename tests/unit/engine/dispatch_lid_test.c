/* SPDX-License-Identifier: BSD-2-Clause */
/* Which queue pair gets a frame that arrived at an adapter of InfiniBand. */
#include "tests/unit/engine/dispatch_rig.h"

/* On InfiniBand: the DGID, if there is one, is of the kind of the DLID. */
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

	r->f->a.addressing = &vb_addressing_ib;
	set_gid_types(r, GID_IB);
	for (unsigned i = 0; i < VB_COUNT(rows); i++) {
		datagram_from(r, &address, -1);
		r->e.rxq.frames[0].src = rows[i].dst ? &address : NULL;
		r->e.rxq.frames[0].dst = rows[i].dst;
		r->e.rxq.frames[0].slid = 1;
		r->e.rxq.frames[0].dlid = rows[i].dlid;
		assert_int_equal(dispatch(r, 0), rows[i].comes);
	}
	r->f->a.addressing = &vb_addressing_roce;
	rig_down(r);
}

/* On InfiniBand: a connection's frames come from any LID of the peer's port. */
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

	r->f->a.addressing = &vb_addressing_ib;
	r->qp->route.ib = (struct vb_lid_path){ .dlid = 8 };
	for (unsigned i = 0; i < VB_COUNT(rows); i++) {
		struct vb_frame *f = add_frame(r, CODE_SEND_ONLY);

		atomic_store(&r->f->a.port.lmc, rows[i].lmc);
		f->src = f->dst = NULL;
		f->slid = rows[i].slid;
		f->dlid = 1;
		assert_int_equal(dispatch(r, 0), rows[i].comes);
	}
	atomic_store(&r->f->a.port.lmc, 0);
	r->f->a.addressing = &vb_addressing_roce;
	rig_down(r);
}

/* Path bits are those of a LID of the port; a group's LID has none. */
static void dispatch__datagrams_tell_their_path_bits(void **state)
{
	static const struct vb_gid group = { { 0xff, 0x12, [15] = 1 } };
	struct rig *r = rig_of(*state, QPT_UD, QPS_RTS);

	r->f->a.addressing = &vb_addressing_ib;
	atomic_store(&r->f->a.port.lmc, 3);
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
	atomic_store(&r->f->a.port.lmc, 0);
	r->f->a.addressing = &vb_addressing_roce;
	rig_down(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(dispatch__datagrams_with_a_dgid),
		TEST(dispatch__connections_compare_lids),
		TEST(dispatch__datagrams_tell_their_path_bits),
	};

	return cmocka_run_group_tests_name("dispatch_lid", tests, NULL, NULL);
}
