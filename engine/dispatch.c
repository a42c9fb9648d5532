/* SPDX-License-Identifier: BSD-2-Clause */
/* The frame entrance: each frame that has arrived is checked and handed to its
 * queue pair's transport (IBA 9.6). */
#include "engine/engine_priv.h"

#include "base/log.h"
#include "core/migrate.h"
#include "ib/ib.h"
#include "wire/grh.h"

/* The most that an IPv4 Identification may have advanced since the last
 * packet. */
#define ID_STRIDE 1024
/* The most that an IPv4 Identification may have gone back, because packets
 * overtake each other. */
#define ID_BEHIND 128
/* Identifications below this are small: the kernel cuts a batch into 64
 * segments at most. */
#define ID_SMALL  64
#define LID_MCAST 0xc000 /* the lowest LID of a group (IBA 4.1.1) */
/* Refusals in a row that random damage alone does not cause. */
#define ID_DOUBTS 16

static bool pkey_matches(const struct vb_qp *qp, uint16_t pkey)
{
	return vb_pkeys_match(vb_port_pkey(vb_qp_port(qp), qp->attr.pkey_index),
			      pkey);
}

static bool state_takes(enum vb_qp_state state, bool response)
{
	static const struct {
		bool request, response;
	} takes[QPS_COUNT] = {
		[QPS_RTR] = { true, false },
		[QPS_RTS] = { true, true },
		[QPS_SQD] = { true, true },
		[QPS_SQE] = { true, true },
	};

	return response ? takes[state].response : takes[state].request;
}

static bool id_is_behind(const struct vb_peer_id *p, uint16_t id)
{
	return (uint16_t)(p->last - id) <= ID_BEHIND;
}

/*
 * The ICRC covers the IPv4 Identification, which a UDP socket does not report.
 * The link has solved for the only value that makes the ICRC right; a damaged
 * packet has such a value once in 2^15. So the value must also be one that this
 * peer may use: a small one (user-space senders put a segment's index there),
 * or a little after the last one (kernels count), or a little before it
 * (Linux's Soft-RoCE numbers requests and answers from one counter in two
 * threads, which send in any order). After a jump the dispatcher refuses one
 * packet and believes the next one near it. A peer that jumps nearly every time
 * draws its numbers at random, and the dispatcher believes it always.
 */
static bool id_follows(const struct vb_peer_id *p, uint16_t id, vb_time now)
{
	uint32_t idle_ms =
		(uint32_t)VB_MIN((now - p->at) / VB_MSEC, UINT16_MAX);
	uint32_t stride = VB_MIN(ID_STRIDE + 2 * idle_ms, UINT16_MAX);
	uint16_t moved = (uint16_t)(id - p->last);
	uint16_t again = (uint16_t)(id - p->rejected);

	return !p->known || p->any || id < ID_SMALL || moved <= stride ||
	       id_is_behind(p, id) || (p->has_rejected && again <= ID_STRIDE);
}

static bool id_is_plausible(struct vb_peer_id *p, const struct vb_frame *f,
			    vb_time now)
{
	uint16_t id = (uint16_t)f->if_ip_id;
	char text[VB_GID_TEXT];

	if (!id_follows(p, id, now)) {
		p->rejected = id;
		p->has_rejected = true;
		if (++p->doubts == ID_DOUBTS) {
			p->any = true;
			vb_log(LOG_INFO,
			       "%s: its IPv4 Identifications follow no rule; "
			       "ICRCs are checked less well",
			       vb_gid_text(f->src, text));
		}
		return false;
	}
	p->doubts -= p->doubts > 0;
	p->has_rejected = false;
	if (!p->known || !id_is_behind(p, id))
		p->last = id;
	p->known = true;
	p->at = now;
	return true;
}

/*
 * Find the record of the sender's Identifications. A connection has one peer,
 * whose record is in the queue pair. Datagrams come from anywhere: the engine
 * keeps a table of their senders, of limited size, and believes one packet of a
 * sender that is no longer in the table.
 */
static struct vb_peer_id *peer_of(struct vb_engine *e, struct vb_qp *qp,
				  const struct vb_gid *src)
{
	struct vb_sender *s;
	uint32_t ipv4;

	if (qp->type != QPT_UD)
		return &vb_eq(qp)->peer_id;
	memcpy(&ipv4, src->raw + 12, sizeof(ipv4));
	s = &e->senders[ipv4 * 0x9e3779b1u >> (32 - VB_SENDER_BITS)];
	if (s->ipv4 != ipv4)
		*s = (struct vb_sender){ .ipv4 = ipv4 };
	return &s->id;
}

