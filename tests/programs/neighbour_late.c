/* SPDX-License-Identifier: BSD-2-Clause */
/* Cases: B copies, and a page of its own memory comes late (userfaultfd);
 * meanwhile A takes its memory away from B. */
#include "neighbour_test.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#define KEEPS	 0x5a /* A's bytes after A has taken its memory away */
#define SUPPLIED 0x77 /* the bytes of B's page, which come late */

/* What B reports to A at the end. */
struct report {
	int status;
	/* bytes of A's memory that B has read after A took the memory away, and
	 * that B's completion counts as read */
	uint32_t stolen;
};

static enum ibv_wr_opcode late_op;

/* Wait until a thread needs B's late pages, tell A, and supply the pages when A
 * answers. */
static void *supply(void *arg)
{
	static uint8_t bytes[LATE];
	const struct late *l = arg;
	struct uffdio_copy copy = { .dst = (uintptr_t)l->at,
				    .src = (uintptr_t)bytes,
				    .len = LATE };
	struct uffd_msg message;
	uint8_t go;

	memset(bytes, SUPPLIED, LATE);
	must(read(l->fd, &message, sizeof(message)) == sizeof(message), "read");
	if (l->when_asked)
		l->when_asked(l->side);
	tcp_send(l->side->tcp, &go, 1);
	tcp_recv(l->side->tcp, &go, 1);
	must(!ioctl(l->fd, UFFDIO_COPY, &copy), "UFFDIO_COPY");
	return NULL;
}

void map_late(struct late *l)
{
	l->at = mmap(NULL, LATE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(l->at != MAP_FAILED, "mmap");
}

bool open_late(struct late *l, struct side *b)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };

	l->side = b;
	l->fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	if (l->fd < 0)
		return false;
	must(!ioctl(l->fd, UFFDIO_API, &api), "UFFDIO_API");
	range.range = (struct uffdio_range){ (uintptr_t)l->at, LATE };
	must(!ioctl(l->fd, UFFDIO_REGISTER, &range), "UFFDIO_REGISTER");
	must(!madvise(l->at, LATE, MADV_DONTNEED), "MADV_DONTNEED");
	must(!pthread_create(&l->supplier, NULL, supply, l), "thread");
	return true;
}

static struct report use_late(struct side *b, struct late *l)
{
	struct report report = { 0 };
	struct ibv_wc wc = { 0 };

	b->memory = l->at;
	b->mr = ibv_reg_mr(b->device.pd, l->at, LATE, RC_ALL_ACCESS);
	must(b->mr, "ibv_reg_mr");
	must(!post(b, late_op, LATE), "post");
	must(rc_wait(b->cq, 30, &wc), "no completion");
	report.status = wc.status;
	for (uint32_t i = 0; i < LATE && wc.status == IBV_WC_SUCCESS; i++)
		report.stolen += l->at[i] == KEEPS;
	return report;
}

static void come_late(struct side *b)
{
	struct late l = { 0 };
	struct report report;
	struct ibv_wc wc;
	uint8_t allowed;

	/* This request makes sure that later ones go near, without packets. */
	must(!post(b, late_op, SMALL) && rc_wait(b->cq, 30, &wc), "first");
	map_late(&l);
	allowed = open_late(&l, b);
	tcp_send(b->tcp, &allowed, 1);
	if (allowed) {
		report = use_late(b, &l);
		tcp_send(b->tcp, &report, sizeof(report));
	}
	pause();
}

static void take_from_late(struct side *a)
{
	struct report report;
	size_t changed = 0;
	uint8_t go;
	double then;

	tcp_recv(a->tcp, &go, 1); /* wait until B waits for its page */
	nap(20000);
	then = seconds();
	take(a, TAKE_REGION, NULL);
	expect(seconds() - then < SOON, "it took %.2f s", seconds() - then);
	memset(a->memory, KEEPS, LATE);
	tcp_send(a->tcp, &go, 1);
	tcp_recv(a->tcp, &report, sizeof(report));
	for (size_t i = 0; i < LATE; i++)
		changed += a->memory[i] != KEEPS;
	expect(changed == 0, "%zu bytes were written too late", changed);
	expect(report.stolen == 0, "%u bytes were read too late",
	       report.stolen);
	expect(report.status == IBV_WC_REM_ACCESS_ERR, "B's request: %s",
	       ibv_wc_status_str((enum ibv_wc_status)report.status));
}

static void play_late(enum ibv_wr_opcode op)
{
	struct side a = { 0 };
	uint8_t allowed;

	late_op = op;
	begin(&a, BYTES, come_late);
	meet(&a, a.mr->rkey);
	tcp_recv(a.tcp, &allowed, 1);
	if (allowed)
		take_from_late(&a);
	else
		skip("userfaultfd is not permitted");
	end(&a);
}

void write_from_late_memory(void)
{
	play_late(IBV_WR_RDMA_WRITE);
}

void read_into_late_memory(void)
{
	play_late(IBV_WR_RDMA_READ);
}
