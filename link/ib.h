/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The link of an adapter in an emulated InfiniBand fabric. Frames, from LRH to
 * ICRC, go through two rings in memory that this process shares with the
 * fabric's process (wire/verbs_ipc.h). A socket, the bell, lets each side wake
 * the other.
 */
#ifndef LINK_IB_H
#define LINK_IB_H

#include "link/link.h"

/* Open the link. @own and @peer are mappings of VB_SHRING_BYTES(VB_VERBS_RING):
 * this process writes @own, and the fabric's process writes @peer. The caller
 * unmaps them after the link's close(). @bell: the socket by which each side
 * wakes the other; the link owns it. @control: the connection to the fabric's
 * process; the caller still owns it, and keeps it open until after close().
 * @call sends a message over @control and returns the result in the answer, or
 * -errno. Returns 0 or -ENOMEM. If the fabric's process breaks the rules of a
 * ring, the link shuts @control down. */
VB_MUST_CHECK int vb_ib_open(void *own, const void *peer, int bell, int control,
			     int (*call)(int control, const void *bytes,
					 size_t len),
			     struct vb_link **link);

/* The fabric's process has ended: frames in the ring are lost, as if it had
 * taken them. */
void vb_ib_end(struct vb_link *l);
bool vb_ib_has_ended(const struct vb_link *l);
/* Set the port's LID and LMC: frames sent from now on have the LID as their
 * source. Any thread may call this. */
void vb_ib_set_lid(struct vb_link *l, uint16_t lid, uint8_t lmc);

/* Is @lid one of the port's LIDs? Any thread may call this. */
bool vb_ib_owns(const struct vb_link *l, uint16_t lid);

/* Announce that a thread is about to sleep until fd() is readable: from now on
 * the fabric's process rings the bell when it sends a frame. False: frames have
 * come already, so the thread must not sleep. One thread at a time may call
 * this; it need not hold the receive lock. */
VB_MUST_CHECK bool vb_ib_sleep(struct vb_link *l);
/* Announce that the thread no longer sleeps. @rung: fd() may be readable; this
 * reads all bells, so that it no longer is. */
void vb_ib_wake(struct vb_link *l, bool rung);

#endif
