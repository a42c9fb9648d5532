/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What librdmacm's manual pages promise of addresses that are GIDs (AF_IB),
 * of options, and of events that are still to come. Both ends in one process.
 * usage: cm_rules IPV4_ADDRESS IPV6_ADDRESS
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/ib.h>
#include <infiniband/sa.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PORT "7478"

static int failures;
static const char *why = "";

static void say(const char *what, bool well)
{
	printf("%s cm rules: %s%s%s\n", well ? "ok" : "not ok", what,
	       well || !*why ? "" : ": ", well ? "" : why);
	why = "";
	failures += !well;
}

/* The first that does not hold is why. */
static bool holds(bool it, const char *what)
{
	if (!it && !*why)
		why = what;
	return it;
}
#define HOLDS(condition) holds(condition, #condition)

static bool fails(int rc, int error)
{
	return rc == -1 && errno == error;
}

/* GIDs. */

struct place {
	const char *name, *service;
	int family, flags, space, type;
};

static struct rdma_addrinfo *look_up(const struct place *p)
{
	const struct rdma_addrinfo hints = {
		.ai_flags = p->flags | RAI_FAMILY | RAI_NUMERICHOST,
		.ai_family = p->family,
		.ai_port_space = p->space,
		.ai_qp_type = p->type,
	};
	struct rdma_addrinfo *res = NULL;

	return rdma_getaddrinfo(p->name, p->service, &hints, &res) ? NULL : res;
}

static struct rdma_cm_id *end_point(const struct place *p)
{
	struct ibv_qp_init_attr attr = { .cap = { 4, 4, 1, 1, 16 },
					 .sq_sig_all = 1 };
	struct rdma_addrinfo *res = look_up(p);
	struct rdma_cm_id *id = NULL;

	if (!res || rdma_create_ep(&id, res, NULL, &attr))
		id = NULL;
	rdma_freeaddrinfo(res);
	return id;
}

static bool gids_have_numbers(const char *ip, const char *ip6)
{
	struct place p = { ip, PORT, AF_IB, 0, RDMA_PS_TCP, 0 };
	struct rdma_addrinfo *four = look_up(&p), *six, *passive, *ipv4;
	const struct sockaddr_ib *a;
	bool well;

	p.name = ip6;
	six = look_up(&p);
	p.flags = RAI_PASSIVE;
	passive = look_up(&p);
	p.family = AF_INET;
	p.name = ip;
	ipv4 = look_up(&p);
	well = HOLDS(four && four->ai_family == AF_IB) &&
	       HOLDS(six && six->ai_family == AF_IB) &&
	       HOLDS(six->ai_dst_len == sizeof(*a) && !six->ai_src_addr) &&
	       HOLDS(passive && passive->ai_src_len == sizeof(*a)) &&
	       HOLDS(ipv4 && ipv4->ai_family == AF_INET);
	if (well) {
		a = (const struct sockaddr_ib *)four->ai_dst_addr;
		well = HOLDS(a->sib_family == AF_IB) &&
		       HOLDS(a->sib_addr.sib_addr32[2] == htonl(0xffff)) &&
		       HOLDS(be64toh(a->sib_sid) ==
			     (RDMA_IB_IP_PS_TCP | (unsigned)atoi(PORT))) &&
		       HOLDS(a->sib_sid_mask == UINT64_MAX);
	}
	rdma_freeaddrinfo(four);
	rdma_freeaddrinfo(six);
	rdma_freeaddrinfo(passive);
	rdma_freeaddrinfo(ipv4);
	return well;
}

/* Private data of the full size that there is without rdma_cm's header. */
static uint8_t pattern[216];

struct meeting {
	struct rdma_cm_id *listener;
	unsigned bytes;
	bool ud, well;
};

static char heard[64];

static bool is_ib_end(struct rdma_cm_id *id, unsigned port)
{
	return HOLDS(rdma_get_local_addr(id)->sa_family == AF_IB) &&
	       HOLDS(rdma_get_peer_addr(id)->sa_family == AF_IB) &&
	       HOLDS(ntohs(rdma_get_src_port(id)) == port);
}

