/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many connections through librdmacm from one program to another, of which one
 * may kill itself at a given moment:
 *
 *	cm_many -s ADDRESS [-m KIND] [-n COUNT] [-b] [-t] [-v] [-k MOMENT]
 *	cm_many -c ADDRESS [-m KIND] [-n COUNT] [-w WINDOW] [-z SECONDS] [-p]
 *		[-v] [-k MOMENT]
 *
 * The client makes COUNT connections, WINDOW at a time, sleeps, and then ends
 * all of them (with "-k established" it dies instead). -p: the client lets its
 * peer end the connections; -b: the server ends them at the same time, too; -t:
 * the server never stops, whatever fails. -v: prints the time of each event.
 * MOMENT: resolve, connect, request, accept, established, disconnect or
 * timewait. KIND: rc, xrc, or ud, which has no connection to end. The program
 * prints how the connections ended. Exit status 0: all were established and
 * ended by DISCONNECTED.
 */
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PORT "7471"

static struct rdma_event_channel *channel;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct sockaddr_storage address;
static unsigned count = 1, window = 64, nap;
static unsigned begun, up, down, lost;
static const char *moment = "";
static enum { RC, UD, XRC } kind;
static int serves, peer_ends, both_end, talks, tolerates;
static struct rdma_cm_id **ids;

static void die(const char *what)
{
	perror(what);
	exit(2);
}

/* Returns seconds of a clock that all programs of the host share. */
static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void at(const char *now)
{
	if (strcmp(moment, now) != 0)
		return;
	if (nap && strcmp(now, "established") == 0)
		sleep(nap);
	printf("dies %.6f\n", seconds());
	fflush(stdout);
	raise(SIGKILL);
}

static void equip(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = { .qp_type = id->qp_type,
					 .cap = { 1, 1, 1, 1, 0 } };

	if (!pd) {
		pd = ibv_alloc_pd(id->verbs);
		cq = ibv_create_cq(id->verbs, 16, NULL, NULL, 0);
	}
	attr.send_cq = attr.recv_cq = cq;
	/* A receiving XRC queue pair has no CQ: its SRQ has one. */
	if (kind == XRC && serves)
		attr.send_cq = attr.recv_cq = NULL;
	if (!pd || !cq || rdma_create_qp(id, pd, &attr))
		die("a queue pair");
}

/* Make an id for XRC, which only rdma_create_ep() can make. */
static struct rdma_cm_id *xrc_id(void)
{
	struct rdma_addrinfo ai = {
		.ai_flags = serves ? RAI_PASSIVE : 0,
		.ai_qp_type = serves ? IBV_QPT_XRC_RECV : IBV_QPT_XRC_SEND,
		.ai_port_space = RDMA_PS_IB,
	};
	struct rdma_cm_id *id;

	if (serves)
		ai.ai_src_addr = (struct sockaddr *)&address;
	else
		ai.ai_dst_addr = (struct sockaddr *)&address;
	if (rdma_create_ep(&id, &ai, NULL, NULL) ||
	    rdma_migrate_id(id, channel))
		die("an id for XRC");
	return id;
}

static enum rdma_port_space space(void)
{
	return kind == UD ? RDMA_PS_UDP : RDMA_PS_TCP;
}

static void on_route(struct rdma_cm_id *id);

static void begin(void)
{
	struct rdma_cm_id *id;

	if (kind == XRC) {
		begun++;
		on_route(xrc_id());
		return;
	}
	if (rdma_create_id(channel, &id, NULL, space()) ||
	    rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 2000))
		die("an id");
	begun++;
}

static void finish(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	if (rdma_destroy_id(id))
		die("rdma_destroy_id");
}

static void on_request(struct rdma_cm_id *id)
{
	struct rdma_conn_param p = { .retry_count = 7, .rnr_retry_count = 7 };

	at("request");
	equip(id);
	p.qp_num = id->qp->qp_num;
	if (rdma_accept(id, &p))
		die("rdma_accept");
	at("accept");
	if (kind != UD)
		return;
	up++;
	down++;
}

