/* SPDX-License-Identifier: BSD-2-Clause */
/* The adapter: names of counters, limits and protection domains. */
#include "fixture.h"

static void counter_name__each_has_one_of_its_own(void **state)
{
	for (int i = 0; i < CNT_COUNT; i++) {
		assert_non_null(vb_counter_name(i));
		for (int j = 0; j < i; j++)
			assert_string_not_equal(vb_counter_name(i),
						vb_counter_name(j));
	}
	assert_string_equal(vb_counter_name(CNT_COUNT), "unknown");
}

static void count__adds(void **state)
{
	struct fixture *f = *state;

	vb_count(&f->a, CNT_TIMEOUTS, 2);
	vb_count(&f->a, CNT_TIMEOUTS, 3);
	assert_int_equal(f->a.counters[CNT_TIMEOUTS], 5);
}

static void init__long_name_is_cut(void **state)
{
	struct vb_adapter *a = malloc(sizeof(*a));
	char name[200];

	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(vb_adapter_init(a, name), 0);
	assert_int_equal(strlen(a->name), sizeof(a->name) - 1);
	vb_adapter_fini(a);
	free(a);
}

static void limit__stops_at_max_and_recovers(void **state)
{
	_Atomic uint32_t n = 0;

	assert_true(vb_limit_take(&n, 2));
	assert_true(vb_limit_take(&n, 2));
	assert_false(vb_limit_take(&n, 2));
	vb_limit_give(&n);
	assert_true(vb_limit_take(&n, 2));
	assert_false(vb_limit_take(&n, 0));
	assert_int_equal(n, 2);
}

static void pd__busy_while_something_stands_on_it(void **state)
{
	struct fixture *f = *state;
	struct vb_pd *pd;
	struct vb_mr *mr;
	char byte;

	assert_int_equal(vb_pd_create(&f->a, &pd), 0);
	assert_int_equal(vb_mr_register(pd, &byte, 1, 0, 0, &mr), 0);
	assert_int_equal(vb_pd_destroy(pd), -EBUSY);
	assert_int_equal(vb_mr_deregister(mr), 0);
	assert_int_equal(vb_pd_destroy(pd), 0);
}

static void pd__abandoned_goes_with_its_last_object(void **state)
{
	struct fixture *f = *state;
	struct vb_mr *first, *last;
	struct vb_pd *pd;
	char byte;

	assert_int_equal(vb_pd_create(&f->a, &pd), 0);
	assert_int_equal(vb_mr_register(pd, &byte, 1, 0, 0, &first), 0);
	assert_int_equal(vb_mr_register(pd, &byte, 1, 0, 0, &last), 0);
	vb_pd_abandon(pd);
	assert_int_equal(vb_mr_deregister(first), 0);
	assert_int_equal(f->a.n_pd, 2);
	assert_int_equal(vb_mr_deregister(last), 0);
	assert_int_equal(f->a.n_pd, 1);
	assert_int_equal(vb_pd_create(&f->a, &pd), 0);
	vb_pd_abandon(pd);
	assert_int_equal(f->a.n_pd, 1);
}

/* Returns the ids that objects of a child of fork would have if the child
 * continued the parent's numbering. Its real ids must be others. */
static void pd__ids_of_a_child_are_others(void **state)
{
	struct fixture *f = *state;
	struct vb_pd *pd;
	uint32_t id;

	assert_int_equal(vb_pd_create(&f->a, &pd), 0);
	id = pd->id;
	assert_int_equal(vb_pd_destroy(pd), 0);
	vb_pd_after_fork();
	assert_int_equal(vb_pd_create(&f->a, &pd), 0);
	assert_true(pd->id - id > 1000);
	assert_int_equal(vb_pd_destroy(pd), 0);
}

static void pd__as_many_as_promised(void **state)
{
	struct fixture *f = *state;
	struct vb_pd *pd;

	atomic_fetch_add(&f->a.n_pd, vb_limits.max_pd - 1);
	assert_int_equal(vb_pd_create(&f->a, &pd), -ENOMEM);
	atomic_fetch_sub(&f->a.n_pd, 1);
	assert_int_equal(vb_pd_create(&f->a, &pd), 0);
	assert_int_equal(vb_pd_destroy(pd), 0);
	atomic_fetch_sub(&f->a.n_pd, vb_limits.max_pd - 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counter_name__each_has_one_of_its_own),
		TEST(count__adds),
		cmocka_unit_test(init__long_name_is_cut),
		cmocka_unit_test(limit__stops_at_max_and_recovers),
		TEST(pd__busy_while_something_stands_on_it),
		TEST(pd__abandoned_goes_with_its_last_object),
		TEST(pd__ids_of_a_child_are_others),
		TEST(pd__as_many_as_promised),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
