/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The contents of the sysfs tree (engine/sysfs_tree.h) as one text. Each line
 * names a file with one line of its contents, a symbolic link, or a directory;
 * the directories above it are implied:
 *
 *	sys/class/infiniband_verbs/abi_version<TAB>6
 *	sys/class/infiniband/roce_lo -> ../../devices/virtual/...
 *	sys/bus/verbena/devices/
 *
 * Each further line for the same file appends to it. Names contain no blanks
 *and no tabs.
 */
#ifndef ENGINE_SYSFS_TEXT_H
#define ENGINE_SYSFS_TEXT_H

#include "base/defs.h"

#define SYSFS_TEXT_LINK " -> "

/* Describe the devices that the host and VERBENA_DEVICES define now. *@text
 * ends with a newline; the caller frees it with free(). 0 or -errno. */
VB_MUST_CHECK int vb_sysfs_text(char **text);

#endif
