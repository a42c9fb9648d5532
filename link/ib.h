/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The link of an adapter in an emulated InfiniBand fabric: whole frames, LRH to
 * ICRC, through two rings in memory that it shares with the fabric's process
 * (wire/verbs_ipc.h), and a socket by which either side wakes the other.
 */
#ifndef LINK_IB_H
#define LINK_IB_H

#include "link/link.h"

/* Open the link. @own, @peer: the mappings of VB_SHRING_BYTES(VB_VERBS_RING)
 * that this process writes, and that the fabric's process writes; the caller
 * unmaps them after close(). @control: the connection to the fabric, which
 * stays the caller's until close(); @call sends a message there and returns the
 * result in the answer, or -errno. The link owns @bell. 0 or -ENOMEM. If the
 * fabric's process breaks a ring, the link shuts @control down. */
VB_MUST_CHECK int vb_ib_open(void *own, const void *peer, int bell, int control,
			     int (*call)(int control, const void *bytes,
					 size_t len),
			     struct vb_link **link);

/* The port's LID and LMC, which frames have as their source from now on. Any
 * thread. */
void vb_ib_set_lid(struct vb_link *l, uint16_t lid, uint8_t lmc);

/* A thread is about to sleep until fd() is readable: from now on frames make it
 * so. False: frames are there already, so it must not sleep. One thread at a
 * time, which need not hold the receive lock. */
VB_MUST_CHECK bool vb_ib_sleep(struct vb_link *l);
/* The thread does not sleep any more. @rung: fd() may be readable, and is not
 * after this. */
void vb_ib_wake(struct vb_link *l, bool rung);

#endif
