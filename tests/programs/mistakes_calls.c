/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of libibverbs that are refused: each must say why. scripts/refusals.py
 * looks here for a mistake with every function of the library. */
#include <pthread.h>

#include "mistakes.h"

static void open_nothing(void)
{
	NOTHING(ibv_open_device(NULL));
}

static void import_stdin(void)
{
	NOTHING(ibv_import_device(STDIN_FILENO));
}

static void query_port_9(void)
{
	struct ibv_port_attr attr;

	REFUSED(ibv_query_port(device.context, 9, &attr));
}

/* The library reports each different refusal of a device once, and does not
 * repeat equal ones. */
static void three_creations(void)
{
	struct ibv_wq_init_attr none = { .wq_type = (enum ibv_wq_type)7 };

	for (int i = 0; i < 3; i++)
		NOTHING(ibv_create_cq(device.context, 0, NULL, NULL, 0));
	NOTHING(ibv_create_wq(device.context, &none));
}

static void query_gid_far(void)
{
	union ibv_gid gid;

	REFUSED(ibv_query_gid(device.context, 1, 9999, &gid));
}

static void query_gid_ex_far(void)
{
	struct ibv_gid_entry e;

	REFUSED(ibv_query_gid_ex(device.context, 1, 9999, &e, 0));
}

/* Programs try GID indices to find the valid ones, so this is not reported. */
static void query_gid_empty(void)
{
	struct ibv_gid_entry e;

	REFUSED(ibv_query_gid_ex(device.context, 1, 200, &e, 0));
}

static void query_gid_table_short(void)
{
	struct ibv_gid_entry e;

	MUST_FAIL(ibv_query_gid_table(device.context, &e, 0, 0) < 0);
}

static void query_pkey_far(void)
{
	__be16 pkey;

	REFUSED(ibv_query_pkey(device.context, 1, 99, &pkey));
}

static void pkey_unknown(void)
{
	MUST_FAIL(ibv_get_pkey_index(device.context, 1, htobe16(0x1234)) <
		  0);
}

/* Domains. */

static struct ibv_td *some_td(void)
{
	struct ibv_td_init_attr attr = { 0 };
	struct ibv_td *td = ibv_alloc_td(device.context, &attr);

	must(td, "ibv_alloc_td");
	return td;
}

static void td_in_use(void)
{
	struct ibv_td *td = some_td();
	struct ibv_parent_domain_init_attr attr = { .pd = device.pd, .td = td };

	must(ibv_alloc_parent_domain(device.context, &attr), "parent domain");
	REFUSED(ibv_dealloc_td(td));
}

static void parent_of_none(void)
{
	struct ibv_parent_domain_init_attr attr = { .pd = NULL };

	NOTHING(ibv_alloc_parent_domain(device.context, &attr));
}

static void xrcd_without_flags(void)
{
	struct ibv_xrcd_init_attr attr = { .comp_mask = IBV_XRCD_INIT_ATTR_FD,
					   .fd = -1 };

	NOTHING(ibv_open_xrcd(device.context, &attr));
}

/* Queues. */

static void cq_vector(void)
{
	NOTHING(ibv_create_cq(device.context, 8, NULL, NULL, 9999));
}

static void cq_ex_vector(void)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 8, .comp_vector = 9999 };

	NOTHING(ibv_create_cq_ex(device.context, &attr));
}

static void cq_moderation(void)
{
	struct ibv_modify_cq_attr attr = { .attr_mask = 0 };

	REFUSED(ibv_modify_cq(a.cq, &attr));
}

static void channel_in_use(void)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(device.context);

	must(ch, "ibv_create_comp_channel");
	must(ibv_create_cq(device.context, 8, NULL, ch, 0), "ibv_create_cq");
	REFUSED(ibv_destroy_comp_channel(ch));
}

static void *acknowledge_late(void *cq)
{
	sleep(5);
	ibv_ack_cq_events(cq, 1);
	return NULL;
}

/* An event is taken, and acknowledged only while the queue's destruction waits
 * for that. */
