/* SPDX-License-Identifier: BSD-2-Clause */
/* One device of this process: limits, tables, and what it stands on. */
#ifndef CORE_ADAPTER_H
#define CORE_ADAPTER_H

#include <stdatomic.h>

#include "base/chain.h"
#include "base/idtab.h"
#include "base/rows.h"
#include "base/stash.h"
#include "core/port.h"
#include "core/roster.h"

struct vb_transport_ops;
struct vb_key_ops;
struct vb_link;
struct vb_flow;
struct vb_xrc_domain;
struct vb_forward_ops;

/* What ibv_query_device answers and create functions enforce. */
struct vb_limits {
	uint32_t max_qp, max_qp_wr, max_sge, max_inline;
	uint32_t max_cq, max_cqe, max_mr, max_mw, max_pd, max_ah;
	uint32_t max_srq, max_srq_wr, max_srq_sge;
	uint32_t max_rd_atom, max_init_rd_atom;
	uint64_t max_mr_size;
};
extern const struct vb_limits vb_limits;

struct vb_adapter {
	char name[64];
	uint64_t guid; /* host order of an EUI-64 */
	struct vb_port port;
	/* Memory key index -> region or window; mr_lock to add. */
	struct vb_rows *mrs;
	/* random; they scramble key indices: core/mr.c */
	uint32_t key_mask, key_mul, key_inv;
	struct vb_mutex mr_lock;
	/* mr_lock: regions to recycle, the longest unused first */
	struct vb_mr *mr_free, *mr_free_last;
	uint32_t mr_free_count;
	struct vb_mutex xrc_lock;
	/* xrc_lock: core/xrc.h */
	struct vb_chain *xrc_domains; /* those with a key */
	struct vb_idtab *xrc_srqs;    /* made with the first */
	uint64_t xrc_lives;
	_Atomic uint64_t xrc_serial;		  /* of requests handed over */
	const struct vb_forward_ops *forward_ops; /* or NULL: to nobody */
	struct vb_idtab *qps; /* borrowed from the engine: low QPN bits */
	uint32_t qpn_base;    /* high QPN bits: this process's slot */
	struct vb_link *link; /* borrowed */
	const struct vb_transport_ops *transport;
	bool rnic; /* iWARP: reliable connections, and nothing else */
	/* Who else is told of keys, or NULL; before the first key is made. */
	const struct vb_key_ops *key_ops;
	struct vb_flow *flows;	    /* the engine's receive lock */
	unsigned number;	    /* among those of this process, from 0 */
	_Atomic uint64_t ooo_bytes; /* in packets that wait for their turn */
	struct vb_stash early;	    /* what they are kept in */
	struct vb_roster roster;    /* which objects are alive */
	/* objects alive */
	_Atomic uint32_t n_qp, n_cq, n_mr, n_mw, n_pd, n_srq, n_ah;
	_Atomic uint64_t *counters;	   /* enum vb_counter */
	_Atomic uint64_t own_counters[32]; /* where they are, at first */
	int counters_fd;		   /* engine/counters.c */
	void *counter_rows;		   /* its */
};

/* hw_counters, with Linux's names where it has one (vb_counter_name). */
enum vb_counter {
	CNT_DUPLICATE_REQUEST,
	CNT_OUT_OF_SEQUENCE,
	CNT_RCVD_RNR_ERR,
	CNT_SEND_RNR_ERR,
	CNT_RCVD_SEQ_ERR,
	CNT_ACK_DEFERRED,
	CNT_RETRY_EXCEEDED,
	CNT_RNR_RETRY_EXCEEDED,
	CNT_SEND_ERR,
	CNT_RETRANSMITS,
	CNT_TIMEOUTS,
	CNT_SENT_PKTS,
	CNT_RCVD_PKTS,
	CNT_NAK_INVALID,
	CNT_NAK_ACCESS,
	CNT_NAK_OP,
	CNT_DROP_MALFORMED,
	CNT_DROP_TRANSPORT,
	CNT_DROP_STATE,
	CNT_DROP_ADDRESS,
	CNT_DROP_PKEY,
	CNT_DROP_IP_ID,
	CNT_DROP_BAD_RESPONSE,
	CNT_DROP_QKEY,
	CNT_DROP_NO_RECV,
	CNT_DROP_TOO_LONG,
	CNT_DROP_BROKEN,
	CNT_DROP_REFUSED,
	CNT_COUNT,
};
const char *vb_counter_name(enum vb_counter c);

static inline void vb_count(struct vb_adapter *a, enum vb_counter c, uint64_t n)
{
	/* Statistics: no order with anything else is needed. */
	atomic_fetch_add_explicit(&a->counters[c], n, memory_order_relaxed);
}

/* Zeroes @a first; guid, qps, qpn_base, link, transport, key_ops and number
 * are the caller's to set. -ENOMEM. */
VB_MUST_CHECK int vb_adapter_init(struct vb_adapter *a, const char *name);
/* Everything made on it is gone by now. */
void vb_adapter_fini(struct vb_adapter *a);

/* Count one more object alive; false when there are @max. */
VB_MUST_CHECK bool vb_limit_take(_Atomic uint32_t *alive, uint32_t max);
void vb_limit_give(_Atomic uint32_t *alive);

/* Where a domain was made: another process of this host. */
struct vb_pd_origin {
	bool is_far; /* else nothing below counts */
	unsigned slot, adapter;
};

struct vb_pd {
	struct vb_adapter *adapter;
	_Atomic uint32_t refs; /* objects that stand on it: vb_pd_get() */
	/* Differs from that of all others alive; first a random one, so that
	 * another process's differ, too. An imported one has its origin's. */
	uint32_t id;
	/* Keys that are not known here are asked for there. */
	struct vb_pd_origin origin;
	struct vb_chain *owners; /* the front end's, and under its lock */
	uint32_t row;		 /* in the roster */
};

/* -ENOMEM. */
VB_MUST_CHECK int vb_pd_create(struct vb_adapter *a, struct vb_pd **pd);
VB_MUST_CHECK int vb_pd_import(struct vb_adapter *a, uint32_t id,
			       const struct vb_pd_origin *from,
			       struct vb_pd **pd);
VB_MUST_CHECK int vb_pd_destroy(struct vb_pd *pd); /* -EBUSY */
/* Its end is that of the last object on it. */
void vb_pd_abandon(struct vb_pd *pd);

/* For an object that stands on it. After the put it may be gone. */
void vb_pd_get(struct vb_pd *pd);
void vb_pd_put(struct vb_pd *pd);

/* In the child of a fork, whose domains are not to have its parent's ids. */
void vb_pd_after_fork(void);

#endif
