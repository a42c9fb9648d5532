/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory regions of every kind: of the program's memory, of a dmabuf, of device
 * memory, the null region, and regions of another process. */
#include "front/verbs/front.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"

/* Remove the optional access flags that this adapter does not have: programs
 * may set those without asking (ibv_reg_mr(3)). */
static uint32_t known_access(unsigned access)
{
	return access & ~((uint32_t)IBV_ACCESS_OPTIONAL_RANGE &
			  ~ACCESS_RELAXED_ORDERING);
}

/* Make the program's object for the region @core. Returns NULL if memory runs
 * out. */
static struct ibv_mr *front_mr_wrap(struct ibv_pd *pd, struct vb_mr *core,
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
		/* ibv_import_mr() finds a region by its key. */
		.handle = key,
		.lkey = key,
		.rkey = kind == FRONT_MR_NULL ? 0 : key,
	};
	vb_front_live_add(&mr->live, FRONT_MR, &mr->ibv, &mr->ibv.handle);
	vb_front_context_get(pd->context);
	return &mr->ibv;
}

/* Make the program's object for a region that core has just registered with the
 * result @rc. On failure deregister the region again, set errno and return
 * NULL. */
static struct ibv_mr *wrap_new(struct ibv_pd *pd, int rc, struct vb_mr *core,
			       enum vb_front_mr_kind kind, void *addr)
{
	struct ibv_mr *mr;

	if (rc)
		return vb_front_null_of(rc, "ibv_reg_mr");
	mr = front_mr_wrap(pd, core, kind, addr);
	if (mr)
		return mr;
	/* This cannot fail, because no peer has the region's key yet. */
	rc = vb_mr_deregister(core);
	return vb_front_null_of(rc ? rc : -ENOMEM, "ibv_reg_mr");
}

static void tell_region(const struct ibv_pd *pd, const void *addr,
			  size_t length, unsigned access, int rc)
{
	const unsigned writes = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC;
	char flags[VB_ACCESS_TEXT];
	const char *why = strerror(-rc);

	if (rc == -EINVAL && access & writes && !(access & ACCESS_LOCAL_WRITE))
		why = "remote writes and atomics need LOCAL_WRITE, too";
	else if (rc == -EINVAL && known_access(access) & ~ACCESS_KNOWN)
		why = "the access flags have unknown bits";
	else if (rc == -EINVAL)
		why = "the range is too long, or goes beyond the end of the "
		      "address space";
	else if (rc == -EFAULT)
		why = "not all of it is mapped with these rights";
	VB_FRONT_TELL(rc, WHY_REGISTER, pd,
		      "pd %u: cannot register %zu bytes at %p with access %s "
		      "(0x%x): %s",
		      pd->handle, length, addr, vb_access_text(access, flags),
		      access, why);
}

/* rights by which the library or another program writes to a region */
#define WRITABLE                                                               \
	(ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC)

/* Register a region. With IBV_ACCESS_ON_DEMAND, address NULL and length
 * SIZE_MAX mean the whole address space (ibv_reg_mr(3)). */
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
		tell_region(pd, addr, length, access, rc);
	else if (rights & WRITABLE)
		vb_tools_lend(addr, length);
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

struct ibv_mr *vb_front_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *ibv,
				  uint64_t offset, size_t length,
				  unsigned access)
{
	struct vb_front_dm *dm = vb_front_dm(ibv);
	uint32_t rights = known_access(access);
	struct vb_mr *core = NULL;
	struct ibv_mr *mr;
	int rc = -EINVAL;

	/* Peers address device memory by offsets, so the manual page requires
	 * IBV_ACCESS_ZERO_BASED (ibv_alloc_dm(3)). */
	if (rights & ACCESS_ZERO_BASED &&
	    pd->context->device == ibv->context->device &&
	    offset <= dm->memory->length &&
	    length <= dm->memory->length - offset)
		rc = vb_mr_register(vb_front_pd(pd)->core,
				    dm->memory->bytes + offset, length, 0,
				    rights, &core);
	if (rc)
		VB_FRONT_TELL(
			rc, WHY_REGISTER, pd,
			"pd %u: cannot register %zu bytes from offset %llu of device memory of %llu bytes with access 0x%x: %s",
			pd->handle, length, (unsigned long long)offset,
			(unsigned long long)dm->memory->length, access,
			rights & ACCESS_ZERO_BASED
				? strerror(-rc)
				: "it needs IBV_ACCESS_ZERO_BASED");
	mr = wrap_new(pd, rc, core, FRONT_MR_DM, NULL);
	if (!mr)
		return NULL;
	atomic_fetch_add(&dm->memory->refs, 1);
	vb_front_mr(mr)->memory = dm->memory;
	return mr;
}

/*
 * The memory of another device, by a dmabuf descriptor from its driver. It is
 * mapped into this process, where the processor copies from and to it. Memory
 * that its driver does not let map cannot be registered.
 */

#define DMABUF_ACCESS                                                          \
	(ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ |       \
	 ACCESS_REMOTE_ATOMIC | ACCESS_RELAXED_ORDERING)

/* Check the arguments of ibv_reg_dmabuf_mr(3), which allows fewer access flags,
 * and requires offset and iova to be equal within a page. */
static int check_dmabuf(uint64_t offset, uint64_t iova, unsigned access)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE) - 1;

	if (access & ~DMABUF_ACCESS || (offset ^ iova) & page)
		return -EINVAL;
	return 0;
}