static void event_unacknowledged(void)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(device.context);
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	struct ibv_recv_wr wr = { 0 }, *bad;
	struct ibv_qp_init_attr init = { .cap = { 1, 1, 1, 1, 0 },
					 .qp_type = IBV_QPT_RC };
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	pthread_t thread;
	void *context;

	must(ch, "ibv_create_comp_channel");
	cq = init.send_cq = init.recv_cq =
		ibv_create_cq(device.context, 8, NULL, ch, 0);
	must(cq && !ibv_req_notify_cq(cq, 0), "ibv_create_cq");
	qp = ibv_create_qp(device.pd, &init);
	must(qp && !rc_to_init(qp, RC_ALL_ACCESS), "ibv_create_qp");
	must(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
	must(!ibv_modify_qp(qp, &error, IBV_QP_STATE), "to ERR");
	must(!ibv_get_cq_event(ch, &cq, &context), "ibv_get_cq_event");
	must(!ibv_destroy_qp(qp), "ibv_destroy_qp");
	must(!pthread_create(&thread, NULL, acknowledge_late, cq), "a thread");
	if (ibv_destroy_cq(cq))
		wrong("ibv_destroy_cq fails");
}

static struct ibv_srq *some_srq(void)
{
	struct ibv_srq_init_attr init = { .attr = { 8, 1, 0 } };
	struct ibv_srq *srq = ibv_create_srq(device.pd, &init);

	must(srq, "ibv_create_srq");
	return srq;
}

static void srq_limit(void)
{
	struct ibv_srq_attr attr = { .srq_limit = 9999 };

	REFUSED(ibv_modify_srq(some_srq(), &attr, IBV_SRQ_LIMIT));
}

static void srq_mask(void)
{
	struct ibv_srq_attr attr = { 0 };

	REFUSED(ibv_modify_srq(some_srq(), &attr, 1 << 7));
}

static void srq_in_use(void)
{
	struct ibv_srq *srq = some_srq();
	struct ibv_qp_init_attr init = { .send_cq = a.cq,
					 .recv_cq = a.cq,
					 .srq = srq,
					 .cap = { 1, 0, 1, 0, 0 },
					 .qp_type = IBV_QPT_RC };

	must(ibv_create_qp(device.pd, &init), "ibv_create_qp");
	REFUSED(ibv_destroy_srq(srq));
}

static void srq_of_type(enum ibv_srq_type type, struct ibv_pd *pd)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = { 8, 1, 0 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = type,
		.pd = pd,
	};

	NOTHING(ibv_create_srq_ex(device.context, &init));
}

static void srq_without_pd(void)
{
	srq_of_type(IBV_SRQT_BASIC, NULL);
}

static void srq_without_xrcd(void)
{
	srq_of_type(IBV_SRQT_XRC, device.pd);
}

static void srq_without_tags(void)
{
	srq_of_type(IBV_SRQT_TM, device.pd);
}

static void srq_number(void)
{
	uint32_t number;

	REFUSED(ibv_get_srq_num(some_srq(), &number));
}

static void srq_operations(void)
{
	struct ibv_ops_wr wr = { .opcode = IBV_WR_TAG_SYNC }, *bad;

	REFUSED(ibv_post_srq_ops(some_srq(), &wr, &bad));
}

static void srq_receive_wide(void)
{
	struct ibv_sge sge[9] = { { 0 } };
	struct ibv_recv_wr wr = { .sg_list = sge, .num_sge = 9 }, *bad;

	REFUSED(ibv_post_srq_recv(some_srq(), &wr, &bad));
}

/* Queue pairs. */

static void qp_of(enum ibv_qp_type type, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = { .send_cq = cq,
					 .recv_cq = a.cq,
					 .cap = { 1, 1, 1, 1, 0 },
					 .qp_type = type };

	NOTHING(ibv_create_qp(device.pd, &init));
}

static void qp_without_type(void)
{
	qp_of((enum ibv_qp_type)0, a.cq);
}

static void qp_without_cq(void)
{
	qp_of(IBV_QPT_RC, NULL);
}

static void qp_without_pd(void)
{
	struct ibv_qp_init_attr_ex init = { .send_cq = a.cq,
					    .recv_cq = a.cq,
					    .cap = { 1, 1, 1, 1, 0 },
					    .qp_type = IBV_QPT_RC };

	NOTHING(ibv_create_qp_ex(device.context, &init));
}

static void qp_opened(void)
{
	struct ibv_qp_open_attr attr = { .comp_mask = IBV_QP_OPEN_ATTR_NUM };

	NOTHING(ibv_open_qp(device.context, &attr));
}

