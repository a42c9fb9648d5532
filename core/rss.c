/* SPDX-License-Identifier: BSD-2-Clause */
/* Receive-side scaling: the hash of a frame (core/rss.h). */
#include "core/rss.h"

#include <errno.h>
#include <string.h>

/* The fields in the order in which they enter the hash. */
// clang-format off
#define ROW(field, layer, member, bytes) \
	{ RSS_##field, LAYER_##layer, offsetof(struct vb_eth_key, member), \
	  bytes }
static const struct field {
	uint32_t field;
	uint16_t layer, at, bytes;
} fields[] = {
	ROW(SRC_IPV4,	  IPV4, sip,   4),
	ROW(SRC_IPV6,	  IPV6, sip,   16),
	ROW(DST_IPV4,	  IPV4, dip,   4),
	ROW(DST_IPV6,	  IPV6, dip,   16),
	ROW(SRC_PORT_TCP, TCP,	sport, 2),
	ROW(SRC_PORT_UDP, UDP,	sport, 2),
	ROW(DST_PORT_TCP, TCP,	dport, 2),
	ROW(DST_PORT_UDP, UDP,	dport, 2),
};
#undef ROW
// clang-format on

int vb_rss_check(uint64_t asked)
{
	static const uint32_t pairs[][2] = {
		{ RSS_SRC_IPV4 | RSS_DST_IPV4, RSS_SRC_IPV6 | RSS_DST_IPV6 },
		{ RSS_SRC_PORT_TCP | RSS_DST_PORT_TCP,
		  RSS_SRC_PORT_UDP | RSS_DST_PORT_UDP },
	};

	if (asked & ~(uint64_t)VB_RSS_FIELDS)
		return -EOPNOTSUPP;
	for (size_t i = 0; i < VB_COUNT(pairs); i++)
		if (asked & pairs[i][0] && asked & pairs[i][1])
			return -EINVAL;
	return 0;
}

uint32_t vb_rss_hash(const struct vb_rss *rss, const struct vb_eth_key *key)
{
	uint8_t data[VB_TOEPLITZ_DATA_BYTES];
	size_t used = 0;

	for (size_t i = 0; i < VB_COUNT(fields); i++) {
		const struct field *f = &fields[i];

		if (!(rss->fields & f->field) || !(key->layers & f->layer))
			continue;
		memcpy(data + used, (const uint8_t *)key + f->at, f->bytes);
		used += f->bytes;
	}
	return vb_toeplitz(rss->key, data, used);
}
