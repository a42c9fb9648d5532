/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process of a fabric. It moves frames in real time, serves programs that
 * use the fabric's nodes (libibumad.so.3 and verbs), and carries out commands.
 * It has one thread, and serves only programs of its own user and of root.
 */
#ifndef FABRICD_FABRICD_H
#define FABRICD_FABRICD_H

#include <limits.h>
#include <signal.h>

#include "fabricd/topology.h"

struct vb_fabricd;

/* Make the fabric of @topo and listen for programs under the name @name. The
 * caller still owns @topo, which must outlive the fabric; the fabric adds the
 * adapters of hosts that join to @topo. NULL: it failed, and @error says
 * why. */
struct vb_fabricd *vb_fabricd_create(struct vb_topo *topo, const char *name,
				     char error[VB_TOPO_ERROR]);
/* Let the fabric end by itself when no program has been connected for @linger.
 * The subnet managers of vb_fabricd_manage() do not count as programs. */
void vb_fabricd_linger(struct vb_fabricd *f, vb_time linger);
/* Write to @path where opensm is: in a directory of PATH or in one for
 * administrators. False: opensm is not installed. */
VB_MUST_CHECK bool vb_fabricd_find_opensm(char path[PATH_MAX]);
/* Start the program @opensm as the subnet manager of each subnet, in a switch,
 * or in an adapter if there is no switch, by `@self run`. The process starts
 * opensm again when it dies, and ends it with the fabric. @log: where this
 * writes the name of the log of the first subnet's opensm, which is the
 * fabric's directory with ".log" behind it; that of the second one has
 * "-2.log", and so on. Returns 0; or -EINVAL and @error. */
VB_MUST_CHECK int vb_fabricd_manage(struct vb_fabricd *f, const char *self,
				    const char *opensm, char log[PATH_MAX],
				    char error[VB_TOPO_ERROR]);
/* Run the fabric until the descriptor @stop becomes readable, or until the
 * fabric has been idle for the time of vb_fabricd_linger(). Returns 0 or
 * -errno. */
VB_MUST_CHECK int vb_fabricd_run(struct vb_fabricd *f, int stop);
void vb_fabricd_destroy(struct vb_fabricd *f);

/* Connect to the fabric @name. Returns a descriptor that the caller closes;
 * -ECONNREFUSED: no such fabric runs; -EPERM: the fabric is another user's;
 * else -errno. */
VB_MUST_CHECK int vb_fabricd_open(const char *name);
/* Send @command over the connection @fd, and print the answer to @to. Returns
 * 0; -EINVAL: the fabric refused the command, and @error says why; else -errno.
 * A connection serves for any number of commands. */
VB_MUST_CHECK int vb_fabricd_ask(int fd, const char *command, FILE *to,
				 char error[VB_TOPO_ERROR]);

/* Write the string @s as JSON, in quotes. Bytes other than ASCII are escaped
 * one by one, so the output is valid text whatever bytes a topology's file had.
 */
void vb_fabricd_put_string(FILE *to, const char *s);

/* Send @command to the fabric @name and print its answer to @to. Returns 0;
 * -EINVAL: the fabric refused the command, and @error says why; -ECONNREFUSED:
 * no such fabric runs; else -errno. */
VB_MUST_CHECK int vb_fabricd_command(const char *name, const char *command,
				     FILE *to, char error[VB_TOPO_ERROR]);

/*
 * Send @command, "capture...", to the fabric @name, and write the captured
 * bytes to @file, until the fabric ends the capture or *@stop is not 0, which a
 * signal's handler sets. Returns 0, and @said has a summary; -EINVAL: the
 * fabric refused or ended the capture, and @said has the cause; -ECONNREFUSED:
 * no such fabric runs; else -errno, which may be that of writing @file.
 */
VB_MUST_CHECK int vb_fabricd_capture(const char *name, const char *command,
				     int file,
				     const volatile sig_atomic_t *stop,
				     char said[VB_TOPO_ERROR]);

#endif
