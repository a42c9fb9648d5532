/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `verbena broker`: leave what belongs to the program that started the broker
 * (descriptors, signals, terminal, session), then serve. Programs start it by
 * this command (engine/spawn.h).
 */
#include "cli/cli.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "broker/broker.h"
#include "cli/commands.h"

#define DEFAULT_LINGER 3.0 /* how long an idle broker stays, in seconds */
#define LONGEST_TIME   1e6
#define MOST_CLOSES    65535

bool vb_cli_parse_seconds(const char *text, double *seconds)
{
	char *end;

	errno = 0;
	*seconds = strtod(text, &end);
	return end != text && !*end && !errno && *seconds >= 0 &&
	       *seconds <= LONGEST_TIME;
}

/* Returns the highest open descriptor, or -1 without /proc. */
static int highest_fd(void)
{
	DIR *d = opendir("/proc/self/fd");
	int highest = -1;

	if (!d)
		return -1;
	for (const struct dirent *e = readdir(d); e; e = readdir(d))
		highest = VB_MAX(highest, atoi(e->d_name));
	closedir(d);
	return highest;
}

/* Close all descriptors from @first on. Where close_range() is missing or
 * forbidden, only those up to the highest open one are closed one by one:
 * RLIMIT_NOFILE may be 2^30, too many for that. */
static void close_from(int first)
{
	int last;

	if (syscall(SYS_close_range, first, ~0u, 0) == 0)
		return;
	last = highest_fd();
	if (last < 0)
		last = MOST_CLOSES;
	for (int fd = first; fd <= last; fd++)
		close(fd);
}

/* Undo what exec() keeps of the starting program: its signal mask, and the
 * signals that it ignored. */
static void reset_signals(void)
{
	sigset_t none;

	for (int s = 1; s < NSIG; s++)
		signal(s, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Open the descriptors 0 to 2 if they are closed: otherwise a socket could get
 * one of these numbers, and output be written to it. */
static void fill_standard_fds(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

static void leave_terminal(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; null >= 0 && fd <= STDERR_FILENO; fd++)
		dup2(null, fd);
	if (null > STDERR_FILENO)
		close(null);
}

/* Does what vb_cli_leave_starter() does, but keeps the descriptors below
 * @first. */
static void leave_starter_but(int first)
{
	fill_standard_fds();
	close_from(first);
	reset_signals();
}

int vb_cli_enter_background(void)
{
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid > 0)
		_exit(0);
	setsid();
	leave_terminal();
	return chdir("/") < 0 ? -errno : 0;
}

void vb_cli_leave_starter(void)
{
	leave_starter_but(STDERR_FILENO + 1);
}

static int daemon_fail(const char *what, int rc)
{
	fprintf(stderr, "verbena broker: %s: %s\n", what, strerror(-rc));
	return EXIT_FAILURE;
}

static int serve(int listener, bool daemon, double linger)
{
	int rc;

	if (listener == -EADDRINUSE && daemon)
		/* another broker already serves, so this one is not needed */
		return EXIT_SUCCESS;
	if (listener == -EADDRINUSE) {
		fprintf(stderr, "verbena broker: a broker is already running "
				"in this network namespace\n");
		return EXIT_FAILURE;
	}
	if (listener < 0)
		return daemon_fail("cannot open the socket for programs",
				   listener);
	rc = daemon ? vb_cli_enter_background() : 0;
	if (rc) {
		close(listener);
		return daemon_fail("cannot enter the background", rc);
	}
	rc = vb_broker_run(listener, (vb_time)(linger * VB_SEC));
	return rc ? daemon_fail("cannot serve programs", rc) : EXIT_SUCCESS;
}

int vb_cli_broker(int argc, char **argv)
{
	double linger = DEFAULT_LINGER;
	bool daemon = false;
	int inherited, o;

	while ((o = vb_cli_next_option("broker", argc, argv)) != -1) {
		if (o == 'b')
			daemon = true;
		else if (o != 'l')
			return EXIT_USAGE;
		else if (!vb_cli_parse_seconds(optarg, &linger))
			return vb_cli_refuse_value("broker", "linger", optarg,
						   VB_CLI_SECONDS);
	}
	if (optind < argc)
		return vb_cli_refuse("broker",
				     "\"%s\" is too much: the "
				     "command takes options only",
				     argv[optind]);
	/* Look for an inherited socket first, because leave_starter_but()
	 * closes all other descriptors. */
	inherited = vb_broker_inherit();
	if (inherited < 0 && inherited != -ENOENT) {
		fprintf(stderr,
			"verbena broker: LISTEN_FDS is set, but descriptor %d "
			"is not the one socket that verbena.socket makes\n",
			VB_INHERITED_FD);
		return EXIT_FAILURE;
	}
	leave_starter_but(inherited < 0 ? STDERR_FILENO + 1
					: VB_INHERITED_FD + 1);
	return serve(inherited < 0 ? vb_broker_listen() : inherited, daemon,
		     linger);
}
