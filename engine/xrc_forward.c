/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XRC between processes of one host that share an inode's XRC domain. A packet
 * for a target queue pair arrives at the process that made the queue pair; the
 * shared receive queue that the packet names may belong to another process.
 * Then the first process forwards the packet to the second by a UNIX socket,
 * gets a verdict back, and answers the packet with it (ib/xrc_forward.h).
 *
 * The number of a shared queue begins with its process's slot, and so does the
 * abstract name that the process listens at; a name is free again when its
 * process ends. Sessions exist only between processes of the same user. Only
 * the engine thread reads requests.
 */
#include "core/lock_order.h"
#include "engine/engine_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/apart.h"
#include "base/fdmail.h"
#include "base/fork.h"
#include "base/log.h"
#include "core/xrc.h"
#include "engine/xrc_listener.h"
#include "ib/xrc_forward.h"

#define MOST_GUESTS 1024 /* the most guests in one session */

/* Bytes of the socket's send buffer, if the system allows so many. */
#define SEND_ROOM (1 << 20)

enum forward_kind {
	FORWARD_REQUEST = 0x58524351,
	FORWARD_VERDICT = 0x58524356,
	FORWARD_FETCH = 0x58524346,
	FORWARD_BYTES = 0x58524342,
};

/* A message between processes of one host, as it is in memory: both have an
 * equal layout and byte order. */
struct forward_msg {
	uint32_t kind;
	uint32_t tqpn; /* number of the target queue pair */
	uint64_t serial;
	/* The field of verdicts. */
	/* The result, an enum vb_fault. In a FORWARD_BYTES message the bytes
	 * that were fetched follow. */
	uint32_t fault;
	/* Fields of a request, behind which the packet comes, from BTH through
	 * pad. Behind a fetch comes a struct vb_forward_piece. */
	uint32_t sqpn, mtu;
	uint64_t value; /* of a verdict: the result of an atomic */
	uint64_t guid;	/* GUID of the device */
	struct vb_xrc_key domain;
};

/* The state of a target queue pair of another process. Only the engine thread
 * uses it. */
struct guest {
	struct vb_forward_qp forward;
	uint64_t guid;
	struct guest *next;
};

struct session {
	int fd;
	uint64_t id;
	/* The slot of the process to which this one connected; 0: the other
	 * process connected. */
	uint32_t slot;
	struct guest *guests; /* list of guests; the one used last is first */
	unsigned guest_count;
	struct session *next;
};

struct vb_forward {
	struct vb_engine *e;
	struct vb_xrc_listener listener; /* at this process's slots */
	int epoll_fd;
	/* a leaf lock: no lock is taken while it is held */
	struct vb_mutex lock;
	/* List of sessions, guarded by lock; only the engine thread removes
	 * one. */
	struct session *sessions;
	uint64_t ids; /* the last session id; guarded by lock */
};

static bool is_same_user(int fd)
{
	struct ucred who;
	socklen_t len = sizeof(who);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 &&
	       who.uid == geteuid();
}

/* Add a session; the caller holds the lock of @f. The session owns @fd; on
 * failure (NULL) this function closes @fd. */
static struct session *add_session(struct vb_forward *f, int fd, uint32_t slot)
{
	struct session *s = calloc(1, sizeof(*s));
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = s };

	if (!s || epoll_ctl(f->epoll_fd, EPOLL_CTL_ADD, fd, &ev)) {
		free(s);
		close(fd);
		return NULL;
	}
	s->fd = fd;
	vb_fork_closes(fd);
	s->slot = slot;
	s->id = ++f->ids;
	s->next = f->sessions;
	f->sessions = s;
	return s;
}

static int eng_xrc_forward_connect_to(int fd, uint32_t slot)
{
	struct sockaddr_un a;
	socklen_t len = vb_xrc_name(slot, &a);

	if (connect(fd, (struct sockaddr *)&a, len))
		return -errno;
	return is_same_user(fd) ? 0 : -EPERM;
}

/* Connect to the process that has @slot. NULL: there is none. The caller holds
 * the lock of @f. */
static struct session *eng_call(struct vb_forward *f, uint32_t slot)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
			0);
	int rc;

	if (fd < 0)
		return NULL;
	rc = eng_xrc_forward_connect_to(fd, slot);
	if (rc) {
		vb_log(LOG_INFO,
		       "xrc: no process of this user has slot %u and a domain to share: %s",
		       slot, strerror(-rc));
		close(fd);
		return NULL;
	}
	return add_session(f, fd, slot);
}

