/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The policy of looking for work: the rules by which the engine's thread
 * watches the packet sockets, naps, rests, lingers and stands by, and by which
 * a program's poll looks at the link, yields, sleeps and steps timers. They are
 * pure state machines: time, counts and the other side's state are arguments.
 * This header reads no clock, takes no lock, touches no descriptor and shares
 * no memory; the callers (engine/service.c, engine/poll.c, engine/wait.c,
 * engine/poll_hint.c, engine/drive.c) do what these functions answer.
 * docs/ENGINE.md explains the rules one after the other.
 *
 * A new rule (for programs that sleep in epoll, say) needs a state in enum
 * vb_thread or enum vb_program, a row in the table, and a case in
 * engine/policy_thread.c or engine/policy_program.c.
 */
#ifndef ENGINE_POLICY_H
#define ENGINE_POLICY_H

#include <stdbool.h>

#include "base/defs.h"

/*
 * The table: every time and count of the rules, and what the rule gained when
 * it was measured: in docs/PERFORMANCE.md ("How threads wait" and the tables),
 * or in the commit that made the rule. "Measured as a group" says that no
 * figure is known for this row alone. Times are for a processor of usual speed;
 * vb_span() scales them, except where the row says "not scaled". Remove a row
 * that gains less than a tenth on every machine.
 */

/* The engine's thread leaves packets to a program that polls. ib_send_lat over
 * iWARP, both programs on one processor, took 9.2 to 10.3 us in the mean with
 * these rules, and 15.0 to 22.4 where each packet woke the thread (13,000 times
 * a second). Two other rules were slower: to rest beside a program that spins
 * without polling, too (READ 3.1 ms, not 0.14); and naps as long as the thread
 * was late (SEND in a guest 120, 74, 72 us, not 38, 40, 65). */

/* A nap, and the shortest and the longest rest; measured as a group. */
#define VB_NAP	    (20 * VB_USEC)
#define VB_REST_MIN (50 * VB_USEC)
#define VB_REST_MAX (1 * VB_MSEC)
/* The least and the most needless wake-ups in a row after which the thread
 * rests; measured as a group. */
#define VB_REST_AFTER  8
#define VB_REST_SELDOM 64
/* After a wake-up that took packets too early, the thread naps instead of
 * watching for this long: at first EARLY_MIN, twice as long each time. */
#define VB_EARLY_MIN (1 * VB_MSEC)  /* not scaled */
#define VB_EARLY_MAX (64 * VB_MSEC) /* not scaled */
/* How often in a row the thread leaves packets to a program's polls: at most
 * TRUST_MOST times; a program that did not take them loses TRUST_LOST of that.
 * Measured as a group. */
#define VB_TRUST_MOST 8
#define VB_TRUST_LOST 4
/* How long the thread assumes that a program works on what its poll found. With
 * 5 us in place of 50 the thread woke for nearly every packet, and took every
 * second batch of a long transfer. */
#define VB_POLL_RECENT (50 * VB_USEC)
/* How long the thread expects another poll of a program that found nothing.
 * With 50 us it woke for each message in a guest, where a hop takes longer. */
#define VB_LOOP_LASTS (1 * VB_MSEC)
/* The longest time that a program is assumed to be inside one call: a long
 * send, or a batch of packets. */
#define VB_WORK_LASTS (500 * VB_USEC) /* measured as a group */

/* The thread leaves timers and delayed ACKs to polls. WRITE in an interpreted
 * guest took 59, 70, 102, 159 us with this rule, 109, 127, 330, 180 without;
 * EPYC, 64-byte WRITEs: 2.46, 2.44, 2.40 M/s with it, 2.31, 2.21, 2.29 without.
 * When deadlines within TIMER_SOON woke the thread: 8-byte WRITEs 9.5 M/s, not
 * 10.6. A poll steps at most DUE_A_POLL queue pairs: without this one poll took
 * as long as a READ of 1 GiB. */
