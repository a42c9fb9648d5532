/* SPDX-License-Identifier: BSD-2-Clause */
/* core/qp_state: every pair of states, every attribute given or not, every
 * value at its bounds; and the effects of a transition. */
#include "qp_fixture.h"

/* The specification's matrix for each type: what each legal transition requires
 * and permits. It is written independently of the table under test. */
struct rule {
	bool legal;
	uint32_t need, may;
};

#define ANY_RTS                                                                \
	(QPM_CUR_STATE | QPM_ALT_PATH | QPM_ACCESS_FLAGS | QPM_PATH_MIG_STATE)
#define RC_RTS (ANY_RTS | QPM_MIN_RNR_TIMER)
#define UD_RTS (QPM_CUR_STATE | QPM_QKEY)
static const struct rule spec[][QPS_COUNT][QPS_COUNT] = {
	[QPT_RC] = {
		[QPS_RESET][QPS_INIT] = { true, TO_INIT & ~QPM_STATE, 0 },
		[QPS_INIT][QPS_INIT] = { true, 0, TO_INIT & ~QPM_STATE },
		[QPS_INIT][QPS_RTR] = { true, TO_RTR & ~QPM_STATE,
					QPM_ALT_PATH | QPM_ACCESS_FLAGS |
						QPM_PKEY_INDEX },
		[QPS_RTR][QPS_RTS] = { true, TO_RTS & ~QPM_STATE, RC_RTS },
		[QPS_RTS][QPS_RTS] = { true, 0, RC_RTS },
		[QPS_RTS][QPS_SQD] = { true, 0, QPM_EN_SQD_ASYNC_NOTIFY },
		[QPS_SQD][QPS_RTS] = { true, 0, RC_RTS },
		[QPS_SQD][QPS_SQD] = { true, 0,
				       RC_RTS | QPM_PORT | QPM_AV |
					       QPM_TIMEOUT | QPM_RETRY_CNT |
					       QPM_RNR_RETRY | QPM_PKEY_INDEX |
					       QPM_MAX_QP_RD_ATOMIC |
					       QPM_MAX_DEST_RD_ATOMIC },
	},
	[QPT_UC] = {
		[QPS_RESET][QPS_INIT] = { true, TO_INIT & ~QPM_STATE, 0 },
		[QPS_INIT][QPS_INIT] = { true, 0, TO_INIT & ~QPM_STATE },
		[QPS_INIT][QPS_RTR] = { true, UC_TO_RTR & ~QPM_STATE,
					QPM_ALT_PATH | QPM_ACCESS_FLAGS |
						QPM_PKEY_INDEX },
		[QPS_RTR][QPS_RTS] = { true, QPM_SQ_PSN, ANY_RTS },
		[QPS_RTS][QPS_RTS] = { true, 0, ANY_RTS },
		[QPS_RTS][QPS_SQD] = { true, 0, QPM_EN_SQD_ASYNC_NOTIFY },
		[QPS_SQD][QPS_RTS] = { true, 0, ANY_RTS },
		[QPS_SQD][QPS_SQD] = { true, 0,
				       QPM_AV | QPM_ALT_PATH | QPM_PKEY_INDEX |
					       QPM_ACCESS_FLAGS |
					       QPM_PATH_MIG_STATE },
		[QPS_SQE][QPS_RTS] = { true, 0,
				       QPM_CUR_STATE | QPM_ACCESS_FLAGS },
	},
	[QPT_UD] = {
		[QPS_RESET][QPS_INIT] = { true, UD_TO_INIT & ~QPM_STATE, 0 },
		[QPS_INIT][QPS_INIT] = { true, 0, UD_TO_INIT & ~QPM_STATE },
		[QPS_INIT][QPS_RTR] = { true, 0, QPM_PKEY_INDEX | QPM_QKEY },
		[QPS_RTR][QPS_RTS] = { true, QPM_SQ_PSN, UD_RTS },
		[QPS_RTS][QPS_RTS] = { true, 0, UD_RTS },
		[QPS_RTS][QPS_SQD] = { true, 0, QPM_EN_SQD_ASYNC_NOTIFY },
		[QPS_SQD][QPS_RTS] = { true, 0, UD_RTS },
		[QPS_SQD][QPS_SQD] = { true, 0, QPM_PKEY_INDEX | QPM_QKEY },
		[QPS_SQE][QPS_RTS] = { true, 0, UD_RTS },
	},
	[QPT_RAW_PACKET] = {
		[QPS_RESET][QPS_INIT] = { true, QPM_PORT, 0 },
		[QPS_INIT][QPS_INIT] = { true, 0, QPM_PORT },
		[QPS_INIT][QPS_RTR] = { true, 0, 0 },
		[QPS_RTR][QPS_RTS] = { true, 0, QPM_CUR_STATE },
		[QPS_RTS][QPS_RTS] = { true, 0, QPM_CUR_STATE },
		[QPS_RTS][QPS_SQD] = { true, 0, QPM_EN_SQD_ASYNC_NOTIFY },
		[QPS_SQD][QPS_RTS] = { true, 0, QPM_CUR_STATE },
		[QPS_SQE][QPS_RTS] = { true, 0, QPM_CUR_STATE },
	},
	[QPT_XRC_SEND] = {
		[QPS_RESET][QPS_INIT] = { true, TO_INIT & ~QPM_STATE, 0 },
		[QPS_INIT][QPS_INIT] = { true, 0, TO_INIT & ~QPM_STATE },
		[QPS_INIT][QPS_RTR] = { true, UC_TO_RTR & ~QPM_STATE,
					QPM_ALT_PATH | QPM_ACCESS_FLAGS |
						QPM_PKEY_INDEX },
		[QPS_RTR][QPS_RTS] = { true, TO_RTS & ~QPM_STATE, ANY_RTS },
		[QPS_RTS][QPS_RTS] = { true, 0, ANY_RTS },
		[QPS_RTS][QPS_SQD] = { true, 0, QPM_EN_SQD_ASYNC_NOTIFY },
		[QPS_SQD][QPS_RTS] = { true, 0, ANY_RTS },
		[QPS_SQD][QPS_SQD] = { true, 0,
				       ANY_RTS | QPM_PORT | QPM_AV |
					       QPM_TIMEOUT | QPM_RETRY_CNT |
					       QPM_RNR_RETRY | QPM_PKEY_INDEX |
					       QPM_MAX_QP_RD_ATOMIC },
	},
	[QPT_XRC_RECV] = {
		[QPS_RESET][QPS_INIT] = { true, TO_INIT & ~QPM_STATE, 0 },
		[QPS_INIT][QPS_INIT] = { true, 0, TO_INIT & ~QPM_STATE },
		[QPS_INIT][QPS_RTR] = { true, TO_RTR & ~QPM_STATE,
					QPM_ALT_PATH | QPM_ACCESS_FLAGS |
						QPM_PKEY_INDEX },
		[QPS_RTR][QPS_RTS] = { true, QPM_TIMEOUT | QPM_SQ_PSN, RC_RTS },
		[QPS_RTS][QPS_RTS] = { true, 0, RC_RTS },
		[QPS_RTS][QPS_SQD] = { true, 0, QPM_EN_SQD_ASYNC_NOTIFY },
		[QPS_SQD][QPS_RTS] = { true, 0, RC_RTS },
		[QPS_SQD][QPS_SQD] = { true, 0,
				       RC_RTS | QPM_PORT | QPM_AV |
					       QPM_TIMEOUT | QPM_PKEY_INDEX |
					       QPM_MAX_DEST_RD_ATOMIC },
	},
};

