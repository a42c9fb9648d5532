/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The policy of a program's threads. The part that each poll runs is in
 * engine/policy.h.
 *
 * A program that waits for a completion event:
 *
 * 1. Prompt programs. A program that came back to wait within 50 us, 8 times in
 *    a row, most often has answered in between, which wakes the peer. When such
 *    a program stops waiting, the engine's thread takes the lanes not at once
 *    but in 2 ms, and does not wake the peer just to tell it that a message
 *    arrived. One return after more than 50 us ends this.
 * 2. Look before sleeping. To sleep and to be woken takes 1 to 3 us where the
 *    peer shares the processor, and 10 to 20 us where a virtual machine has to
 *    start an idle one. When 4 sleeps in a row took less than 100 us, the
 *    thread looks for up to 30 us before it sleeps. It yields before each look,
 *    and stops when a yield takes 3 us or more, since another thread wants this
 *    processor. After a look in vain the next one needs twice as many short
 *    sleeps, up to 256; after a successful one half as many.
 * 3. The program's thread holds back an event that comes too early for up to
 *    100 ms (hold_back() in engine/wait.c): it looks 50 times with a yield in
 *    between, then every 50 us. After doing so in vain it holds back none of
 *    the next 64 events.
 * 4. By the link. If a packet wakes the engine's thread, and that thread wakes
 *    the program, one of the two wake-ups is too many. When two events in a row
 *    were signalled by another thread while the thread slept by the lanes, the
 *    next wait sleeps by the link: the packet wakes the thread, which takes it
 *    and finds its event. A message on a lane leads back to the lanes; so do,
 *    each one step, an event that another thread signalled and a packet that
 *    another had taken. While the thread is away with its event, the engine's
 *    thread leaves the link alone, for 200 us, or 2 ms if the program is prompt
 *    (rule 1): to be woken for each packet is what is to be spared.
 *
 * 5. Lend the link. A program that sleeps in poll(2) by a channel's descriptor
 *    is nudged by packets in the same way, from the second event on that the
 *    engine's thread signalled for a packet. The engine's thread then leaves
 *    the link alone for 2 ms after the program was last active. A packet that
 *    comes later wakes both: the engine's thread leaves it to the program for
 *    200 us. If it is there still, the engine's thread takes it, and the link
 *    is not lent for 10 ms, twice as long each time, up to 640 ms.
 *    The lanes of peers of this host are lent in the same way. When the program
 *    has sent something each time that a lane woke it, 8 times in a row, a peer
 *    is told that its message has arrived when the program sends, or in 2 ms;
 *    otherwise before the program sleeps.
 *
 * A poll that looks for the answer to an iWARP WRITE:
 *
 * 6. When the answers of a queue pair reached the engine's thread within 200 us
 *    of what was sent, 4 times in a row, a poll that would only return send
 *    completions looks for the answer first, for up to 200 us; after 30 us it
 *    yields between looks. After a look in vain the next one needs twice as
 *    many answers in a row, up to 256; after a successful one 1 less.
 *
 * A program that polls beside others that want the processor:
 *
 * 7. Wait. A yield gives one of the others a whole time slice, 4 ms and more,
 *    and a thread that spins before it sleeps uses up what Linux owes it. So
 *    when a yield took more than 100 us, and longer than the program has run
 *    since the last such yield, polls do not yield for 100 ms, twice as long
 *    each time, up to 640 ms. Instead a poll sleeps in the kernel until
 *    something arrives; for at most 100 us, since the program may wait for
 *    something else.
 *    Only a program that polls all the time waits so: the poll is the second
 *    one in a row that finds nothing, and begins within 20 us after the first.
 *    A program that sleeps between its polls gives the processor away by that.
 *    The engine's thread leaves link and lanes alone meanwhile, and for 2 ms
 *    after. When the 100 to 640 ms are over, one yield shows whether the others
 *    are still there. Where a poll cannot wait, it yields as elsewhere.
 */
#include "engine/policy.h"

void vb_poll_init(struct vb_poll_policy *p, unsigned slowdown)
{
	p->slowdown = slowdown;
	p->patience = vb_span(slowdown, VB_SPIN_MOST);
}

void vb_poll_has_yielded(struct vb_poll_policy *p, bool found, vb_time took,
			 vb_time now)
{
	vb_time ran; /* time since the last long yield, or since a crowd */

	if (found)
		p->patience = VB_MAX(p->patience / 2,
				     vb_span(p->slowdown, VB_SPIN_LEAST));
	else
		p->patience = VB_MIN(p->patience * 2,
				     vb_span(p->slowdown, VB_SPIN_MOST));
	if (took <= vb_span(p->slowdown, VB_CROWDED)) {
		p->crowd /= 2;
		return;
	}
	/* Another thread of the program may have noted a later time. */
	ran = VB_MAX(p->long_at, p->crowded_until) + took;
	ran = now > ran ? now - ran : 0;
	p->long_at = now;
	if (ran > took)
		return;
	p->crowd = VB_MIN(VB_MAX(2 * p->crowd, VB_CROWDED_MIN), VB_CROWD_MAX);
	p->crowded_until = now + p->crowd;
}

