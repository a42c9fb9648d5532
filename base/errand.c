/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/errand.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/apart.h"

struct vb_errands {
	/* references: one of the owner, one of each thread */
	_Atomic unsigned refs;
	_Atomic unsigned under_way;
	int fd;
};

enum errand_state {
	ERRAND_UNDER_WAY,
	ERRAND_RETURNED,
	ERRAND_DROPPED,
};

struct vb_errand {
	struct vb_errands *all;
	const struct vb_errand_kind *kind;
	_Atomic int state; /* an enum errand_state */
	long result;
	_Alignas(max_align_t) char args[VB_ERRAND_ARGS];
};

struct vb_errands *vb_errands_create(void)
{
	struct vb_errands *all = calloc(1, sizeof(*all));

	if (!all)
		return NULL;
	all->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (all->fd < 0) {
		free(all);
		return NULL;
	}
	atomic_store(&all->refs, 1);
	return all;
}

void vb_errands_release(struct vb_errands *all)
{
	if (atomic_fetch_sub(&all->refs, 1) != 1)
		return;
	close(all->fd);
	free(all);
}

int vb_errands_fd(const struct vb_errands *all)
{
	return all->fd;
}

void vb_errands_hear(struct vb_errands *all)
{
	uint64_t count;

	(void)!read(all->fd, &count, sizeof(count));
}

unsigned vb_errands_under_way(const struct vb_errands *all)
{
	return atomic_load(&all->under_way);
}

static void discard_errand(struct vb_errand *e)
{
	if (e->kind->unwanted)
		e->kind->unwanted(e->result);
	free(e);
}

/* The function of the errand's thread. */
static void *go_on_errand(void *arg)
{
	struct vb_errand *e = arg;
	struct vb_errands *all = e->all;
	const uint64_t one = 1;

	e->result = e->kind->run(e->args);
	/* From here on @e may be freed, unless its owner has dropped it. */
	if (atomic_exchange(&e->state, ERRAND_RETURNED) == ERRAND_DROPPED)
		discard_errand(e);
	(void)!write(all->fd, &one, sizeof(one));
	atomic_fetch_sub(&all->under_way, 1);
	vb_errands_release(all);
	return NULL;
}

struct vb_errand *vb_errand_start(struct vb_errands *all,
				  const struct vb_errand_kind *kind,
				  const void *args, size_t size)
{
	struct vb_errand *e;

	if (size > VB_ERRAND_ARGS ||
	    atomic_load(&all->under_way) >= VB_ERRANDS_MOST)
		return NULL;
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->all = all;
	e->kind = kind;
	memcpy(e->args, args, size);
	atomic_fetch_add(&all->refs, 1);
	atomic_fetch_add(&all->under_way, 1);
	if (vb_apart_run(go_on_errand, e) == 0)
		return e;
	atomic_fetch_sub(&all->under_way, 1);
	atomic_fetch_sub(&all->refs, 1);
	free(e);
	return NULL;
}

bool vb_errand_end(struct vb_errand *e, long *result)
{
	if (atomic_load(&e->state) != ERRAND_RETURNED)
		return false;
	*result = e->result;
	free(e);
	return true;
}

void vb_errand_drop(struct vb_errand *e)
{
	if (atomic_exchange(&e->state, ERRAND_DROPPED) == ERRAND_RETURNED)
		discard_errand(e);
}
