/* SPDX-License-Identifier: BSD-2-Clause */
/* The verbena command's parts. Each subcommand returns an exit status. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>

/* As env(1) has them. */
#define EXIT_USAGE     125
#define EXIT_NOT_RUN   126
#define EXIT_NOT_FOUND 127

/* verbena run [--device SPEC]... [--] PROGRAM [ARG]... */
int vb_cli_run(int argc, char **argv);

/* The options that `run` and others have: --device SPEC, into *@devices, which
 * is for VERBENA_DEVICES; false: no memory. */
bool vb_cli_add_device(char **devices, const char *spec);

/* verbena counters [DEVICE] */
int vb_cli_counters(int argc, char **argv);

/* verbena broker [--daemon] [--linger SECONDS] */
int vb_cli_broker(int argc, char **argv);

#endif
