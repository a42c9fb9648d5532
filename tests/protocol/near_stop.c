/* SPDX-License-Identifier: BSD-2-Clause */
/* One of two programs of one host is stopped at a random step and continues
 * later, or may no longer copy: every request completes once and in order. */
#include "tests/support/near_sim.h"
#include "tests/support/scenario.h"

static void plan(struct sim *s, struct sim_rand *rand)
{
	static const enum near_harm harms[] = { HARM_STOP, HARM_STOP,
						HARM_FREEZE, HARM_DENY };
	const struct near_plan p = {
		.harm = harms[sim_below(rand, VB_COUNT(harms))],
		.victim = sim_below(rand, 2),
		.at = sim_below(rand, sim_below(rand, 2) ? 300 : 3000),
		.stop_for =
			1 + sim_below(rand, sim_below(rand, 2) ? 3 * VB_MSEC
							       : 3 * VB_SEC),
	};

	near_sim_plan(s, &p);
}

int main(int argc, char **argv)
{
	return scenario_main(argc, argv,
			     &(struct scenario){ .kind = SCENARIO_HONEST,
						 .count = 400,
						 .path = &near_sim_path,
						 .plan = plan });
}
