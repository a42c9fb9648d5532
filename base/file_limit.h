/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes files within the program's limit on file sizes (RLIMIT_FSIZE). Beyond
 * the limit the kernel sends SIGXFSZ, which ends a program that does not handle
 * this signal; no program expects that when a library writes a file.
 */
#ifndef BASE_FILE_LIMIT_H
#define BASE_FILE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Does the limit allow a file of @bytes bytes (memfd_create()'s files
 * included)? The caller asks before ftruncate() and fallocate(). */
bool vb_file_may_have(uint64_t bytes);

/* Writes like pwrite(), or like write() if @at is negative, but raises no
 * signal beyond the limit: it returns fewer bytes, or -1 with EFBIG in
 * errno. */
ssize_t vb_file_write(int fd, const void *bytes, size_t count, off_t at);

#endif
