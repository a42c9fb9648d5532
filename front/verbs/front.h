/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wrappers between the public verbs ABI and core. Each object of a program
 * is a wrapper: it contains the public struct and points to core's object,
 * whose owner pointer points back. Below this room functions return 0 or -errno
 * and know nothing of errno, of symbol versions or of the acknowledgement of
 * events; this room handles all of these.
 */
#ifndef FRONT_VERBS_FRONT_H
#define FRONT_VERBS_FRONT_H

/* This library exports every function that the public header declares. */
#pragma GCC visibility push(default)
#include <infiniband/verbs.h>
#pragma GCC visibility pop

#include "base/chain.h"
#include "base/tools.h"
#include "core/mw.h"
#include "core/tag.h"
#include "core/xrc.h"
#include "core/why.h"
#include "engine/engine.h"

/* Marks exported names that the public header does not declare. */
#define VB_EXPORT __attribute__((visibility("default")))

/* The kinds of objects that live.c distinguishes. */
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

/*
 * An object's entry in the set of existing objects (live.c).
 *
 * Some public functions are inline and call through object->context. For these
 * objects the entry is before the public struct: an allocator overwrites the
 * first bytes of freed memory, and so the context pointer of a destroyed object
 * survives long enough for a second destroy to reach this library, which then
 * refuses it.
 */
struct vb_front_live {
	struct vb_chain chain;
	const void *object;
	/* the field `handle` of the public struct, or NULL */
	const uint32_t *shown;
	uint32_t handle; /* the value that this library gave to the handle */
	/* a thread destroys the object (vb_front_live_claim()); 0: none does.
	 * Protected by the lock of the set. */
	unsigned claim;
	enum vb_front_kind kind;
};

struct vb_front_device {
	struct ibv_device ibv;
	/* NULL pointers behind the public struct. A provider library
	 * (mlx5dv_is_supported() and its like) takes a device for its own if
	 * the word behind the public struct points to its own table, which NULL
	 * never does. */
	const void *no_provider[6];
	struct vb_device found;
	/* The fields below are protected by the lock of device.c. */

	/* number of lists and contexts that refer to the device */
	unsigned users;
	/* the last listing of the host's devices found the device */
	bool present;
	struct vb_front_device *next;
};

struct vb_front_context {
	/* entry in the set of objects, from open to close */
	struct vb_front_live live;
	struct vb_adapter *adapter;
	/* the file behind cmd_fd; NULL: none, so nothing can be imported */
	struct vb_front_file *file;
	/* identifies the process that made cmd_fd's file (shared.c) */
	uint64_t maker;
	/* no entry of the file below this index is free; protected by the lock
	 * of shared.c */
	unsigned free_domain;
	struct vb_async async;
	/* Reference count: one reference for the program's open and one for
	 * each object, so that a program may close the device before it
	 * destroys its objects. */
	_Atomic unsigned refs;
	/* value of vb_engine_forks() when the context was opened */
	unsigned forks;
	uint32_t row; /* number of the context's row in the adapter's roster */
	/* the last field, because its member sz says where it begins */
	struct verbs_context v;
};

struct vb_front_td {
	/* this entry precedes the public struct; struct vb_front_live says
	 * why */
	struct vb_front_live live;
	struct ibv_td ibv;
	/* number of parent domains that name this thread domain */
	_Atomic uint32_t refs;
};

/* A protection domain. Several wrappers share one object of core: the domain
 * itself, its parent domains, and its imports by other contexts. */
struct vb_front_pd {
	struct ibv_pd ibv;
	struct vb_front_live live;
	/* core's object; NULL: the owner has deallocated the domain */
	struct vb_pd *core;
	bool is_imported; /* the domain was imported from another process */
	unsigned place; /* index of the domain in the context's file; 0: none */
	/* The fields below are for a parent domain. */
	bool is_parent, has_allocators;
	struct vb_front_td *td;	 /* the thread domain, or NULL */
	struct vb_memory memory; /* calls the allocators of the program */
	struct ibv_parent_domain_init_attr attr;
	/* The fields below are protected by the lock of domain.c. */
	struct vb_chain same; /* links the wrappers of one object of core */
	/* links the wrappers in one bucket, by handle */
	struct vb_chain neighbor;
};

/* The mapping of a dmabuf in this process. */
struct vb_front_map {
	uint8_t *at;   /* address of the mapping; NULL: none */
	size_t length; /* length of the mapping in bytes */
	uint64_t into; /* offset of the region in the mapping, in bytes */
};

