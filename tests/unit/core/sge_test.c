/* SPDX-License-Identifier: BSD-2-Clause */
/* core/sge: lists with pieces of every shape, from every offset. */
#include "fixture.h"

#include <sys/mman.h>
#include <unistd.h>

#define RW ACCESS_LOCAL_WRITE

static struct vb_mr *reg(struct fixture *f, void *base, uint64_t len,
			 uint32_t access)
{
	struct vb_mr *mr = NULL;

	assert_int_equal(
		vb_mr_register(f->pd, base, len, (uintptr_t)base, access, &mr),
		0);
	return mr;
}

static struct vb_sge sge_of(const void *p, uint32_t len, const struct vb_mr *mr)
{
	return (struct vb_sge){ (uintptr_t)p, len, mr->key };
}

static void total__passes_2_32(void **state)
{
	struct vb_sge list[VB_MAX_SGE];

	assert_int_equal(vb_sge_total(NULL, 0), 0);
	for (int i = 0; i < VB_MAX_SGE; i++)
		list[i] = (struct vb_sge){ .length = UINT32_MAX };
	assert_true(vb_sge_total(list, VB_MAX_SGE) ==
		    (uint64_t)UINT32_MAX * VB_MAX_SGE);
}

/* An SGE list whose pieces are not in the order of memory; some are empty. */
static void gather_and_place__every_offset_and_length(void **state)
{
	struct fixture *f = *state;
	char memory[] = "defabcghij", out[11], expect[11];
	struct vb_mr *mr = reg(f, memory, 10, RW);
	const struct vb_sge list[] = {
		{ 0xdead, 0, 0xbad },
		sge_of(memory + 3, 3, mr),
		{ 0, 0, 0 },
		sge_of(memory, 3, mr),
		{ 0, 0, 0 },
		{ 0, 0, 0 },
		sge_of(memory + 6, 4, mr),
		{ 0, 0, 7 },
	};

	for (uint32_t at = 0; at <= 10; at++) {
		for (uint32_t len = 0; at + len <= 10; len++) {
			memset(out, '.', sizeof(out));
			memset(expect, '.', sizeof(expect));
			memcpy(expect, &"abcdefghij"[at], len);
			assert_int_equal(vb_sge_gather(f->pd, list,
						       VB_COUNT(list), at, out,
						       len),
					 FAULT_NONE);
			assert_memory_equal(out, expect, sizeof(out));
		}
	}
	for (uint32_t at = 0; at < 10; at++)
		assert_int_equal(vb_sge_place(f->pd, list, VB_COUNT(list), at,
					      &"0123456789"[at], 10 - at),
				 FAULT_NONE);
	assert_memory_equal(memory, "3450126789", 10);
	assert_int_equal(vb_mr_deregister(mr), 0);
}

static void gather__zero_bytes_look_at_no_key(void **state)
{
	struct fixture *f = *state;
	const struct vb_sge bad = { 1, 8, 99 };

	assert_int_equal(vb_sge_gather(f->pd, &bad, 1, 0, NULL, 0), FAULT_NONE);
	assert_int_equal(vb_sge_place(f->pd, NULL, 0, 0, NULL, 0), FAULT_NONE);
}

static void gather__only_the_keys_it_needs(void **state)
{
	struct fixture *f = *state;
	char memory[4] = "abcd", out[4];
	struct vb_mr *mr = reg(f, memory, 4, 0);
	const struct vb_sge list[] = { { 1, 4, 99 }, sge_of(memory, 4, mr) };

	assert_int_equal(vb_sge_gather(f->pd, list, 2, 4, out, 4), FAULT_NONE);
	assert_int_equal(vb_sge_gather(f->pd, list, 2, 3, out, 2), FAULT_LKEY);
	assert_int_equal(vb_mr_deregister(mr), 0);
}

static void gather__list_shorter_than_said(void **state)
{
	struct fixture *f = *state;
	char memory[4] = "abcd", out[8];
	struct vb_mr *mr = reg(f, memory, 4, RW);
	const struct vb_sge one = sge_of(memory, 4, mr);

	assert_int_equal(vb_sge_gather(f->pd, &one, 1, 0, out, 5), FAULT_LKEY);
	assert_int_equal(vb_sge_place(f->pd, &one, 1, 1, "xyzw", 4),
			 FAULT_LKEY);
	assert_int_equal(vb_sge_gather(f->pd, &one, 1, UINT64_MAX, out, 1),
			 FAULT_LKEY);
	assert_int_equal(vb_mr_deregister(mr), 0);
}

static void faults__key_range_right_pd_page(void **state)
{
	struct fixture *f = *state;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *map = mmap(NULL, page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct vb_mr *mr = reg(f, map, page, RW), *ro = reg(f, map, page, 0);
	struct vb_sge over = sge_of(map + page - 4, 5, mr);
	struct vb_sge wraps = { UINT64_MAX - 2, 8, mr->key };
	struct vb_sge read_only = sge_of(map, 4, ro);
	struct vb_sge fine = sge_of(map, 4, mr);
	struct vb_pd *other;
	char buf[8] = { 0 };

	assert_int_equal(vb_pd_create(&f->a, &other), 0);
	assert_int_equal(vb_sge_gather(f->pd, &over, 1, 0, buf, 5), FAULT_LKEY);
	assert_int_equal(vb_sge_gather(f->pd, &wraps, 1, 0, buf, 8),
			 FAULT_LKEY);
	assert_int_equal(vb_sge_gather(f->pd, &read_only, 1, 0, buf, 4),
			 FAULT_NONE);
	assert_int_equal(vb_sge_place(f->pd, &read_only, 1, 0, buf, 4),
			 FAULT_LKEY);
	assert_int_equal(vb_sge_gather(other, &fine, 1, 0, buf, 4), FAULT_LKEY);
	assert_int_equal(munmap(map, page), 0);
	assert_int_equal(vb_sge_gather(f->pd, &fine, 1, 0, buf, 4),
			 FAULT_LOCAL_MEMORY);
	assert_int_equal(vb_sge_place(f->pd, &fine, 1, 0, buf, 4),
			 FAULT_LOCAL_MEMORY);
	assert_int_equal(vb_mr_deregister(mr), 0);
	assert_int_equal(vb_mr_deregister(ro), 0);
	assert_int_equal(vb_pd_destroy(other), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(total__passes_2_32),
		TEST(gather_and_place__every_offset_and_length),
		TEST(gather__zero_bytes_look_at_no_key),
		TEST(gather__only_the_keys_it_needs),
		TEST(gather__list_shorter_than_said),
		TEST(faults__key_range_right_pd_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
