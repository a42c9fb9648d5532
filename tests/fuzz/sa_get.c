/* SPDX-License-Identifier: BSD-2-Clause */
/* Fuzzes the parser with answers of a subnet administrator: an accepted record
 * is in range, and keeps its meaning when it is written again. */
#include "tests/fuzz/fuzz.h"

#include "wire/sa.h"

static void try_path(const uint8_t *mad, const struct vb_sa_hdr *h)
{
	uint8_t again[VB_MAD_BYTES];
	struct vb_sa_path a, b;

	if (!vb_sa_path_get(mad, &a))
		return;
	MUST(a.dlid && a.dlid < VB_LID_MCAST);
	MUST(a.slid && a.slid < VB_LID_MCAST);
	MUST(a.mtu >= 1 && a.mtu <= 5 && a.sl <= 15);
	vb_sa_path_put(again, h, &a);
	MUST(vb_sa_path_get(again, &b));
	MUST(memcmp(&a, &b, sizeof(a)) == 0);
}

static void try_group(const uint8_t *mad, const struct vb_sa_hdr *h)
{
	uint8_t again[VB_MAD_BYTES];
	struct vb_sa_mcmember a, b;

	if (!vb_sa_mcmember_get(mad, &a))
		return;
	MUST(vb_gid_is_multicast(&a.mgid) && vb_lid_is_mcast(a.mlid));
	MUST(a.mtu >= 1 && a.mtu <= 5 && a.sl <= 15);
	vb_sa_mcmember_put(again, h, &a);
	MUST(vb_sa_mcmember_get(again, &b));
	MUST(memcmp(&a, &b, sizeof(a)) == 0);
}

static void try_services(const uint8_t *mad, size_t len,
			 const struct vb_sa_hdr *h)
{
	unsigned count = vb_sa_service_count(h, len);
	uint8_t again[VB_MAD_BYTES];
	struct vb_sa_service a, b;
	struct vb_sa_hdr one = *h;

	/* Read and write each record: a sanitizer detects bytes beyond @len. */
	one.attr_offset = 0;
	for (unsigned i = 0; i < count; i++) {
		if (!vb_sa_service_get(mad, h, i, &a))
			continue;
		vb_sa_service_put(again, &one, &a);
		MUST(vb_sa_service_get(again, &one, 0, &b));
		MUST(memcmp(&a, &b, sizeof(a)) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct vb_sa_hdr h;

	if (!vb_sa_hdr_get(bytes, len, &h))
		return 0;
	try_services(bytes, len, &h);
	if (h.method == SA_GET_TABLE_RESP) /* such an answer may be shorter than
					    * a MAD */
		return 0;
	MUST(len >= VB_MAD_BYTES);
	try_path(bytes, &h);
	try_group(bytes, &h);
	return 0;
}
