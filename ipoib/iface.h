/* SPDX-License-Identifier: BSD-2-Clause */
/* An IPoIB interface: joins the TUN and the adapter's port by the tables of
 * neighbours and groups. It may be one of Ethernet over InfiniBand instead,
 * with a TAP, or a gateway, whose other side is a switch's Ethernet port. */
#ifndef IPOIB_IFACE_H
#define IPOIB_IFACE_H

#include "base/macs.h"
#include "engine/fabric_path.h"
#include "ipoib/cm.h"
#include "ipoib/gateway.h"
#include "ipoib/lookup.h"
#include "ipoib/port.h"
#include "ipoib/route.h"
#include "ipoib/tun.h"

/* packets that are taken from the TUN at a time */
#define IFACE_BATCH 64

/* the longest frame from the host's side, behind room for a header */
#define IFACE_LONGEST VB_CONN_LONGEST
_Static_assert(IFACE_LONGEST >= VB_IPOIB_HEADER + VB_GW_FRAME,
	       "a gateway takes whole frames of the switch");

struct iface;

/* What differs between IPoIB, Ethernet over InfiniBand, and a gateway. */
struct iface_kind {
	/* Make what has the host's side, and the tables. Returns 0 or -errno;
	 * *@what says what failed. */
	int (*open)(struct iface *f, const char *name, uint64_t seed,
		    const char **what);
	/* Send a frame of the host's side, before which @frame has room for a
	 * header, which @len counts. */
	void (*send)(struct iface *f, uint8_t *frame, size_t len);
	/* Take a frame from the fabric. @type: what its header says, which is
	 * not before @frame any more. */
	void (*take)(struct iface *f, const struct ibv_wc *wc, unsigned type,
		     const uint8_t *frame, size_t len);
	/* Be usable with an MTU of IPoIB of @mtu. Returns 0, or -errno, and
	 * f->failure says why. */
	int (*bring_up)(struct iface *f, unsigned mtu);
	/* The broadcast group is joined: join the others, and tell the link
	 * the own addresses. */
	void (*enter)(struct iface *f);
	/* LIDs may have changed. */
	void (*moved)(struct iface *f);
	/* A neighbour was found at @hw, or, NULL, was not. */
	void (*told)(struct iface *f, const struct vb_gid *ip,
		     const struct vb_ipoib_hw *hw);
	/* Takes only the record of the broadcast group, and none of its
	 * packets. */
	bool hears_no_broadcast;
};
extern const struct iface_kind iface_ip, iface_eth, iface_gateway;

/* How a gateway's Ethernet side is. */
struct iface_gateway_wish {
	struct vb_fabric_place place; /* the switch */
	const char *port;	      /* its Ethernet port; "": any */
	unsigned mtu;
	struct vb_gid router[2]; /* as in struct vb_gw_config */
};

struct iface {
	const struct iface_kind *kind;
	struct tun tun;
	struct ipoib_port port;
	struct ipoib_cm cm;
	bool connected; /* IPoIB's connected mode is wanted */
	struct lookup lookup;
	struct routes routes;
	struct vb_nbrs *nbrs;
	/* Of an Ethernet interface, where its neighbours are; else NULL. */
	struct vb_macs *macs;
	int network; /* of an Ethernet interface: its network's number */
	/* Of a gateway, whose tun.fd is a socket at the switch; else NULL. */
	struct vb_gw *gw;
	struct iface_gateway_wish gateway;
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
	uint8_t frame[IFACE_LONGEST]; /* what is read from the TUN */
	vb_time now;		      /* the time of what is being done */
	struct vb_gid groups_gid;     /* the GID with which @groups began */
};

/* Make the network interface @name, and open the adapter. 0 or -errno; *@what
 * says what failed. */
int iface_open(struct iface *f, const char *name, const char **what);
/* Leave the groups, and close all. */
void iface_close(struct iface *f);

/* ether.c: make an Ethernet interface, a TAP with the @count addresses @a, and
 * plug it into a switch, which then has it. Returns an exit status. */
int ether_plug(const struct iface_gateway_wish *w, const char *name,
	       const struct vb_ip_net *a, unsigned count);

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
