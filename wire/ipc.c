/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes and reads the broker's messages, which have a fixed length and are
 * big-endian; unused bytes are zero. */
#include "wire/ipc.h"

#include <stdio.h>

#define HEAD_BYTES 16

_Static_assert(HEAD_BYTES + VB_IPC_TEXT <= VB_IPC_BYTES, "a message fits");

size_t vb_ipc_put(uint8_t bytes[VB_IPC_BYTES], const struct vb_ipc *m)
{
	struct vb_writer w = { bytes };

	memset(bytes, 0, VB_IPC_BYTES);
	vb_put_be(&w, m->kind, 1);
	vb_put_be(&w, m->version, 1);
	vb_put_be(&w, m->slot, 2);
	vb_put_be(&w, (uint32_t)m->error, 4);
	vb_put_be(&w, m->programs, 4);
	vb_put_be(&w, m->pid, 4);
	memcpy(w.at, m->text, strnlen(m->text, VB_IPC_TEXT - 1));
	return VB_IPC_BYTES;
}

bool vb_ipc_get(const uint8_t *bytes, size_t len, struct vb_ipc *m)
{
	struct vb_reader r = vb_reader(bytes, len);
	const uint8_t *text;

	if (len < VB_IPC_BYTES)
		return false;
	m->kind = vb_get_u8(&r);
	m->version = vb_get_u8(&r);
	m->slot = vb_get_be16(&r);
	m->error = (int32_t)vb_get_be32(&r);
	m->programs = vb_get_be32(&r);
	m->pid = vb_get_be32(&r);
	text = vb_take(&r, VB_IPC_TEXT);
	if (!text || !memchr(text, 0, VB_IPC_TEXT))
		return false;
	memcpy(m->text, text, VB_IPC_TEXT);
	for (char *p = m->text; *p; p++)
		if (*p < ' ' || *p > '~')
			*p = '?';
	return m->kind >= IPC_CLAIM && m->kind <= IPC_REPORT &&
	       m->version == VB_IPC_VERSION && m->slot < VB_SLOTS;
}

/* A leading NUL makes a name abstract; such a name ends with the address's
 * length. */
socklen_t vb_ipc_address(struct sockaddr_un *a, const char *name)
{
	size_t len = strnlen(name, sizeof(a->sun_path) - 1);

	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(a->sun_path + 1, name, len);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len);
}

socklen_t vb_ipc_slot_address(struct sockaddr_un *a, unsigned slot)
{
	int len;

	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	len = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1,
		       "verbena/slot/%u", slot);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len);
}