static void *answer(void *arg)
{
	struct meeting *m = arg;
	struct rdma_conn_param p = { .rnr_retry_count = 7 };
	struct rdma_cm_id *id;
	const void *data;
	unsigned bytes;
	struct ibv_wc wc;
	struct ibv_mr *mr;

	if (rdma_get_request(m->listener, &id))
		return NULL;
	data = m->ud ? id->event->param.ud.private_data
		     : id->event->param.conn.private_data;
	bytes = m->ud ? id->event->param.ud.private_data_len
		      : id->event->param.conn.private_data_len;
	p.qp_num = id->qp->qp_num;
	mr = rdma_reg_msgs(id, heard, sizeof(heard));
	m->well = HOLDS(bytes == m->bytes) &&
		  HOLDS(memcmp(data, pattern, bytes) == 0) &&
		  is_ib_end(id, (unsigned)atoi(PORT)) &&
		  HOLDS(!rdma_post_recv(id, NULL, heard, sizeof(heard), mr)) &&
		  HOLDS(rdma_accept(id, &p) == 0) &&
		  HOLDS(m->ud || rdma_get_recv_comp(id, &wc) == 1);
	if (!m->ud)
		rdma_disconnect(id);
	rdma_dereg_mr(mr);
	rdma_destroy_ep(id);
	return NULL;
}

static bool call(const struct place *to, unsigned bytes)
{
	static char word[] = "by GID";
	struct rdma_conn_param p = { .private_data = pattern,
				     .private_data_len = (uint8_t)bytes,
				     .retry_count = 7,
				     .rnr_retry_count = 7 };
	struct rdma_cm_id *id = end_point(to);
	struct ibv_wc wc;
	bool well;

	if (!HOLDS(id))
		return false;
	well = HOLDS(rdma_get_local_addr(id)->sa_family == AF_IB) &&
	       HOLDS(rdma_get_src_port(id) != 0) &&
	       HOLDS(rdma_connect(id, &p) == 0) &&
	       HOLDS(id->event->event == RDMA_CM_EVENT_ESTABLISHED);
	if (well && to->type == IBV_QPT_RC)
		well = HOLDS(!rdma_post_send(id, NULL, word, sizeof(word), NULL,
					     IBV_SEND_INLINE)) &&
		       HOLDS(rdma_get_send_comp(id, &wc) == 1) &&
		       HOLDS(wc.status == IBV_WC_SUCCESS);
	rdma_destroy_ep(id);
	return well;
}

/* @at: where is listened; NULL: anywhere. */
static bool meet(const char *at, const char *to, int space, int type,
		 unsigned bytes)
{
	struct place here = { at ? at : "::", PORT,  AF_IB,
			      RAI_PASSIVE,    space, type };
	struct place there = { to, PORT, AF_IB, 0, space, type };
	struct meeting m = { .listener = end_point(&here),
			     .bytes = bytes,
			     .ud = type == IBV_QPT_UD };
	pthread_t thread;
	bool well;

	if (!HOLDS(m.listener) || !HOLDS(rdma_listen(m.listener, 1) == 0) ||
	    pthread_create(&thread, NULL, answer, &m))
		return false;
	well = call(&there, bytes);
	pthread_join(thread, NULL);
	rdma_destroy_ep(m.listener);
	return well && m.well;
}

static void gids(const char *ip, const char *ip6)
{
	for (unsigned i = 0; i < sizeof(pattern); i++)
		pattern[i] = (uint8_t)(i * 7 + 5);
	say("rdma_getaddrinfo() of GIDs", gids_have_numbers(ip, ip6));
	say("AF_IB, RC, 92 bytes of private data",
	    meet(ip, ip, RDMA_PS_TCP, IBV_QPT_RC, 92));
	say("AF_IB, any address, IPv6",
	    meet(NULL, ip6, RDMA_PS_TCP, IBV_QPT_RC, 92));
	say("AF_IB, port space IB", meet(ip6, ip6, RDMA_PS_IB, IBV_QPT_RC, 92));
	say("AF_IB, UD, 216 bytes of private data",
	    meet(ip, ip, RDMA_PS_UDP, IBV_QPT_UD, 216));
}