/* The packet must come from the connection's peer, and to the queue pair's own
 * address (IBA 9.6.1). A link-local address is unique only on its interface. */
static bool comes_from_peer(const struct vb_qp *qp, const struct vb_frame *f)
{
	const struct vb_port *p = vb_qp_port(qp);

	if (qp->type == QPT_UD || vb_port_is_ib(p))
		return p->addressing->comes_from_peer(qp, f);
	return f->v1 == qp->route.v1 && vb_gid_equal(f->src, &qp->route.dgid) &&
	       vb_gid_equal(f->dst, &qp->route.sgid) &&
	       (f->ifindex == qp->route.ifindex ||
		!vb_gid_is_link_local(f->src));
}

/* The opcode must belong to the queue pair's transport. UC and UD also take
 * Verbena's own acknowledgement (ib/pace.h). */
static bool class_fits(const struct vb_qp *qp, uint8_t opcode)
{
	return opcode >> 5 == vb_ib_class(qp->type) ||
	       (opcode == VB_OP_HEARD &&
		(qp->type == QPT_UC || qp->type == QPT_UD));
}

/* Of two connected XRC queue pairs one only sends requests, the other only
 * receives them. */
static bool side_fits(const struct vb_qp *qp, bool response)
{
	return qp->type != (response ? QPT_XRC_RECV : QPT_XRC_SEND);
}

/* Compare addresses and P_Key. A queue pair that may migrate takes packets by
 * two paths. Returns as eng_refusal() does. */
static enum vb_counter check_path(struct vb_qp *qp, const struct vb_link *link,
				  const struct vb_frame *f,
				  const struct vb_bth *bth)
	VB_REQUIRES(qp->drive)
{
	if (VB_UNLIKELY(qp->attr.path_mig_state != MIG_MIGRATED))
		return vb_mig_arrive(qp, link, f, bth->migrated, bth->pkey);
	if (!comes_from_peer(qp, f))
		return CNT_DROP_ADDRESS;
	return pkey_matches(qp, bth->pkey) ? CNT_COUNT : CNT_DROP_PKEY;
}

/* Returns CNT_COUNT if the queue pair takes the packet; otherwise the counter
 * of the reason why it does not. */
static enum vb_counter eng_refusal(struct vb_engine *e, struct vb_qp *qp,
				   const struct vb_frame *f,
				   const struct vb_ib_pkt *pkt, vb_time now)
	VB_REQUIRES(qp->drive)
{
	enum vb_counter why;

	if (!class_fits(qp, pkt->bth.opcode) ||
	    !side_fits(qp, pkt->op->response))
		return CNT_DROP_TRANSPORT;
	if (!state_takes(atomic_load(&qp->state), pkt->op->response))
		return CNT_DROP_STATE;
	why = check_path(qp, e->rx_link, f, &pkt->bth);
	if (why != CNT_COUNT)
		return why;
	if (f->if_ip_id >= 0 &&
	    !id_is_plausible(peer_of(e, qp, f->src), f, now))
		return CNT_DROP_IP_ID;
	return CNT_COUNT;
}

static struct vb_grh grh_of(const struct vb_frame *f)
{
	return (struct vb_grh){
		.sgid = *f->src,
		.dgid = *f->dst,
		.flow_label = f->flow_label,
		.iba = f->dlid != 0 || f->v1,
		.ip_id = (uint16_t)VB_MAX(f->if_ip_id, 0),
		.udp_bytes = (uint16_t)(f->len + VB_ICRC_BYTES),
		.tclass = f->tclass,
		.hop_limit = f->ttl,
	};
}

static uint32_t frame_dqpn(const struct vb_frame *f)
{
	return f->len < VB_BTH_BYTES ? 0
				     : (uint32_t)vb_load_be(f->bytes + 5, 3);
}

/* Returns the value that a completion reports as its service level, which RoCE
 * packets lack. */
static uint8_t l3_of(const struct vb_frame *f)
{
	if (f->v1)
		return WC_L3_GRH;
	return vb_gid_is_ipv4(f->dst) ? WC_L3_UDP_IPV4 : WC_L3_UDP_IPV6;
}

