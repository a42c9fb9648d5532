/* SPDX-License-Identifier: BSD-2-Clause */
/* `verbena fabric`: run an InfiniBand fabric, ask one, change one. */
#include "cli/cli.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "cli/commands.h"
#include "engine/fabric_path.h"
#include "fabricd/fabricd.h"

#define COMMAND_BYTES 4096
#define PARTS_MOST    1024

struct wish {
	const char *name, *make;
	/* the nodes of --part, with NULL after the last one */
	const char *part[PARTS_MOST + 1];
	unsigned parts;
	bool write, sm, daemon;
	bool json; /* ctl prints its result as JSON */
	/* after how many seconds without a program the fabric ends; 0: never */
	double linger;
};

/* Reads the options --part and --linger. */
static bool read_valued(int o, struct wish *w)
{
	if (o == 'p' && w->parts < PARTS_MOST) {
		w->part[w->parts++] = optarg;
		return true;
	}
	if (o == 'p')
		vb_cli_refuse("fabric", "--part: %u nodes at most", PARTS_MOST);
	else if (vb_cli_parse_seconds(optarg, &w->linger))
		return true;
	else
		vb_cli_refuse_value("fabric", "linger", optarg, VB_CLI_SECONDS);
	return false;
}

/* Read the options up to the first word that is none. Call it again for options
 * behind that word. */
static bool read_options(int argc, char **argv, struct wish *w)
{
	int o;

	while ((o = vb_cli_next_option("fabric", argc, argv)) != -1) {
		if (o == '?')
			return false;
		if (o == 'n')
			w->name = optarg;
		else if (o == 'm')
			w->make = optarg;
		else if (o == 'w')
			w->write = true;
		else if (o == 's')
			w->sm = true;
		else if (o == 'b')
			w->daemon = true;
		else if (!read_valued(o, w))
			return false;
	}
	return true;
}

/* True if no option is set that only the start of a fabric can have: then the
 * command asks a fabric that runs. */
static bool is_question(const struct wish *w)
{
	return !w->make && !w->write && !w->sm && !w->daemon && !w->linger &&
	       !w->parts;
}

/* Functions that talk to a fabric that runs. */

int vb_cli_fabric_failed(const char *name, int rc, const char *error)
{
	if (rc == -ECONNREFUSED)
		fprintf(stderr,
			"verbena fabric: no fabric \"%s\" is running; start "
			"it: verbena fabric [--name NAME] TOPOLOGY\n",
			name);
	else
		fprintf(stderr, "verbena fabric: %s\n",
			error[0] ? error : strerror(-rc));
	return EXIT_FAILURE;
}

static int ask(const char *name, const char *command)
{
	char error[VB_TOPO_ERROR] = "";
	int rc = vb_fabricd_command(name, command, stdout, error);

	return rc ? vb_cli_fabric_failed(name, rc, error) : EXIT_SUCCESS;
}

/* Give the fabric @name a command as ask() does, but print one line of JSON:
 * whether the fabric has obeyed, what the command printed, or why it failed. */
static int ask_for_json(const char *name, const char *command)
{
	char error[VB_TOPO_ERROR] = "", *said = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&said, &len);
	int rc;

	if (!to)
		return vb_cli_fabric_failed(name, -errno, error);
	rc = vb_fabricd_command(name, command, to, error);
	fclose(to);
	if (rc == -ECONNREFUSED)
		snprintf(error, sizeof(error), "no fabric \"%.80s\" is running",
			 name);
	else if (rc && !error[0])
		snprintf(error, sizeof(error), "%s", strerror(-rc));
	printf("{\"ok\": %s", rc ? "false" : "true");
	if (rc || len) {
		printf(", \"%s\": ", rc ? "error" : "output");
		vb_fabricd_put_string(stdout, rc ? error : said);
	}
	puts("}");
	free(said);
	return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int control(int argc, char **argv, const struct wish *w)
{
	char command[COMMAND_BYTES];
	size_t len = 0;

	if (optind == argc)
		return vb_cli_refuse("fabric ctl", "no command was named");
	for (int i = optind; i < argc; i++) {
		int n = snprintf(command + len, sizeof(command) - len, "%s%s",
				 len ? "\n" : "", argv[i]);

		if (n < 0 || (size_t)n >= sizeof(command) - len)
			return vb_cli_refuse("fabric ctl",
					     "the command is too long");
		len += (size_t)n;
	}
	return w->json ? ask_for_json(w->name, command) : ask(w->name, command);
}

/* Functions that run a fabric. */

static int fabric_fail(const char *why)
{
	fprintf(stderr, "verbena fabric: %s\n", why);
	return EXIT_FAILURE;
}

/* Make a descriptor that becomes readable when the user ends the command with a
 * signal. */
static int open_stop(void)
{
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &ends, NULL) < 0)
		return -1;
	return signalfd(-1, &ends, SFD_CLOEXEC);
}

/* Returns the id of a node for a program: of the last one that is no router. */
static const char *example_of(const struct vb_topo *topo)
{
	uint32_t i = topo->count - 1;

	while (i > 0 && topo->nodes[i].kind == FAB_ROUTER)
		i--;
	return topo->nodes[i].id;
}

/* Prints how to use the fabric, for a person at a terminal; the caller does not
 * call this in a daemon. */
static void say_start(const struct vb_topo *topo, const char *name,
		      const char *log)
{
	bool is_default = strcmp(name, VB_FABRIC_DEFAULT) == 0;

	printf("fabric \"%s\": %u nodes; a program takes the place of one by\n"
	       "  verbena run --device ib:%s%s%s -- PROGRAM\n",
	       name, topo->count, is_default ? "" : name, is_default ? "" : "/",
	       example_of(topo));
	if (log[0])
		printf("the log of its subnet manager is %s\n", log);
	fflush(stdout);
}

