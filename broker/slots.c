/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes slots in groups, in order, as programs need them: descriptors in flight
 * are counted against RLIMIT_NOFILE for all of a user's brokers (one for each
 * container, say) together.
 *
 * A former holder can keep a duplicate of a slot's socket and read the packets
 * of the next holder. So a socket that an untrusted user had is given to nobody
 * else (link/udp_owner.c): another user gets an unused socket, or one that the
 * broker puts into the place of the used one:
 *
 *	the broker binds a new socket, which becomes the group's last;
 *	puts it into the vault;
 *	takes the used socket out of the group, and the kernel moves the last
 *	socket, the new one, into the place;
 *	rewrites the vault without the used socket.
 *
 * A broker that is killed in between leaves both sockets in the vault, and the
 * next one continues. If the former holder still has the used socket, the slot
 * is withheld from all others, because that socket can take the slot's packets.
 */
#include "broker/slots.h"

#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fdmail.h"
#include "base/log.h"
#include "broker/vault.h"
#include "link/udp.h"

/* Sockets in one message. vb_fdmail_close() closes them last to first, so that
 * the kernel moves no socket into a gap of the SO_REUSEPORT group. */
#define GROUP	    VB_VAULT_GROUP
#define DRAIN_LIMIT (1 << 16)
/* How old the count of taken slots may be. */
#define COUNT_AGE (100 * VB_MSEC)

#ifndef SO_NETNS_COOKIE /* Linux headers before 5.14 lack it */
#define SO_NETNS_COOKIE 71
#endif

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

int vb_slots_steer(struct vb_slots *s)
{
	return vb_udp_steer(s->fds[0], s->count);
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
	rc = vb_vault_put(s->vault, s->count, fds, count);
	if (rc) {
		vb_log(LOG_ERROR,
		       "broker: the vault does not take the sockets: %s",
		       strerror(-rc));
		vb_fdmail_close(fds, count);
		return rc;
	}
	s->messages++;
	s->count += count;
	return vb_slots_steer(s);
}

void vb_slots_init(struct vb_slots *s)
{
	*s = (struct vb_slots){ .vault = -1, .retired = -1 };
}

void vb_slots_fini(struct vb_slots *s)
{
	vb_fdmail_close(s->fds, s->count);
	if (s->vault >= 0)
		close(s->vault);
	if (s->retired >= 0)
		close(s->retired);
	vb_slots_init(s);
}

int vb_slots_create(struct vb_slots *s)
{
	int rc;

	if (vb_udp_port_taken())
		return -EADDRINUSE;
	rc = vb_vault_make(&s->vault);
	if (rc)
		return rc;
	rc = add_group(s);
	if (rc)
		vb_slots_fini(s);
	return rc;
}

/* Returns whether all sockets of @s differ. If the vault had one twice, it
 * would lack another, which would close, and the next socket to bind would get
 * its place. */
