/* SPDX-License-Identifier: BSD-2-Clause */
/* A WRITE from one queue pair to another of the same program. */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(x) ((x) ? (void)0 : (perror(#x), exit(1)))
static char from[64] = "written", to[64];
static union ibv_gid gid;

static void move(struct ibv_qp *qp, uint32_t peer)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1,
				 .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };

	MUST(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
			    IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR, .dest_qp_num = peer,
		.path_mtu = IBV_MTU_1024, .max_dest_rd_atomic = 1,
		.min_rnr_timer = 12, .ah_attr = { .is_global = 1, .port_num = 1,
		.grh = { .dgid = gid, .sgid_index = 1, .hop_limit = 1 } } };
	MUST(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 14,
		.retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1 };
	MUST(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT |
			    IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			    IBV_QP_MAX_QP_RD_ATOMIC));
}

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *c = list && *list ? ibv_open_device(*list) : NULL;
	MUST(c && !ibv_query_gid(c, 1, 1, &gid));
	struct ibv_pd *pd = ibv_alloc_pd(c);
	struct ibv_cq *cq = ibv_create_cq(c, 16, NULL, NULL, 0);
	struct ibv_mr *mf = ibv_reg_mr(pd, from, 64, 0);
	struct ibv_mr *mt = ibv_reg_mr(pd, to, 64, IBV_ACCESS_LOCAL_WRITE |
				       IBV_ACCESS_REMOTE_WRITE);
	struct ibv_qp_init_attr i = { .send_cq = cq, .recv_cq = cq,
		.qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_qp *a = ibv_create_qp(pd, &i), *b = ibv_create_qp(pd, &i);
	MUST(mf && mt && a && b);
	move(a, b->qp_num), move(b, a->qp_num);
	struct ibv_sge s = { (uintptr_t)from, sizeof(from), mf->lkey };
	struct ibv_send_wr *bad, w = { .sg_list = &s, .num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)to, mt->rkey } };
	struct ibv_wc wc = { 0 };
	MUST(!ibv_post_send(a, &w, &bad));
	while (!ibv_poll_cq(cq, 1, &wc))
		;
	printf("%s: %s, \"%s\"\n", ibv_get_device_name(*list), ibv_wc_status_str(wc.status), to);
	return wc.status != IBV_WC_SUCCESS || strcmp(to, from) != 0;
}
