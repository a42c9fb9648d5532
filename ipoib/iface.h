/* SPDX-License-Identifier: BSD-2-Clause */
/* An IPoIB interface: it connects a TUN interface of the host with a port of
 * the adapter, with the help of the tables of neighbours and groups. Instead it
 * may be an interface of Ethernet over InfiniBand, with a TAP; or a gateway,
 * which has an Ethernet port of a switch in place of the host. */
#ifndef IPOIB_IFACE_H
#define IPOIB_IFACE_H

#include "base/macs.h"
#include "engine/fabric_path.h"
#include "ipoib/cm.h"
#include "ipoib/gateway.h"
#include "ipoib/lookup.h"
#include "ipoib/port.h"
#include "ipoib/route.h"
#include "ipoib/share.h"
#include "ipoib/tun.h"

/* packets that are read from the TUN before other descriptors are served */
#define IFACE_BATCH 64

/* room for the longest frame from the host's side, and for a header before
 * it */
#define IFACE_LONGEST VB_CONN_LONGEST
_Static_assert(IFACE_LONGEST >= VB_IPOIB_HEADER + VB_GW_FRAME,
	       "a gateway takes whole frames of the switch");

struct iface;

/* What differs between IPoIB, Ethernet over InfiniBand, and a gateway. */
struct iface_kind {
	/* Open the host's side (a TUN, a TAP, or a socket at the switch) and
	 * make the tables of this kind. Returns 0 or -errno; *@what says what
	 * failed. */
	int (*open)(struct iface *f, const char *name, uint64_t seed,
		    const char **what);
	/* Send a frame from the host's side into the fabric. @frame begins with
	 * room for a header, which @len includes. */
	void (*send)(struct iface *f, uint8_t *frame, size_t len);
	/* Handle a frame from the fabric. The header of IPoIB is removed
	 * already; @type is the type in it. */
	void (*take)(struct iface *f, const struct ibv_wc *wc, unsigned type,
		     const uint8_t *frame, size_t len);
	/* Bring the interface up; @mtu is the MTU that IPoIB would have.
	 * Returns 0; or -errno, and f->failure says why. */
	int (*bring_up)(struct iface *f, unsigned mtu);
	/* The broadcast group is joined: join the other groups, and announce
	 * the interface's own addresses. */
	void (*enter)(struct iface *f);
	/* LIDs of the subnet may have changed: forget what depends on them. */
	void (*moved)(struct iface *f);
	/* The search for the neighbour @ip has ended: its address is @hw; NULL:
	 * it does not answer. */
	void (*told)(struct iface *f, const struct vb_gid *ip,
		     const struct vb_ipoib_hw *hw);
	/* True: this kind needs the record of the broadcast group, and does not
	 * receive the group's packets. */
	bool hears_no_broadcast;
};
extern const struct iface_kind iface_ip, iface_eth, iface_gateway;

/* The user's settings for the Ethernet side of a gateway. */
struct iface_gateway_wish {
	/* the switch that has the gateway's port */
	struct vb_fabric_place place;
	const char *port; /* Ethernet port of the switch; "": any */
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
	/* Of an Ethernet interface: where MAC addresses are; else NULL. */
	struct vb_macs *macs;
	int network; /* of an Ethernet interface: its network's number */
	/* The gateway; its tun.fd is a socket whose other end is at the switch.
	 * NULL: the interface is no gateway. */
	struct vb_gw *gw;
	struct iface_gateway_wish gateway;
	/* NULL: the port is not Active, or lacks the P_Key */
	struct vb_groups *groups;
	/* descriptor of ipoib/share.h; negative: there is none */
	int shared;
	uint16_t pkey;			/* P_Key with its membership bit */
	const struct vb_ip_net *wanted; /* the addresses to add */
	unsigned wanted_count;
	/* the interface's MTU; 0: the interface is not up yet */
	unsigned mtu;
	/* the broadcast group's MTU: the longest datagram, header included */
	unsigned longest;
	bool news; /* the port may have changed */
	/* The broadcast group was joined, and follow_begin() has not acted on
	 * that yet. */
	bool begun;
	/* Why the interface cannot go on: a sentence; NULL: it can. */
	const char *failure;
	/* buffer for a frame from the TUN, with room for a header before it */
	uint8_t frame[IFACE_LONGEST];
	/* the time that the functions below use as the present */
	vb_time now;
	struct vb_gid groups_gid; /* the port's GID when @groups was made */
};

/* Make the network interface @name, and open the adapter. 0 or -errno; *@what
 * says what failed. */
int iface_open(struct iface *f, const char *name, const char **what);
/* Leave the groups, and close all. */
void iface_close(struct iface *f);

/* ether.c: make a TAP interface with the @count addresses @a, and attach it to
 * an Ethernet port of a switch; the fabric's process then owns the TAP. Returns
 * an exit status. */
int ether_plug(const struct iface_gateway_wish *w, const char *name,
	       const struct vb_ip_net *a, unsigned count);

/* Each of these functions handles what has come from one source, at the time
 * f->now. */
void iface_from_tun(struct iface *f);
void iface_from_sa(struct iface *f);
void iface_from_cm(struct iface *f);
void iface_from_netlink(struct iface *f);
void iface_from_events(struct iface *f);
/* Is there a free buffer for one more frame from the TUN? */
bool iface_has_room(const struct iface *f);
/* Handle frames that have come from the fabric. True: more frames wait, but no
 * event will announce them, so the caller calls this again. */
bool iface_from_fabric(struct iface *f);
/* Act on changes of the port, and on the timers that have expired. Returns the
 * time at which to call this again. */
vb_time iface_tick(struct iface *f);

#endif
