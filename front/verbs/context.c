/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Contexts: a program opens a device, or imports a context, and gets the table
 * of functions that the public header's inline calls use. The context ends with
 * the last object that was made on it.
 */
#include "front/verbs/front.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/log.h"

#define MAX_VECTORS 64

static void *refuse_compat(void)
{
	return vb_front_null_of(-EOPNOTSUPP, "a function from before 2006");
}

/* The function table for old programs. Headers since 2006 call exported
 * functions in place of the _compat members. These are set all the same, so
 * that no old program jumps to 0. */
static const struct ibv_context_ops context_ops = {
	._compat_query_device = ibv_query_device,
	._compat_query_port = vb_front_query_port_compat,
	._compat_alloc_pd = refuse_compat,
	._compat_dealloc_pd = refuse_compat,
	._compat_reg_mr = refuse_compat,
	._compat_rereg_mr = refuse_compat,
	._compat_dereg_mr = refuse_compat,
	.alloc_mw = vb_front_alloc_mw,
	.bind_mw = vb_front_bind_mw,
	.dealloc_mw = vb_front_dealloc_mw,
	._compat_create_cq = refuse_compat,
	.poll_cq = vb_front_poll_cq,
	.req_notify_cq = vb_front_req_notify_cq,
	._compat_cq_event = refuse_compat,
	._compat_resize_cq = refuse_compat,
	._compat_destroy_cq = refuse_compat,
	._compat_create_srq = refuse_compat,
	._compat_modify_srq = refuse_compat,
	._compat_query_srq = refuse_compat,
	._compat_destroy_srq = refuse_compat,
	.post_srq_recv = vb_front_post_srq_recv,
	._compat_create_qp = refuse_compat,
	._compat_query_qp = refuse_compat,
	._compat_modify_qp = refuse_compat,
	._compat_destroy_qp = refuse_compat,
	.post_send = vb_front_post_send,
	.post_recv = vb_front_post_recv,
	._compat_create_ah = refuse_compat,
	._compat_destroy_ah = refuse_compat,
	._compat_attach_mcast = refuse_compat,
	._compat_detach_mcast = refuse_compat,
	._compat_async_event = refuse_compat,
};

static int count_vectors(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	return (int)VB_MIN(VB_MAX(cpus, 1), MAX_VECTORS);
}

/* Set the members of the function table. If a member is NULL, the inline
 * function of the header returns EOPNOTSUPP. */
static void fill_context(struct vb_front_context *c, struct ibv_device *device)
{
	struct ibv_context *context = &c->v.context;

	context->device = device;
	context->ops = context_ops;
	context->async_fd = c->async.fd;
	context->num_comp_vectors = count_vectors();
	context->abi_compat = __VERBS_ABI_IS_EXTENDED;
	pthread_mutex_init(&context->mutex, NULL);
	c->v.sz = sizeof(c->v);
	c->v.query_port = vb_front_query_port;
	c->v.query_device_ex = vb_front_query_device_ex;
	c->v.query_rt_values = vb_front_query_rt_values;
	c->v.alloc_td = vb_front_alloc_td;
	c->v.dealloc_td = vb_front_dealloc_td;
	c->v.alloc_parent_domain = vb_front_alloc_parent_domain;
	c->v.advise_mr = vb_front_advise_mr;
	c->v.alloc_null_mr = vb_front_alloc_null_mr;
	c->v.alloc_dm = vb_front_alloc_dm;
	c->v.free_dm = vb_front_free_dm;
	c->v.reg_dm_mr = vb_front_reg_dm_mr;
	c->v.create_cq_ex = vb_front_create_cq_ex;
	c->v.modify_cq = vb_front_modify_cq;
	c->v.create_qp_ex = vb_front_create_qp_ex;
	c->v.create_srq_ex = vb_front_create_srq_ex;
	c->v.post_srq_ops = vb_front_post_srq_ops;
	c->v.open_xrcd = vb_front_open_xrcd;
	c->v.close_xrcd = vb_front_close_xrcd;
	c->v.get_srq_num = vb_front_get_srq_num;
	c->v.open_qp = vb_front_open_qp;
	c->v.ibv_create_flow = vb_front_create_flow;
	c->v.ibv_destroy_flow = vb_front_destroy_flow;
	c->v.create_counters = vb_front_create_counters;
	c->v.destroy_counters = vb_front_destroy_counters;
	c->v.attach_counters_point_flow = vb_front_attach_counters;
	c->v.read_counters = vb_front_read_counters;
	c->v.create_wq = vb_front_create_wq;
	c->v.modify_wq = vb_front_modify_wq;
	c->v.destroy_wq = vb_front_destroy_wq;
	c->v.create_rwq_ind_table = vb_front_create_rwq_table;
	c->v.destroy_rwq_ind_table = vb_front_destroy_rwq_table;
}

