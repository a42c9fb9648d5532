/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Ethernet ports of a switch: a bridge between them (IEEE 802.1D). It does
 * no I/O and reads no clock: the caller passes in the time. It is independent
 * of the InfiniBand ports of the switch: no frame passes from one kind to the
 * other.
 */
#ifndef FABRIC_BRIDGE_H
#define FABRIC_BRIDGE_H

#include "base/macs.h"

/* the most Ethernet ports of a switch */
#define VB_BRIDGE_PORTS 32
/* the most frames, and bytes, that wait for a port */
#define VB_BRIDGE_QUEUE 256
#define VB_BRIDGE_BYTES (1u << 20)
/* the shortest frame, its addresses and type, and the longest one: 9216 bytes
 * behind a header with two VLAN tags */
#define VB_BRIDGE_LEAST 14
#define VB_BRIDGE_MOST	(9216 + 14 + 8)

struct vb_bridge_counters {
	uint64_t rcv_frames, rcv_bytes, xmit_frames, xmit_bytes;
	uint64_t flooded;  /* received frames that left by all other ports */
	uint64_t filtered; /* received frames that needed no other port */
	uint64_t errors;   /* received frames of a wrong length or source */
	uint64_t discards; /* frames for which the port had no room */
};

struct vb_bridge_ops {
	/* Send a frame by @port. 0; -EAGAIN: the port accepts no frame now, and
	 * the owner calls vb_bridge_ready() when it does again; another -errno:
	 * the frame is lost. It must not call the bridge. */
	int (*send)(void *arg, unsigned port, const uint8_t *frame, size_t len);
};

struct vb_bridge;

/* Make a bridge with the ports 1 to @ports, at most VB_BRIDGE_PORTS. No cable
 * is at any of them yet. @seed: as for vb_macs_create(). NULL: no memory. */
struct vb_bridge *vb_bridge_create(const struct vb_bridge_ops *ops, void *arg,
				   unsigned ports, uint64_t seed);
void vb_bridge_destroy(struct vb_bridge *b);

/* A cable was plugged into @port (@up), or pulled. When it is pulled, the
 * bridge forgets the addresses at @port and the frames that wait there. */
void vb_bridge_set_up(struct vb_bridge *b, unsigned port, bool up);
bool vb_bridge_is_up(const struct vb_bridge *b, unsigned port);
/* Take a frame of @len bytes, addresses to payload, that has come to @port. */
void vb_bridge_take(struct vb_bridge *b, unsigned port, const uint8_t *frame,
		    size_t len, vb_time now);
/* The owner calls this when @port accepts frames again: sends the frames that
 * wait for @port. True: some still wait. */
bool vb_bridge_ready(struct vb_bridge *b, unsigned port);
/* Returns how many frames wait for @port. */
unsigned vb_bridge_waiting(const struct vb_bridge *b, unsigned port);

const struct vb_bridge_counters *vb_bridge_counters(const struct vb_bridge *b,
						    unsigned port);
/* Returns the table of learned addresses; vb_mac.at of an address is the port
 * from which its frames came. */
const struct vb_macs *vb_bridge_macs(const struct vb_bridge *b);

#endif
