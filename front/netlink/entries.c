/* SPDX-License-Identifier: BSD-2-Clause */
/* The attributes of devices, ports, counters and objects, in the kernel's order
 * (nldev), and the facts that they are made from. */
#include "front/netlink/entries.h"

#include <infiniband/verbs.h>
#include <rdma/rdma_netlink.h>

#include "front/verbs/caps.h"

static bool is_rnic(const struct vb_nl_device *d)
{
	return d->node_type == IBV_NODE_RNIC;
}

void vb_nl_put_handle(struct vb_nl_out *o, const struct vb_nl_device *d)
{
	vb_nl_put32(o, RDMA_NLDEV_ATTR_DEV_INDEX, d->index);
	vb_nl_puts(o, RDMA_NLDEV_ATTR_DEV_NAME, d->name);
}

void vb_nl_put_device(struct vb_nl_out *o, const struct vb_nl_device *d)
{
	vb_nl_put_handle(o, d);
	/* the highest port number */
	vb_nl_put32(o, RDMA_NLDEV_ATTR_PORT_INDEX, d->ports);
	vb_nl_put64(o, RDMA_NLDEV_ATTR_CAP_FLAGS, vb_device_caps(is_rnic(d)));
	if (d->firmware[0])
		vb_nl_puts(o, RDMA_NLDEV_ATTR_FW_VERSION, d->firmware);
	vb_nl_put64(o, RDMA_NLDEV_ATTR_NODE_GUID, d->guid);
	vb_nl_put64(o, RDMA_NLDEV_ATTR_SYS_IMAGE_GUID, d->image_guid);
	vb_nl_put8(o, RDMA_NLDEV_ATTR_DEV_NODE_TYPE, d->node_type);
	/* Dynamic interrupt moderation is off: only a program moderates its
	 * completion queues. */
	vb_nl_put8(o, RDMA_NLDEV_ATTR_DEV_DIM, 0);
	/* the protocol of the first port, as in Linux */
	vb_nl_puts(o, RDMA_NLDEV_ATTR_DEV_PROTOCOL,
		   is_rnic(d)		   ? "iw"
		   : d->port[0].infiniband ? "ib"
					   : "roce");
}

static void put_subnet(struct vb_nl_out *o, const struct vb_nl_port *p)
{
	vb_nl_put64(o, RDMA_NLDEV_ATTR_CAP_FLAGS, p->caps);
	vb_nl_put64(o, RDMA_NLDEV_ATTR_SUBNET_PREFIX, p->prefix);
	vb_nl_put32(o, RDMA_NLDEV_ATTR_LID, p->lid);
	vb_nl_put32(o, RDMA_NLDEV_ATTR_SM_LID, p->sm_lid);
	vb_nl_put8(o, RDMA_NLDEV_ATTR_LMC, (uint8_t)p->lmc);
}

/* Write the attributes of a port. An Ethernet port has no LIDs, no subnet
 * prefix and no capability mask. */
void vb_nl_put_port(struct vb_nl_out *o, const struct vb_nl_device *d,
		    uint32_t port)
{
	const struct vb_nl_port *p = &d->port[port - 1];

	vb_nl_put_handle(o, d);
	vb_nl_put32(o, RDMA_NLDEV_ATTR_PORT_INDEX, port);
	if (p->infiniband)
		put_subnet(o, p);
	vb_nl_put8(o, RDMA_NLDEV_ATTR_PORT_STATE, p->state);
	vb_nl_put8(o, RDMA_NLDEV_ATTR_PORT_PHYS_STATE, p->phys_state);
	if (!p->netdev[0])
		return;
	vb_nl_put32(o, RDMA_NLDEV_ATTR_NDEV_INDEX, p->ifindex);
	vb_nl_puts(o, RDMA_NLDEV_ATTR_NDEV_NAME, p->netdev);
}

/* Write the attributes of the system. Each network namespace has its own
 * devices (exclusive mode), and a fork does not disturb registered memory. */
