/* SPDX-License-Identifier: BSD-2-Clause */
/* The verbena command's parts. Each subcommand returns an exit status. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>

/* As env(1) has them. */
#define EXIT_USAGE     125
#define EXIT_NOT_RUN   126
#define EXIT_NOT_FOUND 127

/* verbena run [--device SPEC]... [--rsockets[=all]] [--namespace] [--]
 * PROGRAM [ARG]... */
int vb_cli_run(int argc, char **argv);

/*
 * This process, which has one thread, enters a mount namespace of its own, in
 * which a copy of the tree at @root (engine/sysfs_tree.h) is at the real paths:
 * /sys/class/infiniband, /dev/infiniband and so on. *@as_user: it was allowed
 * in a user namespace only, in which other users have no numbers. User, group,
 * working directory and descriptors stay. False: stderr says why; the process
 * is good for nothing but to exit.
 */
bool vb_cli_enter_namespace(const char *root, bool *as_user);

/* The options that `run` and others have: --device SPEC, into *@devices, which
 * is for VERBENA_DEVICES; false: no memory. */
bool vb_cli_add_device(char **devices, const char *spec);

/* verbena counters [DEVICE] */
int vb_cli_counters(int argc, char **argv);

/* verbena broker [--daemon] [--linger SECONDS] */
int vb_cli_broker(int argc, char **argv);

#endif
