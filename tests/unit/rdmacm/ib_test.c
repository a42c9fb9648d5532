/* SPDX-License-Identifier: BSD-2-Clause */
/* Ids of an adapter of an InfiniBand fabric: routes, address vectors and groups
 * that the subnet administrator gives. */
#include "tests/unit/rdmacm/fake.h"

#include <arpa/inet.h>
#include <endian.h>
#include <string.h>

static struct rdma_event_channel *channel;
static struct rcm_id *id;

static void begin_id(enum rdma_port_space ps, enum ibv_qp_type type)
{
	channel = fake_channel();
	id = fake_id(channel, ps, type, RCM_RESOLVED);
	id->path.place = 3;
	id->path.pkey = 0xffff;
	id->path.hop_limit = 0;
	memset(id->path.src.raw, 0x11, 16);
	memset(id->path.dst.raw, 0x22, 16);
}

static int setup(void **state)
{
	(void)fake_setup(state);
	fake_device.ib = true;
	fake_device.place = 3;
	fake_device.port = FAKE_PORT;
	rcm.has_roce = false;
	rcm.has_ib = true;
	begin_id(RDMA_PS_IB, IBV_QPT_RC);
	return 0;
}

static int setup_datagrams(void **state)
{
	(void)setup(state);
	rdma_destroy_id(&id->pub);
	rdma_destroy_event_channel(channel);
	fake.tells = 0;
	begin_id(RDMA_PS_UDP, IBV_QPT_UD);
	return 0;
}

static int teardown(void **state)
{
	id->pub.qp = NULL;
	/* A test that failed may have left events unacknowledged, and
	 * rdma_destroy_id() waits for those. */
	id->acked = id->delivered;
	rdma_destroy_id(&id->pub);
	rdma_destroy_event_channel(channel);
	rcm.has_ib = false;
	return 0;
}

static struct rdma_cm_event *next(void)
{
	struct rdma_cm_event *e = NULL;

	assert_int_equal(rdma_get_cm_event(channel, &e), 0);
	return e;
}

static struct vb_ipc_cm arrives(enum vb_ipc_cm_event event, int32_t status)
{
	return (struct vb_ipc_cm){ .kind = IPC_CM_EVENT,
				   .version = VB_IPC_CM_VERSION,
				   .event = (uint8_t)event,
				   .id = id->number,
				   .status = status,
				   .place = 3 };
}

static struct vb_ipc_cm route(void)
{
	struct vb_ipc_cm m = arrives(IPC_CM_ROUTE, 0);

	m.dlid = 6;
	m.path_bits = 1;
	m.sl = 2;
	m.rate = 3;
	m.mtu = IBV_MTU_1024;
	m.pkey = 0x8002;
	m.ack_timeout = 19;
	return m;
}

static void take_route(void)
{
	const struct vb_ipc_cm m = route();
	struct rdma_cm_event *e;

	assert_int_equal(rdma_resolve_route(&id->pub, 700), 0);
	rcm_event_arrived(&m);
	e = next();
	assert_int_equal(e->event, RDMA_CM_EVENT_ROUTE_RESOLVED);
	assert_int_equal(rdma_ack_cm_event(e), 0);
}

static void route__comes_from_the_administrator(void **state)
{
	const struct ibv_sa_path_rec *p;

	(void)state;
	id->path.space = RDMA_PS_IB;
	id->path.dst_port = 99;
	take_route();
	assert_int_equal(fake.tells, 1);
	assert_int_equal(fake.told[0].kind, IPC_CM_PATH);
	assert_int_equal(fake.told[0].place, 3);
	assert_int_equal(fake.told[0].timeout_ms, 700);
	assert_int_equal(fake.told[0].space, RDMA_PS_IB);
	assert_int_equal(fake.told[0].dst_port, 99);
	assert_memory_equal(fake.told[0].dst.raw, id->path.dst.raw, 16);
	assert_int_equal(id->state, RCM_ROUTED);
	p = id->pub.route.path_rec;
	assert_int_equal(id->pub.route.num_paths, 1);
	assert_int_equal(be16toh(p->dlid), 6);
	assert_int_equal(be16toh(p->slid), 5);
	assert_int_equal(be16toh(p->pkey), 0x8002);
	assert_int_equal(p->sl, 2);
	assert_int_equal(p->rate, 3);
	assert_int_equal(p->packet_life_time, 18);
}

