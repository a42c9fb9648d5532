/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables. Two of the InfiniBand specification, row by row, over the public
 * calls: which moves of a queue pair's state take which attributes (IBA
 * 11.2.5.2, ibv_modify_qp(3)), and what follows from each fault (IBA 9.9.2,
 * 9.9.3, 11.6.2). Both are written down here from the specification, and not
 * from the library. A third: what becomes of messages with tags. Two queue
 * pairs, fresh ones for each row: of one process, or, but for tags, the second,
 * who answers, in a server's, which a client calls.
 *
 *	conformance_test [-d DEVICE] [-4|-6] [-p PORT] [HOST | -]
 *
 * "-": this is the server. An RNIC's tables are others: a stream, and no
 * program, leads to RTS, and what becomes of faults is what RFC 5040 and 5041
 * name them, in words of the same statuses. HOST is then its own address: both
 * ends are of this process.
 */
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

#define COUNT(a)  (sizeof(a) / sizeof((a)[0]))
#define BYTES	  16384
#define QKEY	  0x11111111
#define GRH	  40
#define WAIT	  10.0
#define QUIET	  0.02 /* seconds in which what must not come would have */
#define NO_STATUS (-1)
#define NO_EVENT  (-1)
#define STATES	  7
#define ANY_MTU	  IBV_MTU_1024
#define ALL_MASKS 22 /* IBV_QP_STATE to IBV_QP_DEST_QPN, without gaps */

static struct rc_options options = RC_OPTIONS;
static struct rc_device device;
static struct ibv_cq *cq_a, *cq_b;
static struct ibv_ah *ah;
static uint8_t *memory;
static struct ibv_mr *mr, *read_only, *gone;
static struct ibv_xrcd *xrcd, *other_xrcd;
static struct ibv_srq *srq; /* of XRC, its completions in cq_b */

/* Who asks, a, and who answers, b: which of them is in this process; a TCP
 * connection to the other, or -1: both are. */
static bool is_a = true, is_b = true;
static int wire = -1;

/* What a must know of b's memory, and each of the other's address. */
static struct far {
	union ibv_gid gid;
	uint64_t memory, gone;
	uint32_t rkey, read_only, gone_rkey;
} far;

/* And of the other's queue pair of a row. */
struct end {
	uint32_t qpn, srqn;
};

static const char *const state_names[STATES] = { "RESET", "INIT", "RTR", "RTS",
						 "SQD",	  "SQE",  "ERR" };

/*
 * Moves.
 */

#define ACCESS	IBV_QP_ACCESS_FLAGS
#define PKEY	IBV_QP_PKEY_INDEX
#define CUR	IBV_QP_CUR_STATE
#define RNR_TMR IBV_QP_MIN_RNR_TIMER
#define MIG	IBV_QP_PATH_MIG_STATE
#define CONNECT (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define ANSWER	(IBV_QP_MAX_DEST_RD_ATOMIC | RNR_TMR)
#define RETRIES (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY)
#define ASK	(RETRIES | IBV_QP_MAX_QP_RD_ATOMIC)

enum { RC = 1, UC = 2, UD = 4, INI = 8, TGT = 16, IW = 32, XRC = INI | TGT };

// clang-format off
static const struct type {
	unsigned bit;
	enum ibv_qp_type type;
	const char *name;
} types[] = {
	{ RC,  IBV_QPT_RC,	 "RC" },
	{ UC,  IBV_QPT_UC,	 "UC" },
	{ UD,  IBV_QPT_UD,	 "UD" },
	{ INI, IBV_QPT_XRC_SEND, "XRC_SEND" },
	{ TGT, IBV_QPT_XRC_RECV, "XRC_RECV" },
	{ IW,  IBV_QPT_RC,	 "an RNIC" },
};

#define TO_INIT	(PKEY | IBV_QP_PORT)
static const struct move {
	unsigned types;
	enum ibv_qp_state from, to;
	int need, may; /* besides IBV_QP_STATE */
} moves[] = {
	/* types	from		to		need */
	{ RC | UC | INI | TGT, IBV_QPS_RESET, IBV_QPS_INIT, TO_INIT | ACCESS, 0 },
	{ UD,		IBV_QPS_RESET, IBV_QPS_INIT, TO_INIT | IBV_QP_QKEY, 0 },
	{ RC | UC | INI | TGT, IBV_QPS_INIT, IBV_QPS_INIT, 0, TO_INIT | ACCESS },
	{ UD,		IBV_QPS_INIT, IBV_QPS_INIT, 0, TO_INIT | IBV_QP_QKEY },
	{ RC | TGT,	IBV_QPS_INIT, IBV_QPS_RTR, CONNECT | ANSWER,
							PKEY | ACCESS },
	{ UC | INI,	IBV_QPS_INIT, IBV_QPS_RTR, CONNECT, PKEY | ACCESS },
	{ UD,		IBV_QPS_INIT, IBV_QPS_RTR, 0, PKEY | IBV_QP_QKEY },
	{ RC,		IBV_QPS_RTR, IBV_QPS_RTS, ASK | IBV_QP_SQ_PSN,
							CUR | ACCESS | RNR_TMR | MIG },
	{ INI,		IBV_QPS_RTR, IBV_QPS_RTS, ASK | IBV_QP_SQ_PSN,
							CUR | ACCESS | MIG },
	{ TGT,		IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_TIMEOUT | IBV_QP_SQ_PSN,
							CUR | ACCESS | RNR_TMR | MIG },
	{ UC,		IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, CUR | ACCESS | MIG },
	{ UD,		IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, CUR | IBV_QP_QKEY },
	{ RC | TGT,	IBV_QPS_RTS, IBV_QPS_RTS, 0, CUR | ACCESS | RNR_TMR | MIG },
	{ UC | INI,	IBV_QPS_RTS, IBV_QPS_RTS, 0, CUR | ACCESS | MIG },
	{ UD,		IBV_QPS_RTS, IBV_QPS_RTS, 0, CUR | IBV_QP_QKEY },
	{ RC | UC | UD | INI | TGT, IBV_QPS_RTS, IBV_QPS_SQD, 0,
							IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ RC | TGT,	IBV_QPS_SQD, IBV_QPS_RTS, 0, CUR | ACCESS | RNR_TMR | MIG },
	{ UC | INI,	IBV_QPS_SQD, IBV_QPS_RTS, 0, CUR | ACCESS | MIG },
	{ UD,		IBV_QPS_SQD, IBV_QPS_RTS, 0, CUR | IBV_QP_QKEY },
	/* Table 96's last rows; what is optional there is left to adapters,
	 * and only what all of them take is asked for. */
	{ RC | UC | INI | TGT, IBV_QPS_SQD, IBV_QPS_SQD, 0,
							PKEY | IBV_QP_AV | ACCESS | MIG },
	{ UD,		IBV_QPS_SQD, IBV_QPS_SQD, 0, PKEY | IBV_QP_QKEY },
	{ UC,		IBV_QPS_SQE, IBV_QPS_RTS, 0, CUR | ACCESS },
	{ UD,		IBV_QPS_SQE, IBV_QPS_RTS, 0, CUR | IBV_QP_QKEY },
	/* What means something to InfiniBand alone may be given. */
	{ IW,		IBV_QPS_RESET, IBV_QPS_INIT, 0, TO_INIT | ACCESS },
	{ IW,		IBV_QPS_INIT, IBV_QPS_INIT, 0, TO_INIT | ACCESS },
	{ IW,		IBV_QPS_RTS, IBV_QPS_RTS, 0, CUR | ACCESS },
	{ IW,		IBV_QPS_RTS, IBV_QPS_SQD, 0,
							IBV_QP_EN_SQD_ASYNC_NOTIFY },
};

/* In SQD a connection may change what only it knows the meaning of. */
struct more {
	unsigned types;
	int mask;
};
static const struct more in_sqd[] = {
	{ RC | INI,	  RETRIES | IBV_QP_MAX_QP_RD_ATOMIC },
	{ RC | TGT,	  ANSWER },
	{ TGT,		  IBV_QP_TIMEOUT },
	{ RC | INI | TGT, IBV_QP_PORT | CUR },
};

/* Annex A14 leaves open what becomes of an attribute that only the other kind
 * of XRC queue pair has a use for; programs (perftest) set both kinds' for
 * both, and here it passes unheeded. */
static const struct more unheeded[] = {
	{ INI, ANSWER },
	{ TGT, IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC },
};
// clang-format on

static int judged, failed;

