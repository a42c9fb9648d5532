/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The mean time of a collective operation of MPI. bench/mpi.sh compiles it.
 *
 *	collectives allreduce|alltoall BYTES ROUNDS
 *
 * BYTES is what each rank gives to the sum, or to each other rank. Each rank
 * checks what the last round gave it. Rank 0 prints microseconds a round.
 */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;

/* Returns the value of every word that rank @from gives in round @round. */
static long given(int from, int round)
{
	return from * 1000L + round;
}

static void fill(long *to, size_t words, int round)
{
	for (size_t i = 0; i < words; i++)
		to[i] = given(rank, round);
}

static void one_round(int sums, const long *out, long *in, int words)
{
	if (sums)
		MPI_Allreduce(out, in, words, MPI_LONG, MPI_SUM,
			      MPI_COMM_WORLD);
	else
		MPI_Alltoall(out, words, MPI_LONG, in, words, MPI_LONG,
			     MPI_COMM_WORLD);
}

/* Returns how many words of @in differ from the right result of round
 * @round. */
static size_t wrong(int sums, const long *in, size_t words, int round)
{
	size_t bad = 0;
	long sum = 0;

	for (int from = 0; from < ranks; from++)
		sum += given(from, round);
	for (size_t i = 0; i < (sums ? words : words * ranks); i++)
		bad += in[i] != (sums ? sum : given((int)(i / words), round));
	return bad;
}

int main(int argc, char **argv)
{
	int sums, rounds;
	size_t words, bad;
	long *out, *in;
	double began;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc != 4)
		MPI_Abort(MPI_COMM_WORLD, 2);
	sums = !strcmp(argv[1], "allreduce");
	words = strtoul(argv[2], NULL, 0) / sizeof(*out);
	rounds = atoi(argv[3]);
	out = malloc(words * ranks * sizeof(*out));
	in = malloc(words * ranks * sizeof(*in));
	if (words < 1 || rounds < 1 || !out || !in)
		MPI_Abort(MPI_COMM_WORLD, 2);
	fill(out, words * ranks, 0);
	for (int i = 0; i < rounds / 10; i++)
		one_round(sums, out, in, (int)words);
	MPI_Barrier(MPI_COMM_WORLD);
	began = MPI_Wtime();
	for (int i = 1; i <= rounds; i++) {
		out[0] = given(rank, i);
		one_round(sums, out, in, (int)words);
	}
	if (rank == 0)
		printf("%.2f us\n", (MPI_Wtime() - began) * 1e6 / rounds);
	fill(out, words * ranks, rounds + 1);
	one_round(sums, out, in, (int)words);
	bad = wrong(sums, in, words, rounds + 1);
	if (bad)
		printf("rank %d: %zu words wrong\n", rank, bad);
	MPI_Finalize();
	return bad != 0;
}
