/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the subnet management agent share: one request. */
#ifndef MGMT_SMA_PRIV_H
#define MGMT_SMA_PRIV_H

#include "mgmt/sma.h"

struct vb_sma_ask {
	const struct vb_sma_ops *ops;
	struct vb_fab_node *node;
	uint8_t in;
	/* the request's M_Key is right, so the answer may show the port's
	 * M_Key */
	bool mkey_fits;
	uint32_t mod;  /* the attribute modifier of the request */
	uint8_t *data; /* the SMP's data, VB_SMP_DATA_BYTES long */
	vb_time now;
};

/* The handler of an attribute's Get fills in the data of the answer. The
 * handler of a Set obeys the data, and the caller then does a Get. All return
 * an enum vb_mad_status; a Set that fails changes nothing. */
typedef unsigned vb_sma_do(struct vb_sma_ask *q);

vb_sma_do vb_sma_get_port_info, vb_sma_set_port_info;
vb_sma_do vb_sma_get_guids, vb_sma_set_guids;
vb_sma_do vb_sma_get_pkeys, vb_sma_set_pkeys;
vb_sma_do vb_sma_get_sl2vl, vb_sma_set_sl2vl;
vb_sma_do vb_sma_get_vlarb, vb_sma_set_vlarb;
vb_sma_do vb_sma_get_linear, vb_sma_set_linear;
vb_sma_do vb_sma_get_random, vb_sma_set_random;
vb_sma_do vb_sma_get_multicast, vb_sma_set_multicast;

/* Returns the port that @number in an attribute modifier means. At an adapter,
 * 0 means the port where the SMP came in. NULL: there is no such port. */
struct vb_fab_port *vb_sma_port(const struct vb_sma_ask *q, unsigned number,
				uint8_t *port);

#endif
