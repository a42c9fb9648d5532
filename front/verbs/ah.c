/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions for datagrams: address handles and multicast groups. */
#include "front/verbs/front.h"

#include <stdlib.h>

#include "base/log.h"
#include "link/neigh.h"

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	const struct vb_av av = vb_front_av_in(attr);
	struct vb_front_ah *ah;
	int rc = vb_front_live(FRONT_PD, pd);

	if (rc)
		return vb_front_null(rc);
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return vb_front_null(-ENOMEM);
	rc = vb_ah_create(vb_front_pd(pd)->core, &av, &ah->core);
	if (rc) {
		free(ah);
		return vb_front_null(rc);
	}
	ah->ibv.context = pd->context;
	ah->ibv.pd = pd;
	ah->ibv.handle = vb_front_handle();
	vb_front_live_add(&ah->live, FRONT_AH, &ah->ibv, &ah->ibv.handle);
	vb_front_context_get(pd->context);
	return &ah->ibv;
}

int ibv_destroy_ah(struct ibv_ah *ibv)
{
	struct vb_front_ah *ah = vb_front_ah(ibv);
	int rc = vb_front_claim(FRONT_AH, ibv);

	if (rc)
		return rc;
	if (vb_front_is_inherited(ibv->context))
		return vb_front_keep(&ah->live, 0);
	vb_front_live_del(&ah->live);
	vb_ah_destroy(ah->core);
	vb_front_context_put(ibv->context);
	free(ah);
	return 0;
}

/* Set @av to the address of the sender of a packet with this network header.
 * The header is in the program's buffer, so it may have any bytes. */
static int reply_to(struct vb_port *p, const struct ibv_grh *header,
		    const struct ibv_wc *wc, struct vb_av *av)
{
	const struct vb_wc_from from = {
		.slid = wc->slid,
		.sl = wc->sl,
		.path_bits = wc->dlid_path_bits,
	};
	struct vb_grh grh;

	if (!vb_grh_get((const uint8_t *)header, &grh))
		return -EINVAL;
	return vb_av_reply(p, &grh, &from, av) ? 0 : -ENOENT;
}

int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num,
			struct ibv_wc *wc, struct ibv_grh *grh,
			struct ibv_ah_attr *ah_attr)
{
	struct vb_port *p =
		vb_adapter_port(vb_front_context(context)->adapter, port_num);
	struct vb_av av = { .port_num = port_num };
	int rc = 0;

	if (!p)
		rc = -EINVAL;
	else if (wc->wc_flags & IBV_WC_GRH)
		rc = reply_to(p, grh, wc, &av);
	if (rc) {
		vb_why(WHY_ADDRESS, (uintptr_t)context,
		       "%s: cannot make an address handle for qp 0x%x: %s",
		       context->device->name, wc->src_qp,
		       rc == -ENOENT
			       ? "its packet was sent to a GID that this device does not have"
			       : "there is no such port, or the buffer has no network header");
		return vb_front_minus(rc);
	}
	av.dlid = wc->slid;
	av.sl = wc->sl; /* as in rdma-core; RoCE has no service level */
	av.src_path_bits = wc->dlid_path_bits;
	*ah_attr = vb_front_av_out(&av);
	return 0;
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc,
				     struct ibv_grh *grh, uint8_t port_num)
{
	struct ibv_ah_attr attr;

	if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr))
		return NULL;
	return ibv_create_ah(pd, &attr);
}

/* Find the MAC address, and the VLAN unless @vid is NULL, to which packets for
 * the address @attr go. Returns 0 or -errno. */
static int resolve(struct ibv_context *context, const struct ibv_ah_attr *attr,
		   uint8_t mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	struct vb_port *p = vb_adapter_port(vb_front_context(context)->adapter,
					    attr->port_num);
	struct vb_gid_entry e;
	struct vb_neigh_from from = { .no_router = false };
	struct vb_gid to;
	uint16_t vlan = VB_NO_VLAN;
	int rc;

	if (!p || vb_port_is_ib(p))
		return -EINVAL;
	if (!vb_port_gid(p, attr->grh.sgid_index, &e))
		return -ENODATA;
	from.ifindex = e.ifindex;
	vb_mutex_lock(&p->lock);
	memcpy(from.mac, p->mac, sizeof(from.mac));
	vb_mutex_unlock(&p->lock);
	memcpy(to.raw, attr->grh.dgid.raw, sizeof(to.raw));
	rc = vb_neigh_resolve(&from, &to, mac, &vlan);
	if (rc == 0 && vid)
		*vid = vlan;
	return rc;
}

static void refuse_l2(struct ibv_context *context,
		      const struct ibv_ah_attr *attr, int rc)
{
	char text[VB_GID_TEXT];
	struct vb_gid to;

	memcpy(to.raw, attr->grh.dgid.raw, sizeof(to.raw));
	VB_FRONT_TELL(rc, rc == -ENODATA ? WHY_GID_INDEX : WHY_ROUTE, context,
		      "%s: no MAC address for %s from sgid_index %u of port "
		      "%u: %s",
		      context->device->name, vb_gid_address(&to, text),
		      attr->grh.sgid_index, attr->port_num,
		      rc == -EINVAL ? "it is no Ethernet port" : strerror(-rc));
}

/* For programs that build Ethernet frames themselves. This library does not
 * need the function, because the kernel resolves the addresses of what its
 * sockets send. */
int ibv_resolve_eth_l2_from_gid(struct ibv_context *context,
				struct ibv_ah_attr *attr,
				uint8_t eth_mac[ETHERNET_LL_SIZE],
				uint16_t *vid)
{
	int cancel, rc;

	/* The GID of an iWARP device is made from its MAC address, so there is
	 * no IP address to resolve. */
	if (vb_front_is_rnic(context))
		return vb_front_errno(-EOPNOTSUPP);
	cancel = vb_cancel_off();
	rc = resolve(context, attr, eth_mac, vid);
	vb_cancel_back(cancel);
	if (rc)
		refuse_l2(context, attr, rc);
	return vb_front_errno(rc);
}

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct vb_gid group;
	int cancel, rc = vb_front_unknown(FRONT_QP, qp);

	if (rc)
		return rc;
	if (vb_front_is_rnic(qp->context))
		return vb_front_errno(-EOPNOTSUPP);
	cancel = vb_cancel_off();
	memcpy(group.raw, gid->raw, sizeof(group.raw));
	rc = vb_engine_attach(vb_front_qp(qp)->core, &group, lid);
	vb_cancel_back(cancel);
	return vb_front_errno(rc);
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct vb_gid group;
	int cancel, rc = vb_front_unknown(FRONT_QP, qp);

	if (rc)
		return rc;
	if (vb_front_is_rnic(qp->context))
		return vb_front_errno(-EOPNOTSUPP);
	cancel = vb_cancel_off();
	memcpy(group.raw, gid->raw, sizeof(group.raw));
	rc = vb_engine_detach(vb_front_qp(qp)->core, &group, lid);
	vb_cancel_back(cancel);
	return vb_front_errno(rc);
}
