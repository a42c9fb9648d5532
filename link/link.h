/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interface between links and the rest: frames into and out of this
 * machine, in batches. A link knows bytes and addresses; it knows no queue
 * pair.
 */
#ifndef LINK_LINK_H
#define LINK_LINK_H

#include "wire/gid.h"
#include "wire/ib_hdr.h"

/* The LIDs and the service level of a route on InfiniBand. On other links all
 * fields are 0. */
struct vb_lid_path {
	uint16_t dlid; /* LID of the destination; 0: the route has none */
	uint8_t sl;    /* service level, 0 to 15 */
	/* low bits of the source LID, as many as the port's LMC */
	uint8_t path_bits;
	bool global; /* frames have a GRH */
};

/* Where the Ethernet frames of a RoCEv1 route go. */
struct vb_hop {
	uint32_t ifindex; /* interface that sends the frames; 0: not known */
	uint8_t dst[6], src[6];
	/* EtherType and contents of the VLAN tag; @tpid 0: the frames have
	 * none */
	uint16_t tpid, tci;
};

/*
 * The route of frames. The owner (a queue pair or an address handle) fills in
 * the addresses, and the link's route() completes the rest. The owner must not
 * change the route while a batch refers to it.
 */
struct vb_route {
	struct vb_gid sgid, dgid;
	/* index of the interface that has the source address */
	uint32_t ifindex;
	uint8_t tclass;	     /* IPv4 TOS or IPv6 traffic class */
	uint8_t hop_limit;   /* hop limit or TTL; 0: the system's default */
	uint32_t flow_label; /* IPv6 flow label, 20 bits */
	/* The QPNs of destination and source, which do not change during a
	 * queue pair's life. The link chooses channel and source port by
	 * them. */
	uint32_t dqpn, sqpn;
	struct vb_lid_path ib;
	/* time of a byte in picoseconds, for an address with a static rate
	 * below that of the port (core/rate.h); else 0 */
	uint32_t ps_per_byte;
	/* true: the packets are RoCEv1 frames, which have @priority in a VLAN
	 * tag */
	bool v1;
	uint8_t priority;  /* priority in the VLAN tag, 0..7 */
	struct vb_hop hop; /* where RoCEv1 frames go; set by route() */
	/* the UDP source port, set by route() */
	uint16_t src_port;
	uint16_t channel; /* number of the link's sending socket */
};

/*
 * A batch that is being built. Packets lie one behind the other, each from BTH
 * through pad, followed by VB_ICRC_BYTES of room that the link fills in. A
 * transport may begin one more packet whenever vb_txq_has_room() is true. Only
 * one thread at a time uses a batch.
 */
#define VB_TXQ_FRAMES 192
#define VB_TXQ_BYTES  (192 * 1024)
#define VB_FRAME_MAX  (VB_IB_MAX_HDR_BYTES + 4096 + VB_ICRC_BYTES)

struct vb_tx_frame {
	const struct vb_route *route;
	uint32_t at;  /* offset of the frame in @bytes */
	uint32_t len; /* bytes from BTH through pad, a multiple of 4 */
};

/* Packets of equal length in a row travel as one train (one UDP_SEGMENT
 * message). These are the most packets and bytes of a train. */
#define VB_TRAIN_FRAMES 64
#define VB_TRAIN_BYTES	65000

#define VB_TXQ_ROOM (24 * 1024)

struct vb_txq {
	/* index of the first frame that send() has not sent yet */
	unsigned first;
	unsigned count;
	uint32_t used;
	/* bytes that the batch may not use, because a static rate slows its
	 * packets down; 0: it may use all */
	uint32_t less;
	/* the time that datagrams with a static rate take, in picoseconds */
	uint64_t slow_ps;
	/* Length in bytes of each packet of the last train, without ICRC. */
	uint32_t train_len;
	uint32_t train_room; /* packets that the last train can still take */
	struct vb_tx_frame frames[VB_TXQ_FRAMES];
	uint8_t bytes[VB_TXQ_BYTES + VB_FRAME_MAX];
	/* Room for what a link's send() hands to the kernel, which is too much
	 * for the stack of a program's thread. */
	_Alignas(16) uint8_t room[VB_TXQ_ROOM];
};

/* Has the batch room for a whole train? A train costs nearly as much with one
 * packet as with all of them, so a batch counts as full when the next train
 * could not be whole. */
static inline bool vb_txq_has_room(const struct vb_txq *q)
{
	if (q->train_room == 0 && q->used > VB_TXQ_BYTES - VB_TRAIN_BYTES)
		return false;
	return q->count < VB_TXQ_FRAMES && q->used + q->less <= VB_TXQ_BYTES;
}

/* Returns the address for the next packet, where VB_FRAME_MAX bytes fit. */
static inline uint8_t *vb_txq_begin(struct vb_txq *q)
{
	return q->bytes + q->used;
}

static inline void vb_txq_commit(struct vb_txq *q, uint32_t len,
				 const struct vb_route *route)
{
	q->frames[q->count++] = (struct vb_tx_frame){ route, q->used, len };
	q->used += len + VB_ICRC_BYTES;
	if (len > q->train_len || q->train_room == 0) {
		q->train_len = len;
		q->train_room = VB_MIN(VB_TRAIN_FRAMES,
				       VB_TRAIN_BYTES / (len + VB_ICRC_BYTES));
	}
	/* A packet that is shorter than the others of its train is the last
	 * one. */
	q->train_room = len < q->train_len ? 0 : q->train_room - 1;
}

