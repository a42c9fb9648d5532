/* SPDX-License-Identifier: BSD-2-Clause */
/* Two iWARP queue pairs and the stream between them. Any failure here ends the
 * test. */
#include "tests/support/pipe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/must.h"

const struct vb_mpa_terms pipe_terms = {
	.initiator = true, .crc = true, .ird = 4, .ord = 4, .mss = 1460
};

static void start(struct pipe *p, unsigned i, const struct vb_mpa_terms *terms)
{
	const uint32_t init = QPM_PKEY_INDEX | QPM_PORT | QPM_ACCESS_FLAGS;
	struct vb_qp *qp = p->pair.qp[i];
	struct vb_mpa_terms t = *terms;

	sim_modify(&p->sim, qp, QPS_INIT, init, &sim_attr);
	if (i == 1) {
		t.initiator = false;
		t.ird = terms->ord;
		t.ord = terms->ird;
		t.tx_markers = terms->rx_markers;
		t.rx_markers = terms->tx_markers;
	}
	vb_mutex_lock(&qp->drive);
	MUST(vb_iw_start(qp, &t, p->sim.now) == 0);
	vb_mutex_unlock(&qp->drive);
	p->due[i] = true;
}

struct pipe *pipe_open_as(const struct vb_mpa_terms *terms, bool srq)
{
	const uint32_t all = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE |
			     ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC |
			     ACCESS_MW_BIND;
	struct pipe *p = calloc(1, sizeof(*p));
	struct sim_caps caps = sim_caps;

	MUST(p);
	caps.srq = srq;
	caps.sge = VB_MAX_SGE;
	sim_open(&p->sim, 1);
	for (unsigned i = 0; i < SIM_SIDES; i++)
		p->sim.side[i].adapter.transport = &vb_iwarp_transport;
	sim_create(&p->sim, &p->pair, &caps);
	for (unsigned i = 0; i < SIM_SIDES; i++) {
		p->limit[i] = SIZE_MAX;
		MUST(vb_mr_register(p->sim.side[i].pd, p->mem[i], PIPE_MEM,
				    (uintptr_t)p->mem[i], all, &p->mr[i]) == 0);
		p->key[i] = atomic_load(&p->mr[i]->key);
		start(p, i, terms ? terms : &pipe_terms);
	}
	return p;
}

struct pipe *pipe_open(const struct vb_mpa_terms *terms)
{
	return pipe_open_as(terms, false);
}

void pipe_close(struct pipe *p)
{
	sim_disconnect(&p->sim, &p->pair);
	for (unsigned i = 0; i < SIM_SIDES; i++) {
		MUST(vb_mr_deregister(p->mr[i]) == 0);
		free(p->wire[i].bytes);
	}
	sim_close(&p->sim);
	free(p);
}

void pipe_inject(struct pipe *p, unsigned side, const void *bytes, size_t len)
{
	struct pipe_stream *w = &p->wire[side];

	if (w->put + len > w->room) {
		w->room = 2 * (w->put + len);
		w->bytes = realloc(w->bytes, w->room);
		MUST(w->bytes);
	}
	if (len)
		memcpy(w->bytes + w->put, bytes, len);
	w->put += len;
}

void pipe_inject_ulpdu(struct pipe *p, unsigned side, const void *ulpdu,
		       uint32_t len)
{
	uint8_t *fpdu = malloc(len + 16);

	MUST(fpdu);
	if (len)
		memcpy(fpdu + VB_MPA_LEN_BYTES, ulpdu, len);
	pipe_inject(p, side, fpdu, vb_mpa_seal(fpdu, len, true));
	free(fpdu);
}

static size_t part_of(struct pipe *p, unsigned side, bool sends, size_t have)
{
	size_t n = p->cut && have ? p->cut(p, side, sends, have) : have;

	return VB_MIN(n, have);
}

