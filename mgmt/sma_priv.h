/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the subnet management agent share: one request. */
#ifndef MGMT_SMA_PRIV_H
#define MGMT_SMA_PRIV_H

#include "mgmt/sma.h"

struct vb_sma_ask {
	const struct vb_sma_ops *ops;
	struct vb_fab_node *node;
	uint8_t in;
	bool mkey_fits; /* so the answer may show the M_Key */
	uint32_t mod;	/* the attribute's modifier */
	uint8_t *data;	/* VB_SMP_DATA_BYTES */
	vb_time now;
};

/* A function for Get fills in the data; one for Set obeys them, and the caller
 * then does a Get. All return an enum vb_mad_status; a Set that fails changes
 * nothing. */
typedef unsigned vb_sma_do(struct vb_sma_ask *q);

vb_sma_do vb_sma_get_port_info, vb_sma_set_port_info;
vb_sma_do vb_sma_get_guids, vb_sma_set_guids;
vb_sma_do vb_sma_get_pkeys, vb_sma_set_pkeys;
vb_sma_do vb_sma_get_sl2vl, vb_sma_set_sl2vl;
vb_sma_do vb_sma_get_vlarb, vb_sma_set_vlarb;
vb_sma_do vb_sma_get_linear, vb_sma_set_linear;
vb_sma_do vb_sma_get_random, vb_sma_set_random;
vb_sma_do vb_sma_get_multicast, vb_sma_set_multicast;

/* The port that @number in a modifier means: of an adapter, 0 means the port
 * where the SMP came in. NULL: there is no such port. */
struct vb_fab_port *vb_sma_port(const struct vb_sma_ask *q, unsigned number,
				uint8_t *port);

#endif
