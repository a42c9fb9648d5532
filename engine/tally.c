/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs count into a memfd, which has no name and goes with its program;
 * a reader finds it among the descriptors of the processes that it may look
 * into, which are the user's. What programs counted that have ended is in a
 * file of one record a device.
 */
#include "engine/tally.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "engine/place.h"

#define NAME	  "verbena-counters"
#define LINK_NAME "/memfd:" NAME

/* The layout changes with the counters that there are. */
#define MAGIC (0x7662636e74000000u + CNT_COUNT)

/* Of the memfd, and of the file. */
struct record {
	uint64_t magic;
	char device[64];
	_Atomic uint64_t counts[CNT_COUNT];
};

/*
 * The file.
 */

/* Opened and locked; -errno. */
static int open_totals(void)
{
	int proc = vb_place_enter(AT_FDCWD, "/proc"), base, fd;
	char path[PATH_MAX], name[64];
	uint64_t space;

	if (proc < 0)
		return proc;
	space = vb_place_namespace(proc, "self");
	close(proc);
	base = space ? vb_place_open(path) : -ENOENT;
	if (base < 0)
		return base;
	snprintf(name, sizeof(name), "%llu.totals", (unsigned long long)space);
	fd = openat(base, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
		    0600);
	if (fd < 0)
		fd = -errno;
	close(base);
	while (fd >= 0 && flock(fd, LOCK_EX) < 0 && errno == EINTR)
		;
	return fd;
}

/* Where @device's record is, or where the next one goes. */
static off_t find_total(int fd, const char *device, struct record *r)
{
	off_t at = 0;

	while (pread(fd, r, sizeof(*r), at) == sizeof(*r)) {
		if (r->magic == MAGIC &&
		    strncmp(r->device, device, sizeof(r->device)) == 0)
			return at;
		at += sizeof(*r);
	}
	*r = (struct record){ .magic = MAGIC };
	snprintf(r->device, sizeof(r->device), "%s", device);
	return at;
}

static void add_to_totals(struct vb_adapter *a)
{
	int fd = open_totals();
	struct record total;
	off_t at;

	if (fd < 0) {
		vb_log(LOG_INFO, "%s: its counts are lost: %s", a->name,
		       strerror(-fd));
		return;
	}
	at = find_total(fd, a->name, &total);
	for (unsigned i = 0; i < CNT_COUNT; i++)
		total.counts[i] += atomic_exchange(&a->counters[i], 0);
	if (pwrite(fd, &total, sizeof(total), at) != sizeof(total))
		vb_log(LOG_INFO, "%s: its counts are lost", a->name);
	close(fd);
}

/*
 * The program's.
 */

static struct record *record_of(struct vb_adapter *a)
{
	return VB_CONTAINER_OF(a->counters, struct record, counts[0]);
}

static bool counts_in_itself(const struct vb_adapter *a)
{
	return a->counters == a->own_counters;
}

void vb_tally_open(struct vb_adapter *a)
{
	int fd = memfd_create(NAME, MFD_CLOEXEC);
	struct record *r = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, sizeof(*r)) == 0)
		r = mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE, MAP_SHARED,
			 fd, 0);
	if (r == MAP_FAILED) {
		if (fd >= 0)
			close(fd);
		vb_log(LOG_DEBUG, "%s: nobody else sees its counts", a->name);
		return;
	}
	snprintf(r->device, sizeof(r->device), "%s", a->name);
	r->magic = MAGIC;
	a->counters = r->counts;
	a->counters_fd = fd;
}

void vb_tally_save(struct vb_adapter *a)
{
	if (!counts_in_itself(a))
		add_to_totals(a);
}

void vb_tally_close(struct vb_adapter *a)
{
	struct record *r = record_of(a);

	if (counts_in_itself(a))
		return;
	add_to_totals(a);
	a->counters = a->own_counters;
	munmap(r, sizeof(*r));
	close(a->counters_fd);
}

/*
 * The reader's.
 */

