/* SPDX-License-Identifier: BSD-2-Clause */
/* An IPoIB interface: joins the TUN and the adapter's port by the tables of
 * neighbours and groups. It may be one of Ethernet over InfiniBand instead,
 * with a TAP. */
#ifndef IPOIB_IFACE_H
#define IPOIB_IFACE_H

#include "ipoib/cm.h"
#include "ipoib/lookup.h"
#include "ipoib/mac.h"
#include "ipoib/port.h"
#include "ipoib/route.h"
#include "ipoib/tun.h"

/* packets that are taken from the TUN at a time */
#define IFACE_BATCH 64

struct iface {
	struct tun tun;
	struct ipoib_port port;
	struct ipoib_cm cm;
	bool connected; /* connected mode is wanted */
	struct lookup lookup;
	struct routes routes;
	struct vb_nbrs *nbrs;
	/* Of an Ethernet interface, where its neighbours are; else NULL. */
	struct vb_macs *macs;
	int network; /* number of the Ethernet network; -1: this is IPoIB */
	struct vb_groups *groups; /* NULL: the port is not fit for them yet */
	uint16_t pkey;		  /* with the membership bit */
	const struct vb_ip_net *wanted; /* the addresses to add */
	unsigned wanted_count;
	unsigned mtu;	  /* of the interface; 0: it is not up yet */
	unsigned longest; /* the broadcast group's MTU: of a whole datagram */
	bool news;	  /* the port may have changed */
	/* The broadcast group was joined, which is to be followed by an
	 * announcement. */
	bool begun;
	/* Why the interface cannot go on: a sentence; NULL: it can. */
	const char *failure;
	uint8_t frame[VB_CONN_LONGEST]; /* what is read from the TUN */
	vb_time now;			/* the time of what is being done */
	struct vb_gid groups_gid;	/* the GID with which @groups began */
};

/* Make the network interface @name, and open the adapter. 0 or -errno; *@what
 * says what failed. */
int iface_open(struct iface *f, const char *name, const char **what);
/* Leave the groups, and close all. */
void iface_close(struct iface *f);

/* Each function takes what waits at its source, at the time f->now. */
void iface_from_tun(struct iface *f);
void iface_from_sa(struct iface *f);
void iface_from_cm(struct iface *f);
void iface_from_netlink(struct iface *f);
void iface_from_events(struct iface *f);
/* Is there room for what the TUN has? */
bool iface_has_room(const struct iface *f);
/* Take what waits from the fabric. True: more waits, for which no event will
 * come. */
bool iface_from_fabric(struct iface *f);
/* Follow the port's changes, and do what is due. Returns when something is due
 * again. */
vb_time iface_tick(struct iface *f);

#endif
