/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The error thresholds of a port: when damaged packets become a link integrity
 * error (trap 129), and overruns of its buffer an excessive overrun error (trap
 * 130). Pure functions of their arguments.
 *
 * PortInfo has a threshold for each (IBA 14.2.5.6: LocalPhyErrors,
 * OverrunErrors). The text of the clause that says how errors are counted
 * towards the thresholds (7.12.2) was not available to the project, so the
 * rules below are its own reading of the counters' definitions (16.1.3.5).
 */
#ifndef FABRIC_THRESHOLD_H
#define FABRIC_THRESHOLD_H

#include <stdbool.h>

#include "base/defs.h"

enum vb_fab_packet { FAB_FRAME, FAB_LINK_PACKET, FAB_PACKETS };

struct vb_fab_errors {
	/* damaged packets less good ones, but at least 0. Frames and link
	 * packets are counted apart, because an emulated link damages them with
	 * separate probabilities. */
	uint8_t damaged[FAB_PACKETS];
	/* number of periods in a row, up to @period, with an overrun */
	uint8_t periods;
	vb_time period; /* number of the last period with an overrun, plus 1 */
};

/* A packet has arrived, @damaged or not. True: damaged packets exceed the good
 * ones by more than @most, so the link's integrity is in error. The count
 * begins anew then. */
bool vb_fab_errors_packet(struct vb_fab_errors *c, enum vb_fab_packet kind,
			  bool damaged, uint8_t most);

/* A frame has overrun the buffer in the period number @period of flow control
 * updates. True: @most periods in a row (0 is treated as 1) had an overrun. The
 * count begins anew then. */
bool vb_fab_errors_overrun(struct vb_fab_errors *c, vb_time period,
			   uint8_t most);

#endif
