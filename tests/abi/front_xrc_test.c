/* SPDX-License-Identifier: BSD-2-Clause */
/* XRC domains and queue pairs, and tag matching. */
#include "tests/abi/front_bench.h"

static struct ibv_xrcd *open_xrcd(struct ibv_context *context, int fd,
				  int oflags)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd,
		.oflags = oflags,
	};

	errno = 0;
	return ibv_open_xrcd(context, &attr);
}

static void xrcd__the_inode_has_one(void **state)
{
	struct bench *b = *state;
	struct ibv_xrcd_init_attr half = { .comp_mask = IBV_XRCD_INIT_ATTR_FD };
	struct ibv_xrcd *first, *second, *alone;
	FILE *f = tmpfile();
	int fd = fileno(f);

	assert_null(ibv_open_xrcd(b->context, &half));
	assert_int_equal(errno, EINVAL);
	half.comp_mask = 1u << 31;
	assert_null(ibv_open_xrcd(b->context, &half));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(open_xrcd(b->context, 9999, O_CREAT));
	assert_int_equal(errno, EBADF);
	assert_null(open_xrcd(b->context, fd, 0));
	assert_int_equal(errno, EAGAIN);
	first = open_xrcd(b->context, fd, O_CREAT | O_EXCL);
	assert_non_null(first);
	assert_null(open_xrcd(b->context, fd, O_CREAT | O_EXCL));
	assert_int_equal(errno, EINVAL);
	second = open_xrcd(b->context, fd, 0);
	alone = open_xrcd(b->context, -1, O_CREAT);
	assert_ptr_equal(vb_front_xrcd(first)->core->domain,
			 vb_front_xrcd(second)->core->domain);
	assert_ptr_not_equal(vb_front_xrcd(first)->core->domain,
			     vb_front_xrcd(alone)->core->domain);
	assert_int_equal(ibv_close_xrcd(first), 0);
	assert_int_equal(ibv_close_xrcd(second), 0);
	assert_int_equal(ibv_close_xrcd(alone), 0);
	assert_null(open_xrcd(b->context, fd, 0));
	assert_int_equal(errno, EAGAIN);
	fclose(f);
}

/* XRC domains of two processes on one inode: a lock on the inode tells this
 * process that the other one has opened a domain. */
static void xrcd__is_there_while_another_process_has_it(void **state)
{
	struct bench *b = *state;
	struct ibv_xrcd *x;
	FILE *f = tmpfile();
	int fd = fileno(f), in[2], out[2];
	char c;
	pid_t pid;

	assert_int_equal(pipe(in), 0);
	assert_int_equal(pipe(out), 0);
	pid = fork();
	if (pid == 0) {
		struct ibv_context *own = open_first();

		x = open_xrcd(own, fd, O_CREAT | O_EXCL);
		if (write(out[1], x ? "y" : "n", 1) != 1)
			_exit(2);
		_exit(read(in[0], &c, 1) != 1);
	}
	assert_int_equal(read(out[0], &c, 1), 1);
	assert_int_equal(c, 'y');
	assert_null(open_xrcd(b->context, fd, O_CREAT | O_EXCL));
	assert_int_equal(errno, EINVAL);
	x = open_xrcd(b->context, fd, 0);
	assert_non_null(x);
	assert_int_equal(ibv_close_xrcd(x), 0);
	assert_int_equal(write(in[1], "", 1), 1);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_null(open_xrcd(b->context, fd, 0));
	assert_int_equal(errno, EAGAIN);
	for (int i = 0; i < 2; i++) {
		close(in[i]);
		close(out[i]);
	}
	fclose(f);
}

