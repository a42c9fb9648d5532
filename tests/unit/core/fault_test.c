/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "core/fault.h"
#include "wire/ib_hdr.h"

/* Every fault has a row in the table, and the columns of the row agree with
 * each other. */
static void fault__rows_are_whole(void **state)
{
	for (int f = FAULT_RKEY; f < FAULT_COUNT; f++) {
		const struct vb_fault_row *row = vb_fault_rc(f);
		bool naks = row->action != ACT_DIE;

		assert_int_equal(naks, row->syndrome != 0);
		assert_int_equal(naks, row->counter >= 0);
		assert_int_equal(row->action == ACT_NAK_ONCE,
				 row->syndrome == VB_SYN_NAK_PSN ||
					 row->syndrome == VB_SYN_RNR);
		if (row->action != ACT_NAK_ONCE)
			assert_int_not_equal(row->status, WC_SUCCESS);
	}
}

/* A fault on UC or UD drops the packet or ends the QP, and sends no NAK. */
static void fault__unreliable_rows_answer_nothing(void **state)
{
	static const enum vb_fault possible[] = {
		FAULT_RKEY,	    FAULT_REMOTE_MEMORY, FAULT_ORDER,
		FAULT_ACCESS_FLAGS, FAULT_LENGTH,	 FAULT_RQE_TOO_SMALL,
		FAULT_NO_RQE,	    FAULT_RQE_LKEY,
	};

	for (size_t i = 0; i < VB_COUNT(possible); i++) {
		const struct vb_fault_row *row =
			vb_fault_unreliable(possible[i]);
		bool dies = possible[i] == FAULT_RQE_LKEY;

		assert_int_equal(row->syndrome, 0);
		assert_int_equal(row->action, dies ? ACT_DIE : ACT_DROP);
		assert_int_equal(row->status != WC_SUCCESS, dies);
		assert_int_equal(row->counter > CNT_DUPLICATE_REQUEST, !dies);
	}
	/* A fault that cannot occur on UC or UD has the mildest action in the
	 * table. */
	assert_int_equal(vb_fault_unreliable(FAULT_INV_RKEY)->action, ACT_DROP);
}

static void fault__nak_codes_name_a_status(void **state)
{
	assert_int_equal(vb_fault_nak_status(0x61), WC_REM_INV_REQ_ERR);
	assert_int_equal(vb_fault_nak_status(0x62), WC_REM_ACCESS_ERR);
	assert_int_equal(vb_fault_nak_status(0x63), WC_REM_OP_ERR);
	assert_int_equal(vb_fault_nak_status(0x64), WC_REM_INV_RD_REQ_ERR);
	for (int s = 0x65; s < 0x80; s++)
		assert_int_equal(vb_fault_nak_status(s), WC_REM_OP_ERR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fault__rows_are_whole),
		cmocka_unit_test(fault__unreliable_rows_answer_nothing),
		cmocka_unit_test(fault__nak_codes_name_a_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
