/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of places, and the messages of their fabrics. */
#include "broker/place.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <infiniband/umad.h>

#include "base/apart.h"
#include "base/fdmail.h"
#include "base/log.h"
#include "wire/lrh.h"
#include "wire/verbs_ipc.h"

/* The most places that the programs of one user may give to the broker. Root
 * and the broker's own user have no such limit. */
#define MOST_OF_USER 16
/* The most messages that one call handles. */
#define MOST_MESSAGES 64
#define HOP_LIMIT     64
#define STATE_ACTIVE  4 /* PortState of PortInfo */
#define LMC_MAX	      7
#define MEMBERSHIP    0x8000
#define RECEIVE	      (sizeof(struct vb_umad_mad) + VB_UMAD_INLINE)

_Static_assert(sizeof(struct ib_user_mad) == VB_UMAD_HEADER, "one header");

struct place {
	int fd; /* the connection; -1: there is no place, or it has ended */
	bool taken;
	unsigned users; /* programs that use the place */
	/* the fabric's process, as the kernel identifies it */
	pid_t pid;
	uid_t uid;
	uid_t giver; /* user of the program that gave the connection */
	struct vb_place_claim claim;
	/* the state of the port that the fabric has last reported */
	struct vb_verbs_port port;
};

struct vb_places {
	struct vb_place_ops ops;
	int epoll;
	struct place list[VB_IPC_CM_PLACES];
};

/* Returns the place; NULL: there is none of that number, or it has ended. */
static struct place *place_at(const struct vb_places *all, unsigned number)
{
	const struct place *p;

	if (number < 1 || number > VB_IPC_CM_PLACES)
		return NULL;
	p = &all->list[number - 1];
	return p->taken && p->fd >= 0 ? (struct place *)(uintptr_t)p : NULL;
}

static unsigned number_of(const struct vb_places *all, const struct place *p)
{
	return (unsigned)(p - all->list) + 1;
}

