/* SPDX-License-Identifier: BSD-2-Clause */
/* Performance management attributes as tables of fields (IBA 16.1). */
#include "wire/perf_mad.h"

#include "wire/field.h"

#define CLASS(member, byte, bit, bits)                                         \
	VB_FIELD(vb_class_port_info, member, byte, bit, bits)
static const struct vb_field class_fields[] = {
	CLASS(base_version, 0, 0, 8),
	CLASS(class_version, 1, 0, 8),
	CLASS(cap_mask, 2, 0, 16),
	CLASS(resp_time, 7, 3, 5),
};

#define COUNT(member, byte, bit, bits)                                         \
	VB_FIELD(vb_perf_counters, member, byte, bit, bits)
static const struct vb_field counters_fields[] = {
	COUNT(port_select, 1, 0, 8),	   COUNT(select, 2, 0, 16),
	COUNT(symbol_errors, 4, 0, 16),	   COUNT(link_recovered, 6, 0, 8),
	COUNT(link_downed, 7, 0, 8),	   COUNT(rcv_errors, 8, 0, 16),
	COUNT(rcv_remote_phys, 10, 0, 16), COUNT(rcv_switch_relay, 12, 0, 16),
	COUNT(xmit_discards, 14, 0, 16),   COUNT(xmit_constraint, 16, 0, 8),
	COUNT(rcv_constraint, 17, 0, 8),   COUNT(select2, 18, 0, 8),
	COUNT(local_integrity, 19, 0, 4),  COUNT(buffer_overrun, 19, 4, 4),
	COUNT(vl15_dropped, 22, 0, 16),	   COUNT(xmit_data, 24, 0, 32),
	COUNT(rcv_data, 28, 0, 32),	   COUNT(xmit_pkts, 32, 0, 32),
	COUNT(rcv_pkts, 36, 0, 32),	   COUNT(xmit_wait, 40, 0, 32),
};

#define EXT(member, byte, bits) VB_FIELD(vb_perf_ext, member, byte, 0, bits)
static const struct vb_field ext_fields[] = {
	EXT(port_select, 1, 8),	     EXT(select, 2, 16),
	EXT(xmit_data, 8, 64),	     EXT(rcv_data, 16, 64),
	EXT(xmit_pkts, 24, 64),	     EXT(rcv_pkts, 32, 64),
	EXT(unicast_xmit, 40, 64),   EXT(unicast_rcv, 48, 64),
	EXT(multicast_xmit, 56, 64), EXT(multicast_rcv, 64, 64),
};

#define ACCESS(name, type, table)                                              \
	void name##_get(const uint8_t *from, struct type *to)                  \
	{                                                                      \
		vb_fields_get(table, VB_COUNT(table), from, to);               \
	}                                                                      \
	void name##_put(uint8_t *to, const struct type *from)                  \
	{                                                                      \
		vb_fields_put(table, VB_COUNT(table), to, from);               \
	}
ACCESS(vb_class_port_info, vb_class_port_info, class_fields)
ACCESS(vb_perf_counters, vb_perf_counters, counters_fields)
ACCESS(vb_perf_ext, vb_perf_ext, ext_fields)
