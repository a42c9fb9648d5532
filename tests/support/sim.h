/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two adapters with a bad wire between them, in virtual time. Everything that
 * happens follows from one seed: run it again and it happens again.
 */
#ifndef TESTS_SUPPORT_SIM_H
#define TESTS_SUPPORT_SIM_H

#include "core/transport.h"

#define SIM_SIDES  2
#define SIM_QPS	   8
#define SIM_TRACES 96

/* A small generator, so that runs repeat on every machine. */
struct sim_rand {
	uint64_t state;
};
uint32_t sim_rand32(struct sim_rand *r);
/* 0..n-1 */
uint32_t sim_below(struct sim_rand *r, uint32_t n);
/* True in @chance of 10000 cases. */
bool sim_maybe(struct sim_rand *r, unsigned chance);

/* How bad the wire is: chances in 10000 for each packet. */
struct sim_wire {
	unsigned lose, copy, swap;
	/* Bits flipped: the ICRC finds it, which is a loss. When hostile, the
	 * ICRC is right: the sender meant it. */
	unsigned damage;
	bool hostile;
	/* Packets that may be under way to one side; 0: any number. */
	unsigned room;
	vb_time delay, jitter;
	vb_time pace; /* of one behind the other; 0: any number at once */
};

enum sim_fate { SIM_PASS, SIM_DROP };

struct sim_frame {
	vb_time at;
	uint64_t order;
	unsigned to;
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
	struct vb_qp *qps[SIM_QPS];
	unsigned qp_count;
};

/* Another way between the sides than the wire alone. */
struct sim_path {
	const struct vb_transport *transport;
	/* Both sides are there; no queue pair, and no key, is yet. */
	void (*open)(struct sim *s);
	void (*close)(struct sim *s);
	/* All that the sides can do now. */
	void (*drive)(struct sim *s);
	/* When the next thing happens that is no packet. */
	vb_time (*next)(const struct sim *s);
	/* The side does nothing now; who touches its objects might wait for
	 * ever. */
	bool (*is_away)(const struct sim *s, unsigned side);
	/* The test is over: no side is in the midst of anything any more. */
	void (*rest)(struct sim *s);
	/* What was done on this path that must never be, or NULL. */
	const char *(*crime)(const struct sim *s);
	/* When a side was harmed; VB_NEVER: not yet. */
	vb_time (*harmed_at)(const struct sim *s);
	/* Prints what all runs came to. */
	void (*tell)(void);
};

struct sim {
	const struct sim_path *path; /* NULL: the wire */
	void *way;		     /* of the path */
	struct sim_rand rand;
	vb_time now;
	struct sim_wire wire;
	struct sim_side side[SIM_SIDES];
	struct sim_frame *heap;
	unsigned used, room, to_come[SIM_SIDES];
	uint64_t order, sent;
	vb_time free_at[SIM_SIDES]; /* the wire to that side, by its pace */
	struct sim_trace traces[SIM_TRACES];
	uint64_t traced;
	/* Sees every packet as it is sent, and may lose it. */
	enum sim_fate (*tap)(void *arg, unsigned from,
			     const struct vb_ib_pkt *pkt);
	void *tap_arg;
	bool mute; /* tap, and lose, all */
};

void sim_open(struct sim *s, uint64_t seed);
void sim_open_as(struct sim *s, uint64_t seed, const struct sim_path *path);
void sim_close(struct sim *s);

/* A connection between the sides, or two queue pairs of datagrams: what is
 * posted to one goes to the other (with attr's Q_Key); attr's PSNs, depths,
 * timers and access flags are taken from @attr (state, AV and QPN are filled
 * in). */
struct sim_pair {
	struct vb_qp *qp[SIM_SIDES];
	struct vb_cq *send_cq[SIM_SIDES], *recv_cq[SIM_SIDES];
	struct vb_srq *srq[SIM_SIDES];
	/* XRC, of side 1: its shared queue completes to its recv_cq */
	struct vb_xrcd *xrcd;
	struct vb_qp_share share;
};
struct sim_caps {
	uint32_t wr, sge, inline_bytes, cqe;
	/* 0: RC. QPT_XRC_SEND: side 0's, which sends to side 1's target. */
	enum vb_qp_type type;
	bool srq;      /* receives come from a shared queue, one a side */
	uint32_t tags; /* side 1's has a list of so many, and its queue pair
			* no send queue */
};
extern const struct vb_qp_attr sim_attr; /* usual values */
extern const struct sim_caps sim_caps;
void sim_connect(struct sim *s, struct sim_pair *p,
		 const struct vb_qp_attr *attr, const struct sim_caps *caps);
/* As sim_connect(), in parts: the side's queue pair stays in INIT. */
void sim_create(struct sim *s, struct sim_pair *p, const struct sim_caps *caps);
void sim_to_rtr(struct sim *s, struct sim_pair *p, unsigned side,
		const struct vb_qp_attr *attr);
void sim_to_rts(struct sim *s, struct sim_pair *p, unsigned side,
		const struct vb_qp_attr *attr);
void sim_modify(struct sim *s, struct vb_qp *qp, enum vb_qp_state to,
		uint32_t mask, const struct vb_qp_attr *attr);
void sim_disconnect(struct sim *s, struct sim_pair *p);

/* Send the packets of @q from side @from. */
void sim_transmit(struct sim *s, unsigned from, struct vb_txq *q);
bool sim_is_away(const struct sim *s, unsigned side);
/* Let all queue pairs send what they want to send now. */
void sim_drive(struct sim *s);
/* When does something happen next? */
vb_time sim_next(const struct sim *s);
/* Deliver what is due at @until or before; time stands at @until then. */
void sim_run(struct sim *s, vb_time until);
/* Until nothing happens any more, or @until. True: quiet. */
bool sim_settle(struct sim *s, vb_time until);
/* A packet of the test's own towards @to, sealed; payload is in @pkt. */
void sim_inject(struct sim *s, unsigned to, const struct vb_ib_pkt *pkt);

void sim_post_send(struct vb_qp *qp, const struct vb_send_wqe *wqe,
		   const struct vb_sge *sge);
/* With @data when SEND_INLINE. */
void sim_post_inline(struct vb_qp *qp, const struct vb_send_wqe *wqe,
		     const void *data);
void sim_post_recv(struct vb_qp *qp, uint64_t wr_id, const struct vb_sge *sge,
		   unsigned count);
bool sim_poll(struct vb_cq *cq, struct vb_cqe *e);
/* The next asynchronous event of a side, or -1. */
int sim_event(struct sim *s, unsigned side);

void sim_print_trace(const struct sim *s);

#endif
