/* SPDX-License-Identifier: BSD-2-Clause */
/* The verbena command's parts. Each subcommand returns an exit status. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <limits.h>
#include <stdbool.h>

/* Exit statuses: EXIT_USAGE if the command line is wrong; the others as those
 * of env(1). */
#define EXIT_USAGE     2
#define EXIT_NO_START  125
#define EXIT_NOT_RUN   126
#define EXIT_NOT_FOUND 127

/* The subcommands; cli/commands.c has their options. argv[0] is the name. */
int vb_cli_run(int argc, char **argv);
int vb_cli_devices(int argc, char **argv);
int vb_cli_doctor(int argc, char **argv);
int vb_cli_counters(int argc, char **argv);
int vb_cli_status(int argc, char **argv);
int vb_cli_broker(int argc, char **argv);
int vb_cli_fabric(int argc, char **argv);
int vb_cli_ipoib(int argc, char **argv);
int vb_cli_eoib(int argc, char **argv);
int vb_cli_gateway(int argc, char **argv);
int vb_cli_ether(int argc, char **argv);
int vb_cli_help(int argc, char **argv);
int vb_cli_version(int argc, char **argv);

/* Become the program argv[0] with the devices in @devices, which is the value
 * of VERBENA_DEVICES and which this frees, as `verbena run` does. Returns an
 * exit status if that fails. */
int vb_cli_run_program(char *devices, char **argv);

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

/* Say why the fabric @name did not do what it was asked: @error, or the error
 * number @rc if @error is empty. Returns EXIT_FAILURE. */
int vb_cli_fabric_failed(const char *name, int rc, const char *error);
/* `verbena fabric capture`: @name is the fabric's name unless an option says
 * another. */
int vb_cli_fabric_capture(int argc, char **argv, const char *name);
/* Runs `verbena fabric show`; the arguments are those of
 * vb_cli_fabric_capture(). */
int vb_cli_fabric_show(int argc, char **argv, const char *name);

/* Find the path of the running `verbena`. False: the system does not tell. */
bool vb_cli_find_self(char self[PATH_MAX]);

/* Find the directory of Verbena's libibverbs.so.1, which belongs to the command
 * @self. False: it is missing. */
bool vb_cli_find_library(const char *self, char directory[PATH_MAX]);

/* Undo what a process keeps of the program that has started it: descriptors
 * above 2, ignored signals and the signal mask; and open 0 to 2 if they are
 * closed. */
void vb_cli_leave_starter(void);
/* Fork and let the parent exit, which tells the program that started it that
 * the child serves. The child leaves terminal, session and working directory. 0
 * or -errno. */
int vb_cli_enter_background(void);
#define VB_CLI_SECONDS "a number of seconds from 0 to 1000000"
/* Read a number of seconds. False: @text is no number, or above a million. */
bool vb_cli_parse_seconds(const char *text, double *seconds);

/*
 * Replace each "ib" in *@devices, the value of VERBENA_DEVICES, by the place of
 * this host's adapter in the user's own fabric. The caller frees *@devices. If
 * that fabric does not run, this function starts it by the program @self. It
 * also checks that the other places exist. False: a place cannot be had, and
 * stderr says why.
 */
bool vb_cli_join_fabrics(const char *self, char **devices);

#endif