static void verdict(bool good, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void verdict(bool good, const char *format, ...)
{
	va_list args;

	judged++;
	if (good)
		return;
	failed++;
	printf("# ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
}

/* What was judged since the last line is one case. */
static void line(const char *what, const char *type)
{
	printf("%sok %s %s (%d checks)\n", failed ? "not " : "", what, type,
	       judged);
	fflush(stdout);
	judged = failed = 0;
}

static struct ibv_qp *make_qp(enum ibv_qp_type type, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = type,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { 16, 16, 2, 2, 0 },
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = device.pd,
	};

	if (type == IBV_QPT_XRC_RECV) {
		init = (struct ibv_qp_init_attr_ex){
			.qp_type = type,
			.comp_mask = IBV_QP_INIT_ATTR_XRCD,
			.xrcd = xrcd,
		};
	} else if (type == IBV_QPT_XRC_SEND) {
		init.recv_cq = NULL;
		init.cap.max_recv_wr = init.cap.max_recv_sge = 0;
	}
	return ibv_create_qp_ex(device.context, &init);
}

static struct ibv_ah_attr way(void)
{
	return (struct ibv_ah_attr){ .is_global = 1,
				     .port_num = 1,
				     .grh = { .dgid = far.gid,
					      .sgid_index = device.gid_index,
					      .hop_limit = 64 } };
}

/* Values that are good for every attribute. */
static struct ibv_qp_attr good_values(uint32_t peer)
{
	return (struct ibv_qp_attr){
		.port_num = 1,
		.qp_access_flags = RC_ALL_ACCESS,
		.qkey = QKEY,
		.ah_attr = way(),
		.path_mtu = ANY_MTU,
		.dest_qp_num = peer,
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1, /* 0.01 ms */
		.timeout = 10,	    /* 4 ms */
		.retry_cnt = 2,
		.rnr_retry = 2,
	};
}

static const struct move *find_move(const struct type *t, int from, int to)
{
	for (size_t i = 0; i < COUNT(moves); i++)
		if (moves[i].types & t->bit && (int)moves[i].from == from &&
		    (int)moves[i].to == to)
			return &moves[i];
	return NULL;
}

static bool is_always_legal(int to)
{
	return to == IBV_QPS_RESET || to == IBV_QPS_ERR;
}

static int what_it_may(const struct type *t, const struct move *m)
{
	int may = m->may;

	for (size_t i = 0; i < COUNT(unheeded); i++)
		if (unheeded[i].types & t->bit)
			may |= unheeded[i].mask;
	for (size_t i = 0; i < COUNT(in_sqd); i++)
		if (m->from == IBV_QPS_SQD && m->to == IBV_QPS_SQD &&
		    in_sqd[i].types & t->bit)
			may |= in_sqd[i].mask;
	return may;
}

static int try_move(struct ibv_qp *qp, int from, int to, int mask)
{
	struct ibv_qp_attr attr = good_values(qp->qp_num);

	attr.qp_state = (enum ibv_qp_state)to;
	attr.cur_qp_state = (enum ibv_qp_state)from;
	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | mask);
}

static bool is_rnic(void)
{
	return stream_is_for(device.context);
}

static int state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	must(!ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), "ibv_query_qp");
	return attr.qp_state;
}

static int post_one(struct ibv_qp *qp, uint32_t lkey)
{
	struct ibv_sge sge = { (uintptr_t)memory, 8, lkey };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge,
					.num_sge = 1,
					.opcode = IBV_WR_SEND,
					.send_flags = IBV_SEND_SIGNALED };

	if (qp->qp_type == IBV_QPT_UD) {
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = qp->qp_num;
		wr.wr.ud.remote_qkey = QKEY;
	}
	return ibv_post_send(qp, &wr, &bad);
}

/* A work request at fault stops the sends of UC and UD. */
static void put_in_sqe(struct ibv_qp *qp)
{
	struct ibv_wc wc;

	must(!post_one(qp, 0), "post_send");
	must(rc_wait(cq_a, WAIT, &wc), "a completion");
}

/* The queue pair that those of an RNIC are connected to while their moves are
 * judged. */
static struct ibv_qp *other;

static void bring_stream_to(struct ibv_qp *qp, int state)
{
	stream_drop();
	must(!try_move(qp, 0, IBV_QPS_RESET, 0) &&
		     !try_move(other, 0, IBV_QPS_RESET, 0),
	     "to RESET");
	if (state == IBV_QPS_RESET)
		return;
	must(!try_move(qp, 0, IBV_QPS_INIT, ACCESS) &&
		     !try_move(other, 0, IBV_QPS_INIT, ACCESS),
	     "to INIT");
	if (state == IBV_QPS_RTS)
		stream_connect(qp, other, 4);
	if (state == IBV_QPS_ERR)
		must(!try_move(qp, 0, IBV_QPS_ERR, 0), "to ERR");
}

static void bring_to(struct ibv_qp *qp, const struct type *t, int state)
{
	static const int path[] = { IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
				    IBV_QPS_RTS };
	int last = state < IBV_QPS_RTS ? state : IBV_QPS_RTS;

	if (t->bit == IW) {
		bring_stream_to(qp, state);
		return;
	}
	must(!try_move(qp, 0, IBV_QPS_RESET, 0), "to RESET");
	for (int i = 1; i <= last; i++)
		must(!try_move(qp, path[i - 1], path[i],
			       find_move(t, path[i - 1], path[i])->need),
		     "on the way to a state");
	if (state == IBV_QPS_SQE)
		put_in_sqe(qp);
	else if (state > IBV_QPS_RTS)
		must(!try_move(qp, IBV_QPS_RTS, state, 0), "from RTS");
}

/* An RNIC's first state is told as INIT; its stream ends when all is sent. */
static bool is_seen(const struct type *t, int now, int state)
{
	if (t->bit == IW && state == IBV_QPS_RESET)
		return now == IBV_QPS_INIT;
	return now == state ||
	       (t->bit == IW && state == IBV_QPS_SQD && now == IBV_QPS_ERR);
}

/* One try from @from; afterwards @qp is where it should be. */
static void judge(struct ibv_qp *qp, const struct type *t, int from, int to,
		  int mask, int want)
{
	int got, now;

	bring_to(qp, t, from);
	got = try_move(qp, from, to, mask);
	now = state_of(qp);
	verdict(got == want && is_seen(t, now, want ? from : to),
		"%s: %s to %s with 0x%x: %s, expected %s; then in %s", t->name,
		state_names[from], state_names[to], mask, strerror(got),
		strerror(want), state_names[now]);
}

/* Each attribute left away that it needs, and there that it may not have. */
static void judge_masks(struct ibv_qp *qp, const struct type *t,
			const struct move *m)
{
	/* Alternate paths and resizing are not announced by the device. */
	int unsure = IBV_QP_ALT_PATH | IBV_QP_CAP;
	int may = what_it_may(t, m);

	for (int i = 1; i < ALL_MASKS - 1; i++) {
		int bit = 1 << i;

		if (bit & unsure)
			judge(qp, t, m->from, m->to, m->need | bit, EINVAL);
		else if (m->need & bit)
			judge(qp, t, m->from, m->to, m->need & ~bit, EINVAL);
		else
			judge(qp, t, m->from, m->to, m->need | bit,
			      may & bit ? 0 : EINVAL);
	}
}

static void judge_pair(struct ibv_qp *qp, const struct type *t, int from,
		       int to)
{
	const struct move *m = find_move(t, from, to);

	if (is_always_legal(to)) {
		judge(qp, t, from, to, 0, 0);
		return;
	}
	judge(qp, t, from, to, m ? m->need : 0, m ? 0 : EINVAL);
	if (m)
		judge_masks(qp, t, m);
}

/* IBA 10.8.3.1, 10.8.3.2: where work is taken. */
static void judge_posts(struct ibv_qp *qp, const struct type *t, int state)
{
	struct ibv_sge sge = { (uintptr_t)memory, 64, mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };
	bool sends = state >= IBV_QPS_RTS, takes = state != IBV_QPS_RESET;
	struct ibv_wc wc;

	if (t->bit & (INI | TGT)) /* no receives, and sends need an SRQ */
		return;
	bring_to(qp, t, state);
	verdict((ibv_post_recv(qp, &wr, &bad) == 0) == takes,
		"%s: ibv_post_recv in %s", t->name, state_names[state]);
	if (state == IBV_QPS_RTS) /* to whom */
		return;
	verdict((post_one(qp, mr->lkey) == 0) == sends,
		"%s: ibv_post_send in %s", t->name, state_names[state]);
	must(!try_move(qp, 0, IBV_QPS_RESET, 0), "to RESET");
	verdict(!rc_wait(cq_a, 0, &wc), "%s: RESET of %s keeps a completion",
		t->name, state_names[state]);
}

static void judge_values(struct ibv_qp *qp, const struct type *t)
{
	struct ibv_qp_attr attr = good_values(qp->qp_num);
	int to_init = TO_INIT | find_move(t, IBV_QPS_RESET, IBV_QPS_INIT)->need;

	bring_to(qp, t, IBV_QPS_RESET);
	attr.qp_state = IBV_QPS_INIT;
	attr.port_num = 2;
	verdict(ibv_modify_qp(qp, &attr, IBV_QP_STATE | to_init) == EINVAL,
		"%s: port 2", t->name);
	attr.port_num = 1;
	attr.pkey_index = 1;
	verdict(ibv_modify_qp(qp, &attr, IBV_QP_STATE | to_init) == EINVAL,
		"%s: P_Key 1 of 1", t->name);
	verdict(is_seen(t, state_of(qp), IBV_QPS_RESET), "%s: not in RESET",
		t->name);
	attr.pkey_index = 0;
	attr.qp_state = (enum ibv_qp_state)17;
	verdict(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == EINVAL,
		"%s: a state that is none", t->name);
}

/* With an attribute that no queue pair has, be it right when cut to the bits
 * that there are. */
static void judge_odd(struct ibv_qp *qp, const struct type *t, int bit,
		      struct ibv_qp_attr attr, const char *what)
{
	int to = bit & (IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER |
			IBV_QP_MAX_DEST_RD_ATOMIC)
			 ? IBV_QPS_RTR
			 : IBV_QPS_RTS;
	const struct move *m = find_move(t, to - 1, to);

