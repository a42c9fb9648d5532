/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of devices: one RoCEv2 device for every interface that is up and has
 * an address, or loopback's where there is no such interface; or those that a
 * list of specs names. iWARP devices exist only for users who name them: a
 * program that uses the first device of a list, or one for each address, should
 * not find two for one interface.
 */
#ifndef ENGINE_DEVICES_H
#define ENGINE_DEVICES_H

#include "base/defs.h"

enum vb_device_kind { DEVICE_ROCE, DEVICE_IWARP };

struct vb_device {
	char name[64]; /* for example roce_eth0 or iw_eth0 */
	enum vb_device_kind kind;
	char netdev[16];
	uint32_t ifindex;
	uint64_t guid; /* an EUI-64 in host byte order; never 0 */
};

/* Returns a number that no other device has, even though two devices can be on
 * one interface. */
static inline uint32_t vb_device_number(const struct vb_device *d)
{
	return d->kind == DEVICE_IWARP ? d->ifindex + 1000000 : d->ifindex;
}

/*
 * List devices. @specs: a comma-separated list, or NULL or empty for all
 * devices. A spec is an interface ("eth0": RoCE), or "roce:eth0" or
 * "iwarp:eth0", or a device's name ("roce_eth0", "iw_eth0"). *@list has the
 * order of the specs, without places in a fabric ("ib:NODE"). The caller frees
 * *@list with free(). -ENODEV: a spec names no device (logged); -EINVAL: a spec
 * has none of these forms (logged).
 */
VB_MUST_CHECK int vb_devices_list(const char *specs, struct vb_device **list,
				  unsigned *count);

#endif
