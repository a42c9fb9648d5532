/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples (IBA 16.1.3.2, 16.1.3.3): a manager names a port, up to 15 counters
 * and an interval, and reads afterwards what they gained in it. Some counters
 * of lanes can be read in no other way.
 */
#include "mgmt/pma_priv.h"

#include "base/timer.h"
#include "wire/smp.h"

#define PORT_AT	 1
#define WIDTH_AT 3
/* offset of the counter masks, 3 bits for each counter */
#define MASKS_AT      4
#define STATUS_AT     11
#define OPTIONS_AT    12
#define START_AT      28
#define INTERVAL_AT   32
#define TAG_AT	      36
#define SELECT_AT     38
#define RESULT_TAG_AT 0
#define RESULT_STATUS 3
#define RESULTS_AT    4

#define WIDTH_32 4u
/* CounterMasks: each counter of a sample can count all mandatory and optional
 * quantities. */
#define MASKS_0_TO_9   033333333333u
#define MASKS_10_TO_14 033333u

/* position of the lane in the CounterSelect of counters per lane */
#define VL_SHIFT 8
#define VL_MASK	 0x0f00u

/* The counter of each value of CounterSelect. @option: its bit in
 * OptionMask. */
#define MANDATORY 64
static const struct selection {
	uint16_t select;
	uint8_t option;
	bool of_vl;
	uint16_t at;
} selections[] = {
	{ 0x0001, MANDATORY, false, PMA_COUNT(FAB_XMIT_WORDS) },
	{ 0x0002, MANDATORY, false, PMA_COUNT(FAB_RCV_WORDS) },
	{ 0x0003, MANDATORY, false, PMA_COUNT(FAB_XMIT_PKTS) },
	{ 0x0004, MANDATORY, false, PMA_COUNT(FAB_RCV_PKTS) },
	{ 0x0005, MANDATORY, false, PMA_COUNT(FAB_XMIT_WAIT) },
	{ 0x4001, 2, true, PMA_VL(xmit_words) },
	{ 0x4002, 3, true, PMA_VL(rcv_words) },
	{ 0x4003, 4, true, PMA_VL(xmit_pkts) },
	{ 0x4004, 5, true, PMA_VL(rcv_pkts) },
	{ 0x4005, 6, false, PMA_COUNT(FAB_RCV_LOCAL_PHYSICAL) },
	{ 0x4006, 7, false, PMA_COUNT(FAB_RCV_MALFORMED) },
	{ 0x4007, 8, false, PMA_COUNT(FAB_RCV_OVERRUN) },
	{ 0x4008, 9, false, PMA_COUNT(FAB_RCV_DLID_MAPPING) },
	{ 0x4009, 10, false, PMA_COUNT(FAB_RCV_VL_MAPPING) },
	{ 0x400a, 11, false, PMA_COUNT(FAB_RCV_LOOPING) },
	{ 0x400b, 12, false, PMA_COUNT(FAB_XMIT_INACTIVE) },
	{ 0x400c, 13, false, PMA_COUNT(FAB_XMIT_NEIGHBOR_MTU) },
	{ 0x400d, 14, false, PMA_COUNT(FAB_XMIT_LIFETIME) },
	{ 0x400e, 15, false, PMA_COUNT(FAB_XMIT_HOQ) },
	{ 0x4011, 18, false, PMA_COUNT(FAB_XMIT_FLOW_PKTS) },
	{ 0x4012, 19, false, PMA_COUNT(FAB_RCV_FLOW_PKTS) },
	{ 0x4016, 23, true, PMA_VL(xmit_wait) },
	{ 0x4030, 48, true, PMA_VL(xmit_late) },
};
/* Counters that have attributes and no CounterSelect: congestion, and service
 * levels. */
#define OPTIONS_UNSAMPLED (0x1ffull << 48)

static uint64_t options(void)
{
	uint64_t mask = OPTIONS_UNSAMPLED;

	for (unsigned i = 0; i < VB_COUNT(selections); i++)
		if (selections[i].option != MANDATORY)
			mask |= 1ull << selections[i].option;
	return mask;
}

/* Returns the row for CounterSelect @select; NULL: no counter of this agent has
 * that code. */
static const struct selection *find_selection(unsigned select)
{
	for (unsigned i = 0; i < VB_COUNT(selections); i++) {
		const struct selection *s = &selections[i];

		if ((s->of_vl ? select & ~VL_MASK : select) == s->select)
			return s;
	}
	return NULL;
}

