/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iWARP's connections: TCP's, with MPA's request and reply before the stream is
 * the queue pair's (iwarp/setup.h). Ports are TCP's, so that programs share
 * them as they share TCP's, and there is no broker.
 *
 * A thread of this file's own waits for what is slow: connections to come, to
 * be made, requests and replies. What it finds are events for the program;
 * what a program's thread can do at once, such as accepting, it does itself.
 */
#include "front/rdmacm/rdmacm.h"

#include <netinet/tcp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"
#include "front/verbs/streams.h"
#include "iwarp/setup.h"

#define EVENTS		64
#define CONNECT_WAIT	(30 * VB_SEC)
#define REPLY_WAIT	(10 * VB_SEC) /* WIRE 4.1: as siw */
#define REQUEST_WAIT	(5 * VB_SEC)
#define ASKED_WAIT	(60 * VB_SEC) /* whoever calls has given up then */
#define LINGER		(500 * VB_MSEC)
#define ACCEPT_AGAIN	(100 * VB_MSEC) /* without a descriptor to be had */
#define MOST_PRIVATE	252		/* siw takes 256 with the depths */
#define ACCEPTS_AT_ONCE 64
#define MOST_BACKLOG	1024 /* and what 0 means: as Linux's rdma_ucm */

enum step {
	LISTENING,
	LINGERING, /* a listener that the program has left */
	CONNECTING,
	AWAIT_REPLY,
	AWAIT_REQUEST,
	ASKED,	 /* the program may accept */
	REPLIED, /* the program is to hear of it, and then it is the queue's */
	OPEN,	 /* the queue pair has the socket */
	OVER,
};

#define SAID_LIVE (1u << STREAM_LIVE)
#define SAID_OVER (1u << STREAM_OVER)

struct rcm_stream {
	/* iw.lock */
	int fd; /* -1: it is the queue pair's, or closed */
	enum step step;
	bool watched;
	uint32_t serial; /* not 0; differs from all others' */
	uint32_t number; /* its id's; a request's: the listener's */
	bool adopted;
	vb_time until; /* VB_NEVER */
	struct ibv_context *verbs;
	uint32_t qpn;
	struct vb_mpa_setup setup;
	struct rcm_stream *next, **at;
	/* Of who called, until it is adopted. A listener lives longer. */
	struct rcm_stream *listener;
	unsigned callers, most; /* a listener's */
	_Atomic uint32_t said;	/* by the engine, and not told yet */
	struct rcm_stream *next_said;
	bool live, over; /* told */
};

static struct {
	pthread_mutex_t lock;
	/* lock */
	struct rcm_stream *first; /* looked at, all of them, at every turn */
	struct rcm_stream *open;  /* thousands, maybe: only when they say so */
	struct rcm_stream *dead;
	uint32_t serial;
	int set, bell; /* -1: there is no thread */
	struct rcm_stream *_Atomic said;
} iw = { .lock = PTHREAD_MUTEX_INITIALIZER, .set = -1, .bell = -1 };

static vb_time now_is(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (vb_time)t.tv_sec * VB_SEC + (vb_time)t.tv_nsec;
}

static void ring(void)
{
	if (eventfd_write(iw.bell, 1) < 0)
		vb_log(LOG_DEBUG, "rdmacm: the iWARP thread is not rung");
}

/*
 * What we ask of peers: vb_mpa_usual, and what VERBENA_IWARP says.
 */

struct word {
	const char *text;
	void (*does)(struct vb_mpa_offer *offer);
};

static void no_crc(struct vb_mpa_offer *o)
{
	o->crc = false;
}

static void markers(struct vb_mpa_offer *o)
{
	o->markers = true;
}

static void first_revision(struct vb_mpa_offer *o)
{
	o->revision = 1;
	o->rtr = RTR_NONE;
}

static void client_first(struct vb_mpa_offer *o)
{
	o->rtr = RTR_NONE;
}

static void rtr_send(struct vb_mpa_offer *o)
{
	o->rtr = RTR_SEND;
}

