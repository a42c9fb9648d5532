/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every kind of MPI traffic, with every byte compared: a ring of messages,
 * allreduce, alltoall and one-sided operations, from 8 bytes to the size that
 * the first argument says; with "sums" behind it allreduce and alltoall alone.
 * Each rank can work out what it must receive.
 * tests/programs/mpi.sh compiles it once for each MPI.
 */
#include <mpi.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALLEST 8
#define STEP	 8 /* factor from one message size to the next */

static int rank, ranks;
static unsigned long checked, wrong;

/* Returns the word at @index of the data that rank @from sends to rank @to in
 * round @round. */
static uint64_t word(int from, int to, size_t index, unsigned round)
{
	uint64_t x = (uint64_t)from << 48 ^ (uint64_t)to << 32 ^
		     (uint64_t)round << 24 ^ index;

	x *= 0x9e3779b97f4a7c15;
	return x ^ x >> 29;
}

static void fill(uint64_t *to, size_t words, int receiver, unsigned round)
{
	for (size_t i = 0; i < words; i++)
		to[i] = word(rank, receiver, i, round);
}

static void expect(const char *what, size_t bytes, uint64_t got, uint64_t want)
{
	checked++;
	if (got == want)
		return;
	if (wrong++ < 8)
		fprintf(stderr,
			"rank %d: %s of %zu bytes: got 0x%" PRIx64
			", expected 0x%" PRIx64 "\n",
			rank, what, bytes, got, want);
}

static void compare(const char *what, const uint64_t *got, size_t words,
		    int sender, unsigned round)
{
	for (size_t i = 0; i < words; i++)
		expect(what, words * 8, got[i], word(sender, rank, i, round));
}

