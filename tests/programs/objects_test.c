/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes and destroys objects of every kind: many at a time, in any order; and
 * destroys objects that do not exist any more, or never did.
 *
 *	objects_test [-d DEVICE] [-4|-6] [-n COUNT]	COUNT objects at a time,
 *			or as many as the device allows
 *
 * Each line is a case: "ok NAME", "not ok NAME" or "skip NAME # why".
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rc.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define FEW	 256
/* Seconds of processor time by which destroying one object among many may take
 * longer than among few. A search through a list of that many objects takes
 * more than ten times as long. */
#define MAY_GROW 10e-6

static struct rc_options options = RC_OPTIONS;
static unsigned many_objects = 16384;
static struct rc_device device;
static struct ibv_cq *cq;
static uint8_t memory[4096];

/*
 * Functions that make and destroy each kind of object: they return 0 or an
 * errno.
 */

static void *make_pd(void)
{
	return ibv_alloc_pd(device.context);
}

static void *make_parent(void)
{
	struct ibv_parent_domain_init_attr init = { .pd = device.pd };

	return ibv_alloc_parent_domain(device.context, &init);
}

static void *import_pd(void)
{
	return ibv_import_pd(device.context, device.pd->handle);
}

static int unimport_pd(void *pd)
{
	ibv_unimport_pd(pd);
	return 0;
}

static void *make_td(void)
{
	struct ibv_td_init_attr init = { 0 };

	return ibv_alloc_td(device.context, &init);
}

static void *make_mr(void)
{
	return ibv_reg_mr(device.pd, memory, sizeof(memory), 0);
}

static void *make_mw(void)
{
	return ibv_alloc_mw(device.pd, IBV_MW_TYPE_2);
}

static void *make_dm(void)
{
	struct ibv_alloc_dm_attr init = { .length = 4 };

	return ibv_alloc_dm(device.context, &init);
}

static void *make_ah(void)
{
	struct ibv_ah_attr attr = { .is_global = 1,
				    .port_num = 1,
				    .grh = { .dgid = device.gid,
					     .sgid_index =
						     (uint8_t)device.gid_index,
					     .hop_limit = 64 } };

	return ibv_create_ah(device.pd, &attr);
}

static void *make_channel(void)
{
	return ibv_create_comp_channel(device.context);
}

static void *make_cq(void)
{
	return ibv_create_cq(device.context, 1, NULL, NULL, 0);
}

static void *make_srq(void)
{
	struct ibv_srq_init_attr init = { .attr = { 1, 1, 0 } };

	return ibv_create_srq(device.pd, &init);
}

static void *make_xrcd(void)
{
	struct ibv_xrcd_init_attr init = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};

	return ibv_open_xrcd(device.context, &init);
}

static void *make_qp(void)
{
	return rc_qp(&device, cq, 1, 1, 0);
}

static void *make_wq(void)
{
	struct ibv_wq_init_attr init = { .wq_type = IBV_WQT_RQ,
					 .max_wr = 1,
					 .max_sge = 1,
					 .pd = device.pd,
					 .cq = cq };

	return ibv_create_wq(device.context, &init);
}

static void *make_counters(void)
{
	struct ibv_counters_init_attr init = { 0 };

	return ibv_create_counters(device.context, &init);
}

#define END(name, call, type)                                                  \
	static int name(void *object)                                          \
	{                                                                      \
		struct type *o = object;                                       \
                                                                               \
		errno = 0;                                                     \
		return call(o) ? errno : 0;                                    \
	}
END(end_pd, ibv_dealloc_pd, ibv_pd)
END(end_td, ibv_dealloc_td, ibv_td)
END(end_mr, ibv_dereg_mr, ibv_mr)
END(end_mw, ibv_dealloc_mw, ibv_mw)
END(end_dm, ibv_free_dm, ibv_dm)
END(end_ah, ibv_destroy_ah, ibv_ah)
END(end_channel, ibv_destroy_comp_channel, ibv_comp_channel)
END(end_cq, ibv_destroy_cq, ibv_cq)
END(end_srq, ibv_destroy_srq, ibv_srq)
END(end_xrcd, ibv_close_xrcd, ibv_xrcd)
END(end_qp, ibv_destroy_qp, ibv_qp)
END(end_wq, ibv_destroy_wq, ibv_wq)
END(end_counters, ibv_destroy_counters, ibv_counters)

