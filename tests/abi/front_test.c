/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs the tests of the verbs front end over a fake engine: what each call
 * promises, what it refuses, and what it waits for. */
#include "tests/abi/front_bench.h"

int main(void)
{
	int failed = 0;

	failed |= front_device_tests();
	failed |= front_memory_tests();
	failed |= front_queue_tests();
	failed |= front_post_tests();
	failed |= front_xrc_tests();
	failed |= front_flow_tests();
	failed |= front_pages_tests();
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
