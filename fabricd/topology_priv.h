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

/* Fill the table of ids anew. */
void vb_topo_rehash(struct vb_topo *t);
void vb_topo_free_ports(struct vb_topo_node *n);

/* Take the words udp=, tcp= and local= out of @text, into @far, which is all
 * zero before. -EINVAL and @error: what is wrong. */
int vb_topo_far_take(char *text, struct vb_topo_far *far,
		     char error[VB_TOPO_ERROR]);
/* Write them. */
void vb_topo_far_put(const struct vb_topo_far *far, FILE *to);

/* Names of widths and speeds, as ibnetdiscover writes them: "4xQDR". */
bool vb_topo_rate_get(const char *text, struct vb_topo_port *p);
/* Write the width and speed of @p to the text. False: @p has the default. */
bool vb_topo_rate_put(const struct vb_topo_port *p, char text[16]);

/* A unit of a parameter's value. */
struct vb_topo_unit {
	const char *name;
	double factor;
};
/* Nanoseconds; numbers without a unit. */
extern const struct vb_topo_unit vb_topo_times[], vb_topo_plain[];
/* Read a number with one of @units. False: @text is something else. */
bool vb_topo_number(const char *text, const struct vb_topo_unit *units,
		    double *value);

/* Write the parameters that are not the defaults, each after a space. */
void vb_topo_node_put(FILE *to, const struct vb_topo_spec *s);

#endif
