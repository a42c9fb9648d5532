/* SPDX-License-Identifier: BSD-2-Clause */
/* Attributes of the performance management class (IBA 16.1). The data of this
 * class begins at byte 64 of the MAD. */
#ifndef WIRE_PERF_MAD_H
#define WIRE_PERF_MAD_H

#include "wire/mad.h"

#define VB_PERF_DATA_AT	  64
#define VB_PERF_ALL_PORTS 0xff

enum vb_perf_attr {
	PERF_CLASS_PORT_INFO = 0x01,
	PERF_COUNTERS = 0x12,
	PERF_COUNTERS_EXT = 0x1d,
};

/* Capabilities in ClassPortInfo (IBA 16.1.3.1). */
#define VB_PERF_ALL_PORT_SELECT 0x0100
#define VB_PERF_EXT_WIDTH	0x0200
#define VB_PERF_XMIT_WAIT	0x1000

struct vb_class_port_info {
	uint8_t base_version, class_version;
	uint16_t cap_mask;
	uint8_t resp_time; /* 5 bits: 4.096 us * 2^n */
};

/* PortCounters (16.1.3.5). A Set resets the counters that @select names. */
struct vb_perf_counters {
	uint8_t port_select;
	uint16_t select;
	uint16_t symbol_errors;
	uint8_t link_recovered, link_downed;
	uint16_t rcv_errors, rcv_remote_phys, rcv_switch_relay, xmit_discards;
	uint8_t xmit_constraint, rcv_constraint, select2;
	uint8_t local_integrity, buffer_overrun;
	uint16_t vl15_dropped;
	uint32_t xmit_data, rcv_data, xmit_pkts, rcv_pkts; /* data: words */
	uint32_t xmit_wait;
};

/* PortCountersExtended (16.1.4.11). */
struct vb_perf_ext {
	uint8_t port_select;
	uint16_t select;
	uint64_t xmit_data, rcv_data, xmit_pkts, rcv_pkts;
	uint64_t unicast_xmit, unicast_rcv, multicast_xmit, multicast_rcv;
};

void vb_class_port_info_get(const uint8_t *data, struct vb_class_port_info *c);
void vb_class_port_info_put(uint8_t *data, const struct vb_class_port_info *c);
void vb_perf_counters_get(const uint8_t *data, struct vb_perf_counters *c);
void vb_perf_counters_put(uint8_t *data, const struct vb_perf_counters *c);
void vb_perf_ext_get(const uint8_t *data, struct vb_perf_ext *c);
void vb_perf_ext_put(uint8_t *data, const struct vb_perf_ext *c);

#endif
