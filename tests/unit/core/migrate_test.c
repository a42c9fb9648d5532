/* SPDX-License-Identifier: BSD-2-Clause */
/* core/migrate: how a packet changes each migration state, what a program may
 * set, and the move to the alternate path. */
#include "qp_fixture.h"

#include "core/migrate.h"

#define PRIMARY	  0x20
#define ALTERNATE 0x21

/* A connection on InfiniBand. The peer's port has the LIDs 0x20 and 0x21, this
 * port 0x10 and 0x11. */
struct rig {
	struct fixture *f;
	struct vb_qp *qp;
};

static struct vb_av av_of(uint16_t dlid, uint8_t bits)
{
	return (struct vb_av){ .dlid = dlid,
			       .src_path_bits = bits,
			       .port_num = 1 };
}

static struct vb_qp_attr alternate(enum vb_mig_state state)
{
	struct vb_qp_attr attr = good_attr(QPS_RTS);

	attr.alt_av = av_of(ALTERNATE, 1);
	attr.alt_port_num = 1;
	attr.alt_pkey_index = 0;
	attr.alt_timeout = 9;
	attr.path_mig_state = (uint8_t)state;
	return attr;
}

static struct rig rig_up(void **state)
{
	struct rig r = { .f = *state };
	struct vb_qp_attr attr = good_attr(QPS_RTR);

	r.f->a.ports[0].addressing = &vb_addressing_ib;
	atomic_store(&r.f->a.ports[0].lmc, 1);
	r.qp = make(r.f, init_of(r.f));
	assert_int_equal(modify(r.qp, QPS_INIT, TO_INIT), 0);
	attr.av = av_of(PRIMARY, 0);
	assert_int_equal(vb_qp_modify(r.qp, &attr, TO_RTR, 0), 0);
	assert_int_equal(modify(r.qp, QPS_RTS, TO_RTS), 0);
	return r;
}

static void rig_down(struct rig *r)
{
	vb_qp_destroy(r->qp);
	atomic_store(&r->f->a.ports[0].lmc, 0);
	r->f->a.ports[0].addressing = &vb_addressing_roce;
}

static int set(struct rig *r, uint32_t mask, struct vb_qp_attr attr)
{
	return vb_qp_modify(r->qp, &attr, mask, 0);
}

static int rearm(struct rig *r)
{
	return set(r, QPM_ALT_PATH | QPM_PATH_MIG_STATE, alternate(MIG_REARM));
}

static int state_of(const struct rig *r)
{
	return r->qp->attr.path_mig_state;
}

static enum vb_counter arrive_by(struct rig *r, const struct vb_link *link,
				 uint16_t slid, uint16_t dlid, bool requested,
				 uint16_t pkey)
{
	const struct vb_frame f = { .slid = slid, .dlid = dlid };
	enum vb_counter got;

	vb_mutex_lock(&r->qp->drive);
	got = vb_mig_arrive(r->qp, link, &f, requested, pkey);
	vb_mutex_unlock(&r->qp->drive);
	return got;
}

static enum vb_counter arrive(struct rig *r, uint16_t slid, uint16_t dlid,
			      bool requested, uint16_t pkey)
{
	return arrive_by(r, r->f->a.ports[0].link, slid, dlid, requested, pkey);
}

static void arm(struct rig *r)
{
	assert_int_equal(rearm(r), 0);
	assert_int_equal(arrive(r, PRIMARY, 0x10, false, 0xffff), CNT_COUNT);
	assert_int_equal(state_of(r), MIG_ARMED);
}

static void assert_quiet(struct rig *r)
{
	assert_false(is_readable(r->f->async.fd));
}

static void assert_on_alternate(struct rig *r)
{
	struct vb_qp_attr now;

	vb_qp_query(r->qp, &now);
	assert_int_equal(now.path_mig_state, MIG_MIGRATED);
	assert_int_equal(now.av.dlid, ALTERNATE);
	assert_int_equal(now.av.src_path_bits, 1);
	assert_int_equal(now.timeout, 9);
	assert_int_equal(now.port_num, 1);
	assert_int_equal(now.alt_port_num, 0);
	assert_int_equal(r->qp->route.ib.dlid, ALTERNATE);
	assert_event(r->f, EVENT_PATH_MIG);
	assert_quiet(r);
}

/* The rules of IBA 17.2.8, written as sentences, independently of the table
 * under test. */
