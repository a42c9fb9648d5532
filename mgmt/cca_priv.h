/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the congestion control agent share: its state, and one
 * request. */
#ifndef MGMT_CCA_PRIV_H
#define MGMT_CCA_PRIV_H

#include "mgmt/cca.h"
#include "wire/cc.h"

/* Of each port that has a LID. */
struct cca_port {
	uint64_t key; /* CC_Key; 0: none */
	bool protect;
	uint16_t lease; /* seconds; 0: for ever */
	uint16_t violations;
	vb_time lease_end;	    /* VB_NEVER: the timer does not run */
	struct vb_class_info class; /* where traps go */
	vb_time trap_after;	    /* no trap before */
	uint32_t log_read; /* count of the log when a manager last read it */
	/* Of each port of a switch. */
	struct vb_cc_port_setting setting;
};

struct vb_cca {
	struct vb_fab_node *node;
	uint64_t last_tid;
	/* SwitchCongestionSetting: its fields, and its masks as they stand in
	 * the attribute. */
	struct vb_cc_switch_setting sw;
	uint8_t victim[VB_CC_MASK_BYTES], credit[VB_CC_MASK_BYTES];
	struct cca_port *port; /* [0..ports] */
};

struct vb_cca_ask {
	struct vb_cca *agent;
	struct vb_fab_node *node;
	struct cca_port *own; /* of the port that the request came to */
	struct vb_fab_port *fab;
	bool key_fits;
	uint32_t mod;  /* the attribute's modifier */
	uint8_t *data; /* VB_CC_DATA_BYTES */
	uint8_t *log;  /* VB_CC_LOG_BYTES, the last of which are @data */
	vb_time now;
};

/* A function for Get fills in the data; one for Set obeys them, and the caller
 * then does a Get. All return an enum vb_mad_status; a Set that fails changes
 * nothing. */
typedef unsigned vb_cca_do(struct vb_cca_ask *q);

vb_cca_do vb_cca_get_switch_log, vb_cca_get_ca_log;
vb_cca_do vb_cca_get_switch, vb_cca_set_switch;
vb_cca_do vb_cca_get_ports, vb_cca_set_ports;
vb_cca_do vb_cca_get_ca, vb_cca_set_ca;
vb_cca_do vb_cca_get_table, vb_cca_set_table;

/* The time stamp of @t. */
static inline uint32_t vb_cca_stamp(vb_time t)
{
	return (uint32_t)(t / VB_CC_STAMP_NS);
}

#endif