	if (!m || !(m->need & bit))
		return;
	bring_to(qp, t, to - 1);
	attr.qp_state = (enum ibv_qp_state)to;
	verdict(ibv_modify_qp(qp, &attr, IBV_QP_STATE | m->need) == EINVAL &&
			state_of(qp) == to - 1,
		"%s: %s", t->name, what);
}

static void judge_odd_values(struct ibv_qp *qp, const struct type *t)
{
	const struct ibv_qp_attr good = good_values(qp->qp_num);
	struct ibv_qp_attr a;

#define ODD(bit, field, value)                                                 \
	(a = good, a.field = (__typeof__(a.field))(value),                     \
	 judge_odd(qp, t, IBV_QP_##bit, a, #field " " #value))
	ODD(PATH_MTU, path_mtu, 0);
	ODD(PATH_MTU, path_mtu, 6);
	ODD(PATH_MTU, path_mtu, 256 + 3);
	ODD(MIN_RNR_TIMER, min_rnr_timer, 32 + 12);
	ODD(MAX_DEST_RD_ATOMIC, max_dest_rd_atomic, 255);
	ODD(TIMEOUT, timeout, 32 + 14);
	ODD(RETRY_CNT, retry_cnt, 8 + 7);
	ODD(RNR_RETRY, rnr_retry, 8 + 7);
	ODD(MAX_QP_RD_ATOMIC, max_rd_atomic, 255);
#undef ODD
}

/* Those that RC, UC and UD have not, and those that a stream passes by. */
static bool is_ever_in(const struct type *t, int state)
{
	if (t->bit == IW)
		return state != IBV_QPS_RTR && state != IBV_QPS_SQD &&
		       state != IBV_QPS_SQE;
	return state != IBV_QPS_SQE || t->bit & (UC | UD);
}

static void judge_moves(const struct type *t)
{
	struct ibv_qp *qp = make_qp(t->type, cq_a);

	if (!qp) {
		printf("skip moves of %s # ibv_create_qp_ex: %s\n", t->name,
		       strerror(errno));
		return;
	}
	if (t->bit == IW)
		other = make_qp(t->type, cq_b);
	must(other || t->bit != IW, "another queue pair");
	for (int from = 0; from < STATES; from++) {
		if (!is_ever_in(t, from))
			continue;
		for (int to = 0; to < STATES; to++)
			judge_pair(qp, t, from, to);
		judge_posts(qp, t, from);
	}
	judge_values(qp, t);
	judge_odd_values(qp, t);
	stream_drop();
	must(!ibv_destroy_qp(qp) && !(other && ibv_destroy_qp(other)),
	     "ibv_destroy_qp");
	line("moves of", t->name);
}

/*
 * Faults.
 */

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

// clang-format off
static const enum ibv_wr_opcode opcodes[] = {
	IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,
	IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_WRITE, IBV_WR_SEND,
	IBV_WR_SEND_WITH_INV,
};

#define OK(s)	IBV_WC_SUCCESS, IBV_QPS_##s
#define END(s)	IBV_WC_##s, IBV_QPS_ERR
#define STOP(s)	IBV_WC_##s, IBV_QPS_SQE
#define NONE	NO_STATUS
#define EVENT(e) IBV_EVENT_QP_##e
#define DONE	IBV_WC_SUCCESS
static const struct row {
	unsigned type;
	enum op op;
	unsigned wrong; /* enum wrong */
	int a_status, a_state; /* of who asks */
	int b_status, b_state; /* of its peer: its receive, if it ends */
	int event;	       /* at the peer */
	const char *name;
} rows[] = {
/* type op	  wrong		 requester		responder		  event */
{ RC | XRC, WRITE,	 NOTHING,	 OK(RTS),		NONE, IBV_QPS_RTS, NO_EVENT, "nothing" },
{ RC | XRC, WRITE,	 RKEY,		 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "WRITE, no such rkey" },
{ RC | XRC, READ,	 RKEY,		 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "READ, no such rkey" },
{ RC | XRC, ATOMIC,	 RKEY,		 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "atomic, no such rkey" },
{ RC | XRC, WRITE,	 RANGE,		 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "WRITE beyond the region" },
{ RC | XRC, READ,	 RANGE,		 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "READ beyond the region" },
{ RC | XRC, WRITE,	 RIGHT,		 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "WRITE to a read-only region" },
{ RC | XRC, ATOMIC,	 RIGHT,		 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "atomic on a read-only region" },
{ RC | XRC, WRITE,	 REMOTE_PAGE,	 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "WRITE to a page that is gone" },
{ RC | XRC, READ,	 REMOTE_PAGE,	 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "READ of a page that is gone" },
{ RC | XRC, WRITE,	 QP_RIGHT,	 END(REM_INV_REQ_ERR),	NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "WRITE, not for this queue pair" },
{ RC | XRC, READ,	 QP_RIGHT,	 END(REM_INV_REQ_ERR),	NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "READ, not for this queue pair" },
{ RC | XRC, ATOMIC,	 QP_RIGHT,	 END(REM_INV_REQ_ERR),	NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "atomic, not for this queue pair" },
{ RC | XRC, ATOMIC,	 ALIGNMENT,	 END(REM_INV_REQ_ERR),	NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "atomic, not aligned" },
{ RC | XRC, READ,	 NO_READS,	 END(REM_INV_REQ_ERR),	NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "READ, none were promised" },
{ RC | XRC, SEND,	 MTU,		 END(REM_INV_REQ_ERR),	NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "SEND, packet beyond the path MTU" },
{ RC | XRC, SEND,	 SHORT,		 END(REM_INV_REQ_ERR),	IBV_WC_LOC_LEN_ERR, IBV_QPS_ERR, NO_EVENT, "SEND longer than the receive" },
{ RC | XRC, SEND,	 RECV_KEY,	 END(REM_OP_ERR),	IBV_WC_LOC_PROT_ERR, IBV_QPS_ERR, NO_EVENT, "SEND, receive without a key" },
{ RC, SEND_INV,	 INV_KEY,	 END(RETRY_EXC_ERR),	IBV_WC_REM_INV_REQ_ERR, IBV_QPS_ERR, NO_EVENT, "SEND, invalidates nothing" },
{ RC | XRC, SEND,	 NO_RECV,	 END(RNR_RETRY_EXC_ERR), NONE, IBV_QPS_RTS, NO_EVENT, "SEND, no receive" },
{ RC | XRC, WRITE_IMM, NO_RECV,	 END(RNR_RETRY_EXC_ERR), NONE, IBV_QPS_RTS, NO_EVENT, "WRITE with immediate, no receive" },
{ RC | XRC, SEND,	 PSN_AHEAD,	 END(RETRY_EXC_ERR),	NONE, IBV_QPS_RTS, NO_EVENT, "SEND, PSN ahead" },
{ RC | XRC, SEND,	 PEER_THERE,	 END(RETRY_EXC_ERR),	NONE, IBV_QPS_RESET, NO_EVENT, "SEND to one in RESET" },
{ RC | XRC, STORE,	 NOTHING,	 OK(RTS),		NONE, IBV_QPS_RTS, NO_EVENT, "atomic WRITE" },
{ RC | XRC, STORE,	 RKEY,		 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "atomic WRITE, no such rkey" },
{ RC | XRC, STORE,	 QP_RIGHT,	 END(REM_INV_REQ_ERR),	NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "atomic WRITE, not for this queue pair" },
{ RC | XRC, STORE,	 ALIGNMENT,	 END(REM_INV_REQ_ERR),	NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "atomic WRITE, not aligned" },
{ RC | XRC, STORE,	 NO_READS,	 END(REM_INV_REQ_ERR),	NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "atomic WRITE, none were promised" },
{ RC | XRC, ATOMIC,	 NO_READS,	 END(REM_INV_REQ_ERR),	NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "atomic, none were promised" },
{ RC | XRC, ATOMIC,	 REMOTE_PAGE,	 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "atomic on a page that is gone" },
/* The receive is taken before the key is asked (IBA 9.7.4), where a packet
 * says that there is one: the last. */
{ RC | XRC, WRITE_IMM, NOTHING,	 OK(RTS),		DONE, IBV_QPS_RTS, NO_EVENT, "WRITE with immediate" },
{ RC | XRC, WRITE_IMM, RECV_KEY,	 OK(RTS),		DONE, IBV_QPS_RTS, NO_EVENT, "WRITE with immediate, receive without a key" },
{ RC | XRC, WRITE_IMM, RKEY,	 END(REM_ACCESS_ERR),	IBV_WC_LOC_ACCESS_ERR, IBV_QPS_ERR, NO_EVENT, "WRITE with immediate, no such rkey" },
{ RC | XRC, WRITE_IMM, RANGE,	 END(REM_ACCESS_ERR),	IBV_WC_LOC_ACCESS_ERR, IBV_QPS_ERR, NO_EVENT, "WRITE with immediate beyond the region" },
{ RC | XRC, WRITE_IMM, RIGHT,	 END(REM_ACCESS_ERR),	IBV_WC_LOC_ACCESS_ERR, IBV_QPS_ERR, NO_EVENT, "WRITE with immediate to a read-only region" },
{ RC | XRC, WRITE_IMM, REMOTE_PAGE, END(REM_ACCESS_ERR),	IBV_WC_LOC_ACCESS_ERR, IBV_QPS_ERR, NO_EVENT, "WRITE with immediate to a page that is gone" },
{ RC | XRC, WRITE_IMM, QP_RIGHT,	 END(REM_INV_REQ_ERR),	NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "WRITE with immediate, not for this queue pair" },
{ RC | XRC, WRITE_IMM, RKEY | NO_RECV, END(RNR_RETRY_EXC_ERR), NONE, IBV_QPS_RTS, NO_EVENT, "WRITE with immediate, no receive nor such rkey" },
{ RC | XRC, WRITE_IMM, QP_RIGHT | NO_RECV, END(REM_INV_REQ_ERR), NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "WRITE with immediate, no receive, not for this queue pair" },
{ RC | XRC, WRITE_IMM, RKEY | MANY, END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "WRITE with immediate of some packets, no such rkey" },
{ RC | XRC, WRITE_IMM, RKEY | LONG, END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "WRITE with immediate of many packets, no such rkey" },
{ RC | XRC, WRITE_IMM, NO_RECV | MANY, END(RNR_RETRY_EXC_ERR), NONE, IBV_QPS_RTS, NO_EVENT, "WRITE with immediate of some packets, no receive" },
{ RC | XRC, WRITE_IMM, NO_RECV | LONG, END(RNR_RETRY_EXC_ERR), NONE, IBV_QPS_RTS, NO_EVENT, "WRITE with immediate of many packets, no receive" },
/* Two at a time: which is asked first. */
{ RC | XRC, ATOMIC,	 ALIGNMENT | RKEY, END(REM_INV_REQ_ERR), NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "atomic, not aligned, no such rkey" },
{ RC | XRC, ATOMIC,	 ALIGNMENT | RIGHT, END(REM_INV_REQ_ERR), NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "atomic, not aligned, on a read-only region" },
{ RC | XRC, STORE,	 ALIGNMENT | RKEY, END(REM_INV_REQ_ERR), NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "atomic WRITE, not aligned, no such rkey" },
{ RC | XRC, WRITE,	 QP_RIGHT | RKEY, END(REM_INV_REQ_ERR),	NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "WRITE, not for this queue pair, no such rkey" },
{ RC | XRC, READ,	 QP_RIGHT | RKEY, END(REM_INV_REQ_ERR),	NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "READ, not for this queue pair, no such rkey" },
{ RC | XRC, READ,	 NO_READS | RKEY, END(REM_INV_REQ_ERR),	NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "READ, none were promised, no such rkey" },
{ RC | XRC, ATOMIC,	 NO_READS | RKEY, END(REM_INV_REQ_ERR),	NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "atomic, none were promised, no such rkey" },
{ RC | XRC, SEND,	 SHORT | RECV_KEY, END(REM_INV_REQ_ERR), IBV_WC_LOC_LEN_ERR, IBV_QPS_ERR, NO_EVENT, "SEND longer than the receive, without a key" },
{ RC | XRC, SEND,	 SHORT | LONG,	 END(REM_INV_REQ_ERR),	IBV_WC_LOC_LEN_ERR, IBV_QPS_ERR, NO_EVENT, "long SEND longer than the receive" },
{ RC | XRC, SEND,	 RECV_KEY | LONG, END(REM_OP_ERR),	IBV_WC_LOC_PROT_ERR, IBV_QPS_ERR, NO_EVENT, "long SEND, receive without a key" },
{ RC | XRC, SEND,	 NO_RECV | LONG, END(RNR_RETRY_EXC_ERR), NONE, IBV_QPS_RTS, NO_EVENT, "long SEND, no receive" },
{ RC | XRC, WRITE,	 RKEY | LONG,	 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "long WRITE, no such rkey" },
{ RC | XRC, READ,	 RKEY | LONG,	 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "long READ, no such rkey" },
{ XRC, SEND,	 NO_SRQ,	 END(REM_INV_REQ_ERR),	NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "SEND, no such shared queue" },
{ XRC, SEND,	 OTHER_XRCD,	 END(REM_INV_REQ_ERR),	NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "SEND to a shared queue of another domain" },
/* What a peer's state comes to. */
{ RC | XRC, SEND,	 PEER_THERE,	 OK(RTS),		DONE, IBV_QPS_RTR, IBV_EVENT_COMM_EST, "SEND to one in RTR" },
{ RC | XRC, WRITE,	 PEER_THERE,	 OK(RTS),		NONE, IBV_QPS_RTR, IBV_EVENT_COMM_EST, "WRITE to one in RTR" },
{ RC | XRC, SEND,	 PEER_THERE,	 OK(RTS),		DONE, IBV_QPS_SQD, NO_EVENT, "SEND to one in SQD" },
{ RC | XRC, READ,	 PEER_THERE,	 OK(RTS),		NONE, IBV_QPS_SQD, NO_EVENT, "READ from one in SQD" },
{ RC | XRC, SEND,	 PEER_THERE,	 END(RETRY_EXC_ERR),	NONE, IBV_QPS_INIT, NO_EVENT, "SEND to one in INIT" },
{ RC | XRC, WRITE,	 PEER_THERE,	 END(RETRY_EXC_ERR),	NONE, IBV_QPS_INIT, NO_EVENT, "WRITE to one in INIT" },
{ RC | XRC, SEND,	 PEER_THERE,	 END(RETRY_EXC_ERR),	NONE, IBV_QPS_ERR, NO_EVENT, "SEND to one in ERR" },
{ RC | XRC, WRITE,	 PEER_THERE,	 END(RETRY_EXC_ERR),	NONE, IBV_QPS_ERR, NO_EVENT, "WRITE to one in ERR" },
{ RC | XRC, SEND,	 LKEY,		 END(LOC_PROT_ERR),	NONE, IBV_QPS_RTS, NO_EVENT, "SEND, no such lkey" },
{ RC | XRC, SEND,	 LOCAL_RANGE,	 END(LOC_PROT_ERR),	NONE, IBV_QPS_RTS, NO_EVENT, "SEND from beyond the region" },
{ RC | XRC, SEND,	 LOCAL_PAGE,	 END(LOC_PROT_ERR),	NONE, IBV_QPS_RTS, NO_EVENT, "SEND of a page that is gone" },
{ RC | XRC, READ,	 LOCAL_RIGHT,	 END(LOC_PROT_ERR),	NONE, IBV_QPS_RTS, NO_EVENT, "READ to a read-only region" },

/* Whatever is wrong at one end ends the stream, and the other with it. */
{ IW, WRITE,	 NOTHING,	 OK(RTS),		NONE, IBV_QPS_RTS, NO_EVENT, "nothing" },
{ IW, WRITE,	 RKEY,		 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "WRITE, no such rkey" },
{ IW, READ,	 RKEY,		 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "READ, no such rkey" },
{ IW, ATOMIC,	 RKEY,		 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "atomic, no such rkey" },
{ IW, WRITE,	 RANGE,		 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "WRITE beyond the region" },
{ IW, READ,	 RANGE,		 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "READ beyond the region" },
{ IW, WRITE,	 RIGHT,		 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "WRITE to a read-only region" },
{ IW, ATOMIC,	 RIGHT,		 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "atomic on a read-only region" },
{ IW, WRITE,	 REMOTE_PAGE,	 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "WRITE to a page that is gone" },
{ IW, READ,	 REMOTE_PAGE,	 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "READ of a page that is gone" },
{ IW, WRITE,	 QP_RIGHT,	 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "WRITE, not for this queue pair" },
{ IW, READ,	 QP_RIGHT,	 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "READ, not for this queue pair" },
{ IW, ATOMIC,	 QP_RIGHT,	 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "atomic, not for this queue pair" },
{ IW, ATOMIC,	 ALIGNMENT,	 END(REM_INV_REQ_ERR),	NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "atomic, not aligned" },
{ IW, READ,	 NO_READS,	 END(LOC_QP_OP_ERR),	NONE, IBV_QPS_ERR, EVENT(FATAL), "READ, none were promised" },
{ IW, SEND,	 SHORT,		 END(REM_INV_REQ_ERR),	IBV_WC_LOC_LEN_ERR, IBV_QPS_ERR, NO_EVENT, "SEND longer than the receive" },
{ IW, SEND,	 RECV_KEY,	 END(REM_OP_ERR),	IBV_WC_LOC_PROT_ERR, IBV_QPS_ERR, NO_EVENT, "SEND, receive without a key" },
{ IW, SEND_INV,	 INV_KEY,	 END(REM_ACCESS_ERR),	IBV_WC_REM_INV_REQ_ERR, IBV_QPS_ERR, NO_EVENT, "SEND, invalidates nothing" },
{ IW, SEND,	 NO_RECV,	 END(RNR_RETRY_EXC_ERR), NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "SEND, no receive" },
{ IW, WRITE_IMM, NO_RECV,	 END(RNR_RETRY_EXC_ERR), NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "WRITE with immediate, no receive" },
{ IW, WRITE_IMM, NOTHING,	 OK(RTS),		DONE, IBV_QPS_RTS, NO_EVENT, "WRITE with immediate" },
{ IW, WRITE_IMM, RECV_KEY,	 OK(RTS),		DONE, IBV_QPS_RTS, NO_EVENT, "WRITE with immediate, receive without a key" },
/* RFC 7306: a WRITE, and behind it a message that takes the receive. */
{ IW, WRITE_IMM, RKEY,	 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "WRITE with immediate, no such rkey" },
{ IW, WRITE_IMM, RIGHT,	 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "WRITE with immediate to a read-only region" },
{ IW, WRITE_IMM, REMOTE_PAGE, END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "WRITE with immediate to a page that is gone" },
{ IW, WRITE_IMM, QP_RIGHT,	 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "WRITE with immediate, not for this queue pair" },
{ IW, WRITE_IMM, RKEY | NO_RECV, END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "WRITE with immediate, no receive nor such rkey" },
{ IW, WRITE_IMM, RKEY | LONG, END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "long WRITE with immediate, no such rkey" },
{ IW, ATOMIC,	 ALIGNMENT | RKEY, END(REM_INV_REQ_ERR), NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "atomic, not aligned, no such rkey" },
{ IW, ATOMIC,	 ALIGNMENT | RIGHT, END(REM_INV_REQ_ERR), NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "atomic, not aligned, on a read-only region" },
{ IW, ATOMIC,	 REMOTE_PAGE,	 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "atomic on a page that is gone" },
{ IW, ATOMIC,	 NO_READS,	 END(LOC_QP_OP_ERR),	NONE, IBV_QPS_ERR, EVENT(FATAL), "atomic, none were promised" },
{ IW, SEND,	 SHORT | RECV_KEY, END(REM_INV_REQ_ERR), IBV_WC_LOC_LEN_ERR, IBV_QPS_ERR, NO_EVENT, "SEND longer than the receive, without a key" },
{ IW, SEND,	 SHORT | LONG,	 END(REM_INV_REQ_ERR),	IBV_WC_LOC_LEN_ERR, IBV_QPS_ERR, NO_EVENT, "long SEND longer than the receive" },
{ IW, SEND,	 RECV_KEY | LONG, END(REM_OP_ERR),	IBV_WC_LOC_PROT_ERR, IBV_QPS_ERR, NO_EVENT, "long SEND, receive without a key" },
{ IW, SEND,	 NO_RECV | LONG, END(RNR_RETRY_EXC_ERR), NONE, IBV_QPS_ERR, EVENT(REQ_ERR), "long SEND, no receive" },
{ IW, WRITE,	 RKEY | LONG,	 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "long WRITE, no such rkey" },
{ IW, READ,	 RKEY | LONG,	 END(REM_ACCESS_ERR),	NONE, IBV_QPS_ERR, EVENT(ACCESS_ERR), "long READ, no such rkey" },
{ IW, SEND,	 LKEY,		 END(LOC_PROT_ERR),	NONE, IBV_QPS_ERR, EVENT(FATAL), "SEND, no such lkey" },
{ IW, SEND,	 LOCAL_RANGE,	 END(LOC_PROT_ERR),	NONE, IBV_QPS_ERR, EVENT(FATAL), "SEND from beyond the region" },
{ IW, SEND,	 LOCAL_PAGE,	 END(LOC_PROT_ERR),	NONE, IBV_QPS_ERR, EVENT(FATAL), "SEND of a page that is gone" },
{ IW, READ,	 LOCAL_RIGHT,	 END(LOC_PROT_ERR),	NONE, IBV_QPS_ERR, EVENT(FATAL), "READ to a read-only region" },

{ UC, WRITE,	 NOTHING,	 OK(RTS),		NONE, IBV_QPS_RTS, NO_EVENT, "nothing" },
{ UC, WRITE,	 RKEY,		 OK(RTS),		NONE, IBV_QPS_RTS, NO_EVENT, "WRITE, no such rkey" },
{ UC, WRITE,	 RANGE,		 OK(RTS),		NONE, IBV_QPS_RTS, NO_EVENT, "WRITE beyond the region" },
{ UC, WRITE,	 RIGHT,		 OK(RTS),		NONE, IBV_QPS_RTS, NO_EVENT, "WRITE to a read-only region" },
{ UC, WRITE,	 REMOTE_PAGE,	 OK(RTS),		NONE, IBV_QPS_RTS, NO_EVENT, "WRITE to a page that is gone" },
{ UC, WRITE,	 QP_RIGHT,	 OK(RTS),		NONE, IBV_QPS_RTS, NO_EVENT, "WRITE, not for this queue pair" },
{ UC, SEND,	 MTU,		 OK(RTS),		NONE, IBV_QPS_RTS, NO_EVENT, "SEND, packet beyond the path MTU" },
{ UC, SEND,	 SHORT,		 OK(RTS),		NONE, IBV_QPS_RTS, NO_EVENT, "SEND longer than the receive" },
{ UC, SEND,	 NO_RECV,	 OK(RTS),		NONE, IBV_QPS_RTS, NO_EVENT, "SEND, no receive" },
{ UC, WRITE_IMM, NO_RECV,	 OK(RTS),		NONE, IBV_QPS_RTS, NO_EVENT, "WRITE with immediate, no receive" },
{ UC, WRITE_IMM, NOTHING,	 OK(RTS),		DONE, IBV_QPS_RTS, NO_EVENT, "WRITE with immediate" },
{ UC, WRITE_IMM, RKEY,	 OK(RTS),		NONE, IBV_QPS_RTS, NO_EVENT, "WRITE with immediate, no such rkey" },
{ UC, WRITE_IMM, QP_RIGHT,	 OK(RTS),		NONE, IBV_QPS_RTS, NO_EVENT, "WRITE with immediate, not for this queue pair" },
{ UC, SEND,	 PEER_THERE,	 OK(RTS),		DONE, IBV_QPS_RTR, IBV_EVENT_COMM_EST, "SEND to one in RTR" },
{ UC, SEND,	 PEER_THERE,	 OK(RTS),		NONE, IBV_QPS_INIT, NO_EVENT, "SEND to one in INIT" },
{ UC, SEND,	 PEER_THERE,	 OK(RTS),		NONE, IBV_QPS_ERR, NO_EVENT, "SEND to one in ERR" },
{ UC, SEND,	 RECV_KEY,	 OK(RTS),		IBV_WC_LOC_PROT_ERR, IBV_QPS_ERR, NO_EVENT, "SEND, receive without a key" },
{ UC, SEND,	 PEER_THERE,	 OK(RTS),		NONE, IBV_QPS_RESET, NO_EVENT, "SEND to one in RESET" },
{ UC, SEND,	 LKEY,		 STOP(LOC_PROT_ERR),	NONE, IBV_QPS_RTS, NO_EVENT, "SEND, no such lkey" },
{ UC, SEND,	 LOCAL_RANGE,	 STOP(LOC_PROT_ERR),	NONE, IBV_QPS_RTS, NO_EVENT, "SEND from beyond the region" },
{ UC, SEND,	 LOCAL_PAGE,	 STOP(LOC_PROT_ERR),	NONE, IBV_QPS_RTS, NO_EVENT, "SEND of a page that is gone" },

{ UD, SEND,	 WRONG_QKEY,	 OK(RTS),		NONE, IBV_QPS_RTS, NO_EVENT, "another Q_Key" },
{ UD, SEND,	 SHORT,		 OK(RTS),		NONE, IBV_QPS_RTS, NO_EVENT, "longer than the receive" },
{ UD, SEND,	 NO_RECV,	 OK(RTS),		NONE, IBV_QPS_RTS, NO_EVENT, "no receive" },
{ UD, SEND,	 RECV_KEY,	 OK(RTS),		IBV_WC_LOC_PROT_ERR, IBV_QPS_ERR, NO_EVENT, "receive without a key" },
{ UD, SEND,	 PEER_THERE,	 OK(RTS),		NONE, IBV_QPS_RESET, NO_EVENT, "to one in RESET" },
{ UD, SEND,	 LKEY,		 STOP(LOC_PROT_ERR),	NONE, IBV_QPS_RTS, NO_EVENT, "no such lkey" },
{ UD, SEND,	 LOCAL_PAGE,	 STOP(LOC_PROT_ERR),	NONE, IBV_QPS_RTS, NO_EVENT, "a page that is gone" },
{ UD, SEND,	 TOO_LONG,	 STOP(LOC_LEN_ERR),	NONE, IBV_QPS_RTS, NO_EVENT, "beyond the MTU" },
};
// clang-format on

static void move_to(struct ibv_qp *qp, const struct type *t,
		    struct ibv_qp_attr *attr, int from, int to)
{
	attr->qp_state = (enum ibv_qp_state)to;
	must(!ibv_modify_qp(qp, attr,
			    IBV_QP_STATE | find_move(t, from, to)->need),
	     "ibv_modify_qp");
}

/* From RESET as far as @state, by the moves between. */
static void bring_along(struct ibv_qp *qp, const struct type *t,
			struct ibv_qp_attr attr, int state)
{
	int last = state == IBV_QPS_ERR ? IBV_QPS_RTS : state;

	for (int from = IBV_QPS_RESET; from < last; from++)
		move_to(qp, t, &attr, from, from + 1);
	if (state == IBV_QPS_ERR)
		must(!try_move(qp, last, state, 0), "to ERR");
}

static void connect_to(struct ibv_qp *qp, const struct type *t,
		       struct ibv_qp_attr attr)
{
	bring_along(qp, t, attr, IBV_QPS_RTS);
}

static void connect_streams(const struct row *r, struct ibv_qp *a,
			    struct ibv_qp *b)
{
	must(!rc_to_init(a, RC_ALL_ACCESS) &&
		     !rc_to_init(b, r->wrong & QP_RIGHT ? IBV_ACCESS_LOCAL_WRITE
							: RC_ALL_ACCESS),
	     "to INIT");
	stream_connect(a, b, r->wrong & NO_READS ? 0 : 4);
}

static void connect_a(const struct row *r, const struct type *t,
		      struct ibv_qp *a, const struct end *b)
{
	struct ibv_qp_attr attr = good_values(b->qpn);

	if (r->wrong & PSN_AHEAD)
		attr.sq_psn = 5;
	/* On a full machine the responder's thread may get no processor for
	 * longer than all retries of 4 ms take. */
	if (r->a_status != IBV_WC_RETRY_EXC_ERR) {
		attr.timeout = 16; /* 268 ms */
		attr.retry_cnt = 7;
	}
	connect_to(a, t, attr);
}

static void connect_b(const struct row *r, const struct type *t,
		      struct ibv_qp *b, const struct end *a)
{
	struct ibv_qp_attr attr = good_values(a->qpn);

	if (r->wrong & QP_RIGHT)
		attr.qp_access_flags = IBV_ACCESS_LOCAL_WRITE;
	if (r->wrong & NO_READS)
		attr.max_dest_rd_atomic = 0;
	if (r->wrong & MTU)
		attr.path_mtu = IBV_MTU_512;
	if (!(r->wrong & PEER_THERE))
		connect_to(b, t, attr);
	else
		bring_along(b, t, attr, r->b_state);
}

static bool has_recv(const struct row *r)
{
	return !(r->wrong & NO_RECV) && r->b_state != IBV_QPS_RESET;
}

static void post_recv(struct ibv_qp *b, const struct row *r)
{
	struct ibv_sge sge = { (uintptr_t)memory, BYTES, mr->lkey };
	struct ibv_recv_wr *bad,
		wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 };

	if (r->wrong & SHORT)
		sge.length = GRH;
	if (r->wrong & RECV_KEY)
		sge.lkey = 0;
	must(!(b->qp_type == IBV_QPT_XRC_RECV
		       ? ibv_post_srq_recv(srq, &wr, &bad)
		       : ibv_post_recv(b, &wr, &bad)),
	     "a receive");
}

/* A shared queue of XRC, empty, for each row. */
static void make_srq(const struct row *r)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = 16, .max_sge = 2 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = device.pd,
		.xrcd = r->wrong & OTHER_XRCD ? other_xrcd : xrcd,
		.cq = cq_b,
	};

	srq = ibv_create_srq_ex(device.context, &init);
	must(srq, "ibv_create_srq_ex");
}

