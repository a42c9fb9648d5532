/* SPDX-License-Identifier: BSD-2-Clause */
/* near/copy_helper: copies between this process and itself. Includes the .c
 * file to read how many parts the helper has copied. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "near/copy_helper.c"

#define BYTES (1u << 20)
#define TURNS 1000

struct field {
	struct vb_copy_helper *h;
	uint8_t *here, *there;
};

static uint8_t *map(void)
{
	void *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	return at;
}

static int setup(void **state)
{
	struct field *f = calloc(1, sizeof(*f));

	f->h = vb_copy_helper_create();
	f->here = map();
	f->there = map();
	for (unsigned i = 0; i < BYTES; i++)
		f->here[i] = (uint8_t)(i * 2654435761u >> 13);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct field *f = *state;

	vb_copy_helper_destroy(f->h);
	munmap(f->here, BYTES);
	munmap(f->there, BYTES);
	free(f);
	return 0;
}

/* The word of the owner's registry that the permit names. */
static _Atomic uint32_t word = 4;

/* Copy from or to three pieces, none of which ends where a part of the split
 * copy ends. */
static bool move(struct field *f, bool put, uint64_t at, uint64_t len)
{
	uint8_t *ours = put ? f->here : f->there;
	uint8_t *theirs = put ? f->there : f->here;
	const struct iovec list[] = {
		{ ours + at, 1001 },
		{ ours + at + 1001, 300000 },
		{ ours + at + 301001, len - 301001 },
	};
	const struct vb_copy c = { .pid = getpid(),
				   .put = put,
				   .local = list,
				   .count = 3,
				   .remote = (uint64_t)(uintptr_t)theirs + at,
				   .len = len,
				   .permit = { { &word, &word, &word },
					       { 4, 4, 4 } } };

	return vb_copy_helper_copy(f->h, &c);
}

static bool has_processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 &&
	       CPU_COUNT(&set) > 1;
}

/* Make many large copies in a row, so that the helper is woken; check every
 * byte of the last one. */
static void move_many(struct field *f, bool put, uint64_t at, uint64_t len)
{
	memset(f->there, 0, BYTES);
	for (unsigned i = 0; i < 32; i++)
		(void)move(f, put, at, len - i);
	if (!move(f, put, at, len))
		return;
	assert_int_equal(memcmp(f->there + at, f->here + at, len), 0);
	assert_int_equal(f->there[at + len], 0);
}

/* Copy until the helper has copied @more parts. On a busy machine it may never
 * do so: then the test is skipped. */
static void until_helped(struct field *f, bool put, uint64_t more)
{
	uint64_t before = atomic_load(&f->h->parts);

	for (unsigned i = 0;
	     i < TURNS && atomic_load(&f->h->parts) - before < more; i++)
		move_many(f, put, i % 5000, 600000 + i);
	if (atomic_load(&f->h->parts) - before < more)
		skip();
}

static void copy_helper__puts(void **state)
{
	if (!has_processors())
		skip();
	until_helped(*state, true, 200);
}

static void copy_helper__gets(void **state)
{
	if (!has_processors())
		skip();
	until_helped(*state, false, 200);
}

/* A missing page makes the copy fail in whichever part it is, and the next copy
 * works. */
static void copy_helper__missing_page_is_noticed(void **state)
{
	struct field *f = *state;
	uint64_t before, pages[] = { 0, BYTES / 2, BYTES - 4096 };

	if (!has_processors())
		skip();
	for (unsigned i = 0; i < VB_COUNT(pages); i++) {
		until_helped(f, true, 2);
		mprotect(f->there + pages[i], 4096, PROT_NONE);
		before = atomic_load(&f->h->parts);
		for (unsigned n = 0; n < 50; n++)
			assert_false(move(f, true, 0, BYTES));
		/* the helper pauses, so it copied no part */
		if (atomic_load(&f->h->parts) == before)
			skip();
		mprotect(f->there + pages[i], 4096, PROT_READ | PROT_WRITE);
	}
}

static void copy_helper__small_copies_are_left_alone(void **state)
{
	struct field *f = *state;

	for (unsigned i = 0; i < 100; i++)
		assert_false(move(f, true, 0, 400000));
	assert_int_equal(atomic_load(&f->h->parts), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(copy_helper__puts, setup,
						teardown),
		cmocka_unit_test_setup_teardown(copy_helper__gets, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			copy_helper__missing_page_is_noticed, setup, teardown),
		cmocka_unit_test_setup_teardown(
			copy_helper__small_copies_are_left_alone, setup,
			teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
