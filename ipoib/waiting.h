/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies of the few packets that wait until their destination is known. */
#ifndef IPOIB_WAITING_H
#define IPOIB_WAITING_H

#include "base/defs.h"

/* the most packets that wait for one destination */
#define VB_WAITING_MAX 3

struct vb_waiting {
	struct vb_waiting_packet {
		uint8_t *bytes;
		size_t len;
	} packets[VB_WAITING_MAX];
	unsigned count;
};

/* Keep a copy of the packet. If there is no room, the oldest packet is dropped,
 * since programs repeat what they still need. */
void vb_waiting_add(struct vb_waiting *w, const void *bytes, size_t len);
void vb_waiting_drop(struct vb_waiting *w);

#endif
