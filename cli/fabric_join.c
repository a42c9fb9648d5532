/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The places in fabrics that `verbena run` is asked for. Named nodes must be
 * there. `--device ib` means this host's adapter in the user's own fabric:
 * network namespaces are hosts, the first program that asks starts the fabric,
 * and a connection that the program inherits keeps the fabric running as long
 * as the program lives.
 */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/fabric_places.h"
#include "engine/runtime_dir.h"
#include "fabricd/fabricd.h"

/* the value of --device that means the user's own fabric */
#define OWN	   "ib"
#define OWN_MAKE   "empty:64"
#define OWN_LINGER "10"
/* limit of attempts: an idle fabric may end while this command asks it to
 * join */
#define TRIES	5
#define BRIEFLY (10 * VB_MSEC)
/* how long to wait until the subnet manager has made the port active */
#define PATIENCE (10 * VB_SEC)
/* lowest number of the kept descriptor; programs expect low ones to be free */
#define FIRST_FD   200
#define NAMES_MOST 8

struct answer {
	char node[VB_TOPO_ID], state[16], manager[16];
};

/* Functions that report why a device cannot be had. */

static bool refuse_place(const char *spec, const char *why)
{
	fprintf(stderr, "verbena run: --device %s: %s\n", spec, why);
	return false;
}

/* Reports that no fabric @name runs, and lists those that do. Returns false. */
static bool refuse_fabric(const char *spec, const char *name)
{
	char names[NAMES_MOST][VB_FABRIC_NAME + 1];
	unsigned count = vb_fabric_list(names, NAMES_MOST);

	fprintf(stderr, "verbena run: --device %s: no fabric \"%s\" is running",
		spec, name);
	for (unsigned i = 0; i < count && i < NAMES_MOST; i++)
		fprintf(stderr, "%s \"%s\"",
			i ? "," : "; these are:", names[i]);
	if (count > NAMES_MOST)
		fprintf(stderr, " and %u others", count - NAMES_MOST);
	fprintf(stderr, count ? "\n"
			      : ", and no other is; start one: verbena fabric "
				"[--name NAME] TOPOLOGY\n");
	return false;
}

static bool check_place(const char *spec)
{
	char error[VB_TOPO_ERROR] = "", command[VB_UMAD_NAME + 8];
	struct vb_fabric_place p;
	int rc;

	if (!vb_fabric_place_get(spec, strlen(spec), &p))
		return refuse_place(spec, "a place is ib:NODE or "
					  "ib:FABRIC/NODE, and ib alone is the "
					  "fabric of your own");
	snprintf(command, sizeof(command), "has\n%s", p.node);
	rc = vb_fabricd_command(p.fabric, command, stdout, error);
	if (rc == -ECONNREFUSED)
		return refuse_fabric(spec, p.fabric);
	return rc ? refuse_place(spec, error[0] ? error : strerror(-rc)) : true;
}

/* Functions for the fabric that `--device ib` starts and joins. */

/* Returns a number that identifies this network namespace; 0: unknown. */
static uint64_t own_space(void)
{
	uint64_t space = vb_runtime_dir_space();
	int proc;

	if (space)
		return space;
	proc = open("/proc", O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	space = proc < 0 ? 0 : vb_runtime_dir_namespace(proc, "self");
	if (proc >= 0)
		close(proc);
	return space;
}

/* Start the daemon, and wait until it listens. False: the daemon does not, and
 * stderr says why. */
static bool start_own(const char *self)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		execl(self, "verbena", "fabric", "--daemon", "--sm", "--linger",
		      OWN_LINGER, "--make", OWN_MAKE, (char *)NULL);
		_exit(EXIT_NOT_RUN);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return refuse_place(OWN, strerror(errno));
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Asks the fabric for this host's node. Returns 0, -errno, or -EINVAL with the
 * reason in @error. */
static int ask_to_join(int fd, struct answer *a, char *error)
{
	char command[40], *said = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&said, &len);
	int rc = -ENOMEM;

	if (!to)
		return rc;
	snprintf(command, sizeof(command), "join\n%" PRIu64, own_space());
	rc = vb_fabricd_ask(fd, command, to, error);
	fclose(to);
	if (!rc && (!said || sscanf(said, "%64s %15s %15s", a->node, a->state,
				    a->manager) != 3))
		rc = -EPROTO;
	free(said);
	return rc;
}