/* The path request has the class that Linux asks with: the TOS for IPv4
 * addresses, otherwise the traffic class in the address. */
static void route__of_a_service(void **state)
{
	(void)state;
	id->tos = 0x28;
	id->traffic_class = 0x30;
	take_route();
	assert_true(fake.told[0].flags & IPC_CM_QOS_CLASS);
	assert_int_equal(fake.told[0].tclass, 0x28);
	id->state = RCM_RESOLVED;
	id->pub.route.addr.src_addr.sa_family = AF_INET6;
	take_route();
	assert_false(fake.told[1].flags & IPC_CM_QOS_CLASS);
	assert_int_equal(fake.told[1].tclass, 0x30);
}

/* The port is a full member of the partition, so the queue pair gets the index
 * of the full P_Key, even if the administrator's record has the limited one. */
static void route__of_a_limited_pkey(void **state)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT };
	int mask;

	(void)state;
	take_route();
	id->path.pkey = 0x0002;
	assert_int_equal(rdma_init_qp_attr(&id->pub, &a, &mask), 0);
	assert_int_equal(a.pkey_index, 5);
}

static void route__fails_with_the_administrators_error(void **state)
{
	const struct vb_ipc_cm m = arrives(IPC_CM_ROUTE, ETIMEDOUT);
	struct rdma_cm_event *e;

	(void)state;
	assert_int_equal(rdma_resolve_route(&id->pub, 700), 0);
	/* a second call is refused while the first has no answer */
	assert_int_equal(rdma_resolve_route(&id->pub, 700), -1);
	assert_int_equal(errno, EINVAL);
	rcm_event_arrived(&m);
	e = next();
	assert_int_equal(e->event, RDMA_CM_EVENT_ROUTE_ERROR);
	assert_int_equal(e->status, -ETIMEDOUT);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	/* after an error the program may ask again */
	take_route();
}

static void route__that_nobody_has_asked_for(void **state)
{
	const struct vb_ipc_cm m = route();
	struct rdma_cm_event *e;

	(void)state;
	rcm_event_arrived(&m);
	assert_int_equal(rdma_get_cm_event(channel, &e), -1);
	assert_int_equal(id->state, RCM_RESOLVED);
}

static void route__is_the_queue_pairs_way(void **state)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTR };
	int mask;

	(void)state;
	take_route();
	id->state = RCM_CONNECTING;
	assert_int_equal(rdma_init_qp_attr(&id->pub, &a, &mask), 0);
	assert_false(a.ah_attr.is_global);
	assert_int_equal(a.ah_attr.dlid, 6);
	assert_int_equal(a.ah_attr.sl, 2);
	assert_int_equal(a.ah_attr.src_path_bits, 1);
	assert_int_equal(a.ah_attr.static_rate, 3);
	assert_int_equal(a.path_mtu, IBV_MTU_1024);
	a.qp_state = IBV_QPS_INIT;
	assert_int_equal(rdma_init_qp_attr(&id->pub, &a, &mask), 0);
	assert_int_equal(a.pkey_index, 5);
	/* if the path crosses a router, packets need a GRH */
	id->path.hop_limit = 64;
	a.qp_state = IBV_QPS_RTR;
	assert_int_equal(rdma_init_qp_attr(&id->pub, &a, &mask), 0);
	assert_true(a.ah_attr.is_global);
	assert_int_equal(a.ah_attr.grh.hop_limit, 64);
}

