/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The counters of a device, as other programs of the user see them. A program
 * counts into memory that they can read. When it closes the device or exits, it
 * adds its counts to a file of totals; if it was killed, the next program that
 * opens a device or reads counters adds them. The same kind of memory holds the
 * device's roster (core/roster.h), which disappears with the program however
 * that ends.
 */
#ifndef ENGINE_COUNTERS_H
#define ENGINE_COUNTERS_H

#include <sys/types.h>

#include "core/adapter.h"

/* From now on @a counts where others can read. If that fails, @a goes on
 * counting in its own memory, and the reason is logged. */
void vb_counter_file_open(struct vb_adapter *a);
void vb_counter_file_close(struct vb_adapter *a);
/* The program exits without closing @a: add what it counted so far to the
 * totals. */
void vb_counter_file_save(struct vb_adapter *a);

struct vb_counter_file {
	char device[64];
	uint64_t counts[CNT_COUNT];
};

/* Sum up the counters of this user's programs in this network namespace, one
 * row for each device. The caller frees *@rows with free(). -errno. */
VB_MUST_CHECK int vb_counter_file_read(struct vb_counter_file **rows,
				       unsigned *count);

/* A program's memory, found among the descriptors of one process: of the
 * program or of a child that still has its parent's open. */
struct vb_counter_file_found {
	int fd; /* valid during the call, to read from */
	ino_t ino;
	int holder; /* the process that has it open */
	/* The process id of the program that made the memory, in that program's
	 * own PID namespace. */
	int maker;
	char device[64]; /* printable, NUL-terminated */
	off_t sheet;	 /* the offset of the struct vb_roster_sheet */
};

/* Call @look for the memory of each device that a process of this network
 * namespace has open, in the order of process ids, as far as the user may look
 * into the processes. 0 or -errno. */
VB_MUST_CHECK int vb_counter_file_each(
	void (*look)(void *arg, const struct vb_counter_file_found *found),
	void *arg);

#endif
