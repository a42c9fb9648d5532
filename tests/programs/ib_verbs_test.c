/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What programs rely on when they use verbs on adapters of a fabric.
 * ib_verbs_test uses two adapters of one subnet, ib0 and ib1, which
 * VERBENA_DEVICES names and a subnet manager has brought up. It prints one line
 * for each case. With the argument "events" it prints the asynchronous events
 * of ib0 until it is killed. With "partitions", ib0 is a full member of
 * partition 2, and ib1 and ib2 are limited members. With "follow", it prints
 * when the caller shall give ib0 another LID.
 */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "rc.h"

#define BYTES	4096
#define GRH	40
#define QKEY	0x1234
#define MLID	0xc0de
#define SL	3
#define TIMEOUT 10 /* seconds after which a completion counts as missing */

static int failed;

static void result(int good, const char *name)
{
	printf("%s ib_verbs: %s\n", good ? "ok" : "not ok", name);
	fflush(stdout);
	failed |= !good;
}

/* An adapter with a datagram queue pair and a buffer: what it sends lies in the
 * first half, what it receives in the second. */
struct side {
	struct ibv_context *context;
	struct ibv_port_attr port;
	union ibv_gid gid;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	uint8_t bytes[2 * (BYTES + GRH)];
};

static uint8_t *received(struct side *s)
{
	return s->bytes + BYTES + GRH;
}

static struct ibv_qp *make_qp(struct side *s, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.qp_type = type,
		.cap = { .max_send_wr = 8,
			 .max_recv_wr = 8,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};

	return ibv_create_qp(s->pd, &init);
}

