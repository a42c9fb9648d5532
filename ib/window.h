/* SPDX-License-Identifier: BSD-2-Clause */
/* Congestion control of a requester: how much it keeps in flight, and how long
 * it waits before it probes. The specification fixes only the acknowledgement
 * timeout; the rest is a local decision that peers cannot see except as timing.
 */
#ifndef IB_WINDOW_H
#define IB_WINDOW_H

#include "wire/ib_hdr.h"

struct vb_window {
	uint32_t pkts;	    /* packets that may be in flight */
	uint32_t start;	    /* initial value of pkts */
	uint32_t max;	    /* upper bound of pkts */
	uint32_t threshold; /* below it pkts doubles each round trip */
	/* acknowledged since pkts last grew, above threshold */
	uint32_t credit;
	bool limited;	  /* the window has stopped the requester since then */
	bool recovering;  /* pkts was reduced for a loss before `recover` */
	uint32_t recover; /* a PSN */
	/* Until the peer has acknowledged so many more packets, this side
	 * assumes that the path loses packets without congestion. */
	uint32_t lossy;
	bool timing; /* @rtt_psn, sent once at @rtt_at, has no ACK yet */
	uint32_t rtt_psn;
	vb_time rtt_at;
	vb_time srtt;	  /* smoothed round trip time, ns; 0: unknown */
	vb_time best_rtt; /* the shortest recent round trip, ns */
};

/* The window of a new connection with packets of @mtu bytes. @in_flight: of
 * struct vb_link_ops. */
void vb_window_init(struct vb_window *w, uint32_t mtu, uint32_t in_flight);
/* The requester sends @psn for the first time, with AckReq: time its round
 * trip. This and others are inline, since each packet sent calls them. */
static inline void vb_window_time(struct vb_window *w, uint32_t psn,
				  vb_time now)
{
	if (w->timing)
		return;
	w->timing = true;
	w->rtt_psn = psn;
	w->rtt_at = now;
}
/* @count more packets are acknowledged, all before @una. */
void vb_window_acked(struct vb_window *w, uint32_t count, uint32_t una,
		     vb_time now);
/* A packet is lost; PSNs before @next had been sent. */
void vb_window_lost(struct vb_window *w, uint32_t next);
/* The same for a peer that repeats selectively: it has said that @count packets
 * are missing. */
void vb_window_lost_some(struct vb_window *w, uint32_t count, uint32_t next);
/* Nothing arrived for a whole timeout. */
void vb_window_collapse(struct vb_window *w, uint32_t next);
/* The requester sends packets again: stop timing, since nobody can tell which
 * copy an ACK is for (Karn's algorithm). */
static inline void vb_window_untime(struct vb_window *w)
{
	w->timing = false;
}
/* Send AckReq after at most this many packets. A receiver may acknowledge only
 * on request, so the requester asks while it may still send half of the window;
 * asked later, it would have to stop and wait. */
#define VB_ACK_EVERY 32u
static inline uint32_t vb_window_ack_every(const struct vb_window *w)
{
	return VB_MAX(VB_MIN(VB_ACK_EVERY, w->pkts / 4), 1u);
}
/* The longest READ to ask for in one request, in packets: long enough to hide
 * the time between requests, short enough that a lost response repeats
 * little. */
#define VB_CHUNK_BYTES (256u << 10)
static inline uint32_t vb_window_chunk(const struct vb_window *w, uint32_t mtu)
{
	return VB_MAX(VB_MIN(VB_CHUNK_BYTES / mtu, w->pkts / 2), 1u);
}
/* Are round trips short, without a queue that grows? Then small messages may
 * wait for the next acknowledgement, and nobody notices the delay. */
bool vb_window_is_near(const struct vb_window *w);

/* On a busy host the peer may wait some ms for its processor; a probe sent too
 * early costs one packet. */
#define VB_PATIENCE_MIN	    (2 * VB_MSEC)
#define VB_PATIENCE_UNKNOWN (10 * VB_MSEC)
#define VB_PATIENCE_RTTS    4
/* Shorter on a path with losses, since the only answer may be lost, too. */
#define VB_PATIENCE_LOSSY   (250 * VB_USEC)
#define VB_LOSSY_RTTS	    2
#define VB_PATIENCE_DOUBLES 10u

/* How long silence is normal, ns, on a path without losses. */
static inline vb_time vb_window_calm(const struct vb_window *w)
{
	if (w->srtt == 0)
		return VB_PATIENCE_UNKNOWN;
	return VB_MAX(VB_PATIENCE_RTTS * w->srtt, VB_PATIENCE_MIN);
}

/* How long silence is normal, ns, after @probes unanswered probes. */
static inline vb_time vb_window_patience(const struct vb_window *w,
					 unsigned probes)
{
	vb_time base = vb_window_calm(w);

	if (w->lossy && w->srtt)
		base = VB_MAX(VB_LOSSY_RTTS * w->srtt, VB_PATIENCE_LOSSY);
	return base << VB_MIN(probes, VB_PATIENCE_DOUBLES);
}

/* How long after the ACK of a probe the requester waits for further ACKs,
 * ns. */
vb_time vb_window_grace(const struct vb_window *w);

#endif
