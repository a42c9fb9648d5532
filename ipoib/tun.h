/* SPDX-License-Identifier: BSD-2-Clause */
/* The network interface of IPoIB, which is a TUN that calls itself InfiniBand,
 * and its addresses. The kernel resolves no addresses behind it. */
#ifndef IPOIB_TUN_H
#define IPOIB_TUN_H

#include <net/if.h>

#include "ipoib/address.h"

struct tun {
	int fd; /* -1: not open */
	/* netlink descriptor: readable when addresses or routes may have
	 * changed */
	int netlink;
	char name[IFNAMSIZ];
	struct vb_ip_nets nets;
};

/* Make the interface @name, down: IPoIB's, or with @ethernet an Ethernet. 0 or
 * -errno; -EPERM: it needs CAP_NET_ADMIN. */
int tun_open(struct tun *t, const char *name, bool ethernet);
void tun_close(struct tun *t);

/* Set the MTU, and an Ethernet's address unless @mac is NULL, and take the
 * interface up. 0 or -errno. */
int tun_up(struct tun *t, unsigned mtu, const uint8_t *mac);
/* Give the interface a carrier, or take it away. Without a carrier the kernel
 * sends nothing. */
void tun_carrier(struct tun *t, bool on);
/* Add an address. 0 or -errno; -EEXIST: the interface has it. */
int tun_add_address(struct tun *t, const struct vb_ip_net *a);

/* Read the interface's addresses anew. True: they have changed. */
bool tun_refresh(struct tun *t);
/* Read and drop the notifications that made @netlink readable. */
void tun_drain(struct tun *t);

#endif