static void rtr_write(struct vb_mpa_offer *o)
{
	o->rtr = RTR_WRITE;
}

static void rtr_read(struct vb_mpa_offer *o)
{
	o->rtr = RTR_READ;
}

static const struct word words[] = {
	{ "no-crc", no_crc },
	{ "markers", markers },
	{ "revision-1", first_revision },
	{ "no-rtr", client_first },
	{ "rtr-send", rtr_send },
	{ "rtr-write", rtr_write },
	{ "rtr-read", rtr_read },
};

static void apply_word(struct vb_mpa_offer *o, const char *text, size_t len)
{
	for (size_t i = 0; i < VB_COUNT(words); i++)
		if (strlen(words[i].text) == len &&
		    memcmp(words[i].text, text, len) == 0) {
			words[i].does(o);
			return;
		}
	vb_log(LOG_WARN, "VERBENA_IWARP: \"%.*s\" means nothing", (int)len,
	       text);
}

static struct vb_mpa_offer our_offer(void)
{
	const char *text = getenv("VERBENA_IWARP");
	struct vb_mpa_offer o = vb_mpa_usual;

	while (text && *text) {
		size_t len = strcspn(text, ",");

		if (len)
			apply_word(&o, text, len);
		text += len + (text[len] == ',');
	}
	return o;
}

/*
 * Streams. With the lock.
 */

static void link_stream(struct rcm_stream *s, struct rcm_stream **list)
{
	s->next = *list;
	s->at = list;
	if (s->next)
		s->next->at = &s->next;
	*list = s;
}

static void unlink_stream(struct rcm_stream *s)
{
	*s->at = s->next;
	if (s->next)
		s->next->at = s->at;
	s->at = NULL;
}

static struct rcm_stream *make_stream(int fd, uint32_t number)
{
	struct rcm_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->fd = fd;
	s->number = number;
	s->until = VB_NEVER;
	do
		s->serial = ++iw.serial;
	while (!s->serial);
	link_stream(s, &iw.first);
	return s;
}

static void watch(struct rcm_stream *s, uint32_t events)
{
	struct epoll_event want = { .events = events, .data.ptr = s };

	if (!events && s->watched)
		epoll_ctl(iw.set, EPOLL_CTL_DEL, s->fd, NULL);
	else if (events &&
		 epoll_ctl(iw.set, s->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD,
			   s->fd, &want) < 0)
		vb_log(LOG_WARN, "rdmacm: a connection is not watched: %s",
		       strerror(errno));
	s->watched = events != 0;
}

static void wait_until(struct rcm_stream *s, vb_time until)
{
	s->until = until;
	ring();
}

static void close_fd(struct rcm_stream *s)
{
	if (s->fd < 0)
		return;
	watch(s, 0);
	close(s->fd);
	s->fd = -1;
	s->until = VB_NEVER;
}

/* Those that have called and that nobody has taken yet cost a descriptor each:
 * behind the backlog, they wait in TCP's. */
static void attend(struct rcm_stream *listener)
{
	bool room = listener->callers < listener->most;

	if (listener->step == LISTENING && listener->watched != room)
		watch(listener, room ? EPOLLIN : 0);
}

static void leave_caller(struct rcm_stream *s)
{
	if (!s->listener)
		return;
	s->listener->callers--;
	if (s->listener->until == VB_NEVER)
		attend(s->listener);
	s->listener = NULL;
}

/* The thread may hold an event for it: that frees it. */
static void bury(struct rcm_stream *s)
{
	close_fd(s);
	leave_caller(s);
	unlink_stream(s);
	s->step = OVER;
	s->next = iw.dead;
	iw.dead = s;
	ring();
}

static struct rcm_stream *find_stream(uint32_t serial)
{
	struct rcm_stream *s = iw.first;

	while (s && s->serial != serial)
		s = s->next;
	return s;
}

/*
 * Events.
 */

