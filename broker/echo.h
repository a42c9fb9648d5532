/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers the echoes of `verbena doctor` on other hosts (wire/echo.h). An
 * answer is never longer than its question, goes back to the sender's address
 * only, and a broker gives VB_ECHO_BURST at once and VB_ECHO_RATE in a second
 * at most, so that nobody can use it to flood a third host. */
#ifndef BROKER_ECHO_H
#define BROKER_ECHO_H

#include "link/link.h"
#include "wire/echo.h"

#define VB_ECHO_BURST 64
#define VB_ECHO_RATE  200

struct vb_echo_limit {
	vb_time since; /* the time up to which answers were allowed */
};

/* May the broker answer one more question at @now? */
bool vb_echo_may(struct vb_echo_limit *l, vb_time now);

/* Does the packet ask for an echo? Then *@answer is what to send: payload,
 * with the bytes in @len, to the queue pair @qpn. */
bool vb_echo_is_asked(const struct vb_frame *f, const struct vb_ib_pkt *pkt,
		      struct vb_echo *answer, uint32_t *len, uint32_t *qpn);

#endif
