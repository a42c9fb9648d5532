/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPoIB interfaces. Linux shows the P_Key and the link-layer address of such an
 * interface in /sys/class/net; Verbena's interface is a TUN, which has no P_Key
 * and an empty address. A program that opens one of these files by its full
 * path gets a memory file with what the interface's process reports
 * (wire/ipoib.h).
 */
#include "front/files/files.h"

#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "engine/ipoib_path.h"

#define WAIT	VB_SEC
#define ADDRESS 20 /* bytes: flags, the queue pair's number, the GID */

static bool find_ipoib(const char *name, struct vb_ipoib *m)
{
	return vb_ipoib_own(name, WAIT, m) == 0;
}

bool vb_files_ipoib_address(const char name[IFNAMSIZ], uint8_t address[ADDRESS])
{
	struct vb_ipoib m;

	if (!find_ipoib(name, &m))
		return false;
	vb_store_be(address, m.qpn, 4);
	memcpy(address + 4, m.gid.raw, sizeof(m.gid.raw));
	return true;
}

static size_t say_address(const char *name, char *text, size_t room)
{
	uint8_t address[ADDRESS];
	size_t len = 0;

	if (!vb_files_ipoib_address(name, address))
		return 0;
	for (unsigned i = 0; i < ADDRESS; i++)
		len += (size_t)snprintf(text + len, room - len, "%02x%c",
					address[i],
					i + 1 < ADDRESS ? ':' : '\n');
	return len;
}

static size_t say_pkey(const char *name, char *text, size_t room)
{
	struct vb_ipoib m;

	return find_ipoib(name, &m)
		       ? (size_t)snprintf(text, room, "0x%04x\n", m.pkey)
		       : 0;
}

static const struct {
	const char *name;
	size_t (*say)(const char *name, char *text, size_t room);
} link_files[] = {
	{ "address", say_address },
	{ "pkey", say_pkey },
};

/* Is @path the file of a network interface in /sys/class/net? @file: its last
 * component. Slashes may be doubled, since ibacm writes such paths. */
static bool parse_net(const char *path, const char *file, char name[IFNAMSIZ])
{
	int end = 0;

	return sscanf(path, "%*[/]sys%*[/]class%*[/]net%*[/]%15[^/]%*[/]%n",
		      name, &end) == 1 &&
	       end && path + end == file;
}

size_t vb_files_say_ipoib(const char *path, char *text, size_t room)
{
	const char *slash = strrchr(path, '/');
	char name[IFNAMSIZ];

	/* Most paths do not end like one of these files. */
	for (unsigned i = 0; slash && i < VB_COUNT(link_files); i++)
		if (strcmp(slash + 1, link_files[i].name) == 0 &&
		    parse_net(path, slash + 1, name))
			return link_files[i].say(name, text, room);
	return 0;
}
