/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections by an adapter of a fabric. The test plays the program, the fabric
 * with its subnet administrator, and the peers. */
#include "tests/unit/broker/cm_bed.h"

/* the packet life time and the P_Key in the administrator's answers about
 * paths */
static uint8_t life = 18;
static uint16_t path_pkey = 0xffff;
/* the header of the last request for a path, and the path record in it */
static struct vb_sa_hdr path_asked;
static struct vb_sa_path path_wanted;

/* The subnet administrator answers the request that it received last. */
static void sa_answers(uint8_t method, uint16_t status)
{
	struct vb_sa_path p = { .dgid = fake_gid(PEER_GUID),
				.sgid = fake_gid(PORT_GUID),
				.dlid = PEER_LID,
				.slid = OWN_LID,
				.pkey = path_pkey,
				.sl = 3,
				.mtu = 4,
				.rate = 3,
				.life = life };
	uint8_t mad[VB_MAD_BYTES];
	struct ib_user_mad u;
	struct vb_sa_hdr h;

	assert_true(fake_hear(&fabric, &u, mad));
	assert_int_equal(u.agent_id, SA_AGENT);
	assert_int_equal(be16toh(u.addr.lid), SM_LID);
	assert_true(vb_sa_hdr_get(mad, sizeof(mad), &h));
	assert_int_equal(h.attr_id, SA_PATH);
	assert_int_equal(h.method, SA_GET);
	path_asked = h;
	(void)!vb_sa_path_get(mad, &path_wanted);
	h.method = method;
	h.status = status;
	vb_sa_path_put(mad, &h, &p);
	fake_say_mad(&fabric, SA_AGENT, 0, SM_LID, mad, sizeof(mad));
	vb_host_cm_poll(cm, now);
}

static void path__is_the_administrators(void **state)
{
	struct vb_ipc_cm m = path_of(CALLER, IPC_CM_PATH);
	uint8_t mad[VB_MAD_BYTES];
	struct ib_user_mad u;

	(void)state;
	give();
	bind_to(CALLER, fake_gid(PORT_GUID), 0, 0);
	say(&m, -1);
	sa_answers(SA_GET_RESP, 0);
	m = answer();
	assert_int_equal(m.event, IPC_CM_ROUTE);
	assert_int_equal(m.status, 0);
	assert_int_equal(m.dlid, PEER_LID);
	assert_int_equal(m.path_bits, 1);
	assert_int_equal(m.sl, 3);
	assert_int_equal(m.mtu, 4);
	assert_int_equal(m.rate, 3);
	assert_int_equal(m.ack_timeout, 19);
	/* for a second the broker uses the answer that it has, and sends no
	 * request */
	m = path_of(CALLER, IPC_CM_PATH);
	say(&m, -1);
	assert_int_equal(answer().dlid, PEER_LID);
	assert_false(fake_hear(&fabric, &u, mad));
	/* after a change of the subnet manager the broker asks again */
	fabric.port.sm_lid = 2;
	fake_say_port(&fabric);
	vb_host_cm_poll(cm, now);
	say(&m, -1);
	assert_true(fake_hear(&fabric, &u, mad));
	assert_int_equal(be16toh(u.addr.lid), 2);
}

/* opensm gives the path from a port to itself no packet life time. */
static void path__without_a_life_time(void **state)
{
	const struct vb_ipc_cm m = path_of(CALLER, IPC_CM_PATH);

	(void)state;
	give();
	bind_to(CALLER, fake_gid(PORT_GUID), 0, 0);
	say(&m, -1);
	life = 0;
	sa_answers(SA_GET_RESP, 0);
	life = 18;
	assert_int_equal(answer().ack_timeout, 17);
}

static void path__that_there_is_not(void **state)
{
	const struct vb_ipc_cm m = path_of(CALLER, IPC_CM_PATH);

	(void)state;
	give();
	bind_to(CALLER, fake_gid(PORT_GUID), 0, 0);
	say(&m, -1);
	sa_answers(SA_GET_RESP, SA_NO_RECORDS);
	assert_int_equal(answer().status, EINVAL);
}

/* The P_Key in the administrator's answer may differ from the one asked for in
 * its highest bit, which tells full from limited membership. */
