/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/idtab.h"

static void idtab__hands_out_from_first_and_around(void **state)
{
	struct vb_idtab *t = vb_idtab_create(5, 3);
	static const uint32_t order[] = { 3, 4, 0, 1, 2 };
	int objs[5];
	uint32_t index = 99;

	for (int i = 0; i < 5; i++) {
		assert_int_equal(vb_idtab_add(t, &objs[i], &index), 0);
		assert_int_equal(index, order[i]);
		assert_ptr_equal(vb_idtab_get(t, index), &objs[i]);
	}
	assert_int_equal(vb_idtab_used(t), 5);
	index = 99;
	assert_int_equal(vb_idtab_add(t, &objs[0], &index), -ENOSPC);
	assert_int_equal(index, 99);
	vb_idtab_destroy(t);
}

static void idtab__freed_last_is_used_last(void **state)
{
	struct vb_idtab *t = vb_idtab_create(4, 0);
	int obj;
	uint32_t index;

	for (int i = 0; i < 3; i++)
		assert_int_equal(vb_idtab_add(t, &obj, &index), 0);
	vb_idtab_del(t, 1);
	vb_idtab_del(t, 0);
	vb_idtab_del(t, 0);  /* no effect: index 0 was already deleted */
	vb_idtab_del(t, 77); /* no effect: index 77 was never added */
	assert_int_equal(vb_idtab_used(t), 1);
	assert_null(vb_idtab_get(t, 0));
	assert_null(vb_idtab_get(t, 1));
	for (uint32_t i = 0; i < 3; i++) {
		static const uint32_t order[] = { 3, 1, 0 };

		assert_int_equal(vb_idtab_add(t, &obj, &index), 0);
		assert_int_equal(index, order[i]);
	}
	assert_int_equal(vb_idtab_add(t, &obj, &index), -ENOSPC);
	vb_idtab_destroy(t);
}

static void idtab__any_index_may_be_asked(void **state)
{
	struct vb_idtab *t = vb_idtab_create(1u << 24, 0xffffff);
	int obj;
	uint32_t index;

	assert_null(vb_idtab_get(t, 0));
	assert_int_equal(vb_idtab_add(t, &obj, &index), 0);
	assert_int_equal(index, 0xffffff);
	assert_ptr_equal(vb_idtab_get(t, 0xffffff), &obj);
	assert_null(vb_idtab_get(t, 0xfffffe));
	assert_null(vb_idtab_get(t, 0x1000000));
	assert_null(vb_idtab_get(t, UINT32_MAX));
	assert_int_equal(vb_idtab_add(t, &obj, &index), 0);
	assert_int_equal(index, 0);
	vb_idtab_destroy(t);
	vb_idtab_destroy(NULL);
}

static void idtab__sizes_at_the_edges(void **state)
{
	struct vb_idtab *t = vb_idtab_create(1, 12);
	int obj;
	uint32_t index;

	assert_int_equal(vb_idtab_add(t, &obj, &index), 0);
	assert_int_equal(index, 0);
	vb_idtab_destroy(t);
	assert_null(vb_idtab_create(0, 0));
	assert_null(vb_idtab_create((1u << 24) + 1, 0));
}

static void idtab__random_against_an_array(void **state)
{
	enum { COUNT = 3000 };
	static int *mirror[COUNT], objs[COUNT];
	struct vb_idtab *t = vb_idtab_create(COUNT, 2900);
	uint32_t used = 0;

	srand(5);
	for (int step = 0; step < 200000; step++) {
		uint32_t i = (uint32_t)rand() % COUNT;

		if (rand() % 3) {
			int err = vb_idtab_add(t, &objs[i], &i);

			assert_int_equal(err, used == COUNT ? -ENOSPC : 0);
			if (err)
				continue;
			assert_null(mirror[i]);
			mirror[i] = vb_idtab_get(t, i);
			assert_non_null(mirror[i]);
			used++;
		} else {
			used -= mirror[i] != NULL;
			mirror[i] = NULL;
			vb_idtab_del(t, i);
		}
		i = (uint32_t)rand() % COUNT;
		assert_ptr_equal(vb_idtab_get(t, i), mirror[i]);
		assert_int_equal(vb_idtab_used(t), used);
	}
	vb_idtab_destroy(t);
}

/* Readers look up an index while writers add and delete objects. They find
 * NULL, or an object that has this index. */
static struct obj {
	atomic_uint index;
} shared[4000];
static atomic_bool stop;

static void *read_all(void *arg)
{
	struct vb_idtab *t = arg;

	while (!atomic_load(&stop))
		for (uint32_t i = 0; i < VB_COUNT(shared); i++) {
			struct obj *o = vb_idtab_get(t, i);

			if (o && (o < shared || o >= shared + VB_COUNT(shared)))
				return o;
		}
	return NULL;
}

static void *churn(void *arg)
{
	struct vb_idtab *t = arg;

	for (int i = 0; i < 50000; i++) {
		uint32_t index;

		if (vb_idtab_add(t, &shared[i % VB_COUNT(shared)], &index))
			return t;
		if (i % 16 && vb_idtab_get(t, index) == NULL)
			return t;
		if (i % 16)
			vb_idtab_del(t, index);
	}
	return NULL;
}

static void idtab__readers_beside_writers(void **state)
{
	struct vb_idtab *t = vb_idtab_create(1u << 20, 17);
	pthread_t readers[2], writers[2];
	void *wrong;

	for (int i = 0; i < 2; i++) {
		pthread_create(&readers[i], NULL, read_all, t);
		pthread_create(&writers[i], NULL, churn, t);
	}
	for (int i = 0; i < 2; i++) {
		pthread_join(writers[i], &wrong);
		assert_null(wrong);
	}
	atomic_store(&stop, true);
	for (int i = 0; i < 2; i++) {
		pthread_join(readers[i], &wrong);
		assert_null(wrong);
	}
	assert_int_equal(vb_idtab_used(t), 2 * 50000 / 16);
	vb_idtab_destroy(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(idtab__hands_out_from_first_and_around),
		cmocka_unit_test(idtab__freed_last_is_used_last),
		cmocka_unit_test(idtab__any_index_may_be_asked),
		cmocka_unit_test(idtab__sizes_at_the_edges),
		cmocka_unit_test(idtab__random_against_an_array),
		cmocka_unit_test(idtab__readers_beside_writers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
