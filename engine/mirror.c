/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is to be in the tree is first written down as text, a line a file:
 *
 *	infiniband/roce_eth0/node_type<TAB>1: CA
 *
 * The text stays in the tree: who finds the same there has nothing to do. Else
 * a new tree takes the old one's place as a whole, so that no reader sees half
 * of one.
 */
#include "engine/mirror.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "core/adapter.h"
#include "core/port.h"
#include "engine/devices.h"
#include "engine/news.h"
#include "engine/place.h"
#include "link/netif.h"

#ifndef VB_VERSION
#define VB_VERSION "unknown"
#endif

#define CONTENTS ".contents"
#define TREE	 "class"

/*
 * What is to be there.
 */

/* Linux's words. */
static const struct kind {
	const char *node_type, *gid_type, *capabilities;
	bool has_pkeys;
} kinds[] = {
	[DEVICE_ROCE] = { "1: CA", "RoCE v2", "0x04010000", true },
	[DEVICE_IWARP] = { "4: RNIC", "IB/RoCE v1", "0x00010000", false },
};

static void put_gids(FILE *f, const char *at, const struct vb_port *p,
		     const char *type)
{
	for (unsigned i = 0; i < p->gid_count; i++) {
		const uint8_t *g = p->gids[i].gid.raw;

		if (vb_gid_is_zero(&p->gids[i].gid))
			continue;
		fprintf(f, "%s/gids/%u\t", at, i);
		for (unsigned k = 0; k < 16; k += 2)
			fprintf(f, "%s%02x%02x", k ? ":" : "", g[k], g[k + 1]);
		fprintf(f, "\n%s/gid_attrs/types/%u\t%s\n", at, i, type);
		fprintf(f, "%s/gid_attrs/ndevs/%u\t%s\n", at, i, p->netdev);
	}
}

/* Empty: what is counted is told when the file is opened, by front/sysfs; a
 * number that stood here would be an old one. */
static void put_counters(FILE *f, const char *at)
{
	for (unsigned i = 0; i < CNT_COUNT; i++)
		fprintf(f, "%s/hw_counters/%s\t\n", at, vb_counter_name(i));
}

static void put_port(FILE *f, const char *device, const struct vb_port *p,
		     const struct kind *kind)
{
	bool up = p->state == PORT_ACTIVE;
	char at[128];

	snprintf(at, sizeof(at), "%s/ports/1", device);
	fprintf(f, "%s/state\t%s\n", at, up ? "4: ACTIVE" : "1: DOWN");
	fprintf(f, "%s/phys_state\t%s\n", at, up ? "5: LinkUp" : "3: Disabled");
	fprintf(f, "%s/link_layer\tEthernet\n", at);
	fprintf(f, "%s/rate\t%s\n", at, vb_port_rate(p->mbits)->text);
	fprintf(f, "%s/lid\t0x0\n%s/lid_mask_count\t0\n", at, at);
	fprintf(f, "%s/sm_lid\t0x0\n%s/sm_sl\t0\n", at, at);
	fprintf(f, "%s/cap_mask\t%s\n", at, kind->capabilities);
	if (kind->has_pkeys)
		fprintf(f, "%s/pkeys/0\t0xffff\n", at);
	put_gids(f, at, p, kind->gid_type);
	put_counters(f, at);
}

static void put_guid(FILE *f, const char *device, const char *name, uint64_t g)
{
	fprintf(f, "%s/%s\t%04x:%04x:%04x:%04x\n", device, name,
		(unsigned)(g >> 48), (unsigned)(g >> 32 & 0xffff),
		(unsigned)(g >> 16 & 0xffff), (unsigned)(g & 0xffff));
}

/* A directory and no link: /sys may be another network namespace's. */
static void put_netdev(FILE *f, const char *device, const struct vb_port *p)
{
	const uint8_t *m = p->mac;
	char at[160];

	snprintf(at, sizeof(at), "%s/device/net/%s", device, p->netdev);
	fprintf(f, "%s/ifindex\t%u\n", at, p->ifindex);
	fprintf(f, "%s/mtu\t%u\n", at, p->netdev_mtu);
	fprintf(f, "%s/address\t%02x:%02x:%02x:%02x:%02x:%02x\n", at, m[0],
		m[1], m[2], m[3], m[4], m[5]);
}

