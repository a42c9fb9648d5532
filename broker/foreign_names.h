/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of slots that users bound themselves, without the broker. */
#ifndef BROKER_FOREIGN_NAMES_H
#define BROKER_FOREIGN_NAMES_H

#include <sys/types.h>

#include "base/defs.h"

struct vb_foreign_names {
	unsigned count;	   /* number of such names */
	uid_t uid;	   /* the user of one of them */
	vb_time looked_at; /* 0: never */
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
 * of foreign names and their user. Appends nothing if @f has none. */
void vb_foreign_names_word(const struct vb_foreign_names *f, char *text,
			   size_t size);

#endif
