/* SPDX-License-Identifier: BSD-2-Clause */
/* The capability flags of a device, which ibv_query_device_ex() and
 * NETLINK_RDMA both report. */
#ifndef FRONT_VERBS_CAPS_H
#define FRONT_VERBS_CAPS_H

#include <infiniband/verbs.h>

/* The flag IB_UVERBS_DEVICE_ATOMIC_WRITE, which only newer headers define. */
#define VB_DEVICE_ATOMIC_WRITE (1ull << 40)

/* Returns the capabilities of a device. ibv_query_device() reports the low 32
 * bits. */
static inline uint64_t vb_device_caps(bool is_rnic)
{
	const uint64_t all =
		IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_PORT_ACTIVE_EVENT |
		IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_SRQ_RESIZE |
		IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B |
		IBV_DEVICE_MEM_MGT_EXTENSIONS;

	if (is_rnic)
		return all;
	return all | IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_XRC |
	       IBV_DEVICE_MANAGED_FLOW_STEERING | VB_DEVICE_ATOMIC_WRITE;
}

#endif
