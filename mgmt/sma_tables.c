/* SPDX-License-Identifier: BSD-2-Clause */
/* The attributes that are blocks of a table: GUIDs, P_Keys, SL to VL, VL
 * arbitration, and the forwarding tables (IBA 14.2.5.5, 14.2.5.7 to
 * 14.2.5.12). */
#include "mgmt/sma_priv.h"

#define GUIDS_BLOCK	8
#define PKEYS_BLOCK	32
#define ARB_BLOCK	32
#define LINEAR_BLOCK	64
#define RANDOM_BLOCK	16
#define MULTICAST_BLOCK 32
/* number of ports that one position of a multicast block covers */
#define MASK_PORTS 16
#define POSITIONS  16

/* Functions for GUIDInfo, whose attribute modifier is the number of a block. */

unsigned vb_sma_get_guids(struct vb_sma_ask *q)
{
	const struct vb_fab_port *p =
		&q->node->port[vb_sma_own_port(q->node, q->in)];

	if (q->mod * (uint64_t)GUIDS_BLOCK >= p->guid_cap)
		return MAD_BAD_FIELD;
	for (unsigned i = 0; i < GUIDS_BLOCK; i++) {
		unsigned at = q->mod * GUIDS_BLOCK + i;

		vb_store_be(q->data + i * 8,
			    at < p->guid_cap ? p->guids[at] : 0, 8);
	}
	return MAD_OK;
}

/* A Set never changes the first GUID, which is the hardware's. */
unsigned vb_sma_set_guids(struct vb_sma_ask *q)
{
	struct vb_fab_port *p = &q->node->port[vb_sma_own_port(q->node, q->in)];

	if (q->mod * (uint64_t)GUIDS_BLOCK >= p->guid_cap)
		return MAD_BAD_FIELD;
	for (unsigned i = 0; i < GUIDS_BLOCK; i++) {
		unsigned at = q->mod * GUIDS_BLOCK + i;

		if (at > 0 && at < p->guid_cap)
			p->guids[at] = vb_load_be(q->data + i * 8, 8);
	}
	return MAD_OK;
}

/* Functions for P_KeyTable, whose attribute modifier is port << 16 | block. */

static struct vb_fab_port *pkey_block(const struct vb_sma_ask *q,
				      unsigned *first, uint8_t *port)
{
	bool is_switch = q->node->kind == FAB_SWITCH;
	struct vb_fab_port *p =
		vb_sma_port(q, is_switch ? q->mod >> 16 & 0xff : q->in, port);

	*first = (q->mod & 0xffff) * PKEYS_BLOCK;
	return p && *first < p->pkeys ? p : NULL;
}

unsigned vb_sma_get_pkeys(struct vb_sma_ask *q)
{
	unsigned first;
	uint8_t port;
	const struct vb_fab_port *p = pkey_block(q, &first, &port);

	if (!p)
		return MAD_BAD_FIELD;
	for (unsigned i = 0; i < PKEYS_BLOCK; i++)
		vb_store_be(q->data + i * 2,
			    first + i < p->pkeys ? p->pkey[first + i] : 0, 2);
	return MAD_OK;
}

unsigned vb_sma_set_pkeys(struct vb_sma_ask *q)
{
	unsigned first;
	uint8_t port;
	struct vb_fab_port *p = pkey_block(q, &first, &port);

	if (!p)
		return MAD_BAD_FIELD;
	for (unsigned i = 0; i < PKEYS_BLOCK && first + i < p->pkeys; i++)
		p->pkey[first + i] = (uint16_t)vb_load_be(q->data + i * 2, 2);
	if (q->ops->configured && port == vb_sma_own_port(q->node, port))
		q->ops->configured(q->ops->arg, q->node, port);
	return MAD_OK;
}

/* Functions for SLtoVLMappingTable; at a switch the attribute modifier is in <<
 * 8 | out. */

