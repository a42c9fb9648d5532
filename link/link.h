/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The link seam: frames in and out of this machine, in batches. A link knows
 * bytes and addresses, and no queue pair.
 */
#ifndef LINK_LINK_H
#define LINK_LINK_H

#include "wire/gid.h"
#include "wire/ib_hdr.h"

/*
 * Where frames go, resolved. Filled by its owner (a queue pair or an address
 * handle), completed by the link's route(); constant while it is in use.
 */
struct vb_route {
	struct vb_gid sgid, dgid;
	uint32_t ifindex;    /* of the source's interface */
	uint8_t tclass;	     /* IP TOS / traffic class */
	uint8_t hop_limit;   /* 0: the system's default */
	uint32_t flow_label; /* 20 bits */
	uint32_t dqpn, sqpn; /* entropy: stable for a queue pair's life */
	/* set by route() */
	uint16_t src_port;
	uint16_t channel; /* the link's own: which socket */
};

/*
 * A batch being built. Packets lie one behind the other, from BTH through
 * pad, each followed by VB_ICRC_BYTES of room that the link fills in.
 * A transport may begin one more packet whenever vb_txq_has_room().
 */
#define VB_TXQ_FRAMES 192
#define VB_TXQ_BYTES  (192 * 1024)
#define VB_FRAME_MAX  (VB_IB_MAX_HDR_BYTES + 4096 + VB_ICRC_BYTES)

struct vb_tx_frame {
	const struct vb_route *route;
	uint32_t at;  /* offset in bytes[] */
	uint32_t len; /* BTH through pad; a multiple of 4 */
};

/* Packets of equal length in a row travel as one train, at most this long. */
#define VB_TRAIN_FRAMES 64
#define VB_TRAIN_BYTES	65000

struct vb_txq {
	unsigned first; /* those before it have been sent: see send() */
	unsigned count;
	uint32_t used;
	uint32_t train_len;  /* of each packet of the last train */
	uint32_t train_room; /* packets that it can still take */
	struct vb_tx_frame frames[VB_TXQ_FRAMES];
	uint8_t bytes[VB_TXQ_BYTES + VB_FRAME_MAX];
};

/* A train costs much the same with one packet as with all: where the next
 * could not be a whole one, a batch is full. */
static inline bool vb_txq_has_room(const struct vb_txq *q)
{
	if (q->train_room == 0 && q->used > VB_TXQ_BYTES - VB_TRAIN_BYTES)
		return false;
	return q->count < VB_TXQ_FRAMES && q->used <= VB_TXQ_BYTES;
}

/* Where the next packet is to be written (VB_FRAME_MAX bytes of room). */
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
	/* A shorter one is the last. */
	q->train_room = len < q->train_len ? 0 : q->train_room - 1;
}

static inline void vb_txq_reset(struct vb_txq *q)
{
	q->first = q->count = 0;
	q->used = 0;
	q->train_len = q->train_room = 0;
}

/* Arrived frames. Borrowed: valid until the next recv() on the link. */
struct vb_frame {
	const uint8_t *bytes; /* BTH; ICRC already checked and cut off */
	uint32_t len;	      /* BTH through pad */
	const struct vb_gid *src, *dst;
	uint16_t src_port;
	uint8_t tclass, ttl;
	/* The ICRC is right if the IPv4 Identification was this; -1: it is
	 * right without a condition. The dispatcher decides (WIRE 1.5). */
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

struct vb_link;
struct vb_link_ops {
	const char *name;

	/* Complete @r: choose its source port and channel. -errno. */
	int (*route)(struct vb_link *l, struct vb_route *r);

	/* @r->dqpn is another than route() saw: what depends on it. Cheap,
	 * mostly: there may be one for each packet. -errno. */
	int (*aim)(struct vb_link *l, struct vb_route *r);

	/* Frames to @group that come in on an interface are wanted, until
	 * leave() is told what join() returned. -errno. */
	int (*join)(struct vb_link *l, const struct vb_gid *group,
		    uint32_t ifindex);
	void (*leave)(struct vb_link *l, int member);

	/* Seal (ICRC) and send the frames of @q, then reset it. Never blocks:
	 * false when the kernel has no room, and then the frames from
	 * @q->first on are left, for another send() or a drop(). What the
	 * kernel refuses for another reason is lost, as on a wire, and
	 * counted. Any thread, many at a time. */
	bool (*send)(struct vb_link *l, struct vb_txq *q);

	/* What is left of @q is lost, and counted; @q is reset. */
	void (*drop)(struct vb_link *l, struct vb_txq *q);

	/* Take what has arrived, at most what @q holds; never blocks.
	 * One thread at a time: the caller's receive lock. -errno. */
	int (*recv)(struct vb_link *l, struct vb_rxq *q);

	/* Readable while frames may be waiting. */
	int (*fd)(const struct vb_link *l);

	void (*stats)(const struct vb_link *l, struct vb_link_stats *out);
	void (*close)(struct vb_link *l);
};

struct vb_link {
	const struct vb_link_ops *ops;
};

#endif
