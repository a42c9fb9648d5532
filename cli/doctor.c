/* SPDX-License-Identifier: BSD-2-Clause */
/* `verbena doctor`: what works here, what does not, and what mends it. */
#include "cli/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/finding.h"

#define DEVICES_VARIABLE "VERBENA_DEVICES"
/* A doctor ends after this time in any case. */
#define LIMIT (9500 * VB_MSEC)

struct visit {
	bool json;
	double answer; /* seconds to answer; negative: do not answer */
	const char *peer, *program;
};

/* In the child: become the program, with its output in @out. */
static void become_tool(const char *const argv[], const char *const env[],
			int out)
{
	int null = open("/dev/null", O_RDWR);

	dup2(null, STDIN_FILENO);
	dup2(null, STDERR_FILENO);
	dup2(out, STDOUT_FILENO);
	signal(SIGPIPE, SIG_DFL);
	execvpe(argv[0], (char *const *)(uintptr_t)argv,
		(char *const *)(uintptr_t)env);
	_exit(EXIT_NOT_FOUND);
}

/* Read what the child writes until it ends. False: it takes too long. */
static bool hear_tool(int fd, vb_time until, char *text, size_t room)
{
	size_t len = 0;
	ssize_t n = 1;

	while (n > 0 && len < room - 1) {
		struct pollfd p = { fd, POLLIN, 0 };
		vb_time now = vb_clock_read();

		if (now >= until ||
		    poll(&p, 1, (int)((until - now) / VB_MSEC) + 1) <= 0)
			return false;
		n = read(fd, text + len, room - 1 - len);
		len += n > 0 ? (size_t)n : 0;
		text[len] = '\0';
	}
	return true;
}

bool vb_doctor_run(const char *const argv[], const char *const env[],
		   vb_time limit, char *text, size_t room)
{
	int pipes[2], status = 0;
	bool heard;
	pid_t pid;

	text[0] = '\0';
	if (pipe2(pipes, O_CLOEXEC) < 0)
		return false;
	pid = fork();
	if (pid == 0)
		become_tool(argv, env, pipes[1]);
	close(pipes[1]);
	heard = pid > 0 &&
		hear_tool(pipes[0], vb_clock_read() + limit, text, room);
	close(pipes[0]);
	if (pid < 0)
		return false;
	if (!heard)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	return heard && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void find_variable(const char *name, size_t len, const char *text)
{
	vb_finding_add("environment", FINDING_WARNING,
		       vb_finding_text("unset %.*s", (int)len, name), "%s",
		       text);
}

/* Keep the library's log out of the doctor's output, and make this command the
 * broker that the library starts if there is none. */
static void set_environment(void)
{
	char self[PATH_MAX];

	setenv("VERBENA_LOG", "quiet", 0);
	if (vb_cli_find_self(self))
		setenv("VERBENA_BROKER", self, 0);
}

static void examine(const struct visit *v)
{
	struct vb_cli_ports ports;
	unsigned adapters;
	int rc;

	vb_doctor_host();
	vb_cli_check_variables(find_variable);
	vb_doctor_one_host();
	adapters = vb_doctor_fabrics();
	vb_doctor_port();
	rc = vb_cli_ports_list(getenv(DEVICES_VARIABLE), &ports);
	if (rc) {
		vb_finding_add("device", FINDING_PROBLEM, "verbena devices",
			       "the devices cannot be listed: %s",
			       strerror(-rc));
		ports = (struct vb_cli_ports){ 0 };
	} else if (ports.count || !adapters) {
		vb_doctor_devices(&ports);
	}
	/* a fabric's packets pass no firewall */
	if (ports.count || !adapters)
		vb_doctor_firewall(&ports);
	if (v->program)
		vb_doctor_program(v->program);
	if (v->peer)
		vb_doctor_peer(&ports, v->peer);
	vb_cli_ports_free(&ports);
}

/* Returns the index of the word "--", or @argc. */
static int find_dashes(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--") == 0)
			return i;
	return argc;
}

/* Reads the options in front of "--". Returns an exit status that is not 0 if
 * that fails. */
static int read_visit(int argc, char **argv, struct visit *v, char **devices)
{
	int o;

	while ((o = vb_cli_next_option("doctor", argc, argv)) != -1) {
		if (o == '?')
			return EXIT_USAGE;
		if (o == 'j')
			v->json = true;
		else if (o == 'a' && !vb_cli_parse_seconds(optarg, &v->answer))
			return vb_cli_refuse_value("doctor", "answer", optarg,
						   VB_CLI_SECONDS);
		else if (o == 'd' && !vb_cli_add_device(devices, optarg))
			return EXIT_FAILURE;
	}
	if (argc - optind > 1)
		return vb_cli_refuse("doctor",
				     "\"%s\" is too much: one peer at most, "
				     "and a program behind --",
				     argv[optind + 1]);
	v->peer = argv[optind];
	if (optind == argc)
		v->peer = NULL;
	return 0;
}

int vb_cli_doctor(int argc, char **argv)
{
	struct visit v = { .answer = -1 };
	int dashes = find_dashes(argc, argv), rc;
	char *devices = NULL;

	if (dashes < argc)
		v.program = argv[dashes + 1];
	rc = read_visit(dashes, argv, &v, &devices);
	if (!rc && dashes < argc && !v.program)
		rc = vb_cli_refuse("doctor", "no program follows --");
	if (!rc && devices)
		setenv(DEVICES_VARIABLE, devices, 1);
	free(devices);
	if (rc)
		return rc;
	set_environment();
	if (v.answer >= 0)
		return vb_doctor_answer(v.answer);
	vb_findings_end_after(LIMIT, v.json);
	examine(&v);
	return vb_findings_print(stdout, v.json) == FINDING_PROBLEM
		       ? EXIT_FAILURE
		       : EXIT_SUCCESS;
}
