/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the tests of the verbs front end: a device over the fake engine
 * with one object of each common kind, and helpers that core would do in a real
 * program. A test that needs the objects is registered with ON_BENCH().
 */
#ifndef TESTS_ABI_FRONT_BENCH_H
#define TESTS_ABI_FRONT_BENCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <endian.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/guard.h"
#include "core/rss.h"
#include "core/sge.h"
#include "core/transport.h"
#include "front/verbs/front.h"
#include "tests/abi/fake_engine.h"

/* depth of the send queue and of the receive queue of bench.qp */
#define DEPTH 4

struct bench {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp; /* an RC queue pair in RESET */
	struct ibv_qp_ex *ex;
	struct vb_qp *core; /* the object of @qp in the room core/ */
};

/* Open the first device that ibv_get_device_list() returns. */
struct ibv_context *open_first(void);
int set_up(void **state);
int tear_down(void **state);
#define ON_BENCH(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

/* Set the queue pair's state without a transition, which core would check. */
void put_in(struct bench *b, enum vb_qp_state s);
/* Returns how many work requests were ever posted to the send queue. */
uint32_t posted(const struct bench *b);
/* Add the completion of a RECV with @wr_id to the completion queue of @b. */
void push(struct bench *b, uint64_t wr_id);
void sleep_ms(long ms);

/* A program's allocators for a parent domain, and their behaviour. */
struct allocator {
	unsigned taken, given;
	/* what the allocator does: OWN returns the program's memory, DEFAULT
	 * leaves it to the library, NONE returns no memory */
	enum { OWN, DEFAULT, NONE } how;
};
extern struct allocator allocator;
void *take(struct ibv_pd *pd, void *context, size_t size, size_t align,
	   uint64_t type);
void give(struct ibv_pd *pd, void *context, void *at, uint64_t type);

/* The groups of tests, one in each file. They return how many tests failed. */
int front_device_tests(void);
int front_memory_tests(void);
int front_queue_tests(void);
int front_post_tests(void);
int front_xrc_tests(void);
int front_flow_tests(void);
int front_pages_tests(void);

#endif
