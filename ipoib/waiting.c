/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps and drops the packets that wait for a destination. */
#include "ipoib/waiting.h"

#include <stdlib.h>
#include <string.h>

void vb_waiting_add(struct vb_waiting *w, const void *bytes, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);

	if (!copy)
		return;
	memcpy(copy, bytes, len);
	if (w->count == VB_WAITING_MAX) {
		free(w->packets[0].bytes);
		memmove(w->packets, w->packets + 1,
			(VB_WAITING_MAX - 1) * sizeof(*w->packets));
		w->count--;
	}
	w->packets[w->count++] = (struct vb_waiting_packet){ copy, len };
}

void vb_waiting_drop(struct vb_waiting *w)
{
	for (unsigned i = 0; i < w->count; i++)
		free(w->packets[i].bytes);
	w->count = 0;
}