/* Device memory. Contexts that import it share this object. */
struct vb_front_memory {
	/* The fields below never change. */
	const struct ibv_device *device;
	uint32_t handle;
	uint8_t *bytes;
	uint64_t length; /* length of the memory in bytes */
	/* address of the mapping that is to be unmapped at the end */
	void *map;
	size_t mapped; /* length of that mapping in bytes */
	/* the context whose file has the bytes; or NULL */
	struct vb_front_context *home;
	unsigned place;	  /* index of the memory in that file */
	bool is_imported; /* the memory was imported from another process */
	/* Reference count: one for each region on the memory; if is_imported,
	 * also one for each handle. */
	_Atomic uint32_t refs;
	struct vb_chain link; /* protected by the lock of dm.c */
};

/* The most device memory, in bytes, for all devices of a process together. */
#define VB_FRONT_DM_BYTES (64u << 20)

struct vb_front_dm {
	/* this entry precedes the public struct; struct vb_front_live says
	 * why */
	struct vb_front_live live;
	struct ibv_dm ibv;
	struct vb_front_memory *memory;
	/* A copy of memory->is_imported. If false, the program can free the
	 * memory before it unimports this handle; then the handle must not
	 * access the memory. */
	bool is_imported;
};

enum vb_front_mr_kind {
	/* a plain region, the only kind that ibv_rereg_mr() changes */
	FRONT_MR_PLAIN,
	FRONT_MR_NULL,	   /* made by ibv_alloc_null_mr() */
	FRONT_MR_MAPPED,   /* made by ibv_reg_dmabuf_mr() */
	FRONT_MR_DM,	   /* made by ibv_reg_dm_mr() */
	FRONT_MR_IMPORTED, /* imported from another process; core is NULL */
};

struct vb_front_mr {
	struct ibv_mr ibv;
	struct vb_front_live live;
	struct vb_mr *core;
	enum vb_front_mr_kind kind;
	struct vb_front_map map;	/* mapping of a FRONT_MR_MAPPED */
	struct vb_front_memory *memory; /* device memory of a FRONT_MR_DM */
};

struct vb_front_mw {
	/* this entry precedes the public struct; struct vb_front_live says
	 * why */
	struct vb_front_live live;
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
	/* number of asynchronous events about this object that the program has
	 * read; protected by the context's async.lock */
	uint32_t async_taken;
	struct vb_mutex poll; /* held from ibv_start_poll to ibv_end_poll */
	/* the entry that the program looks at; protected by poll */
	struct vb_cqe at;
};

struct vb_front_xrcd {
	/* this entry precedes the public struct; struct vb_front_live says
	 * why */
	struct vb_front_live live;
	struct ibv_xrcd ibv;
	struct vb_xrcd *core;
	/* descriptor with the lock on the domain's inode; -1: none */
	int lock_fd;
};

struct vb_front_srq {
	struct ibv_srq ibv;
	struct vb_front_live live;
	struct vb_srq *core;
	/* number of asynchronous events about this object that the program has
	 * read; protected by the context's async.lock */
	uint32_t async_taken;
};

struct vb_front_wq {
	/* this entry precedes the public struct; struct vb_front_live says
	 * why */
	struct vb_front_live live;
	struct ibv_wq ibv;
	struct vb_qp *core; /* core's queue pair, of type QPT_WQ */
	/* number of table entries that name this queue */
	_Atomic uint32_t refs;
	/* number of asynchronous events about this object that the program has
	 * read; protected by the context's async.lock */
	uint32_t async_taken;
};

/* Work requests under construction between ibv_wr_start() and
 * ibv_wr_complete(), under the send queue's lock. */
struct vb_front_builder {
	/* the newest work request; NULL: there is none, or it was refused */
	struct vb_send_wqe *wqe;
	uint32_t count; /* number of requests that were begun */
	/* For UD and XRC: the newest request has its address handle or shared
	 * queue. */
	bool addressed;
	int error; /* positive errno of the first mistake; 0: no mistake */
};

struct vb_front_qp {
	union {
		struct ibv_qp ibv;
		struct ibv_qp_ex ex;
	};
	/* The function pointer that newer headers have behind
	 * wr_atomic_write. */
	void (*wr_flush)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr,
			 size_t len, uint8_t type, uint8_t level);
	struct vb_front_live live;
	struct vb_qp *core;
	/* of an XRC target: this object's handle on core's queue pair, which
	 * several handles may share */
	struct vb_qp_share share;
	struct ibv_rwq_ind_table *table; /* the table of work queues, or NULL */
	bool extended; /* the queue pair has the ibv_wr_* calls */
	bool sig_all;  /* sq_sig_all of the queue pair's creation */
	/* number of asynchronous events about this object that the program has
	 * read; protected by the context's async.lock */
	uint32_t async_taken;
	struct vb_front_builder build;
};

