/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who looks for work, and when: the rules by which the engine's thread watches
 * the packet sockets, naps, rests, lingers and stands by, and by which a
 * program's poll looks at the link, yields, sleeps and steps timers. Pure state
 * machines: time, counts and the other side's state are arguments. Nothing here
 * reads a clock, takes a lock, touches a descriptor or shares memory; callers
 * (engine/service.c, engine/poll.c, engine/wait.c, engine/poll_hint.c,
 * engine/drive.c) do what is answered. docs/ENGINE.md tells the rules as a
 * story.
 *
 * A new rule (for programs that sleep in epoll, say) is a state of one of the
 * two enums, a row of the table, and a case in engine/policy_thread.c or
 * engine/policy_program.c.
 */
#ifndef ENGINE_POLICY_H
#define ENGINE_POLICY_H

#include <stdbool.h>

#include "base/defs.h"

/*
 * The table: every time and count of the rules, and what the rule gained when
 * it was measured: in docs/PERFORMANCE.md ("How threads wait" and the tables),
 * or in the commit that made the rule. "With its group" says that no figure is
 * known for this row alone. Times are for a processor of usual speed; vb_span()
 * scales them, except where the row says "as it is". A row that gains less than
 * a tenth on every machine goes.
 */

/* Packets that the thread leaves to a program that polls. Where the thread woke
 * for each packet, with both programs on one processor, ib_send_lat over iWARP
 * took 15.0 to 22.4 us in the mean, and 9.2 to 10.3 with these rules; it was
 * woken 13,000 times a second. To rest beside each program that spins, whether
 * it polls or not, was tried: READs took 3.1 ms for 0.14. So were naps that fit
 * the thread's own lateness: SEND in a guest 120, 74, 72 us for 38, 40, 65. */
#define VB_NAP	       (20 * VB_USEC) /* with its group */
#define VB_REST_MIN    (50 * VB_USEC) /* with its group */
#define VB_REST_MAX    (1 * VB_MSEC)  /* with its group */
#define VB_REST_AFTER  8	      /* with its group */
#define VB_REST_SELDOM 64	      /* with its group */
#define VB_TRUST_MOST  8	      /* with its group */
#define VB_TRUST_LOST  4	      /* with its group */
/* A program that found something is at work on it: with 5 us in place of 50 the
 * thread was awake for nearly every packet, and took every second batch of
 * bulk. */
#define VB_POLL_RECENT (50 * VB_USEC)
/* A program that found nothing polls again: in a guest, where a hop takes
 * longer than 50 us, the thread woke for each message without this. */
#define VB_LOOP_LASTS (1 * VB_MSEC)
/* One call that works: a long send, a batch of packets. */
#define VB_WORK_LASTS (500 * VB_USEC) /* with its group */

/* Timers and delayed ACKs that the thread leaves to polls. In the interpreted
 * guest WRITE took 109, 127, 330, 180 us without and 59, 70, 102, 159 with it;
 * EPYC, 64-byte WRITEs: 2.31, 2.21, 2.29 M/s and 2.46, 2.44, 2.40. To wake the
 * thread for deadlines within TIMER_SOON made 9.5 M/s of 8-byte WRITEs of 10.6.
 * A READ of 1 GiB kept one poll busy until it was done without DUE_A_POLL. */
#define VB_TIMER_SOON (200 * VB_USEC) /* as it is */
#define VB_DUE_A_POLL 4

/* Lingering: ib_read_lat between two hosts 9.2 to 11.3 us, and 20 without. */
#define VB_LINGER      (30 * VB_USEC)
#define VB_LINGER_TURN (200 * VB_USEC) /* with its group */
#define VB_EAGER_MOST  8	       /* with its group */
/* A yield takes less than ALONE where no other thread wants the processor, and
 * less than CROWDED where an interrupt came: with ALONE for both, ib_read_lat
 * took 20 us for 10. */
#define VB_ALONE   (3 * VB_USEC)
#define VB_CROWDED (100 * VB_USEC)
/* No lingering beside one that spins: riostream 53 to 71 us, 641 without. */
#define VB_CROWD_MIN (10 * VB_MSEC)  /* as it is */
#define VB_CROWD_MAX (640 * VB_MSEC) /* as it is */
/* Batches that the thread takes before timers have their turn. A flood of
 * packets kept all timers waiting without it. */
