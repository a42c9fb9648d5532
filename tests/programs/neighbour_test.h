/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of neighbour_test: the two sides, and the cases. */
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

#define BYTES (8u << 20)
#define LONG  (4u << 20)
#define SMALL 64u
#define SENDS (64u << 10)
/* Bytes of one long message beside which other queue pairs need their turn. */
#define HOARD  (256u << 20)
#define DEPTH  16
#define ROUNDS 6
/* Longest time, in seconds, that a verb may take on any machine. */
#define SOON 1.5
/* The name of a mapping that other processes cannot access by system calls. */
#define UNREACHED "[vvar]"

extern struct rc_options options;
extern int port;

struct hello {
	struct rc_address at;
	uint64_t address;
	uint32_t rkey;
};

/* One of the two sides, A or B. */
struct side {
	struct rc_device device;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *memory;
	size_t bytes;
	int tcp;
	pid_t other; /* in A: the process of B */
	struct hello peer;
};
extern bool is_broken, is_skipped;

/* Fail the case if @truth is false. Only the first failure is reported. */
void expect(bool truth, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Skip the case, because this host does not allow it; @why says what is
 * missing. */
void skip(const char *why);
/* Add text, such as measured figures, to the line that is printed for the
 * case. */
void remark(const char *format, ...) __attribute__((format(printf, 1, 2)));
extern char remarks[80];
void nap(unsigned us);

/* Make a queue pair in state INIT, to which receives may be posted. */
struct ibv_qp *open_qp(struct side *s, unsigned depth);
void meet(struct side *s, uint32_t key);

/* Fork B, which connects to A by meet() and runs @what until it is killed. A
 * returns without calling meet(). */
void begin(struct side *a, size_t bytes, void (*what)(struct side *b));
void end(struct side *a);
int post(struct side *s, enum ibv_wr_opcode op, uint32_t bytes);
void post_recv(struct side *s, struct ibv_qp *qp, uint32_t bytes);
void write_on(struct side *b);
void send_on(struct side *b);
void stop(struct side *a);
void await_fire(const volatile uint8_t *at);

/* A marks its memory and lets the stopped B continue. No late write of B may
 * change the marked memory. */
void stays_ours(struct side *a);
void to_err(struct ibv_qp *qp);

/*
 * B is stopped somewhere before, in or behind a WRITE; A takes the resources of
 * the WRITE away.
 */

enum taken { TAKE_REGION, TAKE_WINDOW, TO_ERR, TAKE_QP };
void take(struct side *a, enum taken what, struct ibv_mw *window);
void region_of_stopped(void);
void window_of_stopped(void);
void error_of_stopped(void);
void qp_of_stopped(void);

/*
 * Long SENDs, which both ends copy. Every receive completes, although B is
 * copying a part, and A's other connections continue.
 */

/* Two queue pairs of A that are connected to each other. */
struct loop {
	struct ibv_cq *cq;
	struct ibv_qp *from, *to;
};
void open_loop(struct side *a, struct loop *l);
void close_loop(struct loop *l);

/* Send a message and wait for its two completions. Returns the duration in
 * seconds. */
double go_round(struct side *a, struct loop *l);
/* Find the first lane that this program maps. NULL: there is none. */
uint8_t *find_lane(size_t *len);
void receives_of_stopped(void);
void turns_beside_much(void);
/* Like turns_beside_much(), but the long message matches a tag of A. */
void turns_beside_tagged(void);
void we_are_stopped(void);
void retries_are_short(void);
void memory_is_scribbled_on(void);
void memory_of_a_device(void);
/* Find memory of this process that no system call of another process can
 * access. NULL: there is none. */
void *find_unreached(void);

/* While B's WRITE or READ waits for a page of B's own memory, A takes its
 * memory away. */
void write_from_late_memory(void);
void read_into_late_memory(void);

/* Memory of B whose pages come late, and the thread that supplies them. */
#define LATE (64u << 10)
struct late {
	struct side *side;
	uint8_t *at;
	int fd;
	pthread_t supplier;
	/* called when a thread has asked for a page; NULL: nothing */
	void (*when_asked)(struct side *b);
};
void map_late(struct late *l);
/* Make the pages of @l come late from now on. When a thread needs one, the
 * supplier sends A a byte, and supplies all pages when A sends a byte. Returns
 * false if the kernel does not permit userfaultfd. */
bool open_late(struct late *l, struct side *b);

/* A's request waits for a page of B while B is stopped. */
void write_to_lent_memory(void);
/* Like write_to_lent_memory(), while packets of B arrive for the same queue
 * pair. */
void packets_beside_lent_memory(void);
void read_from_lent_memory(void);
void send_from_lent_memory(void);
/* B's page is late before B posts its SEND, so B waits for it, and A does
 * not. */
void sender_waits_for_its_memory(void);

#endif
