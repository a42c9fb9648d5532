/* SPDX-License-Identifier: BSD-2-Clause */
/* Cases: work requests and keys that are wrong, and peers that refuse. */
#include "bad_input.h"

void send_in_wrong_state(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr = rdma(IBV_WR_SEND, &sge, 0, 0);
	struct rc_address at_b = rc_address(&device, b.qp, 200);

	refused(post(&a, &wr), EINVAL, "post in RESET");
	must(!rc_to_init(a.qp, RC_ALL_ACCESS), "RESET to INIT");
	refused(post(&a, &wr), EINVAL, "post in INIT");
	if (rnic) /* an RNIC has no state RTR */
		return;
	must(!rc_to_rtr(&device, a.qp, &at_b), "INIT to RTR");
	refused(post(&a, &wr), EINVAL, "post in RTR");
}

void receive_in_reset(void)
{
	struct ibv_sge sge = piece(&b, 0, 8);

	refused(receive(&b, &sge, 1), EINVAL, "post_recv in RESET");
}

void post_in_error_is_flushed(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr = rdma(IBV_WR_SEND, &sge, 0, 0);

	connected();
	refused(receive(&a, &sge, 1), 0, "post_recv");
	must(!ibv_modify_qp(a.qp, &attr, IBV_QP_STATE), "to ERR");
	ends_in(&a, IBV_WC_WR_FLUSH_ERR);
	refused(post(&a, &wr), 0, "post in ERR");
	ends_in(&a, IBV_WC_WR_FLUSH_ERR);
	refused(receive(&a, &sge, 1), 0, "post_recv in ERR");
	ends_in(&a, IBV_WC_WR_FLUSH_ERR);
}

void too_many_sges(void)
{
	struct ibv_sge sge[SGES + 1];
	struct ibv_send_wr wr = rdma(IBV_WR_SEND, sge, 0, 0);

	connected();
	for (int i = 0; i < SGES + 1; i++)
		sge[i] = piece(&a, i * 8, 8);
	wr.num_sge = SGES + 1;
	refused(post(&a, &wr), EINVAL, "post of too many SGEs");
	wr.num_sge = -1;
	refused(post(&a, &wr), EINVAL, "post of -1 SGEs");
	refused(receive(&b, sge, SGES + 1), EINVAL, "post_recv of too many");
}

void too_much_inline(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_sge sge;
	struct ibv_send_wr wr = rdma(IBV_WR_SEND, &sge, 0, 0);

	connected();
	must(!ibv_query_qp(a.qp, &attr, IBV_QP_CAP, &init), "ibv_query_qp");
	sge = piece(&a, 0, init.cap.max_inline_data + 1);
	wr.send_flags |= IBV_SEND_INLINE;
	refused(post(&a, &wr), EINVAL, "post of too much inline");
}

void unknown_operation(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr = rdma((enum ibv_wr_opcode)99, &sge, 0, 0);

	connected();
	refused(post(&a, &wr), EINVAL, "post of operation 99");
}

void too_many_requests(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr = rdma(IBV_WR_SEND, &sge, 0, 0);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	unsigned posted = 0;

	/* The peer posts no RECV, so the sends stay in the send queue. */
	connect_with(RC_ALL_ACCESS, 7, 7);
	must(!ibv_query_qp(a.qp, &attr, IBV_QP_CAP, &init), "ibv_query_qp");
	while (posted <= init.cap.max_send_wr && !post(&a, &wr))
		posted++;
	if (posted != init.cap.max_send_wr)
		wrong("took %u requests of %u", posted, init.cap.max_send_wr);
	refused(post(&a, &wr), ENOMEM, "post to a full queue");
}

void lkey_of_another_pd(void)
{
	struct ibv_pd *other = ibv_alloc_pd(device.context);
	struct ibv_mr *mr;
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr =
		rdma(IBV_WR_RDMA_WRITE, &sge, at(&b, 0), b.mr->rkey);

	must(other, "ibv_alloc_pd");
	mr = ibv_reg_mr(other, a.memory + BYTES, BYTES, RC_ALL_ACCESS);
	must(mr, "ibv_reg_mr");
	connected();
	sge.lkey = mr->lkey;
	answered(&wr, IBV_WC_LOC_PROT_ERR);
	untouched(&b);
	must(!ibv_dereg_mr(mr) && !ibv_dealloc_pd(other), "clean up");
}

void rkey_of_another_pd(void)
{
	struct ibv_pd *other = ibv_alloc_pd(device.context);
	struct ibv_mr *mr;
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr;

	must(other, "ibv_alloc_pd");
	mr = ibv_reg_mr(other, b.memory + BYTES, BYTES, RC_ALL_ACCESS);
	must(mr, "ibv_reg_mr");
	connected();
	memset(a.memory, 1, 3 * BYTES);
	wr = rdma(IBV_WR_RDMA_WRITE, &sge, at(&b, 0), mr->rkey);
	answered(&wr, IBV_WC_REM_ACCESS_ERR);
	untouched(&b);
	must(!ibv_dereg_mr(mr) && !ibv_dealloc_pd(other), "clean up");
}

