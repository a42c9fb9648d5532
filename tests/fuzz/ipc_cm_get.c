/* SPDX-License-Identifier: BSD-2-Clause */
/* Fuzzes the parser of messages about connections: an accepted message must
 * keep its meaning. */
#include "tests/fuzz/fuzz.h"

#include "wire/ipc_cm.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	uint8_t again[VB_IPC_CM_BYTES];
	struct vb_ipc_cm a, b;

	if (!vb_ipc_cm_get(bytes, len, &a))
		return 0;
	MUST(len == VB_IPC_CM_BYTES);
	MUST(a.private_bytes <= VB_IPC_CM_PRIVATE && a.qpn <= 0xffffff);
	MUST(vb_ipc_cm_put(again, &a) == sizeof(again));
	MUST(vb_ipc_cm_get(again, sizeof(again), &b));
	MUST(memcmp(&a, &b, sizeof(a)) == 0);
	return 0;
}
