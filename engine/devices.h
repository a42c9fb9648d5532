/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of devices: one RoCEv2 device for every interface that is up and has
 * an address, or loopback's where there is no such interface; or those that a
 * list of specs names. iWARP devices, and RoCE devices with both versions,
 * exist only for users who name them: a program that uses the first device of a
 * list, or one for each address, should not find two for one interface, and
 * RoCEv1 needs a privilege.
 */
#ifndef ENGINE_DEVICES_H
#define ENGINE_DEVICES_H

#include "engine/fabric_path.h"

enum vb_device_kind { DEVICE_ROCE, DEVICE_IWARP, DEVICE_ROCEV1, DEVICE_IB };

struct vb_device {
	char name[64]; /* for example roce_eth0, rocev1_eth0, iw_eth0 or ib0 */
	enum vb_device_kind kind;
	char netdev[16];
	uint32_t ifindex; /* DEVICE_IB: which of the places it is */
	uint64_t guid;	  /* an EUI-64 in host byte order; never 0 */
	struct vb_fabric_place place; /* DEVICE_IB; it has no interface */
};

/* Returns the number of device @ifindex of its kind, which no other device has,
 * even though two devices can be on one interface. Minor numbers of device
 * files are made of it, and have 20 bits. */
static inline uint32_t vb_device_number(enum vb_device_kind kind,
					uint32_t ifindex)
{
	static const uint32_t first[] = {
		[DEVICE_ROCE] = 0,
		[DEVICE_ROCEV1] = 500000,
		[DEVICE_IWARP] = 1000000,
		[DEVICE_IB] = 1040000,
	};

	return first[kind] + ifindex;
}

/*
 * List devices. @specs: a comma-separated list, or NULL or empty for all
 * devices but places in fabrics. A spec is an interface ("eth0": RoCE), or
 * "roce:eth0", "rocev1:eth0" (RoCE of both versions) or "iwarp:eth0", or a
 * device's name ("roce_eth0", "iw_eth0"), or a place in a fabric ("ib:NODE"),
 * of which a switch gives no device. *@list
 * has the order of the specs. The caller frees *@list with free(). -ENODEV: a
 * spec names no device (logged); -EINVAL: a spec has none of these forms
 * (logged).
 */
VB_MUST_CHECK int vb_devices_list(const char *specs, struct vb_device **list,
				  unsigned *count);

#endif
