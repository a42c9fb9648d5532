/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections and groups of rdma_cm on an adapter of a fabric, by AF_IB
 * addresses, where no packaged program will do. Prints an event a line:
 *
 *	ib_cm_test listen GID PORT [PKEY]	until the peer disconnects
 *	ib_cm_test connect GID PEER PORT [PKEY]	the same, to a listener
 *	ib_cm_test watch GID PORT		take messages, and tell how the
 *						path migrates, until then
 *	ib_cm_test migrate GID PEER PORT SLID DLID SLID DLID
 *						the other end: messages by the
 *						first path, with the second one
 *						as the alternate path, until the
 *						connection has migrated
 *	ib_cm_test find GID SERVICE		the ports that have the service,
 *						a name or an ID
 *	ib_cm_test reach SERVICE		connect to the first of them
 *	ib_cm_test receive GID GROUP COUNT	join, and take COUNT datagrams
 *	ib_cm_test send GID GROUP COUNT		join, and send them
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <endian.h>
#include <errno.h>
#include <infiniband/ib.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAYLOAD	 64
#define GRH	 40
#define DEPTH	 64
#define ROUTE_MS 2000
#define LAST	 0xff /* the first byte of the last message */

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

/* Listens until a peer has connected. */
static struct rdma_cm_id *take_one(char **args)
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
	return peer;
}

