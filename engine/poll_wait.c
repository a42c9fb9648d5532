/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A poll that waits: beside threads that want the processor all the time, a
 * poll that finds nothing sleeps in the kernel until a packet, or a message of
 * a peer of this host, arrives (rule 7 in engine/policy_program.c). Linux gives
 * the processor soon to a thread that has slept and wakes, and not to one that
 * has spun.
 *
 * Each such poll sets the timer of @back anew, and until that timer expires the
 * engine thread leaves link and lanes to the program. If the program stops
 * polling, the timer expires, and the engine thread serves them again.
 * Meanwhile peers ring by the sockets of their sessions.
 */
#include "engine/engine_priv.h"
#include "engine/wait_priv.h"

#include <poll.h>

enum { ON_LINK, ON_NEAR, ON_STREAM, ON_RAW, ON_ROCE1, ON_COUNT };

/* With an adapter of a fabric no poll waits here: the fabric's process rings
 * only a program that has announced that it sleeps, and only the engine thread
 * announces that. */
bool vb_poll_can_wait(struct vb_engine *e)
{
	return atomic_load(&e->fabric_fd) < 0 &&
	       atomic_load(&e->watched) == WATCHES_NOTHING &&
	       atomic_load(&e->link_fd) >= 0;
}

static void await_arrival(struct vb_engine *e)
{
	static const struct timespec most = { .tv_nsec = VB_POLL_WAIT };
	struct pollfd fds[ON_COUNT] = {
		[ON_LINK] = { atomic_load(&e->link_fd), POLLIN, 0 },
		[ON_NEAR] = { e->near ? vb_near_fd(e->near) : -1, POLLIN, 0 },
		[ON_STREAM] = { atomic_load(&e->stream_fd), POLLIN, 0 },
		[ON_RAW] = { atomic_load(&e->raw_fd), POLLIN, 0 },
		[ON_ROCE1] = { atomic_load(&e->roce.fd), POLLIN, 0 },
	};

	if (ppoll(fds, ON_COUNT, &most, NULL) > 0 && fds[ON_NEAR].revents &&
	    !vb_near_hear_rings(e->near))
		vb_engine_wake(e);
}

void vb_poll_waits_no_more(struct vb_engine *e)
{
	if (!atomic_load_explicit(&e->polls_wait, memory_order_relaxed) ||
	    !atomic_exchange(&e->polls_wait, false))
		return;
	atomic_store(&e->back.is_set, false);
	vb_engine_wake(e);
}

bool vb_poll_wait(struct vb_engine *e)
{
	vb_time now;

	if (!vb_poll_can_wait(e))
		return false;
	now = vb_now();
	vb_engine_at_work(e, now + VB_POLL_WAIT);
	atomic_store(&e->polls_wait, true);
	vb_wait_leaves_link(e, VB_OWED_LASTS, now);
	if (!e->near || vb_near_sleep(e->near))
		await_arrival(e);
	if (e->near && vb_engine_spins(e))
		vb_near_awake(e->near);
	now = vb_now();
	vb_engine_at_work(e, now);
	atomic_store_explicit(&e->back_at, now, memory_order_relaxed);
	atomic_fetch_add_explicit(&e->waits, 1, memory_order_relaxed);
	return true;
}
