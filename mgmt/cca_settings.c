/* SPDX-License-Identifier: BSD-2-Clause */
/* What congestion control sets in switches and adapters, and its logs (IBA
 * annex A10.4.3). */
#include "mgmt/cca_priv.h"

#include "wire/smp.h"

/* A threshold is a code: 0 marks nothing, 1 to 15 mark from shorter and shorter
 * queues on, in even steps. The longest queue is taken to be the 2048 blocks
 * that the credits of one lane allow. */
#define LONGEST_QUEUE 2048u
#define CODES	      16u

static uint32_t blocks_of(unsigned code)
{
	return code ? LONGEST_QUEUE * (CODES - code) / CODES : 0;
}

/* Is the bit of @port set in a mask of 256 bits? Port 0 has the last bit. */
static bool has_port(const uint8_t mask[VB_CC_MASK_BYTES], unsigned port)
{
	return mask[VB_CC_MASK_BYTES - 1 - port / 8] >> port % 8 & 1;
}

/* Functions for the attribute SwitchCongestionSetting. */

/* Work out when each port marks: by its own setting if that is valid, else by
 * the switch's. */
static void apply_marking(struct vb_cca *a)
{
	for (unsigned i = 1; i <= a->node->ports; i++) {
		const struct vb_cc_port_setting *s = &a->port[i].setting;
		struct vb_fab_marking *m = &a->node->port[i].marking;

		m->threshold =
			blocks_of(s->valid ? s->threshold : a->sw.threshold);
		m->packet_size = s->valid ? s->packet_size : a->sw.packet_size;
		m->rate = s->valid ? s->rate : a->sw.rate;
		m->victim = has_port(a->victim, i);
	}
}

unsigned vb_cca_get_switch(struct vb_cca_ask *q)
{
	const struct vb_cca *a = q->agent;

	vb_cc_switch_setting_put(q->data, &a->sw);
	memcpy(q->data + VB_CC_VICTIM_AT, a->victim, VB_CC_MASK_BYTES);
	memcpy(q->data + VB_CC_CREDIT_AT, a->credit, VB_CC_MASK_BYTES);
	return MAD_OK;
}

/* Set the fields that Control_Map names. Those of credit starvation are kept
 * for managers that read them again; no switch here has that ability, as
 * CongestionInfo says. */
unsigned vb_cca_set_switch(struct vb_cca_ask *q)
{
	struct vb_cca *a = q->agent;
	struct vb_cc_switch_setting s;

	vb_cc_switch_setting_get(q->data, &s);
	a->sw.map = s.map;
	if (s.map & CC_MAP_VICTIM)
		memcpy(a->victim, q->data + VB_CC_VICTIM_AT, VB_CC_MASK_BYTES);
	if (s.map & CC_MAP_CREDIT)
		memcpy(a->credit, q->data + VB_CC_CREDIT_AT, VB_CC_MASK_BYTES);
	if (s.map & CC_MAP_THRESHOLD) {
		a->sw.threshold = s.threshold;
		a->sw.packet_size = s.packet_size;
	}
	if (s.map & CC_MAP_STARVATION) {
		a->sw.starvation_threshold = s.starvation_threshold;
		a->sw.starvation_delay = s.starvation_delay;
	}
	if (s.map & CC_MAP_RATE)
		a->sw.rate = s.rate;
	apply_marking(a);
	return MAD_OK;
}

/* Functions for SwitchPortCongestionSetting, whose modifier is the number of a
 * block of 48 ports. */

/* Returns the number of ports in the block; 0: there is no such block. */
static unsigned ports_of_block(const struct vb_cca_ask *q, unsigned *first)
{
	unsigned ports = q->node->ports + 1u;

	if (q->mod > ports / VB_CC_PORTS_BLOCK)
		return 0;
	*first = q->mod * VB_CC_PORTS_BLOCK;
	return *first < ports ? VB_MIN(ports - *first, VB_CC_PORTS_BLOCK + 0u)
			      : 0;
}

