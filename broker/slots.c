/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes slots in groups, in order, as programs need them: descriptors in flight
 * are counted against RLIMIT_NOFILE for all of a user's brokers (one for each
 * container, say) together.
 *
 * The vault is a datagram socket connected to itself, so that one descriptor is
 * both ends: a process that has it keeps the sockets open, can read them with
 * MSG_PEEK and can add more; no other process can send to it. Linux 6.18, for
 * an ordinary user with RLIMIT_NOFILE 1024 and default socket buffers, accepted
 * 40 messages of 16 descriptors; 17 are needed. (The kernel does not apply
 * net.unix.max_dgram_qlen to a socket connected to itself.)
 */
#include "broker/slots.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fdmail.h"
#include "base/log.h"
#include "link/udp.h"

/* Sockets in one message. vb_fdmail_close() closes them last to first, so that
 * the kernel moves no socket into a gap of the SO_REUSEPORT group. */
#define GROUP VB_FDMAIL_FDS
/* The bytes of a message: first slot and count, 16 bits each. */
#define NOTE_BYTES  4
#define DRAIN_LIMIT (1 << 16)

#ifndef SO_PEEK_OFF
#define SO_PEEK_OFF 42
#endif
#ifndef SO_NETNS_COOKIE /* in headers since Linux 5.14 */
#define SO_NETNS_COOKIE 71
#endif

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

static int make_vault(int *vault)
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

static int put_in_vault(int vault, unsigned first, const int *fds,
			unsigned count)
{
	uint8_t note[NOTE_BYTES];

	vb_store_be(note, first, 2);
	vb_store_be(note + 2, count, 2);
	return vb_fdmail_send(vault, note, sizeof(note), fds, count,
			      MSG_DONTWAIT);
}

/* Make the socket's queue small. No program reads the queue of a free slot, so
 * the queue must keep little of what hosts send to it. A program that gets the
 * slot sets the size anew. */
static void shrink_queue(int fd)
{
	/* the kernel rounds this up to its minimum */
	static const int least = 0;

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least)) < 0)
		vb_log(LOG_DEBUG,
		       "broker: a receive queue cannot be shrunk: %s",
		       strerror(errno));
}

static void slots_drain(int fd)
{
	char byte;

	for (int i = 0; i < DRAIN_LIMIT; i++)
		if (recv(fd, &byte, 1, MSG_DONTWAIT | MSG_TRUNC) < 0 &&
		    (errno == EAGAIN || errno == EBADF))
			return;
}

static int make_sockets(int *fds, unsigned count)
{
	unsigned made = 0;
	int rc = 0;

	while (made < count && rc == 0) {
		rc = vb_udp_socket(&fds[made]);
		if (rc == 0)
			shrink_queue(fds[made++]);
	}
	if (rc)
		vb_fdmail_close(fds, made);
	return rc;
}

/* Steers packets to all sockets that exist, once the vault has them. If that
 * fails, the next claim tries again. */
static int slots_steer(struct vb_slots *s)
{
	int rc = s->steered == s->count ? 0 : vb_udp_steer(s->fds[0], s->count);

	if (rc == 0)
		s->steered = s->count;
	return rc;
}

/* Makes the next group of sockets, puts it into the vault and steers packets to
 * it. */
static int add_group(struct vb_slots *s)
{
	unsigned count = VB_MIN(GROUP, VB_SLOTS_MADE - s->count);
	int *fds = s->fds + s->count, rc;

	rc = make_sockets(fds, count);
	if (rc)
		return rc;
	rc = put_in_vault(s->vault, s->count, fds, count);
	if (rc) {
		vb_log(LOG_ERROR,
		       "broker: the vault does not take the sockets: %s",
		       strerror(-rc));
		vb_fdmail_close(fds, count);
		return rc;
	}
	s->count += count;
	return slots_steer(s);
}

void vb_slots_init(struct vb_slots *s)
{
	s->vault = -1;
	s->count = 0;
	s->steered = 0;
}

void vb_slots_fini(struct vb_slots *s)
{
	vb_fdmail_close(s->fds, s->count);
	if (s->vault >= 0)
		close(s->vault);
	vb_slots_init(s);
}

int vb_slots_create(struct vb_slots *s)
{
	int rc;

	if (vb_udp_port_taken())
		return -EADDRINUSE;
	rc = make_vault(&s->vault);
	if (rc)
		return rc;
	rc = add_group(s);
	if (rc)
		vb_slots_fini(s);
	return rc;
}

/* Returns the number that the kernel gave to this socket only, or to its
 * network namespace only, depending on @option; 0: this kernel has no such
 * numbers. */
static uint64_t cookie_of(int fd, int option)
{
	socklen_t len = sizeof(uint64_t);
	uint64_t cookie;

	if (getsockopt(fd, SOL_SOCKET, option, &cookie, &len) < 0)
		return 0;
	return cookie;
}

/* Returns whether all sockets of @s differ. If the vault had one twice, it
 * would lack another, which would close, and the next socket to bind would get
 * its place. */
static bool all_differ(const struct vb_slots *s)
{
	uint64_t cookies[VB_SLOTS_MADE];

	for (unsigned i = 0; i < s->count; i++) {
		cookies[i] = cookie_of(s->fds[i], SO_COOKIE);
		for (unsigned k = 0; k < i; k++)
			if (cookies[k] == cookies[i])
				return false;
	}
	return true;
}

