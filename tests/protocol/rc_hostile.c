/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer sends valid packets with meaningless contents. Only its own connection
 * may suffer. */
#include "tests/support/scenario.h"

int main(int argc, char **argv)
{
	return scenario_main(
		argc, argv,
		&(struct scenario){ .kind = SCENARIO_HOSTILE, .count = 300 });
}
