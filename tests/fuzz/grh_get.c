/* SPDX-License-Identifier: BSD-2-Clause */
/* Fuzzes the parser of the header in front of a received datagram: what was
 * read must be written back equal. */
#include "tests/fuzz/fuzz.h"
#include "wire/grh.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	uint8_t written[VB_GRH_BYTES];
	struct vb_grh h, again;

	if (len != VB_GRH_BYTES || !vb_grh_get(bytes, &h))
		return 0;
	/* The two GIDs are an IPv4 and an IPv6 address. No host sends such a
	 * header, so it need not be written back equal. */
	if (vb_gid_is_ipv4(&h.dgid) != vb_gid_is_ipv4(&h.sgid))
		return 0;
	vb_grh_put(written, &h);
	MUST(vb_grh_get(written, &again));
	MUST(vb_gid_equal(&h.sgid, &again.sgid));
	MUST(vb_gid_equal(&h.dgid, &again.dgid));
	MUST(h.tclass == again.tclass && h.hop_limit == again.hop_limit);
	MUST(h.udp_bytes == again.udp_bytes);
	return 0;
}
