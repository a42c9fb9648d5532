/* SPDX-License-Identifier: BSD-2-Clause */
/* The parent's thread that relays connections for its children: see
 * preload_relay.h. */
#include "front/rsockets/preload_relay.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/defs.h"
#include "base/thread.h"

enum { ROOM = 65536 };

/* The bytes of one direction of a relay. */
struct relay_half {
	/* unsent bytes in @bytes: the position of the first, and their
	 * number */
	size_t first, count;
	bool ended; /* the source of the bytes has reported its end */
	bool told;  /* the relay has acted on the end of the source */
	uint8_t bytes[ROOM];
};

struct relay {
	struct relay *next;
	/* the rsocket, and the parent's end of the UNIX socket pair */
	int target, fd;
	/* the child has only written so far: the parent reads the connection,
	 * as long as the parent has it open */
	bool to_write;
	bool over; /* the thread must close this relay */
	/* the directions to the child and from the child */
	struct relay_half in, out;
};

/* An rsocket that a separate thread shuts down or closes. */
struct closing {
	struct closing *next;
	int target;
	/* true: close the socket; false: shut down only the writing side */
	bool gone;
};

struct child {
	struct child *next;
	int control;
	unsigned count;
	/* the sockets that the child may still claim */
	struct rsp_target *targets;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* `lock` guards the variables from here to `bell`. */
static struct relay *relays;
static struct child *children;
static struct closing *closings;
static bool running;
static int bell = -1;

/* Returns the rsocket's present number, which rsp_relay_moved() may change. */
static int relay_number_of(const struct closing *f)
{
	int target;

	pthread_mutex_lock(&lock);
	target = f->target;
	pthread_mutex_unlock(&lock);
	return target;
}

static void strike_out(struct closing *f)
{
	struct closing **at = &closings;

	pthread_mutex_lock(&lock);
	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
	pthread_mutex_unlock(&lock);
}

/*
 * Shuts an rsocket down. This waits until the peer's adapter acknowledges, up
 * to a minute if the peer is gone, and so runs in a separate thread, so that
 * the relays of other connections do not wait.
 */
static void *run_closing(void *arg)
{
	struct closing *f = arg;

	rsp_inside++;
	if (!f->gone)
		(void)rshutdown(relay_number_of(f), SHUT_WR);
	if (f->gone || rsp_let_go(relay_number_of(f)))
		(void)rclose(relay_number_of(f));
	strike_out(f);
	rsp_inside--;
	free(f);
	return NULL;
}

/* Starts a thread for run_closing(). It inherits the signal mask of the relay's
 * thread, which blocks all signals. The caller holds the lock. */
static void start_closing(int target, bool gone)
{
	struct closing *f = malloc(sizeof(*f));
	pthread_t thread;

	if (!f)
		return; /* no memory: the rsocket stays open */
	*f = (struct closing){ closings, target, gone };
	closings = f;
	if (pthread_create(&thread, NULL, run_closing, f) == 0) {
		pthread_detach(thread);
		return;
	}
	closings = f->next;
	free(f);
}

static void let_go(int target)
{
	if (rsp_let_go(target))
		start_closing(target, true);
}

static void close_half(int target)
{
	rsp_hold(target);
	start_closing(target, false);
}

static bool is_held_back(const struct relay *r)
{
	return r->to_write && rsp_shared(r->target);
}

/* True if the child has closed its end, not only shut down its writing side.
 * The relay leaves bytes that come now to other readers of the connection. */
static bool has_left(const struct relay *r)
{
	struct pollfd end = { r->fd, 0, 0 };

	return r->out.ended && poll(&end, 1, 0) > 0 &&
	       end.revents & (POLLHUP | POLLERR);
}

/* Each function below does one step of a relay's work and never blocks. */

static void fill_in(struct relay *r)
{
	ssize_t n;

	if (r->in.count || r->in.ended || is_held_back(r))
		return;
	r->over |= has_left(r);
	if (r->over)
		return;
	n = rrecv(r->target, r->in.bytes, ROOM, MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN)
		return;
	r->in.first = 0;
	r->in.count = n > 0 ? (size_t)n : 0;
	r->in.ended = n <= 0;
}

static void drain_in(struct relay *r)
{
	ssize_t n;

	while (r->in.count) {
		n = send(r->fd, r->in.bytes + r->in.first, r->in.count,
			 MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0) {
			r->over |= errno != EAGAIN;
			return;
		}
		r->in.first += (size_t)n;
		r->in.count -= (size_t)n;
	}
	if (r->in.ended && !r->in.told) {
		r->in.told = true;
		(void)shutdown(r->fd, SHUT_WR);
	}
}

static void fill_out(struct relay *r)
{
	ssize_t n;

	if (r->out.count || r->out.ended)
		return;
	n = recv(r->fd, r->out.bytes, ROOM, MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN)
		return;
	r->out.first = 0;
	r->out.count = n > 0 ? (size_t)n : 0;
	r->out.ended = n <= 0;
}

static void drain_out(struct relay *r)
{
	ssize_t n;

	while (r->out.count) {
		n = rsend(r->target, r->out.bytes + r->out.first, r->out.count,
			  MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0) {
			r->over |= errno != EAGAIN;
			return;
		}
		r->out.first += (size_t)n;
		r->out.count -= (size_t)n;
	}
	if (r->out.ended && !r->out.told) {
		r->out.told = true;
		if (!rsp_shared(r->target))
			close_half(r->target);
	}
}

static void carry(struct relay *r)
{
	fill_out(r);
	drain_out(r);
	fill_in(r);
	drain_in(r);
	if (r->in.told && r->out.told)
		r->over = true;
}

/* Functions that answer the requests of children. */

static void put_address(struct sockaddr_in6 *to, int target, bool peer)
{
	socklen_t n = sizeof(*to);

	if (peer)
		(void)rgetpeername(target, (struct sockaddr *)to, &n);
	else
		(void)rgetsockname(target, (struct sockaddr *)to, &n);
}

/* Binds the parent's end to the name that the child's getpeername() shows. */
static void name(int fd, int target)
{
	static uint32_t number;
	struct rsp_name n = { .mark = RSP_MARK,
			      .pid = (uint32_t)getpid(),
			      .number = number++ };
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	_Static_assert(sizeof(n) <= sizeof(a.sun_path), "a name");
	put_address(&n.peer, target, true);
	put_address(&n.own, target, false);
	memcpy(a.sun_path, &n, sizeof(n));
	(void)bind(fd, (struct sockaddr *)&a,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
			       sizeof(n)));
}