static struct rcm_private *copy_private(const struct rcm_stream *s)
{
	struct rcm_private *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->bytes = (uint8_t)VB_MIN(s->setup.private_bytes, UINT8_MAX);
	if (p->bytes)
		memcpy(p->data, s->setup.private_data, p->bytes);
	return p;
}

static struct vb_ipc_cm news_of(const struct rcm_stream *s,
				enum vb_ipc_cm_event event, int status)
{
	return (struct vb_ipc_cm){ .event = (uint8_t)event,
				   .id = s->number,
				   .listener = s->number,
				   .status = status };
}

static void say(const struct rcm_stream *s, enum vb_ipc_cm_event event,
		int status)
{
	const struct vb_ipc_cm m = news_of(s, event, status);

	rcm_event_iwarp(&m, s->serial, NULL);
}

static void fill_depths(struct vb_ipc_cm *m, uint16_t ird, uint16_t ord)
{
	m->responder_resources = (uint8_t)VB_MIN(ird, UINT8_MAX);
	m->initiator_depth = (uint8_t)VB_MIN(ord, UINT8_MAX);
}

/* As Linux says it: rejected, unreachable, or it failed (WIRE 4.5). */
static void say_failed(struct rcm_stream *s, int error)
{
	close_fd(s);
	s->step = OVER;
	switch (error) {
	case ECONNREFUSED:
	case ECONNRESET:
	case EPIPE:
		say(s, IPC_CM_REJECTED, error == EPIPE ? -ECONNRESET : -error);
		break;
	case ETIMEDOUT:
	case EHOSTUNREACH:
	case ENETUNREACH:
		say(s, IPC_CM_UNREACHABLE, -error);
		break;
	default:
		say(s, IPC_CM_FAILED, error);
	}
}

/*
 * The initiator.
 */

/* A frame is shorter than any send buffer that is empty. */
static int send_frame(struct rcm_stream *s)
{
	ssize_t n = send(s->fd, s->setup.out, s->setup.out_bytes,
			 MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0)
		return errno;
	return n == s->setup.out_bytes ? 0 : EPROTO;
}

static void on_connected(struct rcm_stream *s)
{
	socklen_t len = sizeof(int);
	int error = 0;

	if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		error = errno;
	if (!error)
		error = send_frame(s);
	if (error) {
		say_failed(s, error);
		return;
	}
	s->step = AWAIT_REPLY;
	s->until = now_is() + REPLY_WAIT;
	watch(s, EPOLLIN);
}

/* 0: MPA knows more than before, and says what; EAGAIN; else it is over. */
static int read_frame(struct rcm_stream *s)
{
	uint8_t bytes[VB_MPA_FRAME_MAX];
	unsigned want = vb_mpa_want(&s->setup);
	ssize_t n;

	if (want == 0 || want > sizeof(bytes))
		return EPROTO;
	n = recv(s->fd, bytes, want, MSG_DONTWAIT);
	if (n == 0)
		return ECONNRESET;
	if (n < 0)
		return errno == EINTR ? EAGAIN : errno;
	(void)vb_mpa_got(&s->setup, bytes, (unsigned)n);
	return 0;
}

static void on_reply(struct rcm_stream *s)
{
	struct vb_ipc_cm m;
	int error = read_frame(s);

	while (!error && s->setup.state == MPA_ASKING)
		error = read_frame(s);
	if (error == EAGAIN)
		return;
	if (error) {
		say_failed(s, error);
		return;
	}
	s->until = VB_NEVER;
	if (s->setup.state == MPA_OPEN) {
		watch(s, 0);
		s->step = REPLIED;
		m = news_of(s, IPC_CM_REPLY, 0);
		fill_depths(&m, s->setup.terms.ird, s->setup.terms.ord);
		rcm_event_iwarp(&m, s->serial, copy_private(s));
		return;
	}
	if (s->setup.state == MPA_REFUSED) {
		m = news_of(s, IPC_CM_REJECTED, -ECONNRESET);
		close_fd(s);
		s->step = OVER;
		rcm_event_iwarp(&m, s->serial, copy_private(s));
		return;
	}
	if (s->setup.out_bytes) /* a Terminate */
		(void)send_frame(s);
	say_failed(s, EPROTO);
}

