/* SPDX-License-Identifier: BSD-2-Clause */
/* The values that a program reads from an open device and its ports:
 * attributes, GIDs, P_Keys, the clock. */
#include "front/verbs/front.h"

#include <endian.h>
#include <limits.h>

#include "core/rss.h"
#include "front/verbs/caps.h"

#ifndef VB_VERSION
#define VB_VERSION "unknown"
#endif

#define PHYS_DISABLED 3
#define PHYS_LINK_UP  5
#define MAX_GROUPS    512
/* 4.096 us * 2^15, the value of other software adapters. */
#define ACK_DELAY_CODE 15

/* A vendor_id that belongs to no company. Programs take 0 for a failed
 * query. */
#define NO_VENDOR 0xffffff

/* Values of enum ibv_gid_type_sysfs in rdma-core's private header. */
#define SYSFS_GID_IB	  0 /* also the type of a RoCEv1 GID */
#define SYSFS_GID_ROCE_V2 1

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
	/* Each group needs a socket, so a process may reach its limit of open
	 * files before it has that many groups. */
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

/* Returns a port of the context's device; NULL: there is no port @number. */
static struct vb_port *port_of(struct ibv_context *context, uint32_t number)
{
	return vb_adapter_port(vb_front_context(context)->adapter, number);
}

/* Tell the user that the device has no port @number. Returns EINVAL. */
static int no_port(struct ibv_context *context, uint32_t number)
{
	vb_why(WHY_INDEX, (uintptr_t)context + number,
	       "%s: there is no port %u of 1 to %u", context->device->name,
	       number, vb_front_context(context)->adapter->port_count);
	return EINVAL;
}

static int no_entry(struct ibv_context *context, uint32_t port_num,
		    const char *table, uint32_t index, uint32_t count)
{
	if (!port_of(context, port_num))
		return no_port(context, port_num);
	/* Only log a read just behind the last entry: some programs (ibsrpdm)
	 * read entry after entry, and this error ends their loop. */
	if (index == count)
		vb_why_quietly("%s, port %u: its %s table has %u entries",
			       context->device->name, port_num, table, count);
	else
		vb_why(WHY_INDEX, (uintptr_t)context + (uintptr_t)table,
		       "%s, port %u: there is no %s index %u, and the table has "
		       "%u entries",
		       context->device->name, port_num, table, index, count);
	return EINVAL;
}

/* Returns the number of entries of the longest P_Key table. */
static uint16_t count_pkeys(const struct vb_adapter *a)
{
	uint16_t most = 0;

	for (unsigned i = 0; i < a->port_count; i++)
		most = VB_MAX(most, atomic_load(&a->ports[i].pkey_count));
	return most;
}

/* Does the adapter have a port in a fabric? Only such ports migrate paths. */
static bool has_fabric(const struct vb_adapter *a)
{
	for (unsigned i = 0; i < a->port_count; i++)
		if (vb_port_is_ib(&a->ports[i]))
			return true;
	return false;
}

/* Clear the capabilities that adapters without an Ethernet port lack: raw
 * packets and flow steering. */
static void clear_what_hcas_lack(struct ibv_device_attr *a)
{
	a->max_raw_ethy_qp = 0;
	a->device_cap_flags &= ~(unsigned)IBV_DEVICE_MANAGED_FLOW_STEERING;
}

/* Clear the fields that iWARP lacks: address handles, raw packets, multicast,
 * P_Keys and ACK delay. */
static void clear_what_rnics_lack(struct ibv_device_attr *a)
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
	struct vb_adapter *adapter = vb_front_context(context)->adapter;

	*attr = (struct ibv_device_attr){
		.fw_ver = VB_VERSION,
		.node_guid = htobe64(adapter->guid),
		.sys_image_guid = htobe64(adapter->sys_guid ? adapter->sys_guid
							    : adapter->guid),
		.page_size_cap = 0xfffff000, /* pages of 4 KiB and larger */
		.vendor_id =
			adapter->vendor_id ? adapter->vendor_id : NO_VENDOR,
		.vendor_part_id = adapter->device_id,
		.hw_ver = adapter->revision,
		.device_cap_flags = (unsigned)vb_device_caps(adapter->rnic),
		/* Atomic operations are the processor's locked instructions,
		 * which would allow IBV_ATOMIC_GLOB. Most adapters report HCA,
		 * and some programs (UCX 1.13, rdma-core's tests) accept no
		 * other value. */
		.atomic_cap = IBV_ATOMIC_HCA,
		.max_pkeys = count_pkeys(adapter),
		.local_ca_ack_delay = ACK_DELAY_CODE,
		.phys_port_cnt = (uint8_t)adapter->port_count,
	};
	fill_limits(attr);
	if (!vb_adapter_ethernet(adapter))
		clear_what_hcas_lack(attr);
	if (has_fabric(adapter))
		attr->device_cap_flags |= IBV_DEVICE_AUTO_PATH_MIG;
	if (adapter->rnic)
		clear_what_rnics_lack(attr);
	vb_tools_wrote(attr, sizeof(*attr));
	return 0;
}