/* Bound ids. */

static struct sockaddr_storage address_of(const char *name, int port)
{
	struct sockaddr_storage a = { 0 };
	struct sockaddr_in *v4 = (struct sockaddr_in *)&a;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&a;

	if (inet_pton(AF_INET, name, &v4->sin_addr) == 1) {
		a.ss_family = AF_INET;
	} else {
		inet_pton(AF_INET6, name, &v6->sin6_addr);
		a.ss_family = AF_INET6;
	}
	v4->sin_port = htons((uint16_t)port);
	return a;
}

struct option {
	int name, value;
};

/* @id with options, bound. -1 and errno. */
static int bind_with(struct rdma_cm_id *id, const char *name, int port,
		     struct option o)
{
	struct sockaddr_storage a = address_of(name, port);

	if (o.value && rdma_set_option(id, RDMA_OPTION_ID, o.name, &o.value,
				       sizeof(o.value)))
		return -1;
	return rdma_bind_addr(id, (struct sockaddr *)&a);
}

static struct rdma_event_channel *channel;

static struct rdma_cm_id *new_id(enum rdma_port_space ps)
{
	struct rdma_cm_id *id = NULL;

	return rdma_create_id(channel, &id, NULL, ps) ? NULL : id;
}

static bool reuse(const char *ip)
{
	const struct option yes = { RDMA_OPTION_ID_REUSEADDR, 1 }, no = { 0 };
	struct rdma_cm_id *a = new_id(RDMA_PS_TCP), *b = new_id(RDMA_PS_TCP),
			  *c = new_id(RDMA_PS_TCP), *d = new_id(RDMA_PS_UDP);
	bool well = HOLDS(bind_with(a, ip, 7501, yes) == 0) &&
		    HOLDS(bind_with(b, ip, 7501, yes) == 0) &&
		    HOLDS(fails(bind_with(c, ip, 7501, no), EADDRINUSE)) &&
		    HOLDS(bind_with(d, ip, 7501, no) == 0) &&
		    HOLDS(rdma_listen(a, 1) == 0) &&
		    HOLDS(fails(rdma_listen(b, 1), EADDRINUSE));

	rdma_destroy_id(a);
	well = well && HOLDS(rdma_listen(b, 1) == 0);
	rdma_destroy_id(b);
	rdma_destroy_id(c);
	rdma_destroy_id(d);
	return well;
}

static bool afonly(const char *ip)
{
	const struct option yes = { RDMA_OPTION_ID_AFONLY, 1 }, no = { 0 };
	struct rdma_cm_id *a = new_id(RDMA_PS_TCP), *b = new_id(RDMA_PS_TCP),
			  *c = new_id(RDMA_PS_TCP);
	bool well = HOLDS(bind_with(a, "::", 7502, yes) == 0) &&
		    HOLDS(bind_with(b, ip, 7502, no) == 0) &&
		    HOLDS(bind_with(c, "::", 7503, no) == 0);

	rdma_destroy_id(b);
	b = new_id(RDMA_PS_TCP);
	well = well && HOLDS(fails(bind_with(b, ip, 7503, no), EADDRINUSE));
	rdma_destroy_id(a);
	rdma_destroy_id(b);
	rdma_destroy_id(c);
	return well;
}

/* The kernel's, of a test that has made it narrow: all but the reserved. */
static bool ephemeral(const char *ip)
{
	unsigned first, last, count = 0;
	struct rdma_cm_id *ids[64], *one;
	FILE *f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
	bool well = HOLDS(f && fscanf(f, "%u %u", &first, &last) == 2);

	if (f)
		fclose(f);
	while (well && count < last - first && count < 64) {
		ids[count] = new_id(RDMA_PS_TCP);
		well = HOLDS(bind_with(ids[count], ip, 0, (struct option){}) ==
			     0) &&
		       HOLDS(ntohs(rdma_get_src_port(ids[count])) >= first) &&
		       HOLDS(ntohs(rdma_get_src_port(ids[count])) <= last) &&
		       HOLDS(ntohs(rdma_get_src_port(ids[count])) != first + 1);
		count++;
	}
	one = new_id(RDMA_PS_TCP);
	well = well && HOLDS(fails(bind_with(one, ip, 0, (struct option){}),
				   EADDRINUSE));
	rdma_destroy_id(one);
	while (count > 0)
		rdma_destroy_id(ids[--count]);
	return well;
}

