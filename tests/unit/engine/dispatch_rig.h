/* SPDX-License-Identifier: BSD-2-Clause */
/* A queue pair with a fake transport, which records what the dispatcher passes
 * to it. */
#ifndef TESTS_UNIT_ENGINE_DISPATCH_RIG_H
#define TESTS_UNIT_ENGINE_DISPATCH_RIG_H

#include "core/lock_order.h"
#include "tests/unit/core/qp_fixture.h"

#include "engine/engine_priv.h"

static struct {
	unsigned received, steps, in_run;
	/* true: run() was called with @begins true, and since then not with
	 * false */
	bool runs;
	struct vb_mr_use use;
	bool grh; /* the last packet had a GRH */
	/* path bits in the DLID of the last datagram */
	unsigned path_bits;
	uint32_t key; /* rkey of the packets of a run */
	uint8_t codes[4];
	/* the time that the dispatcher gave with the last packet */
	vb_time at;
} heard;

static inline void hear(struct vb_qp *qp, const struct vb_ib_pkt *pkt,
			vb_time now)
{
	heard.codes[heard.received++ % VB_COUNT(heard.codes)] = pkt->bth.opcode;
	heard.grh = pkt->grh;
	heard.path_bits = pkt->from ? pkt->from->path_bits : 0;
	heard.at = now;
}

static inline bool step(struct vb_qp *qp, vb_time now, struct vb_txq *out)
{
	heard.steps++;
	return false;
}

static inline bool cannot_wait(const struct vb_qp *qp)
{
	return false;
}

static inline vb_time never(const struct vb_qp *qp)
{
	return VB_NEVER;
}

static const struct vb_gid address = IPV4_GID;

struct rig {
	struct fixture *f;
	struct vb_transport_ops ops;
	struct vb_engine e;
	struct vb_qp *qp;
	struct vb_engine_qp eq;
	uint8_t bytes[4][64];
};

static inline struct rig *rig_of(struct fixture *f, enum vb_qp_type type,
				 enum vb_qp_state state)
{
	struct vb_qp_init init = init_of(f);
	struct rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	memset(&heard, 0, sizeof(heard));
	r->f = f;
	r->ops.recv[0] = r->ops.recv[1] = hear;
	r->ops.send = step;
	r->ops.can_wait = cannot_wait;
	r->ops.deadline = never;
	init.type = type;
	r->qp = make(f, init);
	r->qp->ops = &r->ops;
	r->qp->priv[PRIV_ENGINE] = &r->eq;
	bring_to(r->qp, state);
	vb_mutex_init(&r->e.rx, RANK_RX);
	r->e.qps = f->a.qps;
	r->e.lease.slot = QPN_BASE >> VB_QPN_BITS;
	return r;
}

static inline struct rig *rig_up(struct fixture *f, enum vb_qp_state state)
{
	return rig_of(f, QPT_RC, state);
}

static inline void rig_down(struct rig *r)
{
	vb_qp_destroy(r->qp);
	free(r);
}

/* Add a frame that is correct in every field; a test then changes one field. */
static inline struct vb_frame *add_frame(struct rig *r, uint8_t opcode)
{
	unsigned i = r->e.rxq.count++;
	struct vb_ib_pkt pkt = {
		.bth = { .opcode = opcode,
			 .pkey = 0xffff,
			 .dqpn = atomic_load(&r->qp->qpn) },
	};
	size_t len = vb_ib_put_headers(r->bytes[i], &pkt);

	r->e.rxq.frames[i] = (struct vb_frame){
		.bytes = r->bytes[i],
		.len = (uint32_t)len,
		.src = &address,
		.dst = &address,
		.if_ip_id = -1,
	};
	return &r->e.rxq.frames[i];
}

/* Returns how many of the queued frames reached the transport. */
static inline unsigned dispatch(struct rig *r, vb_time now)
{
	unsigned before = heard.received;

	vb_mutex_lock(&r->e.rx);
	vb_dispatch(&r->e, now);
	vb_mutex_unlock(&r->e.rx);
	r->e.rxq.count = 0;
	return heard.received - before;
}

static inline void datagram_from(struct rig *r, const struct vb_gid *src,
				 int32_t id)
{
	struct vb_frame *f = add_frame(r, CLASS_UD << 5 | CODE_SEND_ONLY);

	f->src = src;
	f->if_ip_id = id;
}

static inline void set_gid_types(struct rig *r, enum vb_gid_type type)
{
	struct vb_port *p = &r->f->a.ports[0];

	vb_mutex_lock(&p->lock);
	for (unsigned i = 0; i < p->gid_count; i++)
		p->gids[i].type = type;
	vb_mutex_unlock(&p->lock);
}

#endif
