/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which devices there are: one RoCEv2 device for every interface that is up
 * and has an address, loopback last; or those that a list of specs names.
 */
#ifndef ENGINE_DEVICES_H
#define ENGINE_DEVICES_H

#include "base/defs.h"

struct vb_device {
	char name[64]; /* roce_eth0 */
	char netdev[16];
	uint32_t ifindex;
	uint64_t guid; /* host order of an EUI-64; never 0 */
};

/*
 * @specs: comma-separated, NULL or empty for all. A spec is an interface
 * ("eth0"), or "roce:eth0", or a device's name ("roce_eth0"). *@list is
 * freed by free(). -ENODEV: a spec names nothing (logged); -EINVAL: a spec
 * that cannot be read (logged).
 */
VB_MUST_CHECK int vb_devices_list(const char *specs, struct vb_device **list,
				  unsigned *count);

#endif
