/* SPDX-License-Identifier: BSD-2-Clause */
/* The adapter's port of an IPoIB interface: a queue pair of datagrams and its
 * buffers, on public verbs, and datagrams to the subnet administrator, on
 * libibumad. */
#ifndef IPOIB_PORT_H
#define IPOIB_PORT_H

#include <infiniband/verbs.h>

#include "ipoib/group.h"

#define PORT_RECVS  512
#define PORT_SENDS  256
#define PORT_NUMBER 1
#define PORT_GRH    40 /* bytes that verbs leave free before a datagram */
/* the longest datagram of InfiniBand */
#define PORT_LONGEST 4096

struct ipoib_port {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	int umad, agent; /* -1: not open */
	uint64_t guid;	 /* GUID of the adapter's node */
	struct vb_gid gid;
	bool active;
	uint16_t lid, sm_lid;
	uint8_t sm_sl;
	int pkey_index; /* -1: the port lacks the P_Key */
	/* The P_Key index and the Q_Key with which the queue pair was started;
	 * invalid if @started is false. */
	bool started;
	int started_index;
	uint32_t qkey;
	uint8_t *memory; /* buffers for receives, then for sends */
	/* Numbers of sends that were put into the chain, that were posted, and
	 * that have completed, so far. Send number n uses the buffer and the
	 * request at index n modulo PORT_SENDS. */
	uint32_t put, posted, done;
	struct ibv_send_wr wr[PORT_SENDS];
	struct ibv_sge sge[PORT_SENDS];
	uint64_t dropped; /* sends for which there was no buffer */
};

/* Make @fd non-blocking. 0 or -errno. */
int ipoib_unblock(int fd);

/* Open the first device. 0 or -errno; *@what says what failed. */
int ipoib_port_open(struct ipoib_port *p, const char **what);
void ipoib_port_close(struct ipoib_port *p);

/* Read the state, the LIDs, the GID, and the index of @pkey. 0 or -errno. */
int ipoib_port_refresh(struct ipoib_port *p, uint16_t pkey);
/* Bring the queue pair to RTS, with the P_Key's index and @qkey, unless it is
 * in RTS with these already. 0 or -errno. */
int ipoib_port_start(struct ipoib_port *p, uint32_t qkey);

/* Make an address handle for a port, or a group, with GID @gid. NULL: errno
 * says why it cannot be made. */
struct ibv_ah *ipoib_port_aim(struct ipoib_port *p,
			      const struct vb_ipoib_path *path,
			      const struct vb_gid *gid);
/* Destroy an address handle. Frames in the chain that use it are posted
 * first. */
void ipoib_port_forget(struct ipoib_port *p, struct ibv_ah *ah);

/* Is there a buffer for one more send? */
bool ipoib_port_has_room(const struct ipoib_port *p);
/* Put a frame into the chain that ipoib_port_flush() posts. It is dropped if
 * there is no buffer. */
void ipoib_port_send(struct ipoib_port *p, struct ibv_ah *ah, uint32_t qpn,
		     const void *frame, size_t len);
void ipoib_port_flush(struct ipoib_port *p);

/* Handles a received datagram. @frame: the bytes behind the 40 bytes of the
 * GRH. */
typedef void ipoib_port_take(void *arg, const struct ibv_wc *wc,
			     const uint8_t *frame, size_t len);
/* Handle at most PORT_RECVS completions, and post the receive buffers again.
 * Returns the number of completions, or -EIO: the queue pair is in error, since
 * the fabric has ended. */
int ipoib_port_poll(struct ipoib_port *p, ipoib_port_take *take, void *arg);
/* Ask for an event on the completion channel when the next completion comes,
 * and read and acknowledge the events that have come. */
void ipoib_port_arm(struct ipoib_port *p);

/* --- port_sa.c: the subnet administrator --- */

/* Returns 0 or -errno. */
int ipoib_sa_open(struct ipoib_port *p);
void ipoib_sa_close(struct ipoib_port *p);
/* Send a request to the subnet administrator. libibumad repeats it up to
 * @retries times, a second apart. */
void ipoib_sa_ask(struct ipoib_port *p, const uint8_t mad[VB_MAD_BYTES],
		  int retries);
/* Read one answer. False: there is none. */
bool ipoib_sa_take(struct ipoib_port *p, struct ipoib_sa_answer *a);

#endif