static void open_side(struct side *s, struct ibv_device *device)
{
	s->context = ibv_open_device(device);
	must(s->context != NULL, "open");
	must(!ibv_query_port(s->context, 1, &s->port), "query_port");
	must(!ibv_query_gid(s->context, 1, 0, &s->gid), "query_gid");
	s->pd = ibv_alloc_pd(s->context);
	s->cq = ibv_create_cq(s->context, 64, NULL, NULL, 0);
	must(s->pd && s->cq, "PD, CQ");
	s->mr = ibv_reg_mr(s->pd, s->bytes, sizeof(s->bytes),
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	s->qp = make_qp(s, IBV_QPT_UD);
	must(s->mr && s->qp, "MR, QP");
	rc_start_datagrams(s->qp, QKEY);
}

static int next_wc(struct side *s, struct ibv_wc *wc)
{
	time_t end = time(NULL) + TIMEOUT;
	int n;

	do
		n = ibv_poll_cq(s->cq, 1, wc);
	while (n == 0 && time(NULL) < end);
	return n == 1 && wc->status == IBV_WC_SUCCESS;
}

static int post_recv(struct side *s, struct ibv_qp *qp)
{
	struct ibv_sge sge = { (uintptr_t)received(s), BYTES + GRH,
			       s->mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	memset(received(s), 0xee, BYTES + GRH);
	return !ibv_post_recv(qp, &wr, &bad);
}

static int post_send(struct side *s, struct ibv_qp *qp, uint32_t len,
		     struct ibv_ah *ah, uint32_t dqpn)
{
	struct ibv_sge sge = { (uintptr_t)s->bytes, len, s->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	if (ah) {
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = dqpn;
		wr.wr.ud.remote_qkey = QKEY;
	}
	for (uint32_t i = 0; i < len; i++)
		s->bytes[i] = (uint8_t)(i * 7);
	return !ibv_post_send(qp, &wr, &bad);
}

static int has_payload(struct side *s, uint32_t at, uint32_t len)
{
	return memcmp(received(s) + at, s->bytes, len) == 0;
}

/* --- the port --- */

static void port(struct side *s)
{
	__be16 pkey = 0;

	result(s->port.link_layer == IBV_LINK_LAYER_INFINIBAND &&
		       s->port.state == IBV_PORT_ACTIVE && s->port.lid &&
		       s->port.sm_lid && s->port.phys_state == 5,
	       "port: link layer, state, LIDs");
	result(s->port.active_mtu == IBV_MTU_4096 && s->port.active_width &&
		       s->port.active_speed && s->port.max_vl_num &&
		       s->port.subnet_timeout,
	       "port: MTU, width, speed, VLs, time-out");
	result(s->port.pkey_tbl_len > 1 &&
		       !ibv_query_pkey(s->context, 1, 0, &pkey) &&
		       pkey == htobe16(0xffff) &&
		       ibv_get_pkey_index(s->context, 1, pkey) == 0,
	       "port: the default P_Key");
	result(ibv_query_pkey(s->context, 1, s->port.pkey_tbl_len, &pkey) &&
		       ibv_query_pkey(s->context, 2, 0, &pkey),
	       "port: no P_Key beyond the table, nor of another port");
	result(s->gid.raw[0] == 0xfe && s->gid.raw[1] == 0x80 &&
		       s->gid.global.interface_id,
	       "port: GID 0 has prefix and GUID");
	result(ibv_query_gid(s->context, 1, s->port.gid_tbl_len + 256,
			     &(union ibv_gid){ { 0 } }),
	       "port: no GID beyond the table");
}

/* --- addresses --- */

static int refuses(struct side *s, struct ibv_ah_attr a)
{
	struct ibv_ah *ah;

	a.port_num = a.port_num ? a.port_num : 1;
	ah = ibv_create_ah(s->pd, &a);
	if (ah)
		ibv_destroy_ah(ah);
	return !ah && errno == EINVAL;
}

static void addresses(struct side *s, struct side *peer)
{
	struct ibv_ah_attr good = { .dlid = peer->port.lid, .port_num = 1 };
	struct ibv_ah *ah = ibv_create_ah(s->pd, &good);

	result(ah != NULL, "address: a LID suffices");
	if (ah)
		ibv_destroy_ah(ah);
	result(refuses(s, (struct ibv_ah_attr){ .dlid = 0 }) &&
		       refuses(s, (struct ibv_ah_attr){ .dlid = 0xffff }),
	       "address: no LID 0, nor the permissive one");
	good.sl = 16;
	result(refuses(s, good), "address: no service level 16");
	good.sl = 0;
	good.port_num = 2;
	result(refuses(s, good), "address: no other port");
	result(refuses(s, (struct ibv_ah_attr){ .dlid = MLID }),
	       "address: a group needs a GRH");
	good.port_num = 1;
	good.is_global = 1;
	good.grh.sgid_index = 200;
	result(refuses(s, good), "address: no GID at that index");
}

/* --- moves --- */

static void moves(struct side *s)
{
	struct ibv_qp *qp = make_qp(s, IBV_QPT_RC);
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = 1,
				 .pkey_index = s->port.pkey_tbl_len };
	int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		   IBV_QP_ACCESS_FLAGS;
	int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
		  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
		  IBV_QP_MIN_RNR_TIMER;

	must(qp != NULL, "RC");
	result(ibv_modify_qp(qp, &a, init) == EINVAL,
	       "moves: no P_Key index beyond the table");
	a.pkey_index = 0;
	result(!ibv_modify_qp(qp, &a, init), "moves: INIT");
	a.qp_state = IBV_QPS_RTR;
	a.path_mtu = IBV_MTU_1024;
	a.ah_attr.port_num = 1;
	result(ibv_modify_qp(qp, &a, rtr) == EINVAL, "moves: RTR needs a LID");
	a.ah_attr.dlid = s->port.lid;
	result(!ibv_modify_qp(qp, &a, rtr), "moves: RTR without a GRH");
	ibv_destroy_qp(qp);
	result(!make_qp(s, IBV_QPT_RAW_PACKET), "no raw Ethernet");
}

/* --- datagrams --- */

static void without_grh(struct side *s, struct side *peer)
{
	struct ibv_ah_attr to = { .dlid = peer->port.lid,
				  .sl = SL,
				  .port_num = 1 };
	struct ibv_ah *ah = ibv_create_ah(s->pd, &to);
	struct ibv_wc wc = { 0 };

	must(ah && post_recv(peer, peer->qp) &&
		     post_send(s, s->qp, 1000, ah, peer->qp->qp_num),
	     "datagram");
	result(next_wc(s, &wc) && next_wc(peer, &wc) && wc.byte_len == 1040 &&
		       memcmp(received(peer) + GRH, s->bytes, 1000) == 0,
	       "datagram: 40 bytes stay free in front");
	result(wc.slid == s->port.lid && wc.sl == SL && !wc.dlid_path_bits &&
		       !wc.pkey_index && wc.src_qp == s->qp->qp_num &&
		       !(wc.wc_flags & IBV_WC_GRH),
	       "datagram: its completion has LID, SL and no GRH");
	ibv_destroy_ah(ah);
}

static int is_grh(const uint8_t *grh, struct side *from, struct side *to,
		  uint32_t payload)
{
	return grh[0] >> 4 == 6 && grh[6] == 0x1b &&
	       grh[4] * 256u + grh[5] == payload + 12 + 8 + 4 &&
	       memcmp(grh + 8, &from->gid, 16) == 0 &&
	       memcmp(grh + 24, &to->gid, 16) == 0;
}

static void with_grh(struct side *s, struct side *peer)
{
	struct ibv_ah_attr to = { .dlid = peer->port.lid,
				  .is_global = 1,
				  .grh = { .dgid = peer->gid, .hop_limit = 9 },
				  .port_num = 1 };
	struct ibv_ah *ah = ibv_create_ah(s->pd, &to);
	struct ibv_wc wc = { 0 };

	must(ah && post_recv(peer, peer->qp) &&
		     post_send(s, s->qp, 64, ah, peer->qp->qp_num),
	     "datagram with a GRH");
	result(next_wc(s, &wc) && next_wc(peer, &wc) &&
		       wc.wc_flags & IBV_WC_GRH &&
		       is_grh(received(peer), s, peer, 64) &&
		       received(peer)[7] == 9,
	       "datagram: the GRH is InfiniBand's");
	ibv_destroy_ah(ah);
	ah = ibv_create_ah_from_wc(peer->pd, &wc, (void *)received(peer), 1);
	must(ah && post_recv(s, s->qp) &&
		     post_send(peer, peer->qp, 32, ah, wc.src_qp),
	     "answer");
	result(next_wc(peer, &wc) && next_wc(s, &wc) && wc.byte_len == 72 &&
		       wc.slid == peer->port.lid,
	       "datagram: answered by what the completion says");
	ibv_destroy_ah(ah);
}

/* A queue pair gets the datagrams that another queue pair of its own adapter
 * sends to its group. */
static void group(struct side *s)
{
	union ibv_gid mgid = { .raw = { 0xff, 0x12, 0x40, [15] = 1 } };
	struct ibv_ah_attr to = { .dlid = MLID,
				  .is_global = 1,
				  .grh = { .dgid = mgid },
				  .port_num = 1 };
	struct ibv_ah *ah = ibv_create_ah(s->pd, &to);
	struct ibv_qp *member = make_qp(s, IBV_QPT_UD);
	struct ibv_wc one = { 0 }, two = { 0 };
	int good;

	must(ah && member, "group");
	rc_start_datagrams(member, QKEY);
	result(ibv_attach_mcast(member, &mgid, 0) == EINVAL &&
		       ibv_attach_mcast(member, &mgid, 5) == EINVAL &&
		       ibv_attach_mcast(member, &s->gid, MLID) == EINVAL,
	       "group: a LID of groups, and a GID of groups");
	must(!ibv_attach_mcast(member, &mgid, MLID) && post_recv(s, member) &&
		     post_send(s, s->qp, 128, ah, 0xffffff),
	     "group: send");
	good = next_wc(s, &one) && next_wc(s, &two);
	if (one.opcode != IBV_WC_RECV)
		one = two;
	result(good && one.opcode == IBV_WC_RECV &&
		       one.qp_num == member->qp_num && has_payload(s, GRH, 128),
	       "group: its adapter's members get a copy");
	result(!ibv_detach_mcast(member, &mgid, MLID) &&
		       ibv_detach_mcast(member, &mgid, MLID) == EINVAL,
	       "group: left, once");
	ibv_destroy_ah(ah);
	ibv_destroy_qp(member);
}

/* --- a connection --- */

static void connect_to(struct ibv_qp *qp, uint16_t lid, uint32_t dqpn, int pkey)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.pkey_index = (uint16_t)pkey,
		.port_num = 1,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = dqpn,
		.ah_attr = { .dlid = lid, .port_num = 1 },
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 12,
	};

	must(!ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_ACCESS_FLAGS),
	     "INIT");
	a.qp_state = IBV_QPS_RTR;
	must(!ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER),
	     "RTR");
	a.qp_state = IBV_QPS_RTS;
	must(!ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				    IBV_QP_MAX_QP_RD_ATOMIC),
	     "RTS");
}