static struct ibv_srq_init_attr_ex tag_attr(const struct bench *b)
{
	return (struct ibv_srq_init_attr_ex){
		.attr = { 4, 1, 0 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
		.srq_type = IBV_SRQT_TM,
		.pd = b->pd,
		.cq = b->cq,
		.tm_cap = { .max_num_tags = 2, .max_ops = 2 },
	};
}

static void assert_no_tags(struct bench *b, struct ibv_srq_init_attr_ex attr)
{
	errno = 0;
	assert_null(ibv_create_srq_ex(b->context, &attr));
	assert_int_equal(errno, EINVAL);
}

static void tags__what_makes_no_queue(void **state)
{
	struct bench *b = *state;
	struct ibv_device_attr_ex device;
	struct ibv_srq_init_attr_ex attr = tag_attr(b);

	assert_int_equal(ibv_query_device_ex(b->context, NULL, &device), 0);
	assert_int_equal(device.tm_caps.flags, IBV_TM_CAP_RC);
	attr.comp_mask &= ~(uint32_t)IBV_SRQ_INIT_ATTR_TM;
	assert_no_tags(b, attr);
	attr = tag_attr(b);
	attr.comp_mask &= ~(uint32_t)IBV_SRQ_INIT_ATTR_CQ;
	assert_no_tags(b, attr);
	attr = tag_attr(b);
	attr.cq = NULL;
	assert_no_tags(b, attr);
	attr = tag_attr(b);
	attr.comp_mask &= ~(uint32_t)IBV_SRQ_INIT_ATTR_PD;
	assert_no_tags(b, attr);
	attr = tag_attr(b);
	attr.tm_cap.max_num_tags = 0;
	assert_no_tags(b, attr);
	attr.tm_cap.max_num_tags = device.tm_caps.max_num_tags + 1;
	assert_no_tags(b, attr);
	attr.tm_cap.max_num_tags = 1;
	attr.tm_cap.max_ops = device.tm_caps.max_ops + 1;
	assert_no_tags(b, attr);
}

static void assert_op(struct ibv_cq *cq, uint64_t wr_id, int opcode,
		      enum ibv_wc_status status, unsigned flags)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.opcode, opcode);
	assert_int_equal(wc.status, status);
	assert_int_equal(wc.wc_flags, flags);
}

