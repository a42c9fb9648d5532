/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file of a hostile file system (FUSE): reading a page of it, and close() of
 * it, wait until the process of the file system ends. That process ends with
 * the test, since no signal ends a thread that waits for it.
 */
#ifndef TESTS_SUPPORT_SLOW_FILE_H
#define TESTS_SUPPORT_SLOW_FILE_H

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLOW_BYTES 4096

/* The requests that wait, in memory that both processes map. */
struct slow_counts {
	_Atomic unsigned reads, closes;
};

struct slow_file {
	char dir[32];
	int dev; /* /dev/fuse, where the file system gets its requests */
	pid_t server;
	struct slow_counts *waits;
};

static inline void slow_answer(const struct slow_file *s,
			       const struct fuse_in_header *ask, int error,
			       const void *body, size_t len)
{
	char bytes[512];
	struct fuse_out_header head = {
		.len = (uint32_t)(sizeof(head) + len),
		.error = error,
		.unique = ask->unique,
	};

	memcpy(bytes, &head, sizeof(head));
	if (len)
		memcpy(bytes + sizeof(head), body, len);
	(void)!write(s->dev, bytes, head.len);
}

static inline struct fuse_attr slow_attr(uint64_t node)
{
	return (struct fuse_attr){ .ino = node,
				   .size = SLOW_BYTES,
				   .mode = node == 1 ? S_IFDIR | 0755
						     : S_IFREG | 0666,
				   .nlink = 1,
				   .uid = getuid(),
				   .gid = getgid(),
				   .blksize = SLOW_BYTES };
}

static inline void slow_serve(struct slow_file *s,
			      const struct fuse_in_header *ask)
{
	const struct fuse_init_out init = { .major = FUSE_KERNEL_VERSION,
					    .minor = 31,
					    .max_write = SLOW_BYTES };
	const struct fuse_entry_out entry = { .nodeid = 2,
					      .entry_valid = 1000,
					      .attr_valid = 1000,
					      .attr = slow_attr(2) };
	const struct fuse_attr_out attr = { .attr_valid = 1000,
					    .attr = slow_attr(ask->nodeid) };
	const struct fuse_open_out open = { .fh = 1 };

	switch (ask->opcode) {
	case FUSE_INIT:
		slow_answer(s, ask, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		slow_answer(s, ask, 0, &entry, sizeof(entry));
		break;
	case FUSE_GETATTR:
		slow_answer(s, ask, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
		slow_answer(s, ask, 0, &open, sizeof(open));
		break;
	case FUSE_READ:
		atomic_fetch_add(&s->waits->reads, 1);
		break;
	case FUSE_FLUSH:
		atomic_fetch_add(&s->waits->closes, 1);
		break;
	case FUSE_RELEASE:
		slow_answer(s, ask, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		slow_answer(s, ask, -ENOSYS, NULL, 0);
	}
}

static inline void slow_run(struct slow_file *s)
{
	static union {
		struct fuse_in_header ask;
		char bytes[FUSE_MIN_READ_BUFFER + SLOW_BYTES];
	} in;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		ssize_t n = read(s->dev, &in, sizeof(in));

		if (n >= (ssize_t)sizeof(in.ask))
			slow_serve(s, &in.ask);
		else if (errno != EINTR && errno != ENOENT && errno != EAGAIN)
			_exit(0);
	}
}

/* Begin the file system, in a mount namespace of this process. False: the
 * kernel does not permit it. */
static inline bool slow_begin(struct slow_file *s)
{
	char options[120];

	memset(s, 0, sizeof(*s));
	strcpy(s->dir, "/tmp/slow-XXXXXX");
	if (unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    !mkdtemp(s->dir))
		return false;
	s->dev = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=%u,group_id=%u,allow_other",
		 s->dev, getuid(), getgid());
	if (s->dev < 0 ||
	    mount("slow", s->dir, "fuse", MS_NOSUID | MS_NODEV, options) < 0) {
		rmdir(s->dir);
		return false;
	}
	s->waits = mmap(NULL, sizeof(*s->waits), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	s->server = fork();
	if (s->server == 0)
		slow_run(s);
	close(s->dev);
	return s->server > 0;
}

/* Open the file once more. The caller closes it when slow_end() was called. */
static inline int slow_open(const struct slow_file *s)
{
	char path[48];

	snprintf(path, sizeof(path), "%s/file", s->dir);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* End the file system: all waiting calls end with an error. */
static inline void slow_end(struct slow_file *s)
{
	kill(s->server, SIGKILL);
	waitpid(s->server, NULL, 0);
	umount2(s->dir, MNT_DETACH);
	munmap(s->waits, sizeof(*s->waits));
	rmdir(s->dir);
}

#endif