static bool all_differ(const struct vb_slots *s)
{
	uint64_t cookies[VB_SLOTS_MADE];

	for (unsigned i = 0; i < s->count; i++) {
		cookies[i] = vb_vault_cookie(s->fds[i], SO_COOKIE);
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
	cookie = vb_vault_cookie(here, SO_NETNS_COOKIE);
	close(here);
	for (unsigned i = 0; i < count; i++)
		if (vb_vault_cookie(fds[i], SO_NETNS_COOKIE) != cookie)
			return false;
	return true;
}

/* Reads, from the filter of each socket that an earlier broker made, the user
 * to whom that broker limited the socket. */
static void read_owners(struct vb_slots *s)
{
	struct vb_udp_owner o = { 0 };

	for (unsigned i = 1; i < s->count; i++) {
		int rc = vb_udp_owner_of(s->fds[i], i, &o);

		if (rc == 0) {
			s->owners[i] = (struct vb_slot_owner){
				o.kept ? SLOT_WITHHELD : SLOT_USERS, o.uid
			};
			s->limited = true;
		} else if (rc != -ENOENT) {
			s->owners[i].is = SLOT_LOST;
		}
	}
}

/* Finishes the replacements that an earlier broker began, and steers packets to
 * the sockets: that broker may have ended before it did. */
static int finish_replacements(struct vb_slots *s,
			       const struct vb_vault_content *c)
{
	struct vb_udp_owner o;
	int rc = 0;

	for (unsigned i = 0; i < c->replaced && rc == 0; i++) {
		unsigned slot = c->slots[i];

		rc = vb_udp_retire(c->before[i]);
		if (rc == 0 && vb_udp_owner_of(c->before[i], slot, &o) == 0) {
			/* The former holder may still have the socket. */
			o.kept = true;
			/* The kernel refuses a second limit if the earlier
			 * broker has already limited the socket. */
			(void)!vb_udp_limit(s->fds[slot], slot, &o);
		}
	}
	if (rc == 0 && s->messages != (s->count + GROUP - 1) / GROUP)
		rc = vb_vault_rewrite(s->vault, s->fds, s->count, &s->messages);
	return rc ? rc : vb_slots_steer(s);
}

int vb_slots_adopt(struct vb_slots *s, int vault)
{
	struct vb_vault_content c;
	int rc = vb_vault_read(vault, &c);

	if (rc)
		return rc;
	memcpy(s->fds, c.fds, sizeof(s->fds));
	s->count = c.count;
	s->messages = c.messages;
	s->vault = vault;
	/* The network namespace of @vault itself does not matter. */
	if (!(all_differ(s) && are_here(s->fds, s->count)))
		rc = -EINVAL;
	if (rc == 0)
		rc = finish_replacements(s, &c);
	vb_fdmail_close(c.before, c.replaced);
	if (rc) {
		s->vault = -1; /* @vault stays the caller's */
		vb_slots_fini(s);
		return rc;
	}
	read_owners(s);
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
	uint64_t cookie = vb_vault_cookie(a, SO_COOKIE);

	return cookie && cookie == vb_vault_cookie(b, SO_COOKIE);
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

/* What a slot is to the program that claims one: a slot that its user had
 * before; one that no user had; another user's; or one that it cannot get. */
enum view { VIEW_OWN, VIEW_UNUSED, VIEW_OTHERS, VIEW_NOBODYS };

static enum view view_of(const struct vb_slots *s, unsigned slot,
			 const struct vb_claimant *who)
{
	const struct vb_slot_owner *o = &s->owners[slot];

	switch (o->is) {
	case SLOT_UNLIMITED:
		return who->trusted ? VIEW_OWN : VIEW_UNUSED;
	case SLOT_USERS:
	case SLOT_WITHHELD:
		if (!who->trusted && o->uid == who->uid &&
		    o->uid != VB_SLOTS_STRANGER)
			return VIEW_OWN;
		return o->is == SLOT_USERS ? VIEW_OTHERS : VIEW_NOBODYS;
	default:
		return VIEW_NOBODYS;
	}
}

/* Returns whether processes other than the broker still have sockets that it
 * replaced, by slot. The kernel takes a file from an epoll set when the last
 * process closes it. True for all slots where /proc does not tell. */
static void find_kept(const struct vb_slots *s, bool kept[VB_SLOTS_MADE])
{
	char path[64], line[160];
	unsigned long long slot;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", s->retired);
	f = s->retired < 0 ? NULL : fopen(path, "re");
	memset(kept, f ? 0 : 1, VB_SLOTS_MADE * sizeof(*kept));
	if (!f)
		return;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "tfd: %*d events: %*x data: %llx", &slot) ==
			    1 &&
		    slot < VB_SLOTS_MADE)
			kept[slot] = true;
	fclose(f);
}

/* Closes @old, which was the socket of @slot. Returns whether a former holder
 * still has it. */
static bool let_go(struct vb_slots *s, unsigned slot, int old)
{
	struct epoll_event none = { .data.u64 = slot };
	struct vb_slot_owner *o = &s->owners[slot];
	bool kept[VB_SLOTS_MADE];

	if (s->retired < 0)
		s->retired = epoll_create1(EPOLL_CLOEXEC);
	o->watched = epoll_ctl(s->retired, EPOLL_CTL_ADD, old, &none) == 0;
	close(old);
	find_kept(s, kept);
	return !o->watched || kept[slot];
}

