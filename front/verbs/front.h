/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What stands between the public verbs ABI and core: each object a program
 * holds is a wrapper that begins with the public struct and points at core's
 * object; core's owner pointer points back. Signs, errno values, symbol
 * versions and event acknowledgement live here and nowhere below.
 */
#ifndef FRONT_VERBS_FRONT_H
#define FRONT_VERBS_FRONT_H

/* What the public header declares is what this library exports. */
#pragma GCC visibility push(default)
#include <infiniband/verbs.h>
#pragma GCC visibility pop

#include "base/chain.h"
#include "core/mw.h"
#include "engine/engine.h"

/* For exported names that the public header does not declare. */
#define VB_EXPORT __attribute__((visibility("default")))

/* live.c: an object's entry in the list of those that are there. */
enum vb_front_kind {
	FRONT_CONTEXT,
	FRONT_PD,
	FRONT_TD,
	FRONT_MR,
	FRONT_MW,
	FRONT_DM,
	FRONT_AH,
	FRONT_CHANNEL,
	FRONT_CQ,
	FRONT_SRQ,
	FRONT_XRCD,
	FRONT_QP,
	FRONT_WQ,
	FRONT_TABLE,
	FRONT_FLOW,
	FRONT_COUNTERS,
};

/* Where the public header's own functions call through the object's context, it
 * stands in front of the public struct: an allocator writes into the first
 * bytes of what was freed, and a program that destroys twice gets as far as to
 * us. */
struct vb_front_live {
	struct vb_chain chain;
	const void *object;
	const uint32_t *shown; /* its public handle, or NULL */
	uint32_t handle;       /* what that is */
	enum vb_front_kind kind;
};

struct vb_front_device {
	struct ibv_device ibv;
	/* Provider libraries (mlx5dv_is_supported() and its like) compare the
	 * word behind the public struct with a table of their own; it never
	 * matches here. */
	const void *no_provider[6];
	struct vb_device found;
	/* the registry's lock */
	unsigned users; /* lists and contexts that point here */
	bool present;	/* the last listing saw it */
	struct vb_front_device *next;
};

struct vb_front_context {
	struct vb_front_live live; /* until it is closed */
	struct vb_adapter *adapter;
	struct vb_front_file *file; /* NULL: none, nothing can be imported */
	uint64_t maker;		    /* of cmd_fd: vb_front_file_is_ours() */
	unsigned free_domain;	    /* in the file: the lock of shared.c */
	struct vb_async async;
	/* One for the program's open, one for each object: a program that
	 * closes first and destroys later finds its objects intact. */
	_Atomic unsigned refs;
	unsigned forks;		/* vb_engine_forks() when it was opened */
	uint32_t row;		/* in the adapter's roster */
	struct verbs_context v; /* last: programs measure it by its own sz */
};

struct vb_front_td {
	struct vb_front_live live; /* in front: above */
	struct ibv_td ibv;
	_Atomic uint32_t refs; /* parental domains */
};

/* Several may share one of core: a parental domain, or an imported one. */
struct vb_front_pd {
	struct ibv_pd ibv;
	struct vb_front_live live;
	struct vb_pd *core; /* a plain one's goes before it */
	bool is_far;	    /* another process made it */
	unsigned place;	    /* in the context's file; 0: not there */
	/* a parent's: */
	bool is_parent, has_allocators;
	struct vb_front_td *td;	 /* or NULL */
	struct vb_memory memory; /* by the program's allocators */
	struct ibv_parent_domain_init_attr attr;
	/* the lock of all domains */
	struct vb_chain same;	  /* others of the same of core */
	struct vb_chain neighbor; /* whose handles have the same hash */
};

/* What a dmabuf's descriptor gave, mapped. */
struct vb_front_map {
	uint8_t *at; /* NULL: none */
	size_t length;
	uint64_t into; /* where what was asked for begins */
};

/* Device memory, whichever contexts' objects it is known by. */
struct vb_front_memory {
	/* immutable */
	const struct ibv_device *device;
	uint32_t handle;
	uint8_t *bytes;
	uint64_t length;
	void *map;
	size_t mapped;
	struct vb_front_context *home; /* whose file has it; or NULL */
	unsigned place;		       /* there */
	bool is_far;		       /* another process made it */
	_Atomic uint32_t refs;	       /* regions; is_far: and handles */
	struct vb_chain link;	       /* those of this process */
};

