/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of neighbour_test share: the two sides, and the cases. */
#ifndef TESTS_PROGRAMS_NEIGHBOUR_TEST_H
#define TESTS_PROGRAMS_NEIGHBOUR_TEST_H

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rc.h"

#define BYTES	  (8u << 20)
#define LONG	  (4u << 20)
#define SMALL	  64u
#define SENDS	  (64u << 10)
#define HOARD	  (256u << 20) /* what one WRITE of the busy case moves */
#define DEPTH	  16
#define ROUNDS	  6
#define SOON	  1.5	   /* s: a verb returns within, on any machine */
#define UNREACHED "[vvar]" /* memory that only its own processor touches */

extern struct rc_options options;
extern int port;

struct hello {
	struct rc_address at;
	uint64_t address;
	uint32_t rkey;
};

/* One of the two. */
struct side {
	struct rc_device device;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *memory;
	size_t bytes;
	int tcp;
	pid_t other; /* B, in A */
	struct hello peer;
};
extern bool is_broken;

/* The first thing that is not so ends the case. */
void expect(bool truth, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void nap(unsigned us);

/* Receives may be posted. */
struct ibv_qp *open_qp(struct side *s, unsigned depth);
void meet(struct side *s, uint32_t key);

/* B does @what until it is killed; A goes on. */
void begin(struct side *a, size_t bytes, void (*what)(struct side *b));
void end(struct side *a);
int post(struct side *s, enum ibv_wr_opcode op, uint32_t bytes);
void post_recv(struct side *s, struct ibv_qp *qp, uint32_t bytes);
void write_on(struct side *b);
void send_on(struct side *b);
void stop(struct side *a);
void await_fire(const volatile uint8_t *at);

/* It is ours: nobody writes there any more, whatever B does when it goes on. */
void stays_ours(struct side *a);
void to_err(struct ibv_qp *qp);

/*
 * B is stopped somewhere in a WRITE, or before or behind it; A takes away what
 * that needs.
 */

enum taken { TAKE_REGION, TAKE_WINDOW, TO_ERR, TAKE_QP };
void take(struct side *a, enum taken what, struct ibv_mw *window);
void region_of_stopped(void);
void window_of_stopped(void);
void error_of_stopped(void);
void qp_of_stopped(void);

/*
 * Long SENDs, which both ends copy. Every receive comes back, though B has one
 * in hand, and connections of A's own go on.
 */

/* Two queue pairs of A's, connected to each other. */
struct loop {
	struct ibv_cq *cq;
	struct ibv_qp *from, *to;
};
void open_loop(struct side *a, struct loop *l);
void close_loop(struct loop *l);

/* A message and its two completions. Returns how long that took. */
double go_round(struct side *a, struct loop *l);
void receives_of_stopped(void);
extern struct side *busy;
void turns_beside_much(void);
void we_are_stopped(void);
void retries_are_short(void);
void memory_is_scribbled_on(void);
void memory_of_a_device(void);

#endif
