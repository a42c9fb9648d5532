/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rare cases of librdmacm: which calls are refused and with which errno, events
 * that the program itself makes, a channel that is destroyed while a thread
 * waits for it, loopback addresses, and unreliable connections by
 * rdma_create_ep(). Both ends are in one process. Usage: cm_corners ADDRESS
 */
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PORT "7477"

/* An event type that is newer than the header and the library that this program
 * is linked with. */
enum { EVENT_USER = 18 };
typedef int write_event(struct rdma_cm_id *id, enum rdma_cm_event_type event,
			int status, uint64_t arg);

static int failures;

static void say(const char *what, bool well)
{
	printf("%s cm corners: %s\n", well ? "ok" : "not ok", what);
	failures += !well;
}

/* True if a call that returned @rc has failed with @error, by its errno. */
static bool fails(int rc, int error)
{
	if (rc == -1 && errno == error)
		return true;
	printf("    %d, errno %d instead of %d\n", rc, errno, error);
	return false;
}

static struct sockaddr *address_of(const char *name, struct addrinfo **found)
{
	return getaddrinfo(name, PORT, NULL, found) ? NULL : (*found)->ai_addr;
}

static bool refused_when_new(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = {};
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC };
	struct rdma_cm_id *other;
	uint8_t tos = 0;

	return fails(rdma_connect(id, &param), EINVAL) &&
	       fails(rdma_accept(id, &param), EINVAL) &&
	       fails(rdma_reject(id, NULL, 0), EINVAL) &&
	       fails(rdma_disconnect(id), EINVAL) &&
	       fails(rdma_establish(id), EINVAL) &&
	       fails(rdma_resolve_route(id, 100), EINVAL) &&
	       fails(rdma_create_qp(id, NULL, &attr), EINVAL) &&
	       fails(rdma_get_request(id, &other), EINVAL) &&
	       fails(rdma_set_option(id, RDMA_OPTION_ID, 99, &tos, 1),
		     ENOSYS) &&
	       fails(rdma_set_option(id, 99, RDMA_OPTION_ID_TOS, &tos, 1),
		     ENOSYS) &&
	       fails(rdma_notify(id, IBV_EVENT_QP_FATAL), EINVAL);
}

static bool refused_when_bound(struct rdma_event_channel *channel,
			       struct rdma_cm_id *id, struct sockaddr *a)
{
	struct rdma_cm_id *second;
	bool well;

	if (rdma_bind_addr(id, a) || rdma_listen(id, 1) ||
	    rdma_create_id(channel, &second, NULL, RDMA_PS_TCP))
		return false;
	well = fails(rdma_bind_addr(id, a), EINVAL) &&
	       fails(rdma_bind_addr(second, a), EADDRINUSE) &&
	       fails(rdma_resolve_addr(second, NULL, NULL, 100), EINVAL);
	rdma_destroy_id(second);
	return well;
}

static bool own_events(struct rdma_event_channel *channel,
		       struct rdma_cm_id *id)
{
	write_event *write = dlsym(RTLD_DEFAULT, "rdma_write_cm_event");
	struct rdma_cm_event *e;
	uint64_t arg;
	bool well;

	if (!write ||
	    write(id, (enum rdma_cm_event_type)EVENT_USER, -5,
		  0x123456789abcull) ||
	    rdma_get_cm_event(channel, &e))
		return false;
	memcpy(&arg, &e->param, sizeof(arg));
	well = (int)e->event == EVENT_USER && e->id == id && e->status == -5 &&
	       arg == 0x123456789abcull &&
	       strcmp(rdma_event_str(e->event), "RDMA_CM_EVENT_USER") == 0;
	rdma_ack_cm_event(e);
	return well &&
	       fails(write(id, RDMA_CM_EVENT_ESTABLISHED, 0, 0), EINVAL);
}

static void corners(const char *name)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_addrinfo *res;
	struct addrinfo *found = NULL;
	struct sockaddr *a = address_of(name, &found);
	struct rdma_cm_id *id;

	if (!channel || !a || rdma_create_id(channel, &id, NULL, RDMA_PS_TCP)) {
		say("an id", false);
		return;
	}
	say("a new id refuses what comes later", refused_when_new(id));
	say("a bound one, and its port", refused_when_bound(channel, id, a));
	say("a program's own events", own_events(channel, id));
	say("rdma_getaddrinfo of nothing",
	    fails(rdma_getaddrinfo(NULL, NULL, NULL, &res), EINVAL));
	rdma_destroy_id(id);
	say("an id of no port space",
	    fails(rdma_create_id(channel, &id, NULL, (enum rdma_port_space)5),
		  EINVAL));
	rdma_destroy_event_channel(channel);
	freeaddrinfo(found);
}

