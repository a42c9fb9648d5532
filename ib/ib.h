/* SPDX-License-Identifier: BSD-2-Clause */
/* The InfiniBand transports, as implementations of core/transport.h. */
#ifndef IB_IB_H
#define IB_IB_H

#include "core/transport.h"

/* The operation class of the packets of each type of queue pair: bits 7:5 of
 * their opcodes (IBA 9.2). */
extern const uint8_t vb_ib_classes[];
static inline enum vb_ib_class vb_ib_class(enum vb_qp_type type)
{
	return (enum vb_ib_class)vb_ib_classes[type];
}

/* The functions that create, change and destroy the transport's state of queue
 * pairs of all types. attach() chooses the table of functions for a queue
 * pair's type. */
extern const struct vb_transport vb_ib_transport;
extern const struct vb_transport_ops vb_rc_ops, vb_xrc_ops;

#endif
