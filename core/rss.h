/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receive-side scaling: which of several work queues a frame goes to. A work
 * queue is the receiving half of a queue pair (QPT_WQ): RESET, RTR and ERR are
 * its states, INIT and RTS it does not have.
 */
#ifndef CORE_RSS_H
#define CORE_RSS_H

#include "core/qp.h"
#include "wire/eth.h"
#include "wire/toeplitz.h"

/* enum ibv_rx_hash_fields, same values. */
enum vb_rss_field {
	RSS_SRC_IPV4 = 1 << 0,
	RSS_DST_IPV4 = 1 << 1,
	RSS_SRC_IPV6 = 1 << 2,
	RSS_DST_IPV6 = 1 << 3,
	RSS_SRC_PORT_TCP = 1 << 4,
	RSS_DST_PORT_TCP = 1 << 5,
	RSS_SRC_PORT_UDP = 1 << 6,
	RSS_DST_PORT_UDP = 1 << 7,
};
#define VB_RSS_FIELDS	 0xffu
#define VB_RSS_MAX_TABLE 512

struct vb_rss {
	uint8_t key[VB_TOEPLITZ_KEY_BYTES];
	uint32_t fields; /* enum vb_rss_field */
	uint32_t count;	 /* a power of two */
	struct vb_qp *queues[];
};

/* IPv4 and IPv6, or TCP and UDP, exclude each other: -EINVAL. Unknown fields:
 * -EOPNOTSUPP. */
VB_MUST_CHECK int vb_rss_check(uint64_t fields);

/* What a frame does not have adds nothing to its hash. */
uint32_t vb_rss_hash(const struct vb_rss *rss, const struct vb_eth_key *key);

static inline struct vb_qp *vb_rss_pick(const struct vb_rss *rss,
					const struct vb_eth_key *key)
{
	return rss->queues[vb_rss_hash(rss, key) & (rss->count - 1)];
}

#endif
