/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What waking another process costs here, with nothing else in the way: two
 * processes wake each other in turn. Prints the median of half a round trip,
 * in microseconds, as perftest counts latency.
 *
 *	wakeup pipe|eventfd TIMES
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct way {
	/* the process reads from @from to wait, and writes to @to to wake the
	 * other; for an eventfd both are one descriptor */
	int from, to;
};

static void must(int truth, const char *what)
{
	if (truth)
		return;
	perror(what);
	exit(1);
}

static struct way make_way(const char *kind)
{
	int fds[2];

	if (!strcmp(kind, "pipe")) {
		must(!pipe(fds), "pipe");
		return (struct way){ fds[0], fds[1] };
	}
	fds[0] = eventfd(0, 0);
	must(fds[0] >= 0, "eventfd");
	return (struct way){ fds[0], fds[0] };
}

static void give(int fd)
{
	uint64_t one = 1;

	must(write(fd, &one, sizeof(one)) == sizeof(one), "write");
}

static void take(int fd)
{
	uint64_t one;

	must(read(fd, &one, sizeof(one)) == sizeof(one), "read");
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	int times = argc == 3 ? atoi(argv[2]) : 0;
	struct way there, back;
	double *took, begin;

	if (times <= 0)
		return 2;
	there = make_way(argv[1]);
	back = make_way(argv[1]);
	took = calloc((size_t)times, sizeof(*took));
	must(took != NULL, "calloc");
	if (fork() == 0) {
		for (int i = 0; i < times; i++) {
			take(there.from);
			give(back.to);
		}
		_exit(0);
	}
	for (int i = 0; i < times; i++) {
		begin = now();
		give(there.to);
		take(back.from);
		took[i] = (now() - begin) / 2;
	}
	wait(NULL);
	qsort(took, (size_t)times, sizeof(*took), compare);
	printf("%.3f\n", took[times / 2]);
	return 0;
}
