/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the congestion control agent share: its state, and one
 * request. */
#ifndef MGMT_CCA_PRIV_H
#define MGMT_CCA_PRIV_H

#include "mgmt/cca.h"
#include "wire/cc.h"

/* What the agent keeps for each port that has a LID. */
struct cca_port {
	uint64_t key; /* CC_Key of the port; 0: the port has none */
	bool protect;
	/* CC_KeyLeasePeriod in seconds; 0: the lease never ends */
	uint16_t lease;
	uint16_t violations;
	/* the time at which the lease ends; VB_NEVER: it does not run */
	vb_time lease_end;
	/* ClassPortInfo as set, with the address to which traps go */
	struct vb_class_info class;
	/* the port sends no further trap before this time */
	vb_time trap_after;
	/* number of events in the log when a manager last read it */
	uint32_t log_read;
	/* SwitchPortCongestionSetting; used for each port of a switch */
	struct vb_cc_port_setting setting;
};

struct vb_cca {
	struct vb_fab_node *node;
	uint64_t last_tid;
	/* SwitchCongestionSetting: its fields, and its masks as they stand in
	 * the attribute. */
	struct vb_cc_switch_setting sw;
	uint8_t victim[VB_CC_MASK_BYTES], credit[VB_CC_MASK_BYTES];
	struct cca_port *port; /* array of the node's ports, 0..ports */
};

struct vb_cca_ask {
	struct vb_cca *agent;
	struct vb_fab_node *node;
	struct cca_port *own; /* state of the port that the request came to */
	struct vb_fab_port *fab;
	bool key_fits;
	uint32_t mod;  /* attribute modifier of the request */
	uint8_t *data; /* the request's data, VB_CC_DATA_BYTES long */
	/* the request's log, VB_CC_LOG_BYTES long; @data is its end */
	uint8_t *log;
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

/* Returns the time stamp of congestion control for the time @t. */
static inline uint32_t vb_cca_stamp(vb_time t)
{
	return (uint32_t)(t / VB_CC_STAMP_NS);
}

#endif