#define VB_TIMER_SOON (200 * VB_USEC) /* not scaled */
#define VB_DUE_A_POLL 4
/* A poll that has stepped queue pairs for so long steps no other. */
#define VB_DUE_LASTS (50 * VB_USEC)

/* The thread looks for more packets (lingers) before it sleeps: ib_read_lat
 * between two hosts took 9.2 to 11.3 us, and 20 without. */
#define VB_LINGER      (30 * VB_USEC)
#define VB_LINGER_TURN (200 * VB_USEC) /* measured as a group */
#define VB_EAGER_MOST  8	       /* measured as a group */
/* A yield takes less than ALONE where no other thread wants the processor, and
 * less than CROWDED where only an interrupt came. With ALONE as the limit for
 * both, ib_read_lat took 20 us, not 10. */
#define VB_ALONE   (3 * VB_USEC)
#define VB_CROWDED (100 * VB_USEC)
/* The thread does not linger for this time after it found that another thread
 * spins on its processor. With this rule riostream took 53 to 71 us, and
 * without it 641 us. */
#define VB_CROWD_MIN (10 * VB_MSEC)  /* not scaled */
#define VB_CROWD_MAX (640 * VB_MSEC) /* not scaled */
/* The most batches that the thread serves before it looks at timers. Without
 * this limit a flood of packets kept all timers waiting. */
#define VB_DRAIN_BATCHES 16

/* The thread stands by for peers' streams of small WRITEs: a whole message by a
 * lane takes 95 ns (Xeon), a WRITE through the kernel to the target's page 170.
 * The thread reads the clock, which takes 20 to 40 ns, once in STAND_LOOKS
 * looks at the lanes. */
#define VB_STAND_TURN  (100 * VB_USEC) /* measured as a group */
#define VB_STAND_LOOKS 16
#define VB_PAUSE_MIN   (4 * VB_MSEC)  /* not scaled; measured as a group */
#define VB_PAUSE_MAX   (1 * VB_SEC)   /* not scaled; measured as a group */
#define VB_PAUSE_RARE  (20 * VB_MSEC) /* not scaled; measured as a group */

/* A program whose polls find nothing for a while (LEAST to MOST) yields.
 * Without SPIN_LEAST two programs on one processor answered each other only
 * every 30 us. */
#define VB_SPIN_LEAST (2 * VB_USEC)
#define VB_SPIN_MOST  (30 * VB_USEC) /* measured as a group */
/* Beside threads that want the processor all the time a poll in vain does not
 * yield, but sleeps for so long until something arrives. Beside four busy loops
 * ib_send_lat over veth took 48 to 65 us in the mean with this rule, and 3300
 * without; ib_read_lat 110 to 240 and 2600. Where polls spun for 2 to 30 us
 * first, ib_read_lat took 280 us, not 127. */
#define VB_POLL_WAIT (100 * VB_USEC)
/* After a yield that took long, polls do not yield, but wait, during
 * CROWDED_MIN, or twice as long as the last time; then one yield, which costs
 * several time slices, shows whether the others are still there. With 10 ms in
 * place of 100 ib_send_lat took 125 us, not 65. Not scaled. */
#define VB_CROWDED_MIN (100 * VB_MSEC)
/* A program whose polls have waited BUSY_WAITS times may be kept from its
 * processor for BUSY_AWAY between two polls, for BUSY_LASTS; not scaled. Its
 * ACKs wait as long for its replies: a program that spins on memory for the
 * reply after it has been shown the ACK alone loses the processor to the
 * others. With BUSY_WAITS 1 the thread of each of 200 programs slept 100 times
 * more. */
#define VB_BUSY_WAITS 8 /* measured as a group */
#define VB_BUSY_LASTS (100 * VB_MSEC)
#define VB_BUSY_AWAY  (20 * VB_MSEC) /* measured as a group */
/* A poll looks at the link less often while peers of this host send:
 * ib_send_lat on one host took 0.47 us (median of each run's fastest), and 0.53
 * without. */
