/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files that Linux shows in /sys and in /dev/infiniband for RDMA devices,
 * as a tree of our own: some programs read them and not the verbs. There is one
 * for each user, network namespace and choice of devices. Only the user may
 * write it; any user may enter it, for it says no secret and a
 * program may change its user.
 */
#ifndef ENGINE_SYSFS_TREE_H
#define ENGINE_SYSFS_TREE_H

#include <limits.h>

#include "base/defs.h"

/* Bring the tree to what the host and VERBENA_DEVICES say now, and tell where
 * it is: @root/sys stands for /sys and @root/dev for /dev, and no symbolic link
 * leads to @root. False: there is none, @root is undefined. Trees of namespaces
 * without a process of the user go. */
bool vb_sysfs_tree_write(char root[PATH_MAX]);

#endif
