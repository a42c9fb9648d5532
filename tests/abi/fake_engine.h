/* SPDX-License-Identifier: BSD-2-Clause */
/* An engine without link, thread or broker, that counts what it is asked. */
#ifndef TESTS_ABI_FAKE_ENGINE_H
#define TESTS_ABI_FAKE_ENGINE_H

#include "engine/engine.h"

struct fake_engine {
	unsigned devices; /* how many a listing finds */
	unsigned opens;	  /* open now */
	unsigned drives;  /* vb_drive() calls */
	unsigned polls;	  /* vb_engine_poll() calls */
	vb_time now;
	const char *tree;	 /* where a tree is; or NULL */
	uint32_t moderate_count; /* as asked last */
	vb_time moderate_period;
	void (*on_poll)(void);	  /* or NULL */
	struct vb_flow_rule rule; /* of the last flow */
	unsigned flows;		  /* there are now */
};

extern struct fake_engine fake;

#endif
