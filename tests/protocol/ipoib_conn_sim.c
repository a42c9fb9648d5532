/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosts with IPoIB's connected mode in virtual time. They send to each other at
 * random and call each other at the same time, while messages are lost and
 * hosts are stopped, killed, and restarted with another queue pair. Afterwards
 * long frames pass between all of them; and when no host sends any more, all
 * connections end at both ends.
 *
 * ipoib_conn_sim SEED replays one run; ipoib_conn_sim -n COUNT [FIRST] plays
 * many.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "ipoib/caller.h"
#include "ipoib/conn.h"
#include "tests/support/must.h"
#include "tests/support/seeds.h"

#define HOSTS	  5
#define DATAGRAM  2048
#define STEP	  (10 * VB_MSEC)
#define IDLE_STEP (100 * VB_MSEC)
#define EVENTS	  4096
#define LINES	  20000

/* Events: messages between hosts (REQ, REP, FRAME, BYE), and how a call or a
 * frame ended for its sender (DONE, FAIL). */
enum what { REQ, REP, FRAME, DONE, FAIL, BYE };

/* A connection. It has an entry also while only one of its two ends knows
 * it. */
struct line {
	unsigned from, to;
	uint32_t query, from_qpn, to_qpn;
	bool at_from, at_to;
	bool answered; /* the REP has arrived at host @from */
	/* the message that host @to has ended the connection does not reach
	 * @from */
	bool mute;
	int place; /* index of the connection in the table of host @to */
};

struct event {
	enum what what;
	struct line *line;
	vb_time at; /* time of the event; 0: the entry is free */
	bool to_caller;
	size_t len; /* length of the frame if the event is FRAME */
};

struct host {
	struct run *run;
	unsigned number;
	uint32_t qpn;
	vb_time stopped; /* the host is stopped until this time; 0: it runs */
	struct vb_conns *conns;
	struct vb_callers *callers;
	/* the queue pairs of the other hosts, as far as this host knows them */
	uint32_t known[HOSTS];
};

struct run {
	uint64_t seed;
	vb_time now;
	bool chaos;
	struct host hosts[HOSTS];
	struct event events[EVENTS];
	unsigned most_events; /* all entries of the event table from this index
			       * on are free */
	struct line lines[LINES];
	/* long_ones: number of long frames that arrived, by sender and
	 * receiver */
	unsigned line_count, long_ones[HOSTS][HOSTS];
	uint32_t next_qpn;
};

static uint8_t frame[VB_CONN_LONGEST];

static uint32_t draw(struct run *r, uint32_t below)
{
	r->seed = vb_hash(r->seed, 1);
	return (uint32_t)(r->seed >> 32) % below;
}

static struct event *schedule(struct run *r, enum what what, struct line *l,
			      bool to_caller, vb_time after)
{
	unsigned i = 0;

	while (i < EVENTS && r->events[i].at)
		i++;
	MUST(i < EVENTS);
	r->most_events = VB_MAX(r->most_events, i + 1);
	r->events[i] = (struct event){ what, l, r->now + after, to_caller, 0 };
	return &r->events[i];
}

/* Schedule a message, which takes up to 30 ms and may be lost. */
static void post(struct run *r, enum what what, struct line *l, bool to_caller)
{
	if (!r->chaos || draw(r, 10))
		(void)schedule(r, what, l, to_caller,
			       draw(r, 30) * VB_MSEC + 1);
}

/* --- the functions that the hosts' connection tables call --- */

static bool on_call(void *arg, struct vb_conn *c)
{
	struct host *h = arg;
	struct run *r = h->run;
	struct line *l = &r->lines[r->line_count];

	if (r->chaos && draw(r, 20) == 0)
		return false;
	MUST(++r->line_count < LINES);
	*l = (struct line){ .from = h->number,
			    .to = c->peer.gid.raw[15],
			    .query = c->query,
			    .from_qpn = h->qpn,
			    .to_qpn = c->peer.qpn,
			    .at_from = true,
			    .mute = r->chaos && draw(r, 2) };
	c->handle = l;
	post(r, REQ, l, false);
	return true;
}

