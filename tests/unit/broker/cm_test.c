/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks the broker's connection manager: which resumed connections it accepts
 * after a restart, and the limits of one user. */
#include "broker/cm.h"
#include "broker/outbox.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/user_has.h"
#include "tests/unit/netns.h"

#define OWN_QPN	 0x1234
#define ID	 7
#define STRANGER 1234 /* a user without privileges */

static struct vb_host_cm *cm;
static struct vb_cm_client *client;
static struct vb_users users;
static struct vb_user *user;
static int ends[2];

static bool owns(void *arg, const struct vb_process *who, uint32_t qpn)
{
	(void)arg, (void)who;
	return qpn == OWN_QPN;
}

static int begin(void **state)
{
	const struct vb_process self = { .pid = getpid(), .uid = getuid() };

	(void)state;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) ||
	    vb_host_cm_create(owns, NULL, VB_SEC, &cm))
		return -1;
	user = vb_user_enter(&users, STRANGER, false);
	client = user ? vb_host_cm_join(cm, ends[0], &self, user) : NULL;
	return client ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	vb_host_cm_leave(client, VB_SEC);
	vb_host_cm_destroy(cm);
	for (unsigned i = 0; i < VB_QUOTAS; i++)
		assert_int_equal(user_has(user, i), 0);
	vb_user_leave(user);
	close(ends[0]);
	close(ends[1]);
	return 0;
}

static int take(const uint8_t *bytes, size_t len, vb_time now)
{
	struct vb_mail mail = { .len = len };

	memcpy(mail.bytes, bytes, len);
	return vb_host_cm_take(client, &mail, now);
}

static struct vb_ipc_cm ours(void)
{
	return (struct vb_ipc_cm){
		.kind = IPC_CM_RESUME,
		.version = VB_IPC_CM_VERSION,
		.id = ID,
		.status = IPC_CM_AT_END,
		.src = vb_gid_from_ipv4((const uint8_t[]){ 127, 0, 0, 1 }),
		.dst = vb_gid_from_ipv4((const uint8_t[]){ 192, 0, 2, 1 }),
		.qpn = OWN_QPN,
		.peer_qpn = 5,
		.local_id = 6,
		.remote_id = 8,
	};
}

/* Returns whether the broker accepts a RESUME. It sends an answer only to
 * refuse it. */
static bool is_believed(const struct vb_ipc_cm *m, vb_time now)
{
	uint8_t bytes[VB_IPC_CM_BYTES];
	size_t len = vb_ipc_cm_put(bytes, m);
	struct vb_ipc_cm said;
	ssize_t n;

	assert_int_equal(take(bytes, len, now), 0);
	n = recv(ends[1], bytes, sizeof(bytes), MSG_DONTWAIT);
	if (n < 0)
		return true;
	assert_true(vb_ipc_cm_get(bytes, (size_t)n, &said));
	assert_int_equal(said.event, IPC_CM_DISCONNECTED);
	assert_int_equal(said.id, ID);
	return false;
}

static void resume__what_a_broker_before_knew(void **state)
{
	struct vb_ipc_cm m = ours();

	(void)state;
	assert_true(is_believed(&m, 11 * VB_SEC));
}

static void resume__a_request_has_no_queue_pair(void **state)
{
	struct vb_ipc_cm m = ours();

	(void)state;
	m.id |= VB_IPC_CM_INCOMING;
	m.status = IPC_CM_AT_REQUEST;
	m.qpn = 0;
	assert_true(is_believed(&m, VB_SEC));
}

static void resume__too_late(void **state)
{
	struct vb_ipc_cm m = ours();

	(void)state;
	assert_false(is_believed(&m, 20 * VB_SEC));
}

static void resume__another_hosts(void **state)
{
	struct vb_ipc_cm m = ours();

	(void)state;
	m.src = vb_gid_from_ipv4((const uint8_t[]){ 192, 0, 2, 2 });
	assert_false(is_believed(&m, VB_SEC));
	m.src = vb_gid_from_ipv4((const uint8_t[]){ 0, 0, 0, 0 });
	assert_false(is_believed(&m, VB_SEC));
	m.src = vb_gid_from_ipv4((const uint8_t[]){ 224, 0, 0, 1 });
	assert_false(is_believed(&m, VB_SEC));
}

