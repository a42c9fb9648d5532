/* SPDX-License-Identifier: BSD-2-Clause */
/* The InfiniBand implementation of core/transport.h. Each type of queue pair
 * has a table of operations of its own; the functions at the end dispatch to
 * it. */
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "ib/raw.h"
#include "ib/rc.h"
#include "ib/unrel.h"

/* After this many replies in a row the ACK waits for the program's next reply.
 * One missed reply halves the count, since the program may just have lost its
 * processor. */
#define REPLIES	   8
#define AETH_BYTES 4

enum vb_ib_class vb_ib_class(enum vb_qp_type type)
{
	static const uint8_t classes[] = {
		[QPT_RC] = CLASS_RC,	    [QPT_UC] = CLASS_UC,
		[QPT_UD] = CLASS_UD,	    [QPT_XRC_SEND] = CLASS_XRC,
		[QPT_XRC_RECV] = CLASS_XRC, [QPT_RAW_PACKET] = CLASS_NONE,
		[QPT_WQ] = CLASS_NONE,
	};

	return (enum vb_ib_class)classes[type];
}

static bool is_mtu(uint32_t bytes)
{
	return bytes >= vb_mtu_bytes(1) && bytes <= vb_mtu_bytes(5) &&
	       (bytes & (bytes - 1)) == 0;
}

void vb_rc_explain_length(const struct vb_qp *qp, uint32_t bytes)
{
	uint32_t asked = vb_mtu_bytes(qp->attr.path_mtu);

	if (bytes > qp->mtu && bytes <= asked)
		vb_log(LOG_WARN,
		       "qp 0x%x: the peer sends packets of %u bytes; our interface carries %u: give both ends path MTU %u",
		       vb_rc_qpn(qp), bytes, qp->mtu, qp->mtu);
	else if (bytes < qp->mtu && is_mtu(bytes))
		vb_log(LOG_WARN,
		       "qp 0x%x: the peer sends packets of %u bytes, not of %u; its interface may carry no more: give both ends path MTU %u",
		       vb_rc_qpn(qp), bytes, qp->mtu, bytes);
}

struct vb_bth vb_rc_bth(const struct vb_qp *qp, uint8_t opcode, uint32_t psn)
{
	return (struct vb_bth){
		.opcode = opcode,
		.migrated = true, /* this value means: no path migration */
		.pkey = 0xffff,
		.dqpn = qp->attr.dest_qp_num,
		.psn = psn,
		.selective =
			vb_qp_type_is_reliable(qp->type) && vb_rc(qp)->offers,
	};
}

/* RC; and XRC, of which each queue pair is one half. */

static int rc_attach(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	qp->tp = calloc(1, sizeof(struct vb_rc));
	return qp->tp ? 0 : -ENOMEM;
}

static void rc_detach(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	vb_ooo_clear(qp->adapter, &vb_rc(qp)->req.ooo);
	vb_ooo_clear(qp->adapter, &vb_rc(qp)->resp.ooo);
	vb_replay_fini(&vb_rc(qp)->resp.replay);
	vb_xrc_read_reset(qp);
	free(qp->tp);
	qp->tp = NULL;
}

static void rc_enter(struct vb_qp *qp, enum vb_qp_state from,
		     enum vb_qp_state to, vb_time now) VB_REQUIRES(qp->drive)
{
	if (to == QPS_RTR && from == QPS_INIT) {
		vb_rc(qp)->offers = vb_rc(qp)->selective = false;
		vb_resp_reset(qp);
		vb_req_reset(qp);
	} else if (to == QPS_RTS && from == QPS_RTR) {
		vb_req_reset(qp);
	} else if (to == QPS_SQD) {
		vb_replay_resize(&vb_rc(qp)->resp.replay,
				 qp->attr.max_dest_rd_atomic);
		vb_req_drain(qp);
	}
	/* RESET and INIT send nothing, and the move to RTR starts over. For ERR
	 * see rc_send(). */
}

