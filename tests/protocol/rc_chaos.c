/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs are stopped at random moments: no completion is lost, duplicated
 * or wrong. */
#include "tests/support/scenario.h"

int main(int argc, char **argv)
{
	return scenario_main(
		argc, argv,
		&(struct scenario){ .kind = SCENARIO_CHAOS, .count = 400 });
}
