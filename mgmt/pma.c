/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A table says which counter stands in which bits of which attribute, and which
 * bit of CounterSelect resets it. A counter that has no room for its value
 * stays at its largest (IBA 16.1.3.5).
 */
#include "mgmt/pma.h"

#include <stdlib.h>

#include "wire/field.h"
#include "wire/smp.h"

#define DATA_AT	      64
#define DATA_BYTES    192
#define ALL_PORTS     0xff
#define BASE_VERSION  1
#define CLASS_VERSION 1
#define RESP_TIME     18 /* RespTimeValue: 4.096 us * 2^18, about a second */

#define PORT_AT	  1
#define SELECT_AT 2
/* byte offset of CounterSelect2, which only PortCounters has */
#define SELECT2_AT 18

/* ClassPortInfo.CapabilityMask (IBA 16.1.3.1). */
#define CAP_ALL_PORTS 0x0100
#define CAP_EXT_WIDTH 0x0200
#define CAP_XMIT_WAIT 0x1000

enum attr {
	PERF_CLASS_PORT_INFO = 0x01,
	PERF_COUNTERS = 0x12,
	PERF_RCV_ERROR_DETAILS = 0x15,
	PERF_XMIT_DISCARD_DETAILS = 0x16,
	PERF_FLOW_COUNTERS = 0x18,
	PERF_COUNTERS_EXT = 0x1d,
};

/* the bit of the selection that CounterSelect2's first bit becomes */
#define SELECT2 0x10000

/* One field of an attribute. Offsets count from DATA_AT, where the data of the
 * MAD begins. */
static const struct row {
	uint8_t attr, byte, bit, bits;
	uint32_t select;
	uint8_t count; /* the enum vb_fab_counter that the field shows */
	/* a counter that the field's value leaves out; FAB_COUNTERS: none */
	uint8_t except;
} rows[] = {
#define ROW(a, byte, bits, select, count)                                      \
	{                                                                      \
		a, byte, 0, bits, 1u << (select), count, FAB_COUNTERS          \
	}
	ROW(PERF_COUNTERS, 4, 16, 0, FAB_SYMBOL_ERRORS),
	ROW(PERF_COUNTERS, 6, 8, 1, FAB_LINK_RECOVERIES),
	ROW(PERF_COUNTERS, 7, 8, 2, FAB_LINK_DOWNED),
	ROW(PERF_COUNTERS, 8, 16, 3, FAB_RCV_ERRORS),
	ROW(PERF_COUNTERS, 10, 16, 4, FAB_RCV_REMOTE_PHYSICAL),
	ROW(PERF_COUNTERS, 12, 16, 5, FAB_RCV_SWITCH_RELAY),
	ROW(PERF_COUNTERS, 14, 16, 6, FAB_XMIT_DISCARDS),
	ROW(PERF_COUNTERS, 16, 8, 7, FAB_XMIT_CONSTRAINT),
	ROW(PERF_COUNTERS, 17, 8, 8, FAB_RCV_CONSTRAINT),
	ROW(PERF_COUNTERS, 19, 4, 9, FAB_LINK_INTEGRITY),
	{ PERF_COUNTERS, 19, 4, 4, 1u << 10, FAB_OVERRUNS, FAB_COUNTERS },
	ROW(PERF_COUNTERS, 20, 16, 17, FAB_QP1_DROPPED),
	ROW(PERF_COUNTERS, 22, 16, 11, FAB_VL15_DROPPED),
	ROW(PERF_COUNTERS, 24, 32, 12, FAB_XMIT_WORDS),
	ROW(PERF_COUNTERS, 28, 32, 13, FAB_RCV_WORDS),
	ROW(PERF_COUNTERS, 32, 32, 14, FAB_XMIT_PKTS),
	ROW(PERF_COUNTERS, 36, 32, 15, FAB_RCV_PKTS),
	ROW(PERF_COUNTERS, 40, 32, 16, FAB_XMIT_WAIT),
	ROW(PERF_RCV_ERROR_DETAILS, 4, 16, 0, FAB_RCV_LOCAL_PHYSICAL),
	ROW(PERF_RCV_ERROR_DETAILS, 6, 16, 1, FAB_RCV_MALFORMED),
	ROW(PERF_RCV_ERROR_DETAILS, 8, 16, 2, FAB_RCV_OVERRUN),
	ROW(PERF_RCV_ERROR_DETAILS, 10, 16, 3, FAB_RCV_DLID_MAPPING),
	ROW(PERF_RCV_ERROR_DETAILS, 12, 16, 4, FAB_RCV_VL_MAPPING),
	ROW(PERF_RCV_ERROR_DETAILS, 14, 16, 5, FAB_RCV_LOOPING),
	ROW(PERF_XMIT_DISCARD_DETAILS, 4, 16, 0, FAB_XMIT_INACTIVE),
	ROW(PERF_XMIT_DISCARD_DETAILS, 6, 16, 1, FAB_XMIT_NEIGHBOR_MTU),
	ROW(PERF_XMIT_DISCARD_DETAILS, 8, 16, 2, FAB_XMIT_LIFETIME),
	ROW(PERF_XMIT_DISCARD_DETAILS, 10, 16, 3, FAB_XMIT_HOQ),
	ROW(PERF_FLOW_COUNTERS, 4, 32, 0, FAB_XMIT_FLOW_PKTS),
	ROW(PERF_FLOW_COUNTERS, 8, 32, 1, FAB_RCV_FLOW_PKTS),
	ROW(PERF_COUNTERS_EXT, 8, 64, 0, FAB_XMIT_WORDS),
	ROW(PERF_COUNTERS_EXT, 16, 64, 1, FAB_RCV_WORDS),
	ROW(PERF_COUNTERS_EXT, 24, 64, 2, FAB_XMIT_PKTS),
	ROW(PERF_COUNTERS_EXT, 32, 64, 3, FAB_RCV_PKTS),
	{ PERF_COUNTERS_EXT, 40, 0, 64, 1u << 4, FAB_XMIT_PKTS,
	  FAB_XMIT_MCAST_PKTS },
	{ PERF_COUNTERS_EXT, 48, 0, 64, 1u << 5, FAB_RCV_PKTS,
	  FAB_RCV_MCAST_PKTS },
	ROW(PERF_COUNTERS_EXT, 56, 64, 6, FAB_XMIT_MCAST_PKTS),
	ROW(PERF_COUNTERS_EXT, 64, 64, 7, FAB_RCV_MCAST_PKTS),
};