static void connection(struct side *s, struct side *peer, const char *name)
{
	struct ibv_qp *a = make_qp(s, IBV_QPT_RC),
		      *b = make_qp(peer, IBV_QPT_RC);
	struct ibv_wc one = { 0 }, two = { 0 };

	must(a && b, "RC");
	connect_to(a, peer->port.lid, b->qp_num, 0);
	connect_to(b, s->port.lid, a->qp_num, 0);
	must(post_recv(peer, b) && post_send(s, a, BYTES, NULL, 0), "SEND");
	result(next_wc(s, &one) && next_wc(peer, &two) &&
		       memcmp(received(peer), s->bytes, BYTES) == 0,
	       name);
	ibv_destroy_qp(a);
	ibv_destroy_qp(b);
}

/* --- partitions --- */

/* Returns the index of the P_Key of partition 2, of a full or a limited
 * member. */
static int blue(struct side *s)
{
	int full = ibv_get_pkey_index(s->context, 1, htobe16(0x8002));

	return full >= 0 ? full
			 : ibv_get_pkey_index(s->context, 1, htobe16(0x0002));
}

/* Returns the status with which a SEND between queue pairs with these P_Key
 * indices ends. */
static enum ibv_wc_status talk(struct side *s, int pkey, struct side *peer,
			       int peer_pkey)
{
	struct ibv_qp *a = make_qp(s, IBV_QPT_RC),
		      *b = make_qp(peer, IBV_QPT_RC);
	struct ibv_wc wc = { 0 }, other;

	must(a && b, "RC");
	connect_to(a, peer->port.lid, b->qp_num, pkey);
	connect_to(b, s->port.lid, a->qp_num, peer_pkey);
	must(post_recv(peer, b) && post_send(s, a, 64, NULL, 0), "SEND");
	(void)next_wc(s, &wc);
	if (wc.status == IBV_WC_SUCCESS)
		(void)next_wc(peer, &other);
	ibv_destroy_qp(a);
	ibv_destroy_qp(b);
	return wc.status;
}

