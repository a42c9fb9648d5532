/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of tags_test: the messages, and the queue pairs. */
#ifndef TESTS_PROGRAMS_TAGS_TEST_H
#define TESTS_PROGRAMS_TAGS_TEST_H

#include <infiniband/tm_types.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rc.h"

#define MESSAGES 6000u
/* Number of connections with tag matching. One more connection without it
 * carries the READs that the program posts itself. */
#define LINKS	 3u
#define SLOTS	 12u
#define LONGEST	 60000u
#define RECEIVE	 4096u
#define RECEIVES 64u
#define HEADERS	 (sizeof(struct ibv_tmh) + sizeof(struct ibv_rvh))
/* room for unexpected messages, more than can wait at a time */
#define STRAYS	64u
#define AT_WORK 8u /* the most messages that the sender has under way */
#define DELETED (1ull << 32)

struct plan {
	unsigned link;
	uint8_t op; /* opcode of the tag matching header, an enum ibv_tmh_op */
	bool tight; /* true: the buffer is too small for the rendezvous data */
	uint64_t tag;
	uint32_t length;
};

enum state { TO_COME, LISTED, LEAVING, MATCHED, READING, DONE };

/* An unexpected message: no tagged buffer matched it on arrival. */
struct stray {
	bool waits;
	uint64_t tag;
	uint32_t nth, length;
	uint8_t bytes[RECEIVE];
};
extern bool lossy;
extern struct ibv_cq *cq, *plain_cq;
extern struct ibv_cq_ex *tag_cq;
extern struct ibv_srq *srq;
extern struct ibv_qp *qps[LINKS + 1];
extern struct ibv_mr *mr;
extern struct plan plans[MESSAGES];

/* A registered memory region with its buffers. */
struct mem {
	uint8_t data[SLOTS][LONGEST];
	uint8_t staging[RECEIVES][RECEIVE];
};
extern struct mem mem;
void fill(unsigned nth, uint8_t *bytes, uint32_t len);
void compare(unsigned nth, const uint8_t *bytes, uint32_t len);
struct ibv_tmh header(uint8_t op, unsigned nth);
void post_send(struct ibv_qp *qp, uint64_t wr_id, enum ibv_wr_opcode opcode,
	       void *at, uint32_t len, const struct ibv_rvh *there);
void post_fin_receive(unsigned link);
void send_all(void);
void run(struct ibv_ops_wr *wr);
void receive_all(void);
void receive_faults(int tcp);
void send_faults(int tcp);

#endif
