/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory: regions of every kind, windows, device memory. The binding of a
 * window is a work request: front/verbs/post.c. */
#include "core/lock_order.h"
#include "front/verbs/front.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fork.h"
#include "base/guard.h"
#include "base/log.h"

/*
 * Regions.
 */

/* What programs may set without knowing whether a device has it. */
static uint32_t known_access(unsigned access)
{
	return access & ~((uint32_t)IBV_ACCESS_OPTIONAL_RANGE &
			  ~ACCESS_RELAXED_ORDERING);
}

/* The wrapper of a region that core has made, or an end to both. */
static struct ibv_mr *wrap(struct ibv_pd *pd, struct vb_mr *core,
			   enum vb_front_mr_kind kind, void *addr)
{
	struct vb_front_mr *mr = calloc(1, sizeof(*mr));
	uint32_t key = atomic_load(&core->key);

	if (!mr)
		return NULL;
	mr->core = core;
	mr->kind = kind;
	mr->ibv = (struct ibv_mr){
		.context = pd->context,
		.pd = pd,
		.addr = addr,
		.length = core->length,
		/* As good a number as any, and ibv_import_mr() finds it. */
		.handle = key,
		.lkey = key,
		.rkey = kind == FRONT_MR_NULL ? 0 : key,
	};
	vb_front_live_add(&mr->live, FRONT_MR, &mr->ibv, &mr->ibv.handle);
	vb_front_context_get(pd->context);
	return &mr->ibv;
}

static struct ibv_mr *wrap_new(struct ibv_pd *pd, int rc, struct vb_mr *core,
			       enum vb_front_mr_kind kind, void *addr)
{
	struct ibv_mr *mr;

	if (rc)
		return vb_front_null(rc);
	mr = wrap(pd, core, kind, addr);
	if (mr)
		return mr;
	rc = vb_mr_deregister(core); /* nobody knows its key */
	return vb_front_null(rc ? rc : -ENOMEM);
}

/* ibv_reg_mr(3): NULL and SIZE_MAX, on demand, are the whole address space. */
struct ibv_mr *vb_front_register(struct ibv_pd *pd, void *addr, size_t length,
				 uint64_t iova, unsigned access)
{
	uint32_t rights = known_access(access);
	struct vb_mr *core = NULL;
	int rc = vb_front_live(FRONT_PD, pd);

	if (rc)
		return vb_front_null(rc);
	rc = vb_mr_register(vb_front_pd(pd)->core, addr, length,
			    rights & ACCESS_ZERO_BASED ? 0 : iova, rights,
			    &core);
	if (rc)
		vb_log(LOG_INFO,
		       "pd %u: no region of %zu bytes at %p, access 0x%x: %s",
		       pd->handle, length, addr, access, strerror(-rc));
	return wrap_new(pd, rc, core, FRONT_MR_PLAIN, addr);
}

struct ibv_mr *(ibv_reg_mr)(struct ibv_pd *pd, void *addr, size_t length,
			    int access)
{
	return vb_front_register(pd, addr, length, (uintptr_t)addr,
				 (unsigned)access);
}

struct ibv_mr *(ibv_reg_mr_iova)(struct ibv_pd *pd, void *addr, size_t length,
				 uint64_t iova, int access)
{
	return vb_front_register(pd, addr, length, iova, (unsigned)access);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
				uint64_t iova, unsigned int access)
{
	return vb_front_register(pd, addr, length, iova, access);
}

struct ibv_mr *vb_front_alloc_null_mr(struct ibv_pd *pd)
{
	struct vb_mr *core = NULL;
	int rc = vb_mr_register_null(vb_front_pd(pd)->core, &core);

	return wrap_new(pd, rc, core, FRONT_MR_NULL, NULL);
}

/*
 * Another device's memory, by the descriptor that its driver gave out: mapped
 * here, as the processor does the copying. What cannot be mapped cannot be
 * registered.
 */

