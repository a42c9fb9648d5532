/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device memory (ibv_alloc_dm(3)). Programs address it by offsets. It is in the
 * file behind its context's cmd_fd, so that contexts which were imported from
 * that one, in this process or in another, can share it.
 */
#include "core/lock_order.h"
#include "front/verbs/front.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fork.h"
#include "base/guard.h"
#include "base/log.h"

/* Alignment in bytes of offsets and lengths, as of hardware adapters. */
#define DM_ALIGN 4

static struct {
	struct vb_mutex lock;
	/* The fields below are protected by lock. */
	struct vb_chain *first;
	uint64_t used; /* bytes of all device memory that is allocated */
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

static void refuse_copy(const struct vb_front_memory *m, const char *call,
			uint64_t offset, uint64_t length, int rc)
{
	vb_why(WHY_REFUSED, m->handle, "%s of %llu bytes at offset %llu: %s",
	       call, (unsigned long long)length, (unsigned long long)offset,
	       rc == -EFAULT ? "the program's memory is not mapped"
	       : offset % DM_ALIGN || length % DM_ALIGN
		       ? "both must be multiples of 4"
		       : "this is beyond the end of the device memory");
}

static int copy_to_dm(struct ibv_dm *dm, uint64_t offset, const void *from,
		      size_t length)
{
	struct vb_front_memory *m = vb_front_dm(dm)->memory;
	int rc = check_dm_range(m, offset, length);

	if (rc == 0 && vb_guard_copy(m->bytes + offset, from, length))
		rc = -EFAULT;
	if (rc)
		refuse_copy(m, "ibv_memcpy_to_dm", offset, length, rc);
	return vb_front_errno_of(rc, "ibv_memcpy_to_dm");
}

static int copy_from_dm(void *to, struct ibv_dm *dm, uint64_t offset,
			size_t length)
{
	const struct vb_front_memory *m = vb_front_dm(dm)->memory;
	int rc = check_dm_range(m, offset, length);

	if (rc == 0 && vb_guard_copy(to, m->bytes + offset, length))
		rc = -EFAULT;
	if (rc)
		refuse_copy(m, "ibv_memcpy_from_dm", offset, length, rc);
	return vb_front_errno_of(rc, "ibv_memcpy_from_dm");
}

/* Map zeroed memory at an address that is aligned to @align bytes. Its pages
 * contain nothing else, so that pages of the context's file can replace
 * them. */
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
		vb_log(LOG_INFO,
		       "%s: this device memory cannot be imported: the file behind cmd_fd has no room for it",
		       context->device->name);
}

void vb_front_memory_put(struct vb_front_memory *m)
{
	if (atomic_fetch_sub(&m->refs, 1) != 1 || !m->is_imported)
		return;
	munmap(m->map, m->mapped);
	free(m);
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

static int front_make_memory(struct ibv_context *context,
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
	dm->is_imported = m->is_imported;
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
	int rc = front_make_memory(context, attr, &m);

	if (rc) {
		VB_FRONT_TELL(
			rc, WHY_CREATE, context,
			"%s: cannot allocate %zu bytes of device memory, aligned to 2^%u (comp_mask 0x%x), at most %llu are possible: %s",
			context->device->name, attr->length,
			attr->log_align_req, attr->comp_mask,
			(unsigned long long)VB_FRONT_DM_BYTES, strerror(-rc));
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
	int rc = vb_front_claim(FRONT_DM, ibv);

	if (rc)
		return rc;
	if (vb_front_is_inherited(ibv->context))
		return vb_front_keep(&vb_front_dm(ibv)->live, 0);
	m = vb_front_dm(ibv)->memory;
	if (atomic_load(&m->refs) > m->is_imported) {
		vb_why(WHY_BUSY, (uintptr_t)ibv,
		       "dm %u: not freed: regions or imports still use it",
		       ibv->handle);
		return vb_front_keep(&vb_front_dm(ibv)->live, -EBUSY);
	}
	if (m->is_imported)
		vb_front_memory_put(m);
	else
		leave_memory(m);
	free_dm(ibv);
	return 0;
}

static void refuse_import(const struct ibv_context *context, uint32_t handle,
			  int rc)
{
	VB_FRONT_TELL(rc, WHY_HANDLE, context,
		      "%s: cannot import device memory %u: %s",
		      context->device->name, handle, strerror(-rc));
}

static struct ibv_dm *import_foreign_dm(struct ibv_context *context,
					uint32_t handle)
{
	struct vb_front_memory *m = calloc(1, sizeof(*m));
	struct ibv_dm *dm;
	int rc;

	if (!m)
		return vb_front_null_of(-ENOMEM, "ibv_import_dm");
	rc = vb_front_file_find_dm(vb_front_context(context), handle, &m->bytes,
				   &m->length);
	if (rc) {
		free(m);
		refuse_import(context, handle, rc);
		return vb_front_null_of(rc, "ibv_import_dm");
	}
	m->device = context->device;
	m->handle = handle;
	m->map = m->bytes;
	m->mapped = m->length;
	m->is_imported = true;
	atomic_init(&m->refs, 1);
	dm = wrap_dm(context, m);
	if (!dm)
		vb_front_memory_put(m);
	return dm ? dm : vb_front_null_of(-ENOMEM, "ibv_import_dm");
}

static struct vb_front_memory *
front_dm_find_memory(const struct ibv_device *device, uint32_t handle)
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
		return import_foreign_dm(context, handle);
	vb_mutex_lock(&memories.lock);
	m = front_dm_find_memory(context->device, handle);
	if (m)
		dm = wrap_dm(context, m);
	vb_mutex_unlock(&memories.lock);
	if (!m)
		refuse_import(context, handle, -ENOENT);
	return dm ? dm : vb_front_null(m ? -ENOMEM : -ENOENT);
}

void ibv_unimport_dm(struct ibv_dm *ibv)
{
	if (vb_front_claim(FRONT_DM, ibv))
		return;
	if (vb_front_is_inherited(ibv->context)) {
		vb_front_live_keep(&vb_front_dm(ibv)->live);
		return;
	}
	if (vb_front_dm(ibv)->is_imported)
		vb_front_memory_put(vb_front_dm(ibv)->memory);
	free_dm(ibv);
}
