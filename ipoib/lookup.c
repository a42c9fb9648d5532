/* SPDX-License-Identifier: BSD-2-Clause */
/* Serves the programs that ask for neighbours. */
#include "ipoib/lookup.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fdmail.h"
#include "engine/ipoib_path.h"

int lookup_open(struct lookup *l, const char *name)
{
	for (unsigned i = 0; i < LOOKUP_CLIENTS; i++)
		l->clients[i].fd = -1;
	l->name = name;
	l->listener = vb_ipoib_listen(name, LOOKUP_CLIENTS);
	return l->listener < 0 ? l->listener : 0;
}

static void close_client(struct lookup_client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	*c = (struct lookup_client){ .fd = -1 };
}

void lookup_close(struct lookup *l)
{
	if (l->listener < 0)
		return;
	for (unsigned i = 0; i < LOOKUP_CLIENTS; i++)
		close_client(&l->clients[i]);
	close(l->listener);
	vb_ipoib_remove(l->name);
	l->listener = -1;
}

static void answer_client(struct lookup_client *c, const struct vb_ipoib *m)
{
	uint8_t bytes[VB_IPOIB_BYTES];
	size_t len = vb_ipoib_put(bytes, m);

	c->waits = false;
	if (vb_fdmail_send(c->fd, bytes, len, NULL, 0, MSG_DONTWAIT))
		close_client(c);
}

void lookup_told(struct lookup *l, const struct vb_gid *ip,
		 const struct vb_ipoib_hw *hw)
{
	struct vb_ipoib m = { .op = IPOIB_ASK,
			      .version = VB_IPOIB_VERSION,
			      .ip = *ip,
			      .error = hw ? 0 : -EHOSTUNREACH };

	if (hw) {
		m.gid = hw->gid;
		m.qpn = hw->qpn;
	}
	for (unsigned i = 0; i < LOOKUP_CLIENTS; i++) {
		struct lookup_client *c = &l->clients[i];

		if (c->fd >= 0 && c->waits && vb_gid_equal(&c->ip, ip))
			answer_client(c, &m);
	}
}

static unsigned count_waiting(const struct lookup *l)
{
	unsigned count = 0;

	for (unsigned i = 0; i < LOOKUP_CLIENTS; i++)
		count += l->clients[i].fd >= 0 && l->clients[i].waits;
	return count;
}

/* Handle the next question of a client. While a client waits for an answer, its
 * further questions stay in its socket. */
static void take_question(struct lookup *l, struct lookup_client *c)
{
	uint8_t bytes[VB_IPOIB_BYTES];
	unsigned none = 0;
	struct vb_ipoib m;
	ssize_t n = vb_fdmail_recv(c->fd, bytes, sizeof(bytes), NULL, &none,
				   MSG_DONTWAIT);

	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n <= 0 || !vb_ipoib_get(bytes, (size_t)n, &m)) {
		close_client(c);
		return;
	}
	if (m.op == IPOIB_OWN) {
		l->own(l->arg, &m);
		answer_client(c, &m);
		return;
	}
	if (count_waiting(l) == LOOKUP_WAITING) {
		close_client(c);
		return;
	}
	c->waits = true;
	c->ip = m.ip;
	l->want(l->arg, &m.ip);
}

static void accept_client(struct lookup *l)
{
	int fd = accept4(l->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	uid_t uid;

	if (fd < 0)
		return;
	for (unsigned i = 0; i < LOOKUP_CLIENTS; i++) {
		if (l->clients[i].fd >= 0)
			continue;
		if (!vb_fdmail_trusts_peer(fd, &uid))
			break;
		l->clients[i] = (struct lookup_client){ .fd = fd };
		return;
	}
	close(fd);
}

/* Fill in the descriptors for poll(). That of a client that waits for an answer
 * is watched only for the client's end. */
unsigned lookup_poll(const struct lookup *l, struct pollfd fds[LOOKUP_FDS])
{
	unsigned count = 0;

	fds[count++] = (struct pollfd){ .fd = l->listener, .events = POLLIN };
	for (unsigned i = 0; i < LOOKUP_CLIENTS; i++)
		if (l->clients[i].fd >= 0)
			fds[count++] = (struct pollfd){
				.fd = l->clients[i].fd,
				.events = l->clients[i].waits ? 0 : POLLIN,
			};
	return count;
}

static struct lookup_client *client_of(struct lookup *l, int fd)
{
	for (unsigned i = 0; i < LOOKUP_CLIENTS; i++)
		if (l->clients[i].fd == fd)
			return &l->clients[i];
	return NULL;
}

/* New clients are accepted last: a new client may get the descriptor number of
 * one that has just been closed, whose events are still in @fds. */
void lookup_serve(struct lookup *l, const struct pollfd *fds, unsigned count)
{
	for (unsigned i = 1; i < count; i++) {
		struct lookup_client *c = client_of(l, fds[i].fd);

		if (!c || !fds[i].revents)
			continue;
		if (c->waits)
			close_client(c);
		else
			take_question(l, c);
	}
	if (fds[0].revents)
		accept_client(l);
}