static void resume__another_programs(void **state)
{
	struct vb_ipc_cm m = ours();

	(void)state;
	m.qpn = OWN_QPN + 1;
	assert_false(is_believed(&m, VB_SEC));
	m.status = IPC_CM_AT_REQUEST;
	assert_false(is_believed(&m, VB_SEC));
}

/* Sends a request and returns the errno in the answer. */
static int ask(const struct vb_ipc_cm *m)
{
	uint8_t bytes[VB_IPC_CM_BYTES];
	size_t len = vb_ipc_cm_put(bytes, m);
	struct vb_ipc_cm done;
	ssize_t n;

	assert_int_equal(take(bytes, len, VB_SEC), 0);
	n = recv(ends[1], bytes, sizeof(bytes), MSG_DONTWAIT);
	assert_true(n > 0 && vb_ipc_cm_get(bytes, (size_t)n, &done));
	assert_int_equal(done.kind, IPC_CM_DONE);
	assert_int_equal(done.tid, m->tid);
	return done.status;
}

static int bind_to(uint32_t id, uint16_t port, struct vb_gid address)
{
	const struct vb_ipc_cm m = { .kind = IPC_CM_BIND,
				     .version = VB_IPC_CM_VERSION,
				     .id = id,
				     .tid = id + 1,
				     .space = 0x106,
				     .src = address,
				     .src_port = port };

	return ask(&m);
}

static struct vb_gid v4(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
	return vb_gid_from_ipv4((const uint8_t[]){ a, b, c, d });
}

static void bind__addresses_of_the_host(void **state)
{
	static const struct vb_gid any = { { 0 } }, one = { { [15] = 1 } };
	static const struct vb_gid other = { { 0x20, 1, 0x0d,
					       0xb8, [15] = 1 } };
	static const struct vb_gid near = { { 0xfe, 0x80, [15] = 9 } };

	(void)state;
	for (int nonlocal = 0; nonlocal < 2; nonlocal++) {
		netns_write("/proc/sys/net/ipv4/ip_nonlocal_bind",
			    nonlocal ? "1" : "0");
		netns_write("/proc/sys/net/ipv6/ip_nonlocal_bind",
			    nonlocal ? "1" : "0");
		assert_int_equal(bind_to(1, 7000, v4(192, 0, 2, 1)),
				 EADDRNOTAVAIL);
		assert_int_equal(bind_to(1, 7000, v4(224, 0, 0, 1)),
				 EADDRNOTAVAIL);
		assert_int_equal(bind_to(1, 7000, other), EADDRNOTAVAIL);
		assert_int_equal(bind_to(1, 7000, near), EADDRNOTAVAIL);
	}
	assert_int_equal(bind_to(2, 7002, any), 0);
	assert_int_equal(bind_to(3, 7003, v4(0, 0, 0, 0)), 0);
	assert_int_equal(bind_to(4, 7004, v4(127, 0, 0, 1)), 0);
	assert_int_equal(bind_to(5, 7005, v4(127, 9, 8, 7)), 0);
	assert_int_equal(bind_to(6, 7006, one), 0);
}

static struct vb_ipc_cm call_from(uint32_t id, struct vb_gid address,
				  uint32_t qpn)
{
	return (struct vb_ipc_cm){ .kind = IPC_CM_CONNECT,
				   .version = VB_IPC_CM_VERSION,
				   .id = id,
				   .src = address,
				   .dst = v4(127, 0, 0, 1),
				   .dst_port = 7,
				   .qpn = qpn };
}