/* Most of it that there is, for all devices of a process. */
#define VB_FRONT_DM_BYTES (64u << 20)

struct vb_front_dm {
	struct vb_front_live live; /* in front: above */
	struct ibv_dm ibv;
	struct vb_front_memory *memory;
	bool is_far; /* memory may be gone when it is unimported */
};

enum vb_front_mr_kind {
	FRONT_MR_PLAIN, /* which may be registered anew */
	FRONT_MR_NULL,
	FRONT_MR_MAPPED,
	FRONT_MR_DM,
	FRONT_MR_FAR, /* of another process: there is none of core */
};

struct vb_front_mr {
	struct ibv_mr ibv;
	struct vb_front_live live;
	struct vb_mr *core;
	enum vb_front_mr_kind kind;
	struct vb_front_map map;	/* FRONT_MR_MAPPED */
	struct vb_front_memory *memory; /* FRONT_MR_DM */
};

struct vb_front_mw {
	struct vb_front_live live; /* in front: above */
	struct ibv_mw ibv;
	struct vb_mr *core;
};

struct vb_front_ah {
	struct ibv_ah ibv;
	struct vb_front_live live;
	struct vb_ah *core;
};

struct vb_front_channel {
	struct ibv_comp_channel ibv;
	struct vb_front_live live;
	struct vb_channel core;
};

struct vb_front_cq {
	union {
		struct ibv_cq ibv;
		struct ibv_cq_ex ex;
	};
	struct vb_front_live live;
	struct vb_cq *core;
	uint32_t async_taken; /* the context's async.lock */
	struct vb_mutex poll; /* held from start_poll to end_poll */
	struct vb_cqe at;     /* poll */
};

struct vb_front_xrcd {
	struct vb_front_live live; /* in front: above */
	struct ibv_xrcd ibv;
	struct vb_xrcd *core;
	int lock_fd; /* of its inode; -1: none */
};

struct vb_front_srq {
	struct ibv_srq ibv;
	struct vb_front_live live;
	struct vb_srq *core;
	uint32_t async_taken; /* the context's async.lock */
};

struct vb_front_wq {
	struct vb_front_live live; /* in front: above */
	struct ibv_wq ibv;
	struct vb_qp *core;    /* QPT_WQ */
	_Atomic uint32_t refs; /* tables' entries */
	uint32_t async_taken;  /* the context's async.lock */
};

/* Work requests under construction, from wr_start to wr_complete; the send
 * queue's lock is held meanwhile. */
struct vb_front_builder {
	struct vb_send_wqe *wqe; /* the newest; NULL: none, or refused */
	uint32_t count;
	bool addressed; /* of UD and XRC: the newest knows where it goes */
	int error;	/* the first; positive errno */
};

struct vb_front_qp {
	union {
		struct ibv_qp ibv;
		struct ibv_qp_ex ex;
	};
	/* The member that newer headers have behind wr_atomic_write. */
	void (*wr_flush)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr,
			 size_t len, uint8_t type, uint8_t level);
	struct vb_front_live live;
	struct vb_qp *core;
	struct vb_qp_share share;	 /* of an XRC target */
	struct ibv_rwq_ind_table *table; /* receives go there, or NULL */
	bool extended;			 /* created for the ibv_wr_* calls */
	bool sig_all;
	uint32_t async_taken; /* the context's async.lock */
	struct vb_front_builder build;
};

static inline struct vb_front_context *vb_front_context(struct ibv_context *c)
{
	return VB_CONTAINER_OF(c, struct vb_front_context, v.context);
}

/* iWARP: reliable connections, and nothing else. */
static inline bool vb_front_is_rnic(struct ibv_context *c)
{
	return vb_front_context(c)->adapter->rnic;
}

/*
 * Does the object belong to a parent of this process? A child that tidies up
 * (destructors, atexit) must neither hang on locks that its parent's threads
 * held when it forked, nor take events that are the parent's: destroying then
 * succeeds and does nothing.
 */
static inline bool vb_front_is_inherited(struct ibv_context *c)
{
	return VB_UNLIKELY(vb_front_context(c)->forks != vb_engine_forks());
}

static inline struct vb_front_cq *vb_front_cq(struct ibv_cq *cq)
{
	return VB_CONTAINER_OF(cq, struct vb_front_cq, ibv);
}

