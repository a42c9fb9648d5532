/* SPDX-License-Identifier: BSD-2-Clause */
/* The InfiniBand transports, as implementations of core/transport.h. */
#ifndef IB_IB_H
#define IB_IB_H

#include "core/transport.h"

/* The operation class, bits 7:5 of an opcode, of a type of queue pair (IBA
 * 9.2). */
enum vb_ib_class vb_ib_class(enum vb_qp_type type);

extern const struct vb_transport_ops vb_ib_transport;

#endif
