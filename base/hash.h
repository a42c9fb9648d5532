/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hash for tables whose keys another program chooses. The caller passes a
 * random number as the first @h and keeps it secret, so that the other program
 * cannot find keys that fall into one bucket.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include "base/defs.h"

static inline uint64_t vb_hash(uint64_t h, uint64_t part)
{
	h = (h ^ part) * 0x9e3779b97f4a7c15u;
	h = (h ^ h >> 32) * 0xbf58476d1ce4e5b9u;
	return h ^ h >> 32;
}

#endif