/* Returns the session with the process that has @slot, made if necessary. The
 * caller holds the lock of @f. */
static struct session *session_with(struct vb_forward *f, uint32_t slot)
{
	struct session *s = f->sessions;

	while (s && s->slot != slot)
		s = s->next;
	return s ? s : eng_call(f, slot);
}

static struct vb_forward *running_forward(void)
{
	struct vb_engine *e = vb_engine_running();

	return e ? atomic_load(&e->forward) : NULL;
}

/* The functions below run in the process that has the target queue pair. */

static enum vb_fault send_msg(int fd, struct iovec *v, unsigned count)
{
	struct msghdr m = { .msg_iov = v, .msg_iovlen = count };

	if (sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return FAULT_NONE;
	return errno == EAGAIN ? FAULT_NO_RQE : FAULT_XRC_SRQ;
}

static struct forward_msg msg_of(const struct vb_qp *qp, enum forward_kind kind,
				 uint64_t serial)
{
	return (struct forward_msg){
		.kind = kind,
		.tqpn = atomic_load(&qp->qpn),
		.serial = serial,
		.sqpn = qp->attr.dest_qp_num,
		.mtu = qp->mtu,
		.guid = qp->adapter->guid,
		.domain = qp->xrc_domain->key,
	};
}

/* Send a request to the process that has the shared queue @srqn. */
static enum vb_fault send_to_owner(uint32_t srqn, struct iovec *v,
				   unsigned count, uint64_t *session)
{
	uint32_t slot = srqn >> VB_QPN_BITS;
	enum vb_fault fault = FAULT_XRC_SRQ;
	struct vb_forward *f = running_forward();
	struct session *s;

	/* The number comes from a packet and is not trusted. No program has
	 * slot 0, which in the list of sessions stands for processes that
	 * connected to this one. */
	if (!f || slot == 0 || vb_host_slot_is_own(f->e, slot))
		return FAULT_XRC_SRQ;
	vb_mutex_lock(&f->lock);
	s = session_with(f, slot);
	if (s) {
		*session = s->id;
		fault = send_msg(s->fd, v, count);
	}
	vb_mutex_unlock(&f->lock);
	return fault;
}

static enum vb_fault eng_xrc_forward_hand_over(struct vb_qp *qp,
					       const struct vb_ib_pkt *pkt,
					       uint64_t serial,
					       uint64_t *session)
{
	struct forward_msg l = msg_of(qp, FORWARD_REQUEST, serial);
	uint8_t headers[VB_IB_MAX_HDR_BYTES];
	static const uint8_t zeros[3];
	struct iovec v[] = {
		{ &l, sizeof(l) },
		{ headers, vb_ib_put_headers(headers, pkt) },
		{ (void *)(uintptr_t)pkt->payload, pkt->payload_bytes },
		{ (void *)(uintptr_t)zeros, pkt->bth.pad },
	};

	return send_to_owner(pkt->xrc_srqn, v, VB_COUNT(v), session);
}

static enum vb_fault ask_for_piece(struct vb_qp *qp,
				   const struct vb_forward_piece *piece,
				   uint64_t serial, uint64_t *session)
{
	struct forward_msg l = msg_of(qp, FORWARD_FETCH, serial);
	struct vb_forward_piece p = *piece;
	struct iovec v[] = { { &l, sizeof(l) }, { &p, sizeof(p) } };

	return send_to_owner(p.srqn, v, VB_COUNT(v), session);
}

static bool is_up(uint64_t session)
{
	struct vb_forward *f = running_forward();
	struct session *s;

	if (!f)
		return false;
	vb_mutex_lock(&f->lock);
	for (s = f->sessions; s && s->id != session; s = s->next)
		;
	vb_mutex_unlock(&f->lock);
	return s;
}

const struct vb_forward_ops vb_engine_forward_ops = { eng_xrc_forward_hand_over,
						      ask_for_piece, is_up };

static bool is_verdict(uint32_t fault)
{
	return fault == FAULT_NONE ||
	       (fault >= FAULT_RKEY && fault < FAULT_COUNT &&
		fault != FAULT_PSN_GAP);
}

/* Handle the answer to a forwarded request: a verdict, or bytes. False: the
 * message is neither of these. */
static bool take_reply(struct vb_engine *e, const struct forward_msg *l,
		       const uint8_t *bytes, size_t len)
{
	struct vb_qp *qp = NULL;

	if (l->kind != FORWARD_VERDICT && l->kind != FORWARD_BYTES)
		return false;
	if (!is_verdict(l->fault))
		return true;
	if (vb_host_slot_is_own(e, l->tqpn >> VB_QPN_BITS))
		qp = vb_idtab_get(e->qps, l->tqpn & ((1u << VB_QPN_BITS) - 1));
	if (!qp)
		return true;
	vb_mutex_lock(&qp->drive);
	if (atomic_load(&qp->qpn) == l->tqpn && qp->type == QPT_XRC_RECV) {
		(void)vb_qp_advance(qp, vb_now());
		if (l->kind == FORWARD_BYTES)
			vb_forward_bytes(qp, l->serial, (enum vb_fault)l->fault,
					 bytes, (uint32_t)len);
		else
			vb_forward_verdict(qp, l->serial,
					   (enum vb_fault)l->fault, l->value);
		vb_drive_step(e, qp, qp->now);
	}
	vb_drive_release(e, qp);
	return true;
}

/* The functions below run in the process that has the shared queue. */

/* Returns the adapter with this GUID, or NULL. The caller holds list_lock. */
static struct vb_adapter *adapter_of(struct vb_engine *e, uint64_t guid)
	VB_REQUIRES(e->list_lock)
{
	for (struct vb_open_adapter *oa = e->adapters; oa; oa = oa->next)
		if (oa->adapter.guid == guid)
			return &oa->adapter;
	return NULL;
}

static bool is_between_messages(const struct guest *g)
{
	const struct vb_ib_op *prev = g->forward.prev;

	return !g->forward.qp.recv_busy && (!prev || prev->place & PLACE_LAST);
}

/* Forget the guest that was used least recently and is between two messages: no
 * process tells this one when its target queue pair is destroyed. Between two
 * messages there is nothing to remember, so if the queue pair still exists, its
 * next request makes a new guest. */
static bool drop_oldest(struct session *s)
{
	struct guest **oldest = NULL, *g;

	for (struct guest **at = &s->guests; *at; at = &(*at)->next)
		if (is_between_messages(*at))
			oldest = at;
	if (!oldest)
		return false;
	g = *oldest;
	*oldest = g->next;
	s->guest_count--;
	vb_mutex_fini(&g->forward.qp.drive);
	free(g);
	return true;
}

static struct guest *make_guest(struct session *s, const struct forward_msg *l)
{
	struct guest *g;

