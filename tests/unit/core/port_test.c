/* SPDX-License-Identifier: BSD-2-Clause */
/* core/port: the GID table as addresses come and go; MTU and state. */
#include "fixture.h"
#include "tests/support/child_says.h"

static struct vb_port port;
static struct vb_port_update update;

static int fresh(void **state)
{
	vb_port_init(&port);
	memcpy(port.mac, "\x02\x11\x22\x33\x44\x55", 6);
	port.ifindex = 4;
	memset(&update, 0, sizeof(update));
	update.up = true;
	update.mtu = 1500;
	return 0;
}

static int gone(void **state)
{
	vb_port_fini(&port);
	return 0;
}

static struct vb_gid address(uint8_t n)
{
	const uint8_t ipv4[4] = { 10, 0, 0, n };

	return vb_gid_from_ipv4(ipv4);
}

static void say(unsigned count, const uint8_t *numbers)
{
	update.count = count;
	for (unsigned i = 0; i < count; i++)
		update.addresses[i] = address(numbers[i]);
}
#define SAY(...)                                                               \
	say(sizeof((uint8_t[]){ __VA_ARGS__ }),                                \
	    (const uint8_t[]){ __VA_ARGS__ })

static int index_of(uint8_t n)
{
	struct vb_gid gid = address(n);

	return vb_port_find_gid(&port, &gid, GID_ROCE_V2);
}

static void mtu__fits_with_headers(void **state)
{
	static const struct {
		uint32_t netdev;
		uint8_t code;
	} rows[] = {
		{ 0, 1 },     { 100, 1 },	 { 607, 1 },  { 608, 2 },
		{ 1119, 2 },  { 1120, 3 },	 { 1500, 3 }, { 2143, 3 },
		{ 2144, 4 },  { 4191, 4 },	 { 4192, 5 }, { 9000, 5 },
		{ 65536, 5 }, { UINT32_MAX, 5 },
	};

	for (size_t i = 0; i < VB_COUNT(rows); i++)
		assert_int_equal(vb_mtu_for_netdev(rows[i].netdev),
				 rows[i].code);
}

static void init__is_down_and_empty(void **state)
{
	struct vb_gid_entry e;
	struct vb_gid zero = { 0 };

	assert_int_equal(port.state, PORT_DOWN);
	assert_int_equal(port.max_mtu, 5);
	assert_false(vb_port_gid(&port, 0, &e));
	assert_int_equal(vb_port_find_gid(&port, &zero, GID_ROCE_V2), -1);
}

static void update__default_gid_first(void **state)
{
	struct vb_gid def = vb_gid_from_mac(port.mac);
	struct vb_gid_entry e;

	SAY(1);
	assert_int_equal(vb_port_update(&port, &update),
			 PORT_UP | PORT_GIDS | PORT_MTU);
	assert_int_equal(port.state, PORT_ACTIVE);
	assert_int_equal(port.active_mtu, 3);
	assert_true(vb_port_gid(&port, 0, &e));
	assert_true(vb_gid_equal(&e.gid, &def));
	assert_int_equal(e.ifindex, 4);
	assert_int_equal(index_of(1), 1);
	assert_int_equal(port.gid_count, 2);
	assert_false(vb_port_gid(&port, 2, &e));
	assert_false(vb_port_gid(&port, VB_MAX_GIDS, &e));
	assert_false(vb_port_gid(&port, UINT32_MAX, &e));
}

static void update__an_interface_goes(void **state)
{
	const struct vb_port_update none = { 0 }, unlisted = { .stays = true };

	assert_false(vb_port_update(&port, &none) & PORT_GONE);
	SAY(1);
	update.ifindex = 4;
	assert_false(vb_port_update(&port, &update) & PORT_GONE);
	assert_int_equal(vb_port_update(&port, &none),
			 PORT_GONE | PORT_WENT_DOWN | PORT_GIDS | PORT_MTU);
	assert_int_equal(vb_port_update(&port, &none), PORT_SAME);
	assert_int_equal(vb_port_update(&port, &update),
			 PORT_UP | PORT_GIDS | PORT_MTU);
	/* The interface exists, but the list of addresses does not have it. */
	assert_int_equal(vb_port_update(&port, &unlisted),
			 PORT_WENT_DOWN | PORT_GIDS | PORT_MTU);
	assert_int_equal(vb_port_update(&port, &unlisted), PORT_SAME);
	assert_int_equal(vb_port_update(&port, &none), PORT_GONE);
	assert_int_equal(vb_port_update(&port, &unlisted), PORT_SAME);
	assert_int_equal(vb_port_update(&port, &update),
			 PORT_UP | PORT_GIDS | PORT_MTU);
	/* A new ifindex: the interface was deleted and made again. */
	update.ifindex++;
	assert_int_equal(vb_port_update(&port, &update), PORT_GONE | PORT_GIDS);
	assert_int_equal(vb_port_update(&port, &update), PORT_SAME);
}

static void update__idempotent(void **state)
{
	SAY(1, 2);
	vb_port_update(&port, &update);
	assert_int_equal(vb_port_update(&port, &update), PORT_SAME);
	SAY(2, 1); /* the same addresses in another order are no change */
	assert_int_equal(vb_port_update(&port, &update), PORT_SAME);
}

