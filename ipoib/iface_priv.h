/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of an IPoIB interface share. */
#ifndef IPOIB_IFACE_PRIV_H
#define IPOIB_IFACE_PRIV_H

#include "ipoib/iface.h"

/* iface_ops.c: what the tables want done; @arg is the interface. */
extern const struct vb_nbr_ops iface_nbr_ops;
extern const struct vb_group_ops iface_group_ops;

/* iface.c: send a frame to a neighbour's queue pair of datagrams, with the
 * address handle @ah, or by a connection to the neighbour. */
void iface_send_to(struct iface *f, const struct vb_ipoib_hw *hw,
		   struct ibv_ah *ah, const void *frame, size_t len);

/* iface_resolve.c: what neighbours say of addresses. */
void iface_take_arp(struct iface *f, const uint8_t *bytes, size_t len);
void iface_take_nd(struct iface *f, const struct vb_ip *ip);
/* Ask the link for the address of @ip. */
void iface_ask(struct iface *f, const struct vb_gid *ip);
/* Tell the link the interface's own addresses, so that it forgets older ones.
 */
void iface_announce(struct iface *f);

/* iface_eth.c: Ethernet over InfiniBand. */
extern const struct vb_mac_ops iface_mac_ops;
/* Become a member of the network's group. */
void iface_eth_enter(struct iface *f);
/* Send an Ethernet frame, before which @frame has room for the header. */
void iface_eth_send(struct iface *f, uint8_t *frame, size_t len);
/* Learn where a frame came from. @type: what its header says. False: it is no
 * Ethernet frame. */
bool iface_eth_take(struct iface *f, const struct ibv_wc *wc, unsigned type,
		    const uint8_t *frame, size_t len);
/* Set @mac to the MAC address that belongs to the port's GUID. */
void iface_eth_mac(const struct iface *f, uint8_t mac[6]);
/* Returns the interface's MTU, where that of IPoIB is @mtu. */
unsigned iface_eth_mtu(unsigned mtu);

/* iface_open.c: set the MTU, and the first time add the addresses. 0 or
 * -errno; f->failure says why. */
int iface_bring_up(struct iface *f, unsigned mtu);

#endif
