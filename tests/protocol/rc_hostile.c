/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer that sends valid packets with senseless contents harms only its own
 * connection. */
#include "tests/support/scenario.h"

int main(int argc, char **argv)
{
	return scenario_main(
		argc, argv,
		&(struct scenario){ .kind = SCENARIO_HOSTILE, .count = 300 });
}
