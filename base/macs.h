/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where Ethernet addresses are, learned from frames that came from there, as a
 * switch learns its ports. What a place is only the caller knows: to the table
 * it is a number. Without I/O, in a time of the caller's. The table is bounded:
 * of a few addresses that share a place in it, the one seen longest ago makes
 * room.
 */
#ifndef BASE_MACS_H
#define BASE_MACS_H

#include "base/defs.h"

#define VB_MACS	   1024
#define VB_MAC_AGE (300 * VB_SEC)

struct vb_mac {
	uint8_t mac[6];
	uint64_t at;  /* the caller's number of where the address is */
	vb_time seen; /* when a frame last came; 0: a free place */
	void *handle; /* the caller's, between prepare() and release() */
};

struct vb_mac_ops {
	/* Make m->handle of m->at. False: it cannot be made, and the address
	 * stays unknown. */
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
/* Find where @mac is. NULL: nothing has come from it for VB_MAC_AGE, so a frame
 * to @mac goes to all. */
const struct vb_mac *vb_macs_find(const struct vb_macs *t, const uint8_t mac[6],
				  vb_time now);
/* Forget all addresses. */
void vb_macs_forget(struct vb_macs *t);
/* Forget the addresses that are at @at. */
void vb_macs_forget_at(struct vb_macs *t, uint64_t at);
/* Call @each for every address that is known at @now, in no order. It must not
 * call the table. */
void vb_macs_each(const struct vb_macs *t, vb_time now,
		  void (*each)(void *arg, const struct vb_mac *m), void *arg);

#endif
