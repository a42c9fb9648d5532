/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks how the broker identifies the process of a session, and about which
 * queue pairs that process may send messages. */
#include "broker/process.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

static void of_ourselves(struct vb_process *p)
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	vb_process_of(ends[0], p);
	close(ends[0]);
	close(ends[1]);
}

/* A program name with spaces and parentheses must not disturb reading the start
 * time in /proc/PID/stat. */
static void of__any_name(void **state)
{
	struct vb_process plain, odd;

	of_ourselves(&plain);
	assert_int_equal(plain.pid, getpid());
	assert_int_equal(plain.uid, geteuid());
	assert_true(plain.born > 0);
	assert_int_equal(prctl(PR_SET_NAME, "a) b (c) 1 2"), 0);
	of_ourselves(&odd);
	assert_int_equal(odd.born, plain.born);
}

static void speaks_for__rows(void **state)
{
	static const struct {
		const char *what;
		struct vb_process speaker, owner;
		bool may;
	} rows[] = {
		{ "the same user", { 7, 5, 90, 2 }, { 7, 5, 90, 1 }, true },
		{ "an older session of the same user",
		  { 7, 5, 90, 1 },
		  { 7, 5, 90, 2 },
		  true },
		{ "birth not known", { 7, 5, 0, 2 }, { 7, 5, 0, 1 }, true },
		{ "another process", { 8, 5, 90, 2 }, { 7, 5, 90, 1 }, false },
		{ "root opened, a user speaks",
		  { 7, 5, 90, 2 },
		  { 7, 0, 90, 1 },
		  true },
		{ "root's session, a user opened later",
		  { 7, 0, 90, 1 },
		  { 7, 5, 90, 2 },
		  true },
		{ "a user's session, root opened later",
		  { 7, 5, 90, 1 },
		  { 7, 0, 90, 2 },
		  false },
		{ "the number came back",
		  { 7, 5, 95, 2 },
		  { 7, 0, 90, 1 },
		  false },
		{ "other users, birth not known",
		  { 7, 5, 0, 2 },
		  { 7, 0, 0, 1 },
		  false },
	};

	for (unsigned i = 0; i < VB_COUNT(rows); i++)
		if (vb_process_speaks_for(&rows[i].speaker, &rows[i].owner) !=
		    rows[i].may)
			fail_msg("%s", rows[i].what);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of__any_name),
		cmocka_unit_test(speaks_for__rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
