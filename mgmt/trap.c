/* SPDX-License-Identifier: BSD-2-Clause */
/* Fills in the contents of traps (the tables of IBA 14.2.5.1), and repeats
 * pending traps. */
#include "mgmt/trap.h"

#include "wire/grh.h"
#include "wire/ib_hdr.h"

static unsigned type_of(unsigned number)
{
	if (number >= TRAP_BAD_MKEY)
		return VB_NOTICE_SECURITY;
	return number == TRAP_CAPABILITIES ? VB_NOTICE_INFORMATIONAL
					   : VB_NOTICE_URGENT;
}

static void begin_trap(struct vb_trap *t, unsigned number)
{
	memset(t, 0, sizeof(*t));
	t->number = (uint16_t)number;
}

void vb_trap_link_state(struct vb_trap *t, const struct vb_fab_node *node)
{
	begin_trap(t, TRAP_LINK_STATE);
	vb_store_be(t->details, node->port[0].lid, 2);
}

void vb_trap_link_error(struct vb_trap *t, const struct vb_fab_node *node,
			uint8_t own, enum vb_trap_number number, uint8_t port)
{
	begin_trap(t, number);
	vb_store_be(t->details + 2, node->port[own].lid, 2);
	t->details[4] = port;
}

void vb_trap_capabilities(struct vb_trap *t, const struct vb_fab_node *node,
			  uint8_t own)
{
	begin_trap(t, TRAP_CAPABILITIES);
	vb_store_be(t->details + 2, node->port[own].lid, 2);
	vb_store_be(t->details + 6, node->port[own].cap_mask, 4);
}

/* If the SMP came on a directed route, the trap holds as many hops of its
 * return path as the trap has room for. */
void vb_trap_bad_mkey(struct vb_trap *t, uint16_t slid,
		      const uint8_t mad[VB_MAD_BYTES])
{
	struct vb_smp_hdr h;
	unsigned hops, room = 30;

	begin_trap(t, TRAP_BAD_MKEY);
	vb_smp_hdr_get(mad, &h);
	vb_store_be(t->details + 2, slid, 2);
	t->details[6] = h.method;
	vb_store_be(t->details + 8, h.attr_id, 2);
	vb_store_be(t->details + 10, h.attr_mod, 4);
	vb_store_be(t->details + 14, h.mkey, 8);
	if (h.class != MAD_CLASS_SMP_DIRECTED)
		return;
	hops = VB_MIN(h.hop_count, (unsigned)VB_SMP_HOPS - 1);
	vb_store_be(t->details + 4, h.dr_slid, 2);
	t->details[23] =
		(uint8_t)(0x80 | (hops > room ? 0x40 : 0) | VB_MIN(hops, room));
	memcpy(t->details + 24, mad + VB_SMP_RETURN_PATH_AT + 1,
	       VB_MIN(hops, room));
}

void vb_trap_bad_key(struct vb_trap *t, enum vb_trap_number number,
		     const struct vb_mad_frame *f)
{
	uint32_t key = number == TRAP_BAD_QKEY ? f->qkey : f->pkey;

	begin_trap(t, number);
	vb_store_be(t->details + 2, f->slid, 2);
	vb_store_be(t->details + 4, f->dlid, 2);
	vb_store_be(t->details + 6, key, 4);
	vb_store_be(t->details + 10, (uint32_t)f->sl << 28 | f->sqpn, 4);
	vb_store_be(t->details + 14, f->dqpn, 4);
	memcpy(t->details + 18, f->sgid.raw, 16);
	memcpy(t->details + 34, f->dgid.raw, 16);
}

/* The first two bytes say which fields are valid: LIDs 1 and 2, P_Key, SL,
 * queue pairs 1 and 2, GIDs 1 and 2 (table 133 of IBA 14.2.5.1). */
void vb_trap_switch_pkey(struct vb_trap *t, const struct vb_fab_node *node,
			 uint8_t port, const uint8_t *bytes, size_t len)
{
	unsigned valid = 0x1;
	struct vb_reader r = vb_reader(bytes, len);
	struct vb_bth bth;

	begin_trap(t, TRAP_SWITCH_PKEY);
	vb_store_be(t->details + 48, node->port[0].lid, 2);
	t->details[50] = port;
	if (len < VB_LRH_BYTES)
		return;
	(void)vb_take(&r, (bytes[1] & 3) == 3 ? VB_LRH_BYTES + VB_GRH_BYTES
					      : VB_LRH_BYTES);
	memcpy(t->details + 2, bytes + 6, 2);
	memcpy(t->details + 4, bytes + 2, 2);
	valid |= 0x2;
	if (vb_bth_get(&r, &bth)) {
		valid |= 0x4 | 0x20;
		vb_store_be(t->details + 6, bth.pkey, 2);
		vb_store_be(t->details + 12, bth.dqpn, 4);
	}
	t->details[8] = (uint8_t)(bytes[1] & 0xf0);
	vb_store_be(t->details, valid | 0x8, 2);
}

