/* SPDX-License-Identifier: BSD-2-Clause */
/* `verbena doctor`: what this system gives to programs. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "cli/finding.h"
#include "engine/runtime_dir.h"

#define KERNEL_MAJOR 5
#define KERNEL_MINOR 10
/* A program has a few dozen descriptors, and one or two for each program of
 * this host with which it talks. */
#define FILES_WANTED 256
#define FILE_BYTES   (64ull << 20)
#define SPACE_BYTES  (1ull << 30)
#define LOCKED_BYTES (64ull << 20)

bool vb_doctor_read(const char *path, char *text, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	size_t len = 0;
	ssize_t n = 1;

	if (fd < 0)
		return false;
	while (len < room - 1 && n > 0) {
		n = read(fd, text + len, room - 1 - len);
		len += n > 0 ? (size_t)n : 0;
	}
	text[len] = '\0';
	close(fd);
	return n >= 0;
}

static void look_at_kernel(void)
{
	struct utsname u;
	int major = 0, minor = 0;

	if (uname(&u) < 0)
		return;
	(void)sscanf(u.release, "%d.%d", &major, &minor);
	if (major > KERNEL_MAJOR ||
	    (major == KERNEL_MAJOR && minor >= KERNEL_MINOR))
		vb_finding_add("kernel", FINDING_OK, NULL, "Linux %s on %s",
			       u.release, u.machine);
	else
		vb_finding_add("kernel", FINDING_WARNING, NULL,
			       "Linux %s is older than %d.%d, the oldest with "
			       "which Verbena was tested",
			       u.release, KERNEL_MAJOR, KERNEL_MINOR);
}

static bool look_at_proc(void)
{
	if (access("/proc/self/stat", R_OK) == 0) {
		vb_finding_add("proc", FINDING_OK, NULL, "/proc is mounted");
		return true;
	}
	vb_finding_add("proc", FINDING_WARNING, "sudo mount -t proc proc /proc",
		       "/proc is not mounted: `verbena counters` and `rdma` "
		       "see no other program, and programs of one host "
		       "exchange packets");
	return false;
}

struct limit_rule {
	int resource;
	rlim_t wanted;
	enum vb_finding_status status;
	const char *id, *option, *unit, *effect;
};

/* Returns @value in the unit of ulimit(1): descriptors, or KiB of memory. */
static unsigned long long in_units(const struct limit_rule *r, rlim_t value)
{
	return r->resource == RLIMIT_NOFILE ? value : value >> 10;
}

static void look_at_limit(const struct limit_rule *r)
{
	struct rlimit l;

	if (getrlimit(r->resource, &l) < 0)
		return;
	if (l.rlim_cur == RLIM_INFINITY || l.rlim_cur >= r->wanted)
		return;
	vb_finding_add(r->id, r->status,
		       r->status == FINDING_NOTE
			       ? NULL
			       : vb_finding_text("ulimit -%s %llu", r->option,
						 in_units(r, r->wanted)),
		       "%s is limited to %llu%s: %s", r->unit,
		       in_units(r, l.rlim_cur),
		       r->resource == RLIMIT_NOFILE ? "" : " KiB", r->effect);
}

static void look_at_limits(void)
{
	// clang-format off
	static const struct limit_rule rules[] = {
		{ RLIMIT_NOFILE, FILES_WANTED, FINDING_WARNING, "nofile", "n",
		  "the number of open files",
		  "a program with several peers, or a broker with many "
		  "programs, runs out of descriptors" },
		{ RLIMIT_FSIZE, FILE_BYTES, FINDING_WARNING, "fsize", "f",
		  "the size of files",
		  "programs of one host exchange packets, because they cannot "
		  "make the memory that they share" },
		{ RLIMIT_AS, SPACE_BYTES, FINDING_WARNING, "as", "v",
		  "the address space",
		  "a program may run out of it" },
		{ RLIMIT_MEMLOCK, LOCKED_BYTES, FINDING_NOTE, "memlock", "l",
		  "locked memory",
		  "Verbena locks none, so registration of memory works all the "
		  "same; a program that calls mlock() itself may fail" },
	};
	// clang-format on

	for (unsigned i = 0; i < VB_COUNT(rules); i++)
		look_at_limit(&rules[i]);
}

static void look_at_namespaces(void)
{
	char map[256];
	unsigned from, to, length;

	if (!vb_doctor_read("/proc/self/uid_map", map, sizeof(map)) ||
	    sscanf(map, "%u %u %u", &from, &to, &length) != 3)
		return;
	if (from == 0 && to == 0 && length == UINT_MAX)
		return;
	vb_finding_add("namespaces", FINDING_NOTE, NULL,
		       "this is a user namespace (a container): its programs "
		       "exchange packets, not direct copies, with programs "
		       "outside of it");
}

static void look_at_directory(void)
{
	char path[PATH_MAX];
	int fd = vb_runtime_dir_open(path);

	if (fd >= 0) {
		close(fd);
		return;
	}
	vb_finding_add("files", FINDING_WARNING,
		       "export XDG_RUNTIME_DIR=A-DIRECTORY-THAT-YOU-OWN",
		       "no directory for the devices' files: /run/verbena, "
		       "$XDG_RUNTIME_DIR and /tmp cannot be used (%s), so "
		       "counters are lost, and programs that look into "
		       "/sys/class/infiniband (UCX) find no device",
		       strerror(-fd));
}

static void look_at_memory(void)
{
	int fd = memfd_create("verbena-doctor", MFD_CLOEXEC);

	if (fd >= 0) {
		close(fd);
		return;
	}
	vb_finding_add("memfd", FINDING_WARNING, NULL,
		       "memfd_create() is refused (%s), perhaps by a seccomp "
		       "profile: programs of one host exchange packets",
		       strerror(errno));
}

void vb_doctor_host(void)
{
	look_at_kernel();
	(void)look_at_proc();
	look_at_limits();
	look_at_namespaces();
	look_at_directory();
	look_at_memory();
}