#define VB_DRAIN_BATCHES 16

/* Standing by for peers' streams of small WRITEs: the way through the kernel to
 * the target's page takes 170 ns a WRITE (Xeon), a whole message here 95. Looks
 * go without a look at the clock between them, which takes 20 to 40 ns. */
#define VB_STAND_TURN  (100 * VB_USEC) /* with its group */
#define VB_STAND_LOOKS 16
#define VB_PAUSE_MIN   (4 * VB_MSEC)  /* as it is; with its group */
#define VB_PAUSE_MAX   (1 * VB_SEC)   /* as it is; with its group */
#define VB_PAUSE_RARE  (20 * VB_MSEC) /* as it is; with its group */

/* A program's poll that finds nothing yields after a while. Two programs of one
 * processor answered each other every 30 us without SPIN_LEAST. */
#define VB_SPIN_LEAST (2 * VB_USEC)
#define VB_SPIN_MOST  (30 * VB_USEC) /* with its group */
/* The link is looked at less while peers of this host send: ib_send_lat on one
 * host, the fastest of each run 0.47 us in the median, 0.53 without. */
#define VB_NEAR_RECENT (100 * VB_USEC) /* with its group */
#define VB_LOOK_AGAIN  (4 * VB_USEC)
/* So many polls so close together: the program spins, and peers need not ring.
 * A ring costs its sender a system call, and the thread a wake-up of 5 us and
 * more, beside a message of 0.53. */
#define VB_POLLS_CLOSE (20 * VB_USEC) /* with its group */
#define VB_SPINS       32	      /* with its group */

/* A program that waits for a completion event (engine/wait.c). Peers are owed
 * rings by one that is prompt: ib_send_lat -e on one host 2.23 us, 2.50
 * without. To set the timer of owed rings is a system call. */
#define VB_PROMPT      (50 * VB_USEC) /* with its group */
#define VB_PROMPT_MANY 8
#define VB_OWED_LASTS  (2 * VB_MSEC)   /* as it is; with its group */
#define VB_OWED_AGAIN  (500 * VB_USEC) /* with its group */
/* A look before a sleep: ib_send_lat -e on one host 1.17, 1.26, 1.17 us for
 * 23.1, 21.2, 23.1. WARY: short sleeps, or answers, before the first look. */
#define VB_SLEEP_SHORT (100 * VB_USEC)
#define VB_LOOK_LASTS  (30 * VB_USEC)
#define VB_LOOKS       64  /* between two yields; with its group */
#define VB_WARY_LEAST  4   /* with its group */
#define VB_WARY_MOST   256 /* with its group */
/* An event whose completion a poll has taken is held back. No gain in time, but
 * ibv_rc_pingpong -e -t takes an empty queue for an error. All as they are. */
#define VB_EARLY_MOST	(100 * VB_MSEC)
#define VB_EARLY_LOOKS	50
#define VB_EARLY_SLEEP	(50 * VB_USEC)
#define VB_EARLY_SPARED 64

/* A poll looks for an iWARP answer first: ib_write_lat 8 us, 60 to 67 without.
 * SOON covers the wake-ups of both engines' threads, ours and the peer's; a poll
 * that has looked for SPIN yields at each further look. */
#define VB_ANSWER_SOON (200 * VB_USEC)
#define VB_ANSWER_SPIN (30 * VB_USEC) /* with its group */

/* @t on a machine that is @pace times slower than usual: where everything takes
 * longer, so do "recent", "soon" and "close". */
static inline vb_time vb_span(unsigned pace, vb_time t)
{
	return t * pace;
}

/*
 * The program, as the engine's thread sees it: one word that polls publish,
 * with what the program does and since when. The time may lie ahead: the
 * program is inside a call that will last (vb_program_at_work()). It is a hint:
 * a stale word costs time and never correctness.
 */
enum vb_program {
	PROGRAM_AWAY, /* never polled, or about to sleep: it armed a queue */
	/* Its last poll found something on a lane and returned at once; the
	 * next one notes it. ib_send_lat on one host 0.36 us, 0.50 without. */
	PROGRAM_TOOK,
	PROGRAM_WORKS, /* its last poll found something, which it works on */
	PROGRAM_LOOPS, /* its last poll found nothing: it polls again */
	PROGRAM_AWAITS /* a poll of it sleeps until the receive lock is free */
};
/* Beside that: the program polls all the time, and so serves the lanes of peers
 * of this host, whatever its last poll found. */
