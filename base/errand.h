/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An errand is a call that may wait for as long as another process likes, such
 * as reading that process's memory. A thread of its own makes the call, and an
 * eventfd tells its owner, a loop that waits for nobody, when the call has
 * returned. A call that never returns costs a thread, and nothing else.
 */
#ifndef BASE_ERRAND_H
#define BASE_ERRAND_H

#include "base/defs.h"

/* The most errands of one owner that are under way. */
#define VB_ERRANDS_MOST 32
/* The most bytes of an errand's arguments. */
#define VB_ERRAND_ARGS 32

/* The errands of one owner. One thread uses them; no lock is needed. */
struct vb_errands;
struct vb_errand;

struct vb_errand_kind {
	/* Makes the call, in the errand's thread. The owner may be gone, so
	 * this function uses only its own copy of the arguments. */
	long (*run)(const void *args);
	/* Called in place of vb_errand_end() if the owner has dropped the
	 * errand: releases what @result stands for. NULL: @result needs no
	 * release. Any thread calls this. */
	void (*unwanted)(long result);
};

/* Make a set of errands, empty at first. NULL: no memory, or no descriptor. */
VB_MUST_CHECK struct vb_errands *vb_errands_create(void);
/* Free @all, after the caller has ended or dropped each errand. The calls of
 * dropped errands may still go on in their threads. */
void vb_errands_release(struct vb_errands *all);
/* Returns the eventfd that becomes readable when an errand has ended. */
int vb_errands_fd(const struct vb_errands *all);
/* Make the eventfd of vb_errands_fd() unreadable; afterwards the caller calls
 * vb_errand_end() for each errand, to find those that have ended. */
void vb_errands_hear(struct vb_errands *all);
/* Returns how many errands of @all still have a thread that runs their call. */
unsigned vb_errands_under_way(const struct vb_errands *all);

/* Start an errand with a copy of @args, of @size bytes. The caller ends it by
 * vb_errand_end() or vb_errand_drop(). @kind exists for ever. NULL: too many
 * are under way, or there is no memory or no thread. Never waits. */
VB_MUST_CHECK struct vb_errand *
vb_errand_start(struct vb_errands *all, const struct vb_errand_kind *kind,
		const void *args, size_t size);
/* If the call has returned, store what it returned in *@result, free @e, and
 * return true. */
VB_MUST_CHECK bool vb_errand_end(struct vb_errand *e, long *result);
/* Give up the errand @e: the caller no longer needs its result. The errand's
 * thread frees @e when the call returns. */
void vb_errand_drop(struct vb_errand *e);

#endif
