/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The counters of a device, as others see them: a program counts into memory
 * that the user's other programs can read, and when it closes the device, what
 * it counted is added to a file, as it is when it exits, and by who comes next
 * when it was killed. Memory of the same kind has the device's roster
 * (core/roster.h), which goes with the program however it ends.
 */
#ifndef ENGINE_COUNTERS_H
#define ENGINE_COUNTERS_H

#include <sys/types.h>

#include "core/adapter.h"

/* From here on @a counts where others can read. Without that it counts in
 * itself, as it did. */
void vb_counter_file_open(struct vb_adapter *a);
void vb_counter_file_close(struct vb_adapter *a);
/* The program ends without closing: what it counted so far goes to the file. */
void vb_counter_file_save(struct vb_adapter *a);

struct vb_counter_file {
	char device[64];
	uint64_t counts[CNT_COUNT];
};

/* The sums for this network namespace and user, a row a device, to free().
 * -errno. */
VB_MUST_CHECK int vb_counter_file_read(struct vb_counter_file **rows,
				       unsigned *count);

/* A program's memory, found at one process that has it; a child may have its
 * parent's. */
struct vb_counter_file_found {
	int fd; /* to read, and not to keep */
	ino_t ino;
	int holder;	 /* the process */
	int maker;	 /* the program, in its own PID namespace */
	char device[64]; /* printable */
	off_t sheet;	 /* where the vb_roster_sheet is */
};

/* Each there is in this network namespace, of processes the user may look
 * into, in the order of their numbers. -errno. */
VB_MUST_CHECK int vb_counter_file_each(
	void (*look)(void *arg, const struct vb_counter_file_found *found),
	void *arg);

#endif