static void hear__each_state_and_path(void **state)
{
	for (int s = 0; s < MIG_STATES; s++)
		for (int i = 0; i < 2 * BY_COUNT; i++) {
			bool requested = i & 1;
			enum vb_mig_path by = (enum vb_mig_path)(i / 2);
			struct vb_mig_row row = vb_mig_hear(
				(enum vb_mig_state)s, requested, by);
			bool follows = s != MIG_MIGRATED && requested &&
				       by == BY_ALTERNATE;
			bool fails =
				s == MIG_ARMED && requested && by == BY_PEER;

			assert_int_equal(row.act == MIG_REFUSE,
					 by == BY_STRANGER);
			assert_int_equal(row.act == MIG_SWITCH, follows);
			assert_int_equal(row.act == MIG_ERROR, fails);
			if (by == BY_STRANGER)
				assert_int_equal(row.next, s);
			else if (s == MIG_MIGRATED || follows)
				assert_int_equal(row.next, MIG_MIGRATED);
			else if (fails)
				assert_int_equal(row.next, MIG_REARM);
			else
				assert_int_equal(row.next,
						 requested ? s : MIG_ARMED);
		}
}

static void modify__loads_and_gives_back(void **state)
{
	struct rig r = rig_up(state);
	struct vb_qp_attr now;

	assert_int_equal(set(&r, QPM_ALT_PATH, alternate(MIG_ARMED)), 0);
	vb_qp_query(r.qp, &now);
	assert_int_equal(now.path_mig_state, MIG_MIGRATED);
	assert_int_equal(now.alt_av.dlid, ALTERNATE);
	assert_int_equal(now.alt_av.src_path_bits, 1);
	assert_int_equal(now.alt_port_num, 1);
	assert_int_equal(now.alt_timeout, 9);
	assert_int_equal(now.av.dlid, PRIMARY);
	assert_int_equal(set(&r, QPM_PATH_MIG_STATE, alternate(MIG_REARM)), 0);
	assert_int_equal(state_of(&r), MIG_REARM);
	rig_down(&r);
}

static void modify__refusals(void **state)
{
	struct rig r = rig_up(state);
	struct vb_qp_attr bad;

	/* Rearm is refused while no alternate path is loaded */
	assert_int_equal(set(&r, QPM_PATH_MIG_STATE, alternate(MIG_REARM)),
			 -EINVAL);
	/* a program must not set Armed, on which the two ends agree */
	assert_int_equal(set(&r, QPM_ALT_PATH | QPM_PATH_MIG_STATE,
			     alternate(MIG_ARMED)),
			 -EINVAL);
#define REFUSED(member, value)                                                 \
	do {                                                                   \
		bad = alternate(MIG_REARM);                                    \
		bad.member = (value);                                          \
		assert_int_equal(set(&r, QPM_ALT_PATH, bad), -EINVAL);         \
	} while (0)
	REFUSED(alt_port_num, 0);
	REFUSED(alt_port_num, 2);
	REFUSED(alt_av.port_num, 2);
	REFUSED(alt_av.dlid, 0);
	REFUSED(alt_av.dlid, 0xc001);
	REFUSED(alt_timeout, 32);
	REFUSED(alt_pkey_index, 1);
#undef REFUSED
	assert_int_equal(r.qp->attr.alt_port_num, 0);
	assert_int_equal(state_of(&r), MIG_MIGRATED);
	/* a RoCE port has no alternate path */
	r.f->a.ports[0].addressing = &vb_addressing_roce;
	assert_int_equal(rearm(&r), -EINVAL);
	assert_int_equal(set(&r, QPM_PATH_MIG_STATE, alternate(MIG_MIGRATED)),
			 0);
	r.f->a.ports[0].addressing = &vb_addressing_ib;
	rig_down(&r);
}

static void modify__forces_an_armed_one(void **state)
{
	struct rig r = rig_up(state);

	arm(&r);
	assert_quiet(&r);
	assert_int_equal(set(&r, QPM_PATH_MIG_STATE, alternate(MIG_MIGRATED)),
			 0);
	assert_on_alternate(&r);
	assert_int_equal(r.qp->migrations, 1);
	/* The alternate path was used and is loaded no more, so Rearm is
	 * refused. */
	assert_int_equal(set(&r, QPM_PATH_MIG_STATE, alternate(MIG_REARM)),
			 -EINVAL);
	rig_down(&r);
}