static void route__of_the_programs_own(void **state)
{
	struct ibv_path_data d = {
		.flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY |
			 IBV_PATH_FLAG_BIDIRECTIONAL,
		.path = { .dlid = htobe16(7),
			  .slid = htobe16(4),
			  .pkey = htobe16(0xffff),
			  .qosclass_sl = htobe16(4),
			  .mtu = 0x80 | IBV_MTU_2048,
			  .rate = 0x80 | 3,
			  .packetlifetime = 0x80 | 16 },
	};

	(void)state;
	memcpy(d.path.sgid.raw, id->path.src.raw, 16);
	memcpy(d.path.dgid.raw, id->path.dst.raw, 16);
	d.path.slid = htobe16(6);
	assert_int_equal(rcm_path_set(id, &d, sizeof(d)), -EINVAL);
	d.path.slid = htobe16(4);
	d.path.dlid = htobe16(0xc000);
	assert_int_equal(rcm_path_set(id, &d, sizeof(d)), -EINVAL);
	d.path.dlid = htobe16(7);
	assert_int_equal(rcm_path_set(id, &d, sizeof(d)), 0);
	assert_int_equal(id->state, RCM_ROUTED);
	assert_int_equal(id->path.dlid, 7);
	assert_int_equal(id->path.sl, 4);
	assert_int_equal(id->path.mtu, IBV_MTU_2048);
	assert_int_equal(id->path.ack_timeout, 17);
	assert_int_equal(fake.tells, 0);
}

/* --- services --- */

int rdma_query_addrinfo(struct rdma_cm_id *cm_id, struct rdma_addrinfo **info);
int rdma_resolve_addrinfo(struct rdma_cm_id *cm_id, const char *node,
			  const char *service,
			  const struct rdma_addrinfo *hints);

static const struct rdma_addrinfo by_sa = { .ai_flags = RCM_RAI_SA };

