/* SPDX-License-Identifier: BSD-2-Clause */
/* One of two programs of one host dies at a random step: the other program's
 * requests end as with packets, and it does not access the dead program's
 * memory. */
#include "tests/support/near_sim.h"
#include "tests/support/scenario.h"

static void plan(struct sim *s, struct sim_rand *rand)
{
	const struct near_plan p = {
		.harm = HARM_DIE,
		.victim = sim_below(rand, 2),
		.at = sim_below(rand, sim_below(rand, 2) ? 300 : 3000),
	};

	near_sim_plan(s, &p);
}

int main(int argc, char **argv)
{
	return scenario_main(argc, argv,
			     &(struct scenario){ .kind = SCENARIO_DEATH,
						 .count = 400,
						 .path = &near_sim_path,
						 .plan = plan });
}
