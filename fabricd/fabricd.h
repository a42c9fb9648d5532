/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process of a fabric: it moves frames in real time, and serves programs
 * that take the place of its nodes (libibumad.so.3) and commands. It has one
 * thread, and serves only programs of its own user and of root.
 */
#ifndef FABRICD_FABRICD_H
#define FABRICD_FABRICD_H

#include "fabricd/topology.h"

struct vb_fabricd;

/* Make the fabric of @topo and listen under @name. The caller still owns @topo,
 * which must outlive the fabric. NULL: a failure, and @error says why. */
struct vb_fabricd *vb_fabricd_create(const struct vb_topo *topo,
				     const char *name,
				     char error[VB_TOPO_ERROR]);
/* Serve until @stop, a descriptor, becomes readable. 0 or -errno. */
VB_MUST_CHECK int vb_fabricd_run(struct vb_fabricd *f, int stop);
void vb_fabricd_destroy(struct vb_fabricd *f);

/* Send @command to the fabric @name and print its answer to @to. 0; -EINVAL:
 * the fabric refused it, and @error says why; -ECONNREFUSED: no such fabric
 * runs; else -errno. */
VB_MUST_CHECK int vb_fabricd_command(const char *name, const char *command,
				     FILE *to, char error[VB_TOPO_ERROR]);

#endif
