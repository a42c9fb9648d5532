/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules of events: events of other channels, not acknowledged, early, or not
 * waited for. */
#include "cm_rules.h"

bool migrate(const char *ip)
{
	struct rdma_event_channel *other = rdma_create_event_channel();
	struct rdma_cm_id *id = new_id(RDMA_PS_TCP), *sync = NULL;
	struct sockaddr_storage a = address_of(ip, 7506);
	struct rdma_cm_event *e;
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };
	bool well =
		HOLDS(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&a,
					 1000)) &&
		HOLDS(poll(&p, 1, 1000) == 1) &&
		HOLDS(!rdma_migrate_id(id, other)) &&
		HOLDS(poll(&p, 1, 0) == 0) && HOLDS(id->channel == other) &&
		HOLDS(next_event(other, &e) == RDMA_CM_EVENT_ADDR_RESOLVED) &&
		HOLDS(e->id == id) && HOLDS(!rdma_ack_cm_event(e)) &&
		HOLDS(!rdma_create_id(NULL, &sync, NULL, RDMA_PS_TCP)) &&
		HOLDS(fails(rdma_migrate_id(sync, NULL), EINVAL)) &&
		HOLDS(!rdma_resolve_addr(sync, NULL, (struct sockaddr *)&a,
					 1000)) &&
		HOLDS(sync->event->event == RDMA_CM_EVENT_ADDR_RESOLVED) &&
		HOLDS(!rdma_migrate_id(sync, other)) && HOLDS(!sync->event) &&
		HOLDS(!rdma_resolve_route(sync, 1000)) &&
		HOLDS(next_event(other, &e) == RDMA_CM_EVENT_ROUTE_RESOLVED) &&
		HOLDS(!rdma_ack_cm_event(e)) &&
		/* With channel NULL again the id's calls are synchronous. */
		HOLDS(!rdma_migrate_id(id, NULL)) &&
		HOLDS(!rdma_resolve_route(id, 1000)) &&
		HOLDS(id->event->event == RDMA_CM_EVENT_ROUTE_RESOLVED);

	rdma_destroy_id(id);
	if (sync)
		rdma_destroy_id(sync);
	rdma_destroy_event_channel(other);
	return well;
}

static volatile bool destroyed;

static void *destroy(void *id)
{
	rdma_destroy_id(id);
	destroyed = true;
	return NULL;
}

/* rdma_destroy_id(3) waits until the program has acknowledged the event. */
bool waits(const char *ip)
{
	struct rdma_cm_id *id = new_id(RDMA_PS_TCP);
	struct sockaddr_storage a = address_of(ip, 7507);
	struct rdma_cm_event *e;
	pthread_t thread;
	bool well;

	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)&a, 1000) ||
	    next_event(channel, &e) != RDMA_CM_EVENT_ADDR_RESOLVED ||
	    pthread_create(&thread, NULL, destroy, id))
		return false;
	usleep(100000);
	well = HOLDS(!destroyed);
	rdma_ack_cm_event(e);
	pthread_join(thread, NULL);
	return well && HOLDS(destroyed);
}

/*
 * If @lags is true, sendmsg() delays this thread after a message to the broker,
 * so that another thread reads the answer before rdma_connect() has returned.
 * @told: such a message was sent.
 */
static __thread bool lags, told;

#define EXPORT __attribute__((visibility("default")))

EXPORT ssize_t sendmsg(int fd, const struct msghdr *h, int flags)
{
	told = lags;
	return syscall(SYS_sendmsg, fd, h, flags);
}

EXPORT int pthread_mutex_unlock(pthread_mutex_t *m)
{
	static int (*unlock)(pthread_mutex_t *);
	int rc;

	if (!unlock)
		unlock = (int (*)(pthread_mutex_t *))dlsym(
			RTLD_NEXT, "pthread_mutex_unlock");
	rc = unlock(m);
	if (told) {
		told = false;
		usleep(300000);
	}
	return rc;
}

static void *accept_one(void *listener)
{
	struct rdma_conn_param p = { .rnr_retry_count = 7 };
	struct rdma_cm_id *id;

	if (rdma_get_request(listener, &id))
		return NULL;
	(void)rdma_accept(id, &p);
	rdma_destroy_ep(id);
	return NULL;
}

static void *take_answer(void *of)
{
	struct rdma_cm_event *e;
	intptr_t what = next_event(of, &e);

	if (e)
		rdma_ack_cm_event(e);
	return (void *)what;
}