/*
 * The responder.
 */

static void take_connection(struct rcm_stream *listener, int fd)
{
	const struct vb_mpa_offer offer = our_offer();
	struct rcm_stream *s = make_stream(fd, listener->number);
	const int on = 1;

	if (!s) {
		close(fd);
		return;
	}
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	vb_mpa_listen(&s->setup, &offer);
	s->listener = listener;
	listener->callers++;
	s->step = AWAIT_REQUEST;
	s->until = now_is() + REQUEST_WAIT;
	watch(s, EPOLLIN);
}

static void on_listener(struct rcm_stream *s)
{
	for (unsigned i = 0; i < ACCEPTS_AT_ONCE && s->callers < s->most; i++) {
		int fd = accept4(s->fd, NULL, NULL,
				 SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			take_connection(s, fd);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
		    errno == ENOBUFS) {
			watch(s, 0);
			s->until = now_is() + ACCEPT_AGAIN;
		}
		if (errno != ECONNABORTED && errno != EINTR)
			return;
	}
	attend(s);
}

static void take_address(const struct sockaddr_storage *a, struct vb_gid *gid,
			 uint16_t *port)
{
	*gid = rcm_gid_of((const struct sockaddr *)a);
	*port = ntohs(((const struct sockaddr_in *)a)->sin_port);
}

static void fill_addresses(const struct rcm_stream *s, struct vb_ipc_cm *m)
{
	struct sockaddr_storage a = { 0 };
	socklen_t len = sizeof(a);

	if (getsockname(s->fd, (struct sockaddr *)&a, &len) == 0)
		take_address(&a, &m->src, &m->src_port);
	len = sizeof(a);
	if (getpeername(s->fd, (struct sockaddr *)&a, &len) == 0)
		take_address(&a, &m->dst, &m->dst_port);
}

static void say_request(const struct rcm_stream *s)
{
	struct vb_ipc_cm m = news_of(s, IPC_CM_REQUEST, 0);

	fill_addresses(s, &m);
	fill_depths(&m, s->setup.peer_ord, s->setup.peer_ird);
	rcm_event_iwarp(&m, s->serial, copy_private(s));
}

/*
 * Programs leave a listener and listen again at once, on the same port, for
 * another connection (perftest does). Whoever calls meanwhile is not to be
 * refused: a listener that was left lingers, with those that have called, and
 * is taken up again.
 */

static void end_listener(struct rcm_stream *listener)
{
	struct rcm_stream *next;

	for (struct rcm_stream *s = iw.first; s; s = next) {
		next = s->next;
		if (s->listener == listener)
			bury(s);
	}
	bury(listener);
}

static void leave_listener(struct rcm_stream *s)
{
	watch(s, 0);
	s->step = LINGERING;
	s->until = now_is() + LINGER;
	ring();
}

static bool is_bound_to(const struct rcm_stream *s, const struct sockaddr *a)
{
	struct sockaddr_storage at = { 0 };
	socklen_t len = sizeof(at);
	struct vb_gid ours, wanted = rcm_gid_of(a);

	if (getsockname(s->fd, (struct sockaddr *)&at, &len) < 0 ||
	    at.ss_family != a->sa_family)
		return false;
	ours = rcm_gid_of((struct sockaddr *)&at);
	return vb_gid_equal(&ours, &wanted) &&
	       ((struct sockaddr_in *)&at)->sin_port ==
		       ((const struct sockaddr_in *)a)->sin_port;
}

static struct rcm_stream *find_lingering(const struct sockaddr *a)
{
	struct rcm_stream *s = iw.first;

	while (s && !(s->step == LINGERING && is_bound_to(s, a)))
		s = s->next;
	return s;
}

/* @s, and who called it, are of id @number now. */
static void take_up(struct rcm_stream *s, uint32_t number)
{
	for (struct rcm_stream *c = iw.first; c; c = c->next)
		if (c->listener == s)
			c->number = number;
	s->number = number;
	s->until = VB_NEVER;
}