#define NOWHERE	     SIZE_MAX
#define NO_LIMIT     SIZE_MAX
#define DESCRIPTORS  (SIZE_MAX - 1) /* each object uses a descriptor */
#define LIMIT(field) offsetof(struct ibv_device_attr, field)
static const struct kind {
	const char *name;
	void *(*make)(void);
	int (*end)(void *object);
	/* the header's inline function calls the library through the object's
	 * context */
	bool by_header;
	/* size of the public struct, and offsets of context and handle in it */
	size_t bytes, context, handle;
	/* offset of the device's limit in struct ibv_device_attr, or one of the
	 * constants above */
	size_t limit;
} kinds[] = {
// clang-format off
#define ROW(name, make, end, by, type, handle, limit) \
	{ name, make, end, by, sizeof(struct type), offsetof(struct type, context), handle, limit }
#define HANDLE(type) offsetof(struct type, handle)
	ROW("domain",		 make_pd,	end_pd, false,	     ibv_pd,	   HANDLE(ibv_pd),  LIMIT(max_pd)),
	ROW("parental domain",	 make_parent,	end_pd, false,	     ibv_pd,	   HANDLE(ibv_pd),  LIMIT(max_pd)),
	ROW("imported domain",	 import_pd,	unimport_pd, false, ibv_pd,	   HANDLE(ibv_pd),  LIMIT(max_pd)),
	ROW("thread domain",	 make_td,	end_td, true,	     ibv_td,	   NOWHERE,	    NO_LIMIT),
	ROW("region",		 make_mr,	end_mr, false,	     ibv_mr,	   HANDLE(ibv_mr),  LIMIT(max_mr)),
	ROW("window",		 make_mw,	end_mw, true,	     ibv_mw,	   HANDLE(ibv_mw),  LIMIT(max_mw)),
	ROW("device memory",	 make_dm,	end_dm, true,	     ibv_dm,	   HANDLE(ibv_dm),  NO_LIMIT),
	ROW("address handle",	 make_ah,	end_ah, false,	     ibv_ah,	   HANDLE(ibv_ah),  LIMIT(max_ah)),
	ROW("completion queue",	 make_cq,	end_cq, false,	     ibv_cq,	   HANDLE(ibv_cq),  LIMIT(max_cq)),
	ROW("shared queue",	 make_srq,	end_srq, false,     ibv_srq,	   HANDLE(ibv_srq), LIMIT(max_srq)),
	ROW("XRC domain",	 make_xrcd,	end_xrcd, true,    ibv_xrcd,	   NOWHERE,	    NO_LIMIT),
	ROW("queue pair",	 make_qp,	end_qp, false,	     ibv_qp,	   HANDLE(ibv_qp),  LIMIT(max_qp)),
	ROW("work queue",	 make_wq,	end_wq, true,	     ibv_wq,	   HANDLE(ibv_wq),  LIMIT(max_qp)),
	ROW("counters",		 make_counters, end_counters, true, ibv_counters, NOWHERE,	    NO_LIMIT),
	ROW("completion channel", make_channel, end_channel, false, ibv_comp_channel, NOWHERE,	    DESCRIPTORS),
#undef HANDLE
#undef ROW
	// clang-format on
};

/* Returns the seconds of processor time that this process has used, which do
 * not depend on other programs. */
static double processor_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Returns the processor time of destroying one object. The oldest goes first:
 * in a list with the newest at its head that is the longest search. */
static double end_of(const struct kind *k, void **objects, unsigned count)
{
	double began = processor_seconds();

	for (unsigned i = 0; i < count; i++)
		if (k->end(objects[i]))
			die("%s %u of %u: %s", k->name, i, count,
			    strerror(errno));
	return (processor_seconds() - began) / count;
}

