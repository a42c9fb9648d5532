/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which queue pair has an Ethernet address behind it, learned from frames that
 * came from there, as a switch learns its ports. Without I/O, in a time of the
 * caller's. The table is bounded: of a few addresses that share a place, the
 * one seen longest ago makes room.
 */
#ifndef IPOIB_MAC_H
#define IPOIB_MAC_H

#include "base/defs.h"

#define VB_MACS	   1024
#define VB_MAC_AGE (300 * VB_SEC)

/* Where a frame came from. */
struct vb_mac_port {
	uint32_t qpn;
	uint16_t lid;
	uint8_t sl;
};

struct vb_mac {
	uint8_t mac[6];
	struct vb_mac_port at;
	vb_time seen; /* when a frame last came; 0: a free place */
	void *handle; /* the caller's: an address handle */
};

struct vb_mac_ops {
	/* Make m->handle of m->at. False: it cannot be made. */
	bool (*prepare)(void *arg, struct vb_mac *m);
	void (*release)(void *arg, struct vb_mac *m);
};

struct vb_macs;

/* Make an empty table. @seed: a random number. NULL: no memory. */
struct vb_macs *vb_macs_create(const struct vb_mac_ops *ops, void *arg,
			       uint64_t seed);
void vb_macs_destroy(struct vb_macs *t);

/* Remember that a frame with the source @mac came from @at. */
void vb_macs_learn(struct vb_macs *t, const uint8_t mac[6],
		   const struct vb_mac_port *at, vb_time now);
/* Find where @mac is. NULL: nobody knows, so a frame to @mac goes to all. */
const struct vb_mac *vb_macs_find(const struct vb_macs *t, const uint8_t mac[6],
				  vb_time now);
/* Forget all addresses, because LIDs may have changed. */
void vb_macs_forget(struct vb_macs *t);

#endif
