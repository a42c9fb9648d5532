/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How large the program's files may be (RLIMIT_FSIZE). Past that the kernel
 * sends SIGXFSZ, which ends a program that does not expect it, and it cannot
 * expect it of a library that writes a file of its own.
 */
#ifndef BASE_FILE_LIMIT_H
#define BASE_FILE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* May a file, also one of memfd_create(), have so many bytes? The caller asks
 * before ftruncate() and fallocate(). */
bool vb_file_may_have(uint64_t bytes);

/* Like pwrite(), or like write() where @at is negative, but past the limit
 * there is no signal: EFBIG, or fewer bytes. */
ssize_t vb_file_write(int fd, const void *bytes, size_t count, off_t at);

#endif
