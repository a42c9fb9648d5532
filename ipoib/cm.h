/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reliable connections of an IPoIB interface in connected mode, on public
 * verbs and librdmacm: the Service-ID of RFC 4755 at which neighbours call,
 * queue pairs, and their buffers. The tables decide (ipoib/conn.h,
 * ipoib/caller.h). Received frames share one queue of buffers (an SRQ).
 */
#ifndef IPOIB_CM_H
#define IPOIB_CM_H

#include <rdma/rdma_cma.h>

#include "ipoib/caller.h"
#include "ipoib/conn.h"
#include "ipoib/port.h"

#define CM_RECVS 256
#define CM_SENDS 256
#define CM_SLOT	 65536 /* bytes of a buffer */
/* how long to wait before the next try to listen */
#define CM_RETRY (10 * VB_SEC)

/* The bytes of a connection: one that this side has made, or a neighbour's. */
struct cm_line {
	struct ipoib_cm *cm;
	struct rdma_cm_id *id;
	struct ibv_qp *qp; /* NULL: not made yet */
	struct vb_ipoib_hw peer;
	int place;	/* of a neighbour's, in the table; -1: this side's */
	uint32_t query; /* of this side's */
	struct cm_line *next;
};

struct ipoib_cm {
	struct ipoib_port *port;
	struct rdma_event_channel *channel; /* NULL: this is datagram mode */
	struct rdma_cm_id *listener;	    /* NULL: none listens */
	uint16_t pkey;
	struct vb_gid gid; /* of the port, with which @listener began */
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	uint8_t *memory; /* buffers for receives, then for sends */
	/* the sends' buffers that are free, and who uses the others */
	unsigned free[CM_SENDS], free_count;
	struct cm_line *owner[CM_SENDS];
	struct cm_line *lines;
	struct vb_conns *conns;
	struct vb_callers *callers;
	vb_time retry; /* when to try again to listen */
	int refused;   /* the errno of the last try; 0: there was none */
	vb_time now;   /* the time of what is being done */
};

/* Make what connections share, at @port, which the caller has opened. 0 or
 * -errno; the caller closes @cm in either case. */
int ipoib_cm_open(struct ipoib_cm *cm, struct ipoib_port *port);
void ipoib_cm_close(struct ipoib_cm *cm);

/* Let neighbours call at the port's GID, in the partition @pkey. False: they
 * cannot now, and a line of the log says why. */
bool ipoib_cm_listen(struct ipoib_cm *cm, uint16_t pkey, vb_time now);
/* End all connections, and listen no more. */
void ipoib_cm_hush(struct ipoib_cm *cm);

/* Send a frame of @len bytes to @peer, as vb_conns_send(). */
enum vb_conn_way ipoib_cm_send(struct ipoib_cm *cm,
			       const struct vb_ipoib_hw *peer,
			       const void *frame, size_t len, unsigned datagram,
			       vb_time now, unsigned *most);
/* Is there room for one more frame from the host? */
bool ipoib_cm_has_room(const struct ipoib_cm *cm, vb_time now);

/* Take what librdmacm says of connections. */
void ipoib_cm_events(struct ipoib_cm *cm, vb_time now);
/* Do what is due. Returns when something is due again. */
vb_time ipoib_cm_tick(struct ipoib_cm *cm, vb_time now);

/* Takes a frame that came from the interface whose datagrams come from @qpn. */
typedef void ipoib_cm_take(void *arg, uint32_t qpn, const uint8_t *frame,
			   size_t len);
/* Take completions, at most CM_RECVS or so. Returns how many there were. */
unsigned ipoib_cm_poll(struct ipoib_cm *cm, ipoib_cm_take *take, void *arg,
		       vb_time now);

/* --- cm_data.c --- */

/* 0 or -errno. */
int ipoib_cm_data_open(struct ipoib_cm *cm);
void ipoib_cm_data_close(struct ipoib_cm *cm);
/* Make l->qp, for up to @sends frames under way. 0 or -errno. */
int ipoib_cm_data_make(struct cm_line *l, unsigned sends);
/* Destroy l->qp, and take back its buffers. */
void ipoib_cm_data_end(struct cm_line *l);
/* False: there is no buffer, or the queue pair refuses. */
bool ipoib_cm_data_send(struct cm_line *l, const void *frame, size_t len);
void ipoib_cm_arm(struct ipoib_cm *cm);

#endif
