/* SPDX-License-Identifier: BSD-2-Clause */
/* An engine for tests, without link, thread or broker. It counts the calls that
 * the front end makes. */
#ifndef TESTS_ABI_FAKE_ENGINE_H
#define TESTS_ABI_FAKE_ENGINE_H

#include "engine/engine.h"

struct fake_engine {
	unsigned devices; /* how many a listing finds */
	unsigned opens;	  /* open now */
	unsigned drives;  /* vb_drive() calls */
	unsigned polls;	  /* vb_engine_poll() calls */
	const char *tree; /* the root of the tree of files, or NULL */
	uint32_t
		moderate_count; /* arguments of the last vb_engine_moderate() */
	vb_time moderate_period;
	void (*on_poll)(void);	  /* or NULL */
	struct vb_flow_rule rule; /* of the flow created last */
	unsigned flows;		  /* flows that exist now */
};

extern struct fake_engine fake;

#endif