struct sums {
	struct vb_tally *rows;
	unsigned count;
	ino_t seen[4096]; /* a child has its parent's descriptors */
	unsigned seen_count;
	uint64_t space;
	int proc, rc;
};

static struct vb_tally *row_of(struct sums *s, const char *device)
{
	struct vb_tally *more;

	for (unsigned i = 0; i < s->count; i++)
		if (strcmp(s->rows[i].device, device) == 0)
			return &s->rows[i];
	more = reallocarray(s->rows, s->count + 1, sizeof(*more));
	if (!more) {
		s->rc = -ENOMEM;
		return NULL;
	}
	s->rows = more;
	more += s->count++;
	*more = (struct vb_tally){ 0 };
	snprintf(more->device, sizeof(more->device), "%s", device);
	return more;
}

/* Another process wrote it: anything may be in it. */
static void add_record(struct sums *s, struct record *r)
{
	struct vb_tally *row;

	r->device[sizeof(r->device) - 1] = '\0';
	for (char *c = r->device; *c; c++)
		if (!isgraph((unsigned char)*c))
			*c = '?';
	row = r->magic == MAGIC && r->device[0] ? row_of(s, r->device) : NULL;
	for (unsigned i = 0; row && i < CNT_COUNT; i++)
		row->counts[i] += r->counts[i];
}

static bool is_new(struct sums *s, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || s->seen_count == VB_COUNT(s->seen))
		return false;
	for (unsigned i = 0; i < s->seen_count; i++)
		if (s->seen[i] == st.st_ino)
			return false;
	s->seen[s->seen_count++] = st.st_ino;
	return true;
}

static void look_at(struct sums *s, int fds, const char *name)
{
	char link[64] = "";
	struct record r;
	int fd;

	if (readlinkat(fds, name, link, sizeof(link) - 1) <= 0 ||
	    strncmp(link, LINK_NAME, strlen(LINK_NAME)) != 0)
		return;
	fd = openat(fds, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (is_new(s, fd) && pread(fd, &r, sizeof(r), 0) == sizeof(r))
		add_record(s, &r);
	close(fd);
}

/* Processes that come, go or are another's are passed over. */
static void look_into(struct sums *s, const char *pid)
{
	char path[NAME_MAX + 8];
	const struct dirent *e;
	DIR *d;
	int fd;

	snprintf(path, sizeof(path), "%s/fd", pid);
	fd = vb_place_enter(s->proc, path);
	d = fd < 0 ? NULL : fdopendir(fd);
	while (d && (e = readdir(d)))
		look_at(s, fd, e->d_name);
	if (d)
		closedir(d);
	else if (fd >= 0)
		close(fd);
}

static void add_programs(struct sums *s)
{
	DIR *d = fdopendir(dup(s->proc));
	const struct dirent *e;

	while (d && (e = readdir(d)))
		if (isdigit((unsigned char)e->d_name[0]) &&
		    vb_place_namespace(s->proc, e->d_name) == s->space)
			look_into(s, e->d_name);
	if (d)
		closedir(d);
}

static void add_totals(struct sums *s, int fd)
{
	struct record r;

	for (off_t at = 0; pread(fd, &r, sizeof(r), at) == sizeof(r);
	     at += sizeof(r))
		add_record(s, &r);
}

/* With the file locked no program moves its counts there meanwhile. */
static void add_all(struct sums *s)
{
	int fd = open_totals();

	s->space = vb_place_namespace(s->proc, "self");
	add_programs(s);
	if (fd < 0)
		return;
	add_totals(s, fd);
	close(fd);
}

int vb_tally_read(struct vb_tally **rows, unsigned *count)
{
	struct sums *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return -ENOMEM;
	s->proc = vb_place_enter(AT_FDCWD, "/proc");
	s->rc = VB_MIN(s->proc, 0);
	if (s->proc >= 0) {
		add_all(s);
		close(s->proc);
	}
	rc = s->rc;
	if (rc == 0) {
		*rows = s->rows;
		*count = s->count;
	} else {
		free(s->rows);
	}
	free(s);
	return rc;
}