#define DMABUF_ACCESS                                                          \
	(ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ |       \
	 ACCESS_REMOTE_ATOMIC | ACCESS_RELAXED_ORDERING)

/* ibv_reg_dmabuf_mr(3) has fewer rights, and an adapter's pages. */
static int check_dmabuf(uint64_t offset, uint64_t iova, unsigned access)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE) - 1;

	if (access & ~DMABUF_ACCESS || (offset ^ iova) & page)
		return -EINVAL;
	return 0;
}

static int map_fd(int fd, uint64_t offset, size_t length, unsigned access,
		  struct vb_front_map *map)
{
	uint64_t into = offset & ((uint64_t)sysconf(_SC_PAGESIZE) - 1);
	int prot = PROT_READ | (access & ACCESS_LOCAL_WRITE ? PROT_WRITE : 0);
	void *at;

	if (length == 0 || length > SIZE_MAX - into || offset > INT64_MAX)
		return -EINVAL;
	at = mmap(NULL, length + into, prot, MAP_SHARED, fd,
		  (off_t)(offset - into));
	if (at == MAP_FAILED)
		return -errno;
	*map = (struct vb_front_map){ at, length + into, into };
	return 0;
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
				 size_t length, uint64_t iova, int fd,
				 int access)
{
	uint32_t rights = known_access((unsigned)access);
	struct vb_front_map map;
	struct vb_mr *core = NULL;
	struct ibv_mr *mr;
	int rc = check_dmabuf(offset, iova, rights);

	if (rc == 0)
		rc = map_fd(fd, offset, length, rights, &map);
	if (rc) {
		vb_log(LOG_INFO, "pd %u: fd %d, %zu bytes from %llu: %s",
		       pd->handle, fd, length, (unsigned long long)offset,
		       strerror(-rc));
		return vb_front_null(rc);
	}
	rc = vb_mr_register(vb_front_pd(pd)->core, map.at + map.into, length,
			    iova, rights, &core);
	mr = wrap_new(pd, rc, core, FRONT_MR_MAPPED, NULL);
	if (mr)
		vb_front_mr(mr)->map = map;
	else
		munmap(map.at, map.length);
	return mr;
}

#define REREG_FLAGS                                                            \
	(IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD |            \
	 IBV_REREG_MR_CHANGE_ACCESS)

static int check_rereg(struct ibv_mr *mr, int flags, const struct ibv_pd *pd,
		       const void *addr, size_t length)
{
	if (vb_front_live(FRONT_MR, mr))
		return -ENOENT;
	if (flags & ~REREG_FLAGS || !flags)
		return -EINVAL;
	if (vb_front_mr(mr)->kind != FRONT_MR_PLAIN)
		return -EOPNOTSUPP;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION && (!addr || !length))
		return -EINVAL;
	if (flags & IBV_REREG_MR_CHANGE_PD &&
	    (!pd || vb_front_live(FRONT_PD, pd) ||
	     pd->context->device != mr->context->device))
		return -EINVAL;
	return 0;
}

/* @pd: another, or NULL. Offsets of a region that is zero based stay offsets.
 */
static int change_core(struct vb_mr *core, struct vb_mr_change *to,
		       struct ibv_pd *pd)
{
	uint32_t access = to->rights ? to->access : core->access;

	to->iova = access & ACCESS_ZERO_BASED ? 0 : (uintptr_t)to->base;
	if (pd)
		to->pd = vb_front_pd(pd)->core;
	vb_engine_begin_posted();
	return vb_mr_change(core, to);
}