static const struct rule *rule_of(const struct vb_qp *qp, int from, int to)
{
	return &spec[qp->type][from][to];
}

static bool is_legal(const struct vb_qp *qp, int from, int to)
{
	return to == QPS_RESET || to == QPS_ERR || rule_of(qp, from, to)->legal;
}

static const enum vb_qp_type types[] = { QPT_RC,       QPT_UC,
					 QPT_UD,       QPT_RAW_PACKET,
					 QPT_XRC_SEND, QPT_XRC_RECV };

/* Call @try for each pair of a queue pair's state and a target state. */
static void each_pair(struct fixture *f,
		      void (*try)(struct vb_qp *, int from, int to))
{
	for (size_t t = 0; t < VB_COUNT(types); t++) {
		struct vb_qp_init init = init_of(f);
		struct vb_qp_share share = { .async = &f->async };
		struct vb_qp *qp;

		assert_int_equal(vb_xrcd_open(&f->a, NULL, 0, &share.xrcd), 0);
		init.share = &share;
		init.type = types[t];
		qp = make(f, init);
		for (int from = 0; from < QPS_COUNT; from++)
			for (int to = 0; to < QPS_COUNT; to++)
				/* Reliable queue pairs have no state SQE. */
				if (from != QPS_SQE ||
				    !vb_qp_type_is_reliable(types[t]))
					try(qp, from, to);
		if (qp->shares)
			assert_true(vb_qp_unshare(qp, &share));
		vb_qp_destroy(qp);
		assert_int_equal(vb_xrcd_close(share.xrcd), 0);
	}
}

