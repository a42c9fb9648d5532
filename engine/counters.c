/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program's counters and roster, as other programs see them.
 *
 * The program has a memfd, which goes away with the program. A reader finds it
 * among the descriptors of the processes that it may look into: those of its
 * user. The counts themselves are in a file, whose descriptor the memfd names:
 * the file stays when the program is killed, and then no process has it locked.
 * The next program that opens a device or reads counters adds such a file to
 * the totals, a file with one record for each device, to which programs that
 * end normally add their counts themselves. Where the program has no directory
 * for files, it counts in the memfd.
 */
#include "engine/counters.h"

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
#include "base/fork.h"
#include "base/log.h"
#include "base/rand.h"
#include "base/spare.h"
#include "engine/runtime_dir.h"

#define NAME	  "verbena-counters"
#define LINK_NAME "/memfd:" NAME

#define SUFFIX ".counts"

/* The value that a record begins with. It contains the number of counters, on
 * which the layout depends. */
#define MAGIC (0x7662636e74020000u + CNT_COUNT)

/* The start of the memfd, and each record of a file. */
struct record {
	uint64_t magic;
	char device[64];
	int64_t maker;
	/* The descriptor, in the process that made it, of the file with the
	 * counts; -1: the counts are in this record. */
	int64_t file;
	_Atomic uint64_t counts[CNT_COUNT];
};

/* The contents of the memfd. */
struct memory {
	struct record record;
	_Alignas(4096) struct vb_roster_sheet sheet;
};

/* The state that a program keeps for one of its devices. */
struct vb_counter_file_own {
	struct memory *memory;
	/* the counts in the file; NULL: there is no file, and the counts are in
	 * @memory */
	struct record *file;
	int fd; /* descriptor of the file */
	char name[80];
};

/* The directory of the files, and the file of totals in it, which this process
 * has locked. */
struct totals {
	int base, fd;
	/* the first part of all file names of this network namespace */
	char prefix[48];
};

static int name_namespace(struct totals *t)
{
	int proc = vb_runtime_dir_enter(AT_FDCWD, "/proc");
	uint64_t space;

	if (proc < 0)
		return proc;
	space = vb_runtime_dir_namespace(proc, "self");
	close(proc);
	if (!space)
		return -ENOENT;
	snprintf(t->prefix, sizeof(t->prefix), "%llu.%016llx",
		 (unsigned long long)space,
		 (unsigned long long)vb_runtime_dir_space());
	return 0;
}

static void close_totals(const struct totals *t)
{
	close(t->fd);
	close(t->base);
}

static int open_totals(struct totals *t)
{
	char path[PATH_MAX], name[64];
	int rc = name_namespace(t);

	if (rc)
		return rc;
	t->base = vb_runtime_dir_open(path);
	if (t->base < 0)
		return t->base;
	/* A program of another version has records of another length. */
	snprintf(name, sizeof(name), "%s.%u.totals", t->prefix, CNT_COUNT);
	t->fd = openat(t->base, name,
		       O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK,
		       0600);
	rc = t->fd < 0 ? -errno : vb_runtime_dir_lock(t->fd);
	if (rc == 0)
		return 0;
	if (t->fd >= 0)
		close(t->fd);
	close(t->base);
	return rc;
}

/* Returns the offset of @device's record in the totals, or the offset at which
 * to append one. */
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

static bool write_total(const struct totals *t, const struct record *total,
			off_t at)
{
	return vb_file_write(t->fd, total, sizeof(*total), at) ==
	       (ssize_t)sizeof(*total);
}

static void add_to_totals(struct vb_adapter *a)
{
	struct record total;
	struct totals t;
	int rc = open_totals(&t);
	off_t at;

	if (rc) {
		vb_log(LOG_INFO, "%s: its counts are lost: %s", a->name,
		       strerror(-rc));
		return;
	}
	at = find_total(t.fd, a->name, &total);
	for (unsigned i = 0; i < CNT_COUNT; i++)
		total.counts[i] += atomic_exchange(&a->counters[i], 0);
	if (!write_total(&t, &total, at))
		vb_log(LOG_INFO, "%s: its counts are lost", a->name);
	close_totals(&t);
}

/* Is @r a valid record? Replaces unprintable characters in its device's name:
 * another process wrote the record, so it can contain anything. */
static bool is_record(struct record *r)
{
	r->device[sizeof(r->device) - 1] = '\0';
	for (char *c = r->device; *c; c++)
		if (!isgraph((unsigned char)*c))
			*c = '?';
	return r->magic == MAGIC && r->device[0];
}

/* Add the counts in @fd to the totals, unless a living program has locked the
 * file. True: the file may be deleted. */
