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
	int answer; /* of join() */
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
	assert_null(r.e.groups); /* no frame is for it before it has joined */
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

int main(void)
{
#define OF_GROUPS(t) cmocka_unit_test_setup_teardown(t, start, finish)
	const struct CMUnitTest tests[] = {
		OF_GROUPS(groups__receiving_goes_on),
		OF_GROUPS(groups__one_that_cannot_be_joined),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
