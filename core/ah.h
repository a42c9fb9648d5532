/* SPDX-License-Identifier: BSD-2-Clause */
/* Address vectors and address handles: the way to somewhere, resolved. */
#ifndef CORE_AH_H
#define CORE_AH_H

#include "core/adapter.h"
#include "link/link.h"
#include "wire/grh.h"

struct vb_av {
	struct vb_gid dgid;
	uint32_t flow_label;
	uint16_t dlid;
	uint8_t sgid_index, hop_limit, traffic_class, sl, src_path_bits,
		static_rate, port_num;
	bool is_global;
};

/*
 * The route of @av from queue pair @sqpn to @dqpn (either may be 0: not known
 * yet). -EINVAL for a vector that says nothing here, or what the link's
 * route() says; *@why tells a person then.
 */
VB_MUST_CHECK int vb_av_route(struct vb_adapter *a, const struct vb_av *av,
			      uint32_t sqpn, uint32_t dqpn, struct vb_route *r,
			      const char **why);

/* Constant while it lives. A posted work request keeps a copy of the route,
 * so a handle may go as soon as nobody posts with it. */
struct vb_ah {
	struct vb_pd *pd;
	struct vb_av av;
	struct vb_route route; /* to no queue pair yet */
};

/* -EINVAL, -ENOMEM, and of the link; the reason is logged. */
VB_MUST_CHECK int vb_ah_create(struct vb_pd *pd, const struct vb_av *av,
			       struct vb_ah **ah);
void vb_ah_destroy(struct vb_ah *ah);
/* The route to queue pair @dqpn at @ah's address. -errno of the link. */
VB_MUST_CHECK int vb_ah_aim(const struct vb_ah *ah, uint32_t sqpn,
			    uint32_t dqpn, struct vb_route *r);

/* The route back to queue pair @dqpn, which sent what came with @grh. Nothing
 * that is slow: for the packet path. -EINVAL: not to an address of ours. */
VB_MUST_CHECK int vb_route_back(struct vb_adapter *a, const struct vb_grh *grh,
				uint32_t sqpn, uint32_t dqpn,
				struct vb_route *r);

/* The way back, from the header of what was received on @a: false when the
 * header's destination is no address of ours. */
bool vb_av_reply(struct vb_adapter *a, const struct vb_grh *grh,
		 struct vb_av *av);

#endif
