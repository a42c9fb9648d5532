/* SPDX-License-Identifier: BSD-2-Clause */
/* The congestion window (AIMD), the smoothed round trip time, and those
 * constants of both that only this file needs. */
#include "ib/window.h"

/* Bounds of the window. Packets that the peer has not read yet wait in the
 * buffer of its UDP socket. That buffer has 208 KiB to 4 MiB
 * (net.core.rmem_max) for all queue pairs of the process, and a small packet
 * occupies up to 2 KiB of it. */
#define START_BYTES (128u << 10)
#define MAX_BYTES   (512u << 10)
#define START_PKTS  64u
#define MAX_PKTS    512u
/* most packets in flight on a link whose receivers make senders wait (in_flight
 * in link/link.h) */
#define MORE_PKTS 1024u
/* The smallest window: if one packet is lost, the other reveals the loss. */
#define FLOOR_PKTS 2u

/* While no packets queue on the path, losses are errors of the path and not
 * congestion, so they reduce the window only a little. */
#define EASY_CUT  8 /* a loss reduces the window by 1/EASY_CUT */
#define EASY_STEP 4 /* packets added to the window in each round trip */

/* A queue that overflows loses many packets in a row, at least the rest of a
 * train. Few losses among many packets are errors of the path, and no reason
 * for a window smaller than that of a new connection. */
#define FEW_PART 16 /* losses are few up to 1/FEW_PART of the window */
#define FEW_CUT	 32

/* After a loss of few packets, the window grows in steps of EASY_STEP until
 * this many further packets are acknowledged: the path probably loses single
 * packets, and is not congested. */
#define LOSSY_PKTS 8192u

#define NEAR_RTT (1 * VB_MSEC)

void vb_window_init(struct vb_window *w, uint32_t mtu, uint32_t in_flight)
{
	*w = (struct vb_window){
		.start = VB_MIN(START_BYTES / mtu, START_PKTS),
		.max = in_flight ? VB_MIN(in_flight / mtu, MORE_PKTS)
				 : VB_MIN(MAX_BYTES / mtu, MAX_PKTS),
	};
	w->pkts = w->start;
	w->threshold = w->max;
}

/* Do packets wait in a queue of the path? The round trip time tells. */
static bool is_queueing(const struct vb_window *w)
{
	return w->srtt == 0 || w->srtt > 2 * w->best_rtt;
}

static bool is_easy(const struct vb_window *w)
{
	return w->lossy || !is_queueing(w);
}

static void sample(struct vb_window *w, vb_time rtt)
{
	/* The path may change, so the best round trip time grows slowly. */
	if (w->srtt == 0 || rtt < w->best_rtt)
		w->best_rtt = rtt;
	else
		w->best_rtt += (rtt - w->best_rtt) / 64;
	w->srtt = w->srtt ? w->srtt - w->srtt / 8 + rtt / 8 : rtt;
}

static void ib_grow(struct vb_window *w, uint32_t count)
{
	if (w->pkts < w->threshold) {
		w->pkts = VB_MIN(w->pkts + count, w->max);
		return;
	}
	w->credit += count;
	if (w->credit >= w->pkts) {
		w->credit = 0;
		w->pkts =
			VB_MIN(w->pkts + (is_easy(w) ? EASY_STEP : 1), w->max);
	}
}

void vb_window_acked(struct vb_window *w, uint32_t count, uint32_t una,
		     vb_time now)
{
	if (w->timing && vb_psn_diff(una, w->rtt_psn) > 0) {
		if (now > w->rtt_at)
			sample(w, now - w->rtt_at);
		w->timing = false;
	}
	if (w->recovering && vb_psn_diff(una, w->recover) >= 0)
		w->recovering = false;
	w->lossy -= VB_MIN(w->lossy, count);
	if (!w->limited)
		return; /* the window was not used up, so it does not grow */
	w->limited = false;
	ib_grow(w, count);
}

static void cut_window(struct vb_window *w, uint32_t cut, uint32_t next)
{
	w->threshold = VB_MAX(w->pkts - cut, FLOOR_PKTS);
	w->recovering = true;
	w->recover = next;
	w->credit = 0;
}

void vb_window_lost(struct vb_window *w, uint32_t next)
{
	if (w->recovering)
		return;
	w->lossy = 0;
	/* A loss while no packets queue does not mean that too much is in
	 * flight. */
	cut_window(w, is_queueing(w) ? (w->pkts + 1) / 2 : w->pkts / EASY_CUT,
		   next);
	w->pkts = w->threshold;
}

void vb_window_lost_some(struct vb_window *w, uint32_t count, uint32_t next)
{
	uint32_t spare = w->pkts > w->start ? w->pkts - w->start : 0;

	if (count > VB_MAX(w->pkts / FEW_PART, 1u)) {
		vb_window_lost(w, next);
		return;
	}
	w->lossy = LOSSY_PKTS;
	if (w->recovering)
		return;
	cut_window(w, VB_MIN(w->pkts / FEW_CUT, spare), next);
	w->pkts = w->threshold;
}

void vb_window_collapse(struct vb_window *w, uint32_t next)
{
	cut_window(w, (w->pkts + 1) / 2, next);
	w->pkts = FLOOR_PKTS;
}

vb_time vb_window_grace(const struct vb_window *w)
{
	return vb_window_calm(w) / 16;
}

bool vb_window_is_near(const struct vb_window *w)
{
	return w->srtt && w->best_rtt <= NEAR_RTT;
}