static void hear_again(const struct rcm_stream *listener)
{
	for (struct rcm_stream *c = iw.first; c; c = c->next)
		if (c->listener == listener && c->step == ASKED)
			say_request(c);
}

static void on_request(struct rcm_stream *s)
{
	int error = read_frame(s);

	while (!error && s->setup.state == MPA_WAITING)
		error = read_frame(s);
	if (error == EAGAIN)
		return;
	if (error || s->setup.state != MPA_ASKED) {
		bury(s);
		return;
	}
	s->until = now_is() + ASKED_WAIT;
	s->step = ASKED;
	watch(s, 0);
	say_request(s);
}

/*
 * The thread.
 */

static void serve(struct rcm_stream *s)
{
	switch (s->step) {
	case LISTENING:
		on_listener(s);
		break;
	case CONNECTING:
		on_connected(s);
		break;
	case AWAIT_REPLY:
		on_reply(s);
		break;
	case AWAIT_REQUEST:
		on_request(s);
		break;
	default:
		break;
	}
}

static void time_out(struct rcm_stream *s)
{
	s->until = VB_NEVER;
	if (s->step == LISTENING)
		attend(s);
	else if (s->step == LINGERING)
		end_listener(s);
	else if (s->step == AWAIT_REQUEST || s->step == ASKED)
		bury(s);
	else
		say_failed(s, ETIMEDOUT);
}

/* What the engine has said of streams that queue pairs have. */
static void pass_on(struct rcm_stream *s)
{
	uint32_t said = atomic_exchange(&s->said, 0);

	if (said & SAID_LIVE && !s->live && s->adopted) {
		struct vb_ipc_cm m = news_of(s, IPC_CM_ESTABLISHED, 0);

		fill_depths(&m, s->setup.terms.ird, s->setup.terms.ord);
		s->live = true;
		rcm_event_iwarp(&m, s->serial, NULL);
	}
	if (said & SAID_OVER && !s->over) {
		s->over = true;
		s->step = OVER;
		say(s, IPC_CM_DISCONNECTED, 0);
	}
}

/* What the dead said, they said before: none is left here when they go. */
static void pass_on_all(void)
{
	struct rcm_stream *s = atomic_exchange(&iw.said, NULL), *next;

	for (; s; s = next) {
		next = s->next_said; /* until it is passed on, and says more */
		if (s->at)
			pass_on(s);
	}
}

/* Returns the next time that one of them waits for. */
static vb_time look_at_all(vb_time now)
{
	vb_time until = VB_NEVER;
	struct rcm_stream *next;

	for (struct rcm_stream *s = iw.first; s; s = next) {
		next = s->next;
		if (s->until <= now)
			time_out(s);
		else
			until = VB_MIN(until, s->until);
	}
	return until;
}

static void free_dead(void)
{
	struct rcm_stream *s;

	while ((s = iw.dead)) {
		iw.dead = s->next;
		free(s);
	}
}

static int wait_ms(vb_time until, vb_time now)
{
	if (until == VB_NEVER)
		return -1;
	return until <= now ? 0 : (int)((until - now) / VB_MSEC + 1);
}

static void *iw_main(void *arg)
{
	struct epoll_event ready[EVENTS];
	eventfd_t drop;

	for (;;) {
		vb_time until, now = now_is();
		int n;

		pthread_mutex_lock(&iw.lock);
		pass_on_all();
		until = look_at_all(now);
		free_dead();
		pthread_mutex_unlock(&iw.lock);
		n = epoll_wait(iw.set, ready, EVENTS, wait_ms(until, now));
		pthread_mutex_lock(&iw.lock);
		for (int i = 0; i < n; i++) {
			struct rcm_stream *s = ready[i].data.ptr;

			if (!s)
				(void)!eventfd_read(iw.bell, &drop);
			else if (s->at) /* not buried since */
				serve(s);
		}
		pthread_mutex_unlock(&iw.lock);
	}
	return NULL;
}

