/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A network interface is deleted, made again, and deleted again: the events
 * that rdma_cm ids get, one of them while its connection request waits for an
 * answer. The test needs a network namespace whose veth0 has ADDRESS:
 * removal_test ADDRESS
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PORT	7188
#define WAIT_MS 5000

static struct rdma_event_channel *channel;
static struct sockaddr_in address = { .sin_family = AF_INET };
static const char *host;
static bool failed;

static void check(bool good, const char *what)
{
	printf("%s %s\n", good ? "ok" : "not ok", what);
	fflush(stdout);
	failed |= !good;
}

static void must(bool good, const char *what)
{
	if (good)
		return;
	printf("not ok %s: %s\n", what, strerror(errno));
	exit(1);
}

static void delete_interface(void)
{
	must(system("ip link del veth0") == 0, "ip link del");
}

static void make_interface(void)
{
	char command[256];

	snprintf(command, sizeof(command),
		 "ip link add veth0 type veth peer name veth9 && "
		 "ip addr add %s/24 dev veth0 && ip link set veth9 up && "
		 "ip link set veth0 up",
		 host);
	must(system(command) == 0, "ip link add");
}

static void *delete_soon(void *arg)
{
	usleep(500 * 1000);
	delete_interface();
	return arg;
}

/* Returns the id of the next event @what, or NULL after a while; other events
 * are skipped. */
static struct rdma_cm_id *next(enum rdma_cm_event_type what, int wait_ms)
{
	struct pollfd p = { channel->fd, POLLIN, 0 };

	while (poll(&p, 1, wait_ms) == 1) {
		struct rdma_cm_event *e;
		struct rdma_cm_id *id;
		bool is;

		must(!rdma_get_cm_event(channel, &e), "rdma_get_cm_event");
		is = e->event == what;
		id = e->id;
		must(!rdma_ack_cm_event(e), "rdma_ack_cm_event");
		if (is)
			return id;
	}
	return NULL;
}

static struct rdma_cm_id *make_id(struct rdma_event_channel *c)
{
	struct rdma_cm_id *id;

	must(!rdma_create_id(c, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	return id;
}

static struct rdma_cm_id *listener_at_the_address(void)
{
	struct rdma_cm_id *id = make_id(channel);

	address.sin_port = htons(PORT);
	must(!rdma_bind_addr(id, (struct sockaddr *)&address) &&
		     !rdma_listen(id, 1),
	     "rdma_listen");
	return id;
}

/* Send a connection request that no program answers, because none reads the
 * listener's events. */
static void call_that_is_under_way(void)
{
	struct rdma_conn_param p = { .retry_count = 7 };
	struct ibv_qp_init_attr attr = { .cap = { 1, 1, 1, 1, 0 },
					 .qp_type = IBV_QPT_RC };
	struct rdma_cm_id *id = make_id(NULL);
	pthread_t thread;
	int rc, error;

	must(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 1000) &&
		     !rdma_resolve_route(id, 1000) &&
		     !rdma_create_qp(id, NULL, &attr),
	     "to resolve");
	must(!pthread_create(&thread, NULL, delete_soon, NULL), "a thread");
	errno = 0;
	rc = rdma_connect(id, &p);
	error = errno;
	pthread_join(thread, NULL);
	if (rc == 0 || error != ENODEV)
		printf("# rdma_connect: %d, errno %d\n", rc, error);
	check(rc && error == ENODEV, "a call under way fails");
	rdma_destroy_qp(id);
	must(!rdma_destroy_id(id), "rdma_destroy_id");
}

/* Resolve again; the engine learns of the interface with a delay. */
static struct rdma_cm_id *resolve_anew(void)
{
	for (int i = 0; i < 50; i++) {
		struct rdma_cm_id *id = make_id(channel);

		if (!rdma_resolve_addr(id, NULL, (struct sockaddr *)&address,
				       1000) &&
		    next(RDMA_CM_EVENT_ADDR_RESOLVED, 100))
			return id;
		rdma_destroy_id(id);
		usleep(100 * 1000);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct rdma_cm_id *listener, *id;

	host = argc > 1 ? argv[1] : "";
	if (inet_pton(AF_INET, host, &address.sin_addr) != 1)
		return 2;
	channel = rdma_create_event_channel();
	must(channel, "rdma_create_event_channel");
	listener = listener_at_the_address();
	call_that_is_under_way();
	check(next(RDMA_CM_EVENT_DEVICE_REMOVAL, WAIT_MS) == listener,
	      "a listener hears of it");
	make_interface();
	id = resolve_anew();
	check(id, "an interface of that name comes again");
	delete_interface();
	check(id && next(RDMA_CM_EVENT_DEVICE_REMOVAL, WAIT_MS) == id,
	      "it goes again: who was only resolved hears of it");
	check(!next(RDMA_CM_EVENT_DEVICE_REMOVAL, 500),
	      "who has heard of it hears of it once");
	make_interface(); /* the next case needs the interface again */
	return failed;
}
