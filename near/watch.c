/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread of the program sleeps until a peer puts something on a lane
 * (engine/wait.c). A peer can write any value to a bell that it maps, so each
 * lane has a bell of its own, and the thread sleeps on all of them at once. The
 * bell of this program's lane to itself is in private memory; threads of this
 * program ring that one.
 */
#include "near/near_priv.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* The most sessions from which one call takes a ring; what is left keeps
 * vb_near_fd() readable. */
#define MOST_RUNG 16

struct vb_bell *vb_near_bell(const struct vb_near *n)
{
	return n->self->bell;
}

/* Take a reference to each peer with a lane. False: there are too many. */
static bool watch_lanes(struct vb_near *n)
{
	bool fit;

	vb_mutex_lock(&n->lanes_lock);
	fit = n->active_count <= VB_COUNT(n->watch.peers);
	for (unsigned i = 0; fit && i < n->active_count; i++)
		n->watch.peers[n->watch.count++] = vb_peer_get(n->active[i]);
	vb_mutex_unlock(&n->lanes_lock);
	return fit;
}

/* The private bell comes first: a lane that is added later than this thread
 * looks rings that bell (come_up() in near/session.c). */
bool vb_near_set_bells(struct vb_near *n)
{
	/* Does the kernel have the call? 1: yes, -1: no, 0: not known yet. */
	static _Atomic int can;

	if (atomic_load(&can) == 0)
		atomic_store(&can, vb_bell_can_wait_any() ? 1 : -1);
	vb_near_clear_bells(n);
	if (atomic_load(&can) < 0)
		return false;
	vb_bell_set(vb_near_bell(n));
	if (!watch_lanes(n))
		return false;
	for (unsigned i = 0; i < n->watch.count; i++) {
		struct vb_peer *p = n->watch.peers[i];

		vb_bell_list(&n->watch.bells[i], p->our_bell);
		if (!p->is_self)
			vb_bell_set(p->our_bell);
	}
	return true;
}

int vb_near_wait(struct vb_near *n)
{
	return vb_bell_wait_any(n->watch.bells, n->watch.count);
}

void vb_near_clear_bells(struct vb_near *n)
{
	vb_bell_clear(vb_near_bell(n));
	while (n->watch.count) {
		struct vb_peer *p = n->watch.peers[--n->watch.count];

		vb_bell_clear(p->our_bell);
		vb_peer_put(p);
	}
}

/*
 * Take a ring of @p, a message of one byte without descriptors. False: there is
 * none, and perhaps another message, or the session has ended.
 *
 * A descriptor that comes with the byte stays in the queue for
 * near/session.c, which closes it in a thread: without room for it the kernel
 * would close it here, and a socket with SO_LINGER would hold up the program.
 */
static bool take_ring(struct vb_peer *p)
{
	char message[2];
	struct iovec iov = { message, sizeof(message) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	vb_mutex_lock(&p->ears);
	n = recvmsg(p->session, &m, MSG_DONTWAIT | MSG_PEEK);
	if (n == 1 && !(m.msg_flags & MSG_CTRUNC))
		n = recv(p->session, message, 1, MSG_DONTWAIT);
	else
		n = 0;
	vb_mutex_unlock(&p->ears);
	return n == 1;
}

/* Returns a reference to the peer with a lane that @as is a pointer to. NULL:
 * there is none. The engine thread may release a peer at any time, so @as is
 * only compared. */
static struct vb_peer *peer_at(struct vb_near *n, const void *as)
{
	struct vb_peer *p = NULL;

	vb_mutex_lock(&n->lanes_lock);
	for (unsigned i = 0; i < n->active_count && !p; i++)
		if (n->active[i] == as)
			p = vb_peer_get(n->active[i]);
	vb_mutex_unlock(&n->lanes_lock);
	return p;
}

/* Returns a reference to the only peer with a lane; NULL: there are none or
 * several. */
static struct vb_peer *only_peer(struct vb_near *n)
{
	struct vb_peer *p = NULL;

	vb_mutex_lock(&n->lanes_lock);
	if (n->active_count == 2) /* one of them is this program itself */
		p = vb_peer_get(n->active[n->active[0] == n->self]);
	vb_mutex_unlock(&n->lanes_lock);
	return p;
}

bool vb_near_hear_rings(struct vb_near *n)
{
	struct vb_peer *p = only_peer(n);
	struct epoll_event rung[MOST_RUNG];
	int count = p ? 1 : epoll_wait(n->epoll_fd, rung, MOST_RUNG, 0);
	bool all = true;

	for (int i = 0; i < count; i++) {
		if (!p)
			p = peer_at(n, rung[i].data.ptr);
		all &= p && take_ring(p);
		vb_peer_put(p);
		p = NULL;
	}
	return all;
}

uint32_t vb_near_requests(struct vb_near *n)
{
	uint32_t sum = 0;

	vb_mutex_lock(&n->lanes_lock);
	for (unsigned i = 0; i < n->active_count; i++)
		sum += atomic_load_explicit(&n->active[i]->writer.tail,
					    memory_order_relaxed);
	vb_mutex_unlock(&n->lanes_lock);
	return sum;
}
