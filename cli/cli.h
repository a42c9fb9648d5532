/* SPDX-License-Identifier: BSD-2-Clause */
/* The verbena command's parts. Each subcommand returns an exit status. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>

/* Exit statuses, the same as those of env(1). */
#define EXIT_USAGE     125
#define EXIT_NOT_RUN   126
#define EXIT_NOT_FOUND 127

/* The subcommand: verbena run [--device SPEC]... [--rsockets[=all]]
 * [--namespace] [--] PROGRAM [ARG]... */
int vb_cli_run(int argc, char **argv);

/*
 * Move this process, which must have one thread, into a new mount namespace. In
 * this namespace a copy of the tree at @root (engine/sysfs_tree.h) is at the
 * real paths: /sys/class/infiniband, /dev/infiniband and so on. *@as_user true:
 * the process also had to enter a user namespace, in which all other users
 * appear as nobody. User, group, working directory and descriptors stay.
 * False: the move failed, and stderr says why. The namespace may be incomplete,
 * so the process must exit.
 */
bool vb_cli_enter_namespace(const char *root, bool *as_user);

/* Append the argument of an option --device SPEC to *@devices, the value for
 * VERBENA_DEVICES, which the caller frees. False: no memory. */
bool vb_cli_add_device(char **devices, const char *spec);

/* The subcommand: verbena counters [DEVICE] */
int vb_cli_counters(int argc, char **argv);

/* The subcommand: verbena broker [--daemon] [--linger SECONDS] */
int vb_cli_broker(int argc, char **argv);

/* The subcommand: verbena fabric [--name NAME] TOPOLOGY | --make KIND | ctl |
 * show */
int vb_cli_fabric(int argc, char **argv);

#endif