static bool eng_take_over(const struct totals *t, int fd)
{
	struct record r, total;
	off_t at;

	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return false;
	if (pread(fd, &r, sizeof(r), 0) != sizeof(r) || !is_record(&r))
		return true;
	at = find_total(t->fd, r.device, &total);
	for (unsigned i = 0; i < CNT_COUNT; i++)
		total.counts[i] += r.counts[i];
	return write_total(t, &total, at);
}

static void look_at_counts(const struct totals *t, const char *name)
{
	size_t length = strlen(name), tail = strlen(SUFFIX);
	int fd;

	if (strncmp(name, t->prefix, strlen(t->prefix)) != 0 || length < tail ||
	    strcmp(name + length - tail, SUFFIX) != 0)
		return;
	fd = openat(t->base, name,
		    O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return;
	if (eng_take_over(t, fd))
		unlinkat(t->base, name, 0);
	close(fd);
}

/* Add the files of programs that were killed to the totals, and delete them. */
static void gather_left(const struct totals *t)
{
	DIR *d = vb_runtime_dir_list(t->base, ".");
	const struct dirent *e;

	if (!d)
		return;
	while ((e = readdir(d)))
		look_at_counts(t, e->d_name);
	closedir(d);
}

static bool counts_in_itself(const struct vb_adapter *a)
{
	return a->counters == a->own_counters;
}

/* Make the memfd. Other processes of the user can open it, so seals keep them
 * from truncating it, which would raise SIGBUS here. */
static int eng_make_memory(void)
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

/* Make the file. It is allocated whole at once: a page that a full file system
 * cannot provide later would raise SIGBUS. */
static int make_file(const struct totals *t, struct vb_counter_file_own *own)
{
	int fd, rc;

	snprintf(own->name, sizeof(own->name), "%s.%08x" SUFFIX, t->prefix,
		 vb_rand32());
	if (!vb_file_may_have(sizeof(struct record)))
		return -EFBIG;
	fd = openat(t->base, own->name,
		    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	vb_fork_closes(fd);
	rc = -posix_fallocate(fd, 0, sizeof(struct record));
	if (rc == 0 && flock(fd, LOCK_SH | LOCK_NB) < 0)
		rc = -errno;
	if (rc == 0)
		return fd;
	unlinkat(t->base, own->name, 0);
	close(fd);
	return rc;
}

static void map_file(const struct totals *t, struct vb_counter_file_own *own)
{
	own->file = NULL;
	own->fd = make_file(t, own);
	if (own->fd < 0)
		return;
	own->file = mmap(NULL, sizeof(*own->file), PROT_READ | PROT_WRITE,
			 MAP_SHARED, own->fd, 0);
	/* Another process of the user can truncate the file. */
	if (own->file != MAP_FAILED) {
		if (vb_spare_add(own->file, sizeof(*own->file)) == 0)
			return;
		munmap(own->file, sizeof(*own->file));
	}
	own->file = NULL;
	unlinkat(t->base, own->name, 0);
	close(own->fd);
}

/* Make and lock the file of counts. The totals are locked meanwhile, so that no
 * other program takes the new file for one of a killed program before it is
 * locked. */
static void open_file(struct vb_counter_file_own *own)
{
	struct totals t;

	own->file = NULL;
	if (open_totals(&t))
		return;
	gather_left(&t);
	map_file(&t, own);
	close_totals(&t);
}

static void close_file(const struct vb_counter_file_own *own)
{
	char path[PATH_MAX];
	int base;

	if (!own->file)
		return;
	base = vb_runtime_dir_open(path);
	if (base >= 0) {
		unlinkat(base, own->name, 0);
		close(base);
	}
	vb_spare_drop(own->file);
	munmap(own->file, sizeof(*own->file));
	close(own->fd);
}

static void sign(struct record *r, const struct vb_adapter *a, int file)
{
	snprintf(r->device, sizeof(r->device), "%s", a->name);
	r->maker = getpid();
	r->file = file;
	r->magic = MAGIC;
}

static struct vb_counter_file_own *make_own(const struct vb_adapter *a, int fd)
{
	struct vb_counter_file_own *own = malloc(sizeof(*own));
	struct memory *m = MAP_FAILED;

	if (own && fd >= 0)
		m = mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE, MAP_SHARED,
			 fd, 0);
	if (m == MAP_FAILED) {
		free(own);
		return NULL;
	}
	own->memory = m;
	open_file(own);
	if (own->file)
		sign(own->file, a, -1);
	sign(&m->record, a, own->file ? own->fd : -1);
	return own;
}

void vb_counter_file_open(struct vb_adapter *a)
{
	int fd = eng_make_memory();
	struct vb_counter_file_own *own = make_own(a, fd);

	if (!own) {
		if (fd >= 0)
			close(fd);
		vb_log(LOG_DEBUG, "%s: other programs cannot see its counters",
		       a->name);
		return;
	}
	a->counter_rows = own;
	a->counters = (own->file ? own->file : &own->memory->record)->counts;
	a->counters_fd = fd;
	vb_roster_use(&a->roster, &own->memory->sheet);
}

void vb_counter_file_save(struct vb_adapter *a)
{
	if (!counts_in_itself(a))
		add_to_totals(a);
}

void vb_counter_file_close(struct vb_adapter *a)
{
	struct vb_counter_file_own *own = a->counter_rows;

	if (counts_in_itself(a))
		return;
	add_to_totals(a);
	vb_roster_use(&a->roster, NULL);
	a->counters = a->own_counters;
	close_file(own);
	munmap(own->memory, sizeof(*own->memory));
	free(own);
	close(a->counters_fd);
}

struct walk {
	void (*look)(void *arg, const struct vb_counter_file_found *found);
	void *arg;
	uint64_t space;
	int proc;
};

static void look_closer(const struct walk *w, int fd, int holder)
{
	struct vb_counter_file_found found = {
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
	/* A file of any kind may have that name; opening a FIFO must not
	 * block. */
	fd = openat(fds, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return;
	look_closer(w, fd, holder);
	close(fd);
}

/* Look for such memory among the descriptors of process @pid. Processes that
 * start or end meanwhile, or belong to another user, are skipped. */
static void look_into(const struct walk *w, const char *pid)
{
	char path[NAME_MAX + 8];
	const struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "%s/fd", pid);
	d = vb_runtime_dir_list(w->proc, path);
	while (d && (e = readdir(d)))
		look_at(w, dirfd(d), e->d_name, atoi(pid));
	if (d)
		closedir(d);
}

static void walk(const struct walk *w)
{
	DIR *d = vb_runtime_dir_list(w->proc, ".");
	const struct dirent *e;

	while (d && (e = readdir(d)))
		if (isdigit((unsigned char)e->d_name[0]) &&
		    vb_runtime_dir_namespace(w->proc, e->d_name) == w->space)
			look_into(w, e->d_name);
	if (d)
		closedir(d);
}

int vb_counter_file_each(
	void (*look)(void *arg, const struct vb_counter_file_found *found),
	void *arg)
{
	struct walk w = { .look = look, .arg = arg };

	w.proc = vb_runtime_dir_enter(AT_FDCWD, "/proc");
	if (w.proc < 0)
		return w.proc;
	w.space = vb_runtime_dir_namespace(w.proc, "self");
	walk(&w);
	close(w.proc);
	return 0;
}

struct sums {
	struct vb_counter_file *rows;
	unsigned count;
	/* memories already seen, because a child can have its parent's memory
	 * open */
	ino_t seen[4096];
	unsigned seen_count;
	int rc;
};

static struct vb_counter_file *eng_row_of(struct sums *s, const char *device)
{
	struct vb_counter_file *more;

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
	*more = (struct vb_counter_file){ 0 };
	snprintf(more->device, sizeof(more->device), "%s", device);
	return more;
}

static void add_record(struct sums *s, struct record *r)
{
	struct vb_counter_file *row =
		is_record(r) ? eng_row_of(s, r->device) : NULL;

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

/* Read the file with the counts, through a descriptor of the process that has
 * it open. */
static bool read_counter_file(int holder, struct record *r)
{
	char path[64];
	int fd;
	bool got;

	snprintf(path, sizeof(path), "/proc/%d/fd/%lld", holder,
		 (long long)r->file);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	got = pread(fd, r, sizeof(*r), 0) == sizeof(*r);
	close(fd);
	return got;
}

static void add_found(void *arg, const struct vb_counter_file_found *found)
{
	struct sums *s = arg;
	struct record r;

	if (!is_new(s, found->ino) ||
	    pread(found->fd, &r, sizeof(r), 0) != sizeof(r))
		return;
	if (r.file < 0 || read_counter_file(found->holder, &r))
		add_record(s, &r);
}

static void add_totals(struct sums *s, int fd)
{
	struct record r;

	for (off_t at = 0; pread(fd, &r, sizeof(r), at) == sizeof(r);
	     at += sizeof(r))
		add_record(s, &r);
}

/* Add up the counters of all programs. While the totals are locked, no program
 * moves its counts into them, so that no counts are added twice. */
static void eng_counters_add_all(struct sums *s)
{
	struct totals t;
	bool open = open_totals(&t) == 0;
	int rc;

	if (open)
		gather_left(&t);
	rc = vb_counter_file_each(add_found, s);
	if (s->rc == 0)
		s->rc = rc;
	if (!open)
		return;
	add_totals(s, t.fd);
	close_totals(&t);
}

int vb_counter_file_read(struct vb_counter_file **rows, unsigned *count)
{
	struct sums *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return -ENOMEM;
	eng_counters_add_all(s);
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
