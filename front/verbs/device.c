/* SPDX-License-Identifier: BSD-2-Clause */
/* The device list, contexts, and what a program asks of device and port. */
#include "core/lock_order.h"
#include "front/verbs/front.h"

#include <endian.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fork.h"
#include "base/guard.h"
#include "base/log.h"
#include "core/rss.h"
#include "engine/sysfs_tree.h"
#include "front/verbs/caps.h"

#ifndef VB_VERSION
#define VB_VERSION "unknown"
#endif

#define PORT	       1
#define DEFAULT_PKEY   0xffff
#define PHYS_DISABLED  3
#define PHYS_LINK_UP   5
#define MAX_VECTORS    64
#define MAX_GROUPS     512
#define ACK_DELAY_CODE 15 /* 4.096 us * 2^15: what software peers announce */

/* An IEEE company identifier that is none: programs take 0 for a mistake. */
#define NO_VENDOR 0xffffff

/* enum ibv_gid_type_sysfs of rdma-core's private header. */
#define SYSFS_GID_IB	  0
#define SYSFS_GID_ROCE_V2 1

/* Below the tree's root (engine/sysfs_tree.h), or the host's. */
#define SYSFS_CLASS "/sys/class"

static struct {
	struct vb_mutex lock;
	/* lock */
	struct vb_front_device *first;
} registry = { .lock = VB_MUTEX_INITIALIZER(RANK_DEVICES) };

/* Devices that the parent has listed stay where they are, for who has them. */
static void forget_registry(void)
{
	vb_mutex_init(&registry.lock, RANK_DEVICES);
	registry.first = NULL;
}
VB_FORGET_AT_FORK(forget_registry)

static struct vb_front_device *make_device(const struct vb_device *found)
{
	struct vb_front_device *d = calloc(1, sizeof(*d));
	struct ibv_device *ibv;

	if (!d)
		return NULL;
	d->found = *found;
	ibv = &d->ibv;
	ibv->node_type = IBV_NODE_CA;
	ibv->transport_type = IBV_TRANSPORT_IB;
	if (found->kind == DEVICE_IWARP) {
		ibv->node_type = IBV_NODE_RNIC;
		ibv->transport_type = IBV_TRANSPORT_IWARP;
	}
	snprintf(ibv->name, sizeof(ibv->name), "%s", found->name);
	snprintf(ibv->dev_name, sizeof(ibv->dev_name), "uverbs%u",
		 vb_device_number(found));
	return d;
}

static bool is_same_device(const struct vb_device *a, const struct vb_device *b)
{
	return a->ifindex == b->ifindex && a->guid == b->guid &&
	       strcmp(a->name, b->name) == 0;
}

static void put_paths(struct ibv_device *ibv, const char *root)
{
	const size_t room = sizeof(ibv->dev_path);

	if (snprintf(ibv->dev_path, room,
		     "%s" SYSFS_CLASS "/infiniband_verbs/%s", root,
		     ibv->dev_name) < (int)room &&
	    snprintf(ibv->ibdev_path, room, "%s" SYSFS_CLASS "/infiniband/%s",
		     root, ibv->name) < (int)room)
		return;
	put_paths(ibv, ""); /* its place is too deep for the ABI */
}

/* With the registry's lock: the device's one object, made when new. */
static struct vb_front_device *enter_device(const struct vb_device *found,
					    const char *root)
{
	struct vb_front_device *d = registry.first;

	while (d && !is_same_device(&d->found, found))
		d = d->next;
	if (!d) {
		d = make_device(found);
		if (!d)
			return NULL;
		d->next = registry.first;
		registry.first = d;
		put_paths(&d->ibv, root);
	}
	d->present = true;
	d->users++;
	return d;
}

/* With the registry's lock. Devices that are there keep their object, so that
 * a program that looks at one after freeing its list meets no freed memory. */
static void drop_vanished(void)
{
	struct vb_front_device **at = &registry.first, *d;

	while ((d = *at)) {
		if (d->present || d->users) {
			at = &d->next;
			continue;
		}
		*at = d->next;
		free(d);
	}
}

static void leave_devices(struct ibv_device **list)
{
	for (; *list; list++)
		VB_CONTAINER_OF(*list, struct vb_front_device, ibv)->users--;
}

