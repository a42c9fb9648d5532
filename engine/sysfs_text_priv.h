/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines of the tree's text that adapters of all kinds have. @parent is the
 * device's directory, "sys/devices/virtual/verbena/NAME". */
#ifndef ENGINE_SYSFS_TEXT_PRIV_H
#define ENGINE_SYSFS_TEXT_PRIV_H

#include <stdio.h>

#include "base/defs.h"

#define SYSFS_TEXT_DEVICES "sys/devices/virtual/verbena"

/* Write one line: a file of @directory and its contents, or a link. */
void eng_sysfs_text_put(FILE *f, const char *directory, const char *format, ...)
	VB_PRINTF(3, 4);
/* Write what a bus has: driver, subsystem, processors. */
void eng_sysfs_text_parent(FILE *f, const char *parent, const char *name);
/* Write what each class directory has, for @entry of the class. */
void eng_sysfs_text_class(FILE *f, const char *parent, const char *name,
			  const char *class, const char *entry);
/* Write the node uverbs@number, and its entry in /sys. */
void eng_sysfs_text_verbs(FILE *f, const char *parent, const char *name,
			  unsigned number);
/* Write the node umad@number, and its entry in /sys, for @port of a device. */
void eng_sysfs_text_mad(FILE *f, const char *parent, const char *name,
			unsigned number, unsigned port);

#endif