static void qp_twice_destroyed(void)
{
	struct ibv_qp *qp = a.qp;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	must(!ibv_destroy_qp(qp), "ibv_destroy_qp");
	REFUSED(ibv_query_qp(qp, &attr, 0, &init));
}

static void qp_ece(void)
{
	struct ibv_ece ece = { .vendor_id = 0x15b3 };

	REFUSED(ibv_set_ece(a.qp, &ece));
}

/* Datagrams. */

static union ibv_gid group_gid(uint8_t first)
{
	union ibv_gid gid = { .raw = { first, 0x0e, [15] = 9 } };

	return gid;
}

static struct ibv_qp *some_ud(void)
{
	struct ibv_qp_init_attr init = { .send_cq = a.cq,
					 .recv_cq = a.cq,
					 .cap = { 1, 1, 1, 1, 0 },
					 .qp_type = IBV_QPT_UD };
	struct ibv_qp *qp = ibv_create_qp(device.pd, &init);

	must(qp, "ibv_create_qp");
	return qp;
}

static void group_of_rc(void)
{
	union ibv_gid gid = group_gid(0xff);

	REFUSED(ibv_attach_mcast(a.qp, &gid, 0));
}

static void group_unicast(void)
{
	union ibv_gid gid = group_gid(0xfe);

	REFUSED(ibv_attach_mcast(some_ud(), &gid, 0));
}

static void group_left(void)
{
	union ibv_gid gid = group_gid(0xff);

	REFUSED(ibv_detach_mcast(some_ud(), &gid, 0));
}

static void handle_of_port(void)
{
	struct ibv_ah_attr to = rc_path(&device, &device.gid, device.lid);

	to.port_num = 9;
	NOTHING(ibv_create_ah(device.pd, &to));
}

static void handle_from_wc(void)
{
	struct ibv_wc wc = { 0 };
	struct ibv_grh grh = { 0 };

	NOTHING(ibv_create_ah_from_wc(device.pd, &wc, &grh, 9));
}

static void attributes_from_wc(void)
{
	struct ibv_wc wc = { 0 };
	struct ibv_grh grh = { 0 };
	struct ibv_ah_attr attr;

	REFUSED(ibv_init_ah_from_wc(device.context, 9, &wc, &grh, &attr));
}

static void handle_twice_destroyed(void)
{
	struct ibv_ah_attr to = rc_path(&device, &device.gid, device.lid);
	struct ibv_ah *ah = ibv_create_ah(device.pd, &to);

	must(ah && !ibv_destroy_ah(ah), "ibv_destroy_ah");
	REFUSED(ibv_destroy_ah(ah));
}

static void mac_of_port(void)
{
	struct ibv_ah_attr to = rc_path(&device, &device.gid, device.lid);
	uint8_t mac[6];
	uint16_t vid;

	to.port_num = 9;
	REFUSED(ibv_resolve_eth_l2_from_gid(device.context, &to, mac, &vid));
}

/* Flows, counters, work queues. */

static void flow_of_port(void)
{
	struct ibv_flow_attr attr = { .port = 9, .size = sizeof(attr) };

	NOTHING(ibv_create_flow(a.qp, &attr));
}

static void counters_mask(void)
{
	struct ibv_counters_init_attr attr = { .comp_mask = 1 };

	NOTHING(ibv_create_counters(device.context, &attr));
}

static void counters_read_flags(void)
{
	struct ibv_counters_init_attr attr = { 0 };
	struct ibv_counters *c = ibv_create_counters(device.context, &attr);
	uint64_t value;

	must(c, "ibv_create_counters");
	REFUSED(ibv_read_counters(c, &value, 1, 1u << 9));
}

static struct ibv_wq *some_wq(enum ibv_wq_type type)
{
	struct ibv_wq_init_attr attr = { .wq_type = type,
					 .max_wr = 8,
					 .max_sge = 1,
					 .pd = device.pd,
					 .cq = a.cq };

	return ibv_create_wq(device.context, &attr);
}

static void wq_type(void)
{
	NOTHING(some_wq((enum ibv_wq_type)7));
}

static void wq_state(void)
{
	struct ibv_wq_attr attr = { .attr_mask = IBV_WQ_ATTR_STATE,
				    .wq_state = (enum ibv_wq_state)9 };

	REFUSED(ibv_modify_wq(some_wq(IBV_WQT_RQ), &attr));
}

