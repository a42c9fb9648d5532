/* SPDX-License-Identifier: BSD-2-Clause */
/* An engine for tests, without link, thread or broker. It counts the calls that
 * the front end makes. */
#ifndef TESTS_ABI_FAKE_ENGINE_H
#define TESTS_ABI_FAKE_ENGINE_H

#include "engine/engine.h"

struct fake_engine {
	unsigned devices; /* number of devices that a listing returns */
	unsigned opens;	  /* number of devices that are open now */
	unsigned drives;  /* number of calls of vb_drive() */
	unsigned polls;	  /* number of calls of vb_engine_poll() */
	const char *tree; /* the root of the tree of files, or NULL */
	uint32_t
		moderate_count; /* arguments of the last vb_engine_moderate() */
	vb_time moderate_period;
	void (*on_poll)(void); /* called by each poll; or NULL */
	/* the rule of the flow that was created last */
	struct vb_flow_rule rule;
	unsigned flows; /* number of flows that exist now */
};

extern struct fake_engine fake;

#endif
