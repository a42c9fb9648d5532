/* SPDX-License-Identifier: BSD-2-Clause */
/* Sentences about a queue pair's errors (core/why_qp.h). */
#include "core/why_qp.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/mr.h"

#define REASON 240

static const char *const op_names[] = {
	[WR_WRITE] = "RDMA WRITE",	 [WR_WRITE_IMM] = "RDMA WRITE",
	[WR_SEND] = "SEND",		 [WR_SEND_IMM] = "SEND",
	[WR_READ] = "RDMA READ",	 [WR_CMP_SWAP] = "atomic",
	[WR_FETCH_ADD] = "atomic",	 [WR_LOCAL_INV] = "LOCAL_INV",
	[WR_BIND_MW] = "BIND_MW",	 [WR_SEND_INV] = "SEND",
	[WR_ATOMIC_WRITE] = "ATOMIC WRITE",
};

const char *vb_why_op(unsigned op)
{
	return op < VB_COUNT(op_names) && op_names[op] ? op_names[op]
						       : "work request";
}

const char *vb_why_peer(const struct vb_qp *qp, char text[VB_WHY_PEER])
{
	const struct vb_av *av = &qp->attr.av;
	char gid[VB_GID_TEXT];

	if (qp->adapter->rnic)
		snprintf(text, VB_WHY_PEER, "the peer");
	else if (!av->is_global && av->dlid)
		snprintf(text, VB_WHY_PEER, "qp 0x%x at LID %u",
			 qp->attr.dest_qp_num, av->dlid);
	else if (vb_gid_is_zero(&av->dgid)) /* an XRC queue pair that stands for
					     * one of another process has no
					     * address */
		snprintf(text, VB_WHY_PEER, "qp 0x%x", qp->attr.dest_qp_num);
	else
		snprintf(text, VB_WHY_PEER, "qp 0x%x at %s",
			 qp->attr.dest_qp_num,
			 vb_gid_address(&av->dgid, gid));
	return text;
}

void vb_qp_why(struct vb_qp *qp, enum vb_why why, const char *format, ...)
{
	uint32_t qpn = atomic_load(&qp->qpn);
	char text[512];
	va_list args;

	if (qp->why)
		return;
	qp->why = (uint16_t)why;
	if (!vb_why_wanted())
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	vb_why(why, qpn, "%s 0x%x: %s", qp->type == QPT_WQ ? "wq" : "qp", qpn,
	       text);
}

enum vb_why vb_why_silence(const struct vb_qp *qp)
{
	if (vb_qp_port(qp)->place)
		return WHY_SILENCE_IB;
	return qp->route.v1 ? WHY_SILENCE_V1 : WHY_SILENCE;
}

/* For each reason why a key is refused (enum vb_refusal), the cause that is
 * reported: first for an lkey, then for an rkey. */
static const enum vb_why of_lkey[] = {
	[REFUSED_NOT] = WHY_LOCAL_PAGE,
	[REFUSED_KEY] = WHY_LKEY_UNKNOWN,
	[REFUSED_DOMAIN] = WHY_LKEY_DOMAIN,
	[REFUSED_WINDOW] = WHY_LKEY_WINDOW,
	[REFUSED_BOUNDS] = WHY_LKEY_BOUNDS,
	[REFUSED_RIGHTS] = WHY_LKEY_RIGHTS,
};
static const enum vb_why of_rkey[] = {
	[REFUSED_NOT] = WHY_REMOTE_PAGE,
	[REFUSED_KEY] = WHY_RKEY_UNKNOWN,
	[REFUSED_DOMAIN] = WHY_RKEY_DOMAIN,
	[REFUSED_WINDOW] = WHY_RKEY_WINDOW,
	[REFUSED_BOUNDS] = WHY_RKEY_BOUNDS,
	[REFUSED_RIGHTS] = WHY_RKEY_RIGHTS,
};

