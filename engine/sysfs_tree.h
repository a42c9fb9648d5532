/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files that Linux shows in /sys and /dev/infiniband for RDMA devices, as a
 * tree of Verbena's own, because some programs read these files instead of
 * calling verbs. There is one tree for each user, network namespace and choice
 * of devices. Only the user may write the tree. Any user may read it, since it
 * holds no secret and a program may change its user.
 */
#ifndef ENGINE_SYSFS_TREE_H
#define ENGINE_SYSFS_TREE_H

#include <limits.h>

#include "base/defs.h"

/* Bring the tree up to date with the host and VERBENA_DEVICES, and store its
 * name in @root: @root/sys stands for /sys and @root/dev for /dev, and @root
 * contains no symbolic link. Also removes trees of namespaces in which the user
 * has no process. Takes no lock; blocks for 2 s at most for another program
 * that writes the tree. False, with errno: there is no tree, the reason is
 * logged, and @root is undefined. ENODEV: VERBENA_DEVICES names no device. */
bool vb_sysfs_tree_write(char root[PATH_MAX]);

#endif
