/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the performance management agent share. */
#ifndef MGMT_PMA_PRIV_H
#define MGMT_PMA_PRIV_H

#include "mgmt/pma.h"

#define PMA_SAMPLED 15 /* number of counters that a sample has */

/* PortSamplesControl: what counters gain in an interval. A node samples one
 * port at a time. */
struct pma_sample {
	struct vb_timers *timers;
	/* expires when the interval begins, and when it ends */
	struct vb_timer timer;
	uint8_t status; /* SampleStatus, an enum pma_sample_status */
	uint8_t port;
	/* in ticks of VB_FAB_TICK_NS: the delay, and the interval's length */
	uint32_t start, interval;
	uint16_t tag, select[PMA_SAMPLED];
	/* values of the counters when the interval began; later what they
	 * gained */
	uint64_t count[PMA_SAMPLED];
};

/* The values of SampleStatus in PortSamplesResult. */
enum pma_sample_status { SAMPLE_DONE = 0, SAMPLE_WAITS = 1, SAMPLE_RUNS = 2 };

struct vb_pma {
	struct vb_fab_node *node;
	/* for each counter of each port, the raw value that is reported as 0 */
	uint64_t *zero;
	struct pma_sample sample;
};

/* Answer Get or Set of PortSamplesControl, and Get of PortSamplesResult. They
 * return an enum vb_mad_status. */
unsigned vb_pma_sample_control(struct vb_pma *pma, unsigned method,
			       uint8_t *data, vb_time now);
unsigned vb_pma_sample_result(const struct vb_pma *pma, uint8_t *data);

/* Returns the counter that is @at bytes into the struct vb_fab_port. */
static inline uint64_t vb_pma_raw(const struct vb_fab_port *port, uint16_t at)
{
	uint64_t v;

	memcpy(&v, (const char *)port + at, sizeof(v));
	return v;
}

#define PMA_COUNT(which) (offsetof(struct vb_fab_port, count) + 8 * (which))
#define PMA_VL(member)	 offsetof(struct vb_fab_port, vl[0].member)
#define PMA_SL(member)	 offsetof(struct vb_fab_port, sl[0].member)

#endif