static void modify__calls_off_what_is_not_armed(void **state)
{
	struct rig r = rig_up(state);

	assert_int_equal(rearm(&r), 0);
	assert_int_equal(set(&r, QPM_PATH_MIG_STATE, alternate(MIG_MIGRATED)),
			 0);
	assert_int_equal(state_of(&r), MIG_MIGRATED);
	assert_int_equal(r.qp->route.ib.dlid, PRIMARY);
	assert_quiet(&r);
	/* If a path is loaded while Armed, the state goes back to Rearm, since
	 * the two ends must agree on the new path. */
	arm(&r);
	assert_int_equal(set(&r, QPM_ALT_PATH, alternate(MIG_MIGRATED)), 0);
	assert_int_equal(state_of(&r), MIG_REARM);
	assert_int_equal(modify(r.qp, QPS_RESET, QPM_STATE), 0);
	assert_int_equal(state_of(&r), MIG_MIGRATED);
	assert_int_equal(r.qp->attr.alt_port_num, 0);
	rig_down(&r);
}

static void arrive__the_peer_is_followed(void **state)
{
	struct rig r = rig_up(state);

	arm(&r);
	/* A packet from a stranger, or with another P_Key, does not change the
	 * state. */
	assert_int_equal(arrive(&r, 0x30, 0x11, true, 0xffff),
			 CNT_DROP_ADDRESS);
	assert_int_equal(arrive(&r, ALTERNATE, 0x11, true, 0x8123),
			 CNT_DROP_PKEY);
	assert_int_equal(state_of(&r), MIG_ARMED);
	assert_quiet(&r);
	assert_int_equal(arrive(&r, ALTERNATE, 0x11, true, 0xffff), CNT_COUNT);
	assert_on_alternate(&r);
	rig_down(&r);
}

static void arrive__another_path_is_an_error_once(void **state)
{
	struct rig r = rig_up(state);

	arm(&r);
	assert_int_equal(arrive(&r, ALTERNATE, 0x10, true, 0xffff),
			 CNT_DROP_ADDRESS);
	assert_event(r.f, EVENT_PATH_MIG_ERR);
	assert_int_equal(state_of(&r), MIG_REARM);
	assert_int_equal(arrive(&r, ALTERNATE, 0x10, true, 0xffff), CNT_COUNT);
	assert_quiet(&r);
	rig_down(&r);
}

static bool fail_over(struct rig *r)
{
	bool did;

	vb_mutex_lock(&r->qp->drive);
	did = vb_mig_fail_over(r->qp);
	vb_mutex_unlock(&r->qp->drive);
	return did;
}

static void fail_over__only_an_armed_one(void **state)
{
	struct rig r = rig_up(state);

	assert_false(fail_over(&r));
	assert_int_equal(rearm(&r), 0);
	assert_false(fail_over(&r));
	assert_quiet(&r);
	arm(&r);
	assert_true(fail_over(&r));
	assert_on_alternate(&r);
	assert_false(fail_over(&r));
	rig_down(&r);
}

/* The P_Key of the alternate path has been removed from the port since the
 * program loaded the path. */
static void fail_over__a_path_that_is_invalid_now(void **state)
{
	struct rig r = rig_up(state);

	arm(&r);
	atomic_store(&r.f->a.ports[0].pkeys[0], 0);
	assert_false(fail_over(&r));
	assert_event(r.f, EVENT_PATH_MIG_ERR);
	assert_int_equal(r.qp->route.ib.dlid, PRIMARY);
	assert_int_equal(state_of(&r), MIG_MIGRATED);
	/* The path stays unloaded even if the P_Key comes back. */
	atomic_store(&r.f->a.ports[0].pkeys[0], VB_PKEY_ALL);
	assert_int_equal(r.qp->attr.alt_port_num, 0);
	assert_int_equal(set(&r, QPM_PATH_MIG_STATE, alternate(MIG_REARM)),
			 -EINVAL);
	assert_int_equal(rearm(&r), 0);
	rig_down(&r);
}

/* In SQD, modify the queue pair to use port @number; @mask: further attributes,
 * among which is the path migration state @asked. */
static int to_port(struct rig *r, uint8_t number, uint32_t mask,
		   enum vb_mig_state asked)
{
	struct vb_qp_attr attr = alternate(asked);

	attr.qp_state = QPS_SQD;
	attr.port_num = attr.alt_port_num = number;
	attr.av = av_of(PRIMARY, 0);
	attr.av.port_num = attr.alt_av.port_num = number;
	return set(r, QPM_STATE | QPM_PORT | QPM_AV | mask, attr);
}

