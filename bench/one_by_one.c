/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends WRITEs one at a time, and measures the cost of each call of a
 * function. */
#include "bench/one_by_one.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define LAP 100

void read_counts(int argc, char **argv, struct rc_options *o, int *count,
		 int *messages)
{
	int c;

	while ((c = getopt(argc, argv, RC_LETTERS "n:m:")) != -1) {
		if (c == 'n')
			*count = atoi(optarg);
		else if (c == 'm')
			*messages = atoi(optarg);
		else
			rc_read_option(o, c);
	}
	o->host = argv[optind];
	if (*count < 1 || *messages < 1)
		die("a count is a number above 0");
}

void write_and_wait(struct ibv_cq *cq, const struct one_write *w)
{
	struct ibv_sge sge = { (uintptr_t)w->from, 8, w->lkey };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge,
					.num_sge = 1,
					.opcode = IBV_WR_RDMA_WRITE,
					.send_flags = IBV_SEND_SIGNALED,
					.wr.rdma = { w->to, w->rkey } };
	struct ibv_wc wc;

	must(!ibv_post_send(w->qp, &wr, &bad), "ibv_post_send");
	if (!rc_wait(cq, 30, &wc))
		die("no completion");
	if (wc.status)
		die("%s", ibv_wc_status_str(wc.status));
}

void be_written_to(struct ibv_cq *cq, int tcp)
{
	struct ibv_wc wc;
	char over;
	ssize_t n;

	do {
		for (int i = 0; i < 10000; i++)
			must(ibv_poll_cq(cq, 1, &wc) == 0, "ibv_poll_cq");
		n = recv(tcp, &over, 1, MSG_DONTWAIT);
	} while (n < 0 && errno == EAGAIN);
}

void tell_over(int tcp)
{
	tcp_send(tcp, "", 1);
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double time_each(void (*one)(int i), int from, int to)
{
	int laps = (to - from) / LAP, i = from;
	double *took = calloc((size_t)laps, sizeof(*took)), median;

	must(laps > 0 && took, "laps");
	for (int lap = 0; lap < laps; lap++) {
		double begin = seconds();

		for (int end = i + LAP; i < end; i++)
			one(i);
		took[lap] = (seconds() - begin) / LAP * 1e9;
	}
	for (; i < to; i++)
		one(i);
	qsort(took, (size_t)laps, sizeof(*took), by_size);
	median = took[laps / 2];
	free(took);
	return median;
}
