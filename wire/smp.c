/* SPDX-License-Identifier: BSD-2-Clause */
/* Subnet management attributes as tables of fields (IBA 14.2.5). */
#include "wire/smp.h"

#include "wire/field.h"

#define HDR(member, byte, bits) VB_FIELD(vb_smp_hdr, member, byte, 0, bits)
static const struct vb_field hdr_fields[] = {
	HDR(base_version, 0, 8), HDR(class, 1, 8),   HDR(class_version, 2, 8),
	HDR(method, 3, 8),	 HDR(status, 4, 16), HDR(hop_pointer, 6, 8),
	HDR(hop_count, 7, 8),	 HDR(tid, 8, 64),    HDR(attr_id, 16, 16),
	HDR(attr_mod, 20, 32),	 HDR(mkey, 24, 64),  HDR(dr_slid, 32, 16),
	HDR(dr_dlid, 34, 16),
};

#define NODE(member, byte, bits) VB_FIELD(vb_node_info, member, byte, 0, bits)
static const struct vb_field node_fields[] = {
	NODE(base_version, 0, 8), NODE(class_version, 1, 8),
	NODE(node_type, 2, 8),	  NODE(num_ports, 3, 8),
	NODE(system_guid, 4, 64), NODE(node_guid, 12, 64),
	NODE(port_guid, 20, 64),  NODE(partition_cap, 28, 16),
	NODE(device_id, 30, 16),  NODE(revision, 32, 32),
	NODE(local_port, 36, 8),  NODE(vendor_id, 37, 24),
};

#define SWITCH(member, byte, bit, bits)                                        \
	VB_FIELD(vb_switch_info, member, byte, bit, bits)
static const struct vb_field switch_fields[] = {
	SWITCH(linear_cap, 0, 0, 16),
	SWITCH(random_cap, 2, 0, 16),
	SWITCH(multicast_cap, 4, 0, 16),
	SWITCH(linear_top, 6, 0, 16),
	SWITCH(default_port, 8, 0, 8),
	SWITCH(default_primary, 9, 0, 8),
	SWITCH(default_secondary, 10, 0, 8),
	SWITCH(life_time, 11, 0, 5),
	SWITCH(port_state_change, 11, 5, 1),
	SWITCH(sl_to_vl_optimized, 11, 6, 2),
	SWITCH(lids_per_port, 12, 0, 16),
	SWITCH(partition_cap, 14, 0, 16),
	SWITCH(inbound_enforcement, 16, 0, 1),
	SWITCH(outbound_enforcement, 16, 1, 1),
	SWITCH(raw_inbound, 16, 2, 1),
	SWITCH(raw_outbound, 16, 3, 1),
	SWITCH(enhanced_port0, 16, 4, 1),
	SWITCH(multicast_top, 18, 0, 16),
};

#define PORT(member, byte, bit, bits)                                          \
	VB_FIELD(vb_port_info, member, byte, bit, bits)
static const struct vb_field port_fields[] = {
	PORT(mkey, 0, 0, 64),
	PORT(gid_prefix, 8, 0, 64),
	PORT(lid, 16, 0, 16),
	PORT(sm_lid, 18, 0, 16),
	PORT(cap_mask, 20, 0, 32),
	PORT(diag_code, 24, 0, 16),
	PORT(mkey_lease, 26, 0, 16),
	PORT(local_port, 28, 0, 8),
	PORT(width_enabled, 29, 0, 8),
	PORT(width_supported, 30, 0, 8),
	PORT(width_active, 31, 0, 8),
	PORT(speed_supported, 32, 0, 4),
	PORT(state, 32, 4, 4),
	PORT(phys_state, 33, 0, 4),
	PORT(down_default, 33, 4, 4),
	PORT(mkey_protect, 34, 0, 2),
	PORT(lmc, 34, 5, 3),
	PORT(speed_active, 35, 0, 4),
	PORT(speed_enabled, 35, 4, 4),
	PORT(neighbor_mtu, 36, 0, 4),
	PORT(sm_sl, 36, 4, 4),
	PORT(vl_cap, 37, 0, 4),
	PORT(init_type, 37, 4, 4),
	PORT(high_limit, 38, 0, 8),
	PORT(vlarb_high_cap, 39, 0, 8),
	PORT(vlarb_low_cap, 40, 0, 8),
	PORT(init_reply, 41, 0, 4),
	PORT(mtu_cap, 41, 4, 4),
	PORT(vl_stall, 42, 0, 3),
	PORT(hoq_life, 42, 3, 5),
	PORT(oper_vls, 43, 0, 4),
	PORT(pkey_enforce_in, 43, 4, 1),
	PORT(pkey_enforce_out, 43, 5, 1),
	PORT(raw_in, 43, 6, 1),
	PORT(raw_out, 43, 7, 1),
	PORT(mkey_violations, 44, 0, 16),
	PORT(pkey_violations, 46, 0, 16),
	PORT(qkey_violations, 48, 0, 16),
	PORT(guid_cap, 50, 0, 8),
	PORT(client_reregister, 51, 0, 1),
	PORT(subnet_timeout, 51, 3, 5),
	PORT(resp_time, 52, 3, 5),
	PORT(local_phys_errors, 53, 0, 4),
	PORT(overrun_errors, 53, 4, 4),
	PORT(max_credit_hint, 54, 0, 16),
	PORT(round_trip, 57, 0, 24),
	PORT(cap_mask2, 60, 0, 16),
	PORT(ext_speed_active, 62, 0, 4),
	PORT(ext_speed_supported, 62, 4, 4),
	PORT(ext_speed_enabled, 63, 3, 5),
};

#define NOTICE(member, byte, bit, bits)                                        \
	VB_FIELD(vb_notice, member, byte, bit, bits)
static const struct vb_field notice_fields[] = {
	NOTICE(generic, 0, 0, 1),     NOTICE(type, 0, 1, 7),
	NOTICE(producer, 1, 0, 24),   NOTICE(number, 4, 0, 16),
	NOTICE(issuer_lid, 6, 0, 16), NOTICE(toggle, 8, 0, 1),
	NOTICE(count, 8, 1, 15),
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

void vb_smp_hdr_get(const uint8_t mad[VB_MAD_BYTES], struct vb_smp_hdr *h)
{
	vb_fields_get(hdr_fields, VB_COUNT(hdr_fields), mad, h);
}

void vb_smp_hdr_put(uint8_t mad[VB_MAD_BYTES], const struct vb_smp_hdr *h)
{
	vb_fields_put(hdr_fields, VB_COUNT(hdr_fields), mad, h);
}

ACCESS(vb_node_info, vb_node_info, node_fields)
ACCESS(vb_switch_info, vb_switch_info, switch_fields)
ACCESS(vb_port_info, vb_port_info, port_fields)
ACCESS(vb_notice, vb_notice, notice_fields)

unsigned vb_mad_judge(unsigned base_version, unsigned class_version,
		      unsigned expected, unsigned method)
{
	if (base_version != VB_MAD_BASE_VERSION || class_version != expected)
		return MAD_BAD_VERSION;
	return method == MAD_GET || method == MAD_SET ? MAD_OK : MAD_BAD_METHOD;
}
