/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that forks while its other threads are inside verbs:
 *
 *	fork_test [options]		children that begin with verbs anew
 *	fork_test [options] inherited	a child that uses what is its parent's,
 *					and exits; for valgrind
 *	fork_test [options] slot	a child has no socket of the slot's
 *	fork_test [options] replaced	a child has what the program has put in
 *					the place of the library's descriptors
 *
 * Prints "done". Exit status: 0, or 1 for a failure; a child that hangs is
 * ended by its alarm, which is one.
 */
#include <dirent.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rc.h"

#define SECONDS	    6
#define PATIENCE    20
#define DESCRIPTORS 256

static struct rc_options options = RC_OPTIONS;
static struct rc_device device;
static atomic_bool over;

static void *register_memory(void *arg)
{
	static char memory[1 << 16];

	while (!atomic_load(&over)) {
		struct ibv_mr *mr = ibv_reg_mr(device.pd, memory,
					       sizeof(memory), RC_ALL_ACCESS);

		must(mr, "ibv_reg_mr");
		must(!ibv_dereg_mr(mr), "ibv_dereg_mr");
	}
	return arg;
}

static void *list_devices(void *arg)
{
	while (!atomic_load(&over)) {
		struct ibv_device **list = ibv_get_device_list(NULL);

		must(list, "ibv_get_device_list");
		ibv_free_device_list(list);
	}
	return arg;
}

static void *make_domains(void *arg)
{
	struct ibv_alloc_dm_attr attr = { .length = 4096 };

	while (!atomic_load(&over)) {
		struct ibv_pd *pd = ibv_alloc_pd(device.context);
		struct ibv_dm *dm = ibv_alloc_dm(device.context, &attr);

		must(pd && dm, "ibv_alloc_pd and ibv_alloc_dm");
		must(!ibv_free_dm(dm), "ibv_free_dm");
		must(!ibv_dealloc_pd(pd), "ibv_dealloc_pd");
	}
	return arg;
}

/* In a child: use one object of each kind that a lock of the process guards,
 * and exit. */
static void begin_anew(void)
{
	struct ibv_alloc_dm_attr attr = { .length = 4096 };
	struct ibv_dm *dm;
	struct ibv_mr *mr;
	char byte;

	alarm(PATIENCE);
	rc_open(&device, &options);
	mr = ibv_reg_mr(device.pd, &byte, 1, 0);
	dm = ibv_alloc_dm(device.context, &attr);
	must(mr && dm, "objects of the child's own");
	must(!ibv_dereg_mr(mr) && !ibv_free_dm(dm), "the end of them");
	rc_close(&device);
	_exit(0);
}

static void fork_one(unsigned number)
{
	pid_t pid = fork();
	int status;

	must(pid >= 0, "fork");
	if (pid == 0)
		begin_anew();
	must(waitpid(pid, &status, 0) == pid, "waitpid");
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		die("child %u hung", number);
	if (status)
		die("child %u ended with 0x%x", number, (unsigned)status);
}

static void fork_many(void)
{
	static void *(*const works[])(void *) = { register_memory, list_devices,
						  make_domains };
	pthread_t threads[sizeof(works) / sizeof(*works)];
	const size_t count = sizeof(works) / sizeof(*works);
	time_t until = time(NULL) + SECONDS;
	unsigned number = 0;

	for (size_t i = 0; i < count; i++)
		must(!pthread_create(&threads[i], NULL, works[i], NULL),
		     "pthread_create");
	while (time(NULL) < until)
		fork_one(number++);
	atomic_store(&over, true);
	for (size_t i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	printf("# %u children\n", number);
}

/*
 * A daemon closes all descriptors that it does not know, and opens its own. The
 * library then no longer works, but the program's descriptors must stay.
 */
static void replace(void)
{
	int own[DESCRIPTORS] = { 0 }, status;
	struct stat before[DESCRIPTORS], now;
	pid_t pid;

	for (int fd = 3; fd < DESCRIPTORS; fd++)
		if (fstat(fd, &now) == 0)
			own[fd] = 1;
	for (int fd = 3; fd < DESCRIPTORS; fd++) {
		int mine = own[fd] ? socket(AF_UNIX, SOCK_DGRAM, 0) : -1;

		if (own[fd] && mine != fd) {
			must(dup2(mine, fd) == fd, "dup2");
			close(mine);
		}
		must(!own[fd] || !fstat(fd, &before[fd]), "fstat");
	}
	pid = fork();
	must(pid >= 0, "fork");
	for (int fd = 3; pid == 0 && fd < DESCRIPTORS; fd++)
		if (own[fd] &&
		    (fstat(fd, &now) || now.st_ino != before[fd].st_ino))
			_exit(fd);
	if (pid == 0)
		_exit(0);
	must(waitpid(pid, &status, 0) == pid, "waitpid");
	if (status)
		die("the child has lost descriptor %d", WEXITSTATUS(status));
}

static void inherit(void)
{
	pid_t pid = fork();
	int status;

	must(pid >= 0, "fork");
	if (pid == 0) {
		alarm(PATIENCE);
		(void)ibv_create_cq(device.context, 4, NULL, NULL, 0);
		exit(0);
	}
	must(waitpid(pid, &status, 0) == pid, "waitpid");
	if (status)
		die("the child ended with 0x%x", (unsigned)status);
	rc_close(&device);
}

#define ROCE_PORT 4791

static bool receives_for_slot(int fd)
{
	struct sockaddr_in6 a = { 0 };
	socklen_t len = sizeof(a);

	return getsockname(fd, (struct sockaddr *)&a, &len) == 0 &&
	       (a.sin6_family == AF_INET6 || a.sin6_family == AF_INET) &&
	       ntohs(a.sin6_port) == ROCE_PORT;
}

static int count_sockets(void)
{
	int count = 0;

	for (int fd = 0; fd < DESCRIPTORS; fd++)
		count += receives_for_slot(fd);
	return count;
}

static void leave_slot(void)
{
	pid_t pid = fork();
	int status;

	must(pid >= 0, "fork");
	if (pid == 0)
		_exit(count_sockets());
	must(waitpid(pid, &status, 0) == pid, "waitpid");
	must(count_sockets() > 0, "a socket of the slot's");
	if (status)
		die("the child has %d of the slot's sockets",
		    WEXITSTATUS(status));
	rc_close(&device);
}

int main(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, RC_LETTERS)) != -1)
		rc_read_option(&options, c);
	rc_open(&device, &options);
	if (argv[optind] && strcmp(argv[optind], "replaced") == 0)
		replace();
	else if (argv[optind] && strcmp(argv[optind], "slot") == 0)
		leave_slot();
	else if (argv[optind] && strcmp(argv[optind], "inherited") == 0)
		inherit();
	else
		fork_many();
	puts("done");
	fflush(stdout);
	_exit(0);
}
