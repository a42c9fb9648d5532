/* SPDX-License-Identifier: BSD-2-Clause */
/* A send window for transports without acknowledgements. */
#include "ib/pace.h"

#include "core/types.h"

/* One sender may fill half of the smallest usual socket buffer, by the kernel's
 * accounting; all senders to one peer together may fill twice that buffer. */
#define WINDOW_BYTES (128 * 1024)
#define SHARED_BYTES (512 * 1024)
#define WINDOW_MIN   8
#define WINDOW_MAX   256
#define ASK_PARTS    4 /* number of AckReq questions for each window */

/* How long a sender waits for an answer. On a busy host a Verbena peer may get
 * a processor late, and cannot answer before. For a peer that has never
 * answered the sender waits at most SILENCES times, 0.1 s in all. */
#define PATIENCE       (1 * VB_MSEC)
#define PATIENCE_MAX   (16 * VB_MSEC)
#define PATIENCE_KNOWN (50 * VB_MSEC)
#define SILENCES       10

static uint32_t ib_pace_in_flight(const struct vb_pace *p)
{
	return (p->next - p->heard) & VB_PSN_MASK;
}

static bool has_given_up(const struct vb_pace *p)
{
	return p->silences >= SILENCES;
}

static vb_time ib_pace_patience(const struct vb_pace *p)
{
	if (p->known)
		return PATIENCE_KNOWN;
	return VB_MIN(PATIENCE << p->silences / 2, PATIENCE_MAX);
}

void vb_pace_init(struct vb_pace *p, uint32_t psn, uint32_t mtu,
		  uint32_t sharers)
{
	uint32_t bytes =
		VB_MIN(WINDOW_BYTES, SHARED_BYTES / VB_MAX(sharers, 1));
	uint32_t pkts = bytes / mtu;

	*p = (struct vb_pace){
		.next = psn & VB_PSN_MASK,
		.heard = psn & VB_PSN_MASK,
		.window = VB_MAX(VB_MIN(pkts, WINDOW_MAX), WINDOW_MIN),
	};
}

/* Stop waiting for the packets in flight, and count one more question without
 * an answer. */
static void ib_pace_give_up(struct vb_pace *p)
{
	p->heard = p->next;
	if (has_given_up(p))
		return;
	p->silences++;
	p->known &= !has_given_up(p);
}

/* A slow sender never waits: before its packets fill the window, vb_pace_sent()
 * drops them from the window because of their age. */
bool vb_pace_may_send(struct vb_pace *p, vb_time now)
{
	bool full = ib_pace_in_flight(p) >= p->window;

	if (full &&
	    (has_given_up(p) || now - p->since >= ib_pace_patience(p))) {
		ib_pace_give_up(p);
		full = false;
	}
	p->held = full;
	return !full;
}

bool vb_pace_asks(const struct vb_pace *p)
{
	uint32_t every = p->window / ASK_PARTS;

	/* After this side has stopped waiting for answers, ask rarely: a
	 * Verbena may get the peer's address later, and would answer. */
	return p->unasked + 1 >= (has_given_up(p) ? 16 * every : every);
}

void vb_pace_sent(struct vb_pace *p, vb_time now)
{
	bool old = now - p->since >= ib_pace_patience(p);

	if (ib_pace_in_flight(p) == 0 ||
	    (old && ib_pace_in_flight(p) < p->window)) {
		p->heard = p->next;
		p->since = now;
	}
	p->unasked = vb_pace_asks(p) ? 0 : p->unasked + 1;
	p->next = vb_psn_add(p->next, 1);
}

void vb_pace_heard(struct vb_pace *p, uint32_t psn, vb_time now)
{
	uint32_t to = vb_psn_add(psn, 1);

	p->silences = 0;
	p->known = true;
	/* The sender no longer waits for this packet, because it has given
	 * up. */
	if (vb_psn_diff(to, p->heard) <= 0 || vb_psn_diff(to, p->next) > 0)
		return;
	p->heard = to;
	p->since = now;
}

vb_time vb_pace_deadline(const struct vb_pace *p)
{
	return p->held ? p->since + ib_pace_patience(p) : VB_NEVER;
}