static double make_and_end(const struct kind *k, unsigned count)
{
	void **objects = calloc(count, sizeof(*objects));
	double each;

	must(objects, "calloc");
	for (unsigned i = 0; i < count; i++) {
		objects[i] = k->make();
		if (!objects[i])
			die("%s %u of %u: %s", k->name, i, count,
			    strerror(errno));
	}
	each = end_of(k, objects, count);
	free(objects);
	return each;
}

/* Number of objects of a kind that the program keeps for other purposes. */
#define SPARE 64

/* Returns how many objects of kind @k the test makes at a time. */
static unsigned most_of(const struct kind *k)
{
	struct ibv_device_attr attr;
	int limit;

	if (k->limit == DESCRIPTORS)
		return FEW;
	if (k->limit == NO_LIMIT)
		return many_objects;
	must(!ibv_query_device(device.context, &attr), "ibv_query_device");
	memcpy(&limit, (const char *)&attr + k->limit, sizeof(limit));
	limit -= SPARE;
	return limit < (int)many_objects ? (unsigned)limit : many_objects;
}

/* Measure several times and use the minimum, because the machine does other
 * work as well. */
static void judge_many(const struct kind *k)
{
	double few = 1, many = 1;
	unsigned most = most_of(k);

	for (int i = 0; i < 3; i++) {
		double took = make_and_end(k, FEW);

		few = took < few ? took : few;
		took = make_and_end(k, most);
		many = took < many ? took : many;
	}
	printf("%sok %s: %.1f us at its end among %u, %.1f among %d\n",
	       many < few + MAY_GROW ? "" : "not ", k->name, many * 1e6, most,
	       few * 1e6, FEW);
	fflush(stdout);
}

/*
 * Wrong objects. Each case runs in a child, so that a crash ends only that
 * child.
 */

/* Destroy an object twice. The freed memory may have any contents, but the
 * header's function must find the library. */
static int end_twice(const struct kind *k)
{
	void *object = k->make();

	must(object && !k->end(object), k->name);
	for (size_t room = k->bytes; !k->by_header && room < 4096; room += 16) {
		/* one allocation gets the memory of the destroyed object */
		void *mine = malloc(room);

		must(mine, "malloc");
		memset(mine, 0xa5, room);
	}
	return k->end(object);
}

/* The program overwrites a handle by mistake and repairs it afterwards; then
 * the object works as before. */
static int end_by_another_handle(const struct kind *k)
{
	uint8_t *object = k->make();
	uint32_t was, other;
	int err;

	must(object, k->name);
	memcpy(&was, object + k->handle, sizeof(was));
	other = was ^ 0xdeadbeef;
	memcpy(object + k->handle, &other, sizeof(other));
	err = k->end(object);
	memcpy(object + k->handle, &was, sizeof(was));
	must(!k->end(object), k->name);
	return err;
}

/* Destroy a struct that no call made, but that looks like an object. */
static int end_made_up(const struct kind *k)
{
	uint8_t *object = calloc(1, k->bytes);

	must(object, "calloc");
	memcpy(object + k->context, &device.context, sizeof(device.context));
	if (k->handle != NOWHERE)
		memset(object + k->handle, 0xff, sizeof(uint32_t));
	return k->end(object);
}

/* Call the kind's destroy function with an object of another kind. */
static int end_of_another(const struct kind *k)
{
	return k->end(k->make == make_cq ? (void *)device.pd : (void *)cq);
}

static const struct mistake {
	const char *name;
	int (*make)(const struct kind *k);
	int error;
	bool needs_handle;
} mistakes[] = {
	{ "twice", end_twice, ENOENT, false },
	{ "by another handle", end_by_another_handle, ENOENT, true },
	{ "made up", end_made_up, ENOENT, false },
	{ "of another kind", end_of_another, EINVAL, false },
};