static bool on_send(void *arg, const struct vb_conn *c, const void *bytes,
		    size_t len)
{
	struct host *h = arg;
	struct line *l = c->handle;

	MUST(l->at_from && l->answered);
	MUST(len <= c->mtu && c->under_way < VB_CONN_DEPTH);
	schedule(h->run, FRAME, l, false, draw(h->run, 5) * VB_MSEC + 1)->len =
		len;
	return true;
}

static void on_end(void *arg, struct vb_conn *c)
{
	struct host *h = arg;
	struct line *l = c->handle;

	MUST(l->at_from);
	l->at_from = false;
	post(h->run, BYE, l, false);
}

static void on_caller_end(void *arg, void *handle)
{
	struct host *h = arg;
	struct line *l = handle;

	MUST(l->at_to);
	l->at_to = false;
	if (!l->mute)
		post(h->run, BYE, l, true);
}

static const struct vb_conn_ops ops = {
	.call = on_call,
	.send = on_send,
	.end = on_end,
};

/* --- hosts --- */

static void host_begin(struct run *r, unsigned i)
{
	struct host *h = &r->hosts[i];

	h->run = r;
	h->number = i;
	h->qpn = ++r->next_qpn;
	h->conns = vb_conns_create(&ops, h);
	h->callers = vb_callers_create(on_caller_end, h);
	MUST(h->conns && h->callers);
}

static void host_end(struct host *h)
{
	vb_conns_destroy(h->conns);
	vb_callers_destroy(h->callers);
}

/* A host that was killed has lost all its state, but its connection manager may
 * still send messages. */
static void host_restart(struct run *r, unsigned i)
{
	host_end(&r->hosts[i]);
	host_begin(r, i);
}

static void host_send(struct run *r, unsigned from, unsigned to)
{
	struct host *h = &r->hosts[from];
	const struct vb_ipoib_hw hw = { .qpn = h->known[to],
					.gid = { { 0xfe,
						   0x80, [15] = (uint8_t)to } },
					.flags = IPOIB_HW_RC };
	size_t len = draw(r, 2) ? 100 : 60000;
	unsigned most;
	enum vb_conn_way way;

	if (vb_conns_is_full(h->conns, r->now))
		return;
	way = vb_conns_send(h->conns, &hw, frame, len, DATAGRAM, r->now, &most);
	MUST(way != CONN_DATAGRAM || len <= DATAGRAM);
	MUST(way != CONN_TOO_LONG || (len > DATAGRAM && most == DATAGRAM));
}

/* --- messages --- */

static void on_req(struct run *r, struct host *h, struct line *l)
{
	const struct vb_ipoib_hw hw = {
		.qpn = l->from_qpn,
		.gid = { { 0xfe, 0x80, [15] = (uint8_t)l->from } }
	};

	if (h->qpn != l->to_qpn) {
		post(r, FAIL, l, true);
		return;
	}
	l->place = vb_callers_enter(h->callers, &hw, l, r->now);
	l->at_to = l->place >= 0;
	post(r, l->at_to ? REP : FAIL, l, true);
}

/* If a frame's queue pair is gone, the sender's queue pair fails after some
 * retries, but not if the receiver asked it to wait for a buffer (RNR). */
static void on_frame(struct run *r, struct host *h, const struct event *e)
{
	struct line *l = e->line;

	if (l->at_to) {
		vb_callers_heard(h->callers, l->place, r->now);
		r->long_ones[l->from][l->to] += e->len > DATAGRAM;
		(void)schedule(r, DONE, l, true, draw(r, 5) * VB_MSEC + 1);
	} else if (!l->mute) {
		(void)schedule(r, FAIL, l, true,
			       VB_SEC + draw(r, 3000) * VB_MSEC);
	}
}

static void to_callee(struct run *r, const struct event *e)
{
	struct host *h = &r->hosts[e->line->to];

	if (e->what == REQ)
		on_req(r, h, e->line);
	else if (e->what == FRAME)
		on_frame(r, h, e);
	else if (e->line->at_to)
		vb_callers_remove(h->callers, e->line->place);
}

