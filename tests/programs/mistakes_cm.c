/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of librdmacm that are refused: each must say why. scripts/refusals.py
 * looks here for a mistake with every function of the library. */
#include <arpa/inet.h>
#include <rdma/rdma_verbs.h>

#include "mistakes.h"

static struct sockaddr_in ip(const char *text, uint16_t port)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(port) };

	must(inet_pton(AF_INET, text, &to.sin_addr) == 1, "inet_pton");
	return to;
}

/* Returns an id without an event channel, so that its calls wait for their
 * events. */
static struct rdma_cm_id *some_id(enum rdma_port_space ps)
{
	struct rdma_cm_id *id;

	must(!rdma_create_id(NULL, &id, NULL, ps), "rdma_create_id");
	return id;
}

static struct rdma_cm_id *fresh(void)
{
	return some_id(RDMA_PS_TCP);
}

static struct rdma_cm_id *resolved(void)
{
	struct rdma_cm_id *id = fresh();
	struct sockaddr_in to = ip(address, 7);

	must(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 2000),
	     "rdma_resolve_addr");
	return id;
}

static struct sockaddr *local_name(void)
{
	static struct sockaddr name = { .sa_family = AF_UNIX };

	return &name;
}

static void no_space(void)
{
	struct rdma_cm_id *id;

	REFUSED(rdma_create_id(NULL, &id, NULL, (enum rdma_port_space)99));
}

static void bind_family(void)
{
	REFUSED(rdma_bind_addr(fresh(), local_name()));
}

static void bind_twice(void)
{
	struct rdma_cm_id *id = fresh();
	struct sockaddr_in here = ip(address, 0);

	must(!rdma_bind_addr(id, (struct sockaddr *)&here), "rdma_bind_addr");
	REFUSED(rdma_bind_addr(id, (struct sockaddr *)&here));
}

static void bind_foreign(void)
{
	struct sockaddr_in there = ip("192.0.2.77", 0);

	REFUSED(rdma_bind_addr(fresh(), (struct sockaddr *)&there));
}

static void bind_taken(void)
{
	struct sockaddr_in here = ip(address, 17777);

	must(!rdma_bind_addr(fresh(), (struct sockaddr *)&here),
	     "rdma_bind_addr");
	REFUSED(rdma_bind_addr(fresh(), (struct sockaddr *)&here));
}

static void listen_resolved(void)
{
	REFUSED(rdma_listen(resolved(), 1));
}

static void resolve_family(void)
{
	REFUSED(rdma_resolve_addr(fresh(), NULL, local_name(), 100));
}

static void resolve_twice(void)
{
	struct sockaddr_in to = ip(address, 7);

	REFUSED(rdma_resolve_addr(resolved(), NULL, (struct sockaddr *)&to,
				  100));
}

static void route_of_new(void)
{
	REFUSED(rdma_resolve_route(fresh(), 100));
}

static void connect_new(void)
{
	REFUSED(rdma_connect(fresh(), NULL));
}

static void connect_with_much(void)
{
	struct ibv_qp_init_attr init = { .cap = { 1, 1, 1, 1, 0 },
					 .qp_type = IBV_QPT_RC };
	char data[200] = "";
	struct rdma_conn_param p = { .private_data = data,
				     .private_data_len = sizeof(data) };
	struct rdma_cm_id *id = resolved();

	must(!rdma_resolve_route(id, 2000), "rdma_resolve_route");
	must(!rdma_create_qp(id, NULL, &init), "rdma_create_qp");
	REFUSED(rdma_connect(id, &p));
}

static void accept_new(void)
{
	REFUSED(rdma_accept(fresh(), NULL));
}

static void reject_new(void)
{
	REFUSED(rdma_reject(fresh(), NULL, 0));
}

static void reject_ece_new(void)
{
	REFUSED(rdma_reject_ece(fresh(), NULL, 0));
}

static void disconnect_new(void)
{
	REFUSED(rdma_disconnect(fresh()));
}

static void establish_new(void)
{
	REFUSED(rdma_establish(fresh()));
}

static void notify_other(void)
{
	REFUSED(rdma_notify(fresh(), IBV_EVENT_PORT_ERR));
}

static void qp_of_new(void)
{
	struct ibv_qp_init_attr init = { .cap = { 1, 1, 1, 1, 0 },
					 .qp_type = IBV_QPT_RC };

	REFUSED(rdma_create_qp(fresh(), NULL, &init));
}

static void qp_of_new_ex(void)
{
	struct ibv_qp_init_attr_ex init = { .qp_type = IBV_QPT_RC };

	REFUSED(rdma_create_qp_ex(fresh(), &init));
}

static void qp_of_other_context(void)
{
	struct ibv_qp_init_attr init = { .cap = { 1, 1, 1, 1, 0 },
					 .qp_type = IBV_QPT_RC };

	REFUSED(rdma_create_qp(resolved(), device.pd, &init));
}

