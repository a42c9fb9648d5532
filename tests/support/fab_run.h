/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_SUPPORT_FAB_RUN_H
#define TESTS_SUPPORT_FAB_RUN_H

#include "fabric/net.h"

/* Handle all events up to the time @now, in order of time. */
static inline void fab_run(struct vb_fab_net *net, vb_time now)
{
	while (vb_fab_step(net, now))
		;
}

#endif