static uint8_t *sl2vl_of(const struct vb_sma_ask *q)
{
	unsigned in = q->mod >> 8 & 0xff, out = q->mod & 0xff;

	if (q->node->kind != FAB_SWITCH)
		return q->node->port[q->in].sl2vl;
	if (in > q->node->ports || out > q->node->ports)
		return NULL;
	return vb_fab_sl2vl(q->node, in, out);
}

unsigned vb_sma_get_sl2vl(struct vb_sma_ask *q)
{
	const uint8_t *vl = sl2vl_of(q);

	if (!vl)
		return MAD_BAD_FIELD;
	for (unsigned sl = 0; sl < VB_FAB_SLS; sl += 2)
		q->data[sl / 2] = (uint8_t)(vl[sl] << 4 | vl[sl + 1]);
	return MAD_OK;
}

unsigned vb_sma_set_sl2vl(struct vb_sma_ask *q)
{
	uint8_t *vl = sl2vl_of(q);

	if (!vl)
		return MAD_BAD_FIELD;
	for (unsigned sl = 0; sl < VB_FAB_SLS; sl += 2) {
		vl[sl] = q->data[sl / 2] >> 4;
		vl[sl + 1] = q->data[sl / 2] & 15;
	}
	return MAD_OK;
}

/* Functions for VLArbitrationTable, whose attribute modifier is block << 16 |
 * port. */

/* Blocks 1 and 2 are the low table, 3 and 4 the high one. */

static struct vb_fab_vlarb *arb_block(const struct vb_sma_ask *q,
				      unsigned *count)
{
	unsigned block = q->mod >> 16;
	bool is_switch = q->node->kind == FAB_SWITCH;
	unsigned cap, first = (block - 1) % 2 * ARB_BLOCK;
	struct vb_fab_port *p;
	uint8_t port;

	p = vb_sma_port(q, is_switch ? q->mod & 0xff : q->in, &port);
	if (!p || block < 1 || block > 4)
		return NULL;
	cap = block < 3 ? p->arb_low_cap : p->arb_high_cap;
	if (first >= cap)
		return NULL;
	*count = VB_MIN(cap - first, (unsigned)ARB_BLOCK);
	return (block < 3 ? p->arb_low : p->arb_high) + first;
}

unsigned vb_sma_get_vlarb(struct vb_sma_ask *q)
{
	unsigned count;
	const struct vb_fab_vlarb *arb = arb_block(q, &count);

	if (!arb)
		return MAD_BAD_FIELD;
	for (unsigned i = 0; i < count; i++) {
		q->data[i * 2] = arb[i].vl;
		q->data[i * 2 + 1] = arb[i].weight;
	}
	return MAD_OK;
}

/* VL15 is no data lane: arbitration skips an entry that names it. */
unsigned vb_sma_set_vlarb(struct vb_sma_ask *q)
{
	unsigned count;
	struct vb_fab_vlarb *arb = arb_block(q, &count);

	if (!arb)
		return MAD_BAD_FIELD;
	for (unsigned i = 0; i < count; i++) {
		unsigned vl = q->data[i * 2] & 15;

		arb[i].vl = (uint8_t)(vl == 15 ? 0 : vl);
		arb[i].weight = vl == 15 ? 0 : q->data[i * 2 + 1];
	}
	return MAD_OK;
}

/* Functions for the forwarding tables. */

unsigned vb_sma_get_linear(struct vb_sma_ask *q)
{
	const struct vb_fab_switch *sw = &q->node->sw;
	uint64_t first = q->mod * (uint64_t)LINEAR_BLOCK;

	if (first >= sw->linear_cap)
		return MAD_BAD_FIELD;
	memset(q->data, VB_FAB_NO_PORT, LINEAR_BLOCK);
	memcpy(q->data, sw->linear + first,
	       VB_MIN((uint64_t)LINEAR_BLOCK, sw->linear_cap - first));
	return MAD_OK;
}