struct vb_pma {
	unsigned ports;
	/* for each port and field, the value that is shown as 0 */
	uint64_t (*zero)[VB_COUNT(rows)];
};

struct vb_pma *vb_pma_create(const struct vb_fab_node *node)
{
	struct vb_pma *pma = calloc(1, sizeof(*pma));

	if (!pma)
		return NULL;
	pma->ports = node->ports;
	pma->zero = calloc(node->ports + 1u, sizeof(*pma->zero));
	if (!pma->zero) {
		free(pma);
		return NULL;
	}
	return pma;
}

void vb_pma_destroy(struct vb_pma *pma)
{
	if (!pma)
		return;
	free(pma->zero);
	free(pma);
}

static uint64_t raw_count(const struct vb_fab_node *n, unsigned port,
			  const struct row *r)
{
	const uint64_t *count = n->port[port].count;

	return count[r->count] -
	       (r->except == FAB_COUNTERS ? 0 : count[r->except]);
}

static uint64_t most_of(const struct row *r)
{
	return r->bits == 64 ? UINT64_MAX : (1ull << r->bits) - 1;
}

/* The value of the counter at port @first, or the sum over the ports
 * @first..@last. */
static uint64_t read_count(const struct vb_pma *pma,
			   const struct vb_fab_node *n, unsigned first,
			   unsigned last, const struct row *r)
{
	uint64_t sum = 0;

	for (unsigned p = first; p <= last; p++)
		sum += raw_count(n, p, r) - pma->zero[p][r - rows];
	return VB_MIN(sum, most_of(r));
}

/* Let the counter show @value from now on, at each port from @first to
 * @last. */
