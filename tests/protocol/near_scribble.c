/* SPDX-License-Identifier: BSD-2-Clause */
/* One of two programs of one host writes arbitrary values into the memory that
 * they share: the other one neither crashes nor loops nor changes other
 * memory. */
#include "tests/support/near_sim.h"
#include "tests/support/scenario.h"

static void plan(struct sim *s, struct sim_rand *rand)
{
	const struct near_plan p = {
		.harm = HARM_SCRIBBLE,
		.victim = sim_below(rand, 2),
		.at = sim_below(rand, 500),
	};

	near_sim_plan(s, &p);
}

int main(int argc, char **argv)
{
	return scenario_main(argc, argv,
			     &(struct scenario){ .kind = SCENARIO_HOSTILE,
						 .count = 400,
						 .path = &near_sim_path,
						 .plan = plan });
}
