// SPDX-License-Identifier: BSD-2-Clause
/*
 * One program makes a context, a domain, regions and device memory, and gives
 * them to another over a UNIX socket, which imports and uses them: its queue
 * pairs send, receive, and serve WRITE and READ in the first one's memory. Then
 * it gives them back, and the first one goes. Prints a line a case.
 */
#include "rc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES 20000 /* more than a packet */
#define PLACE 65536 /* of one case in the maker's memory */

static const char *device;

static void say(bool good, const char *what)
{
	printf("%s import: %s\n", good ? "ok" : "not ok", what);
	fflush(stdout);
}

/* What the maker tells. */
struct offer {
	uint32_t pd, mr, dm, lkey, rkey;
	uint64_t addr;
	struct rc_address at;
};

static void give_fd(int sock, int fd)
{
	char control[CMSG_SPACE(sizeof(fd))] = { 0 }, byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	must(sendmsg(sock, &m, 0) == 1, "sendmsg");
}

static int take_fd(int sock)
{
	char control[CMSG_SPACE(sizeof(int))], byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	int fd;

	must(recvmsg(sock, &m, 0) == 1 && CMSG_FIRSTHDR(&m), "recvmsg");
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}

static void open_device(struct rc_device *d)
{
	const struct rc_options o = { .device = device, .family = 4 };

	rc_open(d, &o);
}

static void connect_to(struct rc_device *d, struct ibv_qp *qp,
		       const struct rc_address *peer)
{
	struct rc_options o = RC_OPTIONS;

	o.timeout = 10;
	rc_connect(d, qp, &o, 7, peer);
}

static struct ibv_qp *make_qp(struct rc_device *d, struct ibv_cq **cq)
{
	*cq = ibv_create_cq(d->context, 64, NULL, NULL, 0);
	must(*cq, "ibv_create_cq");
	return rc_qp(d, *cq, 16, 2, 0);
}

static enum ibv_wc_status post_and_wait(struct ibv_qp *qp,
					enum ibv_wr_opcode op, uint64_t addr,
					uint32_t lkey, uint64_t far,
					uint32_t rkey)
{
	struct ibv_sge sge = { addr, BYTES, lkey };
	struct ibv_send_wr wr = { .opcode = op,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { far, rkey } },
			   *bad;
	struct ibv_wc wc;

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		sge.length = 8;
		wr.wr.atomic.remote_addr = far;
		wr.wr.atomic.rkey = rkey;
	}
	must(ibv_post_send(qp, &wr, &bad) == 0, "ibv_post_send");
	if (!rc_wait(qp->send_cq, 10, &wc))
		die("no completion of operation %d", (int)op);
	return wc.status;
}

