/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Misuse, one case a function: each must end in the error that the
 * specification names, and in nothing else. Two queue pairs of one process,
 * "a" asking and "b" answering; fresh ones for every case, and after each
 * they must still be able to talk once connected anew.
 *
 *	bad_input_test [-d DEVICE] [-6] [-a ADDRESS] [CASE]
 *
 * -a: it is an RNIC, and this its address.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rc.h"
#include "stream.h"

#define BYTES  8192
#define DEPTH  16
#define SGES   4
#define INLINE 64
#define WAIT   10.0

static struct rc_options options = RC_OPTIONS;
static struct rc_device device;
static const char *problem; /* what the running case found wrong */
static char problem_text[256];

struct side {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *memory;
};
static struct side a, b;
static bool rnic;

static void wrong(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

static void wrong(const char *format, ...)
{
	va_list args;

	if (problem) /* the first is the cause */
		return;
	va_start(args, format);
	vsnprintf(problem_text, sizeof(problem_text), format, args);
	va_end(args);
	problem = problem_text;
}

static void make_side(struct side *s, unsigned access)
{
	s->memory = mmap(NULL, 3 * BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(s->memory != MAP_FAILED, "mmap");
	memset(s->memory, 0x5a, 3 * BYTES);
	/* The region has neighbours on both sides that are not in it. */
	s->mr = ibv_reg_mr(device.pd, s->memory + BYTES, BYTES, access);
	must(s->mr, "ibv_reg_mr");
	s->cq = ibv_create_cq(device.context, 4 * DEPTH, NULL, NULL, 0);
	must(s->cq, "ibv_create_cq");
	s->qp = rc_qp(&device, s->cq, DEPTH, SGES, INLINE);
}

static void drop_side(struct side *s)
{
	stream_drop();
	if (s->qp && ibv_destroy_qp(s->qp))
		wrong("ibv_destroy_qp refuses at the end");
	if (s->mr && ibv_dereg_mr(s->mr))
		wrong("ibv_dereg_mr refuses at the end");
	if (s->cq && ibv_destroy_cq(s->cq))
		wrong("ibv_destroy_cq refuses at the end");
	munmap(s->memory, 3 * BYTES);
	memset(s, 0, sizeof(*s));
}

static void connect_with(unsigned b_access, unsigned retry, unsigned rnr)
{
	struct rc_address at_a = rc_address(&device, a.qp, 100);
	struct rc_address at_b = rc_address(&device, b.qp, 200);
	struct rc_options o = options;

	if (rnic) {
		must(!rc_to_init(a.qp, RC_ALL_ACCESS) &&
			     !rc_to_init(b.qp, b_access),
		     "to INIT");
		stream_connect(a.qp, b.qp, 4);
		return;
	}
	o.retry = retry;
	o.rnr_retry = rnr;
	o.timeout = 10; /* 4 ms */
	rc_connect(&device, a.qp, &o, 100, &at_b);
	must(!rc_to_init(b.qp, b_access), "RESET to INIT");
	must(!rc_to_rtr(&device, b.qp, &at_a), "INIT to RTR");
	must(!rc_to_rts(b.qp, &o, 200), "RTR to RTS");
}

static void connected(void)
{
	connect_with(RC_ALL_ACCESS, 3, 3);
}

static uint64_t at(const struct side *s, long offset)
{
	return (uintptr_t)s->memory + BYTES + (uint64_t)offset;
}

static struct ibv_sge piece(const struct side *s, long offset, uint32_t len)
{
	return (struct ibv_sge){ at(s, offset), len, s->mr->lkey };
}

static struct ibv_send_wr rdma(enum ibv_wr_opcode opcode, struct ibv_sge *sge,
			       uint64_t remote, uint32_t rkey)
{
	return (struct ibv_send_wr){
		.wr_id = 7,
		.sg_list = sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { remote, rkey },
	};
}

static struct ibv_send_wr atomic(enum ibv_wr_opcode opcode, struct ibv_sge *sge,
				 uint64_t remote, uint32_t rkey)
{
	struct ibv_send_wr wr = rdma(opcode, sge, 0, 0);

	wr.wr.atomic.remote_addr = remote;
	wr.wr.atomic.compare_add = 1;
	wr.wr.atomic.swap = 2;
	wr.wr.atomic.rkey = rkey;
	return wr;
}

static int post(struct side *s, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;
	int err = ibv_post_send(s->qp, wr, &bad);

	if (err && bad != wr)
		wrong("bad_wr is not the one refused");
	return err;
}

static int receive(struct side *s, struct ibv_sge *sge, int count)
{
	struct ibv_recv_wr *bad,
		wr = { .wr_id = 9, .sg_list = sge, .num_sge = count };

	return ibv_post_recv(s->qp, &wr, &bad);
}

static void ends_in(struct side *s, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	if (!rc_wait(s->cq, WAIT, &wc))
		wrong("no completion, must be: %s", ibv_wc_status_str(status));
	else if (wc.status != status)
		wrong("%s, must be: %s", ibv_wc_status_str(wc.status),
		      ibv_wc_status_str(status));
	else if (wc.qp_num != s->qp->qp_num)
		wrong("the completion's qp_num");
}

static void is_in(struct side *s, enum ibv_qp_state state)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (ibv_query_qp(s->qp, &attr, IBV_QP_STATE, &init))
		wrong("ibv_query_qp");
	else if (attr.qp_state != state)
		wrong("state %d, must be %d", attr.qp_state, state);
}

/* The end of a stream is on its way. */
static void becomes(struct side *s, enum ibv_qp_state state)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	double until = seconds() + WAIT;

	while (rnic && !ibv_query_qp(s->qp, &attr, IBV_QP_STATE, &init) &&
	       attr.qp_state != state && seconds() < until)
		usleep(1000);
	is_in(s, state);
}

