/* SPDX-License-Identifier: BSD-2-Clause */
/* Flow steering: compares frames with rules. */
#include "core/flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct vb_eth_key any_frame;

static void hide_unmasked(struct vb_eth_key *value,
			  const struct vb_eth_key *mask)
{
	uint8_t *v = (uint8_t *)value;
	const uint8_t *m = (const uint8_t *)mask;

	for (size_t i = 0; i < sizeof(*value); i++)
		v[i] &= m[i];
}

int vb_flow_check(struct vb_flow_rule *r)
{
	if (r->kind > FLOW_SNIFFER)
		return -EINVAL;
	hide_unmasked(&r->value, &r->mask);
	if (r->kind == FLOW_NORMAL)
		return r->drop && r->dont_trap ? -EINVAL : 0;
	/* A rule of the other kinds has no options: its kind alone defines
	 * it. */
	if (r->dont_trap || r->drop ||
	    memcmp(&r->mask, &any_frame, sizeof(any_frame)) != 0)
		return -EINVAL;
	return 0;
}

static bool comes_before(const struct vb_flow_rule *a,
			 const struct vb_flow_rule *b)
{
	if (a->kind != b->kind)
		return a->kind < b->kind;
	return a->priority < b->priority;
}

void vb_flow_insert(struct vb_flow **first, struct vb_flow *f)
{
	while (*first && !comes_before(&f->rule, &(*first)->rule))
		first = &(*first)->next;
	f->next = *first;
	*first = f;
}

void vb_flow_remove(struct vb_flow **first, struct vb_flow *f)
{
	while (*first != f)
		first = &(*first)->next;
	*first = f->next;
}

static bool matches(const struct vb_flow_rule *r, const struct vb_eth_key *key)
{
	if (r->kind == FLOW_MC_DEFAULT)
		return key->dst[0] & 1;
	return vb_eth_key_matches(key, &r->value, &r->mask);
}

static bool is_same_rule(const struct vb_flow_rule *a,
			 const struct vb_flow_rule *b)
{
	return a->kind == b->kind && a->priority == b->priority &&
	       memcmp(&a->value, &b->value, sizeof(a->value)) == 0 &&
	       memcmp(&a->mask, &b->mask, sizeof(a->mask)) == 0;
}

static void core_count(struct vb_counters *c, uint32_t bytes)
{
	if (!c)
		return;
	/* Relaxed: a statistical counter orders no other memory access. */
	atomic_fetch_add_explicit(&c->seen[COUNT_PACKETS], 1,
				  memory_order_relaxed);
	atomic_fetch_add_explicit(&c->seen[COUNT_BYTES], bytes,
				  memory_order_relaxed);
}

bool vb_flow_steer(const struct vb_flow *f, const struct vb_qp *qp,
		   const struct vb_eth_key *key, uint32_t bytes, uint32_t *tag)
{
	const struct vb_flow_rule *winner = NULL;
	bool wanted = false;

	for (; f; f = f->next) {
		const struct vb_flow_rule *r = &f->rule;
		bool sniffs = r->kind == FLOW_SNIFFER;

		if (!sniffs && winner && !is_same_rule(winner, r))
			continue;
		if (!matches(r, key))
			continue;
		if (!sniffs && !r->dont_trap)
			winner = r;
		if (f->qp != qp)
			continue;
		core_count(r->counters, bytes);
		if (r->drop || wanted)
			continue;
		wanted = true;
		*tag = r->tag;
	}
	return wanted;
}

int vb_counters_create(struct vb_counters **out)
{
	struct vb_counters *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	vb_mutex_init(&c->lock, VB_RANK_LEAF);
	*out = c;
	return 0;
}

int vb_counters_destroy(struct vb_counters *c)
{
	if (atomic_load(&c->flows))
		return -EBUSY;
	vb_mutex_fini(&c->lock);
	free(c);
	return 0;
}

int vb_counters_attach(struct vb_counters *c, enum vb_counter_unit unit,
		       uint32_t index)
{
	int rc = 0;

	if (index >= VB_COUNTER_POINTS)
		return -EINVAL;
	vb_mutex_lock(&c->lock);
	if (atomic_load(&c->flows)) {
		rc = -EBUSY;
	} else if (c->points == VB_COUNTER_POINTS) {
		rc = -EINVAL;
	} else {
		c->point[c->points].unit = unit;
		c->point[c->points++].index = index;
	}
	vb_mutex_unlock(&c->lock);
	return rc;
}

void vb_counters_read(struct vb_counters *c, uint64_t *values, uint32_t room)
{
	memset(values, 0, room * sizeof(*values));
	vb_mutex_lock(&c->lock);
	for (uint32_t i = 0; i < c->points; i++)
		if (c->point[i].index < room)
			values[c->point[i].index] +=
				atomic_load(&c->seen[c->point[i].unit]);
	vb_mutex_unlock(&c->lock);
}
