/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules for ids whose addresses are GIDs (AF_IB). */
#include "cm_rules.h"

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

struct rdma_cm_id *end_point(const struct place *p)
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

/* The longest private data of an id with AF_IB addresses: rdma_cm adds no
 * header of its own. */
static uint8_t pattern[216];

struct meeting {
	struct rdma_cm_id *listener;
	unsigned bytes;
	bool ud, well;
};

char heard[64];

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

/* Connect to the GID @to, where a listener is bound to the GID @at; @at NULL:
 * the listener is bound to any address. */
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

void gids(const char *ip, const char *ip6)
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