static void path__of_either_membership(void **state)
{
	struct vb_ipc_cm m = path_of(CALLER, IPC_CM_PATH), e;

	(void)state;
	give();
	bind_to(CALLER, fake_gid(PORT_GUID), 0, 0);
	say(&m, -1);
	path_pkey = 0x7fff;
	sa_answers(SA_GET_RESP, 0);
	e = answer();
	assert_int_equal(e.status, 0);
	assert_int_equal(e.pkey, 0x7fff);
	/* refused: an answer with the P_Key of another partition */
	m.dst_port++;
	say(&m, -1);
	path_pkey = 0x8001;
	sa_answers(SA_GET_RESP, 0);
	path_pkey = 0xffff;
	assert_int_equal(answer().status, EINVAL);
}

static void path__of_a_class_of_quality(void **state)
{
	struct vb_ipc_cm m = path_of(CALLER, IPC_CM_PATH);

	(void)state;
	give();
	bind_to(CALLER, fake_gid(PORT_GUID), 0, 0);
	m.tclass = 0x28;
	say(&m, -1);
	sa_answers(SA_GET_RESP, 0);
	(void)answer();
	assert_true(path_asked.mask & SA_PATH_TCLASS);
	assert_false(path_asked.mask & SA_PATH_QOS_CLASS);
	assert_int_equal(path_wanted.tclass, 0x28);
	assert_int_equal(path_wanted.qos_class, 0);
	m.flags |= IPC_CM_QOS_CLASS;
	say(&m, -1);
	sa_answers(SA_GET_RESP, 0);
	(void)answer();
	assert_false(path_asked.mask & SA_PATH_TCLASS);
	assert_true(path_asked.mask & SA_PATH_QOS_CLASS);
	assert_int_equal(path_wanted.tclass, 0);
	assert_int_equal(path_wanted.qos_class, 0x28);
}

/* The fabric's process never reports that no answer came, so the broker's own
 * timer must end the request. */
static void path__nobody_answers(void **state)
{
	const struct vb_ipc_cm m = path_of(CALLER, IPC_CM_PATH);
	struct vb_ipc_cm e;

	(void)state;
	give();
	bind_to(CALLER, fake_gid(PORT_GUID), 0, 0);
	say(&m, -1);
	vb_host_cm_tick(cm, now);
	assert_false(hears(&e));
	now = vb_host_cm_deadline(cm);
	assert_in_range(now, VB_SEC + 300 * VB_MSEC, 4 * VB_SEC);
	vb_host_cm_tick(cm, now);
	assert_int_equal(answer().status, ETIMEDOUT);
}

static void path__is_of_the_programs_own_port(void **state)
{
	struct vb_ipc_cm m = path_of(CALLER, IPC_CM_PATH);

	(void)state;
	give();
	bind_to(CALLER, fake_gid(PORT_GUID), 0, 0);
	m.place = 2;
	say(&m, -1);
	assert_int_equal(answer().status, EPERM);
	m.place = 1;
	m.src = m.dst;
	say(&m, -1);
	assert_int_equal(answer().status, EADDRNOTAVAIL);
	m.src = fake_gid(PORT_GUID);
	m.pkey = 0x8123;
	say(&m, -1);
	assert_int_equal(answer().status, EINVAL);
}

static struct vb_cm_msg heard_cm(void)
{
	uint8_t mad[VB_MAD_BYTES];
	struct ib_user_mad u;
	struct vb_cm_msg m;

	assert_true(fake_hear(&fabric, &u, mad));
	assert_int_equal(u.agent_id, CM_AGENT);
	assert_int_equal(be16toh(u.addr.lid), PEER_LID);
	assert_true(vb_cm_get(mad, sizeof(mad), &m));
	return m;
}

static void peer_says(const struct vb_cm_msg *m, uint16_t lid)
{
	uint8_t mad[VB_MAD_BYTES];

	vb_cm_put(mad, m);
	fake_say_mad(&fabric, CM_AGENT, 0, lid, mad, sizeof(mad));
	vb_host_cm_poll(cm, now);
}

