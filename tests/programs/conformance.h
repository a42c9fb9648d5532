/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of conformance_test share: the two ends, the types of queue
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
	int need, may; /* besides IBV_QP_STATE */
};

#define COUNT(a)  (sizeof(a) / sizeof((a)[0]))
#define BYTES	  16384
#define QKEY	  0x11111111
#define GRH	  40
#define WAIT	  10.0
#define QUIET	  0.02 /* seconds in which what must not come would have */
#define NO_STATUS (-1)
#define NO_EVENT  (-1)
#define STATES	  7
#define TYPES	  6
#define ANY_MTU	  IBV_MTU_1024
#define ALL_MASKS 22 /* IBV_QP_STATE to IBV_QP_DEST_QPN, without gaps */
extern struct rc_options options;
extern struct rc_device device;
extern struct ibv_cq *cq_a, *cq_b;
extern struct ibv_ah *ah;
extern uint8_t *memory;
extern struct ibv_mr *mr, *read_only, *gone;
extern struct ibv_xrcd *xrcd, *other_xrcd;
extern struct ibv_srq *srq; /* of XRC, its completions in cq_b */
extern bool is_a;
extern bool is_b;
extern int wire;

/* What a must know of b's memory, and each of the other's address. */
struct far {
	union ibv_gid gid;
	uint64_t memory, gone;
	uint32_t rkey, read_only, gone_rkey;
};
extern struct far far;

/* And of the other's queue pair of a row. */
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

/* What was judged since the last line is one case. */
void line(const char *what, const char *type);
struct ibv_qp *make_qp(enum ibv_qp_type type, struct ibv_cq *cq);
struct ibv_ah_attr way(void);

/* Values that are good for every attribute. */
struct ibv_qp_attr good_values(uint32_t peer);
const struct move *find_move(const struct type *t, int from, int to);
int try_move(struct ibv_qp *qp, int from, int to, int mask);
bool is_rnic(void);
int state_of(struct ibv_qp *qp);
void judge_moves(const struct type *t);

/* What is wrong: of a row, several things may be. */
enum wrong {
	NOTHING = 0,
	RKEY = 1 << 0,	      /* no such key */
	RANGE = 1 << 1,	      /* beyond the region */
	RIGHT = 1 << 2,	      /* the region does not allow it */
	QP_RIGHT = 1 << 3,    /* the queue pair does not */
	ALIGNMENT = 1 << 4,   /* of an atomic */
	REMOTE_PAGE = 1 << 5, /* the region is there, its page is not */
	SHORT = 1 << 6,	      /* the receive is too small */
	RECV_KEY = 1 << 7,    /* the receive's key is none */
	NO_RECV = 1 << 8,
	LKEY = 1 << 9,
	LOCAL_RANGE = 1 << 10,
	LOCAL_RIGHT = 1 << 11, /* data comes to a region that is read only */
	LOCAL_PAGE = 1 << 12,
	PEER_THERE = 1 << 13, /* no fault: b goes to b_state only */
	INV_KEY = 1 << 14,    /* SEND with invalidate of what cannot be */
	PSN_AHEAD = 1 << 15,
	MTU = 1 << 16,	    /* more in a packet than the responder's path MTU */
	NO_READS = 1 << 17, /* the responder promised none */
	WRONG_QKEY = 1 << 18,
	TOO_LONG = 1 << 19,   /* for a datagram */
	MANY = 1 << 20,	      /* no fault: more than one packet */
	LONG = 1 << 21,	      /* no fault: more than a record of near/ */
	NO_SRQ = 1 << 22,     /* of XRC: no such shared queue */
	OTHER_XRCD = 1 << 23, /* of XRC: that of another domain */
};

enum op { WRITE, WRITE_IMM, READ, ATOMIC, STORE, SEND, SEND_INV };
void connect_to(struct ibv_qp *qp, const struct type *t,
		struct ibv_qp_attr attr);
int status_within(struct ibv_cq *cq, double limit);
void judge_faults(const struct type *ta, const struct type *tb,
		  const char *name);
void judge_tags(void);

#endif
