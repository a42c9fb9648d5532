/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of devices (ibv_get_device_list(3)) and what a program reads from a
 * device without opening it. In each process, a device has one object, which
 * stays at its address as long as the device exists or is used.
 */
#include "core/lock_order.h"
#include "front/verbs/front.h"

#include <endian.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fork.h"
#include "base/log.h"
#include "engine/fabric_places.h"
#include "engine/sysfs_tree.h"

/* The path below the root of the tree of files that stands for the host's sysfs
 * (engine/sysfs_tree.h), or below the host's root. */
#define SYSFS_CLASS "/sys/class"

static struct {
	struct vb_mutex lock;
	/* The fields below are protected by lock. */
	struct vb_front_device *first;
} registry = { .lock = VB_MUTEX_INITIALIZER(RANK_DEVICES) };

/* Runs in the child of a fork, which begins with an empty registry. The
 * parent's objects are not freed, since the child may still have the parent's
 * lists. */
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
		 vb_device_number(found->kind, found->ifindex));
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
	put_paths(ibv, ""); /* the tree's root is too long for the ABI */
}

/* Find the object of the device @found, or make it. The caller holds the
 * registry's lock, and becomes one of the object's users. Returns NULL if
 * memory runs out. */
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

/* Free the objects of devices that no longer exist and that have no users. The
 * caller holds the registry's lock. Existing devices keep their objects even
 * without users: some programs read a device's name after they have freed the
 * list. */
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
	struct vb_fabric_adapter adapter;
	unsigned count;

	if (vb_fabric_adapter_nth(getenv("VERBENA_DEVICES"), 0, &adapter,
				  &count))
		return; /* VERBENA_DEVICES names an adapter of a fabric */
	if (!atomic_exchange(&warned, true))
		vb_log(LOG_WARN, "no RDMA device: no network interface is up "
				 "and has an IP address");
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
		return vb_front_null_of(rc, "ibv_get_device_list");
	if (count == 0)
		warn_no_device();
	if (!vb_sysfs_tree_write(root))
		/* there is no tree: the paths name the host's files */
		root[0] = '\0';
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
		return vb_front_null_of(rc, "ibv_get_device_list");
	}
	if (num_devices)
		*num_devices = (int)count;
	errno = 0;
	return list;
}

struct ibv_device **(ibv_get_device_list)(int *num_devices)
{
	/* A thread cancelled in the code below would leave locks and memory
	 * behind. */
	int cancel = vb_cancel_off();
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
	const struct vb_device *d =
		&VB_CONTAINER_OF(device, struct vb_front_device, ibv)->found;

	/* A number derived from the interface, which is equal in all
	 * processes. */
	return (int)vb_device_number(d->kind, d->ifindex);
}

void vb_front_device_hold(struct ibv_device *device, int by)
{
	vb_mutex_lock(&registry.lock);
	VB_CONTAINER_OF(device, struct vb_front_device, ibv)->users +=
		(unsigned)by;
	vb_mutex_unlock(&registry.lock);
}
