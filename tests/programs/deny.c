/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs a program without the system calls that containers deny by default:
 * deny PROGRAM [ARGS]. They fail with EPERM, as Docker's filter makes them.
 * deny -w PROGRAM [ARGS]: only futex_waitv(2) fails, with ENOSYS, as before
 * Linux 5.16.
 * deny -a PROGRAM [ARGS]: only io_setup(2) fails, with ENOSYS, as on kernels
 * without asynchronous I/O.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

static const unsigned denied[] = {
	SYS_io_uring_setup,
	SYS_io_uring_enter,
	SYS_io_uring_register,
	SYS_userfaultfd,
	SYS_process_vm_readv,
	SYS_process_vm_writev,
	SYS_ptrace,
	SYS_bpf,
	SYS_perf_event_open,
	SYS_kcmp,
	SYS_pidfd_getfd,
	SYS_mount,
	SYS_setns,
	SYS_unshare,
};
#define COUNT (sizeof(denied) / sizeof(*denied))
static const unsigned newer[] = { SYS_futex_waitv };
static const unsigned asynchronous[] = { SYS_io_setup };

static int filter(const unsigned *calls, unsigned count, unsigned error)
{
	struct sock_filter code[2 * COUNT + 2];
	struct sock_fprog program = { 2 * count + 2, code };
	unsigned n = 0;

	code[n++] = (struct sock_filter)BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (unsigned i = 0; i < count; i++) {
		code[n++] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1);
		code[n++] = (struct sock_filter)BPF_STMT(
			BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error);
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
						 SECCOMP_RET_ALLOW);
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int argc, char **argv)
{
	int waits = argc > 1 && strcmp(argv[1], "-w") == 0;
	int asks = argc > 1 && strcmp(argv[1], "-a") == 0;

	if (argc < 2 + waits + asks)
		return 2;
	argv += waits + asks;
	if (waits  ? filter(newer, 1, ENOSYS)
	    : asks ? filter(asynchronous, 1, ENOSYS)
		   : filter(denied, COUNT, EPERM)) {
		perror("deny");
		return 126;
	}
	execvp(argv[1], argv + 1);
	perror(argv[1]);
	return 127;
}