/* Sends a CONNECT and returns the errno of the failure event; 0: none came. */
static int call(const struct vb_ipc_cm *m)
{
	uint8_t bytes[VB_IPC_CM_BYTES];
	size_t len = vb_ipc_cm_put(bytes, m);
	struct vb_ipc_cm said;
	ssize_t n;

	assert_int_equal(take(bytes, len, VB_SEC), 0);
	n = recv(ends[1], bytes, sizeof(bytes), MSG_DONTWAIT);
	if (n < 0)
		return 0;
	assert_true(vb_ipc_cm_get(bytes, (size_t)n, &said));
	assert_int_equal(said.event, IPC_CM_FAILED);
	return said.status;
}

static int connect_from(uint32_t id, struct vb_gid address, uint32_t qpn)
{
	const struct vb_ipc_cm m = call_from(id, address, qpn);

	return call(&m);
}

static void connect__names_are_of_a_way_to_itself(void **state)
{
	const struct vb_gid here = v4(127, 0, 0, 1);
	struct vb_ipc_cm m = call_from(1, here, OWN_QPN);

	(void)state;
	assert_int_equal(bind_to(1, 7010, here), 0);
	m.dst_name = v4(127, 0, 0, 2);
	m.dst = v4(127, 0, 0, 9);
	assert_int_equal(call(&m), EADDRNOTAVAIL);
	m.dst_name = (struct vb_gid){ { 0 } };
	m.src_name = v4(127, 0, 0, 2);
	assert_int_equal(call(&m), EADDRNOTAVAIL);
	m.dst = here;
	assert_int_equal(call(&m), 0);
}

static void connect__in_its_own_name(void **state)
{
	const struct vb_gid here = v4(127, 0, 0, 1);

	(void)state;
	netns_write("/proc/sys/net/ipv4/ip_nonlocal_bind", "1");
	assert_int_equal(bind_to(1, 7010, here), 0);
	assert_int_equal(connect_from(1, v4(192, 0, 2, 1), OWN_QPN),
			 EADDRNOTAVAIL);
	assert_int_equal(connect_from(1, here, OWN_QPN + 1), EPERM);
	assert_int_equal(connect_from(1, here, OWN_QPN), 0);
}

/* A user who is not trusted can have only a limited number of ports and ids. */
static void bind__a_users_ports(void **state)
{
	uint32_t id = 1;

	(void)state;
	for (unsigned i = 0; i < VB_IPC_CM_USER_PORTS; i++, id++)
		assert_int_equal(
			bind_to(id, (uint16_t)(2000 + i), v4(127, 0, 0, 1)), 0);
	assert_int_equal(bind_to(id, 1999, v4(127, 0, 0, 1)), ENOBUFS);
	assert_int_equal(user_has(user, VB_QUOTA_PORTS), VB_IPC_CM_USER_PORTS);
	assert_int_equal(user_has(user, VB_QUOTA_IDS), VB_IPC_CM_USER_PORTS);
}

/* A program that sends requests and reads no answers loses its session. */
static void answers__that_nobody_reads(void **state)
{
	const struct vb_ipc_cm hello = { .kind = IPC_CM_HELLO,
					 .version = VB_IPC_CM_VERSION };
	uint8_t bytes[VB_IPC_CM_BYTES];
	size_t len = vb_ipc_cm_put(bytes, &hello), asked = 0;

	(void)state;
	while (!vb_host_cm_error(client) && asked++ < 1000000)
		assert_int_equal(take(bytes, len, VB_SEC), 0);
	assert_int_equal(vb_host_cm_error(client), -ENOBUFS);
	assert_in_range(asked, VB_OUTBOX_BYTES / 1000, VB_OUTBOX_BYTES / 384);
	assert_in_range(user_has(user, VB_QUOTA_BYTES), VB_OUTBOX_BYTES - 1000,
			VB_OUTBOX_BYTES);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(resume__what_a_broker_before_knew),
		TEST(resume__a_request_has_no_queue_pair),
		TEST(resume__too_late),
		TEST(resume__another_hosts),
		TEST(resume__another_programs),
		TEST(bind__addresses_of_the_host),
		TEST(connect__in_its_own_name),
		TEST(connect__names_are_of_a_way_to_itself),
		TEST(bind__a_users_ports),
		TEST(answers__that_nobody_reads),
	};

	if (!netns_enter())
		return NETNS_SKIP;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
