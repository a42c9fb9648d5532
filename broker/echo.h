/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers the echoes of `verbena doctor` on other hosts (wire/echo.h). An
 * answer is never longer than its question, goes back to the sender's address
 * only, and a broker gives VB_ECHO_BURST at once and VB_ECHO_RATE in a second
 * at most, so that nobody can use it to flood a third host. Of these one source
 * address gets VB_ECHO_SOURCE_BURST and VB_ECHO_SOURCE_RATE, so that a host
 * that asks all the time does not take the answers of others. */
#ifndef BROKER_ECHO_H
#define BROKER_ECHO_H

#include "link/link.h"
#include "wire/echo.h"

#define VB_ECHO_BURST	     64
#define VB_ECHO_RATE	     200
#define VB_ECHO_SOURCE_BURST 32
#define VB_ECHO_SOURCE_RATE  50
#define VB_ECHO_SOURCES	     64

/* Each field but @seed is the time up to which answers were allowed. */
struct vb_echo_limit {
	uint64_t seed; /* a random number that nobody else knows */
	vb_time since; /* for the answers to all sources */
	/* for each source: indexed by the hash of its address, so that several
	 * sources may share one entry */
	vb_time sources[VB_ECHO_SOURCES];
};

/* May the broker answer one more question, of @source, at @now? */
bool vb_echo_may(struct vb_echo_limit *l, const struct vb_gid *source,
		 vb_time now);

/* Does the packet ask for an echo? Then *@answer is the payload to send, except
 * for the MTU, which the caller fills in; *@len is the answer's length in
 * bytes, and *@qpn the queue pair to which it goes. */
bool vb_echo_is_asked(const struct vb_frame *f, const struct vb_ib_pkt *pkt,
		      struct vb_echo *answer, uint32_t *len, uint32_t *qpn);
/* Returns the MTU of an interface, in bytes; 0: not known. This takes four
 * system calls, so ask vb_echo_may() first. */
uint32_t vb_echo_mtu(uint32_t ifindex);

#endif
