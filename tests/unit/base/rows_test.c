/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/rows.h"

#define SIZE 64

static void rows__come_one_after_the_other_and_stay(void **state)
{
	/* number of objects, which fill more than two chunks */
	enum { N = 40000 };
	struct vb_rows *t = vb_rows_create(N, SIZE);
	static void *objs[N];
	uint32_t index;

	for (uint32_t i = 0; i < N; i++) {
		assert_null(vb_rows_get(t, i));
		assert_int_equal(vb_rows_add(t, &index, &objs[i]), 0);
		assert_int_equal(index, i);
		assert_int_equal(*(uint64_t *)objs[i], 0);
		assert_int_equal((uintptr_t)objs[i] % SIZE, 0);
		memset(objs[i], (int)(i % 251) + 1, SIZE);
	}
	assert_int_equal(vb_rows_count(t), N);
	for (uint32_t i = 0; i < N; i++) {
		const uint8_t *bytes = vb_rows_get(t, i);

		assert_ptr_equal(bytes, objs[i]);
		assert_int_equal(bytes[0], i % 251 + 1);
		assert_int_equal(bytes[SIZE - 1], i % 251 + 1);
	}
	vb_rows_destroy(t);
}

static void rows__end(void **state)
{
	struct vb_rows *t = vb_rows_create(2, SIZE);
	uint32_t index = 99;
	void *obj;

	assert_int_equal(vb_rows_add(t, &index, &obj), 0);
	assert_int_equal(vb_rows_add(t, &index, &obj), 0);
	index = 99;
	assert_int_equal(vb_rows_add(t, &index, &obj), -ENOSPC);
	assert_int_equal(index, 99);
	assert_null(vb_rows_get(t, 2));
	assert_null(vb_rows_get(t, 1u << VB_ROWS_CHUNK_BITS));
	assert_null(vb_rows_get(t, UINT32_MAX));
	vb_rows_destroy(t);
}

static void rows__none_at_all(void **state)
{
	vb_rows_destroy(vb_rows_create(1u << 24, SIZE));
	vb_rows_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows__come_one_after_the_other_and_stay),
		cmocka_unit_test(rows__end),
		cmocka_unit_test(rows__none_at_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
