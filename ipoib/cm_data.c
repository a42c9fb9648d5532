/* SPDX-License-Identifier: BSD-2-Clause */
/* The queue pairs of connections, their buffers and completions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ipoib/cm.h"

#define SEND_ID (1ull << 32)

static int post_srq(const struct ipoib_cm *cm, unsigned slot)
{
	struct ibv_sge sge = { (uintptr_t)cm->memory + slot * (size_t)CM_SLOT,
			       CM_SLOT, cm->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot,
				  .sg_list = &sge,
				  .num_sge = 1 },
			   *bad;

	return -ibv_post_srq_recv(cm->srq, &wr, &bad);
}

/* The buffers take no physical memory before they are first used. */
int ipoib_cm_data_open(struct ipoib_cm *cm)
{
	size_t bytes = (size_t)(CM_RECVS + CM_SENDS) * CM_SLOT;
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = CM_RECVS,
						   .max_sge = 1 } };
	int rc = 0;

	cm->memory = aligned_alloc(CM_SLOT, bytes);
	if (!cm->memory)
		return -ENOMEM;
	cm->mr = ibv_reg_mr(cm->port->pd, cm->memory, bytes,
			    IBV_ACCESS_LOCAL_WRITE);
	cm->srq = ibv_create_srq(cm->port->pd, &srq);
	cm->cq = ibv_create_cq(cm->port->context, 2 * (CM_RECVS + CM_SENDS),
			       NULL, cm->port->channel, 0);
	if (!cm->mr || !cm->srq || !cm->cq)
		return -errno;
	for (unsigned i = 0; !rc && i < CM_RECVS; i++)
		rc = post_srq(cm, i);
	for (unsigned i = 0; i < CM_SENDS; i++)
		cm->free[cm->free_count++] = i;
	ipoib_cm_arm(cm);
	return rc;
}

void ipoib_cm_data_close(struct ipoib_cm *cm)
{
	if (cm->cq)
		ibv_destroy_cq(cm->cq);
	if (cm->srq)
		ibv_destroy_srq(cm->srq);
	if (cm->mr)
		ibv_dereg_mr(cm->mr);
	free(cm->memory);
}

int ipoib_cm_data_make(struct cm_line *l, unsigned sends)
{
	struct ibv_qp_init_attr init = {
		.send_cq = l->cm->cq,
		.recv_cq = l->cm->cq,
		.srq = l->cm->srq,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = sends, .max_send_sge = 1 },
	};

	l->qp = ibv_create_qp(l->cm->port->pd, &init);
	return l->qp ? 0 : -errno;
}

void ipoib_cm_data_end(struct cm_line *l)
{
	struct ipoib_cm *cm = l->cm;

	if (!l->qp)
		return;
	ibv_destroy_qp(l->qp);
	l->qp = NULL;
	for (unsigned i = 0; i < CM_SENDS; i++) {
		if (cm->owner[i] != l)
			continue;
		cm->owner[i] = NULL;
		cm->free[cm->free_count++] = i;
	}
}

bool ipoib_cm_data_send(struct cm_line *l, const void *frame, size_t len)
{
	struct ipoib_cm *cm = l->cm;
	struct ibv_sge sge = { .length = (uint32_t)len, .lkey = cm->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND },
			   *bad;
	unsigned slot;
	uint8_t *bytes;

	if (!cm->free_count || len > CM_SLOT)
		return false;
	slot = cm->free[cm->free_count - 1];
	bytes = cm->memory + (CM_RECVS + slot) * (size_t)CM_SLOT;
	memcpy(bytes, frame, len);
	sge.addr = (uintptr_t)bytes;
	wr.wr_id = SEND_ID | slot;
	if (ibv_post_send(l->qp, &wr, &bad))
		return false;
	cm->owner[slot] = l;
	cm->free_count--;
	return true;
}

static struct cm_line *line_of(const struct ipoib_cm *cm, uint32_t qpn)
{
	struct cm_line *l = cm->lines;

	while (l && !(l->qp && l->qp->qp_num == qpn))
		l = l->next;
	return l;
}

/* A late completion of a destroyed queue pair is ignored: ipoib_cm_data_end()
 * has freed that queue pair's send buffers. */
static void take_sent(struct ipoib_cm *cm, const struct ibv_wc *wc)
{
	unsigned slot = (uint32_t)wc->wr_id;
	struct cm_line *l = cm->owner[slot];

	if (!l || l->qp->qp_num != wc->qp_num)
		return;
	cm->owner[slot] = NULL;
	cm->free[cm->free_count++] = slot;
	if (wc->status == IBV_WC_SUCCESS)
		vb_conns_done(cm->conns, l->query, cm->now);
	else if (l->place < 0)
		vb_conns_failed(cm->conns, l->query, cm->now);
}

static void take_received(struct ipoib_cm *cm, const struct ibv_wc *wc,
			  ipoib_cm_take *take, void *arg)
{
	const uint8_t *bytes = cm->memory + wc->wr_id * CM_SLOT;
	struct cm_line *l = line_of(cm, wc->qp_num);

	if (l && wc->status == IBV_WC_SUCCESS) {
		if (l->place >= 0)
			vb_callers_heard(cm->callers, l->place, cm->now);
		take(arg, l->peer.qpn, bytes, wc->byte_len);
	}
	(void)post_srq(cm, (unsigned)wc->wr_id);
}

unsigned ipoib_cm_poll(struct ipoib_cm *cm, ipoib_cm_take *take, void *arg,
		       vb_time now)
{
	struct ibv_wc wc[16];
	unsigned total = 0;
	int n;

	cm->now = now;
	do {
		n = ibv_poll_cq(cm->cq, VB_COUNT(wc), wc);
		for (int i = 0; i < n; i++) {
			if (wc[i].wr_id & SEND_ID)
				take_sent(cm, &wc[i]);
			else
				take_received(cm, &wc[i], take, arg);
		}
		total += n > 0 ? (unsigned)n : 0;
	} while (n == VB_COUNT(wc) && total < CM_RECVS);
	return total;
}

void ipoib_cm_arm(struct ipoib_cm *cm)
{
	if (cm->cq)
		(void)ibv_req_notify_cq(cm->cq, 0);
}
