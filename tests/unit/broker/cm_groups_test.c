/* SPDX-License-Identifier: BSD-2-Clause */
/* Multicast groups of programs that use an adapter of a fabric. */
#include "tests/unit/broker/cm_bed.h"

static struct vb_sa_hdr sa_hears_group(struct vb_sa_mcmember *g)
{
	uint8_t mad[VB_MAD_BYTES];
	struct ib_user_mad u;
	struct vb_sa_hdr h;

	assert_true(fake_hear(&fabric, &u, mad));
	assert_true(vb_sa_hdr_get(mad, sizeof(mad), &h));
	assert_int_equal(h.attr_id, SA_MCMEMBER);
	(void)!vb_sa_mcmember_get(mad, g);
	return h;
}

static void sa_says_group(struct vb_sa_hdr h, const struct vb_sa_mcmember *g,
			  uint16_t status)
{
	uint8_t mad[VB_MAD_BYTES];

	h.method = SA_GET_RESP;
	h.status = status;
	vb_sa_mcmember_put(mad, &h, g);
	fake_say_mad(&fabric, SA_AGENT, 0, SM_LID, mad, sizeof(mad));
	vb_host_cm_poll(cm, now);
}

static void sa_joins(uint16_t mlid)
{
	struct vb_sa_mcmember g;
	struct vb_sa_hdr h = sa_hears_group(&g);

	assert_int_equal(h.method, SA_SET);
	g.mlid = mlid;
	g.mtu = 4;
	sa_says_group(h, &g, 0);
}

static void sa_asks_again(void)
{
	fabric.port.reregisters++;
	fake_say_port(&fabric);
	vb_host_cm_poll(cm, now);
}

static void group__is_joined_once_and_left_once(void **state)
{
	struct vb_ipc_cm m = path_of(CALLER, IPC_CM_GROUP_JOIN), close;
	struct vb_sa_mcmember g;
	uint8_t mad[VB_MAD_BYTES];
	struct ib_user_mad u;

	(void)state;
	give();
	bind_to(CALLER, fake_gid(PORT_GUID), 0, 0);
	bind_to(CALLER + 1, fake_gid(PORT_GUID), 0, 0);
	m.dst = (struct vb_gid){ { 0xff, 0x12, 0xa0, 0x1b, [15] = 1 } };
	m.flags = 0;
	m.qkey = 0x01234567;
	say(&m, -1);
	sa_joins(0xc005);
	assert_int_equal(answer().dlid, 0xc005);
	/* a second id of the program shares the port's membership */
	m.id++;
	say(&m, -1);
	assert_int_equal(answer().dlid, 0xc005);
	assert_false(fake_hear(&fabric, &u, mad));
	say(&m, -1);
	assert_int_equal(answer().status, EADDRINUSE);
	/* the subnet manager asks for registration again (ClientReregister), so
	 * the port joins the group again */
	sa_asks_again();
	sa_joins(0xc006);
	assert_int_equal(answer().status, ENETRESET);
	assert_int_equal(answer().status, ENETRESET);
	m.kind = IPC_CM_GROUP_LEAVE;
	say(&m, -1);
	assert_false(fake_hear(&fabric, &u, mad));
	/* the last id is closed without having left the group */
	close = message(IPC_CM_CLOSE, CALLER);
	say(&close, -1);
	assert_int_equal(sa_hears_group(&g).method, SA_DELETE);
	assert_int_equal(g.join_state, SA_FULL_MEMBER);
	assert_int_equal(g.mgid.raw[15], 1);
}

/* A subnet administrator that has forgotten the group refuses to let the port
 * join it again. */
