/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protection domains: those of a context, parent domains over them, domains
 * imported from another context, of this process or of another one; and thread
 * domains.
 */
#include "core/lock_order.h"
#include "front/verbs/front.h"

#include <stdlib.h>
#include <string.h>

#include "base/fork.h"
#include "base/log.h"

/* All protection domains of this process, by handle. The wrappers of one domain
 * of core form a second list, which begins at core->owners. */
#define BUCKETS 1024
static struct {
	struct vb_mutex lock;
	struct vb_chain *buckets[BUCKETS]; /* hash buckets, protected by lock */
} domains = { .lock = VB_MUTEX_INITIALIZER(RANK_DOMAINS) };

static void forget_domains(void)
{
	vb_mutex_init(&domains.lock, RANK_DOMAINS);
	memset(domains.buckets, 0, sizeof(domains.buckets));
}
VB_FORGET_AT_FORK(forget_domains)

static struct vb_chain **front_domain_bucket_of(uint32_t handle)
	VB_REQUIRES(domains.lock)
{
	return &domains.buckets[handle % BUCKETS];
}

/* Remove the wrapper from its lists. If it was the last import of another
 * process's domain, also release core's object of that domain: core frees the
 * object at once if it has no users, otherwise with its last user. */
static void leave_pd(struct vb_front_pd *pd)
{
	vb_mutex_lock(&domains.lock);
	vb_chain_del(&pd->neighbor);
	/* NULL: the domain's owner has deallocated it */
	if (pd->core) {
		vb_chain_del(&pd->same);
		if (pd->is_imported && !pd->core->owners)
			vb_pd_abandon(pd->core);
	}
	vb_mutex_unlock(&domains.lock);
}

/* Make a wrapper of @core. The caller has held domains.lock since it found or
 * made @core: otherwise another thread could in between release the last
 * wrapper, and @core with it. Returns NULL if memory runs out. */
static struct ibv_pd *enter_pd(struct ibv_context *context, struct vb_pd *core,
			       uint32_t handle) VB_REQUIRES(domains.lock)
{
	struct vb_front_pd *pd = calloc(1, sizeof(*pd));

	if (!pd)
		return NULL;
	pd->core = core;
	pd->is_imported = core->origin.is_imported;
	pd->ibv.context = context;
	pd->ibv.handle = handle;
	vb_chain_add(&core->owners, &pd->same);
	vb_chain_add(front_domain_bucket_of(handle), &pd->neighbor);
	vb_front_live_add(&pd->live, FRONT_PD, &pd->ibv, &pd->ibv.handle);
	vb_front_context_get(context);
	return &pd->ibv;
}

/* Make a wrapper of @core, which the caller keeps alive. Returns NULL if memory
 * runs out. */
static struct ibv_pd *front_domain_wrap(struct ibv_context *context,
					struct vb_pd *core, uint32_t handle)
{
	struct ibv_pd *pd;

	vb_mutex_lock(&domains.lock);
	pd = enter_pd(context, core, handle);
	vb_mutex_unlock(&domains.lock);
	return pd;
}

static void unwrap(struct vb_front_pd *pd)
{
	vb_front_live_del(&pd->live);
	vb_front_file_drop_pd(vb_front_context(pd->ibv.context), pd->place);
	leave_pd(pd);
	if (pd->td)
		atomic_fetch_sub(&pd->td->refs, 1);
	vb_front_context_put(pd->ibv.context);
	free(pd);
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd;
	struct vb_pd *core;
	int rc = vb_pd_create(vb_front_context(context)->adapter, &core);

	if (rc)
		return vb_front_null(rc);
	pd = front_domain_wrap(context, core, core->id);
	if (pd) {
		vb_roster_own(&core->adapter->roster, core->row,
			      vb_front_context(context)->row);
		vb_front_pd(pd)->place = vb_front_file_add_pd(
			vb_front_context(context), core->id);
		return pd;
	}
	/* This cannot fail, because the domain has no users yet. */
	rc = vb_pd_destroy(core);
	return vb_front_null(rc ? rc : -ENOMEM);
}

/* Destroy the domain. Its imports stay as objects that can only be unimported
 * (ibv_import_pd(3)). */
static int destroy_plain(struct vb_pd *core)
{
	struct vb_chain *l;
	int rc;

	vb_mutex_lock(&domains.lock);
	l = core->owners;
	rc = vb_pd_destroy(core);
	for (; rc == 0 && l; l = l->next)
		VB_CONTAINER_OF(l, struct vb_front_pd, same)->core = NULL;
	vb_mutex_unlock(&domains.lock);
	return rc;
}

