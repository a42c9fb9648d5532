/* SPDX-License-Identifier: BSD-2-Clause */
/* The InfiniBand transports behind core's seam: what an engine needs. */
#ifndef IB_IB_H
#define IB_IB_H

#include "core/transport.h"

extern const struct vb_transport_ops vb_ib_transport;

#endif
