/* SPDX-License-Identifier: BSD-2-Clause */
/* `verbena fabric capture`: what passes a port, into a file for Wireshark. This
 * process writes the file, with the rights of whoever runs it. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "engine/fabric_path.h"
#include "fabricd/fabricd.h"

#define BYTES_DEFAULT ((uint64_t)1 << 30)

struct capture_wish {
	const char *name, *node, *port, *file;
	bool flow;
	uint64_t bytes;
	unsigned seconds;
};

static volatile sig_atomic_t ended;

/* Reads a number of bytes that may end in K, M or G (1024 and its powers). */
static bool read_bytes(const char *text, uint64_t *bytes)
{
	static const char units[] = "KMG";
	const char *unit;
	unsigned shift = 0;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*bytes = strtoull(text, &end, 10);
	unit = *end ? strchr(units, *end) : NULL;
	if (unit) {
		shift = 10 * (unsigned)(unit - units + 1);
		end++;
	}
	if (errno || *end || !*bytes || *bytes > UINT64_MAX >> shift)
		return false;
	*bytes <<= shift;
	return true;
}

static bool take_option(int o, struct capture_wish *w)
{
	uint64_t seconds;

	switch (o) {
	case 'n':
		w->name = optarg;
		return true;
	case 'f':
		w->flow = true;
		return true;
	case 'b':
		if (read_bytes(optarg, &w->bytes))
			return true;
		vb_cli_refuse_value("fabric capture", "bytes", optarg,
				    "a number of bytes, perhaps with K, M or "
				    "G");
		return false;
	case 's':
		if (read_bytes(optarg, &seconds) && seconds <= 1u << 30) {
			w->seconds = (unsigned)seconds;
			return true;
		}
		vb_cli_refuse_value("fabric capture", "seconds", optarg,
				    "a whole number of seconds above 0");
		return false;
	default:
		return false;
	}
}

static bool read_wish(int argc, char **argv, struct capture_wish *w)
{
	int o;

	w->bytes = BYTES_DEFAULT;
	while ((o = vb_cli_next_option("fabric capture", argc, argv)) != -1)
		if (!take_option(o, w))
			return false;
	if (optind + 3 != argc) {
		vb_cli_refuse("fabric capture", "it needs three words, NODE "
						"PORT|all FILE");
		return false;
	}
	w->node = argv[optind];
	w->port = argv[optind + 1];
	w->file = argv[optind + 2];
	return true;
}

static void note_end(int signal)
{
	ended = 1;
}

/* Let signals end the capture: the first one interrupts the call in which this
 * process waits, and a second one ends the process. */
static void take_signals(void)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGALRM };
	struct sigaction act = { .sa_handler = note_end,
				 .sa_flags = (int)SA_RESETHAND };

	for (unsigned i = 0; i < VB_COUNT(ends); i++)
		sigaction(ends[i], &act, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static int capture_fail(const char *what, const char *why)
{
	fprintf(stderr, "verbena fabric capture: %s%s%s\n", what,
		*why ? ": " : "", why);
	return EXIT_FAILURE;
}

/* This process opens the file, with the rights of its own user. The fabric's
 * process only sends the bytes. */
static int open_capture(const char *name)
{
	if (strcmp(name, "-") == 0)
		return dup(STDOUT_FILENO);
	return open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
}

static int run_capture(const struct capture_wish *w, int file)
{
	char command[512], said[VB_TOPO_ERROR] = "";
	int n = snprintf(command, sizeof(command), "capture\n%s\n%s\n%ju%s",
			 w->node, w->port, (uintmax_t)w->bytes,
			 w->flow ? "\nflow" : "");
	int rc;

	if (n < 0 || (size_t)n >= sizeof(command))
		return capture_fail("the node's name is too long", "");
	take_signals();
	if (w->seconds)
		alarm(w->seconds);
	rc = vb_fabricd_capture(w->name, command, file, &ended, said);
	if (rc == -ECONNREFUSED)
		return capture_fail("no such fabric is running", w->name);
	if (rc)
		return capture_fail(said[0] ? said : w->file,
				    said[0] ? "" : strerror(-rc));
	fprintf(stderr, "%s\n", said);
	return EXIT_SUCCESS;
}

int vb_cli_fabric_capture(int argc, char **argv, const char *name)
{
	struct capture_wish w = { .name = name };
	int file, rc;

	if (!read_wish(argc, argv, &w))
		return EXIT_USAGE;
	file = open_capture(w.file);
	if (file < 0)
		return capture_fail(w.file, strerror(errno));
	rc = run_capture(&w, file);
	if (close(file) < 0 && !rc)
		return capture_fail(w.file, strerror(errno));
	return rc;
}