static void group__that_cannot_be_joined_again(void **state)
{
	struct vb_ipc_cm m = path_of(CALLER, IPC_CM_GROUP_JOIN);
	struct vb_sa_mcmember g;
	struct vb_sa_hdr h;

	(void)state;
	give();
	bind_to(CALLER, fake_gid(PORT_GUID), 0, 0);
	m.dst = (struct vb_gid){ { 0xff, 0x12, 0xa0, 0x1b, [15] = 1 } };
	say(&m, -1);
	sa_joins(0xc005);
	assert_int_equal(answer().status, 0);
	sa_asks_again();
	h = sa_hears_group(&g);
	sa_says_group(h, &g, SA_DENIED);
	assert_int_equal(answer().status, EINVAL);
	/* the id is no longer a member, so it may join again */
	say(&m, -1);
	sa_joins(0xc006);
	assert_int_equal(answer().dlid, 0xc006);
}

/* A program that joins by GID zero ("any group") gets a group, and keeps that
 * group's GID at later joins. */
static void group__of_any_gid_keeps_its_gid(void **state)
{
	struct vb_ipc_cm m = path_of(CALLER, IPC_CM_GROUP_JOIN), e;
	const struct vb_gid given = { { 0xff, 0x12, 0xa0, 0x1b, [15] = 9 } };
	struct vb_sa_mcmember g;
	struct vb_sa_hdr h;

	(void)state;
	give();
	bind_to(CALLER, fake_gid(PORT_GUID), 0, 0);
	m.dst = (struct vb_gid){ { 0 } };
	say(&m, -1);
	h = sa_hears_group(&g);
	assert_true(vb_gid_is_zero(&g.mgid));
	g.mgid = given;
	g.mlid = 0xc005;
	g.mtu = 4;
	sa_says_group(h, &g, 0);
	e = answer();
	assert_true(vb_gid_is_zero(&e.src));
	assert_true(vb_gid_equal(&e.dst, &given));
	sa_asks_again();
	h = sa_hears_group(&g);
	assert_true(vb_gid_equal(&g.mgid, &given));
	g.mlid = 0xc006;
	g.mtu = 4;
	sa_says_group(h, &g, 0);
	e = answer();
	assert_int_equal(e.status, ENETRESET);
	assert_true(vb_gid_equal(&e.src, &given));
	/* the program leaves the group by the GID zero, by which it joined */
	m.kind = IPC_CM_GROUP_LEAVE;
	say(&m, -1);
	assert_int_equal(sa_hears_group(&g).method, SA_DELETE);
	assert_true(vb_gid_equal(&g.mgid, &given));
}

static const struct vb_gid broadcast = {
	{ 0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, [12] = 0xff, 0xff, 0xff, 0xff }
};

/* The administrator answers two requests: one for the record of IPoIB's
 * broadcast group, and one to join a group with equal parameters. Returns the
 * record that the port asked to join. */
static struct vb_sa_mcmember sa_joins_alike(uint32_t qkey, uint8_t sl)
{
	struct vb_sa_mcmember g;
	struct vb_sa_hdr h = sa_hears_group(&g);

	assert_int_equal(h.method, SA_GET);
	assert_true(vb_gid_equal(&g.mgid, &broadcast));
	g = (struct vb_sa_mcmember){ .mgid = broadcast,
				     .qkey = qkey,
				     .mlid = 0xc000,
				     .mtu = 4,
				     .pkey = 0xffff,
				     .rate = 3,
				     .sl = sl };
	sa_says_group(h, &g, 0);
	h = sa_hears_group(&g);
	assert_int_equal(h.method, SA_SET);
	g.mlid = 0xc001;
	sa_says_group(h, &g, 0);
	return g;
}

/* When the port joins again it uses the present parameters of IPoIB's broadcast
 * group, which another subnet manager may have changed. */
