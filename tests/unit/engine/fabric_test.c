/* SPDX-License-Identifier: BSD-2-Clause */
/* An adapter whose fabric ends: what the program is told, and what the engine's
 * thread has to poll afterwards. It has fabric.c in it, to make an adapter
 * without the process of a fabric. */
#include "core/lock_order.h"
#include "tests/unit/core/qp_fixture.h"

#include <sys/socket.h>

#include "engine/fabric.c"

#define LID	5
#define GUID	77
#define RECV_ID 9

static bool steps_nothing(struct vb_qp *qp, vb_time now, struct vb_txq *out)
{
	return false;
}

static bool cannot_wait(const struct vb_qp *qp)
{
	return false;
}

static vb_time never(const struct vb_qp *qp)
{
	return VB_NEVER;
}

static struct rig {
	struct fixture *f;
	struct vb_engine e;
	struct vb_open_adapter oa;
	struct vb_watcher watcher;
	struct vb_fabric fabric;
	struct vb_transport_ops ops;
	struct vb_engine_qp eq;
	struct vb_qp *qp;
	int control, bell; /* the fabric process's ends of the two sockets */
} r;

static struct vb_verbs_port active(void)
{
	return (struct vb_verbs_port){
		.head = { .magic = VB_UMAD_MAGIC, .kind = VERBS_PORT },
		.slot = 3,
		.state = PORT_ACTIVE,
		.phys = 5,
		.width = 2,
		.speed = 1,
		.vl_cap = 1,
		.mtu = 4,
		.mtu_cap = 5,
		.lid = LID,
		.sm_lid = 1,
		.pkeys = 1,
		.pkey = { 0xffff },
		.guids = 1,
		.guid = { GUID },
	};
}

static void make_engine(void)
{
	vb_mutex_init(&r.e.list_lock, RANK_LIST);
	vb_mutex_init(&r.e.rx, RANK_RX);
	vb_mutex_init(&r.e.fabric_lock, VB_RANK_LEAF);
	vb_mutex_init(&r.e.timer_lock, VB_RANK_LEAF);
	atomic_init(&r.e.fabric_fd, -1);
	assert_int_equal(open_polls(&r.e), 0);
	r.e.qps = r.f->a.qps;
	r.e.fabrics = &r.fabric;
}

static void make_fabric(void)
{
	int bell[2], control[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, bell), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, control), 0);
	r.bell = bell[1];
	r.control = control[1];
	r.fabric.oa = &r.oa;
	r.fabric.port = &r.oa.adapter.ports[0];
	r.fabric.control = control[0];
	r.fabric.slot = 3;
	r.fabric.own = aligned_alloc(4096, RING_BYTES);
	r.fabric.theirs = aligned_alloc(4096, RING_BYTES);
	assert_non_null(r.fabric.own);
	assert_non_null(r.fabric.theirs);
	memset(r.fabric.own, 0, RING_BYTES);
	memset(r.fabric.theirs, 0, RING_BYTES);
	assert_int_equal(vb_ib_open(r.fabric.own, r.fabric.theirs, bell[0],
				    control[0], vb_fabric_call, &r.fabric.link),
			 0);
	assert_int_equal(watch_fd(r.e.control_fd, control[0]), 0);
	assert_int_equal(watch_fd(atomic_load(&r.e.fabric_fd), bell[0]), 0);
}

static void make_qp(void)
{
	struct vb_qp_init init = init_of(r.f);

	r.ops.send = steps_nothing;
	r.ops.can_wait = cannot_wait;
	r.ops.deadline = never;
	r.f->a.ports[0].link = r.fabric.link;
	r.qp = make(r.f, init);
	r.qp->ops = &r.ops;
	r.qp->priv[PRIV_ENGINE] = &r.eq;
	r.eq.qp = r.qp;
	r.eq.timer_at = VB_NEVER;
	vb_timer_init(&r.eq.timer);
	bring_to(r.qp, QPS_RTS);
	r.f->a.ports[0].addressing = &vb_addressing_ib;
	r.oa.adapter.qpn_base = r.f->a.qpn_base;
	post_recv(r.qp, RECV_ID);
}

static int start(void **state)
{
	const struct vb_verbs_port p = active();

	memset(&r, 0, sizeof(r));
	if (set_up(state))
		return -1;
	r.f = *state;
	make_engine();
	r.oa.adapter.port_count = 1;
	vb_port_init(&r.oa.adapter.ports[0]);
	r.watcher.async = &r.f->async;
	r.oa.watchers = &r.watcher;
	make_fabric();
	(void)apply_port(&r.fabric, &p);
	r.fabric.port->link = r.fabric.link;
	r.fabric.port->addressing = &vb_addressing_ib;
	make_qp();
	return 0;
}

static int finish(void **state)
{
	vb_qp_destroy(r.qp);
	while (vb_timers_pop(&r.e.timers, VB_NEVER - 1))
		;
	vb_timers_fini(&r.e.timers);
	r.fabric.link->ops->close(r.fabric.link);
	free(r.fabric.own);
	free(r.fabric.theirs);
	close(r.fabric.control);
	close(r.e.control_fd);
	close(atomic_load(&r.e.fabric_fd));
	vb_port_fini(&r.oa.adapter.ports[0]);
	return tear_down(state);
}

