/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/nudge.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The ring of completions, which the kernel maps into the process at the
 * address that is the context's number (io_setup(2)). */
struct ring {
	uint32_t id, count;
	_Atomic uint32_t head, tail;
	uint32_t magic, compatible, incompatible, header_bytes;
};
#define RING_MAGIC 0xa10a10a1u

static struct ring *ring_of(const struct vb_nudge *n)
{
	return (struct ring *)(uintptr_t)n->context;
}

/* Does this program know the ring's layout? */
static bool ring_is_known(const struct ring *r)
{
	return r->magic == RING_MAGIC && r->incompatible == 0;
}

int vb_nudge_open(struct vb_nudge *n)
{
	*n = (struct vb_nudge){ 0 };
	if (syscall(SYS_io_setup, 1, &n->context) < 0)
		return -errno;
	if (ring_is_known(ring_of(n)))
		return 0;
	vb_nudge_close(n);
	return -ENOTSUP;
}

void vb_nudge_close(struct vb_nudge *n)
{
	/* Destroying the context cancels the request under way. */
	if (n->context)
		(void)syscall(SYS_io_destroy, n->context);
	*n = (struct vb_nudge){ 0 };
}

int vb_nudge_ask(struct vb_nudge *n, int fd, int event_fd)
{
	struct iocb *list = &n->request;

	n->request = (struct iocb){
		.aio_lio_opcode = IOCB_CMD_POLL,
		.aio_fildes = (uint32_t)fd,
		.aio_buf = POLLIN,
		.aio_flags = IOCB_FLAG_RESFD,
		.aio_resfd = (uint32_t)event_fd,
	};
	if (syscall(SYS_io_submit, n->context, 1L, &list) != 1)
		return -errno;
	n->awaited = true;
	return 0;
}

bool vb_nudge_came(struct vb_nudge *n)
{
	struct ring *r = ring_of(n);
	uint32_t tail;

	if (!n->awaited)
		return false;
	tail = atomic_load_explicit(&r->tail, memory_order_acquire);
	if (atomic_load_explicit(&r->head, memory_order_relaxed) == tail)
		return false;
	/* At most one request is under way, so at most one completion is in the
	 * ring. */
	atomic_store_explicit(&r->head, tail, memory_order_release);
	n->awaited = false;
	return true;
}

void vb_nudge_call_off(struct vb_nudge *n)
{
	struct timespec most = { .tv_sec = 1 };
	struct io_event event;

	if (!n->awaited)
		return;
	/* If cancelling fails, the nudge has come already. */
	(void)syscall(SYS_io_cancel, n->context, &n->request, &event);
	while (syscall(SYS_io_getevents, n->context, 1L, 1L, &event, &most) <
		       0 &&
	       errno == EINTR)
		;
	n->awaited = false;
}