static inline struct vb_front_qp *vb_front_qp(struct ibv_qp *qp)
{
	return VB_CONTAINER_OF(qp, struct vb_front_qp, ibv);
}

static inline struct vb_front_wq *vb_front_wq(struct ibv_wq *wq)
{
	return VB_CONTAINER_OF(wq, struct vb_front_wq, ibv);
}

static inline struct vb_front_srq *vb_front_srq(struct ibv_srq *srq)
{
	return VB_CONTAINER_OF(srq, struct vb_front_srq, ibv);
}

static inline struct vb_front_xrcd *vb_front_xrcd(struct ibv_xrcd *xrcd)
{
	return VB_CONTAINER_OF(xrcd, struct vb_front_xrcd, ibv);
}

static inline struct vb_front_mr *vb_front_mr(struct ibv_mr *mr)
{
	return VB_CONTAINER_OF(mr, struct vb_front_mr, ibv);
}

static inline struct vb_front_dm *vb_front_dm(struct ibv_dm *dm)
{
	return VB_CONTAINER_OF(dm, struct vb_front_dm, ibv);
}

static inline struct vb_front_pd *vb_front_pd(struct ibv_pd *pd)
{
	return VB_CONTAINER_OF(pd, struct vb_front_pd, ibv);
}

static inline struct vb_front_ah *vb_front_ah(struct ibv_ah *ah)
{
	return VB_CONTAINER_OF(ah, struct vb_front_ah, ibv);
}

/* Where the queues come from that are made with this domain. */
static inline struct vb_memory *vb_front_memory(struct ibv_pd *pd)
{
	return vb_front_pd(pd)->has_allocators ? &vb_front_pd(pd)->memory
					       : NULL;
}

/* Set errno from 0 or -errno, and return the ABI's 0 or positive errno. */
static inline int vb_front_errno(int rc)
{
	if (rc)
		errno = -rc;
	return -rc;
}

static inline void *vb_front_null(int rc)
{
	errno = -rc;
	return NULL;
}

/* live.c: the object, complete, is the program's from now on, and until then.
 * @handle: where its public struct has one, or NULL. */
void vb_front_live_add(struct vb_front_live *l, enum vb_front_kind kind,
		       const void *object, const uint32_t *handle);
void vb_front_live_del(struct vb_front_live *l);
/* Any address: 0 when such an object is there. -ENOENT: none is, or its handle
 * was overwritten; -EINVAL: it is of another kind. */
int vb_front_live(enum vb_front_kind kind, const void *object);

/* The same for calls that return an errno, and set it. */
static inline int vb_front_unknown(enum vb_front_kind kind, const void *object)
{
	return vb_front_errno(vb_front_live(kind, object));
}

/*
 * shared.c: what a context's cmd_fd holds, for contexts that are imported from
 * it, perhaps in another process.
 */
struct vb_front_file;
struct vb_front_file_head {
	char magic[8];
	uint64_t guid;
	uint64_t maker; /* the process: a number that no other has */
	uint32_t ifindex, kind;
	uint32_t slot, adapter; /* of the process that made it */
};
/* A descriptor, or -errno. */
int vb_front_file_make(const struct vb_device *d);
/* -EINVAL: it is no context's. */
int vb_front_file_read(int fd, struct vb_front_file_head *head);
/* The file of the context's cmd_fd, and whose it is; one that nobody can cut
 * off below us, or none. */
void vb_front_file_map(struct vb_front_context *c);
/* Else objects are looked for in the file alone: the handles of two processes
 * may be equal. */
bool vb_front_file_is_ours(const struct vb_front_context *c);
void vb_front_file_unmap(struct vb_front_file *f);

/* A domain: its place, 0: there is none. */
unsigned vb_front_file_add_pd(struct vb_front_context *c, uint32_t handle);
void vb_front_file_drop_pd(struct vb_front_context *c, unsigned place);
/* -ENOENT: no such domain of another process, which vb_engine_meet() met. */
int vb_front_file_find_pd(struct vb_front_context *c, uint32_t handle,
			  struct vb_pd_origin *from);

/* Device memory: map @bytes at @at, zeroed, for others to find. The place, or
 * 0: what is mapped there stays. */
unsigned vb_front_file_add_dm(struct vb_front_context *c, uint32_t handle,
			      void *at, uint64_t length);