static void group__of_ipoib_follows_the_broadcast_group(void **state)
{
	struct vb_ipc_cm m = path_of(CALLER, IPC_CM_GROUP_JOIN);

	(void)state;
	give();
	bind_to(CALLER, fake_gid(PORT_GUID), 0, 0);
	m.space = VB_IPC_CM_IPOIB;
	m.dst = (struct vb_gid){ { 0xff, 0x12, 0x40, 0x1b, 0xff,
				   0xff, [15] = 5 } };
	say(&m, -1);
	(void)sa_joins_alike(0xb1b, 2);
	assert_int_equal(answer().qkey, 0xb1b);
	sa_asks_again();
	assert_int_equal(sa_joins_alike(0xb1b, 3).sl, 3);
	/* a changed SL causes no event, because the program need not know it */
	assert_false(hears(&m));
	/* a changed Q_Key causes an event */
	sa_asks_again();
	assert_int_equal(sa_joins_alike(0xb2b, 3).qkey, 0xb2b);
	assert_int_equal(answer().status, ENETRESET);
}

/* As on Linux, a group of the port space IPoIB gets the parameters of IPoIB's
 * broadcast group, except for P_Key and GIDs. */
static void group__of_ipoib_is_as_the_broadcast_group(void **state)
{
	struct vb_ipc_cm m = path_of(CALLER, IPC_CM_GROUP_JOIN);
	const struct vb_gid mgid = { { 0xff, 0x12, 0x40, 0x1b, 0xff,
				       0xff, [15] = 5 } };
	struct vb_sa_mcmember g;
	struct vb_sa_hdr h;

	(void)state;
	give();
	bind_to(CALLER, fake_gid(PORT_GUID), 0, 0);
	m.space = VB_IPC_CM_IPOIB;
	m.qkey = 0x01234567;
	m.dst = mgid;
	say(&m, -1);
	h = sa_hears_group(&g);
	assert_int_equal(h.method, SA_GET);
	assert_int_equal(h.mask, SA_MC_MGID);
	assert_true(vb_gid_equal(&g.mgid, &broadcast));
	g = (struct vb_sa_mcmember){ .mgid = broadcast,
				     .qkey = 0xb1b,
				     .mlid = 0xc000,
				     .mtu = 4,
				     .tclass = 7,
				     .pkey = 0xffff,
				     .rate = 3,
				     .sl = 2,
				     .flow_label = 0x12345,
				     .hop_limit = 9 };
	sa_says_group(h, &g, 0);
	h = sa_hears_group(&g);
	assert_int_equal(h.method, SA_SET);
	assert_int_equal(h.mask,
			 SA_MC_MGID | SA_MC_PORT_GID | SA_MC_JOIN_STATE |
				 SA_MC_PKEY | SA_MC_QKEY | SA_MC_SL |
				 SA_MC_FLOW_LABEL | SA_MC_TCLASS | SA_MC_RATE |
				 SA_MC_MTU | SA_MC_HOP_LIMIT);
	assert_true(vb_gid_equal(&g.mgid, &mgid));
	assert_int_equal(g.qkey, 0xb1b);
	assert_int_equal(g.mtu, 4);
	assert_int_equal(g.mtu_selector, SA_EXACTLY);
	assert_int_equal(g.rate, 3);
	assert_int_equal(g.sl, 2);
	assert_int_equal(g.tclass, 7);
	assert_int_equal(g.flow_label, 0x12345);
	assert_int_equal(g.hop_limit, 9);
	g.mlid = 0xc001;
	sa_says_group(h, &g, 0);
	assert_int_equal(answer().qkey, 0xb1b);
	/* if the partition has no broadcast group, the join fails */
	m.dst.raw[15]++;
	say(&m, -1);
	h = sa_hears_group(&g);
	sa_says_group(h, &g, SA_NO_RECORDS);
	assert_int_equal(answer().status, EINVAL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(group__is_joined_once_and_left_once),
		TEST(group__that_cannot_be_joined_again),
		TEST(group__of_any_gid_keeps_its_gid),
		TEST(group__of_ipoib_is_as_the_broadcast_group),
		TEST(group__of_ipoib_follows_the_broadcast_group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
