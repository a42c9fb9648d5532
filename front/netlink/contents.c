/* SPDX-License-Identifier: BSD-2-Clause */
/* From lines "infiniband/DEVICE/FILE<TAB>TEXT" to devices. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "front/netlink/facts.h"

#define MOST_DEVICES 4096

struct line {
	const char *path, *text;
	size_t path_length, length;
};

/* The next line, and where the one after it begins; NULL: there is none. */
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

static struct vb_nl_device *device_of(struct vb_nl_facts *f, const char *name,
				      size_t length)
{
	struct vb_nl_device *more;

	for (unsigned i = 0; i < f->count; i++)
		if (strlen(f->devices[i].name) == length &&
		    memcmp(f->devices[i].name, name, length) == 0)
			return &f->devices[i];
	if (f->count == MOST_DEVICES)
		return NULL;
	more = reallocarray(f->devices, f->count + 1, sizeof(*more));
	if (!more)
		return NULL;
	f->devices = more;
	more += f->count++;
	*more = (struct vb_nl_device){ 0 };
	memcpy(more->name, name, length);
	return more;
}

static void copy_text(char *to, size_t room, const char *text)
{
	snprintf(to, room, "%s", text);
}

/* Four times four digits. */
static uint64_t guid_of(const char *text)
{
	unsigned a[4] = { 0 };

	if (sscanf(text, "%4x:%4x:%4x:%4x", &a[0], &a[1], &a[2], &a[3]) != 4)
		return 0;
	return (uint64_t)a[0] << 48 | (uint64_t)a[1] << 32 |
	       (uint64_t)a[2] << 16 | a[3];
}

/* "device/net/NAME/ifindex" */
static void note_netdev(struct vb_nl_device *d, const char *file,
			const char *text)
{
	char name[16];
	int end = 0;

	if (sscanf(file, "device/net/%15[^/]/ifindex%n", name, &end) != 1 ||
	    end == 0 || file[end])
		return;
	memcpy(d->netdev, name, sizeof(name));
	d->ifindex = (uint32_t)strtoul(text, NULL, 10);
}

static void note_file(struct vb_nl_device *d, const char *file,
		      const char *text)
{
	if (strcmp(file, "node_type") == 0)
		d->node_type = (uint8_t)atoi(text);
	else if (strcmp(file, "fw_ver") == 0)
		copy_text(d->firmware, sizeof(d->firmware), text);
	else if (strcmp(file, "node_guid") == 0)
		d->guid = guid_of(text);
	else if (strcmp(file, "sys_image_guid") == 0)
		d->image_guid = guid_of(text);
	else if (strcmp(file, "ports/1/state") == 0)
		d->state = (uint8_t)atoi(text);
	else if (strcmp(file, "ports/1/phys_state") == 0)
		d->phys_state = (uint8_t)atoi(text);
	else
		note_netdev(d, file, text);
}

/* "infiniband/DEVICE/FILE" */
static int note_infiniband(struct vb_nl_facts *f, const char *path,
			   const char *text)
{
	const char *name = path + strlen("infiniband/");
	size_t length = strcspn(name, "/");
	struct vb_nl_device *d;

	if (length == 0 || length >= sizeof(d->name) || name[length] != '/')
		return 0;
	d = device_of(f, name, length);
	if (!d)
		return -ENOMEM;
	note_file(d, name + length + 1, text);
	return 0;
}

/* "infiniband_verbs/uverbsNUMBER/ibdev": the device's number. */
static int note_verbs(struct vb_nl_facts *f, const char *path, const char *text)
{
	size_t length = strlen(text);
	struct vb_nl_device *d;
	uint32_t index;
	int end = 0;

	if (sscanf(path, "infiniband_verbs/uverbs%" SCNu32 "/ibdev%n", &index,
		   &end) != 1 ||
	    end == 0 || path[end] || length == 0 || length >= sizeof(d->name))
		return 0;
	d = device_of(f, text, length);
	if (!d)
		return -ENOMEM;
	d->index = index;
	return 0;
}

static int note_line(struct vb_nl_facts *f, const struct line *line)
{
	char path[256], text[128];

	if (line->path_length >= sizeof(path) || line->length >= sizeof(text))
		return 0;
	memcpy(path, line->path, line->path_length);
	path[line->path_length] = '\0';
	memcpy(text, line->text, line->length);
	text[line->length] = '\0';
	if (strncmp(path, "infiniband/", strlen("infiniband/")) == 0)
		return note_infiniband(f, path, text);
	return note_verbs(f, path, text);
}

int vb_nl_read(const char *text, struct vb_nl_facts *facts)
{
	struct line line;
	int rc = 0;

	while (rc == 0 && (text = next_line(text, &line)))
		rc = note_line(facts, &line);
	return rc;
}
