/* SPDX-License-Identifier: BSD-2-Clause */
/* IP addresses of an IPoIB interface. The loopback interface of a network
 * namespace stands for the interface, and the test plays the process behind
 * it. */
#include "tests/unit/rdmacm/fake.h"

#include <arpa/inet.h>
#include <endian.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "engine/ipoib_path.h"
#include "tests/unit/netns.h"
#include "wire/ipoib.h"

#define OWN  "192.0.2.1"
#define PEER "192.0.2.7"

static struct rdma_event_channel *channel;
static struct rcm_id *id;
static int listener;
static pthread_t process;
static _Atomic unsigned asks;
/* the time, in ns, that the fake process takes to answer about a neighbour, and
 * about the interface itself */
static _Atomic long slow, slow_own;
/* number of connections that the fake process first closes without an answer */
static _Atomic unsigned refusals;

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
		nanosleep(&(struct timespec){ slow_own / (long)VB_SEC,
					      slow_own % (long)VB_SEC },
			  NULL);
		m.gid = own_gid;
		m.pkey = 0x8002;
		m.qkey = 0xb1b;
	} else {
		asks++;
		if (slow)
			nanosleep(&(struct timespec){ 0, slow }, NULL);
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
		if (refusals)
			refusals--;
		else
			answer(fd);
		close(fd);
	}
	return NULL;
}

static int setup(void **state)
{
	(void)fake_setup(state);
	fake_device.ib = true;
	fake_device.place = 3;
	rcm.has_ib = true;
	asks = refusals = 0;
	slow = slow_own = 0;
	channel = fake_channel();
	id = fake_id(channel, RDMA_PS_TCP, IBV_QPT_RC, RCM_NEW);
	listener = vb_ipoib_listen("lo", 8);
	return listener < 0 || pthread_create(&process, NULL, serve, NULL);
}

