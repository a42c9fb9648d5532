/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of state transitions and their attributes (IBA 10.3.1,
 * 11.2.5.2). */
#include "conformance.h"

#define ACCESS	IBV_QP_ACCESS_FLAGS
#define PKEY	IBV_QP_PKEY_INDEX
#define CUR	IBV_QP_CUR_STATE
#define RNR_TMR IBV_QP_MIN_RNR_TIMER
#define MIG	IBV_QP_PATH_MIG_STATE
#define CONNECT (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define ANSWER	(IBV_QP_MAX_DEST_RD_ATOMIC | RNR_TMR)
#define RETRIES (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY)
#define ASK	(RETRIES | IBV_QP_MAX_QP_RD_ATOMIC)

// clang-format off
#define TO_INIT	(PKEY | IBV_QP_PORT)
static const struct move moves[] = {
	/* columns: types of queue pairs, from, to, needed and permitted
	 * attributes */
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
	/* The last rows of the specification's table 96. Adapters permit
	 * different optional attributes in these rows, so the test uses only
	 * those that all adapters accept. */
	{ RC | UC | INI | TGT, IBV_QPS_SQD, IBV_QPS_SQD, 0,
							PKEY | IBV_QP_AV | ACCESS | MIG },
	{ UD,		IBV_QPS_SQD, IBV_QPS_SQD, 0, PKEY | IBV_QP_QKEY },
	{ UC,		IBV_QPS_SQE, IBV_QPS_RTS, 0, CUR | ACCESS },
	{ UD,		IBV_QPS_SQE, IBV_QPS_RTS, 0, CUR | IBV_QP_QKEY },
	/* iWARP permits attributes that only InfiniBand uses. */
	{ IW,		IBV_QPS_RESET, IBV_QPS_INIT, 0, TO_INIT | ACCESS },
	{ IW,		IBV_QPS_INIT, IBV_QPS_INIT, 0, TO_INIT | ACCESS },
	{ IW,		IBV_QPS_RTS, IBV_QPS_RTS, 0, CUR | ACCESS },
	{ IW,		IBV_QPS_RTS, IBV_QPS_SQD, 0,
							IBV_QP_EN_SQD_ASYNC_NOTIFY },
};

/* Attributes that a connection may change in SQD, because only its own side
 * uses them. */
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

/* Annex A14 does not say what happens to an attribute that only the other kind
 * of XRC queue pair uses. Programs (perftest) set the attributes of both kinds
 * for both, and Verbena ignores them. */
static const struct more unheeded[] = {
	{ INI, ANSWER },
	{ TGT, IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC },
};

struct ibv_qp *make_qp(enum ibv_qp_type type, struct ibv_cq *cq)
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

struct ibv_ah_attr way(void)
{
	return rc_path(&device, &far.gid, far.lid);
}

/* Returns attributes that are valid for every transition. */
struct ibv_qp_attr good_values(uint32_t peer)
{
	return (struct ibv_qp_attr){
		.port_num = 1,
		.qp_access_flags = RC_ALL_ACCESS,
		.qkey = QKEY,
		.ah_attr = way(),
		.alt_ah_attr = way(),
		.alt_port_num = 1,
		.path_mtu = ANY_MTU,
		.dest_qp_num = peer,
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1, /* RNR timer code for 0.01 ms */
		.timeout = 10,	    /* 4 ms */
		.retry_cnt = 2,
		.rnr_retry = 2,
	};
}

const struct move *find_move(const struct type *t, int from, int to)
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

int try_move(struct ibv_qp *qp, int from, int to, int mask)
{
	struct ibv_qp_attr attr = good_values(qp->qp_num);

	attr.qp_state = (enum ibv_qp_state)to;
	attr.cur_qp_state = (enum ibv_qp_state)from;
	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | mask);
}

bool is_rnic(void)
{
	return stream_is_for(device.context);
}

int state_of(struct ibv_qp *qp)
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

/* A faulty work request moves a UC or UD queue pair to SQE. */
static void put_in_sqe(struct ibv_qp *qp)
{
	struct ibv_wc wc;

	must(!post_one(qp, 0), "post_send");
	must(rc_wait(cq_a, WAIT, &wc), "a completion");
}