/* Options of the way. */

static enum rdma_cm_event_type next_event(struct rdma_event_channel *from,
					  struct rdma_cm_event **e)
{
	struct pollfd p = { .fd = from->fd, .events = POLLIN };

	*e = NULL;
	if (poll(&p, 1, 2000) != 1 || rdma_get_cm_event(from, e))
		return (enum rdma_cm_event_type) - 1;
	return (*e)->event;
}

static bool hears(enum rdma_cm_event_type wanted)
{
	struct rdma_cm_event *e;
	bool well = next_event(channel, &e) == wanted;

	if (e)
		rdma_ack_cm_event(e);
	return well;
}

static struct rdma_cm_id *resolved_in(enum rdma_port_space ps, const char *ip,
				      int port)
{
	struct rdma_cm_id *id = new_id(ps);
	struct sockaddr_storage a = address_of(ip, port);

	if (!rdma_resolve_addr(id, NULL, (struct sockaddr *)&a, 1000) &&
	    hears(RDMA_CM_EVENT_ADDR_RESOLVED))
		return id;
	rdma_destroy_id(id);
	return NULL;
}

static struct rdma_cm_id *resolved(const char *ip, int port)
{
	return resolved_in(RDMA_PS_TCP, ip, port);
}

/* With a queue pair that is no program's. Told at once, or not at all. */
static bool call_as_stranger(enum rdma_port_space ps, const char *ip)
{
	struct rdma_conn_param p = { .qp_num = 0xfffffe };
	struct rdma_cm_id *id = resolved_in(ps, ip, 7520);
	struct timespec begun, ended;
	bool well = HOLDS(id) && HOLDS(!rdma_resolve_route(id, 1000)) &&
		    HOLDS(hears(RDMA_CM_EVENT_ROUTE_RESOLVED));
	struct rdma_cm_event *e;

	clock_gettime(CLOCK_MONOTONIC, &begun);
	well = well && HOLDS(!rdma_connect(id, &p));
	clock_gettime(CLOCK_MONOTONIC, &ended);
	well = well && HOLDS((ended.tv_sec - begun.tv_sec) * 1000 +
				     (ended.tv_nsec - begun.tv_nsec) / 1000000 <
			     1000);
	if (well && ps == RDMA_PS_TCP) {
		well = HOLDS(next_event(channel, &e) ==
			     RDMA_CM_EVENT_CONNECT_ERROR) &&
		       HOLDS(e->status == -EPERM);
		if (e)
			rdma_ack_cm_event(e);
	}
	if (id)
		rdma_destroy_id(id);
	return well;
}

/* Of a program that has connected nothing yet: the broker may only just have
 * begun to know it, for 2 s, and in the first of them too for datagrams, which
 * anybody may look up. */
static bool strangers(const char *ip)
{
	if (!call_as_stranger(RDMA_PS_UDP, ip))
		return false;
	nanosleep(&(struct timespec){ 2, 100000000 }, NULL);
	return call_as_stranger(RDMA_PS_TCP, ip);
}

static bool refuses_path(struct rdma_cm_id *id, void *value, size_t len)
{
	return fails(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH,
				     value, len),
		     EINVAL);
}