/* Verbs report this refusal, and librdmacm adds no second sentence. */
static void qp_too_deep(void)
{
	struct ibv_qp_init_attr init = { .send_cq = NULL,
					 .cap = { 1, 1, 1000, 1, 0 },
					 .qp_type = IBV_QPT_RC };

	REFUSED(rdma_create_qp(resolved(), NULL, &init));
}

static void srq_of_new(void)
{
	struct ibv_srq_init_attr init = { .attr = { 8, 1, 0 } };

	REFUSED(rdma_create_srq(fresh(), NULL, &init));
}

static void srq_of_new_ex(void)
{
	REFUSED(rdma_create_srq_ex(fresh(), NULL));
}

static void attributes_of_new(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	int mask;

	REFUSED(rdma_init_qp_attr(fresh(), &attr, &mask));
}

static void join_of_new(void)
{
	struct sockaddr_in group = ip("239.1.2.3", 0);

	REFUSED(rdma_join_multicast(some_id(RDMA_PS_UDP),
				    (struct sockaddr *)&group, NULL));
}

static struct rdma_cm_id *bound_for_datagrams(void)
{
	struct rdma_cm_id *id = some_id(RDMA_PS_UDP);
	struct sockaddr_in here = ip(address, 0);

	must(!rdma_bind_addr(id, (struct sockaddr *)&here), "rdma_bind_addr");
	return id;
}

static void join_unicast(void)
{
	struct sockaddr_in none = ip("192.0.2.1", 0);

	REFUSED(rdma_join_multicast(bound_for_datagrams(),
				    (struct sockaddr *)&none, NULL));
}

static void join_without_flags(void)
{
	struct rdma_cm_join_mc_attr_ex attr = { .comp_mask = 0 };

	REFUSED(rdma_join_multicast_ex(bound_for_datagrams(), &attr, NULL));
}

static void leave_unjoined(void)
{
	struct sockaddr_in group = ip("239.1.2.3", 0);

	REFUSED(rdma_leave_multicast(bound_for_datagrams(),
				     (struct sockaddr *)&group));
}

static void option_length(void)
{
	char tos[4] = "";

	REFUSED(rdma_set_option(fresh(), RDMA_OPTION_ID, RDMA_OPTION_ID_TOS,
				tos, sizeof(tos)));
}

static void migrate_nowhere(void)
{
	REFUSED(rdma_migrate_id(fresh(), NULL));
}

static void event_of_none(void)
{
	struct rdma_cm_event *e;

	REFUSED(rdma_get_cm_event(NULL, &e));
}

static void ack_of_none(void)
{
	REFUSED(rdma_ack_cm_event(NULL));
}

static void endpoint_of_none(void)
{
	struct rdma_cm_id *id;

	REFUSED(rdma_create_ep(&id, NULL, NULL, NULL));
}

static void request_by_channel(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id = NULL, *request;

	must(ch && !rdma_create_id(ch, &id, NULL, RDMA_PS_TCP),
	     "rdma_create_id");
	REFUSED(rdma_get_request(id, &request));
}

static void address_of_nothing(void)
{
	struct rdma_addrinfo *info;

	REFUSED(rdma_getaddrinfo(NULL, NULL, NULL, &info));
}

static void address_of_no_name(void)
{
	struct rdma_addrinfo *info;
	struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST };

	REFUSED(rdma_getaddrinfo("no.such.host.invalid", "7", &hints, &info));
}

static void ece_of_none(void)
{
	struct ibv_ece ece;

	REFUSED(rdma_set_local_ece(NULL, &ece));
}

static void remote_ece_of_none(void)
{
	struct ibv_ece ece;

	REFUSED(rdma_get_remote_ece(NULL, &ece));
}

#define R "^verbena: rdmacm: "
#define STATE(call, state)                                                     \
	R call " refused: the id is " state ", or an argument .*405 CM_CALL"