static int enter_devices(const struct vb_device *found, unsigned count,
			 const char *root, struct ibv_device **list)
{
	for (struct vb_front_device *d = registry.first; d; d = d->next)
		d->present = false;
	for (unsigned i = 0; i < count; i++) {
		struct vb_front_device *d = enter_device(&found[i], root);

		if (!d) {
			leave_devices(list);
			return -ENOMEM;
		}
		list[i] = &d->ibv;
	}
	drop_vanished();
	return 0;
}

static void warn_no_device(void)
{
	static _Atomic bool warned;

	if (!atomic_exchange(&warned, true))
		vb_log(LOG_WARN, "no device: no network interface is up and "
				 "has an address");
}

static struct ibv_device **list_devices(int *num_devices)
{
	char root[PATH_MAX];
	struct vb_device *found = NULL;
	struct ibv_device **list;
	unsigned count = 0;
	int rc;

	if (num_devices)
		*num_devices = 0;
	rc = vb_devices_list(getenv("VERBENA_DEVICES"), &found, &count);
	if (rc)
		return vb_front_null(rc);
	if (count == 0)
		warn_no_device();
	if (!vb_sysfs_tree_write(root))
		root[0] = '\0'; /* the host's files, for what they are */
	list = calloc((size_t)count + 1, sizeof(*list));
	rc = -ENOMEM;
	if (list) {
		vb_mutex_lock(&registry.lock);
		rc = enter_devices(found, count, root, list);
		vb_mutex_unlock(&registry.lock);
	}
	free(found);
	if (rc) {
		free(list);
		return vb_front_null(rc);
	}
	if (num_devices)
		*num_devices = (int)count;
	errno = 0;
	return list;
}

struct ibv_device **(ibv_get_device_list)(int *num_devices)
{
	int cancel = vb_cancel_off(); /* libnl holds on to what it has */
	struct ibv_device **list = list_devices(num_devices);

	vb_cancel_back(cancel);
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	if (!list)
		return;
	vb_mutex_lock(&registry.lock);
	leave_devices(list);
	vb_mutex_unlock(&registry.lock);
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

__be64 ibv_get_device_guid(struct ibv_device *device)
{
	return htobe64(VB_CONTAINER_OF(device, struct vb_front_device, ibv)
			       ->found.guid);
}

int ibv_get_device_index(struct ibv_device *device)
{
	/* The interface's index: as stable, and equal in all processes. */
	return (int)vb_device_number(
		&VB_CONTAINER_OF(device, struct vb_front_device, ibv)->found);
}

static void hold_device(struct ibv_device *device, int by)
{
	vb_mutex_lock(&registry.lock);
	VB_CONTAINER_OF(device, struct vb_front_device, ibv)->users +=
		(unsigned)by;
	vb_mutex_unlock(&registry.lock);
}

uint32_t vb_front_handle(void)
{
	static _Atomic uint32_t last;

	return atomic_fetch_add(&last, 1) + 1;
}

/*
 * Contexts.
 */

static void *refuse_compat(void)
{
	return vb_front_null(-EOPNOTSUPP);
}

static int compat_query_port(struct ibv_context *context, uint8_t port_num,
			     struct _compat_ibv_port_attr *attr)
{
	/* The old struct ends where port_cap_flags2 begins. */
	return vb_front_query_port(
		context, port_num, (struct ibv_port_attr *)attr,
		offsetof(struct ibv_port_attr, port_cap_flags2));
}

/* The _compat members are never called by headers since 2006 (the functions
 * of those names are); they are filled so that no call can be a jump to 0. */
static const struct ibv_context_ops context_ops = {
	._compat_query_device = ibv_query_device,
	._compat_query_port = compat_query_port,
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

static int query_device_ex(struct ibv_context *context,
			   const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *attr, size_t size);
static int query_rt_values(struct ibv_context *context,
			   struct ibv_values_ex *values);

static int count_vectors(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	return (int)VB_MIN(VB_MAX(cpus, 1), MAX_VECTORS);
}

/* Members left NULL answer EOPNOTSUPP in the header's inline functions. */
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
	c->v.query_device_ex = query_device_ex;
	c->v.query_rt_values = query_rt_values;
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

/* Takes @fd when it succeeds. */
static struct ibv_context *make_context(struct ibv_device *device, int fd)
{
	struct vb_front_context *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return vb_front_null(-ENOMEM);
	rc = open_context(c, device, fd);
	if (rc) {
		free(c);
		return vb_front_null(rc);
	}
	fill_context(c, device);
	atomic_init(&c->refs, 1);
	hold_device(device, 1);
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
		return vb_front_null(fd);
	context = make_context(device, fd);
	if (!context)
		close(fd);
	return context;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *context;
	int cancel;

	if (!device)
		return vb_front_null(-EINVAL);
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
		vb_log(LOG_INFO, "fd %d is no context's", cmd_fd);
		return vb_front_null(-EINVAL);
	}
	list = ibv_get_device_list(NULL);
	if (!list)
		return NULL;
	device = find_device(list, &file);
	if (device)
		context = make_context(device, cmd_fd);
	else
		errno = ENODEV;
	ibv_free_device_list(list);
	return context;
}

/* A context on the same device; front/verbs/shared.c says how it knows of the
 * objects of one in another process. */
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
	hold_device(context->device, -1);
	free(c);
}

