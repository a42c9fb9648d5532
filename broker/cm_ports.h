/* SPDX-License-Identifier: BSD-2-Clause */
/* The ports of the connection manager: one table for all programs of the host,
 * with the rules by which the rdma_cm of Linux binds and listens. */
#ifndef BROKER_CM_PORTS_H
#define BROKER_CM_PORTS_H

#include "wire/ipc_cm.h"

#define VB_PORT_BUCKETS 16384

struct vb_cm_port {
	uint16_t space, number;
	/* the address of the port; zero or 0.0.0.0: any address */
	struct vb_gid address;
	uint8_t flags; /* flags of the port, enum vb_ipc_cm_flag */
	/* a program that shows this secret can join; 0: no program can */
	uint64_t secret;
	bool listening;
	struct vb_cm_port *next,
		/* pointer to this port in the list of listeners at one place */
		**at;
};

struct vb_port_counters;

/* The table of ports. No call takes longer when more ports are bound, because
 * programs choose how many they bind and at which addresses. */
struct vb_cm_ports {
	/* Descriptors of the kernel's settings: the range of ephemeral ports,
	 * and the reserved ports. Each bind reads both, since an administrator
	 * can change them at any time. */
	int range_fd, reserved_fd;
	uint64_t key; /* the secret key of vb_hash() for ports */
	struct vb_port_counters *buckets[VB_PORT_BUCKETS];
};

void vb_cm_ports_init(struct vb_cm_ports *t);
/* Frees the table; the caller frees the ports first. */
void vb_cm_ports_close(struct vb_cm_ports *t);
/* Binds @p, which the caller still owns and must not move before it is freed.
 * If @p->number is 0, chooses a free ephemeral port. -EADDRINUSE; -EACCES: no
 * bound port has the secret that @p shows; -ENOMEM. */
VB_MUST_CHECK int vb_cm_ports_bind(struct vb_cm_ports *t, struct vb_cm_port *p);
/* Unbinds @p, which was bound; it may be listening. */
void vb_cm_ports_free(struct vb_cm_ports *t, struct vb_cm_port *p);
/* Begin to listen at @p. -EADDRINUSE: another port listens at this number and
 * address. */
VB_MUST_CHECK int vb_cm_ports_listen(struct vb_cm_ports *t,
				     struct vb_cm_port *p);
/*
 * Finds the listener for a request to @number at @address: one bound to that
 * address, else one bound to any address. A port that has joined another port
 * comes before that one, since its process has passed the work on; several that
 * have joined take turns. @plain: only listeners of AF_IB, else only those of
 * IP. NULL: there is none.
 */
struct vb_cm_port *vb_cm_ports_find(struct vb_cm_ports *t, uint16_t space,
				    uint16_t number,
				    const struct vb_gid *address, bool plain);

#endif