unsigned vb_sma_set_linear(struct vb_sma_ask *q)
{
	struct vb_fab_switch *sw = &q->node->sw;
	uint64_t first = q->mod * (uint64_t)LINEAR_BLOCK;

	if (first >= sw->linear_cap)
		return MAD_BAD_FIELD;
	memcpy(sw->linear + first, q->data,
	       VB_MIN((uint64_t)LINEAR_BLOCK, sw->linear_cap - first));
	return MAD_OK;
}

/* The bits of an entry of the random table: LID (16), valid (1), LMC (3),
 * reserved (4), port (8). */
unsigned vb_sma_get_random(struct vb_sma_ask *q)
{
	const struct vb_fab_switch *sw = &q->node->sw;
	uint64_t first = q->mod * (uint64_t)RANDOM_BLOCK;

	if (first >= sw->random_cap)
		return MAD_BAD_FIELD;
	for (unsigned i = 0; i < RANDOM_BLOCK; i++) {
		const struct vb_fab_random *e = &sw->random[first + i];

		if (first + i >= sw->random_cap)
			break;
		vb_store_be(q->data + i * 4, e->lid, 2);
		q->data[i * 4 + 2] = (uint8_t)(e->valid << 7 | e->lmc << 4);
		q->data[i * 4 + 3] = e->port;
	}
	return MAD_OK;
}

unsigned vb_sma_set_random(struct vb_sma_ask *q)
{
	struct vb_fab_switch *sw = &q->node->sw;
	uint64_t first = q->mod * (uint64_t)RANDOM_BLOCK;

	if (first >= sw->random_cap)
		return MAD_BAD_FIELD;
	for (unsigned i = 0; i < RANDOM_BLOCK && first + i < sw->random_cap;
	     i++) {
		const uint8_t *e = q->data + i * 4;

		sw->random[first + i] = (struct vb_fab_random){
			.lid = (uint16_t)vb_load_be(e, 2),
			.valid = e[2] >> 7,
			.lmc = e[2] >> 4 & 7,
			.port = e[3],
		};
	}
	return MAD_OK;
}

/* The attribute modifier of MulticastForwardingTable: position << 28 | block of
 * 32 MLIDs. A position is 16 ports. */
static bool mcast_block(const struct vb_sma_ask *q, uint64_t *first,
			unsigned *position)
{
	*first = (q->mod & 0x1ff) * (uint64_t)MULTICAST_BLOCK;
	*position = q->mod >> 28;
	return *first < q->node->sw.mcast_cap &&
	       *position * MASK_PORTS <= q->node->ports;
}

unsigned vb_sma_get_multicast(struct vb_sma_ask *q)
{
	const struct vb_fab_switch *sw = &q->node->sw;
	uint64_t first;
	unsigned position;

	if (!mcast_block(q, &first, &position))
		return MAD_BAD_FIELD;
	for (unsigned i = 0; i < MULTICAST_BLOCK && first + i < sw->mcast_cap;
	     i++)
		vb_store_be(q->data + i * 2,
			    sw->mcast[first + i].ports[position / 4] >>
					    position % 4 * MASK_PORTS &
				    0xffff,
			    2);
	return MAD_OK;
}

unsigned vb_sma_set_multicast(struct vb_sma_ask *q)
{
	struct vb_fab_switch *sw = &q->node->sw;
	unsigned position, shift;
	uint64_t first;

	if (!mcast_block(q, &first, &position))
		return MAD_BAD_FIELD;
	shift = position % 4 * MASK_PORTS;
	for (unsigned i = 0; i < MULTICAST_BLOCK && first + i < sw->mcast_cap;
	     i++) {
		uint64_t *word = &sw->mcast[first + i].ports[position / 4];

		*word = (*word & ~((uint64_t)0xffff << shift)) |
			vb_load_be(q->data + i * 2, 2) << shift;
	}
	return MAD_OK;
}
