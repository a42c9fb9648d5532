/* SPDX-License-Identifier: BSD-2-Clause */
/* XRC: a READ of another process's memory. This file asks that process for the
 * bytes, piece by piece, and builds the response packets from them. While a
 * piece is missing no response is sent, since responses must be in order. */
#include <stdlib.h>
#include <string.h>

#include "ib/xrc_forward.h"
#include "ib/rc.h"

static struct vb_xrc_read *read_of(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	return &vb_rc(qp)->resp.xrc_read;
}

static uint32_t next_psn(const struct vb_answer *a)
{
	return vb_psn_add(a->run_psn, a->sent);
}

bool vb_xrc_read_is_forwarded(const struct vb_qp *qp, const struct vb_answer *a)
{
	return qp->type == QPT_XRC_RECV && a->kind == KIND_READ &&
	       a->run_length && vb_xrc_is_forwarded(qp, a->srqn);
}

static enum vb_fault ib_ask(struct vb_qp *qp, const struct vb_answer *a)
	VB_REQUIRES(qp->drive)
{
	struct vb_xrc_read *f = read_of(qp);
	uint32_t offset = a->sent * qp->mtu;
	const struct vb_forward_piece piece = {
		.srqn = a->srqn,
		.rkey = a->rkey,
		.va = a->run_va + offset,
		.length = VB_MIN(VB_FORWARD_BYTES, a->run_length - offset),
	};

	if (!f->bytes)
		f->bytes = malloc(VB_FORWARD_BYTES);
	if (!f->bytes)
		return FAULT_NO_RQE;
	f->length = piece.length;
	f->serial = atomic_fetch_add(&qp->adapter->xrc_serial, 1) + 1;
	return qp->adapter->forward_ops->fetch(qp, &piece, f->serial,
					       &f->session);
}

bool vb_xrc_read_has(struct vb_qp *qp, const struct vb_answer *a)
{
	struct vb_xrc_read *f = read_of(qp);
	bool is_it = f->psn == next_psn(a);

	if (f->state == XRC_READ_ASKED)
		return false;
	if (is_it && f->state == XRC_READ_THERE)
		return true;
	f->psn = next_psn(a);
	f->used = 0;
	f->fault = ib_ask(qp, a);
	f->state = f->fault ? XRC_READ_THERE : XRC_READ_ASKED;
	return f->state == XRC_READ_THERE;
}

enum vb_fault vb_xrc_read_take(struct vb_qp *qp, uint8_t *to, uint32_t len)
{
	struct vb_xrc_read *f = read_of(qp);
	enum vb_fault fault = f->fault;

	if (fault || len > f->length - f->used) {
		f->state = XRC_READ_NOT;
		if (fault)
			vb_rc_explain_forwarded(qp, fault);
		return fault ? fault : FAULT_LENGTH;
	}
	memcpy(to, f->bytes + f->used, len);
	f->used += len;
	f->psn = vb_psn_add(f->psn, 1);
	/* Drop the bytes, and do not use them for a later READ: the memory may
	 * have changed. */
	if (f->used == f->length)
		f->state = XRC_READ_NOT;
	return FAULT_NONE;
}

void vb_xrc_read_check(struct vb_qp *qp)
{
	struct vb_xrc_read *f = read_of(qp);

	if (f->state == XRC_READ_ASKED &&
	    !qp->adapter->forward_ops->is_up(f->session))
		vb_forward_bytes(qp, f->serial, FAULT_XRC_SRQ, NULL, 0);
}

void vb_xrc_read_reset(struct vb_qp *qp)
{
	free(read_of(qp)->bytes);
	read_of(qp)->bytes = NULL;
	read_of(qp)->state = XRC_READ_NOT;
}

void vb_forward_bytes(struct vb_qp *qp, uint64_t serial, enum vb_fault fault,
		      const uint8_t *bytes, uint32_t len)
{
	struct vb_xrc_read *f = read_of(qp);

	if (f->state != XRC_READ_ASKED || f->serial != serial)
		return;
	f->state = XRC_READ_THERE;
	f->fault = !fault && len != f->length ? FAULT_XRC_SRQ : fault;
	if (!f->fault)
		memcpy(f->bytes, bytes, len);
}
