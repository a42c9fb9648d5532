/* SPDX-License-Identifier: BSD-2-Clause */
/* Leases from a real broker, in a network namespace of the test's own.
 * VERBENA_BROKER names the command. */
#include "engine/lease.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "engine/engine.h"
#include "link/udp.h"
#include "tests/unit/netns.h"

static volatile sig_atomic_t sigchlds;

static void on_sigchld(int s)
{
	sigchlds++;
}

static pid_t broker_pid(void)
{
	struct vb_ipc report;

	return vb_lease_status(&report) == 0 ? (pid_t)report.pid : 0;
}

static unsigned programs(void)
{
	struct vb_ipc report;

	assert_int_equal(vb_lease_status(&report), 0);
	return report.programs;
}

static void nap_ms(long ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

/* A released slot stays taken until the broker has looked at its name again. */
static void await_programs(unsigned count)
{
	for (int i = 0; i < 500 && programs() != count; i++)
		nap_ms(10);
	assert_int_equal(programs(), count);
}

/* Kill the broker with SIGKILL, and wait until its process has ended. */
static void kill_broker(void)
{
	struct vb_ipc report;
	int rc = vb_lease_status(&report);

	assert_int_equal(rc, 0);
	assert_true(report.pid > 1);
	assert_int_equal(kill((pid_t)report.pid, SIGKILL), 0);
	for (int i = 0; i < 200 && rc != -ECONNREFUSED; i++) {
		nap_ms(10);
		rc = vb_lease_status(&report);
	}
	assert_int_equal(rc, -ECONNREFUSED);
}

static int no_broker_left(void **state)
{
	if (broker_pid())
		kill_broker();
	for (int i = 0; i < 200 && vb_udp_port_taken(); i++)
		nap_ms(10);
	return vb_udp_port_taken() ? -1 : 0;
}

static void claim(struct vb_lease *l, unsigned slot)
{
	assert_int_equal(vb_lease_claim(l), 0);
	assert_int_equal(l->slot, slot);
	assert_true(vb_udp_is_roce(l->rx_fd));
}

static void lease_claim__the_program_does_not_notice(void **state)
{
	struct vb_lease l;
	sigset_t before, after;
	int status;

	signal(SIGCHLD, on_sigchld);
	sigprocmask(SIG_SETMASK, NULL, &before);
	claim(&l, 1);
	sigprocmask(SIG_SETMASK, NULL, &after);
	for (int s = 1; s < NSIG; s++)
		assert_int_equal(sigismember(&before, s),
				 sigismember(&after, s));
	assert_int_equal(sigchlds, 0);
	assert_int_equal(waitpid(-1, &status, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	vb_lease_release(&l);
	signal(SIGCHLD, SIG_DFL);
}

/* The broker must not inherit a pipe of the program: the reader must get its
 * end when the program ends. */
static void lease_claim__nothing_is_inherited(void **state)
{
	struct vb_lease l;
	int pipe_fds[2];
	char byte;

	assert_int_equal(pipe(pipe_fds), 0);
	claim(&l, 1);
	close(pipe_fds[1]);
	assert_int_equal(read(pipe_fds[0], &byte, 1), 0);
	close(pipe_fds[0]);
	vb_lease_release(&l);
}

static void lease_claim__sigchld_ignored(void **state)
{
	struct vb_lease l;

	signal(SIGCHLD, SIG_IGN);
	claim(&l, 1);
	vb_lease_release(&l);
	signal(SIGCHLD, SIG_DFL);
}

static void lease_claim__lowest_slot(void **state)
{
	struct vb_lease a, b, c;

	claim(&a, 1);
	claim(&b, 2);
	assert_int_equal(programs(), 2);
	vb_lease_release(&a);
	await_programs(1);
	claim(&c, 1);
	vb_lease_release(&b);
	vb_lease_release(&c);
}

static void lease_claim__no_command(void **state)
{
	char *command = strdup(getenv("VERBENA_BROKER"));
	struct vb_lease l;

	setenv("VERBENA_BROKER", "/nowhere/verbena", 1);
	assert_int_equal(vb_lease_claim(&l), -ENOENT);
	setenv("VERBENA_BROKER", command, 1);
	free(command);
}

/* VERBENA_BROKER names a command that ends without starting a broker. */
static void lease_claim__no_broker(void **state)
{
	char *command = strdup(getenv("VERBENA_BROKER"));
	struct vb_lease l;

	setenv("VERBENA_BROKER", "/bin/false", 1);
	assert_int_equal(vb_lease_claim(&l), -ECONNREFUSED);
	setenv("VERBENA_BROKER", command, 1);
	free(command);
}

/* Many programs claim a slot at once while no broker runs. */
static void lease_claim__a_crowd(void **state)
{
	pid_t children[32];
	int gate[2], status;
	char byte;

	assert_int_equal(pipe(gate), 0);
	for (unsigned i = 0; i < VB_COUNT(children); i++) {
		struct vb_lease l;

		children[i] = fork();
		if (children[i])
			continue;
		close(gate[1]);
		status = read(gate[0], &byte, 1) < 0 || vb_lease_claim(&l);
		nap_ms(200);
		_exit(status != 0);
	}
	close(gate[0]);
	close(gate[1]);
	for (unsigned i = 0; i < VB_COUNT(children); i++) {
		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		assert_int_equal(status, 0);
	}
	await_programs(0);
}

static vb_time longest_step;

/* Wait as the engine's thread does, then make a step to the next broker. */
static int step(struct vb_lease *l)
{
	struct pollfd p = { l->broker_fd, POLLIN, 0 };
	vb_time before = vb_now(), took;
	int rc;

	if (l->retry_at != VB_NEVER)
		(void)poll(&p, 1,
			   l->retry_at > before
				   ? (int)((l->retry_at - before) / VB_MSEC) + 1
				   : 0);
	before = vb_now();
	rc = vb_lease_rejoin(l);
	took = vb_now() - before;
	longest_step = VB_MAX(longest_step, took);
	return rc;
}

static void keep_trying(struct vb_lease *l, vb_time patience)
{
	vb_time until = vb_now() + patience;
	int rc;

	do
		rc = step(l);
	while (rc == -EAGAIN && vb_now() < until);
	assert_int_equal(rc, 0);
	assert_true(l->broker_fd >= 0);
	assert_int_equal(l->retry_at, VB_NEVER);
}

static void rejoin(struct vb_lease *l)
{
	char byte;

	assert_int_equal(recv(l->broker_fd, &byte, 1, 0), 0);
	keep_trying(l, 5 * VB_SEC);
}

static void lease_rejoin__after_kill(void **state)
{
	struct vb_lease a, b, c;

	claim(&a, 1);
	claim(&b, 2);
	kill_broker();
	rejoin(&a);
	rejoin(&b);
	assert_int_equal(programs(), 2);
	claim(&c, 3);
	kill_broker();
	rejoin(&c);
	rejoin(&a);
	rejoin(&b);
	vb_lease_release(&a);
	claim(&a, 1);
	assert_int_equal(programs(), 3);
	vb_lease_release(&a);
	vb_lease_release(&b);
	vb_lease_release(&c);
}

/* A new program starts the broker; the programs that had a slot rejoin a moment
 * later. */
static void lease_rejoin__a_newcomer_is_first(void **state)
{
	struct vb_lease a, b;
	pid_t child;
	int status;

	claim(&a, 1);
	kill_broker();
	child = fork();
	if (child == 0)
		_exit(vb_lease_claim(&b) || b.slot != 2);
	nap_ms(300);
	rejoin(&a);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	vb_lease_release(&a);
}

static void lease_rejoin__nobody_to_rejoin(void **state)
{
	char *command = strdup(getenv("VERBENA_BROKER"));
	struct vb_lease a;

	claim(&a, 1);
	kill_broker();
	setenv("VERBENA_BROKER", "/nowhere/verbena", 1);
	while (a.failures < 3) {
		assert_int_equal(step(&a), -EAGAIN);
		assert_int_equal(a.broker_fd, -1);
	}
	assert_true(a.retry_at > vb_now() + 600 * VB_MSEC);
	setenv("VERBENA_BROKER", command, 1);
	keep_trying(&a, 5 * VB_SEC);
	vb_lease_release(&a);
	free(command);
}

/* A process that binds the broker's name without being a broker. */
static int squat(void)
{
	struct sockaddr_un a;
	socklen_t len = vb_ipc_address(&a, VB_IPC_BROKER);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (void *)&a, len), 0);
	assert_int_equal(listen(fd, 3), 0);
	return fd;
}

/* Reads a claim of @squatter's next session, and ends the session while the
 * program that claims is stopped for longer than a claim may take. */
static void end_late(int squatter, pid_t claimer)
{
	int fd = accept(squatter, NULL, NULL);
	char byte;

	assert_true(fd >= 0);
	assert_true(recv(fd, &byte, 1, 0) > 0);
	kill(claimer, SIGSTOP);
	nap_ms(5200);
	close(fd);
	close(squatter);
	kill(claimer, SIGCONT);
}

/* A program is stopped while it claims, and the broker ends meanwhile: the
 * program starts the next broker, although the time of a claim is over. */
static void lease_claim__stopped_while_a_broker_ended(void **state)
{
	int squatter = squat(), status;
	struct vb_lease l;
	pid_t pid = fork();

	if (pid == 0) {
		close(squatter);
		_exit(vb_lease_claim(&l) ? 1 : 0);
	}
	end_late(squatter, pid);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* A process accepts and does not answer: rejoining must not block the engine
 * thread. */
static void lease_rejoin__a_silent_broker(void **state)
{
	struct vb_lease a;
	vb_time began;
	int squatter;

	claim(&a, 1);
	kill_broker();
	squatter = squat();
	longest_step = 0;
	began = vb_now();
	while (a.failures < 3)
		assert_int_equal(step(&a), -EAGAIN);
	/* The lease waited three times for an answer, and paused twice. */
	assert_true(vb_now() - began >= 3 * VB_SEC + 600 * VB_MSEC);
	assert_true(longest_step < 20 * VB_MSEC);
	close(squatter);
	keep_trying(&a, 5 * VB_SEC);
	/* No step may block, even a step that starts a broker. */
	assert_true(longest_step < 50 * VB_MSEC);
	vb_lease_release(&a);
}

static void lease_rejoin__a_command_that_hangs(void **state)
{
	static const char hang[] = "#!/bin/sh\nexec sleep 60\n";
	char *command = strdup(getenv("VERBENA_BROKER"));
	char path[] = "/tmp/lease_test_XXXXXX";
	int fd = mkstemp(path);
	struct vb_lease a;

	assert_int_equal(write(fd, hang, strlen(hang)), strlen(hang));
	fchmod(fd, 0700);
	close(fd);
	claim(&a, 1);
	kill_broker();
	setenv("VERBENA_BROKER", path, 1);
	longest_step = 0;
	while (a.failures < 1)
		assert_int_equal(step(&a), -EAGAIN);
	assert_true(longest_step < 50 * VB_MSEC);
	setenv("VERBENA_BROKER", command, 1);
	vb_lease_release(&a);
	unlink(path);
	free(command);
}

/* Run a check in a child as user @uid. Returns 0, or the child's exit
 * status. */
static int as_user(uid_t uid, int (*what)(void))
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		if (setresuid(uid, uid, uid) < 0)
			_exit(99);
		_exit(what() & 0x7f);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int nothing(void)
{
	return 0;
}

static void need_users(void)
{
	if (as_user(1, nothing) != 0)
		skip();
}

static int claim_as_stranger(void)
{
	struct vb_lease l;

	if (vb_lease_claim(&l) != 0)
		return 1;
	if (l.vault_fd != -1 || !vb_udp_is_roce(l.rx_fd))
		return 2;
	nap_ms(50);
	return 0;
}

/* Root's broker serves every user; its vault goes only to root's programs. */
static void lease_claim__of_another_user(void **state)
{
	struct vb_lease a;

	need_users();
	claim(&a, 1);
	assert_true(a.vault_fd >= 0);
	assert_int_equal(as_user(1, claim_as_stranger), 0);
	vb_lease_release(&a);
}

#define ALONE(name) cmocka_unit_test_teardown(name, no_broker_left)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		ALONE(lease_claim__the_program_does_not_notice),
		ALONE(lease_claim__nothing_is_inherited),
		ALONE(lease_claim__sigchld_ignored),
		ALONE(lease_claim__lowest_slot),
		ALONE(lease_claim__no_command),
		ALONE(lease_claim__no_broker),
		ALONE(lease_claim__a_crowd),
		ALONE(lease_claim__stopped_while_a_broker_ended),
		ALONE(lease_rejoin__after_kill),
		ALONE(lease_rejoin__a_newcomer_is_first),
		ALONE(lease_rejoin__nobody_to_rejoin),
		ALONE(lease_rejoin__a_silent_broker),
		ALONE(lease_rejoin__a_command_that_hangs),
		ALONE(lease_claim__of_another_user),
	};

	if (!getenv("VERBENA_BROKER"))
		return NETNS_SKIP;
	/* Real root can change its user, which root of a user namespace may be
	 * unable to do. */
	if ((geteuid() != 0 || !netns_next()) && !netns_enter())
		return NETNS_SKIP;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
