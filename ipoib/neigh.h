/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The neighbours of an IPoIB interface: which GID and queue pair an IP address
 * has, and by which path. A state machine without I/O, in a time of the
 * caller's; what it wants done it says by functions of the caller's.
 *
 * - NONE to ASKED: a packet for the address came. ARP or a solicitation goes
 * out three times, a second apart, and three packets wait
 * - ASKED to KNOWN: an answer came; the subnet administrator is asked for a
 * path
 * - KNOWN to READY: the path is there, and packets leave
 * - READY to STALE: nothing has confirmed the address for a while, or a packet
 *   came from another queue pair. The address is asked for again, and packets
 *   leave as before until three questions had no answer
 *
 * Another address in an answer leads to KNOWN again. The table is bounded: the
 * neighbour that was used least recently makes room for a new one.
 */
#ifndef IPOIB_NEIGH_H
#define IPOIB_NEIGH_H

#include "ipoib/packet.h"
#include "ipoib/waiting.h"

#define VB_NBR_TABLE 1024
#define VB_NBR_TRIES 3
#define VB_NBR_RETRY VB_SEC
/* how long an address holds without being confirmed */
#define VB_NBR_FRESH (10 * VB_SEC)

enum vb_nbr_state { NBR_NONE, NBR_ASKED, NBR_KNOWN, NBR_READY, NBR_STALE };

/* How to reach a port: of a path record. */
struct vb_ipoib_path {
	uint16_t dlid;
	uint8_t sl, rate, hop_limit, tclass;
	uint32_t flow_label;
	bool global; /* a packet needs a GRH, since a router is on the way */
};

struct vb_nbr {
	enum vb_nbr_state state;
	struct vb_gid ip;
	struct vb_ipoib_hw hw; /* from KNOWN on */
	struct vb_ipoib_path path;
	/* the caller's, from READY on until release(): an address handle */
	void *handle;
	/* Differs for each path that is asked for, so that late answers are
	 * recognized. */
	uint32_t query;
	unsigned tries;
	vb_time due;	   /* when to ask again, or to look at @confirmed */
	vb_time confirmed; /* when the neighbour last showed its address */
	bool used;	   /* a packet has left since it was confirmed */
	struct vb_waiting waiting;
	/* links of the bucket, and of the list by last use: places in the
	 * table */
	uint16_t next, older, newer;
};

/* What the table wants done; @arg is that of vb_nbrs_create(). None of the
 * functions may call the table. */
struct vb_nbr_ops {
	/* Ask the link for the address of @ip. */
	void (*ask)(void *arg, const struct vb_gid *ip);
	/* Ask the subnet administrator for the path to n->hw.gid; the answer
	 * goes to vb_nbrs_path() with n->query. */
	void (*find_path)(void *arg, const struct vb_nbr *n);
	/* Make n->handle of n->path. False: it cannot be made. */
	bool (*prepare)(void *arg, struct vb_nbr *n);
	void (*release)(void *arg, struct vb_nbr *n);
	void (*send)(void *arg, const struct vb_nbr *n, const void *packet,
		     size_t len);
	/* The table has found @ip at @hw. @hw NULL: @ip does not answer. */
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
/* Find out the address of @ip; told() is called, perhaps at once. */
void vb_nbrs_want(struct vb_nbrs *t, const struct vb_gid *ip, vb_time now);

/* Take what the neighbour @ip says: its address is @hw. @solicited: the
 * neighbour answers a question; otherwise it may be asking one. @create: enter
 * a neighbour that is not in the table, because it will soon be sent to. */
void vb_nbrs_learn(struct vb_nbrs *t, const struct vb_gid *ip,
		   const struct vb_ipoib_hw *hw, bool solicited, bool create,
		   vb_time now);
/* Note that a packet from @ip came from the queue pair @qpn, which confirms its
 * address or makes it doubtful. */
void vb_nbrs_heard(struct vb_nbrs *t, const struct vb_gid *ip, uint32_t qpn,
		   vb_time now);

/* Take the answer to find_path(). @path NULL: there is no path. */
void vb_nbrs_path(struct vb_nbrs *t, uint32_t query,
		  const struct vb_ipoib_path *path, vb_time now);
/* Ask for every path again, because LIDs may have changed. */
void vb_nbrs_forget_paths(struct vb_nbrs *t, vb_time now);

/* Forget what is known of @ip, because it is known to be elsewhere. Its packets
 * that wait are dropped, and nobody is told. */
void vb_nbrs_forget(struct vb_nbrs *t, const struct vb_gid *ip);

/* Do what is due. */
void vb_nbrs_tick(struct vb_nbrs *t, vb_time now);
/* Returns when vb_nbrs_tick() has something to do; VB_NEVER: it is not known
 * yet. */
vb_time vb_nbrs_next(const struct vb_nbrs *t);

/* Find a neighbour in the table. NULL: it is not there. */
const struct vb_nbr *vb_nbrs_find(const struct vb_nbrs *t,
				  const struct vb_gid *ip);
unsigned vb_nbrs_count(const struct vb_nbrs *t);

#endif