/* Starts to relay @target. Returns the child's end. -1: no memory or no
 * descriptor, and the relay has released the rsocket. */
static int begin(int target, bool to_write)
{
	struct relay *r = calloc(1, sizeof(*r));
	int ends[2];

	if (!r || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
		free(r);
		let_go(target);
		return -1;
	}
	r->target = target;
	r->to_write = to_write;
	r->fd = ends[0];
	name(ends[0], target);
	if (rfcntl(target, F_GETFL) & O_NONBLOCK)
		(void)fcntl(ends[1], F_SETFL, O_NONBLOCK);
	r->next = relays;
	relays = r;
	return ends[1];
}

/* Sends the child its end @fd of the UNIX pair, and closes the parent's copy.
 * @fd -1: tells the child that it gets none. */
static void answer(int control, int fd)
{
	char word = fd >= 0;
	struct iovec iov = { &word, 1 };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} c = { .head = { .cmsg_level = SOL_SOCKET,
			  .cmsg_type = SCM_RIGHTS,
			  .cmsg_len = CMSG_LEN(sizeof(int)) } };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	memcpy(CMSG_DATA(&c.head), &fd, sizeof(fd));
	if (fd >= 0) {
		msg.msg_control = &c;
		msg.msg_controllen = sizeof(c);
	}
	(void)sendmsg(control, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (fd >= 0)
		close(fd);
}

/* Removes the rsocket that the child knows as @name from the list of those that
 * it may claim. Returns its present number. -1: it is not in the list. */
static int take(struct child *c, int name)
{
	int target;

	for (unsigned i = 0; i < c->count; i++) {
		if (c->targets[i].name != name)
			continue;
		target = c->targets[i].now;
		c->targets[i] = c->targets[--c->count];
		return target;
	}
	return -1;
}

/* Handles one request of a child. False: the child has ended. */
static bool serve(struct child *c)
{
	struct rsp_request q;
	ssize_t n = recv(c->control, &q, sizeof(q), MSG_DONTWAIT);
	int target;

	if (n < 0)
		return errno == EAGAIN;
	if (n != sizeof(q))
		return false;
	target = take(c, q.target);
	if (q.kind == RSP_DROP && target >= 0)
		let_go(target);
	if (q.kind == RSP_CLAIM || q.kind == RSP_CLAIM_TO_WRITE)
		answer(c->control,
		       target >= 0 ? begin(target, q.kind == RSP_CLAIM_TO_WRITE)
				   : -1);
	return true;
}

static void part(struct child **at)
{
	struct child *c = *at;

	*at = c->next;
	close(c->control);
	for (unsigned i = 0; i < c->count; i++)
		let_go(c->targets[i].now);
	free(c->targets);
	free(c);
}

static void end(struct relay **at)
{
	struct relay *r = *at;

	*at = r->next;
	close(r->fd);
	let_go(r->target);
	free(r);
}

/* Functions of the thread that relays the bytes. */

static void work(void)
{
	struct child **c = &children;
	struct relay **r = &relays;

	while (*c)
		if (serve(*c))
			c = &(*c)->next;
		else
			part(c);
	while (*r) {
		carry(*r);
		if ((*r)->over)
			end(r);
		else
			r = &(*r)->next;
	}
}

