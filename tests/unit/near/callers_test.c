/* SPDX-License-Identifier: BSD-2-Clause */
/* near/callers, near/proof: a hostile process of the same user calls. It costs
 * this program a thread or a session, and nothing else. */
#include "tests/unit/near/session_bed.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/birth.h"
#include "base/fdmail.h"
#include "base/shm.h"
#include "tests/support/slow_file.h"

#define PATIENCE 20000 /* milliseconds */

/*
 * Functions that play the hostile process.
 */

/* A message between two engines, as near/session.c has it. */
struct words {
	uint32_t magic;
	uint16_t version, kind, slot, also, reaches, zero;
};
#define MAGIC 0x76626e72
#define HELLO 0

enum lie {
	LIES_NOT,
	IS_SILENT,    /* the hostile process says nothing */
	PAGE_IS_LATE, /* the nonce is in a page that never comes */
	/* the process sends descriptors of files whose close() waits */
	FILES_ARE_SLOW,
	/* like FILES_ARE_SLOW, with as many descriptors as the kernel lets one
	 * message carry */
	FILES_TOO_MANY,
};

struct hostile {
	enum lie lie;
	unsigned own;	/* the slot whose name it has */
	unsigned slot;	/* the slot that it claims */
	unsigned also;	/* the second slot that it claims, or 0 */
	unsigned calls; /* the slot that it calls */
	struct slow_file *file;
	pid_t pid;
	int ready; /* a byte comes here for each call */
};

static int call_slot(unsigned slot)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un a;
	socklen_t len = vb_ipc_slot_address(&a, slot);

	return connect(fd, (void *)&a, len) == 0 ? fd : -1;
}

static void say_hello(const struct hostile *h, int session)
{
	const struct words hello = { MAGIC,
				     VB_NEAR_VERSION,
				     HELLO,
				     (uint16_t)h->slot,
				     (uint16_t)h->also,
				     0,
				     0 };
	int fds[VB_FDMAIL_FDS], count = 2;
	struct vb_registry *registry;
	void *lane;

	if (vb_registry_create(h->slot, &registry, &fds[0]) ||
	    vb_shm_create("lane", sizeof(struct vb_lane), &fds[1], &lane))
		_exit(2);
	vb_registry_live(registry);
	if (h->lie == PAGE_IS_LATE)
		registry->nonce_at =
			(uintptr_t)mmap(NULL, SLOW_BYTES, PROT_READ, MAP_SHARED,
					slow_open(h->file), 0);
	if (h->lie == FILES_TOO_MANY)
		count = VB_FDMAIL_FDS;
	for (int i = 0; h->lie >= FILES_ARE_SLOW && i < count; i++)
		fds[i] = slow_open(h->file);
	(void)!vb_fdmail_send(session, &hello, sizeof(hello), fds,
			      (unsigned)count, 0);
}

#define AT_ONCE 5

/* Call the program again each time that the session ends. */
static void be_hostile(const struct hostile *h, int ready)
{
	int name = name_of(h->own);
	char byte;

	listen(name, 2 * AT_ONCE);
	for (unsigned i = 0; h->lie == PAGE_IS_LATE && i < AT_ONCE; i++)
		say_hello(h, call_slot(h->calls));
	for (;;) {
		int session = call_slot(h->calls);

		if (session < 0)
			_exit(3);
		if (h->lie != IS_SILENT)
			say_hello(h, session);
		if (write(ready, "", 1) != 1)
			_exit(4);
		while (recv(session, &byte, 1, 0) > 0)
			;
		close(session);
	}
}

static void call_in(struct hostile *h)
{
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	h->pid = fork();
	if (h->pid == 0)
		be_hostile(h, fds[1]);
	close(fds[1]);
	h->ready = fds[0];
}

static void await_call(const struct hostile *h)
{
	char byte;

	assert_int_equal(read(h->ready, &byte, 1), 1);
}

/* Kill the process. Its slow file system must end first, since a process that
 * ends closes its files. */
static void end_hostile(const struct hostile *h)
{
	kill(h->pid, SIGKILL);
	if (h->file)
		slow_end(h->file);
	waitpid(h->pid, NULL, 0);
	close(h->ready);
}

/* Check that an honest program can call @called, and gets a session. */
static void expect_service(struct program *called)
{
	struct program honest;
	bool up = false;

	begin(&honest, 9);
	(void)vb_session_want(honest.near, called->near->c.slot);
	for (int i = 0; i < PATIENCE && !up; i++) {
		const struct vb_peer *p = called->near->peers[9];

		vb_near_meet(honest.near, 0);
		vb_near_meet(called->near, 0);
		up = p && p == called->near->peers[9] && vb_peer_is_up(p);
		usleep(1000);
	}
	assert_true(up);
	end(&honest);
}

