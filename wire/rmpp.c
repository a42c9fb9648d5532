/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and writes the RMPP header (IBA 13.6.2). */
#include "wire/rmpp.h"

#include "wire/field.h"
#include "wire/smp.h"

#define RMPP(member, byte, bit, bits)                                          \
	VB_FIELD(vb_rmpp, member, VB_RMPP_AT + (byte), bit, bits)
static const struct vb_field fields[] = {
	RMPP(version, 0, 0, 8), RMPP(type, 1, 0, 8),   RMPP(resp_time, 2, 0, 5),
	RMPP(flags, 2, 5, 3),	RMPP(status, 3, 0, 8), RMPP(segment, 4, 0, 32),
	RMPP(length, 8, 0, 32),
};

/* Classes whose MADs have an RMPP header, and the offset at which their data
 * begins. */
static const struct {
	uint8_t first, last, data_at;
} classes[] = {
	{ MAD_CLASS_SA, MAD_CLASS_SA, 56 },
	{ MAD_CLASS_DEVICE, MAD_CLASS_DEVICE, 64 },
	/* the classes device administration, boot management, BIS */
	{ 0x10, 0x12, 64 },
	{ MAD_CLASS_VENDOR2, MAD_CLASS_VENDOR2_LAST, 40 },
};

void vb_rmpp_get(const uint8_t mad[VB_MAD_BYTES], struct vb_rmpp *h)
{
	vb_fields_get(fields, VB_COUNT(fields), mad, h);
}

void vb_rmpp_put(uint8_t mad[VB_MAD_BYTES], const struct vb_rmpp *h)
{
	vb_fields_put(fields, VB_COUNT(fields), mad, h);
}

unsigned vb_rmpp_data_at(uint8_t class)
{
	for (unsigned i = 0; i < VB_COUNT(classes); i++)
		if (class >= classes[i].first && class <= classes[i].last)
			return classes[i].data_at;
	return VB_MAD_HDR_BYTES;
}

bool vb_rmpp_has_header(uint8_t class)
{
	return vb_rmpp_data_at(class) != VB_MAD_HDR_BYTES;
}
