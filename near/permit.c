/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies that begin only while their permit holds. */
#include "near/permit.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's struct rseq, because not every system has linux/rseq.h. */
struct rseq_area {
	uint32_t cpu_id_start;
	/* number of the processor; negative: the thread is not registered */
	int32_t cpu_id;
	uint64_t sequence;
};
_Static_assert(offsetof(struct rseq_area, sequence) == 8, "rseq(2)");
_Static_assert(offsetof(struct vb_permit, is) == 24, "used below");

/* The offset from the thread pointer to the rseq area that the C library has
 * registered for each thread; 0: there is none. */
static ptrdiff_t area_at;
static pthread_once_t once = PTHREAD_ONCE_INIT;

#ifdef __x86_64__
/* Find the area by symbols of glibc 2.35 and later. They are looked up at run
 * time, so that the library also loads with an earlier glibc. */
static void find_area(void)
{
	const ptrdiff_t *offset = dlsym(RTLD_DEFAULT, "__rseq_offset");
	const unsigned *size = dlsym(RTLD_DEFAULT, "__rseq_size");

	if (offset && size && *size > 0)
		area_at = *offset;
}

static struct rseq_area *my_area(void)
{
	struct rseq_area *area;

	pthread_once(&once, find_area);
	if (area_at == 0)
		return NULL;
	area = (struct rseq_area *)((char *)__builtin_thread_pointer() +
				    area_at);
	return area->cpu_id >= 0 ? area : NULL;
}

/* A value that these system calls never return. */
#define AGAIN  (-ERESTART)
#define LAPSED (-ECANCELED)

/*
 * Check the permit and make the system call as one restartable sequence, from
 * label 2 to label 3. If the thread loses its processor in between, the kernel
 * continues it at label 4, in front of which stands the signature that rseq was
 * registered with. The sequence ends behind the system call instruction, so the
 * kernel never restarts a call that was made.
 */
static long look_and_call(struct rseq_area *area,
			  const struct vb_permit *permit, long number,
			  pid_t pid, const struct iovec *local,
			  unsigned long count, const struct iovec *remote,
			  unsigned long remote_count)
{
	register const struct iovec *r10 __asm__("r10") = remote;
	register unsigned long r8 __asm__("r8") = remote_count;
	register unsigned long r9 __asm__("r9") = 0;
	long rc = number;

	__asm__ volatile(".pushsection __rseq_cs, \"aw\"\n"
			 ".balign 32\n"
			 "1: .long 0, 0\n"
			 ".quad 2f, 3f - 2f, 4f\n"
			 ".popsection\n"
			 "leaq 1b(%%rip), %%rcx\n"
			 "movq %%rcx, 8(%[area])\n"
			 "2: movq (%[permit]), %%r11\n"
			 "movl 24(%[permit]), %%ecx\n"
			 "cmpl %%ecx, (%%r11)\n"
			 "jne 5f\n"
			 "movq 8(%[permit]), %%r11\n"
			 "movl 28(%[permit]), %%ecx\n"
			 "cmpl %%ecx, (%%r11)\n"
			 "jne 5f\n"
			 "movq 16(%[permit]), %%r11\n"
			 "movl 32(%[permit]), %%ecx\n"
			 "cmpl %%ecx, (%%r11)\n"
			 "jne 5f\n"
			 "syscall\n"
			 "3: jmp 6f\n"
			 ".byte 0x0f, 0xb9, 0x3d\n"
			 ".long 0x53053053\n"
			 "4: movq %[again], %%rax\n"
			 "jmp 6f\n"
			 "5: movq %[lapsed], %%rax\n"
			 "6:\n"
			 : "+a"(rc), "+r"(r10), "+r"(r8), "+r"(r9)
			 : [area] "r"(area), [permit] "r"(permit),
			   "D"((long)pid), "S"(local),
			   "d"(count), [again] "i"(AGAIN), [lapsed] "i"(LAPSED)
			 : "rcx", "r11", "memory", "cc");
	return rc;
}

static ssize_t copy_exactly(struct rseq_area *area,
			    const struct vb_permit *permit, long number,
			    pid_t pid, const struct iovec *local,
			    unsigned count, const struct iovec *remote,
			    unsigned remote_count)
{
	long rc;

	do
		rc = look_and_call(area, permit, number, pid, local, count,
				   remote, remote_count);
	while (rc == AGAIN);
	return rc;
}
#else
struct rseq_area;

static struct rseq_area *my_area(void)
{
	(void)once;
	(void)area_at;
	return NULL;
}

static ssize_t copy_exactly(struct rseq_area *area,
			    const struct vb_permit *permit, long number,
			    pid_t pid, const struct iovec *local,
			    unsigned count, const struct iovec *remote,
			    unsigned remote_count)
{
	/* never called on this processor, because my_area() returns NULL */
	return -ENOSYS;
}
#endif

bool vb_permit_is_exact(void)
{
	return my_area() != NULL;
}

/* Does the permit still hold? Sequentially consistent: the words are read after
 * the key was announced (near/hazard.h). */
static bool holds(const struct vb_permit *p)
{
	return atomic_load(p->word[0]) == p->is[0] &&
	       atomic_load(p->word[1]) == p->is[1] &&
	       atomic_load(p->word[2]) == p->is[2];
}

ssize_t vb_permit_copy(const struct vb_permit *permit, pid_t pid, bool put,
		       const struct iovec *local, unsigned count,
		       const struct iovec *remote, unsigned remote_count)
{
	struct rseq_area *area = my_area();
	ssize_t n;

	if (VB_LIKELY(area))
		return copy_exactly(area, permit,
				    put ? SYS_process_vm_writev
					: SYS_process_vm_readv,
				    pid, local, count, remote, remote_count);
	if (!holds(permit))
		return -ECANCELED;
	n = put ? process_vm_writev(pid, local, count, remote, remote_count, 0)
		: process_vm_readv(pid, local, count, remote, remote_count, 0);
	return n < 0 ? -errno : n;
}
