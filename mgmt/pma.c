/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A table says which counter stands in which bits of which attribute, and which
 * bit of CounterSelect resets it. A counter that has no room for its value
 * stays at its largest (IBA 16.1.3.5).
 */
#include "mgmt/pma_priv.h"

#include <stdlib.h>

#include "base/timer.h"
#include "wire/cc.h"
#include "wire/field.h"
#include "wire/smp.h"

#define DATA_AT	      64
#define DATA_BYTES    192
#define ALL_PORTS     0xff
#define CLASS_VERSION 1
#define RESP_TIME     18 /* RespTimeValue: 4.096 us * 2^18, about a second */

#define PORT_AT	  1
#define SELECT_AT 2

/* ClassPortInfo.CapabilityMask and CapabilityMask2 (IBA 16.1.3.1). */
#define CAP_ALL_PORTS  0x0100
#define CAP_EXT_WIDTH  0x0200
#define CAP_XMIT_WAIT  0x1000
#define CAP_QP1_DROP   0x8000
#define CAP2_EXT_ERROR 0x0002

enum attr {
	PERF_CLASS_PORT_INFO = 0x01,
	PERF_SAMPLES_CONTROL = 0x10,
	PERF_SAMPLES_RESULT = 0x11,
	PERF_COUNTERS = 0x12,
	PERF_RCV_ERROR_DETAILS = 0x15,
	PERF_XMIT_DISCARD_DETAILS = 0x16,
	PERF_FLOW_COUNTERS = 0x18,
	PERF_VL_XMIT_WAIT = 0x1c,
	PERF_COUNTERS_EXT = 0x1d,
	PERF_SWITCH_VL_CONGESTION = 0x30,
	PERF_RCV_CONGESTION = 0x31,
	PERF_SL_RCV_FECN = 0x32,
	PERF_SL_RCV_BECN = 0x33,
	PERF_XMIT_CONGESTION = 0x34,
	PERF_VL_TIME_CONGESTED = 0x35,
	PERF_XMIT_DATA_SL = 0x36,
	PERF_RCV_DATA_SL = 0x37,
};

/* the value of @select in struct row at which CounterSelect2 begins */
#define SELECT2	   16
#define VLS	   16
#define DATA_LANES 15

/* One field of an attribute, or several. Offsets count from DATA_AT, where the
 * data of the MAD begins. A row of several @times is a counter of each lane or
 * service level: the fields follow each other, and so do the bits of
 * CounterSelect. */