static void assert_untouched(struct vb_qp *qp, const struct vb_qp_attr *before,
			     int entered)
{
	struct vb_qp_attr after;

	vb_qp_query(qp, &after);
	assert_memory_equal(before, &after, sizeof(after));
	assert_int_equal(told.entered, entered);
}

static void try_exact(struct vb_qp *qp, int from, int to)
{
	struct vb_qp_attr before;
	int entered, rc;

	bring_to(qp, from);
	vb_qp_query(qp, &before);
	entered = told.entered;
	rc = modify(qp, to, QPM_STATE | rule_of(qp, from, to)->need);
	if (!is_legal(qp, from, to)) {
		assert_int_equal(rc, -EINVAL);
		assert_untouched(qp, &before, entered);
		return;
	}
	assert_int_equal(rc, 0);
	assert_int_equal(qp->state, to);
	assert_int_equal(told.entered, entered + 1);
	assert_int_equal(told.from, from);
	assert_int_equal(told.to, to);
	assert_int_equal(told.now, 1000);
}

static void moves__each_pair_with_what_it_needs(void **state)
{
	each_pair(*state, try_exact);
}

static void try_missing(struct vb_qp *qp, int from, int to)
{
	uint32_t need = rule_of(qp, from, to)->need;
	struct vb_qp_attr before;
	int entered;

	if (!is_legal(qp, from, to))
		return;
	bring_to(qp, from);
	vb_qp_query(qp, &before);
	entered = told.entered;
	for (uint32_t bit = 1; bit < 1u << 26; bit <<= 1) {
		if (!(need & bit))
			continue;
		assert_int_equal(modify(qp, to, QPM_STATE | (need & ~bit)),
				 -EINVAL);
		assert_untouched(qp, &before, entered);
	}
}

static void moves__each_pair_less_one_attribute(void **state)
{
	each_pair(*state, try_missing);
}

static void try_extra(struct vb_qp *qp, int from, int to)
{
	/* Only InfiniBand has alternate paths. */
	const uint32_t lacking =
		vb_port_is_ib(vb_qp_port(qp)) ? 0 : QPM_ALT_PATH;
	const struct rule *r = rule_of(qp, from, to);

	if (!is_legal(qp, from, to))
		return;
	for (unsigned n = 1; n < 32; n++) {
		uint32_t bit = 1u << n, need = r->need;
		bool fine = r->may & bit & ~lacking;

		if (need & bit)
			continue;
		bring_to(qp, from);
		assert_int_equal(modify(qp, to, QPM_STATE | need | bit),
				 fine ? 0 : -EINVAL);
		assert_int_equal(qp->state, fine ? to : from);
	}
}

static void moves__each_pair_and_one_attribute_more(void **state)
{
	each_pair(*state, try_extra);
}

/* The previous test on InfiniBand, where a queue pair also has an alternate
 * path. */
static void moves__one_attribute_more_on_infiniband(void **state)
{
	struct fixture *f = *state;

	f->a.ports[0].addressing = &vb_addressing_ib;
	f->a.ports[0].gids[1].type = GID_IB;
	each_pair(f, try_extra);
	f->a.ports[0].addressing = &vb_addressing_roce;
}