static void service__is_asked_for(void **state)
{
	const struct vb_ipc_cm *m = &fake.told[0];
	struct rdma_addrinfo both = { .ai_flags = RCM_RAI_SA | RCM_RAI_DNS };
	char longest[65] = { 0 };

	(void)state;
	id->state = RCM_BOUND;
	assert_int_equal(rdma_resolve_addrinfo(&id->pub, NULL, "0x12", &by_sa),
			 0);
	assert_int_equal(m->kind, IPC_CM_SERVICE);
	assert_int_equal(m->place, 3);
	assert_int_equal(m->guid, 0x12);
	assert_int_equal(m->private_bytes, 0);
	assert_int_equal(rdma_resolve_addrinfo(&id->pub, NULL, "1", &by_sa),
			 -1);
	assert_int_equal(errno, EBUSY);
	id->resolving = false;
	assert_int_equal(rdma_resolve_addrinfo(&id->pub, NULL, "12x", &by_sa),
			 0);
	assert_int_equal(fake.told[1].guid, 0);
	assert_int_equal(fake.told[1].private_bytes, 3);
	id->resolving = false;
	memset(longest, 'a', 64);
	assert_int_equal(rdma_resolve_addrinfo(&id->pub, NULL, longest, &by_sa),
			 -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(rdma_resolve_addrinfo(&id->pub, "node", "1", &by_sa),
			 -1);
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(rdma_resolve_addrinfo(&id->pub, NULL, "1", &both), -1);
	assert_int_equal(errno, EOPNOTSUPP);
	id->state = RCM_NEW;
	assert_int_equal(rdma_resolve_addrinfo(&id->pub, NULL, "1", &by_sa),
			 -1);
	assert_int_equal(errno, EINVAL);
	id->state = RCM_BOUND;
	fake_device.ib = false;
	assert_int_equal(rdma_resolve_addrinfo(&id->pub, NULL, "1", &by_sa),
			 -1);
	assert_int_equal(errno, EOPNOTSUPP);
	fake_device.ib = true;
}

static void service__becomes_a_result(void **state)
{
	struct vb_ipc_cm m = rcm_message(id, IPC_CM_EVENT);
	struct vb_writer w = { m.private_data };
	const struct sockaddr_ib *sib;
	struct rdma_addrinfo *r;
	struct rdma_cm_event *e;

	(void)state;
	id->state = RCM_BOUND;
	assert_int_equal(rdma_resolve_addrinfo(&id->pub, NULL, "a", &by_sa), 0);
	assert_int_equal(rdma_query_addrinfo(&id->pub, &r), -1);
	m.event = IPC_CM_SERVICES;
	for (unsigned i = 0; i < 2; i++) {
		vb_put_be(&w, 0x1234 + i, 8);
		vb_put_be(&w, 0x8001, 2);
		memset(w.at, 0x40 + (int)i, 16);
		w.at += 16;
	}
	m.private_bytes = 2 * VB_IPC_CM_SERVICE_BYTES;
	rcm_event_arrived(&m);
	e = next();
	assert_int_equal(e->event, RCM_EVENT_ADDRINFO_RESOLVED);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	assert_int_equal(rdma_query_addrinfo(&id->pub, &r), 0);
	sib = (const struct sockaddr_ib *)r->ai_next->ai_dst_addr;
	assert_int_equal(be64toh(sib->sib_sid), 0x1235);
	assert_int_equal(sib->sib_pkey, htobe16(0x8001));
	assert_int_equal(sib->sib_addr.sib_raw[7], 0x41);
	assert_null(r->ai_next->ai_next);
	rdma_freeaddrinfo(r);
	/* the administrator knows no such service; afterwards the id may ask
	 * again */
	assert_int_equal(rdma_resolve_addrinfo(&id->pub, NULL, "a", &by_sa), 0);
	m.status = EINVAL;
	rcm_event_arrived(&m);
	e = next();
	assert_int_equal(e->event, RCM_EVENT_ADDRINFO_ERROR);
	assert_int_equal(e->status, -EINVAL);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	assert_int_equal(rdma_resolve_addrinfo(&id->pub, NULL, "a", &by_sa), 0);
	id->resolving = false;
}

/* --- alternate paths --- */

/* Fill in two path records: the primary path, and an alternate one that begins
 * at the GID of the fake port. */
static void two_paths(struct ibv_path_data d[2])
{
	static const uint8_t own[16] = { [10] = 0xff, 0xff, 10, 77, 0, 1 };

	d[0] = (struct ibv_path_data){
		.flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY |
			 IBV_PATH_FLAG_BIDIRECTIONAL,
		.path = { .dlid = htobe16(7),
			  .slid = htobe16(4),
			  .pkey = htobe16(0xffff),
			  .mtu = 0x80 | IBV_MTU_1024,
			  .packetlifetime = 0x80 | 16 },
	};
	memcpy(d[0].path.sgid.raw, id->path.src.raw, 16);
	memcpy(d[0].path.dgid.raw, id->path.dst.raw, 16);
	d[1] = d[0];
	d[1].flags = IBV_PATH_FLAG_ALTERNATE | IBV_PATH_FLAG_BIDIRECTIONAL;
	d[1].path.dlid = htobe16(9);
	d[1].path.slid = htobe16(5);
	d[1].path.qosclass_sl = htobe16(6);
	d[1].path.rate = 0x80 | 3;
	d[1].path.packetlifetime = 0x80 | 18;
	memcpy(d[1].path.sgid.raw, own, 16);
}

static void alternate__of_the_programs_own(void **state)
{
	struct ibv_path_data d[2];
	const struct ibv_sa_path_rec *p;
	struct rdma_conn_param none = { .qp_num = 0x18001 };
	const struct vb_ipc_cm *m;

	(void)state;
	two_paths(d);
	assert_int_equal(rcm_path_set(id, d, sizeof(d)), 0);
	assert_int_equal(id->pub.route.num_paths, 2);
	p = id->pub.route.path_rec;
	assert_int_equal(p[0].dlid, htobe16(7));
	assert_int_equal(p[0].slid, htobe16(4));
	assert_int_equal(p[1].dlid, htobe16(9));
	assert_int_equal(p[1].slid, htobe16(5));
	assert_int_equal(p[1].sl, 6);
	assert_int_equal(p[1].packet_life_time, 18);
	assert_memory_equal(p[1].sgid.raw, d[1].path.sgid.raw, 16);
	assert_int_equal(rdma_connect(&id->pub, &none), 0);
	m = &fake.told[fake.tells - 1];
	assert_int_equal(m->kind, IPC_CM_CONNECT);
	assert_int_equal(m->alternate.place, 3);
	assert_int_equal(m->alternate.dlid, 9);
	assert_int_equal(m->alternate.path_bits, 1);
	assert_int_equal(m->alternate.sl, 6);
	assert_int_equal(m->alternate.rate, 3);
	assert_int_equal(m->alternate.ack_timeout, 19);
}

/* If anything is wrong with the alternate path, the call fails and the id keeps
 * neither path. */
static void alternate__that_the_adapter_has_not(void **state)
{
	struct ibv_path_data d[2];

	(void)state;
#define REFUSED(field, value)                                                  \
	do {                                                                   \
		two_paths(d);                                                  \
		d[1].path.field = (value);                                     \
		assert_int_equal(rcm_path_set(id, d, sizeof(d)), -EINVAL);     \
		assert_int_equal(id->state, RCM_RESOLVED);                     \
		assert_int_equal(id->path.dlid, 0);                            \
		assert_int_equal(id->path.alternate.place, 0);                 \
	} while (0)
	REFUSED(sgid.raw[15], 9);
	REFUSED(slid, htobe16(6));
	REFUSED(slid, htobe16(3));
	REFUSED(dlid, 0);
	REFUSED(dlid, htobe16(0xc001));
	REFUSED(pkey, htobe16(0x8002));
	REFUSED(mtu, 0x80 | IBV_MTU_512);
#undef REFUSED
	/* An MTU above the port's own (IBV_MTU_2048) is refused. */
	two_paths(d);
	d[0].path.mtu = d[1].path.mtu = 0x80 | IBV_MTU_4096;
	assert_int_equal(rcm_path_set(id, d, sizeof(d)), -EINVAL);
	/* As on Linux, records with other flags are ignored. */
	two_paths(d);
	d[1].flags |= IBV_PATH_FLAG_PRIMARY;
	d[1].path.slid = 0;
	assert_int_equal(rcm_path_set(id, d, sizeof(d)), 0);
	assert_int_equal(id->pub.route.num_paths, 1);
}

static void alternate__is_the_queue_pairs(void **state)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTR };
	struct ibv_path_data d[2];
	int mask;

	(void)state;
	two_paths(d);
	assert_int_equal(rcm_path_set(id, d, sizeof(d)), 0);
	id->state = RCM_CONNECTING;
	assert_int_equal(rdma_init_qp_attr(&id->pub, &a, &mask), 0);
	assert_true(mask & IBV_QP_ALT_PATH);
	assert_false(mask & IBV_QP_PATH_MIG_STATE);
	assert_int_equal(a.alt_port_num, FAKE_PORT);
	assert_int_equal(a.alt_timeout, 19);
	assert_int_equal(a.alt_pkey_index, 0);
	assert_int_equal(a.alt_ah_attr.port_num, FAKE_PORT);
	assert_int_equal(a.alt_ah_attr.dlid, 9);
	assert_int_equal(a.alt_ah_attr.src_path_bits, 1);
	assert_int_equal(a.alt_ah_attr.sl, 6);
	assert_int_equal(a.alt_ah_attr.static_rate, 3);
	assert_false(a.alt_ah_attr.is_global);
	assert_int_equal(a.ah_attr.dlid, 7);
	a.qp_state = IBV_QPS_RTS;
	assert_int_equal(rdma_init_qp_attr(&id->pub, &a, &mask), 0);
	assert_true(mask & IBV_QP_PATH_MIG_STATE);
	assert_int_equal(a.path_mig_state, IBV_MIG_REARM);
	/* The port no longer has the GID of the alternate path: the connection
	 * is made without that path. */
	id->path.alternate.src.raw[15] = 9;
	assert_int_equal(rdma_init_qp_attr(&id->pub, &a, &mask), 0);
	assert_false(mask & IBV_QP_PATH_MIG_STATE);
}