/* Programs (UCX) ask for fd -1 to learn whether dmabufs are supported at
 * all. */
static void refuse_dmabuf(const struct ibv_pd *pd, int fd, size_t length,
			  uint64_t offset, int rc)
{
	const char *why = strerror(-rc);

	if (rc == -EINVAL)
		why = "offset and iova differ within a page, the length is 0, "
		      "or an access flag is not for dmabufs";
	VB_FRONT_TELL(fd == -1 ? -EOPNOTSUPP : rc, WHY_REGISTER, pd,
		      "pd %u: cannot register the dmabuf fd %d, %zu bytes from "
		      "offset %llu: %s",
		      pd->handle, fd, length, (unsigned long long)offset, why);
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
		refuse_dmabuf(pd, fd, length, offset, rc);
		return vb_front_null(rc);
	}
	rc = vb_mr_register(vb_front_pd(pd)->core, map.at + map.into, length,
			    iova, rights, &core);
	if (rc)
		refuse_dmabuf(pd, fd, length, offset, rc);
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

/* Change the region @core as @to demands, and move it to the domain @pd unless
 * that is NULL. With ACCESS_ZERO_BASED peers address it from 0 on. */
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
		VB_FRONT_TELL(rc, WHY_REGISTER, ibv,
			      "mr %p: cannot re-register it with flags 0x%x, "
			      "%zu bytes at %p, access 0x%x: %s",
			      (void *)ibv, (unsigned)flags, length, addr,
			      (unsigned)access, strerror(-rc));
		(void)vb_front_errno_of(rc, "ibv_rereg_mr");
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

/* Change a region; its keys stay. A peer that uses them during the change finds
 * the region as it was or as it will be, or is refused. On failure the region
 * is as it was. */
int ibv_rereg_mr(struct ibv_mr *ibv, int flags, struct ibv_pd *pd, void *addr,
		 size_t length, int access)
{
	int cancel = vb_cancel_off();
	int rc = rereg(ibv, flags, pd, addr, length, access);

	vb_cancel_back(cancel);
	return rc;
}

static void free_mr(struct vb_front_mr *mr)
{
	vb_front_live_del(&mr->live);
	if (mr->map.at)
		munmap(mr->map.at, mr->map.length);
	if (mr->memory)
		vb_front_memory_put(mr->memory);
	vb_front_context_put(mr->ibv.context);
	free(mr);
}

int ibv_dereg_mr(struct ibv_mr *ibv)
{
	struct vb_front_mr *mr = vb_front_mr(ibv);
	int cancel, rc = vb_front_claim(FRONT_MR, ibv);

	if (rc)
		return rc;
	if (vb_front_is_inherited(ibv->context))
		return vb_front_keep(&mr->live, 0);
	/* Only the process that registered the memory can deregister it. */
	if (mr->kind == FRONT_MR_IMPORTED)
		return vb_front_keep(&mr->live, -EOPNOTSUPP);
	cancel = vb_cancel_off();
	vb_engine_begin_posted();
	rc = vb_mr_deregister(mr->core);
	if (rc == 0)
		free_mr(mr);
	vb_cancel_back(cancel);
	if (rc == 0)
		return 0;
	vb_why(WHY_BUSY, (uintptr_t)ibv, "mr %p: not deregistered: %s",
	       (void *)ibv,
	       rc == -EBUSY ? "memory windows are bound to it" : strerror(-rc));
	return vb_front_keep(&mr->live, rc);
}

/* Import a region of the process that made the protection domain. The region's
 * key permits in this process what it permits in that one. */
static struct ibv_mr *import_foreign(struct ibv_pd *pd, uint32_t key)
{
	struct vb_front_mr *mr;
	struct vb_grant g;

	if (!vb_mr_find_imported(vb_front_pd(pd)->core, key, &g)) {
		vb_why(WHY_HANDLE, key,
		       "pd %u: cannot import a region: it has none with handle "
		       "0x%x",
		       pd->handle, key);
		return vb_front_null_of(-ENOENT, "ibv_import_mr");
	}
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return vb_front_null_of(-ENOMEM, "ibv_import_mr");
	mr->kind = FRONT_MR_IMPORTED;
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
		return import_foreign(pd, handle);
	mr = front_mr_wrap(pd, core, FRONT_MR_PLAIN, NULL);
	return mr ? mr : vb_front_null(-ENOMEM);
}

void ibv_unimport_mr(struct ibv_mr *ibv)
{
	if (vb_front_claim(FRONT_MR, ibv))
		return;
	if (vb_front_is_inherited(ibv->context))
		vb_front_live_keep(&vb_front_mr(ibv)->live);
	else
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

/* Read the pages into memory before this call returns, whether or not
 * IBV_ADVISE_MR_FLAG_FLUSH is set. */
int vb_front_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice,
		       uint32_t flags, struct ibv_sge *list, uint32_t count)
{
	int rc;

	if (advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return vb_front_errno(-ENOTSUP);
	if (flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH || count == 0)
		rc = -EINVAL;
	else
		rc = prefetch(pd, list, count, advice);
	if (rc)
		VB_FRONT_TELL(
			rc, WHY_REFUSED, pd,
			"pd %u: ibv_advise_mr of %u ranges with advice %d "
			"and flags 0x%x: %s",
			pd->handle, count, (int)advice, flags, strerror(-rc));
	return vb_front_errno(rc);
}