static struct vb_wc_from from_of(struct vb_qp *qp, const struct vb_frame *f)
	VB_REQUIRES(qp->drive)
{
	uint8_t lmc = atomic_load_explicit(&vb_qp_port(qp)->lmc,
					   memory_order_relaxed);
	uint16_t mask = (uint16_t)((1u << lmc) - 1);

	if (!f->dlid) {
		struct vb_wc_from from = { .sl = l3_of(f) };

		if (f->mac)
			memcpy(from.mac, f->mac, sizeof(from.mac));
		return from;
	}
	return (struct vb_wc_from){
		.slid = f->slid,
		.sl = f->sl,
		.path_bits = f->dlid < LID_MCAST ? f->dlid & mask & 0x7f : 0,
		.pkey_index = (uint8_t)qp->attr.pkey_index,
	};
}

/* Hand a datagram to its queue pair. Only for datagrams does the program learn
 * where they came from. */
static void hand_datagram(struct vb_qp *qp, const struct vb_frame *f,
			  struct vb_ib_pkt *pkt, vb_time now)
	VB_REQUIRES(qp->drive)
{
	const struct vb_wc_from from = from_of(qp, f);
	struct vb_grh grh;

	if (f->src) {
		grh = grh_of(f);
		pkt->grh = &grh;
	}
	pkt->from = &from;
	vb_transport_recv(qp, pkt, now);
}

static void eng_dispatch_hand_over(struct vb_engine *e, struct vb_qp *qp,
				   const struct vb_frame *f, vb_time now)
	VB_REQUIRES(qp->drive)
{
	enum vb_counter why = CNT_DROP_MALFORMED;
	struct vb_ib_pkt pkt;

	if (vb_ib_parse(f->bytes, f->len, &pkt) == PARSE_OK)
		why = eng_refusal(e, qp, f, &pkt, now);
	if (why != CNT_COUNT)
		vb_count(qp->adapter, why, 1);
	else if (qp->type == QPT_UD)
		hand_datagram(qp, f, &pkt, now);
	else
		vb_transport_recv(qp, &pkt, now);
}

/* Send the packets that are due now, unless they may wait: requests for a
 * batch, an ACK for the program's reply. */
static void step_or_wait(struct vb_engine *e, struct vb_qp *qp, vb_time now)
	VB_REQUIRES(qp->drive)
{
	const struct vb_transport_ops *ops = qp->ops;
	enum vb_delayed_ack delayed_ack = ACK_NONE;

	if (vb_drive_can_wait(qp))
		return;
	if (atomic_load_explicit(&e->attentive, memory_order_relaxed) &&
	    ops->delayed_ack)
		delayed_ack = ops->delayed_ack(qp, e->polled);
	if (delayed_ack != ACK_NONE) {
		e->delayed_ack_qp = qp;
		e->delayed_ack_at = now;
	}
	if (delayed_ack != ACK_DELAYED)
		vb_drive_step_rx(e, qp, now);
}

static bool is_response(const struct vb_frame *f)
{
	const struct vb_ib_op *op = f->len ? vb_ib_op(f->bytes[0]) : NULL;

	return op && op->response;
}

/*
 * Hand over responses before requests. In a train an ACK comes after the reply
 * with which it travels, and a program that sees the reply expects the request
 * that it answers to be complete. Between the two directions of a connection
 * there is no order (IBA 9.5).
 */
static void hand_in_order(struct vb_engine *e, struct vb_qp *qp,
			  const struct vb_frame *frames, unsigned count,
			  vb_time now) VB_REQUIRES(qp->drive)
{
	bool mixed = count > 1 && is_response(&frames[count - 1]);

	for (unsigned i = 0; mixed && i < count; i++)
		if (is_response(&frames[i]))
			eng_dispatch_hand_over(e, qp, &frames[i], now);
	for (unsigned i = 0; i < count; i++)
		if (!mixed || !is_response(&frames[i]))
			eng_dispatch_hand_over(e, qp, &frames[i], now);
}

/* Hand over a run of frames. A region that several of them write to stays
 * referenced until the run ends. */
static void helper_run(struct vb_engine *e, struct vb_qp *qp,
		       const struct vb_frame *frames, unsigned count,
		       vb_time now) VB_REQUIRES(qp->drive)
{
	void (*run)(struct vb_qp * qp, bool begins) =
		count > 1 ? qp->ops->run : NULL;

	if (run)
		run(qp, true);
	hand_in_order(e, qp, frames, count, now);
	if (run)
		run(qp, false);
}

/* Serve several frames in a row for one queue pair: the lock is taken once, and
 * one step sends everything that they made due. @qp was looked up without a
 * lock and may have been destroyed and reused since. */
