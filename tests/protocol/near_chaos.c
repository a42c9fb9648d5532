/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs between two programs of one host are stopped at random moments:
 * no completion is lost, duplicated or wrong. */
#include "tests/support/near_sim.h"
#include "tests/support/scenario.h"

int main(int argc, char **argv)
{
	return scenario_main(argc, argv,
			     &(struct scenario){ .kind = SCENARIO_CHAOS,
						 .count = 400,
						 .path = &near_sim_path });
}
