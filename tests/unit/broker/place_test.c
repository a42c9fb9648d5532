/* SPDX-License-Identifier: BSD-2-Clause */
/* Places (adapters of fabrics that programs use): what the broker accepts from
 * a fabric's process, and what it sends to that process. */
#include "tests/unit/broker/fake_fabric.h"

#include <errno.h>
#include <poll.h>

#include "broker/place.h"

#define STRANGER 1234 /* a user who is neither root nor the broker's */

static struct fake_fabric fabric;
static struct vb_places *places;
static struct vb_mad_path from;
static unsigned cm_mads, sa_mads, silences, changes;

static const struct vb_place_claim claim = { .node_guid = NODE_GUID,
					     .port = 1,
					     .cm_agent = CM_AGENT,
					     .sa_agent = SA_AGENT };

static void take_cm(void *arg, const struct vb_mad_path *back,
		    const uint8_t *bytes, size_t len)
{
	(void)arg, (void)bytes;
	assert_int_equal(len, VB_MAD_BYTES);
	from = *back;
	cm_mads++;
}

static void take_sa(void *arg, unsigned place, bool silent,
		    const uint8_t *bytes, size_t len)
{
	(void)arg, (void)place, (void)bytes, (void)len;
	silences += silent;
	sa_mads += !silent;
}

static void take_change(void *arg, unsigned place, unsigned what)
{
	(void)arg, (void)place;
	changes |= what;
}

static int begin(void **state)
{
	const struct vb_place_ops ops = { take_cm, take_sa, take_change, NULL };

	(void)state;
	cm_mads = sa_mads = silences = changes = 0;
	fake_fabric_begin(&fabric);
	return vb_places_create(&ops, &places);
}

static int finish(void **state)
{
	(void)state;
	vb_places_destroy(places);
	if (fabric.fd >= 0)
		close(fabric.fd);
	return 0;
}

static unsigned give(void)
{
	int rc;

	fake_say_port(&fabric);
	rc = vb_place_add(places, fabric.broker, getuid(), &claim);
	assert_true(rc > 0);
	return (unsigned)rc;
}

static void place__is_found_by_its_fabric_and_port(void **state)
{
	struct vb_place_claim other = claim;
	unsigned n;

	(void)state;
	assert_int_equal(vb_place_find(places, fabric.broker, getuid(), &claim),
			 -ENOENT);
	n = give();
	assert_int_equal(vb_place_find(places, fabric.broker, getuid(), &claim),
			 n);
	other.port = 2;
	assert_int_equal(vb_place_find(places, fabric.broker, getuid(), &other),
			 -ENOENT);
	other = claim;
	other.node_guid++;
	assert_int_equal(vb_place_find(places, fabric.broker, getuid(), &other),
			 -ENOENT);
}

static void place__needs_a_connection_that_says_its_port(void **state)
{
	int pair[2];

	(void)state;
	assert_int_equal(pipe(pair), 0);
	assert_int_equal(vb_place_add(places, pair[0], getuid(), &claim),
			 -EPROTO);
	close(pair[0]);
	close(pair[1]);
	assert_int_equal(vb_place_add(places, fabric.broker, getuid(), &claim),
			 -EPROTO);
	fabric.port.node_guid++;
	fake_say_port(&fabric);
	assert_int_equal(vb_place_add(places, fabric.broker, getuid(), &claim),
			 -EPROTO);
	fabric.port.node_guid--;
	fabric.port.guids = VB_VERBS_GUIDS + 1;
	fake_say_port(&fabric);
	assert_int_equal(vb_place_add(places, fabric.broker, getuid(), &claim),
			 -EPROTO);
	close(fabric.broker);
}

static void place__gets_the_number_that_it_had(void **state)
{
	struct vb_place_claim again = claim;

	(void)state;
	again.wanted = 40;
	fake_say_port(&fabric);
	assert_int_equal(vb_place_add(places, fabric.broker, getuid(), &again),
			 40);
}

/* Begin with a fabric whose process belongs to the user @uid. */
static void begin_of(struct fake_fabric *f, uid_t uid)
{
	assert_int_equal(seteuid(uid), 0);
	fake_fabric_begin(f);
	assert_int_equal(seteuid(0), 0);
}

static void place__one_user_cannot_take_all(void **state)
{
	struct fake_fabric all[17];

	(void)state;
	if (getuid() != 0)
		skip(); /* only root can become another user */
	for (unsigned i = 0; i < VB_COUNT(all); i++) {
		begin_of(&all[i], STRANGER);
		fake_say_port(&all[i]);
		if (i + 1 < VB_COUNT(all))
			assert_true(vb_place_add(places, all[i].broker,
						 STRANGER, &claim) > 0);
		else
			assert_int_equal(vb_place_add(places, all[i].broker,
						      STRANGER, &claim),
					 -EDQUOT);
	}
	(void)give();
	close(all[VB_COUNT(all) - 1].broker);
	for (unsigned i = 0; i < VB_COUNT(all); i++)
		close(all[i].fd);
}