static void end_process(void)
{
	close(r.control);
	close(r.bell);
	vb_fabric_take_updates(&r.e);
}

/* After the fabric's process has ended, the adapter must leave no readable
 * descriptor of it to poll, since the engine thread would spin on it. */
static void fabric__nothing_is_polled_of_one_that_ended(void **state)
{
	assert_false(is_readable(r.e.control_fd));
	end_process();
	assert_false(is_readable(r.e.control_fd));
	assert_false(is_readable(atomic_load(&r.e.fabric_fd)));
	assert_true(vb_fabric_sleep(&r.e));
}

static void fabric__its_end_is_an_error_of_port_and_device(void **state)
{
	struct vb_port *p = &r.oa.adapter.ports[0];
	struct vb_gid_entry gid;

	end_process();
	assert_event(r.f, EVENT_PORT_ERR);
	assert_event(r.f, EVENT_DEVICE_FATAL);
	assert_false(is_readable(r.f->async.fd));
	assert_int_equal(p->state, PORT_DOWN);
	assert_int_equal(p->ib.phys, 3);
	assert_int_equal(p->ib.lid, LID);
	assert_int_equal(vb_port_pkey(p, 0), 0xffff);
	assert_true(vb_port_gid(p, 0, &gid));
}

/* Take an event of a port, and return the port's number. */
static unsigned port_told(enum vb_event_type type)
{
	struct vb_event e;

	assert_true(is_readable(r.f->async.fd));
	assert_int_equal(vb_async_take(&r.f->async, &e), 0);
	assert_int_equal(e.type, type);
	assert_null(e.object);
	return e.port;
}

/* Tell the port @p that its interface now has the index @ifindex; 0: there is
 * none. */
static void see_interface(struct vb_port *p, uint32_t ifindex)
{
	const struct vb_port_update update = { .ifindex = ifindex,
					       .up = ifindex != 0 };

	vb_ports_tell(&r.oa, p,
		      vb_port_update(p, &update) & ~(unsigned)PORT_GIDS);
}

/* Give the adapter a second port, which has no interface yet. */
static struct vb_port *add_second_port(void)
{
	struct vb_port *other = &r.oa.adapter.ports[1];

	r.oa.adapter.port_count = 2;
	vb_port_init(other);
	other->number = 2;
	return other;
}

/* An adapter is lost only with the last of its ports. */
static void fabric__the_other_port_goes_on(void **state)
{
	struct vb_port *other = add_second_port();

	end_process();
	assert_int_equal(port_told(EVENT_PORT_ERR), 1);
	assert_false(is_readable(r.f->async.fd));
	see_interface(other, 7);
	assert_int_equal(port_told(EVENT_PORT_ACTIVE), 2);
	see_interface(other, 0);
	assert_int_equal(port_told(EVENT_PORT_ERR), 2);
	assert_int_equal(port_told(EVENT_DEVICE_FATAL), 2);
	assert_false(is_readable(r.f->async.fd));
	vb_port_fini(other);
}

/* An interface that was deleted and made again between two looks is there, so
 * the adapter is not lost when its other port ends. */
static void fabric__the_other_port_was_made_again(void **state)
{
	struct vb_port *other = add_second_port();

	see_interface(other, 7);
	assert_int_equal(port_told(EVENT_PORT_ACTIVE), 2);
	see_interface(other, 8);
	assert_false(is_readable(r.f->async.fd));
	end_process();
	assert_int_equal(port_told(EVENT_PORT_ERR), 1);
	assert_false(is_readable(r.f->async.fd));
	/* The second port's interface was made again (another index): all that
	 * the program had there is lost, so the adapter is lost, too. */
	see_interface(other, 9);
	assert_int_equal(port_told(EVENT_DEVICE_FATAL), 2);
	see_interface(other, 0);
	assert_int_equal(port_told(EVENT_PORT_ERR), 2);
	assert_int_equal(port_told(EVENT_DEVICE_FATAL), 2);
	assert_false(is_readable(r.f->async.fd));
	vb_port_fini(other);
}

static void fabric__its_end_flushes_queue_pairs(void **state)
{
	end_process();
	assert_int_equal(atomic_load(&r.qp->state), QPS_ERR);
	assert_int_equal(polled(r.f->cq).wr_id, RECV_ID);
}

/* Another thread drives the queue pair while the fabric's process ends: the
 * thread that sees the end does not wait, and the queue pair fails as soon as
 * its lock is free. */
static void fabric__its_end_waits_for_no_lock(void **state)
{
	vb_time later = vb_now() + VB_SEC;

	/* lock as another thread would, so that this thread may still take
	 * other locks */
	assert_true(vb_mutex_grab(&r.qp->drive));
	end_process();
	assert_int_equal(atomic_load(&r.qp->state), QPS_RTS);
	assert_true(vb_drive_is_due(&r.e, later));
	vb_drive_due(&r.e, later, 1); /* the lock is still held */
	assert_int_equal(atomic_load(&r.qp->state), QPS_RTS);
	atomic_store(&r.qp->drive.word, VB_MUTEX_FREE);
	vb_drive_due(&r.e, later + VB_SEC, 1);
	assert_int_equal(atomic_load(&r.qp->state), QPS_ERR);
	assert_int_equal(polled(r.f->cq).wr_id, RECV_ID);
}

