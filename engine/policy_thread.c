/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The policy of the engine's thread. Does it take packets, or leave them to a
 * program that polls? A program that spins in ibv_poll_cq drains the link
 * itself; a thread that woke for each packet would only take the processor and
 * the caches from it.
 *
 * 1. Leave packets to a program that loops. When a socket becomes readable
 *    while a program loops in ibv_poll_cq, the thread does not read it but
 *    looks away for 20 us (a nap), because the program's next poll takes the
 *    packets.
 * 2. Which program loops. A program whose last poll found nothing polls again:
 *    the thread believes this for 1 ms after that poll while it trusts the
 *    program, and for 50 us otherwise. A program whose last poll found
 *    something can be working on it for long: the thread believes for 50 us
 *    that the program comes back while it trusts the program, and otherwise
 *    only while the program is inside a poll or a long send.
 * 3. Trust. Each nap during which the program did poll, and each wake-up that
 *    found nothing left to do, adds 1 to the trust, up to 8. A nap during which
 *    the program did not poll takes 4 away, and the thread serves the packets.
 *    So after one packet that was delayed the thread serves several at once.
 * 4. Rest. After 8 needless wake-ups in a row the thread stops watching the
 *    sockets and only looks at the clock: for 50 us, then twice as long each
 *    time, up to 1 ms, until the polling stops. Naps alone would still wake the
 *    thread up to 50,000 times a second. When the thread comes back and finds
 *    packets that nobody took, it rested too early, and the next rest needs
 *    twice as many needless wake-ups, up to 64; otherwise half as many, down to
 *    8. A program that polls now and then but spins on memory leaves packets
 *    for the thread each time, and so the thread never rests beside it.
 * 5. Call back. A program that arms a completion queue is about to sleep; its
 *    thread ends the rest (vb_engine_armed()).
 * 6. Unheard wake-ups. The kernel wakes a thread that sleeps by a socket for
 *    each packet, and puts it back to sleep inside ppoll() when a program has
 *    taken the packet meanwhile: the thread loses the processor each time
 *    without noticing. Therefore, beside a program that spins, the caller
 *    counts how often the thread went to sleep inside one ppoll(); all but the
 *    first count as needless wake-ups.
 * 7. Linger. To sleep and to wake takes 5 to 10 us, which is longer than a peer
 *    that waits for each answer needs for its next request. When packets came
 *    less than 30 us after the thread had gone to sleep, it looks for the next
 *    ones for 30 us after the last, and 200 us in all, before it sleeps again.
 *    It yields before each look. A yield that takes more than 3 us ran another
 *    thread, which wants this processor: the thread stops. A yield of more than
 *    100 us ran a thread that spins, and not an interrupt: the thread does not
 *    linger for 10 ms, twice as long each time, up to 640 ms, because Linux
 *    lets that thread run for milliseconds before the engine's thread has its
 *    turn again. (For Linux a yield ends the time slice, since 6.18 even where
 *    no other thread ran.)
 *
 * Timers and delayed ACKs:
 *
 * 8. While a program polls now and then (within the last millisecond), its
 *    polls step queue pairs whose timers are due, and the thread sleeps a
 *    millisecond at a time to see whether the polls go on: a wake-up for each
 *    timer would take the processor from the program every 2 ms. A timer that
 *    is already due is left only to a program that polled in vain within 200
 *    us.
 * 9. Meanwhile ACKs wait for the program's replies. The thread sends an ACK
 *    that has waited for 20 us when the thread wakes anyway, and each ACK when
 *    the polling stops.
 *
 * Lanes of peers of this host:
 *
 * 10. A program that polls all the time serves the lanes, and peers need not
 *     ring. The thread checks whether the program still polls after 50 us, then
 *     after twice as long each time, up to 1 ms. Once the program stops, the
 *     thread asks peers to ring, and sleeps unless something has arrived
 *     meanwhile.
 * 11. Stand by. A peer that streams small messages asks for this: without it
 *     the peer goes through the kernel to this process's pages for each message
 *     (near/here.c). The thread begins when a peer has asked, something has
 *     just woken the thread, no program of this process serves the lanes, and
 *     no pause is on. It looks at the lanes in turns of 100 us, as long as each
 *     turn finds something and no program serves the lanes. It stops when
 *     another thread wants this processor: at the end of each turn it yields,
 *     and a yield of 100 us or more ran a thread that has work, and not only an
 *     interrupt. Then it pauses for 4 ms; for twice as long, up to 1 s, when
 *     the last pause ended less than 20 ms ago. While it stands by it does not
 *     sleep, so it neither rests nor lingers; packets that it leaves to a
 *     program are looked at again after a nap's time.
 *
 * Adapters of a fabric:
 *
 * 12. Early rest. The fabric's process, through which all frames go, wakes the
 *     thread by a system call, and both then compete with the program for
 *     processors. So the thread rests without the needless wake-ups of rule 4
 *     as soon as a program spins. If it comes back and finds packets that
 *     nobody took, it does not rest early for 1 ms, twice as long each time, up
 *     to 64 ms.
 *
 * Beside others that want the processor all the time:
 *
 * 13. A program whose polls wait (rule 7 of engine/policy_program.c) may not
 *     have its processor for several time slices. So for 100 ms after its polls
 *     have waited 8 times, it counts as a program that polls (rules 8 and 9)
 *     until it has not polled for 20 ms, instead of 1 ms, and its ACKs wait as
 *     long for its replies. The thread still looks at timers every millisecond.
 */
