/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds copies of libibverbs that a program brings along, as Python packages
 * (wheels) do, which contain libraries under names of their own. Such a program
 * loads its copy whatever the library path says. */
#ifndef CLI_BUNDLED_H
#define CLI_BUNDLED_H

#include <limits.h>

#include "base/defs.h"

/* Look where wheels have their libraries: beside the program's file @path, and,
 * of a Python, in its packages and the user's. Takes milliseconds. False: there
 * is none. */
bool vb_bundled_find(const char *path, char found[PATH_MAX]);
/* Look in the directory @path and below it, at some ten thousand files at
 * most. */
bool vb_bundled_walk(const char *path, char found[PATH_MAX]);

#endif