#define VB_NEAR_RECENT (100 * VB_USEC) /* measured as a group */
#define VB_LOOK_AGAIN  (4 * VB_USEC)
/* A program that polled SPINS times in a row, each time within POLLS_CLOSE,
 * spins, and peers need not ring. A message takes 0.53 us; a ring costs the
 * peer a system call, and the engine's thread a wake-up of 5 us and more. */
#define VB_POLLS_CLOSE (20 * VB_USEC) /* measured as a group */
#define VB_SPINS       32	      /* measured as a group */

/* A program is prompt when it has begun PROMPT_MANY waits for a completion
 * event in a row, each within PROMPT after the last wait (engine/wait.c). The
 * rings that it owes its peers then wait until its thread sleeps again, or
 * until a timer expires after OWED_LASTS: with this delay ib_send_lat -e on one
 * host took 2.23 us, and 2.50 without it. A timer that was set less than
 * OWED_AGAIN ago is not set again, since setting it is a system call. */
#define VB_PROMPT      (50 * VB_USEC) /* measured as a group */
#define VB_PROMPT_MANY 8
#define VB_OWED_LASTS  (2 * VB_MSEC)   /* not scaled; measured as a group */
#define VB_OWED_AGAIN  (500 * VB_USEC) /* measured as a group */
/* A thread that waits looks before it sleeps: ib_send_lat -e on one host took
 * 1.17, 1.26, 1.17 us, and 23.1, 21.2, 23.1 without. WARY: how many short
 * sleeps, or soon answers, in a row a thread must see before it looks. */
#define VB_SLEEP_SHORT (100 * VB_USEC)
#define VB_LOOK_LASTS  (30 * VB_USEC)
/* A thread that waits sleeps by the link after so many events in a row that
 * packets brought, and by the lanes again when fewer of the last MOST came so.
 * ib_send_lat -e over veth took 9.8 us with this rule, and 54.8 without; a
 * program in epoll, to which the link is lent, 10.3 and 64.3 us. */
#define VB_BY_LINK_LEAST 2
#define VB_BY_LINK_MOST	 6
/* How long the engine's thread leaves the link to such a thread after it has
 * taken a packet, if it does not always come back soon; not scaled, measured as
 * a group. */
#define VB_BACK_SOON (200 * VB_USEC)
/* If a program does not take a packet that the engine's thread has left to it,
 * the link is not lent to it for this time: at first PAUSE_MIN, twice as long
 * each time, PAUSE_MAX at most. Not scaled, measured as a group. */
#define VB_LEND_PAUSE_MIN (10 * VB_MSEC)
#define VB_LEND_PAUSE_MAX (640 * VB_MSEC)
/* Looks between two yields; measured as a group. */
#define VB_LOOKS      64
#define VB_WARY_LEAST 4	  /* measured as a group */
#define VB_WARY_MOST  256 /* measured as a group */
/* The engine holds back an event whose completion a poll has already removed.
 * This gains no time, but ibv_rc_pingpong -e -t takes an empty queue for an
 * error. None of the four rows is scaled. */
#define VB_EARLY_MOST	(100 * VB_MSEC)
#define VB_EARLY_LOOKS	50
#define VB_EARLY_SLEEP	(50 * VB_USEC)
#define VB_EARLY_SPARED 64

/* A poll looks for an iWARP answer before it returns completions: ib_write_lat
 * took 8 us, and 60 to 67 without. SOON covers the wake-ups of this engine's
 * thread and of the peer's; a poll that has looked for SPIN yields at each
 * further look. */
#define VB_ANSWER_SOON (200 * VB_USEC)
#define VB_ANSWER_SPIN (30 * VB_USEC) /* measured as a group */

/* Returns the time @t for a machine that is @slowdown times slower than usual:
 * everything takes longer there, so "recent", "soon" and "close" must as
 * well. */
static inline vb_time vb_span(unsigned slowdown, vb_time t)
{
	return t * slowdown;
}