#include "engine/policy.h"

static vb_time span(const struct vb_thread_policy *t, vb_time length)
{
	return vb_span(t->slowdown, length);
}

void vb_thread_init(struct vb_thread_policy *t, unsigned slowdown)
{
	*t = (struct vb_thread_policy){ .slowdown = slowdown,
					.does = THREAD_WATCHES,
					.rest_after = VB_REST_AFTER,
					.trust = VB_TRUST_LOST };
}

static bool stands_by(const struct vb_thread_policy *t)
{
	return t->does == THREAD_STANDS_BY;
}

/* Leave packets to a program for @how_long; @does is the thread's activity
 * meanwhile. */
static void leave_packets(struct vb_thread_policy *t, enum vb_thread does,
			  vb_time how_long, vb_time now)
{
	t->left_at = now;
	t->left_until = now + how_long;
	if (!stands_by(t))
		t->does = does;
}

static void nap(struct vb_thread_policy *t, vb_time now)
{
	leave_packets(t, THREAD_NAPS, span(t, VB_NAP), now);
}

/* From now on the thread watches the sockets. */
static void watch(struct vb_thread_policy *t)
{
	t->left_until = 0;
	if (!stands_by(t))
		t->does = THREAD_WATCHES;
}

/* Does the thread expect the program to poll again soon (rule 2)? */
static bool is_believed(const struct vb_thread_policy *t, uint64_t program,
			vb_time now)
{
	vb_time lasts = 0;

	if (vb_program_loops(program))
		lasts = t->trust ? VB_LOOP_LASTS : VB_POLL_RECENT;
	else if (t->trust)
		lasts = VB_POLL_RECENT;
	return vb_program_polled(program, span(t, lasts), now);
}

static bool is_recent(const struct vb_thread_policy *t, uint64_t program,
		      vb_time now)
{
	return vb_program_polled(program, span(t, VB_POLL_RECENT), now);
}

/* Does a rest go on? The fabric's process may run between two polls of a
 * program. The caller then looks again after VB_REST_MIN. */
static bool polls_on(const struct vb_thread_policy *t, uint64_t program,
		     vb_time now)
{
	vb_time lasts = t->dear && vb_program_loops(program) ? VB_LOOP_LASTS
							     : VB_POLL_RECENT;

	return vb_program_polled(program, span(t, lasts), now);
}

static void add_trust(struct vb_thread_policy *t)
{
	t->trust = VB_MIN(t->trust + 1, VB_TRUST_MOST);
}

static void want_more_before_rest(struct vb_thread_policy *t, bool more)
{
	t->rest_after = more ? VB_MIN(t->rest_after * 2, VB_REST_SELDOM)
			     : VB_MAX(t->rest_after / 2, VB_REST_AFTER);
}

/* The thread was woken for packets that a program's thread takes as well.
 * @still_there: no thread has taken them yet, so a readable socket would end
 * each sleep at once. */
static void was_not_needed(struct vb_thread_policy *t, bool still_there,
			   vb_time now)
{
	if (++t->needless >= t->rest_after && !stands_by(t))
		leave_packets(t, THREAD_RESTS, span(t, VB_REST_MIN), now);
	else if (still_there)
		nap(t, now);
}

bool vb_thread_on_packets(struct vb_thread_policy *t, uint64_t program,
			  vb_time now)
{
	if (!is_believed(t, program, now))
		return true;
	was_not_needed(t, true, now);
	return false;
}

/* A nap is over: change the trust (rule 3). */
static bool has_napped(struct vb_thread_policy *t, uint64_t program)
{
	if (vb_program_at(program) > t->left_at) {
		watch(t);
		add_trust(t);
		return false;
	}
	t->trust -= VB_MIN(t->trust, VB_TRUST_LOST);
	return true;
}

