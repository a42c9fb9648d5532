/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the programs share that ask how a cost grows: WRITEs of 8 bytes, each
 * waited for, to a program that is busy polling; and how long one of them, or
 * of anything, takes.
 */
#ifndef BENCH_ONE_BY_ONE_H
#define BENCH_ONE_BY_ONE_H

#include "tests/programs/rc.h"

/*
 * [-d DEVICE] [-p PORT] [-n COUNT] [-m MESSAGES] [HOST]; with anything else
 * the program ends.
 */
void read_counts(int argc, char **argv, struct rc_options *o, int *count,
		 int *messages);

struct one_write {
	struct ibv_qp *qp;
	void *from;
	uint32_t lkey, rkey;
	uint64_t to;
};
void write_and_wait(struct ibv_cq *cq, const struct one_write *w);

/* The other side, until tell_over(). */
void be_written_to(struct ibv_cq *cq, int tcp);
void tell_over(int tcp);

/*
 * Nanoseconds that one(i) takes, for i from @from to @to: the median over
 * laps of a hundred, as other work may take the processor for milliseconds,
 * and where there are few laps that would be all that is seen.
 */
double time_each(void (*one)(int i), int from, int to);

#endif
