/* SPDX-License-Identifier: BSD-2-Clause */
/* Batches of iWARP's streams in a process that has no thread-specific key
 * left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>

#include <cmocka.h>

#include "engine/stream_priv.h"

static unsigned values_set;

static int no_key(pthread_key_t *key, void (*destructor)(void *))
{
	return EAGAIN;
}

/* A fake pthread_setspecific() that counts the values which are set. */
static int count_value(pthread_key_t key, const void *value)
{
	values_set++;
	return 0;
}

#define pthread_key_create  no_key
#define pthread_setspecific count_value
#include "engine/stream.c"

static void batch__without_a_key(void **state)
{
	struct vb_iw_txq *q = eng_stream_my_txq();

	assert_non_null(q);
	assert_ptr_equal(eng_stream_my_txq(), q);
	assert_int_equal(values_set, 0);
	free(q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(batch__without_a_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
