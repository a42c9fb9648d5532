/* SPDX-License-Identifier: BSD-2-Clause */
/* Cases: memory that is not mapped, and objects that are used wrongly. */
#include "bad_input.h"

/* Registered memory that is not mapped (any more) must not crash the
 * program. */
void unmapped_source(void)
{
	struct ibv_sge sge = piece(&a, 4096, 8);
	struct ibv_send_wr wr =
		rdma(IBV_WR_RDMA_WRITE, &sge, at(&b, 0), b.mr->rkey);

	connected();
	must(!munmap(a.memory + BYTES + 4096, 4096), "munmap");
	answered(&wr, IBV_WC_LOC_PROT_ERR);
	untouched(&b);
}

void unmapped_inline_source(void)
{
	struct ibv_sge sge = piece(&a, 4096, 8);
	struct ibv_send_wr wr =
		rdma(IBV_WR_RDMA_WRITE, &sge, at(&b, 0), b.mr->rkey);
	int err;

	connected();
	wr.send_flags |= IBV_SEND_INLINE;
	must(!munmap(a.memory + BYTES + 4096, 4096), "munmap");
	err = post(&a, &wr);
	if (!err)
		ends_in(&a, IBV_WC_LOC_PROT_ERR);
	else if (err != EFAULT && err != EINVAL)
		wrong("post gives %d", err);
	untouched(&b);
}

void unmapped_sink(void)
{
	struct ibv_sge sge = piece(&a, 4096, 8);
	struct ibv_send_wr wr =
		rdma(IBV_WR_RDMA_READ, &sge, at(&b, 0), b.mr->rkey);

	connected();
	must(!munmap(a.memory + BYTES + 4096, 4096), "munmap");
	answered(&wr, IBV_WC_LOC_PROT_ERR);
}

void unmapped_receive(void)
{
	struct ibv_sge out = piece(&a, 0, 8), in = piece(&b, 4096, 8);
	struct ibv_send_wr wr = rdma(IBV_WR_SEND, &out, 0, 0);

	connected();
	must(!munmap(b.memory + BYTES + 4096, 4096), "munmap");
	refused(receive(&b, &in, 1), 0, "post_recv");
	answered(&wr, IBV_WC_REM_OP_ERR);
	ends_in(&b, IBV_WC_LOC_PROT_ERR);
}

/* A request needs a page of the peer's region that is not mapped. This is an
 * error of the peer, which answers with a NAK. */
static void remote_is_unmapped(enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr = rdma(opcode, &sge, at(&b, 4096), b.mr->rkey);
	struct ibv_wc wc;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		wr = atomic(opcode, &sge, at(&b, 4096), b.mr->rkey);
	connected();
	must(!munmap(b.memory + BYTES + 4096, 4096), "munmap");
	refused(post(&a, &wr), 0, "post");
	if (!rc_wait(a.cq, WAIT, &wc))
		wrong("no completion");
	else if (may_have_left(&wr, IBV_WC_REM_ACCESS_ERR))
		becomes(&a, IBV_QPS_ERR);
	else if (wc.status != IBV_WC_REM_ACCESS_ERR &&
		 wc.status != IBV_WC_REM_OP_ERR)
		wrong("%s, must be a remote error",
		      ibv_wc_status_str(wc.status));
}

void unmapped_write_target(void)
{
	remote_is_unmapped(IBV_WR_RDMA_WRITE);
}

void unmapped_read_target(void)
{
	remote_is_unmapped(IBV_WR_RDMA_READ);
}

void unmapped_atomic_target(void)
{
	remote_is_unmapped(IBV_WR_ATOMIC_FETCH_AND_ADD);
}

void read_only_page_as_target(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr =
		rdma(IBV_WR_RDMA_WRITE, &sge, at(&b, 4096), b.mr->rkey);
	struct ibv_wc wc;

	connected();
	must(!mprotect(b.memory + BYTES + 4096, 4096, PROT_READ), "mprotect");
	refused(post(&a, &wr), 0, "post");
	if (!rc_wait(a.cq, WAIT, &wc))
		wrong("no completion");
	else if (may_have_left(&wr, IBV_WC_REM_ACCESS_ERR))
		becomes(&a, IBV_QPS_ERR);
	else if (wc.status == IBV_WC_SUCCESS)
		wrong("wrote to a read-only page");
	untouched(&b);
}

