/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connections that neighbours have made to an IPoIB interface in connected
 * mode, and how many of them the interface keeps. A table without I/O, in a
 * time of the caller's.
 *
 * A neighbour's queue pair has one connection here: a new connection ends the
 * old one, since the neighbour may have forgotten the old one. A neighbour's
 * port has at most VB_CALLERS_OF_PORT connections; a further one ends the
 * connection of that port that has carried no frame for the longest time. If
 * the table is full, a new connection ends the one that has carried no frame
 * for the longest time, unless all connections have carried a frame within
 * VB_CALLER_FRESH: then the interface refuses the new connection. So one port
 * can take few entries from other ports, and a neighbour that is refused sends
 * datagrams.
 */
#ifndef IPOIB_CALLER_H
#define IPOIB_CALLER_H

#include "ipoib/packet.h"

#define VB_CALLERS	   128
#define VB_CALLERS_OF_PORT 4
/* a connection ends when it has carried no frame for this long */
#define VB_CALLER_IDLE (300 * VB_SEC)
/* a connection that has carried a frame within this time keeps its entry, even
 * if the table is full */
#define VB_CALLER_FRESH (5 * VB_SEC)

struct vb_caller {
	struct vb_ipoib_hw peer;
	/* what the table's owner passed to vb_callers_enter(); NULL: the entry
	 * is free */
	void *handle;
	vb_time heard;
};

struct vb_callers;

/* Make an empty table. @end(@arg, handle) ends a connection, and must not call
 * the table. NULL: no memory. */
struct vb_callers *vb_callers_create(void (*end)(void *arg, void *handle),
				     void *arg);
void vb_callers_destroy(struct vb_callers *t);

/* The neighbour @peer asks for a connection, which the table's owner knows as
 * @handle. Returns the index of its entry in the table; -1: the owner shall
 * refuse the connection. */
int vb_callers_enter(struct vb_callers *t, const struct vb_ipoib_hw *peer,
		     void *handle, vb_time now);
/* The connection in entry @place has carried a frame. */
void vb_callers_heard(struct vb_callers *t, int place, vb_time now);
/* The connection in entry @place has ended: call end() for it, and free the
 * entry. */
void vb_callers_remove(struct vb_callers *t, int place);
/* End all connections. */
void vb_callers_forget(struct vb_callers *t);

/* End the connections that have carried no frame for VB_CALLER_IDLE. */
void vb_callers_tick(struct vb_callers *t, vb_time now);
/* Returns when vb_callers_tick() has something to do. */
vb_time vb_callers_next(const struct vb_callers *t);

unsigned vb_callers_count(const struct vb_callers *t);

#endif
