/* SPDX-License-Identifier: BSD-2-Clause */
/* Random work requests between two programs of one host: every request
 * completes once and in order. */
#include "tests/support/near_sim.h"
#include "tests/support/scenario.h"

int main(int argc, char **argv)
{
	return scenario_main(argc, argv,
			     &(struct scenario){ .kind = SCENARIO_HONEST,
						 .count = 400,
						 .path = &near_sim_path,
						 .no_packets = true });
}