static void eng_dispatch_serve(struct vb_engine *e, struct vb_qp *qp,
			       uint32_t qpn, const struct vb_frame *frames,
			       unsigned count, vb_time now) VB_REQUIRES(e->rx)
{
	if (e->delayed_ack_qp && e->delayed_ack_qp != qp)
		vb_drive_delayed_acks(e, now);
	if (VB_UNLIKELY(!vb_drive_take_rx(qp))) {
		/* Drop the packets, as if the wire had lost them: a reliable
		 * peer sends them again. */
		vb_count(qp->adapter, CNT_DROP_BUSY, count);
		return;
	}
	now = vb_qp_advance(qp, now);
	if (atomic_load(&qp->qpn) == qpn) {
		vb_count(qp->adapter, CNT_RCVD_PKTS, count);
		vb_sq_resume_doorbell(&qp->sq);
		helper_run(e, qp, frames, count, now);
		step_or_wait(e, qp, now);
	}
	vb_drive_release_rx(e, qp);
}

static bool is_of_group(const struct vb_group *g, const struct vb_frame *f)
{
	return f->dst && vb_gid_equal(&g->to.gid, f->dst) &&
	       g->to.ifindex == f->ifindex &&
	       (!g->to.mlid || g->to.mlid == f->dlid);
}

/* Do the frames of @link come to a port with the link @own? A port with both
 * versions of RoCE sends by one link and receives by two. */
static bool link_hears(const struct vb_engine *e, const struct vb_link *own,
		       const struct vb_link *link)
{
	return own == link ||
	       (own == e->roce.both && (link == e->link || link == e->roce.v1));
}

/* Do the frames of @link come to a port of @qp: its own, or that of its
 * alternate path?
 *
 * Ports and links are read without drive, and the queue pair may be destroyed
 * meanwhile. Both stay as long as this thread holds rx: drop_adapter() takes rx
 * in take_fabric(), after the adapter's last queue pair has left the table and
 * before the link and the ports are freed. If a port changes now, the frames
 * count for either port. */
static bool qp_hears(const struct vb_engine *e, const struct vb_qp *qp,
		     const struct vb_link *link) VB_REQUIRES(e->rx)
{
	const struct vb_port *alt;

	if (VB_LIKELY(link_hears(e, vb_qp_port(qp)->link, link)))
		return true;
	alt = atomic_load_explicit(&qp->alt_port, memory_order_relaxed);
	return alt && alt->link == link;
}

/* Serve a packet to a multicast group: each queue pair in the group gets a copy
 * (IBA 10.5.2). */
static void serve_group(struct vb_engine *e, const struct vb_link *link,
			const struct vb_frame *f, vb_time now)
	VB_REQUIRES(e->rx)
{
	for (const struct vb_group *g = e->groups; g; g = g->next)
		if (is_of_group(g, f) && link_hears(e, g->link, link))
			eng_dispatch_serve(e, g->qp, g->qpn, f, 1, now);
}

/* Serve the frames in a row for one destination, beginning with number @first.
 * Returns the index of the next frame. */
static unsigned dispatch_run(struct vb_engine *e, const struct vb_link *link,
			     unsigned slot, unsigned first, vb_time now)
	VB_REQUIRES(e->rx)
{
	const struct vb_frame *f = &e->rxq.frames[first];
	uint32_t dqpn = frame_dqpn(f);
	unsigned end = first + 1;
	struct vb_qp *qp;

	if (dqpn == VB_QPN_MULTICAST) {
		serve_group(e, link, f, now);
		return end;
	}
	while (end < e->rxq.count && frame_dqpn(&e->rxq.frames[end]) == dqpn)
		end++;
	qp = dqpn >> VB_QPN_BITS == slot
		     ? vb_idtab_get(e->qps, dqpn & ((1u << VB_QPN_BITS) - 1))
		     : NULL;
	/* Two adapters of this process can have equal slots, but not equal
	 * numbers below. The ports of one adapter have one slot. */
	if (qp && qp_hears(e, qp, link))
		eng_dispatch_serve(e, qp, dqpn, f, end - first, now);
	else
		e->strays += end - first;
	return end;
}

void vb_dispatch_from(struct vb_engine *e, const struct vb_link *link,
		      unsigned slot, vb_time now)
{
	unsigned i = 0;

	e->rx_link = link;
	while (i < e->rxq.count)
		i = dispatch_run(e, link, slot, i, now);
}

void vb_dispatch(struct vb_engine *e, vb_time now)
{
	vb_channel_raises(e->polled ? RAISED_BY_PROGRAM : RAISED_BY_ENGINE);
	vb_dispatch_from(e, e->link, e->lease.slot, now);
	vb_channel_raises(RAISED_OTHERWISE);
}
