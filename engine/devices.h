/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of devices: one RoCEv2 device for every interface that is up and has
 * an address, or loopback's where there is no such interface; or those that a
 * list of specs names. iWARP devices, and RoCE devices with both versions,
 * exist only for users who name them: a program that uses the first device of a
 * list, or one for each address, should not find two for one interface, and
 * RoCEv1 needs a privilege. An adapter has one port, or, if it is a VPI
 * adapter, two of either kind.
 */
#ifndef ENGINE_DEVICES_H
#define ENGINE_DEVICES_H

#include "engine/vpi_spec.h"

enum vb_device_kind {
	DEVICE_ROCE,
	DEVICE_IWARP,
	DEVICE_ROCEV1,
	DEVICE_IB,
	/* a device whose ports may be of the kinds above, but iWARP */
	DEVICE_VPI
};

struct vb_device_port {
	enum vb_device_kind kind;     /* never DEVICE_VPI */
	char netdev[16];	      /* its interface; DEVICE_IB has none */
	uint32_t ifindex;	      /* index of @netdev */
	struct vb_fabric_place place; /* DEVICE_IB */
	uint64_t guid; /* an EUI-64 of interface or node, in host byte order */
};

struct vb_device {
	/* for example roce_eth0, rocev1_eth0, iw_eth0, ib0 or vpi0 */
	char name[64];
	enum vb_device_kind kind;
	/* index of the interface; DEVICE_IB, DEVICE_VPI: number of the adapter
	 * among those of its kind */
	uint32_t ifindex;
	uint64_t guid; /* an EUI-64 in host byte order; never 0 */
	unsigned port_count;
	struct vb_device_port port[VB_VPI_PORTS];
};

/* Returns the number of device @ifindex of its kind, which no other device has,
 * even though two devices can be on one interface. Minor numbers of device
 * files are made of it, and have 20 bits. */
static inline uint32_t vb_device_number(enum vb_device_kind kind,
					uint32_t ifindex)
{
	static const uint32_t first[] = {
		[DEVICE_ROCE] = 0,	  [DEVICE_ROCEV1] = 500000,
		[DEVICE_IWARP] = 1000000, [DEVICE_IB] = 1040000,
		[DEVICE_VPI] = 1048000,
	};

	return first[kind] + ifindex;
}

/*
 * List devices. @specs: a comma-separated list, or NULL or empty for all
 * devices but places in fabrics. A spec is an interface ("eth0": RoCE), or
 * "roce:eth0", "rocev1:eth0" (RoCE of both versions) or "iwarp:eth0", or a
 * device's name ("roce_eth0", "iw_eth0"), or a place in a fabric ("ib:NODE"),
 * of which a switch gives no device, or a VPI adapter (engine/vpi_spec.h).
 * *@list
 * has the order of the specs. The caller frees *@list with free(). -ENODEV: a
 * spec names no device (logged); -EINVAL: a spec has none of these forms
 * (logged).
 */
VB_MUST_CHECK int vb_devices_list(const char *specs, struct vb_device **list,
				  unsigned *count);

#endif