void destroying_what_is_in_use(void)
{
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;

	refused(ibv_destroy_cq(a.cq), EBUSY, "ibv_destroy_cq under a QP");
	refused(ibv_dealloc_pd(device.pd), EBUSY, "ibv_dealloc_pd in use");
	channel = ibv_create_comp_channel(device.context);
	must(channel, "ibv_create_comp_channel");
	cq = ibv_create_cq(device.context, 1, NULL, channel, 0);
	must(cq, "ibv_create_cq");
	refused(ibv_destroy_comp_channel(channel), EBUSY,
		"ibv_destroy_comp_channel in use");
	must(!ibv_destroy_cq(cq), "ibv_destroy_cq");
	must(!ibv_destroy_comp_channel(channel), "destroy channel");
}

void bad_moves(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };
	struct rc_address at_b = rc_address(&device, b.qp, 200);

	refused(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE), EINVAL,
		"RESET to RTS");
	attr.qp_state = IBV_QPS_INIT;
	refused(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE), EINVAL,
		"INIT without its attributes");
	attr.port_num = 2;
	refused(ibv_modify_qp(a.qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				      IBV_QP_ACCESS_FLAGS),
		EINVAL, "port 2");
	attr.port_num = 1;
	attr.pkey_index = 500;
	refused(ibv_modify_qp(a.qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				      IBV_QP_ACCESS_FLAGS),
		EINVAL, "P_Key index 500");
	is_in(&a, IBV_QPS_RESET);
	must(!rc_to_init(a.qp, RC_ALL_ACCESS), "RESET to INIT");
	at_b.mtu = (enum ibv_mtu)6;
	device.mtu = (enum ibv_mtu)6;
	refused(rc_to_rtr(&device, a.qp, &at_b), EINVAL, "path MTU 6");
	device.mtu = at_b.mtu = IBV_MTU_1024;
	device.gid_index += 77;
	refused(rc_to_rtr(&device, a.qp, &at_b), EINVAL, "an empty GID index");
	device.gid_index -= 77;
	is_in(&a, IBV_QPS_INIT);
}

void impossible_creations(void)
{
	struct ibv_qp_init_attr attr = { .send_cq = a.cq,
					 .recv_cq = a.cq,
					 .qp_type = IBV_QPT_RC };
	struct ibv_qp *qp;

	attr.cap.max_send_wr = 1 << 30;
	attr.cap.max_send_sge = 1;
	qp = ibv_create_qp(device.pd, &attr);
	if (qp) {
		wrong("a queue of 2^30 requests");
		ibv_destroy_qp(qp);
	}
	attr.cap.max_send_wr = 1;
	attr.cap.max_send_sge = 10000;
	qp = ibv_create_qp(device.pd, &attr);
	if (qp) {
		wrong("10000 SGEs a request");
		ibv_destroy_qp(qp);
	}
	if (ibv_create_cq(device.context, 0, NULL, NULL, 0))
		wrong("a completion queue of 0 entries");
	if (ibv_create_cq(device.context, 1 << 30, NULL, NULL, 0))
		wrong("a completion queue of 2^30 entries");
}

/* The SGEs of a READ may add up to more than the longest message (2^31 bytes),
 * but such a READ must not succeed. */
void longest_message(void)
{
	struct ibv_sge sge[2];
	struct ibv_send_wr wr =
		rdma(IBV_WR_RDMA_READ, sge, at(&b, 0), b.mr->rkey);
	struct ibv_wc wc;
	int err;

	connected();
	sge[0] = piece(&a, 0, 0x80000000u);
	sge[1] = piece(&a, 0, 0x80000008u);
	wr.num_sge = 2;
	err = post(&a, &wr);
	if (err)
		/* The device may refuse this request, which ends the case. */
		return;
	if (!rc_wait(a.cq, WAIT, &wc))
		wrong("no completion");
	else if (wc.status == IBV_WC_SUCCESS)
		wrong("a message of 2^32 + 8 bytes");
}

/* A queue pair may move to RTS even if its program only receives. */
void receive_only(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = b.cq,
		.recv_cq = b.cq,
		.cap = { .max_recv_wr = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	must(!ibv_destroy_qp(b.qp), "ibv_destroy_qp");
	b.qp = ibv_create_qp(device.pd, &init);
	must(b.qp, "ibv_create_qp");
	connected();
	is_in(&b, IBV_QPS_RTS);
}