/*
 * The program, as the engine's thread sees it: one word that polls publish,
 * with what the program does and since when. The time lies in the future while
 * the program is inside a call that lasts (vb_program_at_work()). The word is a
 * hint: a stale word costs time and never correctness.
 */
enum vb_program {
	/* the program has never polled, or has armed a CQ and will sleep */
	PROGRAM_AWAY,
	/* The program's last poll found a message on a lane and returned at
	 * once; the next poll does that poll's bookkeeping. With this rule
	 * ib_send_lat on one host took 0.36 us, and 0.50 us without it. */
	PROGRAM_TOOK,
	/* the program works on a message that its last poll found */
	PROGRAM_WORKS,
	/* the program's last poll found nothing, so it polls again */
	PROGRAM_LOOPS,
	/* one of its polls sleeps until the receive lock is free */
	PROGRAM_AWAITS
};
/* A flag in the same word as enum vb_program: the program polls all the time.
 * Such a program serves the lanes of peers of this host, whatever its last poll
 * found. */
#define VB_PROGRAM_SPINS ((uint64_t)8)
#define VB_PROGRAM_STATE ((uint64_t)7)
/* The low bits of the word; the other bits are the time. */
#define VB_PROGRAM_BITS ((uint64_t)15)

static inline uint64_t vb_program_word(vb_time at, enum vb_program does,
				       uint64_t spins)
{
	return (at & ~VB_PROGRAM_BITS) | does | (spins & VB_PROGRAM_SPINS);
}

/* Returns @word with its time replaced by @at. */
static inline uint64_t vb_program_at_work(uint64_t word, vb_time at)
{
	return (at & ~VB_PROGRAM_BITS) | (word & VB_PROGRAM_BITS);
}

static inline vb_time vb_program_at(uint64_t word)
{
	return word & ~VB_PROGRAM_BITS;
}

static inline enum vb_program vb_program_does(uint64_t word)
{
	return (enum vb_program)(word & VB_PROGRAM_STATE);
}

static inline bool vb_program_spins(uint64_t word)
{
	return word & VB_PROGRAM_SPINS;
}

/* Did the program's last poll find nothing, or does one of its polls wait for
 * the receive lock? Then the program will poll again. */
static inline bool vb_program_loops(uint64_t word)
{
	return vb_program_does(word) >= PROGRAM_LOOPS;
}

/* Did the program poll, or was it at work, less than @span before @now? */
static inline bool vb_program_polled(uint64_t word, vb_time span, vb_time now)
{
	return vb_program_at(word) + span > now;
}

/* Does the thread leave a timer that is due @at to the program's polls?
 * @attentive: the thread looks within a millisecond whether the polls continue.
 * Work that is due at once is left only to a program that lately polled without
 * a result. */
static inline bool vb_program_gets_timer(uint64_t word, bool attentive,
					 vb_time at, vb_time now)
{
	if (!attentive)
		return false;
	return at > now + 1 || (vb_program_loops(word) &&
				vb_program_polled(word, VB_TIMER_SOON, now));
}

/* The next action of a poll. */
enum vb_poll_next {
	POLL_RETURNS,
	POLL_YIELDS,
	POLL_SLEEPS, /* until another thread lets the receive lock go */
	POLL_WAITS   /* sleeps until something arrives, for VB_POLL_WAIT */
};

/* The policy's state of a program's polls, guarded by the receive lock. */
struct vb_poll_policy {
	unsigned slowdown;
	enum vb_poll_next last; /* the action of the last poll at its end */
	/* number of polls in a row, each soon after the previous one */
	unsigned streak;
	vb_time found_at; /* the time when a poll last found something */
	vb_time patience; /* how long polls find nothing before they yield */
	vb_time ended_at; /* the time when the last poll ended */
	/* the time when a peer of this host last sent something */
	vb_time near_at;
	vb_time looked_at; /* the time when a poll last looked at the link */
	/* Polls wait, and do not yield, before @crowded_until; @crowd is the
	 * length of the last such time. */
	vb_time crowd, crowded_until;
	vb_time long_at; /* the time when the last long yield ended */
	bool in_vain;	 /* the last poll found nothing */
};