static void rc_recv(struct vb_qp *qp, const struct vb_ib_pkt *pkt, vb_time now)
	VB_REQUIRES(qp->drive)
{
	enum vb_qp_state s = vb_rc_state(qp);

	if (pkt->bth.selective)
		vb_rc(qp)->selective = vb_rc(qp)->offers = true;
	if (pkt->op->response && vb_rc_sends(qp))
		vb_comp_recv(qp, pkt, now);
	else if (!pkt->op->response && (s == QPS_RTR || vb_rc_sends(qp)))
		vb_resp_recv(qp, pkt);
}

/* In ERR only the NAK of a fault in the peer's request is sent. */
static bool send_last_words(struct vb_qp *qp, struct vb_txq *out)
	VB_REQUIRES(qp->drive)
{
	struct vb_resp *resp = &vb_rc(qp)->resp;

	if (resp->dying && vb_answer_send(qp, out))
		return true;
	resp->dying &= resp->xrc_read.state == XRC_READ_ASKED;
	return false;
}

static uint32_t unsent(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	return vb_sq_end(&qp->sq) - vb_rc(qp)->req.cur;
}

static void note_reply(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	struct vb_resp *resp = &vb_rc(qp)->resp;

	if (!resp->shown || !unsent(qp))
		return;
	resp->shown = false;
	resp->replies += resp->replies < REPLIES;
}

static bool answers(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	return vb_rc_state(qp) == QPS_RTR || vb_rc_sends(qp);
}

/* Send an ACK behind a reply of one packet: both fit in one train
 * (UDP_SEGMENT), whose last packet may be shorter, and cost one system call.
 * The receiver of a train handles its ACK first (engine/dispatch.c). */
static bool ack_goes_last(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	uint32_t len;

	if (unsent(qp) != 1 || qp->way != WAY_PACKETS || !vb_answer_is_ack(qp))
		return false;
	len = vb_sq_at(&qp->sq, vb_rc(qp)->req.cur)->length;
	return len >= AETH_BYTES && len <= qp->mtu;
}

static bool rc_send(struct vb_qp *qp, vb_time now, struct vb_txq *out)
	VB_REQUIRES(qp->drive)
{
	bool more = false, last = answers(qp) && ack_goes_last(qp);
	unsigned before = out->count;

	note_reply(qp);
	if (answers(qp) && !last)
		more = vb_answer_send(qp, out);
	if (!more && vb_rc_sends(qp) && qp->way == WAY_PACKETS)
		more = vb_req_send(qp, now, out);
	if (last) /* even if the reply could not be sent */
		more |= vb_answer_send(qp, out);
	if (vb_rc_state(qp) == QPS_ERR) {
		vb_qp_flush(qp);
		more = send_last_words(qp, out);
	}
	if (out->count != before)
		vb_count(qp->adapter, CNT_SENT_PKTS, out->count - before);
	return more;
}

static bool rc_can_wait(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	return vb_rc_state(qp) == QPS_RTS && !vb_answer_is_due(qp) &&
	       vb_req_can_wait(qp);
}

/* A hint: another thread may take the completions. */
static bool has_completions(const struct vb_qp *qp)
{
	return atomic_load_explicit(&qp->recv_cq->count,
				    memory_order_relaxed) ||
	       atomic_load_explicit(&qp->send_cq->count, memory_order_relaxed);
}

/* A program that polls and gets nothing polls again, so only one that has
 * completions can reply. */
static enum vb_delayed_ack rc_delayed_ack(struct vb_qp *qp, bool polls)
	VB_REQUIRES(qp->drive)
{
	struct vb_resp *resp = &vb_rc(qp)->resp;

	/* XRC: the reply goes out on another queue pair. */
	if (qp->type != QPT_RC)
		return ACK_NONE;
	if ((polls && !has_completions(qp)) || vb_rc_state(qp) != QPS_RTS ||
	    !vb_answer_is_ack(qp) || !vb_req_is_idle(qp))
		return ACK_NONE;
	resp->shown = true;
	return resp->replies < REPLIES ? ACK_NOW : ACK_DELAYED;
}