static int in_child(const struct kind *k, const struct mistake *m)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	must(pid >= 0, "fork");
	/* a child cannot destroy inherited objects, so it makes its own */
	if (pid == 0) {
		rc_open(&device, &options);
		cq = make_cq();
		must(cq, "a completion queue");
		_exit(m->make(k));
	}
	must(waitpid(pid, &status, 0) == pid, "waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void judge_mistake(const struct kind *k, const struct mistake *m)
{
	int got;

	if (m->needs_handle && k->handle == NOWHERE)
		return;
	got = in_child(k, m);
	printf("%sok %s %s: %s\n", got == m->error ? "" : "not ", k->name,
	       m->name, got < 0 ? strsignal(-got) : strerror(got));
	fflush(stdout);
}

static void refused(const char *what, int err)
{
	printf("%sok %s: %s\n", err == ENOENT ? "" : "not ", what,
	       err ? strerror(err) : "it works");
	fflush(stdout);
}

/* Returns 0 if the call made @object, otherwise the call's errno. */
static int made(const void *object)
{
	return object ? 0 : errno;
}

static void stand_on_nothing(void)
{
	struct ibv_qp_init_attr of_cq = { .qp_type = IBV_QPT_RC,
					  .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_qp_init_attr of_pd = { .send_cq = cq,
					  .recv_cq = cq,
					  .qp_type = IBV_QPT_RC,
					  .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_srq_init_attr of_srq = { .attr = { 1, 1, 0 } };
	struct ibv_pd *pd = make_pd();
	struct ibv_cq *queue = make_cq();
	struct ibv_comp_channel *channel = make_channel();

	must(pd && queue && channel, "objects");
	must(!end_pd(pd) && !end_cq(queue) && !end_channel(channel), "ends");
	of_cq.send_cq = of_cq.recv_cq = queue;
	refused("a region of a domain that is gone",
		made(ibv_reg_mr(pd, memory, sizeof(memory), 0)));
	refused("a shared queue of a domain that is gone",
		made(ibv_create_srq(pd, &of_srq)));
	refused("a queue pair of a domain that is gone",
		made(ibv_create_qp(pd, &of_pd)));
	refused("a queue pair with a completion queue that is gone",
		made(ibv_create_qp(device.pd, &of_cq)));
	refused("a completion queue with a channel that is gone",
		made(ibv_create_cq(device.context, 1, NULL, channel, 0)));
	refused("another size of a completion queue that is gone",
		ibv_resize_cq(queue, 2));
}

static void ask_nothing(void)
{
	struct ibv_context *context = ibv_open_device(device.context->device);
	struct ibv_qp *qp = make_qp();
	struct ibv_srq *srq = make_srq();
	struct ibv_mr *mr = make_mr();
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct ibv_srq_attr limit = { .srq_limit = 1 };
	struct ibv_qp_init_attr init;

	must(context && qp && srq && mr, "objects");
	must(!end_qp(qp) && !end_srq(srq) && !end_mr(mr), "ends");
	must(!ibv_close_device(context), "ibv_close_device");
	refused("a move of a queue pair that is gone",
		ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	refused("the state of a queue pair that is gone",
		ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
	refused("the limit of a shared queue that is gone",
		ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT));
	refused("what a shared queue that is gone has",
		ibv_query_srq(srq, &limit));
	errno = 0;
	refused("other rights of a region that is gone",
		ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			     0) == IBV_REREG_MR_ERR_INPUT
			? errno
			: 0);
	errno = 0;
	refused("a device that is closed twice",
		ibv_close_device(context) == -1 ? errno : 0);
}

static bool is_there(const struct kind *k)
{
	void *object = k->make();

	if (object)
		must(!k->end(object), k->name);
	else
		printf("skip %s # %s\n", k->name, strerror(errno));
	return object;
}

static void judge(const struct kind *k)
{
	judge_many(k);
	for (size_t i = 0; i < COUNT(mistakes) && k->end != unimport_pd; i++)
		judge_mistake(k, &mistakes[i]);
}

static void read_options(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, RC_LETTERS "n:")) != -1)
		if (c == 'n')
			many_objects = (unsigned)atoi(optarg);
		else
			rc_read_option(&options, c);
}

int main(int argc, char **argv)
{
	read_options(argc, argv);
	rc_open(&device, &options);
	cq = ibv_create_cq(device.context, 1, NULL, NULL, 0);
	must(cq, "a completion queue");
	for (size_t i = 0; i < COUNT(kinds); i++)
		if (is_there(&kinds[i]))
			judge(&kinds[i]);
	stand_on_nothing();
	ask_nothing();
	return 0;
}