static void alternate__that_the_peer_does_not_take(void **state)
{
	struct vb_ipc_cm m = rcm_message(id, IPC_CM_EVENT);
	struct rdma_conn_param none = { .qp_num = 0x18001 };
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTR };
	struct ibv_path_data d[2];
	int mask;

	(void)state;
	two_paths(d);
	assert_int_equal(rcm_path_set(id, d, sizeof(d)), 0);
	assert_int_equal(rdma_ack_cm_event(next()), 0);
	assert_int_equal(rdma_connect(&id->pub, &none), 0);
	m.event = IPC_CM_REPLY;
	m.place = 3;
	m.flags = IPC_CM_NO_ALTERNATE;
	rcm_event_arrived(&m);
	assert_int_equal(rdma_ack_cm_event(next()), 0);
	assert_int_equal(rdma_init_qp_attr(&id->pub, &a, &mask), 0);
	assert_false(mask & IBV_QP_ALT_PATH);
}

/* The GID of a group follows RFC 4391; the port space UDP has rdma_cm's own
 * signature. */
static void group__of_ip_has_the_gid_of_its_space(void **state)
{
	static const uint8_t v4[16] = { 0xff, 0x12,	   0x40, 0x01, 0xff,
					0xff, [12] = 0x0f, 1,	 2,    3 };
	static const uint8_t v6[16] = { 0xff, 0x12, 0x60,	 0x1b,
					0x80, 0x02, [14] = 0x12, 0x34 };
	struct sockaddr_in a = { .sin_family = AF_INET };
	struct sockaddr_in6 b = { .sin6_family = AF_INET6 };

	(void)state;
	assert_int_equal(inet_pton(AF_INET, "239.1.2.3", &a.sin_addr), 1);
	assert_int_equal(inet_pton(AF_INET6, "ff15::1234", &b.sin6_addr), 1);
	assert_int_equal(
		rdma_join_multicast(&id->pub, (struct sockaddr *)&a, NULL), 0);
	assert_memory_equal(fake.told[0].dst.raw, v4, 16);
	id->pub.ps = RDMA_PS_IPOIB;
	id->path.pkey = 0x0002;
	assert_int_equal(
		rdma_join_multicast(&id->pub, (struct sockaddr *)&b, NULL), 0);
	assert_memory_equal(fake.told[1].dst.raw, v6, 16);
	/* an IPv6 address that is a multicast GID of InfiniBand names that
	 * group itself */
	assert_int_equal(inet_pton(AF_INET6, "ff12:a01b::9", &b.sin6_addr), 1);
	assert_int_equal(
		rdma_join_multicast(&id->pub, (struct sockaddr *)&b, NULL), 0);
	assert_memory_equal(fake.told[2].dst.raw, &b.sin6_addr, 16);
}