void lkey_of_nothing(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr = rdma(IBV_WR_SEND, &sge, 0, 0);

	connected();
	sge.lkey ^= 0x55555500;
	answered(&wr, IBV_WC_LOC_PROT_ERR);
}

void local_range(void)
{
	struct ibv_sge sge = piece(&a, BYTES - 7, 8);
	struct ibv_send_wr wr = rdma(IBV_WR_SEND, &sge, 0, 0);

	connected();
	answered(&wr, IBV_WC_LOC_PROT_ERR);
}

void address_that_wraps(void)
{
	struct ibv_sge sge = { UINT64_MAX - 3, 8, a.mr->lkey };
	struct ibv_send_wr wr = rdma(IBV_WR_SEND, &sge, 0, 0);

	connected();
	answered(&wr, IBV_WC_LOC_PROT_ERR);
}

void read_into_read_only(void)
{
	struct ibv_mr *mr = ibv_reg_mr(device.pd, a.memory, BYTES, 0);
	struct ibv_sge sge;
	struct ibv_send_wr wr;

	must(mr, "ibv_reg_mr");
	connected();
	sge = (struct ibv_sge){ (uintptr_t)a.memory, 8, mr->lkey };
	wr = rdma(IBV_WR_RDMA_READ, &sge, at(&b, 0), b.mr->rkey);
	answered(&wr, IBV_WC_LOC_PROT_ERR);
	untouched(&a);
	must(!ibv_dereg_mr(mr), "clean up");
}

void rkey_after_deregistration(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr =
		rdma(IBV_WR_RDMA_WRITE, &sge, at(&b, 0), b.mr->rkey);
	struct ibv_wc wc;

	connected();
	refused(post(&a, &wr), 0, "post");
	ends_in(&a, IBV_WC_SUCCESS);
	must(!ibv_dereg_mr(b.mr), "ibv_dereg_mr");
	b.mr = NULL;
	memset(a.memory, 1, 3 * BYTES);
	answered(&wr, IBV_WC_REM_ACCESS_ERR);
	untouched(&b);
	if (rc_wait(b.cq, 0, &wc))
		wrong("the target got a completion");
}

void write_one_past(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr =
		rdma(IBV_WR_RDMA_WRITE, &sge, at(&b, BYTES - 7), b.mr->rkey);

	connected();
	memset(a.memory, 1, 3 * BYTES);
	answered(&wr, IBV_WC_REM_ACCESS_ERR);
	untouched(&b);
}

void write_one_before(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr =
		rdma(IBV_WR_RDMA_WRITE, &sge, at(&b, -1), b.mr->rkey);

	connected();
	memset(a.memory, 1, 3 * BYTES);
	answered(&wr, IBV_WC_REM_ACCESS_ERR);
	untouched(&b);
}

/* A WRITE of many packets, of which only the last is outside the region. */
void long_write_one_past(void)
{
	struct ibv_sge sge = piece(&a, 0, BYTES);
	struct ibv_send_wr wr =
		rdma(IBV_WR_RDMA_WRITE, &sge, at(&b, 1), b.mr->rkey);

	connected();
	memset(a.memory, 1, 3 * BYTES);
	answered(&wr, IBV_WC_REM_ACCESS_ERR);
	untouched(&b);
}

void read_one_past(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr =
		rdma(IBV_WR_RDMA_READ, &sge, at(&b, BYTES - 7), b.mr->rkey);

	connected();
	memset(b.memory, 1, 3 * BYTES);
	answered(&wr, IBV_WC_REM_ACCESS_ERR);
	untouched(&a);
}

void remote_address_that_wraps(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr =
		rdma(IBV_WR_RDMA_WRITE, &sge, UINT64_MAX - 3, b.mr->rkey);

	connected();
	answered(&wr, IBV_WC_REM_ACCESS_ERR);
}

void unaligned_atomic(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr = atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, &sge,
				       at(&b, 4), b.mr->rkey);

	connected();
	answered(&wr, IBV_WC_REM_INV_REQ_ERR);
	untouched(&b);
}

void atomic_outside(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr = atomic(IBV_WR_ATOMIC_CMP_AND_SWP, &sge,
				       at(&b, BYTES), b.mr->rkey);

	connected();
	answered(&wr, IBV_WC_REM_ACCESS_ERR);
	untouched(&b);
}

