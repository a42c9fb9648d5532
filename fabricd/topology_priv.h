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

/* Fill the hash table of ids again, after the indices of nodes have changed. */
void vb_topo_rehash(struct vb_topo *t);
/* Free what the node points to. */
void vb_topo_free_node(struct vb_topo_node *n);

/* Read the words udp=, tcp= and local= from @text into @far, which the caller
 * has set to zero, and overwrite them with spaces. Returns 0; -EINVAL, and
 * @error says what is wrong. */
int vb_topo_far_take(char *text, struct vb_topo_far *far,
		     char error[VB_TOPO_ERROR]);
/* Write udp= or tcp=, and local=, as vb_topo_far_take() reads them. */
void vb_topo_far_put(const struct vb_topo_far *far, FILE *to);

/* Read a name of a width and speed as ibnetdiscover writes it, "4xQDR", into
 * the fields of @p. False: @text is no such name. */
bool vb_topo_rate_get(const char *text, struct vb_topo_port *p);
/* Read the words width= and speed= from @text into the fields of @p, and
 * overwrite them with spaces. Returns 0; -EINVAL, and @error says what is
 * wrong. */
int vb_topo_rate_take(char *text, struct vb_topo_port *p,
		      char error[VB_TOPO_ERROR]);
/* Write the name of the width and speed of @p to @text. False: @p has the
 * default. */
bool vb_topo_rate_put(const struct vb_topo_port *p, char text[16]);

/* A unit of a parameter's value, such as "us": a number with this unit is
 * multiplied by @factor. A list of units ends with @name NULL. */
struct vb_topo_unit {
	const char *name;
	double factor;
};
/* The units of times, which are converted to nanoseconds; and an empty list, for
 * numbers that have no unit. */
extern const struct vb_topo_unit vb_topo_times[], vb_topo_plain[];
/* Read a number that has one of @units behind it. False: @text is something
 * else. */
bool vb_topo_number(const char *text, const struct vb_topo_unit *units,
		    double *value);

/* Write those parameters of a node that are not the defaults, each with a space
 * in front. */
void vb_topo_node_put(FILE *to, const struct vb_topo_spec *s);

#endif
