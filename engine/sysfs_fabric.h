/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files in /sys of an adapter that is a place in a fabric: those that are
 * in the tree (engine/sysfs_text.h), and what each of them says now. They
 * depend only on what the fabric says of the node, whether the program uses the
 * adapter by MADs or by verbs.
 */
#ifndef ENGINE_SYSFS_FABRIC_H
#define ENGINE_SYSFS_FABRIC_H

#include <stdio.h>

#include "engine/fabric_places.h"

/* Write the lines of the adapter @a, a node, to @f. @umads: how many MAD
 * devices the tree has; the adapter's ports are added. Nothing is written if
 * the fabric does not answer. */
void vb_sysfs_fabric_put(FILE *f, const struct vb_fabric_adapter *a,
			 unsigned *umads);
/* Write the lines of port @number of the device @name, which is at @place, to
 * @f, and add it to @umads. */
void vb_sysfs_fabric_port(FILE *f, const char *name, unsigned number,
			  const struct vb_fabric_place *place, unsigned *umads);

/* Write what the file @file of a port's directory ("lid", "gids/0",
 * "counters/port_xmit_data") says, with its newline, to @text. The length; 0:
 * there is no such file. Allocates nothing. */
size_t vb_sysfs_fabric_value(const struct vb_umad_info *port, const char *file,
			     char *text, size_t room);

#endif