void vb_nl_put_system(struct vb_nl_out *o)
{
	/* Mode 0 is exclusive: a device belongs to one network namespace. */
	vb_nl_put8(o, RDMA_NLDEV_SYS_ATTR_NETNS_MODE, 0);
	vb_nl_put8(o, RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK, 1);
}

void vb_nl_put_summary(struct vb_nl_out *o, const struct vb_nl_facts *f,
		       const struct vb_nl_device *d)
{
	/* The kinds of objects, in the kernel's order. "cm_id" is left out:
	 * rosters have no ids of librdmacm, and a 0 would claim that there are
	 * none. */
	static const struct {
		const char *name;
		enum vb_roster_kind kind;
	} sums[] = {
		{ "pd", ROSTER_PD },   { "cq", ROSTER_CQ },
		{ "qp", ROSTER_QP },   { "mr", ROSTER_MR },
		{ "ctx", ROSTER_CTX }, { "srq", ROSTER_SRQ },
	};
	static const struct vb_census_sum none;
	const struct vb_census_sum *sum = &none;
	uint32_t table, entry;

	for (unsigned i = 0; i < f->census.sum_count; i++)
		if (strcmp(f->census.sums[i].device, d->name) == 0)
			sum = &f->census.sums[i];
	vb_nl_put_handle(o, d);
	table = vb_nl_open(o, RDMA_NLDEV_ATTR_RES_SUMMARY);
	for (unsigned i = 0; i < VB_COUNT(sums); i++) {
		entry = vb_nl_open(o, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY);
		vb_nl_puts(o, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME,
			   sums[i].name);
		vb_nl_put64(o, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR,
			    sum->alive[sums[i].kind]);
		vb_nl_close(o, entry);
	}
	vb_nl_close(o, table);
}

