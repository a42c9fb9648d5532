/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "wire/ipc.h"

static struct vb_ipc sample(void)
{
	struct vb_ipc m = {
		.kind = IPC_REFUSE,
		.version = VB_IPC_VERSION,
		.slot = 511,
		.error = 28,
		.programs = 256,
		.pid = 0x12345678,
	};

	strcpy(m.text, "no slot is free");
	return m;
}

static void ipc__round_trip(void **state)
{
	uint8_t bytes[VB_IPC_BYTES];

	for (uint8_t kind = IPC_CLAIM; kind <= IPC_REPORT; kind++) {
		struct vb_ipc a = sample(), b = { 0 };

		a.kind = kind;
		memset(bytes, 0xff, sizeof(bytes));
		assert_int_equal(vb_ipc_put(bytes, &a), VB_IPC_BYTES);
		assert_true(vb_ipc_get(bytes, sizeof(bytes), &b));
		assert_memory_equal(&a, &b, sizeof(a));
		for (size_t i = 136; i < sizeof(bytes); i++)
			assert_int_equal(bytes[i], 0);
	}
}

static void ipc__text_for_a_terminal(void **state)
{
	struct vb_ipc a = sample(), b;
	uint8_t bytes[VB_IPC_BYTES];

	strcpy(a.text, "a\033[2Jb\n\377");
	(void)vb_ipc_put(bytes, &a);
	assert_true(vb_ipc_get(bytes, sizeof(bytes), &b));
	assert_string_equal(b.text, "a?[2Jb??");
}

static void ipc__every_truncation(void **state)
{
	struct vb_ipc a = sample(), b;
	uint8_t bytes[VB_IPC_BYTES];

	(void)vb_ipc_put(bytes, &a);
	for (size_t len = 0; len < sizeof(bytes); len++) {
		uint8_t *exact = malloc(len ? len : 1);

		memcpy(exact, bytes, len);
		assert_false(vb_ipc_get(exact, len, &b));
		free(exact);
	}
}

static bool gets_with(size_t at, uint8_t value)
{
	struct vb_ipc a = sample(), b;
	uint8_t bytes[VB_IPC_BYTES];

	(void)vb_ipc_put(bytes, &a);
	bytes[at] = value;
	return vb_ipc_get(bytes, sizeof(bytes), &b);
}

static void ipc__refuses(void **state)
{
	assert_true(gets_with(0, IPC_REPORT));
	assert_false(gets_with(0, 0));
	assert_false(gets_with(0, IPC_REPORT + 1));
	assert_false(gets_with(0, 255));
	assert_false(gets_with(1, 0));
	assert_false(gets_with(1, VB_IPC_VERSION + 1));
	assert_false(gets_with(2, VB_SLOTS >> 8));
}

static void ipc__text(void **state)
{
	struct vb_ipc a = sample(), b;
	uint8_t bytes[VB_IPC_BYTES];

	/* A text without NUL is cut when this program sends it, and refused
	 * when it receives it. */
	memset(a.text, 'x', sizeof(a.text));
	(void)vb_ipc_put(bytes, &a);
	assert_true(vb_ipc_get(bytes, sizeof(bytes), &b));
	assert_int_equal(strlen(b.text), VB_IPC_TEXT - 1);
	memset(bytes + 16, 'x', VB_IPC_TEXT);
	assert_false(vb_ipc_get(bytes, sizeof(bytes), &b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ipc__round_trip),
		cmocka_unit_test(ipc__text_for_a_terminal),
		cmocka_unit_test(ipc__every_truncation),
		cmocka_unit_test(ipc__refuses),
		cmocka_unit_test(ipc__text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
