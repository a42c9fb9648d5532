/* SPDX-License-Identifier: BSD-2-Clause */
/* Which functions a queue pair calls: those of its type, and others while its
 * peer may be on this host. */
#include "tests/unit/core/qp_fixture.h"

#include "core/lock_order.h"
#include "engine/engine_priv.h"
#include "ib/raw.h"
#include "ib/unrel.h"

static struct {
	struct vb_engine e;
	bool is_here;
	unsigned sends; /* number of calls of the fake vb_near_send() */
	/* the LID of the fake InfiniBand port */
	uint16_t lid;
	/* the last call of the fake vb_near_follow() */
	unsigned follows;
	bool reaches;
	/* packets or a lane: what the fake vb_near_send() decides */
	enum vb_qp_way way;
} fake;

static struct vb_engine *fake_running(void)
{
	return &fake.e;
}

static bool fake_owns(const struct vb_gid *gid, uint32_t ifindex)
{
	return fake.is_here;
}

static bool fake_owns_lid(const struct vb_link *l, uint16_t lid)
{
	return fake.lid == lid;
}

static void fake_follow(struct vb_near *n, struct vb_qp *qp, bool reaches)
{
	fake.follows++;
	fake.reaches = reaches;
}

static int fake_attach_near(struct vb_qp *qp)
{
	return 0;
}

static void fake_detach_near(struct vb_near *n, struct vb_qp *qp)
{
}

/* A fake of near/: it drops the peer in RESET, and looks for one in RTR. */
static void fake_enter_near(struct vb_near *n, struct vb_qp *qp,
			    enum vb_qp_state from, enum vb_qp_state to,
			    bool here)
{
	if (to == QPS_RTR)
		qp->priv[PRIV_NEAR] = here ? &fake : NULL;
	if (to == QPS_RESET)
		qp->priv[PRIV_NEAR] = NULL;
}

static bool fake_may_be_here(const struct vb_qp *qp)
{
	return qp->priv[PRIV_NEAR];
}

static bool fake_send(struct vb_near *n, struct vb_qp *qp, vb_time now)
{
	fake.sends++;
	qp->way = fake.way;
	return false;
}

static bool fake_expect(struct vb_near *n, struct vb_qp *qp,
			struct vb_near_card *card)
{
	return fake.is_here;
}

static void fake_settle(struct vb_near *n, const struct vb_adapter *a,
			uint32_t index)
{
}

#define vb_engine_running   fake_running
#define vb_udp_owns	    fake_owns
#define vb_ib_owns	    fake_owns_lid
#define vb_near_follow	    fake_follow
#define vb_near_attach	    fake_attach_near
#define vb_near_detach	    fake_detach_near
#define vb_near_enter	    fake_enter_near
#define vb_near_may_be_here fake_may_be_here
#define vb_near_send	    fake_send
#define vb_near_expect	    fake_expect
#define vb_near_settle_qp   fake_settle
#include "engine/transport_mux.c"

static int fake_route(struct vb_link *l, struct vb_route *r)
{
	return 0;
}

static struct fixture *begin(void **state, const struct vb_transport *t)
{
	static const struct vb_link_ops ops = { .route = fake_route };
	static struct vb_link link = { .ops = &ops };
	struct fixture *f = *state;

	memset(&fake, 0, sizeof(fake));
	vb_mutex_init(&fake.e.list_lock, RANK_LIST);
	vb_mutex_init(&fake.e.timer_lock, VB_RANK_LEAF);
	/* The code only asks whether near exists; no field is read. */
	atomic_store(&fake.e.near, (struct vb_near *)&fake);
	f->a.transport = t;
	f->a.ports[0].link = &link;
	return f;
}

static void attach__each_type_has_its_functions(void **state)
{
	static const struct {
		enum vb_qp_type type;
		const struct vb_transport_ops *ops;
	} rows[] = {
		{ QPT_RC, &vb_rc_ops },		 { QPT_UC, &vb_uc_ops },
		{ QPT_UD, &vb_ud_ops },		 { QPT_XRC_SEND, &vb_xrc_ops },
		{ QPT_RAW_PACKET, &vb_raw_ops }, { QPT_WQ, &vb_raw_ops }
	};
	struct fixture *f = begin(state, &vb_mux_transport);

	for (unsigned i = 0; i < VB_COUNT(rows); i++) {
		struct vb_qp_init init = init_of(f);
		struct vb_qp *qp;

		init.type = rows[i].type;
		qp = make(f, init);
		assert_ptr_equal(qp->ops, rows[i].ops);
		assert_ptr_equal(vb_eq(qp)->qp, qp);
		vb_qp_destroy(qp);
	}
	f->a.rnic = true;
	f->a.transport = &vb_mux_stream_transport;
	vb_qp_destroy(make(f, init_of(f)));
}

