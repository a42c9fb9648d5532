/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The counters of a device, as other programs of the user see them. A program
 * counts in memory that they can read. When it closes the device or exits, it
 * adds its counts to a file of totals; if it was killed, the next program that
 * opens a device or reads counters adds them. Such a memory also holds the
 * device's roster (core/roster.h), which disappears with the program however it
 * ends.
 */
#ifndef ENGINE_COUNTERS_H
#define ENGINE_COUNTERS_H

#include <sys/types.h>

#include "core/adapter.h"

/* From now on @a counts in memory that others can read. If that fails, @a
 * continues to count in its own memory, and the reason is logged. */
void vb_counter_file_open(struct vb_adapter *a);
void vb_counter_file_close(struct vb_adapter *a);
/* The program exits without closing @a: add its counts so far to the totals. */
void vb_counter_file_save(struct vb_adapter *a);

struct vb_counter_file {
	char device[64];
	uint64_t counts[CNT_COUNT];
};

/* Sum up the counters of this user's programs in this network namespace, one
 * row for each device. The caller frees *@rows with free(). 0 or -errno. */
VB_MUST_CHECK int vb_counter_file_read(struct vb_counter_file **rows,
				       unsigned *count);

/* A program's memory, found among the descriptors of a process: the program
 * itself, or a child that still has its parent's memory open. */
struct vb_counter_file_found {
	int fd; /* a descriptor to read from, valid during the call */
	ino_t ino;
	int holder; /* the process that has the memory open */
	/* The process id of the program that made the memory, in that program's
	 * own PID namespace. */
	int maker;
	char device[64]; /* the device's name, printable and NUL-terminated */
	off_t sheet;	 /* the offset of the struct vb_roster_sheet */
};

/* Call @look for the memory of each device that a process of this network
 * namespace has open, in the order of process ids. Processes that the user may
 * not look into are skipped. 0 or -errno. */
VB_MUST_CHECK int vb_counter_file_each(
	void (*look)(void *arg, const struct vb_counter_file_found *found),
	void *arg);

#endif
