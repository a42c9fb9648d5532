/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine's thread: does it take packets, or leave them to a program that
 * polls? A program that spins in ibv_poll_cq drains the link itself; a thread
 * that woke for each packet would only take the processor and the caches from
 * it. These rules decide. Times are scaled to the machine's speed
 * (vb_engine_span()).
 *
 * 1. Leave packets to a program that loops. When a socket becomes readable
 *    while a program loops in ibv_poll_cq, the thread does not read it but
 *    looks away for 20 us (a nap), because the program's next poll takes the
 *    packets.
 * 2. Which program loops. A program whose last poll found nothing polls again:
 *    the thread believes this for 1 ms after that poll while it trusts the
 *    program, and for 50 us otherwise. A program whose last poll found
 *    something may be working on it for long: the thread believes that it
 *    comes back for 50 us while it trusts the program, and otherwise only
 *    while the program is inside a poll or a long send.
 * 3. Trust. Each nap during which the program did poll, and each wake-up that
 *    found nothing left to do, adds 1 to the trust, up to 8. A nap during
 *    which the program did not poll takes 4 away, and the thread serves the
 *    packets. So one delayed packet costs several that are served at once.
 * 4. Rest. After 8 needless wake-ups in a row the thread stops watching the
 *    sockets and only looks at the clock: for 50 us, then twice as long each
 *    time, up to 1 ms, until the polling stops. Naps alone would still wake
 *    the thread up to 50,000 times a second. When the thread comes back and
 *    finds packets that nobody took, it rested too early: it wants twice as
 *    many needless wake-ups before the next rest, up to 64; otherwise half as
 *    many, down to 8. A program that polls now and then but spins on memory
 *    leaves packets for the thread each time, and so never sends it to rest.
 * 5. Call back. A program that arms a completion queue is about to sleep; it
 *    ends a rest of 50 us or more (vb_engine_armed()).
 * 6. Unheard wake-ups. The kernel wakes a thread that sleeps by a socket for
 *    each packet, and puts it back to sleep inside ppoll() when a program has
 *    taken the packet meanwhile: the thread loses the processor each time
 *    without noticing. Therefore, beside a program that spins, the thread
 *    counts how often it went to sleep inside one ppoll() (getrusage()); all
 *    but the first count as needless wake-ups.
 * 7. Linger. To sleep and to wake takes 5 to 10 us, which is longer than a
 *    peer that waits for each answer needs for its next request. When packets
 *    came less than 30 us after the thread had gone to sleep, it looks for the
 *    next ones for 30 us after the last, and 200 us in all, before it sleeps
 *    again. It yields before each look. A yield that takes more than 3 us ran
 *    another thread, which wants this processor: the thread stops. A yield of
 *    more than 100 us ran a thread that spins, and not an interrupt: the
 *    thread does not linger for 10 ms, twice as long each time, up to 640 ms,
 *    because Linux then lets that thread run for milliseconds before ours has
 *    its turn.
 * 8. Fairness. The thread takes at most 16 batches before timers have their
 *    turn, and fewer when a program's poll waits for the receive lock.
 */
#include "engine/service_priv.h"

#include <sched.h>
#include <sys/resource.h>

#define REST_AFTER_MAX 64
#define LOOP_LASTS     (1 * VB_MSEC)
#define TRUST_MOST     8
#define DRAIN_BATCHES  16
#define LINGER	       (30 * VB_USEC)
#define LINGER_TURN    (200 * VB_USEC)
/* A yield takes less if no other thread runs. */
#define ALONE	   (3 * VB_USEC)
#define CROWDED	   (100 * VB_USEC) /* an interrupt takes less */
#define EAGER_MOST 8
#define CROWD_MIN  (10 * VB_MSEC)
#define CROWD_MAX  (640 * VB_MSEC)

enum drained { DRAINED_NOTHING, DRAINED_SOME, DRAINED_BUSY };

/* Rule 8 above: serve what has arrived, but not for ever. What is left keeps
 * the socket readable, so that the next ppoll() returns at once. */
static enum drained eng_service_drain_link(struct vb_engine *e)
{
	enum drained got = DRAINED_NOTHING;