static void moves__without_state_stay(void **state)
{
	struct fixture *f = *state;
	struct vb_qp *qp = make(f, init_of(f));

	bring_to(qp, QPS_RTS);
	assert_int_equal(modify(qp, QPS_RESET, QPM_ACCESS_FLAGS), 0);
	assert_int_equal(qp->state, QPS_RTS);
	bring_to(qp, QPS_RTR);
	assert_int_equal(modify(qp, QPS_RTR, 0), -EINVAL);
	bring_to(qp, QPS_INIT);
	assert_int_equal(modify(qp, QPS_INIT, QPM_PORT), 0);
	assert_int_equal(modify(qp, 99, QPM_STATE), -EINVAL);
	assert_int_equal(modify(qp, (enum vb_qp_state) - 1, QPM_STATE),
			 -EINVAL);
	vb_qp_destroy(qp);
}

static void cur_state__must_match(void **state)
{
	struct fixture *f = *state;
	struct vb_qp *qp = make(f, init_of(f));
	struct vb_qp_attr attr = good_attr(QPS_RTS);

	bring_to(qp, QPS_RTR);
	attr.cur_qp_state = QPS_RTS;
	assert_int_equal(vb_qp_modify(qp, &attr, TO_RTS | QPM_CUR_STATE, 0),
			 -EINVAL);
	attr.cur_qp_state = QPS_RTR;
	assert_int_equal(vb_qp_modify(qp, &attr, TO_RTS | QPM_CUR_STATE, 0), 0);
	vb_qp_destroy(qp);
}

/* A number in the transition from @from to @to, with its last valid and its
 * first invalid value. */
static void values__at_their_edges(void **state)
{
#define EDGE(from, to, mask, member, good, bad)                                \
	{                                                                      \
		from, to, mask, offsetof(struct vb_qp_attr, member),           \
			sizeof(((struct vb_qp_attr *)0)->member), good, bad    \
	}
	static const struct {
		int from, to;
		uint32_t mask;
		size_t at, bytes;
		uint32_t good, bad;
	} rows[] = {
		EDGE(QPS_RESET, QPS_INIT, TO_INIT, port_num, 1, 0),
		EDGE(QPS_RESET, QPS_INIT, TO_INIT, port_num, 1, 2),
		EDGE(QPS_RESET, QPS_INIT, TO_INIT, pkey_index, 0, 1),
		EDGE(QPS_RESET, QPS_INIT, TO_INIT, pkey_index, 0, 256),
		EDGE(QPS_INIT, QPS_RTR, TO_RTR, path_mtu, 1, 0),
		EDGE(QPS_INIT, QPS_RTR, TO_RTR, path_mtu, 5, 6),
		EDGE(QPS_INIT, QPS_RTR, TO_RTR, min_rnr_timer, 31, 32),
		EDGE(QPS_INIT, QPS_RTR, TO_RTR, max_dest_rd_atomic, 128, 129),
		EDGE(QPS_INIT, QPS_RTR, TO_RTR, dest_qp_num, 0xffffff,
		     0x1000000),
		EDGE(QPS_RTR, QPS_RTS, TO_RTS, timeout, 31, 32),
		EDGE(QPS_RTR, QPS_RTS, TO_RTS, retry_cnt, 7, 8),
		EDGE(QPS_RTR, QPS_RTS, TO_RTS, rnr_retry, 7, 255),
		EDGE(QPS_RTR, QPS_RTS, TO_RTS, max_rd_atomic, 128, 129),
		EDGE(QPS_RTR, QPS_RTS, TO_RTS | QPM_PATH_MIG_STATE,
		     path_mig_state, 0, 1),
	};
#undef EDGE
	struct fixture *f = *state;
	struct vb_qp *qp = make(f, init_of(f));

	for (size_t i = 0; i < VB_COUNT(rows); i++) {
		struct vb_qp_attr attr = good_attr(rows[i].to), before;
		void *at = (char *)&attr + rows[i].at;
		int entered;

		bring_to(qp, rows[i].from);
		vb_qp_query(qp, &before);
		entered = told.entered;
		memcpy(at, &rows[i].bad, rows[i].bytes);
		assert_int_equal(vb_qp_modify(qp, &attr, rows[i].mask, 0),
				 -EINVAL);
		assert_untouched(qp, &before, entered);
		memcpy(at, &rows[i].good, rows[i].bytes);
		assert_int_equal(vb_qp_modify(qp, &attr, rows[i].mask, 0), 0);
	}
	vb_qp_destroy(qp);
}