	if (s->guest_count == MOST_GUESTS && !drop_oldest(s))
		return NULL;
	g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	s->guest_count++;
	g->guid = l->guid;
	g->forward.qp.type = QPT_XRC_RECV;
	/* The guest permits every access, because the process that has the
	 * target queue pair checks the access flags before it forwards a
	 * request. */
	g->forward.qp.attr.access_flags = UINT32_MAX;
	vb_mutex_init(&g->forward.qp.drive, RANK_DRIVE);
	atomic_store(&g->forward.qp.state, QPS_RTS);
	atomic_store(&g->forward.qp.qpn, l->tqpn);
	return g;
}

static bool is_of(const struct guest *g, const struct forward_msg *l)
{
	return atomic_load(&g->forward.qp.qpn) == l->tqpn && g->guid == l->guid;
}

static struct guest *guest_of(struct session *s, const struct forward_msg *l)
{
	struct guest **at = &s->guests, *g;

	while (*at && !is_of(*at, l))
		at = &(*at)->next;
	g = *at;
	if (g)
		*at = g->next;
	else
		g = make_guest(s, l);
	if (!g)
		return NULL;
	g->next = s->guests;
	s->guests = g;
	return g;
}

/* Carry out a request. The caller holds list_lock, so that the adapter stays.
 */
static enum vb_fault eng_take_request(struct vb_engine *e, struct session *s,
				      struct forward_msg *l,
				      const uint8_t *bytes, size_t len)
	VB_REQUIRES(e->list_lock)
{
	struct vb_adapter *a = adapter_of(e, l->guid);
	struct guest *g = a ? guest_of(s, l) : NULL;
	struct vb_ib_pkt pkt;
	enum vb_fault fault;
	struct vb_qp *qp;

	if (!g)
		return FAULT_XRC_SRQ;
	if (vb_ib_parse(bytes, len, &pkt) != PARSE_OK ||
	    pkt.bth.opcode >> 5 != CLASS_XRC || pkt.op->response ||
	    l->mtu < vb_mtu_bytes(1) || l->mtu > vb_mtu_bytes(5))
		return FAULT_LENGTH;
	qp = &g->forward.qp;
	vb_mutex_lock(&g->forward.qp.drive);
	qp->adapter = a;
	atomic_store(&qp->port, &a->ports[0]);
	qp->mtu = l->mtu;
	qp->attr.dest_qp_num = l->sqpn & 0xffffff;
	(void)vb_qp_advance(&g->forward.qp, vb_now());
	fault = vb_forward_take(&g->forward, &l->domain, &pkt, &l->value);
	vb_mutex_unlock(&g->forward.qp.drive);
	return fault;
}

static void answer_forward(struct vb_engine *e, struct session *s,
			   struct forward_msg *l, const uint8_t *bytes,
			   size_t len)
{
	l->value = 0;
	vb_mutex_lock(&e->list_lock);
	l->fault = eng_take_request(e, s, l, bytes, len);
	vb_mutex_unlock(&e->list_lock);
	l->kind = FORWARD_VERDICT;
	/* A process waits for the verdict before its next request, so there is
	 * room for this one; if there is none after all, end the session, as if
	 * this process had never been there. */
	if (send(s->fd, l, sizeof(*l), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		shutdown(s->fd, SHUT_RDWR);
}

/* Read the bytes that a fetch asks for. The caller holds list_lock. */
static enum vb_fault read_piece(struct vb_engine *e, struct session *s,
				const struct forward_msg *l,
				const struct vb_forward_piece *piece,
				uint8_t *to) VB_REQUIRES(e->list_lock)
{
	struct vb_adapter *a = adapter_of(e, l->guid);
	struct guest *g = a ? guest_of(s, l) : NULL;
	enum vb_fault fault;

	if (!g)
		return FAULT_XRC_SRQ;
	vb_mutex_lock(&g->forward.qp.drive);
	g->forward.qp.adapter = a;
	fault = vb_forward_read(&g->forward, &l->domain, piece, to);
	vb_mutex_unlock(&g->forward.qp.drive);
	return fault;
}

/* Has the socket room for a FORWARD_BYTES message? Many fetches at once could
 * fill the socket, so half of its buffer is kept for verdicts and refusals. */
static bool eng_has_room(int fd)
{
	int waiting, room;
	socklen_t len = sizeof(room);

	return ioctl(fd, SIOCOUTQ, &waiting) == 0 &&
	       getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, &len) == 0 &&
	       waiting < room / 2;
}

static void give_bytes(struct vb_engine *e, struct session *s,
		       struct forward_msg *l,
		       const struct vb_forward_piece *piece)
{
	uint8_t bytes[VB_FORWARD_BYTES];
	struct iovec v[] = { { l, sizeof(*l) }, { bytes, piece->length } };

	l->kind = FORWARD_BYTES;
	l->fault = FAULT_NO_RQE;
	if (eng_has_room(s->fd)) {
		vb_mutex_lock(&e->list_lock);
		l->fault = read_piece(e, s, l, piece, bytes);
		vb_mutex_unlock(&e->list_lock);
	}
	if (send_msg(s->fd, v, l->fault ? 1 : 2))
		shutdown(s->fd, SHUT_RDWR);
}

/* Handle a request of another process. False: the message is not a request. */
static bool take_question(struct vb_engine *e, struct session *s,
			  struct forward_msg *l, const uint8_t *bytes,
			  size_t len)
{
	struct vb_forward_piece piece;

	if (l->kind == FORWARD_REQUEST) {
		answer_forward(e, s, l, bytes, len);
		return true;
	}
	if (l->kind != FORWARD_FETCH || len != sizeof(piece))
		return false;
	memcpy(&piece, bytes, len);
	if (piece.length > VB_FORWARD_BYTES)
		return false;
	give_bytes(e, s, l, &piece);
	return true;
}

static void end_guests(struct vb_engine *e, struct session *s)
{
	struct vb_adapter *a;
	struct guest *g;

	vb_mutex_lock(&e->list_lock);
	while ((g = s->guests)) {
		s->guests = g->next;
		a = adapter_of(e, g->guid);
		vb_mutex_lock(&g->forward.qp.drive);
		/* Look up the adapter again: closing it destroyed its shared
		 * queues, and the program may have opened the device again
		 * since. */
		g->forward.qp.adapter = a;
		if (a)
			vb_forward_end(&g->forward);
		vb_mutex_unlock(&g->forward.qp.drive);
		vb_mutex_fini(&g->forward.qp.drive);
		free(g);
	}
	vb_mutex_unlock(&e->list_lock);
}

/* The functions below run in the engine thread. */

static void close_session(struct vb_forward *f, struct session *s)
{
	struct session **at = &f->sessions;

	vb_mutex_lock(&f->lock);
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	vb_mutex_unlock(&f->lock);
	end_guests(f->e, s);
	/* Remove the socket explicitly: a child of fork may hold it open for a
	 * moment, and the epoll set would go on reporting it. */
	(void)epoll_ctl(f->epoll_fd, EPOLL_CTL_DEL, s->fd, NULL);
	vb_apart_hang_up(s->fd);
	free(s);
}

/* Read one message. False: the session is over. */
static bool take_msg(struct vb_forward *f, struct session *s)
{
	struct {
		struct forward_msg l;
		uint8_t bytes[VB_MAX_CONST(VB_FRAME_MAX, VB_FORWARD_BYTES)];
	} in;
	int fds[VB_FDMAIL_MOST];
	unsigned count = VB_COUNT(fds);
	ssize_t n = vb_fdmail_take(s->fd, &in, sizeof(in), fds, &count,
				   MSG_DONTWAIT);

	/* An honest process sends no descriptors with a message. If some came,
	 * another thread closes them, because close() of a hostile process's
	 * file may wait. */
	vb_apart_drop(fds, count);
	if (n < 0)
		return n == -EAGAIN || n == -EINTR;
	if ((size_t)n < sizeof(in.l) || count)
		return false;
	return s->slot ? take_reply(f->e, &in.l, in.bytes,
				    (size_t)n - sizeof(in.l))
		       : take_question(f->e, s, &in.l, in.bytes,
				       (size_t)n - sizeof(in.l));
}

static void take_forwarder(struct vb_forward *f, int fd)
{
	static const int room = SEND_ROOM;

	if (!is_same_user(fd)) {
		vb_apart_hang_up(fd);
		return;
	}
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	vb_mutex_lock(&f->lock);
	(void)add_session(f, fd, 0);
	vb_mutex_unlock(&f->lock);
}

static void accept_sessions(struct vb_forward *f)
{
	int fd;

	while ((fd = vb_xrc_listener_accept(&f->listener)) >= 0)
		take_forwarder(f, fd);
}

void vb_forward_serve(struct vb_forward *f)
{
	struct epoll_event ev[16];
	int n = epoll_wait(f->epoll_fd, ev, VB_COUNT(ev), 0);

	for (int i = 0; i < n; i++) {
		struct session *s = ev[i].data.ptr;

		if (!s)
			accept_sessions(f);
		else if (!take_msg(f, s))
			close_session(f, s);
	}
}

int vb_forward_fd(const struct vb_forward *f)
{
	return f->epoll_fd;
}

/* Listen at the names of all slots that this process has. */
static int listen_at_slots(struct vb_forward *f)
{
	int slot = vb_host_slot(f->e), rc;

	if (slot < 0)
		return slot;
	rc = vb_xrc_listener_add(&f->listener, 0, (uint32_t)slot);
	if (rc == 0 && f->e->slot && f->e->lease.slot)
		vb_forward_join(f);
	return rc;
}

void vb_forward_join(struct vb_forward *f)
{
	int rc = vb_xrc_listener_add(&f->listener, 1, f->e->lease.slot);

	if (rc)
		vb_log(LOG_INFO,
		       "xrc: other processes do not reach the domains of slot %u: %s",
		       f->e->lease.slot, strerror(-rc));
}

/* Make the set of descriptors, and listen. 0 or -errno. */
static int begin_to_listen(struct vb_forward *f)
{
	int rc;

	f->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (f->epoll_fd < 0)
		return -errno;
	rc = vb_xrc_listener_init(&f->listener, f->epoll_fd);
	if (rc == 0) {
		rc = listen_at_slots(f);
		if (rc)
			vb_xrc_listener_fini(&f->listener);
	}
	if (rc)
		close(f->epoll_fd);
	return rc;
}

int vb_forward_create(struct vb_engine *e, struct vb_forward **out)
{
	struct vb_forward *f = calloc(1, sizeof(*f));
	int rc;

	if (!f)
		return -ENOMEM;
	f->e = e;
	vb_mutex_init(&f->lock, VB_RANK_LEAF);
	rc = begin_to_listen(f);
	if (rc) {
		vb_mutex_fini(&f->lock);
		free(f);
		return rc;
	}
	*out = f;
	return 0;
}

void vb_forward_destroy(struct vb_forward *f)
{
	while (f->sessions)
		close_session(f, f->sessions);
	vb_xrc_listener_fini(&f->listener);
	close(f->epoll_fd);
	vb_mutex_fini(&f->lock);
	free(f);
}