/* Serve the program until *@count is at least @least. */
static void serve_until(struct program *p, const _Atomic unsigned *count,
			unsigned least)
{
	for (int i = 0; i < PATIENCE && atomic_load(count) < least; i++) {
		vb_near_meet(p->near, 0);
		usleep(1000);
	}
	assert_true(atomic_load(count) >= least);
}

static void serve_for(struct program *p, int ms)
{
	while (ms-- > 0) {
		vb_near_meet(p->near, 0);
		usleep(1000);
	}
}

/*
 * The tests.
 */

/* The program reads the nonce in the caller's memory, in a thread. One process
 * takes two threads at most. */
static void proof__waits_for_no_page_of_the_caller(void **state)
{
	struct hostile h = { PAGE_IS_LATE, 3, 3, 0, 1 };
	struct program called;
	struct slow_file file;

	if (!slow_begin(&file))
		skip();
	h.file = &file;
	begin(&called, 1);
	call_in(&h);
	await_call(&h);
	alarm(60); /* ends the test if the engine's thread waits for ever */
	serve_until(&called, &file.waits->reads, 1);
	expect_service(&called);
	assert_in_range(vb_errands_under_way(called.near->errands), 1, 2);
	assert_null(called.near->peers[3]);
	alarm(0);
	end_hostile(&h);
	end(&called);
}

/* An errand that lasts until it can read a byte. */
static long read_byte(const void *args)
{
	char byte;

	return read(*(const int *)args, &byte, 1);
}

static const struct vb_errand_kind blocking = { .run = read_byte };

static bool have_met(struct program *a, struct program *b, int ms)
{
	const struct vb_peer *p = NULL;

	while (ms-- > 0 && !(p && vb_peer_is_up(p))) {
		vb_near_meet(a->near, 0);
		vb_near_meet(b->near, 0);
		p = a->near->peers[b->near->c.slot];
		usleep(1000);
	}
	return p && vb_peer_is_up(p);
}

/* Two programs, of which the first has no thread free for an errand. */
struct shortage {
	struct program caller, called;
	struct vb_errand *taken[VB_ERRANDS_MOST];
	int fds[2]; /* a pipe: closing its second end frees the threads */
};

static void begin_shortage(struct shortage *s)
{
	assert_int_equal(pipe(s->fds), 0);
	begin(&s->caller, 1);
	begin(&s->called, 2);
	for (unsigned i = 0; i < VB_ERRANDS_MOST; i++) {
		s->taken[i] =
			vb_errand_start(s->caller.near->errands, &blocking,
					&s->fds[0], sizeof(s->fds[0]));
		assert_non_null(s->taken[i]);
	}
	(void)vb_session_want(s->caller.near, 2);
	assert_false(have_met(&s->caller, &s->called, 200));
	assert_true(vb_near_sees_off(s->caller.near));
}

static void end_shortage(struct shortage *s)
{
	for (unsigned i = 0; i < VB_ERRANDS_MOST; i++)
		vb_errand_drop(s->taken[i]);
	close(s->fds[0]);
	end(&s->caller);
	end(&s->called);
}

/* Because all threads are taken, the introduction waits, and is not refused. */
static void proof__waits_for_a_thread(void **state)
{
	struct shortage s;

	begin_shortage(&s);
	assert_non_null(s.caller.near->peers[2]);
	assert_int_equal(s.caller.near->calls[2].refusals, 0);
	close(s.fds[1]);
	assert_true(have_met(&s.caller, &s.called, PATIENCE));
	assert_false(vb_near_sees_off(s.caller.near));
	end_shortage(&s);
}

/* Threads that do not come free, or of which the process may have no more: the
 * session ends, and the queue pairs use packets. */
static void proof__waits_not_for_ever(void **state)
{
	struct shortage s;

	begin_shortage(&s);
	for (vb_time now = VB_SEC; now < 4 * VB_SEC; now += VB_MSEC)
		vb_near_meet(s.caller.near, now);
	assert_true(s.caller.near->calls[2].refusals > 0);
	assert_int_equal(s.caller.near->proofs_waiting, 0);
	close(s.fds[1]);
	end_shortage(&s);
}

static void hear__closes_no_file_of_the_caller(void **state)
{
	for (enum lie lie = FILES_ARE_SLOW; lie <= FILES_TOO_MANY; lie++) {
		struct hostile h = { lie, 3, 3, 0, 1 };
		struct program called;
		struct slow_file file;

		if (!slow_begin(&file))
			skip();
		h.file = &file;
		begin(&called, 1);
		call_in(&h);
		await_call(&h);
		alarm(60);
		serve_until(&called, &file.waits->closes, 1);
		expect_service(&called);
		alarm(0);
		/* The hostile process is an outlaw now, so its later calls are
		 * refused. */
		assert_int_equal(called.near->outlaws.count, 1);
		end_hostile(&h);
		end(&called);
	}
}

