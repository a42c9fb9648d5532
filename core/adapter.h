/* SPDX-License-Identifier: BSD-2-Clause */
/* An adapter: one RDMA device of this process, with its limits, its tables of
 * objects, and the link and transport it uses. */
#ifndef CORE_ADAPTER_H
#define CORE_ADAPTER_H

#include <stdatomic.h>

#include "base/chain.h"
#include "base/idtab.h"
#include "base/rows.h"
#include "base/stash.h"
#include "core/port.h"
#include "core/roster.h"

struct vb_transport;
struct vb_key_ops;
struct vb_flow;
struct vb_xrc_domain;
struct vb_forward_ops;

/* The limits that ibv_query_device() reports and the create functions
 * enforce. */
struct vb_limits {
	uint32_t max_qp, max_qp_wr, max_sge, max_inline;
	uint32_t max_cq, max_cqe, max_mr, max_mw, max_pd, max_ah;
	uint32_t max_srq, max_srq_wr, max_srq_sge;
	uint32_t max_rd_atom, max_init_rd_atom;
	uint64_t max_mr_size;
};
extern const struct vb_limits vb_limits;

/* the most ports of an adapter */
#define VB_MAX_PORTS 2

struct vb_adapter {
	char name[64];
	uint64_t guid; /* GUID of the adapter: an EUI-64, in host byte order */
	/* GUID of the system that has the adapter; 0: @guid is its GUID, too */
	uint64_t sys_guid;
	/* VendorID, DeviceID and Revision of an InfiniBand node (IBA
	 * 14.2.5.3); 0: none */
	uint32_t vendor_id, device_id, revision;
	/* The ports, of which port number n is at index n - 1. They share the
	 * tables of objects: a queue pair chooses its port when it leaves
	 * RESET. */
	struct vb_port ports[VB_MAX_PORTS];
	unsigned port_count;
	/* Memory key index -> region or window. Adding needs mr_lock; lookups
	 * need no lock. */
	struct vb_rows *mrs;
	/* Random values that scramble the indices in keys (core/mr.c). */
	uint32_t key_mask, key_mul, key_inv;
	struct vb_mutex mr_lock;
	/* Under mr_lock: the list of deregistered regions that can be used
	 * again, the one that was deregistered longest ago first. */
	struct vb_mr *mr_free, *mr_free_last;
	uint32_t mr_free_count;
	struct vb_mutex xrc_lock;
	/* The fields below are protected by xrc_lock (core/xrc.h). */
	struct vb_chain *xrc_domains; /* the XRC domains that have a key */
	/* XRC SRQs by number; the table is created with the first of them */
	struct vb_idtab *xrc_srqs;
	uint64_t xrc_lives;
	/* the number of the last request forwarded to another process */
	_Atomic uint64_t xrc_serial;
	/* functions that forward requests to other processes; NULL: none is
	 * forwarded */
	const struct vb_forward_ops *forward_ops;
	/* queue pairs by the low bits of their QPN; the engine owns the
	 * table */
	struct vb_idtab *qps;
	/* the high bits of every QPN: the slot of this process, at all ports */
	uint32_t qpn_base;
	/* The slot by which other programs of this host find this process; 0:
	 * they cannot. */
	unsigned host_slot;
	const struct vb_transport *transport;
	/* true: the adapter is an iWARP device, which has only RC queue
	 * pairs */
	bool rnic;
	/* The engine's functions that learn of each key that is granted or
	 * revoked; NULL: none. Set before the first key is made. */
	const struct vb_key_ops *key_ops;
	/* list of flow steering rules, protected by the engine's receive
	 * lock */
	struct vb_flow *flows;
	unsigned number; /* the number of the adapter in this process, from 0 */
	/* bytes of all packets kept because they came before their turn */
	_Atomic uint64_t ooo_bytes;
	/* memory for packets that came before their turn */
	struct vb_stash ooo_stash;
	/* lists the objects alive, for other processes to read */
	struct vb_roster roster;
	/* The number of objects alive of each kind, limited by vb_limits. */
	_Atomic uint32_t n_qp, n_cq, n_mr, n_mw, n_pd, n_srq, n_ah;
	/* the counters, indexed by enum vb_counter */
	_Atomic uint64_t *counters;
	/* the counters, until the engine points `counters` to shared memory */
	_Atomic uint64_t own_counters[32];
	/* descriptor of the shared counters, set by engine/counters.c */
	int counters_fd;
	/* address of the shared counters, set by engine/counters.c */
	void *counter_rows;
};

