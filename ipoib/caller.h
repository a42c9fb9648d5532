/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connections that neighbours have made to an IPoIB interface in connected
 * mode, and how many it keeps. A table without I/O, in a time of the caller's.
 *
 * A queue pair has one connection: a new one ends the old one, since the
 * neighbour may have forgotten that. A port has a few, and then a new one ends
 * the one heard longest ago. In a full table a new one takes the place of the
 * one heard longest ago, but of none that was heard just now. So a port can
 * take little from others, and who is refused sends datagrams.
 */
#ifndef IPOIB_CALLER_H
#define IPOIB_CALLER_H

#include "ipoib/packet.h"

#define VB_CALLERS	   128
#define VB_CALLERS_OF_PORT 4
/* how long a neighbour that says nothing keeps its connection */
#define VB_CALLER_IDLE (300 * VB_SEC)
/* how long one that says something keeps it in a full table */
#define VB_CALLER_FRESH (5 * VB_SEC)

struct vb_caller {
	struct vb_ipoib_hw peer;
	void *handle; /* the caller's; NULL: a free place */
	vb_time heard;
};

struct vb_callers;

/* Make an empty table. @end(@arg, handle) ends a connection, and must not call
 * the table. NULL: no memory. */
struct vb_callers *vb_callers_create(void (*end)(void *arg, void *handle),
				     void *arg);
void vb_callers_destroy(struct vb_callers *t);

/* @peer asks for a connection, which has @handle. Returns its place in the
 * table; -1: it shall be refused. */
int vb_callers_enter(struct vb_callers *t, const struct vb_ipoib_hw *peer,
		     void *handle, vb_time now);
/* A frame came by the connection at @place. */
void vb_callers_heard(struct vb_callers *t, int place, vb_time now);
/* The connection at @place has ended: end(), and free its place. */
void vb_callers_remove(struct vb_callers *t, int place);
/* End all connections. */
void vb_callers_forget(struct vb_callers *t);

/* End the connections of neighbours that say nothing. */
void vb_callers_tick(struct vb_callers *t, vb_time now);
/* Returns when vb_callers_tick() has something to do. */
vb_time vb_callers_next(const struct vb_callers *t);

unsigned vb_callers_count(const struct vb_callers *t);

#endif