static uint64_t selected_count(const struct vb_pma *pma, unsigned select)
{
	const struct selection *s = find_selection(select);
	unsigned vl = select >> VL_SHIFT & 15;

	if (!s)
		return 0;
	return vb_pma_raw(
		&pma->node->port[pma->sample.port],
		(uint16_t)(s->at +
			   (s->of_vl ? vl * sizeof(struct vb_fab_vl_counters)
				     : 0)));
}

/* Functions for the interval of a sample. */

static void end_sample(struct vb_pma *pma)
{
	struct pma_sample *s = &pma->sample;

	for (unsigned i = 0; i < PMA_SAMPLED; i++)
		s->count[i] = selected_count(pma, s->select[i]) - s->count[i];
	s->status = SAMPLE_DONE;
}

/* Begins the interval. Without memory for its timer the sample ends at once. */
static void run_sample(struct vb_pma *pma, vb_time now)
{
	struct pma_sample *s = &pma->sample;

	for (unsigned i = 0; i < PMA_SAMPLED; i++)
		s->count[i] = selected_count(pma, s->select[i]);
	s->status = SAMPLE_RUNS;
	if (vb_timer_set(s->timers, &s->timer,
			 now + (vb_time)s->interval * VB_FAB_TICK_NS))
		end_sample(pma);
}

void vb_pma_expire(struct vb_pma *pma, vb_time now)
{
	if (pma->sample.status == SAMPLE_WAITS)
		run_sample(pma, now);
	else
		end_sample(pma);
}

/* Functions for the attributes. */

static bool is_set_valid(const struct vb_pma *pma, const uint8_t *data)
{
	unsigned port = data[PORT_AT];

	if (port > pma->node->ports ||
	    (port == 0 && pma->node->kind != FAB_SWITCH))
		return false;
	for (unsigned i = 0; i < PMA_SAMPLED; i++) {
		unsigned select =
			(unsigned)vb_load_be(data + SELECT_AT + 2 * i, 2);

		if (select && !find_selection(select))
			return false;
	}
	return true;
}

static void begin_sample(struct vb_pma *pma, const uint8_t *data, vb_time now)
{
	struct pma_sample *s = &pma->sample;

	s->port = data[PORT_AT];
	s->start = (uint32_t)vb_load_be(data + START_AT, 4);
	s->interval = (uint32_t)vb_load_be(data + INTERVAL_AT, 4);
	s->tag = (uint16_t)vb_load_be(data + TAG_AT, 2);
	for (unsigned i = 0; i < PMA_SAMPLED; i++)
		s->select[i] =
			(uint16_t)vb_load_be(data + SELECT_AT + 2 * i, 2);
	s->status = SAMPLE_WAITS;
	if (!s->start || vb_timer_set(s->timers, &s->timer,
				      now + (vb_time)s->start * VB_FAB_TICK_NS))
		run_sample(pma, now);
}

unsigned vb_pma_sample_control(struct vb_pma *pma, unsigned method,
			       uint8_t *data, vb_time now)
{
	const struct pma_sample *s = &pma->sample;

	/* While a sample is not done, a Set changes nothing. */
	if (method == MAD_SET && s->status == SAMPLE_DONE) {
		if (!is_set_valid(pma, data))
			return MAD_BAD_FIELD;
		begin_sample(pma, data, now);
	}
	data[WIDTH_AT] = WIDTH_32;
	vb_store_be(data + MASKS_AT, MASKS_0_TO_9, 4);
	vb_store_be(data + MASKS_AT + 4, MASKS_10_TO_14, 2);
	data[STATUS_AT] = s->status;
	vb_store_be(data + OPTIONS_AT, options(), 8);
	vb_store_be(data + START_AT, s->start, 4);
	vb_store_be(data + INTERVAL_AT, s->interval, 4);
	vb_store_be(data + TAG_AT, s->tag, 2);
	for (unsigned i = 0; i < PMA_SAMPLED; i++)
		vb_store_be(data + SELECT_AT + 2 * i, s->select[i], 2);
	return MAD_OK;
}

unsigned vb_pma_sample_result(const struct vb_pma *pma, uint8_t *data)
{
	const struct pma_sample *s = &pma->sample;

	vb_store_be(data + RESULT_TAG_AT, s->tag, 2);
	data[RESULT_STATUS] = s->status;
	for (unsigned i = 0; i < PMA_SAMPLED; i++)
		vb_store_be(data + RESULTS_AT + 4 * i,
			    s->status == SAMPLE_DONE
				    ? VB_MIN(s->count[i], (uint64_t)UINT32_MAX)
				    : 0,
			    4);
	return MAD_OK;
}
