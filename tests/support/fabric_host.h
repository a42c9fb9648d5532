/* SPDX-License-Identifier: BSD-2-Clause */
/* The process of a fabric inside a test, in a runtime directory of its own. */
#ifndef TESTS_SUPPORT_FABRIC_HOST_H
#define TESTS_SUPPORT_FABRIC_HOST_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabricd/fabricd_priv.h"
#include "tests/support/must.h"

struct fabric_host {
	struct vb_topo topo;
	struct vb_fabricd *f;
	char dir[64], name[32], error[VB_TOPO_ERROR];
	int stop[2]; /* a pipe that ends vb_fabricd_run() */
};

/* Makes the fabric of the topology @text, whose name begins with @prefix.
 * fabric_host_end() releases it. */
static inline void fabric_host_begin(struct fabric_host *w, const char *prefix,
				     const char *text)
{
	char path[96];
	FILE *file;

	memset(w, 0, sizeof(*w));
	snprintf(w->dir, sizeof(w->dir), "/tmp/%s_test.XXXXXX", prefix);
	MUST(mkdtemp(w->dir));
	setenv("XDG_RUNTIME_DIR", w->dir, 1);
	snprintf(path, sizeof(path), "%s/topology", w->dir);
	file = fopen(path, "w");
	MUST(file);
	fputs(text, file);
	fclose(file);
	MUST(vb_topo_read(&w->topo, path, w->error) == 0);
	unlink(path);
	snprintf(w->name, sizeof(w->name), "%s%d", prefix, (int)getpid());
	w->f = vb_fabricd_create(&w->topo, w->name, w->error);
	MUST(w->f && w->error[0] == '\0');
	MUST(pipe(w->stop) == 0);
}

static inline int fabric_host_remove(const char *path, const struct stat *st,
				     int kind, struct FTW *at)
{
	return remove(path);
}

/* Ends the fabric. Returns 0, or -1 if the runtime directory cannot be
 * removed. */
static inline int fabric_host_end(struct fabric_host *w)
{
	vb_fabricd_destroy(w->f);
	vb_topo_free(&w->topo);
	close(w->stop[0]);
	close(w->stop[1]);
	return nftw(w->dir, fabric_host_remove, 8, FTW_DEPTH | FTW_PHYS);
}

#endif
