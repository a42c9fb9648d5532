/* SPDX-License-Identifier: BSD-2-Clause */
/* Congestion control of a requester: how many packets it keeps in flight, and
 * how long it waits before it sends a probe. The specification fixes only the
 * acknowledgement timeout; the rest is a local decision that peers see only as
 * timing. */
#ifndef IB_WINDOW_H
#define IB_WINDOW_H

#include "wire/ib_hdr.h"

struct vb_window {
	uint32_t pkts; /* the window: number of packets that may be in flight */
	uint32_t start; /* the initial value of @pkts */
	uint32_t max;	/* the upper bound of @pkts */
	/* below this value @pkts doubles in each round trip */
	uint32_t threshold;
	/* once @pkts has reached @threshold: the number of packets that were
	 * acknowledged since @pkts last grew */
	uint32_t credit;
	/* the window has stopped the requester since @pkts last grew */
	bool limited;
	/* @pkts was reduced for a loss before the PSN @recover */
	bool recovering;
	uint32_t recover; /* the PSN that ends the recovery from a loss */
	/* Until the peer has acknowledged this many more packets, this side
	 * assumes that the path loses packets without congestion. */
	uint32_t lossy;
	/* the packet @rtt_psn, sent once at time @rtt_at, has no ACK yet */
	bool timing;
	uint32_t rtt_psn;
	vb_time rtt_at;
	vb_time srtt; /* smoothed round trip time in nanoseconds; 0: unknown */
	/* the shortest recent round trip time in nanoseconds */
	vb_time best_rtt;
};

/* Initialize the window of a new connection with packets of @mtu bytes.
 * @in_flight: as in struct vb_link_ops. */
void vb_window_init(struct vb_window *w, uint32_t mtu, uint32_t in_flight);
/* The requester sends the packet @psn for the first time, with AckReq: measure
 * its round trip. This function and others are inline, since each packet sent
 * calls them. */
static inline void vb_window_time(struct vb_window *w, uint32_t psn,
				  vb_time now)
{
	if (w->timing)
		return;
	w->timing = true;
	w->rtt_psn = psn;
	w->rtt_at = now;
}
/* The peer has acknowledged @count more packets, all before @una. */
void vb_window_acked(struct vb_window *w, uint32_t count, uint32_t una,
		     vb_time now);
/* A packet is lost; PSNs before @next had been sent. */
void vb_window_lost(struct vb_window *w, uint32_t next);
/* A peer that repeats selectively has reported that @count packets are missing.
 * Few of them cost little of the window; many count as vb_window_lost(). */
void vb_window_lost_some(struct vb_window *w, uint32_t count, uint32_t next);
/* Nothing arrived for a whole ACK timeout: reduce the window to its minimum. */
void vb_window_collapse(struct vb_window *w, uint32_t next);
/* The requester sends packets again: stop measuring the round trip, since an
 * ACK does not tell which copy it answers (Karn's algorithm). */
static inline void vb_window_untime(struct vb_window *w)
{
	w->timing = false;
}
/* AckReq is set after at most this many packets. A receiver may acknowledge
 * only on request, so the requester asks while it may still send half of the
 * window; if it asked later, it would have to stop and wait. */
#define VB_ACK_EVERY 32u
static inline uint32_t vb_window_ack_every(const struct vb_window *w)
{
	return VB_MAX(VB_MIN(VB_ACK_EVERY, w->pkts / 4), 1u);
}
/* The longest READ requested at once: long enough to hide the time between
 * requests, short enough that little is repeated when a response is lost.
 * VB_CHUNK_BYTES limits its bytes; vb_window_chunk() returns packets. */
#define VB_CHUNK_BYTES (256u << 10)
static inline uint32_t vb_window_chunk(const struct vb_window *w, uint32_t mtu)
{
	return VB_MAX(VB_MIN(VB_CHUNK_BYTES / mtu, w->pkts / 2), 1u);
}
/* Are round trips short, without a queue that grows? Then small messages may
 * wait for the next acknowledgement without a noticeable delay. */
bool vb_window_is_near(const struct vb_window *w);

/* On a busy host the peer may wait some ms for its processor; a probe sent too
 * early costs one packet. */
#define VB_PATIENCE_MIN	    (2 * VB_MSEC)
#define VB_PATIENCE_UNKNOWN (10 * VB_MSEC)
#define VB_PATIENCE_RTTS    4
/* A shorter minimum for a path with losses, where the only answer may be lost
 * as well. */
#define VB_PATIENCE_LOSSY   (250 * VB_USEC)
#define VB_LOSSY_RTTS	    2
#define VB_PATIENCE_DOUBLES 10u

/* Returns the nanoseconds of silence that are normal on a path without
 * losses. */
static inline vb_time vb_window_calm(const struct vb_window *w)
{
	if (w->srtt == 0)
		return VB_PATIENCE_UNKNOWN;
	return VB_MAX(VB_PATIENCE_RTTS * w->srtt, VB_PATIENCE_MIN);
}

/* Returns the nanoseconds of silence that are normal after @probes unanswered
 * probes. */
static inline vb_time vb_window_patience(const struct vb_window *w,
					 unsigned probes)
{
	vb_time base = vb_window_calm(w);

	if (w->lossy && w->srtt)
		base = VB_MAX(VB_LOSSY_RTTS * w->srtt, VB_PATIENCE_LOSSY);
	return base << VB_MIN(probes, VB_PATIENCE_DOUBLES);
}

/* Returns how long the requester waits for further ACKs after the ACK of a
 * probe, in nanoseconds. */
vb_time vb_window_grace(const struct vb_window *w);

#endif