/* Deallocate the domain that the wrapper represents. A parent domain only
 * releases its reference to the domain below it. */
static int destroy_core(struct vb_front_pd *pd)
{
	if (!pd->is_parent && pd->is_imported)
		return atomic_load(&pd->core->refs) ? -EBUSY : 0;
	if (!pd->is_parent)
		return destroy_plain(pd->core);
	if (atomic_load(&pd->memory.refs))
		/* Queues still use memory that came from the domain's
		 * allocators. */
		return -EBUSY;
	vb_pd_put(pd->core);
	return 0;
}

int ibv_dealloc_pd(struct ibv_pd *ibv)
{
	struct vb_front_pd *pd = vb_front_pd(ibv);
	int rc = vb_front_claim(FRONT_PD, ibv);

	if (rc)
		return rc;
	if (vb_front_is_inherited(ibv->context))
		return vb_front_keep(&pd->live, 0);
	rc = destroy_core(pd);
	if (rc) {
		vb_why(WHY_BUSY, (uintptr_t)ibv, "pd %u: not deallocated: %u objects still use it",
		       ibv->handle, atomic_load(&pd->core->refs));
		return vb_front_keep(&pd->live, rc);
	}
	unwrap(pd);
	return 0;
}

static bool is_from(const struct vb_pd *core, const struct vb_pd_origin *from)
{
	const struct vb_pd_origin *o = &core->origin;

	return o->is_imported == from->is_imported &&
	       (!o->is_imported ||
		(o->slot == from->slot && o->adapter == from->adapter));
}

static bool is_domain(const struct vb_front_pd *pd, const struct vb_adapter *a,
		      uint32_t handle, const struct vb_pd_origin *from)
{
	return pd->ibv.handle == handle && !pd->is_parent && pd->core &&
	       pd->core->adapter == a && is_from(pd->core, from);
}

/* Find a domain that this process has made, or has already imported from the
 * process @from. */
static struct vb_pd *find_core(const struct vb_adapter *a, uint32_t handle,
			       const struct vb_pd_origin *from)
	VB_REQUIRES(domains.lock)
{
	for (struct vb_chain *l = *front_domain_bucket_of(handle); l;
	     l = l->next) {
		struct vb_front_pd *pd =
			VB_CONTAINER_OF(l, struct vb_front_pd, neighbor);

		if (is_domain(pd, a, handle, from))
			return pd->core;
	}
	return NULL;
}

static int make_core(struct ibv_context *context, uint32_t handle,
		     const struct vb_pd_origin *from, struct ibv_pd **out)
	VB_REQUIRES(domains.lock)
{
	struct vb_pd *core;
	int rc;

	if (!from->is_imported)
		return -ENOENT;
	rc = vb_pd_import(vb_front_context(context)->adapter, handle, from,
			  &core);
	if (rc)
		return rc;
	*out = enter_pd(context, core, handle);
	if (*out)
		return 0;
	vb_pd_abandon(core); /* frees the domain, which has no users yet */
	return -ENOMEM;
}

static int import_pd(struct ibv_context *context, uint32_t handle,
		     const struct vb_pd_origin *from, struct ibv_pd **out)
	VB_REQUIRES(domains.lock)
{
	struct vb_pd *core =
		find_core(vb_front_context(context)->adapter, handle, from);

	if (!core)
		return make_core(context, handle, from, out);
	*out = enter_pd(context, core, handle);
	return *out ? 0 : -ENOMEM;
}

/* Import a protection domain. The program must keep the domain alive while its
 * imports are used: an import does not do so (ibv_import_pd(3)). */
struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t handle)
{
	struct vb_front_context *c = vb_front_context(context);
	struct vb_pd_origin from = { .is_imported = false };
	struct ibv_pd *pd = NULL;
	int rc = 0;

	if (!vb_front_file_is_ours(c))
		rc = vb_front_file_find_pd(c, handle, &from);
	if (rc == 0) {
		vb_mutex_lock(&domains.lock);
		rc = import_pd(context, handle, &from, &pd);
		vb_mutex_unlock(&domains.lock);
	}
	if (rc) {
		VB_FRONT_TELL(rc, WHY_HANDLE, context, "%s: cannot import protection domain %u: %s",
		       context->device->name, handle, strerror(-rc));
		return vb_front_null(rc);
	}
	return pd;
}

void ibv_unimport_pd(struct ibv_pd *ibv)
{
	if (vb_front_claim(FRONT_PD, ibv))
		return;
	if (vb_front_is_inherited(ibv->context))
		vb_front_live_keep(&vb_front_pd(ibv)->live);
	else
		unwrap(vb_front_pd(ibv));
}