static inline struct vb_front_context *vb_front_context(struct ibv_context *c)
{
	return VB_CONTAINER_OF(c, struct vb_front_context, v.context);
}

/* Is the device an iWARP device (an RNIC)? Such devices have reliable
 * connections only. */
static inline bool vb_front_is_rnic(struct ibv_context *c)
{
	return vb_front_context(c)->adapter->rnic;
}

/*
 * Did a parent of this process make the object, whose context is @c, before a
 * fork? Then destroying the object succeeds and does nothing. A child that
 * cleans up (destructors, atexit) must not wait for locks that the parent's
 * threads held when it forked, nor read the parent's events.
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

/* Returns the allocator for queues that the program makes with the domain @pd;
 * NULL: the default one. */
static inline struct vb_memory *vb_front_memory(struct ibv_pd *pd)
{
	return vb_front_pd(pd)->has_allocators ? &vb_front_pd(pd)->memory
					       : NULL;
}

/*
 * End a public function with the result @rc, which is 0 or -errno. These
 * functions set errno on failure and return what the ABI of the public function
 * wants: 0 or a positive errno, 0 or -1, or NULL. They also tell the user why
 * the call was refused (vb_why_refused()). The macros pass on the name of the
 * function that uses them; a helper calls an _of() function with the public
 * function's name.
 */
static inline int vb_front_errno_of(int rc, const char *call)
{
	if (VB_UNLIKELY(rc)) {
		vb_why_refused(call, -rc);
		errno = -rc;
	}
	return -rc;
}

static inline void *vb_front_null_of(int rc, const char *call)
{
	(void)vb_front_errno_of(rc, call);
	return NULL;
}

#define vb_front_errno(rc) vb_front_errno_of((rc), __func__)
#define vb_front_minus(rc) (vb_front_errno_of((rc), __func__) ? -1 : 0)
#define vb_front_null(rc)  vb_front_null_of((rc), __func__)

/* Tell the user why a call is refused with @rc, which is -errno. -EOPNOTSUPP is
 * logged only, because programs try calls to find out what the device supports.
 * Refusals of different functions are counted apart, even those about one
 * object. */
#define VB_FRONT_TELL(rc, why, object, ...)                                    \
	do {                                                                   \
		if ((rc) == -EOPNOTSUPP)                                       \
			vb_why_quietly(__VA_ARGS__);                           \
		else                                                           \
			vb_why((rc) == -ENOMEM ? WHY_LIMIT : (why),            \
			       (uintptr_t)(object) + (uintptr_t)__func__,     \
			       __VA_ARGS__);                                   \
	} while (0)

/* Functions of live.c: the set of objects that exist. */

/* The object is complete: the program may name it from now until
 * vb_front_live_del(). @handle points to the handle in its public struct, or is
 * NULL if the struct has none. */
void vb_front_live_add(struct vb_front_live *l, enum vb_front_kind kind,
		       const void *object, const uint32_t *handle);
void vb_front_live_del(struct vb_front_live *l);
/* Does an object of this kind exist at the address? This function reads nothing
 * at the address before it knows. Returns 0; -ENOENT: no object, or the program
 * has overwritten its handle; -EINVAL: an object of another kind. */
int vb_front_live(enum vb_front_kind kind, const void *object);
/* As vb_front_live(), for a call that destroys the object: it also claims the
 * object. Of several threads that destroy one object at once the first gets 0
 * and the others -ENOENT. The thread that got 0 ends its claim by
 * vb_front_live_del(), or by vb_front_live_keep() if the object stays. */
int vb_front_live_claim(enum vb_front_kind kind, const void *object);
void vb_front_live_keep(struct vb_front_live *l);
/* Returns a number for an object's handle: not 0, and not used before. */
uint32_t vb_front_handle(void);

/* Does what vb_front_live() does, and returns and sets a positive errno. */
static inline int vb_front_unknown(enum vb_front_kind kind, const void *object)
{
	return vb_front_errno(vb_front_live(kind, object));
}

/* Does what vb_front_live_claim() does, but returns a positive errno and sets
 * errno. */
static inline int vb_front_claim(enum vb_front_kind kind, const void *object)
{
	return vb_front_errno(vb_front_live_claim(kind, object));
}