/* Where the data is at this end: past the receive's place. */
static struct ibv_sge local_piece(const struct row *r)
{
	struct ibv_sge sge = { (uintptr_t)memory + BYTES, 64, mr->lkey };

	if (r->op == ATOMIC || r->op == STORE)
		sge.length = 8;
	if (r->wrong & MTU)
		sge.length = 1024;
	if (r->wrong & MANY)
		sge.length = 3000;
	if (r->wrong & LONG)
		sge.length = 8000;
	if (r->wrong & LKEY)
		sge.lkey = 0;
	if (r->wrong & LOCAL_RANGE)
		sge.addr = (uintptr_t)memory + 2 * BYTES - 8;
	if (r->wrong & LOCAL_RIGHT)
		sge.lkey = read_only->lkey;
	if (r->wrong & LOCAL_PAGE)
		sge = (struct ibv_sge){ (uintptr_t)gone->addr, 64, gone->lkey };
	if (r->wrong & TOO_LONG)
		sge.length = 8192;
	return sge;
}

static void remote_place(const struct row *r, uint64_t *addr, uint32_t *rkey)
{
	*addr = far.memory;
	*rkey = far.rkey;
	if (r->wrong & RKEY)
		*rkey = 0;
	if (r->wrong & RANGE)
		*addr = far.memory + 2 * BYTES - 8;
	if (r->wrong & RIGHT)
		*rkey = far.read_only;
	if (r->wrong & ALIGNMENT)
		*addr += 4;
	if (r->wrong & REMOTE_PAGE) {
		*addr = far.gone;
		*rkey = far.gone_rkey;
	}
}