void vb_poll_init(struct vb_poll_policy *p, unsigned slowdown);

/* Record that the caller has found a message of a peer of this host, or bytes
 * on a stream. */
static inline void vb_poll_near(struct vb_poll_policy *p, vb_time now)
{
	p->near_at = now;
}

/* Shall the caller look at the link now? If so, this counts as a look. While
 * peers of this host send, the answer is true less often. */
static inline bool vb_poll_looks(struct vb_poll_policy *p, vb_time now)
{
	if (now - p->near_at < vb_span(p->slowdown, VB_NEAR_RECENT) &&
	    now - p->looked_at < vb_span(p->slowdown, VB_LOOK_AGAIN))
		return false;
	p->looked_at = now;
	return true;
}

/* Account for a poll that began at @from and ends @now. @before: the program's
 * activity until then. PROGRAM_TOOK leaves the streak as it is; PROGRAM_AWAY
 * ends it, because a program that armed a queue sleeps next. @back: the time
 * when the program's last yield after a poll ended; the duration of the yield
 * does not count. True: the program spins, and serves the lanes of peers from
 * now on. */
static inline bool vb_poll_spins(struct vb_poll_policy *p,
				 enum vb_program before, vb_time from,
				 vb_time back, vb_time now)
{
	vb_time soon = VB_MAX(p->ended_at, back) +
		       vb_span(p->slowdown, VB_POLLS_CLOSE);

	if (VB_LIKELY(before > PROGRAM_TOOK))
		p->streak = from < soon ? p->streak + 1 : 0;
	else if (before == PROGRAM_AWAY)
		p->streak = 0;
	p->ended_at = now;
	return p->streak >= VB_SPINS;
}

/* The last poll has yielded, and the yield lasted @took. @found: this poll,
 * which ends @now, has found something. */
void vb_poll_has_yielded(struct vb_poll_policy *p, bool found, vb_time took,
			 vb_time now);

/* Does a poll that has found nothing yield, where polls do not wait? */
static inline enum vb_poll_next
vb_poll_by_patience(const struct vb_poll_policy *p, vb_time now)
{
	return now > p->found_at + p->patience ? POLL_YIELDS : POLL_RETURNS;
}

/* vb_poll_ends() has answered POLL_WAITS, but a poll cannot wait now: decide
 * whether it yields or returns. From now on polls yield as they do without
 * others on the processor. */
enum vb_poll_next vb_poll_cannot_wait(struct vb_poll_policy *p, vb_time now);

/*
 * Decide at the end of that poll whether it yields. Where more programs spin
 * than there are processors, the peer that is to answer can be waiting for this
 * processor; a program alone on its processor loses nothing by yielding. If a
 * yield was followed by what the program waited for, the next one comes after
 * half the time, otherwise after twice the time. Beside threads that want the
 * processor all the time a poll does not yield, but waits (rule 7 of
 * engine/policy_program.c). @took: how long the last yield lasted.
 */
static inline enum vb_poll_next
vb_poll_ends(struct vb_poll_policy *p, bool found, vb_time took, vb_time now)
{
	if (p->last == POLL_YIELDS)
		vb_poll_has_yielded(p, found, took, now);
	if (found)
		p->found_at = now;
	if (VB_UNLIKELY(now < p->crowded_until))
		p->last = !found && p->in_vain && p->streak ? POLL_WAITS
							    : POLL_RETURNS;
	else
		p->last = vb_poll_by_patience(p, now);
	p->in_vain = !found;
	return p->last;
}

/* A poll found that another thread drains the link, and yielded, since spinning
 * would keep that thread from the processor. The yield lasted @took: does the
 * poll return, or sleep until that thread has finished its batch? */
static inline enum vb_poll_next vb_poll_found_taken(unsigned slowdown,
						    vb_time took)
{
	return took < vb_span(slowdown, VB_ALONE) ? POLL_RETURNS : POLL_SLEEPS;
}