/* Asks the fabric again and again, until the subnet manager has made the port
 * active. */
static int await_active(int fd, struct answer *a, char *error)
{
	const struct timespec nap = { 0, BRIEFLY };
	vb_time due = vb_clock_read() + PATIENCE;
	int rc;

	while (!(rc = ask_to_join(fd, a, error)) &&
	       strcmp(a->state, "active") != 0) {
		if (strcmp(a->manager, "managed") != 0 || vb_clock_read() > due)
			break;
		nanosleep(&nap, NULL);
	}
	return rc;
}

/* True if @rc says that the fabric's process ended during the question. */
static bool has_ended(int rc)
{
	return rc == -ECONNREFUSED || rc == -ECONNRESET || rc == -EPIPE;
}

/* Open a connection to the fabric, start the fabric if need be, and read its
 * answer into *@a. Returns a descriptor; or -errno, with @error for -EINVAL;
 * -ECANCELED: stderr says why. */
static int open_own(const char *self, struct answer *a, char *error)
{
	int rc = -ECONNREFUSED;

	for (unsigned i = 0; has_ended(rc) && i < TRIES; i++) {
		int fd = vb_fabricd_open(VB_FABRIC_DEFAULT);

		rc = fd < 0 ? fd : await_active(fd, a, error);
		if (!rc)
			return fd;
		if (fd >= 0)
			close(fd);
		if (rc == -ECONNREFUSED && !start_own(self))
			return -ECANCELED;
	}
	return rc;
}

/* The connection stays open for the program, at a number that it does not
 * expect to be free. */
static void keep_open(int fd)
{
	int kept = fcntl(fd, F_DUPFD, FIRST_FD);

	if (kept < 0)
		kept = fcntl(fd, F_DUPFD, STDERR_FILENO + 1);
	close(fd);
}

/* Joins the user's own fabric and writes the name of this host's node to
 * @node. */
static bool join_own(const char *self, char node[VB_TOPO_ID])
{
	char error[VB_TOPO_ERROR] = "";
	struct answer a;
	int fd = open_own(self, &a, error);

	if (fd == -ECANCELED)
		return false;
	if (fd < 0)
		return refuse_place(OWN, error[0] ? error : strerror(-fd));
	keep_open(fd);
	if (strcmp(a.state, "active") != 0)
		fprintf(stderr,
			"verbena run: warning: no subnet manager has "
			"configured the port of %s\n",
			a.node);
	snprintf(node, VB_TOPO_ID, "%s", a.node);
	return true;
}

/* Functions that work through the list of devices. */

/* Appends @spec to the list; for "ib", the place ib:NODE of this host. */
static bool take_spec(const char *self, const char *spec, char **list)
{
	char node[VB_TOPO_ID], place[VB_TOPO_ID + 8];

	if (strcmp(spec, OWN) == 0) {
		if (!join_own(self, node))
			return false;
		snprintf(place, sizeof(place), VB_FABRIC_PREFIX "%s", node);
		spec = place;
	} else if (strncmp(spec, VB_FABRIC_PREFIX, strlen(VB_FABRIC_PREFIX)) ==
			   0 &&
		   !check_place(spec)) {
		return false;
	}
	if (vb_cli_add_device(list, spec))
		return true;
	return refuse_place(spec, strerror(ENOMEM));
}

bool vb_cli_join_fabrics(const char *self, char **devices)
{
	char *list = NULL, *rest = *devices, *spec;
	bool taken = true;

	while (taken && (spec = strsep(&rest, ",")))
		taken = take_spec(self, spec, &list);
	free(*devices);
	*devices = list;
	return taken;
}
