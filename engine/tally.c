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
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_limit.h"
#include "base/log.h"
#include "engine/place.h"

#define NAME	  "verbena-counters"
#define LINK_NAME "/memfd:" NAME

/* The layout changes with the counters that there are. */
#define MAGIC (0x7662636e74010000u + CNT_COUNT)

/* Of the memfd's beginning, and of the file. */
struct record {
	uint64_t magic;
	char device[64];
	int64_t maker;
	_Atomic uint64_t counts[CNT_COUNT];
};

/* The memfd. */
struct memory {
	struct record record;
	_Alignas(4096) struct vb_roster_sheet sheet;
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

static struct memory *memory_of(struct vb_adapter *a)
{
	return VB_CONTAINER_OF(a->counters, struct memory, record.counts[0]);
}

static bool counts_in_itself(const struct vb_adapter *a)
{
	return a->counters == a->own_counters;
}

/* Other processes of the user may open it: none can cut it off. */
static int make_memory(void)
{
	int fd = vb_file_may_have(sizeof(struct memory))
			 ? memfd_create(NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING)
			 : -1;

	if (fd >= 0 && ftruncate(fd, sizeof(struct memory)) == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

void vb_tally_open(struct vb_adapter *a)
{
	int fd = make_memory();
	struct memory *m = MAP_FAILED;

	if (fd >= 0)
		m = mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE, MAP_SHARED,
			 fd, 0);
	if (m == MAP_FAILED) {
		if (fd >= 0)
			close(fd);
		vb_log(LOG_DEBUG, "%s: nobody else sees its counts", a->name);
		return;
	}
	snprintf(m->record.device, sizeof(m->record.device), "%s", a->name);
	m->record.maker = getpid();
	m->record.magic = MAGIC;
	a->counters = m->record.counts;
	a->counters_fd = fd;
	vb_roster_use(&a->roster, &m->sheet);
}

void vb_tally_save(struct vb_adapter *a)
{
	if (!counts_in_itself(a))
		add_to_totals(a);
}

void vb_tally_close(struct vb_adapter *a)
{
	struct memory *m = memory_of(a);

	if (counts_in_itself(a))
		return;
	add_to_totals(a);
	vb_roster_use(&a->roster, NULL);
	a->counters = a->own_counters;
	munmap(m, sizeof(*m));
	close(a->counters_fd);
}

void vb_tally_after_fork(struct vb_adapter *a)
{
	if (!counts_in_itself(a))
		close(a->counters_fd);
}

/*
 * The reader's.
 */

struct walk {
	void (*look)(void *arg, const struct vb_tally_found *found);
	void *arg;
	uint64_t space;
	int proc;
};

/* Another process wrote it: anything may be in it. */
static bool is_record(struct record *r)
{
	r->device[sizeof(r->device) - 1] = '\0';
	for (char *c = r->device; *c; c++)
		if (!isgraph((unsigned char)*c))
			*c = '?';
	return r->magic == MAGIC && r->device[0];
}

static void look_closer(const struct walk *w, int fd, int holder)
{
	struct vb_tally_found found = {
		.fd = fd,
		.holder = holder,
		.sheet = offsetof(struct memory, sheet),
	};
	struct record r;
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    pread(fd, &r, sizeof(r), 0) != sizeof(r) || !is_record(&r))
		return;
	found.ino = st.st_ino;
	found.maker = (int)r.maker;
	memcpy(found.device, r.device, sizeof(found.device));
	w->look(w->arg, &found);
}

static void look_at(const struct walk *w, int fds, const char *name, int holder)
{
	char link[64] = "";
	int fd;

	if (readlinkat(fds, name, link, sizeof(link) - 1) <= 0 ||
	    strncmp(link, LINK_NAME, strlen(LINK_NAME)) != 0)
		return;
	/* Any file may have that name; a FIFO must not make us wait. */
	fd = openat(fds, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return;
	look_closer(w, fd, holder);
	close(fd);
}

/* Processes that come, go or are another's are passed over. */
static void look_into(const struct walk *w, const char *pid)
{
	char path[NAME_MAX + 8];
	const struct dirent *e;
	DIR *d;
	int fd;

	snprintf(path, sizeof(path), "%s/fd", pid);
	fd = vb_place_enter(w->proc, path);
	d = fd < 0 ? NULL : fdopendir(fd);
	while (d && (e = readdir(d)))
		look_at(w, fd, e->d_name, atoi(pid));
	if (d)
		closedir(d);
	else if (fd >= 0)
		close(fd);
}

static void walk(const struct walk *w)
{
	DIR *d = fdopendir(dup(w->proc));
	const struct dirent *e;

	while (d && (e = readdir(d)))
		if (isdigit((unsigned char)e->d_name[0]) &&
		    vb_place_namespace(w->proc, e->d_name) == w->space)
			look_into(w, e->d_name);
	if (d)
		closedir(d);
}

int vb_tally_each(void (*look)(void *arg, const struct vb_tally_found *found),
		  void *arg)
{
	struct walk w = { .look = look, .arg = arg };

	w.proc = vb_place_enter(AT_FDCWD, "/proc");
	if (w.proc < 0)
		return w.proc;
	w.space = vb_place_namespace(w.proc, "self");
	walk(&w);
	close(w.proc);
	return 0;
}

struct sums {
	struct vb_tally *rows;
	unsigned count;
	ino_t seen[4096]; /* a child has its parent's descriptors */
	unsigned seen_count;
	int rc;
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

static void add_record(struct sums *s, struct record *r)
{
	struct vb_tally *row = is_record(r) ? row_of(s, r->device) : NULL;

	for (unsigned i = 0; row && i < CNT_COUNT; i++)
		row->counts[i] += r->counts[i];
}

static bool is_new(struct sums *s, ino_t ino)
{
	if (s->seen_count == VB_COUNT(s->seen))
		return false;
	for (unsigned i = 0; i < s->seen_count; i++)
		if (s->seen[i] == ino)
			return false;
	s->seen[s->seen_count++] = ino;
	return true;
}

static void add_found(void *arg, const struct vb_tally_found *found)
{
	struct sums *s = arg;
	struct record r;

	if (is_new(s, found->ino) &&
	    pread(found->fd, &r, sizeof(r), 0) == sizeof(r))
		add_record(s, &r);
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
	int rc = vb_tally_each(add_found, s);

	if (s->rc == 0)
		s->rc = rc;
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
	add_all(s);
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