int ibv_close_device(struct ibv_context *context)
{
	struct vb_front_context *c = vb_front_context(context);
	unsigned left;
	int cancel;

	if (vb_front_unknown(FRONT_CONTEXT, context))
		return -1;
	if (vb_front_is_inherited(context))
		return 0;
	vb_front_live_del(&c->live);
	left = atomic_load(&c->refs) - 1;
	/* The manual page puts no duty on close: it does not release what was
	 * made on the context. */
	if (left)
		vb_log(LOG_INFO, "%s: closed with %u objects not destroyed",
		       context->device->name, left);
	cancel = vb_cancel_off();
	vb_front_context_put(context);
	vb_cancel_back(cancel);
	return 0;
}

/*
 * Queries.
 */

static int as_int(uint64_t v)
{
	return (int)VB_MIN(v, (uint64_t)INT_MAX);
}

static void fill_limits(struct ibv_device_attr *a)
{
	const struct vb_limits *l = &vb_limits;

	a->max_mr_size = l->max_mr_size;
	a->max_qp = as_int(l->max_qp);
	a->max_qp_wr = as_int(l->max_qp_wr);
	a->max_sge = as_int(l->max_sge);
	a->max_sge_rd = as_int(l->max_sge);
	a->max_cq = as_int(l->max_cq);
	a->max_cqe = as_int(l->max_cqe);
	a->max_mr = as_int(l->max_mr);
	a->max_mw = as_int(l->max_mw);
	a->max_pd = as_int(l->max_pd);
	a->max_ah = as_int(l->max_ah);
	a->max_raw_ethy_qp = as_int(l->max_qp);
	/* A socket each: what the process may open is the bound. */
	a->max_mcast_grp = MAX_GROUPS;
	a->max_mcast_qp_attach = MAX_GROUPS;
	a->max_total_mcast_qp_attach = MAX_GROUPS;
	a->max_qp_rd_atom = as_int(l->max_rd_atom);
	a->max_qp_init_rd_atom = as_int(l->max_init_rd_atom);
	a->max_res_rd_atom = as_int((uint64_t)l->max_qp * l->max_rd_atom);
	a->max_srq = as_int(l->max_srq);
	a->max_srq_wr = as_int(l->max_srq_wr);
	a->max_srq_sge = as_int(l->max_srq_sge);
}

static void take_what_rnics_lack(struct ibv_device_attr *a)
{
	a->max_ah = 0;
	a->max_raw_ethy_qp = 0;
	a->max_mcast_grp = 0;
	a->max_mcast_qp_attach = 0;
	a->max_total_mcast_qp_attach = 0;
	a->max_pkeys = 0;
	a->local_ca_ack_delay = 0;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	const struct vb_adapter *adapter = vb_front_context(context)->adapter;

	*attr = (struct ibv_device_attr){
		.fw_ver = VB_VERSION,
		.node_guid = htobe64(adapter->guid),
		.sys_image_guid = htobe64(adapter->guid),
		.page_size_cap = 0xfffff000, /* 4 KiB and all above */
		.vendor_id = NO_VENDOR,
		.device_cap_flags = (unsigned)vb_device_caps(adapter->rnic),
		/* Atomics are the processor's own locked instructions, which
		 * would be IBV_ATOMIC_GLOB. But most adapters say HCA, and
		 * programs that know only that (UCX 1.13, rdma-core's tests)
		 * take GLOB for none. */
		.atomic_cap = IBV_ATOMIC_HCA,
		.max_pkeys = 1,
		.local_ca_ack_delay = ACK_DELAY_CODE,
		.phys_port_cnt = 1,
	};
	fill_limits(attr);
	if (adapter->rnic)
		take_what_rnics_lack(attr);
	return 0;
}

