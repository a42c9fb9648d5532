/* SPDX-License-Identifier: BSD-2-Clause */
/* near/grace: for which peers the owner of revoked memory waits, and for how
 * long. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "core/lock_order.h"
#include "near/grace.h"
#include "near/near_priv.h"

#define KEY 0xabc
#define QPN 5

struct world {
	struct vb_peer p;
	struct vb_registry *registry;
	struct vb_hazard hazards[VB_HAZARDS];
	_Atomic uint32_t expels, their_expels;
	int far_end;
};

/* Start a process that runs (@runs) or sleeps until it is killed. */
static pid_t begin(const struct world *w, bool runs)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	close(w->far_end);
	for (;;)
		if (!runs)
			pause();
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	w->registry = mmap(NULL, sizeof(*w->registry), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(w->registry, MAP_FAILED);
	w->registry->is_exact = 1;
	w->p.world = &vb_near_host;
	w->p.registry = w->registry;
	w->p.peer_hazards = w->hazards;
	w->p.our_expels = &w->expels;
	w->p.their_expels = &w->their_expels;
	w->p.session = ends[0];
	w->far_end = ends[1];
	atomic_store(&w->p.state, PEER_UP);
	atomic_store(&w->hazards[3].what, (uint64_t)KEY << 32 | QPN);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	if (w->p.pid) {
		kill(w->p.pid, SIGKILL);
		waitpid(w->p.pid, NULL, 0);
	}
	close(w->p.session);
	if (w->far_end >= 0)
		close(w->far_end);
	munmap(w->registry, sizeof(*w->registry));
	free(w);
	return 0;
}

static bool is_over(struct world *w, vb_time age)
{
	return vb_grace_is_over(&w->p, KEY, 0, age);
}

/* Returns whether the peer was told that it is expelled, and its session is
 * shut down. */
static bool is_expelled(const struct world *w)
{
	char byte;

	return atomic_load(&w->expels) &&
	       recv(w->far_end, &byte, 1, MSG_DONTWAIT) == 0;
}

static void grace__only_the_named_key_and_queue_pair(void **state)
{
	struct world *w = *state;

	assert_true(vb_grace_is_over(&w->p, KEY + 1, 0, 0));
	assert_true(vb_grace_is_over(&w->p, 0, QPN + 1, 0));
	assert_false(vb_grace_is_over(&w->p, 0, QPN, 0));
	assert_false(is_over(w, 0));
}

/* A stopped process is given 2 ms. After that /proc says that it is in no copy,
 * so the owner continues. */
static void grace__stopped_peer_is_not_waited_for(void **state)
{
	struct world *w = *state;
	int status;

	w->p.pid = begin(w, true);
	assert_int_equal(kill(w->p.pid, SIGSTOP), 0);
	waitpid(w->p.pid, &status, WUNTRACED);
	assert_false(is_over(w, 1 * VB_MSEC));
	assert_true(is_over(w, 3 * VB_MSEC));
	assert_false(is_expelled(w));
	/* Without exact permits the stopped process could still begin a
	 * copy. */
	w->registry->is_exact = 0;
	assert_false(is_over(w, 5 * VB_SEC));
}

static void grace__sleeping_peer_is_not_waited_for(void **state)
{
	struct world *w = *state;

	w->p.pid = begin(w, false);
	for (unsigned i = 0; i < 1000 && !is_over(w, 3 * VB_MSEC); i++)
		usleep(1000);
	assert_true(is_over(w, 3 * VB_MSEC));
}

/* No copy takes ten seconds: after that the session is shut down. */
static void grace__running_peer_is_waited_for_then_expelled(void **state)
{
	struct world *w = *state;

	w->p.pid = begin(w, true);
	assert_false(is_over(w, 3 * VB_MSEC));
	assert_false(is_over(w, VB_GRACE_UNSEEN + 1));
	assert_false(is_expelled(w));
	assert_true(is_over(w, VB_GRACE_RUNS + 1));
	assert_true(is_expelled(w));
}

/* The peer can write to the word that tells it that it is expelled; the session
 * ends nevertheless. */
static void grace__peer_that_sets_its_own_word_is_expelled(void **state)
{
	struct world *w = *state;

	atomic_store(&w->expels, 1);
	w->p.pid = begin(w, true);
	assert_false(is_expelled(w));
	assert_true(is_over(w, VB_GRACE_RUNS + 1));
	assert_true(is_expelled(w));
}

/* A peer that has ended is not waited for: the engine thread, which ends its
 * session, may be waiting for this very thread. */
