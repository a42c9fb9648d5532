/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many frames a second a link between two fabrics in two processes of this
 * machine carries:
 *
 *     fabric_far udp|tcp [SECONDS]
 *
 * Each has a switch with an adapter. The links have no rate of their own, so
 * that the processor is the limit. Frames go from one adapter to the other, as
 * fast as credits permit; those that arrive are counted.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "fabricd/fabricd_priv.h"
#include "wire/lrh.h"

#define BTH_PKEY 10
#define PORT	 18471
#define TICK_NS	 (200 * VB_USEC)
#define LID(s)	 ((uint16_t)(11 + (s)))

struct half {
	struct fd_watch tick;
	struct vb_topo topo;
	struct vb_fabricd *f;
	struct vb_fab_node *sw, *ca;
	unsigned side;
	size_t len; /* of frames to send; 0: none */
	uint8_t frame[VB_FAB_FRAME_MAX];
};

/* Number of frames that the receiving process has counted. */
static _Atomic uint64_t *arrived;

static void die(const char *what)
{
	fprintf(stderr, "fabric_far: %s\n", what);
	exit(1);
}

/* Do what a subnet manager does as soon as the links are up: make the ports
 * Active. */
static void activate(struct half *h, vb_time now)
{
	struct {
		struct vb_fab_node *node;
		uint8_t port;
	} const ends[] = { { h->sw, 1 }, { h->sw, 2 }, { h->ca, 1 } };

	for (unsigned i = 0; i < VB_COUNT(ends); i++) {
		struct vb_fab_port *p = &ends[i].node->port[ends[i].port];

		if (p->state != FAB_INIT)
			continue;
		p->mtu = 5;
		(void)!vb_fab_set_state(h->f->net, ends[i].node, ends[i].port,
					FAB_ARMED, now);
		(void)!vb_fab_set_state(h->f->net, ends[i].node, ends[i].port,
					FAB_ACTIVE, now);
	}
}

static void tick(struct fd_watch *w, uint32_t events, vb_time now)
{
	struct half *h = VB_CONTAINER_OF(w, struct half, tick);
	uint64_t ticks;

	(void)!read(w->fd, &ticks, sizeof(ticks));
	activate(h, now);
	if (h->side)
		atomic_store(arrived, h->ca->port[1].count[FAB_RCV_PKTS]);
	while (h->len &&
	       !vb_fab_send(h->f->net, h->ca, 1, h->frame, h->len, now))
		;
}

static void make_frame(struct half *h, size_t len)
{
	struct vb_lrh lrh = { .lnh = LNH_LOCAL,
			      .slid = LID(0),
			      .dlid = LID(1),
			      .words = (uint16_t)(len / 4) };

	vb_lrh_put(h->frame, &lrh);
	h->frame[BTH_PKEY] = h->frame[BTH_PKEY + 1] = 0xff;
	vb_lrh_put_icrc(h->frame, len);
	h->len = len;
}

static void read_topology(struct half *h, const char *via)
{
	char path[] = "/tmp/fabric_far.XXXXXX", error[VB_TOPO_ERROR] = "";
	int fd = mkstemp(path);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
	unsigned me = h->side + 1, you = 2 - h->side;

	if (!file)
		die("no file");
	fprintf(file,
		"Switch 2 \"S-%u\"\n[1] \"H-%u\"[1]\n[2] \"S-%u\"[2]\n"
		"#! link \"S-%u\"[2] %s=127.0.0.1:%u local=%u rate=free\n"
		"#! link \"S-%u\"[1] rate=free\n"
		"Ca 1 \"H-%u\"\n[1] \"S-%u\"[1]\n",
		me, me + 16, you, me, via, PORT + (via[0] == 'u' ? you : 1),
		PORT + (via[0] == 'u' ? me : 1), me, me + 16, me);
	fclose(file);
	if (vb_topo_read(&h->topo, path, error))
		die(error);
	unlink(path);
}

static void open_half(struct half *h, unsigned side, const char *via)
{
	const struct itimerspec every = { { 0, TICK_NS }, { 0, TICK_NS } };
	char error[VB_TOPO_ERROR] = "", name[48];

	memset(h, 0, sizeof(*h));
	h->side = side;
	read_topology(h, via);
	snprintf(name, sizeof(name), "bench-%d-%u", (int)getpid(), side);
	h->f = vb_fabricd_create(&h->topo, name, error);
	if (!h->f)
		die(error);
	h->sw = vb_fab_node(h->f->net, 0);
	h->ca = vb_fab_node(h->f->net, 1);
	h->ca->port[1].lid = LID(side);
	h->sw->sw.linear_top = LID(1);
	h->sw->sw.linear[LID(side)] = 1;
	h->sw->sw.linear[LID(!side)] = 2;
	h->tick.fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	h->tick.ready = tick;
	if (h->tick.fd < 0 || timerfd_settime(h->tick.fd, 0, &every, NULL) ||
	    vb_fabricd_watch(h->f, &h->tick, EPOLLIN, false))
		die("no timer");
}

/* Run one of the two fabrics in a child process until the child is killed. */
static pid_t spawn(unsigned side, const char *via, size_t len)
{
	static struct half h;
	int never[2];
	pid_t pid = fork();

	if (pid)
		return pid;
	if (pipe(never))
		die("no pipe");
	open_half(&h, side, via);
	if (!side)
		make_frame(&h, len);
	_exit(vb_fabricd_run(h.f, never[0]) != 0);
}

static void measure(const char *via, size_t len, double seconds)
{
	pid_t pid[2] = { spawn(0, via, len), spawn(1, via, len) };
	uint64_t before, count;
	vb_time start;

	for (unsigned i = 0; i < 100 && !atomic_load(arrived); i++)
		usleep(50000);
	usleep(200000);
	before = atomic_load(arrived);
	start = vb_clock_read();
	usleep((useconds_t)(seconds * 1e6));
	count = atomic_load(arrived) - before;
	seconds = (double)(vb_clock_read() - start) / VB_SEC;
	printf("%s, frames of %4zu bytes: %7.0f a second, %6.3f GB/s\n", via,
	       len, (double)count / seconds,
	       (double)count * (double)len / seconds * 1e-9);
	for (unsigned i = 0; i < 2; i++) {
		kill(pid[i], SIGTERM);
		waitpid(pid[i], NULL, 0);
	}
	atomic_store(arrived, 0);
}

int main(int argc, char **argv)
{
	static const size_t lens[] = { 256, 2088, 4136 };
	double seconds = argc > 2 ? strtod(argv[2], NULL) : 2;

	if (argc < 2 || (strcmp(argv[1], "udp") && strcmp(argv[1], "tcp")) ||
	    seconds <= 0 || seconds > 60)
		die("usage: fabric_far udp|tcp [SECONDS]");
	arrived = mmap(NULL, sizeof(*arrived), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (arrived == MAP_FAILED)
		die("no memory");
	for (unsigned i = 0; i < VB_COUNT(lens); i++)
		measure(argv[1], lens[i], seconds);
	return 0;
}
