/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of slots in the abstract socket namespace that users have bound
 * themselves, without the broker. */
#ifndef BROKER_FOREIGN_NAMES_H
#define BROKER_FOREIGN_NAMES_H

#include <sys/types.h>

#include "base/defs.h"

struct vb_foreign_names {
	unsigned count;	   /* number of names that other users hold */
	uid_t uid;	   /* a user who holds one of these names */
	vb_time looked_at; /* time of the last look; 0: none yet */
};

/*
 * Asks the kernel, at most once a second, which users made the sockets that
 * have the names of the broker's slots (unix_diag(7), Linux 5.3), and logs a
 * change. The broker binds the names of the slots that it gives away, so a
 * socket of another user is foreign. An earlier broker that another user ran
 * made foreign ones, too. Where the kernel does not tell, nothing is found.
 */
void vb_foreign_names_look(struct vb_foreign_names *f, vb_time now);

/* Appends to @text, of @size bytes with the final NUL, a clause with the number
 * of slots' names that other users hold, and one of these users. Appends
 * nothing if @f has no such name. */
void vb_foreign_names_word(const struct vb_foreign_names *f, char *text,
			   size_t size);

#endif