/* Over TCP what is sent is complete when it has left. */
static bool may_have_left(const struct ibv_send_wr *wr,
			  enum ibv_wc_status status)
{
	const char *near = getenv("VERBENA_NEAR");

	return rnic && near && !strcmp(near, "off") &&
	       status != IBV_WC_LOC_PROT_ERR &&
	       wr->opcode != IBV_WR_RDMA_READ &&
	       wr->opcode != IBV_WR_ATOMIC_FETCH_AND_ADD &&
	       wr->opcode != IBV_WR_ATOMIC_CMP_AND_SWP;
}

static void untouched(const struct side *s)
{
	for (long i = 0; i < 3 * BYTES; i++)
		if (s->memory[i] != 0x5a) {
			wrong("memory changed at offset %ld of the region",
			      i - BYTES);
			return;
		}
}

static void refused(int err, int wanted, const char *what)
{
	if (err != wanted)
		wrong("%s gives %d (%s), must be %d (%s)", what, err,
		      strerror(err < 0 ? -err : err), wanted, strerror(wanted));
}

/* One operation of a on b that b must answer with this. */
static void answered(struct ibv_send_wr *wr, enum ibv_wc_status status)
{
	refused(post(&a, wr), 0, "post");
	ends_in(&a, may_have_left(wr, status) ? IBV_WC_SUCCESS : status);
	becomes(&a, IBV_QPS_ERR);
}

static void send_in_wrong_state(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr = rdma(IBV_WR_SEND, &sge, 0, 0);
	struct rc_address at_b = rc_address(&device, b.qp, 200);

	refused(post(&a, &wr), EINVAL, "post in RESET");
	must(!rc_to_init(a.qp, RC_ALL_ACCESS), "RESET to INIT");
	refused(post(&a, &wr), EINVAL, "post in INIT");
	if (rnic) /* it has no RTR */
		return;
	must(!rc_to_rtr(&device, a.qp, &at_b), "INIT to RTR");
	refused(post(&a, &wr), EINVAL, "post in RTR");
}

static void receive_in_reset(void)
{
	struct ibv_sge sge = piece(&b, 0, 8);

	refused(receive(&b, &sge, 1), EINVAL, "post_recv in RESET");
}

static void post_in_error_is_flushed(void)
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

static void too_many_sges(void)
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

static void too_much_inline(void)
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

static void unknown_operation(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr = rdma((enum ibv_wr_opcode)99, &sge, 0, 0);

	connected();
	refused(post(&a, &wr), EINVAL, "post of operation 99");
}

static void too_many_requests(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr = rdma(IBV_WR_SEND, &sge, 0, 0);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	unsigned posted = 0;

	/* Nobody receives: they stay. */
	connect_with(RC_ALL_ACCESS, 7, 7);
	must(!ibv_query_qp(a.qp, &attr, IBV_QP_CAP, &init), "ibv_query_qp");
	while (posted <= init.cap.max_send_wr && !post(&a, &wr))
		posted++;
	if (posted != init.cap.max_send_wr)
		wrong("took %u requests of %u", posted, init.cap.max_send_wr);
	refused(post(&a, &wr), ENOMEM, "post to a full queue");
}