static bool rc_unreplied(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	struct vb_resp *resp = &vb_rc(qp)->resp;

	if (!resp->shown)
		return false;
	resp->shown = false;
	resp->replies /= 2;
	return vb_answer_is_due(qp);
}

static vb_time rc_deadline(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	return vb_rc_sends(qp) ? vb_req_deadline(qp) : VB_NEVER;
}

static const struct vb_transport_ops rc_ops = {
	.name = "rc",
	.attach = rc_attach,
	.detach = rc_detach,
	.enter = rc_enter,
	.recv = rc_recv,
	.send = rc_send,
	.can_wait = rc_can_wait,
	.delayed_ack = rc_delayed_ack,
	.unreplied = rc_unreplied,
	.deadline = rc_deadline,
	.waits_until = vb_req_waits_until,
};

/* Dispatch by type of queue pair. */

static const struct vb_transport_ops *const types[] = {
	[QPT_RC] = &rc_ops,	  [QPT_UC] = &vb_uc_ops,
	[QPT_UD] = &vb_ud_ops,	  [QPT_XRC_SEND] = &rc_ops,
	[QPT_XRC_RECV] = &rc_ops, [QPT_RAW_PACKET] = &vb_raw_ops,
	[QPT_WQ] = &vb_raw_ops,
};

static const struct vb_transport_ops *ib_ops_of(const struct vb_qp *qp)
{
	return types[qp->type];
}

static int ib_attach(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	if (qp->type >= VB_COUNT(types) || !types[qp->type])
		return -EOPNOTSUPP;
	return ib_ops_of(qp)->attach(qp);
}

static void ib_detach(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	ib_ops_of(qp)->detach(qp);
}

static void ib_enter(struct vb_qp *qp, enum vb_qp_state from,
		     enum vb_qp_state to, vb_time now) VB_REQUIRES(qp->drive)
{
	ib_ops_of(qp)->enter(qp, from, to, now);
}

static void ib_recv_packet(struct vb_qp *qp, const struct vb_ib_pkt *pkt,
			   vb_time now) VB_REQUIRES(qp->drive)
{
	qp->now = now;
	ib_ops_of(qp)->recv(qp, pkt, now);
}

static bool ib_send_packets(struct vb_qp *qp, vb_time now, struct vb_txq *out)
	VB_REQUIRES(qp->drive)
{
	qp->now = now;
	return ib_ops_of(qp)->send(qp, now, out);
}

static bool ib_can_wait(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	const struct vb_transport_ops *ops = ib_ops_of(qp);

	return ops->can_wait && ops->can_wait(qp);
}

static enum vb_delayed_ack ib_delayed_ack(struct vb_qp *qp, bool polls)
	VB_REQUIRES(qp->drive)
{
	const struct vb_transport_ops *ops = ib_ops_of(qp);

	return ops->delayed_ack ? ops->delayed_ack(qp, polls) : ACK_NONE;
}

static bool ib_unreplied(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	const struct vb_transport_ops *ops = ib_ops_of(qp);

	return ops->unreplied && ops->unreplied(qp);
}

static vb_time ib_deadline(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	return ib_ops_of(qp)->deadline(qp);
}

/* Called only after ib_can_wait() was true, hence for RC. */
static uint32_t ib_waits_until(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	return ib_ops_of(qp)->waits_until(qp);
}

const struct vb_transport_ops vb_ib_transport = {
	.name = "ib",
	.attach = ib_attach,
	.detach = ib_detach,
	.enter = ib_enter,
	.recv = ib_recv_packet,
	.send = ib_send_packets,
	.can_wait = ib_can_wait,
	.delayed_ack = ib_delayed_ack,
	.unreplied = ib_unreplied,
	.deadline = ib_deadline,
	.waits_until = ib_waits_until,
};
