/* SPDX-License-Identifier: BSD-2-Clause */
/* Scheduling of the engine thread, and of the thread of a fabric's process: such
 * a thread sleeps most of the time, and when it wakes, other threads wait for
 * its work. */
#ifndef BASE_PROMPT_H
#define BASE_PROMPT_H

/*
 * Have the kernel run the calling thread soon after it wakes, and end its
 * sleeps on time. Linux 6.12 and later let a thread with a shorter slice
 * preempt a thread with a longer slice as soon as it wakes. Without that, a
 * thread that spins on this processor keeps it for milliseconds. No privilege
 * is needed; older kernels ignore the value. A real-time or batch policy of the
 * program stays as it is.
 */
void vb_prompt_thread(void);

#endif