/* The policy's state of a program that waits for a completion event
 * (engine/wait.c). Only one thread at a time uses it. */
struct vb_wait_policy {
	vb_time left_at; /* the time when the last wait ended */
	/* number of times in a row that the program came back soon */
	unsigned prompt;
	/* The number of short sleeps in a row, and the number after which the
	 * thread begins to look for a while before it sleeps. */
	unsigned short_sleeps, wary;
};

void vb_wait_begins(struct vb_wait_policy *w, unsigned slowdown, vb_time now);
/* Record that the program's thread will not sleep in vb_engine_wait(), but in
 * poll(2). */
void vb_wait_is_elsewhere(struct vb_wait_policy *w);
void vb_wait_ends(struct vb_wait_policy *w, vb_time now);
/* Does the program come back so soon that the engine's thread need not serve
 * the lanes meanwhile, and need not tell peers that a message arrived? */
bool vb_wait_is_prompt(const struct vb_wait_policy *w);
/* Shall the thread look for a while before it sleeps? */
bool vb_wait_looks(const struct vb_wait_policy *w);
/* The thread has looked since @since without a result, and its last yield
 * lasted @took: shall it look further? */
bool vb_wait_looks_on(unsigned slowdown, vb_time since, vb_time took,
		      vb_time now);
void vb_wait_looked(struct vb_wait_policy *w, bool found);
void vb_wait_slept(struct vb_wait_policy *w, unsigned slowdown, vb_time took);
/* The caller set the timer of owed rings at the time @set: shall the timer stay
 * as it is? */
bool vb_wait_owes_already(unsigned slowdown, vb_time set, vb_time now);

/* What ended the sleep of a thread that waits for an event: */
enum vb_came {
	CAME_BY_LANE,	/* a message that this thread found on a lane */
	CAME_BY_LINK,	/* a packet that this thread took from the link */
	CAME_BY_OTHERS, /* another thread signalled the event */
	CAME_IN_VAIN	/* a packet that another thread had taken already */
};
/* The next event of a channel came in the way @how. Returns the channel's new
 * score from its old @score. The score says how surely its events come by the
 * link. */
unsigned vb_wait_came(unsigned score, enum vb_came how);
/* Does a thread that waits for events of a channel with @score sleep by the
 * link, and not by the lanes? */
static inline bool vb_wait_by_link(unsigned score)
{
	return score >= VB_BY_LINK_LEAST;
}
/* The thread has taken an event and leaves the link. Returns how long the
 * engine thread does not watch the link meanwhile. */
vb_time vb_wait_is_back_in(const struct vb_wait_policy *w);

/* The policy of lending the link to a channel (engine/lend.c). */
struct vb_lend_policy {
	/* True: the engine thread has left a packet to the program, and the
	 * program has neither been nudged nor slept again since. */
	bool left;
	/* Nothing is lent before @paused_until; @pause is the length of the
	 * last such pause. */
	vb_time pause, paused_until;
	/* The number of times in a row that the program has sent something to a
	 * peer of this host since peers had sent something to it; and how much
	 * it had sent at the last time. */
	unsigned answers;
	uint32_t sent;
};
/* May the link be lent? */
static inline bool vb_lend_may(const struct vb_lend_policy *l, vb_time now)
{
	return now >= l->paused_until;
}
/* The program has come, for a packet or to sleep again. */
void vb_lend_comes(struct vb_lend_policy *l);
/* A packet has woken the engine thread. False: it leaves the packet to the
 * program. True: the program has let packets wait, and loses the link. */
bool vb_lend_neglected(struct vb_lend_policy *l, vb_time now);

/* Messages of peers of this host have woken the program, which has sent @sent
 * requests to them so far. */
void vb_lend_took(struct vb_lend_policy *l, uint32_t sent);
/* Does the program answer such messages, so that peers need not be told at once
 * that these have arrived? */
bool vb_lend_answers(const struct vb_lend_policy *l);