static void ask(struct ibv_qp *a, const struct end *b, const struct row *r)
{
	struct ibv_sge sge = local_piece(r);
	struct ibv_send_wr *bad, wr = { .wr_id = 2,
					.sg_list = &sge,
					.num_sge = 1,
					.opcode = opcodes[r->op],
					.send_flags = IBV_SEND_SIGNALED };
	uint64_t addr;
	uint32_t rkey;

	remote_place(r, &addr, &rkey);
	if (a->qp_type == IBV_QPT_UD) {
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = b->qpn;
		wr.wr.ud.remote_qkey = QKEY + (r->wrong & WRONG_QKEY);
	} else if (r->op == ATOMIC) {
		wr.wr.atomic.remote_addr = addr;
		wr.wr.atomic.rkey = rkey;
	} else {
		wr.wr.rdma.remote_addr = addr;
		wr.wr.rdma.rkey = rkey;
	}
	if (r->op == SEND_INV)
		wr.invalidate_rkey = 0;
	if (a->qp_type == IBV_QPT_XRC_SEND)
		wr.qp_type.xrc.remote_srqn =
			b->srqn ^ (r->wrong & NO_SRQ ? 1 : 0);
	must(!ibv_post_send(a, &wr, &bad), "ibv_post_send");
}

/* The event about @qp that waits, if any; others are taken and forgotten, and
 * so is that a message came before RTS, unless it is looked for. */
