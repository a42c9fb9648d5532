/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process of a fabric: it moves frames in real time, and serves programs
 * that take the place of its nodes (libibumad.so.3) and commands. It has one
 * thread, and serves only programs of its own user and of root.
 */
#ifndef FABRICD_FABRICD_H
#define FABRICD_FABRICD_H

#include <limits.h>
#include <signal.h>

#include "fabricd/topology.h"

struct vb_fabricd;

/* Make the fabric of @topo and listen under @name. The caller still owns @topo,
 * which must outlive the fabric; the fabric adds hosts that join to @topo.
 * NULL: a failure, and @error says why. */
struct vb_fabricd *vb_fabricd_create(struct vb_topo *topo, const char *name,
				     char error[VB_TOPO_ERROR]);
/* End by itself when for @linger no program has been connected besides the
 * subnet manager of vb_fabricd_manage(). */
void vb_fabricd_linger(struct vb_fabricd *f, vb_time linger);
/* Where vb_fabricd_manage() finds opensm: in PATH or in a directory for
 * administrators. False: it is not installed. */
VB_MUST_CHECK bool vb_fabricd_find_opensm(char path[PATH_MAX]);
/* Start the program @opensm in a switch, or in an adapter if there is no
 * switch, by `@self run`. The process starts it again when it dies, and ends it
 * with the fabric. Its log is the file of the fabric's directory with ".log",
 * which this writes to @log. 0; or -EINVAL and @error. */
VB_MUST_CHECK int vb_fabricd_manage(struct vb_fabricd *f, const char *self,
				    const char *opensm, char log[PATH_MAX],
				    char error[VB_TOPO_ERROR]);
/* Serve until @stop, a descriptor, becomes readable, or the fabric has been
 * idle for long enough. 0 or -errno. */
VB_MUST_CHECK int vb_fabricd_run(struct vb_fabricd *f, int stop);
void vb_fabricd_destroy(struct vb_fabricd *f);

/* Connect to the fabric @name. A descriptor that the caller closes;
 * -ECONNREFUSED: no such fabric runs; -EPERM: it is another user's; else
 * -errno. */
VB_MUST_CHECK int vb_fabricd_open(const char *name);
/* Send @command over @fd, and print the answer to @to. 0; -EINVAL: the fabric
 * refused it, and @error says why; else -errno. A caller may ask again. */
VB_MUST_CHECK int vb_fabricd_ask(int fd, const char *command, FILE *to,
				 char error[VB_TOPO_ERROR]);

/* Send @command to the fabric @name and print its answer to @to. 0; -EINVAL:
 * the fabric refused it, and @error says why; -ECONNREFUSED: no such fabric
 * runs; else -errno. */
VB_MUST_CHECK int vb_fabricd_command(const char *name, const char *command,
				     FILE *to, char error[VB_TOPO_ERROR]);

/*
 * Send @command, "capture...", and write what comes to @file, until *@stop is
 * not 0, which a signal's handler sets, or the fabric ends the capture. 0 and a
 * summary in @said; -EINVAL: the fabric refused or ended it, and @said has the
 * cause; -ECONNREFUSED: no such fabric runs; else -errno, of @file, too.
 */
VB_MUST_CHECK int vb_fabricd_capture(const char *name, const char *command,
				     int file,
				     const volatile sig_atomic_t *stop,
				     char said[VB_TOPO_ERROR]);

#endif
