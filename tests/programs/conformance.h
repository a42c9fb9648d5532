/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of conformance_test: the two ends, the types of queue
 * pairs, and the verdicts. */
#ifndef TESTS_PROGRAMS_CONFORMANCE_H
#define TESTS_PROGRAMS_CONFORMANCE_H

#include <infiniband/tm_types.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rc.h"
#include "stream.h"

struct move {
	unsigned types;
	enum ibv_qp_state from, to;
	/* attributes that the move needs, and may have, besides IBV_QP_STATE */
	int need, may;
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define BYTES	 16384
#define QKEY	 0x11111111
#define GRH	 40
#define WAIT	 10.0
/* after this many seconds without a completion, the test expects no more */
#define QUIET	  0.02
#define NO_STATUS (-1)
#define NO_EVENT  (-1)
#define STATES	  7
#define TYPES	  6
#define ANY_MTU	  IBV_MTU_1024
/* number of attribute bits, IBV_QP_STATE to IBV_QP_DEST_QPN */
#define ALL_MASKS 22
extern struct rc_options options;
extern struct rc_device device;
extern struct ibv_cq *cq_a, *cq_b;
extern struct ibv_ah *ah;
extern uint8_t *memory;
extern struct ibv_mr *mr, *read_only, *gone;
extern struct ibv_xrcd *xrcd, *other_xrcd;
extern struct ibv_srq *srq; /* the SRQ of XRC; its completions go to cq_b */
extern bool is_a;
extern bool is_b;
extern int wire;

/* What side a must know of side b's memory, and the address of each side. */
struct far {
	union ibv_gid gid;
	uint16_t lid;
	uint64_t memory, gone;
	uint32_t rkey, read_only, gone_rkey;
};
extern struct far far;

/* Numbers of the queue pair and SRQ of the peer in a row of the table. */
struct end {
	uint32_t qpn, srqn;
};
extern const char *const state_names[STATES];

enum { RC = 1, UC = 2, UD = 4, INI = 8, TGT = 16, IW = 32, XRC = INI | TGT };

struct type {
	unsigned bit;
	enum ibv_qp_type type;
	const char *name;
};
extern const struct type types[TYPES];
void verdict(bool good, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Print one line for a test case: whether all verdicts since the last call were
 * good. */
void line(const char *what, const char *type);
struct ibv_qp *make_qp(enum ibv_qp_type type, struct ibv_cq *cq);
struct ibv_ah_attr way(void);

/* Returns attributes that are valid for every transition. */
struct ibv_qp_attr good_values(uint32_t peer);
const struct move *find_move(const struct type *t, int from, int to);
int try_move(struct ibv_qp *qp, int from, int to, int mask);
bool is_rnic(void);
int state_of(struct ibv_qp *qp);
void judge_moves(const struct type *t);

/* What is wrong with a row's request: bits, of which a row may have several. */
enum wrong {
	NOTHING = 0,
	RKEY = 1 << 0, /* the request's rkey does not exist */
	/* the request's remote range exceeds the region */
	RANGE = 1 << 1,
	/* the region's access flags do not permit the operation */
	RIGHT = 1 << 2,
	/* the responder's queue pair does not permit the operation */
	QP_RIGHT = 1 << 3,
	ALIGNMENT = 1 << 4, /* the address of an atomic is no multiple of 8 */
	/* the region is registered, but its page is unmapped */
	REMOTE_PAGE = 1 << 5,
	SHORT = 1 << 6,	   /* the RECV is shorter than the message */
	RECV_KEY = 1 << 7, /* the RECV's lkey does not exist */
	NO_RECV = 1 << 8,
	LKEY = 1 << 9,
	LOCAL_RANGE = 1 << 10,
	/* the READ's data would go to a region without LOCAL_WRITE */
	LOCAL_RIGHT = 1 << 11,
	LOCAL_PAGE = 1 << 12,
	PEER_THERE = 1 << 13, /* no fault: only side b moves to b_state */
	/* SEND with invalidate names a key that cannot be invalidated */
	INV_KEY = 1 << 14,
	PSN_AHEAD = 1 << 15,
	MTU = 1 << 16,	    /* a packet exceeds the responder's path MTU */
	NO_READS = 1 << 17, /* the responder's queue pair permits no READs */
	WRONG_QKEY = 1 << 18,
	/* the message is longer than the MTU, too long for a datagram */
	TOO_LONG = 1 << 19,
	MANY = 1 << 20, /* no fault: the message has several packets */
	/* no fault: the message is longer than one record in shared memory */
	LONG = 1 << 21,
	/* XRC: the SRQ number of the request does not exist */
	NO_SRQ = 1 << 22,
	/* XRC: the SRQ belongs to another XRC domain */
	OTHER_XRCD = 1 << 23,
};

enum op { WRITE, WRITE_IMM, READ, ATOMIC, STORE, SEND, SEND_INV };
void connect_to(struct ibv_qp *qp, const struct type *t,
		struct ibv_qp_attr attr);
int status_within(struct ibv_cq *cq, double limit);
void judge_faults(const struct type *ta, const struct type *tb,
		  const char *name);
void judge_tags(void);

#endif
