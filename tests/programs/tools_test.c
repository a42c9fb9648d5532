/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program for sanitizers and valgrind. It uses everything that the library
 * fills in (attributes, completions, received bytes) in memory that nothing has
 * written before, and one thread passes data to another by verbs alone. A tool
 * that does not see what the library has done would report an error here. The
 * program connects two queue pairs of its own; the tests build it with each
 * sanitizer.
 */
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BYTES  5000
#define ROUNDS 20
#define CHECK(what)                                                            \
	do {                                                                   \
		if (!(what)) {                                                 \
			fprintf(stderr, "line %d: %s\n", __LINE__, #what);     \
			exit(1);                                               \
		}                                                              \
	} while (0)

struct end {
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *bytes; /* of malloc(), so not initialized */
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static union ibv_gid gid;
static uint64_t sum; /* sum of all bytes that the receiver has got */

static uint64_t add_up(const uint8_t *bytes, unsigned count)
{
	uint64_t total = 0;

	for (unsigned i = 0; i < count; i++)
		if (bytes[i] != 0) /* a branch that depends on the byte: tools
				    * report uninitialized memory there */
			total += bytes[i];
	return total;
}

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	struct ibv_gid_entry entry;
	uint16_t pkey;

	CHECK(list && list[0]);
	CHECK(strlen(ibv_get_device_name(list[0])) > 0);
	CHECK(ibv_get_device_guid(list[0]) != 0);
	context = ibv_open_device(list[0]);
	CHECK(context);
	ibv_free_device_list(list);
	CHECK(ibv_query_device(context, &attr) == 0);
	CHECK(add_up((void *)&attr.fw_ver, 4) + (uint64_t)attr.max_qp > 0);
	CHECK(ibv_query_port(context, 1, &port) == 0);
	CHECK(port.state == IBV_PORT_ACTIVE && port.gid_tbl_len > 1);
	CHECK(ibv_query_gid(context, 1, 1, &gid) == 0);
	CHECK(add_up(gid.raw, 16) > 0);
	CHECK(ibv_query_gid_ex(context, 1, 1, &entry, 0) == 0);
	CHECK(entry.gid_type == IBV_GID_TYPE_ROCE_V2 && entry.gid_index == 1);
	CHECK(ibv_query_pkey(context, 1, 0, &pkey) == 0 && pkey == 0xffff);
}

static void open_end(struct end *e)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .cap = { 64, 64, 1, 1, 64 } };
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

	e->bytes = malloc(2 * BYTES);
	CHECK(e->bytes);
	e->channel = ibv_create_comp_channel(context);
	CHECK(e->channel);
	e->cq = ibv_create_cq(context, 64, e, e->channel, 0);
	CHECK(e->cq && e->cq->cqe >= 64);
	init.send_cq = init.recv_cq = e->cq;
	e->qp = ibv_create_qp(pd, &init);
	CHECK(e->qp && e->qp->qp_num && init.cap.max_send_wr >= 64);
	e->mr = ibv_reg_mr(pd, e->bytes, 2 * (size_t)BYTES, access);
	CHECK(e->mr && e->mr->lkey + e->mr->rkey > 0);
}

static void connect_end(const struct end *e, const struct end *other)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = 1,
				 .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
						    IBV_ACCESS_REMOTE_READ |
						    IBV_ACCESS_REMOTE_ATOMIC };
	struct ibv_qp_attr got;
	struct ibv_qp_init_attr init;

	CHECK(ibv_modify_qp(e->qp, &a,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_ACCESS_FLAGS) == 0);
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = other->qp->qp_num,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = gid,
				      .sgid_index = 1,
				      .hop_limit = 64 } },
	};
	CHECK(ibv_modify_qp(e->qp, &a,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER) == 0);
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
				  .timeout = 18,
				  .retry_cnt = 7,
				  .rnr_retry = 7,
				  .max_rd_atomic = 4 };
	CHECK(ibv_modify_qp(e->qp, &a,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				    IBV_QP_MAX_QP_RD_ATOMIC) == 0);
	CHECK(ibv_query_qp(e->qp, &got, IBV_QP_STATE, &init) == 0);
	CHECK(got.qp_state == IBV_QPS_RTS && init.cap.max_recv_wr >= 64);
}

/* Wait by events for one completion. */
static struct ibv_wc await_one(const struct end *e)
{
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *arg;
	int n;