#define VB_PROGRAM_SPINS ((uint64_t)8)
#define VB_PROGRAM_STATE ((uint64_t)7)
#define VB_PROGRAM_BITS	 ((uint64_t)15) /* the rest is the time */

static inline uint64_t vb_program_word(vb_time at, enum vb_program does,
				       uint64_t spins)
{
	return (at & ~VB_PROGRAM_BITS) | does | (spins & VB_PROGRAM_SPINS);
}

/* The same word with another time. */
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

/* Its last poll found nothing, or one waits for the lock: it will poll again.
 */
static inline bool vb_program_loops(uint64_t word)
{
	return vb_program_does(word) >= PROGRAM_LOOPS;
}

/* It polled, or was at work, less than @span before @now. */
static inline bool vb_program_polled(uint64_t word, vb_time span, vb_time now)
{
	return vb_program_at(word) + span > now;
}

/* Does the thread leave a timer that is due @at to the program's polls?
 * @attentive: the thread looks within a millisecond whether they go on. Work
 * that is due at once is left only to a program that polled in vain lately. */
static inline bool vb_program_gets_timer(uint64_t word, bool attentive,
					 vb_time at, vb_time now)
{
	if (!attentive)
		return false;
	return at > now + 1 || (vb_program_loops(word) &&
				vb_program_polled(word, VB_TIMER_SOON, now));
}

/* What a poll does next. */
enum vb_poll_next { POLL_RETURNS, POLL_YIELDS, POLL_SLEEPS };

/* A program's polls. With the receive lock. */
struct vb_poll_policy {
	unsigned pace;
	enum vb_poll_next last; /* what the last poll did when it ended */
	unsigned streak;	/* polls in a row, each soon after the last */
	vb_time found_at;	/* when a poll last found something */
	vb_time patience;	/* how long polls find nothing before a yield */
	vb_time ended_at;	/* when the last poll ended */
	vb_time near_at;   /* when a peer of this host last sent something */
	vb_time looked_at; /* when a poll last looked at the link */
};

void vb_poll_init(struct vb_poll_policy *p, unsigned pace);

/* Something came from a peer of this host, or by a stream. */
static inline void vb_poll_near(struct vb_poll_policy *p, vb_time now)
{
	p->near_at = now;
}

/* True: look at the link now; counts as a look. While peers of this host send,
 * the link is looked at less often. */
static inline bool vb_poll_looks(struct vb_poll_policy *p, vb_time now)
{
	if (now - p->near_at < vb_span(p->pace, VB_NEAR_RECENT) &&
	    now - p->looked_at < vb_span(p->pace, VB_LOOK_AGAIN))
		return false;
	p->looked_at = now;
	return true;
}

/* A poll that began at @from ends @now. @before: what the program did until
 * then; a poll that was not noted says nothing of the streak, and one after a
 * queue was armed ends it, because the program sleeps next. @back: when the
 * program's last yield after a poll ended, since that time does not count.
 * True: the program spins, and serves the lanes of peers from now on. */
static inline bool vb_poll_spins(struct vb_poll_policy *p,
				 enum vb_program before, vb_time from,
				 vb_time back, vb_time now)
{
	vb_time soon =
		VB_MAX(p->ended_at, back) + vb_span(p->pace, VB_POLLS_CLOSE);

	if (VB_LIKELY(before > PROGRAM_TOOK))
		p->streak = from < soon ? p->streak + 1 : 0;
	else if (before == PROGRAM_AWAY)
		p->streak = 0;
	p->ended_at = now;
	return p->streak >= VB_SPINS;
}

/*
 * The same poll: does it yield? Where there are more spinning programs than
 * processors, the peer that is to answer may wait for this one; a program alone
 * on its processor loses nothing by yielding. When a yield was followed by what
 * the program waited for, the next one comes after half the time, otherwise
 * after twice the time.
 */