void vb_nl_put_counters(struct vb_nl_out *o, const struct vb_nl_facts *f,
			const struct vb_nl_device *d, uint32_t port)
{
	static const struct vb_counter_file none;
	const struct vb_counter_file *counters = &none;
	uint32_t table, entry;

	for (unsigned i = 0; i < f->counter_of; i++)
		if (strcmp(f->files[i].device, d->name) == 0)
			counters = &f->files[i];
	vb_nl_put_handle(o, d);
	vb_nl_put32(o, RDMA_NLDEV_ATTR_PORT_INDEX, port);
	table = vb_nl_open(o, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
	for (unsigned i = 0; i < CNT_COUNT; i++) {
		entry = vb_nl_open(o, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY);
		vb_nl_puts(o, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME,
			   vb_counter_name((enum vb_counter)i));
		vb_nl_put64(o, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE,
			    counters->counts[i]);
		vb_nl_close(o, entry);
	}
	vb_nl_close(o, table);
}

void vb_nl_put_switches(struct vb_nl_out *o, const struct vb_nl_facts *f,
			const struct vb_nl_device *d, uint32_t port)
{
	uint32_t table, entry;

	vb_nl_put_handle(o, d);
	vb_nl_put32(o, RDMA_NLDEV_ATTR_PORT_INDEX, port);
	table = vb_nl_open(o, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
	for (unsigned i = 0; i < CNT_COUNT; i++) {
		entry = vb_nl_open(o, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY);
		vb_nl_puts(o, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME,
			   vb_counter_name((enum vb_counter)i));
		vb_nl_put32(o, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_INDEX, i);
		vb_nl_put8(o, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_DYNAMIC, 0);
		vb_nl_close(o, entry);
	}
	vb_nl_close(o, table);
}

/* Functions that write the attributes of a device's objects. */

static void put_id(struct vb_nl_out *o, uint16_t type, uint32_t id)
{
	if (id)
		vb_nl_put32(o, type, id);
}

static bool is_connection(uint8_t type)
{
	return type == IBV_QPT_RC || type == IBV_QPT_UC;
}

static bool has_paths(uint8_t type)
{
	return is_connection(type) || type == IBV_QPT_XRC_SEND ||
	       type == IBV_QPT_XRC_RECV;
}

static void put_qp(struct vb_nl_out *o, const struct vb_nl_facts *f,
		   const struct vb_census_row *row)
{
	if (row->port)
		vb_nl_put32(o, RDMA_NLDEV_ATTR_PORT_INDEX, row->port);
	vb_nl_put32(o, RDMA_NLDEV_ATTR_RES_LQPN, row->number);
	if (is_connection(row->type)) {
		vb_nl_put32(o, RDMA_NLDEV_ATTR_RES_RQPN, row->peer);
		vb_nl_put32(o, RDMA_NLDEV_ATTR_RES_RQ_PSN, row->rq_psn);
	}
	vb_nl_put32(o, RDMA_NLDEV_ATTR_RES_SQ_PSN, row->sq_psn);
	/* Only adapters of a fabric migrate to other paths, and NETLINK_RDMA
	 * shows none of these, so the state is always MIGRATED. */
	if (has_paths(row->type))
		vb_nl_put8(o, RDMA_NLDEV_ATTR_RES_PATH_MIG_STATE,
			   IBV_MIG_MIGRATED);
	vb_nl_put8(o, RDMA_NLDEV_ATTR_RES_TYPE, row->type);
	vb_nl_put8(o, RDMA_NLDEV_ATTR_RES_STATE, row->state);
	put_id(o, RDMA_NLDEV_ATTR_RES_PDN, row->pd);
	vb_nl_put32(o, RDMA_NLDEV_ATTR_RES_PID, (uint32_t)row->pid);
}

static void put_cq(struct vb_nl_out *o, const struct vb_nl_facts *f,
		   const struct vb_census_row *row)
{
	vb_nl_put32(o, RDMA_NLDEV_ATTR_RES_CQE, (uint32_t)row->size);
	vb_nl_put64(o, RDMA_NLDEV_ATTR_RES_USECNT, row->users);
	vb_nl_put32(o, RDMA_NLDEV_ATTR_RES_CQN, row->id);
	put_id(o, RDMA_NLDEV_ATTR_RES_CTXN, row->ctx);
	vb_nl_put32(o, RDMA_NLDEV_ATTR_RES_PID, (uint32_t)row->pid);
}

/* Write a memory region. The kernel shows keys to privileged users only. Here
 * every region belongs to the caller's user, so the keys are shown. */
static void put_mr(struct vb_nl_out *o, const struct vb_nl_facts *f,
		   const struct vb_census_row *row)
{
	vb_nl_put32(o, RDMA_NLDEV_ATTR_RES_RKEY, row->number);
	vb_nl_put32(o, RDMA_NLDEV_ATTR_RES_LKEY, row->number);
	vb_nl_put64(o, RDMA_NLDEV_ATTR_RES_IOVA, row->iova);
	vb_nl_put64(o, RDMA_NLDEV_ATTR_RES_MRLEN, row->size);
	vb_nl_put32(o, RDMA_NLDEV_ATTR_RES_MRN, row->id);
	put_id(o, RDMA_NLDEV_ATTR_RES_PDN, row->pd);
	vb_nl_put32(o, RDMA_NLDEV_ATTR_RES_PID, (uint32_t)row->pid);
}

static void put_pd(struct vb_nl_out *o, const struct vb_nl_facts *f,
		   const struct vb_census_row *row)
{
	vb_nl_put64(o, RDMA_NLDEV_ATTR_RES_USECNT, row->users);
	vb_nl_put32(o, RDMA_NLDEV_ATTR_RES_PDN, row->id);
	put_id(o, RDMA_NLDEV_ATTR_RES_CTXN, row->ctx);
	vb_nl_put32(o, RDMA_NLDEV_ATTR_RES_PID, (uint32_t)row->pid);
}

static void put_ctx(struct vb_nl_out *o, const struct vb_nl_facts *f,
		    const struct vb_census_row *row)
{
	vb_nl_put32(o, RDMA_NLDEV_ATTR_RES_CTXN, row->id);
	vb_nl_put32(o, RDMA_NLDEV_ATTR_RES_PID, (uint32_t)row->pid);
}

/* The most queue pairs of one shared receive queue that are written, as many as
 * fit into one message. */
#define MOST_QPS 200
static void put_users(struct vb_nl_out *o, const struct vb_nl_facts *f,
		      const struct vb_census_row *srq)
{
	uint32_t table = vb_nl_open(o, RDMA_NLDEV_ATTR_RES_QP), entry;
	unsigned told = 0;

	for (unsigned i = 0; i < f->census.count && told < MOST_QPS; i++) {
		const struct vb_census_row *row = &f->census.rows[i];

		if (row->kind != ROSTER_QP || row->srq != srq->id ||
		    strcmp(row->device, srq->device) != 0)
			continue;
		entry = vb_nl_open(o, RDMA_NLDEV_ATTR_RES_QP_ENTRY);
		vb_nl_put32(o, RDMA_NLDEV_ATTR_RES_LQPN, row->number);
		vb_nl_close(o, entry);
		told++;
	}
	vb_nl_close(o, table);
}

static void put_srq(struct vb_nl_out *o, const struct vb_nl_facts *f,
		    const struct vb_census_row *row)
{
	vb_nl_put32(o, RDMA_NLDEV_ATTR_RES_SRQN, row->id);
	vb_nl_put8(o, RDMA_NLDEV_ATTR_RES_TYPE, row->type);
	put_id(o, RDMA_NLDEV_ATTR_RES_PDN, row->pd);
	put_id(o, RDMA_NLDEV_ATTR_RES_CQN, row->recv_cq);
	put_users(o, f, row);
	vb_nl_put32(o, RDMA_NLDEV_ATTR_RES_PID, (uint32_t)row->pid);
}

// clang-format off
const struct vb_nl_kind vb_nl_kinds[] = {
	{ RDMA_NLDEV_CMD_RES_QP_GET, RDMA_NLDEV_ATTR_RES_QP,
	  RDMA_NLDEV_ATTR_RES_QP_ENTRY, RDMA_NLDEV_ATTR_RES_LQPN,
	  true, ROSTER_QP, put_qp },
	{ RDMA_NLDEV_CMD_RES_CQ_GET, RDMA_NLDEV_ATTR_RES_CQ,
	  RDMA_NLDEV_ATTR_RES_CQ_ENTRY, RDMA_NLDEV_ATTR_RES_CQN,
	  false, ROSTER_CQ, put_cq },
	{ RDMA_NLDEV_CMD_RES_MR_GET, RDMA_NLDEV_ATTR_RES_MR,
	  RDMA_NLDEV_ATTR_RES_MR_ENTRY, RDMA_NLDEV_ATTR_RES_MRN,
	  false, ROSTER_MR, put_mr },
	{ RDMA_NLDEV_CMD_RES_PD_GET, RDMA_NLDEV_ATTR_RES_PD,
	  RDMA_NLDEV_ATTR_RES_PD_ENTRY, RDMA_NLDEV_ATTR_RES_PDN,
	  false, ROSTER_PD, put_pd },
	{ RDMA_NLDEV_CMD_RES_CTX_GET, RDMA_NLDEV_ATTR_RES_CTX,
	  RDMA_NLDEV_ATTR_RES_CTX_ENTRY, RDMA_NLDEV_ATTR_RES_CTXN,
	  false, ROSTER_CTX, put_ctx },
	{ RDMA_NLDEV_CMD_RES_SRQ_GET, RDMA_NLDEV_ATTR_RES_SRQ,
	  RDMA_NLDEV_ATTR_RES_SRQ_ENTRY, RDMA_NLDEV_ATTR_RES_SRQN,
	  false, ROSTER_SRQ, put_srq },
};
// clang-format on
const unsigned vb_nl_kind_count = VB_COUNT(vb_nl_kinds);