void vb_front_file_drop_dm(struct vb_front_context *c, unsigned place);
/* -ENOENT, or of the system; *@at is as long as *@length, in whole pages. */
int vb_front_file_find_dm(struct vb_front_context *c, uint32_t handle,
			  uint8_t **at, uint64_t *length);

/* device.c: an object was made on the context, or is gone. */
void vb_front_context_get(struct ibv_context *context);
void vb_front_context_put(struct ibv_context *context);
/* A number for an object's handle: not 0, not used before. */
uint32_t vb_front_handle(void);

/* objects.c: forget what is queued for @owner, then wait until the program
 * acknowledged what it took. */
void vb_front_drain_async(struct ibv_context *context, const void *owner,
			  const uint32_t *taken, pthread_mutex_t *mutex,
			  pthread_cond_t *cond, const uint32_t *acked);
/* Counts an event as taken, where destroy will look for it. */
void vb_front_count_taken(const struct vb_event *e);
struct ibv_cq_ex *vb_front_create_cq_ex(struct ibv_context *context,
					struct ibv_cq_init_attr_ex *attr);

int vb_front_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);

struct ibv_srq *vb_front_create_srq_ex(struct ibv_context *context,
				       struct ibv_srq_init_attr_ex *attr);

/* domain.c */
struct ibv_td *vb_front_alloc_td(struct ibv_context *context,
				 struct ibv_td_init_attr *attr);
int vb_front_dealloc_td(struct ibv_td *td);
struct ibv_pd *
vb_front_alloc_parent_domain(struct ibv_context *context,
			     struct ibv_parent_domain_init_attr *attr);

/* qp.c */
struct vb_av vb_front_av_in(const struct ibv_ah_attr *a);
struct ibv_ah_attr vb_front_av_out(const struct vb_av *av);
struct ibv_qp *vb_front_create_qp_ex(struct ibv_context *context,
				     struct ibv_qp_init_attr_ex *attr);

/* xrc.c */
struct ibv_xrcd *vb_front_open_xrcd(struct ibv_context *context,
				    struct ibv_xrcd_init_attr *attr);
int vb_front_close_xrcd(struct ibv_xrcd *xrcd);
struct ibv_srq *vb_front_create_xrc_srq(struct ibv_srq_init_attr_ex *attr);
int vb_front_get_srq_num(struct ibv_srq *srq, uint32_t *number);
struct ibv_qp *vb_front_open_qp(struct ibv_context *context,
				struct ibv_qp_open_attr *attr);

/* flow.c */
struct ibv_flow *vb_front_create_flow(struct ibv_qp *qp,
				      struct ibv_flow_attr *attr);
int vb_front_destroy_flow(struct ibv_flow *flow);
struct ibv_counters *
vb_front_create_counters(struct ibv_context *context,
			 struct ibv_counters_init_attr *attr);
int vb_front_destroy_counters(struct ibv_counters *counters);
int vb_front_attach_counters(struct ibv_counters *counters,
			     struct ibv_counter_attach_attr *attr,
			     struct ibv_flow *flow);
int vb_front_read_counters(struct ibv_counters *counters, uint64_t *values,
			   uint32_t count, uint32_t flags);

/* rss.c; the last three are for queue pairs over a table: 0 or -errno. */
struct ibv_wq *vb_front_create_wq(struct ibv_context *context,
				  struct ibv_wq_init_attr *attr);
int vb_front_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *attr);
int vb_front_destroy_wq(struct ibv_wq *wq);
struct ibv_rwq_ind_table *
vb_front_create_rwq_table(struct ibv_context *context,
			  struct ibv_rwq_ind_table_init_attr *attr);
int vb_front_destroy_rwq_table(struct ibv_rwq_ind_table *table);
int vb_front_rss_check(const struct ibv_qp_init_attr_ex *attr);
/* Makes init->rss, which is the caller's to free after the queue pair. */
int vb_front_rss_take(const struct ibv_qp_init_attr_ex *attr,
		      struct vb_qp_init *init);
void vb_front_rss_hold(struct ibv_rwq_ind_table *table, int by);

/* device.c: behind ops and behind the names of other files. */
int vb_front_query_port(struct ibv_context *context, uint8_t port_num,
			struct ibv_port_attr *attr, size_t size);
uint32_t vb_front_port_mbits(struct ibv_context *context);
int vb_front_gid_type(struct ibv_context *context, uint8_t port_num,
		      unsigned index, int *type);

