/* SPDX-License-Identifier: BSD-2-Clause */
/* The start and the end of the library, adapters, and their ports. */
#include "front/umad/umad.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#ifndef VB_VERSION
#define VB_VERSION "unknown"
#endif

#define STATE_ACTIVE 4
#define PHYS_LINK_UP 5
#define LINK_LAYER   "InfiniBand"
#define TYPE	     "Verbena"
#define NODE_SWITCH  2

int umad_debug_level;

UMAD_EXPORT int umad_init(void)
{
	return 0;
}

UMAD_EXPORT int umad_done(void)
{
	return 0;
}

UMAD_EXPORT int umad_debug(int level)
{
	if (level >= 0)
		umad_debug_level = level;
	return umad_debug_level;
}

UMAD_EXPORT int umad_get_cas_names(char cas[][UMAD_CA_NAME_LEN], int max)
{
	unsigned count = umad_places();
	struct vb_fabric_adapter a;

	for (unsigned i = 0; i < count && max > 0 && i < (unsigned)max; i++)
		if (umad_adapter(i, &a))
			snprintf(cas[i], UMAD_CA_NAME_LEN, "%s", a.name);
	return VB_MIN((int)count, VB_MAX(max, 0));
}

/* Ask the fabric about the adapter as a whole, by the first of its nodes. Sets
 * @info->ports to the number of ports of the whole adapter. */
static int ask_adapter(const struct vb_fabric_adapter *a,
		       struct vb_umad_info *info)
{
	unsigned i = a->place[0].node[0] ? 0 : 1;
	int rc = vb_fabric_query(&a->place[i], 0, info);

	if (a->ports)
		info->ports = (uint8_t)a->ports;
	return rc;
}

/* Functions that describe a port. */

static void fill_port(umad_port_t *port, const char *name, unsigned number,
		      const struct vb_umad_info *i)
{
	memset(port, 0, sizeof(*port));
	snprintf(port->ca_name, sizeof(port->ca_name), "%s", name);
	port->portnum = (int)number;
	port->base_lid = i->lid;
	port->lmc = i->lmc;
	port->sm_lid = i->sm_lid;
	port->sm_sl = i->sm_sl;
	port->state = i->state;
	port->phys_state = i->phys;
	port->rate = i->rate;
	port->capmask = htobe32(i->cap_mask);
	port->gid_prefix = htobe64(i->gid_prefix);
	port->port_guid = htobe64(i->port_guid);
	snprintf(port->link_layer, sizeof(port->link_layer), LINK_LAYER);
}

static int fill_pkeys(umad_port_t *port, const struct vb_umad_info *i)
{
	unsigned count = VB_MIN(i->pkeys, VB_UMAD_PKEYS);

	port->pkeys = calloc(count ? count : 1, sizeof(*port->pkeys));
	if (!port->pkeys)
		return -ENOMEM;
	memcpy(port->pkeys, i->pkey, count * sizeof(*port->pkeys));
	port->pkeys_size = count;
	return 0;
}

/* Fill in a port of the adapter, which may be an Ethernet port. */
static int get_port(const struct vb_fabric_adapter *a, unsigned number,
		    umad_port_t *port)
{
	struct vb_fabric_place place;
	struct vb_umad_info info;
	int rc;

	if (!vb_fabric_adapter_port(a, number, &place))
		return umad_ethernet_port(a->name, number, port);
	rc = vb_fabric_query(&place, place.port, &info);
	if (rc)
		return rc;
	if (!info.has_port)
		return -ENODEV;
	fill_port(port, a->name, number, &info);
	return fill_pkeys(port, &info);
}

/* Returns how good a choice a port is; choose_port() takes the port with the
 * largest value. */
static unsigned worth(const struct vb_umad_info *i)
{
	if (i->state == STATE_ACTIVE)
		return 3;
	return i->phys == PHYS_LINK_UP ? 2 : 1;
}

/* Choose the port that a caller means by the number 0: at a switch port 0;
 * otherwise the first active port, or the first whose link is up, or the first
 * of all. Ethernet ports are left out, because they send no MADs. */
static int choose_port(const struct vb_fabric_adapter *a, unsigned *number)
{
	struct vb_fabric_place place;
	struct vb_umad_info info;
	unsigned best = 0;
	int rc = ask_adapter(a, &info);

	*number = 0;
	if (rc || info.kind == NODE_SWITCH)
		return rc;
	for (unsigned p = 1, ports = info.ports; p <= ports; p++) {
		if (!vb_fabric_adapter_port(a, p, &place))
			continue;
		rc = vb_fabric_query(&place, place.port, &info);
		if (rc)
			return rc;
		if (worth(&info) > best) {
			best = worth(&info);
			*number = p;
		}
	}
	return 0;
}

/* Find the adapter @name (NULL: the first) and its port @number (0: by
 * choose_port()). -ENODEV; -EINVAL; or the -errno of asking the fabric. */
