/* SPDX-License-Identifier: BSD-2-Clause */
/* When a process began: with its number, this names one process for ever. */
#ifndef BASE_BIRTH_H
#define BASE_BIRTH_H

#include <stdint.h>
#include <sys/types.h>

/* Returns when process @pid began, in clock ticks since the boot (proc(5)). 0:
 * there is no such process, or /proc does not show it. */
uint64_t vb_birth_of(pid_t pid);

#endif
