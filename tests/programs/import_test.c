// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program (the maker) makes a context, a protection domain, regions and
 * device memory, and passes them over a UNIX socket to another program (the
 * importer), which imports and uses them: its queue pairs send, receive, and
 * serve WRITEs and READs in the maker's memory. Then the importer releases
 * them, and the maker ends. Prints one line for each case.
 */
#include "rc.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES 20000 /* more bytes than one packet has */
/* Distance in bytes between the places of two cases in the maker's memory. */
#define PLACE 65536
/* number of imports by each of several threads at a time */
#define RACES 50000

static const char *device;

static void say(bool good, const char *what)
{
	printf("%s import: %s\n", good ? "ok" : "not ok", what);
	fflush(stdout);
}

/* What the maker of the objects sends to the importer. */
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
 * The maker of the objects. Places in its memory: the importer sends from 0,
 * receives into 1; the maker writes to 2 and reads 3 through the importer's
 * queue pair; 4 is the maker's own end of the connection.
 */

static void serve(int sock, struct rc_device *d, struct ibv_mr *mr, char *mem,
		  struct ibv_qp *qp)
{
	char *own = mem + 4 * PLACE;
	struct ibv_wc wc;

	/* The importer sends bytes of the maker's memory to the maker. */
	fill(mem, 'a');
	post_recv(qp, (uintptr_t)own, mr->lkey);
	tcp_barrier(sock);
	say(rc_wait(qp->recv_cq, 10, &wc) && wc.status == IBV_WC_SUCCESS &&
		    is_filled(own, 'a'),
	    "a SEND out of the maker's memory");

	/* The importer receives bytes into the maker's memory. */
	tcp_barrier(sock);
	fill(own, 'b');
	say(post_and_wait(qp, IBV_WR_SEND, (uintptr_t)own, mr->lkey, 0, 0) ==
			    IBV_WC_SUCCESS &&
		    is_filled(mem + PLACE, 'b'),
	    "a receive into the maker's memory");

	/* The maker writes to its own region by the importer's queue pair. */
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
	/* The importer reaches the maker's memory by copies of the kernel,
	 * which has no atomic copies, so atomics are refused. */
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
	/* Tell the importer that a region is deregistered now, and later that
	 * the maker ends. */
	must(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr");
	tcp_barrier(sock);
	tcp_barrier(sock);
}

/* The objects that the importing program made from the maker's handles. */

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

/* Handles are small numbers, which are equal in different processes. */
static void import_beside_own_dm(struct rc_device *d, const struct offer *o,
				 struct ibv_context *context)
{
	struct ibv_alloc_dm_attr attr = { .length = 4096 };
	struct ibv_dm *own, *theirs;
	char word[8] = { 0 };

