/* SPDX-License-Identifier: BSD-2-Clause */
/* Leases from a real broker, in a network namespace of the test's own.
 * VERBENA_BROKER names the command. */
#include "engine/lease.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

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

/* kill -9, and see it gone. */
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

/* A pipe of the program's must see its end when the program ends. */
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
	assert_int_equal(programs(), 1);
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

/* A command that comes to nothing. */
static void lease_claim__no_broker(void **state)
{
	char *command = strdup(getenv("VERBENA_BROKER"));
	struct vb_lease l;

	setenv("VERBENA_BROKER", "/bin/false", 1);
	assert_int_equal(vb_lease_claim(&l), -ECONNREFUSED);
	setenv("VERBENA_BROKER", command, 1);
	free(command);
}

/* Many programs at once, and no broker yet. */
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
	assert_int_equal(programs(), 0);
}

static void rejoin(struct vb_lease *l)
{
	char byte;

	assert_int_equal(recv(l->broker_fd, &byte, 1, 0), 0);
	assert_int_equal(vb_lease_rejoin(l), 0);
	assert_true(l->broker_fd >= 0);
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

/* A newcomer starts the broker; those who were there rejoin a moment later. */
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
	assert_int_equal(vb_lease_rejoin(&a), -EAGAIN);
	assert_int_equal(a.broker_fd, -1);
	setenv("VERBENA_BROKER", command, 1);
	assert_int_equal(vb_lease_rejoin(&a), 0);
	vb_lease_release(&a);
	free(command);
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
		ALONE(lease_rejoin__after_kill),
		ALONE(lease_rejoin__a_newcomer_is_first),
		ALONE(lease_rejoin__nobody_to_rejoin),
	};

	if (!getenv("VERBENA_BROKER") || !netns_enter())
		return NETNS_SKIP;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
