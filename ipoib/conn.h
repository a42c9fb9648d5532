/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connections that an IPoIB interface in connected mode (RFC 4755) makes: a
 * state machine without I/O, in a time of the caller's. This interface makes
 * one connection to each neighbour's queue pair that it sends to, and only
 * sends by it. What a neighbour sends comes by a connection that the neighbour
 * has made (ipoib/caller.h). So it makes no difference which of the two makes
 * its connection first.
 *
 * - NONE to CALLING: the host sends a frame to the peer, so this side asks for
 *   a connection (it calls)
 * - CALLING to UP: the peer has accepted, and has told the longest frame that
 *   it accepts
 * - UP to NONE: the host has sent nothing for VB_CONN_IDLE, or a connection
 *   that had carried frames has died; the next frame calls again
 * - CALLING or UP to BACKOFF: the call failed, or the connection died before it
 *   had carried a frame. The next call is 1, 2, 4, 8, 16, then 32 s later
 *
 * While a peer has no connection, frames that fit into a datagram are sent as
 * datagrams. Of longer frames, three wait for the outcome of a call, and the
 * others are lost. After VB_CONN_HOPELESS failures the table's owner tells the
 * senders to send shorter packets. The same holds for a peer that gets no entry
 * because the table is full of connections that were used within VB_CONN_FRESH:
 * so a host with more neighbours than the table has entries does not end and
 * make connections all the time.
 */
#ifndef IPOIB_CONN_H
#define IPOIB_CONN_H

#include "ipoib/packet.h"
#include "ipoib/waiting.h"

#define VB_CONNS 128
/* the longest frame, with its header: an IP packet of 65520 bytes */
#define VB_CONN_LONGEST 65524
/* the most frames of one connection that are sent and not completed */
#define VB_CONN_DEPTH  64
#define VB_CONN_ANSWER (10 * VB_SEC) /* time limit of a call */
#define VB_CONN_IDLE   (60 * VB_SEC)
/* a connection that was used within this time keeps its entry, even if the
 * table is full */
#define VB_CONN_FRESH (5 * VB_SEC)
#define VB_CONN_FIRST VB_SEC
#define VB_CONN_LAST  (32 * VB_SEC)
/* While a connection has VB_CONN_DEPTH frames under way, the interface reads
 * nothing from the host, but at most for this long after the last completion.
 * After that, further frames for that connection are dropped. */
#define VB_CONN_STALL (200 * VB_MSEC)
/* A connection is dead when it has frames under way and none of them has
 * completed for this long. */
#define VB_CONN_DEAD (5 * VB_SEC)
/* after this many failures in a row, senders are told to send packets that fit
 * into a datagram */
#define VB_CONN_HOPELESS 3

enum vb_conn_state { CONN_NONE, CONN_CALLING, CONN_UP, CONN_BACKOFF };

struct vb_conn {
	enum vb_conn_state state;
	struct vb_ipoib_hw peer;
	uint32_t query; /* number of the call; each call has another */
	/* in state UP: the longest frame that the peer accepts, header
	 * included */
	unsigned mtu;
	/* failures in a row, of calls and of connections that carried no
	 * frame */
	unsigned failures;
	unsigned under_way; /* frames that are sent and not completed */
	/* the time of the last completion, or of the first frame after all
	 * earlier ones had completed */
	vb_time progress;
	vb_time used, due;
	/* what call() has set, for the owner of the table; valid until end() */
	void *handle;
	struct vb_waiting waiting;
};

/* The functions by which the table acts. They must not call functions of the
 * table. */
struct vb_conn_ops {
	/* Begin to connect to c->peer; the owner later calls vb_conns_up() or
	 * vb_conns_failed() with c->query. False: connecting is not possible
	 * now. */
	bool (*call)(void *arg, struct vb_conn *c);
	/* Send a frame; the owner calls vb_conns_done() when it has completed.
	 * False: the frame is lost. */
	bool (*send)(void *arg, const struct vb_conn *c, const void *frame,
		     size_t len);
	/* End the call or the connection that call() began. */
	void (*end)(void *arg, struct vb_conn *c);
};

struct vb_conns;

/* Make an empty table. NULL: no memory. */
struct vb_conns *vb_conns_create(const struct vb_conn_ops *ops, void *arg);
void vb_conns_destroy(struct vb_conns *t);

enum vb_conn_way {
	CONN_TAKEN,    /* the frame was sent, waits for the call, or is lost */
	CONN_DATAGRAM, /* the caller shall send the frame as a datagram */
	/* the frame is too long: the caller shall tell its sender to send
	 * shorter ones */
	CONN_TOO_LONG,
};

/* Send a frame of @len bytes, header included, to @peer. @datagram: the length
 * of the longest datagram. With the result CONN_TOO_LONG, *@most is the length
 * of the longest frame that @peer accepts. */
enum vb_conn_way vb_conns_send(struct vb_conns *t,
			       const struct vb_ipoib_hw *peer,
			       const void *frame, size_t len, unsigned datagram,
			       vb_time now, unsigned *most);

/* The peer has accepted the call @query, and takes frames of @mtu bytes. */
void vb_conns_up(struct vb_conns *t, uint32_t query, unsigned mtu, vb_time now);
/* The call @query has failed, or the connection that it made has ended. */
void vb_conns_failed(struct vb_conns *t, uint32_t query, vb_time now);
/* A frame has completed on the connection that the call @query made. */
void vb_conns_done(struct vb_conns *t, uint32_t query, vb_time now);
/* End all connections. */
void vb_conns_forget(struct vb_conns *t);

/* Has any connection VB_CONN_DEPTH frames under way, and completed a frame
 * within VB_CONN_STALL? Then the owner should read no more frames from the
 * host. */
bool vb_conns_is_full(const struct vb_conns *t, vb_time now);

/* Act on the timers that have expired. */
void vb_conns_tick(struct vb_conns *t, vb_time now);
/* Returns the time at which to call vb_conns_tick(), or at which the answer of
 * vb_conns_is_full() may change; VB_NEVER: no such time. */
vb_time vb_conns_next(const struct vb_conns *t, vb_time now);

/* Find the connection to @peer. NULL: there is none. */
const struct vb_conn *vb_conns_find(const struct vb_conns *t,
				    const struct vb_ipoib_hw *peer);

#endif
