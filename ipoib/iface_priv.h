/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of an IPoIB interface share. */
#ifndef IPOIB_IFACE_PRIV_H
#define IPOIB_IFACE_PRIV_H

#include "ipoib/iface.h"

/* iface_ops.c: the functions by which the tables act; @arg is the interface. */
extern const struct vb_nbr_ops iface_nbr_ops;
extern const struct vb_group_ops iface_group_ops;

/* iface.c: send a frame to a neighbour's queue pair of datagrams, with the
 * address handle @ah, or by a connection to the neighbour. */
void iface_send_to(struct iface *f, const struct vb_ipoib_hw *hw,
		   struct ibv_ah *ah, const void *frame, size_t len);

/* Functions of iface_resolve.c, which handle received ARP and neighbour
 * discovery messages. */
void iface_take_arp(struct iface *f, const uint8_t *bytes, size_t len);
void iface_take_nd(struct iface *f, const struct vb_ip *ip);
/* Send an ARP request or a neighbour solicitation for @ip. */
void iface_ask(struct iface *f, const struct vb_gid *ip);
/* Announce the interface's own addresses, so that other hosts forget the
 * link-layer address that these had before. */
void iface_announce(struct iface *f);

/* iface.c: become a member of the groups that every host is a member of. */
void iface_enter_groups(struct iface *f);
/* iface.c: write a frame to the TUN. */
void iface_to_host(struct iface *f, const uint8_t *packet, size_t len);

/* iface_eth.c: set @mac to the MAC address that belongs to the port's GUID. */
void iface_eth_mac(const struct iface *f, uint8_t mac[6]);

/* iface_open.c: IPoIB's open(). */
int iface_ip_open(struct iface *f, const char *name, uint64_t seed,
		  const char **what);
/* iface_open.c: returns the link-local address of the port (RFC 4391, 8). */
struct vb_ip_net iface_link_local(const struct iface *f);
/* iface_open.c: set the MTU if it has changed; at the first call also add the
 * addresses. Then switch the interface's carrier on. 0 or -errno; f->failure
 * says why. */
int iface_bring_up(struct iface *f, unsigned mtu);

#endif
