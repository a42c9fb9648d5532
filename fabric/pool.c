/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory for frames and for their places in queues. Items and charges, which
 * every hop needs, come from free lists. */
#include <stdlib.h>
#include <string.h>

#include "fabric/net_priv.h"

struct frame *fab_frame_new(const uint8_t *bytes, size_t len)
{
	struct frame *f = malloc(sizeof(*f) + len + VB_VCRC_BYTES);

	if (!f)
		return NULL;
	*f = (struct frame){ .refs = 1, .len = (uint16_t)len };
	memcpy(f->bytes, bytes, len);
	return f;
}

struct frame *fab_frame_copy(const struct frame *f)
{
	struct frame *copy = fab_frame_new(f->bytes, f->len);

	if (copy) {
		copy->vcrc = f->vcrc;
		copy->altered = f->altered;
	}
	return copy;
}

void fab_frame_drop(struct frame *f)
{
	if (f && --f->refs == 0)
		free(f);
}

struct item *fab_item_new(struct vb_fab_net *net)
{
	struct item *it = net->free_items;

	if (it)
		net->free_items = it->next;
	else
		it = malloc(sizeof(*it));
	if (it)
		memset(it, 0, offsetof(struct item, flow));
	return it;
}

void fab_item_free(struct vb_fab_net *net, struct item *it)
{
	fab_frame_drop(it->frame);
	if (it->charge)
		fab_charge_give(it->charge);
	it->next = net->free_items;
	net->free_items = it;
}

struct charge *fab_charge_new(struct vb_fab_net *net)
{
	struct charge *c = net->free_charges;

	if (!c)
		return calloc(1, sizeof(*c));
	net->free_charges = c->next;
	*c = (struct charge){ 0 };
	return c;
}

void fab_charge_free(struct vb_fab_net *net, struct charge *c)
{
	c->next = net->free_charges;
	net->free_charges = c;
}

void fab_pool_fini(struct vb_fab_net *net)
{
	while (net->free_items) {
		struct item *it = net->free_items;

		net->free_items = it->next;
		free(it);
	}
	while (net->free_charges) {
		struct charge *c = net->free_charges;

		net->free_charges = c->next;
		free(c);
	}
}

void fab_push(struct fifo *q, struct item *it)
{
	it->next = NULL;
	if (q->first)
		q->last->next = it;
	else
		q->first = it;
	q->last = it;
}

struct item *fab_pop(struct fifo *q)
{
	struct item *it = q->first;

	if (it)
		q->first = it->next;
	return it;
}

const uint8_t *fab_wire_bytes(struct item *it, size_t *len)
{
	struct frame *f = it->frame;
	uint16_t crc;

	if (!f) {
		*len = it->flow_len;
		return it->flow;
	}
	if (!f->altered)
		vb_lrh_set_vl(f->bytes, it->vl);
	if (it->ends)
		crc = (uint16_t)~vb_vcrc(f->bytes, f->len);
	else
		crc = f->altered ? f->vcrc : vb_vcrc(f->bytes, f->len);
	f->bytes[f->len] = (uint8_t)crc;
	f->bytes[f->len + 1] = (uint8_t)(crc >> 8);
	*len = f->len + VB_VCRC_BYTES;
	return f->bytes;
}

void fab_view(const struct item *it, struct vb_fab_view *v)
{
	v->bytes = it->frame->bytes;
	v->len = it->frame->len;
	vb_lrh_get(v->bytes, &v->lrh);
	if (!it->frame->altered)
		v->lrh.vl = it->vl;
}