/* Report on-demand paging: no region's memory is pinned, so every region
 * behaves as if it were registered with IBV_ACCESS_ON_DEMAND. */
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

int vb_front_query_device_ex(struct ibv_context *context,
			     const struct ibv_query_device_ex_input *input,
			     struct ibv_device_attr_ex *attr, size_t size)
{
	struct ibv_device_attr_ex all = { 0 };

	if ((input && input->comp_mask) || size < sizeof(all.orig_attr))
		return vb_front_errno(-EINVAL);
	(void)ibv_query_device(context, &all.orig_attr);
	all.device_cap_flags_ex =
		(vb_device_caps(vb_front_is_rnic(context)) & ~0xffffffffull) |
		all.orig_attr.device_cap_flags;
	all.completion_timestamp_mask = UINT64_MAX;
	/* in kHz, because the clock counts nanoseconds */
	all.hca_core_clock = 1000000;
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
		if (all.orig_attr.max_raw_ethy_qp)
			fill_rss(&all);
	}
	all.phys_port_cnt_ex = all.orig_attr.phys_port_cnt;
	/* The struct of a newer program is longer: set the members that this
	 * library does not know to 0. */
	memset(attr, 0, size);
	memcpy(attr, &all, VB_MIN(size, sizeof(all)));
	vb_tools_wrote(attr, size);
	return 0;
}

int vb_front_query_rt_values(struct ibv_context *context,
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

static void fill_ethernet(const struct vb_port *p, bool rnic,
			  struct ibv_port_attr *a) VB_REQUIRES(p->lock)
{
	a->port_cap_flags = IBV_PORT_CM_SUP;
	a->gid_tbl_len = 1;
	if (!rnic) {
		a->port_cap_flags |= IBV_PORT_IP_BASED_GIDS;
		a->gid_tbl_len = VB_MAX_GIDS;
		a->pkey_tbl_len = 1;
	}
	a->max_vl_num = 1;
	a->link_layer = IBV_LINK_LAYER_ETHERNET;
	a->active_width = vb_port_rate(p->mbits)->width;
	a->active_speed = vb_port_rate(p->mbits)->speed;
	a->phys_state = p->state == PORT_ACTIVE ? PHYS_LINK_UP : PHYS_DISABLED;
}

static void fill_infiniband(const struct vb_port *port, struct ibv_port_attr *a)
	VB_REQUIRES(port->lock)
{
	const struct vb_port_ib *p = &port->ib;

	a->port_cap_flags = p->caps;
	a->gid_tbl_len = p->gid_room;
	a->pkey_tbl_len = atomic_load(&port->pkey_count);
	a->bad_pkey_cntr = p->pkey_violations;
	a->qkey_viol_cntr = p->qkey_violations;
	a->lid = p->lid;
	a->sm_lid = p->sm_lid;
	a->lmc = p->lmc;
	a->sm_sl = p->sm_sl;
	a->max_vl_num = p->vls;
	a->subnet_timeout = p->subnet_timeout;
	a->init_type_reply = p->init_type;
	a->active_width = p->width;
	a->active_speed = p->speed;
	a->phys_state = p->phys;
	a->link_layer = IBV_LINK_LAYER_INFINIBAND;
}

static void fill_port(struct vb_port *p, bool rnic, struct ibv_port_attr *a)
{
	a->max_msg_sz = VB_MAX_MSG;
	vb_mutex_lock(&p->lock);
	a->state = (enum ibv_port_state)p->state;
	a->max_mtu = p->max_mtu;
	a->active_mtu = p->active_mtu;
	if (vb_port_is_ib(p))
		fill_infiniband(p, a);
	else
		fill_ethernet(p, rnic, a);
	vb_mutex_unlock(&p->lock);
}

int vb_front_query_port(struct ibv_context *context, uint8_t port_num,
			struct ibv_port_attr *attr, size_t size)
{
	struct vb_port *p = port_of(context, port_num);
	struct ibv_port_attr all = { 0 };

	if (!p)
		return vb_front_errno(-no_port(context, port_num));
	fill_port(p, vb_front_is_rnic(context), &all);
	vb_port_ib_tell(p, context->device->name);
	memset(attr, 0, size);
	memcpy(attr, &all, VB_MIN(size, sizeof(all)));
	vb_tools_wrote(attr, size);
	return 0;
}

int vb_front_query_port_compat(struct ibv_context *context, uint8_t port_num,
			       struct _compat_ibv_port_attr *attr)
{
	return vb_front_query_port(
		context, port_num, (struct ibv_port_attr *)attr,
		offsetof(struct ibv_port_attr, port_cap_flags2));
}

int(ibv_query_port)(struct ibv_context *context, uint8_t port_num,
		    struct _compat_ibv_port_attr *attr)
{
	return vb_front_query_port_compat(context, port_num, attr);
}

uint32_t vb_front_port_mbits(struct ibv_context *context, uint32_t port_num)
{
	struct vb_port *p = port_of(context, port_num);
	uint32_t mbits;

	if (!p)
		return 0;
	vb_mutex_lock(&p->lock);
	mbits = p->mbits;
	vb_mutex_unlock(&p->lock);
	return mbits;
}

/* Find an entry of the GID table. Returns 0; EINVAL: the table has no such
 * index; ENODATA: the entry is empty. */
static int find_gid(struct ibv_context *context, uint32_t port_num,
		    uint32_t index, struct ibv_gid_entry *out)
{
	struct vb_port *p = port_of(context, port_num);
	struct vb_gid_entry e;

	if (!p || index >= VB_MAX_GIDS)
		return no_entry(context, port_num, "GID", index, VB_MAX_GIDS);
	if (!vb_port_gid(p, index, &e))
		return ENODATA;
	memcpy(out->gid.raw, e.gid.raw, sizeof(out->gid.raw));
	out->gid_index = index;
	out->port_num = port_num;
	out->gid_type = (enum ibv_gid_type)e.type;
	out->ndev_ifindex = e.ifindex;
	return 0;
}

int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index,
		  union ibv_gid *gid)
{
	struct ibv_gid_entry e;
	int rc = find_gid(context, port_num, (uint32_t)index, &e);

