/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts errors of a port towards the thresholds of PortInfo. */
#include "fabric/threshold.h"

bool vb_fab_errors_packet(struct vb_fab_errors *c, enum vb_fab_packet kind,
			  bool damaged, uint8_t most)
{
	uint8_t *count = &c->damaged[kind];

	if (!damaged) {
		*count -= *count > 0;
		return false;
	}
	if (++*count <= most)
		return false;
	*count = 0;
	return true;
}

bool vb_fab_errors_overrun(struct vb_fab_errors *c, vb_time period,
			   uint8_t most)
{
	if (c->period == period + 1)
		return false;
	c->periods = c->period == period ? c->periods + 1 : 1;
	c->period = period + 1;
	if (c->periods < most)
		return false;
	c->periods = 0;
	return true;
}
