/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes to the log why this end refuses a packet of the peer
 * (core/why_qp.h). */
#include "core/why_qp.h"
#include "ib/rc.h"

static bool is_mtu(uint32_t bytes)
{
	return bytes >= vb_mtu_bytes(1) && bytes <= vb_mtu_bytes(5) &&
	       (bytes & (bytes - 1)) == 0;
}

void vb_rc_explain_length(struct vb_qp *qp, uint32_t bytes)
{
	uint32_t asked = vb_mtu_bytes(qp->attr.path_mtu);

	if (bytes > qp->mtu && bytes <= asked)
		vb_qp_why(qp, WHY_MTU,
			  "the peer sends packets of %u bytes; our interface carries %u: give both ends path MTU %u",
			  bytes, qp->mtu, qp->mtu);
	else if (bytes < qp->mtu && is_mtu(bytes))
		vb_qp_why(qp, WHY_MTU,
			  "the peer sends packets of %u bytes, not of %u; its interface may carry no more: give both ends path MTU %u",
			  bytes, qp->mtu, bytes);
	else if (bytes > asked)
		vb_qp_why(qp, WHY_MTU,
			  "the peer sends packets of %u bytes, and this end's path_mtu is %u: give both ends the same",
			  bytes, asked);
}

static const struct {
	const char *name;
	uint32_t need;
} kinds[] = {
	[KIND_SEND] = { "SEND", 0 },
	[KIND_WRITE] = { "RDMA WRITE", ACCESS_REMOTE_WRITE },
	[KIND_READ] = { "RDMA READ", ACCESS_REMOTE_READ },
	[KIND_ATOMIC] = { "atomic", ACCESS_REMOTE_ATOMIC },
	[KIND_ATOMIC_WRITE] = { "ATOMIC WRITE", ACCESS_REMOTE_WRITE },
};

void vb_rc_explain_fault(struct vb_qp *qp, const struct vb_inbound *in,
			 enum vb_fault fault, const struct vb_ib_pkt *pkt)
{
	uint8_t kind = pkt->op->kind;
	struct vb_why_ask ask = { .what = kinds[kind].name,
				  .need = kinds[kind].need };

	if (kind == KIND_ATOMIC) {
		ask.key = pkt->atomic.rkey;
		ask.va = pkt->atomic.va;
		ask.len = sizeof(uint64_t);
	} else if (kind != KIND_WRITE || pkt->op->place & PLACE_FIRST) {
		ask.key = pkt->reth.rkey;
		ask.va = pkt->reth.va;
		ask.len = pkt->reth.length;
	} else {
		ask.key = in->rkey;
		ask.va = in->va;
		ask.len = in->length;
	}
	if (fault == FAULT_LENGTH)
		vb_rc_explain_length(qp, pkt->payload_bytes);
	(void)vb_qp_why_fault(qp, fault, &ask);
}

bool vb_rc_is_known_here(enum vb_fault fault)
{
	return fault == FAULT_XRC_SRQ || fault == FAULT_XRC_DOMAIN ||
	       fault == FAULT_XRC_FORWARD;
}

void vb_rc_explain_forwarded(struct vb_qp *qp, enum vb_fault fault)
{
	char peer[VB_WHY_PEER];

	if (!vb_rc_is_known_here(fault) &&
	    vb_fault_rc(fault)->action != ACT_NAK_ONCE)
		vb_qp_why(qp, WHY_XRC_FORWARD,
			  "refused a request of %s: the process that has the "
			  "shared receive queue refused it",
			  vb_why_peer(qp, peer));
}
