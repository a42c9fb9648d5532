/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine's thread stands by for small messages of peers of this host.
 *
 * A peer that streams small messages asks for this: without it each message
 * takes the peer's way through the kernel to our pages (near/here.c). While
 * the thread stands by, it looks at the lanes all the time, in turns of 100
 * us.
 *
 * 1. Begin when a peer has asked, something has just woken the thread, no
 *    program of this process serves the lanes, and no pause (rule 3) is on.
 * 2. Go on as long as each turn finds something and no program serves the
 *    lanes: a program that polls serves them itself.
 * 3. Stop when another thread wants this processor: at the end of each turn
 *    the thread yields, and a yield of 100 us or more ran a thread that has
 *    work, and not only an interrupt. Then pause for 4 ms; for twice as long,
 *    up to 1 s, when the last pause ended less than 20 ms ago.
 */
#include "engine/service_priv.h"

#include <sched.h>

#define ATTEND_TURN  (100 * VB_USEC)
#define ATTEND_LOOKS 16
#define AWAY	     (4 * VB_MSEC)
#define AWAY_MOST    (1 * VB_SEC)
#define IS_RARE	     (20 * VB_MSEC)

/* Rule 3 above: yield the processor. False: another thread had work for it. */
static bool give_way(const struct vb_service *s)
{
	vb_time then = vb_now();

	sched_yield();
	return vb_now() - then < vb_engine_span(s->e, ATTEND_TURN);
}

static void eng_stay_away(struct vb_service *s, vb_time now)
{
	s->away = now > s->away_until + IS_RARE
			  ? AWAY
			  : VB_MIN(2 * s->away, AWAY_MOST);
	s->away_until = now + s->away;
}

static bool others_serve(struct vb_engine *e)
{
	return atomic_load(&e->spinning) || vb_wait_attends(e);
}

/* One turn of looking at the lanes. False: the thread stops standing by. */
static bool attend_turn(struct vb_service *s)
{
	vb_time start = vb_now(), now = start;
	bool found = false;

	do {
		for (unsigned i = 0; i < ATTEND_LOOKS; i++)
			found |= vb_near_poll(s->e->near, now);
		now = vb_now();
	} while (now - start < vb_engine_span(s->e, ATTEND_TURN) &&
		 !others_serve(s->e));
	if (!give_way(s)) {
		eng_stay_away(s, now);
		return false;
	}
	return found && !others_serve(s->e);
}

void vb_service_attend(struct vb_service *s, bool woken, vb_time now)
{
	struct vb_near *n = s->e->near;

	if (!s->attends && (!woken || !vb_near_is_wanted(n) ||
			    now < s->away_until || others_serve(s->e)))
		return;
	if (!s->attends)
		vb_near_stand_by(n, true);
	s->attends = attend_turn(s);
	if (!s->attends)
		vb_near_stand_by(n, false);
}