static int event_of(const struct ibv_qp *qp, int wanted)
{
	struct ibv_async_event e;
	int found = NO_EVENT;

	while (ibv_get_async_event(device.context, &e) == 0) {
		if (e.element.qp == qp &&
		    e.event_type != IBV_EVENT_QP_LAST_WQE_REACHED &&
		    (e.event_type != IBV_EVENT_COMM_EST ||
		     wanted == IBV_EVENT_COMM_EST))
			found = e.event_type;
		ibv_ack_async_event(&e);
	}
	return found;
}

static int status_within(struct ibv_cq *cq, double limit)
{
	struct ibv_wc wc;

	return rc_wait(cq, limit, &wc) ? (int)wc.status : NO_STATUS;
}

/* Both sides are as far as this. */
static void meet(void)
{
	if (wire >= 0)
		tcp_barrier(wire);
}

/* What b has seen, for a to judge. */
static int heard(int of_b)
{
	if (wire < 0)
		return of_b;
	if (is_b)
		tcp_send(wire, &of_b, sizeof(of_b));
	else
		tcp_recv(wire, &of_b, sizeof(of_b));
	return of_b;
}

static int status_at_b(double limit)
{
	return heard(is_b ? status_within(cq_b, limit) : 0);
}

/* Both are as before: another message arrives, in the same receive if the
 * first took none. */
static void judge_next(const struct row *r, struct ibv_qp *a, struct ibv_qp *b,
		       const struct end *to)
{
	static const struct row good = { .op = SEND };
	bool had =
		has_recv(r) && !(r->wrong & SHORT) && r->b_status == NO_STATUS;
	/* It is still there, and too short still. */
	bool is_short = r->wrong & SHORT;
	int a_status = IBV_WC_SUCCESS, b_status;

	if (r->a_state != IBV_QPS_RTS || r->b_state != IBV_QPS_RTS)
		return;
	if (r->wrong & MTU)
		return;
	if (!had && is_b)
		post_recv(b, is_short ? r : &good);
	meet();
	if (is_a) {
		ask(a, to, &good);
		a_status = status_within(cq_a, WAIT);
	}
	meet();
	b_status = status_at_b(is_short ? QUIET : WAIT);
	verdict(a_status == IBV_WC_SUCCESS &&
			b_status == (is_short ? NO_STATUS : IBV_WC_SUCCESS),
		is_short ? "%s: the receive was used up"
			 : "%s: the next message does not arrive",
		r->name);
}

/* The ends of a row, each at its place. */
static void set_up_row(const struct row *r, const struct type *ta,
		       const struct type *tb, struct ibv_qp **a,
		       struct ibv_qp **b, struct end *to)
{
	struct end from = { 0 };

	*a = is_a ? make_qp(ta->type, cq_a) : NULL;
	*b = is_b ? make_qp(tb->type, cq_b) : NULL;
	must((*a || !is_a) && (*b || !is_b), "two queue pairs");
	*to = (struct end){ 0 };
	if (is_a)
		from.qpn = (*a)->qp_num;
	if (is_b)
		to->qpn = (*b)->qp_num;
	if (is_b && tb->bit == TGT) {
		make_srq(r);
		must(!ibv_get_srq_num(srq, &to->srqn), "ibv_get_srq_num");
	}
	if (ta->bit == IW) {
		connect_streams(r, *a, *b);
		return;
	}
	if (wire >= 0 && is_a)
		tcp_swap(wire, &from, to, sizeof(*to));
	else if (wire >= 0)
		tcp_swap(wire, to, &from, sizeof(from));
	if (is_a)
		connect_a(r, ta, *a, to);
	if (is_b)
		connect_b(r, tb, *b, &from);
}