/* Find the first entry of the list that its key does not permit, and write why
 * to @text. If all are permitted, a page is missing. */
static enum vb_why why_of_list(const struct vb_pd *pd, const struct vb_sge *sge,
			       unsigned count, uint32_t need, char *text)
{
	for (unsigned i = 0; i < count; i++) {
		enum vb_refusal r;

		if (sge[i].length == 0)
			continue;
		r = vb_mr_explain(pd, 0,
				  &(struct vb_mr_range){ sge[i].lkey, need,
							 sge[i].addr,
							 sge[i].length },
				  text, REASON);
		if (r != REFUSED_NOT)
			return of_lkey[r];
	}
	snprintf(text, REASON, "%llu bytes at 0x%llx are not all mapped%s",
		 count ? (unsigned long long)sge[0].length : 0,
		 count ? (unsigned long long)sge[0].addr : 0,
		 need ? " and writable" : "");
	return WHY_LOCAL_PAGE;
}

/* Returns the cause (enum vb_why) of a send that completes with @status, for
 * which no more exact cause was found. */
static enum vb_why why_of_status(const struct vb_qp *qp,
				 enum vb_wc_status status)
	VB_REQUIRES(qp->drive)
{
	switch (status) {
	case WC_LOC_LEN_ERR:
		return WHY_LENGTH;
	case WC_LOC_QP_OP_ERR:
		return WHY_OPERATION;
	case WC_LOC_PROT_ERR:
		return WHY_LKEY_UNKNOWN;
	case WC_MW_BIND_ERR:
		return WHY_BIND;
	case WC_BAD_RESP_ERR:
		return WHY_BAD_RESPONSE;
	case WC_REM_INV_REQ_ERR:
		return WHY_REM_INVALID;
	case WC_REM_ACCESS_ERR:
		return WHY_REM_ACCESS;
	case WC_REM_OP_ERR:
		return WHY_REM_OPERATION;
	case WC_RETRY_EXC_ERR:
		return vb_why_silence(qp);
	case WC_RNR_RETRY_EXC_ERR:
		return WHY_RNR;
	default:
		return WHY_LOCAL;
	}
}

static bool asks(unsigned op)
{
	return op == WR_READ || op == WR_CMP_SWAP || op == WR_FETCH_ADD ||
	       op == WR_ATOMIC_WRITE;
}

/* Returns the second half of a message: what @status says about the request. */
static const char *said(const struct vb_qp *qp, const struct vb_send_wqe *wqe,
			enum vb_wc_status status)
{
	switch (status) {
	case WC_LOC_LEN_ERR:
		return "this length is not allowed";
	case WC_LOC_QP_OP_ERR:
		return "this operation is not possible on this queue pair";
	case WC_MW_BIND_ERR:
		return "the window or its region does not permit it";
	case WC_BAD_RESP_ERR:
		return "the response does not match the request";
	case WC_REM_INV_REQ_ERR:
		return "the peer refuses the request as invalid";
	case WC_REM_ACCESS_ERR:
		return "the peer does not permit the access";
	case WC_REM_OP_ERR:
		return "the peer could not carry it out";
	case WC_RETRY_EXC_ERR:
		return qp->adapter->rnic ? "the connection is lost"
					 : "nothing came back";
	case WC_RNR_RETRY_EXC_ERR:
		return "the peer has no receive posted for it";
	default:
		return "it failed";
	}
}

/* Does the operation @op name memory of the peer, so that a message about its
 * failure must name that memory? */
static bool names_memory(unsigned op)
{
	return asks(op) || op == WR_WRITE || op == WR_WRITE_IMM;
}

static void tell_send(struct vb_qp *qp, const struct vb_send_wqe *wqe,
		      enum vb_wc_status status) VB_REQUIRES(qp->drive)
{
	char peer[VB_WHY_PEER], where[80] = "";