/* A user who can connect to another user's fabric for a moment must not get the
 * place that this other user has given to the broker. */
static void place__is_not_for_other_users(void **state)
{
	struct fake_fabric theirs;

	(void)state;
	(void)give();
	if (getuid() != 0)
		skip(); /* only root can become another user */
	assert_int_equal(vb_place_find(places, fabric.broker, STRANGER, &claim),
			 -EPERM);
	begin_of(&theirs, STRANGER);
	assert_int_equal(vb_place_find(places, theirs.broker, STRANGER, &claim),
			 -ENOENT);
	assert_int_equal(
		vb_place_find(places, theirs.broker, STRANGER + 1, &claim),
		-EPERM);
	close(theirs.broker);
	close(theirs.fd);
}

static void port__gids_lids_and_pkeys(void **state)
{
	unsigned n = give();
	struct vb_gid gid = fake_gid(PORT_GUID);
	static const struct vb_gid none;
	uint8_t bits = 9;

	(void)state;
	assert_true(vb_place_has_gid(places, n, &gid));
	assert_false(vb_place_has_gid(places, n, &none));
	assert_false(vb_place_has_gid(places, n + 1, &gid));
	gid = fake_gid(PORT_GUID + 1);
	assert_false(vb_place_has_gid(places, n, &gid));
	assert_true(vb_place_has_lid(places, n, 5, &bits));
	assert_int_equal(bits, 1);
	assert_true(vb_place_has_lid(places, n, 4, &bits));
	assert_int_equal(bits, 0);
	assert_false(vb_place_has_lid(places, n, 6, &bits));
	assert_false(vb_place_has_lid(places, n, 3, &bits));
	assert_false(vb_place_has_lid(places, n + 1, 4, &bits));
	assert_int_equal(vb_place_lid(places, n), 4);
	/* if the table of P_Keys has both memberships, the index is that of the
	 * full one */
	assert_int_equal(vb_place_pkey_index(places, n, 0x0002), 2);
	assert_int_equal(vb_place_pkey_index(places, n, 0x7fff), 0);
	assert_int_equal(vb_place_pkey_index(places, n, 0x8003), -ENOENT);
	assert_int_equal(vb_place_pkey_index(places, n, 0), -ENOENT);
}

static void mads__go_to_the_lid_of_the_path(void **state)
{
	const struct vb_mad_path path = { .place = (uint8_t)give(),
					  .dlid = PEER_LID,
					  .sl = 3,
					  .path_bits = 1,
					  .pkey = 0x8002 };
	struct vb_mad_path global = path;
	uint8_t mad[VB_MAD_BYTES] = { 1, 7 }, heard[VB_MAD_BYTES];
	struct ib_user_mad u;

	(void)state;
	vb_place_send(places, &path, mad);
	assert_true(fake_hear(&fabric, &u, heard));
	assert_memory_equal(heard, mad, sizeof(mad));
	assert_int_equal(u.agent_id, CM_AGENT);
	assert_int_equal(be16toh(u.addr.lid), PEER_LID);
	assert_int_equal(be32toh(u.addr.qpn), VB_GSI_QPN);
	assert_int_equal(be32toh(u.addr.qkey), VB_GSI_QKEY);
	assert_int_equal(u.addr.sl, 3);
	assert_int_equal(u.addr.path_bits, 1);
	assert_int_equal(u.addr.pkey_index, 2);
	assert_false(u.addr.grh_present);
	global.global = true;
	global.hop_limit = 64;
	global.sgid = fake_gid(0x77);
	global.dgid = fake_gid(0x99);
	vb_place_send(places, &global, mad);
	assert_true(fake_hear(&fabric, &u, heard));
	assert_true(u.addr.grh_present);
	assert_int_equal(u.addr.gid_index, 1);
	assert_int_equal(u.addr.hop_limit, 64);
	assert_memory_equal(u.addr.gid, global.dgid.raw, 16);
	/* a P_Key that is not in the port's table of P_Keys */
	global.pkey = 0x8009;
	vb_place_send(places, &global, mad);
	assert_false(fake_hear(&fabric, &u, heard));
}