	/* An empty entry reads as the zero GID; only ibv_query_gid_ex()
	 * fails. */
	if (rc == ENODATA)
		memset(&e.gid, 0, sizeof(e.gid));
	else if (rc)
		return vb_front_minus(-rc);
	*gid = e.gid;
	vb_tools_wrote(gid, sizeof(*gid));
	return 0;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num,
		      uint32_t gid_index, struct ibv_gid_entry *entry,
		      uint32_t flags, size_t entry_size)
{
	struct ibv_gid_entry e;
	int rc;

	if (flags || entry_size < sizeof(e))
		return vb_front_errno(-EINVAL);
	rc = find_gid(context, port_num, gid_index, &e);
	if (rc == ENODATA) /* log this only: programs try each index */
		vb_why_quietly("%s, port %u: GID index %u is empty",
			       context->device->name, port_num, gid_index);
	if (rc)
		return vb_front_errno(-rc);
	memset(entry, 0, entry_size);
	memcpy(entry, &e, sizeof(e));
	vb_tools_wrote(entry, entry_size);
	return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context,
			     struct ibv_gid_entry *entries, size_t max_entries,
			     uint32_t flags, size_t entry_size)
{
	const unsigned ports = vb_front_context(context)->adapter->port_count;
	struct ibv_gid_entry e;
	size_t n = 0;

	if (flags || max_entries == 0 || entry_size < sizeof(e))
		return -vb_front_errno(-EINVAL);
	for (uint32_t i = 0; i < ports * VB_MAX_GIDS; i++) {
		char *to = (char *)entries + n * entry_size;

		if (find_gid(context, 1 + i / VB_MAX_GIDS, i % VB_MAX_GIDS,
			     &e) != 0)
			continue;
		if (n == max_entries)
			return -vb_front_errno(-EINVAL);
		memset(to, 0, entry_size);
		memcpy(to, &e, sizeof(e));
		vb_tools_wrote(to, entry_size);
		n++;
	}
	return (ssize_t)n;
}

int vb_front_gid_type(struct ibv_context *context, uint8_t port_num,
		      unsigned index, int *type)
{
	struct ibv_gid_entry e;
	int rc = find_gid(context, port_num, index, &e);

	if (rc == ENODATA) /* ibv_devinfo -v tries each index */
		vb_why_quietly("%s, port %u: GID index %u is empty, and has "
			       "no type",
			       context->device->name, port_num, index);
	if (rc)
		return vb_front_minus(-rc);
	*type = e.gid_type == IBV_GID_TYPE_ROCE_V2 ? SYSFS_GID_ROCE_V2
						   : SYSFS_GID_IB;
	return 0;
}

/* iWARP has no partitions. */
static uint32_t pkey_count(struct ibv_context *context, const struct vb_port *p)
{
	return p && !vb_front_is_rnic(context) ? atomic_load(&p->pkey_count)
					       : 0;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index,
		   __be16 *pkey)
{
	const struct vb_port *p = port_of(context, port_num);

	if (index < 0 || (uint32_t)index >= pkey_count(context, p))
		return vb_front_minus(-no_entry(context, port_num, "P_Key",
						(uint32_t)index,
						pkey_count(context, p)));
	*pkey = htobe16(vb_port_pkey(p, (unsigned)index));
	vb_tools_wrote(pkey, sizeof(*pkey));
	return 0;
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num,
		       __be16 pkey)
{
	const struct vb_port *p = port_of(context, port_num);
	uint32_t count = pkey_count(context, p);

	for (unsigned i = 0; i < count; i++)
		if (htobe16(vb_port_pkey(p, i)) == pkey)
			return (int)i;
	if (p)
		vb_why(WHY_INDEX, be16toh(pkey),
		       "%s, port %u: P_Key 0x%04x is not in its table",
		       context->device->name, port_num, be16toh(pkey));
	else
		(void)no_port(context, port_num);
	return vb_front_minus(-EINVAL);
}
