/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs are stopped in the middle of things: no completion is lost,
 * doubled or wrong. */
#include "tests/support/scenario.h"

int main(int argc, char **argv)
{
	return scenario_main(argc, argv, SCENARIO_CHAOS, 400);
}