static void mads__come_with_the_path_back(void **state)
{
	const uint8_t mad[VB_MAD_BYTES] = { 1, 7 };
	const struct vb_gid own = fake_gid(PORT_GUID);
	unsigned n = give();

	(void)state;
	fake_say_mad(&fabric, CM_AGENT, 0, PEER_LID, mad, sizeof(mad));
	vb_places_poll(places);
	assert_int_equal(cm_mads, 1);
	assert_int_equal(from.place, n);
	assert_int_equal(from.dlid, PEER_LID);
	assert_int_equal(from.pkey, 0xffff);
	assert_false(from.global);
	assert_true(vb_gid_equal(&from.sgid, &own));
	assert_true(vb_gid_is_zero(&from.dgid));
	/* ignored: a MAD for an agent that is not the broker's, and the report
	 * of a MAD that could not be sent */
	fake_say_mad(&fabric, 9, 0, PEER_LID, mad, sizeof(mad));
	fake_say_mad(&fabric, CM_AGENT, 110, PEER_LID, mad, 24);
	fake_say_mad(&fabric, SA_AGENT, 0, SM_LID, mad, sizeof(mad));
	fake_say_mad(&fabric, SA_AGENT, 110, SM_LID, mad, 24);
	vb_places_poll(places);
	assert_int_equal(cm_mads, 1);
	assert_int_equal(sa_mads, 1);
	assert_int_equal(silences, 1);
}

static unsigned changes_to(void)
{
	changes = 0;
	fake_say_port(&fabric);
	vb_places_poll(places);
	return changes;
}

static void port__changes_are_told(void **state)
{
	uint8_t mad[VB_MAD_BYTES] = { 1, 3 };
	unsigned n = give();

	(void)state;
	assert_int_equal(changes_to(), 0);
	fabric.port.lid = 8;
	assert_int_equal(changes_to(), PLACE_CHANGED_ADDRESS);
	fabric.port.sm_lid = 2;
	assert_int_equal(changes_to(), PLACE_CHANGED_MANAGER);
	fabric.port.reregisters++;
	assert_int_equal(changes_to(), PLACE_REREGISTER);
	assert_int_equal(vb_place_ask(places, n, mad, 100, 2), 0);
	fabric.port.state = 1;
	assert_int_equal(changes_to(), PLACE_CHANGED_STATE);
	assert_int_equal(vb_place_ask(places, n, mad, 100, 2), -EAGAIN);
}

static void expect_end(unsigned n)
{
	const struct vb_gid gid = fake_gid(PORT_GUID);
	uint8_t mad[VB_MAD_BYTES] = { 1, 3 };

	vb_places_poll(places);
	assert_int_equal(changes, PLACE_ENDED);
	assert_false(vb_place_has_gid(places, n, &gid));
	assert_int_equal(vb_place_ask(places, n, mad, 100, 2), -ENODEV);
}

static void fabric__that_ends(void **state)
{
	unsigned n = give();

	(void)state;
	close(fabric.fd);
	fabric.fd = -1;
	expect_end(n);
}

static void fabric__that_says_what_is_impossible(void **state)
{
	unsigned n = give();

	(void)state;
	fabric.port.lid = 0xc000;
	fake_say_port(&fabric);
	expect_end(n);
}

static void fabric__that_breaks_the_protocol(void **state)
{
	unsigned n = give();

	(void)state;
	assert_int_equal(send(fabric.fd, "hello", 5, 0), 5);
	expect_end(n);
}

/* The program that gave the fabric's connection to the broker still has it
 * open. After the fabric has ended, the broker must not poll the connection any
 * more, because it would stay readable. */
static void fabric__that_ends_wakes_nobody_afterwards(void **state)
{
	struct pollfd ready = { vb_places_fd(places), POLLIN, 0 };
	int kept = dup(fabric.broker);

	(void)state;
	assert_true(kept >= 0);
	(void)give();
	close(fabric.fd);
	fabric.fd = -1;
	assert_int_equal(poll(&ready, 1, 0), 1);
	vb_places_poll(places);
	assert_int_equal(poll(&ready, 1, 0), 0);
	close(kept);
}

/* The number of a place whose fabric has ended stays in use while a program
 * uses it. */
static void reap__only_what_nobody_uses(void **state)
{
	unsigned n = give();
	uint8_t byte;

	(void)state;
	vb_place_hold(places, n);
	vb_place_reap(places);
	assert_false(vb_place_is_idle(places));
	assert_int_equal(recv(fabric.fd, &byte, 1, MSG_DONTWAIT), -1);
	vb_place_drop(places, n);
	assert_true(vb_place_is_idle(places));
	vb_place_reap(places);
	assert_false(vb_place_is_idle(places));
	assert_int_equal(recv(fabric.fd, &byte, 1, MSG_DONTWAIT), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(place__is_found_by_its_fabric_and_port),
		TEST(place__needs_a_connection_that_says_its_port),
		TEST(place__gets_the_number_that_it_had),
		TEST(place__one_user_cannot_take_all),
		TEST(place__is_not_for_other_users),
		TEST(port__gids_lids_and_pkeys),
		TEST(mads__go_to_the_lid_of_the_path),
		TEST(mads__come_with_the_path_back),
		TEST(port__changes_are_told),
		TEST(fabric__that_ends),
		TEST(fabric__that_says_what_is_impossible),
		TEST(fabric__that_breaks_the_protocol),
		TEST(fabric__that_ends_wakes_nobody_afterwards),
		TEST(reap__only_what_nobody_uses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
