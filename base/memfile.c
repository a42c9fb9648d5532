/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes bytes to a memfd, and seals it. */
#include "base/memfile.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file_limit.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

static int write_all(int fd, const char *from, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, from, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENOSPC;
		from += n;
		len -= (size_t)n;
	}
	return 0;
}

int vb_memfile_make(const void *bytes, size_t len)
{
	int fd, rc;

	/* Writing past RLIMIT_FSIZE would raise SIGXFSZ. */
	if (!vb_file_may_have(len))
		return -EFBIG;
	fd = memfd_create("message", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	rc = write_all(fd, bytes, len);
	if (!rc && fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		rc = -errno;
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

bool vb_memfile_is_sealed(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & F_SEAL_SHRINK) && (seals & F_SEAL_WRITE);
}
