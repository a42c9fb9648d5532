/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files that read, make and write topologies share. */
#ifndef FABRICD_TOPOLOGY_PRIV_H
#define FABRICD_TOPOLOGY_PRIV_H

#include "fabricd/topology.h"

/* Write the cause of a failure to @error. Returns -EINVAL. */
int vb_topo_fail(char error[VB_TOPO_ERROR], const char *format, ...)
	VB_PRINTF(2, 3);

/* Returns the index of the node with that id; UINT32_MAX: no node has it. */
uint32_t vb_topo_index(const struct vb_topo *t, const char *id);

/* Names of widths and speeds, as ibnetdiscover writes them: "4xQDR". */
bool vb_topo_rate_get(const char *text, struct vb_topo_port *p);
/* Write the width and speed of @p to the text. False: @p has the default. */
bool vb_topo_rate_put(const struct vb_topo_port *p, char text[16]);

#endif