/* The queue pair to which those of an RNIC are connected while their moves are
 * tested. */
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

/* Returns whether the reported state @now is what a test of @state must see. An
 * RNIC reports INIT instead of RESET, and ERR instead of SQD, since its stream
 * ends when everything is sent. */
static bool is_seen(const struct type *t, int now, int state)
{
	if (t->bit == IW && state == IBV_QPS_RESET)
		return now == IBV_QPS_INIT;
	return now == state ||
	       (t->bit == IW && state == IBV_QPS_SQD && now == IBV_QPS_ERR);
}

/* Try the transition from @from to @to with the attributes @mask. It must
 * return @want, and afterwards @qp must be in the right state. */
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

/* Returns whether the transition @m may set an alternate path: the device must
 * support path migration, and the transition must permit IBV_QP_PATH_MIG_STATE
 * or lead to RTR. */
static bool may_load_path(const struct type *t, const struct move *m)
{
	struct ibv_device_attr attr;

	must(!ibv_query_device(device.context, &attr), "query_device");
	return attr.device_cap_flags & IBV_DEVICE_AUTO_PATH_MIG &&
	       (m->may & MIG ||
		(m->to == IBV_QPS_RTR && t->bit & (RC | UC | INI | TGT)));
}

/* Try the transition without each attribute that it requires, and with each
 * attribute that it forbids. Each try must fail. */
static void judge_masks(struct ibv_qp *qp, const struct type *t,
			const struct move *m)
{
	int may = what_it_may(t, m);

	if (may_load_path(t, m))
		may |= IBV_QP_ALT_PATH;

	for (int i = 1; i < ALL_MASKS - 1; i++) {
		int bit = 1 << i;

		if (m->need & bit)
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

/* Check which states accept work requests (IBA 10.8.3.1, 10.8.3.2). */
static void judge_posts(struct ibv_qp *qp, const struct type *t, int state)
{
	struct ibv_sge sge = { (uintptr_t)memory, 64, mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };
	bool sends = state >= IBV_QPS_RTS, takes = state != IBV_QPS_RESET;
	struct ibv_wc wc;

	/* XRC queue pairs have no RECVs, and their SENDs need an SRQ. */
	if (t->bit & (INI | TGT))
		return;
	bring_to(qp, t, state);
	verdict((ibv_post_recv(qp, &wr, &bad) == 0) == takes,
		"%s: ibv_post_recv in %s", t->name, state_names[state]);
	/* a queue pair in RTS has a destination, and would send */
	if (state == IBV_QPS_RTS)
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
	struct ibv_port_attr port;

	must(!ibv_query_port(device.context, 1, &port), "ibv_query_port");
	bring_to(qp, t, IBV_QPS_RESET);
	attr.qp_state = IBV_QPS_INIT;
	attr.port_num = 2;
	verdict(ibv_modify_qp(qp, &attr, IBV_QP_STATE | to_init) == EINVAL,
		"%s: port 2", t->name);
	attr.port_num = 1;
	/* iWARP has no P_Keys, and takes index 0. */
	attr.pkey_index = port.pkey_tbl_len ? port.pkey_tbl_len : 1;
	verdict(ibv_modify_qp(qp, &attr, IBV_QP_STATE | to_init) == EINVAL,
		"%s: P_Key %u of %u", t->name, attr.pkey_index,
		port.pkey_tbl_len);
	verdict(is_seen(t, state_of(qp), IBV_QPS_RESET), "%s: not in RESET",
		t->name);
	attr.pkey_index = 0;
	attr.qp_state = (enum ibv_qp_state)17;
	verdict(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == EINVAL,
		"%s: a state that is none", t->name);
}

/* Try to set an attribute to a value that does not fit into its field. It must
 * be refused even if its low bits are a valid value. */
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

/* Does the type ever have the state? RC, UC and UD lack some states, and a
 * stream skips some. */
static bool is_ever_in(const struct type *t, int state)
{
	if (t->bit == IW)
		return state != IBV_QPS_RTR && state != IBV_QPS_SQD &&
		       state != IBV_QPS_SQE;
	return state != IBV_QPS_SQE || t->bit & (UC | UD);
}

void judge_moves(const struct type *t)
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