static void connect__by_lids(void **state)
{
	struct vb_ipc_cm m = path_of(CALLER, IPC_CM_CONNECT);
	struct vb_cm_msg req, rep;

	(void)state;
	give();
	bind_to(CALLER, fake_gid(PORT_GUID), 0, 0);
	m.qpn = OWN_QPN;
	m.dlid = PEER_LID;
	m.path_bits = 1;
	m.sl = 3;
	m.rate = 2;
	say(&m, -1);
	req = heard_cm();
	assert_int_equal(req.attr, CM_REQ);
	assert_int_equal(req.req.path.local_lid, OWN_LID);
	assert_int_equal(req.req.path.remote_lid, PEER_LID);
	assert_int_equal(req.req.path.sl, 3);
	assert_int_equal(req.req.path.rate, 2);
	assert_true(req.req.path.subnet_local);
	assert_int_equal(req.req.pkey, 0xffff);
	rep = (struct vb_cm_msg){ .attr = CM_REP,
				  .tid = req.tid,
				  .local_id = 77,
				  .remote_id = req.local_id };
	rep.rep.qpn = PEER_QPN;
	/* a REP from another port of the fabric is ignored */
	peer_says(&rep, PEER_LID + 1);
	assert_false(hears(&m));
	peer_says(&rep, PEER_LID);
	m = answer();
	assert_int_equal(m.event, IPC_CM_REPLY);
	assert_int_equal(m.qpn, PEER_QPN);
}

static void connect__not_with_queue_pairs_of_management(void **state)
{
	struct vb_ipc_cm m = path_of(CALLER, IPC_CM_CONNECT);

	(void)state;
	give();
	bind_to(CALLER, fake_gid(PORT_GUID), 0, 0);
	m.dlid = PEER_LID;
	m.qpn = 1;
	say(&m, -1);
	m = answer();
	assert_int_equal(m.event, IPC_CM_FAILED);
	assert_int_equal(m.status, EPERM);
}

static struct vb_cm_msg request(void)
{
	struct vb_cm_msg m = { .attr = CM_REQ, .tid = 9, .local_id = 77 };

	m.req.service_id = (uint64_t)SPACE << 16 | 7000;
	m.req.ca_guid = PEER_GUID;
	m.req.qpn = PEER_QPN;
	m.req.pkey = 0xffff;
	m.req.mtu = 4;
	m.req.path.local_lid = PEER_LID;
	m.req.path.remote_lid = OWN_LID;
	m.req.path.local_gid = fake_gid(PEER_GUID);
	m.req.path.remote_gid = fake_gid(PORT_GUID);
	m.req.path.sl = 5;
	m.req.path.rate = 2;
	m.req.path.subnet_local = true;
	return m;
}

static void listen_at(struct vb_gid gid)
{
	const struct vb_ipc_cm m = message(IPC_CM_LISTEN, LISTENER);

	give();
	bind_to(LISTENER, gid, 7000, 0);
	say(&m, -1);
	assert_int_equal(answer().status, 0);
}

static void request__by_lids(void **state)
{
	const struct vb_gid peer = fake_gid(PEER_GUID);
	struct vb_cm_msg req = request();
	struct vb_ipc_cm m;

	(void)state;
	listen_at(fake_gid(PORT_GUID));
	peer_says(&req, PEER_LID);
	m = answer();
	assert_int_equal(m.event, IPC_CM_REQUEST);
	assert_int_equal(m.listener, LISTENER);
	assert_int_equal(m.place, 1);
	assert_int_equal(m.dlid, PEER_LID);
	assert_int_equal(m.path_bits, 1);
	assert_int_equal(m.sl, 5);
	assert_int_equal(m.rate, 2);
	assert_int_equal(m.pkey, 0xffff);
	assert_true(vb_gid_equal(&m.dst, &peer));
}

/* The Service-ID of RFC 4755 contains the number of a queue pair. */
static void request__for_ipoib(void **state)
{
	const struct vb_ipc_cm l = message(IPC_CM_LISTEN, LISTENER);
	struct vb_ipc_cm b = message(IPC_CM_BIND, LISTENER), m;
	struct vb_cm_msg req = request();

	(void)state;
	give();
	b.src = fake_gid(PORT_GUID);
	b.space = 0xfe6b;
	b.src_port = 0x8112;
	b.flags = IPC_CM_PLAIN;
	say(&b, -1);
	assert_int_equal(answer().status, 0);
	say(&l, -1);
	assert_int_equal(answer().status, 0);
	req.req.service_id = 0x1000000000e6b113;
	peer_says(&req, PEER_LID);
	assert_false(hears(&m));
	req.tid++;
	req.local_id++;
	req.req.qpn++;
	req.req.service_id = 0x1000000000e6b112;
	req.private_data[3] = 7;
	peer_says(&req, PEER_LID);
	m = answer();
	assert_int_equal(m.event, IPC_CM_REQUEST);
	assert_int_equal(m.listener, LISTENER);
	assert_int_equal(m.private_data[3], 7);
}