static struct sockaddr_ib group_gid(void)
{
	struct sockaddr_ib a;
	const struct vb_gid gid = { { 0xff, 0x12, 0xa0, 0x1b, [15] = 7 } };

	rcm_address_of_ib((struct sockaddr *)&a, &gid, 0, 0);
	return a;
}

static struct vb_ipc_cm group_event(int32_t status)
{
	struct vb_ipc_cm m = arrives(IPC_CM_GROUP, status);

	m.src = m.dst = (struct vb_gid){ { 0xff, 0x12, 0xa0, 0x1b, [15] = 7 } };
	m.dlid = 0xc005;
	m.qkey = 0xb1b;
	m.sl = 1;
	return m;
}

static void group__has_the_administrators_lid_and_qkey(void **state)
{
	struct sockaddr_ib a = group_gid();
	struct vb_ipc_cm m = group_event(0);
	struct rdma_cm_event *e;

	(void)state;
	id->pub.qp = &fake_qp;
	assert_int_equal(
		rdma_join_multicast(&id->pub, (struct sockaddr *)&a, &id), 0);
	assert_int_equal(fake.told[0].kind, IPC_CM_GROUP_JOIN);
	assert_int_equal(fake.attaches, 0);
	rcm_event_arrived(&m);
	e = next();
	assert_int_equal(e->event, RDMA_CM_EVENT_MULTICAST_JOIN);
	assert_ptr_equal(e->param.ud.private_data, &id);
	assert_int_equal(e->param.ud.qkey, 0xb1b);
	assert_int_equal(e->param.ud.qp_num, 0xffffff);
	assert_int_equal(e->param.ud.ah_attr.dlid, 0xc005);
	assert_int_equal(e->param.ud.ah_attr.sl, 1);
	assert_true(e->param.ud.ah_attr.is_global);
	assert_int_equal(fake.attaches, 1);
	assert_int_equal(fake.group_lid, 0xc005);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	/* the group was joined again at the next broker: no event for the
	 * program */
	rcm_event_arrived(&m);
	assert_int_equal(rdma_get_cm_event(channel, &e), -1);
	/* the group has another LID now: an event for the program */
	m.status = ENETRESET;
	rcm_event_arrived(&m);
	e = next();
	assert_int_equal(e->event, RDMA_CM_EVENT_MULTICAST_ERROR);
	assert_int_equal(e->status, -ENETRESET);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	assert_int_equal(rdma_leave_multicast(&id->pub, (struct sockaddr *)&a),
			 0);
	assert_int_equal(fake.detaches, 1);
	assert_int_equal(fake.told[1].kind, IPC_CM_GROUP_LEAVE);
}