	for (;;) {
		own = ibv_alloc_dm(d->context, &attr);
		must(own, "ibv_alloc_dm");
		if (own->handle >= o->dm)
			break;
		must(ibv_free_dm(own) == 0, "ibv_free_dm");
	}
	theirs = ibv_import_dm(context, o->dm);
	must(theirs, "ibv_import_dm");
	say(own->handle == o->dm &&
		    ibv_memcpy_from_dm(word, theirs, 8, 8) == 0 &&
		    memcmp(word, "by maker", 8) == 0,
	    "device memory that has the handle of the importer's own");
	ibv_unimport_dm(theirs);
	must(ibv_free_dm(own) == 0, "ibv_free_dm");
}

/* Accessing memory whose file was truncated would kill the program. */
static void cut_off(const struct offer *o, int fd)
{
	int copy = memfd_create("copy", MFD_CLOEXEC);
	off_t size = lseek(fd, 0, SEEK_END);
	struct ibv_context *context;
	static char head[1 << 20];

	errno = 0;
	say(ftruncate(fd, 0) != 0 && errno == EPERM &&
		    ftruncate(fd, size + 4096) != 0 && errno == EPERM,
	    "the file keeps its size");
	must(pread(fd, head, sizeof(head), 0) == sizeof(head) &&
		     write(copy, head, sizeof(head)) == sizeof(head) &&
		     ftruncate(copy, size) == 0,
	     "a copy");
	context = ibv_import_device(copy);
	must(context, "ibv_import_device");
	must(ftruncate(copy, 0) == 0, "ftruncate");
	errno = 0;
	say(!ibv_import_pd(context, o->pd) && errno == ENOENT,
	    "nothing is imported from a file that may be cut off");
	must(ibv_close_device(context) == 0, "ibv_close_device");
}

struct race {
	struct ibv_context *context;
	uint32_t pd;
	bool lost;
};

static void *import_often(void *arg)
{
	struct race *r = arg;
	struct ibv_pd *pd;
	struct ibv_mr *mr;

	for (unsigned i = 0; i < RACES && !r->lost; i++) {
		pd = ibv_import_pd(r->context, r->pd);
		mr = pd ? ibv_alloc_null_mr(pd) : NULL;
		r->lost = !mr || ibv_dereg_mr(mr);
		if (pd)
			ibv_unimport_pd(pd);
	}
	return NULL;
}

/* Several threads import the domain and unimport it at the same time, so each
 * call may be the one that makes or destroys the shared object. */
static void import_at_once(const struct offer *o, int fd)
{
	struct ibv_context *context = ibv_import_device(dup(fd));
	struct race r[3];
	pthread_t t[3];
	bool good = true;

	must(context, "ibv_import_device");
	/* fill freed memory, so that its use becomes visible */
	mallopt(M_PERTURB, 165);
	for (unsigned i = 0; i < 3; i++) {
		r[i] = (struct race){ context, o->pd, false };
		must(pthread_create(&t[i], NULL, import_often, &r[i]) == 0,
		     "pthread_create");
	}
	for (unsigned i = 0; i < 3; i++) {
		pthread_join(t[i], NULL);
		good = good && !r[i].lost;
	}
	mallopt(M_PERTURB, 0);
	say(good, "by several threads at once, who give it back at once");
	must(ibv_close_device(context) == 0, "ibv_close_device");
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

/* Two queue pairs of this process use the imported domain wrongly: each request
 * must end in an error. */
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
	/* An importer opens the device, too, since a context of its own makes
	 * it easier to find the index of the GID. */
	open_device(&d);
	cut_off(&o, fd);
	import_at_once(&o, fd);
	import_all(&o, fd, &in);
	import_beside_own_dm(&d, &o, in.context);
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
	/* The maker's program ends, and so the socket's other end closes. */
	must(recv(sock, &o, 1, 0) == 0, "the maker's end");
	say(!ibv_import_mr(in.pd, o.mr) && errno == ENOENT,
	    "nothing to import of a maker that is gone");
	refuse(&o, &in, &d, o.addr, "its memory is gone with it");
	ibv_unimport_pd(in.pd);
	say(ibv_close_device(in.context) == 0, "all given back");
}

/*
 * A maker and its child, which inherited all objects that the maker had before
 * the fork.
 */

static void import_from_parent(int sock, int fd)
{
	struct ibv_context *context = ibv_import_device(fd);
	struct rc_device d;
	struct ibv_mr *mr;
	struct ibv_pd *pd;
	struct offer o;

	must(context, "ibv_import_device");
	open_device(&d);
	tcp_recv(sock, &o, sizeof(o));
	pd = ibv_import_pd(context, o.pd);
	mr = pd ? ibv_import_mr(pd, o.mr) : NULL;
	say(d.pd->handle != o.pd && mr && mr->lkey == o.lkey,
	    "a parent's domain by a child, which has its own");
	tcp_barrier(sock);
}

static void ended_well(pid_t pid, const char *who)
{
	int status;

	must(waitpid(pid, &status, 0) == pid, "waitpid");
	if (status)
		die("%s: status 0x%x", who, (unsigned)status);
}

static void make_and_fork(int sock)
{
	static char mem[4096];
	struct offer o = { 0 };
	struct rc_device d;
	struct ibv_mr *mr;
	struct ibv_pd *pd;
	int ends[2];
	pid_t child;

	open_device(&d);
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
	fflush(stdout);
	child = fork();
	must(child >= 0, "fork");
	if (child == 0) {
		import_from_parent(ends[1], d.context->cmd_fd);
		_exit(0);
	}
	/* A domain made after fork, which the child has not inherited. */
	pd = ibv_alloc_pd(d.context);
	must(pd, "ibv_alloc_pd");
	mr = ibv_reg_mr(pd, mem, sizeof(mem), RC_ALL_ACCESS);
	must(mr, "ibv_reg_mr");
	o.pd = pd->handle;
	o.mr = mr->handle;
	o.lkey = mr->lkey;
	tcp_send(ends[0], &o, sizeof(o));
	tcp_barrier(ends[0]);
	ended_well(child, "child");
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

int main(int argc, char **argv)
{
	pid_t maker, importer;
	int ends[2];

	device = argc > 1 ? argv[1] : NULL;
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
	/* Start both programs before any verb, so that they share nothing. */
	maker = start(make_and_give, ends[0], ends[1]);
	importer = start(take_and_use, ends[1], ends[0]);
	close(ends[0]);
	close(ends[1]);
	ended_well(maker, "maker");
	ended_well(importer, "importer");
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
	ended_well(start(make_and_fork, ends[0], ends[1]), "maker and child");
	close(ends[0]);
	return 0;
}
