/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The slot by which the programs of its host, that is of its network
 * namespace, find this process. The broker gives one with a RoCE device. A
 * process without a RoCE device needs no port; it uses one of the slots that
 * the broker never grants, by binding the slot's name. The search begins at the
 * process id, so that processes do not all try one slot first.
 */
#include "engine/engine_priv.h"

#include <errno.h>
#include <unistd.h>

#include "base/fdmail.h"
#include "base/fork.h"
#include "wire/ipc.h"

static int bind_slot(unsigned slot)
{
	struct sockaddr_un a;
	socklen_t len = vb_ipc_slot_address(&a, slot);

	return vb_fdmail_bind(&a, len);
}

/* Bind a free slot's name. Returns the slot or -errno. */
static int choose_slot(struct vb_engine *e)
{
	const unsigned count = VB_SLOTS - VB_SLOT_ALONE;
	unsigned first = (unsigned)getpid(), slot = 0;
	int fd = -EADDRINUSE;

	for (unsigned i = 0; i < count && fd == -EADDRINUSE; i++) {
		slot = VB_SLOT_ALONE + (first + i) % count;
		fd = bind_slot(slot);
	}
	if (fd < 0)
		return fd;
	vb_fork_closes(fd);
	e->slot_fd = fd;
	e->slot = slot;
	return (int)slot;
}

int vb_host_slot(struct vb_engine *e)
{
	if (e->slot)
		return (int)e->slot;
	return e->lease.slot ? (int)e->lease.slot : choose_slot(e);
}

bool vb_host_slot_is_own(const struct vb_engine *e, unsigned slot)
{
	return slot && (slot == e->lease.slot || slot == e->slot);
}

void vb_host_slot_close(struct vb_engine *e)
{
	if (e->slot_fd >= 0)
		close(e->slot_fd);
}