static int do_listen(char **args)
{
	return hold(take_one(args));
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

/* --- migration --- */

static uint8_t message[GRH + PAYLOAD];

static enum ibv_mig_state migration_of(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	if (ibv_query_qp(id->qp, &a, IBV_QP_PATH_MIG_STATE, &init))
		die("ibv_query_qp");
	return a.path_mig_state;
}

static void print_alternate(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	if (ibv_query_qp(id->qp, &a, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE,
			 &init))
		die("ibv_query_qp");
	printf("paths: %d\n", id->route.num_paths);
	printf("alternate: dlid %u bits %u port %u state %u\n",
	       a.alt_ah_attr.dlid, a.alt_ah_attr.src_path_bits, a.alt_port_num,
	       a.path_mig_state);
	fflush(stdout);
}

/* Print the state of path migration when it has changed to Armed or Migrated.
 * Returns the state. */
static enum ibv_mig_state follow_migration(struct rdma_cm_id *id,
					   enum ibv_mig_state was)
{
	enum ibv_mig_state is = migration_of(id);

	if (is == was || is == IBV_MIG_REARM)
		return is;
	printf("%s\n", is == IBV_MIG_ARMED ? "armed" : "migrated");
	if (is == IBV_MIG_MIGRATED)
		print_way(id);
	fflush(stdout);
	return is;
}

static int do_watch(char **args)
{
	struct rdma_cm_id *id = take_one(args);
	enum ibv_mig_state state = migration_of(id);
	struct ibv_mr *mr = rdma_reg_msgs(id, message, sizeof(message));
	struct ibv_wc wc;

	print_way(id);
	print_alternate(id);
	do {
		if (!mr ||
		    rdma_post_recv(id, NULL, message, sizeof(message), mr) ||
		    rdma_get_recv_comp(id, &wc) <= 0 ||
		    wc.status != IBV_WC_SUCCESS)
			die("receive");
		state = follow_migration(id, state);
	} while (message[0] != LAST);
	rdma_dereg_mr(mr);
	expect(RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_qp(id);
	rdma_destroy_id(id);
	return 0;
}

static struct ibv_path_data path_of(const struct rdma_cm_id *id, char **lids,
				    uint32_t kind)
{
	const struct rdma_ib_addr *a = &id->route.addr.addr.ibaddr;

	return (struct ibv_path_data){
		.flags = kind | IBV_PATH_FLAG_BIDIRECTIONAL,
		.path = { .sgid = a->sgid,
			  .dgid = a->dgid,
			  .slid = htobe16((uint16_t)atoi(lids[0])),
			  .dlid = htobe16((uint16_t)atoi(lids[1])),
			  .pkey = htobe16(0xffff),
			  .mtu = 0x80 | IBV_MTU_2048,
			  .packetlifetime = 0x80 | 12 },
	};
}

static void send_one(struct rdma_cm_id *id, struct ibv_mr *mr)
{
	struct ibv_wc wc;

	if (rdma_post_send(id, NULL, message, PAYLOAD, mr, IBV_SEND_SIGNALED) ||
	    rdma_get_send_comp(id, &wc) <= 0 || wc.status != IBV_WC_SUCCESS)
		die("send");
}

static int do_migrate(char **args)
{
	const struct timespec nap = { .tv_nsec = 10000000 };
	struct rdma_conn_param param = { .retry_count = 3,
					 .rnr_retry_count = 7 };
	struct rdma_cm_id *id = resolve(args, IBV_QPT_RC, args[2], NULL);
	const struct ibv_path_data paths[] = {
		path_of(id, args + 3,
			IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY),
		path_of(id, args + 5, IBV_PATH_FLAG_ALTERNATE),
	};
	enum ibv_mig_state state;
	struct ibv_mr *mr;

	if (rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH,
			    (void *)paths, sizeof(paths)))
		die("rdma_set_option");
	expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_qp(id, IBV_QPT_RC);
	mr = rdma_reg_msgs(id, message, sizeof(message));
	if (rdma_connect(id, &param))
		die("rdma_connect");
	expect(RDMA_CM_EVENT_ESTABLISHED);
	print_way(id);
	print_alternate(id);
	for (state = migration_of(id); state != IBV_MIG_MIGRATED;
	     state = follow_migration(id, state)) {
		send_one(id, mr);
		nanosleep(&nap, NULL);
	}
	message[0] = LAST;
	send_one(id, mr);
	rdma_dereg_mr(mr);
	rdma_disconnect(id);
	expect(RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_qp(id);
	rdma_destroy_id(id);
	return 0;
}

/* --- services --- */

#define RAI_SERVICE 0x10 /* RAI_SA, which older headers do not define */

static void print_services(const struct rdma_addrinfo *list)
{
	char gid[INET6_ADDRSTRLEN];

	for (const struct rdma_addrinfo *r = list; r; r = r->ai_next) {
		const struct sockaddr_ib *sib =
			(const struct sockaddr_ib *)r->ai_dst_addr;

		inet_ntop(AF_INET6, &sib->sib_addr, gid, sizeof(gid));
		printf("service %#llx at %s pkey %#x\n",
		       (unsigned long long)be64toh(sib->sib_sid), gid,
		       be16toh(sib->sib_pkey));
	}
}

/* The two functions are newer than the library that this program may have been
 * linked with. */
static int do_find(char **args)
{
	struct sockaddr_ib own = address(args[0], NULL, NULL);
	const struct rdma_addrinfo hints = { .ai_flags = RAI_SERVICE };
	int (*resolve_info)(struct rdma_cm_id *, const char *, const char *,
			    const struct rdma_addrinfo *) =
		dlsym(RTLD_DEFAULT, "rdma_resolve_addrinfo");
	int (*query_info)(struct rdma_cm_id *, struct rdma_addrinfo **) =
		dlsym(RTLD_DEFAULT, "rdma_query_addrinfo");
	struct rdma_addrinfo *found;
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;
	int status;

	if (rdma_create_id(channel, &id, NULL, RDMA_PS_IB) ||
	    rdma_bind_addr(id, (struct sockaddr *)&own))
		die("rdma_bind_addr");
	if (resolve_info(id, NULL, args[1], &hints))
		die("rdma_resolve_addrinfo");
	e = next();
	status = e->status;
	rdma_ack_cm_event(e);
	if (status == 0 && !query_info(id, &found)) {
		print_services(found);
		rdma_freeaddrinfo(found);
	}
	rdma_destroy_id(id);
	return status != 0;
}

static int do_reach(char **args)
{
	const struct rdma_addrinfo hints = { .ai_flags = RAI_SERVICE };
	struct ibv_qp_init_attr a = { .cap = { DEPTH, DEPTH, 1, 1, 0 } };
	struct rdma_addrinfo *found;
	struct rdma_cm_id *id;

	if (rdma_getaddrinfo(NULL, args[0], &hints, &found))
		die("rdma_getaddrinfo");
	print_services(found);
	if (rdma_create_ep(&id, found, NULL, &a) || rdma_connect(id, NULL))
		die("rdma_connect");
	printf("connected\n");
	rdma_freeaddrinfo(found);
	rdma_disconnect(id);
	rdma_destroy_ep(id);
	return 0;
}

/* --- groups --- */

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
		{ "listen", 4, do_listen },   { "connect", 5, do_connect },
		{ "watch", 4, do_watch },     { "migrate", 9, do_migrate },
		{ "find", 4, do_find },	      { "reach", 3, do_reach },
		{ "receive", 5, do_receive }, { "send", 5, do_send },
	};

	channel = rdma_create_event_channel();
	if (!channel)
		die("rdma_create_event_channel");
	for (unsigned i = 0; i < sizeof(modes) / sizeof(*modes); i++)
		if (argc >= modes[i].least &&
		    strcmp(argv[1], modes[i].name) == 0)
			return modes[i].run(argv + 2);
	fprintf(stderr,
		"usage: ib_cm_test listen|connect|watch|migrate|receive|"
		"send ...\n");
	return 2;
}
