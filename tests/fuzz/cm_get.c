/* SPDX-License-Identifier: BSD-2-Clause */
/* Fuzzes the parser with datagrams to queue pair 1: an accepted message must
 * keep its meaning when it is written again. */
#include "tests/fuzz/fuzz.h"

#include "wire/mad.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	uint8_t again[VB_MAD_BYTES];
	struct vb_cm_msg a, b;

	if (!vb_cm_get(bytes, len, &a))
		return 0;
	MUST(len >= VB_MAD_BYTES);
	MUST(vb_cm_private_bytes(a.attr) > 0);
	vb_cm_put(again, &a);
	MUST(vb_cm_get(again, sizeof(again), &b));
	MUST(memcmp(&a, &b, sizeof(a)) == 0);
	return 0;
}