static void psn__masked(void **state)
{
	struct fixture *f = *state;
	struct vb_qp *qp = make(f, init_of(f));
	struct vb_qp_attr attr = good_attr(QPS_RTR);

	bring_to(qp, QPS_INIT);
	attr.rq_psn = 0xff123456;
	assert_int_equal(vb_qp_modify(qp, &attr, TO_RTR, 0), 0);
	attr = good_attr(QPS_RTS);
	attr.sq_psn = UINT32_MAX;
	assert_int_equal(vb_qp_modify(qp, &attr, TO_RTS, 0), 0);
	assert_int_equal(qp->attr.rq_psn, 0x123456);
	assert_int_equal(qp->attr.sq_psn, 0xffffff);
	vb_qp_destroy(qp);
}

static void av__refusals(void **state)
{
	struct fixture *f = *state;
	struct vb_qp *qp = make(f, init_of(f));
	struct vb_qp_attr attr, before;
	int entered;

	bring_to(qp, QPS_INIT);
	vb_qp_query(qp, &before);
	entered = told.entered;
#define REFUSED(...)                                                           \
	do {                                                                   \
		attr = good_attr(QPS_RTR);                                     \
		__VA_ARGS__;                                                   \
		assert_int_equal(vb_qp_modify(qp, &attr, TO_RTR, 0), -EINVAL); \
		assert_untouched(qp, &before, entered);                        \
	} while (0)
	REFUSED(attr.av.is_global = false);
	REFUSED(attr.av.port_num = 0);
	REFUSED(attr.av.port_num = 2);
	REFUSED(attr.av.sgid_index = 2);
	REFUSED(attr.av.sgid_index = 255);
	REFUSED(memset(&attr.av.dgid, 0, sizeof(attr.av.dgid)));
#undef REFUSED
	vb_qp_destroy(qp);
}

/* A fake link that returns one route, and records the route request that it got
 * last. */
static struct vb_route asked;
static int route_rc;

static int fake_route(struct vb_link *l, struct vb_route *r)
{
	asked = *r;
	r->src_port = 0xc123;
	return route_rc;
}

static const struct vb_link_ops link_ops = { .name = "fake",
					     .route = fake_route };
static struct vb_link fake_link = { &link_ops };

static void route__filled_and_completed_by_the_link(void **state)
{
	struct fixture *f = *state;
	struct vb_qp *qp = make(f, init_of(f));
	struct vb_qp_attr attr = good_attr(QPS_RTR);
	const struct vb_gid sgid = IPV4_GID;

	f->a.ports[0].link = &fake_link;
	attr.av.dgid.raw[15] = 99;
	attr.av.traffic_class = 0x68;
	attr.av.hop_limit = 3;
	attr.av.flow_label = 0xfffabcde;
	bring_to(qp, QPS_INIT);
	route_rc = -ENETUNREACH;
	assert_int_equal(vb_qp_modify(qp, &attr, TO_RTR, 0), -ENETUNREACH);
	assert_int_equal(qp->state, QPS_INIT);
	assert_int_equal(qp->route.dqpn, 0);
	route_rc = 0;
	assert_int_equal(vb_qp_modify(qp, &attr, TO_RTR, 0), 0);
	assert_true(vb_gid_equal(&asked.sgid, &sgid));
	assert_true(vb_gid_equal(&asked.dgid, &attr.av.dgid));
	assert_int_equal(asked.ifindex, 7);
	assert_int_equal(asked.tclass, 0x68);
	/* For a unicast address hop limit 0 means the route's default. */
	assert_int_equal(asked.hop_limit, 0);
	assert_int_equal(asked.flow_label, 0xabcde);
	assert_int_equal(asked.dqpn, 0x777);
	assert_int_equal(asked.sqpn, qp->qpn);
	assert_int_equal(qp->route.src_port, 0xc123);
	assert_int_equal(qp->route.dqpn, 0x777);

	/* In SQD a new path keeps the attributes that the call leaves out. */
	assert_int_equal(modify(qp, QPS_RTS, TO_RTS), 0);
	assert_int_equal(modify(qp, QPS_SQD, QPM_STATE), 0);
	attr.av.dgid.raw[15] = 98;
	attr.av.sgid_index = 0;
	attr.qp_state = QPS_SQD;
	assert_int_equal(vb_qp_modify(qp, &attr, QPM_STATE | QPM_AV, 0), 0);
	assert_int_equal(asked.dqpn, 0x777);
	assert_true(vb_gid_equal(&qp->route.dgid, &attr.av.dgid));
	assert_int_equal(qp->route.sgid.raw[0], 0xfe);
	vb_qp_destroy(qp);
}