/*
 * A thread that waits for events until the program ends, as in rping. It is
 * woken for the last event, but another thread destroys the id, and thereby
 * withdraws the event, before the waiting thread reads it. The call must then
 * go on waiting: it returns no event, and not EBADF either. Only a signal ends
 * it, with EINTR.
 */

#define TURNS  200
#define HAD_IT (-1)

/* Result of the waiting thread's rdma_get_cm_event(): an errno, or HAD_IT if it
 * returned an event; 0: the thread still waits. */
static _Atomic int heard_of;
/* number of events that the thread in listen_on() has read */
static _Atomic unsigned had;
/* kernel's id of the thread that waits for events */
static _Atomic long tid;

static void *listen_on(void *channel)
{
	struct rdma_cm_event *e;

	tid = syscall(SYS_gettid);
	while (rdma_get_cm_event(channel, &e) == 0) {
		had++;
		rdma_ack_cm_event(e);
	}
	heard_of = errno;
	return NULL;
}

/* Waits for one event. Afterwards the channel may be destroyed, so the thread
 * must not use it again. */
static void *listen_once(void *channel)
{
	struct rdma_cm_event *e;

	tid = syscall(SYS_gettid);
	if (rdma_get_cm_event(channel, &e)) {
		heard_of = errno;
	} else {
		/* rdma_destroy_id() in the other thread waits for the
		 * acknowledgement. */
		heard_of = HAD_IT;
		rdma_ack_cm_event(e);
	}
	return NULL;
}

static void wake_only(int number)
{
}

static void on_signal(int flags)
{
	struct sigaction act = { .sa_handler = wake_only, .sa_flags = flags };

	sigaction(SIGUSR1, &act, NULL);
}

static bool sleeps(void)
{
	char name[64], state = '?';
	FILE *f;

	snprintf(name, sizeof(name), "/proc/self/task/%ld/stat", tid);
	f = fopen(name, "r");
	if (!f)
		return false;
	if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = '?';
	fclose(f);
	return state == 'S';
}

static void until_it_sleeps(void)
{
	while (!tid || !sleeps())
		usleep(50);
}

struct waiting {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	pthread_t thread;
};

static bool begin_listening(pthread_t *thread, void *(*listen)(void *),
			    struct rdma_event_channel *channel)
{
	heard_of = 0;
	tid = 0;
	if (pthread_create(thread, NULL, listen, channel))
		return false;
	until_it_sleeps();
	return true;
}

static bool begin_waiting(struct waiting *w, void *(*listen)(void *))
{
	w->channel = rdma_create_event_channel();
	return w->channel &&
	       rdma_create_id(w->channel, &w->id, NULL, RDMA_PS_TCP) == 0 &&
	       begin_listening(&w->thread, listen, w->channel);
}

static void end_waiting(struct waiting *w)
{
	rdma_destroy_id(w->id);
	rdma_destroy_event_channel(w->channel);
}

/* Send the waiting thread two signals. The handler of the first one restarts
 * system calls, so the wait must go on; the second one must end it with
 * EINTR. */
static bool ends_with_a_signal(struct waiting *w)
{
	int before;

	on_signal(SA_RESTART);
	pthread_kill(w->thread, SIGUSR1);
	usleep(500);
	before = heard_of;
	on_signal(0);
	while (!heard_of) {
		pthread_kill(w->thread, SIGUSR1);
		usleep(100);
	}
	pthread_join(w->thread, NULL);
	if (before || heard_of != EINTR)
		printf("    errno %d, after the signal %d\n", before, heard_of);
	return !before && heard_of == EINTR;
}

/* Destroy the id and channel for which a thread waits. Returns whether the wait
 * ended as expected. If the waiting thread has got the event first, as on a
 * busy machine, *@turns is not increased. */
static bool goes(write_event *write, unsigned *turns)
{
	struct waiting w;

	if (!begin_waiting(&w, listen_once))
		return false;
	write(w.id, (enum rdma_cm_event_type)EVENT_USER, 0, 0);
	end_waiting(&w);
	if (heard_of == HAD_IT)
		return pthread_join(w.thread, NULL) == 0;
	++*turns;
	return ends_with_a_signal(&w);
}