/* An alternate path belongs to the port for which it was loaded. */
static void modify__another_port_has_no_alternate(void **state)
{
	struct rig r = rig_up(state);
	struct vb_port *second = &r.f->a.ports[1];
	const uint8_t none[sizeof(struct vb_av)] = { 0 };

	r.f->a.port_count = 2;
	second->addressing = &vb_addressing_ib;
	second->active_mtu = 5;
	arm(&r);
	assert_int_equal(modify(r.qp, QPS_SQD, QPM_STATE), 0);
	/* at the same port the alternate path stays loaded */
	assert_int_equal(to_port(&r, 1, 0, MIG_REARM), 0);
	assert_int_equal(state_of(&r), MIG_ARMED);
	assert_int_equal(r.qp->attr.alt_port_num, 1);
	/* Rearm is refused, since the path belongs to the old port */
	assert_int_equal(to_port(&r, 2, QPM_PATH_MIG_STATE, MIG_REARM),
			 -EINVAL);
	assert_int_equal(state_of(&r), MIG_ARMED);
	assert_int_equal(to_port(&r, 2, QPM_PATH_MIG_STATE, MIG_MIGRATED), 0);
	assert_ptr_equal(vb_qp_port(r.qp), second);
	assert_int_equal(state_of(&r), MIG_MIGRATED);
	assert_int_equal(r.qp->attr.alt_port_num, 0);
	assert_int_equal(r.qp->attr.alt_timeout, 0);
	assert_memory_equal(&r.qp->attr.alt_av, none, sizeof(none));
	assert_int_equal(r.qp->attr.av.port_num, 2);
	assert_int_equal(r.qp->route.ib.dlid, PRIMARY);
	assert_int_equal(r.qp->migrations, 0);
	assert_quiet(&r);
	/* together with a path of the new port Rearm is allowed */
	assert_int_equal(
		to_port(&r, 1, QPM_ALT_PATH | QPM_PATH_MIG_STATE, MIG_REARM),
		0);
	assert_int_equal(state_of(&r), MIG_REARM);
	assert_int_equal(r.qp->attr.alt_port_num, 1);
	assert_int_equal(to_port(&r, 2, 0, MIG_MIGRATED), 0);
	assert_int_equal(state_of(&r), MIG_MIGRATED);
	assert_int_equal(r.qp->attr.alt_port_num, 0);
	second->addressing = &vb_addressing_roce;
	r.f->a.port_count = 1;
	rig_down(&r);
}

/* --- an alternate path by the adapter's second port --- */

static int any_route(struct vb_link *l, struct vb_route *r)
{
	return 0;
}

static const struct vb_link_ops link_ops = { .route = any_route };
static struct vb_link links[2] = { { .ops = &link_ops }, { .ops = &link_ops } };

/* The second port has another P_Key than the first one, and the same LIDs, as
 * it may have in another subnet. */
static struct rig rig_up_two(void **state)
{
	struct rig r = rig_up(state);
	struct vb_port *ports = r.f->a.ports;

	r.f->a.port_count = 2;
	ports[1].addressing = &vb_addressing_ib;
	ports[1].active_mtu = 5;
	atomic_store(&ports[1].lmc, 1);
	atomic_store(&ports[1].pkey_count, 1);
	atomic_store(&ports[1].pkeys[0], 0x8007);
	ports[0].link = &links[0];
	ports[1].link = &links[1];
	return r;
}

static void rig_down_two(struct rig *r)
{
	struct vb_port *ports = r->f->a.ports;

	rig_down(r);
	ports[0].link = ports[1].link = NULL;
	ports[1].addressing = &vb_addressing_roce;
	atomic_store(&ports[1].lmc, 0);
	atomic_store(&ports[1].pkeys[0], VB_PKEY_ALL);
	r->f->a.port_count = 1;
}

/* The alternate path leads to the peer's LID PRIMARY as well: only the own port
 * differs. */
static int rearm_two(struct rig *r)
{
	struct vb_qp_attr attr = alternate(MIG_REARM);

	attr.alt_av = av_of(PRIMARY, 0);
	attr.alt_port_num = attr.alt_av.port_num = 2;
	return set(r, QPM_ALT_PATH | QPM_PATH_MIG_STATE, attr);
}