/*
 * Thread domains. The program promises that only one thread at a time uses the
 * objects in a thread domain. Verbena does not use this promise, because a lock
 * without contention costs almost nothing.
 */

struct ibv_td *vb_front_alloc_td(struct ibv_context *context,
				 struct ibv_td_init_attr *attr)
{
	struct vb_front_td *td;

	if (attr->comp_mask)
		return vb_front_null(-EOPNOTSUPP);
	td = calloc(1, sizeof(*td));
	if (!td)
		return vb_front_null(-ENOMEM);
	td->ibv.context = context;
	vb_front_live_add(&td->live, FRONT_TD, &td->ibv, NULL);
	vb_front_context_get(context);
	return &td->ibv;
}

int vb_front_dealloc_td(struct ibv_td *ibv)
{
	struct vb_front_td *td = VB_CONTAINER_OF(ibv, struct vb_front_td, ibv);
	int rc = vb_front_claim(FRONT_TD, ibv);

	if (rc)
		return rc;
	if (vb_front_is_inherited(ibv->context))
		return vb_front_keep(&td->live, 0);
	if (atomic_load(&td->refs)) {
		vb_why(WHY_BUSY, (uintptr_t)ibv,
		       "thread domain not deallocated: parent domains still "
		       "use it");
		return vb_front_keep(&td->live, -EBUSY);
	}
	vb_front_live_del(&td->live);
	vb_front_context_put(ibv->context);
	free(td);
	return 0;
}

/*
 * The program's allocators (ibv_alloc_parent_domain(3)). Their argument is a
 * resource type, whose meaning each driver defines. This library uses a single
 * type for all queues.
 */
#define RESOURCE_QUEUE 1

static void *take_from_program(struct vb_memory *m, size_t bytes)
{
	struct vb_front_pd *pd = VB_CONTAINER_OF(m, struct vb_front_pd, memory);
	void *at = pd->attr.alloc(&pd->ibv, pd->attr.pd_context, bytes,
				  VB_MEMORY_ALIGN, RESOURCE_QUEUE);

	return at == IBV_ALLOCATOR_USE_DEFAULT ? VB_MEMORY_DEFAULT : at;
}

static void give_to_program(struct vb_memory *m, void *at)
{
	struct vb_front_pd *pd = VB_CONTAINER_OF(m, struct vb_front_pd, memory);

	pd->attr.free(&pd->ibv, pd->attr.pd_context, at, RESOURCE_QUEUE);
}

static int check_parent(const struct ibv_context *context,
			const struct ibv_parent_domain_init_attr *attr)
{
	const uint32_t known = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			       IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;

	if (attr->comp_mask & ~known)
		return -EOPNOTSUPP;
	if (!attr->pd)
		return -EINVAL;
	if (vb_front_live(FRONT_PD, attr->pd) ||
	    (attr->td && vb_front_live(FRONT_TD, attr->td)))
		return -ENOENT;
	if (attr->pd->context->device != context->device ||
	    VB_CONTAINER_OF(attr->pd, const struct vb_front_pd, ibv)->is_parent)
		return -EINVAL;
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS &&
	    (!attr->alloc || !attr->free))
		return -EINVAL;
	return 0;
}

struct ibv_pd *
vb_front_alloc_parent_domain(struct ibv_context *context,
			     struct ibv_parent_domain_init_attr *attr)
{
	int rc = check_parent(context, attr);
	struct vb_front_pd *pd;
	struct ibv_pd *ibv;

	if (rc)
		VB_FRONT_TELL(rc, WHY_CREATE, context,
			      "%s: cannot allocate a parent domain: it needs a "
			      "pd of this device that is no parent domain, "
			      "and both or none of alloc and free",
			      context->device->name);
	if (rc)
		return vb_front_null(rc);
	ibv = front_domain_wrap(context, vb_front_pd(attr->pd)->core,
				vb_front_handle());
	if (!ibv)
		return vb_front_null(-ENOMEM);
	pd = vb_front_pd(ibv);
	pd->is_parent = true;
	pd->has_allocators =
		attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	pd->memory.take = take_from_program;
	pd->memory.give = give_to_program;
	pd->attr = *attr;
	if (!(attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT))
		pd->attr.pd_context = NULL;
	vb_pd_get(pd->core);
	if (attr->td) {
		pd->td = VB_CONTAINER_OF(attr->td, struct vb_front_td, ibv);
		atomic_fetch_add(&pd->td->refs, 1);
	}
	return ibv;
}
