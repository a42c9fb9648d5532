/* SPDX-License-Identifier: BSD-2-Clause */
/* The InfiniBand transports, as implementations of core/transport.h. */
#ifndef IB_IB_H
#define IB_IB_H

#include "core/transport.h"

/* The operation class, bits 7:5 of an opcode, of a type of queue pair (IBA
 * 9.2). */
extern const uint8_t vb_ib_classes[];
static inline enum vb_ib_class vb_ib_class(enum vb_qp_type type)
{
	return (enum vb_ib_class)vb_ib_classes[type];
}

/* The life of queue pairs of all types. Each type has its functions in a table
 * of its own, which attach() chooses. */
extern const struct vb_transport vb_ib_transport;
extern const struct vb_transport_ops vb_rc_ops, vb_xrc_ops;

#endif