static int rereg(struct ibv_mr *ibv, int flags, struct ibv_pd *pd, void *addr,
		 size_t length, int access)
{
	struct vb_mr_change to = {
		.place = flags & IBV_REREG_MR_CHANGE_TRANSLATION,
		.rights = flags & IBV_REREG_MR_CHANGE_ACCESS,
		.base = addr,
		.length = length,
		.access = known_access((unsigned)access),
	};
	int rc = check_rereg(ibv, flags, pd, addr, length);

	if (rc == 0)
		rc = change_core(vb_front_mr(ibv)->core, &to,
				 flags & IBV_REREG_MR_CHANGE_PD ? pd : NULL);
	if (rc) {
		vb_log(LOG_INFO, "mr %p: not registered anew: %s", (void *)ibv,
		       strerror(-rc));
		errno = -rc;
		return IBV_REREG_MR_ERR_INPUT;
	}
	if (to.pd)
		ibv->pd = pd;
	if (to.place) {
		ibv->addr = addr;
		ibv->length = length;
	}
	return 0;
}

/* The keys stay. A peer that uses them meanwhile is refused or served as
 * before or as after; nothing is left half done, so that the region is valid
 * whatever is returned. */
int ibv_rereg_mr(struct ibv_mr *ibv, int flags, struct ibv_pd *pd, void *addr,
		 size_t length, int access)
{
	int cancel = vb_cancel_off();
	int rc = rereg(ibv, flags, pd, addr, length, access);

	vb_cancel_back(cancel);
	return rc;
}

static void put_memory(struct vb_front_memory *m)
{
	if (atomic_fetch_sub(&m->refs, 1) != 1 || !m->is_far)
		return;
	munmap(m->map, m->mapped);
	free(m);
}

static void free_mr(struct vb_front_mr *mr)
{
	vb_front_live_del(&mr->live);
	if (mr->map.at)
		munmap(mr->map.at, mr->map.length);
	if (mr->memory)
		put_memory(mr->memory);
	vb_front_context_put(mr->ibv.context);
	free(mr);
}

int ibv_dereg_mr(struct ibv_mr *ibv)
{
	struct vb_front_mr *mr = vb_front_mr(ibv);
	int cancel, rc = vb_front_unknown(FRONT_MR, ibv);

	if (rc)
		return rc;
	if (vb_front_is_inherited(ibv->context))
		return 0;
	/* Whose memory it is, he alone deregisters it. */
	if (mr->kind == FRONT_MR_FAR)
		return vb_front_errno(-EOPNOTSUPP);
	cancel = vb_cancel_off();
	vb_engine_begin_posted();
	rc = vb_mr_deregister(mr->core);
	if (rc == 0)
		free_mr(mr);
	vb_cancel_back(cancel);
	return vb_front_errno(rc);
}

/* A region of the process that made the domain, which its key opens as it
 * does there. */
static struct ibv_mr *import_far(struct ibv_pd *pd, uint32_t key)
{
	struct vb_front_mr *mr;
	struct vb_grant g;

	if (!vb_mr_find_far(vb_front_pd(pd)->core, key, &g))
		return vb_front_null(-ENOENT);
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return vb_front_null(-ENOMEM);
	mr->kind = FRONT_MR_FAR;
	mr->ibv = (struct ibv_mr){
		.context = pd->context,
		.pd = pd,
		.length = g.length,
		.handle = key,
		.lkey = key,
		.rkey = key,
	};
	vb_front_live_add(&mr->live, FRONT_MR, &mr->ibv, &mr->ibv.handle);
	vb_front_context_get(pd->context);
	return &mr->ibv;
}

struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	struct vb_mr *core = vb_mr_of(vb_front_pd(pd)->core, handle);
	struct ibv_mr *mr;

	if (!core)
		return import_far(pd, handle);
	mr = wrap(pd, core, FRONT_MR_PLAIN, NULL);
	return mr ? mr : vb_front_null(-ENOMEM);
}

void ibv_unimport_mr(struct ibv_mr *ibv)
{
	if (!vb_front_unknown(FRONT_MR, ibv) &&
	    !vb_front_is_inherited(ibv->context))
		free_mr(vb_front_mr(ibv));
}

static int prefetch(const struct ibv_pd *pd, const struct ibv_sge *list,
		    uint32_t count, enum ibv_advise_mr_advice advice)
{
	bool write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	bool touch = advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < count; i++) {
		const struct vb_sge range = { list[i].addr, list[i].length,
					      list[i].lkey };

		rc = vb_mr_prefetch(
			VB_CONTAINER_OF(pd, const struct vb_front_pd, ibv)
				->core,
			&range, write, touch);
	}
	return rc;
}