static uint64_t *room(size_t words)
{
	uint64_t *p = calloc(words, 8);

	if (!p) {
		perror("mpi_test");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	return p;
}

/* Each rank sends to the next one and receives from the one before. */
static void ring(size_t bytes, unsigned round)
{
	size_t words = bytes / 8;
	uint64_t *out = room(words), *in = room(words);
	int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;

	fill(out, words, next, round);
	MPI_Sendrecv(out, (int)words, MPI_UINT64_T, next, (int)round, in,
		     (int)words, MPI_UINT64_T, MPI_ANY_SOURCE, (int)round,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	compare("message", in, words, last, round);
	free(out);
	free(in);
}

static void allreduce(size_t bytes, unsigned round)
{
	size_t words = bytes / 8;
	uint64_t *out = room(words), *in = room(words);

	fill(out, words, 0, round);
	MPI_Allreduce(out, in, (int)words, MPI_UINT64_T, MPI_SUM,
		      MPI_COMM_WORLD);
	for (size_t i = 0; i < words; i++) {
		uint64_t sum = 0;

		for (int from = 0; from < ranks; from++)
			sum += word(from, 0, i, round);
		expect("allreduce", bytes, in[i], sum);
	}
	free(out);
	free(in);
}

/* MPI_Alltoall: each rank sends @bytes in all, divided among the ranks. */
static void alltoall(size_t bytes, unsigned round)
{
	size_t words = bytes / 8 / (size_t)ranks;
	uint64_t *out, *in;

	if (words == 0)
		words = 1;
	out = room(words * (size_t)ranks);
	in = room(words * (size_t)ranks);
	for (int to = 0; to < ranks; to++)
		fill(out + words * (size_t)to, words, to, round);
	MPI_Alltoall(out, (int)words, MPI_UINT64_T, in, (int)words,
		     MPI_UINT64_T, MPI_COMM_WORLD);
	for (int from = 0; from < ranks; from++)
		compare("alltoall", in + words * (size_t)from, words, from,
			round);
	free(out);
	free(in);
}

/* Put into the window of the next rank, and get the bytes back. */
static void put_and_get(size_t bytes, unsigned round)
{
	size_t words = bytes / 8;
	uint64_t *out = room(words), *back = room(words), *base = room(words);
	int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
	MPI_Win window;

	MPI_Win_create(base, (MPI_Aint)bytes, 8, MPI_INFO_NULL, MPI_COMM_WORLD,
		       &window);
	fill(out, words, next, round);
	MPI_Win_fence(0, window);
	MPI_Put(out, (int)words, MPI_UINT64_T, next, 0, (int)words,
		MPI_UINT64_T, window);
	MPI_Win_fence(0, window);
	compare("MPI_Put", base, words, last, round);
	MPI_Win_fence(0, window);

	MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window);
	MPI_Get(back, (int)words, MPI_UINT64_T, next, 0, (int)words,
		MPI_UINT64_T, window);
	MPI_Win_unlock(next, window);
	for (size_t i = 0; i < words; i++)
		expect("MPI_Get", bytes, back[i], out[i]);
	MPI_Win_free(&window);
	free(base);
	free(out);
	free(back);
}

/*
 * All ranks add to the same words of rank 0. Then every rank except rank 0
 * changes the last word by MPI_Compare_and_swap; with Open MPI 4.1.4's shared
 * memory rank 0 would crash, because it would be its own target.
 */
static void accumulate(void)
{
	enum { TIMES = 50 };
	uint64_t one = 1, seen, sum = 0, *base;
	MPI_Win window;

	MPI_Win_allocate(rank == 0 ? 3 * 8 : 0, 8, MPI_INFO_NULL,
			 MPI_COMM_WORLD, &base, &window);
	if (rank == 0) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
		memset(base, 0, 3 * 8);
		base[2] = 1;
		MPI_Win_unlock(0, window);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, window);
	for (int i = 0; i < TIMES; i++) {
		MPI_Fetch_and_op(&one, &seen, MPI_UINT64_T, 0, 0, MPI_SUM,
				 window);
		MPI_Accumulate(&one, 1, MPI_UINT64_T, 0, 1, 1, MPI_UINT64_T,
			       MPI_SUM, window);
		MPI_Win_flush(0, window);
		sum += seen;
	}
	for (uint64_t want = (uint64_t)rank; want;) {
		uint64_t next = want + 1, have;

		MPI_Compare_and_swap(&next, &want, &have, MPI_UINT64_T, 0, 2,
				     window);
		MPI_Win_flush(0, window);
		if (have == want)
			break;
	}
	MPI_Win_unlock_all(window);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0) {
		uint64_t total = (uint64_t)ranks * TIMES;

		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
		expect("MPI_Fetch_and_op", 8, base[0], total);
		expect("MPI_Accumulate", 8, base[1], total);
		expect("MPI_Compare_and_swap", 8, base[2], (uint64_t)ranks);
		MPI_Win_unlock(0, window);
	}
	MPI_Allreduce(&sum, &seen, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	sum = (uint64_t)ranks * TIMES;
	expect("sum of what MPI_Fetch_and_op fetched", 8, seen,
	       sum * (sum - 1) / 2);
	MPI_Win_free(&window);
}

static const struct {
	const char *name;
	void (*run)(size_t bytes, unsigned round);
	bool of_all; /* every rank exchanges data with every other */
} kinds[] = {
	{ "message", ring, false },
	{ "allreduce", allreduce, true },
	{ "alltoall", alltoall, true },
	{ "put and get", put_and_get, false },
};

int main(int argc, char **argv)
{
	unsigned long all[2], mine[2];
	bool sums_alone;
	size_t largest;
	unsigned round = 1;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	largest = argc > 1 ? strtoul(argv[1], NULL, 0) : 1 << 20;
	sums_alone = argc > 2 && strcmp(argv[2], "sums") == 0;

	for (size_t bytes = SMALLEST; bytes <= largest; bytes *= STEP)
		for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
			if (!sums_alone || kinds[k].of_all)
				kinds[k].run(bytes, round++);
	if (!sums_alone)
		accumulate();

	mine[0] = checked;
	mine[1] = wrong;
	MPI_Allreduce(mine, all, 2, MPI_UNSIGNED_LONG, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d ranks: %lu words compared, %lu wrong\n", ranks,
		       all[0], all[1]);
	MPI_Finalize();
	return all[1] != 0;
}
