/* SPDX-License-Identifier: BSD-2-Clause */
/* The process of a fabric, run in the test: two switches with two links, and an
 * adapter at each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <infiniband/umad.h>

#include "base/clock.h"
#include "base/fdmail.h"
#include "engine/fabric_path.h"
#include "fabric/net_priv.h"
#include "fabricd/draw.h"
#include "tests/support/fab_run.h"
#include "tests/support/fabric_host.h"
#include "wire/lrh.h"
#include "wire/mad_frame.h"
#include "wire/smp.h"

#define LOOPING 9  /* a LID whose route goes round between the two switches */
#define SHORT	36 /* bytes of a frame that takes one block of a queue */

static const char text[] = "Switch 8 \"S1\"\n"
			   "[1] \"H1\"[1]\n"
			   "[3] \"S2\"[3]\n"
			   "[4] \"S2\"[4]\n"
			   "Switch 8 \"S2\"\n"
			   "[1] \"H2\"[1]\n"
			   "[3] \"S1\"[3]\n"
			   "[4] \"S1\"[4]\n"
			   "#! link \"S1\"[3] rate=free\n"
			   "#! link \"S1\"[4] rate=free\n"
			   "Hca 1 \"H1\"\n"
			   "[1] \"S1\"[1]\n"
			   "Hca 1 \"H2\"\n"
			   "[1] \"S2\"[1]\n"
			   "#! node \"S1\" ethernet=3\n";

static struct fabric_host w;

static int start(void **state)
{
	fabric_host_begin(&w, "serve", text);
	alarm(20);
	return 0;
}

static int finish(void **state)
{
	alarm(0);
	return fabric_host_end(&w);
}

/* Make all links Active, so that they forward data. */
static void activate(void)
{
	static const struct {
		const char *node;
		uint8_t port;
	} ends[] = { { "H1", 1 }, { "S1", 1 }, { "H2", 1 }, { "S2", 1 },
		     { "S1", 3 }, { "S1", 4 }, { "S2", 3 }, { "S2", 4 } };
	vb_time now;

	usleep(1000); /* wait until the links are trained */
	now = vb_clock_read();
	fab_run(w.f->net, now);
	for (unsigned state = FAB_ARMED; state <= FAB_ACTIVE; state++)
		for (unsigned i = 0; i < VB_COUNT(ends); i++)
			assert_int_equal(
				vb_fab_set_state(
					w.f->net,
					vb_fabricd_node(w.f, ends[i].node),
					ends[i].port, (enum vb_fab_state)state,
					now),
				0);
}

/* A frame that goes round for ever causes events without end; the process must
 * look at its descriptors all the same. */
static void serve__frame_that_loops_stops_nobody(void **state)
{
	const struct vb_mad_frame frame = {
		.slid = 1, .dlid = LOOPING, .pkey = 0xffff, .sqpn = 1, .dqpn = 1
	};
	struct vb_fab_node *s1 = vb_fabricd_node(w.f, "S1");
	struct vb_fab_node *s2 = vb_fabricd_node(w.f, "S2");
	uint8_t bytes[VB_MAD_FRAME_MAX], mad[VB_MAD_BYTES] = { 1 };
	size_t len = vb_mad_frame_put(bytes, &frame, mad);

	activate();
	s1->sw.linear_top = s2->sw.linear_top = LOOPING;
	s1->sw.linear[LOOPING] = 3;
	s2->sw.linear[LOOPING] = 4;
	for (unsigned i = 0; i < 300; i++)
		assert_int_equal(vb_fab_send(w.f->net, s1, 3, bytes, len,
					     vb_clock_read()),
				 0);
	assert_int_equal(write(w.stop[1], "", 1), 1);
	assert_int_equal(vb_fabricd_run(w.f, w.stop[0]), 0);
	/* port 3 shows that the frames went round */
	assert_true(s1->port[3].count[FAB_XMIT_PKTS] > 300);
}

static void *run(void *arg)
{
	assert_int_equal(vb_fabricd_run(w.f, w.stop[0]), 0);
	return NULL;
}

/* Returns a connection that is attached to port 1 of @node. */
static int attach(const char *node)
{
	struct vb_umad_where m = {
		.head = { .magic = VB_UMAD_MAGIC, .kind = UMAD_ATTACH },
		.port = 1,
	};
	struct vb_umad_head h;
	int fd = vb_fabric_connect(w.name);

	assert_true(fd >= 0);
	snprintf(m.node, sizeof(m.node), "%s", node);
	assert_int_equal(send(fd, &m, sizeof(m), 0), sizeof(m));
	assert_int_equal(recv(fd, &h, sizeof(h), 0), sizeof(h));
	assert_int_equal(h.result, 0);
	return fd;
}

