/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Learns from where frames of each Ethernet address come, as a switch learns
 * the ports of addresses. A place is a number that only the caller understands.
 * This code does no I/O and reads no clock: the caller passes in the time. The
 * table has a limited size: an address can be in a few entries only, and if all
 * of these are in use, the address seen longest ago is forgotten.
 */
#ifndef BASE_MACS_H
#define BASE_MACS_H

#include "base/defs.h"

#define VB_MACS	   1024
#define VB_MAC_AGE (300 * VB_SEC)

struct vb_mac {
	uint8_t mac[6];
	uint64_t at; /* the place of the address, a number of the caller's */
	/* when the last frame with this source came; 0: the entry is free */
	vb_time seen;
	void *handle; /* what prepare() has set, valid until release() */
};

struct vb_mac_ops {
	/* Make m->handle from m->at. False: that failed, and the address stays
	 * unknown. */
	bool (*prepare)(void *arg, struct vb_mac *m);
	void (*release)(void *arg, struct vb_mac *m);
};

struct vb_macs;

/* Make an empty table. @ops NULL: addresses need no handle. @seed: a random
 * number, so that no sender can choose addresses that share a place. NULL: no
 * memory. */
struct vb_macs *vb_macs_create(const struct vb_mac_ops *ops, void *arg,
			       uint64_t seed);
void vb_macs_destroy(struct vb_macs *t);

/* Remember that a frame with the source @mac came from @at. */
void vb_macs_learn(struct vb_macs *t, const uint8_t mac[6], uint64_t at,
		   vb_time now);
/* Find the entry of @mac. NULL: no frame has come from @mac for VB_MAC_AGE, so
 * the caller sends a frame for @mac to all places. */
const struct vb_mac *vb_macs_find(const struct vb_macs *t, const uint8_t mac[6],
				  vb_time now);
/* Forget all addresses. */
void vb_macs_forget(struct vb_macs *t);
/* Forget the addresses that vb_macs_learn() has stored with the place @at. */
void vb_macs_forget_at(struct vb_macs *t, uint64_t at);
/* Call @each for every address that is known at @now, in no order. It must not
 * call the table. */
void vb_macs_each(const struct vb_macs *t, vb_time now,
		  void (*each)(void *arg, const struct vb_mac *m), void *arg);

#endif