static void channel_goes(void)
{
	write_event *write = dlsym(RTLD_DEFAULT, "rdma_write_cm_event");
	bool well = write;
	unsigned turns = 0;

	for (unsigned i = 0; well && turns < TURNS && i < 20 * TURNS; i++)
		well = goes(write, &turns);
	say("a channel that goes while a thread waits", well && turns);
}

/* A thread that is cancelled while it waits for an event must leave no lock
 * held, and the channel must still work. */
static void cancelled(void)
{
	write_event *write = dlsym(RTLD_DEFAULT, "rdma_write_cm_event");
	bool well = write;

	for (unsigned i = 0; well && i < TURNS; i++) {
		struct rdma_cm_event *e;
		struct waiting w;

		well = begin_waiting(&w, listen_on);
		/* In odd turns the cancelled thread may get an event. */
		if (i % 2)
			write(w.id, (enum rdma_cm_event_type)EVENT_USER, 0, 0);
		pthread_cancel(w.thread);
		pthread_join(w.thread, NULL);
		write(w.id, (enum rdma_cm_event_type)EVENT_USER, 0, 0);
		well &= rdma_get_cm_event(w.channel, &e) == 0 &&
			rdma_ack_cm_event(e) == 0;
		end_waiting(&w);
	}
	say("a thread that is cancelled while it waits", well);
}

/* Two threads wait for an event. The one that is woken is cancelled before it
 * reads the event, so the other one must get it. */
static bool is_passed_on(write_event *write)
{
	pthread_t other;
	struct waiting w;
	bool well;

	had = 0;
	if (!begin_waiting(&w, listen_on) ||
	    !begin_listening(&other, listen_on, w.channel))
		return false;
	write(w.id, (enum rdma_cm_event_type)EVENT_USER, 0, 0);
	pthread_cancel(w.thread);
	pthread_join(w.thread, NULL);
	for (unsigned ms = 0; !had && ms < 2000; ms++)
		usleep(1000);
	well = had == 1;
	pthread_cancel(other);
	pthread_join(other, NULL);
	end_waiting(&w);
	return well;
}

static void passed_on(void)
{
	write_event *write = dlsym(RTLD_DEFAULT, "rdma_write_cm_event");
	bool well = write;

	for (unsigned i = 0; well && i < TURNS; i++)
		well = is_passed_on(write);
	say("one of two that wait is cancelled", well);
}

/* An id may outlive its event channel; afterwards it gets no events. */
static void outlived(const char *name)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct addrinfo *found = NULL;
	struct sockaddr *a = address_of(name, &found);
	struct rdma_cm_id *id, *other;
	bool well = channel && a &&
		    rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0 &&
		    rdma_create_id(channel, &other, NULL, RDMA_PS_TCP) == 0 &&
		    rdma_bind_addr(id, a) == 0 && rdma_listen(id, 1) == 0 &&
		    rdma_resolve_addr(other, NULL, a, 1000) == 0;

	if (well) {
		rdma_destroy_event_channel(channel);
		/* wait until the address is resolved, without a channel */
		usleep(2000);
		well = rdma_destroy_id(other) == 0 && rdma_destroy_id(id) == 0;
	}
	say("ids that outlive their channel", well);
	freeaddrinfo(found);
}

static struct rdma_cm_id *end_point(const char *name, int flags,
				    enum ibv_qp_type type)
{
	const struct rdma_addrinfo hints = {
		.ai_flags = flags,
		.ai_port_space = type == IBV_QPT_RC ? RDMA_PS_TCP : RDMA_PS_IB,
		.ai_qp_type = type,
	};
	struct ibv_qp_init_attr attr = {
		.cap = { 4, 4, 1, 1, 16 },
		.sq_sig_all = 1,
	};
	struct rdma_addrinfo *res;
	struct rdma_cm_id *id = NULL;

	if (rdma_getaddrinfo(name, PORT, &hints, &res))
		return NULL;
	if (rdma_create_ep(&id, res, NULL, &attr))
		id = NULL;
	rdma_freeaddrinfo(res);
	return id;
}

static char heard[64];

