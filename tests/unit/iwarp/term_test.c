/* SPDX-License-Identifier: BSD-2-Clause */
/* iwarp/term: the table of faults is complete, and both sides read it alike. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "iwarp/term.h"

static void term__each_fault_has_a_row(void **state)
{
	for (unsigned i = IWF_NONE + 1; i < IWF_COUNT; i++) {
		const struct vb_iw_fault_row *row = vb_iw_fault_row(i);

		assert_non_null(row->name);
		assert_true(row->layer <= TERM_LLP && row->etype <= 2);
		assert_int_not_equal(row->told, WC_SUCCESS);
		assert_int_not_equal(row->status, WC_SUCCESS);
	}
}

/* Two faults with the same code on the wire must give the requester the same
 * status; only the queue for READs differs from that for SENDs. */
static void term__the_wire_tells_the_status(void **state)
{
	for (unsigned i = IWF_NONE + 1; i < IWF_COUNT; i++) {
		const struct vb_iw_fault_row *row = vb_iw_fault_row(i);
		struct vb_term t = { .layer = row->layer,
				     .etype = row->etype,
				     .code = row->code };

		if (i == IWF_TOO_MANY_READS) {
			t.has_segment = true;
			t.segment.queue = DDP_QUEUE_REQUEST;
		}
		assert_int_equal(vb_iw_told(&t), row->told);
	}
}

static void term__a_reserved_code_is_no_success(void **state)
{
	struct vb_term t = { 0 };

	for (unsigned v = 0; v < 1u << 16; v++) {
		t.layer = v >> 12;
		t.etype = v >> 8 & 15;
		t.code = v & 255;
		assert_int_not_equal(vb_iw_told(&t), WC_SUCCESS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(term__each_fault_has_a_row),
		cmocka_unit_test(term__the_wire_tells_the_status),
		cmocka_unit_test(term__a_reserved_code_is_no_success),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