static size_t take_iov(struct pipe *p, unsigned side)
{
	size_t left = part_of(p, side, true, p->tx.bytes), taken = left;
	size_t sum = 0;

	for (unsigned i = 0; i < p->tx.count; i++) {
		const struct iovec *v = &p->tx.iov[i];
		size_t n = VB_MIN(left, v->iov_len);

		pipe_inject(p, side, v->iov_base, n);
		left -= n;
		sum += v->iov_len;
	}
	MUST(sum == p->tx.bytes);
	return taken;
}

static bool send_once(struct pipe *p, unsigned side)
{
	struct vb_qp *qp = p->pair.qp[side];
	size_t taken;
	bool more;

	if (!p->due[side])
		return false;
	vb_mutex_lock(&qp->drive);
	more = vb_iw_send(qp, p->sim.now, &p->tx);
	p->largest = VB_MAX(p->largest, p->tx.bytes);
	taken = take_iov(p, side);
	more |= taken < p->tx.bytes;
	p->due[side] = vb_iw_sent(qp, &p->tx, taken, p->sim.now) || more;
	vb_mutex_unlock(&qp->drive);
	return taken;
}

/* Pass bytes to the queue pair from memory, as if a socket had received
 * them. */
static void VB_UNCHECKED recv_bytes(struct vb_qp *qp, struct vb_iw_rxq *in,
				    const void *bytes, size_t len, vb_time now)
{
	struct iovec iov[VB_IW_RX_IOV];
	const uint8_t *at = bytes;

	while (len) {
		size_t part;

		(void)vb_iw_want(qp, in, iov);
		part = VB_MIN(len, iov[0].iov_len);
		memcpy(iov[0].iov_base, at, part);
		vb_iw_got(qp, in, part, now);
		at += part;
		len -= part;
	}
}

static bool recv_once(struct pipe *p, unsigned side)
{
	struct pipe_stream *w = &p->wire[!side];
	struct vb_qp *qp = p->pair.qp[side];
	size_t end = VB_MIN(w->put, p->limit[!side]);
	size_t have = end > w->got ? end - w->got : 0;
	size_t n = part_of(p, side, false, have);

	if (n == 0)
		return false;
	vb_mutex_lock(&qp->drive);
	recv_bytes(qp, &p->rx, w->bytes + w->got, n, p->sim.now);
	vb_mutex_unlock(&qp->drive);
	w->got += n;
	p->due[side] = true;
	return true;
}

bool pipe_turn(struct pipe *p)
{
	bool busy = false;

	for (unsigned i = 0; i < SIM_SIDES; i++) {
		busy |= send_once(p, i);
		busy |= recv_once(p, i);
	}
	return busy;
}

void pipe_settle(struct pipe *p)
{
	p->due[0] = p->due[1] = true;
	/* A turn that moves no byte looks like the end, so it must happen
	 * twice. */
	for (unsigned idle = 0; idle < 2; idle++)
		while (pipe_turn(p))
			idle = 0;
}

void pipe_post(struct pipe *p, unsigned side, struct vb_send_wqe wqe,
	       uint32_t at, unsigned pieces)
{
	struct vb_sge sge[VB_MAX_SGE];
	uint32_t piece = wqe.length / pieces, done = 0;

	wqe.wr_id = p->wr_ids++;
	wqe.num_sge = (uint8_t)pieces;
	if (!wqe.remote_addr)
		wqe.remote_addr = (uintptr_t)p->mem[!side];
	if (!wqe.rkey)
		wqe.rkey = p->key[!side];
	for (unsigned i = 0; i < pieces; i++) {
		uint32_t len = i + 1 < pieces ? piece : wqe.length - done;

		sge[i] = (struct vb_sge){ (uintptr_t)p->mem[side] + at + done,
					  len, p->key[side] };
		done += len;
	}
	sim_post_send(p->pair.qp[side], &wqe, sge);
	p->due[side] = true;
}

void pipe_post_recv(struct pipe *p, unsigned side, uint32_t at, uint32_t len)
{
	const struct vb_sge sge = { (uintptr_t)p->mem[side] + at, len,
				    p->key[side] };

	sim_post_recv(p->pair.qp[side], p->wr_ids++, &sge, 1);
}
