/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules of ids: binding them, the options of their path, and queue pairs that
 * the program makes itself. */
#include "cm_rules.h"

struct sockaddr_storage address_of(const char *name, int port)
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

/* Set option @o of the id, unless its value is 0, and bind the id to address
 * @name and @port. Returns 0, or -1 with errno. */
static int bind_with(struct rdma_cm_id *id, const char *name, int port,
		     struct option o)
{
	struct sockaddr_storage a = address_of(name, port);

	if (o.value && rdma_set_option(id, RDMA_OPTION_ID, o.name, &o.value,
				       sizeof(o.value)))
		return -1;
	return rdma_bind_addr(id, (struct sockaddr *)&a);
}

bool reuse(const char *ip)
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

bool afonly(const char *ip)
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

/* A port that the kernel chooses is in the kernel's range, which the test has
 * made narrow, and is not reserved. */
bool ephemeral(const char *ip)
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

enum rdma_cm_event_type next_event(struct rdma_event_channel *from,
				   struct rdma_cm_event **e)
{
	struct pollfd p = { .fd = from->fd, .events = POLLIN };

	*e = NULL;
	if (poll(&p, 1, 2000) != 1 || rdma_get_cm_event(from, e))
		return (enum rdma_cm_event_type) - 1;
	return (*e)->event;
}

bool hears(enum rdma_cm_event_type wanted)
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

struct rdma_cm_id *resolved(const char *ip, int port)
{
	return resolved_in(RDMA_PS_TCP, ip, port);
}

/* Connect with a queue pair number that belongs to no program. The refusal must
 * come at once. */
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

/* The program connects with a queue pair number that belongs to no program. The
 * first call is for datagrams, while the session is younger than 2 s and the
 * broker may not know the slot of this program yet; the second one is for a
 * connection. Neither may wait for long. */
bool strangers(const char *ip)
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

bool path(const char *ip)
{
	struct rdma_cm_id *id = resolved(ip, 7504);
	/* both[0] lacks the flags of a whole path, so both[1] must be used. */
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

/* As on Linux, an id that is bound to any address still has an address family.
 */
bool families(const char *ip)
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

/* The options TOS and ACK timeout. cm.sh captures the packets of these
 * connections; nobody listens at the destination. */
bool way(const char *ip)
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

/* A queue pair that the program makes itself on one side, a shared receive
 * queue on the other, and the ECE options (enhancements of a vendor) that both
 * sides report. */

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

bool own_qp(const char *ip)
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