static void post_recv(struct ibv_qp *qp, uint64_t addr, uint32_t lkey)
{
	struct ibv_sge sge = { addr, BYTES, lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	must(ibv_post_recv(qp, &wr, &bad) == 0, "ibv_post_recv");
}

static void fill(void *at, char with)
{
	memset(at, with, BYTES);
}

static bool is_filled(const char *at, char with)
{
	for (unsigned i = 0; i < BYTES; i++)
		if (at[i] != with)
			return false;
	return true;
}

/*
 * The maker. Its places: 0 is sent from by the importer, 1 received into, 2
 * written to by way of the importer's queue pair, 3 read so, 4 the maker's own
 * end of the connection.
 */

static void serve(int sock, struct rc_device *d, struct ibv_mr *mr, char *mem,
		  struct ibv_qp *qp)
{
	char *own = mem + 4 * PLACE;
	struct ibv_wc wc;

	/* The importer sends what is ours, to us. */
	fill(mem, 'a');
	post_recv(qp, (uintptr_t)own, mr->lkey);
	tcp_barrier(sock);
	say(rc_wait(qp->recv_cq, 10, &wc) && wc.status == IBV_WC_SUCCESS &&
		    is_filled(own, 'a'),
	    "a SEND out of the maker's memory");

	/* It receives into what is ours. */
	tcp_barrier(sock);
	fill(own, 'b');
	say(post_and_wait(qp, IBV_WR_SEND, (uintptr_t)own, mr->lkey, 0, 0) ==
			    IBV_WC_SUCCESS &&
		    is_filled(mem + PLACE, 'b'),
	    "a receive into the maker's memory");

	/* We are its peer, who knows the maker's key. */
	fill(own, 'c');
	say(post_and_wait(qp, IBV_WR_RDMA_WRITE, (uintptr_t)own, mr->lkey,
			  (uintptr_t)mem + 2 * PLACE,
			  mr->rkey) == IBV_WC_SUCCESS &&
		    is_filled(mem + 2 * PLACE, 'c'),
	    "a WRITE with the maker's key by way of the importer");
	fill(mem + 3 * PLACE, 'd');
	say(post_and_wait(qp, IBV_WR_RDMA_READ, (uintptr_t)own, mr->lkey,
			  (uintptr_t)mem + 3 * PLACE,
			  mr->rkey) == IBV_WC_SUCCESS &&
		    is_filled(own, 'd'),
	    "a READ with the maker's key by way of the importer");
	/* The kernel copies for it, and does not compute. */
	say(post_and_wait(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, (uintptr_t)own,
			  mr->lkey, (uintptr_t)mem,
			  mr->rkey) == IBV_WC_REM_ACCESS_ERR,
	    "an atomic in the maker's memory is refused");
	tcp_barrier(sock);
}

static void make_and_give(int sock)
{
	static char mem[5 * PLACE] __attribute__((aligned(4096)));
	struct ibv_alloc_dm_attr attr = { .length = 4096 };
	struct rc_address theirs;
	struct offer offer;
	struct rc_device d;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	struct ibv_dm *dm;
	char word[8] = { 0 };

	open_device(&d);
	mr = ibv_reg_mr(d.pd, mem, sizeof(mem), RC_ALL_ACCESS);
	dm = ibv_alloc_dm(d.context, &attr);
	must(mr && dm, "the maker's objects");
	must(ibv_memcpy_to_dm(dm, 8, "by maker", 8) == 0, "memcpy_to_dm");
	qp = make_qp(&d, &cq);
	offer = (struct offer){ .pd = d.pd->handle,
				.mr = mr->handle,
				.dm = dm->handle,
				.lkey = mr->lkey,
				.rkey = mr->rkey,
				.addr = (uintptr_t)mem,
				.at = rc_address(&d, qp, 7) };
	give_fd(sock, d.context->cmd_fd);
	tcp_send(sock, &offer, sizeof(offer));
	tcp_recv(sock, &theirs, sizeof(theirs));
	connect_to(&d, qp, &theirs);
	tcp_barrier(sock);
	serve(sock, &d, mr, mem, qp);
	say(ibv_memcpy_from_dm(word, dm, 16, 8) == 0 &&
		    memcmp(word, "importer", 8) == 0,
	    "device memory, written by the importer");
	/* The region goes, then this program. */
	must(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr");
	tcp_barrier(sock);
	tcp_barrier(sock);
}

/*
 * The importer.
 */

struct imports {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_dm *dm;
};

static void import_all(const struct offer *o, int fd, struct imports *in)
{
	in->context = ibv_import_device(fd);
	must(in->context, "ibv_import_device");
	in->pd = ibv_import_pd(in->context, o->pd);
	must(in->pd, "ibv_import_pd");
	in->mr = ibv_import_mr(in->pd, o->mr);
	must(in->mr, "ibv_import_mr");
	in->dm = ibv_import_dm(in->context, o->dm);
	must(in->dm, "ibv_import_dm");
	say(in->mr->lkey == o->lkey && in->mr->rkey == o->rkey &&
		    in->mr->length == 5 * PLACE && !in->mr->addr &&
		    in->pd->handle == o->pd,
	    "the region has the maker's keys");
	errno = 0;
	say(!ibv_import_mr(in->pd, o->mr ^ 1) && errno == ENOENT &&
		    !ibv_import_pd(in->context, o->pd ^ 1) && errno == ENOENT &&
		    !ibv_import_dm(in->context, o->dm + 1) && errno == ENOENT,
	    "what is not there is ENOENT");
	errno = 0;
	say(ibv_dereg_mr(in->mr) == EOPNOTSUPP && errno == EOPNOTSUPP,
	    "the region is not the importer's to deregister");
}

static void use_dm(struct imports *in)
{
	char word[8];

	say(ibv_memcpy_from_dm(word, in->dm, 8, 8) == 0 &&
		    memcmp(word, "by maker", 8) == 0 &&
		    ibv_memcpy_to_dm(in->dm, 16, "importer", 8) == 0,
	    "device memory, written by the maker");
}

static void use(int sock, const struct offer *o, struct imports *in,
		struct ibv_qp *qp)
{
	struct ibv_wc wc;

	tcp_barrier(sock);
	must(post_and_wait(qp, IBV_WR_SEND, o->addr, in->mr->lkey, 0, 0) ==
		     IBV_WC_SUCCESS,
	     "SEND");
	post_recv(qp, o->addr + PLACE, o->lkey);
	tcp_barrier(sock);
	must(rc_wait(qp->recv_cq, 10, &wc) && wc.status == IBV_WC_SUCCESS,
	     "receive");
	tcp_barrier(sock);
}

/* Two queue pairs of this process on the imported domain: an error each. */
static void refuse(const struct offer *o, struct imports *in,
		   const struct rc_device *like, uint64_t addr,
		   const char *what)
{
	struct rc_device d = *like;
	struct ibv_qp *a, *b;
	struct ibv_cq *cq_a, *cq_b;
	struct rc_address at_a, at_b;

	d.context = in->context;
	d.pd = in->pd;
	a = make_qp(&d, &cq_a);
	b = make_qp(&d, &cq_b);
	at_a = rc_address(&d, a, 7);
	at_b = rc_address(&d, b, 7);
	connect_to(&d, a, &at_b);
	connect_to(&d, b, &at_a);
	say(post_and_wait(a, IBV_WR_RDMA_WRITE, addr, o->lkey, o->addr,
			  o->rkey) == IBV_WC_LOC_PROT_ERR,
	    what);
	must(ibv_destroy_qp(a) == 0 && ibv_destroy_qp(b) == 0 &&
		     ibv_destroy_cq(cq_a) == 0 && ibv_destroy_cq(cq_b) == 0,
	     "destroy");
}

static void take_and_use(int sock)
{
	struct rc_device d;
	struct rc_address mine;
	struct imports in;
	struct offer o;
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	int fd = take_fd(sock);

	tcp_recv(sock, &o, sizeof(o));
	/* An importer has opened the device by importing it, too; the GID's
	 * index is easier to find on a context of its own. */
	open_device(&d);
	import_all(&o, fd, &in);
	must(ibv_dealloc_pd(d.pd) == 0, "ibv_dealloc_pd");
	must(ibv_close_device(d.context) == 0, "ibv_close_device");
	d.context = in.context;
	d.pd = in.pd;
	qp = make_qp(&d, &cq);
	mine = rc_address(&d, qp, 7);
	connect_to(&d, qp, &o.at);
	tcp_send(sock, &mine, sizeof(mine));
	tcp_barrier(sock);
	use_dm(&in);
	use(sock, &o, &in, qp);
	refuse(&o, &in, &d, o.addr + 5 * PLACE - BYTES + 1,
	       "past the end of the maker's region");
	say(ibv_dealloc_pd(in.pd) == EBUSY,
	    "an imported domain with a queue pair on it is EBUSY");
	tcp_barrier(sock);
	refuse(&o, &in, &d, o.addr, "the maker has deregistered it");
	tcp_barrier(sock);
	ibv_unimport_mr(in.mr);
	ibv_unimport_dm(in.dm);
	must(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0, "destroy");
	/* The maker ends now: its end of the socket says so. */
	must(recv(sock, &o, 1, 0) == 0, "the maker's end");
	say(!ibv_import_mr(in.pd, o.mr) && errno == ENOENT,
	    "nothing to import of a maker that is gone");
	refuse(&o, &in, &d, o.addr, "its memory is gone with it");
	ibv_unimport_pd(in.pd);
	say(ibv_close_device(in.context) == 0, "all given back");
}

static pid_t start(void (*what)(int sock), int sock, int other)
{
	pid_t pid = fork();

	must(pid >= 0, "fork");
	if (pid)
		return pid;
	close(other);
	what(sock);
	fflush(stdout);
	_exit(0);
}

static void ended_well(pid_t pid, const char *who)
{
	int status;

	must(waitpid(pid, &status, 0) == pid, "waitpid");
	if (status)
		die("%s: status 0x%x", who, (unsigned)status);
}

int main(int argc, char **argv)
{
	pid_t maker, importer;
	int ends[2];

	device = argc > 1 ? argv[1] : NULL;
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
	/* Before any verb: two programs that know nothing of each other. */
	maker = start(make_and_give, ends[0], ends[1]);
	importer = start(take_and_use, ends[1], ends[0]);
	close(ends[0]);
	close(ends[1]);
	ended_well(maker, "maker");
	ended_well(importer, "importer");
	return 0;
}