static void assert_on_second(struct rig *r)
{
	assert_ptr_equal(vb_qp_port(r->qp), &r->f->a.ports[1]);
	assert_null(atomic_load(&r->qp->alt_port));
	assert_int_equal(r->qp->attr.port_num, 2);
	assert_int_equal(r->qp->attr.av.port_num, 2);
	assert_int_equal(r->qp->attr.alt_port_num, 0);
	assert_int_equal(state_of(r), MIG_MIGRATED);
	assert_event(r->f, EVENT_PATH_MIG);
	assert_quiet(r);
}

static void two_ports__a_peer_is_followed(void **state)
{
	struct rig r = rig_up_two(state);

	assert_null(atomic_load(&r.qp->alt_port));
	assert_int_equal(rearm_two(&r), 0);
	assert_ptr_equal(atomic_load(&r.qp->alt_port), &r.f->a.ports[1]);
	assert_int_equal(arrive_by(&r, &links[0], PRIMARY, 0x10, false, 0xffff),
			 CNT_COUNT);
	assert_int_equal(state_of(&r), MIG_ARMED);
	/* A MigReq that comes by the first port changes nothing, since this
	 * path is the primary one. */
	assert_int_equal(arrive_by(&r, &links[0], PRIMARY, 0x10, true, 0xffff),
			 CNT_COUNT);
	assert_int_equal(state_of(&r), MIG_ARMED);
	/* On the second port a packet from another LID is a stranger's, and the
	 * P_Key must be one of that port. */
	assert_int_equal(
		arrive_by(&r, &links[1], ALTERNATE, 0x10, true, 0x8007),
		CNT_DROP_ADDRESS);
	assert_int_equal(arrive_by(&r, &links[1], PRIMARY, 0x10, true, 0xfffe),
			 CNT_DROP_PKEY);
	assert_quiet(&r);
	assert_int_equal(arrive_by(&r, &links[1], PRIMARY, 0x10, true, 0x8007),
			 CNT_COUNT);
	assert_on_second(&r);
	rig_down_two(&r);
}

static void two_ports__fail_over_and_force(void **state)
{
	struct rig r = rig_up_two(state);

	assert_int_equal(rearm_two(&r), 0);
	assert_int_equal(arrive_by(&r, &links[0], PRIMARY, 0x10, false, 0xffff),
			 CNT_COUNT);
	assert_true(fail_over(&r));
	assert_on_second(&r);
	rig_down_two(&r);

	r = rig_up_two(state);
	assert_int_equal(rearm_two(&r), 0);
	assert_int_equal(arrive_by(&r, &links[0], PRIMARY, 0x10, false, 0xffff),
			 CNT_COUNT);
	assert_int_equal(set(&r, QPM_PATH_MIG_STATE, alternate(MIG_MIGRATED)),
			 0);
	assert_on_second(&r);
	rig_down_two(&r);
}

static void two_ports__what_is_refused(void **state)
{
	struct rig r = rig_up_two(state);
	struct vb_port *second = &r.f->a.ports[1];

	/* a port with a smaller MTU than the path's, which is code 3 */
	second->active_mtu = 2;
	assert_int_equal(rearm_two(&r), -EINVAL);
	/* an Ethernet port */
	second->active_mtu = 5;
	second->addressing = &vb_addressing_roce;
	assert_int_equal(rearm_two(&r), -EINVAL);
	assert_null(atomic_load(&r.qp->alt_port));
	second->addressing = &vb_addressing_ib;
	/* The port's MTU shrinks after the path was loaded. */
	assert_int_equal(rearm_two(&r), 0);
	assert_int_equal(arrive_by(&r, &links[0], PRIMARY, 0x10, false, 0xffff),
			 CNT_COUNT);
	second->active_mtu = 2;
	assert_false(fail_over(&r));
	assert_event(r.f, EVENT_PATH_MIG_ERR);
	assert_ptr_equal(vb_qp_port(r.qp), &r.f->a.ports[0]);
	assert_null(atomic_load(&r.qp->alt_port));
	rig_down_two(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hear__each_state_and_path),
		TEST(modify__loads_and_gives_back),
		TEST(modify__refusals),
		TEST(modify__forces_an_armed_one),
		TEST(modify__calls_off_what_is_not_armed),
		TEST(arrive__the_peer_is_followed),
		TEST(arrive__another_path_is_an_error_once),
		TEST(fail_over__only_an_armed_one),
		TEST(fail_over__a_path_that_is_invalid_now),
		TEST(modify__another_port_has_no_alternate),
		TEST(two_ports__a_peer_is_followed),
		TEST(two_ports__fail_over_and_force),
		TEST(two_ports__what_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
