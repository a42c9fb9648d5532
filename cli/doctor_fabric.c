/* SPDX-License-Identifier: BSD-2-Clause */
/* `verbena doctor`: adapters of InfiniBand fabrics: whether the fabric's
 * process lives, and what its subnet manager has given the ports. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "cli/finding.h"
#include "engine/fabric_places.h"
#include "engine/runtime_dir.h"

#define FABRICS_MOST 8
#define KEY_FULL     0x8000 /* the bit of a P_Key that means full membership */

/* Add the text to the list in @text, with commas. */
static void VB_PRINTF(3, 4)
	list_add(char *text, size_t room, const char *format, ...)
{
	size_t len = strlen(text);
	va_list args;

	if (len)
		len += (size_t)snprintf(text + len, room - len, ", ");
	va_start(args, format);
	if (len < room)
		vsnprintf(text + len, room - len, format, args);
	va_end(args);
}

static void list_gids(const struct vb_umad_info *info, char *text, size_t room)
{
	*text = '\0';
	for (unsigned i = 0; i < info->guids && i < VB_UMAD_GUIDS; i++) {
		struct vb_gid gid;
		char name[VB_GID_TEXT];

		if (!info->guid_table[i])
			continue;
		gid = vb_cli_make_gid(info->gid_prefix, info->guid_table[i]);
		list_add(text, room, "GID index %u %s", i,
			 vb_gid_text(&gid, name));
	}
}

/* Returns whether the port is a full member of a partition. */
static bool list_pkeys(const struct vb_umad_info *info, char *text, size_t room)
{
	bool full = false;

	*text = '\0';
	for (unsigned i = 0; i < info->pkeys && i < VB_UMAD_PKEYS; i++) {
		uint16_t key = info->pkey[i];

		if (!(key & ~KEY_FULL))
			continue;
		full = full || key & KEY_FULL;
		list_add(text, room, "%u: 0x%04x (%s member)", i, key,
			 key & KEY_FULL ? "full" : "limited");
	}
	return full;
}

static void say_active(const char *name, unsigned number,
		       const struct vb_umad_info *info)
{
	char gids[400], keys[400];
	bool full;

	list_gids(info, gids, sizeof(gids));
	full = list_pkeys(info, keys, sizeof(keys));
	vb_finding_add("device", FINDING_OK, NULL,
		       "%s, port %u: active, %u Gb/sec, LID %u, subnet manager "
		       "at LID %u, %s: programs need no -g and no -x",
		       name, number, info->rate, info->lid, info->sm_lid,
		       *gids ? gids : "no GID");
	if (*keys)
		vb_finding_add("partition", full ? FINDING_OK : FINDING_WARNING,
			       full ? NULL
				    : "the subnet manager's partitions.conf: "
				      "PARTITION : GUID=full ;",
			       "%s, port %u: P_Keys by index: %s%s", name,
			       number, keys,
			       full ? ""
				    : "; limited members talk to full members "
				      "only");
	else
		vb_finding_add("partition", FINDING_PROBLEM,
			       "the subnet manager's partitions.conf",
			       "%s, port %u: it is in no partition, so its "
			       "packets carry no valid P_Key",
			       name, number);
}

/* Adds the finding about one port of an adapter in a fabric. @spare: the
 * adapter has another port that is active. */
static void say_fabric_port(const char *name, unsigned number,
			    const struct vb_fabric_place *p, unsigned port,
			    bool spare)
{
	struct vb_umad_info info;
	int rc = vb_fabric_query(p, port, &info);

	if (rc || !info.has_port)
		vb_finding_add("device", FINDING_PROBLEM,
			       vb_finding_text("verbena fabric show --name %s",
					       vb_finding_quoted(p->fabric)),
			       "%s, port %u: the node %s has no such port: %s",
			       name, number, p->node,
			       strerror(rc ? -rc : ENODEV));
	else if (info.state == PORT_ACTIVE)
		say_active(name, number, &info);
	else if (info.state == PORT_DOWN)
		vb_finding_add("device", spare ? FINDING_NOTE : FINDING_PROBLEM,
			       vb_finding_text("verbena fabric show --name %s",
					       vb_finding_quoted(p->fabric)),
			       "%s, port %u: down: nothing is at the other end "
			       "of its cable, or the link is switched off",
			       name, number);
	else
		vb_finding_add("device", FINDING_PROBLEM,
			       vb_finding_text("verbena run --device "
					       "ib:%s/%s -- opensm",
					       vb_finding_quoted(p->fabric),
					       vb_finding_quoted(p->node)),
			       "%s, port %u: %s, LID %u: no subnet manager has "
			       "configured it, and it carries no data",
			       name, number,
			       info.state == PORT_ARMED ? "armed" : "init",
			       info.lid);
}

