/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the two programs that test the policy: times, and words that
 * programs publish. Numbers are written out in both, so that a changed row of
 * the table needs a changed test. */
#ifndef TESTS_UNIT_ENGINE_POLICY_FIXTURE_H
#define TESTS_UNIT_ENGINE_POLICY_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "engine/policy.h"

#define US(n) ((vb_time)(n)*VB_USEC)
#define MS(n) ((vb_time)(n)*VB_MSEC)
#define START ((vb_time)1 << 40)
#define SPINS VB_PROGRAM_SPINS

static inline uint64_t loops(vb_time at)
{
	return vb_program_word(at, PROGRAM_LOOPS, 0);
}

static inline uint64_t works(vb_time at)
{
	return vb_program_word(at, PROGRAM_WORKS, 0);
}

#define TEST(f) cmocka_unit_test_setup(f, set_up)

#endif