/* Returns whether all @fds belong to this network namespace. */
static bool are_here(const int *fds, unsigned count)
{
	int here = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint64_t cookie;

	if (here < 0)
		return false;
	cookie = cookie_of(here, SO_NETNS_COOKIE);
	close(here);
	for (unsigned i = 0; i < count; i++)
		if (cookie_of(fds[i], SO_NETNS_COOKIE) != cookie)
			return false;
	return true;
}

static bool all_roce(const int *fds, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (!vb_udp_is_roce(fds[i]))
			return false;
	return true;
}

/* Reads one message of the vault and leaves it there. 1: @s has one group more;
 * 0: all were read; -EINVAL: @vault is no vault. */
static int peek_group(struct vb_slots *s, int vault)
{
	uint8_t note[NOTE_BYTES];
	int fds[GROUP];
	unsigned count = GROUP;
	ssize_t n = vb_fdmail_recv(vault, note, sizeof(note), fds, &count,
				   MSG_PEEK | MSG_DONTWAIT);

	if (n < 0)
		return n == -EAGAIN && s->count > 0 ? 0 : -EINVAL;
	if (n != NOTE_BYTES || count == 0 || s->count + count > VB_SLOTS_MADE ||
	    vb_load_be(note, 2) != s->count ||
	    vb_load_be(note + 2, 2) != count || !all_roce(fds, count)) {
		vb_fdmail_close(fds, count);
		return -EINVAL;
	}
	memcpy(s->fds + s->count, fds, count * sizeof(int));
	s->count += count;
	return 1;
}

int vb_slots_adopt(struct vb_slots *s, int vault)
{
	static const int from_start = 0;
	int rc;

	if (!looks_like_vault(vault) ||
	    setsockopt(vault, SOL_SOCKET, SO_PEEK_OFF, &from_start,
		       sizeof(from_start)) < 0)
		return -EINVAL;
	do
		rc = peek_group(s, vault);
	while (rc > 0);
	/* The network namespace of @vault itself does not matter. */
	if (rc == 0 && !(all_differ(s) && are_here(s->fds, s->count)))
		rc = -EINVAL;
	/* The earlier broker may have ended after making sockets and before
	 * steering packets to them. */
	if (rc == 0)
		rc = slots_steer(s);
	if (rc) {
		vb_slots_fini(s);
		return rc;
	}
	s->vault = vault;
	return 0;
}

bool vb_slots_is_ours(const struct vb_slots *s, int vault)
{
	struct stat a, b;

	return s->vault >= 0 && fstat(s->vault, &a) == 0 &&
	       fstat(vault, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

static bool has_name(int fd, unsigned slot)
{
	struct sockaddr_un wanted, own;
	socklen_t len = sizeof(own);
	socklen_t all = vb_ipc_slot_address(&wanted, slot);

	return vb_fdmail_has_option(fd, SO_DOMAIN, AF_UNIX) &&
	       vb_fdmail_has_option(fd, SO_TYPE, SOCK_SEQPACKET) &&
	       getsockname(fd, (struct sockaddr *)&own, &len) == 0 &&
	       len == all && memcmp(&own, &wanted, len) == 0;
}

static bool is_same_socket(int a, int b)
{
	uint64_t cookie = cookie_of(a, SO_COOKIE);

	return cookie && cookie == cookie_of(b, SO_COOKIE);
}

bool vb_slots_is_held(const struct vb_slots *s, unsigned slot, int name,
		      int socket)
{
	return slot > 0 && slot < s->count && has_name(name, slot) &&
	       are_here(&name, 1) && is_same_socket(socket, s->fds[slot]);
}

/* Returns a socket bound to the slot's name, or -errno: -EADDRINUSE when the
 * slot is taken. */
static int bind_name(unsigned slot)
{
	struct sockaddr_un a;
	socklen_t len = vb_ipc_slot_address(&a, slot);

	return vb_fdmail_bind(&a, len);
}

static bool slots_is_taken(unsigned slot)
{
	int fd = bind_name(slot);

	if (fd >= 0)
		close(fd);
	return fd == -EADDRINUSE;
}

int vb_slots_claim(struct vb_slots *s, unsigned *slot, int *name)
{
	for (unsigned i = 1; i < VB_SLOTS_MADE; i++) {
		int fd, rc = 0;

		if (i >= s->count)
			rc = add_group(s);
		else if (i >= s->steered)
			rc = slots_steer(s);
		if (rc)
			return rc;
		fd = bind_name(i);
		if (fd == -EADDRINUSE)
			continue;
		if (fd < 0)
			return fd;
		/* Throw away packets that the slot's last program did not
		 * read. */
		slots_drain(s->fds[i]);
		*slot = i;
		*name = fd;
		return 0;
	}
	return -EUSERS;
}

bool vb_slots_rest(struct vb_slots *s, unsigned slot)
{
	if (slot == 0 || slot >= s->count)
		return true;
	if (slots_is_taken(slot))
		return false;
	shrink_queue(s->fds[slot]);
	slots_drain(s->fds[slot]);
	return true;
}

unsigned vb_slots_taken(const struct vb_slots *s)
{
	unsigned taken = 0;

	for (unsigned i = 1; i < s->count; i++)
		taken += slots_is_taken(i);
	return taken;
}