/* The program's thread holds back an event whose completion is not there: what
 * shall it do after @looks looks since @since without a result? */
enum vb_held_event { HELD_YIELDS, HELD_NAPS, HELD_GIVES_UP };
enum vb_held_event vb_wait_holds(unsigned looks, vb_time since, vb_time now);

/* State of a poll that looks for the answer to an iWARP WRITE
 * (engine/poll_hint.c); the queue pair keeps it. Bytes arrived @now after bytes
 * were sent at @sent, and the last @answers answers came soon. Returns how many
 * in a row have come soon now; 0: this one came late. */
unsigned vb_answer_counts(unsigned slowdown, vb_time sent, vb_time now,
			  unsigned answers);
/* The last @answers answers came soon, and @wary are required: shall a poll
 * look for the next one? */
bool vb_answer_is_worth(unsigned answers, unsigned wary);
/* A poll has looked since @since: shall it look further? */
bool vb_answer_looks_on(unsigned slowdown, vb_time since, vb_time now);
/* A poll has looked since @since: shall it yield after each look? */
bool vb_answer_yields(unsigned slowdown, vb_time since, vb_time now);
/* Returns how many soon answers in a row a poll requires before it looks again;
 * after a look without a result (@found false), more of them. */
unsigned vb_answer_wary(unsigned wary, bool found);

/* The activities of the engine's thread. */
enum vb_thread {
	THREAD_WATCHES, /* sleeps until a packet socket is readable */
	THREAD_NAPS,	/* leaves packets to a program for 20 us */
	/* leaves packets to a program for up to 1 ms, or until it arms a CQ */
	THREAD_RESTS,
	THREAD_LINGERS, /* has served packets and looks for more */
	/* looks at lanes all the time, and at sockets now and then */
	THREAD_STANDS_BY
};

/* The result of draining the sockets. BUSY: another thread drains them. */
enum vb_drained { DRAINED_NOTHING, DRAINED_SOME, DRAINED_BUSY };

struct vb_thread_policy {
	unsigned slowdown;
	enum vb_thread does;
	/* The thread leaves packets to a program from @left_at to @left_until,
	 * also while it stands by. @left_until 0: it does not leave them. */
	vb_time left_at, left_until;
	/* The number of needless wake-ups in a row, and the number after which
	 * the thread rests. */
	unsigned needless, rest_after;
	/* How often it was right to leave packets to a program (rule 3 of
	 * engine/policy_thread.c). */
	unsigned trust;
	/* Plus 1 when packets came just after the thread had gone to sleep,
	 * minus 1 when the thread lingered without a result. */
	unsigned eager;
	vb_time began_at,
		/* while lingering or standing by: its beginning, and the last
		 * find */
		found_at;
	/* The thread does not linger before @crowded_until; @crowd is the
	 * length of the last such pause. */
	vb_time crowd, crowded_until;
	/* The thread does not stand by before @paused_until; @pause is the
	 * length of the last such pause. */
	vb_time pause, paused_until;
	/* how long the thread last left the lanes to a program */
	vb_time lanes_left;
	/* true: a wake-up of the thread costs the sender, too (rule 12) */
	bool dear;
	/* Others keep the program from its processor (rule 13). */
	bool busy;
	/* how many polls had waited when @busy_until was set last */
	unsigned waits;
	vb_time busy_until;
	/* The thread does not rest early before @early_at; @early is the length
	 * of the last such pause. */
	vb_time early, early_at;
};

void vb_thread_init(struct vb_thread_policy *t, unsigned slowdown);

/* Does the thread watch the packet sockets? False: it leaves them to a program,
 * and they do not wake it. */
static inline bool vb_thread_watches(const struct vb_thread_policy *t)
{
	return t->left_until == 0;
}

/* A socket is readable. True: the caller drains the sockets and then calls
 * vb_thread_drained(). False: the thread leaves the packets to a program. */
bool vb_thread_on_packets(struct vb_thread_policy *t, uint64_t program,
			  vb_time now);
