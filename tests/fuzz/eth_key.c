/* SPDX-License-Identifier: BSD-2-Clause */
/* Fuzzes the parser of Ethernet frames: it must not find more header fields
 * than the bytes of the frame can hold. */
#include "tests/fuzz/fuzz.h"
#include "wire/eth.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const struct vb_eth_key nothing;
	struct vb_eth_key key, shorter;

	vb_eth_key_get(bytes, len, &key);
	MUST(vb_eth_key_matches(&key, &nothing, &nothing));
	MUST(len >= VB_ETH_BYTES || key.layers == 0);
	MUST(!(key.layers & LAYER_IPV4) || !(key.layers & LAYER_IPV6));
	MUST(!(key.layers & LAYER_TCP) || !(key.layers & LAYER_UDP));
	MUST(!(key.layers & (LAYER_TCP | LAYER_UDP)) ||
	     key.layers & (LAYER_IPV4 | LAYER_IPV6));
	if (len == 0)
		return 0;
	vb_eth_key_get(bytes, len - 1, &shorter);
	MUST((shorter.layers & key.layers) == shorter.layers);
	return 0;
}