/* Returns the state of the process, as /proc has it: 'T' is stopped. */
static char process_state(pid_t pid)
{
	char path[64], text[512];
	const char *end;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (!vb_doctor_read(path, text, sizeof(text)))
		return '?';
	end = strrchr(text, ')');
	return end && end[1] == ' ' ? end[2] : '?';
}

static void say_no_fabric(const char *name, const struct vb_fabric_place *p,
			  const char *base, int rc)
{
	char running[FABRICS_MOST][VB_FABRIC_NAME + 1], list[400] = "";
	unsigned count = vb_fabric_list(running, FABRICS_MOST);

	for (unsigned i = 0; i < VB_MIN(count, FABRICS_MOST); i++)
		list_add(list, sizeof(list), "%s", running[i]);
	vb_finding_add("fabric", FINDING_PROBLEM,
		       vb_finding_text("verbena fabric --sm --name %s TOPOLOGY",
				       vb_finding_quoted(p->fabric)),
		       "%s: no fabric \"%s\" runs at %s/fabric-%s/socket: %s; "
		       "fabrics of this user that run: %s",
		       name, p->fabric, base, p->fabric, strerror(-rc),
		       *list ? list : "none");
}

/* Say whether the process of the fabric lives. Returns whether it answers. */
static bool say_fabric(const char *name, const struct vb_fabric_place *p)
{
	char base[PATH_MAX] = "";
	int dir = vb_runtime_dir_open(base), fd = vb_fabric_reach(p);
	struct ucred peer = { 0 };
	socklen_t len = sizeof(peer);
	bool lives = true;

	if (dir >= 0)
		close(dir);
	if (fd < 0) {
		say_no_fabric(name, p, base, fd);
		return false;
	}
	(void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len);
	close(fd);
	if (process_state(peer.pid) == 'T') {
		vb_finding_add("fabric", FINDING_PROBLEM,
			       vb_finding_text("kill -CONT %d", (int)peer.pid),
			       "%s: the process of fabric \"%s\" (PID %d) is "
			       "stopped",
			       name, p->fabric, (int)peer.pid);
		lives = false;
	} else {
		vb_finding_add("fabric", FINDING_OK, NULL,
			       "%s: fabric \"%s\" runs (PID %d, user %u) at "
			       "%s/fabric-%s/socket",
			       name, p->fabric, (int)peer.pid, peer.uid, base,
			       p->fabric);
	}
	return lives;
}

static bool is_active(const struct vb_fabric_place *p, unsigned port)
{
	struct vb_umad_info info;

	return vb_fabric_query(p, port, &info) == 0 && info.has_port &&
	       info.state == PORT_ACTIVE;
}

static void say_node(const struct vb_fabric_adapter *a)
{
	const struct vb_fabric_place *p = &a->place[0];
	struct vb_umad_info info;
	bool spare = false;
	int rc;

	if (!say_fabric(a->name, p))
		return;
	rc = vb_fabric_query(p, 0, &info);
	if (rc) {
		vb_finding_add("device", FINDING_PROBLEM,
			       vb_finding_text("verbena fabric show --name %s",
					       vb_finding_quoted(p->fabric)),
			       "%s: fabric \"%s\" has no node %s: %s", a->name,
			       p->fabric, p->node, strerror(-rc));
		return;
	}
	vb_finding_add("node", FINDING_OK, NULL,
		       "%s: node %s of fabric \"%s\", GUID 0x%016jx, %u port%s",
		       a->name, p->node, p->fabric, (uintmax_t)info.guid,
		       info.ports, info.ports == 1 ? "" : "s");
	for (unsigned k = 1; k <= info.ports; k++)
		spare = spare || is_active(p, k);
	for (unsigned k = 1; k <= info.ports; k++)
		say_fabric_port(a->name, k, p, k, spare);
}

unsigned vb_doctor_fabrics(void)
{
	const char *specs = getenv("VERBENA_DEVICES");
	struct vb_fabric_adapter a;
	unsigned count, i;

	for (i = 0; vb_fabric_adapter_nth(specs, i, &a, &count); i++) {
		if (!a.ports)
			say_node(&a);
		for (unsigned k = 0; k < a.ports; k++)
			if (a.place[k].node[0] &&
			    say_fabric(a.name, &a.place[k]))
				say_fabric_port(a.name, k + 1, &a.place[k],
						a.place[k].port, false);
	}
	return i;
}