/* The program leaves a group that it joined by GID zero by that GID, since it
 * does not know the group's real GID. */
static void group__of_any_gid_is_left_by_that_name(void **state)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	struct vb_ipc_cm m = group_event(0);
	const struct vb_gid given = m.dst;
	struct rdma_cm_event *e;

	(void)state;
	assert_int_equal(
		rdma_join_multicast(&id->pub, (struct sockaddr *)&a, NULL), 0);
	assert_true(vb_gid_is_zero(&fake.told[0].dst));
	m.src = (struct vb_gid){ { 0 } };
	rcm_event_arrived(&m);
	e = next();
	assert_int_equal(e->event, RDMA_CM_EVENT_MULTICAST_JOIN);
	assert_memory_equal(e->param.ud.ah_attr.grh.dgid.raw, given.raw, 16);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	/* the port could not join the group again */
	m.src = given;
	m.status = EINVAL;
	m.dlid = 0;
	rcm_event_arrived(&m);
	e = next();
	assert_int_equal(e->event, RDMA_CM_EVENT_MULTICAST_ERROR);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	assert_int_equal(rdma_leave_multicast(&id->pub, (struct sockaddr *)&a),
			 0);
	assert_int_equal(fake.told[1].kind, IPC_CM_GROUP_LEAVE);
	assert_memory_equal(fake.told[1].dst.raw, given.raw, 16);
	assert_int_equal(rdma_leave_multicast(&id->pub, (struct sockaddr *)&a),
			 -1);
}

static void group__that_was_left_before_the_answer(void **state)
{
	struct sockaddr_ib a = group_gid();
	const struct vb_ipc_cm m = group_event(0);
	struct rdma_cm_event *e;

	(void)state;
	assert_int_equal(
		rdma_join_multicast(&id->pub, (struct sockaddr *)&a, &id), 0);
	assert_int_equal(rdma_leave_multicast(&id->pub, (struct sockaddr *)&a),
			 0);
	rcm_event_arrived(&m);
	assert_int_equal(rdma_get_cm_event(channel, &e), -1);
}

#define RC(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define UD(f) cmocka_unit_test_setup_teardown(f, setup_datagrams, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RC(route__comes_from_the_administrator),
		RC(route__of_a_service),
		RC(route__of_a_limited_pkey),
		RC(route__fails_with_the_administrators_error),
		RC(route__that_nobody_has_asked_for),
		RC(route__is_the_queue_pairs_way),
		RC(route__of_the_programs_own),
		RC(service__is_asked_for),
		RC(service__becomes_a_result),
		RC(alternate__of_the_programs_own),
		RC(alternate__that_the_adapter_has_not),
		RC(alternate__is_the_queue_pairs),
		RC(alternate__that_the_peer_does_not_take),
		UD(group__of_ip_has_the_gid_of_its_space),
		UD(group__has_the_administrators_lid_and_qkey),
		UD(group__of_any_gid_is_left_by_that_name),
		UD(group__that_was_left_before_the_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
