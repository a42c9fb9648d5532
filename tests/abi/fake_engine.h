/* SPDX-License-Identifier: BSD-2-Clause */
/* An engine for tests, without link, thread or broker. It counts the calls that
 * the front end makes. */
#ifndef TESTS_ABI_FAKE_ENGINE_H
#define TESTS_ABI_FAKE_ENGINE_H

#include "engine/engine.h"

struct fake_engine {
	/* number of devices in the list that the engine returns */
	unsigned devices;
	/* number of devices that the front end has open now */
	unsigned opens;
	unsigned drives;
	unsigned polls;
	const char *tree; /* root directory of the device files; or NULL */
	/* arguments of the last call of vb_engine_moderate() */
	uint32_t moderate_count;
	vb_time moderate_period;
	void (*on_poll)(void); /* called by each vb_engine_poll(); or NULL */
	/* rule of the steering flow that the front end created last */
	struct vb_flow_rule rule;
	unsigned flows; /* number of steering flows that exist now */
};

extern struct fake_engine fake;

#endif
