/* SPDX-License-Identifier: BSD-2-Clause */
/* Groups of queue pairs. A link may wait for another process in join() and
 * leave(), so receiving must go on meanwhile. */
#include "core/lock_order.h"
#include "tests/unit/core/qp_fixture.h"

#include "engine/engine_priv.h"

#define MEMBER 7

static const struct vb_gid group = { { 0xff, 0x12, [15] = 1 } };

static struct rig {
	struct fixture *f;
	struct vb_engine e;
	struct vb_qp *qp;
	struct vb_link link;
	unsigned joined, left;
	int answer; /* what join() returns */
} r;

static void can_receive(void)
{
	bool is_free = false;

	if (vb_mutex_trylock(&r.e.rx)) {
		is_free = true;
		vb_mutex_unlock(&r.e.rx);
	}
	assert_true(is_free);
}

static int join_group(struct vb_link *l, const struct vb_link_group *g)
{
	can_receive();
	/* the engine sends no frame to the queue pair before it has joined */
	assert_null(r.e.groups);
	r.joined++;
	return r.answer;
}

static void leave_group(struct vb_link *l, int member)
{
	can_receive();
	assert_int_equal(member, MEMBER);
	assert_null(r.e.groups);
	r.left++;
}

static const struct vb_link_ops ops = { .join = join_group,
					.leave = leave_group };

static int start(void **state)
{
	struct vb_qp_init init;

	if (set_up(state))
		return -1;
	memset(&r, 0, sizeof(r));
	r.f = *state;
	r.link.ops = &ops;
	r.answer = MEMBER;
	vb_mutex_init(&r.e.rx, RANK_RX);
	vb_mutex_init(&r.e.group_lock, RANK_GROUPS);
	atomic_store(&vb_engine_now, &r.e);
	init = init_of(r.f);
	init.type = QPT_UD;
	r.qp = make(r.f, init);
	r.f->a.ports[0].link = &r.link;
	assert_int_equal(modify(r.qp, QPS_INIT, UD_TO_INIT), 0);
	return 0;
}

static int finish(void **state)
{
	vb_qp_destroy(r.qp);
	atomic_store(&vb_engine_now, NULL);
	return tear_down(state);
}

static void groups__receiving_goes_on(void **state)
{
	assert_int_equal(vb_engine_attach(r.qp, &group, 0), 0);
	assert_int_equal(vb_engine_attach(r.qp, &group, 0), 0);
	assert_true(vb_engine_is_attached(r.qp));
	assert_int_equal(r.joined, 1);
	assert_int_equal(vb_engine_detach(r.qp, &group, 0), 0);
	assert_false(vb_engine_is_attached(r.qp));
	assert_int_equal(vb_engine_detach(r.qp, &group, 0), -EINVAL);
	assert_int_equal(r.left, 1);
}

static void groups__one_that_cannot_be_joined(void **state)
{
	r.answer = -ENOSPC;
	assert_int_equal(vb_engine_attach(r.qp, &group, 0), -ENOSPC);
	assert_false(vb_engine_is_attached(r.qp));
	assert_int_equal(r.left, 0);
}

/* If an adapter has several ports, a queue pair has no port before INIT, so it
 * cannot join a group. */
static void groups__not_before_there_is_a_port(void **state)
{
	assert_int_equal(modify(r.qp, QPS_RESET, QPM_STATE), 0);
	r.f->a.port_count = 2;
	assert_int_equal(vb_engine_attach(r.qp, &group, 0), -EINVAL);
	assert_int_equal(r.joined, 0);
	assert_false(vb_engine_is_attached(r.qp));
	assert_int_equal(modify(r.qp, QPS_INIT, UD_TO_INIT), 0);
	assert_int_equal(vb_engine_attach(r.qp, &group, 0), 0);
	assert_int_equal(vb_engine_detach(r.qp, &group, 0), 0);
	r.f->a.port_count = 1;
	assert_int_equal(modify(r.qp, QPS_RESET, QPM_STATE), 0);
	assert_int_equal(vb_engine_attach(r.qp, &group, 0), 0);
	assert_int_equal(vb_engine_detach(r.qp, &group, 0), 0);
}

/* A queue pair leaves its group also after RESET, when it is at the first port
 * again, which has no LIDs. */
static void groups__left_after_reset(void **state)
{
	struct vb_port *second = &r.f->a.ports[1];
	struct vb_qp_attr attr = good_attr(QPS_INIT);

	r.f->a.port_count = 2;
	second->addressing = &vb_addressing_ib;
	second->link = &r.link;
	attr.port_num = 2;
	assert_int_equal(vb_qp_modify(r.qp, &attr, UD_TO_INIT, 0), 0);
	assert_int_equal(vb_engine_attach(r.qp, &group, 0xc001), 0);
	assert_int_equal(modify(r.qp, QPS_RESET, QPM_STATE), 0);
	assert_ptr_equal(vb_qp_port(r.qp), &r.f->a.ports[0]);
	assert_int_equal(vb_engine_detach(r.qp, &group, 0xc002), -EINVAL);
	assert_int_equal(vb_engine_detach(r.qp, &group, 0xc001), 0);
	assert_int_equal(r.left, 1);
	second->addressing = &vb_addressing_roce;
	r.f->a.port_count = 1;
}

int main(void)
{
#define OF_GROUPS(t) cmocka_unit_test_setup_teardown(t, start, finish)
	const struct CMUnitTest tests[] = {
		OF_GROUPS(groups__receiving_goes_on),
		OF_GROUPS(groups__one_that_cannot_be_joined),
		OF_GROUPS(groups__not_before_there_is_a_port),
		OF_GROUPS(groups__left_after_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
