/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connections of an IPoIB interface in connected mode (RFC 4755), a state
 * machine without I/O, in a time of the caller's. This side makes a connection
 * to each queue pair of a neighbour that it sends to, and sends by it alone;
 * what a neighbour sends comes by a connection of the neighbour's own
 * (ipoib/caller.h). So it makes no difference which side calls first, or
 * whether both do at once.
 *
 * - NONE to CALLING: a frame for the peer came
 * - CALLING to UP: the peer has accepted, and says how long frames may be
 * - UP to NONE: nothing was sent for a while, or the connection died after it
 *   had carried frames; the next frame calls again
 * - CALLING, UP to BACKOFF: the call failed, or the connection carried nothing.
 *   The next try is 1, 2, 4, 8, 16, then 32 s later
 *
 * While there is no connection, frames that fit into a datagram go by
 * datagrams. Of longer ones three wait for a call, and the others are lost;
 * after some failures the sender is told to send shorter ones. So it is while
 * the table is full of connections that were used just now: more neighbours
 * than that do not take the connections from each other.
 */
#ifndef IPOIB_CONN_H
#define IPOIB_CONN_H

#include "ipoib/packet.h"
#include "ipoib/waiting.h"

#define VB_CONNS 128
/* the longest frame, with its header: an IP packet of 65520 bytes */
#define VB_CONN_LONGEST 65524
/* the most frames of one connection that are under way */
#define VB_CONN_DEPTH  64
#define VB_CONN_ANSWER (10 * VB_SEC) /* how long a call may take */
#define VB_CONN_IDLE   (60 * VB_SEC)
/* how long one that was used keeps its place in a full table */
#define VB_CONN_FRESH (5 * VB_SEC)
#define VB_CONN_FIRST VB_SEC
#define VB_CONN_LAST  (32 * VB_SEC)
/* A connection with the most frames under way holds up the others for this
 * long. After that its own frames are dropped. */
#define VB_CONN_STALL (200 * VB_MSEC)
/* A connection that completes nothing for this long is dead. */
#define VB_CONN_DEAD (5 * VB_SEC)
/* the failures from which on senders are told of the datagram's length */
#define VB_CONN_HOPELESS 3

enum vb_conn_state { CONN_NONE, CONN_CALLING, CONN_UP, CONN_BACKOFF };

struct vb_conn {
	enum vb_conn_state state;
	struct vb_ipoib_hw peer;
	uint32_t query;	    /* differs for each call */
	unsigned mtu;	    /* of UP: the longest frame, with its header */
	unsigned failures;  /* in a row, of calls and of connections */
	unsigned under_way; /* frames without a completion */
	/* when the last completion came, or there was nothing to complete */
	vb_time progress;
	vb_time used, due;
	void *handle; /* the caller's, from call() until end() */
	struct vb_waiting waiting;
};

/* What the table wants done. None of the functions may call the table. */
struct vb_conn_ops {
	/* Begin to connect to c->peer; vb_conns_up() or vb_conns_failed()
	 * follows, with c->query. False: it cannot be tried now. */
	bool (*call)(void *arg, struct vb_conn *c);
	/* Send a frame; vb_conns_done() follows. False: it is lost. */
	bool (*send)(void *arg, const struct vb_conn *c, const void *frame,
		     size_t len);
	/* End what call() began. */
	void (*end)(void *arg, struct vb_conn *c);
};

struct vb_conns;

/* Make an empty table. NULL: no memory. */
struct vb_conns *vb_conns_create(const struct vb_conn_ops *ops, void *arg);
void vb_conns_destroy(struct vb_conns *t);

enum vb_conn_way {
	CONN_TAKEN,    /* it was sent, waits, or is lost */
	CONN_DATAGRAM, /* the caller shall send it as a datagram */
	CONN_TOO_LONG, /* the sender shall send shorter ones */
};

/* Send a frame of @len bytes, with its header, to @peer. @datagram: the longest
 * frame that a datagram takes. Of CONN_TOO_LONG, *@most is the longest that
 * the peer takes. */
enum vb_conn_way vb_conns_send(struct vb_conns *t,
			       const struct vb_ipoib_hw *peer,
			       const void *frame, size_t len, unsigned datagram,
			       vb_time now, unsigned *most);

/* The peer has accepted the call @query, and takes frames of @mtu bytes. */
void vb_conns_up(struct vb_conns *t, uint32_t query, unsigned mtu, vb_time now);
/* The call @query has failed, or the connection has ended. */
void vb_conns_failed(struct vb_conns *t, uint32_t query, vb_time now);
/* One frame of the connection @query has reached the peer. */
void vb_conns_done(struct vb_conns *t, uint32_t query, vb_time now);
/* End all connections. */
void vb_conns_forget(struct vb_conns *t);

/* Does a connection that makes progress have all the frames under way that it
 * may have? Then no more should be taken from the host. */
bool vb_conns_is_full(const struct vb_conns *t, vb_time now);

/* Do what is due. */
void vb_conns_tick(struct vb_conns *t, vb_time now);
/* Returns when vb_conns_tick() has something to do, or vb_conns_is_full()
 * changes; VB_NEVER: it is not known yet. */
vb_time vb_conns_next(const struct vb_conns *t, vb_time now);

/* Find the connection to @peer. NULL: there is none. */
const struct vb_conn *vb_conns_find(const struct vb_conns *t,
				    const struct vb_ipoib_hw *peer);

#endif
