/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes netlink messages and attributes into a buffer of limited size. */
#ifndef FRONT_NETLINK_PUT_H
#define FRONT_NETLINK_PUT_H

#include <linux/netlink.h>
#include <string.h>

#include "base/defs.h"

struct vb_nl_out {
	uint8_t *bytes;
	uint32_t used, room;
	bool full; /* something did not fit, so nothing more is written */
};

static inline uint32_t vb_nl_align(uint32_t length)
{
	return (length + 3) & ~3u;
}

/* Reserve @length bytes, rounded up to a multiple of 4 and zeroed. NULL: the
 * buffer is full. */
static inline void *vb_nl_room(struct vb_nl_out *o, uint32_t length)
{
	uint8_t *at = o->bytes + o->used;

	if (o->full || vb_nl_align(length) > o->room - o->used) {
		o->full = true;
		return NULL;
	}
	memset(at, 0, vb_nl_align(length));
	o->used += vb_nl_align(length);
	return at;
}

static inline void vb_nl_put(struct vb_nl_out *o, uint16_t type,
			     const void *value, uint32_t length)
{
	const struct nlattr head = { .nla_len = (uint16_t)(NLA_HDRLEN + length),
				     .nla_type = type };
	uint8_t *at = vb_nl_room(o, NLA_HDRLEN + length);

	if (!at)
		return;
	memcpy(at, &head, sizeof(head));
	if (length)
		memcpy(at + NLA_HDRLEN, value, length);
}

static inline void vb_nl_put8(struct vb_nl_out *o, uint16_t type, uint8_t value)
{
	vb_nl_put(o, type, &value, sizeof(value));
}

static inline void vb_nl_put32(struct vb_nl_out *o, uint16_t type,
			       uint32_t value)
{
	vb_nl_put(o, type, &value, sizeof(value));
}

static inline void vb_nl_put64(struct vb_nl_out *o, uint16_t type,
			       uint64_t value)
{
	vb_nl_put(o, type, &value, sizeof(value));
}

static inline void vb_nl_puts(struct vb_nl_out *o, uint16_t type,
			      const char *text)
{
	vb_nl_put(o, type, text, (uint32_t)strlen(text) + 1);
}

/* Begin a nested attribute: everything that is written until vb_nl_close() is
 * inside the attribute. Returns its offset. */
static inline uint32_t vb_nl_open(struct vb_nl_out *o, uint16_t type)
{
	uint32_t at = o->used;

	vb_nl_put(o, type | NLA_F_NESTED, NULL, 0);
	return at;
}

static inline void vb_nl_close(struct vb_nl_out *o, uint32_t at)
{
	const uint16_t length = (uint16_t)(o->used - at);

	if (!o->full)
		memcpy(o->bytes + at, &length, sizeof(length));
}

/* Remove everything that was written since o->used had the value @used. */
static inline void vb_nl_back(struct vb_nl_out *o, uint32_t used)
{
	o->used = used;
	o->full = false;
}

#endif