static int resolve(const char *name, int number, struct vb_fabric_adapter *a,
		   unsigned *port)
{
	if (!umad_adapter_find(name, a))
		return -ENODEV;
	*port = (unsigned)number;
	if (number < 0 || number > 255)
		return -EINVAL;
	return number == 0 ? choose_port(a, port) : 0;
}

/* Finds a port as resolve() does, and sets *@place to the node and port of the
 * fabric where it is. -ENODEV also if it is an Ethernet port, which is in no
 * fabric. */
static int resolve_place(const char *name, int number,
			 struct vb_fabric_place *place)
{
	struct vb_fabric_adapter a;
	unsigned port;
	int rc = resolve(name, number, &a, &port);

	if (!rc && !vb_fabric_adapter_port(&a, port, place))
		return -ENODEV;
	return rc;
}

int umad_tell(int rc, const char *call, const char *name, int port)
{
	const char *why = strerror(-rc);

	if (rc >= 0)
		return rc;
	if (rc == -ENODEV)
		why = "VERBENA_DEVICES names no such adapter, or the adapter "
		      "has no such port in a fabric";
	else if (rc == -ECONNREFUSED)
		why = "its fabric does not run";
	vb_why(WHY_UMAD, (uintptr_t)call * 31 + (unsigned)port,
	       "umad: %s of %.32s, port %d: %s", call,
	       name ? name : "the first adapter", port, why);
	return rc;
}

UMAD_EXPORT int umad_get_port(const char *ca_name, int portnum,
			      umad_port_t *port)
{
	struct vb_fabric_adapter a;
	unsigned number;
	int rc = resolve(ca_name, portnum, &a, &number);

	if (!rc)
		rc = get_port(&a, number, port);
	return umad_tell(rc, "umad_get_port", ca_name, portnum);
}

UMAD_EXPORT int umad_release_port(umad_port_t *port)
{
	free(port->pkeys);
	port->pkeys = NULL;
	port->pkeys_size = 0;
	return 0;
}

/* Functions that describe an adapter. */

static void fill_ca(umad_ca_t *ca, const char *name,
		    const struct vb_umad_info *i)
{
	memset(ca, 0, sizeof(*ca));
	snprintf(ca->ca_name, sizeof(ca->ca_name), "%s", name);
	ca->node_type = i->kind;
	ca->numports = i->ports;
	snprintf(ca->fw_ver, sizeof(ca->fw_ver), VB_VERSION);
	snprintf(ca->hw_ver, sizeof(ca->hw_ver), "%u", i->revision);
	snprintf(ca->ca_type, sizeof(ca->ca_type), TYPE);
	ca->node_guid = htobe64(i->guid);
	ca->system_guid = htobe64(i->sys_guid);
}

/* Fill in the ports for which a umad_ca_t has room: 1 to 9 of a CA or router, 0
 * of a switch. */
static int fill_ports(umad_ca_t *ca, const struct vb_fabric_adapter *a)
{
	bool is_switch = ca->node_type == NODE_SWITCH;

	if (is_switch || ca->numports >= UMAD_CA_MAX_PORTS)
		ca->numports = is_switch ? 0 : UMAD_CA_MAX_PORTS - 1;
	for (int p = is_switch ? 0 : 1; p <= ca->numports; p++) {
		int rc;

		ca->ports[p] = calloc(1, sizeof(**ca->ports));
		if (!ca->ports[p])
			return -ENOMEM;
		rc = get_port(a, (unsigned)p, ca->ports[p]);
		if (rc)
			return rc;
	}
	return 0;
}

UMAD_EXPORT int umad_release_ca(umad_ca_t *ca)
{
	for (int p = 0; p < UMAD_CA_MAX_PORTS; p++) {
		if (!ca->ports[p])
			continue;
		umad_release_port(ca->ports[p]);
		free(ca->ports[p]);
		ca->ports[p] = NULL;
	}
	return 0;
}

UMAD_EXPORT int umad_get_ca(const char *ca_name, umad_ca_t *ca)
{
	struct vb_fabric_adapter a;
	struct vb_umad_info info;
	int rc;

	if (!umad_adapter_find(ca_name, &a))
		return umad_tell(-ENODEV, "umad_get_ca", ca_name, 0);
	rc = ask_adapter(&a, &info);
	if (rc)
		return umad_tell(rc, "umad_get_ca", ca_name, 0);
	fill_ca(ca, a.name, &info);
	rc = fill_ports(ca, &a);
	if (rc)
		umad_release_ca(ca);
	return rc;
}

/* Writes the GUID of port p to portguids[p]; only switches have a port 0. */
UMAD_EXPORT int umad_get_ca_portguids(const char *ca_name, __be64 *portguids,
				      int max)
{
	umad_ca_t ca;
	int rc = umad_get_ca(ca_name, &ca), count;

	if (rc)
		return rc;
	count = ca.numports + 1;
	for (int p = 0; portguids && p < count; p++) {
		if (p >= max) {
			umad_release_ca(&ca);
			return -ENOMEM;
		}
		portguids[p] = ca.ports[p] ? ca.ports[p]->port_guid : 0;
	}
	umad_release_ca(&ca);
	return count;
}