/* The time on the wire, in picoseconds, after which a batch of packets with a
 * static rate counts as full. */
#define VB_TXQ_SLOW_PS 100000000u

/* The last packet of @q, of @len bytes, goes to an address with a static rate:
 * the batch takes no more when it lasts long enough. */
static inline void vb_txq_slow(struct vb_txq *q, uint32_t len,
			       uint32_t ps_per_byte)
{
	q->slow_ps += (uint64_t)ps_per_byte * len;
	if (q->slow_ps >= VB_TXQ_SLOW_PS)
		q->less = VB_TXQ_BYTES;
}

static inline void vb_txq_reset(struct vb_txq *q)
{
	q->first = q->count = 0;
	q->used = q->less = 0;
	q->slow_ps = 0;
	q->train_len = q->train_room = 0;
}

/* A frame that arrived. The memory that it points to stays valid until the next
 * recv() of the link. */
struct vb_frame {
	/* The frame from the BTH on. The link has checked the ICRC and cut it
	 * off. */
	const uint8_t *bytes;
	uint32_t len; /* bytes from BTH through pad */
	/* GIDs of sender and receiver; NULL: an InfiniBand frame without a
	 * GRH */
	const struct vb_gid *src, *dst;
	/* The frame is RoCEv1's, and came from this Ethernet address. NULL: it
	 * is no RoCEv1 frame, or this host sent it. */
	const uint8_t *mac;
	bool v1;
	uint16_t src_port;
	uint8_t tclass, ttl;
	/* service level and LIDs on InfiniBand; 0 on other links */
	uint8_t sl;
	uint16_t slid, dlid;
	uint32_t flow_label;
	/* The IPv4 Identification for which the ICRC is right; -1: the ICRC is
	 * right in any case. A UDP socket does not report the Identification,
	 * which the ICRC covers (Annex A17), so engine/dispatch.c decides
	 * whether this value is plausible. */
	int32_t if_ip_id;
	uint32_t ifindex;
};

#define VB_RXQ_FRAMES 256
struct vb_rxq {
	unsigned count;
	struct vb_frame frames[VB_RXQ_FRAMES];
};

struct vb_link_stats {
	uint64_t tx_frames, tx_calls, tx_bytes, tx_lost;
	uint64_t rx_frames, rx_calls, rx_bytes, rx_icrc_errors, rx_malformed;
};

/* A multicast group: the destination of frames to it, and the interface on
 * which it is joined. */
struct vb_link_group {
	struct vb_gid gid;
	uint32_t ifindex; /* index of the interface; unused on InfiniBand */
	uint16_t mlid;	  /* LID of the group on InfiniBand; else 0 */
};

struct vb_link;
struct vb_link_ops {
	const char *name;
	/* Most bytes of a connection that may be under way, for a link whose
	 * receivers make senders wait; 0: this link drops what exceeds its
	 * room, so the transport chooses its window. */
	uint32_t in_flight;

	/* Complete @r: check its addresses, and choose its source port and
	 * channel. May block. 0 or -errno. */
	int (*route)(struct vb_link *l, struct vb_route *r);

	/* @r->dqpn has changed since route(): choose source port and channel
	 * anew. Cheap in most cases, since callers can call it for each packet.
	 * 0 or -errno. */
	int (*aim)(struct vb_link *l, struct vb_route *r);

	/* Let recv() return frames to the multicast group @group, of RoCE
	 * those that arrive on its interface. May block, so the caller holds no
	 * lock that receiving needs. Returns a number for leave(), or
	 * -errno. */
	int (*join)(struct vb_link *l, const struct vb_link_group *group);
	void (*leave)(struct vb_link *l, int member);

	/* Compute the ICRC of each frame in @q, send the frames, and reset @q.
	 * Never blocks. False: the kernel has no room now; the frames from
	 * @q->first on stay in @q, for another send() or a drop(). A frame that
	 * the kernel refuses for another reason is lost, as on a wire, and
	 * counted. Many threads may call it at a time. */
	bool (*send)(struct vb_link *l, struct vb_txq *q);

	/* Optional, of a link whose frames another process of this machine
	 * carries on. sent() returns the position behind the last frame of
	 * send(); has_carried(): has that process taken all frames before
	 * @position? Any thread may ask. */
	uint64_t (*sent)(const struct vb_link *l);
	bool (*has_carried)(const struct vb_link *l, uint64_t position);

	/* Drop the frames that are still in @q, count them as lost, and reset
	 * @q. */
	void (*drop)(struct vb_link *l, struct vb_txq *q);

	/* Take the frames that have arrived, at most as many as @q holds. Never
	 * blocks. One thread at a time: the caller holds its receive lock. 0 or
	 * -errno. */
	int (*recv)(struct vb_link *l, struct vb_rxq *q);

	/* Returns a descriptor that is readable while frames have arrived. */
	int (*fd)(const struct vb_link *l);

	void (*stats)(const struct vb_link *l, struct vb_link_stats *out);
	void (*close)(struct vb_link *l);
};

struct vb_link {
	const struct vb_link_ops *ops;
};

#endif