	CHECK(ibv_req_notify_cq(e->cq, 0) == 0);
	while ((n = ibv_poll_cq(e->cq, 1, &wc)) == 0) {
		CHECK(ibv_get_cq_event(e->channel, &cq, &arg) == 0);
		CHECK(cq == e->cq && arg == e);
		ibv_ack_cq_events(cq, 1);
		CHECK(ibv_req_notify_cq(e->cq, 0) == 0);
	}
	CHECK(n == 1 && wc.status == IBV_WC_SUCCESS);
	return wc;
}

static void post(const struct end *e, const struct end *to,
		 enum ibv_wr_opcode op, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)e->bytes, length, e->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = op,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)to->bytes + BYTES;
		wr.wr.atomic.rkey = to->mr->rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)to->bytes + BYTES;
		wr.wr.rdma.rkey = to->mr->rkey;
	}
	CHECK(ibv_post_send(e->qp, &wr, &bad) == 0);
}

static void post_receive(const struct end *e)
{
	struct ibv_sge sge = { (uintptr_t)e->bytes, BYTES, e->mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	CHECK(ibv_post_recv(e->qp, &wr, &bad) == 0);
}

/* The function of the receiver's thread. */
static void *receive(void *arg)
{
	const struct end *e = arg;

	for (unsigned i = 0; i < ROUNDS; i++) {
		struct ibv_wc wc = await_one(e);

		CHECK(wc.opcode == IBV_WC_RECV && wc.qp_num == e->qp->qp_num);
		sum += add_up(e->bytes, wc.byte_len);
		/* the bytes that the WRITE before the SEND has brought */
		sum += add_up(e->bytes + BYTES, 8);
		post_receive(e);
		post(e, e, IBV_WR_SEND, 0);
		CHECK(await_one(e).opcode == IBV_WC_SEND);
	}
	return NULL;
}

/* A thread that polls until a WRITE of another thread is complete, and then
 * uses the WRITE's memory. Only the completion tells this thread that the
 * library has read that memory. */
static void *poll_and_reuse(void *arg)
{
	const struct end *e = arg;
	struct ibv_wc wc;

	while (ibv_poll_cq(e->cq, 1, &wc) == 0)
		;
	CHECK(wc.status == IBV_WC_WR_FLUSH_ERR);
	memset(e->bytes, 0, BYTES);
	return NULL;
}

static void hand_over(struct end *a, const struct end *b)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_wc wc;
	pthread_t thread;

	CHECK(ibv_modify_qp(a->qp, &attr, IBV_QP_STATE) == 0);
	while (ibv_poll_cq(a->cq, 1, &wc) > 0)
		;
	CHECK(pthread_create(&thread, NULL, poll_and_reuse, a) == 0);
	usleep(1000);
	memset(a->bytes, 3, BYTES);
	post(a, b, IBV_WR_RDMA_WRITE, BYTES);
	CHECK(pthread_join(thread, NULL) == 0);
}

static void close_end(const struct end *e)
{
	CHECK(ibv_destroy_qp(e->qp) == 0);
	CHECK(ibv_dereg_mr(e->mr) == 0);
	CHECK(ibv_destroy_cq(e->cq) == 0);
	CHECK(ibv_destroy_comp_channel(e->channel) == 0);
	free(e->bytes);
}

int main(void)
{
	struct end a, b;
	pthread_t thread;
	uint64_t expected = 0;

	open_device();
	pd = ibv_alloc_pd(context);
	CHECK(pd);
	open_end(&a);
	open_end(&b);
	connect_end(&a, &b);
	connect_end(&b, &a);
	post_receive(&b);
	CHECK(pthread_create(&thread, NULL, receive, &b) == 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint32_t length = i % 2 ? BYTES : 8;

		post_receive(&a);
		memset(a.bytes, (int)i + 1, length);
		expected += (uint64_t)(i + 1) * (length + 8);
		post(&a, &b, IBV_WR_RDMA_WRITE, 8);
		CHECK(await_one(&a).opcode == IBV_WC_RDMA_WRITE);
		post(&a, &b, IBV_WR_SEND, length);
		/* the SENDs of a and of b (which is empty) complete in any
		 * order */
		await_one(&a);
		await_one(&a);
		post(&a, &b, IBV_WR_RDMA_READ, 8);
		CHECK(await_one(&a).opcode == IBV_WC_RDMA_READ);
		CHECK(add_up(a.bytes, 8) == 8ull * (i + 1));
		post(&a, &b, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
		CHECK(await_one(&a).opcode == IBV_WC_FETCH_ADD);
		CHECK(add_up(a.bytes, 8) == 8ull * (i + 1));
	}
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(sum == expected);
	hand_over(&a, &b);
	close_end(&a);
	close_end(&b);
	CHECK(ibv_dealloc_pd(pd) == 0);
	CHECK(ibv_close_device(context) == 0);
	puts("done");
	return 0;
}
