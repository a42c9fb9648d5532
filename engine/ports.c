/* SPDX-License-Identifier: BSD-2-Clause */
/* Ports follow the host's interfaces: addresses, MTU, up and down. */
#include "engine/engine_priv.h"

#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/sysfs_tree.h"
#include "engine/port_update.h"
#include "link/ib.h"
#include "link/netif.h"

static const struct vb_netif *find_netif(const struct vb_netif *list,
					 unsigned count, const char *name)
{
	for (unsigned i = 0; i < count; i++)
		if (strcmp(list[i].name, name) == 0)
			return &list[i];
	return NULL;
}

/* Does the port have no interface now, or has its fabric ended? The caller
 * holds list_lock, and the answer stays valid until the caller releases it,
 * because only a holder of list_lock changes these two facts. */
static bool is_gone(const struct vb_port *p)
{
	return vb_port_is_ib(p) ? vb_ib_has_ended(p->link) : !p->present;
}

/* Note whether the port is gone. Returns @changes, without PORT_GONE while the
 * adapter has another port. PORT_GONE does not say that the port is gone: it
 * also comes when an interface was deleted and made again since the last
 * look. */
static unsigned note_gone(struct vb_open_adapter *oa, const struct vb_port *p,
			  unsigned changes)
{
	const unsigned all = (1u << oa->adapter.port_count) - 1;
	const unsigned bit = 1u << (p->number - 1);

	oa->gone = is_gone(p) ? oa->gone | bit : oa->gone & ~bit;
	return (oa->gone | bit) == all ? changes
				       : changes & ~(unsigned)PORT_GONE;
}

void vb_ports_tell(struct vb_open_adapter *oa, const struct vb_port *p,
		   unsigned changes)
{
	static const struct {
		enum vb_port_change change;
		enum vb_event_type event;
	} says[] = {
		{ PORT_WENT_DOWN, EVENT_PORT_ERR },
		{ PORT_GONE, EVENT_DEVICE_FATAL },
		{ PORT_UP, EVENT_PORT_ACTIVE },
		{ PORT_LID, EVENT_LID_CHANGE },
		{ PORT_SM, EVENT_SM_CHANGE },
		{ PORT_PKEYS, EVENT_PKEY_CHANGE },
		{ PORT_GIDS, EVENT_GID_CHANGE },
		{ PORT_REREGISTER, EVENT_CLIENT_REREGISTER },
	};

	changes = note_gone(oa, p, changes);
	for (unsigned i = 0; i < VB_COUNT(says); i++)
		for (struct vb_watcher *w = oa->watchers; w; w = w->next)
			if (changes & says[i].change)
				vb_async_post_port(w->async, says[i].event,
						   p->number);
}

struct netif_list {
	struct vb_engine *e;
	struct vb_netif *list;
	unsigned count;
};

/* Find a port's interface by its name, or, if it was renamed, by its index. */
static const struct vb_netif *interface_of(const struct vb_device_port *d,
					   const struct vb_port *p,
					   const struct netif_list *l)
{
	const struct vb_netif *n = find_netif(l->list, l->count, d->netdev);

	for (unsigned i = 0; !n && p->present && i < l->count; i++)
		if (l->list[i].ifindex == p->ifindex)
			n = &l->list[i];
	return n;
}

/* Does the interface exist although the list lacks it? The list made by ioctl
 * leaves out interfaces without an address (link/netif_ioctl.c). */
static bool stays(const struct vb_port *p, const struct vb_netif *now)
{
	char name[IF_NAMESIZE];

	return p->present && (!now || now->ifindex != p->ifindex) &&
	       if_indextoname(p->ifindex, name);
}

/* The caller holds list_lock. */
static void VB_UNCHECKED refresh_port(struct vb_open_adapter *oa, unsigned i,
				      const struct netif_list *l)
{
	const struct vb_device_port *d = &oa->device.port[i];
	struct vb_port *p = &oa->adapter.ports[i];
	const struct vb_netif *n = interface_of(d, p, l);
	struct vb_port_update update;

	vb_port_update_gather(d, n, &update);
	update.stays = stays(p, n);
	vb_ports_tell(oa, p, vb_port_update(p, &update));
	if (d->kind == DEVICE_ROCEV1 && n)
		vb_engine_roce1_learn(l->e, oa, i);
}

static void refresh_one(struct vb_open_adapter *oa, void *arg)
{
	for (unsigned i = 0; i < oa->device.port_count; i++)
		/* a fabric's port has no network interface */
		if (oa->device.port[i].kind != DEVICE_IB)
			refresh_port(oa, i, arg);
}

void vb_ports_refresh(struct vb_engine *e)
{
	char root[PATH_MAX];
	struct netif_list l = { .e = e };
	int rc = vb_netif_list(&l.list, &l.count);

	if (rc) {
		vb_log(LOG_WARN, "engine: interfaces cannot be listed: %s",
		       strerror(-rc));
		return;
	}
	vb_engine_with_adapters(e, refresh_one, &l);
	vb_netif_free(l.list, l.count);
	/* Everything else works without the tree, so ignore a failure. */
	(void)vb_sysfs_tree_write(root);
}

int vb_ports_setup(struct vb_engine *e, struct vb_open_adapter *oa, unsigned i)
{
	const struct vb_device_port *d = &oa->device.port[i];
	struct vb_port *p = &oa->adapter.ports[i];
	const struct vb_netif *n;
	struct netif_list l = { .e = e };
	int rc = vb_netif_list(&l.list, &l.count);

	if (rc)
		return rc;
	n = find_netif(l.list, l.count, d->netdev);
	if (!n) {
		vb_netif_free(l.list, l.count);
		vb_log(LOG_ERROR, "device %s: interface %s is gone",
		       oa->device.name, d->netdev);
		return -ENODEV;
	}
	memcpy(p->netdev, d->netdev, sizeof(p->netdev));
	refresh_port(oa, i, &l);
	vb_netif_free(l.list, l.count);
	return 0;
}
