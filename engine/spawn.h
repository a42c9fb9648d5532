/* SPDX-License-Identifier: BSD-2-Clause */
/* Start a broker from within a program that must not notice. */
#ifndef ENGINE_SPAWN_H
#define ENGINE_SPAWN_H

#include "base/defs.h"

/*
 * On 0 a broker listens, or another was faster. No SIGCHLD is raised, no
 * wait() of the program sees the child, and nothing of the program's is
 * inherited. -errno: -ENOENT when there is no verbena program to run.
 */
VB_MUST_CHECK int vb_spawn_broker(void);

#endif