static void update__hole_stays_and_is_taken_first(void **state)
{
	struct vb_gid_entry e;

	SAY(1, 2, 3);
	vb_port_update(&port, &update);
	SAY(1, 3);
	assert_int_equal(vb_port_update(&port, &update), PORT_GIDS);
	assert_int_equal(index_of(1), 1);
	assert_int_equal(index_of(2), -1);
	assert_int_equal(index_of(3), 3);
	assert_false(vb_port_gid(&port, 2, &e));
	SAY(1, 3, 5, 6);
	assert_int_equal(vb_port_update(&port, &update), PORT_GIDS);
	assert_int_equal(index_of(3), 3);
	assert_int_equal(index_of(5), 2);
	assert_int_equal(index_of(6), 4);
}

static void update__count_shrinks_with_the_last(void **state)
{
	SAY(1, 2, 3);
	vb_port_update(&port, &update);
	SAY(1);
	vb_port_update(&port, &update);
	assert_int_equal(port.gid_count, 2);
	update.count = 0;
	vb_port_update(&port, &update);
	assert_int_equal(port.gid_count, 1);
}

static void update__one_goes_while_one_comes(void **state)
{
	SAY(1, 2);
	vb_port_update(&port, &update);
	SAY(3, 2);
	assert_int_equal(vb_port_update(&port, &update), PORT_GIDS);
	assert_int_equal(index_of(3), 1);
	assert_int_equal(index_of(2), 2);
}

static void
update__default_zero_and_double_addresses_take_no_place(void **state)
{
	SAY(1, 1, 2);
	update.count = 5;
	update.addresses[3] = vb_gid_from_mac(port.mac);
	memset(&update.addresses[4], 0, sizeof(update.addresses[4]));
	vb_port_update(&port, &update);
	assert_int_equal(port.gid_count, 3);
	assert_int_equal(index_of(2), 2);
}

static void update__full_table(void **state)
{
	struct vb_gid_entry e;

	for (unsigned i = 0; i < VB_COUNT(update.addresses); i++)
		update.addresses[i] = address((uint8_t)(i + 1));
	/* a count that is larger than the table of addresses */
	update.count = UINT32_MAX;
	vb_port_update(&port, &update);
	assert_int_equal(port.gid_count, VB_MAX_GIDS);
	assert_true(vb_port_gid(&port, VB_MAX_GIDS - 1, &e));
	assert_int_equal(index_of(255), 255);
}

static int pair_of(uint8_t n)
{
	struct vb_gid gid = address(n);
	int v1 = vb_port_find_gid(&port, &gid, GID_ROCE_V1);

	assert_int_equal(index_of(n), v1 < 0 ? -1 : v1 + 1);
	return v1;
}

/* Linux has RoCEv1's entry of an address before RoCEv2's. */
static void update__both_types_in_pairs(void **state)
{
	struct vb_gid def = vb_gid_from_mac(port.mac);
	struct vb_gid_entry e;

	update.both_types = true;
	SAY(1, 2, 3);
	assert_true(vb_port_update(&port, &update) & PORT_GIDS);
	assert_int_equal(vb_port_find_gid(&port, &def, GID_ROCE_V1), 0);
	assert_int_equal(vb_port_find_gid(&port, &def, GID_ROCE_V2), 1);
	assert_int_equal(vb_port_find_gid(&port, &def, GID_IB), -1);
	assert_int_equal(pair_of(1), 2);
	assert_int_equal(pair_of(2), 4);
	assert_int_equal(pair_of(3), 6);
	assert_int_equal(port.gid_count, 8);
	assert_true(vb_port_gid(&port, 4, &e));
	assert_int_equal(e.type, GID_ROCE_V1);
	assert_true(vb_port_gid(&port, 5, &e));
	assert_int_equal(e.type, GID_ROCE_V2);
	assert_int_equal(vb_port_update(&port, &update), PORT_SAME);
	SAY(1, 3);
	assert_int_equal(vb_port_update(&port, &update), PORT_GIDS);
	assert_int_equal(pair_of(2), -1);
	assert_int_equal(pair_of(3), 6);
	SAY(1, 3, 9);
	assert_int_equal(vb_port_update(&port, &update), PORT_GIDS);
	assert_int_equal(pair_of(9), 4);
	SAY(1);
	assert_int_equal(vb_port_update(&port, &update), PORT_GIDS);
	assert_int_equal(port.gid_count, 4);
}

static void update__both_types_fill_the_table(void **state)
{
	update.both_types = true;
	for (unsigned i = 0; i < VB_COUNT(update.addresses); i++)
		update.addresses[i] = address((uint8_t)(i + 1));
	update.count = VB_COUNT(update.addresses);
	vb_port_update(&port, &update);
	assert_int_equal(port.gid_count, VB_MAX_GIDS);
	assert_int_equal(pair_of(127), VB_MAX_GIDS - 2);
	assert_int_equal(pair_of(128), -1);
	assert_int_equal(vb_port_update(&port, &update), PORT_SAME);
}

