/* SPDX-License-Identifier: BSD-2-Clause */
/* The InfiniBand transports, as implementations of core/transport.h. */
#ifndef IB_IB_H
#define IB_IB_H

#include "core/transport.h"

/* For each type of queue pair the operation class of its packets: bits 7:5 of
 * their opcodes (IBA 9.2). */
extern const uint8_t vb_ib_classes[];
static inline enum vb_ib_class vb_ib_class(enum vb_qp_type type)
{
	return (enum vb_ib_class)vb_ib_classes[type];
}

/* How queue pairs of all types begin and end. attach() chooses the table of
 * functions for a queue pair's type. */
extern const struct vb_transport vb_ib_transport;
extern const struct vb_transport_ops vb_rc_ops, vb_xrc_ops;

#endif