static bool path(const char *ip)
{
	struct rdma_cm_id *id = resolved(ip, 7504);
	/* The first is half a path. */
	struct ibv_path_data both[2] = { { .flags = IBV_PATH_FLAG_PRIMARY } };
	struct ibv_path_data *const d = &both[1];
	struct rdma_conn_param p = { 0 };
	bool well;

	if (!HOLDS(id))
		return false;
	memcpy(&d->path.sgid, &id->route.addr.addr.ibaddr.sgid, 16);
	memcpy(&d->path.dgid, &id->route.addr.addr.ibaddr.dgid, 16);
	d->flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY |
		   IBV_PATH_FLAG_BIDIRECTIONAL;
	d->path.tclass = 0x40;
	d->path.flowlabel_hoplimit = htonl(0x12345 << 8 | 1);
	well = HOLDS(fails(rdma_connect(id, &p), EINVAL)) &&
	       HOLDS(refuses_path(id, d, 8)) &&
	       HOLDS(refuses_path(id, both, sizeof(both[0]))) &&
	       HOLDS(refuses_path(id, NULL, sizeof(both))) &&
	       HOLDS(!rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH,
				      both, sizeof(both))) &&
	       HOLDS(hears(RDMA_CM_EVENT_ROUTE_RESOLVED)) &&
	       HOLDS(id->route.num_paths == 1) &&
	       HOLDS(id->route.path_rec->traffic_class == 0x40) &&
	       HOLDS(fails(rdma_resolve_route(id, 1000), EINVAL));
	rdma_destroy_id(id);
	return well;
}

/* As Linux: one that is bound, though to any address, has a family. */
static bool families(const char *ip)
{
	struct rdma_cm_id *id = new_id(RDMA_PS_TCP);
	struct sockaddr_storage any = address_of("::", 0);
	struct sockaddr_storage to = address_of(ip, 7504);
	bool well = HOLDS(!rdma_bind_addr(id, (struct sockaddr *)&any)) &&
		    HOLDS(fails(rdma_resolve_addr(id, NULL,
						  (struct sockaddr *)&to, 1000),
				EINVAL));

	rdma_destroy_id(id);
	return well;
}

/* TOS, and how long an ACK may take: of connections that are seen outside
 * (cm.sh), where nobody listens. */
static bool way(const char *ip)
{
	uint8_t tos = 0x68, timeout = 13;
	struct rdma_cm_id *id = new_id(RDMA_PS_TCP), *ud = new_id(RDMA_PS_UDP);
	struct sockaddr_storage a = address_of(ip, 7505);
	struct rdma_conn_param p = { .qp_num = 0 },
			       much = { .responder_resources = 254 },
			       deep = { .initiator_depth = 254 };
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC,
					 .cap = { 1, 1, 1, 1, 0 } };
	bool well = HOLDS(!rdma_set_option(id, RDMA_OPTION_ID,
					   RDMA_OPTION_ID_TOS, &tos, 1)) &&
		    HOLDS(fails(rdma_set_option(id, RDMA_OPTION_ID,
						RDMA_OPTION_ID_TOS, &tos, 4),
				EINVAL)) &&
		    HOLDS(!rdma_set_option(id, RDMA_OPTION_ID,
					   RDMA_OPTION_ID_ACK_TIMEOUT, &timeout,
					   1)) &&
		    HOLDS(fails(rdma_set_option(ud, RDMA_OPTION_ID,
						RDMA_OPTION_ID_ACK_TIMEOUT,
						&timeout, 1),
				EINVAL)) &&
		    HOLDS(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&a,
					     1000)) &&
		    HOLDS(hears(RDMA_CM_EVENT_ADDR_RESOLVED)) &&
		    HOLDS(!rdma_resolve_route(id, 1000)) &&
		    HOLDS(hears(RDMA_CM_EVENT_ROUTE_RESOLVED)) &&
		    HOLDS(fails(rdma_connect(id, NULL), EINVAL)) &&
		    HOLDS(!rdma_create_qp(id, NULL, &attr)) &&
		    HOLDS(fails(rdma_connect(id, &much), EINVAL)) &&
		    HOLDS(fails(rdma_connect(id, &deep), EINVAL)) &&
		    HOLDS(!rdma_connect(id, &p)) &&
		    HOLDS(hears(RDMA_CM_EVENT_REJECTED));

	if (id->qp)
		rdma_destroy_qp(id);
	rdma_destroy_id(id);
	rdma_destroy_id(ud);
	return well;
}

/* A program's own queue pair on one side, a shared receive queue on the other,
 * and what both say of their vendors' enhancements. */