/* Send a MAD of @len bytes, in @memory unless that is -1, by an agent that is
 * not registered. Returns the status with which its header comes back. */
static unsigned refused(int fd, unsigned timeout_ms, size_t len, int memory)
{
	struct {
		struct vb_umad_mad m;
		uint8_t mad[VB_MAD_BYTES];
	} out = { 0 }, in = { 0 };
	struct ib_user_mad u = { .agent_id = 7, .timeout_ms = timeout_ms };
	size_t bytes = sizeof(out.m) + (memory < 0 ? len : 0);

	out.m.head = (struct vb_umad_head){ .magic = VB_UMAD_MAGIC,
					    .kind = UMAD_MAD,
					    .length = (uint32_t)len };
	memcpy(out.m.header, &u, sizeof(out.m.header));
	for (unsigned i = 0; i < VB_MAD_HDR_BYTES; i++)
		out.mad[i] = (uint8_t)(i + 1);
	if (memory >= 0)
		assert_int_equal(pwrite(memory, out.mad, VB_MAD_BYTES, 0) < 0,
				 fcntl(memory, F_GET_SEALS) != 0);
	assert_int_equal(
		vb_fdmail_send(fd, &out, bytes, &memory, memory >= 0, 0), 0);
	assert_int_equal(recv(fd, &in, sizeof(in), 0),
			 sizeof(in.m) + VB_MAD_HDR_BYTES);
	memcpy(&u, in.m.header, sizeof(in.m.header));
	assert_int_equal(u.agent_id, 7);
	assert_int_equal(u.length, sizeof(u) + VB_MAD_HDR_BYTES);
	if (memory < 0)
		assert_memory_equal(in.mad, out.mad, VB_MAD_HDR_BYTES);
	return u.status;
}

/* When the process refuses to send a MAD, it sends the MAD's header back. */
static void serve__mad_that_is_refused_comes_back(void **state)
{
	int fd, memory = memfd_create("mad", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, run, NULL), 0);
	fd = attach("H1");
	assert_int_equal(refused(fd, 100, VB_MAD_BYTES, -1), 110);
	assert_int_equal(refused(fd, 0, VB_MAD_BYTES, -1), EINVAL);
	/* Memory that its owner can still change is refused. */
	assert_int_equal(refused(fd, 0, VB_MAD_BYTES, memory), EINVAL);
	assert_int_equal(fcntl(memory, F_ADD_SEALS,
			       F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE),
			 0);
	assert_int_equal(refused(fd, 0, VB_UMAD_MOST + 1, memory), EMSGSIZE);
	assert_int_equal(refused(fd, 100, VB_UMAD_MOST + 1, memory), 110);
	assert_int_equal(refused(fd, 0, VB_MAD_BYTES + 1, memory), EINVAL);
	close(memory);
	close(fd);
	assert_int_equal(write(w.stop[1], "", 1), 1);
	pthread_join(thread, NULL);
}

static int command_with(const char *words, int fd)
{
	FILE *to = fopen("/dev/null", "w");
	int rc = vb_fabricd_do(w.f, words, fd, to, w.error, vb_clock_read());

	fclose(to);
	return rc;
}

static int command(const char *words)
{
	return command_with(words, -1);
}

/* If a manager reads XmitWait while a wait lasts, the wait so far is
 * counted. */
static void serve__wait_is_counted_for_who_reads(void **state)
{
	const struct vb_mad_frame frame = { .slid = 1,
					    .pkey = 0xffff,
					    .qkey = VB_GSI_QKEY,
					    .sqpn = 1,
					    .dqpn = 1 };
	uint8_t bytes[VB_MAD_FRAME_MAX];
	uint8_t mad[VB_MAD_BYTES] = { 1, MAD_CLASS_PERF, 1, MAD_GET };
	size_t len = vb_mad_frame_put(bytes, &frame, mad);
	struct vb_fab_node *s1 = vb_fabricd_node(w.f, "S1");
	struct vb_fab_port *p = &s1->port[3];
	vb_time now = vb_clock_read();

	p->end->wait_since = now;
	assert_true(vb_mgmt_hear(w.f->mgmt, s1, 0, bytes, len, now + VB_MSEC));
	assert_int_equal(p->count[FAB_XMIT_WAIT], VB_MSEC / VB_FAB_TICK_NS);
	p->end->wait_since = vb_clock_read() - 2 * VB_MSEC;
	assert_int_equal(command("show\njson"), 0);
	assert_true(p->count[FAB_XMIT_WAIT] > 2 * VB_MSEC / VB_FAB_TICK_NS);
	p->end->wait_since = VB_NEVER;
}