static unsigned count_all(void)
{
	unsigned n = 1;

	for (struct child *c = children; c; c = c->next)
		n++;
	for (struct relay *r = relays; r; r = r->next)
		n += 2;
	return n;
}

static short wants(const struct relay_half *from, const struct relay_half *to)
{
	short events = to->count ? POLLOUT : 0;

	return from->count || from->ended ? events : (short)(events | POLLIN);
}

/* Returns an entry for poll(). A descriptor without @events is left out,
 * because poll() would report its hang-up again and again. */
static struct pollfd watch(int fd, short events)
{
	return (struct pollfd){ events ? fd : -1, events, 0 };
}

/* Returns an entry for the child's end. poll() also watches for the hang-up
 * when there are no other events, unless bytes of the child are still to be
 * sent. */
static struct pollfd watch_child(const struct relay *r)
{
	short events = wants(&r->out, &r->in);

	if (r->out.count)
		return watch(r->fd, events);
	return (struct pollfd){ r->fd, events, 0 };
}

static nfds_t list(struct pollfd *fds)
{
	nfds_t n = 0;

	fds[n++] = watch(bell, POLLIN);
	for (struct child *c = children; c; c = c->next)
		fds[n++] = watch(c->control, POLLIN);
	for (struct relay *r = relays; r; r = r->next) {
		short events = wants(&r->in, &r->out);

		if (is_held_back(r))
			events &= ~POLLIN;
		fds[n++] = watch(r->target, events);
		fds[n++] = watch_child(r);
	}
	return n;
}

/* Ends relays whose child has closed its end. @fds is in the order of
 * list(). */
static void note_ends(const struct pollfd *fds)
{
	nfds_t n = 1;

	for (struct child *c = children; c; c = c->next)
		n++;
	for (struct relay *r = relays; r; r = r->next, n += 2)
		if (fds[n + 1].revents & (POLLHUP | POLLERR) && r->out.ended)
			r->over = true;
}

static void *relay_run(void *arg)
{
	enum { HELD_BACK_MS = 100 };
	struct pollfd *fds;
	eventfd_t count;
	nfds_t n;

	rsp_inside++;
	for (;;) {
		pthread_mutex_lock(&lock);
		work();
		fds = calloc(count_all(), sizeof(*fds));
		n = fds ? list(fds) : 0;
		pthread_mutex_unlock(&lock);
		(void)rpoll(fds, n, n > 1 ? HELD_BACK_MS : -1);
		(void)eventfd_read(bell, &count);
		pthread_mutex_lock(&lock);
		if (n == count_all())
			note_ends(fds);
		pthread_mutex_unlock(&lock);
		free(fds);
	}
	return arg;
}

/* Starts the thread unless it runs. It blocks all signals, so that it receives
 * none that the program waits for. The caller holds the lock. */
static bool start(void)
{
	pthread_t thread;

	if (running)
		return true;
	bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (bell < 0)
		return false;
	running = vb_thread_start(&thread, NULL, relay_run, NULL) == 0;
	if (running)
		pthread_detach(thread);
	else
		close(bell);
	return running;
}

void rsp_relay_child(int control, struct rsp_target *targets, unsigned count)
{
	struct child *c = calloc(1, sizeof(*c));

	rsp_inside++;
	if (!c || !start()) {
		free(c);
		close(control);
		for (unsigned i = 0; i < count; i++)
			(void)rsp_release(targets[i].now);
		free(targets);
		rsp_inside--;
		return;
	}
	*c = (struct child){ children, control, count, targets };
	children = c;
	(void)eventfd_write(bell, 1);
	rsp_inside--;
}

void rsp_relay_stop(void)
{
	pthread_mutex_lock(&lock);
}

void rsp_relay_go_on(void)
{
	pthread_mutex_unlock(&lock);
}

static void rename_if(int *target, int from, int to)
{
	if (*target == from)
		*target = to;
}

void rsp_relay_moved(int from, int to)
{
	for (struct child *c = children; c; c = c->next)
		for (unsigned i = 0; i < c->count; i++)
			rename_if(&c->targets[i].now, from, to);
	for (struct relay *r = relays; r; r = r->next)
		rename_if(&r->target, from, to);
	for (struct closing *f = closings; f; f = f->next)
		rename_if(&f->target, from, to);
}

/* The child closes its copies of the parent's ends: otherwise they would stay
 * open after the parent ends. */
void rsp_relay_forget(void)
{
	rsp_inside++;
	for (struct child *c = children; c; c = c->next)
		close(c->control);
	for (struct relay *r = relays; r; r = r->next)
		close(r->fd);
	if (running)
		close(bell);
	rsp_inside--;
	children = NULL;
	relays = NULL;
	closings = NULL;
	running = false;
	bell = -1;
	pthread_mutex_init(&lock, NULL);
}
