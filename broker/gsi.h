/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pair 1: management datagrams in and out of slot 0's socket. */
#ifndef BROKER_GSI_H
#define BROKER_GSI_H

#include "mgmt/mad_out.h"

struct vb_gsi;

/* @rx_fd is taken over on success. */
VB_MUST_CHECK int vb_gsi_open(int rx_fd, struct vb_gsi **gsi);
void vb_gsi_close(struct vb_gsi *g);
int vb_gsi_fd(const struct vb_gsi *g);
void vb_gsi_send(struct vb_gsi *g, const struct vb_mad_path *path,
		 const uint8_t mad[VB_MAD_BYTES]);
/* Some of what has arrived: @take is called with each MAD. */
void vb_gsi_recv(struct vb_gsi *g,
		 void (*take)(void *arg, const struct vb_mad_path *back,
			      const uint8_t *bytes, size_t len),
		 void *arg);
/* Some of what was sent @to somebody and came back; nothing vouches for it.
 * @error: ECONNREFUSED, EHOSTUNREACH, or another. */
void vb_gsi_returns(struct vb_gsi *g,
		    void (*take)(void *arg, const struct vb_gid *to,
				 const uint8_t *bytes, size_t len, int error),
		    void *arg);

#endif