static void write_count(struct vb_pma *pma, const struct vb_fab_node *n,
			unsigned first, unsigned last, const struct row *r,
			uint64_t value)
{
	for (unsigned p = first; p <= last; p++)
		pma->zero[p][r - rows] = raw_count(n, p, r) - value;
}

static uint32_t selected(const uint8_t *data, unsigned attr)
{
	uint32_t select = (uint32_t)vb_load_be(data + SELECT_AT, 2);

	/* The bits of CounterSelect2 are used from the last bit of its byte on:
	 * XmitWait, then QP1Dropped. */
	if (attr == PERF_COUNTERS)
		for (unsigned i = 0; i < 8; i++)
			if (data[SELECT2_AT] & 1u << i)
				select |= SELECT2 << i;
	return select;
}

/* Find the ports that PortSelect names. False: there is no such port. */
static bool find_ports(const struct vb_fab_node *n, unsigned select,
		       unsigned *first, unsigned *last)
{
	bool is_switch = n->kind == FAB_SWITCH;

	if (select == ALL_PORTS) {
		*first = is_switch ? 0 : 1;
		*last = n->ports;
		return is_switch;
	}
	*first = *last = select;
	return select <= n->ports && (select > 0 || is_switch);
}

static unsigned count_rows(unsigned attr)
{
	unsigned count = 0;

	for (unsigned i = 0; i < VB_COUNT(rows); i++)
		count += rows[i].attr == attr;
	return count;
}

static unsigned answer_counters(struct vb_pma *pma, const struct vb_fab_node *n,
				unsigned method, unsigned attr, uint8_t *data)
{
	uint32_t select = selected(data, attr);
	unsigned first, last;

	if (!find_ports(n, data[PORT_AT], &first, &last))
		return MAD_BAD_FIELD;
	for (const struct row *r = rows; r < rows + VB_COUNT(rows); r++) {
		unsigned bit = r->byte * 8u + r->bit;

		if (r->attr != attr)
			continue;
		if (method == MAD_SET && select & r->select)
			write_count(pma, n, first, last, r,
				    vb_bits_load(data, bit, r->bits));
		vb_bits_store(data, bit, r->bits,
			      read_count(pma, n, first, last, r));
	}
	return MAD_OK;
}

static unsigned answer_class(const struct vb_fab_node *n, uint8_t *data)
{
	unsigned caps = CAP_EXT_WIDTH | CAP_XMIT_WAIT |
			(n->kind == FAB_SWITCH ? CAP_ALL_PORTS : 0);

	memset(data, 0, DATA_BYTES);
	data[0] = BASE_VERSION;
	data[1] = CLASS_VERSION;
	vb_store_be(data + 2, caps, 2);
	data[7] = RESP_TIME;
	return MAD_OK;
}

static unsigned pma_answer(struct vb_pma *pma, const struct vb_fab_node *n,
			   const struct vb_mad_hdr *h, uint8_t *data)
{
	if (h->base_version != BASE_VERSION ||
	    h->class_version != CLASS_VERSION)
		return MAD_BAD_VERSION;
	if (h->method != MAD_GET && h->method != MAD_SET)
		return MAD_BAD_METHOD;
	if (h->attr_id == PERF_CLASS_PORT_INFO && h->method == MAD_GET)
		return answer_class(n, data);
	if (h->attr_id == PERF_CLASS_PORT_INFO || h->attr_id > 0xff ||
	    !count_rows(h->attr_id))
		return MAD_BAD_ATTRIBUTE;
	return answer_counters(pma, n, h->method, h->attr_id, data);
}

bool vb_pma_hear(struct vb_pma *pma, const struct vb_fab_node *node,
		 uint8_t mad[VB_MAD_BYTES])
{
	struct vb_reader r = vb_reader(mad, VB_MAD_BYTES);
	struct vb_writer w = { mad };
	struct vb_mad_hdr h;

	if (!vb_mad_hdr_get(&r, &h) || h.method & MAD_RESPONSE ||
	    h.method == MAD_TRAP_REPRESS || h.method == MAD_TRAP)
		return false;
	h.status = (uint16_t)pma_answer(pma, node, &h, mad + DATA_AT);
	h.method = MAD_GET_RESP;
	vb_mad_hdr_put(&w, &h);
	return true;
}
