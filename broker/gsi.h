/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pair 1 (the general service interface, IBA 13.5.1): sends and receives
 * management datagrams (MADs) through slot 0's socket, and those of RoCEv1, if
 * this process has CAP_NET_RAW, through a packet socket. */
#ifndef BROKER_GSI_H
#define BROKER_GSI_H

#include "mgmt/mad_out.h"

struct vb_gsi;

/* Open queue pair 1. *@gsi owns @rx_fd, slot 0's socket; on an error @rx_fd is
 * closed. 0 or -errno. */
VB_MUST_CHECK int vb_gsi_open(int rx_fd, struct vb_gsi **gsi);
void vb_gsi_close(struct vb_gsi *g);
/* Can this process send by RoCEv1? */
bool vb_gsi_has_v1(const struct vb_gsi *g);
/* Returns a descriptor that is readable when datagrams have come; @g closes
 * it. */
int vb_gsi_fd(const struct vb_gsi *g);
/* Sends @mad at once. Drops it when the kernel has no room for 20 ms or has no
 * route; the connection manager repeats it. */
void vb_gsi_send(struct vb_gsi *g, const struct vb_mad_path *path,
		 const uint8_t mad[VB_MAD_BYTES]);
/* Receives one batch, and calls @take with each MAD and the path back to its
 * sender. The bytes are valid during the call. */
void vb_gsi_recv(struct vb_gsi *g,
		 void (*take)(void *arg, const struct vb_mad_path *back,
			      const uint8_t *bytes, size_t len),
		 void *arg);
/* Calls @take with MADs that the network returned by ICMP, at most 64 in a
 * call. Its arguments: the host @to which the MAD was sent, the bytes, which
 * may be forged, and an errno such as ECONNREFUSED or EHOSTUNREACH. */
void vb_gsi_returns(struct vb_gsi *g,
		    void (*take)(void *arg, const struct vb_gid *to,
				 const uint8_t *bytes, size_t len, int error),
		    void *arg);

#endif
