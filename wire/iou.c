/* SPDX-License-Identifier: BSD-2-Clause */
/* Attributes of device management as tables of fields (IBA 16.3.3). */
#include "wire/iou.h"

#include "base/bytes.h"
#include "wire/field.h"

#define INFO(member, byte, bit, bits)                                          \
	VB_FIELD(vb_iou_info, member, byte, bit, bits)
static const struct vb_field info_fields[] = {
	INFO(change_id, 0, 0, 16),
	INFO(slots, 2, 0, 8),
	INFO(diag_device_id, 3, 6, 1),
	INFO(option_rom, 3, 7, 1),
};

#define PROFILE(member, byte, bits)                                            \
	VB_FIELD(vb_iou_profile, member, byte, 0, bits)
static const struct vb_field profile_fields[] = {
	PROFILE(guid, 0, 64),
	PROFILE(vendor_id, 8, 24),
	PROFILE(device_id, 12, 32),
	PROFILE(device_version, 16, 16),
	PROFILE(subsystem_vendor, 20, 24),
	PROFILE(subsystem_id, 24, 32),
	PROFILE(io_class, 28, 16),
	PROFILE(io_subclass, 30, 16),
	PROFILE(protocol, 32, 16),
	PROFILE(protocol_version, 34, 16),
	PROFILE(send_depth, 40, 16),
	PROFILE(read_depth, 43, 8),
	PROFILE(send_size, 44, 32),
	PROFILE(rdma_size, 48, 32),
	PROFILE(operations, 52, 8),
	PROFILE(services, 54, 8),
};

void vb_iou_info_put(uint8_t *data, const struct vb_iou_info *i)
{
	vb_fields_put(info_fields, VB_COUNT(info_fields), data, i);
}

void vb_iou_slot_put(uint8_t *data, unsigned slot, enum vb_iou_slot what)
{
	vb_bits_store(data + VB_IOU_LIST_AT, (slot - 1) * 4, 4, what);
}

void vb_iou_profile_put(uint8_t *data, const struct vb_iou_profile *p)
{
	vb_fields_put(profile_fields, VB_COUNT(profile_fields), data, p);
}

void vb_iou_service_put(uint8_t *data, const struct vb_iou_service *s)
{
	memcpy(data, s->name, VB_IOU_NAME);
	vb_store_be(data + VB_IOU_NAME, s->id, 8);
}
