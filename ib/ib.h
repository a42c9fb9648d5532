/* SPDX-License-Identifier: BSD-2-Clause */
/* The InfiniBand transports behind core's seam: what an engine needs. */
#ifndef IB_IB_H
#define IB_IB_H

#include "core/transport.h"

/* The operations' class (opcode[7:5]) on a type of queue pair. */
enum vb_ib_class vb_ib_class(enum vb_qp_type type);

extern const struct vb_transport_ops vb_ib_transport;

#endif
