/* SPDX-License-Identifier: BSD-2-Clause */
/* The programs that use verbs on the adapters of a fabric: what
 * fabricd/verbs.c, which attaches them, and fabricd/verbs_frames.c, which moves
 * their frames, share. */
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
	/* by how many the program's joins of the group exceed its leaves */
	unsigned times;
};

/* A program that is attached to a port of an adapter. */
struct verbs_program {
	struct vb_chain link; /* in the list of the adapter's programs */
	/* link in the list of the fabric's busy programs; busy.at NULL: the
	 * program is not in it, and this process waits for the program's
	 * bell */
	struct vb_chain busy;
	struct vb_fabricd *f;
	struct vb_fabricd_verbs_adapter *adapter;
	/* the program's connection, a struct client; NULL: the program has
	 * ended */
	void *client;
	struct vb_fab_port *port;
	uint8_t port_no;
	unsigned slot;
	struct fd_watch bell;
	unsigned bells; /* how often the watch of the bell has reported */
	/* shared memory: @own is written by this process, @theirs by the
	 * program */
	void *own, *theirs;
	struct vb_shring_in from;
	struct vb_shring_out to;
	/* until this time, look at the ring @from without waiting for the
	 * bell */
	vb_time busy_until;
	/* The oldest frame in the ring @from waits for room: in the fabric, or
	 * in the ring of a program of the same adapter. */
	bool waits;
	/* when the ring @to became full; VB_NEVER: it has room */
	vb_time full_at;
	/* position in @to up to which the program had read at @full_at */
	uint64_t full_tail;
	/* The program has read nothing for too long: frames for it are dropped
	 * until it reads again. */
	bool stalled;
	struct verbs_group *groups;
	/* Link in the list of the programs that sleep, have got frames, and
	 * were not rung yet; owed.at NULL: this program is not in it.
	 * @owed_since: when it got the first of these frames; @owed_frames: how
	 * many it has got since. */
	struct vb_chain owed;
	vb_time owed_since;
	unsigned owed_frames;
	/* the last description of the port that was sent to the program */
	struct vb_verbs_port told;
	/* number of frames of this program that broke a rule and were not
	 * sent */
	uint64_t refused;
	/* number of frames for this program that were dropped */
	uint64_t dropped;
};

/* A client that is told how a port changes, and has no queue pairs of verbs. */
struct verbs_watch {
	struct vb_chain link; /* link in the adapter's list of watches */
	struct vb_fabricd_verbs_adapter *adapter;
	void *client; /* the client's connection */
	struct vb_fab_port *port;
	struct vb_verbs_port told; /* the port, as the client knows it */
};

/* A node that programs have attached to, or watch. */
struct vb_fabricd_verbs_adapter {
	struct vb_fab_node *node;
	struct vb_chain *watches;
	struct vb_chain *programs;
	unsigned next_slot;
	uint32_t reregisters;
	uint64_t place; /* the member place of struct vb_verbs_port */
	/* The program that has a slot at a port, indexed by the number of the
	 * port, minus 1, and by the slot. A program with two ports has the same
	 * slot at both. */
	struct verbs_program *slot[][VB_SLOTS];
};

/* Functions of fabricd/verbs_frames.c. */
/* Put @p on the list of busy programs: this process looks at the ring of @p
 * soon, and for some time without waiting for its bell. */
void vb_fabricd_verbs_busy(struct verbs_program *p, vb_time now);
/* The program @p has ended: send the frames in its ring, as far as there is
 * room; let programs go on whose frames wait for room in the ring of @p; and
 * take @p off the lists of its adapter's programs and of busy programs. */
void vb_fabricd_verbs_last(struct verbs_program *p, vb_time now);
/* Functions of fabricd/verbs.c. */
/* Returns the adapter @node; NULL: no program has attached to it. */
struct vb_fabricd_verbs_adapter *
vb_fabricd_verbs_adapter(const struct vb_fabricd *f,
			 const struct vb_fab_node *node);
/* Free all programs on the list f->verbs.gone. */
void vb_fabricd_verbs_reap(struct vb_fabricd *f);
/* Called when the program has rung its bell: it has sent frames, or has made
 * room in its ring. */
void vb_fabricd_verbs_bell(struct fd_watch *w, uint32_t events, vb_time now);

#endif