static bool has_packets(void)
{
	const char *near = getenv("VERBENA_NEAR");

	return wire >= 0 || (near && !strcmp(near, "off"));
}

/* Over TCP what is sent is complete when it has left; then it is an event that
 * tells of the end. */
static int asked_status(const struct row *r, const struct type *t)
{
	bool leaves = r->op != READ && r->op != ATOMIC;

	if (t->bit == IW && has_packets() && leaves &&
	    r->a_status != IBV_WC_LOC_PROT_ERR)
		return IBV_WC_SUCCESS;
	return r->a_status;
}

/* The end of a stream is on its way to both. */
static void await_state(struct ibv_qp *qp, int state)
{
	double until = seconds() + WAIT;

	while (state_of(qp) != state && seconds() < until)
		usleep(1000);
}

static int event_within(const struct ibv_qp *qp, int wanted)
{
	double until = seconds() + (wanted == NO_EVENT ? 0 : 1);
	int event;

	while ((event = event_of(qp, wanted)) == NO_EVENT && seconds() < until)
		usleep(1000);
	return event;
}

static void judge_row(const struct row *r, const struct type *ta,
		      const struct type *tb)
{
	bool flushed, receives = has_recv(r);
	int a_status = r->a_status, a_state = r->a_state;
	int b_status, b_state, event, asked = asked_status(r, ta);
	struct ibv_qp *a, *b;
	struct end to;

	set_up_row(r, ta, tb, &a, &b, &to);
	if (receives && is_b)
		post_recv(b, r);
	meet();
	if (is_a) {
		ask(a, &to, r);
		a_status = status_within(cq_a, WAIT);
	}
	meet();
	/* A receive that the fault does not end is flushed in ERR; those of
	 * a shared queue are for others. */
	flushed = receives && tb->bit != TGT && r->b_status == NO_STATUS &&
		  r->b_state == IBV_QPS_ERR;
	b_status =
		status_at_b(flushed || r->b_status != NO_STATUS ? WAIT : QUIET);
	if (ta->bit == IW) {
		await_state(a, r->a_state);
		await_state(b, r->b_state);
	}
	if (is_a)
		a_state = state_of(a);
	b_state = heard(is_b ? state_of(b) : 0);
	event = heard(is_b ? event_within(b, r->event) : 0);
	verdict(a_status == asked && a_state == r->a_state,
		"%s: requester: %s, in %s", r->name,
		a_status < 0 ? "nothing" : ibv_wc_status_str(a_status),
		state_names[a_state]);
	verdict(b_status == (flushed ? IBV_WC_WR_FLUSH_ERR : r->b_status) &&
			b_state == r->b_state && event == r->event,
		"%s: responder: %s, in %s, event %d", r->name,
		b_status < 0 ? "nothing" : ibv_wc_status_str(b_status),
		state_names[b_state], event);
	judge_next(r, a, b, &to);
	stream_drop();
	must((!a || !ibv_destroy_qp(a)) && (!b || !ibv_destroy_qp(b)),
	     "ibv_destroy_qp");
	must(!is_b || tb->bit != TGT || !ibv_destroy_srq(srq),
	     "ibv_destroy_srq");
}

static void judge_faults(const struct type *ta, const struct type *tb,
			 const char *name)
{
	bool packets = has_packets();

	for (size_t i = 0; i < COUNT(rows); i++)
		if (rows[i].type & ta->bit &&
		    /* Without packets there is none that is too large. */
		    (packets || !(rows[i].wrong & MTU) || ta->bit != RC))
			judge_row(&rows[i], ta, tb);
	line("faults of", name);
}

/*
 * What becomes of a message to a shared queue with tags: its header's words
 * (infiniband/tm_types.h) and ibv_post_srq_ops(3), and where those leave it
 * open, docs/VERBS.md. One buffer is in the list, 64 bytes long.
 */

#define TAG_BUFFER 64
#define TAG	   0x1122334455667788
#define EXACT	   UINT64_MAX
#define REST	   (BYTES + 4096) /* in memory: what a rendezvous fetches */
#define UNKNOWN	   9		  /* no opcode of a header */

enum tag_wrong {
	ALL_RIGHT,
	NO_SPARE,     /* no ordinary receive */
	TAG_KEY,      /* the buffer's key is none */
	SPARE_KEY,    /* the receive's is */
	NO_HEADER,    /* less than one */
	OWN_SENDS,    /* the queue pair can send for the program */
	NO_SUCH_RKEY, /* of a rendezvous */
};

// clang-format off
#define MATCHED	  IBV_WC_TM_RECV, IBV_WC_SUCCESS, IBV_WC_TM_MATCH
#define WHOLE	  IBV_WC_TM_RECV, IBV_WC_SUCCESS, IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID
#define DATA	  IBV_WC_TM_RECV, IBV_WC_SUCCESS, IBV_WC_TM_DATA_VALID
#define STRAY	  IBV_WC_TM_RECV, IBV_WC_SUCCESS, 0
#define NO_TAG	  IBV_WC_TM_NO_TAG, IBV_WC_SUCCESS, 0
#define HALF	  IBV_WC_TM_RECV, IBV_WC_TM_RNDV_INCOMPLETE, IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID
#define BAD(s)	  -1, IBV_WC_##s, 0 /* then only the status is valid */
#define NO_MORE	  -1, NO_STATUS, 0
static const struct tag_row {
	uint8_t op;	   /* the header's */
	uint32_t length;   /* behind it, or of what a rendezvous is about */
	uint64_t tag, mask; /* the buffer's; the message's is TAG */
	enum tag_wrong wrong;
	int a_status;
	struct {
		int opcode, status;
		unsigned flags;
	} b[2];
	int b_state;
	const char *name;
} tag_rows[] = {
/* header	  bytes	buffer's tag, mask	wrong		sender			its completions			  then */
{ IBV_TMH_EAGER, 64,	TAG, EXACT,		ALL_RIGHT,	IBV_WC_SUCCESS,		{ { WHOLE }, { NO_MORE } },	  IBV_QPS_RTS, "eager" },
{ IBV_TMH_EAGER, 0,	TAG, EXACT,		ALL_RIGHT,	IBV_WC_SUCCESS,		{ { WHOLE }, { NO_MORE } },	  IBV_QPS_RTS, "eager, no data" },
{ IBV_TMH_EAGER, 64,	TAG, EXACT,		NO_SPARE,	IBV_WC_SUCCESS,		{ { WHOLE }, { NO_MORE } },	  IBV_QPS_RTS, "eager, needs no receive" },
{ IBV_TMH_EAGER, 64,	TAG & 0xff00, 0xff00,	ALL_RIGHT,	IBV_WC_SUCCESS,		{ { WHOLE }, { NO_MORE } },	  IBV_QPS_RTS, "eager, by its mask" },
{ IBV_TMH_EAGER, 64,	0, 0,			ALL_RIGHT,	IBV_WC_SUCCESS,		{ { WHOLE }, { NO_MORE } },	  IBV_QPS_RTS, "eager, any tag" },
{ IBV_TMH_EAGER, 64,	TAG, 0xff00,		ALL_RIGHT,	IBV_WC_SUCCESS,		{ { STRAY }, { NO_MORE } },	  IBV_QPS_RTS, "a tag beyond its mask meets nothing" },
{ IBV_TMH_EAGER, 64,	TAG + 1, EXACT,		ALL_RIGHT,	IBV_WC_SUCCESS,		{ { STRAY }, { NO_MORE } },	  IBV_QPS_RTS, "eager, unexpected" },
{ IBV_TMH_EAGER, 64,	TAG + 1, EXACT,		NO_SPARE,	IBV_WC_RNR_RETRY_EXC_ERR, { { NO_MORE }, { NO_MORE } },	  IBV_QPS_RTS, "unexpected, no receive" },
{ IBV_TMH_EAGER, 64,	TAG + 1, EXACT,		SPARE_KEY,	IBV_WC_REM_OP_ERR,	{ { BAD(LOC_PROT_ERR) }, { NO_MORE } }, IBV_QPS_ERR, "unexpected, receive without a key" },
{ IBV_TMH_EAGER, 65,	TAG, EXACT,		ALL_RIGHT,	IBV_WC_REM_INV_REQ_ERR, { { BAD(LOC_LEN_ERR) }, { NO_MORE } }, IBV_QPS_ERR, "eager, longer than the buffer" },
{ IBV_TMH_EAGER, 64,	TAG, EXACT,		TAG_KEY,	IBV_WC_REM_OP_ERR,	{ { BAD(LOC_PROT_ERR) }, { NO_MORE } }, IBV_QPS_ERR, "eager, buffer without a key" },
{ IBV_TMH_NO_TAG, 64,	TAG, EXACT,		ALL_RIGHT,	IBV_WC_SUCCESS,		{ { NO_TAG }, { NO_MORE } },	  IBV_QPS_RTS, "without a tag" },
{ IBV_TMH_FIN, 64,	TAG, EXACT,		ALL_RIGHT,	IBV_WC_SUCCESS,		{ { NO_TAG }, { NO_MORE } },	  IBV_QPS_RTS, "FIN of nothing" },
{ UNKNOWN, 64,		TAG, EXACT,		ALL_RIGHT,	IBV_WC_SUCCESS,		{ { NO_TAG }, { NO_MORE } },	  IBV_QPS_RTS, "unknown opcode" },
{ IBV_TMH_EAGER, 0,	TAG, EXACT,		NO_HEADER,	IBV_WC_SUCCESS,		{ { NO_TAG }, { NO_MORE } },	  IBV_QPS_RTS, "less than a header" },
{ IBV_TMH_RNDV, 64,	TAG, EXACT,		ALL_RIGHT,	IBV_WC_SUCCESS,		{ { MATCHED }, { DATA } },	  IBV_QPS_RTS, "rendezvous" },
{ IBV_TMH_RNDV, 64,	TAG + 1, EXACT,		ALL_RIGHT,	IBV_WC_SUCCESS,		{ { STRAY }, { NO_MORE } },	  IBV_QPS_RTS, "rendezvous, unexpected" },
{ IBV_TMH_RNDV, 64,	TAG, EXACT,		OWN_SENDS,	IBV_WC_SUCCESS,		{ { HALF }, { NO_MORE } },	  IBV_QPS_RTS, "rendezvous, the program's sends" },
{ IBV_TMH_RNDV, 65,	TAG, EXACT,		ALL_RIGHT,	IBV_WC_SUCCESS,		{ { HALF }, { NO_MORE } },	  IBV_QPS_RTS, "rendezvous, longer than the buffer" },
{ IBV_TMH_RNDV, 64,	TAG, EXACT,		NO_SUCH_RKEY,	IBV_WC_SUCCESS,		{ { MATCHED }, { BAD(REM_ACCESS_ERR) } }, IBV_QPS_ERR, "rendezvous, no such rkey" },
};
// clang-format on