/* The user who had @slot still has the socket that the broker replaced, so the
 * broker gives the slot to no other user. */
static void withhold(struct vb_slots *s, unsigned slot)
{
	struct vb_slot_owner *o = &s->owners[slot];
	const struct vb_udp_owner mark = { o->uid, true };

	o->is = SLOT_WITHHELD;
	if (vb_udp_limit(s->fds[slot], slot, &mark))
		o->is = SLOT_LOST;
	vb_log(LOG_INFO,
	       "broker: user %u gave up slot %u, but keeps its socket: no other "
	       "user gets this slot",
	       (unsigned)o->uid, slot);
}

/* A withheld slot becomes free for other users when its former holder has
 * closed the socket that the broker replaced. */
static void offer_again(struct vb_slots *s)
{
	bool kept[VB_SLOTS_MADE];

	find_kept(s, kept);
	for (unsigned i = 1; i < s->count; i++) {
		struct vb_slot_owner *o = &s->owners[i];

		if (o->is == SLOT_WITHHELD && o->watched && !kept[i])
			o->is = SLOT_USERS;
	}
}

/* Returns whether the socket of @slot is where the broker put it in the group.
 * A holder can move it out, and the group's last socket is in its place then.
 * The answer is also false if a user detaches the steering program at this
 * moment, so the broker checks again at the next claim. */
static bool is_in_place(struct vb_slots *s, unsigned slot)
{
	bool left = vb_udp_unsteer(s->fds[slot]) == -ENOENT;

	if (vb_slots_steer(s))
		return false;
	if (!left)
		return true;
	vb_log(LOG_ERROR,
	       "broker: user %u took the socket of slot %u out of port 4791's "
	       "group: packets go astray until all programs with devices ended",
	       (unsigned)s->owners[slot].uid, slot);
	return false;
}

/* Puts @fresh, which is the group's last socket, into the place of the socket
 * of @slot. */
static int swap_socket(struct vb_slots *s, unsigned slot, int fresh)
{
	int old = s->fds[slot];
	int rc = vb_vault_put(s->vault, slot, &fresh, 1);

	if (rc)
		return rc;
	s->messages++;
	rc = vb_udp_retire(old);
	if (rc == 0)
		s->fds[slot] = fresh;
	/* If the vault takes no more messages, it still contains the used
	 * socket, so that let_go() below finds that the socket is still open,
	 * as if the former holder had it. */
	if (vb_vault_rewrite(s->vault, s->fds, s->count, &s->messages))
		vb_log(LOG_WARN, "broker: the vault cannot be rewritten");
	if (rc)
		return rc;
	if (let_go(s, slot, old))
		withhold(s, slot);
	else
		s->owners[slot] = (struct vb_slot_owner){ SLOT_UNLIMITED };
	return 0;
}

/* Gives the free @slot a socket that no other user had. -EBUSY: the slot cannot
 * go to another user; or the -errno of making a socket. */
static int slots_replace(struct vb_slots *s, unsigned slot)
{
	int fresh, rc;

	if (!is_in_place(s, slot))
		return -EBUSY;
	rc = make_sockets(&fresh, 1);
	if (rc)
		return rc;
	rc = swap_socket(s, slot, fresh);
	if (rc) {
		close(fresh);
		return rc;
	}
	return s->owners[slot].is == SLOT_UNLIMITED ? 0 : -EBUSY;
}

/* Attaches to the slot's socket the filter that limits the socket to the user
 * of the claimant @who; a trusted claimant's socket gets no filter. 0, -EBUSY:
 * the socket has a locked filter already, or another -errno. */