static inline enum vb_poll_next vb_poll_ends(struct vb_poll_policy *p,
					     bool found, vb_time now)
{
	if (p->last == POLL_YIELDS)
		p->patience = found ? VB_MAX(p->patience / 2,
					     vb_span(p->pace, VB_SPIN_LEAST))
				    : VB_MIN(p->patience * 2,
					     vb_span(p->pace, VB_SPIN_MOST));
	if (found)
		p->found_at = now;
	p->last = now > p->found_at + p->patience ? POLL_YIELDS : POLL_RETURNS;
	return p->last;
}

/* A poll found that another thread drains the link, and yielded, since spinning
 * would keep that thread from the processor. The yield @took so long: does the
 * poll return, or sleep until that thread has done its batch? */
static inline enum vb_poll_next vb_poll_found_taken(unsigned pace, vb_time took)
{
	return took < vb_span(pace, VB_ALONE) ? POLL_RETURNS : POLL_SLEEPS;
}

/* A program that waits for a completion event (engine/wait.c). One thread at a
 * time. */
struct vb_wait_policy {
	vb_time left_at; /* when the last wait ended */
	unsigned prompt; /* how often in a row the program was soon back */
	/* How many sleeps in a row were short, and how many the thread wants to
	 * see before it looks before it sleeps. */
	unsigned short_sleeps, wary;
};

void vb_wait_begins(struct vb_wait_policy *w, unsigned pace, vb_time now);
/* The program does not sleep here, but in poll(2). */
void vb_wait_is_elsewhere(struct vb_wait_policy *w);
void vb_wait_ends(struct vb_wait_policy *w, vb_time now);
/* The program comes back so soon that the engine's thread need not take the
 * lanes meanwhile, nor peers be told that a message arrived. */
bool vb_wait_is_prompt(const struct vb_wait_policy *w);
/* True: look for a while before sleeping. */
bool vb_wait_looks(const struct vb_wait_policy *w);
/* After a yield that @took so long, and a look in vain: look on? */
bool vb_wait_looks_on(unsigned pace, vb_time since, vb_time took, vb_time now);
void vb_wait_looked(struct vb_wait_policy *w, bool found);
void vb_wait_slept(struct vb_wait_policy *w, unsigned pace, vb_time took);
/* The timer of owed rings was set at @set: leave it so? */
bool vb_wait_owes_already(unsigned pace, vb_time set, vb_time now);

/* An event whose completion is not there is held back for a while: what does
 * the program's thread do after @looks in vain, and so long? */
enum vb_held_event { HELD_YIELDS, HELD_NAPS, HELD_GIVES_UP };
enum vb_held_event vb_wait_holds(unsigned looks, vb_time since, vb_time now);

/* A poll that looks for the answer to an iWARP WRITE (engine/poll_hint.c). All
 * is kept with the queue pair, so these have no state. What arrived @now is the
 * @answers-th that came soon after what was sent at @sent. 0: it came late. */
unsigned vb_answer_counts(unsigned pace, vb_time sent, vb_time now,
			  unsigned answers);
/* So many answers in a row came soon: may a poll look for the next one? */
bool vb_answer_is_worth(unsigned answers, unsigned wary);
/* A poll looks since @since: look on? And does each look yield? */
bool vb_answer_looks_on(unsigned pace, vb_time since, vb_time now);
bool vb_answer_yields(unsigned pace, vb_time since, vb_time now);
/* How many answers are wanted now: more after a look in vain. */
unsigned vb_answer_wary(unsigned wary, bool found);

/* What the engine's thread does. */
enum vb_thread {
	THREAD_WATCHES,	 /* sleeps by the packet sockets */
	THREAD_NAPS,	 /* left packets to the program; looks at once */
	THREAD_RESTS,	 /* the same for longer; called back by who arms */
	THREAD_LINGERS,	 /* has served packets; looks for the next */
	THREAD_STANDS_BY /* looks at lanes all the time, and at sockets */
};

/* What it found at the sockets. */
enum vb_drained { DRAINED_NOTHING, DRAINED_SOME, DRAINED_BUSY };