static void grace__ended_peer_is_not_waited_for(void **state)
{
	struct world *w = *state;

	w->registry->is_exact = 0;
	w->p.pid = begin(w, true);
	close(w->far_end);
	w->far_end = -1;
	kill(w->p.pid, SIGKILL);
	waitpid(w->p.pid, NULL, 0);
	assert_true(is_over(w, 3 * VB_MSEC));
	w->p.pid = 0;
}

/* A peer that has closed the session may still live and be copying, whether or
 * not its engine's thread still runs, so the owner waits for it. */
static void grace__peer_that_hung_up_is_waited_for(void **state)
{
	struct world *w = *state;

	w->p.pid = begin(w, true);
	atomic_store(&w->their_expels, 1);
	shutdown(w->far_end, SHUT_RDWR);
	assert_false(is_over(w, 3 * VB_MSEC));
	vb_registry_live(w->registry);
	assert_false(is_over(w, 3 * VB_MSEC));
	assert_true(is_over(w, VB_GRACE_RUNS + 1));
	assert_int_equal(atomic_load(&w->expels), 1);
	/* For a peer that has closed the session the owner waits only once. */
	assert_true(is_over(w, 0));
	vb_registry_die(w->registry);
}

/* /proc does not show the process, so it cannot say that the process is outside
 * of a copy. If it is inside, it may copy after the owner has gone on. */
static enum vb_whereabouts sees_nothing(void *arg, pid_t pid)
{
	return IS_UNSEEN;
}

static void grace__hidden_peer_is_waited_for_then_expelled(void **state)
{
	struct world *w = *state;
	struct vb_near_world blind = vb_near_host;

	blind.find = sees_nothing;
	w->p.world = &blind;
	assert_false(is_over(w, 3 * VB_MSEC));
	assert_false(is_expelled(w));
	assert_true(is_over(w, VB_GRACE_UNSEEN + 1));
	assert_true(is_expelled(w));
	w->p.pid = 0;
}

/* A child of the peer has kept the socket of the session, so the kernel does
 * not end the session with the peer. */
static void
grace__ended_peer_whose_session_stays_is_not_waited_for(void **state)
{
	struct world *w = *state;

	w->p.pid = begin(w, false);
	kill(w->p.pid, SIGKILL);
	waitpid(w->p.pid, NULL, 0);
	assert_true(is_over(w, 3 * VB_MSEC));
	assert_false(is_expelled(w));
	w->p.pid = 0;
}

#define FREEZER	    "/sys/fs/cgroup/freezer/verbena-hold-test"
#define COPIED_MUCH (256u << 20)

static bool write_to(const char *file, const char *text)
{
	FILE *f = fopen(file, "w");
	bool done = f && fputs(text, f) >= 0;

	return (f && fclose(f) == 0) && done;
}

/* Start a process that copies this one's memory all the time. */
static pid_t begin_copying(const struct world *w, char *memory)
{
	pid_t pid = fork(), us;
	struct iovec far = { memory, COPIED_MUCH }, near = far;

	assert_true(pid >= 0);
	if (pid)
		return pid;
	us = getppid();
	close(w->far_end);
	for (;;)
		(void)!process_vm_readv(us, &near, 1, &far, 1, 0);
}

static bool is_frozen_now(void)
{
	char text[16] = "";
	FILE *f = fopen(FREEZER "/freezer.state", "r");

	if (f && !fgets(text, sizeof(text), f))
		text[0] = '\0';
	if (f)
		fclose(f);
	return strncmp(text, "FROZEN", 6) == 0;
}

/* A cgroup freezer stops a thread after its system call has copied, but /proc
 * still shows the thread inside the call. */