static int teardown(void **state)
{
	(void)state;
	shutdown(listener, SHUT_RDWR);
	pthread_join(process, NULL);
	close(listener);
	vb_ipoib_remove("lo");
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

/* The socket file of a process that was killed is still there: no process
 * answers at it. */
static void choose__nothing_of_a_killed_process(void **state)
{
	const struct vb_gid own = ip(OWN);
	int fd;

	(void)state;
	fd = vb_ipoib_listen("ib9", 8);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(vb_ipoib_connect("ib9"), -ECONNREFUSED);
	fd = vb_ipoib_listen("ib9", 8);
	assert_true(fd >= 0);
	close(vb_ipoib_connect("ib9"));
	close(fd);
	vb_ipoib_remove("ib9");
	assert_int_equal(vb_ipoib_connect("ib9"), -ECONNREFUSED);
	assert_int_equal(vb_ipoib_connect("../ib9"), -EINVAL);
	assert_int_equal(rcm_ipoib_choose(id, &own), 0);
}

static void choose__nothing_without_the_process(void **state)
{
	const struct vb_gid own = ip(OWN);

	(void)state;
	shutdown(listener, SHUT_RDWR);
	assert_int_equal(rcm_ipoib_choose(id, &own), -ENODEV);
}

/* Chooses until the result is @wanted, at most five times: on a full machine
 * the process may not come to refuse within a second, which is a timeout. */
static int choose_until(const struct vb_gid *own, int wanted)
{
	int rc = rcm_ipoib_choose(id, own);

	for (int i = 1; i < 5 && rc != wanted; i++) {
		assert_true(rc == -EAGAIN || rc == -ETIMEDOUT);
		rc = rcm_ipoib_choose(id, own);
	}
	return rc;
}

/* The process serves a limited number of programs at a time; an entry is free
 * soon. */
static void choose__of_a_busy_process(void **state)
{
	const struct vb_gid own = ip(OWN);

	(void)state;
	refusals = 5;
	assert_int_equal(choose_until(&own, 0), 0);
	assert_int_equal(refusals, 0);
	refusals = UINT_MAX;
	assert_int_equal(choose_until(&own, -EAGAIN), -EAGAIN);
}

/* The process is stopped and never answers. */
static void choose__of_a_process_that_hangs(void **state)
{
	const struct vb_gid own = ip(OWN);
	const vb_time start = vb_clock_read();

	(void)state;
	slow_own = 1300 * (long)VB_MSEC;
	assert_int_equal(rcm_ipoib_choose(id, &own), -ETIMEDOUT);
	assert_in_range(vb_clock_read() - start, 900 * VB_MSEC, 3 * VB_SEC);
}

/* In the port space IPoIB, datagrams get the Q_Key of the IPoIB interface. */
static void choose__the_qkey_of_the_interface(void **state)
{
	const struct vb_gid own = ip(OWN);

	(void)state;
	assert_int_equal(rcm_ipoib_choose(id, &own), 0);
	assert_int_equal(id->qkey, RCM_QKEY);
	id->pub.ps = RDMA_PS_IPOIB;
	assert_int_equal(rcm_ipoib_choose(id, &own), 0);
	assert_int_equal(id->qkey, 0xb1b);
}

/* Begins to resolve the address @to; returns how long that took. */
static vb_time begin(const char *to, int timeout_ms)
{
	struct sockaddr_in from = { .sin_family = AF_INET }, dst = from;
	const vb_time start = vb_clock_read();

	inet_pton(AF_INET, OWN, &from.sin_addr);
	inet_pton(AF_INET, to, &dst.sin_addr);
	dst.sin_port = htons(7001);
	id->device = NULL;
	assert_int_equal(rdma_resolve_addr(&id->pub, (struct sockaddr *)&from,
					   (struct sockaddr *)&dst, timeout_ms),
			 0);
	return vb_clock_read() - start;
}

/* Checks that an event of type @what with @status comes. */
static void hears(enum rdma_cm_event_type what, int status)
{
	struct rdma_cm_event *e;

	for (unsigned i = 0; i < 500 && !fake_is_readable(channel->fd); i++)
		nanosleep(&(struct timespec){ 0, 10 * VB_MSEC }, NULL);
	assert_int_equal(rdma_get_cm_event(channel, &e), 0);
	assert_int_equal(e->event, what);
	assert_int_equal(e->status, status);
	assert_int_equal(rdma_ack_cm_event(e), 0);
}

static void resolve__asks_for_the_neighbour(void **state)
{
	(void)state;
	(void)begin(PEER, 2000);
	hears(RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(asks, 1);
	assert_int_equal(id->state, RCM_RESOLVED);
	assert_true(vb_gid_equal(&id->path.dst, &peer_gid));
	assert_memory_equal(id->pub.route.addr.addr.ibaddr.dgid.raw,
			    peer_gid.raw, 16);
	assert_int_equal(id->path.dst_port, 7001);
	id->state = RCM_BOUND;
	(void)begin("192.0.2.8", 2000);
	hears(RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH);
	assert_int_equal(id->state, RCM_BOUND);
	/* no host on the network answers for this host's own address, so the
	 * process is asked */
	(void)begin(OWN, 2000);
	hears(RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(asks, 2);
}

/* Standard error has a sentence about a neighbour that nobody answers for. */
static void resolve__says_why_it_failed(void **state)
{
	int screen = dup(STDERR_FILENO), ends[2];
	char said[1024] = "";

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	dup2(ends[1], STDERR_FILENO);
	(void)begin("192.0.2.9", 2000);
	hears(RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH);
	dup2(screen, STDERR_FILENO);
	(void)!read(ends[0], said, sizeof(said) - 1);
	assert_non_null(strstr(said, "rdmacm: 192.0.2.9 is not resolved to a "
				     "device: No route to host"));
	close(screen);
	close(ends[0]);
	close(ends[1]);
}

/* rdma_resolve_addr() returns before the process has answered. */
static void resolve__does_not_wait(void **state)
{
	(void)state;
	slow = 400 * VB_MSEC;
	assert_in_range(begin(PEER, 2000), 0, 300 * VB_MSEC);
	assert_int_equal(id->state, RCM_RESOLVING);
	assert_false(fake_is_readable(channel->fd));
	hears(RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_true(vb_gid_equal(&id->path.dst, &peer_gid));
}

static void resolve__ends_in_its_time(void **state)
{
	vb_time start;

	(void)state;
	slow = 999 * VB_MSEC;
	start = vb_clock_read();
	(void)begin(PEER, 100);
	hears(RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	assert_in_range(vb_clock_read() - start, 100 * VB_MSEC, 950 * VB_MSEC);
	assert_int_equal(id->state, RCM_BOUND);
	/* after the timeout the id can be resolved again */
	nanosleep(&(struct timespec){ 1, 0 }, NULL);
	slow = 0;
	(void)begin(PEER, 2000);
	hears(RDMA_CM_EVENT_ADDR_RESOLVED, 0);
}

/* The process serves a bounded number of programs at a time. */
static void resolve__of_a_busy_process(void **state)
{
	(void)state;
	slow = 0;
	id->device = &fake_device;
	refusals = 0;
	(void)begin(PEER, 2000);
	hears(RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	id->state = RCM_BOUND;
	/* the answer about the interface itself comes first */
	slow = 50 * VB_MSEC;
	(void)begin(PEER, 2000);
	refusals = 3;
	hears(RDMA_CM_EVENT_ADDR_RESOLVED, 0);
}

/* The program destroys the id while its address is being resolved. */
static void resolve__is_forgotten(void **state)
{
	const vb_time start = vb_clock_read();

	(void)state;
	slow = 900 * VB_MSEC;
	(void)begin(PEER, 2000);
	rdma_destroy_id(&id->pub);
	assert_in_range(vb_clock_read() - start, 0, 700 * VB_MSEC);
	assert_false(fake_is_readable(channel->fd));
	id = fake_id(channel, RDMA_PS_TCP, IBV_QPT_RC, RCM_NEW);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(choose__the_adapter_of_the_interface),
		TEST(choose__nothing_of_a_killed_process),
		TEST(choose__nothing_without_the_process),
		TEST(choose__of_a_busy_process),
		TEST(choose__of_a_process_that_hangs),
		TEST(choose__the_qkey_of_the_interface),
		TEST(resolve__asks_for_the_neighbour),
		TEST(resolve__says_why_it_failed),
		TEST(resolve__does_not_wait),
		TEST(resolve__ends_in_its_time),
		TEST(resolve__of_a_busy_process),
		TEST(resolve__is_forgotten),
	};

	if (!netns_enter() || system("ip addr add " OWN "/32 dev lo") != 0)
		return NETNS_SKIP;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