static void on_route(struct rdma_cm_id *id)
{
	struct rdma_conn_param p = { .retry_count = 7, .rnr_retry_count = 7 };

	at("resolve");
	equip(id);
	if (rdma_connect(id, &p))
		die("rdma_connect");
	at("connect");
}

static void end_all(void)
{
	if (nap) {
		puts("sleeps");
		fflush(stdout);
		sleep(nap);
	}
	for (unsigned i = 0; i < count; i++)
		if (rdma_disconnect(ids[i]))
			die("rdma_disconnect");
	at("disconnect");
}

static void on_up(struct rdma_cm_id *id)
{
	at("established");
	ids[up++ % count] = id;
	if (!serves && begun < count)
		begin();
	if (kind == UD)
		down++;
	else if (up == count && (serves ? both_end : !peer_ends))
		end_all();
}

static void on_down(struct rdma_cm_id *id)
{
	if (serves && !both_end)
		rdma_disconnect(id);
	down++;
	at("timewait");
}

/* Handle an event of rdma_cm. Returns true if its id is no longer needed. */
static int on_event(const struct rdma_cm_event *e)
{
	switch (e->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (rdma_resolve_route(e->id, 2000))
			die("rdma_resolve_route");
		return 0;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		on_route(e->id);
		return 0;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		on_request(e->id);
		return kind == UD;
	case RDMA_CM_EVENT_ESTABLISHED:
		on_up(e->id);
		return kind == UD;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		return 0;
	case RDMA_CM_EVENT_DISCONNECTED:
		on_down(e->id);
		return 1;
	default:
		if (tolerates)
			return 1;
		printf("%s, %d\n", rdma_event_str(e->event), e->status);
		lost++;
		return 1;
	}
}

static void run(void)
{
	while (tolerates || down + lost < count) {
		struct rdma_cm_event *e;
		struct rdma_cm_id *id;
		int over;

		if (rdma_get_cm_event(channel, &e))
			die("rdma_get_cm_event");
		id = e->id;
		if (talks)
			printf("heard %.6f %s\n", seconds(),
			       rdma_event_str(e->event));
		over = on_event(e);
		rdma_ack_cm_event(e);
		if (over)
			finish(id);
	}
}

static void listen_there(void)
{
	struct rdma_cm_id *id = kind == XRC ? xrc_id() : NULL;

	if (!id && (rdma_create_id(channel, &id, NULL, space()) ||
		    rdma_bind_addr(id, (struct sockaddr *)&address)))
		die("rdma_bind_addr");
	if (rdma_listen(id, 0))
		die("rdma_listen");
	puts("listening");
	fflush(stdout);
}

static void parse(int argc, char **argv)
{
	struct addrinfo *found;
	const char *host = NULL;
	int c;

	while ((c = getopt(argc, argv, "s:c:m:n:w:z:k:bptv")) != -1) {
		if (c == 's' || c == 'c') {
			serves = c == 's';
			host = optarg;
		} else if (c == 'n') {
			count = (unsigned)atoi(optarg);
		} else if (c == 'm') {
			kind = *optarg == 'u' ? UD : *optarg == 'x' ? XRC : RC;
		} else if (c == 'w') {
			window = (unsigned)atoi(optarg);
		} else if (c == 'b') {
			both_end = 1;
		} else if (c == 'p') {
			peer_ends = 1;
		} else if (c == 't') {
			tolerates = 1;
		} else if (c == 'v') {
			talks = 1;
			setvbuf(stdout, NULL, _IOLBF, 0);
		} else if (c == 'z') {
			nap = (unsigned)atoi(optarg);
		} else if (c == 'k') {
			moment = optarg;
		} else {
			exit(2);
		}
	}
	if (!host || count == 0 || getaddrinfo(host, PORT, NULL, &found))
		exit(2);
	memcpy(&address, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
}

int main(int argc, char **argv)
{
	parse(argc, argv);
	ids = calloc(count, sizeof(struct rdma_cm_id *));
	channel = rdma_create_event_channel();
	if (!channel || !ids)
		die("rdma_create_event_channel");
	if (serves)
		listen_there();
	else
		while (begun < count && begun < window)
			begin();
	run();
	printf("%u established, %u ended, %u lost\n", up, down, lost);
	return !(up == count && down == count && lost == 0);
}