/* End a call that has claimed an object but does not destroy it, for the reason
 * @rc (0 or -errno): drop the claim, so that the object stays in use. */
#define vb_front_keep(live, rc) (vb_front_live_keep(live), vb_front_errno(rc))

/*
 * Functions of shared.c: the file behind a context's cmd_fd.
 * ibv_import_device() opens the device again from this file, perhaps in another
 * process, and finds the first context's protection domains and device memory
 * there.
 */
struct vb_front_file;
struct vb_front_file_head {
	char magic[8];
	uint64_t guid;
	uint64_t maker; /* a random number that identifies the process */
	uint32_t ifindex, kind;
	/* slot and adapter of the process that made the file */
	uint32_t slot, adapter;
};
/* Make the file of a context on @d. Returns its descriptor, which the caller
 * owns, or -errno. If the system grants no file, the descriptor is that of
 * /dev/null, from which no process can import. */
int vb_front_file_make(const struct vb_device *d);
/* Read the head of the file. Returns 0, or -EINVAL: @fd is not the cmd_fd of a
 * context. */
int vb_front_file_read(int fd, struct vb_front_file_head *head);
/* Map the file of the context's cmd_fd into c->file, unless its other holders
 * could truncate it, and store in c->maker the process that made it. */
void vb_front_file_map(struct vb_front_context *c);
/* Did this process make the file? If another one did, objects are looked up
 * only in the file, since a handle may have a different meaning in each
 * process. */
bool vb_front_file_is_ours(const struct vb_front_context *c);
void vb_front_file_unmap(struct vb_front_file *f);

/* Add a protection domain to the file. Returns its index there, for drop_pd();
 * 0: it was not added and cannot be imported. */
unsigned vb_front_file_add_pd(struct vb_front_context *c, uint32_t handle);
void vb_front_file_drop_pd(struct vb_front_context *c, unsigned place);
/* Look up a domain of another process in the file. Returns 0, -ENOENT, or the
 * error of vb_engine_meet() with that process. */
int vb_front_file_find_pd(struct vb_front_context *c, uint32_t handle,
			  struct vb_pd_origin *from);

/* Replace the mapping at @at by @length zero bytes of the file, where other
 * processes find them. Returns the index in the file, for drop_dm(); 0: the
 * mapping is unchanged. */
unsigned vb_front_file_add_dm(struct vb_front_context *c, uint32_t handle,
			      void *at, uint64_t length);
void vb_front_file_drop_dm(struct vb_front_context *c, unsigned place);
/* Map device memory of another process. The caller unmaps *@at, which has
 * *@length bytes, rounded up to whole pages. Returns 0, -ENOENT, or the error
 * of mmap(). */
int vb_front_file_find_dm(struct vb_front_context *c, uint32_t handle,
			  uint8_t **at, uint64_t *length);

/* Functions of device.c. */

/* The program opens (@by 1) or closes (-1) a context that uses the device. */
void vb_front_device_hold(struct ibv_device *device, int by);

/*
 * Functions of context.c: each object on a context holds a reference to the
 * context.
 */
void vb_front_context_get(struct ibv_context *context);
void vb_front_context_put(struct ibv_context *context);

/* Functions of objects.c. */

/* Call this before the object @owner is destroyed: it drops the object's events
 * that the program has not read, then waits until the program has acknowledged
 * those that it has read. The arguments are the object's members; read @taken
 * under async.lock, @acked under @mutex. */
void vb_front_drain_async(struct ibv_context *context, const void *owner,
			  const uint32_t *taken, pthread_mutex_t *mutex,
			  pthread_cond_t *cond, const uint32_t *acked);
/* The program reads the event @e: count this at the object that @e is about,
 * because destroying the object waits until the program has acknowledged @e.
 * The caller holds the context's async.lock. */
void vb_front_count_taken(const struct vb_event *e);
struct ibv_cq_ex *vb_front_create_cq_ex(struct ibv_context *context,
					struct ibv_cq_init_attr_ex *attr);

int vb_front_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);

/* Tell the user that no shared receive queue can be made from @attr, for the
 * reason @why, a clause. Sets errno to EINVAL and returns NULL. */
void *vb_front_refuse_srq(const struct ibv_srq_init_attr_ex *attr,
			  const char *why);
struct ibv_srq *vb_front_create_srq_ex(struct ibv_context *context,
				       struct ibv_srq_init_attr_ex *attr);

/* Functions of domain.c. */
struct ibv_td *vb_front_alloc_td(struct ibv_context *context,
				 struct ibv_td_init_attr *attr);