static int limit_to(struct vb_slots *s, unsigned slot,
		    const struct vb_claimant *who)
{
	const struct vb_udp_owner o = { who->uid, false };
	int rc;

	if (who->trusted || s->owners[slot].is != SLOT_UNLIMITED)
		return 0;
	rc = vb_udp_limit(s->fds[slot], slot, &o);
	if (rc) {
		/* A trusted program has locked the socket. */
		s->owners[slot].is = SLOT_LOST;
		return -EBUSY;
	}
	s->owners[slot] = (struct vb_slot_owner){ SLOT_USERS, who->uid };
	s->limited = true;
	return 0;
}

/* Makes the free @slot, of this @view, ready for @who. */
static int prepare(struct vb_slots *s, unsigned slot, enum view view,
		   const struct vb_claimant *who)
{
	int rc = view == VIEW_OTHERS ? slots_replace(s, slot) : 0;

	if (rc == 0)
		rc = limit_to(s, slot, who);
	if (rc == 0)
		/* Throw away packets that the slot's last program did not
		 * read. */
		slots_drain(s->fds[slot]);
	return rc;
}

/* Claims the lowest free slot of this @view. Returns the socket of the slot's
 * name, -EUSERS when there is none, or another -errno. */
static int claim_viewed(struct vb_slots *s, const struct vb_claimant *who,
			enum view view, unsigned *slot)
{
	for (unsigned i = 1; i < s->count; i++) {
		int fd, rc;

		if (view_of(s, i, who) != view)
			continue;
		fd = bind_name(i);
		if (fd == -EADDRINUSE)
			continue;
		if (fd < 0)
			return fd;
		*slot = i;
		rc = prepare(s, i, view, who);
		if (rc == 0)
			return fd;
		close(fd);
		if (rc != -EBUSY)
			return rc;
	}
	return -EUSERS;
}

/* Makes slots and claims one of them; the result is that of claim_viewed(). */
static int claim_new(struct vb_slots *s, const struct vb_claimant *who,
		     unsigned *slot)
{
	int fd = -EUSERS;

	while (s->count < VB_SLOTS_MADE && fd == -EUSERS) {
		int rc = add_group(s);

		if (rc)
			return rc;
		fd = claim_viewed(s, who, who->trusted ? VIEW_OWN : VIEW_UNUSED,
				  slot);
	}
	return fd;
}

int vb_slots_claim(struct vb_slots *s, const struct vb_claimant *who,
		   unsigned *slot, int *name)
{
	/* Steer packets to all sockets again first: a user to whom a socket is
	 * limited can detach the program that steers packets to the slots'
	 * sockets. */
	int fd = vb_slots_steer(s);

	if (fd)
		return fd;
	fd = claim_viewed(s, who, VIEW_OWN, slot);
	if (fd == -EUSERS)
		fd = claim_viewed(s, who, VIEW_UNUSED, slot);
	if (fd == -EUSERS)
		fd = claim_new(s, who, slot);
	if (fd == -EUSERS) {
		offer_again(s);
		fd = claim_viewed(s, who, VIEW_OTHERS, slot);
	}
	if (fd < 0)
		return fd;
	s->taken[*slot] = true;
	*name = fd;
	return 0;
}
bool vb_slots_rest(struct vb_slots *s, unsigned slot)
{
	if (slot == 0 || slot >= s->count)
		return true;
	s->taken[slot] = slots_is_taken(slot);
	if (s->taken[slot])
		return false;
	shrink_queue(s->fds[slot]);
	slots_drain(s->fds[slot]);
	return true;
}

unsigned vb_slots_taken(struct vb_slots *s)
{
	unsigned taken = 0;

	for (unsigned i = 1; i < s->count; i++) {
		s->taken[i] = slots_is_taken(i);
		taken += s->taken[i];
	}
	return taken;
}

unsigned vb_slots_taken_lately(struct vb_slots *s, vb_time now)
{
	unsigned taken = 0;

	if (s->counted_at == 0 || now - s->counted_at >= COUNT_AGE) {
		s->counted_at = now;
		return vb_slots_taken(s);
	}
	for (unsigned i = 1; i < s->count; i++)
		taken += s->taken[i];
	return taken;
}
