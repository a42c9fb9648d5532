/* SPDX-License-Identifier: BSD-2-Clause */
/* Fuzzes the parser of messages to the broker: an accepted message must keep
 * its meaning. */
#include "tests/fuzz/fuzz.h"

#include "wire/ipc.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	uint8_t again[VB_IPC_BYTES];
	struct vb_ipc a, b;

	if (!vb_ipc_get(bytes, len, &a))
		return 0;
	MUST(len >= VB_IPC_BYTES);
	MUST(a.slot < VB_SLOTS && a.version == VB_IPC_VERSION);
	MUST(strnlen(a.text, VB_IPC_TEXT) < VB_IPC_TEXT);

	MUST(vb_ipc_put(again, &a) == VB_IPC_BYTES);
	MUST(vb_ipc_get(again, sizeof(again), &b));
	MUST(a.kind == b.kind && a.slot == b.slot && a.error == b.error);
	MUST(a.programs == b.programs && a.pid == b.pid);
	MUST(strcmp(a.text, b.text) == 0);
	return 0;
}
