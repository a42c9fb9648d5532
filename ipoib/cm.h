/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reliable connections of an IPoIB interface in connected mode, on public
 * verbs and librdmacm: listening at the Service-ID of RFC 4755, where
 * neighbours ask for connections; the queue pairs; and their buffers. Two
 * tables decide which connections there are: ipoib/conn.h those that this
 * interface makes, ipoib/caller.h those that neighbours make. All connections
 * receive into the buffers of one SRQ.
 */
#ifndef IPOIB_CM_H
#define IPOIB_CM_H

#include <rdma/rdma_cma.h>

#include "ipoib/caller.h"
#include "ipoib/cm_ask.h"
#include "ipoib/conn.h"
#include "ipoib/port.h"

#define CM_RECVS 256
#define CM_SENDS 256
#define CM_SLOT	 65536 /* bytes of a buffer */
/* how long to wait after listening has failed, before the next try */
#define CM_RETRY (10 * VB_SEC)

/* What librdmacm and verbs know of one connection: of a connection that this
 * interface has made (ipoib/conn.h), or of one that a neighbour has made
 * (ipoib/caller.h). */
struct cm_line {
	struct ipoib_cm *cm;
	struct rdma_cm_id *id; /* NULL: the path is being asked for */
	struct ibv_qp *qp;     /* NULL: not made yet */
	struct vb_ipoib_hw peer;
	/* index in @callers, if a neighbour made the connection; -1: this
	 * interface made it */
	int place;
	/* the member query of struct vb_conn, if this interface made the
	 * connection */
	uint32_t query;
	struct cm_line *next;
};

struct ipoib_cm {
	struct ipoib_port *port;
	/* NULL: the interface is in datagram mode */
	struct rdma_event_channel *channel;
	/* NULL: the interface does not listen */
	struct rdma_cm_id *listener;
	/* the thread that waits for the connection manager */
	struct cm_asker *asker;
	bool asked;  /* a question to listen has no answer yet */
	bool waited; /* the first such question was asked */
	uint16_t pkey;
	struct vb_gid gid; /* the port's GID when @listener began to listen */
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	uint8_t *memory; /* buffers for receives, then for sends */
	/* the numbers of the free send buffers; and for each send buffer in use
	 * the connection that sends from it */
	unsigned free[CM_SENDS], free_count;
	struct cm_line *owner[CM_SENDS];
	struct cm_line *lines;
	struct vb_conns *conns;
	struct vb_callers *callers;
	vb_time retry; /* the time of the next try to listen */
	/* the errno with which the last try to listen failed; 0: it did not
	 * fail */
	int refused;
	/* the time that the caller passed to the function now running */
	vb_time now;
};

/* Make the objects that all connections share, on @port, which the caller has
 * opened. 0 or -errno; the caller calls ipoib_cm_close() in either case. */
int ipoib_cm_open(struct ipoib_cm *cm, struct ipoib_port *port);
void ipoib_cm_close(struct ipoib_cm *cm);

/* Listen for connections of neighbours at the port's GID, in the partition
 * @pkey. False: listening is not possible now, and a line of the log says
 * why; or the connection manager has not answered yet. @cm->retry says when to
 * call again. */
bool ipoib_cm_listen(struct ipoib_cm *cm, uint16_t pkey, vb_time now);
/* End all connections, and stop listening. */
void ipoib_cm_hush(struct ipoib_cm *cm);

/* Send a frame of @len bytes to @peer. Arguments and result are those of
 * vb_conns_send(). */
enum vb_conn_way ipoib_cm_send(struct ipoib_cm *cm,
			       const struct vb_ipoib_hw *peer,
			       const void *frame, size_t len, unsigned datagram,
			       vb_time now, unsigned *most);
/* May the interface read one more frame from the host? False: there is no free
 * send buffer, or a connection is full (vb_conns_is_full()). */
bool ipoib_cm_has_room(const struct ipoib_cm *cm, vb_time now);

/* Handle the connection manager's answers that have come (ipoib/cm_ask.h). */
void ipoib_cm_answers(struct ipoib_cm *cm, vb_time now);
/* Handle the events of librdmacm that have come. */
void ipoib_cm_events(struct ipoib_cm *cm, vb_time now);
/* Act on the timers of both tables that have expired. Returns the time at which
 * to call this again. */
vb_time ipoib_cm_tick(struct ipoib_cm *cm, vb_time now);

/* Handles a received frame. @qpn: the queue pair from which the sending
 * interface sends its datagrams, which identifies that interface. */
typedef void ipoib_cm_take(void *arg, uint32_t qpn, const uint8_t *frame,
			   size_t len);
/* Handle completions, about CM_RECVS at most. Returns the number of
 * completions. */
unsigned ipoib_cm_poll(struct ipoib_cm *cm, ipoib_cm_take *take, void *arg,
		       vb_time now);

/* --- cm_data.c --- */

/* Returns 0 or -errno. */
int ipoib_cm_data_open(struct ipoib_cm *cm);
void ipoib_cm_data_close(struct ipoib_cm *cm);
/* Create l->qp, with room for @sends frames that are sent and not completed. 0
 * or -errno. */
int ipoib_cm_data_make(struct cm_line *l, unsigned sends);
/* Destroy l->qp, and mark its send buffers as free. */
void ipoib_cm_data_end(struct cm_line *l);
/* Copy the frame into a free send buffer and post it. False: no buffer is free,
 * or ibv_post_send() refuses. */
bool ipoib_cm_data_send(struct cm_line *l, const void *frame, size_t len);
void ipoib_cm_arm(struct ipoib_cm *cm);

#endif
