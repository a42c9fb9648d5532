/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How much a requester keeps in flight, and how long it waits before it asks
 * again. The peer's acknowledgement timeout is the specification's; this is
 * our own judgement, and nothing of it can be seen on the wire but patience.
 */
#ifndef IB_WINDOW_H
#define IB_WINDOW_H

#include "wire/ib_hdr.h"

struct vb_window {
	uint32_t pkts;	    /* may be in flight */
	uint32_t start;	    /* pkts at first */
	uint32_t max;	    /* bound of pkts */
	uint32_t threshold; /* doubles each round trip below it */
	uint32_t credit;    /* acknowledged since pkts last grew, above it */
	bool limited;	    /* has held the requester back since */
	bool recovering;    /* from a loss before @recover, paid for already */
	uint32_t recover;   /* PSN */
	uint32_t lossy; /* the path loses single packets; for as many more */
	bool timing;	/* @rtt_psn was sent, once, at @rtt_at */
	uint32_t rtt_psn;
	vb_time rtt_at;
	vb_time srtt;	  /* smoothed; 0: not known */
	vb_time best_rtt; /* the shortest of late */
};

void vb_window_init(struct vb_window *w, uint32_t mtu);
/* @psn goes out for the first time, and will be acknowledged at once. */
void vb_window_time(struct vb_window *w, uint32_t psn, vb_time now);
/* @count packets more are acknowledged, up to before @una. */
void vb_window_acked(struct vb_window *w, uint32_t count, uint32_t una,
		     vb_time now);
/* A packet is known to be lost; PSNs before @next had been sent. */
void vb_window_lost(struct vb_window *w, uint32_t next);
/* The same, by a peer that says how many are missing; it repeats selectively.
 */
void vb_window_lost_some(struct vb_window *w, uint32_t count, uint32_t next);
/* Nothing was heard for a whole timeout. */
void vb_window_collapse(struct vb_window *w, uint32_t next);
/* Everything in flight is sent again: times mean nothing (Karn). */
void vb_window_untime(struct vb_window *w);
/* Packets sent without AckReq, at most. */
uint32_t vb_window_ack_every(const struct vb_window *w);
/* The longest READ to ask for in one request, in packets. */
uint32_t vb_window_chunk(const struct vb_window *w, uint32_t mtu);
/* Are answers back within what nobody waits for, where nothing queues up? */
bool vb_window_is_near(const struct vb_window *w);
/* How long silence is normal, after @probes probes without an answer. */
vb_time vb_window_patience(const struct vb_window *w, unsigned probes);
/* How long after the answer to a probe others may be behind it. */
vb_time vb_window_grace(const struct vb_window *w);

#endif