static void lkey_of_another_pd(void)
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

static void rkey_of_another_pd(void)
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

static void lkey_of_nothing(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr = rdma(IBV_WR_SEND, &sge, 0, 0);

	connected();
	sge.lkey ^= 0x55555500;
	answered(&wr, IBV_WC_LOC_PROT_ERR);
}

static void local_range(void)
{
	struct ibv_sge sge = piece(&a, BYTES - 7, 8);
	struct ibv_send_wr wr = rdma(IBV_WR_SEND, &sge, 0, 0);

	connected();
	answered(&wr, IBV_WC_LOC_PROT_ERR);
}

static void address_that_wraps(void)
{
	struct ibv_sge sge = { UINT64_MAX - 3, 8, a.mr->lkey };
	struct ibv_send_wr wr = rdma(IBV_WR_SEND, &sge, 0, 0);

	connected();
	answered(&wr, IBV_WC_LOC_PROT_ERR);
}

static void read_into_read_only(void)
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

static void rkey_after_deregistration(void)
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

static void write_one_past(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr =
		rdma(IBV_WR_RDMA_WRITE, &sge, at(&b, BYTES - 7), b.mr->rkey);

	connected();
	memset(a.memory, 1, 3 * BYTES);
	answered(&wr, IBV_WC_REM_ACCESS_ERR);
	untouched(&b);
}

static void write_one_before(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr =
		rdma(IBV_WR_RDMA_WRITE, &sge, at(&b, -1), b.mr->rkey);

	connected();
	memset(a.memory, 1, 3 * BYTES);
	answered(&wr, IBV_WC_REM_ACCESS_ERR);
	untouched(&b);
}

/* Many packets, of which only the last would be outside. */
static void long_write_one_past(void)
{
	struct ibv_sge sge = piece(&a, 0, BYTES);
	struct ibv_send_wr wr =
		rdma(IBV_WR_RDMA_WRITE, &sge, at(&b, 1), b.mr->rkey);

	connected();
	memset(a.memory, 1, 3 * BYTES);
	answered(&wr, IBV_WC_REM_ACCESS_ERR);
	untouched(&b);
}

static void read_one_past(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr =
		rdma(IBV_WR_RDMA_READ, &sge, at(&b, BYTES - 7), b.mr->rkey);

	connected();
	memset(b.memory, 1, 3 * BYTES);
	answered(&wr, IBV_WC_REM_ACCESS_ERR);
	untouched(&a);
}

static void remote_address_that_wraps(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr =
		rdma(IBV_WR_RDMA_WRITE, &sge, UINT64_MAX - 3, b.mr->rkey);

	connected();
	answered(&wr, IBV_WC_REM_ACCESS_ERR);
}

static void unaligned_atomic(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr = atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, &sge,
				       at(&b, 4), b.mr->rkey);

	connected();
	answered(&wr, IBV_WC_REM_INV_REQ_ERR);
	untouched(&b);
}

static void atomic_outside(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr = atomic(IBV_WR_ATOMIC_CMP_AND_SWP, &sge,
				       at(&b, BYTES), b.mr->rkey);

	connected();
	answered(&wr, IBV_WC_REM_ACCESS_ERR);
	untouched(&b);
}

/* The region refuses: an access error. */
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

