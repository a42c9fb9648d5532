/* SPDX-License-Identifier: BSD-2-Clause */
/* ipoib/share: processes of one port in the same groups. Here descriptors of
 * one file stand for the processes, since the kernel's locks treat them
 * alike. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the headers above
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ipoib/share.c"

static int one, other;

static struct vb_sa_mcmember member(uint8_t group, uint8_t state)
{
	return (struct vb_sa_mcmember){ .mgid = { { 0xff,
						    0x12, [15] = group } },
					.port_gid = { { 0xfe, 0x80 } },
					.join_state = state };
}

static int open_both(void **state)
{
	char path[] = "/tmp/share-XXXXXX", name[64];

	(void)state;
	one = mkstemp(path);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", one);
	other = open(name, O_RDWR);
	unlink(path);
	return one < 0 || other < 0;
}

static int close_both(void **state)
{
	(void)state;
	close(one);
	close(other);
	return 0;
}

static uint8_t leave(int fd, struct vb_sa_mcmember m)
{
	uint8_t last = ipoib_share_release(fd, &m);

	ipoib_share_end(fd, &m);
	return last;
}

static void the_last_process_leaves(void **state)
{
	const struct vb_sa_mcmember m = member(1, SA_FULL_MEMBER);

	(void)state;
	assert_true(ipoib_share_hold(one, &m));
	assert_true(ipoib_share_hold(one, &m));
	assert_true(ipoib_share_hold(other, &m));
	assert_int_equal(leave(one, m), 0);
	assert_int_equal(leave(other, m), SA_FULL_MEMBER);
	assert_true(ipoib_share_hold(one, &m));
	assert_int_equal(leave(one, m), SA_FULL_MEMBER);
}

static void a_killed_process_counts_no_longer(void **state)
{
	const struct vb_sa_mcmember m = member(1, SA_FULL_MEMBER);

	(void)state;
	assert_true(ipoib_share_hold(one, &m));
	assert_true(ipoib_share_hold(other, &m));
	close(other);
	other = -1;
	assert_int_equal(leave(one, m), SA_FULL_MEMBER);
}

static void each_kind_and_each_group_for_itself(void **state)
{
	const struct vb_sa_mcmember full = member(1, SA_FULL_MEMBER);
	const struct vb_sa_mcmember sends = member(1, SA_SEND_ONLY_NON_MEMBER);
	const struct vb_sa_mcmember both =
		member(1, SA_FULL_MEMBER | SA_SEND_ONLY_NON_MEMBER);
	const struct vb_sa_mcmember another = member(2, SA_FULL_MEMBER);

	(void)state;
	assert_true(ipoib_share_hold(one, &both));
	assert_true(ipoib_share_hold(other, &sends));
	assert_true(ipoib_share_hold(other, &another));
	assert_int_equal(leave(one, both), SA_FULL_MEMBER);
	assert_int_equal(leave(other, sends), SA_SEND_ONLY_NON_MEMBER);
	assert_int_equal(leave(other, another), SA_FULL_MEMBER);
	assert_int_equal(leave(one, full), SA_FULL_MEMBER);
}

/* While the last process leaves, no other process can begin to join. */
static void nobody_joins_while_the_last_one_leaves(void **state)
{
	const struct vb_sa_mcmember m = member(1, SA_FULL_MEMBER);

	(void)state;
	assert_true(ipoib_share_hold(one, &m));
	assert_int_equal(ipoib_share_release(one, &m), SA_FULL_MEMBER);
	assert_false(ipoib_share_hold(other, &m));
	ipoib_share_end(one, &m);
	assert_true(ipoib_share_hold(other, &m));
}

static void without_the_file_a_process_is_alone(void **state)
{
	const struct vb_sa_mcmember m = member(1, SA_FULL_MEMBER);

	(void)state;
	assert_true(ipoib_share_hold(-ENOENT, &m));
	assert_int_equal(leave(-ENOENT, m), SA_FULL_MEMBER);
	assert_true(ipoib_share_open(NULL) < 0);
	assert_true(ipoib_share_open("eth0,ib:Hca1") < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_last_process_leaves,
						open_both, close_both),
		cmocka_unit_test_setup_teardown(
			a_killed_process_counts_no_longer, open_both,
			close_both),
		cmocka_unit_test_setup_teardown(
			each_kind_and_each_group_for_itself, open_both,
			close_both),
		cmocka_unit_test_setup_teardown(
			nobody_joins_while_the_last_one_leaves, open_both,
			close_both),
		cmocka_unit_test_setup_teardown(
			without_the_file_a_process_is_alone, open_both,
			close_both),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
