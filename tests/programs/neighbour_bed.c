/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts the sides A and B, and posts their requests. */
#include "neighbour_test.h"

#define MARK 0x5a
#define FIRE 0xc3
/* Microseconds that A waits for late writes of B. */
#define AFTER 100000

struct rc_options options = RC_OPTIONS;
int port;

bool is_broken, is_skipped;
void skip(const char *why)
{
	is_skipped = true;
	printf("    | %s\n", why);
}

void expect(bool truth, const char *format, ...)
{
	va_list args;

	if (truth || is_broken)
		return;
	is_broken = true;
	printf("    | ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
}

char remarks[80];
void remark(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(remarks, sizeof(remarks), format, args);
	va_end(args);
}

void nap(unsigned us)
{
	usleep(us);
}

static uint8_t *map(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	must(at != MAP_FAILED, "mmap");
	return at;
}

/* Make a queue pair in state INIT, to which receives may be posted. */
struct ibv_qp *open_qp(struct side *s, unsigned depth)
{
	struct ibv_qp *qp = rc_qp(&s->device, s->cq, depth, 1, 0);

	must(!rc_to_init(qp, RC_ALL_ACCESS), "INIT");
	return qp;
}

static void open_side(struct side *s, size_t bytes)
{
	rc_open(&s->device, &options);
	s->cq = ibv_create_cq(s->device.context, 256, NULL, NULL, 0);
	must(s->cq, "ibv_create_cq");
	s->qp = open_qp(s, DEPTH);
	s->bytes = bytes;
	s->memory = map(bytes);
	s->mr = ibv_reg_mr(s->device.pd, s->memory, bytes,
			   RC_ALL_ACCESS | IBV_ACCESS_MW_BIND);
	must(s->mr, "ibv_reg_mr");
}

void meet(struct side *s, uint32_t key)
{
	const struct hello me = { rc_address(&s->device, s->qp, 77),
				  (uintptr_t)s->memory, key };

	s->tcp = tcp_meet(&options);
	tcp_swap(s->tcp, &me, &s->peer, sizeof(me));
	rc_connect(&s->device, s->qp, &options, 77, &s->peer.at);
	tcp_barrier(s->tcp);
}

/* Fork B, which connects to A by meet() and runs @what until it is killed. A
 * returns without calling meet(). */
void begin(struct side *a, size_t bytes, void (*what)(struct side *b))
{
	struct side b = { 0 };

	options.port = port++;
	options.host = NULL;
	fflush(stdout);
	a->other = fork();
	must(a->other >= 0, "fork");
	if (a->other == 0) {
		options.host = "127.0.0.1";
		open_side(&b, bytes);
		meet(&b, b.mr->rkey);
		what(&b);
		_exit(0);
	}
	open_side(a, bytes);
}

void end(struct side *a)
{
	if (a->tcp)
		close(a->tcp);
	kill(a->other, SIGKILL);
	waitpid(a->other, NULL, 0);
	if (a->qp)
		ibv_destroy_qp(a->qp);
	if (a->mr)
		ibv_dereg_mr(a->mr);
	ibv_destroy_cq(a->cq);
	munmap(a->memory, a->bytes);
	rc_close(&a->device);
}

int post(struct side *s, enum ibv_wr_opcode op, uint32_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)s->memory, bytes, s->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = op,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { s->peer.address, s->peer.rkey },
	};

	return ibv_post_send(s->qp, &wr, &bad);
}

void post_recv(struct side *s, struct ibv_qp *qp, uint32_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)s->memory, bytes, s->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

	must(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
}

/* B posts the same request again and again until one fails. */
static void repeat(struct side *b, enum ibv_wr_opcode op, uint32_t bytes)
{
	struct ibv_wc wc;

	memset(b->memory, FIRE, bytes);
	while (!post(b, op, bytes) && rc_wait(b->cq, 100, &wc) && !wc.status)
		;
	pause();
}

void write_on(struct side *b)
{
	repeat(b, IBV_WR_RDMA_WRITE, LONG);
}

void send_on(struct side *b)
{
	repeat(b, IBV_WR_SEND, LONG);
}

void stop(struct side *a)
{
	int status;

	must(!kill(a->other, SIGSTOP), "kill");
	must(waitpid(a->other, &status, WUNTRACED) == a->other, "waitpid");
}

void await_fire(const volatile uint8_t *at)
{
	double then = seconds();

	while (*at != FIRE && seconds() - then < 20)
		;
	expect(*at == FIRE, "nothing was written");
}

/* A marks its memory and lets the stopped B continue. No late write of B may
 * change the marked memory. */
void stays_ours(struct side *a)
{
	size_t changed = 0;

	memset(a->memory, MARK, LONG);
	kill(a->other, SIGCONT);
	nap(AFTER);
	for (size_t i = 0; i < LONG; i++)
		changed += a->memory[i] != MARK;
	expect(changed == 0, "%zu bytes were written too late", changed);
}

void to_err(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	must(!ibv_modify_qp(qp, &attr, IBV_QP_STATE), "ibv_modify_qp");
}