static bool hear(struct rdma_cm_id *listener)
{
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	struct ibv_wc wc;
	bool well;

	if (rdma_get_request(listener, &id))
		return false;
	mr = rdma_reg_msgs(id, heard, sizeof(heard));
	well = mr && rdma_post_recv(id, NULL, heard, sizeof(heard), mr) == 0 &&
	       rdma_accept(id, NULL) == 0 && rdma_get_recv_comp(id, &wc) == 1 &&
	       wc.status == IBV_WC_SUCCESS &&
	       id->qp->qp_type == listener->qp_type;
	rdma_disconnect(id);
	if (mr)
		rdma_dereg_mr(mr);
	rdma_destroy_ep(id);
	return well;
}

static void *server(void *listener)
{
	return hear(listener) ? listener : NULL;
}

static bool talk(const char *name, enum ibv_qp_type type)
{
	static char word[] = "a word";
	struct rdma_cm_id *id = end_point(name, 0, type);
	struct ibv_wc wc;
	bool well;

	if (!id)
		return false;
	well = rdma_connect(id, NULL) == 0 &&
	       rdma_post_send(id, NULL, word, sizeof(word), NULL,
			      IBV_SEND_INLINE) == 0 &&
	       rdma_get_send_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS;
	return well;
}

static bool connects(const char *name, struct rdma_cm_id *listener)
{
	pthread_t thread;
	void *heard_it = NULL;
	bool well;

	memset(heard, 0, sizeof(heard));
	if (rdma_listen(listener, 1) ||
	    pthread_create(&thread, NULL, server, listener))
		return false;
	well = talk(name, listener->qp_type);
	pthread_join(thread, &heard_it);
	return well && heard_it && strcmp(heard, "a word") == 0;
}

static void unreliable(const char *name)
{
	struct rdma_cm_id *id = end_point(name, RAI_PASSIVE, IBV_QPT_UC);

	say("UC by rdma_create_ep()", id && connects(name, id));
	if (id)
		rdma_destroy_ep(id);
}

/* As on Linux, an id that is bound to a loopback address gets no device yet,
 * even if a device has that address. It gets one with a connection request. */
static bool chooses_none(const char *name)
{
	struct rdma_cm_id *id = end_point(name, RAI_PASSIVE, IBV_QPT_RC);
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC,
					 .cap = { 1, 1, 1, 1, 0 } };
	bool well;

	if (!id)
		return false;
	well = !id->verbs && !id->pd && ntohs(rdma_get_src_port(id)) == 7477 &&
	       fails(rdma_create_qp(id, NULL, &attr), EINVAL) &&
	       connects(name, id);
	rdma_destroy_ep(id);
	return well;
}

static bool chosen_later(const char *name)
{
	struct addrinfo *found = NULL;
	struct sockaddr *a = address_of(name, &found);
	struct rdma_cm_id *id;
	bool well = a && rdma_create_id(NULL, &id, NULL, RDMA_PS_UDP) == 0;

	if (!well)
		return false;
	well = rdma_bind_addr(id, a) == 0 && !id->verbs &&
	       fails(rdma_join_multicast(id, a, NULL), EINVAL) &&
	       rdma_resolve_addr(id, NULL, a, 1000) == 0 && id->verbs && id->pd;
	rdma_destroy_id(id);
	freeaddrinfo(found);
	return well;
}

/* Binding to 192.0.2.77, which no host has (RFC 5737), must fail. */
static bool anothers_address(void)
{
	struct addrinfo *found = NULL;
	struct sockaddr *a = address_of("192.0.2.77", &found);
	struct rdma_cm_id *id;
	bool well = a && rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) == 0;

	if (!well)
		return false;
	well = fails(rdma_bind_addr(id, a), EADDRNOTAVAIL) &&
	       fails(rdma_resolve_addr(id, a, a, 1000), EADDRNOTAVAIL);
	rdma_destroy_id(id);
	freeaddrinfo(found);
	return well;
}

static void loopback(void)
{
	say("an address of another host's", anothers_address());
	say("127.0.0.1 chooses no device", chooses_none("127.0.0.1"));
	say("::1 chooses no device", chooses_none("::1"));
	say("127.0.0.1, bound and resolved", chosen_later("127.0.0.1"));
	say("::1, bound and resolved", chosen_later("::1"));
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 2)
		return 2;
	corners(argv[1]);
	channel_goes();
	cancelled();
	passed_on();
	outlived(argv[1]);
	unreliable(argv[1]);
	loopback();
	return failures != 0;
}