static bool has_ece(struct rdma_cm_id *id, uint32_t vendor, uint32_t options)
{
	struct ibv_ece ece = { 0 };

	return !rdma_get_remote_ece(id, &ece) && ece.vendor_id == vendor &&
	       ece.options == options;
}

static bool move_own(struct rdma_cm_id *id, struct ibv_qp *qp)
{
	static const enum ibv_qp_state states[] = { IBV_QPS_INIT, IBV_QPS_RTR,
						    IBV_QPS_RTS };

	for (int i = 0; i < 3; i++) {
		struct ibv_qp_attr a = { .qp_state = states[i] };
		int mask;

		if (rdma_init_qp_attr(id, &a, &mask) ||
		    ibv_modify_qp(qp, &a, mask))
			return false;
	}
	return true;
}

static bool serve_own(struct rdma_cm_id *id)
{
	struct ibv_srq_init_attr srq = { .attr = { 4, 1, 0 } };
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC,
					 .cap = { 1, 0, 1, 0, 0 } };
	struct ibv_ece ece = { .vendor_id = 0x4321, .options = 0xfedcba98 };
	struct rdma_conn_param p = { .responder_resources = 1 };
	struct ibv_mr *mr = rdma_reg_msgs(id, heard, sizeof(heard));

	return HOLDS(mr) && HOLDS(has_ece(id, 0x1234, 0x89abcdef)) &&
	       HOLDS(!rdma_set_local_ece(id, &ece)) &&
	       HOLDS(!rdma_create_srq(id, NULL, &srq)) &&
	       HOLDS(!rdma_create_qp(id, NULL, &attr)) &&
	       HOLDS(id->qp->srq == id->srq) &&
	       HOLDS(!rdma_post_recv(id, NULL, heard, sizeof(heard), mr)) &&
	       HOLDS(!rdma_accept(id, &p));
}

static bool call_own(struct rdma_cm_id *id, struct ibv_qp *qp)
{
	struct ibv_ece ece = { .vendor_id = 0x1234, .options = 0x89abcdef };
	struct rdma_conn_param p = { .qp_num = qp->qp_num,
				     .initiator_depth = 1,
				     .retry_count = 7 };

	return HOLDS(!rdma_resolve_route(id, 1000)) &&
	       HOLDS(hears(RDMA_CM_EVENT_ROUTE_RESOLVED)) &&
	       HOLDS(!rdma_set_local_ece(id, &ece)) &&
	       HOLDS(!rdma_connect(id, &p));
}

static bool talk_own(struct rdma_cm_id *server, struct ibv_qp *qp)
{
	static char word[] = "from a queue pair of its own";
	struct ibv_sge sge = { (uintptr_t)word, sizeof(word), 0 };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge,
					.num_sge = 1,
					.opcode = IBV_WR_SEND,
					.send_flags = IBV_SEND_INLINE };
	struct ibv_wc wc;

	return HOLDS(!ibv_post_send(qp, &wr, &bad)) &&
	       HOLDS(rdma_get_recv_comp(server, &wc) == 1) &&
	       HOLDS(wc.status == IBV_WC_SUCCESS) &&
	       HOLDS(!memcmp(heard, word, sizeof(word)));
}

