/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzes a queue pair's stream with bytes, in pieces: memory that no key opens
 * must not change, and every work request completes once. In the input, the
 * four bytes "KEY1" stand for a valid key, and the eight bytes "ADDRESS1" for
 * its address.
 */
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "tests/support/pipe.h"

/* first offset in side 1's memory that the valid key opens */
#define OPEN_AT	   4096u
#define OPEN_END   8192u /* offset behind the range that the valid key opens */
#define RECV_AT	   16384u
#define SINK_AT	   32768u
#define SINK_BYTES 512u
#define RECVS	   4
#define ALL                                                                    \
	(ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ |       \
	 ACCESS_REMOTE_ATOMIC)

static const struct vb_mpa_terms terms = {
	.initiator = true, .ird = 2, .ord = 2, .mss = 600
};

static uint8_t stream[8192];

static void put_names(const struct pipe *p, uint32_t key, size_t len)
{
	uint64_t at = (uintptr_t)p->mem[1] + OPEN_AT;

	for (size_t i = 0; i + 8 <= len; i++) {
		if (memcmp(stream + i, "KEY1", 4) == 0)
			vb_store_be(stream + i, key, 4);
		if (memcmp(stream + i, "ADDRESS1", 8) == 0)
			vb_store_be(stream + i, at, 8);
	}
}

static bool is_open(uint32_t at)
{
	return (at >= OPEN_AT && at < OPEN_END) ||
	       (at >= RECV_AT && at < RECV_AT + RECVS * 256) ||
	       (at >= SINK_AT && at < SINK_AT + SINK_BYTES);
}

static unsigned drain(struct vb_cq *cq)
{
	unsigned n = 0;
	struct vb_cqe e;

	while (sim_poll(cq, &e))
		n++;
	return n;
}

static void deliver(struct pipe *p, size_t len, unsigned step)
{
	struct vb_qp *qp = p->pair.qp[1];

	for (size_t at = 0; at < len; at += step) {
		pipe_inject(p, 0, stream + at, VB_MIN(step, len - at));
		/* Drop all bytes that side 1 sends, since the input stands for
		 * side 0. */
		p->limit[1] = 0;
		pipe_turn(p);
	}
	pipe_settle(p);
	vb_mutex_lock(&qp->drive);
	vb_iw_eof(qp, p->sim.now);
	vb_mutex_unlock(&qp->drive);
	pipe_settle(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct pipe *p;
	struct vb_mr *mr;

	if (len < 2 || len > sizeof(stream))
		return 0;
	memcpy(stream, bytes, len);
	p = pipe_open(&terms);
	MUST(vb_mr_register(p->sim.side[1].pd, p->mem[1] + OPEN_AT,
			    OPEN_END - OPEN_AT, (uintptr_t)p->mem[1] + OPEN_AT,
			    ALL, &mr) == 0);
	put_names(p, atomic_load(&mr->key), len);
	for (unsigned i = 0; i < RECVS; i++)
		pipe_post_recv(p, 1, RECV_AT + i * 256, 256);
	pipe_post(p, 1,
		  (struct vb_send_wqe){ .op = WR_READ,
					.flags = SEND_SIGNALED,
					.length = SINK_BYTES },
		  SINK_AT, 1);
	deliver(p, len - 1, 1 + stream[len - 1]);
	MUST(drain(p->pair.recv_cq[1]) == RECVS);
	MUST(drain(p->pair.send_cq[1]) == 1);
	for (uint32_t at = 0; at < PIPE_MEM; at++)
		MUST(p->mem[1][at] == 0 || is_open(at));
	MUST(vb_mr_deregister(mr) == 0);
	pipe_close(p);
	return 0;
}
