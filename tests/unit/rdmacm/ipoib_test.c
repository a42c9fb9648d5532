/* SPDX-License-Identifier: BSD-2-Clause */
/* IP addresses of an IPoIB interface. The interface is the loopback interface
 * of a network namespace, and the test is its process. */
#include "tests/unit/rdmacm/fake.h"

#include <arpa/inet.h>
#include <endian.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/netns.h"
#include "wire/ipoib.h"

#define OWN  "127.0.0.1"
#define PEER "192.0.2.7"

static struct rdma_event_channel *channel;
static struct rcm_id *id;
static int listener;
static pthread_t process;
static unsigned asks;

/* The GID that the fake device has. */
static const struct vb_gid own_gid = { { [10] = 0xff, 0xff, 10, 77, 0, 1 } };
static const struct vb_gid peer_gid = { { 0xfe, 0x80, [15] = 9 } };

static void answer(int fd)
{
	uint8_t bytes[VB_IPOIB_BYTES];
	struct vb_gid peer;
	struct vb_ipoib m;
	ssize_t n = recv(fd, bytes, sizeof(bytes), 0);

	if (n <= 0 || !vb_ipoib_get(bytes, (size_t)n, &m))
		return;
	peer = vb_gid_from_ipv4((const uint8_t[]){ 192, 0, 2, 7 });
	if (m.op == IPOIB_OWN) {
		m.gid = own_gid;
		m.pkey = 0x8002;
	} else {
		asks++;
		m.gid = peer_gid;
		m.error = vb_gid_equal(&m.ip, &peer) ? 0 : -EHOSTUNREACH;
	}
	(void)!send(fd, bytes, vb_ipoib_put(bytes, &m), MSG_NOSIGNAL);
}

static void *serve(void *arg)
{
	int fd;

	(void)arg;
	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		answer(fd);
		close(fd);
	}
	return NULL;
}

static int setup(void **state)
{
	struct sockaddr_un a;
	socklen_t len = vb_ipoib_address(&a, "lo");

	(void)fake_setup(state);
	fake_device.ib = true;
	fake_device.place = 3;
	rcm.has_ib = true;
	asks = 0;
	channel = fake_channel();
	id = fake_id(channel, RDMA_PS_TCP, IBV_QPT_RC, RCM_NEW);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	return listener < 0 || bind(listener, (struct sockaddr *)&a, len) ||
	       listen(listener, 8) ||
	       pthread_create(&process, NULL, serve, NULL);
}

static int teardown(void **state)
{
	(void)state;
	shutdown(listener, SHUT_RDWR);
	pthread_join(process, NULL);
	close(listener);
	id->acked = id->delivered;
	rdma_destroy_id(&id->pub);
	rdma_destroy_event_channel(channel);
	rcm.has_ib = false;
	return 0;
}

static struct vb_gid ip(const char *text)
{
	struct in_addr a;

	assert_int_equal(inet_pton(AF_INET, text, &a), 1);
	return vb_gid_from_ipv4((const uint8_t *)&a);
}

static void choose__the_adapter_of_the_interface(void **state)
{
	const struct vb_gid own = ip(OWN), other = ip(PEER);

	(void)state;
	id->device = NULL;
	assert_int_equal(rcm_ipoib_choose(id, &other), -ENODEV);
	assert_null(id->device);
	assert_int_equal(rcm_ipoib_choose(id, &own), 0);
	assert_ptr_equal(id->device, &fake_device);
	assert_int_equal(id->path.place, 3);
	assert_int_equal(id->path.pkey, 0x8002);
	assert_true(vb_gid_equal(&id->path.src, &own_gid));
}

static void choose__nothing_without_the_process(void **state)
{
	const struct vb_gid own = ip(OWN);

	(void)state;
	shutdown(listener, SHUT_RDWR);
	assert_int_equal(rcm_ipoib_choose(id, &own), -ENODEV);
}

static void neighbour__is_asked_for(void **state)
{
	const struct vb_gid own = ip(OWN), peer = ip(PEER);
	const struct vb_gid silent = ip("192.0.2.8");
	struct vb_gid gid;

	(void)state;
	assert_int_equal(rcm_ipoib_neighbour(&own, &peer, &gid), 0);
	assert_true(vb_gid_equal(&gid, &peer_gid));
	assert_int_equal(asks, 1);
	assert_int_equal(rcm_ipoib_neighbour(&own, &silent, &gid),
			 -EHOSTUNREACH);
	assert_int_equal(asks, 2);
	/* nobody answers for this host's own address on the network */
	assert_int_equal(rcm_ipoib_neighbour(&own, &own, &gid), 0);
	assert_true(vb_gid_equal(&gid, &own_gid));
	assert_int_equal(asks, 2);
	assert_int_equal(rcm_ipoib_neighbour(&peer, &own, &gid), -ENODEV);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(choose__the_adapter_of_the_interface),
		TEST(choose__nothing_without_the_process),
		TEST(neighbour__is_asked_for),
	};

	if (!netns_enter())
		return NETNS_SKIP;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