/* The engine's part of a queue pair stays when the memory is reused for another
 * queue pair. Only the identity of the old peer is cleared. */
static void attach__the_engine_keeps_what_is_its_own(void **state)
{
	struct fixture *f = begin(state, &vb_mux_transport);
	struct vb_qp *qp = make(f, init_of(f)), *again;
	struct vb_engine_qp *eq = vb_eq(qp);

	assert_true(eq->timer_at == VB_NEVER);
	eq->peer_id.known = true;
	atomic_store(&eq->kick, 1);
	vb_qp_destroy(qp);
	again = make(f, init_of(f));
	assert_ptr_equal(again, qp);
	assert_ptr_equal(vb_eq(again), eq);
	assert_false(eq->peer_id.known);
	assert_int_equal(atomic_load(&eq->kick), 1);
	atomic_store(&eq->kick, 0);
	vb_qp_destroy(again);
}

/* If the peer is on another host, no function of transport_mux.c is called. */
static void enter__a_peer_elsewhere(void **state)
{
	struct fixture *f = begin(state, &vb_mux_transport);
	struct vb_qp *qp = make(f, init_of(f));
	static struct vb_txq out;

	bring_to(qp, QPS_RTS);
	assert_ptr_equal(qp->ops, &vb_rc_ops);
	vb_mutex_lock(&qp->drive);
	assert_false(vb_transport_send(qp, 1, &out));
	vb_mutex_unlock(&qp->drive);
	assert_int_equal(fake.sends, 0);
	vb_qp_destroy(qp);
}

static void enter__a_peer_here_until_reset(void **state)
{
	struct fixture *f = begin(state, &vb_mux_transport);
	struct vb_qp *qp = make(f, init_of(f));
	const struct vb_qp_attr reset = { .qp_state = QPS_RESET };
	static struct vb_txq out;

	fake.is_here = true;
	fake.way = WAY_NEAR;
	bring_to(qp, QPS_RTS);
	vb_eq(qp)->peer_id.known = true;
	assert_ptr_equal(qp->ops, &near_or_packets);
	vb_mutex_lock(&qp->drive);
	assert_false(vb_transport_send(qp, 1, &out));
	assert_int_equal(fake.sends, 1);
	/* The queue pair sends packets, but its peer may still use the lane. */
	fake.way = WAY_PACKETS;
	assert_false(vb_transport_send(qp, 1, &out));
	assert_int_equal(fake.sends, 2);
	vb_mutex_unlock(&qp->drive);
	assert_true(vb_eq(qp)->peer_id.known);
	assert_int_equal(vb_qp_modify(qp, &reset, QPM_STATE, 0), 0);
	assert_ptr_equal(qp->ops, &vb_rc_ops);
	assert_false(vb_eq(qp)->peer_id.known);
	vb_qp_destroy(qp);
}

static struct vb_link *dropped_at;

static void drop_batch(struct vb_link *l, struct vb_txq *q)
{
	dropped_at = l;
}

/* In SQD, modify @qp to have the address of port @number. */
static int to_port(struct vb_qp *qp, uint8_t number)
{
	struct vb_qp_attr attr = good_attr(QPS_SQD);

	attr.av = (struct vb_av){ .dlid = 5, .port_num = number };
	attr.port_num = number;
	return vb_qp_modify(qp, &attr, QPM_STATE | QPM_PORT | QPM_AV, 1000);
}

/* A connection goes to the other port while it holds a batch with routes of the
 * old one: the batch is lost, and the transport repeats it. */
