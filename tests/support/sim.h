/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two adapters with a bad wire between them, in virtual time. All events follow
 * from one seed: a run with an equal seed is an equal run.
 */
#ifndef TESTS_SUPPORT_SIM_H
#define TESTS_SUPPORT_SIM_H

#include "core/transport.h"

#define SIM_SIDES  2
#define SIM_QPS	   8
#define SIM_TRACES 96

/* A small random generator whose numbers are equal on every machine. */
struct sim_rand {
	uint64_t state;
};
uint32_t sim_rand32(struct sim_rand *r);
/* Returns a random number from 0 to @n - 1. */
uint32_t sim_below(struct sim_rand *r, uint32_t n);
/* Returns true with a probability of @chance in 10000. */
bool sim_maybe(struct sim_rand *r, unsigned chance);

/* The faults of the wire. The numbers are chances in 10000 for each packet. */
struct sim_wire {
	unsigned lose, copy, swap;
	/* Bits of the packet are flipped. The wrong ICRC reveals it, so the
	 * packet is lost. If @hostile is set the ICRC is right, as if the
	 * sender had sent these bits. */
	unsigned damage;
	bool hostile;
	/* the most packets on their way to one side; 0: no limit */
	unsigned room;
	vb_time delay, jitter;
	/* ns from one packet on the wire to the next; 0: no delay */
	vb_time pace;
};

enum sim_fate { SIM_PASS, SIM_DROP };

struct sim_frame {
	vb_time at;
	uint64_t order;
	unsigned to;
	/* of an InfiniBand frame: its LIDs (sim_make_ib()) */
	uint16_t slid, dlid;
	uint32_t len;
	uint8_t *bytes;
};

struct sim_trace {
	vb_time at;
	unsigned from;
	uint8_t opcode, syndrome;
	bool ack_req;
	uint32_t psn, bytes;
	const char *fate;
};

struct sim;
struct sim_side {
	struct sim *sim;
	unsigned number;
	struct vb_adapter adapter;
	struct vb_pd *pd;
	struct vb_async async;
	struct vb_link link;
	/* true: the link says that it still holds the frames that were sent */
	bool carries_nothing;
	struct vb_qp *qps[SIM_QPS];
	unsigned qp_count;
};

/* A path between the sides that is not the wire, such as shared memory. */
struct sim_path {
	const struct vb_transport *transport;
	/* Called when both sides exist, but no queue pair and no key yet. */
	void (*open)(struct sim *s);
	void (*close)(struct sim *s);
	/* Lets both sides do all that they can do at the present time. */
	void (*drive)(struct sim *s);
	/* Returns the time of the path's next event; packets do not count. */
	vb_time (*next)(const struct sim *s);
	/* Is the side inactive now? A thread that uses its objects might wait
	 * for ever. */
	bool (*is_away)(const struct sim *s, unsigned side);
	/* Called at the end of a test: bring each side to a point outside of
	 * any operation. */
	void (*rest)(struct sim *s);
	/* Returns a description of a forbidden action on this path, or NULL. */
	const char *(*crime)(const struct sim *s);
	/* Returns when the first harm was done to a side; VB_NEVER: there was
	 * none yet. */
	vb_time (*harmed_at)(const struct sim *s);
	/* Prints the totals of all runs over the path. */
	void (*tell)(void);
};

struct sim {
	/* a path besides the wire; NULL: only the wire */
	const struct sim_path *path;
	void *way; /* private state of @path's functions */
	struct sim_rand rand;
	vb_time now;
	struct sim_wire wire;
	struct sim_side side[SIM_SIDES];
	struct sim_frame *heap;
	unsigned used, room, to_come[SIM_SIDES];
	uint64_t order, sent;
	/* time at which the wire to each side is free for its next packet */
	vb_time free_at[SIM_SIDES];
	struct sim_trace traces[SIM_TRACES];
	uint64_t traced;
	/* A function that sees every packet as it is sent, and may lose it. */
	enum sim_fate (*tap)(void *arg, unsigned from,
			     const struct vb_ib_pkt *pkt);
	void *tap_arg;
	/* With sim_make_ib(): a bit for each of the SIM_WAYS paths. If it is
	 * set, that path loses all packets. */
	unsigned cut;
	bool mute; /* true: all packets are lost, and @tap is not called */
};

