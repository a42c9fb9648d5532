/* SPDX-License-Identifier: BSD-2-Clause */
/* What the connection manager believes of programs that come back. */
#include "broker/cm.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/netns.h"

#define OWN_QPN 0x1234
#define ID	7

static struct vb_host_cm *cm;
static struct vb_cm_client *client;
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
	client = vb_host_cm_join(cm, ends[0], &self);
	return client ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	vb_host_cm_leave(client, VB_SEC);
	vb_host_cm_destroy(cm);
	close(ends[0]);
	close(ends[1]);
	return 0;
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

/* Nothing is said of what is believed. */
static bool is_believed(const struct vb_ipc_cm *m, vb_time now)
{
	uint8_t bytes[VB_IPC_CM_BYTES];
	size_t len = vb_ipc_cm_put(bytes, m);
	struct vb_ipc_cm said;
	ssize_t n;

	assert_int_equal(vb_host_cm_take(client, bytes, len, now), 0);
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

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(resume__what_a_broker_before_knew),
		TEST(resume__a_request_has_no_queue_pair),
		TEST(resume__too_late),
		TEST(resume__another_hosts),
		TEST(resume__another_programs),
	};

	if (!netns_enter())
		return NETNS_SKIP;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