static void caller__has_the_slot_that_it_names(void **state)
{
	struct hostile h = { LIES_NOT, 3, 2, 0, 1 };
	struct program called, owner;

	begin(&called, 1);
	begin(&owner, 2);
	call_in(&h);
	await_call(&h);
	serve_for(&called, 100);
	assert_null(called.near->peers[2]);
	(void)vb_session_want(owner.near, 1);
	meet(&owner, &called);
	assert_true(vb_peer_is_up(called.near->peers[2]));
	assert_int_equal(called.near->peers[2]->pid, getpid());
	end_hostile(&h);
	end(&called);
	end(&owner);
}

static void caller__has_both_slots_that_it_names(void **state)
{
	struct hostile h = { LIES_NOT, 3, 3, 2, 1 };
	struct program called, owner;

	begin(&called, 1);
	begin(&owner, 2);
	call_in(&h);
	await_call(&h);
	for (int i = 0; i < PATIENCE && !called.near->peers[3]; i++)
		serve_for(&called, 1);
	assert_non_null(called.near->peers[3]);
	assert_null(called.near->peers[2]);
	end_hostile(&h);
	end(&called);
	end(&owner);
}

/* A process that was expelled is refused as long as it lives; a later process
 * in its slot is not. */
static void expelled__process_does_not_come_back(void **state)
{
	struct hostile h = { LIES_NOT, 3, 3, 0, 1 };
	struct program called;

	begin(&called, 1);
	call_in(&h);
	await_call(&h);
	for (int i = 0; i < PATIENCE && !called.near->peers[3]; i++)
		serve_for(&called, 1);
	assert_non_null(called.near->peers[3]);
	vb_peer_expel(called.near->peers[3], "broke a rule, says this test");
	for (int i = 0; i < 3; i++) {
		struct pollfd again = { h.ready, POLLIN, 0 };

		while (poll(&again, 1, 1) == 0)
			vb_near_meet(called.near, 0);
		await_call(&h);
	}
	serve_for(&called, 100);
	assert_null(called.near->peers[3]);
	expect_service(&called);
	/* Another process calls from the same slot, and gets a session. */
	end_hostile(&h);
	call_in(&h);
	await_call(&h);
	for (int i = 0; i < PATIENCE && !called.near->peers[3]; i++)
		serve_for(&called, 1);
	assert_non_null(called.near->peers[3]);
	end_hostile(&h);
	end(&called);
}

/* A process that was expelled gets no session when this program calls it
 * either. */
static void expelled__process_is_not_called(void **state)
{
	struct program a, b;

	begin(&a, 1);
	begin(&b, 2);
	(void)vb_session_want(a.near, 2);
	meet(&a, &b);
	vb_peer_expel(a.near->peers[2], "broke a rule, says this test");
	meet(&a, &b);
	assert_null(a.near->peers[2]);
	(void)vb_session_want(a.near, 2);
	meet(&a, &b);
	assert_null(a.near->peers[2]);
	end(&a);
	end(&b);
}

/* A thread of the program reads the rings on a session's socket. If a ring
 * carries a descriptor, that thread leaves the ring to the engine's thread,
 * since the kernel might close the descriptor in the thread that reads. */
static void ring__with_a_descriptor_is_left(void **state)
{
	struct program a, b;
	int session, pipes[2];

	begin(&a, 1);
	begin(&b, 2);
	(void)vb_session_want(a.near, 2);
	meet(&a, &b);
	session = a.near->peers[2]->session;
	assert_int_equal(vb_fdmail_send(session, "", 1, NULL, 0, 0), 0);
	assert_true(vb_near_hear_rings(b.near));
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(vb_fdmail_send(session, "", 1, pipes, 1, 0), 0);
	assert_false(vb_near_hear_rings(b.near));
	assert_non_null(b.near->peers[1]);
	meet(&b, &a);
	assert_null(b.near->peers[1]);
	close(pipes[0]);
	close(pipes[1]);
	end(&a);
	end(&b);
}

/* A program calls while this one has no free descriptor. It is accepted when
 * there is one again. */
