/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared memory: create, seal, map. */
#include "base/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/file_limit.h"
#include "base/fork.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

static int map_shared(int fd, size_t bytes, bool writable, void **at)
{
	int prot = PROT_READ | (writable ? PROT_WRITE : 0);
	void *p = mmap(NULL, bytes, prot, MAP_SHARED | MAP_NORESERVE, fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	(void)madvise(p, bytes, MADV_DONTDUMP);
	/* valgrind does not know MADV_DONTFORK: its leak check in a forked
	 * child would read every word of the mapping, which the child would
	 * lack. So the fork handler unmaps the memory instead. */
	vb_fork_unmaps(p, bytes);
	*at = p;
	return 0;
}

int vb_shm_create(const char *name, size_t bytes, int *out, void **at)
{
	int fd, rc = 0;

	if (!vb_file_may_have(bytes))
		return -EFBIG;
	fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	vb_fork_closes(fd);
	if (ftruncate(fd, (off_t)bytes) < 0 ||
	    fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		rc = -errno;
	if (rc == 0)
		rc = map_shared(fd, bytes, true, at);
	if (rc) {
		close(fd);
		return rc;
	}
	*out = fd;
	return 0;
}

int vb_shm_share_readable(int fd, int *readable)
{
	char path[40];
	int copy;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	copy = open(path, O_RDONLY | O_CLOEXEC);
	if (copy < 0)
		return -errno;
	vb_fork_closes(copy);
	*readable = copy;
	return 0;
}

/* Is the file of huge pages? Reading a page of it raises SIGBUS if the host has
 * none left. */
static bool has_huge_pages(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) < 0 || fs.f_type == HUGETLBFS_MAGIC;
}

int vb_shm_map(int fd, size_t bytes, bool writable, void **at)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &st) < 0 ||
	    st.st_size < 0 || (size_t)st.st_size < bytes || has_huge_pages(fd))
		return -EPROTO;
	return map_shared(fd, bytes, writable, at);
}

void vb_shm_unmap(void *at, size_t bytes)
{
	vb_fork_keeps(at);
	munmap(at, bytes);
}
