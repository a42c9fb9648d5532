/* SPDX-License-Identifier: BSD-2-Clause */
/* `verbena doctor`: which program holds UDP port 4791 in this network
 * namespace.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "cli/finding.h"
#include "engine/lease.h"
#include "engine/probe.h"

#define ROCE_PORT     4791
#define TABLE_BYTES   (1u << 20)
#define PROGRAM_NAMES "@verbena/slot/"

struct holder {
	unsigned long inode; /* 0: no socket has the port */
	unsigned uid;
	int pid; /* 0: no process was found */
	char name[64];
};

/* Look for the port in a table of /proc/net. */
static void find_port_in(const char *path, struct holder *h)
{
	char *text = malloc(TABLE_BYTES), *rest = text, *line;
	unsigned port, uid;
	unsigned long inode;

	if (text && vb_doctor_read(path, text, TABLE_BYTES))
		while (!h->inode && (line = strsep(&rest, "\n")))
			if (sscanf(line,
				   " %*d: %*[0-9A-Fa-f]:%x %*s %*s %*s %*s %*s "
				   "%u %*s %lu",
				   &port, &uid, &inode) == 3 &&
			    port == ROCE_PORT) {
				h->inode = inode;
				h->uid = uid;
			}
	free(text);
}

/* Has process @pid the socket open? */
static bool has_socket(const char *pid, unsigned long inode)
{
	char path[280], link[64], wanted[64];
	bool found = false;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	snprintf(wanted, sizeof(wanted), "socket:[%lu]", inode);
	d = opendir(path);
	for (const struct dirent *e = d ? readdir(d) : NULL; e && !found;
	     e = readdir(d)) {
		ssize_t n =
			readlinkat(dirfd(d), e->d_name, link, sizeof(link) - 1);

		if (n > 0) {
			link[n] = '\0';
			found = strcmp(link, wanted) == 0;
		}
	}
	if (d)
		closedir(d);
	return found;
}

static void read_name(const char *pid, struct holder *h)
{
	char path[280];

	h->pid = atoi(pid);
	snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	if (!vb_doctor_read(path, h->name, sizeof(h->name)))
		snprintf(h->name, sizeof(h->name), "unknown");
	h->name[strcspn(h->name, "\n")] = '\0';
}

static void find_process(struct holder *h)
{
	DIR *d = opendir("/proc");

	for (const struct dirent *e = d ? readdir(d) : NULL; e && !h->pid;
	     e = readdir(d))
		if (isdigit((unsigned char)e->d_name[0]) &&
		    has_socket(e->d_name, h->inode))
			read_name(e->d_name, h);
	if (d)
		closedir(d);
}

static struct holder find_holder_of_port(void)
{
	struct holder h = { 0 };

	find_port_in("/proc/net/udp", &h);
	if (!h.inode)
		find_port_in("/proc/net/udp6", &h);
	if (h.inode)
		find_process(&h);
	return h;
}

/* Does a program with a RoCE device run in this network namespace? Such a
 * program has bound the name of its slot. A program without a RoCE device has
 * bound a name, too, with a number from VB_SLOT_ALONE on, but has no socket of
 * the port.
 */
static bool has_programs(void)
{
	char *text = malloc(TABLE_BYTES);
	const char *at = NULL;
	bool has = false;

	if (text && vb_doctor_read("/proc/net/unix", text, TABLE_BYTES))
		at = strstr(text, PROGRAM_NAMES);
	for (; at && !has; at = strstr(at, PROGRAM_NAMES)) {
		unsigned long slot;

		at += strlen(PROGRAM_NAMES);
		slot = strtoul(at, NULL, 10);
		has = slot > 0 && slot < VB_SLOT_ALONE;
	}
	free(text);
	return has;
}

static void say_other(const struct holder *h)
{
	if (h->pid)
		vb_finding_add(
			"port", FINDING_PROBLEM,
			vb_finding_text("kill %d", h->pid),
			"UDP port 4791 is taken by %s (PID %d, user %u), "
			"so no program here can use RoCE; end that "
			"program, or use another network namespace",
			h->name, h->pid, h->uid);
	else if (access("/sys/module/rdma_rxe", F_OK) == 0 && h->uid == 0)
		vb_finding_add("port", FINDING_PROBLEM,
			       "sudo rdma link delete DEVICE   # see rdma link",
			       "UDP port 4791 is taken by the kernel's own "
			       "RoCE in software (rdma_rxe), so no program "
			       "here can use Verbena's");
	else if (h->inode)
		vb_finding_add("port", FINDING_PROBLEM,
			       "sudo ss -lunp sport = :4791",
			       "UDP port 4791 is taken by a program of user %u "
			       "that this user may not see, so no program "
			       "here can use RoCE",
			       h->uid);
	else
		vb_finding_add("port", FINDING_PROBLEM,
			       "ss -lunp sport = :4791",
			       "UDP port 4791 is taken, so no program here can "
			       "use RoCE; without /proc nobody can say by "
			       "whom");
}

void vb_doctor_port(void)
{
	struct vb_ipc report;
	struct holder h;
	int rc = vb_lease_status(&report);

	if (rc == 0) {
		vb_finding_add("broker", FINDING_OK, NULL,
			       "a broker runs (PID %u): %u program%s with RoCE "
			       "devices (%s)",
			       report.pid, report.programs,
			       report.programs == 1 ? "" : "s", report.text);
		if (!strstr(report.text, " 0 slots") &&
		    strncmp(report.text, "0 slots", 7) != 0) {
			vb_finding_add("port", FINDING_OK, NULL,
				       "UDP port 4791 is the broker's");
			return;
		}
	} else if (rc != -ECONNREFUSED) {
		vb_finding_add("broker", FINDING_PROBLEM, "verbena status",
			       "the broker of this network namespace does not "
			       "answer: %s",
			       strerror(-rc));
	} else {
		vb_finding_add("broker", FINDING_OK, NULL,
			       "no broker runs; the first program with a RoCE "
			       "device starts one");
	}
	h = find_holder_of_port();
	if (!h.inode && !vb_probe_port_taken())
		vb_finding_add("port", FINDING_OK, NULL,
			       "UDP port 4791 is free");
	else if (has_programs())
		vb_finding_add("port", FINDING_NOTE, NULL,
			       "UDP port 4791 belongs to programs of Verbena "
			       "whose broker has ended; they start another "
			       "one");
	else
		say_other(&h);
}