static void put_device(FILE *f, const struct vb_device *d,
		       const struct vb_port *p)
{
	const struct kind *kind = &kinds[d->kind];
	char at[96];

	snprintf(at, sizeof(at), "infiniband/%s", d->name);
	fprintf(f, "%s/node_type\t%s\n", at, kind->node_type);
	fprintf(f, "%s/node_desc\t%s\n", at, d->name);
	fprintf(f, "%s/fw_ver\t%s\n", at, VB_VERSION);
	put_guid(f, at, "node_guid", d->guid);
	put_guid(f, at, "sys_image_guid", d->guid);
	put_netdev(f, at, p);
	put_port(f, at, p, kind);

	snprintf(at, sizeof(at), "infiniband_verbs/uverbs%u",
		 vb_device_number(d));
	fprintf(f, "%s/ibdev\t%s\n%s/abi_version\t1\n", at, d->name, at);
	put_netdev(f, at, p);
}

/* The table of a port that is opened now; others may have holes. */
static void describe(FILE *f, const struct vb_device *d,
		     const struct vb_netif *n)
{
	struct vb_port_news news;
	struct vb_port p;

	vb_news_gather(d, n, &news);
	vb_port_init(&p);
	(void)vb_port_update(&p, &news);
	snprintf(p.netdev, sizeof(p.netdev), "%s", d->netdev);
	put_device(f, d, &p);
	vb_port_fini(&p);
}

static char *write_down(const struct vb_device *devices, unsigned count,
			const struct vb_netif *list, unsigned links)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	fprintf(f, "infiniband_verbs/abi_version\t6\n");
	for (unsigned i = 0; i < count; i++)
		for (unsigned k = 0; k < links; k++)
			if (list[k].ifindex == devices[i].ifindex)
				describe(f, &devices[i], &list[k]);
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

static int list_host(char **text)
{
	struct vb_device *devices;
	struct vb_netif *list;
	unsigned count, links;
	int rc = vb_devices_list(getenv("VERBENA_DEVICES"), &devices, &count);

	if (rc)
		return rc;
	rc = vb_netif_list(&list, &links);
	if (rc == 0) {
		*text = write_down(devices, count, list, links);
		vb_netif_free(list, links);
		rc = *text ? 0 : -ENOMEM;
	}
	free(devices);
	return rc;
}

/* A tree's name: the namespace, and which devices are wanted. */
static void name_tree(uint64_t space, char name[64])
{
	const char *specs = getenv("VERBENA_DEVICES");
	uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */

	for (const char *c = specs ? specs : ""; *c; c++)
		hash = (hash ^ (uint8_t)*c) * 0x100000001b3;
	snprintf(name, 64, specs ? "%llu.%016llx" : "%llu",
		 (unsigned long long)space, (unsigned long long)hash);
}

/*
 * Trees.
 */