static void serve__words_too_many_are_refused(void **state)
{
	char words[256] = "tune\nS1\n3";

	for (unsigned i = 3; i < 16; i++)
		strcat(words, "\nlose=0");
	assert_int_equal(command(words), 0);
	strcat(words, "\nlose=1");
	assert_int_equal(command(words), -EINVAL);
	assert_non_null(strstr(w.error, "at most 16 words"));
}

/* --- Ethernet ports --- */

/* Handle what epoll reports, for as long as there is anything. */
static void serve_ready(void)
{
	struct epoll_event e[8];
	int n;

	while ((n = epoll_wait(w.f->epoll, e, 8, 0)) > 0)
		for (int i = 0; i < n; i++) {
			struct fd_watch *watch = e[i].data.ptr;

			watch->ready(watch, e[i].events, vb_clock_read());
		}
}

/* Attach a socket to a port. Returns its other end. */
static int attach_ether(const char *words)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
	assert_int_equal(command_with(words, fds[1]), 0);
	close(fds[1]);
	return fds[0];
}

static void refused_attach(const char *words, int fd, const char *why)
{
	assert_int_equal(command_with(words, fd), -EINVAL);
	assert_non_null(strstr(w.error, why));
}

static void serve__ethernet_ports_are_a_bridge(void **state)
{
	int one = attach_ether("attach\nS1\n\none");
	int two = attach_ether("attach\nS1\nE2\ntwo");
	uint8_t frame[60], got[100];

	memset(frame, 0xff, sizeof(frame));
	memset(frame + 6, 2, 6);
	assert_int_equal(send(one, frame, sizeof(frame), 0), sizeof(frame));
	serve_ready();
	assert_int_equal(recv(two, got, sizeof(got), MSG_DONTWAIT),
			 sizeof(frame));
	assert_memory_equal(got, frame, sizeof(frame));
	assert_int_equal(recv(one, got, sizeof(got), MSG_DONTWAIT), -1);
	assert_int_equal(command("unlink\nS1\nE2"), 0);
	assert_int_equal(send(one, frame, sizeof(frame), 0), sizeof(frame));
	serve_ready();
	assert_int_equal(recv(two, got, sizeof(got), MSG_DONTWAIT), -1);
	assert_int_equal(command("link\nS1\nE2"), 0);
	/* a socket that is closed leaves its port free */
	close(two);
	serve_ready();
	refused_attach("detach\nS1\nE2", -1, "nothing is attached to E2");
	two = attach_ether("attach\nS1\nE2\nanother");
	assert_int_equal(command("detach\nS1\nE2"), 0);
	assert_int_equal(recv(two, got, sizeof(got), 0), 0);
	close(one);
	close(two);
}

/* If a program does not read its socket, other ports lose no frame and are not
 * delayed. */
static void serve__ethernet_port_that_reads_nothing_loses_only_its_own(
	void **state)
{
	int one = attach_ether("attach\nS1\nE1\none");
	int two = attach_ether("attach\nS1\nE2\ntwo");
	int slow = attach_ether("attach\nS1\nE3\nslow");
	uint8_t frame[1514], got[1514];
	unsigned sent = 0;

	memset(frame, 0xff, sizeof(frame));
	memset(frame + 6, 2, 6);
	for (; sent < 2000; sent++) {
		assert_int_equal(send(one, frame, sizeof(frame), 0),
				 sizeof(frame));
		if (sent % 32 == 31)
			serve_ready();
		while (recv(two, got, sizeof(got), MSG_DONTWAIT) > 0)
			;
	}
	/* the slow program gets the frames that its queue and its socket have
	 * kept, and all later ones */
	for (sent = 0; sent < 2000;) {
		if (recv(slow, got, sizeof(got), MSG_DONTWAIT) <= 0)
			break;
		sent++;
		serve_ready();
	}
	assert_in_range(sent, 257, 1999);
	close(one);
	close(two);
	close(slow);
}