const struct mistake cm_mistakes[] = {
	{ "an id of no port space", no_space, ON_CALLS,
	  { R "no id: port space 0x63 has no queue pairs .*405" } },
	{ "an id bound to a local name", bind_family, ON_CALLS,
	  { R "rdma_bind_addr refused: the address must be .*405" } },
	{ "an id bound twice", bind_twice, ON_CALLS,
	  { STATE("rdma_bind_addr", "bound") } },
	{ "an id bound to a foreign address", bind_foreign, ON_CALLS,
	  { R "192.0.2.77 is not resolved to a device: this host does not .*"
	      "403 CM_ADDRESS" } },
	{ "an id bound to a port in use", bind_taken, ON_CALLS,
	  { R "rdma_bind_addr refused: another id has the port.*404 CM_PORT" } },
	{ "listening when resolved", listen_resolved, ON_CALLS,
	  { STATE("rdma_listen", "resolved to an address") } },
	{ "a local name resolved", resolve_family, ON_CALLS,
	  { R "rdma_resolve_addr refused: the address must be .*405" } },
	{ "an address resolved twice", resolve_twice, ON_CALLS,
	  { STATE("rdma_resolve_addr", "resolved to an address") } },
	{ "the route of a new id", route_of_new, ON_CALLS,
	  { STATE("rdma_resolve_route", "new") } },
	{ "a new id connected", connect_new, ON_CALLS,
	  { STATE("rdma_connect", "new") } },
	{ "a connection with much private data", connect_with_much, ON_CALLS,
	  { R "rdma_connect refused: private_data is longer .*405" } },
	{ "a new id accepted", accept_new, ON_CALLS,
	  { STATE("rdma_accept", "new") } },
	{ "a new id rejected", reject_new, ON_CALLS,
	  { STATE("rdma_reject", "new") } },
	{ "a new id rejected for its options", reject_ece_new, ON_CALLS,
	  { STATE("rdma_reject", "new") } },
	{ "a new id disconnected", disconnect_new, ON_CALLS,
	  { STATE("rdma_disconnect", "new") } },
	{ "a new id established", establish_new, ON_CALLS,
	  { STATE("rdma_establish", "new") } },
	{ "another event notified", notify_other, ON_CALLS,
	  { R "rdma_notify refused: the event is neither .*405" } },
	{ "the queue pair of a new id", qp_of_new, ON_CALLS,
	  { R "rdma_create_qp refused: the id has no device yet .*405" } },
	{ "the queue pair of a new id (ex)", qp_of_new_ex, ON_CALLS,
	  { R "rdma_create_qp refused: the id has no device yet .*405" } },
	{ "a domain of another context", qp_of_other_context, ON_CALLS,
	  { R "rdma_create_qp refused: its protection domain must .*405" } },
	{ "an id's queue pair with too many SGEs", qp_too_deep, ON_CALLS,
	  { "^verbena: [a-z0-9_]+: .*max_send_sge is 1000, .*319 CREATE" } },
	{ "the shared queue of a new id", srq_of_new, ON_CALLS,
	  { R "rdma_create_srq refused: the id has no device yet .*405" } },
	{ "a shared queue of nothing", srq_of_new_ex, ON_CALLS,
	  { R "rdma_create_srq refused: there are no attributes.*405" } },
	{ "attributes of a new id", attributes_of_new, ON_CALLS,
	  { R "rdma_init_qp_attr refused: the id has no device yet .*405" } },
	{ "a group of a new id", join_of_new, ON_CALLS,
	  { R "rdma_join_multicast refused: it needs an address, .*405" } },
	{ "a group of a unicast address", join_unicast, ON_CALLS,
	  { R "rdma_join_multicast refused: this is no multicast .*405" } },
	{ "a group without flags", join_without_flags, ON_CALLS,
	  { R "rdma_join_multicast_ex refused: it needs address .*405" } },
	{ "a group that was not joined", leave_unjoined, ON_CALLS,
	  { R "rdma_leave_multicast refused: the id has not joined .*405" } },
	{ "an option of another length", option_length, ON_CALLS,
	  { R "rdma_set_option refused: level 0, option 0 with 4 .*405" } },
	{ "an id moved from nowhere to nowhere", migrate_nowhere, ON_CALLS,
	  { R "rdma_migrate_id refused: the id has no event channel .*405" } },
	{ "an event of no channel", event_of_none, ON_CALLS,
	  { R "rdma_get_cm_event refused: there is no channel, .*405" } },
	{ "no event acknowledged", ack_of_none, ON_CALLS,
	  { R "rdma_ack_cm_event refused: there is no event;.*405" } },
	{ "an endpoint of no address", endpoint_of_none, ON_CALLS,
	  { R "rdma_create_ep refused: there is no address;.*405" } },
	{ "a request of an id with channel", request_by_channel, ON_CALLS,
	  { R "rdma_get_request refused: the listener has an event .*405" } },
	{ "the address of nothing", address_of_nothing, ON_CALLS,
	  { R "rdma_getaddrinfo refused: it needs a place .*405" } },
	{ "the address of no name", address_of_no_name, ON_CALLS,
	  { R "rdma_getaddrinfo of no.such.host.invalid, service 7: .*403" } },
	{ "options of no id", ece_of_none, ON_CALLS,
	  { R "rdma_set_local_ece refused: it needs an id .*405" } },
	{ "the peer's options of no id", remote_ece_of_none, ON_CALLS,
	  { R "rdma_get_remote_ece refused: it needs an id .*405" } },
};
const unsigned cm_mistake_count = sizeof(cm_mistakes) / sizeof(cm_mistakes[0]);
