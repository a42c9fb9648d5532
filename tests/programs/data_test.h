/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of data_test: operations, steps, and the run. */
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
/* bytes before and behind a target that must not change */
#define AROUND 4096

enum kind { WRITE, WRITE_IMM, SEND, SEND_IMM, READ, SWAP, ADD, KINDS };

struct kind_row {
	const char *name;
	enum ibv_wr_opcode opcode;
	enum ibv_wc_opcode sent;
	bool receives, atomic;
};
extern const struct kind_row kinds[KINDS];

/* Pieces of a memory area that one message uses, in any order. */
struct pieces {
	unsigned count;
	uint32_t total;
	struct {
		uint32_t at, len;
	} piece[MAX_SGES];
};

struct op {
	enum kind kind;
	/* true: the client posts the operation; false: the server */
	bool by_client;
	bool signaled, fence, inlined;
	uint32_t len;
	struct pieces local;  /* pieces in the poster's "out" area */
	struct pieces remote; /* pieces in the peer's "in" area */
	uint32_t imm;
	uint64_t operand, compare, before;
	/* seed from which the bytes of the message are drawn */
	uint64_t content;
};

struct step {
	unsigned count;
	/* true: wait for completions on the channel; false: poll */
	bool sleeps;
	/* true: post the RECVs when the peer is already sending */
	bool late_receives;
	struct op op[MAX_OPS];
};

/* Memory that a peer or a local operation changes, and its expected
 * contents. */
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
	unsigned number; /* number of the present step, from 0 */
	/* events of the channel that the program has not acknowledged */
	unsigned unacked;
	uint64_t moved, done[KINDS];
	uint8_t *scratch;
	/* Ids and flush region of the option -R (connect by rdma_cm). */
	struct rdma_cm_id *listener, *id;
	struct ibv_mr *flush;
	uint64_t flushed;
};
extern struct run run;
unsigned most_sges(void);

/* Draw the operations of a step. They use disjoint slices of the areas. */
void draw_step(struct step *s);
bool mine(const struct op *op);

/* Returns the bytes that the operation @op moves, in the order of the wire. */
const uint8_t *content(const struct op *op);

/* Before an operation starts, write the bytes that it will read or change. */
void prepare(const struct op *op);

/* Change the model of the memory as @op will change the memory. */
void expect(const struct op *op);
void fail(const struct op *op, const char *what);
void compare(const struct op *op, const struct area *a, uint32_t from,
	     uint32_t to);
void check(const struct op *op);

/* Wait until WRITEs have arrived. With iWARP a WRITE is complete when it was
 * sent; its bytes have arrived when a READ behind it is answered (RFC 5040
 * s5.5). */
void flush(const struct step *s);
void set_up(void);
void tear_down(void);

#endif