static int start_thread(void)
{
	sigset_t all, old;
	pthread_t thread;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&thread, NULL, iw_main, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc == 0)
		pthread_detach(thread);
	return -rc;
}

static void close_set(void)
{
	if (iw.set >= 0)
		close(iw.set);
	if (iw.bell >= 0)
		close(iw.bell);
	iw.set = iw.bell = -1;
}

/* With the lock. */
static int begin(void)
{
	struct epoll_event bell = { .events = EPOLLIN };
	int rc = 0;

	if (iw.set >= 0)
		return 0;
	iw.set = epoll_create1(EPOLL_CLOEXEC);
	iw.bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (iw.set < 0 || iw.bell < 0 ||
	    epoll_ctl(iw.set, EPOLL_CTL_ADD, iw.bell, &bell) < 0)
		rc = -errno;
	if (rc == 0)
		rc = start_thread();
	if (rc)
		close_set();
	return rc;
}

/* By number only: the lock may be held by a thread that is not here, which may
 * have been at any place of the list. */
void rcm_iw_after_fork(void)
{
	for (const struct rcm_stream *s = iw.first; s; s = s->next)
		if (s->fd >= 0)
			close(s->fd);
	close_set();
	iw.first = iw.open = iw.dead = iw.said = NULL;
	pthread_mutex_init(&iw.lock, NULL);
}

/* Under the engine's locks: only to be noted here. */
static void hear(void *arg, enum vb_stream_news news)
{
	struct rcm_stream *s = arg;

	if (atomic_fetch_or(&s->said, 1u << news) == 0) {
		s->next_said = atomic_load(&iw.said);
		while (!atomic_compare_exchange_weak(&iw.said, &s->next_said,
						     s))
			;
	}
	ring();
}

/*
 * What programs ask for.
 */

/* A parent's are not its child's. */
static struct rcm_stream *stream_of(const struct rcm_id *id)
{
	return id->life == rcm.life ? id->stream : NULL;
}

static bool bind_again(struct rcm_id *id, const struct sockaddr *a)
{
	struct rcm_stream *s;

	pthread_mutex_lock(&iw.lock);
	s = find_lingering(a);
	if (s)
		take_up(s, id->number);
	pthread_mutex_unlock(&iw.lock);
	id->stream = s;
	return s;
}

static int bind_socket(struct rcm_id *id, const struct sockaddr *a,
		       uint16_t *port)
{
	struct sockaddr_storage at = { 0 };
	socklen_t len = rcm_address_bytes(a);
	const int on = 1, only = id->flags & IPC_CM_V6ONLY ? 1 : 0;
	int fd = socket(a->sa_family,
			SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	memcpy(&at, a, len);
	if (at.ss_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only,
				 sizeof(only));
	if (*port) /* of connections that are over: TIME_WAIT */
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&at, len) < 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &len) < 0) {
		int rc = -errno;

		close(fd);
		return rc;
	}
	*port = ntohs(((struct sockaddr_in *)&at)->sin_port);
	id->tcp = fd;
	return 0;
}

int rcm_iw_bind(struct rcm_id *id, const struct sockaddr *a, uint16_t *port)
{
	return bind_again(id, a) ? 0 : bind_socket(id, a, port);
}

/* The bound socket becomes a stream. With the lock. */
static struct rcm_stream *use_socket(struct rcm_id *id, enum step step)
{
	struct rcm_stream *s = make_stream(id->tcp, id->number);

	if (!s)
		return NULL;
	s->step = step;
	s->adopted = true;
	id->tcp = -1;
	id->stream = s;
	return s;
}

