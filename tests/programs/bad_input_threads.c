/* SPDX-License-Identifier: BSD-2-Clause */
/* Misuse by children of fork, by threads that are cancelled, and by two threads
 * at once. */
#include "bad_input.h"

/* Run @f in a child of fork, as destructors of the child would run. */
static void in_child(void (*f)(void))
{
	int status = -1;
	pid_t child = fork();

	must(child >= 0, "fork");
	if (child == 0) {
		alarm((unsigned)WAIT);
		f();
		_exit(problem ? 1 : 0);
	}
	must(waitpid(child, &status, 0) == child, "waitpid");
	if (status)
		wrong("the child ends with status 0x%x", status);
}

static void destroy_all(void)
{
	drop_side(&a);
	drop_side(&b);
	rc_close(&device);
}

void child_tidies_up(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr =
		rdma(IBV_WR_RDMA_WRITE, &sge, at(&b, 0), b.mr->rkey);

	connected();
	in_child(destroy_all);
	/* The calls of the child must not have changed the parent's objects. */
	refused(post(&a, &wr), 0, "post after the child");
	ends_in(&a, IBV_WC_SUCCESS);
}

static void talk_anew(void)
{
	struct side parents[2] = { a, b };
	struct rc_device parents_device = device;

	rc_open(&device, &options);
	in_fresh_sides(still_works);
	rc_close(&device);
	a = parents[0];
	b = parents[1];
	device = parents_device;
	destroy_all();
}

void child_opens_its_own(void)
{
	connected();
	in_child(talk_anew);
}

static void *poll_for_ever(void *arg)
{
	struct ibv_wc wc;

	for (;;) {
		ibv_poll_cq(b.cq, 1, &wc);
		pthread_testcancel();
	}
	return arg;
}

static void cancel_soon(void *(*run)(void *))
{
	const struct timespec soon = { .tv_nsec = 20000000 };
	pthread_t thread;

	must(!pthread_create(&thread, NULL, run, NULL), "pthread_create");
	nanosleep(&soon, NULL);
	pthread_cancel(thread);
	pthread_join(thread, NULL);
}

/* Verbs are no cancellation points: a thread that is cancelled during a poll
 * must leave the adapter in working order. */
void cancelled_poller(void)
{
	connected();
	for (int i = 0; i < 5; i++)
		cancel_soon(poll_for_ever);
}

static void *post_when_cancelled(void *arg)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr *bad,
		wr = rdma(IBV_WR_RDMA_WRITE, &sge, at(&b, 0), b.mr->rkey);

	pthread_cancel(pthread_self());
	ibv_post_send(a.qp, &wr, &bad);
	pthread_testcancel();
	return arg;
}

void cancelled_poster(void)
{
	connected();
	cancel_soon(post_when_cancelled);
	ends_in(&a, IBV_WC_SUCCESS);
}

static struct ibv_xrcd *open_domain(int fd)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd
	};

	return ibv_open_xrcd(device.context, &attr);
}

static struct ibv_xrcd *domain;
static int domain_fd;

/* The XRC domain of the parent must outlive the child, whether the child closes
 * its inherited objects or only ends. A device that the child opens must report
 * that the inode has a domain. */
static void child_with_domain(void)
{
	if (ibv_close_xrcd(domain))
		wrong("the child cannot close the domain");
	rc_open(&device, &options);
	domain = open_domain(domain_fd);
	if (!domain)
		wrong("the child cannot join the domain");
	else
		refused(ibv_close_xrcd(domain), 0, "close");
	rc_close(&device);
}

void child_and_xrc_domain(void)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.oflags = O_CREAT
	};
	FILE *f = tmpfile();
	struct ibv_xrcd *again;

	must(f, "tmpfile");
	attr.fd = domain_fd = fileno(f);
	domain = ibv_open_xrcd(device.context, &attr);
	must(domain, "ibv_open_xrcd");
	in_child(child_with_domain);
	again = open_domain(domain_fd);
	if (!again)
		wrong("the domain went with the child");
	else
		refused(ibv_close_xrcd(again), 0, "close");
	refused(ibv_close_xrcd(domain), 0, "close");
	if (open_domain(domain_fd))
		wrong("the domain outlives all");
	fclose(f);
}

/* None of the calls here is a cancellation point, although they enter the
 * kernel. */