/* The device's hw_counters. vb_counter_name() returns Linux's name for a
 * counter where Linux has one. */
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
	CNT_DROP_BUSY,
	/* requests to other programs of this host that went without packets,
	 * and the bytes of their messages; the requester counts them */
	CNT_NEAR_REQUESTS,
	CNT_NEAR_BYTES,
	CNT_COUNT,
};
/* Returns the file name of a counter in hw_counters; a static string. */
const char *vb_counter_name(enum vb_counter c);

static inline void vb_count(struct vb_adapter *a, enum vb_counter c, uint64_t n)
{
	/* Relaxed: a statistical counter orders no other memory access. */
	atomic_fetch_add_explicit(&a->counters[c], n, memory_order_relaxed);
}

/* Returns port @number, which counts from 1; NULL: there is no such port. */
static inline struct vb_port *vb_adapter_port(struct vb_adapter *a,
					      unsigned number)
{
	return number >= 1 && number <= a->port_count ? &a->ports[number - 1]
						      : NULL;
}

/* Returns the first Ethernet port, by which raw packets go; NULL: there is
 * none. */
struct vb_port *vb_adapter_ethernet(struct vb_adapter *a);

/* Initialize @a, whatever it held before, with one port that has RoCE's
 * addressing. The caller then sets guid, qps, qpn_base, transport, key_ops,
 * number, port_count and the links of the ports. 0 or -ENOMEM. */
VB_MUST_CHECK int vb_adapter_init(struct vb_adapter *a, const char *name);
/* Free what vb_adapter_init() made, after every object of @a is destroyed. */
void vb_adapter_fini(struct vb_adapter *a);

/* Count one more object alive. False: @max objects are alive already, and the
 * count stays. vb_limit_give() counts one fewer. Any thread, no lock. */
VB_MUST_CHECK bool vb_limit_take(_Atomic uint32_t *alive, uint32_t max);
void vb_limit_give(_Atomic uint32_t *alive);

/* The origin of an imported protection domain: the process of this host that
 * allocated it. */
struct vb_pd_origin {
	/* false: the domain is this process's, and slot and adapter are
	 * unused */
	bool is_imported;
	unsigned slot, adapter;
};

struct vb_pd {
	struct vb_adapter *adapter;
	/* number of objects that use the domain; see vb_pd_get() */
	_Atomic uint32_t refs;
	/* Unique among the domains alive. Numbering starts at a random value so
	 * that the ids of other processes differ, too. An imported domain has
	 * the id of its original. */
	uint32_t id;
	/* Of an imported domain: the process that is asked about keys that this
	 * process does not know. */
	struct vb_pd_origin origin;
	/* the contexts that own the domain; protected by the front end's
	 * lock */
	struct vb_chain *owners;
	uint32_t row; /* the number of the domain's row in the roster */
};

/* Allocate a protection domain; the caller owns it. 0 or -ENOMEM.
 * vb_pd_import() makes one that stands for domain @id of the process @from. */
VB_MUST_CHECK int vb_pd_create(struct vb_adapter *a, struct vb_pd **pd);
VB_MUST_CHECK int vb_pd_import(struct vb_adapter *a, uint32_t id,
			       const struct vb_pd_origin *from,
			       struct vb_pd **pd);
/* Free the domain. -EBUSY while an object uses it. */
VB_MUST_CHECK int vb_pd_destroy(struct vb_pd *pd);
/* Free the domain as soon as the last object that uses it is destroyed. */
void vb_pd_abandon(struct vb_pd *pd);

/* Count, or stop counting, an object that uses the domain. vb_pd_put() frees an
 * abandoned domain with its last object. Any thread, no lock. */
void vb_pd_get(struct vb_pd *pd);
void vb_pd_put(struct vb_pd *pd);

/* Called in the child of a fork: choose a new random first id, so that the
 * child's domains do not get the ids of the parent's. */
void vb_pd_after_fork(void);

#endif