/* Done when it returns, whether the flag asks for that or not. */
int vb_front_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice,
		       uint32_t flags, struct ibv_sge *list, uint32_t count)
{
	int rc;

	if (advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return vb_front_errno(-ENOTSUP);
	if (flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH || count == 0)
		return vb_front_errno(-EINVAL);
	rc = prefetch(pd, list, count, advice);
	if (rc)
		vb_log(LOG_INFO, "pd %u: advice %d refused: %s", pd->handle,
		       (int)advice, strerror(-rc));
	return vb_front_errno(rc);
}

/*
 * Windows.
 */

struct ibv_mw *vb_front_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct vb_front_mw *mw;
	int rc = vb_front_live(FRONT_PD, pd);

	if (rc)
		return vb_front_null(rc);
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return vb_front_null(-ENOMEM);
	rc = vb_mw_alloc(vb_front_pd(pd)->core, (unsigned)type, &mw->core,
			 &mw->ibv.rkey);
	if (rc) {
		vb_log(LOG_INFO, "pd %u: no memory window of type %d: %s",
		       pd->handle, (int)type, strerror(-rc));
		free(mw);
		return vb_front_null(rc);
	}
	mw->ibv.context = pd->context;
	mw->ibv.pd = pd;
	mw->ibv.handle = vb_front_handle();
	mw->ibv.type = type;
	vb_front_live_add(&mw->live, FRONT_MW, &mw->ibv, &mw->ibv.handle);
	vb_front_context_get(pd->context);
	return &mw->ibv;
}

int vb_front_dealloc_mw(struct ibv_mw *ibv)
{
	struct vb_front_mw *mw = VB_CONTAINER_OF(ibv, struct vb_front_mw, ibv);
	int cancel, rc = vb_front_unknown(FRONT_MW, ibv);

	if (rc)
		return rc;
	if (vb_front_is_inherited(ibv->context))
		return 0;
	vb_front_live_del(&mw->live);
	cancel = vb_cancel_off();
	vb_mw_free(mw->core);
	vb_cancel_back(cancel);
	vb_front_context_put(ibv->context);
	free(mw);
	return 0;
}

/*
 * Device memory has no address but offsets, and contexts may share it, those of
 * other processes too: it lies in the file behind its context's cmd_fd.
 */

#define DM_ALIGN 4 /* of offsets and lengths, as the bus of a device has it */

static struct {
	struct vb_mutex lock;
	/* lock */
	struct vb_chain *first;
	uint64_t used; /* bytes */
} memories = { .lock = VB_MUTEX_INITIALIZER(RANK_MEMORIES) };

static void forget_memories(void)
{
	vb_mutex_init(&memories.lock, RANK_MEMORIES);
	memories.first = NULL;
	memories.used = 0;
}
VB_FORGET_AT_FORK(forget_memories)

static int check_dm_range(const struct vb_front_memory *m, uint64_t offset,
			  uint64_t length)
{
	if (offset % DM_ALIGN || length % DM_ALIGN)
		return -EINVAL;
	return offset <= m->length && length <= m->length - offset ? 0
								   : -EINVAL;
}

static int copy_to_dm(struct ibv_dm *dm, uint64_t offset, const void *from,
		      size_t length)
{
	struct vb_front_memory *m = vb_front_dm(dm)->memory;
	int rc = check_dm_range(m, offset, length);

	if (rc == 0 && vb_guard_copy(m->bytes + offset, from, length))
		rc = -EFAULT;
	return vb_front_errno(rc);
}

static int copy_from_dm(void *to, struct ibv_dm *dm, uint64_t offset,
			size_t length)
{
	const struct vb_front_memory *m = vb_front_dm(dm)->memory;
	int rc = check_dm_range(m, offset, length);

	if (rc == 0 && vb_guard_copy(to, m->bytes + offset, length))
		rc = -EFAULT;
	return vb_front_errno(rc);
}

