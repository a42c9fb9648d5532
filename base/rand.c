/* SPDX-License-Identifier: BSD-2-Clause */
/* Random numbers from the kernel, and from nothing else. */
#include "base/rand.h"

#include "base/log.h"
#include "base/sync.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

/* Read /dev/urandom, because the kernel or a seccomp filter denies
 * getrandom(). */
static bool read_urandom(void *bytes, size_t len)
{
	int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd < 0)
		return false;
	do
		got = read(fd, bytes, len);
	while (got < 0 && errno == EINTR);
	close(fd);
	return got == (ssize_t)len;
}

uint32_t vb_rand32(void)
{
	int saved = errno, cancel = vb_cancel_off();
	ssize_t got;
	uint32_t v;

	do
		got = getrandom(&v, sizeof(v), 0);
	while (got < 0 && errno == EINTR);

	if (got != sizeof(v) && !read_urandom(&v, sizeof(v))) {
		/* Without random numbers, strangers could guess keys and PSNs
		 * and so access memory. */
		vb_log(LOG_ERROR, "random: the kernel gives no random bytes");
		abort();
	}
	vb_cancel_back(cancel);
	errno = saved;
	return v;
}
