/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Linux 6.18, for an ordinary user with RLIMIT_NOFILE 1024 and default socket
 * buffers, accepted 40 messages of 16 descriptors; 19 are needed at most. (The
 * kernel does not apply net.unix.max_dgram_qlen to a socket connected to
 * itself.)
 */
#include "broker/vault.h"

#include <errno.h>
#include <unistd.h>

#include "link/udp.h"

/* The bytes of a message: first slot and count, 16 bits each. */
#define NOTE_BYTES 4

#ifndef SO_PEEK_OFF
#define SO_PEEK_OFF 42
#endif

uint64_t vb_vault_cookie(int fd, int option)
{
	socklen_t len = sizeof(uint64_t);
	uint64_t cookie;

	if (getsockopt(fd, SOL_SOCKET, option, &cookie, &len) < 0)
		return 0;
	return cookie;
}

/* Is @fd a datagram socket of the local family that is connected to itself? */
static bool looks_like_vault(int fd)
{
	struct sockaddr_un self, peer;
	socklen_t a = sizeof(self), b = sizeof(peer);

	return vb_fdmail_has_option(fd, SO_DOMAIN, AF_UNIX) &&
	       vb_fdmail_has_option(fd, SO_TYPE, SOCK_DGRAM) &&
	       getsockname(fd, (struct sockaddr *)&self, &a) == 0 &&
	       getpeername(fd, (struct sockaddr *)&peer, &b) == 0 && a == b &&
	       a <= sizeof(self) && memcmp(&self, &peer, a) == 0;
}

int vb_vault_make(int *vault)
{
	struct sockaddr_un self = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(self);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	/* The kernel chooses an abstract name, which is in no file system. */
	if (bind(fd, (struct sockaddr *)&self, sizeof(sa_family_t)) < 0 ||
	    getsockname(fd, (struct sockaddr *)&self, &len) < 0 ||
	    connect(fd, (struct sockaddr *)&self, len) < 0) {
		int rc = -errno;

		close(fd);
		return rc;
	}
	*vault = fd;
	return 0;
}

int vb_vault_put(int vault, unsigned first, const int *fds, unsigned count)
{
	uint8_t note[NOTE_BYTES];

	vb_store_be(note, first, 2);
	vb_store_be(note + 2, count, 2);
	return vb_fdmail_send(vault, note, sizeof(note), fds, count,
			      MSG_DONTWAIT);
}

static bool all_roce(const int *fds, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (!vb_udp_is_roce(fds[i]))
			return false;
	return true;
}

/* Notes that @fd is the socket of @slot from now on. */
static bool note_socket(struct vb_vault_content *c, unsigned slot, int fd)
{
	int before = c->fds[slot];

	c->fds[slot] = fd;
	if (before < 0)
		return true;
	if (vb_vault_cookie(before, SO_COOKIE) ==
	    vb_vault_cookie(fd, SO_COOKIE)) {
		close(before);
		return true;
	}
	if (c->replaced == VB_COUNT(c->before)) {
		close(before);
		return false;
	}
	c->before[c->replaced++] = before;
	return true;
}

/* Reads one message of the vault and leaves it there. 1: @c has its sockets;
 * 0: all were read; -EINVAL: @vault is no vault. */
static int peek_group(struct vb_vault_content *c, int vault)
{
	uint8_t note[NOTE_BYTES];
	int fds[VB_VAULT_GROUP];
	unsigned count = VB_VAULT_GROUP, first;
	ssize_t n = vb_fdmail_recv(vault, note, sizeof(note), fds, &count,
				   MSG_PEEK | MSG_DONTWAIT);
	bool room = true;

	if (n < 0)
		return n == -EAGAIN && c->messages > 0 ? 0 : -EINVAL;
	first = (unsigned)vb_load_be(note, 2);
	if (n != NOTE_BYTES || count == 0 || first + count > VB_SLOTS_MADE ||
	    vb_load_be(note + 2, 2) != count || !all_roce(fds, count)) {
		vb_fdmail_close(fds, count);
		return -EINVAL;
	}
	for (unsigned i = 0; i < count; i++)
		room &= note_socket(c, first + i, fds[i]);
	c->messages++;
	return room ? 1 : -EINVAL;
}

/* Counts the sockets. False: a slot between two others has none. */
static bool has_no_gap(struct vb_vault_content *c)
{
	while (c->count < VB_SLOTS_MADE && c->fds[c->count] >= 0)
		c->count++;
	for (unsigned i = c->count; i < VB_SLOTS_MADE; i++)
		if (c->fds[i] >= 0)
			return false;
	return true;
}

int vb_vault_read(int vault, struct vb_vault_content *c)
{
	static const int from_start = 0;
	int rc;

	c->messages = c->count = c->replaced = 0;
	memset(c->fds, -1, sizeof(c->fds));
	if (!looks_like_vault(vault) ||
	    setsockopt(vault, SOL_SOCKET, SO_PEEK_OFF, &from_start,
		       sizeof(from_start)) < 0)
		return -EINVAL;
	do
		rc = peek_group(c, vault);
	while (rc > 0);
	if (rc == 0 && !has_no_gap(c))
		rc = -EINVAL;
	if (rc)
		vb_vault_close(c);
	return rc;
}

void vb_vault_close(struct vb_vault_content *c)
{
	for (unsigned i = VB_SLOTS_MADE; i-- > 0;)
		if (c->fds[i] >= 0)
			close(c->fds[i]);
	vb_fdmail_close(c->before, c->replaced);
	memset(c->fds, -1, sizeof(c->fds));
	c->count = c->replaced = 0;
}

static void drop_message(int vault)
{
	uint8_t note[NOTE_BYTES];
	int fds[VB_VAULT_GROUP];
	unsigned count = VB_VAULT_GROUP;

	if (vb_fdmail_recv(vault, note, sizeof(note), fds, &count,
			   MSG_DONTWAIT) >= 0)
		vb_fdmail_close(fds, count);
}

int vb_vault_rewrite(int vault, const int *fds, unsigned count,
		     unsigned *messages)
{
	unsigned old = *messages;

	for (unsigned i = 0; i < count; i += VB_VAULT_GROUP) {
		int rc = vb_vault_put(vault, i, fds + i,
				      VB_MIN(VB_VAULT_GROUP, count - i));

		if (rc)
			return rc;
		if (old > 0) {
			drop_message(vault);
			old--;
		} else {
			++*messages;
		}
	}
	for (; old > 0; old--, --*messages)
		drop_message(vault);
	return 0;
}