static void remove_entry(int at, const char *name, unsigned depth)
{
	struct dirent *e;
	DIR *d;
	int fd;

	if (unlinkat(at, name, 0) == 0 || depth == 0)
		return;
	fd = vb_place_enter(at, name);
	d = fd < 0 ? NULL : fdopendir(fd);
	while (d && (e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			remove_entry(fd, e->d_name, depth - 1);
	if (d)
		closedir(d);
	else if (fd >= 0)
		close(fd);
	unlinkat(at, name, AT_REMOVEDIR);
}

#define DEEPEST 12
static void remove_tree(int at, const char *name)
{
	remove_entry(at, name, DEEPEST);
}

static int make_parents(int at, char *path)
{
	for (char *slash = strchr(path, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		int rc;

		*slash = '\0';
		rc = mkdirat(at, path, 0700);
		*slash = '/';
		if (rc < 0 && errno != EEXIST)
			return -errno;
	}
	return 0;
}

static int write_file(int at, const char *path, const char *text, size_t length)
{
	int fd =
		openat(at, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int rc = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, length) != (ssize_t)length)
		rc = -EIO;
	close(fd);
	return rc;
}

/* One line: @what with its newline, as the kernel's files have it; of no more
 * than that, an empty file. */
static int make_entry(int at, const char *line, size_t length)
{
	const char *tab = memchr(line, '\t', length), *what = tab + 1;
	size_t rest = length - (size_t)(what - line);
	char path[256];
	int rc;

	snprintf(path, sizeof(path), "%.*s", (int)(tab - line), line);
	rc = make_parents(at, path);
	return rc ? rc : write_file(at, path, what, rest == 1 ? 0 : rest);
}

static int fill_tree(int tree, const char *text)
{
	int rc = 0;

	for (const char *line = text; !rc && *line;) {
		size_t length = (size_t)(strchr(line, '\n') + 1 - line);

		rc = make_entry(tree, line, length);
		line += length;
	}
	/* Without a device there is a directory all the same. */
	if (!rc && mkdirat(tree, "infiniband", 0700) < 0 && errno != EEXIST)
		rc = -errno;
	return rc ? rc : write_file(tree, CONTENTS, text, strlen(text));
}

static bool is_current(int space, const char *text)
{
	int fd = openat(space, TREE "/" CONTENTS, O_RDONLY | O_CLOEXEC);
	size_t size = strlen(text);
	char *have = malloc(size + 1);
	bool same = fd >= 0 && have &&
		    read(fd, have, size + 1) == (ssize_t)size &&
		    memcmp(have, text, size) == 0;

	free(have);
	if (fd >= 0)
		close(fd);
	return same;
}

/* With the namespace's directory locked. */
static int replace_tree(int space, const char *text)
{
	int tree, rc;

	remove_tree(space, "new"); /* of one that was killed */
	remove_tree(space, "old");
	if (mkdirat(space, "new", 0700) < 0)
		return -errno;
	tree = vb_place_enter(space, "new");
	if (tree < 0)
		return tree;
	rc = fill_tree(tree, text);
	close(tree);
	if (rc)
		return rc;
	if (renameat2(space, "new", space, TREE, RENAME_EXCHANGE) == 0) {
		remove_tree(space, "new");
		return 0;
	}
	/* There is none, or the file system cannot exchange. */
	(void)renameat(space, TREE, space, "old");
	rc = renameat(space, "new", space, TREE) < 0 ? -errno : 0;
	remove_tree(space, "old");
	return rc;
}

/*
 * Trees of namespaces that are gone.
 */

static bool is_used(int proc, const char *tree)
{
	uint64_t space = strtoull(tree, NULL, 10);
	DIR *d = fdopendir(dup(proc));
	bool used = !d; /* one who cannot look removes nothing */
	struct dirent *e;

	if (d)
		rewinddir(d);
	while (!used && (e = readdir(d)))
		used = isdigit((unsigned char)e->d_name[0]) &&
		       vb_place_namespace(proc, e->d_name) == space;
	if (d)
		closedir(d);
	return used;
}

static void sweep(int base, int proc)
{
	DIR *d = fdopendir(dup(base));
	struct dirent *e;

	if (!d)
		return;
	rewinddir(d);
	while ((e = readdir(d)))
		if (isdigit((unsigned char)e->d_name[0]) &&
		    !is_used(proc, e->d_name))
			remove_tree(base, e->d_name);
	closedir(d);
}

static int update_space(int base, int proc, const char *name, const char *text)
{
	int space, rc = 0;

	if (mkdirat(base, name, 0700) == 0)
		sweep(base, proc);
	space = vb_place_enter(base, name);
	if (space < 0)
		return space;
	if (!is_current(space, text)) {
		while (flock(space, LOCK_EX) < 0 && errno == EINTR)
			;
		if (!is_current(space, text))
			rc = replace_tree(space, text);
	}
	close(space);
	return rc;
}

static int write_below(int proc, const char *text, char root[PATH_MAX])
{
	uint64_t space = vb_place_namespace(proc, "self");
	char path[PATH_MAX], name[64];
	int base, rc;

	if (!space)
		return -ENOENT;
	base = vb_place_open(path);
	if (base < 0)
		return base;
	name_tree(space, name);
	rc = update_space(base, proc, name, text);
	close(base);
	if (rc == 0)
		snprintf(root, PATH_MAX, "%.200s/%s/" TREE, path, name);
	return rc;
}

static int write_for_us(const char *text, char root[PATH_MAX])
{
	int proc = vb_place_enter(AT_FDCWD, "/proc"), rc;

	if (proc < 0)
		return proc;
	rc = write_below(proc, text, root);
	close(proc);
	return rc;
}

bool vb_mirror_write(char root[PATH_MAX])
{
	char *text = NULL;
	int rc = list_host(&text);

	if (rc == 0)
		rc = write_for_us(text, root);
	free(text);
	if (rc)
		vb_log(LOG_INFO, "no tree of sysfs files: %s", strerror(-rc));
	return rc == 0;
}
