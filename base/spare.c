/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/spare.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/guard.h"

#define MAPPINGS 64
/* @at of an entry that a thread is filling in; no mapping begins there */
#define RESERVED 1

/* The signal handler reads the table at any time, so it has no lock. */
static struct {
	/* where the mapping begins; 0: the entry is free */
	_Atomic uintptr_t at;
	_Atomic size_t len;
} mappings[MAPPINGS];

int vb_spare_add(void *at, size_t len)
{
	int rc = vb_guard_install();

	for (unsigned i = 0; rc == 0 && i < MAPPINGS; i++) {
		uintptr_t none = 0;

		if (!atomic_compare_exchange_strong(&mappings[i].at, &none,
						    RESERVED))
			continue;
		atomic_store(&mappings[i].len, len);
		atomic_store(&mappings[i].at, (uintptr_t)at);
		return 0;
	}
	return rc ? rc : -ENOSPC;
}

void vb_spare_drop(void *at)
{
	for (unsigned i = 0; i < MAPPINGS; i++) {
		uintptr_t mine = (uintptr_t)at;

		if (atomic_compare_exchange_strong(&mappings[i].at, &mine, 0))
			return;
	}
}

/* Two threads can fault at once, and the second one's pages replace those of
 * the first. This loses what the first thread wrote, but no thread faults
 * again. */
bool vb_spare_fill(const void *fault)
{
	int before = errno;
	bool filled = false;

	for (unsigned i = 0; i < MAPPINGS && !filled; i++) {
		uintptr_t at = atomic_load(&mappings[i].at);
		size_t len = atomic_load(&mappings[i].len);

		if (at > RESERVED && (uintptr_t)fault - at < len)
			filled = mmap((void *)at, len, PROT_READ | PROT_WRITE,
				      MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS,
				      -1, 0) != MAP_FAILED;
	}
	errno = before;
	return filled;
}
