/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes mistakes on purpose. The library must print the sentences that the
 * table expects about each, and no others, and nothing with VERBENA_LOG=off. A
 * process of its own makes each mistake.
 *
 *	mistakes_test [-d DEVICE] [-4|-6] [-a ADDRESS] [-n ADDRESS] [-c ADDRESS]
 *
 * -a: the device's address, for iWARP. -n: an address at which no program
 * answers; only the mistakes that need it are made. -c: the address of a RoCE
 * device; only calls are made that send nothing.
 */
#include <getopt.h>
#include <regex.h>

#include "mistakes.h"

const char *address;

static void make_mistake(const struct mistake *m)
{
	rc_open(&device, &options);
	rnic = stream_is_for(device.context);
	if (rnic)
		stream_begin(address);
	make_side(&a, RC_ALL_ACCESS);
	make_side(&b, RC_ALL_ACCESS);
	m->make();
	if (problem)
		fprintf(stderr, "test: %s\n", problem);
	/* End without destroying the objects, whose errors would add
	 * sentences. */
	_exit(problem != NULL);
}

/* Make the mistake in a child; returns what it wrote to standard error. */
static char *told(const struct mistake *m, int *status)
{
	static char text[1 << 16];
	size_t used = 0;
	ssize_t got;
	int fds[2];
	pid_t pid;

	must(!pipe(fds), "pipe");
	pid = fork();
	must(pid >= 0, "fork");
	if (pid == 0) {
		dup2(fds[1], STDERR_FILENO);
		close(fds[0]);
		close(fds[1]);
		alarm(40);
		make_mistake(m);
	}
	close(fds[1]);
	while ((got = read(fds[0], text + used, sizeof(text) - 1 - used)) > 0)
		used += (size_t)got;
	close(fds[0]);
	text[used] = 0;
	must(waitpid(pid, status, 0) == pid, "waitpid");
	return text;
}

static bool matches(const char *pattern, const char *line)
{
	regex_t re;
	bool yes;

	must(!regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB), "regcomp");
	yes = !regexec(&re, line, 0, NULL, 0);
	regfree(&re);
	return yes;
}

/* Does the output have each expected sentence once, and no other? */
static bool is_as_expected(const struct mistake *m, const char *text)
{
	unsigned wanted = !!m->lines[0] + !!m->lines[1];
	unsigned lines = 0, seen[2] = { 0 };
	char copy[1 << 16], *rest = copy, *line;

	snprintf(copy, sizeof(copy), "%s", text);
	while ((line = strsep(&rest, "\n"))) {
		unsigned found = 0;

		for (unsigned i = 0; i < wanted; i++)
			if (matches(m->lines[i], line)) {
				seen[i]++;
				found++;
			}
		/* On iWARP the side that made no mistake reports the end of its
		 * stream, too. */
		if (!found && strstr(line, "the peer ended the stream: it made"))
			continue;
		lines += *line != 0;
	}
	for (unsigned i = 0; i < wanted; i++)
		if (seen[i] != 1)
			return false;
	return lines == wanted;
}

static bool report(const struct mistake *m, const char *how, bool good,
		   int status, const char *text)
{
	if (!good || status) {
		char copy[1 << 16], *rest = copy, *line;

		printf("status %d\n", status);
		for (unsigned i = 0; i < 2 && m->lines[i]; i++)
			printf("expected: %s\n", m->lines[i]);
		snprintf(copy, sizeof(copy), "%s", text);
		while ((line = strsep(&rest, "\n")))
			printf("told: %s\n", line);
	}
	printf("%s %s%s\n", good && !status ? "ok" : "not ok", m->name, how);
	return good && !status;
}

static bool try(const struct mistake *m, bool silently)
{
	const char *text;
	int status;

	if (silently)
		setenv("VERBENA_LOG", "off", 1);
	else
		unsetenv("VERBENA_LOG");
	text = told(m, &status);
	return silently ? report(m, ", VERBENA_LOG=off", !*text, status, text)
			: report(m, "", is_as_expected(m, text), status, text);
}

static bool try_all(const struct mistake *list, unsigned count)
{
	bool good = true;

	for (unsigned i = 0; i < count; i++) {
		if (!(list[i].where & where))
			continue;
		good &= try(&list[i], false);
		/* Make only every fourth mistake with VERBENA_LOG=off, since
		 * all mistakes take the same path there. */
		if (i % 4 == 0)
			good &= try(&list[i], true);
		fflush(stdout);
	}
	return good;
}

int main(int argc, char **argv)
{
	bool good;
	int c;

	while ((c = getopt(argc, argv, RC_LETTERS "a:n:c:fv")) != -1)
		switch (c) {
		case 'a':
			address = optarg;
			where = ON_RNIC;
			break;
		case 'c':
			address = optarg;
			where = ON_CALLS;
			break;
		case 'n':
			nobody = optarg;
			where = ON_WIRE;
			break;
		case 'f':
			where = ON_FABRIC;
			break;
		case 'v':
			where = ON_V1;
			break;
		default:
			rc_read_option(&options, c);
		}
	good = try_all(request_mistakes, request_mistake_count);
	good &= try_all(verb_mistakes, verb_mistake_count);
	good &= try_all(call_mistakes, call_mistake_count);
	good &= try_all(memory_mistakes, memory_mistake_count);
	good &= try_all(cm_mistakes, cm_mistake_count);
	return good ? 0 : 1;
}