static void region_without_write(void)
{
	region_refuses(IBV_WR_RDMA_WRITE,
		       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
}

static void region_without_read(void)
{
	region_refuses(IBV_WR_RDMA_READ,
		       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
}

static void region_without_atomic(void)
{
	region_refuses(IBV_WR_ATOMIC_FETCH_AND_ADD,
		       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			       IBV_ACCESS_REMOTE_READ);
}

/* The queue pair refuses: an invalid request, of RFC 5040's a violation of
 * access rights. */
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

static void qp_without_write(void)
{
	qp_refuses(IBV_WR_RDMA_WRITE);
}

static void qp_without_read(void)
{
	qp_refuses(IBV_WR_RDMA_READ);
}

static void qp_without_atomic(void)
{
	qp_refuses(IBV_WR_ATOMIC_FETCH_AND_ADD);
}

static void remote_write_needs_local_write(void)
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

static void receive_too_small(void)
{
	struct ibv_sge out = piece(&a, 0, 100), in = piece(&b, 0, 99);
	struct ibv_send_wr wr = rdma(IBV_WR_SEND, &out, 0, 0);

	connected();
	refused(receive(&b, &in, 1), 0, "post_recv");
	answered(&wr, IBV_WC_REM_INV_REQ_ERR);
	ends_in(&b, IBV_WC_LOC_LEN_ERR);
	becomes(&b, IBV_QPS_ERR);
}

static void receive_with_bad_lkey(void)
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

static void nobody_receives(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr = rdma(IBV_WR_SEND, &sge, 0, 0);

	connect_with(RC_ALL_ACCESS, 3, 1);
	answered(&wr, IBV_WC_RNR_RETRY_EXC_ERR);
}

static void peer_is_gone(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr =
		rdma(IBV_WR_RDMA_WRITE, &sge, at(&b, 0), b.mr->rkey);

	connected();
	must(!ibv_destroy_qp(b.qp), "ibv_destroy_qp");
	b.qp = NULL;
	if (rnic) { /* its stream ends, and tells */
		becomes(&a, IBV_QPS_ERR);
		refused(post(&a, &wr), 0, "post");
		ends_in(&a, IBV_WC_WR_FLUSH_ERR);
		return;
	}
	answered(&wr, IBV_WC_RETRY_EXC_ERR);
}

static void rest_is_flushed(void)
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

/* Registered memory that is not there (any more) is no crash. */
static void unmapped_source(void)
{
	struct ibv_sge sge = piece(&a, 4096, 8);
	struct ibv_send_wr wr =
		rdma(IBV_WR_RDMA_WRITE, &sge, at(&b, 0), b.mr->rkey);

	connected();
	must(!munmap(a.memory + BYTES + 4096, 4096), "munmap");
	answered(&wr, IBV_WC_LOC_PROT_ERR);
	untouched(&b);
}

static void unmapped_inline_source(void)
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

static void unmapped_sink(void)
{
	struct ibv_sge sge = piece(&a, 4096, 8);
	struct ibv_send_wr wr =
		rdma(IBV_WR_RDMA_READ, &sge, at(&b, 0), b.mr->rkey);

	connected();
	must(!munmap(a.memory + BYTES + 4096, 4096), "munmap");
	answered(&wr, IBV_WC_LOC_PROT_ERR);
}

static void unmapped_receive(void)
{
	struct ibv_sge out = piece(&a, 0, 8), in = piece(&b, 4096, 8);
	struct ibv_send_wr wr = rdma(IBV_WR_SEND, &out, 0, 0);

	connected();
	must(!munmap(b.memory + BYTES + 4096, 4096), "munmap");
	refused(receive(&b, &in, 1), 0, "post_recv");
	answered(&wr, IBV_WC_REM_OP_ERR);
	ends_in(&b, IBV_WC_LOC_PROT_ERR);
}

/* The peer's missing page is the peer's trouble, told by a NAK. */
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

static void unmapped_write_target(void)
{
	remote_is_unmapped(IBV_WR_RDMA_WRITE);
}

static void unmapped_read_target(void)
{
	remote_is_unmapped(IBV_WR_RDMA_READ);
}

static void unmapped_atomic_target(void)
{
	remote_is_unmapped(IBV_WR_ATOMIC_FETCH_AND_ADD);
}

static void read_only_page_as_target(void)
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

static void destroying_what_is_in_use(void)
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

static void bad_moves(void)
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

static void impossible_creations(void)
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

/* More than a READ's answer may be asked, never more is given. */
static void longest_message(void)
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
		return; /* refused: fine as well */
	if (!rc_wait(a.cq, WAIT, &wc))
		wrong("no completion");
	else if (wc.status == IBV_WC_SUCCESS)
		wrong("a message of 2^32 + 8 bytes");
}

#define CASE(name)                                                             \
	{                                                                      \
#name, name, false                                             \
	}
/* Of what an RNIC has not, or of a connection that a child of fork makes. */
#define NO_RNIC(name)                                                          \
	{                                                                      \
#name, name, true                                              \
	}
static void still_works(void);
static void in_fresh_sides(void (*run)(void));

/* A queue pair that never sends goes to RTS all the same. */
static void receive_only(void)
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

/* Run @f in a child, as destructors run there. */
static void in_child(void (*f)(void))
{
	int status = -1;
	pid_t child = fork();

	must(child >= 0, "fork");
	if (child == 0) {
		alarm((unsigned)WAIT);
		f();
		_exit(problem ? 1 : 0);
	}
	must(waitpid(child, &status, 0) == child, "waitpid");
	if (status)
		wrong("the child ends with status 0x%x", status);
}

static void destroy_all(void)
{
	drop_side(&a);
	drop_side(&b);
	rc_close(&device);
}

static void child_tidies_up(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr =
		rdma(IBV_WR_RDMA_WRITE, &sge, at(&b, 0), b.mr->rkey);

	connected();
	in_child(destroy_all);
	/* and to the parent it is all one */
	refused(post(&a, &wr), 0, "post after the child");
	ends_in(&a, IBV_WC_SUCCESS);
}

static void talk_anew(void)
{
	struct side parents[2] = { a, b };
	struct rc_device parents_device = device;

	rc_open(&device, &options);
	in_fresh_sides(still_works);
	rc_close(&device);
	a = parents[0];
	b = parents[1];
	device = parents_device;
	destroy_all();
}

static void child_opens_its_own(void)
{
	connected();
	in_child(talk_anew);
}

static void *poll_for_ever(void *arg)
{
	struct ibv_wc wc;

	for (;;) {
		ibv_poll_cq(b.cq, 1, &wc);
		pthread_testcancel();
	}
	return arg;
}

static void cancel_soon(void *(*run)(void *))
{
	const struct timespec soon = { .tv_nsec = 20000000 };
	pthread_t thread;

	must(!pthread_create(&thread, NULL, run, NULL), "pthread_create");
	nanosleep(&soon, NULL);
	pthread_cancel(thread);
	pthread_join(thread, NULL);
}

/* Verbs are no cancellation points: the adapter goes on. */
static void cancelled_poller(void)
{
	connected();
	for (int i = 0; i < 5; i++)
		cancel_soon(poll_for_ever);
}

static void *post_when_cancelled(void *arg)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr *bad,
		wr = rdma(IBV_WR_RDMA_WRITE, &sge, at(&b, 0), b.mr->rkey);

	pthread_cancel(pthread_self());
	ibv_post_send(a.qp, &wr, &bad);
	pthread_testcancel();
	return arg;
}