static void serve__only_what_carries_frames_is_attached(void **state)
{
	int fds[2], file = open("/dev/null", O_RDWR | O_CLOEXEC);

	refused_attach("attach\nS1\n\nx", file, "is no TAP interface");
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	refused_attach("attach\nS1\n\nx", fds[0], "is no TAP interface");
	close(fds[0]);
	close(fds[1]);
	refused_attach("attach\nS1\n\nx", -1, "no interface was passed");
	refused_attach("attach\nS2\n\nx", file, "has no Ethernet ports");
	refused_attach("attach\nS1\nE4\nx", file, "E1 to E3 are");
	refused_attach("attach\nS1\nE\nx", file, "E1 to E3 are");
	refused_attach("attach\nS1\nE1x\nx", file, "E1 to E3 are");
	refused_attach("unlink\nS1\nE1", -1, "nothing is attached to E1");
	close(file);
}

/* --- files by which subnet managers set IsSM --- */

static bool is_manager(const struct vb_fab_node *n)
{
	return n->port[1].cap_mask & VB_CAP_SM;
}

/* One reader closes the file and another one opens it before the process has
 * handled either event: IsSM stays set. */
static void serve__manager_that_follows_at_once_counts(void **state)
{
	struct vb_fab_node *h1 = vb_fabricd_node(w.f, "H1");
	char path[VB_UMAD_PATH];
	struct epoll_event gone;
	struct fd_watch *writer;
	int first, second;

	assert_true(vb_fabricd_issm_path(w.f, h1, 1, path));
	first = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	w.f->inotify.ready(&w.f->inotify, EPOLLIN, vb_clock_read());
	assert_true(is_manager(h1));
	close(first);
	do
		assert_int_equal(epoll_wait(w.f->epoll, &gone, 1, -1), 1);
	while (gone.data.ptr == &w.f->inotify &&
	       (w.f->inotify.ready(&w.f->inotify, EPOLLIN, 0), true));
	writer = gone.data.ptr;
	second = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	w.f->inotify.ready(&w.f->inotify, EPOLLIN, vb_clock_read());
	writer->ready(writer, gone.events, vb_clock_read());
	assert_true(is_manager(h1));
	close(second);
	writer->ready(writer, EPOLLERR, vb_clock_read());
	assert_false(is_manager(h1));
}

/* --- hosts that join --- */

static int join(struct fd_host **host, const char *space, char said[64],
		vb_time now)
{
	FILE *to = fmemopen(said, 64, "w");
	int rc = vb_fabricd_join(w.f, host, space, to, w.error, now);

	fclose(to);
	return rc;
}

static void serve__hosts_join_while_it_runs(void **state)
{
	struct fd_host *a = NULL, *b = NULL, *again = NULL;
	uint32_t before = vb_fab_nodes(w.f->net);
	vb_time now = vb_clock_read();
	struct vb_fab_node *n, *peer;
	uint8_t peer_port;
	char said[64];

	assert_int_equal(join(&a, "7", said, now), 0);
	assert_string_equal(said, "Hca1 waits alone\n");
	assert_int_equal(join(&again, "7", said, now), 0);
	/* a second program of one host gets the same adapter */
	assert_ptr_equal(again, a);
	assert_int_equal(join(&b, "8", said, now), 0);
	assert_string_equal(said, "Hca2 waits alone\n");
	assert_int_equal(vb_fab_nodes(w.f->net), before + 2);
	assert_int_equal(w.topo.count, before + 2);
	n = vb_fabricd_node(w.f, "Hca2");
	assert_non_null(n);
	assert_int_not_equal(n->guid, vb_fabricd_node(w.f, "Hca1")->guid);
	peer = vb_fab_peer(n, 1, &peer_port);
	assert_ptr_equal(peer, vb_fabricd_node(w.f, "S1"));
	usleep(1000);
	fab_run(w.f->net, vb_clock_read());
	assert_int_equal(n->port[1].state, FAB_INIT);
	assert_int_equal(peer->port[peer_port].state, FAB_INIT);
	/* the port change reaches the subnet manager */
	assert_true(peer->sw.state_change);
	assert_int_equal(join(&(struct fd_host *){ NULL }, "x", said, now),
			 -EINVAL);
	vb_fabricd_leave(a, now);
	vb_fabricd_leave(again, now);
	vb_fabricd_leave(b, now);
}

/* If no port is free, a new host gets the adapter that has been unused for the
 * longest time; no adapter while all are in use, or were so lately. */