/* A connection request goes to the Service-ID in the address that the program
 * gave. */
static void connect__to_ipoib(void **state)
{
	struct vb_ipc_cm m = path_of(CALLER, IPC_CM_CONNECT);

	(void)state;
	give();
	bind_to(CALLER, fake_gid(PORT_GUID), 0, 0);
	m.qpn = OWN_QPN;
	m.dlid = PEER_LID;
	m.flags = IPC_CM_PLAIN;
	m.space = 0xfe6b;
	m.dst_port = 0x8112;
	m.private_bytes = 8;
	m.private_data[0] = 9;
	say(&m, -1);
	assert_true(heard_cm().req.service_id == 0x1000000000e6b112);
}

/* --- services --- */

/* The administrator answers the question for a service with @count records. */
static struct vb_sa_service service_answers(unsigned count, uint16_t status)
{
	static uint8_t table[56 + 10 * VB_SA_SERVICE_BYTES];
	struct vb_sa_service s = { .pkey = 0xffff }, asked;
	uint8_t mad[VB_MAD_BYTES];
	struct ib_user_mad u;
	struct vb_sa_hdr h;

	assert_true(fake_hear(&fabric, &u, mad));
	assert_int_equal(u.agent_id, SA_AGENT);
	assert_true(vb_sa_hdr_get(mad, sizeof(mad), &h));
	assert_int_equal(h.attr_id, SA_SERVICE);
	assert_int_equal(h.method, SA_GET_TABLE);
	assert_true(vb_sa_service_get(mad, &(struct vb_sa_hdr){ 0 }, 0,
				      &asked) == false);
	h.method = SA_GET_TABLE_RESP;
	h.status = status;
	for (unsigned i = count; i-- > 0;) {
		s.id = 100 + i;
		s.gid = fake_gid(PEER_GUID + i);
		vb_sa_service_put(mad, &h, &s);
		memcpy(table + 56 + i * VB_SA_SERVICE_BYTES, mad + 56,
		       VB_SA_SERVICE_BYTES);
	}
	vb_sa_service_put(mad, &h, &s);
	memcpy(table, mad, 56);
	fake_say_mad(&fabric, SA_AGENT, 0, SM_LID, table,
		     56 + count * VB_SA_SERVICE_BYTES);
	vb_host_cm_poll(cm, now);
	return asked;
}

static void service__by_id_and_name(void **state)
{
	struct vb_ipc_cm m = path_of(CALLER, IPC_CM_SERVICE), e;
	const struct vb_gid first = fake_gid(PEER_GUID);
	struct vb_sa_service asked;

	(void)state;
	give();
	bind_to(CALLER, fake_gid(PORT_GUID), 0, 0);
	m.guid = 0x1234;
	say(&m, -1);
	asked = service_answers(2, 0);
	assert_int_equal(asked.id, 0x1234);
	e = answer();
	assert_int_equal(e.event, IPC_CM_SERVICES);
	assert_int_equal(e.status, 0);
	assert_int_equal(e.private_bytes, 2 * VB_IPC_CM_SERVICE_BYTES);
	assert_int_equal(vb_load_be(e.private_data, 8), 100);
	assert_int_equal(vb_load_be(e.private_data + 8, 2), 0xffff);
	assert_memory_equal(e.private_data + 10, first.raw, 16);
	assert_int_equal(vb_load_be(e.private_data + 26, 8), 101);
	/* a service is asked for by its name; the event has room for eight of
	 * the ten services that are found */
	m.private_bytes = 4;
	memcpy(m.private_data, "name", 4);
	say(&m, -1);
	asked = service_answers(10, 0);
	assert_string_equal(asked.name, "name");
	assert_int_equal(answer().private_bytes, 8 * VB_IPC_CM_SERVICE_BYTES);
}