	if (names_memory(wqe->op))
		snprintf(where, sizeof(where), " (remote 0x%llx, rkey 0x%x)",
			 (unsigned long long)wqe->remote_addr, wqe->rkey);
	vb_qp_why(qp, why_of_status(qp, status),
		  "%s of %u bytes to %s%s, wr_id %llu: %s", vb_why_op(wqe->op),
		  wqe->length, vb_why_peer(qp, peer), where,
		  (unsigned long long)wqe->wr_id, said(qp, wqe, status));
}

static void tell_rnr(struct vb_qp *qp, const struct vb_send_wqe *wqe)
	VB_REQUIRES(qp->drive)
{
	char peer[VB_WHY_PEER];

	vb_qp_why(qp, WHY_RNR,
		  "%s of %u bytes, wr_id %llu: %s had no receive posted in %u "
		  "tries (rnr_retry is %u)",
		  vb_why_op(wqe->op), wqe->length,
		  (unsigned long long)wqe->wr_id, vb_why_peer(qp, peer),
		  qp->attr.rnr_retry + 1u, qp->attr.rnr_retry);
}

void vb_qp_why_send(struct vb_qp *qp, const struct vb_send_wqe *wqe,
		    enum vb_wc_status status)
{
	uint32_t need = asks(wqe->op) && wqe->op != WR_ATOMIC_WRITE
				? ACCESS_LOCAL_WRITE
				: 0;
	char text[REASON];
	enum vb_why why;

	if (qp->why)
		return;
	if (status == WC_LOC_QP_OP_ERR && asks(wqe->op) &&
	    qp->attr.max_rd_atomic == 0) {
		vb_qp_why(qp, WHY_NO_READS,
			  "%s, wr_id %llu: max_rd_atomic is 0",
			  vb_why_op(wqe->op), (unsigned long long)wqe->wr_id);
	} else if (status == WC_LOC_LEN_ERR && qp->type == QPT_UD) {
		vb_qp_why(qp, WHY_LENGTH,
			  "SEND of %u bytes, wr_id %llu: a datagram holds %u "
			  "bytes",
			  wqe->length, (unsigned long long)wqe->wr_id, qp->mtu);
	} else if (status == WC_RNR_RETRY_EXC_ERR && !qp->adapter->rnic) {
		tell_rnr(qp, wqe);
	} else if (status == WC_LOC_PROT_ERR && !(wqe->flags & SEND_INLINE)) {
		why = why_of_list(qp->pd, wqe->sge, wqe->num_sge, need, text);
		vb_qp_why(qp, why, "%s of %u bytes, wr_id %llu: %s",
			  vb_why_op(wqe->op), wqe->length,
			  (unsigned long long)wqe->wr_id, text);
	} else {
		tell_send(qp, wqe, status);
	}
}

void vb_qp_why_recv(struct vb_qp *qp, enum vb_wc_status status)
{
	const struct vb_recv_wqe *r = &qp->recv;
	const struct vb_pd *pd = qp->srq ? qp->srq->pd : qp->pd;
	unsigned long long wr_id = r->wr_id;
	char text[REASON];

	if (qp->why)
		return;
	if (status == WC_LOC_PROT_ERR && pd) {
		(void)why_of_list(pd, r->sge, r->num_sge, ACCESS_LOCAL_WRITE,
				  text);
		vb_qp_why(qp, WHY_RECV_KEY,
			  "receive of %llu bytes, wr_id %llu: %s",
			  (unsigned long long)r->length, wr_id, text);
	} else if (status == WC_LOC_LEN_ERR) {
		vb_qp_why(qp, WHY_RECV_SHORT,
			  "the peer's message is longer than the receive of "
			  "%llu bytes, wr_id %llu",
			  (unsigned long long)r->length, wr_id);
	} else {
		vb_qp_why(qp, WHY_LOCAL,
			  "receive of %llu bytes, wr_id %llu: it failed with "
			  "status %d",
			  (unsigned long long)r->length, wr_id, (int)status);
	}
}

