/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the devices from the text form of the tree of sysfs files, whose lines
 * are "sys/devices/virtual/verbena/DEVICE/FILE<TAB>TEXT". */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "front/netlink/facts.h"

#define DEVICES	     "sys/devices/virtual/verbena/"
#define MOST_DEVICES 4096

struct line {
	const char *path, *text;
	size_t path_length, length;
};

/* Read the next line that has a tab. Returns the position behind it, or NULL at
 * the end. */
static const char *next_line(const char *at, struct line *line)
{
	for (;;) {
		size_t length = strcspn(at, "\n");
		const char *tab = memchr(at, '\t', length);

		if (tab) {
			line->path = at;
			line->path_length = (size_t)(tab - at);
			line->text = tab + 1;
			line->length = length - line->path_length - 1;
			return at + length;
		}
		if (!at[length])
			return NULL;
		at += length + 1;
	}
}

static struct vb_nl_device *contents_device_of(struct vb_nl_facts *f,
					       const char *name, size_t length)
{
	struct vb_nl_device *more;

	for (unsigned i = 0; i < f->count; i++)
		if (strlen(f->devices[i].name) == length &&
		    memcmp(f->devices[i].name, name, length) == 0)
			return &f->devices[i];
	more = reallocarray(f->devices, f->count + 1, sizeof(*more));
	if (!more)
		return NULL;
	f->devices = more;
	more += f->count++;
	*more = (struct vb_nl_device){ 0 };
	memcpy(more->name, name, length);
	return more;
}

/* Read a GUID. The text has four groups of four hexadecimal digits. */
static uint64_t contents_guid_of(const char *text)
{
	unsigned a[4] = { 0 };

	if (sscanf(text, "%4x:%4x:%4x:%4x", &a[0], &a[1], &a[2], &a[3]) != 4)
		return 0;
	return (uint64_t)a[0] << 48 | (uint64_t)a[1] << 32 |
	       (uint64_t)a[2] << 16 | a[3];
}

/* Store the number of a character device: @text is "MAJOR:MINOR". */
static void note_number(struct vb_nl_node *node, const char *class,
			unsigned number, const char *text)
{
	unsigned major, minor;

	if (sscanf(text, "%u:%u", &major, &minor) != 2)
		return;
	snprintf(node->name, sizeof(node->name), "%s%u", class, number);
	node->number = makedev(major, minor);
}

/* Returns the port @number of the device; NULL: there is no room for it. */
static struct vb_nl_port *contents_port(struct vb_nl_device *d, unsigned number)
{
	if (number < 1 || number > VB_NL_PORTS)
		return NULL;
	d->ports = VB_MAX(d->ports, number);
	return &d->port[number - 1];
}

static void contents_note_port(struct vb_nl_device *d, unsigned number,
			       const char *file, const char *text)
{
	struct vb_nl_port *p = contents_port(d, number);

	if (!p)
		return;
	if (strcmp(file, "state") == 0)
		p->state = (uint8_t)atoi(text);
	else if (strcmp(file, "phys_state") == 0)
		p->phys_state = (uint8_t)atoi(text);
	else if (strcmp(file, "link_layer") == 0)
		p->infiniband = strcmp(text, "InfiniBand") == 0;
	else if (strcmp(file, "cap_mask") == 0)
		p->caps = (uint32_t)strtoul(text, NULL, 16);
	else if (strcmp(file, "lid") == 0)
		p->lid = (uint32_t)strtoul(text, NULL, 16);
	else if (strcmp(file, "lid_mask_count") == 0)
		p->lmc = (uint32_t)strtoul(text, NULL, 10);
	else if (strcmp(file, "sm_lid") == 0)
		p->sm_lid = (uint32_t)strtoul(text, NULL, 16);
	else if (strcmp(file, "gids/0") == 0)
		p->prefix = contents_guid_of(text);
}

static void note_attribute(struct vb_nl_device *d, const char *file,
			   const char *text)
{
	unsigned number;
	int end = 0;

	if (strcmp(file, "node_type") == 0)
		d->node_type = (uint8_t)atoi(text);
	else if (strcmp(file, "fw_ver") == 0)
		snprintf(d->firmware, sizeof(d->firmware), "%.31s", text);
	else if (strcmp(file, "node_guid") == 0)
		d->guid = contents_guid_of(text);
	else if (strcmp(file, "sys_image_guid") == 0)
		d->image_guid = contents_guid_of(text);
	else if (sscanf(file, "ports/%u/%n", &number, &end) == 1 && end)
		contents_note_port(d, number, file + end, text);
}

/* Does the whole @path match @format, which has one conversion, into @value,
 * and ends with %n? */
static bool has_form(const char *path, const char *format, void *value)
{
	int end = 0;

	return sscanf(path, format, value, &end) == 1 && end && !path[end];
}

/* Store the contents of a file. @path is relative to
 * sys/devices/virtual/verbena/DEVICE. */
static void note_file(struct vb_nl_device *d, const char *path,
		      const char *text)
{
	char netdev[sizeof(d->netdev)];
	size_t length = strlen(d->name);
	struct vb_nl_port *p;
	unsigned number;

	if (strncmp(path, "infiniband/", 11) == 0 &&
	    strncmp(path + 11, d->name, length) == 0 &&
	    path[11 + length] == '/') {
		note_attribute(d, path + 11 + length + 1, text);
	} else if (has_form(path, "net/%15[^/]/ifindex%n", netdev)) {
		memcpy(d->netdev, netdev, sizeof(netdev));
		d->ifindex = (uint32_t)strtoul(text, NULL, 10);
	} else if (has_form(path, "net/%15[^/]/dev_port%n", netdev)) {
		p = contents_port(d, (unsigned)strtoul(text, NULL, 10) + 1);
		if (p && strcmp(d->netdev, netdev) == 0) {
			memcpy(p->netdev, netdev, sizeof(netdev));
			p->ifindex = d->ifindex;
		}
	} else if (has_form(path, "infiniband_verbs/uverbs%u/dev%n", &number)) {
		d->index = number;
		note_number(&d->verbs, "uverbs", number, text);
	} else if (has_form(path, "infiniband_mad/umad%u/port%n", &number)) {
		d->mad_port = (unsigned)strtoul(text, NULL, 10);
	} else if (has_form(path, "infiniband_mad/umad%u/dev%n", &number)) {
		/* the port's number stands in the line before */
		p = contents_port(d, d->mad_port);
		if (p)
			note_number(&p->mad, "umad", number, text);
	}
}

static int note_line(struct vb_nl_facts *f, const struct line *line)
{
	char path[256], text[128], *name = path + sizeof(DEVICES) - 1;
	struct vb_nl_device *d;
	size_t length;

	if (line->path_length >= sizeof(path) || line->length >= sizeof(text))
		return 0;
	memcpy(path, line->path, line->path_length);
	path[line->path_length] = '\0';
	memcpy(text, line->text, line->length);
	text[line->length] = '\0';
	if (strncmp(path, DEVICES, sizeof(DEVICES) - 1) != 0)
		return 0;
	length = strcspn(name, "/");
	if (length == 0 || length >= sizeof(d->name) || !name[length] ||
	    f->count == MOST_DEVICES)
		return 0;
	d = contents_device_of(f, name, length);
	if (!d)
		return -ENOMEM;
	note_file(d, name + length + 1, text);
	return 0;
}

int vb_nl_read(const char *text, struct vb_nl_facts *facts)
{
	struct line line;
	int rc = 0;

	while (rc == 0 && (text = next_line(text, &line)))
		rc = note_line(facts, &line);
	return rc;
}
