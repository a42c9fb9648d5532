/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the functions behind the preload's own (NEXT() in files.h). */
#include "front/files/files.h"

/* The linker's symbols for the start and the end of the section that has all
 * entries of NEXT(). */
#define HIDDEN __attribute__((visibility("hidden")))
extern struct vb_next __start_vb_next[] HIDDEN, __stop_vb_next[] HIDDEN;

void *vb_files_look_up(struct vb_next *next)
{
	void *function = dlsym(RTLD_NEXT, next->name);

	__atomic_store_n(&next->function, function, __ATOMIC_RELAXED);
	return function;
}

__attribute__((constructor)) static void look_up_all(void)
{
	for (struct vb_next *n = __start_vb_next; n < __stop_vb_next; n++)
		vb_files_look_up(n);
}