/* A rest is over: change the number of wake-ups before the next rest (rule
 * 4). */
static bool has_rested(struct vb_thread_policy *t, uint64_t program,
		       vb_time now)
{
	vb_time rest = t->left_until - t->left_at;

	if (!polls_on(t, program, now)) {
		t->lanes_left = 0; /* look soon at the lanes of peers as well */
		return true;
	}
	rest = is_recent(t, program, now) ? rest * 2 : 0;
	leave_packets(t, THREAD_RESTS,
		      VB_MIN(VB_MAX(rest, span(t, VB_REST_MIN)),
			     span(t, VB_REST_MAX)),
		      now);
	want_more_before_rest(t, false);
	t->early /= 2;
	return false;
}

bool vb_thread_on_time(struct vb_thread_policy *t, uint64_t program,
		       vb_time now)
{
	return t->does == THREAD_RESTS ? has_rested(t, program, now)
				       : has_napped(t, program);
}

/* Another thread spins on this processor: pause lingering (rule 7). */
static void note_crowd(struct vb_thread_policy *t, vb_time now)
{
	t->crowd = VB_MIN(VB_MAX(2 * t->crowd, VB_CROWD_MIN), VB_CROWD_MAX);
	t->crowded_until = now + t->crowd;
}

static void linger(struct vb_thread_policy *t, vb_time now)
{
	if (!t->eager || now < t->crowded_until || stands_by(t))
		return;
	t->does = THREAD_LINGERS;
	t->began_at = t->found_at = now;
}

/* Stop lingering. @paid: packets came meanwhile, or another thread drains
 * them. */
static void stop_lingering(struct vb_thread_policy *t, bool paid)
{
	t->does = THREAD_WATCHES;
	t->eager -= !paid;
}

bool vb_thread_yielded(struct vb_thread_policy *t, vb_time took, vb_time now)
{
	if (took > span(t, VB_CROWDED))
		note_crowd(t, now);
	if (took <= span(t, VB_ALONE))
		return true;
	stop_lingering(t, t->found_at != t->began_at);
	return false;
}

static void has_lingered(struct vb_thread_policy *t, enum vb_drained got,
			 uint64_t program, vb_time now)
{
	if (got == DRAINED_BUSY || is_recent(t, program, now)) {
		stop_lingering(t, true);
		return;
	}
	if (got == DRAINED_SOME)
		t->found_at = now;
	if (now - t->found_at < span(t, VB_LINGER) &&
	    now - t->began_at < span(t, VB_LINGER_TURN))
		return;
	t->crowd /= 2;
	stop_lingering(t, t->found_at != t->began_at);
}

/* The thread was woken by packets, and drained the sockets. */
static void has_served(struct vb_thread_policy *t, enum vb_drained got,
		       vb_time now)
{
	if (got == DRAINED_SOME) {
		t->needless = 0;
		linger(t, now);
		return;
	}
	add_trust(t);
	was_not_needed(t, got == DRAINED_BUSY, now);
}

/* The thread came back from a rest: if that was wrong, rest early not so soon
 * again (rule 12). */
static void note_early(struct vb_thread_policy *t, enum vb_drained got,
		       vb_time now)
{
	if (got != DRAINED_SOME)
		return;
	t->early = VB_MIN(VB_MAX(2 * t->early, VB_EARLY_MIN), VB_EARLY_MAX);
	t->early_at = now + t->early;
}

/* The thread came back from a nap or a rest, and drained packets that no
 * program had drained. */
static void has_looked_after(struct vb_thread_policy *t, enum vb_drained got,
			     vb_time now)
{
	bool rested = t->does == THREAD_RESTS;

	watch(t);
	if (rested)
		note_early(t, got, now);
	if (rested)
		want_more_before_rest(t, got == DRAINED_SOME);
	if (rested || got == DRAINED_SOME)
		t->needless = 0;
}

void vb_thread_drained(struct vb_thread_policy *t, enum vb_drained got,
		       uint64_t program, vb_time now)
{
	if (t->does == THREAD_LINGERS)
		has_lingered(t, got, program, now);
	else if (vb_thread_watches(t))
		has_served(t, got, now);
	else
		has_looked_after(t, got, now);
}

void vb_thread_sees_waits(struct vb_thread_policy *t, unsigned waits,
			  vb_time now)
{
	if (waits - t->waits >= VB_BUSY_WAITS) {
		t->waits = waits;
		t->busy_until = now + VB_BUSY_LASTS;
	}
	t->busy = now < t->busy_until;
}

