/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the programs that measure how a cost grows: it sends WRITEs of 8
 * bytes, each waited for, to a program that is busy polling, and measures how
 * long one WRITE, or one call of any function, takes.
 */
#ifndef BENCH_ONE_BY_ONE_H
#define BENCH_ONE_BY_ONE_H

#include "tests/programs/rc.h"

/*
 * Read the options [-d DEVICE] [-p PORT] [-n COUNT] [-m MESSAGES] [HOST]. With
 * any other argument the program ends.
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

/* Be the side that is written to, until the writing side calls tell_over(). */
void be_written_to(struct ibv_cq *cq, int tcp);
void tell_over(int tcp);

/*
 * Returns the nanoseconds that one call one(i) takes, for i from @from to @to:
 * the median over laps of a hundred calls, because other work may take the
 * processor for milliseconds and would distort a mean.
 */
double time_each(void (*one)(int i), int from, int to);

#endif