static void service__that_there_is_not(void **state)
{
	struct vb_ipc_cm m = path_of(CALLER, IPC_CM_SERVICE);

	(void)state;
	give();
	bind_to(CALLER, fake_gid(PORT_GUID), 0, 0);
	say(&m, -1);
	(void)service_answers(0, 0);
	assert_int_equal(answer().status, EINVAL);
	say(&m, -1);
	(void)service_answers(1, SA_NO_RECORDS);
	assert_int_equal(answer().status, EINVAL);
	m.place = 2;
	say(&m, -1);
	assert_int_equal(answer().status, EPERM);
}

/* --- alternate paths --- */

static void alternate__is_in_the_req(void **state)
{
	struct vb_ipc_cm m = path_of(CALLER, IPC_CM_CONNECT);
	struct vb_cm_msg req, rep;

	(void)state;
	give();
	bind_to(CALLER, fake_gid(PORT_GUID), 0, 0);
	m.qpn = OWN_QPN;
	m.dlid = PEER_LID;
	m.alternate = (struct vb_ipc_cm_alternate){ .place = 1,
						    .dlid = PEER_LID + 1,
						    .sl = 4,
						    .rate = 3,
						    .ack_timeout = 20,
						    .src = m.src,
						    .dst = m.dst };
	say(&m, -1);
	req = heard_cm();
	assert_int_equal(req.req.alternate.local_lid, OWN_LID & ~1);
	assert_int_equal(req.req.alternate.remote_lid, PEER_LID + 1);
	assert_true(vb_gid_equal(&req.req.alternate.local_gid, &m.src));
	assert_true(vb_gid_equal(&req.req.alternate.remote_gid, &m.dst));
	assert_int_equal(req.req.alternate.sl, 4);
	assert_int_equal(req.req.alternate.rate, 3);
	assert_int_equal(req.req.alternate.ack_timeout, 20);
	assert_true(req.req.alternate.subnet_local);
	rep = (struct vb_cm_msg){ .attr = CM_REP,
				  .tid = req.tid,
				  .local_id = 77,
				  .remote_id = req.local_id };
	rep.rep.qpn = PEER_QPN;
	rep.rep.failover = CM_FAILOVER_REJECTED;
	peer_says(&rep, PEER_LID);
	m = answer();
	assert_int_equal(m.event, IPC_CM_REPLY);
	assert_true(m.flags & IPC_CM_NO_ALTERNATE);
}

static void alternate__is_of_the_programs_own_port(void **state)
{
	struct vb_ipc_cm m = path_of(CALLER, IPC_CM_CONNECT);

	(void)state;
	give();
	bind_to(CALLER, fake_gid(PORT_GUID), 0, 0);
	m.qpn = OWN_QPN;
	m.dlid = PEER_LID;
	m.alternate.dlid = PEER_LID;
	m.alternate.place = 2;
	m.alternate.src = m.src;
	say(&m, -1);
	assert_int_equal(answer().status, EADDRNOTAVAIL);
	m.alternate.place = 1;
	m.alternate.src = m.dst;
	say(&m, -1);
	assert_int_equal(answer().status, EADDRNOTAVAIL);
}

/* Delivers a request with an alternate path from the peer's LID @local to this
 * side's LID @remote. The program accepts the request, and with @takes also
 * that path. Returns the field Failover Accepted of the REP. */
static unsigned failover(uint16_t local, uint16_t remote, bool takes,
			 struct vb_ipc_cm *m)
{
	static uint32_t number = 100;
	struct vb_ipc_cm accept = message(IPC_CM_ACCEPT, 0);
	struct vb_cm_msg req = request(), rep;

	req.local_id = number++;
	req.req.qpn += req.local_id;
	req.req.alternate = req.req.path;
	req.req.alternate.local_lid = local;
	req.req.alternate.remote_lid = remote;
	req.req.alternate.sl = 6;
	peer_says(&req, PEER_LID);
	*m = answer();
	assert_int_equal(m->event, IPC_CM_REQUEST);
	accept.id = m->id;
	accept.place = 1;
	accept.qpn = OWN_QPN;
	if (takes)
		accept.alternate = m->alternate;
	say(&accept, -1);
	rep = heard_cm();
	assert_int_equal(rep.attr, CM_REP);
	return rep.rep.failover;
}

