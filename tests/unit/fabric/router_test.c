/* SPDX-License-Identifier: BSD-2-Clause */
/* What a router decides about each frame, by the frame's headers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/bytes.h"
#include "fabric/router.h"
#include "wire/grh.h"

#define LEN 512

static struct vb_fab_node *rt;
static uint8_t bytes[VB_LRH_FRAME_MAX];
static struct vb_fab_view view;
static struct vb_grh grh;
static struct vb_lrh lrh;

static struct vb_gid gid(uint64_t prefix, uint64_t id)
{
	struct vb_gid g;

	vb_store_be(g.raw, prefix, 8);
	vb_store_be(g.raw + 8, id, 8);
	return g;
}

/* A router of three ports with LIDs 11, 12 and 13, in the subnets 0xfec0::1,
 * ::2 and ::3; the last port is not active. */
static int set_up(void **state)
{
	const struct vb_fab_node_spec spec = { .kind = FAB_ROUTER,
					       .ports = 3,
					       .guid = 0x100 };

	rt = vb_fab_node_create(&spec);
	for (unsigned p = 1; p <= 3; p++) {
		rt->port[p].state = p < 3 ? FAB_ACTIVE : FAB_INIT;
		rt->port[p].oper_vls = 3;
		rt->port[p].mtu = 4;
		rt->port[p].lid = (uint16_t)(10 + p);
		rt->port[p].gid_prefix = 0xfec0000000000000 + p;
	}
	return 0;
}

static int tear_down(void **state)
{
	vb_fab_node_destroy(rt);
	return 0;
}

/* A good frame from subnet 1 to subnet 2, of which a test changes fields. */
static void begin(void)
{
	grh = (struct vb_grh){ .sgid = gid(0xfec0000000000001, 7),
			       .dgid = gid(0xfec0000000000002, 8),
			       .udp_bytes = LEN - 48,
			       .iba = true,
			       .tclass = 3,
			       .flow_label = 5,
			       .hop_limit = 64 };
	lrh = (struct vb_lrh){ .sl = 2,
			       .lnh = LNH_GLOBAL,
			       .dlid = 11,
			       .slid = 40,
			       .words = LEN / 4 };
}

static struct vb_fab_way decide(void)
{
	struct vb_fab_way w;

	for (unsigned i = 0; i < LEN; i++)
		bytes[i] = (uint8_t)(i * 7);
	vb_lrh_put(bytes, &lrh);
	vb_grh_put(bytes + VB_LRH_BYTES, &grh);
	if (!grh.iba)
		bytes[VB_LRH_BYTES + 6] = 17;
	vb_lrh_put_icrc(bytes, LEN);
	view = (struct vb_fab_view){ bytes, LEN, lrh };
	vb_fab_router_way(rt, 1, &view, &w);
	return w;
}

static void drops(enum vb_fab_drop why)
{
	struct vb_fab_way w = decide();

	assert_false(w.here);
	assert_int_equal(w.drop, why);
}

static void is_here(void)
{
	struct vb_fab_way w = decide();

	assert_int_equal(w.drop, DROP_NOT);
	assert_true(w.here);
}

static void leaves_by(unsigned port)
{
	struct vb_fab_way w = decide();

	assert_int_equal(w.drop, DROP_NOT);
	assert_false(w.here);
	assert_int_equal(w.port, port);
	assert_true(vb_gid_equal(&w.dgid, &grh.dgid));
}

static void way__by_the_prefix(void **state)
{
	begin();
	leaves_by(2);
	grh.dgid = gid(0xfec0000000000009, 8);
	drops(DROP_NO_PREFIX);
	/* the port that leads to this subnet is down */
	grh.dgid = gid(0xfec0000000000003, 8);
	drops(DROP_NO_PREFIX);
	/* a frame may leave into the subnet where it came from: its sender
	 * wants it so */
	grh.dgid = gid(0xfec0000000000001, 8);
	leaves_by(1);
}

static void way__by_the_routes_of_the_file(void **state)
{
	struct vb_fab_router *r = rt->router;

	begin();
	r->routes = 2;
	r->route[0] = (struct vb_fab_prefix){ .any = true, .port = 1 };
	r->route[1] = (struct vb_fab_prefix){ .prefix = 0x5, .port = 2 };
	leaves_by(2);
	grh.dgid = gid(0x5, 8);
	leaves_by(2);
	grh.dgid = gid(0x6, 8);
	leaves_by(1);
	r->route[0].port = 77;
	drops(DROP_NO_PREFIX);
}

