/* SPDX-License-Identifier: BSD-2-Clause */
/* The fixture of most tests of core: an adapter with an active port, a PD, CQs,
 * and a transport that only records its calls. */
#ifndef UNIT_CORE_FIXTURE_H
#define UNIT_CORE_FIXTURE_H

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/mr.h"
#include "core/sge.h"
#include "core/transport.h"

#define QPN_BASE (3u << 15)
#define IPV4_GID                                                               \
	{                                                                      \
		{                                                              \
			0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1  \
		}                                                              \
	}

struct fixture {
	struct vb_adapter a;
	struct vb_pd *pd;
	struct vb_async async;
	struct vb_channel channel;
	/* a completion queue of 64 entries that belongs to @channel */
	struct vb_cq *cq;
};

/* What the fake transport was last called with, and what it returns. */
static struct {
	int attach_rc, attached, detached, entered;
	enum vb_qp_state from, to;
	vb_time now;
	uint32_t sq_done_at_enter;
} told __attribute__((unused));

static inline int fake_attach(struct vb_qp *qp)
{
	if (told.attach_rc)
		return told.attach_rc;
	told.attached++;
	qp->priv[PRIV_TRANSPORT] = &told;
	return 0;
}

static inline void fake_detach(struct vb_qp *qp)
{
	assert_ptr_equal(qp->priv[PRIV_TRANSPORT], &told);
	told.detached++;
}

static inline void fake_enter(struct vb_qp *qp, enum vb_qp_state from,
			      enum vb_qp_state to, vb_time now)
{
	assert_int_equal(atomic_load(&qp->state), to);
	told.entered++;
	told.from = from;
	told.to = to;
	told.now = now;
	told.sq_done_at_enter = qp->sq.done;
}

static const struct vb_transport fake_transport __attribute__((unused)) = {
	.name = "fake",
	.attach = fake_attach,
	.detach = fake_detach,
	.enter = fake_enter,
};

static inline void set_up_port(struct vb_port *p)
{
	static struct vb_port_update update;
	const struct vb_gid gid = IPV4_GID;

	update = (struct vb_port_update){ .up = true, .mtu = 9000, .count = 1 };
	update.addresses[0] = gid;
	memcpy(p->mac, "\x02\x00\x00\x00\x00\x01", 6);
	p->ifindex = 7;
	vb_port_update(p, &update);
}

static inline int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	memset(&told, 0, sizeof(told));
	assert_int_equal(vb_adapter_init(&f->a, "test"), 0);
	set_up_port(&f->a.ports[0]);
	f->a.qps = vb_idtab_create(1u << 15, 2);
	assert_non_null(f->a.qps);
	f->a.qpn_base = QPN_BASE;
	f->a.transport = &fake_transport;
	assert_int_equal(vb_pd_create(&f->a, &f->pd), 0);
	assert_int_equal(vb_async_init(&f->async), 0);
	assert_int_equal(vb_channel_init(&f->channel), 0);
	assert_int_equal(vb_cq_create_in(&f->a, 64, &f->channel, &f->async,
					 NULL, &f->cq),
			 0);
	f->cq->owner = f->cq;
	*state = f;
	return 0;
}

static inline int tear_down(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(vb_cq_destroy(f->cq), 0);
	assert_int_equal(vb_pd_destroy(f->pd), 0);
	assert_int_equal(atomic_load(&f->a.n_qp), 0);
	assert_int_equal(atomic_load(&f->a.n_cq), 0);
	assert_int_equal(atomic_load(&f->a.n_mr), 0);
	assert_int_equal(atomic_load(&f->a.n_mw), 0);
	assert_int_equal(atomic_load(&f->a.n_pd), 0);
	assert_int_equal(atomic_load(&f->a.n_srq), 0);
	vb_channel_fini(&f->channel);
	vb_async_fini(&f->async);
	vb_idtab_destroy(f->a.qps);
	vb_adapter_fini(&f->a);
	free(f);
	return 0;
}

/* Has the event file descriptor @fd an event to read? */
static inline bool is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
