/* SPDX-License-Identifier: BSD-2-Clause */
/* Cases: B damages the memory that it shares with A, or uses memory that only
 * its own processor can access. */
#include "neighbour_test.h"

/* Seconds within which all requests to a hostile B end. */
#define ENDS 10

/* B writes arbitrary values into the memory that it shares with A. */

uint8_t *find_lane(size_t *len)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512], rights[8];
	uint8_t *found = NULL;
	uintptr_t from, to;

	while (maps && !found && fgets(line, sizeof(line), maps))
		if (strstr(line, "verbena-lane") &&
		    sscanf(line, "%lx-%lx %7s", &from, &to, rights) == 3 &&
		    rights[1] == 'w') {
			found = (uint8_t *)from;
			*len = to - from;
		}
	if (maps)
		fclose(maps);
	return found;
}

/* What B writes into the memory that it shares with A. */
enum filling {
	ONES,
	ZEROS,
	NOISE,
	BITS, /* single bits change */
	FILLINGS,
};
static const char *const filling_names[FILLINGS] = {
	"0xff",
	"zeros",
	"noise",
	"single bits",
};
static enum filling filling;

static void fill(struct rng *r, uint8_t *lane, size_t len)
{
	size_t at = rng_below(r, len - SMALL) & ~(size_t)7;

	switch (filling) {
	case ONES:
		memset(lane, 0xff, len);
		break;
	case ZEROS:
		memset(lane, 0, len);
		break;
	case NOISE:
		rng_fill(r, lane + at, SMALL);
		break;
	default:
		lane[at] ^= (uint8_t)(1u << rng_below(r, 8));
	}
}

static void scribble(struct side *b)
{
	struct rng r = { 11 };
	struct ibv_wc wc;
	uint8_t *lane;
	size_t len = 0;

	/* from now on the request is in the shared memory */
	(void)post(b, IBV_WR_RDMA_WRITE, SMALL);
	(void)rc_wait(b->cq, 5, &wc);
	lane = find_lane(&len);
	must(lane, "a lane");
	fill(&r, lane, len);
	tcp_barrier(b->tcp);
	for (;;)
		fill(&r, lane, len);
}

/* Post a request that needs B's own thread: an atomic. */
static int post_atomic(struct side *s)
{
	struct ibv_sge sge = { (uintptr_t)s->memory, 8, s->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.atomic = { .remote_addr = s->peer.address,
			       .compare_add = 1,
			       .rkey = s->peer.rkey },
	};

	return ibv_post_send(s->qp, &wr, &bad);
}

/* Post the next request, of any kind. B posts no receives. SENDs are posted
 * only if B fills the lane with ones, since B then hardly ever sees them. */
static int post_any(struct side *a, struct rng *r)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_RDMA_WRITE,
						  IBV_WR_RDMA_READ,
						  IBV_WR_SEND };
	size_t draw = rng_below(r, filling == ONES ? 4 : 3);

	return draw == 0 ? post_atomic(a)
			 : post(a, ops[draw - 1],
				1 + (uint32_t)rng_below(r, SENDS));
}

/* Post requests of all kinds until one fails, and until each has its
 * completion. Most often A's retries run out; but B's own engine thread may
 * take a request between two fills, and then B's answer (RNR, an access error)
 * is the status. */
static void try_much(struct side *a)
{
	enum ibv_wc_status first = IBV_WC_SUCCESS;
	double then = seconds();
	unsigned under_way = 0;
	struct rng r = { 5 };
	struct ibv_wc wc;

	while ((!first || under_way) && seconds() - then < ENDS) {
		if (!first && under_way < DEPTH && !post_any(a, &r))
			under_way++;
		for (; ibv_poll_cq(a->cq, 1, &wc) > 0; under_way--)
			first = first ? first : wc.status;
		nap(100);
	}
	/* Other fillings may leave values that are possible: then the peer
	 * counts as one that does not answer, which docs/NEAR.md does not give
	 * up. So A moves its queue pair to ERR, which flushes the requests. */
	if (filling == ONES)
		expect(first != IBV_WC_SUCCESS,
		       "%s: no request has failed in %d s",
		       filling_names[filling], ENDS);
	else
		to_err(a->qp);
	while (filling != ONES && under_way && rc_wait(a->cq, ENDS, &wc))
		under_way--;
	expect(under_way == 0, "%s: %u requests never end",
	       filling_names[filling], under_way);
}

static void lane_is_filled(void)
{
	struct side a = { 0 };
	struct loop l;
	double then;

	begin(&a, BYTES, scribble);
	open_loop(&a, &l);
	meet(&a, a.mr->rkey);
	tcp_barrier(a.tcp);
	try_much(&a);
	(void)go_round(&a, &l);
	then = seconds();
	take(&a, TAKE_QP, NULL);
	close_loop(&l);
	take(&a, TAKE_REGION, NULL);
	expect(seconds() - then < 25, "%s: to end took %.1f s",
	       filling_names[filling], seconds() - then);
	end(&a);
}

/* A's retries last 0.26 s, so that the case is short. */
void memory_is_scribbled_on(void)
{
	const struct rc_options before = options;

	options.timeout = 14; /* 67 ms */
	options.retry = options.rnr_retry = 0;
	for (filling = 0; filling < FILLINGS && !is_broken; filling++)
		lane_is_filled();
	options = before;
}

/*
 * Memory that B's processor can access, but no system call of another process,
 * such as a graphics card's, whose pages the kernel does not have.
 */

void *find_unreached(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	uintptr_t at = 0;

	while (maps && !at && fgets(line, sizeof(line), maps))
		if (strstr(line, UNREACHED))
			sscanf(line, "%lx", &at);
	if (maps)
		fclose(maps);
	return (void *)at;
}

static void lend_unreached(struct side *b)
{
	void *at = find_unreached();
	struct ibv_mr *mr =
		at ? ibv_reg_mr(b->device.pd, at, SMALL, IBV_ACCESS_REMOTE_READ)
		   : NULL;
	struct hello told = { .address = (uintptr_t)at,
			      .rkey = mr ? mr->rkey : 0 };

	tcp_send(b->tcp, &told, sizeof(told));
	if (mr) {
		b->memory = at;
		b->mr = mr;
		(void)post(b, IBV_WR_SEND, SMALL);
	}
	pause();
}

void memory_of_a_device(void)
{
	struct side a = { 0 };
	struct ibv_wc wc = { 0 };

	begin(&a, BYTES, lend_unreached);
	post_recv(&a, a.qp, SMALL);
	meet(&a, 0);
	tcp_recv(a.tcp, &a.peer, sizeof(a.peer));
	expect(a.peer.rkey, "no memory of this kind here");
	if (!is_broken)
		expect(rc_wait(a.cq, 5, &wc), "no completion");
	expect(!wc.status, "SEND: %s", ibv_wc_status_str(wc.status));
	if (!is_broken)
		must(!post(&a, IBV_WR_RDMA_READ, SMALL), "post");
	if (!is_broken)
		expect(rc_wait(a.cq, 5, &wc), "no completion");
	expect(!wc.status, "READ: %s", ibv_wc_status_str(wc.status));
	end(&a);
}
