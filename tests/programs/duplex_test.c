/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two threads use one socket of rsockets: one waits for an answer, which comes
 * only after the other one has sent.
 *
 *	duplex_test			echoes
 *	duplex_test -s ADDRESS		sends, and receives
 *
 * The thread that waits must not delay the thread that sends. The test measures
 * how long sending takes: the median of many calls, and on a busy machine the
 * best of several medians.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <arpa/inet.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PORT	  7499
#define ROUNDS	  12
#define EXCHANGES 400
#define MOST_US	  150

static sem_t heard;
static int sock;

static void must(int good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void *listen_to_echoes(void *arg)
{
	char c;

	while (rrecv(sock, &c, 1, 0) == 1)
		must(sem_post(&heard) == 0, "sem_post");
	return arg;
}

static int compare(const void *a, const void *b)
{
	double d = *(const double *)a - *(const double *)b;

	return d < 0 ? -1 : d > 0;
}

/* Returns the median time of a call of rsend(), in microseconds, while the
 * other thread waits. */
static double round_of_sends(void)
{
	double took[EXCHANGES];

	for (int i = 0; i < EXCHANGES; i++) {
		/* after 50 us the other thread has begun to wait for the
		 * answer */
		double from = now_us() + 50;

		while (now_us() < from)
			;
		from = now_us();
		must(rsend(sock, "x", 1, 0) == 1, "rsend");
		took[i] = now_us() - from;
		must(sem_wait(&heard) == 0, "sem_wait");
	}
	qsort(took, EXCHANGES, sizeof(*took), compare);
	return took[EXCHANGES / 2];
}

static int ask(struct sockaddr_in *to)
{
	double best = 1e9, us;
	pthread_t listener;

	must(rconnect(sock, (struct sockaddr *)to, sizeof(*to)) == 0,
	     "rconnect");
	must(sem_init(&heard, 0, 0) == 0, "sem_init");
	must(!pthread_create(&listener, NULL, listen_to_echoes, NULL),
	     "pthread_create");
	for (int i = 0; i < ROUNDS && best > MOST_US; i++) {
		us = round_of_sends();
		best = us < best ? us : best;
	}
	rshutdown(sock, SHUT_RDWR);
	pthread_join(listener, NULL);
	printf("rsend() beside a thread that waits: %.1f us\n", best);
	return best > MOST_US;
}

static int echo(struct sockaddr_in *at)
{
	int s, one = 1;
	char c;

	rsetsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	must(rbind(sock, (struct sockaddr *)at, sizeof(*at)) == 0, "rbind");
	must(rlisten(sock, 1) == 0, "rlisten");
	s = raccept(sock, NULL, NULL);
	must(s >= 0, "raccept");
	while (rrecv(s, &c, 1, 0) == 1)
		must(rsend(s, &c, 1, 0) == 1, "rsend");
	rclose(s);
	return 0;
}

int main(int argc, char **argv)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(PORT) };
	int asks = argc == 3 && strcmp(argv[1], "-s") == 0, status;

	must(!asks || inet_pton(AF_INET, argv[2], &a.sin_addr) == 1, "address");
	sock = rsocket(AF_INET, SOCK_STREAM, 0);
	must(sock >= 0, "rsocket");
	status = asks ? ask(&a) : echo(&a);
	rclose(sock);
	return status;
}
