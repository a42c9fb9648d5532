/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A preload: where pyverbs gets its dmabufs from. Debian's was built without
 * the interface to graphics cards and has none on any machine. These are what
 * the kernel's udmabuf makes of a memfd; where that is not there, the memfd.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

struct dmabuf {
	int fd, memory;
};

struct dmabuf *dmabuf_alloc(uint64_t size, int gpu, int gtt);
void dmabuf_free(struct dmabuf *d);
int dmabuf_get_drm_fd(struct dmabuf *d);
int dmabuf_get_fd(struct dmabuf *d);
uint64_t dmabuf_get_offset(struct dmabuf *d);

static int make_udmabuf(int memory, uint64_t size)
{
	const struct udmabuf_create create = { .memfd = (uint32_t)memory,
					       .flags = UDMABUF_FLAGS_CLOEXEC,
					       .size = size };
	int node = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
	int fd;

	if (node < 0)
		return fcntl(memory, F_DUPFD_CLOEXEC, 0);
	fd = ioctl(node, UDMABUF_CREATE, &create);
	close(node);
	return fd;
}

static int make(struct dmabuf *d, uint64_t size)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	size = (size + page - 1) / page * page;
	d->memory = memfd_create("dmabuf", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (d->memory < 0)
		return -1;
	d->fd = -1;
	if (!ftruncate(d->memory, (off_t)size) &&
	    !fcntl(d->memory, F_ADD_SEALS, F_SEAL_SHRINK))
		d->fd = make_udmabuf(d->memory, size);
	if (d->fd < 0)
		close(d->memory);
	return d->fd;
}

struct dmabuf *dmabuf_alloc(uint64_t size, int gpu, int gtt)
{
	struct dmabuf *d;

	if (gpu != 0) {
		errno = ENOENT;
		return NULL;
	}
	d = malloc(sizeof(*d));
	if (d && make(d, size) < 0) {
		free(d);
		d = NULL;
	}
	return d;
}

void dmabuf_free(struct dmabuf *d)
{
	if (!d)
		return;
	close(d->fd);
	close(d->memory);
	free(d);
}

/* Where a program of the suite maps it from, and at which offset. */
int dmabuf_get_drm_fd(struct dmabuf *d)
{
	return d ? d->memory : -1;
}

uint64_t dmabuf_get_offset(struct dmabuf *d)
{
	return d ? 0 : UINT64_MAX;
}

int dmabuf_get_fd(struct dmabuf *d)
{
	return d ? d->fd : -1;
}
