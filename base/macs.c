/* SPDX-License-Identifier: BSD-2-Clause */
/* Learns and forgets where Ethernet addresses are. */
#include "base/macs.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"

#define WAYS 4 /* entries of the table in which an address may be */
#define SETS (VB_MACS / WAYS)

struct vb_macs {
	struct vb_mac_ops ops;
	void *arg;
	uint64_t seed;
	struct vb_mac sets[SETS][WAYS];
};

static struct vb_mac *places_of(const struct vb_macs *t, const uint8_t mac[6])
{
	uint64_t h = vb_hash(t->seed, vb_load_be(mac, 6));

	return (struct vb_mac *)t->sets[h % SETS];
}

static struct vb_mac *known_mac(const struct vb_macs *t, const uint8_t mac[6])
{
	struct vb_mac *set = places_of(t, mac);

	for (unsigned i = 0; i < WAYS; i++)
		if (set[i].seen && memcmp(set[i].mac, mac, 6) == 0)
			return &set[i];
	return NULL;
}

static void free_mac(struct vb_macs *t, struct vb_mac *m)
{
	if (m->seen && t->ops.release)
		t->ops.release(t->arg, m);
	*m = (struct vb_mac){ .seen = 0 };
}

/* Returns a free entry of the set of @mac; if there is none, the entry of the
 * address that was seen longest ago, which is forgotten. */
static struct vb_mac *make_place(struct vb_macs *t, const uint8_t mac[6])
{
	struct vb_mac *set = places_of(t, mac), *oldest = set;

	for (unsigned i = 1; i < WAYS; i++)
		if (set[i].seen < oldest->seen)
			oldest = &set[i];
	free_mac(t, oldest);
	return oldest;
}

/* A group address is not learned, since a group has no single place. */
void vb_macs_learn(struct vb_macs *t, const uint8_t mac[6], uint64_t at,
		   vb_time now)
{
	struct vb_mac *m = known_mac(t, mac);

	if (mac[0] & 1)
		return;
	if (m && m->at == at) {
		m->seen = now;
		return;
	}
	if (m)
		free_mac(t, m);
	else
		m = make_place(t, mac);
	memcpy(m->mac, mac, 6);
	m->at = at;
	if (!t->ops.prepare || t->ops.prepare(t->arg, m))
		m->seen = now;
}

const struct vb_mac *vb_macs_find(const struct vb_macs *t, const uint8_t mac[6],
				  vb_time now)
{
	const struct vb_mac *m = known_mac(t, mac);

	return m && m->seen + VB_MAC_AGE > now ? m : NULL;
}

static struct vb_mac *mac_at(const struct vb_macs *t, unsigned place)
{
	return (struct vb_mac *)&t->sets[place / WAYS][place % WAYS];
}

void vb_macs_forget(struct vb_macs *t)
{
	for (unsigned i = 0; i < VB_MACS; i++)
		free_mac(t, mac_at(t, i));
}

void vb_macs_forget_at(struct vb_macs *t, uint64_t at)
{
	for (unsigned i = 0; i < VB_MACS; i++)
		if (mac_at(t, i)->at == at)
			free_mac(t, mac_at(t, i));
}

void vb_macs_each(const struct vb_macs *t, vb_time now,
		  void (*each)(void *arg, const struct vb_mac *m), void *arg)
{
	for (unsigned i = 0; i < VB_MACS; i++) {
		const struct vb_mac *m = mac_at(t, i);

		if (m->seen && m->seen + VB_MAC_AGE > now)
			each(arg, m);
	}
}

struct vb_macs *vb_macs_create(const struct vb_mac_ops *ops, void *arg,
			       uint64_t seed)
{
	struct vb_macs *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	if (ops)
		t->ops = *ops;
	t->arg = arg;
	t->seed = seed;
	return t;
}

void vb_macs_destroy(struct vb_macs *t)
{
	vb_macs_forget(t);
	free(t);
}
