/* SPDX-License-Identifier: BSD-2-Clause */
/* core/roster: rows in shared memory appear and disappear with their objects,
 * and the counts of objects are right even without rows. */
#include "qp_fixture.h"

static struct vb_roster roster;
static struct vb_roster_sheet *sheet;

static int begin(void **state)
{
	roster = (struct vb_roster){ 0 };
	sheet = aligned_alloc(64, sizeof(*sheet));
	assert_non_null(sheet);
	memset(sheet, 0, sizeof(*sheet));
	vb_roster_use(&roster, sheet);
	return 0;
}

static int finish(void **state)
{
	free(sheet);
	return 0;
}

static void a_row_is_used_again(void **state)
{
	const struct vb_roster_row pd = { .kind = ROSTER_PD },
				   mr = { .kind = ROSTER_MR, .number = 7 };
	uint32_t a = vb_roster_add(&roster, &pd);
	uint32_t b = vb_roster_add(&roster, &mr);

	assert_int_equal(a, 1);
	assert_int_equal(b, 2);
	assert_int_equal(sheet->end, 2);
	assert_int_equal(sheet->rows[1].number, 7);
	assert_int_equal(sheet->rows[1].version % 2, 0);
	vb_roster_del(&roster, ROSTER_PD, a);
	assert_int_equal(sheet->alive[ROSTER_PD], 0);
	assert_int_equal(sheet->rows[0].kind, ROSTER_NONE);
	assert_int_equal(vb_roster_add(&roster, &mr), 1);
	assert_int_equal(sheet->alive[ROSTER_MR], 2);
}

static void what_has_no_row_counts(void **state)
{
	const struct vb_roster_row mr = { .kind = ROSTER_MR };

	for (uint32_t i = 0; i < VB_ROSTER_ROWS; i++)
		assert_int_equal(vb_roster_add(&roster, &mr), i + 1);
	assert_int_equal(vb_roster_add(&roster, &mr), 0);
	assert_int_equal(sheet->alive[ROSTER_MR], VB_ROSTER_ROWS + 1);
	vb_roster_del(&roster, ROSTER_MR, 0);
	vb_roster_del(&roster, ROSTER_MR, 20000);
	assert_int_equal(sheet->alive[ROSTER_MR], VB_ROSTER_ROWS - 1);
	assert_int_equal(vb_roster_add(&roster, &mr), 20000);
}

/* Another process may overwrite the roster's shared memory, so the roster must
 * not rely on anything that it reads there. */
static void rows_do_not_rest_on_what_is_shared(void **state)
{
	const struct vb_roster_row qp = { .kind = ROSTER_QP, .state = 3 };
	uint32_t row = vb_roster_add(&roster, &qp);

	memset(sheet, 0xff, sizeof(*sheet));
	vb_roster_set(&roster, row, &qp);
	assert_int_equal(sheet->rows[row - 1].state, 3);
	assert_int_equal(sheet->rows[row - 1].version % 2, 0);
	assert_int_equal(vb_roster_add(&roster, &qp), row + 1);
}

static void the_adapters_objects_are_in_it(void **state)
{
	struct fixture *f = *state;
	struct vb_qp_attr attr = good_attr(QPS_INIT);
	struct vb_mr *mr;
	struct vb_qp *qp;
	static char memory[100];

	begin(NULL);
	vb_roster_use(&f->a.roster, sheet);
	assert_int_equal(
		vb_mr_register(f->pd, memory, sizeof(memory), 5000, 0, &mr), 0);
	assert_int_equal(mr->row, 1);
	assert_int_equal(sheet->rows[0].kind, ROSTER_MR);
	assert_int_equal(sheet->rows[0].number, mr->key);
	assert_int_equal(sheet->rows[0].size, 100);
	assert_int_equal(sheet->rows[0].iova, 5000);
	assert_int_equal(vb_mr_deregister(mr), 0);
	assert_int_equal(sheet->alive[ROSTER_MR], 0);

	qp = make(f, init_of(f));
	assert_int_equal(sheet->rows[qp->row - 1].number, qp->qpn);
	assert_int_equal(sheet->rows[qp->row - 1].state, QPS_RESET);
	assert_int_equal(vb_qp_modify(qp, &attr, TO_INIT, 0), 0);
	assert_int_equal(sheet->rows[qp->row - 1].state, QPS_INIT);
	assert_int_equal(sheet->rows[qp->row - 1].port, 1);
	vb_mutex_lock(&qp->drive);
	vb_qp_fail(qp, -1);
	vb_mutex_unlock(&qp->drive);
	assert_int_equal(sheet->rows[qp->row - 1].state, QPS_ERR);
	vb_qp_destroy(qp);
	assert_int_equal(sheet->alive[ROSTER_QP], 0);
	vb_roster_use(&f->a.roster, NULL);
	finish(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_row_is_used_again, begin,
						finish),
		cmocka_unit_test_setup_teardown(what_has_no_row_counts, begin,
						finish),
		cmocka_unit_test_setup_teardown(
			rows_do_not_rest_on_what_is_shared, begin, finish),
		TEST(the_adapters_objects_are_in_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