struct vb_thread_policy {
	unsigned pace;
	enum vb_thread does;
	/* Packets are left to a program from when until when; 0: they are not.
	 * Also while the thread stands by. */
	vb_time left_at, left_until;
	/* Wake-ups in a row that were not needed, and how many of them send
	 * the thread to rest. */
	unsigned needless, rest_after;
	/* How often in a row it was right to leave packets to a program. */
	unsigned trust;
	/* How often packets came just after the thread had gone to sleep. */
	unsigned eager;
	vb_time began_at,
		found_at; /* lingering, standing by: since, last find */
	/* The thread does not linger before @crowded_until; @crowd is how long
	 * the last such pause was. */
	vb_time crowd, crowded_until;
	/* The same of standing by. */
	vb_time pause, paused_until;
	vb_time lanes_left; /* how long the lanes were left to a program */
};

void vb_thread_init(struct vb_thread_policy *t, unsigned pace);

/* False: the packet sockets are left to a program, and do not wake the
 * thread. */
static inline bool vb_thread_watches(const struct vb_thread_policy *t)
{
	return t->left_until == 0;
}

/* A socket is readable. True: drain it, and then say what that found; false:
 * the packets are left to the program. */
bool vb_thread_on_packets(struct vb_thread_policy *t, uint64_t program,
			  vb_time now);
/* @left_until has come. True: drain the sockets. */
bool vb_thread_on_time(struct vb_thread_policy *t, uint64_t program,
		       vb_time now);
/* The thread has drained the sockets as it was told to. It lingers now if @does
 * says so. */
void vb_thread_drained(struct vb_thread_policy *t, enum vb_drained got,
		       uint64_t program, vb_time now);
/* While it lingers: a yield @took so long. True: drain the sockets. */
bool vb_thread_yielded(struct vb_thread_policy *t, vb_time took, vb_time now);
/* A program is about to sleep and ends the rest. */
void vb_thread_called_back(struct vb_thread_policy *t);
/* During one sleep the kernel put the thread to sleep so many times. */
void vb_thread_slept(struct vb_thread_policy *t, long times);
/* Packets ended a sleep that began at @then. */
void vb_thread_woke(struct vb_thread_policy *t, vb_time then, vb_time now);
/* Before each sleep: rest if too many wake-ups were needless. */
void vb_thread_will_sleep(struct vb_thread_policy *t, uint64_t program,
			  vb_time now);

/* The program polls now and then, and the thread looks within a millisecond
 * whether it still does: ACKs may wait for replies, and timers for polls. */
bool vb_thread_is_attentive(const struct vb_thread_policy *t, uint64_t program,
			    vb_time now);
/* Until when the thread sleeps when the first timer is due at @due, at most. */
vb_time vb_thread_sleeps(const struct vb_thread_policy *t, uint64_t program,
			 bool attentive, vb_time due, vb_time now);
/* When to look again after another thread had the delayed ACKs in hand. */
vb_time vb_thread_soon(const struct vb_thread_policy *t, vb_time now);
/* An ACK has waited for a reply since @since: send it now? */
bool vb_thread_sends_ack(const struct vb_thread_policy *t, vb_time since,
			 vb_time now);

/* Who serves the lanes of peers of this host while the thread sleeps. */
enum vb_lanes {
	LANES_PROGRAM, /* one that spins; peers need not ring */
	LANES_THREAD,  /* the thread stands by; it does not sleep */
	LANES_WAITER,  /* a thread in ibv_get_cq_event */
	LANES_RING     /* nobody: peers ring */
};
/* @waiter: a thread in ibv_get_cq_event serves the lanes. *@until: until when
 * to sleep, at most; lowered here. Unless this answers LANES_PROGRAM or
 * LANES_THREAD, the program spins no more, and the caller publishes that. */
enum vb_lanes vb_thread_lanes(struct vb_thread_policy *t, uint64_t program,
			      bool waiter, vb_time *until, vb_time now);
/* A peer asked the thread to stand by, and no other thread serves the lanes
 * (@served: one does). True: it stands by now. */
bool vb_thread_stands_by(struct vb_thread_policy *t, bool served, vb_time now);
/* A turn of standing by begins; another look is over: look on? */
void vb_thread_turn_begins(struct vb_thread_policy *t, vb_time now);
bool vb_thread_looks_on(const struct vb_thread_policy *t, bool served,
			vb_time now);
/* The turn is over, and the yield after it @took so long. False: the thread
 * stands by no more. */
bool vb_thread_turn_ends(struct vb_thread_policy *t, bool found, bool served,
			 vb_time took, vb_time now);

#endif