static void mtu__no_more_than_the_interface_carries(void **state)
{
	static struct vb_port_update update;
	static const struct {
		uint32_t netdev;
		uint8_t path;
		uint32_t bytes;
	} rows[] = { { 9000, 5, 4096 }, { 9000, 1, 256 }, { 1500, 5, 1024 },
		     { 1500, 3, 1024 }, { 1500, 2, 512 }, { 500, 4, 256 } };
	struct fixture *f = *state;
	struct vb_qp *qp = make(f, init_of(f));

	update = (struct vb_port_update){ .up = true, .count = 1 };
	update.addresses[0] = (struct vb_gid)IPV4_GID;
	for (size_t i = 0; i < VB_COUNT(rows); i++) {
		struct vb_qp_attr attr = good_attr(QPS_RTR);

		update.mtu = rows[i].netdev;
		vb_port_update(&f->a.ports[0], &update);
		attr.path_mtu = rows[i].path;
		bring_to(qp, QPS_INIT);
		assert_int_equal(vb_qp_modify(qp, &attr, TO_RTR, 0), 0);
		assert_int_equal(qp->mtu, rows[i].bytes);
		vb_qp_query(qp, &attr);
		/* A query returns the path MTU that the program set. */
		assert_int_equal(attr.path_mtu, rows[i].path);
	}
	vb_qp_destroy(qp);
}

static void VB_UNCHECKED reset__forgets_everything(void **state)
{
	struct fixture *f = *state;
	struct vb_qp *qp = make(f, init_of(f)), *other = make(f, init_of(f));
	struct vb_qp_attr attr, zero = { 0 };

	bring_to(qp, QPS_RTS);
	post_send(qp, 1, WR_SEND, SEND_SIGNALED);
	post_send(qp, 2, WR_SEND, SEND_SIGNALED);
	post_recv(qp, 3);
	post_recv(qp, 4);
	assert_true(vb_qp_recv_begin(qp));
	vb_qp_send_done(qp, WC_SUCCESS);
	post_recv(other, 77);
	assert_int_equal(modify(other, QPS_ERR, QPM_STATE), 0);

	assert_int_equal(modify(qp, QPS_RESET, QPM_STATE), 0);
	/* RESET purged the completions of @qp only; that of @other stays. */
	assert_cqe(f->cq, 77, WC_FLUSH_ERR, WC_OP_RECV);
	assert_empty(f->cq);
	vb_qp_query(qp, &attr);
	assert_memory_equal(&attr, &zero, sizeof(attr));
	assert_int_equal(qp->mtu, 0);
	assert_false(qp->recv_busy || vb_qp_recv_begin(qp));
	assert_int_equal(vb_sq_end(&qp->sq), qp->sq.done);

	/* After RESET all slots of the queues are free for new requests. */
	bring_to(qp, QPS_RTS);
	for (int i = 0; i < 4; i++) {
		post_send(qp, i, WR_SEND, 0);
		post_recv(qp, 10 + i);
	}
	assert_int_equal(modify(qp, QPS_ERR, QPM_STATE), 0);
	for (int i = 0; i < 4; i++)
		assert_cqe(f->cq, i, WC_FLUSH_ERR, WC_OP_SEND);
	for (int i = 0; i < 4; i++)
		assert_cqe(f->cq, 10 + i, WC_FLUSH_ERR, WC_OP_RECV);
	assert_empty(f->cq);
	vb_qp_destroy(qp);
	vb_qp_destroy(other);
}

