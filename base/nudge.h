/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A nudge: the kernel adds 1 to an eventfd when another descriptor becomes
 * readable. So a thread that sleeps by the eventfd, in read(2) or in poll(2),
 * is woken by a packet, though the descriptor that the packet arrives at is not
 * the one by which it sleeps. A nudge is asked for, comes once, and may then be
 * asked for again.
 *
 * The kernel's asynchronous I/O does it (IOCB_CMD_POLL, Linux 4.18), where the
 * host permits that. One thread at a time uses a struct vb_nudge.
 */
#ifndef BASE_NUDGE_H
#define BASE_NUDGE_H

#include <linux/aio_abi.h>

#include "base/defs.h"

struct vb_nudge {
	aio_context_t context; /* 0: not open */
	bool awaited; /* asked for, and vb_nudge_came() has not said so yet */
	struct iocb request;
};

/* Prepare @n. 0, or -errno: the host denies asynchronous I/O, or has none. */
VB_MUST_CHECK int vb_nudge_open(struct vb_nudge *n);
/* End the use of @n, and cancel the nudge for which the caller waits, if
 * any. */
void vb_nudge_close(struct vb_nudge *n);
/* Ask for a nudge of @event_fd, an eventfd, when @fd is readable; at once if it
 * is readable now. The caller awaits no other nudge of @n. 0 or -errno. */
VB_MUST_CHECK int vb_nudge_ask(struct vb_nudge *n, int fd, int event_fd);
/* Has the nudge come for which vb_nudge_ask() asked? True once for each nudge.
 * The eventfd may show the nudge's count a moment later. Costs no system
 * call. */
bool vb_nudge_came(struct vb_nudge *n);
/* End the wait for a nudge: if the nudge has not come yet, make it come now.
 * Its count is added to the eventfd in either case. Waits for the kernel's own
 * thread, some 10 us. */
void vb_nudge_call_off(struct vb_nudge *n);

#endif
