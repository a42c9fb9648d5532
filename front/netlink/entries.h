/* SPDX-License-Identifier: BSD-2-Clause */
/* Write the attributes of one device, port or object, as the kernel's nldev
 * does. If there is no room, o->full is set, and the caller removes the
 * message. */
#ifndef FRONT_NETLINK_ENTRIES_H
#define FRONT_NETLINK_ENTRIES_H

#include "front/netlink/facts.h"
#include "front/netlink/put.h"

void vb_nl_put_handle(struct vb_nl_out *o, const struct vb_nl_device *d);
void vb_nl_put_device(struct vb_nl_out *o, const struct vb_nl_device *d);
void vb_nl_put_port(struct vb_nl_out *o, const struct vb_nl_device *d,
		    uint32_t port);
void vb_nl_put_summary(struct vb_nl_out *o, const struct vb_nl_facts *f,
		       const struct vb_nl_device *d);
void vb_nl_put_counters(struct vb_nl_out *o, const struct vb_nl_facts *f,
			const struct vb_nl_device *d, uint32_t port);
void vb_nl_put_switches(struct vb_nl_out *o, const struct vb_nl_facts *f,
			const struct vb_nl_device *d, uint32_t port);
void vb_nl_put_system(struct vb_nl_out *o);

/* A kind of objects: how they are requested and listed. */
struct vb_nl_kind {
	uint16_t command; /* the command RDMA_NLDEV_CMD_RES_*_GET */
	/* RDMA_NLDEV_ATTR_RES_* of the whole list, and of one entry */
	uint16_t table, entry;
	uint16_t id;  /* the attribute that identifies an object */
	bool by_port; /* a request names the port in addition to the device */
	enum vb_roster_kind kind;
	void (*put)(struct vb_nl_out *o, const struct vb_nl_facts *f,
		    const struct vb_census_row *row);
};
extern const struct vb_nl_kind vb_nl_kinds[];
extern const unsigned vb_nl_kind_count;

/* Returns the number that identifies the object on its device. */
static inline uint32_t vb_nl_id(const struct vb_census_row *row)
{
	return row->kind == ROSTER_QP ? row->number : row->id;
}

#endif
