/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/echo.h"

#include <string.h>

#include "base/bytes.h"

/* The first 7 bytes of an echo: "VbEcho", and the version 1. The next byte is
 * the kind, an enum vb_echo_kind. */
#define MAGIC 0x56624563686f01ull

void vb_echo_put(uint8_t *bytes, size_t len, const struct vb_echo *e)
{
	memset(bytes, 0, len);
	vb_store_be(bytes, MAGIC, 7);
	bytes[7] = e->kind;
	vb_store_be(bytes + 8, e->token, 8);
	vb_store_be(bytes + 16, e->number, 4);
	vb_store_be(bytes + 20, e->bytes, 4);
	vb_store_be(bytes + 24, e->mtu, 4);
}

bool vb_echo_get(const uint8_t *bytes, size_t len, struct vb_echo *e)
{
	if (len < VB_ECHO_BYTES || len > VB_ECHO_MOST ||
	    vb_load_be(bytes, 7) != MAGIC)
		return false;
	e->kind = bytes[7];
	e->token = vb_load_be(bytes + 8, 8);
	e->number = (uint32_t)vb_load_be(bytes + 16, 4);
	e->bytes = (uint32_t)vb_load_be(bytes + 20, 4);
	e->mtu = (uint32_t)vb_load_be(bytes + 24, 4);
	if (e->kind == ECHO_ASK)
		return e->bytes >= VB_ECHO_BYTES && e->bytes <= len;
	return e->kind == ECHO_ANSWER;
}