enum vb_poll_next vb_poll_cannot_wait(struct vb_poll_policy *p, vb_time now)
{
	p->crowded_until = 0;
	return p->last = vb_poll_by_patience(p, now);
}

void vb_wait_begins(struct vb_wait_policy *w, unsigned slowdown, vb_time now)
{
	if (now - w->left_at > vb_span(slowdown, VB_PROMPT))
		w->prompt = 0;
	else if (w->prompt < VB_PROMPT_MANY)
		w->prompt++;
}

void vb_wait_is_elsewhere(struct vb_wait_policy *w)
{
	w->prompt = 0;
}

void vb_wait_ends(struct vb_wait_policy *w, vb_time now)
{
	w->left_at = now;
}

bool vb_wait_is_prompt(const struct vb_wait_policy *w)
{
	return w->prompt >= VB_PROMPT_MANY;
}

bool vb_wait_looks(const struct vb_wait_policy *w)
{
	return w->short_sleeps >= VB_MAX(w->wary, VB_WARY_LEAST);
}

bool vb_wait_looks_on(unsigned slowdown, vb_time since, vb_time took,
		      vb_time now)
{
	return took < vb_span(slowdown, VB_ALONE) &&
	       now - since < vb_span(slowdown, VB_LOOK_LASTS);
}

static unsigned twice_as_wary(unsigned wary)
{
	return VB_MIN(VB_MAX(wary, VB_WARY_LEAST) * 2, VB_WARY_MOST);
}

void vb_wait_looked(struct vb_wait_policy *w, bool found)
{
	if (found) {
		w->wary /= 2;
		return;
	}
	w->wary = twice_as_wary(w->wary);
	w->short_sleeps = 0;
}

void vb_wait_slept(struct vb_wait_policy *w, unsigned slowdown, vb_time took)
{
	if (took < vb_span(slowdown, VB_SLEEP_SHORT))
		w->short_sleeps++;
	else
		w->short_sleeps = 0;
}

bool vb_wait_owes_already(unsigned slowdown, vb_time set, vb_time now)
{
	return now - set < vb_span(slowdown, VB_OWED_AGAIN);
}

unsigned vb_wait_came(unsigned score, enum vb_came how)
{
	switch (how) {
	case CAME_BY_LINK:
		return VB_BY_LINK_MOST;
	case CAME_BY_OTHERS:
		if (!vb_wait_by_link(score))
			return score + 1;
		return score - 1;
	case CAME_IN_VAIN:
		return score - (score > 0);
	case CAME_BY_LANE:
		break;
	}
	return 0;
}

vb_time vb_wait_is_back_in(const struct vb_wait_policy *w)
{
	return vb_wait_is_prompt(w) ? VB_OWED_LASTS : VB_BACK_SOON;
}

void vb_lend_comes(struct vb_lend_policy *l)
{
	if (!l->left)
		return;
	l->left = false;
	l->pause /= 2;
}

bool vb_lend_neglected(struct vb_lend_policy *l, vb_time now)
{
	if (!l->left) {
		l->left = true;
		return false;
	}
	l->left = false;
	l->pause = VB_MIN(VB_MAX(2 * l->pause, VB_LEND_PAUSE_MIN),
			  VB_LEND_PAUSE_MAX);
	l->paused_until = now + l->pause;
	return true;
}

void vb_lend_took(struct vb_lend_policy *l, uint32_t sent)
{
	if (sent == l->sent)
		l->answers = 0;
	else if (l->answers < VB_PROMPT_MANY)
		l->answers++;
	l->sent = sent;
}

bool vb_lend_answers(const struct vb_lend_policy *l)
{
	return l->answers >= VB_PROMPT_MANY;
}

enum vb_held_event vb_wait_holds(unsigned looks, vb_time since, vb_time now)
{
	if (now - since > VB_EARLY_MOST)
		return HELD_GIVES_UP;
	return looks < VB_EARLY_LOOKS ? HELD_YIELDS : HELD_NAPS;
}

unsigned vb_answer_counts(unsigned slowdown, vb_time sent, vb_time now,
			  unsigned answers)
{
	return now > sent + vb_span(slowdown, VB_ANSWER_SOON) ? 0 : answers + 1;
}

bool vb_answer_is_worth(unsigned answers, unsigned wary)
{
	return answers >= VB_MAX(wary, VB_WARY_LEAST);
}

bool vb_answer_looks_on(unsigned slowdown, vb_time since, vb_time now)
{
	return now - since < vb_span(slowdown, VB_ANSWER_SOON);
}

bool vb_answer_yields(unsigned slowdown, vb_time since, vb_time now)
{
	return now - since > vb_span(slowdown, VB_ANSWER_SPIN);
}

unsigned vb_answer_wary(unsigned wary, bool found)
{
	if (found)
		return wary - (wary > 0);
	return twice_as_wary(wary);
}
