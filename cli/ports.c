/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/ports.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void cli_fill_port(struct vb_cli_port *p, const struct vb_netif *list,
			  unsigned count)
{
	const struct vb_netif *n = NULL;
	struct vb_port_update update;

	for (unsigned i = 0; i < count; i++)
		if (list[i].ifindex == p->at.ifindex)
			n = &list[i];
	vb_port_init(&p->port);
	vb_port_update_gather(&p->at, n, &update);
	(void)vb_port_update(&p->port, &update);
	p->is_loopback = n && n->loopback;
}

static int cli_add_port(struct vb_cli_ports *p, const struct vb_device *d,
			unsigned index, const struct vb_netif *list,
			unsigned count)
{
	struct vb_cli_port *one = calloc(1, sizeof(*one));

	if (!one)
		return -ENOMEM;
	one->device = *d;
	one->number = index + 1;
	one->at = d->port[index];
	cli_fill_port(one, list, count);
	p->ports[p->count++] = one;
	return 0;
}

static int add_ports(struct vb_cli_ports *p, const struct vb_device *devices,
		     unsigned count)
{
	struct vb_netif *list;
	unsigned links;
	int rc = vb_netif_list(&list, &links);

	if (rc)
		return rc;
	p->ports =
		calloc(count * VB_VPI_PORTS + 1, sizeof(struct vb_cli_port *));
	if (!p->ports)
		rc = -ENOMEM;
	for (unsigned i = 0; rc == 0 && i < count; i++)
		for (unsigned k = 0; rc == 0 && k < devices[i].port_count; k++)
			if (devices[i].port[k].kind != DEVICE_IB)
				rc = cli_add_port(p, &devices[i], k, list,
						  links);
	vb_netif_free(list, links);
	return rc;
}

int vb_cli_ports_list(const char *specs, struct vb_cli_ports *p)
{
	struct vb_device *devices;
	unsigned count;
	int rc = vb_devices_list(specs, &devices, &count);

	*p = (struct vb_cli_ports){ 0 };
	if (rc)
		return rc;
	rc = add_ports(p, devices, count);
	free(devices);
	if (rc)
		vb_cli_ports_free(p);
	return rc;
}

void vb_cli_ports_free(struct vb_cli_ports *p)
{
	for (unsigned i = 0; i < p->count; i++) {
		vb_port_fini(&p->ports[i]->port);
		free(p->ports[i]);
	}
	free(p->ports);
	*p = (struct vb_cli_ports){ 0 };
}

/* Returns how much a user wants this GID: an IPv4 address most, a link-local
 * one least, because it does not say by which interface packets leave. */
static unsigned worth_of(const struct vb_gid_entry *e)
{
	unsigned worth = vb_gid_is_ipv4(&e->gid)	 ? 3
			 : vb_gid_is_link_local(&e->gid) ? 1
							 : 2;

	if (vb_gid_is_zero(&e->gid))
		return 0;
	return 2 * worth + (e->type != GID_ROCE_V1);
}

int vb_cli_best_gid(const struct vb_port *p)
{
	unsigned most = 0;
	int best = -1;

	for (unsigned i = 0; i < p->gid_count; i++)
		if (worth_of(&p->gids[i]) > most) {
			most = worth_of(&p->gids[i]);
			best = (int)i;
		}
	return best;
}

int vb_cli_gid_index(const struct vb_port *p, const struct vb_gid *gid)
{
	for (unsigned i = 0; i < p->gid_count; i++)
		if (vb_gid_equal(&p->gids[i].gid, gid) &&
		    p->gids[i].type == GID_ROCE_V2)
			return (int)i;
	return -1;
}

const char *vb_cli_address_text(const struct vb_gid *gid,
				char text[VB_GID_TEXT])
{
	static const char mapped[] = "::ffff:";

	vb_gid_text(gid, text);
	if (vb_gid_is_ipv4(gid))
		memmove(text, text + strlen(mapped),
			strlen(text + strlen(mapped)) + 1);
	return text;
}

const char *vb_cli_gid_type(const struct vb_gid_entry *e)
{
	static const char *const types[] = {
		[GID_IB] = "iWARP",
		[GID_ROCE_V1] = "RoCE v1",
		[GID_ROCE_V2] = "RoCE v2",
	};

	return types[e->type];
}

struct vb_gid vb_cli_make_gid(uint64_t prefix, uint64_t guid)
{
	struct vb_gid gid;

	for (unsigned i = 0; i < 8; i++) {
		gid.raw[i] = (uint8_t)(prefix >> (56 - 8 * i));
		gid.raw[8 + i] = (uint8_t)(guid >> (56 - 8 * i));
	}
	return gid;
}
