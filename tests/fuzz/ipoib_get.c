/* SPDX-License-Identifier: BSD-2-Clause */
/* Fuzzes the parser of requests to the process of an IPoIB interface: a request
 * that was read must be read equal after it was written. */
#include "tests/fuzz/fuzz.h"
#include "wire/ipoib.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	uint8_t written[VB_IPOIB_BYTES];
	struct vb_ipoib m, again;

	if (!vb_ipoib_get(bytes, len, &m))
		return 0;
	MUST(vb_ipoib_put(written, &m) == VB_IPOIB_BYTES);
	MUST(vb_ipoib_get(written, sizeof(written), &again));
	MUST(m.op == again.op && m.port == again.port);
	MUST(m.pkey == again.pkey && m.error == again.error);
	MUST(m.qkey == again.qkey);
	MUST(m.mtu == again.mtu && m.qpn == again.qpn && m.guid == again.guid);
	MUST(vb_gid_equal(&m.ip, &again.ip));
	MUST(vb_gid_equal(&m.gid, &again.gid));
	return 0;
}