static void way__to_the_router_itself(void **state)
{
	begin();
	grh.dgid = gid(0xfec0000000000001, 0x101);
	is_here();
	/* the GID of another port of the router */
	grh.dgid = gid(0xfec0000000000002, 0x102);
	is_here();
	/* with the default prefix, only the GID of the port where the frame
	 * came in is the router's */
	grh.dgid = gid(0xfe80000000000000, 0x101);
	is_here();
	grh.dgid = gid(0xfe80000000000000, 0x102);
	drops(DROP_SCOPE);
	/* the prefix of one port and the GUID of another: no GID of the
	 * router */
	grh.dgid = gid(0xfec0000000000002, 0x101);
	leaves_by(2);
	begin();
	lrh.lnh = LNH_LOCAL;
	is_here();
	lrh.lnh = LNH_GLOBAL;
	lrh.vl = VB_VL_MGMT;
	is_here();
}

static void way__what_no_router_forwards(void **state)
{
	begin();
	grh.hop_limit = 1;
	drops(DROP_HOP_LIMIT);
	grh.hop_limit = 0;
	drops(DROP_HOP_LIMIT);
	grh.hop_limit = 2;
	leaves_by(2);
	begin();
	grh.sgid = gid(0xfe80000000000000, 7);
	drops(DROP_SCOPE);
	begin();
	grh.dgid = gid(0xff1e000000000000, 7);
	drops(DROP_SCOPE);
	begin();
	lrh.dlid = 12;
	drops(DROP_NO_GRH);
	begin();
	lrh.lnh = LNH_IP;
	drops(DROP_NO_GRH);
	begin();
	grh.udp_bytes++;
	drops(DROP_GRH);
	begin();
	grh.iba = false;
	drops(DROP_GRH);
}

static void out__what_the_port_refuses(void **state)
{
	struct vb_fab_path path = { .dlid = 9, .sl = 5, .mtu = 5 };
	uint8_t vl = 99;

	begin();
	(void)decide();
	rt->port[2].sl2vl[5] = 3;
	assert_int_equal(vb_fab_router_out(rt, 2, &path, &view, &vl), DROP_NOT);
	assert_int_equal(vl, 3);
	rt->port[2].sl2vl[5] = 4;
	assert_int_equal(vb_fab_router_out(rt, 2, &path, &view, &vl), DROP_SL);
	assert_int_equal(vb_fab_router_out(rt, 3, &path, &view, &vl),
			 DROP_INACTIVE);
	/* the smaller of the port's MTU and the path's counts */
	rt->port[2].sl2vl[5] = 0;
	path.mtu = 1;
	assert_int_equal(vb_fab_router_out(rt, 2, &path, &view, &vl), DROP_MTU);
	path.mtu = 2;
	assert_int_equal(vb_fab_router_out(rt, 2, &path, &view, &vl), DROP_NOT);
	rt->port[2].mtu = 1;
	assert_int_equal(vb_fab_router_out(rt, 2, &path, &view, &vl), DROP_MTU);
}

/* The frame gets a new LRH, and its hop limit is less by one; the ICRC stays
 * right (IBA 7.8.1). */
static void rewrite__keeps_the_icrc(void **state)
{
	const struct vb_fab_path path = { .dlid = 0x1234, .sl = 9, .mtu = 5 };
	uint8_t old[LEN];
	struct vb_lrh h;
	struct vb_grh g;

	begin();
	(void)decide();
	memcpy(old, bytes, LEN);
	vb_fab_router_rewrite(rt, 2, &path, bytes);
	assert_true(vb_lrh_icrc_good(bytes, LEN));
	vb_lrh_get(bytes, &h);
	assert_int_equal(h.dlid, 0x1234);
	assert_int_equal(h.slid, 12);
	assert_int_equal(h.sl, 9);
	assert_int_equal(h.lnh, LNH_GLOBAL);
	assert_int_equal(h.words, LEN / 4);
	assert_true(vb_grh_get_iba(bytes + VB_LRH_BYTES, &g));
	assert_int_equal(g.hop_limit, 63);
	assert_int_equal(g.tclass, 3);
	assert_int_equal(g.flow_label, 5);
	/* from the GIDs on the frame is unchanged */
	assert_memory_equal(bytes + 16, old + 16, LEN - 16);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(way__by_the_prefix, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(way__by_the_routes_of_the_file,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(way__to_the_router_itself,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(way__what_no_router_forwards,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(out__what_the_port_refuses,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(rewrite__keeps_the_icrc, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