static void grace__frozen_peer_is_not_waited_for(void **state)
{
	struct world *w = *state;
	enum vb_whereabouts where;
	char *memory, text[16];
	bool frozen;

	if (mkdir(FREEZER, 0700) < 0)
		skip();
	memory = mmap(NULL, COPIED_MUCH, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	w->p.pid = begin_copying(w, memory);
	snprintf(text, sizeof(text), "%d", w->p.pid);
	assert_true(write_to(FREEZER "/tasks", text));
	usleep(50000);
	assert_true(write_to(FREEZER "/freezer.state", "FROZEN"));
	for (unsigned i = 0; i < 30000 && !is_frozen_now(); i++)
		usleep(1000);
	frozen = is_frozen_now();
	where = vb_near_host.find(NULL, w->p.pid);
	/* SIGKILL ends a frozen process only after it is thawed. */
	kill(w->p.pid, SIGKILL);
	(void)write_to(FREEZER "/freezer.state", "THAWED");
	waitpid(w->p.pid, NULL, 0);
	w->p.pid = 0;
	rmdir(FREEZER);
	assert_true(frozen);
	assert_int_equal(where, IS_ELSEWHERE);
	munmap(memory, COPIED_MUCH);
}

static void grace__wait_ends_when_the_peer_is_stopped(void **state)
{
	struct world *w = *state;
	vb_time then = vb_clock_read();
	int status;

	w->p.pid = begin(w, true);
	kill(w->p.pid, SIGSTOP);
	waitpid(w->p.pid, &status, WUNTRACED);
	vb_grace_await(&w->p, KEY, QPN, &(struct vb_age){ 0 });
	assert_true(vb_clock_read() - then < 1 * VB_SEC);
}

/*
 * Peers in virtual time; the kernel reports the same state of all of them.
 * @stopped: for how long the waiting thread itself is stopped in each pause.
 * @stays: number of looks after which the peers have ended their copies.
 */

#define PEERS 5

static struct crowd {
	vb_time now, stopped;
	enum vb_whereabouts at;
	unsigned looks, stays, expelled;
	bool has_hung_up;
	struct vb_near *near;
	struct vb_near_world kernel;
	struct vb_peer peers[PEERS];
	struct vb_hazard hazards[PEERS][VB_HAZARDS];
	_Atomic uint32_t expels[PEERS];
	struct vb_registry *registry;
} * crowd;

static vb_time crowd_now(void *arg)
{
	return crowd->now;
}

static void crowd_pause(void *arg, vb_time ns)
{
	crowd->now += VB_MAX(ns, 1000) + crowd->stopped;
}

static enum vb_whereabouts crowd_find(void *arg, pid_t pid)
{
	if (++crowd->looks == crowd->stays)
		for (unsigned i = 0; i < PEERS; i++)
			atomic_store(&crowd->hazards[i][0].what, 0);
	return crowd->at;
}

static bool crowd_has_hung_up(void *arg, const struct vb_peer *p)
{
	return crowd->has_hung_up;
}

static void crowd_hang_up(void *arg, const struct vb_peer *p)
{
	crowd->expelled++;
}

static int open_crowd(void **state)
{
	struct crowd *c = crowd = calloc(1, sizeof(*crowd));

	c->near = calloc(1, sizeof(*c->near));
	c->registry = mmap(NULL, sizeof(*c->registry), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(c->registry, MAP_FAILED);
	c->registry->is_exact = 1;
	c->now = VB_SEC;
	c->kernel = (struct vb_near_world){ .now = crowd_now,
					    .pause = crowd_pause,
					    .find = crowd_find,
					    .has_hung_up = crowd_has_hung_up,
					    .hang_up = crowd_hang_up };
	c->near->world = &c->kernel;
	vb_mutex_init(&c->near->lock, RANK_NEAR);
	for (unsigned i = 0; i < PEERS; i++) {
		struct vb_peer *p = &c->peers[i];

		p->world = &c->kernel;
		p->registry = c->registry;
		p->peer_hazards = c->hazards[i];
		p->our_expels = p->their_expels = &c->expels[i];
		atomic_store(&p->refs, 1);
		atomic_store(&p->state, PEER_UP);
		atomic_store(&c->hazards[i][0].what, (uint64_t)KEY << 32);
		c->near->peers[1 + i] = p;
		c->near->known[0] |= 2u << i;
	}
	return 0;
}

static int close_crowd(void **state)
{
	vb_mutex_fini(&crowd->near->lock);
	munmap(crowd->registry, sizeof(*crowd->registry));
	free(crowd->near);
	free(crowd);
	return 0;
}

/* The owner waits once for all frozen peers together, and not for each in
 * turn. */
static void crowd__that_is_frozen_costs_one_limit(void **state)
{
	crowd->at = IS_UNSEEN;
	vb_near_await(crowd->near, KEY);
	assert_int_equal(crowd->expelled, PEERS);
	assert_true(crowd->now - VB_SEC >= VB_GRACE_UNSEEN);
	assert_true(crowd->now - VB_SEC < VB_GRACE_UNSEEN + 100 * VB_MSEC);
}

/* The waiting thread gets its processor only for a moment in each second, so
 * the peers may have had none either: they must not be expelled. */
static void crowd__is_not_blamed_for_our_own_stops(void **state)
{
	crowd->at = MAY_COPY;
	crowd->stopped = VB_SEC;
	crowd->stays = 500;
	vb_near_await(crowd->near, KEY);
	assert_int_equal(crowd->looks, 500);
	assert_int_equal(crowd->expelled, 0);
}

/* A work request that unbinds a window does not wait: it asks from time to time
 * whether the accesses have ended. */
static void crowd__is_drained_when_each_was_waited_for(void **state)
{
	struct vb_age age = { 0 };

	crowd->at = IS_UNSEEN;
	assert_false(vb_near_is_drained(crowd->near, KEY, &age));
	crowd->now += 100 * VB_SEC;
	assert_false(vb_near_is_drained(crowd->near, KEY, &age));
	assert_int_equal(age.sum, VB_AGE_STEP);
	assert_int_equal(crowd->expelled, 0);
	while (age.sum < VB_GRACE_UNSEEN) {
		assert_int_equal(crowd->expelled, 0);
		crowd->now += VB_MSEC;
		(void)vb_near_is_drained(crowd->near, KEY, &age);
	}
	assert_true(vb_near_is_drained(crowd->near, KEY, &age));
	assert_int_equal(crowd->expelled, PEERS);
}

/* Another thread processes the lane of a peer, and holds a part of a message
 * for a queue pair that is being destroyed. The thread that destroys it waits
 * 100 ms at most; the other thread looks at the lane once more. */
static void crowd__settle_does_not_wait_for_a_claim(void **state)
{
	struct vb_peer *p = &crowd->peers[0];
	vb_time took;

	vb_mutex_init(&crowd->near->lanes_lock, VB_RANK_LEAF);
	crowd->near->active[0] = p;
	crowd->near->active_count = 1;
	atomic_store(&p->lent_by, QPN);
	p->claim.taken = true;
	vb_lanes_take_parts_back(crowd->near, QPN);
	took = crowd->now - VB_SEC;
	assert_in_range(took, 100 * VB_MSEC, 110 * VB_MSEC);
	assert_int_equal(atomic_load(&p->lent_by), QPN);
	assert_true(p->claim.taken && p->claim.missed);
	assert_int_equal(atomic_load(&p->refs), 1);
	/* There is no wait for parts of messages to another queue pair. */
	vb_lanes_take_parts_back(crowd->near, QPN + 1);
	assert_int_equal(crowd->now - VB_SEC, took);
	vb_mutex_fini(&crowd->near->lanes_lock);
}

/* Ask 1000 times in 10 ms whether the first peer has left. */
static void ask_often(bool has_left)
{
	for (unsigned i = 0; i < 1000; i++, crowd->now += 10 * VB_USEC)
		assert_int_equal(vb_grace_has_left(&crowd->peers[0], 0),
				 has_left);
}

/* A thread that asks often whether a peer has left does not make each question
 * a look into /proc. */
static void crowd__that_leaves_is_asked_now_and_then(void **state)
{
	crowd->at = MAY_COPY;
	atomic_store(&crowd->expels[0], 1);
	ask_often(false); /* the session has not ended yet */
	assert_int_equal(crowd->looks, 0);
	crowd->has_hung_up = true;
	ask_often(false);
	assert_in_range(crowd->looks, 5, 10);
	crowd->at = IS_ELSEWHERE;
	crowd->now += VB_GRACE_ASK_EVERY;
	assert_true(vb_grace_has_left(&crowd->peers[0], 0));
	/* The kernel has ended the session, so the peer's threads have ended.
	 */
	crowd->looks = 0;
	atomic_store(&crowd->expels[0], 0);
	ask_often(true);
	assert_int_equal(crowd->looks, 0);
}

#define CROWD(f) cmocka_unit_test_setup_teardown(f, open_crowd, close_crowd)
#define TEST(f)	 cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(grace__only_the_named_key_and_queue_pair),
		TEST(grace__stopped_peer_is_not_waited_for),
		TEST(grace__sleeping_peer_is_not_waited_for),
		TEST(grace__running_peer_is_waited_for_then_expelled),
		TEST(grace__peer_that_sets_its_own_word_is_expelled),
		TEST(grace__ended_peer_is_not_waited_for),
		TEST(grace__peer_that_hung_up_is_waited_for),
		TEST(grace__hidden_peer_is_waited_for_then_expelled),
		TEST(grace__ended_peer_whose_session_stays_is_not_waited_for),
		TEST(grace__frozen_peer_is_not_waited_for),
		TEST(grace__wait_ends_when_the_peer_is_stopped),
		CROWD(crowd__that_is_frozen_costs_one_limit),
		CROWD(crowd__is_not_blamed_for_our_own_stops),
		CROWD(crowd__is_drained_when_each_was_waited_for),
		CROWD(crowd__that_leaves_is_asked_now_and_then),
		CROWD(crowd__settle_does_not_wait_for_a_claim),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
