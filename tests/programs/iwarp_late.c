/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Case: a thread of this program writes to the memory of another program of
 * this host, whose pages come late (userfaultfd); meanwhile that program (the
 * owner) ends the stream. The thread waits in the kernel. This program must
 * still be able to make and use other connections.
 */
#include "iwarp_test.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define LATE (64u << 10)
/* The pages come after so many seconds at the latest. */
#define AT_LAST 20.0
/* Longest time, in seconds, that a verb may take on a busy machine. */
#define SOON 10.0

/* What the two programs tell each other, in this order. */
enum progress {
	CONNECTED = 1, /* connected; the owner's pages still come at once */
	MET,	       /* this program has written to the owner's memory */
	IS_LATE,
	NOT_ALLOWED, /* the owner is not permitted to use userfaultfd */
	IS_ASKED,    /* the writer waits for the owner's page */
	ENOUGH,	     /* the owner may supply the page */
};

static struct shared {
	_Atomic int progress;
	uint64_t address;
	uint32_t rkey;
} * shared;

static bool await(int progress)
{
	double then = seconds();

	while (shared->progress < progress && seconds() - then < AT_LAST)
		usleep(1000);
	return shared->progress >= progress;
}

static void *disconnect(void *arg)
{
	must(!rdma_disconnect(a.id), "rdma_disconnect");
	return arg;
}

/* Make the pages at @at come late. Returns a descriptor that reports each
 * thread that waits for one, or -1. */
static int make_late(uint8_t *at)
{
	struct uffdio_register range = { .range = { (uintptr_t)at, LATE },
					 .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_api api = { .api = UFFD_API };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd < 0)
		return -1;
	must(!ioctl(fd, UFFDIO_API, &api), "UFFDIO_API");
	must(!ioctl(fd, UFFDIO_REGISTER, &range), "UFFDIO_REGISTER");
	must(!madvise(at, LATE, MADV_DONTNEED), "MADV_DONTNEED");
	return fd;
}

/* The other program, which owns the memory. */
static void own_late_memory(void)
{
	static uint8_t bytes[LATE];
	struct rdma_conn_param p = params(NULL);
	struct uffdio_copy copy = { .src = (uintptr_t)bytes, .len = LATE };
	struct uffd_msg asked;
	pthread_t thread;
	uint8_t *at;
	int fd;

	alarm(2 * (unsigned)AT_LAST);
	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
	pd = NULL;
	begin_connect(&a, &address, &p);
	expect_event(RDMA_CM_EVENT_ESTABLISHED);
	at = (uint8_t *)(((uintptr_t)a.memory + 4095) & ~4095ul);
	shared->address = (uintptr_t)at;
	shared->rkey = a.mr->rkey;
	shared->progress = CONNECTED;
	if (!await(MET))
		return;
	fd = make_late(at);
	shared->progress = fd < 0 ? NOT_ALLOWED : IS_LATE;
	if (fd < 0)
		return;
	must(read(fd, &asked, sizeof(asked)) == sizeof(asked), "read");
	/* The owner ends the stream, and then waits until the writer waits for
	 * its page. */
	must(!pthread_create(&thread, NULL, disconnect, NULL), "thread");
	shared->progress = IS_ASKED;
	(void)await(ENOUGH);
	copy.dst = (uintptr_t)at;
	must(!ioctl(fd, UFFDIO_COPY, &copy), "UFFDIO_COPY");
	pthread_join(thread, NULL);
}

static void write_to(struct side *c, uint32_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)c->memory, bytes, c->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = { shared->address, shared->rkey },
	};

	must(!ibv_post_send(c->id->qp, &wr, &bad), "ibv_post_send");
}

static void *write_late(void *arg)
{
	write_to(arg, LATE);
	return NULL;
}

/* Connect a to b in this program, and send messages for half a second. */
static void others_go_on(void)
{
	double then;

	connected();
	then = seconds();
	while (seconds() - then < 0.5 && !problem[0]) {
		double from = seconds(), lasted;

		post_recv(&b, 4096);
		post(&a, (struct ibv_send_wr){ .opcode = IBV_WR_SEND }, 1);
		expect_status(&a, 1, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
		expect_status(&b, 99, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
		lasted = seconds() - from;
		if (lasted > SOON)
			wrong("another connection waited %.1f s", lasted);
	}
}

static void accept_owner(struct side *c)
{
	struct rdma_conn_param p = params(NULL);

	if (!expect_event(RDMA_CM_EVENT_CONNECT_REQUEST))
		return;
	c->id = event.id;
	equip(c);
	must(!rdma_accept(c->id, &p), "rdma_accept");
	expect_event(RDMA_CM_EVENT_ESTABLISHED);
	if (!await(CONNECTED)) {
		wrong("the other program is not connected");
		return;
	}
	write_to(c, 64);
	expect_status(c, 1, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	shared->progress = MET;
}

/* Has a FIN come on a socket of this program's port that is still open? */
static bool has_fin(void)
{
	const unsigned close_wait = 8;
	unsigned at, state;
	bool found = false;
	char line[256];
	FILE *f = fopen("/proc/net/tcp", "r");

	must(f, "/proc/net/tcp");
	while (fgets(line, sizeof(line), f))
		found |= sscanf(line, " %*u: %*x:%x %*x:%*x %x", &at, &state) ==
				 2 &&
			 at == PORT && state == close_wait;
	fclose(f);
	return found;
}

/* The writer's thread waits for the page, and the stream has ended. */
static void write_and_go_on(struct side *c)
{
	const double then = seconds();
	pthread_t writer;

	must(!pthread_create(&writer, NULL, write_late, c), "thread");
	if (await(IS_ASKED)) {
		while (!has_fin() && seconds() - then < AT_LAST / 2)
			usleep(1000);
		usleep(20000); /* time for the library's thread to notice it */
		others_go_on();
	}
	shared->progress = ENOUGH;
	pthread_join(writer, NULL);
}

void others_beside_a_late_page(void)
{
	struct side c = { 0 };
	pid_t pid;

	if (!goes_near())
		return;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(shared != MAP_FAILED, "mmap");
	pid = child_of(own_late_memory);
	accept_owner(&c);
	if (!problem[0] && await(IS_LATE) && shared->progress == IS_LATE)
		write_and_go_on(&c);
	expect_child(pid);
	drop(&c);
	munmap(shared, sizeof(*shared));
}