static void alternate__is_offered_to_the_program(void **state)
{
	const struct vb_gid peer = fake_gid(PEER_GUID);
	struct vb_ipc_cm m;

	(void)state;
	listen_at(fake_gid(PORT_GUID));
	assert_int_equal(failover(PEER_LID + 1, OWN_LID, true, &m),
			 CM_FAILOVER_ACCEPTED);
	assert_int_equal(m.alternate.place, 1);
	assert_int_equal(m.alternate.dlid, PEER_LID + 1);
	assert_int_equal(m.alternate.path_bits, 1);
	assert_int_equal(m.alternate.sl, 6);
	assert_true(vb_gid_equal(&m.alternate.dst, &peer));
	assert_int_equal(failover(PEER_LID + 1, OWN_LID, false, &m),
			 CM_FAILOVER_REJECTED);
	/* The connection is made without its alternate path if that path ends
	 * at a LID that is not this port's, or begins at a multicast LID. */
	assert_int_equal(failover(PEER_LID, PEER_LID, true, &m),
			 CM_FAILOVER_REJECTED);
	assert_int_equal(m.alternate.place, 0);
	assert_int_equal(failover(0xc001, OWN_LID, true, &m),
			 CM_FAILOVER_REJECTED);
	assert_int_equal(m.alternate.place, 0);
	/* a request without an alternate path */
	assert_int_equal(failover(0, 0, true, &m), CM_FAILOVER_ACCEPTED);
	assert_int_equal(m.alternate.place, 0);
}

static unsigned refused(struct vb_cm_msg req)
{
	struct vb_cm_msg m;

	peer_says(&req, PEER_LID);
	m = heard_cm();
	assert_int_equal(m.attr, CM_REJ);
	return m.answer.reason;
}

/* No peer can make this host send to a third host. */
static void request__of_a_path_that_it_did_not_take(void **state)
{
	struct vb_cm_msg req = request();

	(void)state;
	listen_at((struct vb_gid){ { 0 } });
	req.req.path.local_lid++;
	assert_int_equal(refused(req), CM_REJ_INVALID_GID);
	req = request();
	req.req.path.remote_lid = OWN_LID + 1;
	assert_int_equal(refused(req), CM_REJ_INVALID_GID);
	req = request();
	req.req.path.remote_gid = fake_gid(0x1234);
	assert_int_equal(refused(req), CM_REJ_INVALID_GID);
}

/* RoCEv2 does not reach a program that has only adapters of fabrics, so the
 * broker takes no UDP port for it. */
static void program__needs_no_roce(void **state)
{
	const struct vb_ipc_cm bind = message(IPC_CM_BIND, 1);
	const struct vb_ipc_cm place = message(IPC_CM_PLACE, 0);
	struct vb_mail mail = { 0 };

	(void)state;
	mail.len = vb_ipc_cm_put(mail.bytes, &bind);
	assert_true(vb_host_cm_needs_roce(client, &mail));
	mail.len = vb_ipc_cm_put(mail.bytes, &place);
	assert_false(vb_host_cm_needs_roce(client, &mail));
	give();
	mail.len = vb_ipc_cm_put(mail.bytes, &bind);
	assert_false(vb_host_cm_needs_roce(client, &mail));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(path__is_the_administrators),
		TEST(path__without_a_life_time),
		TEST(path__that_there_is_not),
		TEST(path__of_either_membership),
		TEST(path__of_a_class_of_quality),
		TEST(path__nobody_answers),
		TEST(path__is_of_the_programs_own_port),
		TEST(connect__by_lids),
		TEST(connect__not_with_queue_pairs_of_management),
		TEST(request__by_lids),
		TEST(request__for_ipoib),
		TEST(connect__to_ipoib),
		TEST(service__by_id_and_name),
		TEST(service__that_there_is_not),
		TEST(alternate__is_in_the_req),
		TEST(alternate__is_of_the_programs_own_port),
		TEST(alternate__is_offered_to_the_program),
		TEST(request__of_a_path_that_it_did_not_take),
		TEST(program__needs_no_roce),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