static void tags__operations(void **state)
{
	struct bench *b = *state;
	struct ibv_srq_init_attr_ex attr = tag_attr(b);
	struct ibv_srq *srq = ibv_create_srq_ex(b->context, &attr);
	struct ibv_sge sges[5] = { 0 };
	struct ibv_ops_wr wr[3] = {
		{ .wr_id = 1,
		  .next = &wr[1],
		  .opcode = IBV_WR_TAG_ADD,
		  .flags = IBV_OPS_SIGNALED },
		{ .wr_id = 2, .next = &wr[2], .opcode = IBV_WR_TAG_ADD },
		{ .wr_id = 3, .opcode = IBV_WR_TAG_ADD },
	};
	struct ibv_ops_wr *bad = NULL;

	assert_non_null(srq);
	assert_int_equal(ibv_destroy_cq(b->cq), EBUSY);
	/* The SRQ's tag list has room for two tags, so the third is refused. */
	assert_int_equal(ibv_post_srq_ops(srq, wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[2]);
	assert_op(b->cq, 1, IBV_WC_TM_ADD, IBV_WC_SUCCESS, 0);
	assert_int_not_equal(wr[0].tm.handle, wr[1].tm.handle);
	wr[0].next = NULL;
	wr[0].opcode = IBV_WR_TAG_DEL;
	assert_int_equal(ibv_post_srq_ops(srq, wr, &bad), 0);
	assert_op(b->cq, 1, IBV_WC_TM_DEL, IBV_WC_SUCCESS, 0);
	assert_int_equal(ibv_post_srq_ops(srq, wr, &bad), 0);
	assert_op(b->cq, 1, IBV_WC_TM_DEL, IBV_WC_TM_ERR, 0);
	wr[2].tm.add.sg_list = sges;
	wr[2].tm.add.num_sge = 5;
	assert_int_equal(ibv_post_srq_ops(srq, &wr[2], &bad), EINVAL);
	wr[2].tm.add.num_sge = -1;
	assert_int_equal(ibv_post_srq_ops(srq, &wr[2], &bad), EINVAL);
	wr[2].tm.add.num_sge = 4;
	wr[2].flags = 1 << 5;
	assert_int_equal(ibv_post_srq_ops(srq, &wr[2], &bad), EINVAL);
	wr[2].flags = 0;
	assert_int_equal(ibv_post_srq_ops(srq, &wr[2], &bad), 0);
	wr[2].opcode = (enum ibv_ops_wr_opcode)7;
	assert_int_equal(ibv_post_srq_ops(srq, &wr[2], &bad), EINVAL);
	/* An impossible count of unexpected messages leaves the list out of
	 * step, and the program is asked to synchronize again. */
	wr[2].opcode = IBV_WR_TAG_SYNC;
	wr[2].flags = IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC;
	wr[2].tm.unexpected_cnt = 1;
	assert_int_equal(ibv_post_srq_ops(srq, &wr[2], &bad), 0);
	assert_op(b->cq, 3, IBV_WC_TM_SYNC, IBV_WC_SUCCESS, IBV_WC_TM_SYNC_REQ);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

/* A queue pair with a tag matching queue may have no send queue entries; then
 * nothing can be posted to it. */
static void tags__queue_pair_without_sends(void **state)
{
	struct bench *b = *state;
	struct ibv_srq_init_attr_ex attr = tag_attr(b);
	struct ibv_srq *srq = ibv_create_srq_ex(b->context, &attr);
	struct ibv_qp_init_attr init = { .send_cq = b->cq,
					 .recv_cq = b->cq,
					 .srq = srq,
					 .qp_type = IBV_QPT_RC };
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_SEND };
	struct ibv_qp_attr a;
	struct ibv_qp *qp = ibv_create_qp(b->pd, &init);

	assert_non_null(qp);
	assert_int_equal(init.cap.max_send_wr, 0);
	assert_int_equal(ibv_query_qp(qp, &a, 0, &init), 0);
	assert_int_equal(a.cap.max_send_wr, 0);
	assert_int_equal(a.cap.max_send_sge, 0);
	assert_int_equal(a.cap.max_inline_data, 0);
	atomic_store(&vb_front_qp(qp)->core->state, QPS_RTS);
	assert_int_equal(ibv_post_send(qp, &wr, &bad), ENOMEM);
	assert_int_equal(ibv_destroy_srq(srq), EBUSY);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	init.qp_type = IBV_QPT_UC;
	errno = 0;
	assert_null(ibv_create_qp(b->pd, &init));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static struct ibv_srq *make_xrc_srq(struct bench *b, struct ibv_xrcd *x)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 5, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = b->pd,
		.xrcd = x,
		.cq = b->cq,
	};
	struct ibv_srq *srq = ibv_create_srq_ex(b->context, &attr);

	assert_non_null(srq);
	assert_int_equal(attr.attr.max_wr, 8);
	attr.comp_mask &= ~(uint32_t)IBV_SRQ_INIT_ATTR_CQ;
	assert_null(ibv_create_srq_ex(b->context, &attr));
	assert_int_equal(errno, EINVAL);
	return srq;
}

static void xrc__shared_queue_has_a_number_and_a_size(void **state)
{
	struct bench *b = *state;
	struct ibv_xrcd *x = open_xrcd(b->context, -1, O_CREAT);
	struct ibv_srq *srq = make_xrc_srq(b, x), *plain;
	struct ibv_srq_init_attr plain_attr = { .attr = { 1, 1, 0 } };
	struct ibv_srq_attr attr = { .max_wr = 16, .srq_limit = 3 };
	uint32_t number = 0;

	assert_int_equal(ibv_get_srq_num(srq, &number), 0);
	assert_int_equal(number, vb_front_srq(srq)->core->number);
	plain = ibv_create_srq(b->pd, &plain_attr);
	assert_int_equal(ibv_get_srq_num(plain, &number), EINVAL);
	assert_int_equal(ibv_destroy_srq(plain), 0);
	assert_int_equal(
		ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), 0);
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_int_equal(attr.max_wr, 16);
	assert_int_equal(attr.srq_limit, 3);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_close_xrcd(x), 0);
}

