/* SPDX-License-Identifier: BSD-2-Clause */
/* The ports of the connection manager: one table for all programs of a host,
 * with the rules that Linux has for them. */
#ifndef BROKER_CM_PORTS_H
#define BROKER_CM_PORTS_H

#include "wire/ipc_cm.h"

#define VB_PORT_BUCKETS 16384

struct vb_cm_port {
	uint16_t space, number;
	struct vb_gid address; /* zero, or IPv4's zero: any */
	uint8_t flags;	       /* enum vb_ipc_cm_flag */
	uint64_t ticket;       /* who knows it may join; 0: nobody */
	bool listening;
	struct vb_cm_port *next, **at; /* of those that listen there */
};

struct vb_port_counters;

/* No call takes longer for ports that are bound: programs choose how many, and
 * at which addresses. Zeros but for the keys and descriptors. */
struct vb_cm_ports {
	/* Which are for who does not care, and which of them are not: the
	 * kernel's settings, which may change at any time. */
	int range_fd, reserved_fd;
	uint64_t key; /* secret: of vb_hash() over ports */
	struct vb_port_counters *buckets[VB_PORT_BUCKETS];
};

void vb_cm_ports_init(struct vb_cm_ports *t);
/* No port is bound any more. */
void vb_cm_ports_close(struct vb_cm_ports *t);
/* @p->number 0: any. -EADDRINUSE; -EACCES: there is nobody to join; -ENOMEM. */
VB_MUST_CHECK int vb_cm_ports_bind(struct vb_cm_ports *t, struct vb_cm_port *p);
void vb_cm_ports_free(struct vb_cm_ports *t, struct vb_cm_port *p);
/* -EADDRINUSE: another listens there. */
VB_MUST_CHECK int vb_cm_ports_listen(struct vb_cm_ports *t,
				     struct vb_cm_port *p);
/*
 * Who listens there: for the very address, or for any; rather one that has
 * joined than the one it joined, which has handed its work on; and they take
 * turns. @plain: those of AF_IB; or those of IP.
 */
struct vb_cm_port *vb_cm_ports_find(struct vb_cm_ports *t, uint16_t space,
				    uint16_t number,
				    const struct vb_gid *address, bool plain);

#endif
