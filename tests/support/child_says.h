/* SPDX-License-Identifier: BSD-2-Clause */
/* What a child process writes to standard error. Include it behind cmocka.h. */
#ifndef TESTS_SUPPORT_CHILD_SAYS_H
#define TESTS_SUPPORT_CHILD_SAYS_H

#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Returns the length of what a child with VERBENA_LOG=@setting (NULL: not set)
 * writes to descriptor 2 while it runs @tell, which must keep errno. @text, of
 * @room bytes, has it as a string. */
static inline size_t child_says(void (*tell)(void), const char *setting,
				char *text, size_t room)
{
	size_t used = 0;
	int fds[2];
	ssize_t got;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		dup2(fds[1], 2);
		close(fds[0]);
		close(fds[1]);
		if (setting)
			setenv("VERBENA_LOG", setting, 1);
		else
			unsetenv("VERBENA_LOG");
		errno = 42;
		tell();
		_exit(errno == 42 ? 0 : 1);
	}
	close(fds[1]);
	while ((got = read(fds[0], text + used, room - 1 - used)) > 0)
		used += (size_t)got;
	text[used] = 0;
	close(fds[0]);
	assert_int_equal(waitpid(pid, &fds[0], 0), pid);
	assert_int_equal(fds[0], 0);
	return used;
}

#endif