static void accept__goes_on_after_a_shortage(void **state)
{
	struct hostile h = { LIES_NOT, 3, 3, 0, 1 };
	struct rlimit before, none;
	struct program called;
	int lowest;

	begin(&called, 1);
	call_in(&h);
	await_call(&h);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	lowest = dup(0);
	close(lowest);
	none.rlim_cur = (rlim_t)lowest;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	serve_for(&called, 20);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_null(called.near->peers[3]);
	assert_true(vb_near_sees_off(called.near));
	for (int i = 0; i < PATIENCE && !called.near->peers[3]; i++)
		serve_for(&called, 1);
	assert_non_null(called.near->peers[3]);
	assert_false(vb_near_sees_off(called.near));
	end_hostile(&h);
	end(&called);
}

static void outlaws__are_forgotten_when_they_have_ended(void **state)
{
	struct vb_outlaws all = { 0 };
	struct vb_outlaw who[10];

	for (unsigned i = 0; i < VB_COUNT(who); i++) {
		who[i].pid = fork();
		if (who[i].pid == 0) {
			pause();
			_exit(0);
		}
		who[i].born = vb_birth_of(who[i].pid);
		vb_outlaws_add(&all, &who[i]);
		vb_outlaws_add(&all, &who[i]);
	}
	assert_int_equal(all.count, VB_COUNT(who));
	for (unsigned i = 0; i < VB_COUNT(who) - 1; i++) {
		kill(who[i].pid, SIGKILL);
		waitpid(who[i].pid, NULL, 0);
	}
	vb_outlaws_add(&all, &who[9]);
	assert_int_equal(all.count, 1);
	assert_true(vb_outlaws_have(&all, &who[9]));
	who[9].born++;
	assert_false(vb_outlaws_have(&all, &who[9]));
	kill(who[9].pid, SIGKILL);
	waitpid(who[9].pid, NULL, 0);
	vb_outlaws_fini(&all);
}

/*
 * Another process (the thief) also has the socket at which this program
 * accepts. It accepts a caller between this program's look at the socket and
 * its accept4(); that call must not wait for the next caller.
 */

static _Atomic bool steals;
static _Atomic int stolen = -1;

static long steal(int fd, int cmd, long arg)
{
	long rc = syscall(SYS_fcntl, fd, cmd, arg);
	int caller;

	if (cmd != F_SETFL || fd < 0)
		return rc;
	caller = (int)syscall(SYS_accept4, fd, NULL, NULL, SOCK_CLOEXEC);
	if (caller >= 0)
		atomic_store(&stolen, caller);
	syscall(SYS_fcntl, fd, F_SETFL, 0);
	return rc;
}

/* Replaces the C library's function, to steal the caller at that moment. */
int fcntl64(int fd, int cmd, ...)
{
	va_list list;
	long arg;

	va_start(list, cmd);
	arg = va_arg(list, long);
	va_end(list);
	return (int)(atomic_load(&steals) ? steal(fd, cmd, arg)
					  : syscall(SYS_fcntl, fd, cmd, arg));
}

static void accept__holds_nobody_up(void **state)
{
	struct hostile h = { IS_SILENT, 3, 3, 0, 1 };
	struct program called, other;
	vb_time then;

	begin(&called, 1);
	begin(&other, 2);
	(void)vb_session_want(called.near, 2);
	meet(&called, &other);
	atomic_store(&steals, true);
	alarm(60);
	call_in(&h);
	await_call(&h);
	for (int i = 0; i < PATIENCE && atomic_load(&stolen) < 0; i++)
		serve_for(&called, 1);
	serve_for(&called, 20);
	assert_int_equal(vb_errands_under_way(called.near->errands), 1);
	atomic_store(&steals, false);
	/* Sessions that existed before the theft continue. */
	then = vb_near_host.now(NULL);
	vb_peer_ring(other.near->peers[1]);
	serve_for(&called, 20);
	assert_true(vb_peer_is_up(called.near->peers[2]));
	assert_true(vb_near_host.now(NULL) - then < 30 * VB_SEC);
	alarm(0);
	close(atomic_load(&stolen));
	end(&called);
	end(&other);
	end_hostile(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(proof__waits_for_no_page_of_the_caller),
		cmocka_unit_test(proof__waits_for_a_thread),
		cmocka_unit_test(proof__waits_not_for_ever),
		cmocka_unit_test(hear__closes_no_file_of_the_caller),
		cmocka_unit_test(caller__has_the_slot_that_it_names),
		cmocka_unit_test(caller__has_both_slots_that_it_names),
		cmocka_unit_test(expelled__process_does_not_come_back),
		cmocka_unit_test(expelled__process_is_not_called),
		cmocka_unit_test(ring__with_a_descriptor_is_left),
		cmocka_unit_test(accept__goes_on_after_a_shortage),
		cmocka_unit_test(outlaws__are_forgotten_when_they_have_ended),
		cmocka_unit_test(accept__holds_nobody_up),
	};

	if (!netns_enter())
		return NETNS_SKIP;
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
