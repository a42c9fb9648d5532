/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files that Linux shows in /sys/class/infiniband, as a tree of our own:
 * some programs read them and not the verbs. One for each user, network
 * namespace and choice of devices, in a directory that only the user may
 * enter.
 */
#ifndef ENGINE_MIRROR_H
#define ENGINE_MIRROR_H

#include <limits.h>

#include "base/defs.h"

/* Bring the tree to what the host and VERBENA_DEVICES say now, and tell where
 * it is: @root is what stands for /sys/class. False: there is none, @root is
 * what it was. Trees of namespaces without a process of the user go. */
bool vb_mirror_write(char root[PATH_MAX]);

#endif
