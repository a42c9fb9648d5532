/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The neighbours of an IPoIB interface: the GID and queue pair that an IP
 * address belongs to, and the path to that port. A state machine without I/O,
 * in a time of the caller's; it acts by functions of the caller's (struct
 * vb_nbr_ops).
 *
 * - NONE to ASKED: the host sends a packet to the address. An ARP request or a
 *   neighbour solicitation is sent up to three times, a second apart; meanwhile
 *   up to three packets wait
 * - ASKED to KNOWN: an answer came, and the table asks the subnet administrator
 *   for a path
 * - KNOWN to READY: the path is there, and packets leave
 * - READY to STALE: nothing has confirmed the address for VB_NBR_FRESH, or a
 *   packet came from another queue pair than the known one. The table asks for
 *   the address again; packets are sent as before until three requests have got
 *   no answer
 *
 * An answer with another link-layer address leads to KNOWN again. The table has
 * a limited size: the neighbour that was used longest ago makes room for a new
 * one.
 */
#ifndef IPOIB_NEIGH_H
#define IPOIB_NEIGH_H

#include "ipoib/packet.h"
#include "ipoib/waiting.h"

#define VB_NBR_TABLE 1024
#define VB_NBR_TRIES 3
#define VB_NBR_RETRY VB_SEC
/* how long a link-layer address is used without being confirmed */
#define VB_NBR_FRESH (10 * VB_SEC)

enum vb_nbr_state { NBR_NONE, NBR_ASKED, NBR_KNOWN, NBR_READY, NBR_STALE };

/* How to reach a port: the fields of a PathRecord that an address handle
 * needs. */
struct vb_ipoib_path {
	uint16_t dlid;
	uint8_t sl, rate, hop_limit, tclass;
	uint32_t flow_label;
	bool global; /* packets need a GRH, since a router is on the path */
};

struct vb_nbr {
	enum vb_nbr_state state;
	struct vb_gid ip;
	struct vb_ipoib_hw hw; /* valid from state KNOWN on */
	struct vb_ipoib_path path;
	/* the address handle that prepare() has made, for the table's owner;
	 * valid from READY on, until release() */
	void *handle;
	/* Number of the last request for a path, by which the table recognizes
	 * late answers. */
	uint32_t query;
	unsigned tries;
	/* when to repeat the request, or in READY to check @confirmed */
	vb_time due;
	vb_time confirmed; /* when the neighbour last showed its address */
	bool used;	   /* a packet has left since it was confirmed */
	struct vb_waiting waiting;
	/* Indices in the table: the next neighbour in the hash bucket, and the
	 * neighbours used just before and just after this one. */
	uint16_t next, older, newer;
};

/* The functions by which the table acts; @arg is that of vb_nbrs_create(). They
 * must not call functions of the table. */
struct vb_nbr_ops {
	/* Send an ARP request or a neighbour solicitation for @ip. */
	void (*ask)(void *arg, const struct vb_gid *ip);
	/* Ask the subnet administrator for the path to n->hw.gid; the answer
	 * goes to vb_nbrs_path() with n->query. */
	void (*find_path)(void *arg, const struct vb_nbr *n);
	/* Make n->handle from n->path. False: that failed. */
	bool (*prepare)(void *arg, struct vb_nbr *n);
	void (*release)(void *arg, struct vb_nbr *n);
	void (*send)(void *arg, const struct vb_nbr *n, const void *packet,
		     size_t len);
	/* The search for @ip has ended: its link-layer address is @hw; NULL:
	 * nobody answers for @ip. */
	void (*told)(void *arg, const struct vb_gid *ip,
		     const struct vb_ipoib_hw *hw);
};

struct vb_nbrs;

/* Make an empty table. @seed: a random number, which peers do not know. NULL:
 * no memory. */
struct vb_nbrs *vb_nbrs_create(const struct vb_nbr_ops *ops, void *arg,
			       uint64_t seed);
void vb_nbrs_destroy(struct vb_nbrs *t);

/* Send an IP packet to the neighbour @ip, now or when its address is known. */
void vb_nbrs_send(struct vb_nbrs *t, const struct vb_gid *ip,
		  const void *packet, size_t len, vb_time now);
/* Find out the link-layer address of @ip. The table calls told() with the
 * result, perhaps before this returns. */
void vb_nbrs_want(struct vb_nbrs *t, const struct vb_gid *ip, vb_time now);

/* A message of the neighbour @ip says that its link-layer address is @hw.
 * @solicited: the message answers a request of this interface; otherwise it is
 * a request or an announcement of the neighbour. @create: add a neighbour that
 * is missing in the table, because the interface is about to send to it. */
void vb_nbrs_learn(struct vb_nbrs *t, const struct vb_gid *ip,
		   const struct vb_ipoib_hw *hw, bool solicited, bool create,
		   vb_time now);
/* Note that a packet from @ip came from the queue pair @qpn, which confirms its
 * address or makes it doubtful. */
void vb_nbrs_heard(struct vb_nbrs *t, const struct vb_gid *ip, uint32_t qpn,
		   vb_time now);

/* Handle the answer to find_path(). @path NULL: there is no path. */
void vb_nbrs_path(struct vb_nbrs *t, uint32_t query,
		  const struct vb_ipoib_path *path, vb_time now);
/* Ask for every path again, because LIDs may have changed. */
void vb_nbrs_forget_paths(struct vb_nbrs *t, vb_time now);

/* Forget the neighbour @ip, because the address is elsewhere now. The packets
 * that wait for it are dropped, and told() is not called. */
void vb_nbrs_forget(struct vb_nbrs *t, const struct vb_gid *ip);

/* Act on the timers that have expired. */
void vb_nbrs_tick(struct vb_nbrs *t, vb_time now);
/* Returns the time at which to call vb_nbrs_tick(); VB_NEVER: no such time. */
vb_time vb_nbrs_next(const struct vb_nbrs *t);

/* Find a neighbour in the table. NULL: it is not there. */
const struct vb_nbr *vb_nbrs_find(const struct vb_nbrs *t,
				  const struct vb_gid *ip);
unsigned vb_nbrs_count(const struct vb_nbrs *t);

#endif