/* The region's access flags do not permit the operation: access error. */
static void region_refuses(enum ibv_wr_opcode opcode, unsigned access)
{
	struct ibv_mr *mr = ibv_reg_mr(device.pd, b.memory, BYTES, access);
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr;

	must(mr, "ibv_reg_mr");
	connected();
	memset(a.memory, 1, 3 * BYTES);
	wr = rdma(opcode, &sge, (uintptr_t)b.memory, mr->rkey);
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		wr = atomic(opcode, &sge, (uintptr_t)b.memory, mr->rkey);
	answered(&wr, IBV_WC_REM_ACCESS_ERR);
	untouched(&b);
	must(!ibv_dereg_mr(mr), "clean up");
}

void region_without_write(void)
{
	region_refuses(IBV_WR_RDMA_WRITE,
		       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
}

void region_without_read(void)
{
	region_refuses(IBV_WR_RDMA_READ,
		       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
}

void region_without_atomic(void)
{
	region_refuses(IBV_WR_ATOMIC_FETCH_AND_ADD,
		       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			       IBV_ACCESS_REMOTE_READ);
}

/* The queue pair does not permit the operation: this is an invalid request
 * error, and with iWARP (RFC 5040) an access error. */
static void qp_refuses(enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr = rdma(opcode, &sge, at(&b, 0), b.mr->rkey);

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		wr = atomic(opcode, &sge, at(&b, 0), b.mr->rkey);
	connect_with(IBV_ACCESS_LOCAL_WRITE, 3, 3);
	memset(a.memory, 1, 3 * BYTES);
	answered(&wr, rnic ? IBV_WC_REM_ACCESS_ERR : IBV_WC_REM_INV_REQ_ERR);
	untouched(&b);
}

void qp_without_write(void)
{
	qp_refuses(IBV_WR_RDMA_WRITE);
}

void qp_without_read(void)
{
	qp_refuses(IBV_WR_RDMA_READ);
}

void qp_without_atomic(void)
{
	qp_refuses(IBV_WR_ATOMIC_FETCH_AND_ADD);
}

void remote_write_needs_local_write(void)
{
	struct ibv_mr *mr;

	errno = 0;
	mr = ibv_reg_mr(device.pd, a.memory, 64, IBV_ACCESS_REMOTE_WRITE);
	if (mr) {
		wrong("registered");
		ibv_dereg_mr(mr);
	}
	refused(errno, EINVAL, "errno");
}

void receive_too_small(void)
{
	struct ibv_sge out = piece(&a, 0, 100), in = piece(&b, 0, 99);
	struct ibv_send_wr wr = rdma(IBV_WR_SEND, &out, 0, 0);

	connected();
	refused(receive(&b, &in, 1), 0, "post_recv");
	answered(&wr, IBV_WC_REM_INV_REQ_ERR);
	ends_in(&b, IBV_WC_LOC_LEN_ERR);
	becomes(&b, IBV_QPS_ERR);
}

void receive_with_bad_lkey(void)
{
	struct ibv_sge out = piece(&a, 0, 100), in = piece(&b, 0, 100);
	struct ibv_send_wr wr = rdma(IBV_WR_SEND, &out, 0, 0);

	connected();
	in.lkey ^= 0x55555500;
	refused(receive(&b, &in, 1), 0, "post_recv");
	answered(&wr, IBV_WC_REM_OP_ERR);
	ends_in(&b, IBV_WC_LOC_PROT_ERR);
	untouched(&b);
}

void nobody_receives(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr = rdma(IBV_WR_SEND, &sge, 0, 0);

	connect_with(RC_ALL_ACCESS, 3, 1);
	answered(&wr, IBV_WC_RNR_RETRY_EXC_ERR);
}

void peer_is_gone(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr =
		rdma(IBV_WR_RDMA_WRITE, &sge, at(&b, 0), b.mr->rkey);

	connected();
	must(!ibv_destroy_qp(b.qp), "ibv_destroy_qp");
	b.qp = NULL;
	/* An RNIC ends the stream, and the peer's queue pair gets an error. */
	if (rnic) {
		becomes(&a, IBV_QPS_ERR);
		refused(post(&a, &wr), 0, "post");
		ends_in(&a, IBV_WC_WR_FLUSH_ERR);
		return;
	}
	answered(&wr, IBV_WC_RETRY_EXC_ERR);
}

void rest_is_flushed(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr bad = rdma(IBV_WR_RDMA_READ, &sge, at(&b, 0),
				      b.mr->rkey ^ 0x55555500);
	struct ibv_send_wr good =
		rdma(IBV_WR_RDMA_READ, &sge, at(&b, 0), b.mr->rkey);

	connected();
	refused(receive(&a, &sge, 1), 0, "post_recv");
	bad.next = &good;
	refused(post(&a, &bad), 0, "post");
	ends_in(&a, IBV_WC_REM_ACCESS_ERR);
	ends_in(&a, IBV_WC_WR_FLUSH_ERR);
	ends_in(&a, IBV_WC_WR_FLUSH_ERR);
}