/* The time @left_until has come. True: the caller drains the sockets and then
 * calls vb_thread_drained(). */
bool vb_thread_on_time(struct vb_thread_policy *t, uint64_t program,
		       vb_time now);
/* The thread has drained the sockets, as the policy demanded, and found @got.
 * It lingers now if @t->does is THREAD_LINGERS. */
void vb_thread_drained(struct vb_thread_policy *t, enum vb_drained got,
		       uint64_t program, vb_time now);
/* The thread lingers, and its yield lasted @took. True: it drains the sockets.
 * False: it stops lingering. */
bool vb_thread_yielded(struct vb_thread_policy *t, vb_time took, vb_time now);
/* The program's polls have waited @waits times so far. */
void vb_thread_sees_waits(struct vb_thread_policy *t, unsigned waits,
			  vb_time now);
/* A program is about to sleep and ends the thread's rest. */
void vb_thread_called_back(struct vb_thread_policy *t);
/* The kernel put the thread to sleep @times times within one ppoll(). */
void vb_thread_slept(struct vb_thread_policy *t, long times);
/* The thread slept from @then until packets woke it, at @now. */
void vb_thread_woke(struct vb_thread_policy *t, vb_time then, vb_time now);
/* Call this before each sleep: the thread rests if too many wake-ups were
 * needless. */
void vb_thread_will_sleep(struct vb_thread_policy *t, uint64_t program,
			  vb_time now);

/* Does the program poll now and then, while the thread looks within a
 * millisecond whether it still does? Then ACKs may wait for replies, and timers
 * for polls. */
bool vb_thread_is_attentive(const struct vb_thread_policy *t, uint64_t program,
			    vb_time now);
/* Returns the latest end of the thread's sleep, if the first timer is due at
 * @due. */
vb_time vb_thread_sleeps(const struct vb_thread_policy *t, uint64_t program,
			 bool attentive, vb_time due, vb_time now);
/* Another thread drains the link and may leave an ACK delayed. Returns the time
 * when this thread looks again. */
vb_time vb_thread_soon(const struct vb_thread_policy *t, vb_time now);
/* An ACK has waited for a reply since @since: shall the thread send it now? */
bool vb_thread_sends_ack(const struct vb_thread_policy *t, vb_time since,
			 vb_time now);

/* The thread that serves the lanes of peers of this host while the engine's
 * thread sleeps. */
enum vb_lanes {
	/* a program that polls all the time; peers need not ring */
	LANES_PROGRAM,
	/* the engine's thread, which stands by and does not sleep */
	LANES_THREAD,
	LANES_WAITER, /* a thread that waits in ibv_get_cq_event */
	LANES_RING    /* no thread, so peers ring */
};
/* Returns which thread serves the lanes while the engine's thread sleeps.
 * @waiter: a thread in ibv_get_cq_event serves the lanes. *@until: the latest
 * end of the thread's sleep, which this function can make earlier. If it
 * returns LANES_WAITER or LANES_RING, the program no longer spins, and the
 * caller publishes that. */
enum vb_lanes vb_thread_lanes(struct vb_thread_policy *t, uint64_t program,
			      bool waiter, vb_time *until, vb_time now);
/* A peer asked the thread to stand by. @served: another thread serves the
 * lanes. True: the thread stands by from now on. */
bool vb_thread_stands_by(struct vb_thread_policy *t, bool served, vb_time now);
/* A turn of standing by begins. The caller asks vb_thread_looks_on() after each
 * look at the lanes: shall the thread look further? */
void vb_thread_turn_begins(struct vb_thread_policy *t, vb_time now);
bool vb_thread_looks_on(const struct vb_thread_policy *t, bool served,
			vb_time now);
/* The turn is over and has @found something or not; the yield after it lasted
 * @took. False: the thread no longer stands by. */
bool vb_thread_turn_ends(struct vb_thread_policy *t, bool found, bool served,
			 vb_time took, vb_time now);

#endif
