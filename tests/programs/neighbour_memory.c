/* SPDX-License-Identifier: BSD-2-Clause */
/* Cases: B damages the memory that it shares with A, or uses memory that only
 * its own processor can access. */
#include "neighbour_test.h"

/* B writes arbitrary values into the memory that it shares with A. */

static uint8_t *find_lane(size_t *len)
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

static void scribble(struct side *b)
{
	struct rng r = { 11 };
	struct ibv_wc wc;
	uint8_t *lane;
	size_t len = 0;

	/* the request is then in the shared memory */
	(void)post(b, IBV_WR_RDMA_WRITE, SMALL);
	(void)rc_wait(b->cq, 5, &wc);
	lane = find_lane(&len);
	if (lane)
		memset(lane, 0xff, len);
	tcp_barrier(b->tcp);
	if (!lane)
		pause();
	for (unsigned i = 0;; i++) {
		size_t at = rng_below(&r, len - SMALL) & ~(size_t)7;

		if (i % 64)
			rng_fill(&r, lane + at, SMALL);
		else
			memset(lane, i % 128 ? 0xff : 0, len);
	}
}

static void much_is_tried(struct side *a)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND,
						  IBV_WR_RDMA_WRITE,
						  IBV_WR_RDMA_READ };
	double then = seconds();
	struct rng r = { 5 };
	struct ibv_wc wc;

	while (seconds() - then < 2) {
		(void)post(a, ops[rng_below(&r, 3)],
			   1 + (uint32_t)rng_below(&r, SENDS));
		while (ibv_poll_cq(a->cq, 1, &wc) > 0)
			;
		nap(100);
	}
}

void memory_is_scribbled_on(void)
{
	struct side a = { 0 };
	struct loop l;
	double then;

	begin(&a, BYTES, scribble);
	open_loop(&a, &l);
	meet(&a, a.mr->rkey);
	tcp_barrier(a.tcp);
	much_is_tried(&a);
	(void)go_round(&a, &l);
	then = seconds();
	take(&a, TAKE_QP, NULL);
	close_loop(&l);
	take(&a, TAKE_REGION, NULL);
	expect(seconds() - then < 25, "to end took %.1f s", seconds() - then);
	end(&a);
}

/*
 * Memory that B's processor can access, but no system call of another process,
 * such as a graphics card's, whose pages the kernel does not have.
 */

static void *find_unreached(void)
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
