/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the places in fabrics that the user names in `verbena run --device`. A
 * node that the user names must exist in a running fabric. `--device ib` means
 * this host's adapter in the user's own fabric: each network namespace counts
 * as a host, and the first program that asks starts the fabric. The program
 * inherits a connection to the fabric, which keeps the fabric running as long
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
#include "link/netif.h"

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

/* Does the place's node exist in a running fabric? If not, stderr says why. */
static bool check_node(const char *spec, const struct vb_fabric_place *p)
{
	char error[VB_TOPO_ERROR] = "", command[VB_UMAD_NAME + 8];
	int rc;

	snprintf(command, sizeof(command), "has\n%s", p->node);
	rc = vb_fabricd_command(p->fabric, command, stdout, error);
	if (rc == -ECONNREFUSED)
		return refuse_fabric(spec, p->fabric);
	return rc ? refuse_place(spec, error[0] ? error : strerror(-rc)) : true;
}

static bool check_place(const char *spec)
{
	struct vb_fabric_place p;

	if (!vb_fabric_place_get(spec, strlen(spec), &p))
		return refuse_place(spec, "a place is ib:NODE or "
					  "ib:FABRIC/NODE, and ib alone is the "
					  "fabric of your own");
	return check_node(spec, &p);
}

/* Functions for the fabric that `--device ib` starts and joins. */

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

/* Asks the fabric for this host's node, or, if @which is not 0, for another one
 * for a VPI adapter with two such ports. Returns 0, -errno, or -EINVAL with the
 * reason in @error. */
static int ask_to_join(int fd, unsigned which, struct answer *a, char *error)
{
	const uint64_t host = vb_runtime_dir_host();
	char command[40], *said = NULL;
	size_t len = 0;
	FILE *to;
	int rc;

	if (!host) {
		snprintf(error, VB_TOPO_ERROR,
			 "nothing tells this network namespace from others: "
			 "mount /proc");
		return -EINVAL;
	}
	to = open_memstream(&said, &len);
	if (!to)
		return -ENOMEM;
	/* The fabric gives each host one adapter. So this function asks for a
	 * further adapter (@which) with another host number, as if this
	 * namespace were a second host. */
	snprintf(command, sizeof(command), "join\n%" PRIu64,
		 host + (uint64_t)which * 0x9e3779b97f4a7c15u);
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
static int await_active(int fd, unsigned which, struct answer *a, char *error)
{
	const struct timespec nap = { 0, BRIEFLY };
	vb_time due = vb_clock_read() + PATIENCE;
	int rc;

	while (!(rc = ask_to_join(fd, which, a, error)) &&
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
static int open_own(const char *self, unsigned which, struct answer *a,
		    char *error)
{
	int rc = -ECONNREFUSED;

	for (unsigned i = 0; has_ended(rc) && i < TRIES; i++) {
		int fd = vb_fabricd_open(VB_FABRIC_DEFAULT);

		rc = fd < 0 ? fd : await_active(fd, which, a, error);
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

/* Joins the user's own fabric and writes the name of this host's node to @node;
 * @which: its first or its second one, 0 or 1. */
static bool join_own(const char *self, unsigned which, char node[VB_TOPO_ID])
{
	char error[VB_TOPO_ERROR] = "";
	struct answer a;
	int fd = open_own(self, which, &a, error);

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

/* Functions for the ports of VPI adapters. */

/* Does the interface exist? It may be down, because the adapter has another
 * port. */
static bool vpi_check_interface(const char *spec, const char *name)
{
	struct vb_netif *list;
	bool infiniband = false, found = false;
	char why[VB_VPI_WHY];
	unsigned count;
	int rc = vb_netif_list(&list, &count);

	if (rc)
		return refuse_place(spec, strerror(-rc));
	for (unsigned i = 0; i < count; i++) {
		if (strcmp(list[i].name, name) != 0)
			continue;
		found = true;
		infiniband = list[i].infiniband;
	}
	vb_netif_free(list, count);
	if (found && !infiniband)
		return true;
	snprintf(why, sizeof(why),
		 found ? "interface %s carries IP over InfiniBand; its adapter "
			 "is a place in a fabric (ib:NODE)"
		       : "there is no interface %s",
		 name);
	return refuse_place(spec, why);
}

/* Find the port's place. *@own: number of nodes of the user's own fabric that
 * ports of the VPI adapter have so far. */
static bool vpi_find_port(const char *self, const char *spec,
			  struct vb_vpi_port *port, unsigned *own)
{
	struct vb_umad_info info;
	char why[VB_VPI_WHY];

	if (port->kind != VPI_IB)
		return vpi_check_interface(spec, port->netdev);
	if (!port->place.node[0]) {
		char node[VB_TOPO_ID], place[VB_TOPO_ID + 8];

		if (!join_own(self, (*own)++, node))
			return false;
		snprintf(place, sizeof(place), VB_FABRIC_PREFIX "%s", node);
		if (!vb_fabric_place_get(place, strlen(place), &port->place))
			return refuse_place(spec, strerror(EINVAL));
		port->place.port = 1;
	}
	if (!check_node(spec, &port->place))
		return false;
	if (vb_fabric_query(&port->place, port->place.port, &info) == 0 &&
	    info.has_port)
		return true;
	snprintf(why, sizeof(why), "node %s has no port %u for programs",
		 port->place.node, port->place.port);
	return refuse_place(spec, why);
}

/* Appends the VPI adapter @spec to the list. */
static bool join_vpi(const char *self, const char *spec, char **list)
{
	char why[VB_VPI_WHY], put[2 * VB_UMAD_NAME + 2 * VB_FABRIC_NAME + 32];
	struct vb_vpi vpi;
	unsigned own = 0;

	if (!vb_vpi_get(spec, strlen(spec), &vpi, why))
		return refuse_place(spec, why);
	for (unsigned i = 0; i < VB_VPI_PORTS; i++)
		if (!vpi_find_port(self, spec, &vpi.port[i], &own))
			return false;
	/* Check the ports again: the node that "ib" stands for may be the one
	 * that the other port names. */
	if (!vb_vpi_put(&vpi, put, sizeof(put)) ||
	    !vb_vpi_get(put, strlen(put), &vpi, why))
		return refuse_place(spec, why);
	return vb_cli_add_device(list, put) ||
	       refuse_place(spec, strerror(ENOMEM));
}

/* Functions that work through the list of devices. */

/* Appends @spec to the list; for "ib", the place ib:NODE of this host. */
static bool take_spec(const char *self, const char *spec, char **list)
{
	char node[VB_TOPO_ID], place[VB_TOPO_ID + 8];

	if (vb_vpi_is(spec, strlen(spec)))
		return join_vpi(self, spec, list);
	if (strcmp(spec, OWN) == 0) {
		if (!join_own(self, 0, node))
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
	char *list = NULL, *spec = *devices;
	bool taken = true;

	while (taken && spec) {
		size_t len = vb_spec_length(spec);
		char *next = spec[len] ? spec + len + 1 : NULL;

		spec[len] = '\0';
		taken = take_spec(self, spec, &list);
		spec = next;
	}
	free(*devices);
	*devices = list;
	return taken;
}