int vb_places_create(const struct vb_place_ops *ops, struct vb_places **places)
{
	struct vb_places *all = calloc(1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	all->ops = *ops;
	all->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (all->epoll < 0) {
		free(all);
		return -errno;
	}
	for (unsigned i = 0; i < VB_COUNT(all->list); i++)
		all->list[i].fd = -1;
	*places = all;
	return 0;
}

void vb_places_destroy(struct vb_places *all)
{
	for (unsigned i = 0; i < VB_COUNT(all->list); i++)
		if (all->list[i].fd >= 0)
			close(all->list[i].fd);
	close(all->epoll);
	free(all);
}

int vb_places_fd(const struct vb_places *all)
{
	return all->epoll;
}

/* --- giving and using places --- */

/* Identifies the process at the other end of @fd. A user may use only a fabric
 * of its own; root may use all. A fabric ends the connection of another user's
 * program, but that program has the connection for a moment; and all users that
 * this namespace does not map have one number. */
static int identify(int fd, uid_t user, pid_t *pid, uid_t *uid)
{
	struct ucred peer = { 0 };
	socklen_t len = sizeof(peer);

	if (!vb_fdmail_has_option(fd, SO_DOMAIN, AF_UNIX) ||
	    !vb_fdmail_has_option(fd, SO_TYPE, SOCK_SEQPACKET) ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return -EPROTO;
	if (user != 0 && (peer.uid != user || vb_fdmail_is_stranger(user)))
		return -EPERM;
	*pid = peer.pid;
	*uid = peer.uid;
	return 0;
}

int vb_place_find(const struct vb_places *all, int fd, uid_t uid,
		  const struct vb_place_claim *claim)
{
	pid_t pid;
	uid_t owner;
	int rc = identify(fd, uid, &pid, &owner);

	for (unsigned i = 0; rc == 0 && i < VB_COUNT(all->list); i++) {
		const struct place *p = &all->list[i];

		if (p->fd >= 0 && p->pid == pid && p->uid == owner &&
		    p->claim.node_guid == claim->node_guid &&
		    p->claim.port == claim->port)
			return (int)number_of(all, p);
	}
	return rc ? rc : -ENOENT;
}

static bool is_allowed_more(const struct vb_places *all, uid_t giver)
{
	unsigned count = 0;

	if (giver == 0 || giver == geteuid())
		return true;
	for (unsigned i = 0; i < VB_COUNT(all->list); i++)
		count += all->list[i].taken && all->list[i].giver == giver;
	return count < MOST_OF_USER;
}

static struct place *choose_room(struct vb_places *all, unsigned wanted)
{
	if (wanted >= 1 && wanted <= VB_IPC_CM_PLACES &&
	    !all->list[wanted - 1].taken)
		return &all->list[wanted - 1];
	for (unsigned i = 0; i < VB_COUNT(all->list); i++)
		if (!all->list[i].taken)
			return &all->list[i];
	return NULL;
}

static bool place_is_sane(const struct place *p, const struct vb_verbs_port *to)
{
	return to->head.magic == VB_UMAD_MAGIC && to->head.kind == VERBS_PORT &&
	       to->node_guid == p->claim.node_guid && to->lmc <= LMC_MAX &&
	       to->lid < VB_LID_MCAST && to->sm_lid < VB_LID_MCAST &&
	       to->sm_sl <= 15 && to->pkeys <= VB_VERBS_PKEYS &&
	       to->guids <= VB_VERBS_GUIDS;
}

/* Reads the state of the port, which is the first message on the connection:
 * before the program registered its agents, it asked the fabric for this
 * message, and waited until it came. */
static int place_read_port(struct place *p)
{
	unsigned none = 0;
	ssize_t n = vb_fdmail_recv(p->fd, &p->port, sizeof(p->port), NULL,
				   &none, MSG_DONTWAIT);

	return n == sizeof(p->port) && place_is_sane(p, &p->port) ? 0 : -EPROTO;
}

static int await_fabric(const struct vb_places *all, const struct place *p,
			int fd)
{
	struct epoll_event event = { .events = EPOLLIN,
				     .data.u32 = number_of(all, p) };

	return epoll_ctl(all->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno
								    : 0;
}

int vb_place_add(struct vb_places *all, int fd, uid_t uid,
		 const struct vb_place_claim *claim)
{
	struct place *p = choose_room(all, claim->wanted);
	struct place made = {
		.fd = fd, .taken = true, .giver = uid, .claim = *claim
	};
	int rc = identify(fd, uid, &made.pid, &made.uid);

	if (rc == 0 && !is_allowed_more(all, uid))
		rc = -EDQUOT;
	if (rc == 0 && !p)
		rc = -ENOSPC;
	if (rc == 0)
		rc = place_read_port(&made);
	if (rc == 0)
		rc = await_fabric(all, p, fd);
	if (rc)
		return rc;
	*p = made;
	return (int)number_of(all, p);
}

void vb_place_hold(struct vb_places *all, unsigned place)
{
	all->list[place - 1].users++;
}

void vb_place_drop(struct vb_places *all, unsigned place)
{
	all->list[place - 1].users--;
}

/* Closes the connection. Programs that use the place keep its number until they
 * end, so that no other place gets it meanwhile. The program that gave the
 * descriptor may still have it open, so closing this one would not end the
 * watch, and a connection that has ended would keep the broker awake. */
static void close_place(const struct vb_places *all, struct place *p)
{
	if (p->fd >= 0) {
		(void)epoll_ctl(all->epoll, EPOLL_CTL_DEL, p->fd, NULL);
		close(p->fd);
	}
	p->fd = -1;
}

void vb_place_reap(struct vb_places *all)
{
	for (unsigned i = 0; i < VB_COUNT(all->list); i++) {
		struct place *p = &all->list[i];

		if (!p->taken || p->users)
			continue;
		/* The next place of this number must not find paths and groups
		 * of this one. */
		if (p->fd >= 0)
			all->ops.changed(all->ops.arg, number_of(all, p),
					 PLACE_ENDED);
		close_place(all, p);
		p->taken = false;
	}
}

bool vb_place_is_idle(const struct vb_places *all)
{
	for (unsigned i = 0; i < VB_COUNT(all->list); i++)
		if (all->list[i].taken && !all->list[i].users)
			return true;
	return false;
}

/* --- the port --- */

static struct vb_gid place_gid_of(const struct vb_verbs_port *p, unsigned i)
{
	struct vb_gid gid = { { 0 } };

	if (i >= p->guids || !p->guid[i])
		return gid;
	vb_store_be(gid.raw, p->gid_prefix, 8);
	vb_store_be(gid.raw + 8, p->guid[i], 8);
	return gid;
}

bool vb_place_has_gid(const struct vb_places *all, unsigned place,
		      const struct vb_gid *gid)
{
	const struct place *p = place_at(all, place);

	for (unsigned i = 0; p && i < p->port.guids; i++) {
		const struct vb_gid own = place_gid_of(&p->port, i);

		if (!vb_gid_is_zero(&own) && vb_gid_equal(&own, gid))
			return true;
	}
	return false;
}

struct vb_gid vb_place_gid(const struct vb_places *all, unsigned place)
{
	static const struct vb_gid none;
	const struct place *p = place_at(all, place);

	return p ? place_gid_of(&p->port, 0) : none;
}

bool vb_place_has_lid(const struct vb_places *all, unsigned place, uint16_t lid,
		      uint8_t *path_bits)
{
	const struct place *p = place_at(all, place);
	unsigned count = p ? 1u << p->port.lmc : 0;

	if (!p || !p->port.lid || lid < p->port.lid ||
	    lid - p->port.lid >= (int)count)
		return false;
	*path_bits = (uint8_t)(lid - p->port.lid);
	return true;
}

uint16_t vb_place_lid(const struct vb_places *all, unsigned place)
{
	const struct place *p = place_at(all, place);

	return p ? p->port.lid : 0;
}

int vb_place_pkey_index(const struct vb_places *all, unsigned place,
			uint16_t pkey)
{
	const struct place *p = place_at(all, place);
	int found = -ENOENT;

	for (unsigned i = 0; p && i < p->port.pkeys; i++) {
		uint16_t own = p->port.pkey[i];

		if ((own ^ pkey) & ~MEMBERSHIP || !(own & ~MEMBERSHIP))
			continue;
		if (own & MEMBERSHIP)
			return (int)i;
		if (found < 0)
			found = (int)i;
	}
	return found;
}

/* --- messages from a fabric --- */

static void end_place(struct vb_places *all, struct place *p, const char *why)
{
	vb_log(LOG_INFO, "broker: place %u, node %#llx: %s", number_of(all, p),
	       (unsigned long long)p->claim.node_guid, why);
	close_place(all, p);
	memset(&p->port, 0, sizeof(p->port));
	all->ops.changed(all->ops.arg, number_of(all, p), PLACE_ENDED);
}

static unsigned place_compare(const struct vb_verbs_port *was,
			      const struct vb_verbs_port *is)
{
	unsigned what = 0;

	if (was->lid != is->lid || was->lmc != is->lmc ||
	    was->gid_prefix != is->gid_prefix ||
	    memcmp(was->guid, is->guid, sizeof(is->guid)) != 0 ||
	    memcmp(was->pkey, is->pkey, sizeof(is->pkey)) != 0)
		what |= PLACE_CHANGED_ADDRESS;
	if (was->sm_lid != is->sm_lid || was->sm_sl != is->sm_sl)
		what |= PLACE_CHANGED_MANAGER;
	if ((was->state == STATE_ACTIVE) != (is->state == STATE_ACTIVE))
		what |= PLACE_CHANGED_STATE;
	if (was->reregisters != is->reregisters)
		what |= PLACE_REREGISTER;
	return what;
}

static void take_port_news(struct vb_places *all, struct place *p,
			   const struct vb_verbs_port *now)
{
	unsigned what;

	if (!place_is_sane(p, now)) {
		end_place(all, p, "what its fabric says is impossible");
		return;
	}
	what = place_compare(&p->port, now);
	p->port = *now;
	if (what)
		all->ops.changed(all->ops.arg, number_of(all, p), what);
}

/* Returns the path to the sender of the MAD with the header @u. */
static struct vb_mad_path path_back(const struct vb_places *all,
				    const struct place *p,
				    const struct ib_user_mad *u)
{
	unsigned pkey = u->addr.pkey_index;
	struct vb_mad_path back = {
		.sgid = place_gid_of(&p->port, 0),
		.place = (uint8_t)number_of(all, p),
		.sl = u->addr.sl & 15,
		.path_bits = u->addr.path_bits & 127,
		.dlid = be16toh(u->addr.lid),
		.pkey = p->port.pkey[pkey < p->port.pkeys ? pkey : 0],
		.global = u->addr.grh_present,
	};

	if (!back.global)
		return back;
	memcpy(back.dgid.raw, u->addr.gid, sizeof(back.dgid.raw));
	back.tclass = u->addr.traffic_class;
	back.flow_label = be32toh(u->addr.flow_label) & 0xfffff;
	back.hop_limit = HOP_LIMIT;
	return back;
}

static void place_take_mad(struct vb_places *all, const struct place *p,
			   const struct vb_umad_mad *m, const uint8_t *data,
			   size_t len)
{
	struct vb_mad_path back;
	struct ib_user_mad u;

	memcpy(&u, m->header, sizeof(u));
	if (u.agent_id == p->claim.sa_agent) {
		all->ops.sa(all->ops.arg, number_of(all, p), u.status != 0,
			    data, len);
		return;
	}
	/* No answer is matched to a MAD of a connection manager, so one that
	 * comes back with a status is a MAD that could not be sent. */
	if (u.agent_id != p->claim.cm_agent || u.status)
		return;
	back = path_back(all, p, &u);
	all->ops.cm(all->ops.arg, &back, data, len);
}

struct fabric_message {
	union {
		struct vb_umad_head head;
		struct vb_umad_mad mad;
		struct vb_verbs_port port;
		uint8_t bytes[RECEIVE];
	};
};

static void take_fabric_message(struct vb_places *all, struct place *p,
				const struct fabric_message *m, size_t len)
{
	if (len < sizeof(m->head) || m->head.magic != VB_UMAD_MAGIC)
		end_place(all, p, "its fabric breaks the protocol");
	else if (m->head.kind == VERBS_PORT && len == sizeof(m->port))
		take_port_news(all, p, &m->port);
	else if (m->head.kind == UMAD_MAD && len >= sizeof(m->mad))
		place_take_mad(all, p, &m->mad, m->bytes + sizeof(m->mad),
			       len - sizeof(m->mad));
	/* All other messages of a fabric answer requests of the program that
	 * gave the connection, so the broker ignores them. */
}

/* Returns the number that identifies the user of a fabric's process, as the
 * owner of its descriptors, to vb_apart_close(). */
static uint64_t owner_of(const struct place *p)
{
	return p->uid == 0 || p->uid == geteuid() ? VB_APART_TRUSTED : p->uid;
}

/* Read one message. False: none has come, or no other will. */
static bool read_fabric(struct vb_places *all, struct place *p)
{
	/* static, because the broker has only one thread */
	static struct fabric_message m;
	unsigned count = vb_apart_has_room(owner_of(p));
	int fd = -1;
	ssize_t n = vb_fdmail_take(p->fd, m.bytes, sizeof(m.bytes), &fd, &count,
				   MSG_DONTWAIT);

	vb_apart_close(&fd, count, owner_of(p));
	if (n == -EAGAIN || n == -EINTR)
		return false;
	if (n <= 0) {
		end_place(all, p,
			  n ? strerror((int)-n) : "its fabric has ended");
		return false;
	}
	take_fabric_message(all, p, &m, (size_t)n);
	return p->fd >= 0;
}

void vb_places_poll(struct vb_places *all)
{
	struct epoll_event events[VB_IPC_CM_PLACES];
	int count = epoll_wait(all->epoll, events, VB_COUNT(events), 0);

	for (int i = 0; i < count; i++) {
		struct place *p = place_at(all, events[i].data.u32);

		for (unsigned k = 0; p && k < MOST_MESSAGES; k++)
			if (!read_fabric(all, p))
				break;
	}
}

/* --- messages to a fabric --- */

static int send_umad(const struct place *p, const struct ib_user_mad *u,
		     const uint8_t mad[VB_MAD_BYTES])
{
	uint8_t bytes[sizeof(struct vb_umad_mad) + VB_MAD_BYTES];
	struct vb_umad_mad m = {
		.head = { .magic = VB_UMAD_MAGIC,
			  .kind = UMAD_MAD,
			  .length = VB_MAD_BYTES },
	};

	memcpy(m.header, u, sizeof(m.header));
	memcpy(bytes, &m, sizeof(m));
	memcpy(bytes + sizeof(m), mad, VB_MAD_BYTES);
	return vb_fdmail_send(p->fd, bytes, sizeof(bytes), NULL, 0,
			      MSG_DONTWAIT);
}

/* Returns the index of the port's GID that is @gid; 0 if none is. */
static uint8_t gid_index_of(const struct place *p, const struct vb_gid *gid)
{
	for (unsigned i = 0; i < p->port.guids; i++) {
		const struct vb_gid own = place_gid_of(&p->port, i);

		if (vb_gid_equal(&own, gid))
			return (uint8_t)i;
	}
	return 0;
}

void vb_place_send(struct vb_places *all, const struct vb_mad_path *path,
		   const uint8_t mad[VB_MAD_BYTES])
{
	const struct place *p = place_at(all, path->place);
	int pkey = vb_place_pkey_index(all, path->place, path->pkey);
	struct ib_user_mad u = { 0 };

	if (!p || pkey < 0)
		return;
	u.agent_id = p->claim.cm_agent;
	u.addr.qpn = htobe32(VB_GSI_QPN);
	u.addr.qkey = htobe32(VB_GSI_QKEY);
	u.addr.lid = htobe16(path->dlid);
	u.addr.sl = path->sl;
	u.addr.path_bits = path->path_bits;
	u.addr.pkey_index = (uint16_t)pkey;
	u.addr.grh_present = path->global;
	if (path->global) {
		u.addr.gid_index = gid_index_of(p, &path->sgid);
		u.addr.hop_limit = path->hop_limit;
		u.addr.traffic_class = path->tclass;
		u.addr.flow_label = htobe32(path->flow_label);
		memcpy(u.addr.gid, path->dgid.raw, sizeof(u.addr.gid));
	}
	if (send_umad(p, &u, mad))
		vb_log(LOG_DEBUG, "broker: a fabric does not read its MADs");
}

int vb_place_ask(struct vb_places *all, unsigned place,
		 const uint8_t mad[VB_MAD_BYTES], uint32_t timeout_ms,
		 uint32_t retries)
{
	const struct place *p = place_at(all, place);
	struct ib_user_mad u = { 0 };

	if (!p)
		return -ENODEV;
	if (!p->port.sm_lid || p->port.state != STATE_ACTIVE)
		return -EAGAIN;
	u.agent_id = p->claim.sa_agent;
	u.timeout_ms = timeout_ms;
	u.retries = retries;
	u.addr.qpn = htobe32(VB_GSI_QPN);
	u.addr.qkey = htobe32(VB_GSI_QKEY);
	u.addr.lid = htobe16(p->port.sm_lid);
	u.addr.sl = p->port.sm_sl;
	return send_umad(p, &u, mad);
}