static bool own_qp(const char *ip)
{
	struct rdma_cm_id *listener = new_id(RDMA_PS_TCP), *server = NULL;
	struct rdma_cm_id *id;
	struct rdma_cm_event *e;
	struct ibv_qp *qp = NULL;
	bool well = HOLDS(!bind_with(listener, ip, 7508, (struct option){})) &&
		    HOLDS(!rdma_listen(listener, 1)) &&
		    HOLDS((id = resolved(ip, 7508)));

	if (well) {
		struct ibv_cq *cq = ibv_create_cq(id->verbs, 4, NULL, NULL, 0);
		struct ibv_qp_init_attr attr = { .send_cq = cq,
						 .recv_cq = cq,
						 .qp_type = IBV_QPT_RC,
						 .cap = { 1, 1, 1, 1, 64 } };

		qp = ibv_create_qp(id->pd, &attr);
	}
	well = well && HOLDS(qp) && call_own(id, qp) &&
	       HOLDS(next_event(channel, &e) ==
		     RDMA_CM_EVENT_CONNECT_REQUEST) &&
	       HOLDS((server = e->id)) && HOLDS(!rdma_ack_cm_event(e)) &&
	       serve_own(server) &&
	       HOLDS(hears(RDMA_CM_EVENT_CONNECT_RESPONSE)) &&
	       HOLDS(has_ece(id, 0x4321, 0xfedcba98)) && move_own(id, qp) &&
	       HOLDS(!rdma_establish(id)) &&
	       HOLDS(hears(RDMA_CM_EVENT_ESTABLISHED)) &&
	       talk_own(server, qp) && HOLDS(!rdma_disconnect(server)) &&
	       HOLDS(hears(RDMA_CM_EVENT_DISCONNECTED)) &&
	       HOLDS(hears(RDMA_CM_EVENT_DISCONNECTED));
	if (qp)
		ibv_destroy_qp(qp);
	if (server)
		rdma_destroy_ep(server);
	rdma_destroy_id(listener);
	return well;
}

/* Events that are still to come. */

static bool migrate(const char *ip)
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
		/* And back: synchronous. */
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

/* rdma_destroy_id(3): an event that is not acknowledged is waited for. */
static bool waits(const char *ip)
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
 * An answer that another thread takes before rdma_connect() has come back: who
 * lags stays away for a while after it has told the broker.
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

static bool answered_early(const char *ip)
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

/* A channel that is not to block. */
static bool does_not_block(void)
{
	struct rdma_event_channel *c = rdma_create_event_channel();
	struct rdma_cm_event *e;
	bool well;

	fcntl(c->fd, F_SETFL, fcntl(c->fd, F_GETFL) | O_NONBLOCK);
	well = HOLDS(fails(rdma_get_cm_event(c, &e), EAGAIN));
	rdma_destroy_event_channel(c);
	return well;
}

/* Newer than the library that this is linked with. */
typedef int resolve_ai(struct rdma_cm_id *id, const char *node,
		       const char *service, const struct rdma_addrinfo *hints);
typedef int query_ai(struct rdma_cm_id *id, struct rdma_addrinfo **info);

static bool addrinfo_by_event(const char *ip)
{
	resolve_ai *resolve = dlsym(RTLD_DEFAULT, "rdma_resolve_addrinfo");
	query_ai *query = dlsym(RTLD_DEFAULT, "rdma_query_addrinfo");
	const struct rdma_addrinfo of_a_subnet = { .ai_flags = 0x10 };
	struct rdma_cm_id *id = new_id(RDMA_PS_TCP);
	struct rdma_addrinfo *info = NULL;
	struct rdma_cm_event *e;
	bool well = HOLDS(resolve && query) &&
		    HOLDS(fails(query(id, &info), ENOENT)) &&
		    HOLDS(fails(resolve(id, NULL, PORT, &of_a_subnet),
				EOPNOTSUPP)) &&
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

static bool join_corners(const char *ip)
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

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 3)
		return 2;
	channel = rdma_create_event_channel();
	if (!channel)
		return 1;
	say("another's queue pair is no reason to wait", strangers(argv[1]));
	gids(argv[1], argv[2]);
	say("REUSEADDR", reuse(argv[1]));
	say("AFONLY", afonly(argv[1]));
	say("ephemeral ports, as in Linux", ephemeral(argv[1]));
	say("IB_PATH, and no connection without a route", path(argv[1]));
	say("bound to one family, resolved in another", families(argv[1]));
	say("TOS and ACK_TIMEOUT", way(argv[1]));
	say("ECE, a queue pair of one's own, a shared receive queue",
	    own_qp(argv[1]));
	say("ids and their events move between channels", migrate(argv[1]));
	say("an id with an event that is not acknowledged", waits(argv[1]));
	say("an answer comes before rdma_connect() returns",
	    answered_early(argv[1]));
	say("a channel that does not block", does_not_block());
	say("rdma_resolve_addrinfo()", addrinfo_by_event(argv[1]));
	say("what no group is", join_corners(argv[1]));
	rdma_destroy_event_channel(channel);
	return failures != 0;
}