/* Nothing is pinned, so that every region is paged on demand; the flag to ask
 * for it changes nothing. */
static void fill_odp(struct ibv_odp_caps *caps)
{
	const uint32_t uc = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
			    IBV_ODP_SUPPORT_SRQ_RECV | IBV_ODP_SUPPORT_WRITE;

	caps->general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
	caps->per_transport_caps.rc_odp_caps =
		uc | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC;
	caps->per_transport_caps.uc_odp_caps = uc;
	caps->per_transport_caps.ud_odp_caps = IBV_ODP_SUPPORT_SEND |
					       IBV_ODP_SUPPORT_RECV |
					       IBV_ODP_SUPPORT_SRQ_RECV;
}

static void fill_rss(struct ibv_device_attr_ex *a)
{
	a->max_wq_type_rq = vb_limits.max_qp;
	a->rss_caps = (struct ibv_rss_caps){
		.supported_qpts = 1u << IBV_QPT_RAW_PACKET,
		.max_rwq_indirection_tables = vb_limits.max_qp,
		.max_rwq_indirection_table_size = VB_RSS_MAX_TABLE,
		.rx_hash_fields_mask = VB_RSS_FIELDS,
		.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
	};
}

static const struct ibv_tm_caps tag_matching = {
	.max_rndv_hdr_size = VB_TAG_RNDV_MAX,
	.max_num_tags = VB_TAG_MAX,
	.flags = IBV_TM_CAP_RC,
	.max_ops = VB_TAG_MAX_OPS,
	.max_sge = VB_TAG_MAX_SGE,
};

static int query_device_ex(struct ibv_context *context,
			   const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *attr, size_t size)
{
	struct ibv_device_attr_ex all = { 0 };

	if ((input && input->comp_mask) || size < sizeof(all.orig_attr))
		return EINVAL;
	(void)ibv_query_device(context, &all.orig_attr);
	all.device_cap_flags_ex = vb_device_caps(vb_front_is_rnic(context));
	all.completion_timestamp_mask = UINT64_MAX;
	all.hca_core_clock = 1000000; /* kHz: the clock counts nanoseconds */
	all.max_dm_size = VB_FRONT_DM_BYTES;
	all.cq_mod_caps.max_cq_count = UINT16_MAX;
	all.cq_mod_caps.max_cq_period = UINT16_MAX;
	fill_odp(&all.odp_caps);
	if (vb_front_is_rnic(context)) {
		all.odp_caps.per_transport_caps.uc_odp_caps = 0;
		all.odp_caps.per_transport_caps.ud_odp_caps = 0;
	} else {
		all.xrc_odp_caps = all.odp_caps.per_transport_caps.rc_odp_caps;
		all.tm_caps = tag_matching;
		fill_rss(&all);
	}
	all.phys_port_cnt_ex = 1;
	/* A newer program's struct is longer: what we do not know is 0. */
	memset(attr, 0, size);
	memcpy(attr, &all, VB_MIN(size, sizeof(all)));
	return 0;
}

static int query_rt_values(struct ibv_context *context,
			   struct ibv_values_ex *values)
{
	uint32_t asked = values->comp_mask;
	vb_time now = vb_now();

	values->comp_mask = 0;
	if (!(asked & IBV_VALUES_MASK_RAW_CLOCK))
		return 0;
	values->raw_clock.tv_sec = (time_t)(now / VB_SEC);
	values->raw_clock.tv_nsec = (long)(now % VB_SEC);
	values->comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
	return 0;
}

static void fill_port(struct vb_adapter *adapter, struct ibv_port_attr *a)
{
	struct vb_port *p = &adapter->port;

	a->port_cap_flags = IBV_PORT_CM_SUP;
	a->gid_tbl_len = 1;
	if (!adapter->rnic) {
		a->port_cap_flags |= IBV_PORT_IP_BASED_GIDS;
		a->gid_tbl_len = VB_MAX_GIDS;
		a->pkey_tbl_len = 1;
	}
	a->max_msg_sz = VB_MAX_MSG;
	a->max_vl_num = 1;
	a->link_layer = IBV_LINK_LAYER_ETHERNET;
	vb_mutex_lock(&p->lock);
	a->state = (enum ibv_port_state)p->state;
	a->max_mtu = p->max_mtu;
	a->active_mtu = p->active_mtu;
	a->active_width = vb_port_rate(p->mbits)->width;
	a->active_speed = vb_port_rate(p->mbits)->speed;
	vb_mutex_unlock(&p->lock);
	a->phys_state =
		a->state == IBV_PORT_ACTIVE ? PHYS_LINK_UP : PHYS_DISABLED;
}