/* The fabric's process lives, but the ring in its shared memory is invalid. The
 * adapter treats this as the end of the fabric. */
static void fabric__a_broken_ring_is_its_end(void **state)
{
	struct vb_shring_side *side = r.fabric.theirs;

	atomic_store(&side->head, 1);
	assert_false(vb_fabric_sleep(&r.e));
	vb_fabric_wake(&r.e, true);
	vb_mutex_lock(&r.e.rx);
	assert_false(vb_fabric_drain(&r.e));
	vb_mutex_unlock(&r.e.rx);
	vb_fabric_take_updates(&r.e);
	assert_true(r.fabric.ended);
	assert_int_equal(atomic_load(&r.qp->state), QPS_ERR);
	assert_true(vb_fabric_sleep(&r.e));
	assert_false(is_readable(r.e.control_fd));
	close(r.control);
	close(r.bell);
}

static int say_five(int control, const void *bytes, size_t len)
{
	return 5;
}

static int say_no(int control, const void *bytes, size_t len)
{
	fail_msg("this group needs no answer");
	return 0;
}

/* A link whose fabric's process answers as @call says. */
static struct vb_link *link_of(int (*call)(int control, const void *bytes,
					   size_t len))
{
	struct vb_link *l;

	assert_int_equal(vb_ib_open(r.fabric.own, r.fabric.theirs, -1,
				    r.fabric.control, call, &l),
			 0);
	return l;
}

static void fabric__other_adapters_go_on(void **state)
{
	struct vb_link *other = link_of(say_no);

	/* the adapter of another fabric, with the same slot */
	r.f->a.ports[0].link = other;
	end_process();
	assert_int_equal(atomic_load(&r.qp->state), QPS_RTS);
	assert_empty(r.f->cq);
	r.f->a.ports[0].link = r.fabric.link;
	other->ops->close(other);
}

/* The engine checks a port update from the fabric's process, and refuses values
 * that are impossible. */
static void fabric__an_update_that_cannot_be(void **state)
{
	struct vb_verbs_port good = active(), bad[8];

	good.sm_lid = 2;
	assert_int_equal(send(r.control, &good, sizeof(good), 0), sizeof(good));
	vb_fabric_take_updates(&r.e);
	assert_false(r.fabric.ended);
	for (unsigned i = 0; i < VB_COUNT(bad); i++)
		bad[i] = good;
	bad[0].head.magic++;
	bad[1].head.kind = VERBS_ATTACH;
	bad[2].lid = 0xc000;
	bad[3].sm_lid = 0xffff;
	bad[4].phys = 0;
	bad[5].phys = 8;
	bad[6].width = 3;
	bad[7].vl_cap = 6;
	for (unsigned i = 0; i < VB_COUNT(bad); i++) {
		assert_int_equal(send(r.control, &bad[i], sizeof(bad[i]), 0),
				 sizeof(bad[i]));
		vb_fabric_take_updates(&r.e);
		assert_true(r.fabric.ended);
		r.fabric.ended = false;
	}
}

static void link__an_answer_that_is_no_result(void **state)
{
	const struct vb_link_group group = { .mlid = 0xc001 };
	struct vb_link *l = link_of(say_five);

	assert_int_equal(l->ops->join(l, &group), -EPROTO);
	l->ops->close(l);
}

static void link__leaving_waits_for_no_answer(void **state)
{
	struct vb_link *l = link_of(say_no);
	struct vb_verbs_group g;

	l->ops->leave(l, 0xc001);
	assert_int_equal(recv(r.control, &g, sizeof(g), MSG_DONTWAIT),
			 sizeof(g));
	assert_int_equal(g.head.kind, VERBS_LEAVE);
	assert_int_equal(g.mlid, 0xc001);
	l->ops->close(l);
}

int main(void)
{
#define OF_FABRIC(t) cmocka_unit_test_setup_teardown(t, start, finish)
	const struct CMUnitTest tests[] = {
		OF_FABRIC(fabric__nothing_is_polled_of_one_that_ended),
		OF_FABRIC(fabric__its_end_is_an_error_of_port_and_device),
		OF_FABRIC(fabric__the_other_port_goes_on),
		OF_FABRIC(fabric__the_other_port_was_made_again),
		OF_FABRIC(fabric__its_end_flushes_queue_pairs),
		OF_FABRIC(fabric__its_end_waits_for_no_lock),
		OF_FABRIC(fabric__a_broken_ring_is_its_end),
		OF_FABRIC(fabric__other_adapters_go_on),
		OF_FABRIC(fabric__an_update_that_cannot_be),
		OF_FABRIC(link__an_answer_that_is_no_result),
		OF_FABRIC(link__leaving_waits_for_no_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
