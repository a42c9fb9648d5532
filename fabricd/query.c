/* SPDX-License-Identifier: BSD-2-Clause */
/* Describes a node and its ports to libibumad.so.3 and to readers of /sys. */
#include <string.h>

#include "fabricd/fabricd_priv.h"

/* by enum vb_umad_count: the counter of the data plane, an enum
 * vb_fab_counter */
static const uint8_t counts[VB_UMAD_COUNTS] = {
	[UMAD_COUNT_SYMBOL_ERROR] = FAB_SYMBOL_ERRORS,
	[UMAD_COUNT_LINK_ERROR_RECOVERY] = FAB_LINK_RECOVERIES,
	[UMAD_COUNT_LINK_DOWNED] = FAB_LINK_DOWNED,
	[UMAD_COUNT_PORT_RCV_ERRORS] = FAB_RCV_ERRORS,
	[UMAD_COUNT_PORT_RCV_REMOTE_PHYSICAL_ERRORS] = FAB_RCV_REMOTE_PHYSICAL,
	[UMAD_COUNT_PORT_RCV_SWITCH_RELAY_ERRORS] = FAB_RCV_SWITCH_RELAY,
	[UMAD_COUNT_PORT_XMIT_DISCARDS] = FAB_XMIT_DISCARDS,
	[UMAD_COUNT_PORT_XMIT_CONSTRAINT_ERRORS] = FAB_XMIT_CONSTRAINT,
	[UMAD_COUNT_PORT_RCV_CONSTRAINT_ERRORS] = FAB_RCV_CONSTRAINT,
	[UMAD_COUNT_LOCAL_LINK_INTEGRITY_ERRORS] = FAB_LINK_INTEGRITY,
	[UMAD_COUNT_EXCESSIVE_BUFFER_OVERRUN_ERRORS] = FAB_OVERRUNS,
	[UMAD_COUNT_VL15_DROPPED] = FAB_VL15_DROPPED,
	[UMAD_COUNT_PORT_XMIT_WAIT] = FAB_XMIT_WAIT,
	[UMAD_COUNT_PORT_XMIT_DATA] = FAB_XMIT_WORDS,
	[UMAD_COUNT_PORT_RCV_DATA] = FAB_RCV_WORDS,
	[UMAD_COUNT_PORT_XMIT_PACKETS] = FAB_XMIT_PKTS,
	[UMAD_COUNT_PORT_RCV_PACKETS] = FAB_RCV_PKTS,
	[UMAD_COUNT_MULTICAST_XMIT_PACKETS] = FAB_XMIT_MCAST_PKTS,
	[UMAD_COUNT_MULTICAST_RCV_PACKETS] = FAB_RCV_MCAST_PKTS,
};

static void describe_port(struct vb_fabricd *f, struct vb_fab_node *n,
			  uint8_t port, struct vb_umad_info *i, vb_time now)
{
	const struct vb_fab_port *p = &n->port[port];

	i->has_port = 1;
	i->state = p->state;
	i->phys = p->phys;
	i->lmc = p->lmc;
	i->sm_sl = p->sm_sl;
	i->lid = p->lid;
	i->sm_lid = p->sm_lid;
	i->rate = vb_fab_gbits(p);
	i->width = p->width_active;
	i->speed = p->speed_active;
	i->speed_ext = p->speed_ext_active;
	i->cap_mask = p->cap_mask;
	i->gid_prefix = p->gid_prefix;
	i->port_guid = p->guid;
	i->guids = VB_MIN(p->guid_cap, VB_UMAD_GUIDS);
	memcpy(i->guid_table, p->guids, i->guids * sizeof(*p->guids));
	i->pkeys = VB_MIN(p->pkeys, VB_UMAD_PKEYS);
	memcpy(i->pkey, p->pkey, i->pkeys * sizeof(*i->pkey));
	if (!vb_fabricd_issm_path(f, n, port, i->issm))
		i->issm[0] = '\0';
	vb_fab_count_waits(f->net, n, port, now);
	for (unsigned k = 0; k < VB_UMAD_COUNTS; k++)
		i->count[k] = p->count[counts[k]];
}

bool vb_fabricd_has_own_port(const struct vb_fab_node *n, unsigned port)
{
	if (n->kind == FAB_SWITCH)
		return port == 0;
	return port >= 1 && port <= n->ports;
}

void vb_fabricd_describe(struct vb_fabricd *f, struct vb_fab_node *n,
			 uint8_t port, struct vb_umad_info *i, vb_time now)
{
	*i = (struct vb_umad_info){
		.head = { .magic = VB_UMAD_MAGIC, .kind = UMAD_QUERY },
		.kind = n->kind,
		.ports = n->ports,
		.guid = n->guid,
		.sys_guid = n->sys_guid,
		.vendor_id = n->vendor_id,
		.device_id = n->device_id,
		.revision = n->revision,
	};
	memcpy(i->desc, n->desc, sizeof(n->desc));
	if (vb_fabricd_has_own_port(n, port))
		describe_port(f, n, port, i, now);
}