/* Zeroed, and at an address that has the alignment asked for, in whole pages:
 * others may map it. */
static int map_memory(struct vb_front_memory *m, uint64_t align)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	size_t bytes = m->length + page + VB_MAX(align, page);
	uint8_t *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return -ENOMEM;
	align = VB_MAX(align, page);
	m->map = at;
	m->mapped = bytes;
	m->bytes = (uint8_t *)(((uintptr_t)at + align - 1) & ~(align - 1));
	return 0;
}

static void share_memory(struct vb_front_memory *m, struct ibv_context *context)
{
	m->place = vb_front_file_add_dm(vb_front_context(context), m->handle,
					m->bytes, m->length);
	if (m->place)
		m->home = vb_front_context(context);
	if (m->home)
		vb_front_context_get(context);
	else
		vb_log(LOG_INFO, "%s: device memory that is not for others",
		       context->device->name);
}

static int enter_memory(struct vb_front_memory *m)
{
	int rc = -ENOMEM;

	vb_mutex_lock(&memories.lock);
	if (m->length <= VB_FRONT_DM_BYTES - memories.used) {
		memories.used += m->length;
		vb_chain_add(&memories.first, &m->link);
		rc = 0;
	}
	vb_mutex_unlock(&memories.lock);
	return rc;
}

static void leave_memory(struct vb_front_memory *m)
{
	vb_mutex_lock(&memories.lock);
	vb_chain_del(&m->link);
	memories.used -= m->length;
	vb_mutex_unlock(&memories.lock);
	munmap(m->map, m->mapped);
	if (m->home) {
		vb_front_file_drop_dm(m->home, m->place);
		vb_front_context_put(&m->home->v.context);
	}
	free(m);
}

static int make_memory(struct ibv_context *context,
		       const struct ibv_alloc_dm_attr *attr,
		       struct vb_front_memory **out)
{
	struct vb_front_memory *m;
	int rc;

	if (attr->comp_mask || attr->length == 0 || attr->log_align_req > 30)
		return -EINVAL;
	if (attr->length > VB_FRONT_DM_BYTES)
		return -ENOMEM;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->device = context->device;
	m->handle = vb_front_handle();
	m->length = attr->length;
	rc = map_memory(m, 1ull << VB_MAX(attr->log_align_req, 6u));
	if (rc == 0) {
		rc = enter_memory(m);
		if (rc)
			munmap(m->map, m->mapped);
	}
	if (rc) {
		free(m);
		return rc;
	}
	share_memory(m, context);
	*out = m;
	return 0;
}

static struct ibv_dm *wrap_dm(struct ibv_context *context,
			      struct vb_front_memory *m)
{
	struct vb_front_dm *dm = calloc(1, sizeof(*dm));

	if (!dm)
		return NULL;
	dm->memory = m;
	dm->is_far = m->is_far;
	dm->ibv = (struct ibv_dm){ .context = context,
				   .memcpy_to_dm = copy_to_dm,
				   .memcpy_from_dm = copy_from_dm,
				   .handle = m->handle };
	vb_front_live_add(&dm->live, FRONT_DM, &dm->ibv, &dm->ibv.handle);
	vb_front_context_get(context);
	return &dm->ibv;
}

struct ibv_dm *vb_front_alloc_dm(struct ibv_context *context,
				 struct ibv_alloc_dm_attr *attr)
{
	struct vb_front_memory *m;
	struct ibv_dm *dm;
	int rc = make_memory(context, attr, &m);

	if (rc) {
		vb_log(LOG_INFO, "%s: no device memory of %zu bytes: %s",
		       context->device->name, attr->length, strerror(-rc));
		return vb_front_null(rc);
	}
	dm = wrap_dm(context, m);
	if (dm)
		return dm;
	leave_memory(m);
	return vb_front_null(-ENOMEM);
}