static void *live_and_die_cancelled(void *arg)
{
	struct side s;
	struct rc_device d = device;

	pthread_cancel(pthread_self());
	rc_open(&device, &options);
	make_side(&s, RC_ALL_ACCESS);
	if (rc_to_init(s.qp, RC_ALL_ACCESS))
		wrong("to INIT");
	if (ibv_rereg_mr(s.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, s.memory,
			 BYTES, 0) ||
	    s.mr->addr != s.memory)
		wrong("ibv_rereg_mr");
	if (ibv_rereg_mr(s.mr, 1 << 9, NULL, NULL, 0, 0) !=
	    IBV_REREG_MR_ERR_INPUT)
		wrong("ibv_rereg_mr takes unknown flags");
	drop_side(&s);
	rc_close(&device);
	device = d;
	*(bool *)arg = true;
	pthread_testcancel();
	return NULL;
}

void cancelled_in_any_verb(void)
{
	bool through = false;
	pthread_t thread;
	void *end;

	must(!pthread_create(&thread, NULL, live_and_die_cancelled, &through),
	     "pthread_create");
	pthread_join(thread, &end);
	if (!through || end != PTHREAD_CANCELED)
		wrong("a verb is a cancellation point");
}

/* Two threads destroy the same object. Only kinds of objects are tested whose
 * public functions do not read the object before they call the library. */

static void *new_pd(void)
{
	return ibv_alloc_pd(device.context);
}

static int end_pd(void *o)
{
	return ibv_dealloc_pd(o);
}

static void *new_mr(void)
{
	static uint8_t memory[64];

	return ibv_reg_mr(device.pd, memory, sizeof(memory), 0);
}

static int end_mr(void *o)
{
	return ibv_dereg_mr(o);
}

static void *new_channel(void)
{
	return ibv_create_comp_channel(device.context);
}

static int end_channel(void *o)
{
	return ibv_destroy_comp_channel(o);
}

static void *new_cq(void)
{
	return ibv_create_cq(device.context, 1, NULL, NULL, 0);
}

static int end_cq(void *o)
{
	return ibv_destroy_cq(o);
}

static void *new_srq(void)
{
	struct ibv_srq_init_attr init = { .attr = { 1, 1, 0 } };

	return ibv_create_srq(device.pd, &init);
}

static int end_srq(void *o)
{
	return ibv_destroy_srq(o);
}

static void *new_qp(void)
{
	struct ibv_qp_init_attr init = { .send_cq = a.cq,
					 .recv_cq = a.cq,
					 .cap = { 1, 1, 1, 1, 0 },
					 .qp_type = IBV_QPT_RC };

	return ibv_create_qp(device.pd, &init);
}

static int end_qp(void *o)
{
	return ibv_destroy_qp(o);
}

static const struct {
	const char *what;
	void *(*make)(void);
	int (*end)(void *o);
} kinds[] = {
	{ "protection domain", new_pd, end_pd },
	{ "region", new_mr, end_mr },
	{ "channel", new_channel, end_channel },
	{ "completion queue", new_cq, end_cq },
	{ "shared receive queue", new_srq, end_srq },
	{ "queue pair", new_qp, end_qp },
};
#define KINDS  (sizeof(kinds) / sizeof(kinds[0]))
#define ROUNDS 80

/* What the two threads share that destroy the object of each round at once. */
static struct {
	pthread_barrier_t begin, end;
	void *object;
	int result;
} twice;

static void *destroy_too(void *arg)
{
	for (unsigned i = 0; i < KINDS * ROUNDS; i++) {
		pthread_barrier_wait(&twice.begin);
		twice.result = kinds[i % KINDS].end(twice.object);
		pthread_barrier_wait(&twice.end);
	}
	return arg;
}

static void destroy_twice(unsigned kind)
{
	int own;

	twice.object = kinds[kind].make();
	must(twice.object, kinds[kind].what);
	pthread_barrier_wait(&twice.begin);
	own = kinds[kind].end(twice.object);
	pthread_barrier_wait(&twice.end);
	if ((own == 0) == (twice.result == 0) ||
	    (own | twice.result) != ENOENT)
		wrong("%s: two threads destroy it: %d and %d",
		      kinds[kind].what, own, twice.result);
}

void destroyed_by_two_threads(void)
{
	pthread_t other;

	pthread_barrier_init(&twice.begin, NULL, 2);
	pthread_barrier_init(&twice.end, NULL, 2);
	must(!pthread_create(&other, NULL, destroy_too, NULL),
	     "pthread_create");
	for (unsigned i = 0; i < KINDS * ROUNDS; i++)
		destroy_twice(i % KINDS);
	pthread_join(other, NULL);
	pthread_barrier_destroy(&twice.begin);
	pthread_barrier_destroy(&twice.end);
}