void sim_open(struct sim *s, uint64_t seed);
void sim_open_as(struct sim *s, uint64_t seed, const struct sim_path *path);
void sim_close(struct sim *s);
/* Make both sides adapters of an InfiniBand subnet, whose ports have two LIDs
 * each (LMC 1). The last bit of a frame's DLID chooses one of two paths. Call
 * this before sim_create(). */
#define SIM_WAYS 2
void sim_make_ib(struct sim *s);
/* Returns the address vector of side @to by path @way, for a queue pair of the
 * other side. */
struct vb_av sim_ib_av(unsigned to, unsigned way);

/* A connection between the sides, or two datagram queue pairs. Requests that
 * are posted to one queue pair go to the other one (datagrams with the Q_Key of
 * @attr). PSNs, depths, timers and access flags are those of @attr (state, AV
 * and QPN are filled in). */
struct sim_pair {
	struct vb_qp *qp[SIM_SIDES];
	struct vb_cq *send_cq[SIM_SIDES], *recv_cq[SIM_SIDES];
	struct vb_srq *srq[SIM_SIDES];
	/* The XRC domain of side 1. Its SRQ reports completions to side 1's
	 * recv_cq. */
	struct vb_xrcd *xrcd;
	struct vb_qp_share share;
};
struct sim_caps {
	uint32_t wr, sge, inline_bytes, cqe;
	/* 0: RC. QPT_XRC_SEND: side 0 has an initiator, which sends to the XRC
	 * target of side 1. */
	enum vb_qp_type type;
	bool srq; /* true: each side has a shared receive queue */
	/* the number of tagged buffers in side 1's list, whose queue pair then
	 * has no send queue */
	uint32_t tags;
};
/* attributes of a usual RC connection */
extern const struct vb_qp_attr sim_attr;
extern const struct sim_caps sim_caps;
void sim_connect(struct sim *s, struct sim_pair *p,
		 const struct vb_qp_attr *attr, const struct sim_caps *caps);
/* The steps of sim_connect(), one by one: sim_create() makes the queue pairs of
 * both sides, and the next two functions move the queue pair of one side. */
void sim_create(struct sim *s, struct sim_pair *p, const struct sim_caps *caps);
void sim_to_rtr(struct sim *s, struct sim_pair *p, unsigned side,
		const struct vb_qp_attr *attr);
void sim_to_rts(struct sim *s, struct sim_pair *p, unsigned side,
		const struct vb_qp_attr *attr);
void sim_modify(struct sim *s, struct vb_qp *qp, enum vb_qp_state to,
		uint32_t mask, const struct vb_qp_attr *attr);
void sim_disconnect(struct sim *s, struct sim_pair *p);

/* Put the packets of the batch @q, which side @from sends, on the wire. */
void sim_transmit(struct sim *s, unsigned from, struct vb_txq *q);
bool sim_is_away(const struct sim *s, unsigned side);
/* Let all queue pairs send all that they may send at the present time. */
void sim_drive(struct sim *s);
/* Returns the time of the next event of the wire, of a timer, or of the
 * path. */
vb_time sim_next(const struct sim *s);
/* Deliver all packets due at @until or before; the time is @until
 * afterwards. */
void sim_run(struct sim *s, vb_time until);
/* Run until no more events happen, or until @until. True: no events are
 * left. */
bool sim_settle(struct sim *s, vb_time until);
/* Send the packet @pkt, which the test made, to side @to with a right ICRC. The
 * payload is in @pkt. */
void sim_inject(struct sim *s, unsigned to, const struct vb_ib_pkt *pkt);

void sim_post_send(struct vb_qp *qp, const struct vb_send_wqe *wqe,
		   const struct vb_sge *sge);
/* Post a request. If it has SEND_INLINE, its bytes are @data. */
void sim_post_inline(struct vb_qp *qp, const struct vb_send_wqe *wqe,
		     const void *data);
void sim_post_recv(struct vb_qp *qp, uint64_t wr_id, const struct vb_sge *sge,
		   unsigned count);
bool sim_poll(struct vb_cq *cq, struct vb_cqe *e);
/* Returns the side's next asynchronous event, or -1 if there is none. */
int sim_event(struct sim *s, unsigned side);

void sim_print_trace(const struct sim *s);

#endif