static const struct row {
	uint8_t attr, byte, bit, bits;
	uint8_t select; /* index of the counter's bit in CounterSelect */
	/* offset of the member of struct vb_fab_port that the field shows */
	uint16_t at;
	/* offset of a member whose value is subtracted; 0: none */
	uint16_t except;
	uint8_t times;
	/* distance in bytes to the member of the next lane or service level */
	uint16_t stride;
} rows[] = {
#define ROW(a, byte, bits, select, count)                                      \
	{                                                                      \
		a, byte, 0, bits, select, PMA_COUNT(count), 0, 1, 0            \
	}
#define EACH_VL(a, bits, member, times)                                        \
	{                                                                      \
		a, 4, 0, bits, 0, PMA_VL(member), 0, times,                    \
			sizeof(struct vb_fab_vl_counters)                      \
	}
#define EACH_SL(a, member)                                                     \
	{                                                                      \
		a, 4, 0, 32, 0, PMA_SL(member), 0, VB_FAB_SLS,                 \
			sizeof(struct vb_fab_sl_counters)                      \
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
	{ PERF_COUNTERS, 19, 4, 4, 10, PMA_COUNT(FAB_OVERRUNS), 0, 1, 0 },
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
	{ PERF_COUNTERS_EXT, 40, 0, 64, 4, PMA_COUNT(FAB_XMIT_PKTS),
	  PMA_COUNT(FAB_XMIT_MCAST_PKTS), 1, 0 },
	{ PERF_COUNTERS_EXT, 48, 0, 64, 5, PMA_COUNT(FAB_RCV_PKTS),
	  PMA_COUNT(FAB_RCV_MCAST_PKTS), 1, 0 },
	ROW(PERF_COUNTERS_EXT, 56, 64, 6, FAB_XMIT_MCAST_PKTS),
	ROW(PERF_COUNTERS_EXT, 64, 64, 7, FAB_RCV_MCAST_PKTS),
	ROW(PERF_COUNTERS_EXT, 72, 64, SELECT2 + 0, FAB_SYMBOL_ERRORS),
	ROW(PERF_COUNTERS_EXT, 80, 64, SELECT2 + 1, FAB_LINK_RECOVERIES),
	ROW(PERF_COUNTERS_EXT, 88, 64, SELECT2 + 2, FAB_LINK_DOWNED),
	ROW(PERF_COUNTERS_EXT, 96, 64, SELECT2 + 3, FAB_RCV_ERRORS),
	ROW(PERF_COUNTERS_EXT, 104, 64, SELECT2 + 4, FAB_RCV_REMOTE_PHYSICAL),
	ROW(PERF_COUNTERS_EXT, 112, 64, SELECT2 + 5, FAB_RCV_SWITCH_RELAY),
	ROW(PERF_COUNTERS_EXT, 120, 64, SELECT2 + 6, FAB_XMIT_DISCARDS),
	ROW(PERF_COUNTERS_EXT, 128, 64, SELECT2 + 7, FAB_XMIT_CONSTRAINT),
	ROW(PERF_COUNTERS_EXT, 136, 64, SELECT2 + 8, FAB_RCV_CONSTRAINT),
	ROW(PERF_COUNTERS_EXT, 144, 64, SELECT2 + 9, FAB_LINK_INTEGRITY),
	ROW(PERF_COUNTERS_EXT, 152, 64, SELECT2 + 10, FAB_OVERRUNS),
	ROW(PERF_COUNTERS_EXT, 160, 64, SELECT2 + 11, FAB_VL15_DROPPED),
	ROW(PERF_COUNTERS_EXT, 168, 64, SELECT2 + 12, FAB_XMIT_WAIT),
	ROW(PERF_COUNTERS_EXT, 176, 64, SELECT2 + 13, FAB_QP1_DROPPED),
	EACH_VL(PERF_VL_XMIT_WAIT, 16, xmit_wait, VLS),
	EACH_VL(PERF_SWITCH_VL_CONGESTION, 16, xmit_late, VLS),
	ROW(PERF_RCV_CONGESTION, 4, 32, 0, FAB_RCV_FECN),
	ROW(PERF_RCV_CONGESTION, 8, 32, 1, FAB_RCV_BECN),
	EACH_SL(PERF_SL_RCV_FECN, rcv_fecn),
	EACH_SL(PERF_SL_RCV_BECN, rcv_becn),
	ROW(PERF_XMIT_CONGESTION, 4, 32, 0, FAB_XMIT_TIME_CONG),
	EACH_VL(PERF_VL_TIME_CONGESTED, 32, time_cong, DATA_LANES),
	EACH_SL(PERF_XMIT_DATA_SL, xmit_words),
	EACH_SL(PERF_RCV_DATA_SL, rcv_words),
};

/* Returns the index of a row's first counter among all counters of a port, that
 * is, how many counters the rows before @end have. */
static unsigned counters_before(const struct row *end)
{
	unsigned count = 0;

	for (const struct row *r = rows; r < end; r++)
		count += r->times;
	return count;
}

struct vb_pma *vb_pma_create(struct vb_fab_node *node, struct vb_timers *timers)
{
	struct vb_pma *pma = calloc(1, sizeof(*pma));
	unsigned all = counters_before(rows + VB_COUNT(rows));

	if (!pma)
		return NULL;
	pma->node = node;
	pma->zero = calloc((node->ports + 1u) * all, sizeof(*pma->zero));
	if (!pma->zero) {
		free(pma);
		return NULL;
	}
	pma->sample.timers = timers;
	vb_timer_init(&pma->sample.timer);
	return pma;
}

void vb_pma_destroy(struct vb_pma *pma)
{
	if (!pma)
		return;
	vb_timer_cancel(pma->sample.timers, &pma->sample.timer);
	free(pma->zero);
	free(pma);
}

struct vb_pma *vb_pma_of(struct vb_timer *t)
{
	return VB_CONTAINER_OF(t, struct vb_pma, sample.timer);
}

struct vb_fab_node *vb_pma_node(const struct vb_pma *pma)
{
	return pma->node;
}

uint8_t vb_pma_sampled_port(const struct vb_pma *pma)
{
	return pma->sample.port;
}

/* One counter: number @index of the counters that the row @row has. */
struct counter {
	const struct row *row;
	/* @place: index of the counter among all counters of a port */
	unsigned index, place;
};

static uint64_t raw_count(const struct vb_pma *pma, unsigned port,
			  const struct counter *c)
{
	const struct vb_fab_port *p = &pma->node->port[port];
	const struct row *r = c->row;
	uint64_t v = vb_pma_raw(p, (uint16_t)(r->at + c->index * r->stride));

	return r->except ? v - vb_pma_raw(p, r->except) : v;
}

static uint64_t *zero_of(struct vb_pma *pma, unsigned port,
			 const struct counter *c)
{
	return pma->zero + port * counters_before(rows + VB_COUNT(rows)) +
	       c->place;
}

static uint64_t most_of(const struct row *r)
{
	return r->bits == 64 ? UINT64_MAX : (1ull << r->bits) - 1;
}

/* Returns the value of the counter at port @first, or the sum over the ports
 * @first..@last. */
static uint64_t read_count(struct vb_pma *pma, unsigned first, unsigned last,
			   const struct counter *c)
{
	uint64_t sum = 0;

	for (unsigned p = first; p <= last; p++)
		sum += raw_count(pma, p, c) - *zero_of(pma, p, c);
	return VB_MIN(sum, most_of(c->row));
}

/* Let the counter show @value from now on, at each port from @first to
 * @last. */
static void write_count(struct vb_pma *pma, unsigned first, unsigned last,
			const struct counter *c, uint64_t value)
{
	for (unsigned p = first; p <= last; p++)
		*zero_of(pma, p, c) = raw_count(pma, p, c) - value;
}

/* CounterSelect, with CounterSelect2 (if the attribute has it) above it. */
static uint64_t selected(const uint8_t *data, unsigned attr)
{
	static const struct {
		uint8_t attr, at, bytes;
	} seconds[] = { { PERF_COUNTERS, 18, 1 }, { PERF_COUNTERS_EXT, 4, 4 } };
	uint64_t select = vb_load_be(data + SELECT_AT, 2);

	for (unsigned i = 0; i < VB_COUNT(seconds); i++)
		if (seconds[i].attr == attr)
			select |= vb_load_be(data + seconds[i].at,
					     seconds[i].bytes)
				  << SELECT2;
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

static bool has_rows(const struct vb_fab_node *n, unsigned attr)
{
	if (attr == PERF_SWITCH_VL_CONGESTION && n->kind != FAB_SWITCH)
		return false;
	for (unsigned i = 0; i < VB_COUNT(rows); i++)
		if (rows[i].attr == attr)
			return true;
	return false;
}

/* For each counter of the row @r: if @select names it (only in a Set), give it
 * the value in @data; then write its present value to @data. @place: index of
 * the row's first counter. */
static void answer_row(struct vb_pma *pma, const struct row *r, unsigned place,
		       unsigned first, unsigned last, uint64_t select,
		       uint8_t *data)
{
	for (unsigned i = 0; i < r->times; i++) {
		const struct counter c = { r, i, place + i };
		unsigned bit = r->byte * 8u + r->bit + i * r->bits;

		if (select >> (r->select + i) & 1)
			write_count(pma, first, last, &c,
				    vb_bits_load(data, bit, r->bits));
		vb_bits_store(data, bit, r->bits,
			      read_count(pma, first, last, &c));
	}
}

static unsigned answer_counters(struct vb_pma *pma, unsigned method,
				unsigned attr, uint8_t *data)
{
	uint64_t select = method == MAD_SET ? selected(data, attr) : 0;
	unsigned first, last, place = 0;

	if (!find_ports(pma->node, data[PORT_AT], &first, &last))
		return MAD_BAD_FIELD;
	for (const struct row *r = rows; r < rows + VB_COUNT(rows); r++) {
		if (r->attr == attr)
			answer_row(pma, r, place, first, last, select, data);
		place += r->times;
	}
	return MAD_OK;
}

static unsigned answer_class(const struct vb_fab_node *n, uint8_t *data)
{
	unsigned caps = CAP_EXT_WIDTH | CAP_XMIT_WAIT | CAP_QP1_DROP |
			(n->kind == FAB_SWITCH ? CAP_ALL_PORTS : 0);
	const struct vb_class_info c = {
		.base_version = VB_MAD_BASE_VERSION,
		.class_version = CLASS_VERSION,
		.cap_mask = (uint16_t)caps,
		.cap_mask2 = CAP2_EXT_ERROR,
		.resp_time = RESP_TIME,
	};

	memset(data, 0, DATA_BYTES);
	vb_class_info_put(data, &c);
	return MAD_OK;
}

static unsigned pma_answer(struct vb_pma *pma, const struct vb_mad_hdr *h,
			   uint8_t *data, vb_time now)
{
	unsigned status = vb_mad_judge(h->base_version, h->class_version,
				       CLASS_VERSION, h->method);

	if (status != MAD_OK)
		return status;
	if (h->attr_id == PERF_CLASS_PORT_INFO && h->method == MAD_GET)
		return answer_class(pma->node, data);
	if (h->attr_id == PERF_SAMPLES_CONTROL)
		return vb_pma_sample_control(pma, h->method, data, now);
	if (h->attr_id == PERF_SAMPLES_RESULT && h->method == MAD_GET)
		return vb_pma_sample_result(pma, data);
	return has_rows(pma->node, h->attr_id)
		       ? answer_counters(pma, h->method, h->attr_id, data)
		       : MAD_BAD_ATTRIBUTE;
}

bool vb_pma_hear(struct vb_pma *pma, uint8_t mad[VB_MAD_BYTES], vb_time now)
{
	struct vb_reader r = vb_reader(mad, VB_MAD_BYTES);
	struct vb_writer w = { mad };
	struct vb_mad_hdr h;

	if (!vb_mad_hdr_get(&r, &h) || h.method & MAD_RESPONSE ||
	    h.method == MAD_TRAP_REPRESS || h.method == MAD_TRAP)
		return false;
	h.status = (uint16_t)pma_answer(pma, &h, mad + DATA_AT, now);
	h.method = MAD_GET_RESP;
	vb_mad_hdr_put(&w, &h);
	return true;
}