static void enter__another_port_has_no_batch(void **state)
{
	static const struct vb_link_ops ops = { .route = fake_route,
						.drop = drop_batch };
	struct vb_link links[2] = { { .ops = &ops }, { .ops = &ops } };
	struct fixture *f = begin(state, &vb_mux_transport);
	struct vb_txq *q = calloc(1, sizeof(*q));
	struct vb_qp *qp;

	assert_non_null(q);
	f->a.port_count = 2;
	for (unsigned i = 0; i < 2; i++) {
		f->a.ports[i].link = &links[i];
		f->a.ports[i].addressing = &vb_addressing_ib;
		f->a.ports[i].active_mtu = 5;
	}
	qp = make(f, init_of(f));
	bring_to(qp, QPS_SQD);
	vb_txq_reset(q);
	vb_txq_commit(q, 16, &qp->route);
	vb_mutex_lock(&qp->drive);
	assert_true(vb_held_keep(&fake.e, qp, q, 1000));
	vb_mutex_unlock(&qp->drive);
	assert_int_equal(to_port(qp, 1), 0);
	assert_non_null(vb_eq(qp)->held);
	assert_int_equal(to_port(qp, 2), 0);
	assert_null(vb_eq(qp)->held);
	assert_ptr_equal(dropped_at, &links[0]);
	assert_int_equal(atomic_load(&fake.e.held), 0);
	for (unsigned i = 0; i < 2; i++)
		f->a.ports[i].addressing = &vb_addressing_roce;
	f->a.port_count = 1;
	vb_qp_destroy(qp);
}

#define OWN_LID	  7
#define OTHER_LID 9

/* A queue pair in RTS whose peer is at @lid. */
static struct vb_qp *connected_to(struct fixture *f, uint16_t lid)
{
	struct vb_qp *qp = make(f, init_of(f));
	struct vb_qp_attr attr;

	assert_int_equal(modify(qp, QPS_INIT, TO_INIT), 0);
	attr = good_attr(QPS_RTR);
	attr.av = (struct vb_av){ .dlid = lid, .port_num = 1 };
	assert_int_equal(vb_qp_modify(qp, &attr, TO_RTR, 1000), 0);
	assert_int_equal(modify(qp, QPS_RTS, TO_RTS), 0);
	return qp;
}

/* On InfiniBand the peer is here if its LID is one of the port's own. */
static void enter__a_peer_at_the_own_lid(void **state)
{
	struct fixture *f = begin(state, &vb_mux_transport);
	struct vb_qp *here, *there;

	f->a.ports[0].addressing = &vb_addressing_ib;
	fake.lid = OWN_LID;
	here = connected_to(f, OWN_LID);
	assert_ptr_equal(here->ops, &near_or_packets);
	there = connected_to(f, OTHER_LID);
	assert_ptr_equal(there->ops, &vb_rc_ops);
	vb_qp_destroy(here);
	vb_qp_destroy(there);
}

/* An alternate path is of use to packets alone. */
static void enter__one_with_an_alternate_path(void **state)
{
	struct fixture *f = begin(state, &vb_mux_transport);
	struct vb_qp *qp = make(f, init_of(f));
	struct vb_qp_attr attr = good_attr(QPS_RTR);

	f->a.ports[0].addressing = &vb_addressing_ib;
	fake.lid = OWN_LID;
	assert_int_equal(modify(qp, QPS_INIT, TO_INIT), 0);
	attr.av = (struct vb_av){ .dlid = OWN_LID, .port_num = 1 };
	assert_int_equal(vb_qp_modify(qp, &attr, TO_RTR | QPM_ALT_PATH, 1000),
			 0);
	assert_ptr_equal(qp->ops, &vb_rc_ops);
	vb_qp_destroy(qp);
}

static void set_port_state(struct vb_port *p, enum vb_port_state state)
{
	vb_mutex_lock(&p->lock);
	p->state = state;
	vb_mutex_unlock(&p->lock);
}

static void port_changes(const struct vb_adapter *a)
{
	vb_mutex_lock(&fake.e.list_lock);
	vb_port_walk(&fake.e, a, PORT_HAS_CHANGED, vb_now());
	vb_mutex_unlock(&fake.e.list_lock);
}

/* near/ learns whether packets would still reach the peer. */
static void follow__the_port(void **state)
{
	struct fixture *f = begin(state, &vb_mux_transport);
	struct vb_adapter other = { .qpn_base = f->a.qpn_base ^
						(1u << VB_QPN_BITS) };
	struct vb_qp *qp;

	f->a.ports[0].addressing = &vb_addressing_ib;
	fake.e.qps = f->a.qps;
	fake.lid = OWN_LID;
	set_port_state(&f->a.ports[0], PORT_ACTIVE);
	qp = connected_to(f, OWN_LID);
	assert_int_equal(fake.follows, 1);
	assert_true(fake.reaches);
	set_port_state(&f->a.ports[0], PORT_INIT);
	port_changes(&f->a);
	assert_int_equal(fake.follows, 2);
	assert_false(fake.reaches);
	set_port_state(&f->a.ports[0], PORT_ACTIVE);
	fake.lid = OTHER_LID;
	port_changes(&f->a);
	assert_int_equal(fake.follows, 3);
	assert_false(fake.reaches);
	fake.lid = OWN_LID;
	port_changes(&f->a);
	assert_int_equal(fake.follows, 4);
	assert_true(fake.reaches);
	port_changes(&other);
	assert_int_equal(fake.follows, 4);
	vb_qp_destroy(qp);
}