/* @full is a full member of partition 2; the other two are limited members. */
static void partitions(struct side *full, struct side *limited,
		       struct side *other)
{
	result(blue(full) > 0 && blue(limited) > 0 && blue(other) > 0,
	       "partition: the P_Keys that the manager has set");
	result(talk(full, blue(full), limited, blue(limited)) ==
			       IBV_WC_SUCCESS &&
		       talk(limited, blue(limited), full, blue(full)) ==
			       IBV_WC_SUCCESS,
	       "partition: a full and a limited member");
	result(talk(limited, blue(limited), other, blue(other)) ==
		       IBV_WC_RETRY_EXC_ERR,
	       "partition: two limited members do not hear each other");
	result(talk(full, 0, limited, blue(limited)) == IBV_WC_RETRY_EXC_ERR,
	       "partition: two partitions do not hear each other");
	result(talk(limited, 0, other, 0) == IBV_WC_SUCCESS,
	       "partition: the default one goes on");
	result(talk(full, blue(full), full, blue(full)) == IBV_WC_SUCCESS &&
		       talk(full, 0, full, 0) == IBV_WC_SUCCESS,
	       "partition: within one adapter");
	result(talk(full, 0, full, blue(full)) == IBV_WC_RETRY_EXC_ERR,
	       "partition: two of them within one adapter");
	result(talk(limited, blue(limited), limited, blue(limited)) ==
		       IBV_WC_RETRY_EXC_ERR,
	       "partition: two limited members within one adapter");
}