static void cancelled_poster(void)
{
	connected();
	cancel_soon(post_when_cancelled);
	ends_in(&a, IBV_WC_SUCCESS);
}

static struct ibv_xrcd *open_domain(int fd)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd
	};

	return ibv_open_xrcd(device.context, &attr);
}

static struct ibv_xrcd *domain;
static int domain_fd;

/* Neither its closing of what it inherited nor its end takes the domain from
 * the parent; and its own device knows that the inode has one. */
static void child_with_domain(void)
{
	if (ibv_close_xrcd(domain))
		wrong("the child cannot close the domain");
	rc_open(&device, &options);
	domain = open_domain(domain_fd);
	if (!domain)
		wrong("the child cannot join the domain");
	else
		refused(ibv_close_xrcd(domain), 0, "close");
	rc_close(&device);
}

static void child_and_xrc_domain(void)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.oflags = O_CREAT
	};
	FILE *f = tmpfile();
	struct ibv_xrcd *again;

	must(f, "tmpfile");
	attr.fd = domain_fd = fileno(f);
	domain = ibv_open_xrcd(device.context, &attr);
	must(domain, "ibv_open_xrcd");
	in_child(child_with_domain);
	again = open_domain(domain_fd);
	if (!again)
		wrong("the domain went with the child");
	else
		refused(ibv_close_xrcd(again), 0, "close");
	refused(ibv_close_xrcd(domain), 0, "close");
	if (open_domain(domain_fd))
		wrong("the domain outlives all");
	fclose(f);
}

/* None of these is a cancellation point, though it enters the kernel. */
static void *live_and_die_cancelled(void *arg)
{
	struct side s;
	struct rc_device d = device;

	pthread_cancel(pthread_self());
	rc_open(&device, &options);
	make_side(&s, RC_ALL_ACCESS);
	if (rc_to_init(s.qp, RC_ALL_ACCESS))
		wrong("to INIT");
	if (ibv_rereg_mr(s.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, s.memory,
			 BYTES, 0) ||
	    s.mr->addr != s.memory)
		wrong("ibv_rereg_mr");
	if (ibv_rereg_mr(s.mr, 1 << 9, NULL, NULL, 0, 0) !=
	    IBV_REREG_MR_ERR_INPUT)
		wrong("ibv_rereg_mr takes unknown flags");
	drop_side(&s);
	rc_close(&device);
	device = d;
	*(bool *)arg = true;
	pthread_testcancel();
	return NULL;
}

