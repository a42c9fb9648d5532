/* SPDX-License-Identifier: BSD-2-Clause */
/* Address vectors and address handles: a destination and the route to it. */
#ifndef CORE_AH_H
#define CORE_AH_H

#include "core/adapter.h"
#include "core/why.h"
#include "link/link.h"
#include "wire/grh.h"

/* The hop limit of a reply: the maximum (IBA 12.8.2.1). */
#define VB_REPLY_HOPS 0xff

struct vb_qp;

struct vb_av {
	struct vb_gid dgid;
	uint32_t flow_label;
	uint16_t dlid;
	uint8_t sgid_index, hop_limit, traffic_class, sl, src_path_bits,
		static_rate, port_num;
	bool is_global;
};

/* How addresses work on a kind of network. core/ah.c defines it for RoCE,
 * core/ah_ib.c for InfiniBand. */
struct vb_addressing {
	/* Set all members of @r that @av and the port's tables determine.
	 * Returns NULL, or a static English sentence that says why @av is
	 * invalid. */
	const char *(*route)(struct vb_port *p, const struct vb_av *av,
			     struct vb_route *r);
	/* Set @av to the address of the sender of a datagram, with the
	 * arguments and the result of vb_av_reply(). */
	bool (*reply)(struct vb_port *p, const struct vb_grh *grh,
		      const struct vb_wc_from *from, struct vb_av *av);
	/* Did @f come from the peer of the connected queue pair @qp, or, to a
	 * datagram queue pair, to an address of its port? For RoCE,
	 * engine/dispatch.c calls this function only for datagrams. It compares
	 * the addresses of a connection itself, because that code is on the
	 * path of every packet. */
	bool (*comes_from_peer)(const struct vb_qp *qp,
				const struct vb_frame *f);
	/* A path MTU that the port does not carry is refused; else the queue
	 * pair uses what fits. */
	bool strict_mtu;
};
extern const struct vb_addressing vb_addressing_roce, vb_addressing_ib;

/* Is @p a port of an InfiniBand fabric? The answer never changes. */
static inline bool vb_port_is_ib(const struct vb_port *p)
{
	return p->addressing == &vb_addressing_ib;
}

/* Resolve @av to the route from queue pair @sqpn to queue pair @dqpn (0: not
 * known yet), by the port of @a that @av names. 0, -EINVAL when the vector is
 * invalid on that port, or the error of the link's route(). On an error *@why
 * is a static English sentence for the log. */
VB_MUST_CHECK int vb_av_route(struct vb_adapter *a, const struct vb_av *av,
			      uint32_t sqpn, uint32_t dqpn, struct vb_route *r,
			      const char **why);

/* An address handle, immutable while it lives. A posted work request copies the
 * route, so the program may destroy the handle before the request completes. */
struct vb_ah {
	struct vb_pd *pd;
	/* the port by which datagrams with this handle leave */
	struct vb_port *port;
	struct vb_av av;
	/* the route; its destination queue pair is not set */
	struct vb_route route;
};

/* Resolve @av and allocate a handle, which the caller owns. 0, -EINVAL,
 * -ENOMEM, or an error of the link; the reason is logged. */
VB_MUST_CHECK int vb_ah_create(struct vb_pd *pd, const struct vb_av *av,
			       struct vb_ah **ah);
/* Free the handle @ah. The caller makes sure that no other thread posts with
 * @ah during this call. */
void vb_ah_destroy(struct vb_ah *ah);
/* Returns the route from queue pair @sqpn to queue pair @dqpn at the address of
 * the handle @ah. 0 or an error of the link. */
VB_MUST_CHECK int vb_ah_aim(const struct vb_ah *ah, uint32_t sqpn,
			    uint32_t dqpn, struct vb_route *r);

/* Set the route for an answer from queue pair @sqpn to @dqpn, the sender of a
 * packet that arrived at @p with @grh, or with NULL, and @from. The packet path
 * calls this, so it makes no system call. -EINVAL: the packet's destination is
 * not an address of @p. */
VB_MUST_CHECK int vb_route_back(struct vb_port *p, const struct vb_grh *grh,
				const struct vb_wc_from *from, uint32_t sqpn,
				uint32_t dqpn, struct vb_route *r);

/* Set @av to the address of the sender of a packet that arrived at @p with
 * @grh, or on InfiniBand perhaps with NULL, and @from. False: the packet's
 * destination is not an address of @p. */
bool vb_av_reply(struct vb_port *p, const struct vb_grh *grh,
		 const struct vb_wc_from *from, struct vb_av *av);

/* Returns the cause to tell when vb_av_route() has failed with @rc. @port: that of
 * @av; NULL: the adapter has no such port. */
enum vb_why vb_av_why(int rc, const struct vb_av *av, struct vb_port *port);

#endif
