/* SPDX-License-Identifier: BSD-2-Clause */
/* Two adapters and a simulated wire. Any failure here ends the test. */
#include "tests/support/sim.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/migrate.h"
#include "ib/ib.h"
#include "tests/support/must.h"
#include "wire/ipc.h"

/* Limit of the packets on the wire: if there are more, the test fails. */
#define STORM 20000

/* Random numbers. */

uint32_t sim_rand32(struct sim_rand *r)
{
	/* the generator splitmix64 */
	uint64_t z = r->state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (uint32_t)((z ^ z >> 31) >> 16);
}

uint32_t sim_below(struct sim_rand *r, uint32_t n)
{
	return n ? sim_rand32(r) % n : 0;
}

bool sim_maybe(struct sim_rand *r, unsigned chance)
{
	return sim_below(r, 10000) < chance;
}

/* The wire: a heap of frames by the time of arrival. */

static bool earlier(const struct sim_frame *a, const struct sim_frame *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void push(struct sim *s, struct sim_frame f)
{
	unsigned i = s->used++;

	if (s->used > s->room) {
		s->room = s->room ? s->room * 2 : 256;
		s->heap = realloc(s->heap, s->room * sizeof(f));
		MUST(s->heap);
	}
	for (; i && earlier(&f, &s->heap[(i - 1) / 2]); i = (i - 1) / 2)
		s->heap[i] = s->heap[(i - 1) / 2];
	s->heap[i] = f;
}

static struct sim_frame pop(struct sim *s)
{
	struct sim_frame top = s->heap[0], last = s->heap[--s->used];
	unsigned i = 0, kid;

	while ((kid = 2 * i + 1) < s->used) {
		if (kid + 1 < s->used &&
		    earlier(&s->heap[kid + 1], &s->heap[kid]))
			kid++;
		if (!earlier(&s->heap[kid], &last))
			break;
		s->heap[i] = s->heap[kid];
		i = kid;
	}
	if (s->used)
		s->heap[i] = last;
	return top;
}

static void trace(struct sim *s, unsigned from, const uint8_t *bytes,
		  size_t len, const char *fate)
{
	struct sim_trace *t = &s->traces[s->traced++ % SIM_TRACES];
	struct vb_ib_pkt pkt;

	*t = (struct sim_trace){ .at = s->now, .from = from, .fate = fate };
	if (vb_ib_parse(bytes, len, &pkt) != PARSE_OK)
		return;
	t->opcode = pkt.bth.opcode;
	t->psn = pkt.bth.psn;
	t->ack_req = pkt.bth.ack_req;
	t->syndrome = pkt.aeth.syndrome;
	t->bytes = pkt.payload_bytes;
}

void sim_print_trace(const struct sim *s)
{
	uint64_t i = s->traced > SIM_TRACES ? s->traced - SIM_TRACES : 0;

	for (; i < s->traced; i++) {
		const struct sim_trace *t = &s->traces[i % SIM_TRACES];
		const struct vb_ib_op *op = vb_ib_op(t->opcode);

		fprintf(stderr,
			"%12.3f us  from %u  %-16s psn %06x%s syn %02x "
			"%5u bytes  %s\n",
			(double)t->at / 1000, t->from, op ? op->name : "?",
			t->psn, t->ack_req ? " A" : "  ", t->syndrome, t->bytes,
			t->fate);
	}
}

/* The base LID of a side's port. */
static uint16_t lid_of(unsigned side)
{
	return (uint16_t)(0x10 * (side + 1));
}

/* Put a frame on the wire to side @to. @path: LIDs on InfiniBand. */
static void put_on_wire(struct sim *s, unsigned to,
			const struct vb_lid_path *path, const uint8_t *bytes,
			uint32_t len)
{
	const struct sim_wire *w = &s->wire;
	vb_time late =
		w->delay + (w->jitter ? sim_below(&s->rand, w->jitter) : 0);
	struct sim_frame f = { .at = s->now,
			       .order = s->order++,
			       .to = to,
			       .slid = lid_of(!to) | path->path_bits,
			       .dlid = path->dlid,
			       .len = len };

	if (w->room && s->to_come[to] >= w->room) {
		s->traces[(s->traced - 1) % SIM_TRACES].fate = "no room";
		return;
	}
	s->to_come[to]++;
	if (w->pace)
		f.at = s->free_at[to] =
			VB_MAX(s->now, s->free_at[to]) + w->pace;
	f.at += sim_maybe(&s->rand, w->swap) ? late : w->delay;
	f.bytes = malloc(len);
	MUST(f.bytes);
	memcpy(f.bytes, bytes, len);
	push(s, f);
}

static void damage(struct sim *s, uint8_t *bytes, uint32_t len)
{
	unsigned flips = 1 + sim_below(&s->rand, 4);

	/* Flip bits mostly in the headers, where they do the most harm. */
	while (flips--) {
		uint32_t reach = sim_maybe(&s->rand, 8000) ? 44 : len;
		uint32_t at = sim_below(&s->rand, VB_MIN(reach, len));

		bytes[at] ^= 1u << sim_below(&s->rand, 8);
	}
}

static bool is_cut(const struct sim *s, const struct vb_lid_path *path)
{
	return s->cut >> path->dlid % SIM_WAYS & 1;
}

static void transmit(struct sim *s, unsigned from,
		     const struct vb_lid_path *path, uint8_t *bytes,
		     uint32_t len)
{
	const struct sim_wire *w = &s->wire;
	struct vb_ib_pkt pkt;
	const char *fate = "";

	s->sent++;
	MUST(vb_ib_parse(bytes, len, &pkt) == PARSE_OK);
	if (s->mute || (s->tap && s->tap(s->tap_arg, from, &pkt) == SIM_DROP))
		fate = "tapped";
	else if (is_cut(s, path))
		fate = "cut";
	else if (sim_maybe(&s->rand, w->lose))
		fate = "lost";
	else if (sim_maybe(&s->rand, w->damage)) {
		fate = w->hostile ? "" : "damaged";
		damage(s, bytes, len);
	}
	trace(s, from, bytes, len, fate);
	if (fate[0])
		return;
	put_on_wire(s, !from, path, bytes, len);
	if (sim_maybe(&s->rand, w->copy))
		put_on_wire(s, !from, path, bytes, len);
}

void sim_transmit(struct sim *s, unsigned from, struct vb_txq *q)
{
	for (unsigned i = 0; i < q->count; i++) {
		const struct vb_tx_frame *f = &q->frames[i];

		MUST(f->len <= VB_FRAME_MAX - VB_ICRC_BYTES && f->len % 4 == 0);
		transmit(s, from, &f->route->ib, q->bytes + f->at, f->len);
	}
	vb_txq_reset(q);
}

void sim_inject(struct sim *s, unsigned to, const struct vb_ib_pkt *pkt)
{
	uint8_t bytes[VB_FRAME_MAX];
	struct vb_ib_pkt p = *pkt;
	size_t len;

	p.bth.pad = -p.payload_bytes & 3;
	len = vb_ib_put_headers(bytes, &p);
	if (p.payload_bytes)
		memcpy(bytes + len, p.payload, p.payload_bytes);
	len += p.payload_bytes;
	memset(bytes + len, 0, p.bth.pad);
	len += p.bth.pad;
	trace(s, !to, bytes, len, "injected");
	put_on_wire(s, to, &(struct vb_lid_path){ .dlid = lid_of(to) }, bytes,
		    (uint32_t)len);
}

/* Functions that do the work of an engine (engine/) in the simulation. */

static struct vb_gid gid_of(unsigned side)
{
	return vb_gid_from_ipv4((uint8_t[4]){ 192, 0, 2, (uint8_t)side + 1 });
}

static struct vb_txq batch;

static void drive(struct sim_side *side, struct vb_qp *qp)
{
	bool more;

	vb_mutex_lock(&qp->drive);
	more = vb_transport_deadline(qp) <= side->sim->now ||
	       !vb_transport_can_wait(qp);
	while (more) {
		more = vb_transport_send(qp, side->sim->now, &batch);
		/* A transport that reports more to send must have sent
		 * something; otherwise its caller would spin. */
		MUST(!more || batch.count);
		sim_transmit(side->sim, side->number, &batch);
		if (side->sim->used > STORM) {
			sim_print_trace(side->sim);
			MUST(!"a storm");
		}
	}
	vb_mutex_unlock(&qp->drive);
}

bool sim_is_away(const struct sim *s, unsigned side)
{
	return s->path && s->path->is_away(s, side);
}

/* Like the dispatcher: does the queue pair accept frames of this path? */
static bool is_admitted(struct vb_qp *qp, const struct sim_frame *f,
			const struct vb_ib_pkt *pkt) VB_REQUIRES(qp->drive)
{
	const struct vb_frame frame = { .slid = f->slid, .dlid = f->dlid };

	return !vb_port_is_ib(vb_qp_port(qp)) ||
	       vb_mig_arrive(qp, vb_qp_port(qp)->link, &frame,
			     pkt->bth.migrated, pkt->bth.pkey) == CNT_COUNT;
}

static void deliver(struct sim_side *side, const struct sim_frame *f)
{
	const struct vb_grh grh = { .sgid = gid_of(!side->number),
				    .dgid = gid_of(side->number),
				    .udp_bytes = (uint16_t)(f->len + 4) };
	static const struct vb_wc_from from = { .sl = WC_L3_UDP_IPV4 };
	struct vb_ib_pkt pkt;
	struct vb_qp *qp;

	if (vb_ib_parse(f->bytes, f->len, &pkt) != PARSE_OK ||
	    sim_is_away(side->sim, side->number))
		return;
	qp = vb_idtab_get(side->adapter.qps,
			  pkt.bth.dqpn & ((1u << VB_QPN_BITS) - 1));
	if (!qp || atomic_load(&qp->qpn) != pkt.bth.dqpn ||
	    (pkt.bth.opcode != VB_OP_HEARD &&
	     pkt.bth.opcode >> 5 != vb_ib_class(qp->type)))
		return;
	pkt.grh = &grh;
	pkt.from = &from;
	vb_mutex_lock(&qp->drive);
	if (is_admitted(qp, f, &pkt))
		vb_transport_recv(qp, &pkt, side->sim->now);
	vb_mutex_unlock(&qp->drive);
}

void sim_drive(struct sim *s)
{
	if (s->path) {
		s->path->drive(s);
		return;
	}
	for (unsigned i = 0; i < SIM_SIDES; i++)
		for (unsigned q = 0; q < s->side[i].qp_count; q++)
			drive(&s->side[i], s->side[i].qps[q]);
}

vb_time VB_UNCHECKED sim_next(const struct sim *s)
{
	vb_time next = s->used ? s->heap[0].at : VB_NEVER;

	if (s->path)
		return VB_MIN(next, s->path->next(s));
	for (unsigned i = 0; i < SIM_SIDES; i++)
		for (unsigned q = 0; q < s->side[i].qp_count; q++) {
			vb_time t = vb_transport_deadline(s->side[i].qps[q]);

			next = VB_MIN(next, t);
		}
	return next;
}

/* Do everything that is due now. Frames come in batches, as from a socket. */
static void happen(struct sim *s)
{
	unsigned run = 1 + sim_below(&s->rand, 64);

	while (s->used && s->heap[0].at <= s->now && run--) {
		struct sim_frame f = pop(s);

		s->to_come[f.to]--;
		deliver(&s->side[f.to], &f);
		free(f.bytes);
	}
	sim_drive(s);
}

void sim_run(struct sim *s, vb_time until)
{
	vb_time next;

	sim_drive(s);
	while ((next = sim_next(s)) <= until) {
		s->now = VB_MAX(s->now, next);
		happen(s);
	}
	s->now = VB_MAX(s->now, until);
}

bool sim_settle(struct sim *s, vb_time until)
{
	vb_time next;

	sim_drive(s);
	while ((next = sim_next(s)) <= until) {
		s->now = VB_MAX(s->now, next);
		happen(s);
	}
	return next == VB_NEVER;
}

/* Making adapters. */

static int route(struct vb_link *l, struct vb_route *r)
{
	r->src_port = 0xc000;
	return 0;
}

static uint64_t sent_position(const struct vb_link *l)
{
	return VB_CONTAINER_OF(l, struct sim_side, link)->sim->sent;
}

static bool has_carried(const struct vb_link *l, uint64_t position)
{
	return !VB_CONTAINER_OF(l, struct sim_side, link)->carries_nothing;
}

static const struct vb_link_ops link_ops = { .name = "sim",
					     .route = route,
					     .aim = route,
					     .sent = sent_position,
					     .has_carried = has_carried };

static void open_side(struct sim *s, unsigned number)
{
	struct sim_side *side = &s->side[number];
	struct vb_port_update update = { .up = true, .mtu = 9000, .count = 1 };
	struct vb_adapter *a = &side->adapter;

	side->sim = s;
	side->number = number;
	MUST(vb_adapter_init(a, "sim") == 0);
	a->qps = vb_idtab_create(1u << 12, 16 + 16 * number);
	MUST(a->qps);
	a->transport = s->path ? s->path->transport : &vb_ib_transport;
	side->link.ops = &link_ops;
	a->ports[0].link = &side->link;
	update.addresses[0] = gid_of(number);
	vb_port_update(&a->ports[0], &update);
	MUST(vb_pd_create(a, &side->pd) == 0);
	MUST(vb_async_init(&side->async) == 0);
	MUST(fcntl(side->async.fd, F_SETFL, O_NONBLOCK) == 0);
}

void sim_open(struct sim *s, uint64_t seed)
{
	sim_open_as(s, seed, NULL);
}

void sim_open_as(struct sim *s, uint64_t seed, const struct sim_path *path)
{
	memset(s, 0, sizeof(*s));
	s->path = path;
	s->rand.state = seed;
	s->now = VB_SEC;
	s->wire.delay = 5 * VB_USEC;
	for (unsigned i = 0; i < SIM_SIDES; i++)
		open_side(s, i);
	if (path)
		path->open(s);
}

void sim_make_ib(struct sim *s)
{
	for (unsigned i = 0; i < SIM_SIDES; i++) {
		s->side[i].adapter.ports[0].addressing = &vb_addressing_ib;
		atomic_store(&s->side[i].adapter.ports[0].lmc, 1);
	}
}

struct vb_av sim_ib_av(unsigned to, unsigned way)
{
	return (struct vb_av){ .dlid = (uint16_t)(lid_of(to) + way),
			       .src_path_bits = (uint8_t)way,
			       .port_num = 1 };
}

void sim_close(struct sim *s)
{
	while (s->used)
		free(pop(s).bytes);
	free(s->heap);
	if (s->path)
		s->path->close(s);
	for (unsigned i = 0; i < SIM_SIDES; i++) {
		struct sim_side *side = &s->side[i];

		MUST(side->qp_count == 0);
		vb_async_fini(&side->async);
		MUST(vb_pd_destroy(side->pd) == 0);
		vb_idtab_destroy(side->adapter.qps);
		vb_adapter_fini(&side->adapter);
	}
}

const struct vb_qp_attr sim_attr = {
	.path_mtu = 3,
	.rq_psn = 0xfffff0,
	.sq_psn = 0xfffff0,
	.access_flags = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE |
			ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC,
	.max_rd_atomic = 4,
	.max_dest_rd_atomic = 4,
	.min_rnr_timer = 12,
	.timeout = 14,
	.retry_cnt = 7,
	.rnr_retry = 7,
	.port_num = 1,
	.qkey = 0x11111111,
};

const struct sim_caps sim_caps = {
	.wr = 64, .sge = 8, .inline_bytes = 256, .cqe = 256
};

void sim_modify(struct sim *s, struct vb_qp *qp, enum vb_qp_state to,
		uint32_t mask, const struct vb_qp_attr *attr)
{
	struct vb_qp_attr a = attr ? *attr : (struct vb_qp_attr){ 0 };

	a.qp_state = to;
	MUST(vb_qp_modify(qp, &a, mask | QPM_STATE, s->now) == 0);
}

/* For XRC: make side 1's target queue pair, and the SRQ for it. */
static void make_target(struct sim_pair *p, struct sim_side *side,
			struct vb_qp_init *init)
{
	MUST(vb_xrcd_open(&side->adapter, NULL, 0, &p->xrcd) == 0);
	MUST(vb_xrc_srq_join(p->srq[1], p->xrcd, p->recv_cq[1]) == 0);
	p->share = (struct vb_qp_share){ .async = &side->async,
					 .owner = p,
					 .xrcd = p->xrcd };
	init->type = QPT_XRC_RECV;
	init->share = &p->share;
}

static void create_side(struct sim *s, struct sim_pair *p, unsigned i,
			const struct sim_caps *caps)
{
	struct sim_side *side = &s->side[i];
	struct vb_qp_init init = {
		.type = caps->type ? caps->type : QPT_RC,
		.pd = side->pd,
		.max_send_wr = caps->wr,
		.max_recv_wr = caps->wr,
		.max_send_sge = caps->sge,
		.max_recv_sge = caps->sge,
		.max_inline = caps->inline_bytes,
		.async = &side->async,
	};

	bool target = caps->type == QPT_XRC_SEND && i == 1;
	bool tagged = caps->tags && i == 1;

	p->srq[i] = NULL;
	if (caps->srq || target || tagged)
		MUST(vb_srq_create(side->pd, caps->wr, caps->sge, &side->async,
				   NULL, &p->srq[i]) == 0);
	init.srq = p->srq[i];
	if (tagged)
		init.max_send_wr = init.max_send_sge = init.max_inline = 0;
	MUST(vb_cq_create_in(&side->adapter, caps->cqe, NULL, &side->async,
			     NULL, &p->send_cq[i]) == 0);
	MUST(vb_cq_create_in(&side->adapter, caps->cqe, NULL, &side->async,
			     NULL, &p->recv_cq[i]) == 0);
	init.send_cq = p->send_cq[i];
	init.recv_cq = p->recv_cq[i];
	if (tagged)
		MUST(vb_tag_join(p->srq[i], p->recv_cq[i], caps->tags) == 0);
	if (target)
		make_target(p, side, &init);
	MUST(vb_qp_create(&side->adapter, &init, &p->qp[i]) == 0);
	if (!target)
		p->qp[i]->owner = p->qp[i];
	MUST(side->qp_count < SIM_QPS);
	side->qps[side->qp_count++] = p->qp[i];
}

void sim_create(struct sim *s, struct sim_pair *p, const struct sim_caps *caps)
{
	p->xrcd = NULL;
	for (unsigned i = 0; i < SIM_SIDES; i++)
		create_side(s, p, i, caps);
}

/* The masks of the attributes that each state transition sets. */
#define CONNECT (QPM_AV | QPM_PATH_MTU | QPM_DEST_QPN | QPM_RQ_PSN)
static const struct way_up {
	uint32_t init, rtr, rts;
} ways_up[] = {
	[QPT_RC] = { QPM_PKEY_INDEX | QPM_PORT | QPM_ACCESS_FLAGS,
		     CONNECT | QPM_MAX_DEST_RD_ATOMIC | QPM_MIN_RNR_TIMER,
		     QPM_TIMEOUT | QPM_RETRY_CNT | QPM_RNR_RETRY | QPM_SQ_PSN |
			     QPM_MAX_QP_RD_ATOMIC },
	[QPT_UC] = { QPM_PKEY_INDEX | QPM_PORT | QPM_ACCESS_FLAGS, CONNECT,
		     QPM_SQ_PSN },
	[QPT_UD] = { QPM_PKEY_INDEX | QPM_PORT | QPM_QKEY, 0, QPM_SQ_PSN },
	[QPT_XRC_SEND] = { QPM_PKEY_INDEX | QPM_PORT | QPM_ACCESS_FLAGS,
			   CONNECT,
			   QPM_TIMEOUT | QPM_RETRY_CNT | QPM_RNR_RETRY |
				   QPM_SQ_PSN | QPM_MAX_QP_RD_ATOMIC },
	[QPT_XRC_RECV] = { QPM_PKEY_INDEX | QPM_PORT | QPM_ACCESS_FLAGS,
			   CONNECT | QPM_MAX_DEST_RD_ATOMIC | QPM_MIN_RNR_TIMER,
			   QPM_TIMEOUT | QPM_SQ_PSN },
};
#undef CONNECT

void sim_to_rtr(struct sim *s, struct sim_pair *p, unsigned side,
		const struct vb_qp_attr *attr)
{
	struct vb_qp_attr a = *attr;

	const struct way_up *way = &ways_up[p->qp[side]->type];

	sim_modify(s, p->qp[side], QPS_INIT, way->init, &a);
	a.dest_qp_num = p->qp[!side]->qpn;
	if (vb_port_is_ib(vb_qp_port(p->qp[side])))
		a.av = sim_ib_av(!side, 0);
	else
		a.av = (struct vb_av){ .dgid = gid_of(!side),
				       .sgid_index = 1,
				       .is_global = true,
				       .port_num = 1 };
	sim_modify(s, p->qp[side], QPS_RTR, way->rtr, &a);
	/* For datagrams this is only where the simulation's posts go. */
	p->qp[side]->attr.dest_qp_num = a.dest_qp_num;
}

void sim_to_rts(struct sim *s, struct sim_pair *p, unsigned side,
		const struct vb_qp_attr *attr)
{
	sim_modify(s, p->qp[side], QPS_RTS, ways_up[p->qp[side]->type].rts,
		   attr);
}

void sim_connect(struct sim *s, struct sim_pair *p,
		 const struct vb_qp_attr *attr, const struct sim_caps *caps)
{
	sim_create(s, p, caps);
	for (unsigned i = 0; i < SIM_SIDES; i++) {
		sim_to_rtr(s, p, i, attr);
		sim_to_rts(s, p, i, attr);
	}
}

static void forget(struct sim_side *side, const struct vb_qp *qp)
{
	for (unsigned i = 0; i < side->qp_count; i++)
		if (side->qps[i] == qp)
			side->qps[i] = side->qps[--side->qp_count];
}

void sim_disconnect(struct sim *s, struct sim_pair *p)
{
	if (s->path)
		s->path->rest(s);
	for (unsigned i = 0; i < SIM_SIDES; i++) {
		forget(&s->side[i], p->qp[i]);
		if (p->qp[i]->type == QPT_XRC_RECV)
			MUST(vb_qp_unshare(p->qp[i], &p->share));
		vb_qp_destroy(p->qp[i]);
		if (p->srq[i])
			MUST(vb_srq_destroy(p->srq[i]) == 0);
		MUST(vb_cq_destroy(p->send_cq[i]) == 0);
		MUST(vb_cq_destroy(p->recv_cq[i]) == 0);
	}
	if (p->xrcd)
		MUST(vb_xrcd_close(p->xrcd) == 0);
	p->xrcd = NULL;
}

/* Functions that do what a program would do. */

/* Returns the destination of a datagram: the other side. */
static struct vb_send_dest dest_of(struct vb_qp *qp)
{
	struct sim_side *side =
		VB_CONTAINER_OF(qp->adapter, struct sim_side, adapter);

	return (struct vb_send_dest){
		.route = { .sgid = gid_of(side->number),
			   .dgid = gid_of(!side->number),
			   .dqpn = qp->attr.dest_qp_num },
		.qkey = qp->attr.qkey,
	};
}

static void post(struct vb_qp *qp, const struct vb_send_wqe *wqe, uint8_t flags,
		 const void *tail, size_t bytes)
{
	struct vb_send_wqe *slot;

	vb_mutex_lock(&qp->sq.lock);
	slot = vb_sq_begin(&qp->sq);
	MUST(slot);
	*slot = *wqe;
	slot->flags |= flags;
	if (qp->type == QPT_UD)
		*vb_sq_dest(&qp->sq, slot) = dest_of(qp);
	if (bytes)
		memcpy(slot->inline_data, tail, bytes);
	vb_sq_commit(&qp->sq);
	vb_mutex_unlock(&qp->sq.lock);
}

void sim_post_send(struct vb_qp *qp, const struct vb_send_wqe *wqe,
		   const struct vb_sge *sge)
{
	post(qp, wqe, 0, sge, wqe->num_sge * sizeof(*sge));
}

void sim_post_inline(struct vb_qp *qp, const struct vb_send_wqe *wqe,
		     const void *data)
{
	MUST(wqe->length <= qp->sq.max_inline);
	post(qp, wqe, SEND_INLINE, data, wqe->length);
}

void sim_post_recv(struct vb_qp *qp, uint64_t wr_id, const struct vb_sge *sge,
		   unsigned count)
{
	struct vb_rq *rq = qp->srq ? &qp->srq->rq : &qp->rq;

	MUST(vb_rq_post(rq, wr_id, sge, count) == 0);
}

bool sim_poll(struct vb_cq *cq, struct vb_cqe *e)
{
	return vb_cq_poll(cq, 1, e) == 1;
}

int sim_event(struct sim *s, unsigned side)
{
	struct vb_event e;

	return vb_async_take(&s->side[side].async, &e) == 0 ? (int)e.type : -1;
}