static void err__transport_is_told_before_the_flush(void **state)
{
	struct fixture *f = *state;
	struct vb_qp *qp = make(f, init_of(f));

	bring_to(qp, QPS_RTS);
	post_send(qp, 1, WR_SEND, 0);
	told.sq_done_at_enter = 99;
	assert_int_equal(modify(qp, QPS_ERR, QPM_STATE), 0);
	assert_int_equal(told.to, QPS_ERR);
	assert_int_equal(told.sq_done_at_enter, qp->sq.done - 1);
	assert_cqe(f->cq, 1, WC_FLUSH_ERR, WC_OP_SEND);
	/* In ERR a query returns the connection's attributes that were set
	 * before. */
	assert_int_equal(qp->attr.dest_qp_num, 0x777);
	vb_qp_destroy(qp);
}

/* On InfiniBand the destination of a connection cannot be a multicast LID. */
static void modify__a_group_is_no_peer(void **state)
{
	struct fixture *f = *state;
	struct vb_qp *qp = make(f, init_of(f));
	struct vb_qp_attr attr = good_attr(QPS_RTR);

	bring_to(qp, QPS_INIT);
	f->a.ports[0].addressing = &vb_addressing_ib;
	attr.cur_qp_state = QPS_INIT;
	attr.av.dlid = 0xc001;
	assert_int_equal(vb_qp_modify(qp, &attr, TO_RTR, 0), -EINVAL);
	attr.av.dlid = 5;
	assert_int_equal(vb_qp_modify(qp, &attr, TO_RTR, 0), 0);
	f->a.ports[0].addressing = &vb_addressing_roce;
	vb_qp_destroy(qp);
}

/* A queue pair uses the port that the move to INIT names, and that port's
 * tables. */
static void port__of_two(void **state)
{
	struct fixture *f = *state;
	struct vb_qp *qp = make(f, init_of(f));
	struct vb_qp_attr attr = good_attr(QPS_INIT);
	struct vb_port *second = &f->a.ports[1];

	attr.port_num = 2;
	assert_int_equal(vb_qp_modify(qp, &attr, TO_INIT, 0), -EINVAL);
	f->a.port_count = 2;
	attr.pkey_index = 1;
	assert_int_equal(vb_qp_modify(qp, &attr, TO_INIT, 0), -EINVAL);
	atomic_store(&second->pkeys[1], 0x8001);
	atomic_store(&second->pkey_count, 2);
	assert_ptr_equal(vb_qp_port(qp), &f->a.ports[0]);
	assert_int_equal(vb_qp_modify(qp, &attr, TO_INIT, 0), 0);
	assert_ptr_equal(vb_qp_port(qp), second);
	/* the address vector of the move to RTR is valid at the second port
	 * only */
	attr = good_attr(QPS_RTR);
	attr.cur_qp_state = QPS_INIT;
	second->addressing = &vb_addressing_ib;
	second->active_mtu = 5;
	attr.av.dlid = 5;
	attr.av.is_global = false;
	assert_int_equal(attr.av.port_num, 1);
	assert_int_equal(vb_qp_modify(qp, &attr, TO_RTR, 0), -EINVAL);
	attr.av.port_num = 2;
	assert_int_equal(vb_qp_modify(qp, &attr, TO_RTR, 0), 0);
	assert_int_equal(qp->route.ib.dlid, 5);
	assert_int_equal(modify(qp, QPS_RESET, QPM_STATE), 0);
	assert_ptr_equal(vb_qp_port(qp), &f->a.ports[0]);
	second->addressing = &vb_addressing_roce;
	f->a.port_count = 1;
	vb_qp_destroy(qp);
}

/* A connected queue pair can change its port in SQD, together with a new
 * address vector. */
