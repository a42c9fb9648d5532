/* SPDX-License-Identifier: BSD-2-Clause */
/* Attributes of congestion control as tables of fields (IBA annex A10.4). */
#include "wire/cc.h"

#include "wire/field.h"

#define CLASS(member, byte, bit, bits)                                         \
	VB_FIELD(vb_class_info, member, byte, bit, bits)
static const struct vb_field class_fields[] = {
	CLASS(base_version, 0, 0, 8),	 CLASS(class_version, 1, 0, 8),
	CLASS(cap_mask, 2, 0, 16),	 CLASS(cap_mask2, 4, 0, 27),
	CLASS(resp_time, 7, 3, 5),	 CLASS(trap_prefix, 40, 0, 64),
	CLASS(trap_guid, 48, 0, 64),	 CLASS(trap_class, 56, 0, 8),
	CLASS(trap_sl, 57, 0, 4),	 CLASS(trap_flow, 57, 4, 20),
	CLASS(trap_lid, 60, 0, 16),	 CLASS(trap_pkey, 62, 0, 16),
	CLASS(trap_hop_limit, 64, 0, 8), CLASS(trap_qpn, 65, 0, 24),
	CLASS(trap_qkey, 68, 0, 32),
};

#define KEY(member, byte, bits) VB_FIELD(vb_cc_key_info, member, byte, 0, bits)
static const struct vb_field key_fields[] = {
	KEY(key, 0, 64),
	KEY(protect, 8, 1),
	KEY(lease, 10, 16),
	KEY(violations, 12, 16),
};

#define SWITCH(member, byte, bits)                                             \
	VB_FIELD(vb_cc_switch_setting, member, byte, 0, bits)
static const struct vb_field switch_setting_fields[] = {
	SWITCH(map, 0, 32),
	SWITCH(threshold, 68, 4),
	SWITCH(packet_size, 69, 8),
	SWITCH(starvation_threshold, 70, 4),
	SWITCH(starvation_delay, 72, 16),
	SWITCH(rate, 74, 16),
};

#define ELEMENT(member, byte, bit, bits)                                       \
	VB_FIELD(vb_cc_port_setting, member, byte, bit, bits)
static const struct vb_field element_fields[] = {
	ELEMENT(valid, 0, 0, 1),     ELEMENT(type, 0, 1, 1),
	ELEMENT(threshold, 0, 4, 4), ELEMENT(packet_size, 1, 0, 8),
	ELEMENT(rate, 2, 0, 16),
};

#define ENTRY(member, byte, bits) VB_FIELD(vb_cc_entry, member, byte, 0, bits)
static const struct vb_field entry_fields[] = {
	ENTRY(timer, 0, 16),
	ENTRY(increase, 2, 8),
	ENTRY(trigger, 3, 8),
	ENTRY(min, 4, 8),
};

#define LOG(member, byte, bits) VB_FIELD(vb_cc_log, member, byte, 0, bits)
static const struct vb_field log_switch_fields[] = {
	LOG(type, 0, 8),
	LOG(events, 2, 16),
	LOG(stamp, 4, 32),
};
static const struct vb_field log_ca_fields[] = {
	LOG(type, 0, 8),
	LOG(events, 2, 16),
	LOG(sls, 4, 16),
	LOG(stamp, 8, 32),
};

#define SWITCH_EVENT(member, byte, bits)                                       \
	VB_FIELD(vb_cc_log_switch_entry, member, byte, 0, bits)
static const struct vb_field switch_event_fields[] = {
	SWITCH_EVENT(slid, 0, 16),
	SWITCH_EVENT(dlid, 2, 16),
	SWITCH_EVENT(sl, 4, 4),
	SWITCH_EVENT(stamp, 8, 32),
};

#define CA_EVENT(member, byte, bit, bits)                                      \
	VB_FIELD(vb_cc_log_ca_entry, member, byte, bit, bits)
static const struct vb_field ca_event_fields[] = {
	CA_EVENT(local_qpn, 0, 0, 24), CA_EVENT(sl, 3, 0, 4),
	CA_EVENT(service, 3, 4, 4),    CA_EVENT(remote_qpn, 4, 0, 24),
	CA_EVENT(local_lid, 8, 0, 16), CA_EVENT(remote_lid, 10, 0, 16),
	CA_EVENT(stamp, 12, 0, 32),
};

#define DETAIL(member, byte, bits) VB_FIELD(vb_cc_notice, member, byte, 0, bits)
static const struct vb_field detail_fields[] = {
	DETAIL(slid, 0, 16),	 DETAIL(method, 2, 8), DETAIL(attr_id, 4, 16),
	DETAIL(attr_mod, 8, 32), DETAIL(qpn, 13, 24),  DETAIL(key, 16, 64),
	DETAIL(prefix, 24, 64),	 DETAIL(guid, 32, 64),
};

#define GET(name, type, table)                                                 \
	void name##_get(const uint8_t *from, struct type *to)                  \
	{                                                                      \
		vb_fields_get(table, VB_COUNT(table), from, to);               \
	}
#define PUT(name, type, table)                                                 \
	void name##_put(uint8_t *to, const struct type *from)                  \
	{                                                                      \
		vb_fields_put(table, VB_COUNT(table), to, from);               \
	}

GET(vb_class_info, vb_class_info, class_fields)
PUT(vb_class_info, vb_class_info, class_fields)
GET(vb_cc_key_info, vb_cc_key_info, key_fields)
PUT(vb_cc_key_info, vb_cc_key_info, key_fields)
GET(vb_cc_switch_setting, vb_cc_switch_setting, switch_setting_fields)
PUT(vb_cc_switch_setting, vb_cc_switch_setting, switch_setting_fields)
GET(vb_cc_port_setting, vb_cc_port_setting, element_fields)
PUT(vb_cc_port_setting, vb_cc_port_setting, element_fields)
GET(vb_cc_entry, vb_cc_entry, entry_fields)
PUT(vb_cc_entry, vb_cc_entry, entry_fields)
PUT(vb_cc_log_switch_entry, vb_cc_log_switch_entry, switch_event_fields)
PUT(vb_cc_log_ca_entry, vb_cc_log_ca_entry, ca_event_fields)
PUT(vb_cc_notice, vb_cc_notice, detail_fields)

void vb_cc_log_put(uint8_t *data, const struct vb_cc_log *l)
{
	if (l->type == CC_LOG_SWITCH)
		vb_fields_put(log_switch_fields, VB_COUNT(log_switch_fields),
			      data, l);
	else
		vb_fields_put(log_ca_fields, VB_COUNT(log_ca_fields), data, l);
}