/* Functions that repeat traps. */

void vb_traps_init(struct vb_traps *ts)
{
	memset(ts, 0, sizeof(*ts));
	for (unsigned i = 0; i < VB_TRAPS_PENDING; i++) {
		ts->list[i].owner = ts;
		vb_timer_init(&ts->list[i].timer);
	}
}

static void end_trap(struct vb_trap_pending *p, struct vb_timers *timers)
{
	vb_timer_cancel(timers, &p->timer);
	p->used = false;
}

void vb_traps_fini(struct vb_traps *ts, struct vb_timers *timers)
{
	for (unsigned i = 0; i < VB_TRAPS_PENDING; i++)
		end_trap(&ts->list[i], timers);
}

/* Returns the entry for a trap: the entry of the last trap of the same number
 * and port; else the entry of the oldest repressed trap; else, if no trap is
 * repressed, that of the oldest trap. */
static struct vb_trap_pending *place_for(struct vb_traps *ts, unsigned number,
					 uint8_t own)
{
	struct vb_trap_pending *worst = &ts->list[0];

	for (unsigned i = 0; i < VB_TRAPS_PENDING; i++) {
		struct vb_trap_pending *p = &ts->list[i];

		if (p->number == number && p->own == own)
			return p;
		if (p->used != worst->used ? worst->used : p->tid < worst->tid)
			worst = p;
	}
	worst->not_before = 0;
	return worst;
}

static void write_trap(const struct vb_fab_node *node,
		       const struct vb_trap_pending *p, const struct vb_trap *t,
		       uint16_t count, uint8_t mad[VB_MAD_BYTES])
{
	const struct vb_fab_port *port = &node->port[p->own];
	const struct vb_smp_hdr h = {
		.base_version = 1,
		.class = MAD_CLASS_SMP,
		.class_version = 1,
		.method = MAD_TRAP,
		.tid = p->tid,
		.attr_id = SMP_NOTICE,
		.mkey = port->mkey,
	};
	const struct vb_notice n = {
		.generic = 1,
		.type = (uint8_t)type_of(t->number),
		.producer = node->kind,
		.number = t->number,
		.issuer_lid = port->lid,
		.count = count,
	};
	uint8_t *data = mad + VB_SMP_DATA_AT;

	memset(mad, 0, VB_MAD_BYTES);
	vb_smp_hdr_put(mad, &h);
	vb_notice_put(data, &n);
	memcpy(data + VB_NOTICE_DETAILS_AT, t->details, sizeof(t->details));
}

vb_time vb_trap_pause(const struct vb_fab_port *port)
{
	vb_time t = (vb_time)4096 << VB_MIN(port->subnet_timeout, 31u);

	return VB_MAX(t, 100 * VB_MSEC);
}

bool vb_traps_begin(struct vb_traps *ts, struct vb_timers *timers,
		    const struct vb_fab_node *node, uint8_t own,
		    const struct vb_trap *t, uint8_t mad[VB_MAD_BYTES],
		    vb_time now)
{
	const struct vb_fab_port *port = &node->port[own];
	struct vb_trap_pending *p;
	bool at_once;

	if (!port->sm_lid || !port->lid)
		return false;
	p = place_for(ts, t->number, own);
	at_once = now >= p->not_before;
	p->used = true;
	p->own = own;
	p->number = t->number;
	p->repeats = 0;
	p->tid = ++ts->last_tid;
	ts->count = (ts->count + 1) & 0x7fff;
	write_trap(node, p, t, ts->count, p->mad);
	memcpy(mad, p->mad, VB_MAD_BYTES);
	if (at_once)
		p->not_before = now + vb_trap_pause(port);
	if (vb_timer_set(timers, &p->timer, p->not_before))
		/* no memory for the timer: the trap is not repeated */
		p->used = false;
	return at_once;
}

bool vb_traps_repeat(struct vb_trap_pending *p, struct vb_timers *timers,
		     const struct vb_fab_node *node, vb_time now)
{
	const struct vb_fab_port *port = &node->port[p->own];

	p->not_before = now + vb_trap_pause(port);
	if (p->repeats++ == VB_TRAP_REPEATS || !port->sm_lid ||
	    vb_timer_set(timers, &p->timer, p->not_before)) {
		p->used = false;
		return false;
	}
	return true;
}

bool vb_traps_repress(struct vb_traps *ts, struct vb_timers *timers,
		      uint64_t tid)
{
	for (unsigned i = 0; i < VB_TRAPS_PENDING; i++)
		if (ts->list[i].used && ts->list[i].tid == tid) {
			end_trap(&ts->list[i], timers);
			return true;
		}
	return false;
}