/* names.c */
const char *vb_front_wr_name(unsigned opcode);

/* memory.c; the first: a region at any address as peers see it; sets errno. */
struct ibv_mr *vb_front_register(struct ibv_pd *pd, void *addr, size_t length,
				 uint64_t iova, unsigned access);
struct ibv_mr *vb_front_alloc_null_mr(struct ibv_pd *pd);
int vb_front_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice,
		       uint32_t flags, struct ibv_sge *list, uint32_t count);
struct ibv_dm *vb_front_alloc_dm(struct ibv_context *context,
				 struct ibv_alloc_dm_attr *attr);
int vb_front_free_dm(struct ibv_dm *dm);
struct ibv_mr *vb_front_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm,
				  uint64_t offset, size_t length,
				  unsigned access);
struct ibv_mw *vb_front_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int vb_front_dealloc_mw(struct ibv_mw *mw);

/* post.c, poll.c; wr_builder.c, cq_ex.c */
int vb_front_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		       struct ibv_send_wr **bad_wr);
int vb_front_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw,
		     struct ibv_mw_bind *bind);
int vb_front_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		       struct ibv_recv_wr **bad_wr);
int vb_front_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			   struct ibv_recv_wr **bad_wr);
int vb_front_post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *wr,
			  struct ibv_ops_wr **bad_wr);
int vb_front_post_wq_recv(struct ibv_wq *wq, struct ibv_recv_wr *wr,
			  struct ibv_recv_wr **bad_wr);
int vb_front_poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc);
int vb_front_req_notify_cq(struct ibv_cq *cq, int solicited_only);
/* Fill in the ibv_wr_* calls, and the calls that poll an extended queue. */
void vb_front_builder_init(struct vb_front_qp *qp);
void vb_front_cq_ex_init(struct vb_front_cq *cq);

/*
 * core/types.h and core/qp.h repeat values of the ABI so that core needs no
 * public header and the front end no translation tables. Here they meet.
 */
