/* SPDX-License-Identifier: BSD-2-Clause */
/* How large the program's files may be. */
#ifndef BASE_FILE_LIMIT_H
#define BASE_FILE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

/* May a file, also one of memfd_create(), have so many bytes? The caller asks
 * before ftruncate() or write(): past RLIMIT_FSIZE the kernel sends SIGXFSZ,
 * which ends a program that does not expect it. */
static inline bool vb_file_may_have(uint64_t bytes)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
	       (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= bytes);
}

#endif
