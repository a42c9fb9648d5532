/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of data_test share: operations, steps, and the run. */
#ifndef TESTS_PROGRAMS_DATA_TEST_H
#define TESTS_PROGRAMS_DATA_TEST_H

#include <arpa/inet.h>
#include <endian.h>
#include <netdb.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rc.h"

#define AREA	 (20u << 20)
#define MAX_OPS	 16
#define MAX_SGES 32
#define SIW_SGES 6
#define INLINE	 256
#define AROUND	 4096 /* bytes compared before and after a target */

enum kind { WRITE, WRITE_IMM, SEND, SEND_IMM, READ, SWAP, ADD, KINDS };

struct kind_row {
	const char *name;
	enum ibv_wr_opcode opcode;
	enum ibv_wc_opcode sent;
	bool receives, atomic;
};
extern const struct kind_row kinds[KINDS];

/* Some bytes of an area, in order or not. */
struct pieces {
	unsigned count;
	uint32_t total;
	struct {
		uint32_t at, len;
	} piece[MAX_SGES];
};

struct op {
	enum kind kind;
	bool by_client; /* who posts it */
	bool signaled, fence, inlined;
	uint32_t len;
	struct pieces local;  /* in the initiator's "out" area */
	struct pieces remote; /* in the target's "in" area */
	uint32_t imm;
	uint64_t operand, compare, before;
	uint64_t content; /* seed of the bytes that move */
};

struct step {
	unsigned count;
	bool sleeps;	    /* wait for completions by channel */
	bool late_receives; /* post them when the peer is sending already */
	struct op op[MAX_OPS];
};

/* Memory that a peer or a local operation changes, and what it must hold. */
struct area {
	uint8_t *is, *must_be;
	struct ibv_mr *mr;
};

struct run {
	struct rc_options rc;
	bool client, never_fenced, by_cm, with_siw;
	uint64_t seed;
	unsigned steps;
	double limit;
	uint32_t max_len;
	struct rc_device device;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	int tcp;
	struct area in, out;
	uint64_t peer_in;
	uint32_t peer_rkey;
	unsigned number;  /* of the step */
	unsigned unacked; /* channel events */
	uint64_t moved, done[KINDS];
	uint8_t *scratch;
	/* -R */
	struct rdma_cm_id *listener, *id;
	struct ibv_mr *flush;
	uint64_t flushed;
};
extern struct run run;
unsigned most_sges(void);

/* Operations of a step use slices of the areas that do not meet. */
void draw_step(struct step *s);
bool mine(const struct op *op);

/* The bytes that op moves, as a stream. */
const uint8_t *content(const struct op *op);

/* Before anything moves: what is to be read or changed is put in place. */
void prepare(const struct op *op);

/* What memory must hold once op is done. */
void expect(const struct op *op);
void fail(const struct op *op, const char *what);
void compare(const struct op *op, const struct area *a, uint32_t from,
	     uint32_t to);
void check(const struct op *op);

/* With iWARP a WRITE is complete when it has left; it is there when a READ
 * behind it is answered (RFC 5040 s5.5). */
void flush(const struct step *s);
void set_up(void);
void tear_down(void);

#endif
