/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCEv1 (IBA Annex A16): Ethernet frames of EtherType 0x8915 with a GRH, by
 * one packet socket for all interfaces of this host. The socket needs
 * CAP_NET_RAW. A filter in the kernel lets in the frames to the process's slot
 * (the top bits of the destination QPN), and, from the first join() on, those
 * to groups.
 *
 * A packet socket does not receive what its own host sends. So a frame to an
 * address of this host leaves by the loopback interface, and a frame to a group
 * leaves twice. On the loopback interface the frame's source address says from
 * which interface the frame would have been sent: the two bytes VB_ROCE1_LOCAL
 * and the interface's index.
 */
#ifndef LINK_ROCE1_H
#define LINK_ROCE1_H

#include "link/link.h"
#include "wire/grh.h"

#define VB_ROCE1_TYPE	  0x8915
#define VB_ROCE1_LOCAL	  0x0200u
#define VB_ROCE1_LOOPBACK 1 /* the loopback interface's index, on Linux */
/* Ethernet header and GRH, which lie before the BTH. A receiver never sees a
 * VLAN tag: the kernel has removed it. */
#define VB_ROCE1_HEAD (14 + VB_GRH_BYTES)

/* Open the link of the process that has @slot. @waits: route() waits until a
 * neighbour has told its MAC address; otherwise it asks the neighbour, and
 * fails with -EAGAIN if the kernel does not know the address yet. -EPERM:
 * CAP_NET_RAW is missing; else -errno. */
VB_MUST_CHECK int vb_roce1_open(unsigned slot, bool waits,
				struct vb_link **link);

/* Read what frames from interface @ifindex need, so that answers to frames that
 * arrive there can be sent without a system call. Call it again when the
 * interface has changed. Blocks for the kernel's answer. 0 or -errno. */
VB_MUST_CHECK int vb_roce1_learn(struct vb_link *l, uint32_t ifindex);

enum vb_roce1_verdict { ROCE1_GOOD, ROCE1_MALFORMED, ROCE1_ICRC };

/* Check the @len bytes of a frame that arrived on @ifindex, and describe it in
 * @f, which refers to @bytes. Bytes behind the length in the GRH are padding,
 * and are ignored. */
enum vb_roce1_verdict vb_roce1_read(const uint8_t *bytes, uint32_t len,
				    uint32_t ifindex, struct vb_frame *f);

#endif