static bool connect_late(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = { .cap = { 4, 4, 1, 1, 16 },
					 .qp_type = IBV_QPT_RC };
	struct rdma_conn_param p = { .retry_count = 7, .rnr_retry_count = 7 };
	pthread_t taker;
	void *what;
	bool well;

	if (!HOLDS(id) || !HOLDS(!rdma_resolve_route(id, 1000)) ||
	    !HOLDS(hears(RDMA_CM_EVENT_ROUTE_RESOLVED)) ||
	    !HOLDS(!rdma_create_qp(id, NULL, &attr)) ||
	    pthread_create(&taker, NULL, take_answer, channel))
		return false;
	lags = true;
	well = HOLDS(!rdma_connect(id, &p));
	lags = false;
	pthread_join(taker, &what);
	return HOLDS((intptr_t)what == RDMA_CM_EVENT_ESTABLISHED) && well;
}

bool answered_early(const char *ip)
{
	const struct place here = { ip,		 PORT,	      AF_INET,
				    RAI_PASSIVE, RDMA_PS_TCP, IBV_QPT_RC };
	struct rdma_cm_id *listener = end_point(&here), *id;
	pthread_t thread;
	bool well;

	if (!HOLDS(listener) || !HOLDS(!rdma_listen(listener, 1)) ||
	    pthread_create(&thread, NULL, accept_one, listener))
		return false;
	id = resolved(ip, atoi(PORT));
	well = connect_late(id);
	if (id)
		rdma_destroy_ep(id);
	pthread_join(thread, NULL);
	rdma_destroy_ep(listener);
	return well;
}

/* A channel with a non-blocking descriptor returns EAGAIN without events. */
bool does_not_block(void)
{
	struct rdma_event_channel *c = rdma_create_event_channel();
	struct rdma_cm_event *e;
	bool well;

	fcntl(c->fd, F_SETFL, fcntl(c->fd, F_GETFL) | O_NONBLOCK);
	well = HOLDS(fails(rdma_get_cm_event(c, &e), EAGAIN));
	rdma_destroy_event_channel(c);
	return well;
}
typedef int query_ai(struct rdma_cm_id *id, struct rdma_addrinfo **info);

/* Only ports of an InfiniBand subnet have services: an id without a port is
 * refused, and so is this id, whose port is of no subnet. */
static bool service_is_refused(resolve_ai *resolve, const char *ip)
{
	const struct rdma_addrinfo of_a_subnet = { .ai_flags = 0x10 };
	struct sockaddr_storage a = address_of(ip, 0);
	struct rdma_cm_id *id = new_id(RDMA_PS_TCP);
	bool well =
		HOLDS(fails(resolve(id, NULL, PORT, &of_a_subnet), EINVAL)) &&
		HOLDS(!rdma_bind_addr(id, (struct sockaddr *)&a)) &&
		HOLDS(fails(resolve(id, NULL, PORT, &of_a_subnet), EOPNOTSUPP));

	rdma_destroy_id(id);
	return well;
}

bool addrinfo_by_event(const char *ip)
{
	resolve_ai *resolve = dlsym(RTLD_DEFAULT, "rdma_resolve_addrinfo");
	query_ai *query = dlsym(RTLD_DEFAULT, "rdma_query_addrinfo");
	struct rdma_cm_id *id = new_id(RDMA_PS_TCP);
	struct rdma_addrinfo *info = NULL;
	struct rdma_cm_event *e;
	bool well = HOLDS(resolve && query) &&
		    HOLDS(fails(query(id, &info), ENOENT)) &&
		    HOLDS(service_is_refused(resolve, ip)) &&
		    HOLDS(!resolve(id, ip, PORT, NULL)) &&
		    HOLDS(fails(resolve(id, ip, PORT, NULL), EBUSY)) &&
		    HOLDS((int)next_event(channel, &e) == 16) &&
		    HOLDS(!strcmp(rdma_event_str(e->event),
				  "RDMA_CM_EVENT_ADDRINFO_RESOLVED")) &&
		    HOLDS(!rdma_ack_cm_event(e)) && HOLDS(!query(id, &info)) &&
		    HOLDS(info && info->ai_family == AF_INET);

	rdma_freeaddrinfo(info);
	rdma_destroy_id(id);
	return well;
}

bool join_corners(const char *ip)
{
	struct rdma_cm_id *id = new_id(RDMA_PS_UDP);
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_RESERVED
	};
	struct sockaddr_storage a = address_of(ip, 0),
				group = address_of("239.1.1.3", 0);
	bool well =
		HOLDS(!rdma_bind_addr(id, (struct sockaddr *)&a)) &&
		HOLDS(fails(rdma_join_multicast_ex(id, &attr, NULL),
			    ENOTSUP)) &&
		HOLDS(fails(
			rdma_join_multicast(id, (struct sockaddr *)&a, NULL),
			EINVAL)) &&
		HOLDS(fails(rdma_leave_multicast(id, (struct sockaddr *)&group),
			    EADDRNOTAVAIL));

	rdma_destroy_id(id);
	return well;
}