static void to_caller(struct run *r, const struct event *e)
{
	struct host *h = &r->hosts[e->line->from];

	/* The host got a new queue pair after it began this connection. */
	if (e->line->from_qpn != h->qpn)
		return;
	e->line->answered |= e->what == REP;
	if (e->what == REP)
		vb_conns_up(h->conns, e->line->query, VB_CONN_LONGEST, r->now);
	else if (e->what == DONE)
		vb_conns_done(h->conns, e->line->query, r->now);
	else
		vb_conns_failed(h->conns, e->line->query, r->now);
}

/* A stopped host handles no message until it goes on. */
static void deliver(struct run *r)
{
	for (unsigned i = 0; i < r->most_events; i++) {
		struct event e = r->events[i];
		unsigned host;

		if (!e.at || e.at > r->now)
			continue;
		host = e.to_caller ? e.line->from : e.line->to;
		if (r->hosts[host].stopped > r->now) {
			r->events[i].at = r->hosts[host].stopped;
			continue;
		}
		r->events[i].at = 0;
		(e.to_caller ? to_caller : to_callee)(r, &e);
	}
}

/* --- a run --- */

static void disturb(struct run *r)
{
	unsigned i = draw(r, HOSTS);

	if (draw(r, 300) == 0)
		host_restart(r, i);
	if (draw(r, 300) == 0)
		r->hosts[i].stopped = r->now + draw(r, 8000) * VB_MSEC;
}

static void step(struct run *r, unsigned sends)
{
	r->now += sends ? STEP : IDLE_STEP;
	deliver(r);
	if (r->chaos)
		disturb(r);
	for (unsigned i = 0; i < HOSTS; i++) {
		struct host *h = &r->hosts[i];
		unsigned to = (i + 1 + draw(r, HOSTS - 1)) % HOSTS;

		if (h->stopped > r->now)
			continue;
		/* A host learns of new queue pairs of others with a delay. */
		if (!r->chaos || draw(r, 30) == 0)
			h->known[to] = r->hosts[to].qpn;
		for (unsigned s = 0; s < sends && h->known[to]; s++)
			host_send(r, i, to);
		vb_conns_tick(h->conns, r->now);
		vb_callers_tick(h->callers, r->now);
	}
}

static void run_for(struct run *r, vb_time time, unsigned sends)
{
	for (vb_time end = r->now + time; r->now < end;)
		step(r, sends);
}

static void play(uint64_t seed)
{
	struct run *r = calloc(1, sizeof(*r));

	MUST(r);
	r->seed = seed;
	r->now = 100 * VB_SEC;
	for (unsigned i = 0; i < HOSTS; i++)
		host_begin(r, i);
	r->chaos = true;
	run_for(r, 30 * VB_SEC, 2);
	/* The last call that failed is tried again within VB_CONN_LAST. */
	r->chaos = false;
	run_for(r, VB_CONN_LAST + VB_CONN_ANSWER + 10 * VB_SEC, 1);
	memset(r->long_ones, 0, sizeof(r->long_ones));
	run_for(r, 2 * VB_SEC, 1);
	for (unsigned i = 0; i < HOSTS; i++)
		for (unsigned k = 0; k < HOSTS; k++)
			MUST(i == k || r->long_ones[i][k] > 0);
	run_for(r, VB_CALLER_IDLE + VB_CONN_IDLE + 20 * VB_SEC, 0);
	for (unsigned i = 0; i < HOSTS; i++) {
		MUST(vb_conns_next(r->hosts[i].conns, r->now) == VB_NEVER);
		MUST(vb_callers_count(r->hosts[i].callers) == 0);
		host_end(&r->hosts[i]);
	}
	for (unsigned i = 0; i < r->line_count; i++)
		MUST(!r->lines[i].at_from && !r->lines[i].at_to);
	free(r);
}

int main(int argc, char **argv)
{
	return seeds_main(argc, argv, 40, play);
}
