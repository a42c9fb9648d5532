/* SPDX-License-Identifier: BSD-2-Clause */
/* Random programs over random wires: every request completes once and in
 * order. */
#include "tests/support/scenario.h"

int main(int argc, char **argv)
{
	return scenario_main(
		argc, argv,
		&(struct scenario){ .kind = SCENARIO_HONEST, .count = 400 });
}
