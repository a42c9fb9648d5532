/* SPDX-License-Identifier: BSD-2-Clause */
/* The Toeplitz hash, by which receive-side scaling distributes flows. */
#ifndef WIRE_TOEPLITZ_H
#define WIRE_TOEPLITZ_H

#include "base/defs.h"

/* The key and the data are long enough for two IPv6 addresses and two ports. */
#define VB_TOEPLITZ_KEY_BYTES  40
#define VB_TOEPLITZ_DATA_BYTES 36

/* Returns the hash of @len bytes, at most VB_TOEPLITZ_DATA_BYTES. */
uint32_t vb_toeplitz(const uint8_t key[VB_TOEPLITZ_KEY_BYTES],
		     const uint8_t *data, size_t len);

#endif