	for (unsigned i = 0; i < DRAIN_BATCHES; i++) {
		vb_time now;
		bool other;

		if (!vb_mutex_trylock(&e->rx))
			return DRAINED_BUSY;
		other = e->raws && vb_raw_drain(e, vb_now());
		if (e->streams)
			other |= vb_stream_drain(e, vb_now());
		if (e->link->ops->recv(e->link, &e->rxq) < 0)
			e->rxq.count = 0;
		if (e->rxq.count == 0 && !other) {
			vb_mutex_unlock(&e->rx);
			return got;
		}
		got = DRAINED_SOME;
		now = vb_now();
		vb_drive_delayed_acks(e, now);
		vb_dispatch(e, now);
		/* Between two batches a program's poll may take over. */
		vb_mutex_unlock(&e->rx);
		if (atomic_load_explicit(&e->awaited, memory_order_relaxed))
			break;
	}
	return got;
}

/* Rule 2 above: does a program loop in ibv_poll_cq, and so take packets
 * itself? */
static bool program_loops(struct vb_service *s, vb_time now)
{
	if (atomic_load_explicit(&s->e->looping, memory_order_relaxed))
		return vb_service_last_poll(s->e) +
			       vb_engine_span(s->e, s->trust ? LOOP_LASTS
							     : POLL_IS_RECENT) >
		       now;
	if (s->trust)
		return vb_service_program_polls(s->e, now);
	return vb_service_last_poll(s->e) > now;
}

static void rest(struct vb_service *s, vb_time how_long, vb_time now)
{
	s->rest = how_long;
	s->rest_until = now + how_long;
	s->fds[FD_LINK].fd = -1;
	s->fds[FD_RAW].fd = -1;
	s->fds[FD_STREAM].fd = -1;
	if (how_long >= vb_engine_span(s->e, REST_MIN))
		atomic_store(&s->e->resting, true);
}

void vb_rest_end(struct vb_service *s)
{
	s->rest = 0;
	atomic_store(&s->e->resting, false);
	s->idle_wakes = 0;
	s->fds[FD_LINK].fd = s->e->link->ops->fd(s->e->link);
	s->fds[FD_RAW].fd = atomic_load(&s->e->raw_fd);
	s->fds[FD_STREAM].fd = atomic_load(&s->e->stream_fd);
}

/* Rule 5 above: a program that is about to sleep has ended a rest of 50 us or
 * more. */
bool vb_rest_is_called_back(const struct vb_service *s)
{
	return s->rest >= vb_engine_span(s->e, REST_MIN) &&
	       !atomic_load(&s->e->resting);
}

static void trust(struct vb_service *s)
{
	s->trust = VB_MIN(s->trust + 1, TRUST_MOST);
}

/* The thread was woken for packets that a program's thread takes as well.
 * @still_there: they have not been taken yet. */
static void was_not_needed(struct vb_service *s, bool still_there, vb_time now)
{
	if (++s->idle_wakes >= s->rest_after)
		rest(s, vb_engine_span(s->e, REST_MIN), now);
	else if (still_there) /* a nap: a readable socket would end each sleep
				 at once */
		rest(s, vb_engine_span(s->e, NAP), now);
}

/*
 * Rule 7 above: another thread spins on this processor. Linux takes a yield for
 * the end of our slice (since 6.18 even where it chose no other thread).
 */
static void note_crowd(struct vb_service *s, vb_time now)
{
	s->crowd = VB_MIN(VB_MAX(2 * s->crowd, CROWD_MIN), CROWD_MAX);
	s->crowded_until = now + s->crowd;
}

/*
 * Rule 7 above: look for the next packets before sleeping. False: none came.
 */
static bool eng_service_linger(struct vb_service *s)
{
	vb_time start = vb_now(), since = start, now = start, then;

	do {
		enum drained got;

		then = now;
		sched_yield();
		now = vb_now();
		if (now - then > vb_engine_span(s->e, CROWDED))
			note_crowd(s, now);
		if (now - then > vb_engine_span(s->e, ALONE))
			return since != start;
		got = eng_service_drain_link(s->e);
		if (got == DRAINED_BUSY || vb_service_program_polls(s->e, now))
			return true;
		if (got == DRAINED_SOME)
			since = now = vb_now();
	} while (now - since < vb_engine_span(s->e, LINGER) &&
		 now - start < vb_engine_span(s->e, LINGER_TURN));
	s->crowd /= 2;
	return since != start;
}