static void table_of_none(void)
{
	struct ibv_wq *none = NULL;
	struct ibv_rwq_ind_table_init_attr attr = { .ind_tbl = &none };

	NOTHING(ibv_create_rwq_ind_table(device.context, &attr));
}

static void wq_in_use(void)
{
	struct ibv_wq *wq = some_wq(IBV_WQT_RQ);
	struct ibv_rwq_ind_table_init_attr attr = { .ind_tbl = &wq };

	must(wq && ibv_create_rwq_ind_table(device.context, &attr),
	     "ibv_create_rwq_ind_table");
	REFUSED(ibv_destroy_wq(wq));
}

#define V "^verbena: "
#define DEVICE V "[a-z0-9_]+"

const struct mistake call_mistakes[] = {
	{ "no device opened", open_nothing, ON_CALLS,
	  { V "ibv_open_device of no device: .*322 HANDLE" } },
	{ "a file imported as context", import_stdin, ON_CALLS,
	  { V "import: fd 0 is not the cmd_fd.*322" } },
	{ "port 9 queried", query_port_9, ON_CALLS,
	  { DEVICE ": there is no port 9 of 1 to [0-9]+;.*328 INDEX" } },
	{ "two mistakes at one device", three_creations, ON_CALLS,
	  { DEVICE ": cannot create a completion queue of 0 .*319",
	    DEVICE ": cannot create a work queue .*319" } },
	{ "GID 9999 queried", query_gid_far, ON_CALLS,
	  { DEVICE ", port 1: there is no GID index 9999, .*328 INDEX" } },
	{ "GID 9999 queried (ex)", query_gid_ex_far, ON_CALLS,
	  { DEVICE ", port 1: there is no GID index 9999, .*328 INDEX" } },
	{ "an empty GID queried", query_gid_empty, ON_CALLS, { NULL } },
	{ "a GID table without room", query_gid_table_short, ON_CALLS,
	  { V "ibv_query_gid_table is refused: Invalid.*327 REFUSED" } },
	{ "P_Key 99 queried", query_pkey_far, ON_CALLS,
	  { DEVICE ", port 1: there is no P_Key index 99, .* 1 .*328" } },
	{ "a P_Key that is not there", pkey_unknown, ON_CALLS,
	  { DEVICE ", port 1: P_Key 0x1234 is not in its table;.*328" } },
	{ "a thread domain in use", td_in_use, ON_CALLS,
	  { V "thread domain not deallocated: .*323 BUSY" } },
	{ "a parent domain of none", parent_of_none, ON_CALLS,
	  { DEVICE ": cannot allocate a parent domain: .*pd.*319" } },
	{ "an XRC domain without flags", xrcd_without_flags, ON_CALLS,
	  { DEVICE ": cannot open an XRC domain: .*oflags.*319" } },
	{ "comp_vector of 9999", cq_vector, ON_CALLS,
	  { DEVICE ": .*completion queue .*comp_vector is 9999, and 0 to .*319" } },
	{ "comp_vector of 9999 (ex)", cq_ex_vector, ON_CALLS,
	  { DEVICE ": .*completion queue .*comp_vector is 9999, and 0 to .*319" } },
	{ "moderation of nothing", cq_moderation, ON_CALLS,
	  { V "cq [0-9]+: ibv_modify_cq with attr_mask 0x0, .*327" } },
	{ "a completion channel in use", channel_in_use, ON_CALLS,
	  { V "completion channel of fd [0-9]+: not destroyed: .*323" } },
	{ "an event that is not acknowledged", event_unacknowledged, ON_CALLS,
	  { V "destroying .* 4 s: 1 of its events .*ibv_ack_cq_events.*330" } },
	{ "a limit beyond the shared queue", srq_limit, ON_CALLS,
	  { V "srq [0-9]+: cannot change to [0-9]+ .*limit 9999: .*324" } },
	{ "an unknown mask of ibv_modify_srq", srq_mask, ON_CALLS,
	  { V "srq [0-9]+: ibv_modify_srq with mask 0x80, .*327" } },
	{ "a shared queue in use", srq_in_use, ON_CALLS,
	  { V "srq [0-9]+: not destroyed: .*323 BUSY" } },
	{ "a shared queue without domain", srq_without_pd, ON_CALLS,
	  { V "NULL was given in place of a protection domain;.*322" } },
	{ "an XRC queue without XRC domain", srq_without_xrcd, ON_CALLS,
	  { V "cannot create a shared .*type 1: XRC needs xrcd .*319" } },
	{ "a queue of tags without limits", srq_without_tags, ON_CALLS,
	  { V "cannot create a shared .*type 2: tag matching needs .*319" } },
	{ "the number of a plain shared queue", srq_number, ON_CALLS,
	  { V "srq [0-9]+: ibv_get_srq_num .*not of type XRC;.*327" } },
	{ "tags of a plain shared queue", srq_operations, ON_CALLS,
	  { V "srq [0-9]+: ibv_post_srq_ops .*217 TAGS" } },
	{ "a shared receive of 9 SGEs", srq_receive_wide, ON_CALLS,
	  { V "srq 0x[0-9a-f]+: receive refused: num_sge is 9, .*312" } },
	{ "a queue pair without type", qp_without_type, ON_CALLS,
	  { DEVICE ": cannot create a queue pair of type 0 .*no such qp_type "
		   ".*319" } },
	{ "a queue pair without send_cq", qp_without_cq, ON_CALLS,
	  { DEVICE ": cannot create a queue pair .*: it needs send_cq;.*319" } },
	{ "a queue pair without domain", qp_without_pd, ON_CALLS,
	  { DEVICE ": cannot create a queue pair .*: it needs pd, .*319" } },
	{ "a queue pair opened without domain", qp_opened, ON_CALLS,
	  { DEVICE ": cannot open a queue pair: it needs .*322" } },
	{ "a destroyed queue pair queried", qp_twice_destroyed, ON_CALLS,
	  { V "0x[0-9a-f]+ is no queue pair .*322 HANDLE" } },
	{ "options of a vendor", qp_ece, ON_CALLS,
	  { V "ibv_set_ece is refused: Invalid.*327" } },
	{ "a group of a reliable queue pair", group_of_rc, ON_CALLS,
	  { V "qp 0x[0-9a-f]+: group ff0e.*: .*type is not UD;.*329 GROUP" } },
	{ "a group that is none", group_unicast, ON_CALLS,
	  { V "qp 0x[0-9a-f]+: group fe0e.*: this is no multicast .*329" } },
	{ "a group that was not entered", group_left, ON_CALLS,
	  { V "qp 0x[0-9a-f]+: group ff0e.*: the queue pair is not in it;" } },
	{ "an address handle of port 9", handle_of_port, ON_CALLS,
	  { DEVICE ": no address handle for .*306 ADDRESS" } },
	{ "an address handle from port 9", handle_from_wc, ON_CALLS,
	  { DEVICE ": cannot make an address handle .*no such port.*306" } },
	{ "an address from port 9", attributes_from_wc, ON_CALLS,
	  { DEVICE ": cannot make an address handle .*no such port.*306" } },
	{ "an address handle destroyed twice", handle_twice_destroyed, ON_CALLS,
	  { V "0x[0-9a-f]+ is no address handle .*322" } },
	{ "the MAC address beyond port 9", mac_of_port, ON_CALLS,
	  { DEVICE ": no MAC address for .*port 9: it is no .*307 ROUTE" } },
	{ "a flow of port 9", flow_of_port, ON_CALLS,
	  { V "qp 0x[0-9a-f]+: cannot create a flow .*port 9.*319" } },
	{ "counters with a comp_mask", counters_mask, ON_CALLS,
	  { V "ibv_create_counters is refused: Invalid.*327" } },
	{ "counters read with wrong flags", counters_read_flags, ON_CALLS,
	  { V "ibv_read_counters is refused: Invalid.*327" } },
	{ "a work queue of no type", wq_type, ON_CALLS,
	  { DEVICE ": cannot create a work queue .*319" } },
	{ "a work queue to no state", wq_state, ON_CALLS,
	  { V "wq 0x[0-9a-f]+: ibv_modify_wq .*wq_state 9 .*327" } },
	{ "a table of no work queue", table_of_none, ON_CALLS,
	  { DEVICE ": cannot create a table of 2.0 work queues .*319" } },
	{ "a work queue in use", wq_in_use, ON_CALLS,
	  { V "wq 0x[0-9a-f]+: not destroyed: tables .*323 BUSY" } },
};
const unsigned call_mistake_count =
	sizeof(call_mistakes) / sizeof(call_mistakes[0]);