void vb_thread_called_back(struct vb_thread_policy *t)
{
	watch(t);
	t->needless = 0;
}

void vb_thread_slept(struct vb_thread_policy *t, long times)
{
	if (times > 1)
		t->needless += (unsigned)(times - 1);
}

void vb_thread_woke(struct vb_thread_policy *t, vb_time then, vb_time now)
{
	if (now - then < span(t, VB_LINGER) && !stands_by(t))
		t->eager = VB_MIN(t->eager + 1, VB_EAGER_MOST);
}

/* May the thread rest early beside a program (rule 12)? */
static bool rests_early(const struct vb_thread_policy *t, uint64_t program,
			vb_time now)
{
	return t->dear && now >= t->early_at && vb_program_spins(program);
}

/* Begin a rest after too many needless wake-ups (rule 6), or early. */
void vb_thread_will_sleep(struct vb_thread_policy *t, uint64_t program,
			  vb_time now)
{
	bool tired = t->needless >= t->rest_after && vb_program_spins(program);

	if (t->does == THREAD_WATCHES &&
	    (tired || rests_early(t, program, now)) &&
	    is_recent(t, program, now))
		leave_packets(t, THREAD_RESTS, span(t, VB_REST_MIN), now);
}

bool vb_thread_is_attentive(const struct vb_thread_policy *t, uint64_t program,
			    vb_time now)
{
	vb_time lasts = t->busy ? VB_BUSY_AWAY : span(t, VB_REST_MAX);

	return vb_program_polled(program, lasts, now);
}

/* Returns the time at which the thread's sleep ends at the latest (rule 8). */
vb_time vb_thread_sleeps(const struct vb_thread_policy *t, uint64_t program,
			 bool attentive, vb_time due, vb_time now)
{
	if (vb_program_gets_timer(program, attentive, due, now))
		due = now + span(t, VB_REST_MAX);
	return vb_thread_watches(t) ? due : VB_MIN(due, t->left_until);
}

vb_time vb_thread_soon(const struct vb_thread_policy *t, vb_time now)
{
	return now + span(t, VB_NAP);
}

bool vb_thread_sends_ack(const struct vb_thread_policy *t, vb_time since,
			 vb_time now)
{
	return now > since + (t->busy ? VB_BUSY_AWAY : span(t, VB_NAP));
}

/* Decide which thread serves the lanes while this one sleeps (rule 10). */
enum vb_lanes vb_thread_lanes(struct vb_thread_policy *t, uint64_t program,
			      bool waiter, vb_time *until, vb_time now)
{
	if (vb_program_spins(program) &&
	    vb_program_polled(program, span(t, VB_REST_MIN), now)) {
		t->lanes_left =
			VB_MIN(VB_MAX(2 * t->lanes_left, span(t, VB_REST_MIN)),
			       span(t, VB_REST_MAX));
		*until = VB_MIN(*until, now + t->lanes_left);
		return LANES_PROGRAM;
	}
	t->lanes_left = 0;
	if (stands_by(t)) {
		*until = now;
		return LANES_THREAD;
	}
	return waiter ? LANES_WAITER : LANES_RING;
}

/* Begin to stand by if a peer asks for it (rule 11). */
bool vb_thread_stands_by(struct vb_thread_policy *t, bool served, vb_time now)
{
	if (served || now < t->paused_until)
		return false;
	/* The thread is awake now, so a rest would spare no wake-up. */
	if (t->does == THREAD_RESTS)
		watch(t);
	t->does = THREAD_STANDS_BY;
	return true;
}

void vb_thread_turn_begins(struct vb_thread_policy *t, vb_time now)
{
	t->began_at = now;
}

bool vb_thread_looks_on(const struct vb_thread_policy *t, bool served,
			vb_time now)
{
	return !served && now - t->began_at < span(t, VB_STAND_TURN);
}

static void pause_standing_by(struct vb_thread_policy *t, vb_time now)
{
	t->pause = now > t->paused_until + VB_PAUSE_RARE
			   ? VB_PAUSE_MIN
			   : VB_MIN(2 * t->pause, VB_PAUSE_MAX);
	t->paused_until = now + t->pause;
}

bool vb_thread_turn_ends(struct vb_thread_policy *t, bool found, bool served,
			 vb_time took, vb_time now)
{
	bool wanted_by_others = took >= span(t, VB_STAND_TURN);

	if (wanted_by_others)
		pause_standing_by(t, now);
	if (!wanted_by_others && found && !served)
		return true;
	t->does = vb_thread_watches(t) ? THREAD_WATCHES : THREAD_NAPS;
	return false;
}
