/* SPDX-License-Identifier: BSD-2-Clause */
/* The network interface of IPoIB, which is a TUN that calls itself InfiniBand,
 * and its addresses. The kernel resolves no addresses behind it. */
#ifndef IPOIB_TUN_H
#define IPOIB_TUN_H

#include <net/if.h>

#include "wire/gid.h"

#define TUN_ADDRESSES 32

/* An address of the interface. */
struct tun_address {
	struct vb_gid ip; /* an IPv4 address is mapped into IPv6 */
	unsigned prefix;  /* length of the network's prefix in bits, of 128 */
};

struct tun {
	int fd;	     /* -1: not open */
	int netlink; /* readable when addresses or routes may have changed */
	char name[IFNAMSIZ];
	struct tun_address addresses[TUN_ADDRESSES];
	unsigned count;
};

/* Read "10.9.0.3/24" or "fd09::3/64". False: it is no address with the length
 * of a prefix. */
bool tun_address_parse(const char *text, struct tun_address *a);

/* Make the interface @name, down. 0 or -errno; -EPERM: it needs
 * CAP_NET_ADMIN. */
int tun_open(struct tun *t, const char *name);
void tun_close(struct tun *t);

/* Set the MTU and take the interface up. 0 or -errno. */
int tun_up(struct tun *t, unsigned mtu);
/* Does the interface have a carrier? The kernel sends nothing without. */
void tun_carrier(struct tun *t, bool on);
/* Add an address. 0 or -errno; -EEXIST: the interface has it. */
int tun_add_address(struct tun *t, const struct tun_address *a);

/* Read the interface's addresses anew. True: they have changed. */
bool tun_refresh(struct tun *t);
/* Drop the news that made @netlink readable. */
void tun_drain(struct tun *t);
bool tun_has_address(const struct tun *t, const struct vb_gid *ip);
/* Is @ip the broadcast address of one of the interface's networks? */
bool tun_is_broadcast(const struct tun *t, const struct vb_gid *ip);
/* The interface's address from which @ip is asked for. NULL: there is none of
 * that family. */
const struct vb_gid *tun_source(const struct tun *t, const struct vb_gid *ip);

#endif