/* Another thread drives the queue pair when the port changes: the engine's
 * thread does not wait, and near/ learns of the change as soon as the lock is
 * free, though the other thread has set the timer to a later time. */
static void follow__waits_for_no_lock(void **state)
{
	struct fixture *f = begin(state, &vb_mux_transport);
	vb_time later = vb_now() + VB_SEC;
	struct vb_qp *qp;

	f->a.ports[0].addressing = &vb_addressing_ib;
	fake.e.qps = f->a.qps;
	fake.lid = OWN_LID;
	set_port_state(&f->a.ports[0], PORT_ACTIVE);
	qp = connected_to(f, OWN_LID);
	/* as another thread does, so that this one may take other locks */
	assert_true(vb_mutex_grab(&qp->drive));
	port_changes(&f->a);
	assert_int_equal(fake.follows, 1);
	assert_true(vb_drive_is_due(&fake.e, later));
	atomic_store(&qp->drive.word, VB_MUTEX_FREE);
	vb_drive_due(&fake.e, later, 1);
	assert_int_equal(fake.follows, 2);
	vb_drive_due(&fake.e, later + VB_SEC, 1);
	assert_int_equal(fake.follows, 2);
	while (vb_timers_pop(&fake.e.timers, VB_NEVER - 1))
		;
	vb_timers_fini(&fake.e.timers);
	vb_qp_destroy(qp);
}

/* Datagram queue pairs never use a lane of memory that programs share. */
static void enter__datagrams_stay_packets(void **state)
{
	struct fixture *f = begin(state, &vb_mux_transport);
	struct vb_qp_init init = init_of(f);
	struct vb_qp *qp;

	init.type = QPT_UC;
	qp = make(f, init);
	fake.is_here = true;
	bring_to(qp, QPS_RTR);
	assert_ptr_equal(qp->ops, &vb_uc_ops);
	vb_qp_destroy(qp);
}

/* A RoCE packet to the number of an iWARP queue pair is dropped. */
static void VB_UNCHECKED drops_packets(struct vb_qp *qp)
{
	static const struct vb_ib_op request, response = { .response = true };
	const struct vb_ib_pkt pkts[] = { { .op = &request },
					  { .op = &response } };

	vb_transport_recv(qp, &pkts[0], 1);
	vb_transport_recv(qp, &pkts[1], 1);
}

static void expect__a_stream_whose_peer_shows_a_card(void **state)
{
	struct fixture *f = begin(state, &vb_mux_stream_transport);
	struct vb_near_card card;
	struct vb_qp *qp;

	f->a.rnic = true;
	qp = make(f, init_of(f));
	vb_mutex_lock(&qp->drive);
	assert_ptr_equal(qp->ops, &vb_iwarp_ops);
	assert_false(vb_mux_expect(NULL, qp, &card));
	assert_ptr_equal(qp->ops, &vb_iwarp_ops);
	drops_packets(qp);
	fake.is_here = true;
	assert_true(vb_mux_expect(NULL, qp, &card));
	assert_ptr_equal(qp->ops, &near_or_stream);
	drops_packets(qp);
	vb_mutex_unlock(&qp->drive);
	vb_qp_destroy(qp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(attach__each_type_has_its_functions),
		TEST(attach__the_engine_keeps_what_is_its_own),
		TEST(enter__a_peer_elsewhere),
		TEST(enter__a_peer_here_until_reset),
		TEST(enter__another_port_has_no_batch),
		TEST(enter__a_peer_at_the_own_lid),
		TEST(enter__one_with_an_alternate_path),
		TEST(follow__the_port),
		TEST(follow__waits_for_no_lock),
		TEST(enter__datagrams_stay_packets),
		TEST(expect__a_stream_whose_peer_shows_a_card),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