static int open_context(struct vb_front_context *c, struct ibv_device *device,
			int fd)
{
	struct vb_front_device *d =
		VB_CONTAINER_OF(device, struct vb_front_device, ibv);
	int rc = vb_guard_install();

	if (rc == 0)
		rc = vb_async_init(&c->async);
	if (rc)
		return rc;
	c->async.taken = vb_front_count_taken;
	rc = vb_engine_open(&d->found, &c->async, &c->adapter);
	if (rc) {
		vb_async_fini(&c->async);
		return rc;
	}
	c->v.context.cmd_fd = fd;
	vb_front_file_map(c);
	c->forks = vb_engine_forks();
	c->row = vb_roster_add(&c->adapter->roster,
			       &(struct vb_roster_row){ .kind = ROSTER_CTX });
	return 0;
}

/* Make a context. On success the context owns @fd. Returns NULL and sets errno
 * on failure. */
static struct ibv_context *make_context(struct ibv_device *device, int fd)
{
	struct vb_front_context *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return vb_front_null_of(-ENOMEM, "ibv_open_device");
	rc = open_context(c, device, fd);
	if (rc) {
		free(c);
		return vb_front_null_of(rc, "ibv_open_device");
	}
	fill_context(c, device);
	atomic_init(&c->refs, 1);
	vb_front_device_hold(device, 1);
	vb_front_live_add(&c->live, FRONT_CONTEXT, &c->v.context, NULL);
	return &c->v.context;
}

static struct ibv_context *open_device(struct ibv_device *device)
{
	struct ibv_context *context;
	int fd;

	fd = vb_front_file_make(
		&VB_CONTAINER_OF(device, struct vb_front_device, ibv)->found);
	if (fd < 0)
		return vb_front_null_of(fd, "ibv_open_device");
	context = make_context(device, fd);
	if (!context)
		close(fd);
	return context;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *context;
	int cancel;

	if (!device) {
		vb_why(WHY_HANDLE, 0,
		       "ibv_open_device of no device: the list "
		       "of devices may be empty");
		return vb_front_null(-EINVAL);
	}
	cancel = vb_cancel_off();
	context = open_device(device);
	vb_cancel_back(cancel);
	return context;
}

static struct ibv_device *find_device(struct ibv_device **list,
				      const struct vb_front_file_head *file)
{
	for (; *list; list++) {
		const struct vb_device *d =
			&VB_CONTAINER_OF(*list, struct vb_front_device, ibv)
				 ->found;

		if (d->guid == file->guid && d->ifindex == file->ifindex &&
		    d->kind == file->kind)
			return *list;
	}
	return NULL;
}

static struct ibv_context *import_device(int cmd_fd)
{
	struct ibv_context *context = NULL;
	struct ibv_device **list, *device;
	struct vb_front_file_head file;

	if (vb_front_file_read(cmd_fd, &file)) {
		vb_why(WHY_HANDLE, (unsigned)cmd_fd, "import: fd %d is not the cmd_fd of a context",
		       cmd_fd);
		return vb_front_null_of(-EINVAL, "ibv_import_device");
	}
	list = ibv_get_device_list(NULL);
	if (!list)
		return NULL;
	device = find_device(list, &file);
	if (device)
		context = make_context(device, cmd_fd);
	else
		(void)vb_front_null_of(-ENODEV, "ibv_import_device");
	ibv_free_device_list(list);
	return context;
}

/* Make a new context on the device of the context that has @cmd_fd. The new
 * context finds the objects of that context, which may be in another process,
 * in the file behind @cmd_fd (shared.c). */
struct ibv_context *ibv_import_device(int cmd_fd)
{
	int cancel = vb_cancel_off();
	struct ibv_context *context = import_device(cmd_fd);

	vb_cancel_back(cancel);
	return context;
}

void vb_front_context_get(struct ibv_context *context)
{
	atomic_fetch_add(&vb_front_context(context)->refs, 1);
}

void vb_front_context_put(struct ibv_context *context)
{
	struct vb_front_context *c = vb_front_context(context);

	if (atomic_fetch_sub(&c->refs, 1) != 1)
		return;
	vb_roster_del(&c->adapter->roster, ROSTER_CTX, c->row);
	vb_engine_close(c->adapter, &c->async);
	vb_async_fini(&c->async);
	vb_front_file_unmap(c->file);
	close(context->cmd_fd);
	pthread_mutex_destroy(&context->mutex);
	vb_front_device_hold(context->device, -1);
	free(c);
}

int ibv_close_device(struct ibv_context *context)
{
	struct vb_front_context *c = vb_front_context(context);
	unsigned left;
	int cancel;

	if (vb_front_claim(FRONT_CONTEXT, context))
		return -1;
	if (vb_front_is_inherited(context))
		return vb_front_keep(&c->live, 0);
	vb_front_live_del(&c->live);
	left = atomic_load(&c->refs) - 1;
	/* ibv_close_device(3): closing does not release the objects that were
	 * made on the context. They work until the program destroys them. */
	if (left)
		vb_log(LOG_INFO,
		       "%s: the program has closed the device and not destroyed %u objects on it",
		       context->device->name, left);
	cancel = vb_cancel_off();
	vb_front_context_put(context);
	vb_cancel_back(cancel);
	return 0;
}