#define SAME(ours, abi)                                                        \
	_Static_assert((int)(ours) == (int)(abi), #ours " is " #abi)

// clang-format off
SAME(QPT_RC, IBV_QPT_RC);
SAME(QPT_UC, IBV_QPT_UC);
SAME(QPT_UD, IBV_QPT_UD);
SAME(QPT_RAW_PACKET, IBV_QPT_RAW_PACKET);
SAME(QPT_XRC_SEND, IBV_QPT_XRC_SEND);
SAME(QPT_XRC_RECV, IBV_QPT_XRC_RECV);

SAME(QPS_RESET, IBV_QPS_RESET);
SAME(QPS_INIT, IBV_QPS_INIT);
SAME(QPS_RTR, IBV_QPS_RTR);
SAME(QPS_RTS, IBV_QPS_RTS);
SAME(QPS_SQD, IBV_QPS_SQD);
SAME(QPS_SQE, IBV_QPS_SQE);
SAME(QPS_ERR, IBV_QPS_ERR);

SAME(WR_WRITE, IBV_WR_RDMA_WRITE);
SAME(WR_WRITE_IMM, IBV_WR_RDMA_WRITE_WITH_IMM);
SAME(WR_SEND, IBV_WR_SEND);
SAME(WR_SEND_IMM, IBV_WR_SEND_WITH_IMM);
SAME(WR_READ, IBV_WR_RDMA_READ);
SAME(WR_CMP_SWAP, IBV_WR_ATOMIC_CMP_AND_SWP);
SAME(WR_FETCH_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD);
SAME(WR_LOCAL_INV, IBV_WR_LOCAL_INV);
SAME(WR_BIND_MW, IBV_WR_BIND_MW);
SAME(WR_SEND_INV, IBV_WR_SEND_WITH_INV);
SAME(WR_ATOMIC_WRITE, IBV_WR_ATOMIC_WRITE);

SAME(SEND_FENCE, IBV_SEND_FENCE);
SAME(SEND_SIGNALED, IBV_SEND_SIGNALED);
SAME(SEND_SOLICITED, IBV_SEND_SOLICITED);
SAME(SEND_INLINE, IBV_SEND_INLINE);

SAME(WC_SUCCESS, IBV_WC_SUCCESS);
SAME(WC_LOC_LEN_ERR, IBV_WC_LOC_LEN_ERR);
SAME(WC_LOC_QP_OP_ERR, IBV_WC_LOC_QP_OP_ERR);
SAME(WC_LOC_PROT_ERR, IBV_WC_LOC_PROT_ERR);
SAME(WC_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR);
SAME(WC_MW_BIND_ERR, IBV_WC_MW_BIND_ERR);
SAME(WC_BAD_RESP_ERR, IBV_WC_BAD_RESP_ERR);
SAME(WC_LOC_ACCESS_ERR, IBV_WC_LOC_ACCESS_ERR);
SAME(WC_REM_INV_REQ_ERR, IBV_WC_REM_INV_REQ_ERR);
SAME(WC_REM_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR);
SAME(WC_REM_OP_ERR, IBV_WC_REM_OP_ERR);
SAME(WC_RETRY_EXC_ERR, IBV_WC_RETRY_EXC_ERR);
SAME(WC_RNR_RETRY_EXC_ERR, IBV_WC_RNR_RETRY_EXC_ERR);
SAME(WC_REM_INV_RD_REQ_ERR, IBV_WC_REM_INV_RD_REQ_ERR);
SAME(WC_FATAL_ERR, IBV_WC_FATAL_ERR);
SAME(WC_GENERAL_ERR, IBV_WC_GENERAL_ERR);
SAME(WC_TM_ERR, IBV_WC_TM_ERR);
SAME(WC_TM_RNDV_INCOMPLETE, IBV_WC_TM_RNDV_INCOMPLETE);

SAME(WC_OP_SEND, IBV_WC_SEND);
SAME(WC_OP_WRITE, IBV_WC_RDMA_WRITE);
SAME(WC_OP_READ, IBV_WC_RDMA_READ);
SAME(WC_OP_CMP_SWAP, IBV_WC_COMP_SWAP);
SAME(WC_OP_FETCH_ADD, IBV_WC_FETCH_ADD);
SAME(WC_OP_BIND_MW, IBV_WC_BIND_MW);
SAME(WC_OP_LOCAL_INV, IBV_WC_LOCAL_INV);
SAME(WC_OP_ATOMIC_WRITE, IBV_WC_ATOMIC_WRITE);
SAME(WC_OP_RECV, IBV_WC_RECV);
SAME(WC_OP_RECV_WRITE_IMM, IBV_WC_RECV_RDMA_WITH_IMM);
SAME(WC_OP_TM_ADD, IBV_WC_TM_ADD);
SAME(WC_OP_TM_DEL, IBV_WC_TM_DEL);
SAME(WC_OP_TM_SYNC, IBV_WC_TM_SYNC);
SAME(WC_OP_TM_RECV, IBV_WC_TM_RECV);
SAME(WC_OP_TM_NO_TAG, IBV_WC_TM_NO_TAG);
SAME(WC_TM_SYNC_REQ, IBV_WC_TM_SYNC_REQ);
SAME(WC_TM_MATCH, IBV_WC_TM_MATCH);
SAME(WC_TM_DATA_VALID, IBV_WC_TM_DATA_VALID);
SAME(WC_GRH, IBV_WC_GRH);
SAME(WC_WITH_IMM, IBV_WC_WITH_IMM);
SAME(WC_WITH_INV, IBV_WC_WITH_INV);

SAME(ACCESS_LOCAL_WRITE, IBV_ACCESS_LOCAL_WRITE);
SAME(ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_WRITE);
SAME(ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_READ);
SAME(ACCESS_REMOTE_ATOMIC, IBV_ACCESS_REMOTE_ATOMIC);
SAME(ACCESS_MW_BIND, IBV_ACCESS_MW_BIND);
SAME(ACCESS_ZERO_BASED, IBV_ACCESS_ZERO_BASED);
SAME(ACCESS_ON_DEMAND, IBV_ACCESS_ON_DEMAND);
SAME(ACCESS_HUGETLB, IBV_ACCESS_HUGETLB);
SAME(ACCESS_RELAXED_ORDERING, IBV_ACCESS_RELAXED_ORDERING);

SAME(EVENT_CQ_ERR, IBV_EVENT_CQ_ERR);
SAME(EVENT_QP_FATAL, IBV_EVENT_QP_FATAL);
SAME(EVENT_QP_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
SAME(EVENT_QP_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
SAME(EVENT_COMM_EST, IBV_EVENT_COMM_EST);
SAME(EVENT_SQ_DRAINED, IBV_EVENT_SQ_DRAINED);
SAME(EVENT_PATH_MIG, IBV_EVENT_PATH_MIG);
SAME(EVENT_PATH_MIG_ERR, IBV_EVENT_PATH_MIG_ERR);
SAME(EVENT_DEVICE_FATAL, IBV_EVENT_DEVICE_FATAL);
SAME(EVENT_PORT_ACTIVE, IBV_EVENT_PORT_ACTIVE);
SAME(EVENT_PORT_ERR, IBV_EVENT_PORT_ERR);
SAME(EVENT_LID_CHANGE, IBV_EVENT_LID_CHANGE);
SAME(EVENT_PKEY_CHANGE, IBV_EVENT_PKEY_CHANGE);
SAME(EVENT_SM_CHANGE, IBV_EVENT_SM_CHANGE);
SAME(EVENT_SRQ_ERR, IBV_EVENT_SRQ_ERR);
SAME(EVENT_SRQ_LIMIT, IBV_EVENT_SRQ_LIMIT_REACHED);
SAME(EVENT_LAST_WQE, IBV_EVENT_QP_LAST_WQE_REACHED);
SAME(EVENT_CLIENT_REREGISTER, IBV_EVENT_CLIENT_REREGISTER);
SAME(EVENT_GID_CHANGE, IBV_EVENT_GID_CHANGE);

SAME(PORT_DOWN, IBV_PORT_DOWN);
SAME(PORT_INIT, IBV_PORT_INIT);
SAME(PORT_ARMED, IBV_PORT_ARMED);
SAME(PORT_ACTIVE, IBV_PORT_ACTIVE);

SAME(QPM_STATE, IBV_QP_STATE);
SAME(QPM_CUR_STATE, IBV_QP_CUR_STATE);
SAME(QPM_EN_SQD_ASYNC_NOTIFY, IBV_QP_EN_SQD_ASYNC_NOTIFY);
SAME(QPM_ACCESS_FLAGS, IBV_QP_ACCESS_FLAGS);
SAME(QPM_PKEY_INDEX, IBV_QP_PKEY_INDEX);
SAME(QPM_PORT, IBV_QP_PORT);
SAME(QPM_QKEY, IBV_QP_QKEY);
SAME(QPM_AV, IBV_QP_AV);
SAME(QPM_PATH_MTU, IBV_QP_PATH_MTU);
SAME(QPM_TIMEOUT, IBV_QP_TIMEOUT);
SAME(QPM_RETRY_CNT, IBV_QP_RETRY_CNT);
SAME(QPM_RNR_RETRY, IBV_QP_RNR_RETRY);
SAME(QPM_RQ_PSN, IBV_QP_RQ_PSN);
SAME(QPM_MAX_QP_RD_ATOMIC, IBV_QP_MAX_QP_RD_ATOMIC);
SAME(QPM_ALT_PATH, IBV_QP_ALT_PATH);
SAME(QPM_MIN_RNR_TIMER, IBV_QP_MIN_RNR_TIMER);
SAME(QPM_SQ_PSN, IBV_QP_SQ_PSN);
SAME(QPM_MAX_DEST_RD_ATOMIC, IBV_QP_MAX_DEST_RD_ATOMIC);
SAME(QPM_PATH_MIG_STATE, IBV_QP_PATH_MIG_STATE);
SAME(QPM_CAP, IBV_QP_CAP);
SAME(QPM_DEST_QPN, IBV_QP_DEST_QPN);
SAME(QPM_RATE_LIMIT, IBV_QP_RATE_LIMIT);

SAME(sizeof(struct vb_sge), sizeof(struct ibv_sge));
SAME(offsetof(struct vb_sge, addr), offsetof(struct ibv_sge, addr));
SAME(offsetof(struct vb_sge, length), offsetof(struct ibv_sge, length));
SAME(offsetof(struct vb_sge, lkey), offsetof(struct ibv_sge, lkey));
SAME(sizeof(struct vb_gid), sizeof(union ibv_gid));
SAME(offsetof(struct vb_front_qp, wr_flush), sizeof(struct ibv_qp_ex));
SAME(offsetof(struct vb_front_device, no_provider), sizeof(struct ibv_device));
// clang-format on
#undef SAME

#endif
