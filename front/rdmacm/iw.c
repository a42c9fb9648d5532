/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The thread that sets up iWARP connections. It waits for incoming TCP
 * connections, for connect() to finish, for MPA requests and replies, for
 * timeouts, and for the engine's reports about open streams; it makes an event
 * for the program of each of these.
 */
#include "front/rdmacm/iw.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/thread.h"

#define EVENTS 64

#define SAID_LIVE (1u << STREAM_LIVE)
#define SAID_OVER (1u << STREAM_OVER)

/* The epoll set identifies a descriptor by an address. The address of this
 * unused variable identifies the descriptor of removal.c. */
static struct rcm_stream removal;

struct iw iw = { .lock = PTHREAD_MUTEX_INITIALIZER, .set = -1, .bell = -1 };

static void serve(struct rcm_stream *s)
{
	switch (s->step) {
	case LISTENING:
		iw_on_listener(s);
		break;
	case CONNECTING:
		iw_on_connected(s);
		break;
	case AWAIT_REPLY:
		iw_on_reply(s);
		break;
	case AWAIT_REQUEST:
		iw_on_request(s);
		break;
	default:
		break;
	}
}

static void time_out(struct rcm_stream *s)
{
	s->until = VB_NEVER;
	if (s->step == LISTENING)
		iw_attend(s);
	else if (s->step == LINGERING)
		iw_end_listener(s);
	else if (s->step == AWAIT_REQUEST && s->counted)
		iw_count_silent(s);
	else if (s->step == AWAIT_REQUEST || s->step == ASKED)
		iw_end_stream(s);
	else if (s->step == CONNECTING && s->again)
		iw_connect(s);
	else
		iw_say_failed(s, ETIMEDOUT);
}

/* Tells the program what the engine has reported about a stream that a queue
 * pair owns. */
static void iw_pass_on(struct rcm_stream *s)
{
	uint32_t said = atomic_exchange(&s->said, 0);

	if (said & SAID_LIVE && !s->live && s->adopted) {
		struct vb_ipc_cm m = iw_cm_event(s, IPC_CM_ESTABLISHED, 0);

		iw_fill_depths(&m, s->setup.terms.ird, s->setup.terms.ord);
		s->live = true;
		rcm_event_iwarp(&m, s->serial, NULL);
	}
	if (said & SAID_OVER && !s->over) {
		s->over = true;
		s->step = OVER;
		iw_say(s, IPC_CM_DISCONNECTED, 0);
	}
}

/* Passes on to programs all reports of the engine about streams. Runs before
 * free_dead() in each turn of the thread. The engine reports nothing of an
 * ended stream, so free_dead() frees no stream that is still listed in iw.said.
 */
static void pass_on_all(void)
{
	struct rcm_stream *s = atomic_exchange(&iw.said, NULL), *next;

	for (; s; s = next) {
		/* Read the link first: after iw_pass_on() the engine may list
		 * the stream again and overwrite the link. */
		next = s->next_said;
		if (s->at)
			iw_pass_on(s);
	}
}

/* Handles every timeout that is due. Returns the time of the next one. */
static vb_time look_at_all(vb_time now)
{
	vb_time until = VB_NEVER;
	struct rcm_stream *next;

	for (struct rcm_stream *s = iw.first; s; s = next) {
		next = s->next;
		if (s->until <= now)
			time_out(s);
		/* time_out() may change s->until */
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
		vb_time until, now = iw_now();
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

			if (s == &removal)
				rcm_removals_take();
			else if (!s)
				(void)!eventfd_read(iw.bell, &drop);
			/* Another thread may have ended the stream during
			 * epoll_wait(): then s->at is NULL. */
			else if (s->at)
				serve(s);
		}
		pthread_mutex_unlock(&iw.lock);
	}
	return NULL;
}

static int iw_start_thread(void)
{
	pthread_t thread;
	int rc;

	rc = vb_thread_start(&thread, NULL, iw_main, NULL);
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

int iw_begin(void)
{
	struct epoll_event bell = { .events = EPOLLIN };
	struct epoll_event gone = { .events = EPOLLIN, .data.ptr = &removal };
	int rc = 0;

	if (iw.set >= 0)
		return 0;
	iw.set = epoll_create1(EPOLL_CLOEXEC);
	iw.bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (iw.set < 0 || iw.bell < 0 ||
	    epoll_ctl(iw.set, EPOLL_CTL_ADD, iw.bell, &bell) < 0)
		rc = -errno;
	if (rc == 0 && rcm_removals_fd() >= 0 &&
	    epoll_ctl(iw.set, EPOLL_CTL_ADD, rcm_removals_fd(), &gone) < 0)
		rc = -errno;
	if (rc == 0)
		rc = iw_start_thread();
	if (rc)
		close_set();
	return rc;
}

void rcm_iw_watch(void)
{
	pthread_mutex_lock(&iw.lock);
	if (iw_begin())
		vb_log(LOG_WARN, "rdmacm: no thread can report the removal of "
				 "devices");
	pthread_mutex_unlock(&iw.lock);
}

/* Runs in the child of fork(). base/fork.h closes the child's copies of the
 * sockets, because iw_make() registered each one there. */
void rcm_iw_after_fork(void)
{
	iw.set = iw.bell = -1;
	iw.first = iw.open = iw.dead = NULL;
	atomic_store(&iw.said, NULL);
	pthread_mutex_init(&iw.lock, NULL);
}

/* The engine's report about a stream. Only the first report since iw_pass_on()
 * puts the stream on the stack iw.said; later ones set a further bit of a
 * stream that is listed already. */
void iw_hear(void *arg, enum vb_stream_event event)
{
	struct rcm_stream *s = arg;

	if (atomic_fetch_or(&s->said, 1u << event) == 0) {
		s->next_said = atomic_load(&iw.said);
		while (!atomic_compare_exchange_weak(&iw.said, &s->next_said,
						     s))
			;
	}
	iw_ring();
}