/* --- a LID that changes under a connection --- */

static void say(const char *what)
{
	printf("%s\n", what);
	fflush(stdout);
}

static void await_event(struct side *s, enum ibv_event_type type)
{
	struct ibv_async_event e;

	alarm(40);
	do {
		must(!ibv_get_async_event(s->context, &e), "event");
		ibv_ack_async_event(&e);
	} while (e.event_type != type);
	alarm(0);
}

/* Returns the status with which a SEND from one queue pair of the adapter to
 * another one ends. */
static enum ibv_wc_status send_within(struct side *s, struct ibv_qp *from,
				      struct ibv_qp *to)
{
	struct ibv_wc wc = { 0 }, other;

	must(post_recv(s, to) && post_send(s, from, 64, NULL, 0), "SEND");
	(void)next_wc(s, &wc);
	if (wc.status == IBV_WC_SUCCESS)
		(void)next_wc(s, &other);
	return wc.status;
}

/* After the adapter has got another LID, packets to its former LID reach
 * nobody, although both ends are on this host. */
static int follow(struct side *s)
{
	struct ibv_qp *a = make_qp(s, IBV_QPT_RC), *b = make_qp(s, IBV_QPT_RC);
	uint16_t lid = s->port.lid;

	must(a && b, "RC");
	connect_to(a, lid, b->qp_num, 0);
	connect_to(b, lid, a->qp_num, 0);
	result(send_within(s, a, b) == IBV_WC_SUCCESS, "follow: the own LID");
	say("now another LID");
	await_event(s, IBV_EVENT_LID_CHANGE);
	must(!ibv_query_port(s->context, 1, &s->port), "query_port");
	result(s->port.lid != lid, "follow: told of another LID");
	result(send_within(s, a, b) == IBV_WC_RETRY_EXC_ERR,
	       "follow: the former LID reaches nobody");
	say("now the first LID");
	await_event(s, IBV_EVENT_LID_CHANGE);
	must(!ibv_query_port(s->context, 1, &s->port), "query_port");
	result(s->port.lid == lid && talk(s, 0, s, 0) == IBV_WC_SUCCESS,
	       "follow: and back");
	ibv_destroy_qp(a);
	ibv_destroy_qp(b);
	return failed;
}

static int print_events(struct ibv_device *device)
{
	struct ibv_context *context = ibv_open_device(device);
	struct ibv_async_event e;

	must(context != NULL, "open");
	printf("watching\n");
	fflush(stdout);
	while (!ibv_get_async_event(context, &e)) {
		printf("%s\n", ibv_event_type_str(e.event_type));
		fflush(stdout);
		ibv_ack_async_event(&e);
	}
	return 1;
}

int main(int argc, char **argv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	static struct side a, b, c;

	must(list && list[0], "a device");
	if (argc > 1 && strcmp(argv[1], "events") == 0)
		return print_events(list[0]);
	if (argc > 1 && strcmp(argv[1], "follow") == 0) {
		open_side(&a, list[0]);
		return follow(&a);
	}
	must(list[1] != NULL, "two devices");
	result(strcmp(ibv_get_device_name(list[0]), "ib0") == 0 &&
		       strcmp(ibv_get_device_name(list[1]), "ib1") == 0,
	       "their names are in the options' order");
	open_side(&a, list[0]);
	open_side(&b, list[1]);
	if (argc > 1 && strcmp(argv[1], "partitions") == 0) {
		must(list[2] != NULL, "three devices");
		open_side(&c, list[2]);
		partitions(&a, &b, &c);
		return failed;
	}
	port(&a);
	addresses(&a, &b);
	moves(&a);
	without_grh(&a, &b);
	with_grh(&a, &b);
	group(&a);
	connection(&a, &b, "connection between two adapters");
	connection(&a, &a, "connection of an adapter with itself");
	return failed;
}