int vb_front_dealloc_td(struct ibv_td *td);
struct ibv_pd *
vb_front_alloc_parent_domain(struct ibv_context *context,
			     struct ibv_parent_domain_init_attr *attr);

/* Functions of qp.c. */
struct vb_av vb_front_av_in(const struct ibv_ah_attr *a);
struct ibv_ah_attr vb_front_av_out(const struct vb_av *av);
struct ibv_qp *vb_front_create_qp_ex(struct ibv_context *context,
				     struct ibv_qp_init_attr_ex *attr);

/* Functions of xrc.c. */
struct ibv_xrcd *vb_front_open_xrcd(struct ibv_context *context,
				    struct ibv_xrcd_init_attr *attr);
int vb_front_close_xrcd(struct ibv_xrcd *xrcd);
struct ibv_srq *vb_front_create_xrc_srq(struct ibv_srq_init_attr_ex *attr);
int vb_front_get_srq_num(struct ibv_srq *srq, uint32_t *number);
struct ibv_qp *vb_front_open_qp(struct ibv_context *context,
				struct ibv_qp_open_attr *attr);

/* Functions of flow.c. */
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

/* Functions of rss.c. */
struct ibv_wq *vb_front_create_wq(struct ibv_context *context,
				  struct ibv_wq_init_attr *attr);
int vb_front_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *attr);
int vb_front_destroy_wq(struct ibv_wq *wq);
struct ibv_rwq_ind_table *
vb_front_create_rwq_table(struct ibv_context *context,
			  struct ibv_rwq_ind_table_init_attr *attr);
int vb_front_destroy_rwq_table(struct ibv_rwq_ind_table *table);
/* May a queue pair over a table of work queues have these attributes? Returns 0
 * or -errno. */
int vb_front_rss_check(const struct ibv_qp_init_attr_ex *attr);
/* Allocate init->rss, which the caller frees after the queue pair. Returns 0 or
 * -ENOMEM. */
int vb_front_rss_take(const struct ibv_qp_init_attr_ex *attr,
		      struct vb_qp_init *init);
/* The program makes (@by 1) or destroys (-1) a queue pair over the table. */
void vb_front_rss_hold(struct ibv_rwq_ind_table *table, int by);

/*
 * Functions of query.c; they return 0 or a positive errno. @size: bytes of the
 * program's struct, which may be longer or shorter than that of this library's
 * header.
 */
int vb_front_query_device_ex(struct ibv_context *context,
			     const struct ibv_query_device_ex_input *input,
			     struct ibv_device_attr_ex *attr, size_t size);
int vb_front_query_rt_values(struct ibv_context *context,
			     struct ibv_values_ex *values);
int vb_front_query_port(struct ibv_context *context, uint8_t port_num,
			struct ibv_port_attr *attr, size_t size);
/* ibv_query_port() of old programs, whose struct ends where port_cap_flags2
 * begins. */
int vb_front_query_port_compat(struct ibv_context *context, uint8_t port_num,
			       struct _compat_ibv_port_attr *attr);
/* Returns the speed of a port's interface, in Mbit/s; 0: unknown, or there is
 * no such port. */
uint32_t vb_front_port_mbits(struct ibv_context *context, uint32_t port_num);
/* Set *@type to the type of a GID as it is in sysfs. Returns 0, or -1 and
 * errno. */
int vb_front_gid_type(struct ibv_context *context, uint8_t port_num,
		      unsigned index, int *type);

/* The value of IBV_WR_FLUSH in newer headers. This device has no FLUSH: it does
 * not list the operation among its capabilities, and refuses it with a
 * message. */
#define VB_FRONT_WR_FLUSH 14
/* A function of names.c: returns the name of the operation @opcode of a work
 * request, which may be any number. */
const char *vb_front_wr_name(unsigned opcode);

/* Functions of mr.c, mw.c and dm.c. */

/* Register a region whose first address for peers is @iova. Returns NULL and
 * sets errno on failure. */
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
/* Release the reference of a region on the memory, or of a handle of another
 * process's memory. */
void vb_front_memory_put(struct vb_front_memory *m);
struct ibv_mw *vb_front_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int vb_front_dealloc_mw(struct ibv_mw *mw);

/* Functions of post.c and poll.c. */
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

/* Functions of wr_builder.c and cq_ex.c: set the public struct's function
 * pointers for the ibv_wr_* calls, and for polling an extended completion
 * queue. */
void vb_front_builder_init(struct vb_front_qp *qp);
void vb_front_cq_ex_init(struct vb_front_cq *cq);

#endif
