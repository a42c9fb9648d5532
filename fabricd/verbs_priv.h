/* SPDX-License-Identifier: BSD-2-Clause */
/* The programs that use verbs on the adapters of a fabric: what the files that
 * attach them and that move their frames share. */
#ifndef FABRICD_VERBS_PRIV_H
#define FABRICD_VERBS_PRIV_H

#include "base/shring.h"
#include "fabricd/fabricd_priv.h"
#include "wire/ipc.h"
#include "wire/verbs_ipc.h"

/* A multicast LID whose frames a program wants. */
struct verbs_group {
	struct verbs_group *next;
	uint16_t mlid;
	unsigned times; /* joined more often than left */
};

/* A program that is attached to a port of an adapter. */
struct verbs_program {
	struct vb_chain link; /* of its adapter */
	struct vb_chain busy; /* of the fabric; at NULL: it sleeps */
	struct vb_fabricd *f;
	struct vb_fabricd_verbs_adapter *adapter;
	void *client; /* its connection; NULL: it has ended */
	struct vb_fab_port *port;
	uint8_t port_no;
	unsigned slot;
	struct fd_watch bell;
	void *own, *theirs; /* memory: what this process, the program writes */
	struct vb_shring_in from;
	struct vb_shring_out to;
	vb_time busy_until; /* look at its ring without a bell until then */
	/* Its first frame waits for room in the fabric, or at a program of the
	 * same adapter. */
	bool waits;
	/* since when its ring of received frames is full; VB_NEVER: it is not
	 */
	vb_time full_at;
	uint64_t full_tail; /* how far the program had read at that time */
	/* It takes nothing: what is for it is dropped until it takes again. */
	bool stalled;
	struct verbs_group *groups;
	struct vb_verbs_port told; /* the port, as the program knows it */
	uint64_t refused;	   /* frames that no program may send */
	uint64_t dropped;	   /* frames for it while it was stalled */
};

/* An adapter that programs have attached to. */
struct vb_fabricd_verbs_adapter {
	struct vb_fab_node *node;
	struct verbs_program *slot[VB_SLOTS];
	struct vb_chain *programs;
	unsigned next_slot;
	uint32_t reregisters;
};

/* fabricd/verbs_frames.c */
/* Look at the ring of @p soon, and for some time without a bell. */
void vb_fabricd_verbs_busy(struct verbs_program *p, vb_time now);
/* @p ends: send what it has sent, as far as there is room, let nobody wait for
 * it, and take it off its adapter's list and off the list of busy programs. */
void vb_fabricd_verbs_last(struct verbs_program *p, vb_time now);
/* Functions of fabricd/verbs.c. */
/* Returns the adapter @node; NULL: no program has attached to it. */
struct vb_fabricd_verbs_adapter *
vb_fabricd_verbs_adapter(const struct vb_fabricd *f,
			 const struct vb_fab_node *node);
/* Free the programs that have ended. */
void vb_fabricd_verbs_reap(struct vb_fabricd *f);
/* The program has rung. */
void vb_fabricd_verbs_bell(struct fd_watch *w, uint32_t events, vb_time now);

#endif