static void update__down_up_and_mtu(void **state)
{
	SAY(1);
	vb_port_update(&port, &update);
	update.up = false;
	assert_int_equal(vb_port_update(&port, &update), PORT_WENT_DOWN);
	assert_int_equal(port.state, PORT_DOWN);
	update.up = true;
	update.mtu = 9000;
	assert_int_equal(vb_port_update(&port, &update), PORT_UP | PORT_MTU);
	assert_int_equal(port.active_mtu, 5);
	assert_int_equal(port.netdev_mtu, 9000);
}

static void update__new_mac_new_default(void **state)
{
	struct vb_gid def;

	SAY(1);
	vb_port_update(&port, &update);
	port.mac[5] = 0x77;
	def = vb_gid_from_mac(port.mac);
	assert_int_equal(vb_port_update(&port, &update), PORT_GIDS);
	assert_int_equal(vb_port_find_gid(&port, &def, GID_ROCE_V2), 0);
	assert_int_equal(index_of(1), 1);
}

static struct vb_port_ib_update ib_update(void)
{
	return (struct vb_port_ib_update){
		.ib = { .present = true, .phys = 5, .lmc = 2, .lid = 8 },
		.state = PORT_ACTIVE,
		.active_mtu = 4,
		.max_mtu = 5,
		.pkeys = 1,
		.pkey = { 0xffff },
		.gids = 1,
		.gid = { { { 0xfe, 0x80, [15] = 1 } } },
	};
}

/* When the fabric ends, only the port's state changes, so that programs are not
 * told of changed tables. */
static void ib__its_end_keeps_the_tables(void **state)
{
	struct vb_port_ib_update is = ib_update();

	assert_int_equal(vb_port_ib_update(&port, &is), PORT_SAME);
	assert_int_equal(atomic_load(&port.lmc), 2);
	assert_int_equal(vb_port_ib_end(&port), PORT_WENT_DOWN | PORT_GONE);
	assert_int_equal(port.state, PORT_DOWN);
	assert_int_equal(port.ib.phys, 3);
	assert_int_equal(port.ib.lid, 8);
	assert_int_equal(vb_port_pkey(&port, 0), 0xffff);
	assert_int_equal(vb_port_find_gid(&port, &is.gid[0], GID_IB), 0);
}

/* Dispatching reads the LMC without a lock. */
static void ib__the_lmc_follows(void **state)
{
	struct vb_port_ib_update is = ib_update();

	(void)vb_port_ib_update(&port, &is);
	is.ib.lmc = 3;
	assert_int_equal(vb_port_ib_update(&port, &is), PORT_LID);
	assert_int_equal(atomic_load(&port.lmc), 3);
	assert_true(port.ib.present);
}

/* Report three times, in each state of a port, that a program wants to use the
 * port. */
static void need_port(void)
{
	struct vb_port_ib_update is = ib_update();

	/* no message: this is no InfiniBand port yet */
	vb_port_ib_tell(&port, "roce_x");
	for (enum vb_port_state s = PORT_DOWN; s <= PORT_ACTIVE; s++) {
		is.state = s;
		(void)vb_port_ib_update(&port, &is);
		for (int i = 0; i < 3; i++)
			vb_port_ib_tell(&port, "ib0");
	}
	/* no message: the engine itself reports the end of a fabric */
	(void)vb_port_ib_end(&port);
	vb_port_ib_tell(&port, "ib0");
}

static void ib__a_port_that_is_not_active_is_told_once(void **state)
{
	char text[1 << 12];
	const char *at = text;
	int lines = 0;

	(void)child_says(need_port, "warn", text, sizeof(text));
	while ((at = strchr(at, '\n')) && *at++)
		lines++;
	/* no message in ARMED, because the port was already reported for INIT,
	 * for the same reason */
	assert_int_equal(lines, 2);
	assert_non_null(strstr(text, ": DOWN: its link is up, and carries no"));
	assert_non_null(strstr(text, "ib0, port 1: INIT: no subnet manager"));
}

#define PORT_TEST(name) cmocka_unit_test_setup_teardown(name, fresh, gone)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mtu__fits_with_headers),
		PORT_TEST(ib__a_port_that_is_not_active_is_told_once),
		PORT_TEST(init__is_down_and_empty),
		PORT_TEST(update__default_gid_first),
		PORT_TEST(update__an_interface_goes),
		PORT_TEST(update__idempotent),
		PORT_TEST(update__hole_stays_and_is_taken_first),
		PORT_TEST(update__count_shrinks_with_the_last),
		PORT_TEST(update__one_goes_while_one_comes),
		PORT_TEST(
			update__default_zero_and_double_addresses_take_no_place),
		PORT_TEST(update__full_table),
		PORT_TEST(update__both_types_in_pairs),
		PORT_TEST(update__both_types_fill_the_table),
		PORT_TEST(update__down_up_and_mtu),
		PORT_TEST(update__new_mac_new_default),
		PORT_TEST(ib__its_end_keeps_the_tables),
		PORT_TEST(ib__the_lmc_follows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