static void serve__adapters_are_used_again(void **state)
{
	struct fd_host *host[10] = { NULL }, *late = NULL;
	vb_time now = vb_clock_read();
	char said[64], space[8];

	/* S1 and S2 have 5 free ports each. */
	for (unsigned i = 0; i < 10; i++) {
		snprintf(space, sizeof(space), "%u", i + 1);
		assert_int_equal(join(&host[i], space, said, now), 0);
	}
	assert_int_equal(join(&late, "99", said, now), -EINVAL);
	assert_non_null(strstr(w.error, "no switch of the fabric has a free"));
	vb_fabricd_leave(host[4], now);
	vb_fabricd_leave(host[3], now + 1);
	assert_int_equal(join(&late, "99", said, now + VB_SEC), -EINVAL);
	assert_int_equal(join(&late, "99", said, now + 100 * VB_SEC), 0);
	assert_string_equal(said, "Hca5 waits alone\n");
	assert_ptr_equal(late, host[4]);
}

/* vb_fabricd_mark() stores how much each port has sent; a later picture of the
 * fabric shows the difference. Hosts join between these calls. The code must
 * not access stored values of a node that joined after they were stored
 * (AddressSanitizer checks this). */
static void serve__pictures_know_hosts_that_join(void **state)
{
	struct fd_host *host[2] = { NULL };
	vb_time now = vb_clock_read();
	char said[64], *page = NULL;
	size_t size;
	FILE *to;

	assert_int_equal(vb_fabricd_mark(w.f, now), 0);
	assert_int_equal(join(&host[0], "7", said, now), 0);
	assert_int_equal(vb_fabricd_mark(w.f, now), 0);
	assert_int_equal(join(&host[1], "8", said, now), 0);
	to = open_memstream(&page, &size);
	assert_int_equal(vb_fabricd_draw(w.f, true, NULL, to, now + VB_SEC), 0);
	fclose(to);
	assert_non_null(strstr(page, "Hca2"));
	free(page);
}

/* --- the end of the process --- */

static void serve__it_ends_when_it_is_idle(void **state)
{
	vb_time begun = vb_clock_read();

	vb_fabricd_linger(w.f, 50 * VB_MSEC);
	assert_int_equal(vb_fabricd_run(w.f, w.stop[0]), 0);
	assert_true(vb_clock_read() - begun >= 50 * VB_MSEC);
}

/* Send short frames from both adapters to a LID without a route: 1.5 times as
 * many as the process handles before it looks at its descriptors. Returns when
 * all of their events are due. */
static void send_many(void)
{
	const struct vb_lrh h = {
		.lnh = LNH_LOCAL, .slid = 1, .dlid = LOOPING, .words = SHORT / 4
	};
	uint8_t bytes[SHORT] = { 0 };

	vb_lrh_put(bytes, &h);
	for (unsigned i = 0; i < 3072; i++)
		assert_int_equal(
			vb_fab_send(w.f->net,
				    vb_fabricd_node(w.f, i % 2 ? "H1" : "H2"),
				    1, bytes, SHORT, vb_clock_read()),
			0);
	usleep(5000);
}

/* The process handles the events in two parts. After the second part no event
 * is due, so the process must wait for its own timer. */
static void serve__timer_is_kept_over_many_events(void **state)
{
	unsigned events = 0;

	activate();
	send_many();
	while (vb_fab_step(w.f->net, vb_clock_read()))
		events++;
	assert_in_range(events, 5000, 7000);
	assert_true(vb_fab_next(w.f->net) == VB_NEVER);
	send_many();
	vb_fabricd_linger(w.f, 50 * VB_MSEC);
	assert_int_equal(vb_fabricd_run(w.f, w.stop[0]), 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, start, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(serve__frame_that_loops_stops_nobody),
		CASE(serve__mad_that_is_refused_comes_back),
		CASE(serve__words_too_many_are_refused),
		CASE(serve__wait_is_counted_for_who_reads),
		CASE(serve__ethernet_ports_are_a_bridge),
		CASE(serve__ethernet_port_that_reads_nothing_loses_only_its_own),
		CASE(serve__only_what_carries_frames_is_attached),
		CASE(serve__manager_that_follows_at_once_counts),
		CASE(serve__hosts_join_while_it_runs),
		CASE(serve__adapters_are_used_again),
		CASE(serve__pictures_know_hosts_that_join),
		CASE(serve__it_ends_when_it_is_idle),
		CASE(serve__timer_is_kept_over_many_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