static void linger_if_busy(struct vb_service *s)
{
	if (s->eager && vb_now() >= s->crowded_until && !eng_service_linger(s))
		s->eager--;
}

void vb_rest_on_packets(struct vb_service *s, vb_time now)
{
	if (program_loops(s, now)) {
		was_not_needed(s, true, now);
		return;
	}
	switch (eng_service_drain_link(s->e)) {
	case DRAINED_SOME:
		s->idle_wakes = 0;
		linger_if_busy(s);
		break;
	case DRAINED_NOTHING:
		trust(s);
		was_not_needed(s, false, now);
		break;
	case DRAINED_BUSY:
		trust(s);
		was_not_needed(s, true, now);
		break;
	}
}

/* Rule 3 above: a nap is over. If the program has not polled meanwhile, the
 * thread serves the packets now. */
static void on_napped(struct vb_service *s, vb_time now)
{
	unsigned idle_wakes = s->idle_wakes;
	bool right = vb_service_last_poll(s->e) > s->rest_until - s->rest;

	vb_rest_end(s);
	if (right) {
		trust(s);
		s->idle_wakes = idle_wakes;
		return;
	}
	s->trust -= VB_MIN(s->trust, TRUST_LOST);
	if (eng_service_drain_link(s->e) != DRAINED_SOME)
		s->idle_wakes = idle_wakes;
}

void vb_rest_on_timeout(struct vb_service *s, vb_time now)
{
	if (s->rest < vb_engine_span(s->e, REST_MIN)) {
		on_napped(s, now);
		return;
	}
	if (vb_service_program_polls(s->e, now)) {
		rest(s, VB_MIN(s->rest * 2, vb_engine_span(s->e, REST_MAX)),
		     now);
		s->rest_after = VB_MAX(s->rest_after / 2, REST_AFTER);
		return;
	}
	vb_rest_end(s);
	s->near_rest = 0; /* look soon at the lanes of peers, too */
	if (eng_service_drain_link(s->e) ==
	    /* No program took them: the thread rested too early. */
	    DRAINED_SOME)
		s->rest_after = VB_MIN(s->rest_after * 2, REST_AFTER_MAX);
	else
		s->rest_after = VB_MAX(s->rest_after / 2, REST_AFTER);
}

/* Rule 6 above: how often the kernel has put this thread to sleep so far. 0
 * while no program spins, or while the thread rests and no packet wakes it. */
long vb_rest_count_sleeps(const struct vb_service *s)
{
	struct rusage use;

	if (s->rest ||
	    !atomic_load_explicit(&s->e->spinning, memory_order_relaxed) ||
	    getrusage(RUSAGE_THREAD, &use) < 0)
		return 0;
	return use.ru_nvcsw;
}

void vb_rest_note_sleeps(struct vb_service *s, long before)
{
	long sleeps = before ? vb_rest_count_sleeps(s) - before : 0;

	if (sleeps > 1)
		s->idle_wakes += (unsigned)(sleeps - 1);
}

void vb_rest_if_unheard(struct vb_service *s, vb_time now)
{
	if (!s->rest && s->idle_wakes >= s->rest_after &&
	    atomic_load_explicit(&s->e->spinning, memory_order_relaxed) &&
	    vb_service_program_polls(s->e, now))
		rest(s, vb_engine_span(s->e, REST_MIN), now);
}

/* Rule 7 above: packets that come this soon after the thread went to sleep are
 * worth waiting for. */
void vb_rest_note_packets(struct vb_service *s, vb_time then, int ready)
{
	if (ready > 0 &&
	    (s->fds[FD_LINK].revents || s->fds[FD_STREAM].revents) &&
	    vb_now() - then < vb_engine_span(s->e, LINGER))
		s->eager = VB_MIN(s->eager + 1, EAGER_MOST);
}
