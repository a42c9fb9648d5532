/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer that sends well-sealed nonsense harms nobody but its connection. */
#include "tests/support/scenario.h"

int main(int argc, char **argv)
{
	return scenario_main(argc, argv, SCENARIO_HOSTILE, 300);
}