static void make_tag_srq(const struct tag_row *r)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = 4, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
		.srq_type = IBV_SRQT_TM,
		.pd = device.pd,
		.cq = cq_b,
		.tm_cap = { .max_num_tags = 1, .max_ops = 1 },
	};
	struct ibv_sge sge = { (uintptr_t)memory, TAG_BUFFER,
			       r->wrong == TAG_KEY ? 0 : mr->lkey };
	struct ibv_sge spare = { (uintptr_t)memory + TAG_BUFFER, 1024,
				 r->wrong == SPARE_KEY ? 0 : mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &spare, .num_sge = 1 };
	struct ibv_ops_wr *bad_op, op = { .opcode = IBV_WR_TAG_ADD };

	op.tm.add.sg_list = &sge;
	op.tm.add.num_sge = 1;
	op.tm.add.tag = r->tag;
	op.tm.add.mask = r->mask;
	srq = ibv_create_srq_ex(device.context, &init);
	must(srq && !ibv_post_srq_ops(srq, &op, &bad_op), "a tag");
	must(r->wrong == NO_SPARE || !ibv_post_srq_recv(srq, &wr, &bad),
	     "a receive");
}

static struct ibv_qp *make_tag_qp(const struct tag_row *r)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .send_cq = cq_a,
					 .recv_cq = cq_a,
					 .srq = srq,
					 .cap.max_send_wr =
						 r->wrong == OWN_SENDS };

	return ibv_create_qp(device.pd, &init);
}

static void send_tagged(struct ibv_qp *a, const struct tag_row *r)
{
	struct {
		struct ibv_tmh tmh;
		struct ibv_rvh rvh;
		uint8_t rest[TAG_BUFFER];
	} *m = (void *)(memory + BYTES);
	struct ibv_sge sge = { (uintptr_t)m, sizeof(m->tmh) + r->length,
			       mr->lkey };
	struct ibv_send_wr *bad, wr = { .wr_id = 2,
					.sg_list = &sge,
					.num_sge = 1,
					.opcode = IBV_WR_SEND,
					.send_flags = IBV_SEND_SIGNALED };

	m->tmh = (struct ibv_tmh){ .opcode = r->op, .tag = htobe64(TAG) };
	if (r->op == IBV_TMH_RNDV) {
		sge.length = sizeof(m->tmh) + sizeof(m->rvh);
		m->rvh.va = htobe64((uintptr_t)memory + REST);
		m->rvh.rkey = htobe32(r->wrong == NO_SUCH_RKEY ? 0 : mr->rkey);
		m->rvh.len = htobe32(r->length);
	}
	if (r->wrong == NO_HEADER)
		sge.length = sizeof(m->tmh) - 1;
	must(!ibv_post_send(a, &wr, &bad), "ibv_post_send");
}

/* The nth completion at the shared queue, which may be none. */
static void judge_tagged(const struct tag_row *r, unsigned nth)
{
	struct ibv_wc wc = { .status = 0 };
	int status = r->b[nth].status, got = NO_STATUS;

	if (rc_wait(cq_b, status == NO_STATUS ? QUIET : WAIT, &wc))
		got = (int)wc.status;
	verdict(got == status, "%s: completion %u: %s", r->name, nth,
		got < 0 ? "none" : ibv_wc_status_str(got));
	if (got == status && r->b[nth].opcode >= 0)
		verdict((int)wc.opcode == r->b[nth].opcode &&
				wc.wc_flags == r->b[nth].flags,
			"%s: completion %u: opcode %d, flags 0x%x", r->name,
			nth, (int)wc.opcode, wc.wc_flags);
}

static void judge_tag_row(const struct tag_row *r)
{
	struct ibv_qp *a = make_qp(IBV_QPT_RC, cq_a), *b;
	struct ibv_sge fin = { (uintptr_t)memory + 2048, 64, mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &fin, .num_sge = 1 };
	int status;

	make_tag_srq(r);
	b = make_tag_qp(r);
	must(a && b, "two queue pairs");
	connect_to(a, &types[0], good_values(b->qp_num));
	connect_to(b, &types[0], good_values(a->qp_num));
	must(!ibv_post_recv(a, &wr, &bad), "a receive");
	send_tagged(a, r);
	status = status_within(cq_a, WAIT);
	verdict(status == r->a_status, "%s: sender: %s", r->name,
		status < 0 ? "nothing" : ibv_wc_status_str(status));
	judge_tagged(r, 0);
	judge_tagged(r, 1);
	verdict(state_of(b) == r->b_state, "%s: in %s", r->name,
		state_names[state_of(b)]);
	must(!ibv_destroy_qp(a) && !ibv_destroy_qp(b), "ibv_destroy_qp");
	must(!ibv_destroy_srq(srq), "ibv_destroy_srq");
	while (status_within(cq_a, 0) >= 0)
		;
}

static void judge_tags(void)
{
	for (size_t i = 0; i < COUNT(tag_rows); i++)
		judge_tag_row(&tag_rows[i]);
	line("messages to tags", "RC");
}

static void get_to_know(void)
{
	struct far mine = { .gid = device.gid,
			    .memory = (uintptr_t)memory,
			    .gone = (uintptr_t)gone->addr,
			    .rkey = mr->rkey,
			    .read_only = read_only->rkey,
			    .gone_rkey = gone->rkey };

	far = mine;
	if (wire >= 0)
		tcp_swap(wire, &mine, &far, sizeof(far));
}

/* The tables of moves are the client's, and one process's. */
static void find_other(const char *host)
{
	if (is_rnic())
		stream_begin(host);
	if (!host || is_rnic())
		return;
	is_a = strcmp(host, "-") != 0;
	is_b = !is_a;
	options.host = is_a ? host : NULL;
	wire = tcp_meet(&options);
}

static void set_up(void)
{
	struct ibv_xrcd_init_attr no_file = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_ah_attr to;
	uint8_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memory = mmap(NULL, 2 * BYTES, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(memory != MAP_FAILED && page != MAP_FAILED, "mmap");
	mr = ibv_reg_mr(device.pd, memory, 2 * BYTES, RC_ALL_ACCESS);
	read_only = ibv_reg_mr(device.pd, memory, 2 * BYTES,
			       IBV_ACCESS_REMOTE_READ);
	gone = ibv_reg_mr(device.pd, page, 4096, RC_ALL_ACCESS);
	must(mr && read_only && gone, "regions");
	munmap(page, 4096);
	get_to_know();
	to = way();
	ah = ibv_create_ah(device.pd, &to);
	must(ah || is_rnic(), "ibv_create_ah");
	cq_a = ibv_create_cq(device.context, 64, NULL, NULL, 0);
	cq_b = ibv_create_cq(device.context, 64, NULL, NULL, 0);
	must(cq_a && cq_b, "ibv_create_cq");
	xrcd = ibv_open_xrcd(device.context, &no_file);
	other_xrcd = ibv_open_xrcd(device.context, &no_file);
	must(!fcntl(device.context->async_fd, F_SETFL, O_NONBLOCK), "fcntl");
}

int main(int argc, char **argv)
{
	char **rest = rc_read_options(&options, argc, argv);

	rc_open(&device, &options);
	find_other(rest[0]);
	set_up();
	for (size_t i = 0; is_a && i < COUNT(types); i++)
		if ((types[i].bit == IW) == is_rnic())
			judge_moves(&types[i]);
	for (size_t i = 0; i < COUNT(types); i++)
		if (!(types[i].bit & XRC) && (types[i].bit == IW) == is_rnic())
			judge_faults(&types[i], &types[i], types[i].name);
	if (xrcd)
		judge_faults(&types[3], &types[4], "XRC");
	if (wire < 0 && xrcd) /* no iWARP device has tags, as it has no XRC */
		judge_tags();
	return 0;
}