static void xrc__objects_hold_what_they_use(void **state)
{
	struct bench *b = *state;
	struct ibv_xrcd *x = open_xrcd(b->context, -1, O_CREAT);
	struct ibv_srq *srq = make_xrc_srq(b, x);
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = x,
	};
	struct ibv_qp_open_attr open = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
			     IBV_QP_OPEN_ATTR_TYPE | IBV_QP_OPEN_ATTR_CONTEXT,
		.xrcd = x,
		.qp_context = b,
		.qp_type = IBV_QPT_XRC_RECV,
	};
	struct ibv_qp *target, *again;
	struct ibv_qp_attr qp_attr;
	struct ibv_recv_wr wr = { 0 }, *bad;

	target = ibv_create_qp_ex(b->context, &init);
	assert_non_null(target);
	assert_int_equal(init.cap.max_recv_wr, 0);
	assert_int_equal(ibv_post_recv(target, &wr, &bad), EINVAL);
	open.qp_num = target->qp_num + 1;
	assert_null(ibv_open_qp(b->context, &open));
	assert_int_equal(errno, EINVAL);
	open.qp_num = target->qp_num;
	open.qp_type = IBV_QPT_RC;
	assert_null(ibv_open_qp(b->context, &open));
	assert_int_equal(errno, EINVAL);
	open.qp_type = IBV_QPT_XRC_RECV;
	open.comp_mask &= ~(uint32_t)IBV_QP_OPEN_ATTR_XRCD;
	assert_null(ibv_open_qp(b->context, &open));
	assert_int_equal(errno, EINVAL);
	open.comp_mask |= IBV_QP_OPEN_ATTR_XRCD;
	again = ibv_open_qp(b->context, &open);
	assert_non_null(again);
	assert_ptr_equal(again->qp_context, b);
	assert_int_equal(again->qp_num, target->qp_num);
	assert_int_equal(ibv_destroy_qp(target), 0);
	/* The XRC target exists while its handle of ibv_open_qp() is open. */
	qp_attr =
		(struct ibv_qp_attr){ .qp_state = IBV_QPS_INIT, .port_num = 1 };
	assert_int_equal(ibv_modify_qp(again, &qp_attr,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					       IBV_QP_PORT |
					       IBV_QP_ACCESS_FLAGS),
			 0);
	assert_int_equal(ibv_close_xrcd(x), EBUSY);
	assert_int_equal(ibv_destroy_qp(again), 0);
	assert_null(ibv_open_qp(b->context, &open));
	assert_int_equal(ibv_close_xrcd(x), EBUSY);
	assert_int_equal(ibv_destroy_cq(b->cq), EBUSY);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_close_xrcd(x), 0);
}

/* XRC initiator: each work request names the shared queue at the target. */
static void xrc__work_requests_name_a_shared_queue(void **state)
{
	struct bench *b = *state;
	struct ibv_qp_init_attr_ex init = {
		.cap = { .max_send_wr = 4, .max_send_sge = 1 },
		.qp_type = IBV_QPT_XRC_SEND,
		.send_cq = b->cq,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = b->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(b->context, &init);
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
	struct ibv_qp_ex *ex;
	struct vb_qp *core;

	assert_non_null(qp);
	ex = ibv_qp_to_qp_ex(qp);
	core = vb_front_qp(qp)->core;
	atomic_store(&core->state, QPS_RTS);
	wr.qp_type.xrc.remote_srqn = 0x4711;
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	assert_int_equal(vb_sq_at(&core->sq, 0)->srqn, 0x4711);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, 0, 0, 0);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_xrc_srqn(ex, 0x4712);
	ibv_wr_set_sge(ex, 0, 0, 0);
	assert_int_equal(ibv_wr_complete(ex), 0);
	assert_int_equal(vb_sq_at(&core->sq, 1)->srqn, 0x4712);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

int front_xrc_tests(void)
{
	const struct CMUnitTest tests[] = {
		ON_BENCH(xrcd__the_inode_has_one),
		ON_BENCH(xrcd__is_there_while_another_process_has_it),
		ON_BENCH(tags__what_makes_no_queue),
		ON_BENCH(tags__operations),
		ON_BENCH(tags__queue_pair_without_sends),
		ON_BENCH(xrc__shared_queue_has_a_number_and_a_size),
		ON_BENCH(xrc__objects_hold_what_they_use),
		ON_BENCH(xrc__work_requests_name_a_shared_queue),
	};

	return cmocka_run_group_tests_name("xrc", tests, NULL, NULL);
}
