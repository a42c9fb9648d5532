/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the tree say (engine/sysfs_tree.h), as one text. A line is
 * a file with a line of its contents, a symbolic link, or a directory; those
 * above it are implied:
 *
 *	sys/class/infiniband_verbs/abi_version<TAB>6
 *	sys/class/infiniband/roce_lo -> ../../devices/virtual/...
 *	sys/bus/verbena/devices/
 *
 * A file that comes again gets a line more. Names have neither blanks nor tabs.
 */
#ifndef ENGINE_SYSFS_TEXT_H
#define ENGINE_SYSFS_TEXT_H

#include "base/defs.h"

#define SYSFS_TEXT_LINK " -> "

/* Of the devices that the host and VERBENA_DEVICES give now. *@text ends with
 * a newline and is the caller's to free(). 0 or -errno. */
VB_MUST_CHECK int vb_sysfs_text(char **text);

#endif