UMAD_EXPORT int umad_get_issm_path(const char *ca_name, int portnum,
				   char path[], int max)
{
	struct vb_fabric_place place;
	struct vb_umad_info info;
	int rc = resolve_place(ca_name, portnum, &place);

	if (!rc)
		rc = vb_fabric_query(&place, place.port, &info);
	if (rc)
		return rc;
	if (!info.issm[0])
		return -EINVAL;
	snprintf(path, max > 0 ? (size_t)max : 0, "%s", info.issm);
	return 0;
}

/* Functions that list the adapters. */

UMAD_EXPORT void umad_free_ca_device_list(struct umad_device_node *head)
{
	while (head) {
		struct umad_device_node *next = head->next;

		free((void *)(uintptr_t)head->ca_name);
		free(head);
		head = next;
	}
}

UMAD_EXPORT struct umad_device_node *umad_get_ca_device_list(void)
{
	struct umad_device_node *head = NULL, **last = &head;
	unsigned count = umad_places();
	struct vb_fabric_adapter a;

	errno = 0;
	for (unsigned i = 0; i < count && umad_adapter(i, &a); i++) {
		*last = calloc(1, sizeof(**last));
		if (*last)
			(*last)->ca_name = strdup(a.name);
		if (!*last || !(*last)->ca_name) {
			umad_free_ca_device_list(head);
			errno = ENOMEM;
			return NULL;
		}
		last = &(*last)->next;
	}
	return head;
}

static int compare_ca_names(const void *a, const void *b)
{
	const struct umad_device_node *const *x = a, *const *y = b;

	return strcmp((*x)->ca_name, (*y)->ca_name);
}

UMAD_EXPORT int umad_sort_ca_device_list(struct umad_device_node **head,
					 size_t size)
{
	struct umad_device_node **all, *n;
	size_t count = 0;

	for (n = *head; n; n = n->next)
		count++;
	if (size && size < count)
		return EINVAL;
	if (count < 2)
		return 0;
	all = calloc(count, sizeof(*all));
	if (!all)
		return ENOMEM;
	count = 0;
	for (n = *head; n; n = n->next)
		all[count++] = n;
	qsort(all, count, sizeof(*all), compare_ca_names);
	for (size_t i = 0; i < count; i++)
		all[i]->next = i + 1 < count ? all[i + 1] : NULL;
	*head = all[0];
	free(all);
	return 0;
}

/* Functions that open ports as descriptors. */

UMAD_EXPORT int umad_open_port(const char *ca_name, int portnum)
{
	struct vb_fabric_place place;
	int rc = resolve_place(ca_name, portnum, &place);

	if (!rc)
		rc = vb_fabric_attach(&place, place.port);
	return umad_tell(rc, "umad_open_port", ca_name, portnum);
}

/* Every port of InfiniBand has queue pair 0, so this is umad_open_port(). */
int umad_open_smi_port(const char *ca_name, int portnum);
UMAD_EXPORT int umad_open_smi_port(const char *ca_name, int portnum)
{
	return umad_open_port(ca_name, portnum);
}

/* libibumad has pairs for adapters whose queue pairs 0 and 1 (SMI and GSI)
 * belong to different devices; here one adapter is both members of a pair. */
struct umad_ca_pair {
	char smi_name[UMAD_CA_NAME_LEN];
	uint32_t smi_preferred_port;
	char gsi_name[UMAD_CA_NAME_LEN];
	uint32_t gsi_preferred_port;
};

static void fill_pair(struct umad_ca_pair *pair,
		      const struct vb_fabric_adapter *a, unsigned port)
{
	snprintf(pair->smi_name, sizeof(pair->smi_name), "%s", a->name);
	snprintf(pair->gsi_name, sizeof(pair->gsi_name), "%s", a->name);
	pair->smi_preferred_port = pair->gsi_preferred_port = port;
}

int umad_get_smi_gsi_pairs(struct umad_ca_pair cas[], size_t max);
UMAD_EXPORT int umad_get_smi_gsi_pairs(struct umad_ca_pair cas[], size_t max)
{
	unsigned count = umad_places(), filled = 0;

	for (unsigned i = 0; i < count && filled < max; i++) {
		struct vb_fabric_adapter a;
		unsigned port;

		if (umad_adapter(i, &a) && choose_port(&a, &port) == 0)
			fill_pair(&cas[filled++], &a, port);
	}
	return (int)filled;
}

int umad_get_smi_gsi_pair_by_ca_name(const char *name, uint8_t portnum,
				     struct umad_ca_pair *ca);
UMAD_EXPORT int umad_get_smi_gsi_pair_by_ca_name(const char *name,
						 uint8_t portnum,
						 struct umad_ca_pair *ca)
{
	struct vb_fabric_adapter a;
	unsigned number;
	int rc = resolve(name, portnum, &a, &number);

	if (!rc)
		fill_pair(ca, &a, number);
	return rc;
}
