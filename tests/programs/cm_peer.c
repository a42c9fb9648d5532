/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A server that accepts no connection: cm_peer ADDRESS PORT. It prints
 * "listening", and then for each request the line "from ADDRESS to ADDRESS by
 * ADDRESS": the names of both ends, and the address of the path (its source
 * GID).
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(int good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

static const char *name_of(const struct sockaddr *a, char text[NI_MAXHOST])
{
	const socklen_t len = a->sa_family == AF_INET6
				      ? sizeof(struct sockaddr_in6)
				      : sizeof(struct sockaddr_in);

	must(getnameinfo(a, len, text, NI_MAXHOST, NULL, 0, NI_NUMERICHOST) ==
		     0,
	     "getnameinfo");
	return text;
}

static void tell(struct rdma_cm_id *id)
{
	char peer[NI_MAXHOST], own[NI_MAXHOST], path[INET6_ADDRSTRLEN];
	const uint8_t *gid = id->route.addr.addr.ibaddr.sgid.raw;

	printf("from %s to %s by %s\n", name_of(rdma_get_peer_addr(id), peer),
	       name_of(rdma_get_local_addr(id), own),
	       inet_ntop(AF_INET6, gid, path, sizeof(path)));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE,
				       .ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo *at;
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	if (argc != 3)
		return 2;
	must(channel != NULL, "rdma_create_event_channel");
	must(rdma_getaddrinfo(argv[1], argv[2], &hints, &at) == 0, "address");
	must(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0, "id");
	must(rdma_bind_addr(id, at->ai_src_addr) == 0, "rdma_bind_addr");
	must(rdma_listen(id, 8) == 0, "rdma_listen");
	puts("listening");
	fflush(stdout);
	for (;;) {
		must(rdma_get_cm_event(channel, &event) == 0, "event");
		id = event->id;
		if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
			rdma_ack_cm_event(event);
			continue;
		}
		tell(id);
		must(rdma_reject(id, NULL, 0) == 0, "rdma_reject");
		rdma_ack_cm_event(event);
		rdma_destroy_id(id);
	}
}