/* Start the program @opensm as the fabric's subnet manager, unless @opensm is
 * empty. @log gets the path of the log. False: the program cannot start, and
 * this function has said why. */
static bool start_opensm(struct vb_fabricd *f, const char *opensm,
			 char log[PATH_MAX])
{
	char self[PATH_MAX], error[VB_TOPO_ERROR];

	log[0] = '\0';
	if (!opensm[0])
		return true;
	if (!vb_cli_find_self(self)) {
		fabric_fail("--sm: this command does not find its own path");
		return false;
	}
	if (vb_fabricd_manage(f, self, opensm, log, error) == 0)
		return true;
	fabric_fail(error);
	return false;
}

static int serve_fabric(struct vb_fabricd *f, const struct vb_topo *topo,
			const struct wish *w, const char *opensm)
{
	char log[PATH_MAX];
	int stop = -1, rc = w->daemon ? vb_cli_enter_background() : 0;

	if (!rc)
		stop = open_stop();
	if (rc || stop < 0)
		return fabric_fail(strerror(rc ? -rc : errno));
	if (!start_opensm(f, opensm, log))
		return EXIT_FAILURE;
	if (w->linger)
		vb_fabricd_linger(f, (vb_time)(w->linger * VB_SEC));
	if (!w->daemon)
		say_start(topo, w->name, log);
	rc = vb_fabricd_run(f, stop);
	close(stop);
	return rc ? fabric_fail(strerror(-rc)) : EXIT_SUCCESS;
}

/* True if another process already runs a fabric of this name. */
static bool other_serves(const char *name)
{
	int fd = vb_fabric_connect(name);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Create the fabric for a daemon, and try again for 4 s: another program may
 * start a daemon of this name at the same time, and a daemon that is about to
 * end keeps the name for up to 2 s, but serves nobody. NULL with an empty
 * @error: another daemon serves. */
static struct vb_fabricd *create_daemon(struct vb_topo *topo, const char *name,
					char error[VB_TOPO_ERROR])
{
	const struct timespec nap = { 0, 50 * VB_MSEC };
	struct vb_fabricd *f = vb_fabricd_create(topo, name, error);

	for (unsigned i = 0; !f && i < 80; i++) {
		if (other_serves(name)) {
			error[0] = '\0';
			return NULL;
		}
		nanosleep(&nap, NULL);
		f = vb_fabricd_create(topo, name, error);
	}
	return f;
}

static int fabric_run(struct vb_topo *topo, const struct wish *w)
{
	char error[VB_TOPO_ERROR], opensm[PATH_MAX] = "";
	struct vb_fabricd *f;
	int rc;

	if (w->sm && !vb_fabricd_find_opensm(opensm))
		return fabric_fail("opensm, the subnet manager, is not "
				   "installed; Debian's package is opensm (apt "
				   "install opensm)");
	f = w->daemon ? create_daemon(topo, w->name, error)
		      : vb_fabricd_create(topo, w->name, error);
	if (!f)
		return error[0] ? fabric_fail(error) : EXIT_SUCCESS;
	rc = serve_fabric(f, topo, w, opensm);
	vb_fabricd_destroy(f);
	return rc;
}

static int start(int argc, char **argv, struct wish *w)
{
	char error[VB_TOPO_ERROR] = "no memory";
	struct vb_topo topo = { 0 };
	int rc;

	if (w->make ? optind != argc : optind + 1 != argc)
		return vb_cli_refuse("fabric", "give one file with a topology, "
					       "or --make KIND");
	if (w->daemon)
		vb_cli_leave_starter();
	rc = w->make ? vb_topo_make(&topo, w->make, error)
		     : vb_topo_read(&topo, argv[optind], error);
	if (!rc && w->parts)
		rc = vb_topo_part(&topo, w->part, error);
	if (rc)
		rc = fabric_fail(error);
	else if (w->write)
		rc = vb_topo_write(&topo, stdout) ? EXIT_SUCCESS : EXIT_FAILURE;
	else
		rc = fabric_run(&topo, w);
	vb_topo_free(&topo);
	return rc;
}

/* Options stand before or behind the words ctl, show and capture. */
int vb_cli_fabric(int argc, char **argv)
{
	struct wish w = { .name = VB_FABRIC_DEFAULT };
	int (*command)(int, char **, const char *) = NULL;
	const char *word;
	int o;

	if (!read_options(argc, argv, &w))
		return EXIT_USAGE;
	word = optind < argc ? argv[optind] : "";
	if (strcmp(word, "show") == 0)
		command = vb_cli_fabric_show;
	else if (strcmp(word, "capture") == 0)
		command = vb_cli_fabric_capture;
	else if (strcmp(word, "ctl") != 0)
		return start(argc, argv, &w);
	if (!is_question(&w))
		return vb_cli_refuse("fabric", "only --name goes with %s",
				     word);
	if (command) {
		int at = optind;

		/* 0 makes getopt_long() start a new scan, at the command's
		 * options */
		optind = 0;
		return command(argc - at, argv + at, w.name);
	}
	optind++;
	while ((o = vb_cli_next_option("fabric ctl", argc, argv)) != -1) {
		if (o == '?')
			return EXIT_USAGE;
		if (o == 'j')
			w.json = true;
		else
			w.name = optarg;
	}
	return control(argc, argv, &w);
}