unsigned vb_cca_get_ports(struct vb_cca_ask *q)
{
	unsigned first, count = ports_of_block(q, &first);

	if (!count)
		return MAD_BAD_FIELD;
	for (unsigned i = 0; i < count; i++)
		vb_cc_port_setting_put(q->data + i * VB_CC_ELEMENT_BYTES,
				       &q->agent->port[first + i].setting);
	return MAD_OK;
}

unsigned vb_cca_set_ports(struct vb_cca_ask *q)
{
	struct vb_cc_port_setting s[VB_CC_PORTS_BLOCK];
	unsigned first, count = ports_of_block(q, &first);

	if (!count)
		return MAD_BAD_FIELD;
	for (unsigned i = 0; i < count; i++) {
		vb_cc_port_setting_get(q->data + i * VB_CC_ELEMENT_BYTES,
				       &s[i]);
		/* Type 1 is credit starvation, which these switches do not
		 * have. */
		if (s[i].valid && s[i].type)
			return MAD_BAD_FIELD;
	}
	for (unsigned i = 0; i < count; i++)
		q->agent->port[first + i].setting = s[i];
	apply_marking(q->agent);
	return MAD_OK;
}

/* Functions for the attribute CACongestionSetting. */

unsigned vb_cca_get_ca(struct vb_cca_ask *q)
{
	const struct vb_fab_cc *cc = q->fab->cc;

	vb_store_be(q->data, cc->port_control, 2);
	vb_store_be(q->data + 2, cc->control_map, 2);
	for (unsigned sl = 0; sl < VB_FAB_SLS; sl++) {
		const struct vb_cc_entry e = {
			.timer = cc->sl[sl].timer,
			.increase = cc->sl[sl].increase,
			.trigger = cc->sl[sl].trigger,
			.min = cc->sl[sl].min,
		};

		vb_cc_entry_put(q->data + VB_CC_ENTRIES_AT +
					sl * VB_CC_ENTRY_BYTES,
				&e);
	}
	return MAD_OK;
}

/* Set the entries of the service levels in Control_Map; the others stay. */
unsigned vb_cca_set_ca(struct vb_cca_ask *q)
{
	struct vb_fab_cc *cc = q->fab->cc;
	unsigned map = (unsigned)vb_load_be(q->data + 2, 2);

	cc->port_control = (uint16_t)vb_load_be(q->data, 2);
	cc->control_map |= (uint16_t)map;
	for (unsigned sl = 0; sl < VB_FAB_SLS; sl++) {
		struct vb_cc_entry e;

		if (!(map >> sl & 1))
			continue;
		vb_cc_entry_get(q->data + VB_CC_ENTRIES_AT +
					sl * VB_CC_ENTRY_BYTES,
				&e);
		cc->sl[sl] = (struct vb_fab_cc_sl){ .increase = e.increase,
						    .trigger = e.trigger,
						    .min = e.min,
						    .timer = e.timer };
	}
	return MAD_OK;
}

/* Functions for CongestionControlTable, whose modifier is the number of a block
 * of 64 entries. */

static uint16_t *table_block(const struct vb_cca_ask *q)
{
	return q->mod < VB_FAB_CCT / VB_CC_TABLE_BLOCK
		       ? q->fab->cc->cct + q->mod * VB_CC_TABLE_BLOCK
		       : NULL;
}

unsigned vb_cca_get_table(struct vb_cca_ask *q)
{
	const uint16_t *block = table_block(q);

	if (!block)
		return MAD_BAD_FIELD;
	vb_store_be(q->data, q->fab->cc->limit, 2);
	for (unsigned i = 0; i < VB_CC_TABLE_BLOCK; i++)
		vb_store_be(q->data + VB_CC_TABLE_AT + 2 * i, block[i], 2);
	return MAD_OK;
}