int rcm_iw_listen(struct rcm_id *id, int backlog)
{
	struct rcm_stream *s;
	int rc;

	if (id->life != rcm.life)
		return -ECONNRESET;
	pthread_mutex_lock(&iw.lock);
	rc = begin();
	if (rc == 0 && !id->stream && !use_socket(id, LISTENING))
		rc = -ENOMEM;
	s = id->stream;
	if (backlog <= 0 || backlog > MOST_BACKLOG)
		backlog = MOST_BACKLOG;
	if (rc == 0 && listen(s->fd, backlog) < 0)
		rc = -errno;
	if (rc == 0) {
		s->step = LISTENING;
		s->most = (unsigned)backlog;
		attend(s);
		hear_again(s);
	}
	pthread_mutex_unlock(&iw.lock);
	return rc;
}

static int connect_socket(const struct rcm_id *id)
{
	const struct sockaddr *to = &id->pub.route.addr.dst_addr;
	const int tos = id->tos;

	if (tos && to->sa_family == AF_INET)
		(void)setsockopt(id->tcp, IPPROTO_IP, IP_TOS, &tos,
				 sizeof(tos));
	if (tos && to->sa_family == AF_INET6)
		(void)setsockopt(id->tcp, IPPROTO_IPV6, IPV6_TCLASS, &tos,
				 sizeof(tos));
	if (connect(id->tcp, to, rcm_address_bytes(to)) == 0 ||
	    errno == EINPROGRESS)
		return 0;
	return -errno;
}

static int begin_connect(struct rcm_id *id, const struct rdma_conn_param *p)
{
	struct vb_mpa_offer offer = our_offer();
	struct vb_mpa_setup setup;
	struct rcm_stream *s;
	int rc;

	offer.ird = id->responder_resources;
	offer.ord = id->initiator_depth;
	rc = vb_mpa_connect(&setup, &offer, p->private_data,
			    p->private_data_len);
	if (rc)
		return rc;
	rc = begin();
	if (rc)
		return rc;
	rc = connect_socket(id);
	s = use_socket(id, CONNECTING);
	if (!s)
		return -ENOMEM;
	s->setup = setup;
	s->verbs = id->pub.verbs;
	s->qpn = id->pub.qp ? id->pub.qp->qp_num : p->qp_num;
	if (rc) {
		say_failed(s, -rc);
		return 0;
	}
	watch(s, EPOLLOUT);
	wait_until(s, now_is() + CONNECT_WAIT);
	return 0;
}

int rcm_iw_connect(struct rcm_id *id, const struct rdma_conn_param *p)
{
	int rc;

	if (id->life != rcm.life)
		return -ECONNRESET;
	if (p->private_data_len > MOST_PRIVATE ||
	    (p->private_data_len && !p->private_data))
		return -EINVAL;
	if (id->tcp < 0) { /* it has a port where it listened before */
		rcm_iw_close(id);
		rc = bind_socket(id, &id->pub.route.addr.src_addr, &id->port);
		if (rc)
			return rc;
	}
	pthread_mutex_lock(&iw.lock);
	rc = begin_connect(id, p);
	pthread_mutex_unlock(&iw.lock);
	return rc;
}

/* With the lock. The socket is the queue pair's then. */
static int hand_over(struct rcm_stream *s)
{
	const struct vb_stream_ear ear = { hear, s };
	int rc = vb_verbs_streams.start(s->verbs, s->qpn, s->fd,
					&s->setup.terms, &ear);

	if (rc)
		return rc;
	s->fd = -1;
	s->step = OPEN;
	unlink_stream(s);
	link_stream(s, &iw.open);
	return 0;
}

int rcm_iw_establish(struct rcm_id *id)
{
	struct rcm_stream *s = stream_of(id);
	int rc = -ECONNRESET;

	pthread_mutex_lock(&iw.lock);
	if (s && s->step == REPLIED) {
		id->responder_resources = (uint8_t)s->setup.terms.ird;
		id->initiator_depth = (uint8_t)s->setup.terms.ord;
		s->live = true; /* told by who called */
		rc = hand_over(s);
		if (rc)
			close_fd(s);
	}
	pthread_mutex_unlock(&iw.lock);
	return rc;
}

