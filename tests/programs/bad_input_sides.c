/* SPDX-License-Identifier: BSD-2-Clause */
/* The two queue pairs of a case, and functions that check them. */
#include "bad_input.h"

#define DEPTH  16
#define INLINE 64

struct rc_options options = RC_OPTIONS;
struct rc_device device;
/* text of the first error that the running case found; NULL: none */
const char *problem;
static char problem_text[256];
struct side a, b;
bool rnic;

void wrong(const char *format, ...)
{
	va_list args;

	/* Keep only the first error, which causes the later ones. */
	if (problem)
		return;
	va_start(args, format);
	vsnprintf(problem_text, sizeof(problem_text), format, args);
	va_end(args);
	problem = problem_text;
}

void make_side(struct side *s, unsigned access)
{
	s->memory = mmap(NULL, 3 * BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(s->memory != MAP_FAILED, "mmap");
	memset(s->memory, 0x5a, 3 * BYTES);
	/* On both sides of the region there is memory that no access may
	 * change. */
	s->mr = ibv_reg_mr(device.pd, s->memory + BYTES, BYTES, access);
	must(s->mr, "ibv_reg_mr");
	s->cq = ibv_create_cq(device.context, 4 * DEPTH, NULL, NULL, 0);
	must(s->cq, "ibv_create_cq");
	s->qp = rc_qp(&device, s->cq, DEPTH, SGES, INLINE);
}

void drop_side(struct side *s)
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

void connect_with(unsigned b_access, unsigned retry, unsigned rnr)
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

void connected(void)
{
	connect_with(RC_ALL_ACCESS, 3, 3);
}

uint64_t at(const struct side *s, long offset)
{
	return (uintptr_t)s->memory + BYTES + (uint64_t)offset;
}

struct ibv_sge piece(const struct side *s, long offset, uint32_t len)
{
	return (struct ibv_sge){ at(s, offset), len, s->mr->lkey };
}

struct ibv_send_wr rdma(enum ibv_wr_opcode opcode, struct ibv_sge *sge,
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

struct ibv_send_wr atomic(enum ibv_wr_opcode opcode, struct ibv_sge *sge,
			  uint64_t remote, uint32_t rkey)
{
	struct ibv_send_wr wr = rdma(opcode, sge, 0, 0);

	wr.wr.atomic.remote_addr = remote;
	wr.wr.atomic.compare_add = 1;
	wr.wr.atomic.swap = 2;
	wr.wr.atomic.rkey = rkey;
	return wr;
}

int post(struct side *s, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;
	int err = ibv_post_send(s->qp, wr, &bad);

	if (err && bad != wr)
		wrong("bad_wr is not the one refused");
	return err;
}

int receive(struct side *s, struct ibv_sge *sge, int count)
{
	struct ibv_recv_wr *bad,
		wr = { .wr_id = 9, .sg_list = sge, .num_sge = count };

	return ibv_post_recv(s->qp, &wr, &bad);
}

void ends_in(struct side *s, enum ibv_wc_status status)
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

void is_in(struct side *s, enum ibv_qp_state state)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (ibv_query_qp(s->qp, &attr, IBV_QP_STATE, &init))
		wrong("ibv_query_qp");
	else if (attr.qp_state != state)
		wrong("state %d, must be %d", attr.qp_state, state);
}

/* Wait until the queue pair of @s is in @state: the end of a stream may still
 * be on its way. */
void becomes(struct side *s, enum ibv_qp_state state)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	double until = seconds() + WAIT;

	while (rnic && !ibv_query_qp(s->qp, &attr, IBV_QP_STATE, &init) &&
	       attr.qp_state != state && seconds() < until)
		usleep(1000);
	is_in(s, state);
}

/* Returns whether a request may have this status although the peer refuses it.
 * Over TCP a request succeeds as soon as its bytes were sent. */
bool may_have_left(const struct ibv_send_wr *wr, enum ibv_wc_status status)
{
	const char *near = getenv("VERBENA_NEAR");

	return rnic && near && !strcmp(near, "off") &&
	       status != IBV_WC_LOC_PROT_ERR &&
	       wr->opcode != IBV_WR_RDMA_READ &&
	       wr->opcode != IBV_WR_ATOMIC_FETCH_AND_ADD &&
	       wr->opcode != IBV_WR_ATOMIC_CMP_AND_SWP;
}

void untouched(const struct side *s)
{
	for (long i = 0; i < 3 * BYTES; i++)
		if (s->memory[i] != 0x5a) {
			wrong("memory changed at offset %ld of the region",
			      i - BYTES);
			return;
		}
}

void refused(int err, int wanted, const char *what)
{
	if (err != wanted)
		wrong("%s gives %d (%s), must be %d (%s)", what, err,
		      strerror(err < 0 ? -err : err), wanted, strerror(wanted));
}

/* Post one request of side a, whose target is side b, and expect the completion
 * status @status, which b's answer causes. */
void answered(struct ibv_send_wr *wr, enum ibv_wc_status status)
{
	refused(post(&a, wr), 0, "post");
	ends_in(&a, may_have_left(wr, status) ? IBV_WC_SUCCESS : status);
	becomes(&a, IBV_QPS_ERR);
}