int vb_front_query_port(struct ibv_context *context, uint8_t port_num,
			struct ibv_port_attr *attr, size_t size)
{
	struct ibv_port_attr all = { 0 };

	if (port_num != PORT)
		return vb_front_errno(-EINVAL);
	fill_port(vb_front_context(context)->adapter, &all);
	memset(attr, 0, size);
	memcpy(attr, &all, VB_MIN(size, sizeof(all)));
	return 0;
}

int(ibv_query_port)(struct ibv_context *context, uint8_t port_num,
		    struct _compat_ibv_port_attr *attr)
{
	return compat_query_port(context, port_num, attr);
}

uint32_t vb_front_port_mbits(struct ibv_context *context)
{
	struct vb_port *p = &vb_front_context(context)->adapter->port;
	uint32_t mbits;

	vb_mutex_lock(&p->lock);
	mbits = p->mbits;
	vb_mutex_unlock(&p->lock);
	return mbits;
}

/* 0, EINVAL outside the table, ENODATA where it is empty. */
static int find_gid(struct ibv_context *context, uint32_t port_num,
		    uint32_t index, struct ibv_gid_entry *out)
{
	struct vb_port *p = &vb_front_context(context)->adapter->port;
	struct vb_gid_entry e;

	if (port_num != PORT || index >= VB_MAX_GIDS)
		return EINVAL;
	if (!vb_port_gid(p, index, &e))
		return ENODATA;
	memcpy(out->gid.raw, e.gid.raw, sizeof(out->gid.raw));
	out->gid_index = index;
	out->port_num = port_num;
	out->gid_type = vb_front_is_rnic(context) ? IBV_GID_TYPE_IB
						  : IBV_GID_TYPE_ROCE_V2;
	out->ndev_ifindex = e.ifindex;
	return 0;
}

int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index,
		  union ibv_gid *gid)
{
	struct ibv_gid_entry e;
	int rc = find_gid(context, port_num, (uint32_t)index, &e);

	/* An empty entry reads as the zero GID here, unlike in _gid_ex. */
	if (rc == ENODATA)
		memset(&e.gid, 0, sizeof(e.gid));
	else if (rc)
		return errno = rc, -1;
	*gid = e.gid;
	return 0;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num,
		      uint32_t gid_index, struct ibv_gid_entry *entry,
		      uint32_t flags, size_t entry_size)
{
	struct ibv_gid_entry e;
	int rc;

	if (flags || entry_size < sizeof(e))
		return EINVAL;
	rc = find_gid(context, port_num, gid_index, &e);
	if (rc)
		return rc;
	memset(entry, 0, entry_size);
	memcpy(entry, &e, sizeof(e));
	return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context,
			     struct ibv_gid_entry *entries, size_t max_entries,
			     uint32_t flags, size_t entry_size)
{
	struct ibv_gid_entry e;
	size_t n = 0;

	if (flags || max_entries == 0 || entry_size < sizeof(e))
		return -EINVAL;
	for (uint32_t i = 0; i < VB_MAX_GIDS; i++) {
		char *to = (char *)entries + n * entry_size;

		if (find_gid(context, PORT, i, &e) != 0)
			continue;
		if (n == max_entries)
			return -EINVAL;
		memset(to, 0, entry_size);
		memcpy(to, &e, sizeof(e));
		n++;
	}
	return (ssize_t)n;
}

int vb_front_gid_type(struct ibv_context *context, uint8_t port_num,
		      unsigned index, int *type)
{
	struct ibv_gid_entry e;
	int rc = find_gid(context, port_num, index, &e);

	if (rc)
		return errno = rc, -1;
	*type = vb_front_is_rnic(context) ? SYSFS_GID_IB : SYSFS_GID_ROCE_V2;
	return 0;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index,
		   __be16 *pkey)
{
	if (port_num != PORT || index != 0 || vb_front_is_rnic(context))
		return errno = EINVAL, -1;
	*pkey = htobe16(DEFAULT_PKEY);
	return 0;
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num,
		       __be16 pkey)
{
	if (port_num != PORT || pkey != htobe16(DEFAULT_PKEY) ||
	    vb_front_is_rnic(context))
		return errno = EINVAL, -1;
	return 0;
}