static void cancelled_in_any_verb(void)
{
	bool through = false;
	pthread_t thread;
	void *end;

	must(!pthread_create(&thread, NULL, live_and_die_cancelled, &through),
	     "pthread_create");
	pthread_join(thread, &end);
	if (!through || end != PTHREAD_CANCELED)
		wrong("a verb is a cancellation point");
}

static const struct {
	const char *name;
	void (*run)(void);
	bool no_rnic;
} cases[] = {
	CASE(send_in_wrong_state),
	CASE(receive_in_reset),
	CASE(post_in_error_is_flushed),
	CASE(too_many_sges),
	CASE(too_much_inline),
	CASE(unknown_operation),
	CASE(too_many_requests),
	CASE(lkey_of_another_pd),
	CASE(rkey_of_another_pd),
	CASE(lkey_of_nothing),
	CASE(local_range),
	CASE(address_that_wraps),
	CASE(read_into_read_only),
	CASE(rkey_after_deregistration),
	CASE(write_one_past),
	CASE(write_one_before),
	CASE(long_write_one_past),
	CASE(read_one_past),
	CASE(remote_address_that_wraps),
	CASE(unaligned_atomic),
	CASE(atomic_outside),
	CASE(region_without_write),
	CASE(region_without_read),
	CASE(region_without_atomic),
	CASE(qp_without_write),
	CASE(qp_without_read),
	CASE(qp_without_atomic),
	CASE(remote_write_needs_local_write),
	CASE(receive_too_small),
	CASE(receive_with_bad_lkey),
	CASE(nobody_receives),
	CASE(peer_is_gone),
	CASE(rest_is_flushed),
	CASE(unmapped_source),
	CASE(unmapped_inline_source),
	CASE(unmapped_sink),
	CASE(unmapped_receive),
	CASE(unmapped_write_target),
	CASE(unmapped_read_target),
	CASE(unmapped_atomic_target),
	CASE(read_only_page_as_target),
	CASE(destroying_what_is_in_use),
	NO_RNIC(bad_moves),
	CASE(impossible_creations),
	CASE(longest_message),
	CASE(receive_only),
	CASE(child_tidies_up),
	NO_RNIC(child_opens_its_own),
	CASE(cancelled_poller),
	CASE(cancelled_poster),
	CASE(cancelled_in_any_verb),
	NO_RNIC(child_and_xrc_domain),
};

/* After any misuse, well-behaved queue pairs still talk. */
static void still_works(void)
{
	struct ibv_sge sge = piece(&a, 0, 4);
	struct ibv_send_wr wr =
		rdma(IBV_WR_RDMA_WRITE, &sge, at(&b, 0), b.mr->rkey);
	double until = seconds() + WAIT;

	connected();
	memcpy(a.memory + BYTES, "word", 4);
	refused(post(&a, &wr), 0, "post afterwards");
	ends_in(&a, IBV_WC_SUCCESS);
	while (rnic && memcmp(b.memory + BYTES, "word", 4) && seconds() < until)
		usleep(1000); /* it has left */
	if (memcmp(b.memory + BYTES, "word", 4))
		wrong("the data afterwards");
}

static void in_fresh_sides(void (*run)(void))
{
	enum ibv_mtu mtu = device.mtu;

	make_side(&a, RC_ALL_ACCESS);
	make_side(&b, RC_ALL_ACCESS);
	run();
	drop_side(&a);
	drop_side(&b);
	device.mtu = mtu;
}

int main(int argc, char **argv)
{
	unsigned failed = 0;
	int c;

	while ((c = getopt(argc, argv, "a:d:46")) != -1) {
		if (c == 'a')
			rnic = true, stream_begin(optarg);
		else if (c == 'd')
			options.device = optarg;
		else if (c == '4' || c == '6')
			options.family = c - '0';
		else
			return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	rc_open(&device, &options);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (argv[optind] && strcmp(argv[optind], cases[i].name))
			continue;
		if (rnic && cases[i].no_rnic)
			continue;
		problem = NULL;
		in_fresh_sides(cases[i].run);
		in_fresh_sides(still_works);
		if (problem)
			printf("not ok %s: %s\n", cases[i].name, problem);
		else
			printf("ok %s\n", cases[i].name);
		failed += !!problem;
	}
	rc_close(&device);
	return failed ? 1 : 0;
}