int rcm_iw_adopt(const struct rcm_event *e, struct rcm_id *id)
{
	struct rcm_stream *s;

	pthread_mutex_lock(&iw.lock);
	s = find_stream(e->stream);
	if (s && s->step == ASKED && !s->adopted) {
		leave_caller(s);
		s->until = VB_NEVER;
		s->number = id->number;
		s->adopted = true;
		s->verbs = id->pub.verbs;
		id->stream = s;
	} else {
		s = NULL;
	}
	pthread_mutex_unlock(&iw.lock);
	return s ? 0 : -ENOENT;
}

void rcm_iw_refuse(const struct rcm_event *e)
{
	struct rcm_stream *s;

	pthread_mutex_lock(&iw.lock);
	s = find_stream(e->stream);
	if (s && !s->adopted)
		bury(s);
	pthread_mutex_unlock(&iw.lock);
}

/* With the lock. */
static int answer(struct rcm_stream *s, struct rcm_id *id,
		  const struct rdma_conn_param *p)
{
	int rc = vb_mpa_accept(&s->setup, id->responder_resources,
			       id->initiator_depth, p->private_data,
			       p->private_data_len);

	if (rc)
		return rc;
	s->qpn = id->pub.qp ? id->pub.qp->qp_num : p->qp_num;
	rc = send_frame(s);
	return rc ? -rc : hand_over(s);
}

int rcm_iw_accept(struct rcm_id *id, const struct rdma_conn_param *p)
{
	struct rcm_stream *s = stream_of(id);
	int rc = -EINVAL;

	if (p->private_data_len > MOST_PRIVATE ||
	    (p->private_data_len && !p->private_data))
		return -EINVAL;
	pthread_mutex_lock(&iw.lock);
	if (s && s->step == ASKED) {
		rc = answer(s, id, p);
		if (rc)
			close_fd(s);
	}
	pthread_mutex_unlock(&iw.lock);
	return rc;
}

int rcm_iw_reject(struct rcm_id *id, const void *data, uint8_t bytes)
{
	struct rcm_stream *s = stream_of(id);
	int rc = -EINVAL;

	pthread_mutex_lock(&iw.lock);
	if (s && s->step == ASKED && bytes <= MOST_PRIVATE)
		rc = vb_mpa_reject(&s->setup, data, bytes);
	if (rc == 0) {
		rc = -send_frame(s);
		close_fd(s);
		s->step = OVER;
	}
	pthread_mutex_unlock(&iw.lock);
	return rc;
}

int rcm_iw_disconnect(struct rcm_id *id)
{
	struct rcm_stream *s = stream_of(id);
	struct ibv_context *verbs = NULL;
	uint32_t qpn = 0;

	if (!s)
		return -EINVAL;
	pthread_mutex_lock(&iw.lock);
	if (s->step == OPEN) {
		verbs = s->verbs;
		qpn = s->qpn;
	} else if (s->fd >= 0) { /* it never stood */
		close_fd(s);
		s->step = OVER;
	}
	pthread_mutex_unlock(&iw.lock);
	if (verbs)
		vb_verbs_streams.finish(verbs, qpn, s);
	return 0;
}

/* The queue pair goes on without us, until it is destroyed: then so does the
 * connection, and with our id. */
void rcm_iw_close(struct rcm_id *id)
{
	struct rcm_stream *s = stream_of(id);
	bool handed_over;

	if (id->tcp >= 0)
		close(id->tcp);
	id->tcp = -1;
	id->stream = NULL;
	if (!s)
		return;
	pthread_mutex_lock(&iw.lock);
	handed_over = s->verbs && s->fd < 0;
	pthread_mutex_unlock(&iw.lock);
	if (handed_over) {
		vb_verbs_streams.finish(s->verbs, s->qpn, s);
		vb_verbs_streams.forget(s->verbs, s->qpn, s);
	}
	pthread_mutex_lock(&iw.lock);
	if (s->step == LISTENING)
		leave_listener(s);
	else if (s->step == LINGERING)
		end_listener(s);
	else
		bury(s);
	pthread_mutex_unlock(&iw.lock);
}