unsigned vb_cca_set_table(struct vb_cca_ask *q)
{
	unsigned limit = (unsigned)vb_load_be(q->data, 2);
	uint16_t *block = table_block(q);

	if (!block || limit >= VB_FAB_CCT)
		return MAD_BAD_FIELD;
	q->fab->cc->limit = (uint16_t)limit;
	for (unsigned i = 0; i < VB_CC_TABLE_BLOCK; i++)
		block[i] = (uint16_t)vb_load_be(
			q->data + VB_CC_TABLE_AT + 2 * i, 2);
	return MAD_OK;
}

/* Functions for CongestionLog: the events since a manager last read it. */

/* Time stamps repeat after this time, so an older event would look like a new
 * one; the log does not report it. */
#define STAMPS_LAST ((vb_time)VB_CC_STAMP_NS << 32)

static const struct vb_fab_cc_event *
latest_event(const struct vb_fab_cc_log *log, unsigned back, vb_time now)
{
	const struct vb_fab_cc_event *e;

	if (back >= log->count || back >= VB_FAB_CC_EVENTS)
		return NULL;
	e = &log->event[(log->count - 1 - back) % VB_FAB_CC_EVENTS];
	return now - e->at < STAMPS_LAST ? e : NULL;
}

/* Begin the log's data: returns its header. The events in the log count as read
 * from now on. */
static struct vb_cc_log begin_log(struct vb_cca_ask *q, uint8_t type,
				  const struct vb_fab_cc_log *log)
{
	uint32_t events = log->count - q->own->log_read;

	q->own->log_read = log->count;
	return (struct vb_cc_log){
		.type = type,
		.events = (uint16_t)VB_MIN(events, (uint32_t)UINT16_MAX),
		.sls = log->sls,
		.stamp = vb_cca_stamp(q->now),
	};
}

unsigned vb_cca_get_switch_log(struct vb_cca_ask *q)
{
	struct vb_fab_cc_log *log = &q->node->sw.cc_log;
	struct vb_cc_log head = begin_log(q, CC_LOG_SWITCH, log);
	const struct vb_fab_cc_event *e;

	vb_cc_log_put(q->log, &head);
	for (unsigned word = 0; word < VB_COUNT(log->ports); word++) {
		vb_store_be(q->log + VB_CC_LOG_PORTS_AT + VB_CC_MASK_BYTES -
				    8 * (word + 1),
			    log->ports[word], 8);
		log->ports[word] = 0;
	}
	for (unsigned i = 0; (e = latest_event(log, i, q->now)); i++) {
		const struct vb_cc_log_switch_entry entry = {
			.slid = e->slid,
			.dlid = e->dlid,
			.sl = e->sl,
			.stamp = vb_cca_stamp(e->at),
		};

		vb_cc_log_switch_entry_put(q->log + VB_CC_LOG_SWITCH_AT +
						   i * VB_CC_LOG_SWITCH_BYTES,
					   &entry);
	}
	return MAD_OK;
}

unsigned vb_cca_get_ca_log(struct vb_cca_ask *q)
{
	struct vb_fab_cc_log *log = &q->fab->cc->log;
	struct vb_cc_log head = begin_log(q, CC_LOG_CA, log);
	const struct vb_fab_cc_event *e;

	vb_cc_log_put(q->log, &head);
	log->sls = 0;
	for (unsigned i = 0;
	     i < VB_CC_LOG_CA_ENTRIES && (e = latest_event(log, i, q->now));
	     i++) {
		const struct vb_cc_log_ca_entry entry = {
			.local_qpn = e->qpn,
			.sl = e->sl,
			.service = e->service,
			.local_lid = e->dlid,
			.remote_lid = e->slid,
			.stamp = vb_cca_stamp(e->at),
		};

		vb_cc_log_ca_entry_put(q->log + VB_CC_LOG_CA_AT +
					       i * VB_CC_LOG_CA_BYTES,
				       &entry);
	}
	return MAD_OK;
}