static const struct {
	enum vb_why why;
	const char *text;
} of_fault[FAULT_COUNT] = {
	[FAULT_RKEY] = { WHY_RKEY_UNKNOWN, "its key does not permit it" },
	[FAULT_REMOTE_MEMORY] = { WHY_REMOTE_PAGE,
				  "no memory is mapped there" },
	[FAULT_ORDER] = { WHY_PEER_PROTOCOL,
			  "its packet does not follow the one before" },
	[FAULT_LENGTH] = { WHY_MTU, "a packet has another length than the "
				    "path MTU demands" },
	[FAULT_ALIGNMENT] = { WHY_ALIGNMENT,
			      "its address is not a multiple of 8" },
	[FAULT_XRC_SRQ] = { WHY_XRC_SRQ,
			    "it names a shared receive queue that is not "
			    "there" },
	[FAULT_XRC_DOMAIN] = { WHY_XRC_SRQ,
			       "it names a shared receive queue of another "
			       "XRC domain" },
	[FAULT_XRC_FORWARD] = { WHY_XRC_SRQ,
				"its shared receive queue is in another "
				"process, which cannot be reached" },
	[FAULT_INV_RKEY] = { WHY_INVALIDATE,
			     "it names a key that must not be invalidated" },
	[FAULT_NO_RQE] = { WHY_RECV_NONE, "no receive is posted" },
};

static void tell_key(struct vb_qp *qp, const char *asked,
		     const struct vb_why_ask *ask) VB_REQUIRES(qp->drive)
{
	const struct vb_mr_range range = { ask->key, ask->need, ask->va,
					   ask->len };
	char text[REASON];
	enum vb_refusal r = vb_mr_explain(qp->pd, atomic_load(&qp->qpn), &range,
					  text, sizeof(text));

	vb_qp_why(qp, of_rkey[r], "refused %s: %s", asked,
		  r == REFUSED_NOT ? "not all of it is mapped" : text);
}

uint16_t vb_qp_why_fault(struct vb_qp *qp, enum vb_fault fault,
		     const struct vb_why_ask *ask)
{
	char peer[VB_WHY_PEER], asked[224], flags[VB_ACCESS_TEXT];

	if (qp->why)
		return qp->why;
	vb_why_peer(qp, peer);
	if (ask && ask->need)
		snprintf(asked, sizeof(asked),
			 "the %s of %llu bytes at 0x%llx by %s", ask->what,
			 (unsigned long long)ask->len,
			 (unsigned long long)ask->va, peer);
	else
		snprintf(asked, sizeof(asked), "the %s of %s",
			 ask ? ask->what : "request", peer);
	switch (fault) {
	case FAULT_RQE_LKEY:
		vb_qp_why_recv(qp, WC_LOC_PROT_ERR);
		break;
	case FAULT_RQE_TOO_SMALL:
		vb_qp_why_recv(qp, WC_LOC_LEN_ERR);
		break;
	case FAULT_ACCESS_FLAGS:
		vb_qp_why(qp, WHY_QP_ACCESS,
			  "refused %s: qp_access_flags lack %s", asked,
			  ask ? vb_access_text(ask->need, flags)
			      : "the right to it");
		break;
	case FAULT_TOO_MANY_READS:
		vb_qp_why(qp, WHY_TOO_MANY_READS,
			  "refused %s: max_dest_rd_atomic is %u", asked,
			  qp->attr.max_dest_rd_atomic);
		break;
	case FAULT_RKEY:
		if (ask && qp->pd) {
			tell_key(qp, asked, ask);
			break;
		}
		/* fall through */
	default:
		vb_qp_why(qp,
			  of_fault[fault].why ? of_fault[fault].why
					      : WHY_PEER_PROTOCOL,
			  "refused %s: %s", asked,
			  of_fault[fault].text ? of_fault[fault].text
					       : "it breaks the rules");
	}
	return qp->why;
}
