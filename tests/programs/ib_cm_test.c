/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections and groups of rdma_cm on an adapter of a fabric, by AF_IB
 * addresses, where no packaged program will do. Prints an event a line:
 *
 *	ib_cm_test listen GID PORT [PKEY]	until the peer disconnects
 *	ib_cm_test connect GID PEER PORT [PKEY]	the same, to a listener
 *	ib_cm_test receive GID GROUP COUNT	join, and take COUNT datagrams
 *	ib_cm_test send GID GROUP COUNT		join, and send them
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <infiniband/ib.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAYLOAD	 64
#define GRH	 40
#define DEPTH	 64
#define ROUTE_MS 2000

static struct rdma_event_channel *channel;

static void die(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

static struct sockaddr_ib address(const char *gid, const char *port,
				  const char *pkey)
{
	struct sockaddr_ib a = { .sib_family = AF_IB };
	uint64_t sid = port ? strtoul(port, NULL, 0) : 0;

	if (inet_pton(AF_INET6, gid, &a.sib_addr) != 1) {
		printf("%s is no GID\n", gid);
		exit(2);
	}
	a.sib_pkey = htobe16(pkey ? (uint16_t)strtoul(pkey, NULL, 0) : 0xffff);
	a.sib_sid = htobe64((uint64_t)RDMA_PS_IB << 16 | sid);
	a.sib_sid_mask = htobe64(UINT64_MAX);
	return a;
}

/* Waits for an event, and prints it. The caller acknowledges it. */
static struct rdma_cm_event *next(void)
{
	struct rdma_cm_event *e;

	if (rdma_get_cm_event(channel, &e))
		die("rdma_get_cm_event");
	printf("%s %d\n", rdma_event_str(e->event), e->status);
	fflush(stdout);
	return e;
}

static void expect(enum rdma_cm_event_type want)
{
	struct rdma_cm_event *e = next();
	const enum rdma_cm_event_type is = e->event;

	rdma_ack_cm_event(e);
	if (is != want)
		exit(1);
}

static void make_qp(struct rdma_cm_id *id, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr a = {
		.cap = { DEPTH, DEPTH, 1, 1, 0 },
		.qp_type = type,
	};

	if (rdma_create_qp(id, NULL, &a))
		die("rdma_create_qp");
}

static void print_way(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	if (ibv_query_qp(id->qp, &a, IBV_QP_AV | IBV_QP_PKEY_INDEX, &init))
		die("ibv_query_qp");
	printf("way: dlid %u sl %u pkey index %u global %u\n", a.ah_attr.dlid,
	       a.ah_attr.sl, a.pkey_index, a.ah_attr.is_global);
	fflush(stdout);
}

static int hold(struct rdma_cm_id *id)
{
	print_way(id);
	expect(RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_qp(id);
	rdma_destroy_id(id);
	return 0;
}

static int do_listen(char **args)
{
	struct sockaddr_ib own = address(args[0], args[1], args[2]);
	struct rdma_cm_event *e;
	struct rdma_cm_id *id, *peer;

	if (rdma_create_id(channel, &id, NULL, RDMA_PS_IB) ||
	    rdma_bind_addr(id, (struct sockaddr *)&own) || rdma_listen(id, 0))
		die("rdma_listen");
	printf("listening\n");
	fflush(stdout);
	e = next();
	peer = e->id;
	rdma_ack_cm_event(e);
	make_qp(peer, IBV_QPT_RC);
	if (rdma_accept(peer, NULL))
		die("rdma_accept");
	expect(RDMA_CM_EVENT_ESTABLISHED);
	rdma_destroy_id(id);
	return hold(peer);
}

static void print_path(const struct rdma_cm_id *id)
{
	const struct ibv_sa_path_rec *p = id->route.path_rec;

	printf("path: slid %u dlid %u sl %u mtu %u pkey %#x\n",
	       be16toh(p->slid), be16toh(p->dlid), p->sl, p->mtu,
	       be16toh(p->pkey));
	fflush(stdout);
}

static struct rdma_cm_id *resolve(char **args, enum ibv_qp_type type,
				  const char *port, const char *pkey)
{
	struct sockaddr_ib own = address(args[0], NULL, pkey);
	struct sockaddr_ib to = address(args[1], port, pkey);
	struct rdma_cm_id *id;

	if (rdma_create_id(channel, &id, NULL,
			   type == IBV_QPT_UD ? RDMA_PS_UDP : RDMA_PS_IB))
		die("rdma_create_id");
	own.sib_sid = 0;
	own.sib_sid_mask = 0;
	if (type == IBV_QPT_UD)
		to.sib_sid = to.sib_sid_mask = 0;
	if (rdma_resolve_addr(id, (struct sockaddr *)&own,
			      (struct sockaddr *)&to, ROUTE_MS))
		die("rdma_resolve_addr");
	expect(RDMA_CM_EVENT_ADDR_RESOLVED);
	return id;
}

static int do_connect(char **args)
{
	struct rdma_cm_id *id = resolve(args, IBV_QPT_RC, args[2], args[3]);

	if (rdma_resolve_route(id, ROUTE_MS))
		die("rdma_resolve_route");
	expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
	print_path(id);
	make_qp(id, IBV_QPT_RC);
	if (rdma_connect(id, NULL))
		die("rdma_connect");
	expect(RDMA_CM_EVENT_ESTABLISHED);
	return hold(id);
}

struct group {
	struct rdma_cm_id *id;
	struct ibv_ah *ah;
	uint32_t qpn, qkey;
	struct ibv_mr *mr;
	uint8_t bytes[DEPTH][GRH + PAYLOAD];
};

static struct group g;

static void join(char **args)
{
	struct sockaddr_ib group = address(args[1], NULL, NULL);
	struct rdma_cm_event *e;

	g.id = resolve(args, IBV_QPT_UD, NULL, NULL);
	make_qp(g.id, IBV_QPT_UD);
	g.mr = rdma_reg_msgs(g.id, g.bytes, sizeof(g.bytes));
	if (!g.mr)
		die("rdma_reg_msgs");
	for (unsigned i = 0; i < DEPTH; i++)
		if (rdma_post_recv(g.id, g.bytes[i], g.bytes[i],
				   sizeof(g.bytes[i]), g.mr))
			die("rdma_post_recv");
	group.sib_sid = group.sib_sid_mask = 0;
	if (rdma_join_multicast(g.id, (struct sockaddr *)&group, NULL))
		die("rdma_join_multicast");
	e = next();
	if (e->event != RDMA_CM_EVENT_MULTICAST_JOIN)
		exit(1);
	g.qpn = e->param.ud.qp_num;
	g.qkey = e->param.ud.qkey;
	g.ah = ibv_create_ah(g.id->pd, &e->param.ud.ah_attr);
	printf("joined: mlid %#x qkey %#x\n", e->param.ud.ah_attr.dlid, g.qkey);
	fflush(stdout);
	if (!g.ah)
		die("ibv_create_ah");
	rdma_ack_cm_event(e);
}

static void leave(char **args)
{
	struct sockaddr_ib group = address(args[1], NULL, NULL);

	if (rdma_leave_multicast(g.id, (struct sockaddr *)&group))
		die("rdma_leave_multicast");
	ibv_destroy_ah(g.ah);
	rdma_dereg_mr(g.mr);
	rdma_destroy_qp(g.id);
	rdma_destroy_id(g.id);
}

static int do_receive(char **args)
{
	unsigned count = (unsigned)atoi(args[2]);
	struct ibv_wc wc;

	join(args);
	for (unsigned i = 0; i < count; i++) {
		if (rdma_get_recv_comp(g.id, &wc) <= 0 ||
		    wc.status != IBV_WC_SUCCESS || wc.byte_len != GRH + PAYLOAD)
			die("rdma_get_recv_comp");
		if (rdma_post_recv(g.id, g.bytes[0], g.bytes[0],
				   sizeof(g.bytes[0]), g.mr))
			die("rdma_post_recv");
	}
	printf("received %u\n", count);
	leave(args);
	return 0;
}

static int do_send(char **args)
{
	unsigned count = (unsigned)atoi(args[2]);
	struct ibv_wc wc;

	join(args);
	for (unsigned i = 0; i < count; i++)
		if (rdma_post_ud_send(g.id, NULL, g.bytes[0], PAYLOAD, g.mr,
				      IBV_SEND_SIGNALED, g.ah, g.qpn) ||
		    rdma_get_send_comp(g.id, &wc) <= 0 ||
		    wc.status != IBV_WC_SUCCESS)
			die("rdma_post_ud_send");
	printf("sent %u\n", count);
	leave(args);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int least;
		int (*run)(char **args);
	} modes[] = {
		{ "listen", 4, do_listen },
		{ "connect", 5, do_connect },
		{ "receive", 5, do_receive },
		{ "send", 5, do_send },
	};

	channel = rdma_create_event_channel();
	if (!channel)
		die("rdma_create_event_channel");
	for (unsigned i = 0; i < sizeof(modes) / sizeof(*modes); i++)
		if (argc >= modes[i].least &&
		    strcmp(argv[1], modes[i].name) == 0)
			return modes[i].run(argv + 2);
	fprintf(stderr, "usage: ib_cm_test listen|connect|receive|send ...\n");
	return 2;
}