static void free_dm(struct ibv_dm *dm)
{
	vb_front_live_del(&vb_front_dm(dm)->live);
	vb_front_context_put(dm->context);
	free(vb_front_dm(dm));
}

int vb_front_free_dm(struct ibv_dm *ibv)
{
	struct vb_front_memory *m;
	int rc = vb_front_unknown(FRONT_DM, ibv);

	if (rc)
		return rc;
	if (vb_front_is_inherited(ibv->context))
		return 0;
	m = vb_front_dm(ibv)->memory;
	if (atomic_load(&m->refs) > m->is_far)
		return vb_front_errno(-EBUSY);
	if (m->is_far)
		put_memory(m);
	else
		leave_memory(m);
	free_dm(ibv);
	return 0;
}

static struct ibv_dm *import_far_dm(struct ibv_context *context,
				    uint32_t handle)
{
	struct vb_front_memory *m = calloc(1, sizeof(*m));
	struct ibv_dm *dm;
	int rc;

	if (!m)
		return vb_front_null(-ENOMEM);
	rc = vb_front_file_find_dm(vb_front_context(context), handle, &m->bytes,
				   &m->length);
	if (rc) {
		free(m);
		return vb_front_null(rc);
	}
	m->device = context->device;
	m->handle = handle;
	m->map = m->bytes;
	m->mapped = m->length;
	m->is_far = true;
	atomic_init(&m->refs, 1);
	dm = wrap_dm(context, m);
	if (!dm)
		put_memory(m);
	return dm ? dm : vb_front_null(-ENOMEM);
}

static struct vb_front_memory *find_memory(const struct ibv_device *device,
					   uint32_t handle)
	VB_REQUIRES(memories.lock)
{
	for (struct vb_chain *l = memories.first; l; l = l->next) {
		struct vb_front_memory *m =
			VB_CONTAINER_OF(l, struct vb_front_memory, link);

		if (m->handle == handle && m->device == device)
			return m;
	}
	return NULL;
}

struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t handle)
{
	struct vb_front_memory *m;
	struct ibv_dm *dm = NULL;

	if (!vb_front_file_is_ours(vb_front_context(context)))
		return import_far_dm(context, handle);
	vb_mutex_lock(&memories.lock);
	m = find_memory(context->device, handle);
	if (m)
		dm = wrap_dm(context, m);
	vb_mutex_unlock(&memories.lock);
	return dm ? dm : vb_front_null(m ? -ENOMEM : -ENOENT);
}

void ibv_unimport_dm(struct ibv_dm *ibv)
{
	if (vb_front_is_inherited(ibv->context))
		return;
	if (vb_front_dm(ibv)->is_far)
		put_memory(vb_front_dm(ibv)->memory);
	free_dm(ibv);
}

struct ibv_mr *vb_front_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *ibv,
				  uint64_t offset, size_t length,
				  unsigned access)
{
	struct vb_front_dm *dm = vb_front_dm(ibv);
	uint32_t rights = known_access(access);
	struct vb_mr *core = NULL;
	struct ibv_mr *mr;
	int rc = -EINVAL;

	/* Its addresses are offsets: it says so, or is refused. */
	if (rights & ACCESS_ZERO_BASED &&
	    pd->context->device == ibv->context->device &&
	    offset <= dm->memory->length &&
	    length <= dm->memory->length - offset)
		rc = vb_mr_register(vb_front_pd(pd)->core,
				    dm->memory->bytes + offset, length, 0,
				    rights, &core);
	if (rc)
		vb_log(LOG_INFO,
		       "pd %u: no region of %zu bytes at %llu of device memory, access 0x%x: %s",
		       pd->handle, length, (unsigned long long)offset, access,
		       strerror(-rc));
	mr = wrap_new(pd, rc, core, FRONT_MR_DM, NULL);
	if (!mr)
		return NULL;
	atomic_fetch_add(&dm->memory->refs, 1);
	vb_front_mr(mr)->memory = dm->memory;
	return mr;
}