static void port__changes_with_the_address(void **state)
{
	struct fixture *f = *state;
	struct vb_qp *qp = make(f, init_of(f));
	struct vb_qp_attr attr = good_attr(QPS_SQD);

	f->a.port_count = 2;
	bring_to(qp, QPS_RTS);
	assert_int_equal(modify(qp, QPS_SQD, QPM_STATE), 0);
	attr.qp_state = QPS_SQD;
	attr.port_num = attr.av.port_num = 2;
	assert_int_equal(vb_qp_modify(qp, &attr, QPM_STATE | QPM_PORT, 0),
			 -EINVAL);
	f->a.ports[1].addressing = &vb_addressing_ib;
	f->a.ports[1].active_mtu = 5;
	attr.av.dlid = 5;
	attr.av.is_global = false;
	assert_int_equal(
		vb_qp_modify(qp, &attr, QPM_STATE | QPM_PORT | QPM_AV, 0), 0);
	assert_ptr_equal(vb_qp_port(qp), &f->a.ports[1]);
	assert_int_equal(qp->route.ib.dlid, 5);
	f->a.ports[1].addressing = &vb_addressing_roce;
	f->a.port_count = 1;
	vb_qp_destroy(qp);
}

/* When a connected queue pair changes its port, its path MTU and the index of
 * its P_Key must be valid at the new port. */
static void port__the_new_one_has_what_is_kept(void **state)
{
	const uint32_t mask = QPM_STATE | QPM_PORT | QPM_AV;
	struct fixture *f = *state;
	struct vb_port *first = &f->a.ports[0], *second = &f->a.ports[1];
	struct vb_qp *qp = make(f, init_of(f));
	struct vb_qp_attr attr = good_attr(QPS_SQD);

	f->a.port_count = 2;
	atomic_store(&first->pkey_count, 2);
	second->addressing = &vb_addressing_ib;
	bring_to(qp, QPS_SQD);
	attr.av = (struct vb_av){ .dlid = 5, .port_num = 2 };
	attr.port_num = 2;
	second->active_mtu = attr.path_mtu - 1;
	assert_int_equal(vb_qp_modify(qp, &attr, mask, 0), -EINVAL);
	assert_ptr_equal(vb_qp_port(qp), first);
	second->active_mtu = attr.path_mtu;
	attr.pkey_index = 1;
	assert_int_equal(vb_qp_modify(qp, &attr, QPM_STATE | QPM_PKEY_INDEX, 0),
			 0);
	assert_int_equal(vb_qp_modify(qp, &attr, mask, 0), -EINVAL);
	attr.pkey_index = 0;
	assert_int_equal(vb_qp_modify(qp, &attr, mask | QPM_PKEY_INDEX, 0), 0);
	assert_ptr_equal(vb_qp_port(qp), second);
	second->addressing = &vb_addressing_roce;
	f->a.port_count = 1;
	vb_qp_destroy(qp);
}

/* A queue pair for raw packets uses the first Ethernet port only, because its
 * packet socket belongs to that port. */
static void port__of_raw_packets(void **state)
{
	struct fixture *f = *state;
	struct vb_qp_init init = init_of(f);
	struct vb_qp_attr attr = good_attr(QPS_INIT);
	struct vb_qp *qp;

	init.type = QPT_RAW_PACKET;
	qp = make(f, init);
	f->a.port_count = 2;
	f->a.ports[0].addressing = &vb_addressing_ib;
	attr.port_num = 1;
	assert_int_equal(vb_qp_modify(qp, &attr, QPM_STATE | QPM_PORT, 0),
			 -EINVAL);
	attr.port_num = 2;
	assert_int_equal(vb_qp_modify(qp, &attr, QPM_STATE | QPM_PORT, 0), 0);
	f->a.ports[0].addressing = &vb_addressing_roce;
	f->a.port_count = 1;
	vb_qp_destroy(qp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(port__of_two),
		TEST(port__changes_with_the_address),
		TEST(port__the_new_one_has_what_is_kept),
		TEST(port__of_raw_packets),
		TEST(moves__each_pair_with_what_it_needs),
		TEST(modify__a_group_is_no_peer),
		TEST(moves__each_pair_less_one_attribute),
		TEST(moves__each_pair_and_one_attribute_more),
		TEST(moves__one_attribute_more_on_infiniband),
		TEST(moves__without_state_stay),
		TEST(cur_state__must_match),
		TEST(values__at_their_edges),
		TEST(psn__masked),
		TEST(av__refusals),
		TEST(route__filled_and_completed_by_the_link),
		TEST(mtu__no_more_than_the_interface_carries),
		TEST(reset__forgets_everything),
		TEST(err__transport_is_told_before_the_flush),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
