/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Adds the link-layer address of an IPoIB interface to the kernel's messages
 * about links. The interface is a TUN of the type ARPHRD_INFINIBAND, to which
 * the kernel gives no address. Programs such as ibacm take the 20 bytes of RFC
 * 4391, 9.1.1 for granted where they see that type.
 */
#ifndef FRONT_NETLINK_LINKS_H
#define FRONT_NETLINK_LINKS_H

#include <net/if.h>

#include "base/defs.h"

#define VB_NL_IPOIB_ADDRESS 20

/* Find the address of the interface @name. False: it is no IPoIB interface. */
typedef bool vb_nl_address_of(const char name[IFNAMSIZ],
			      uint8_t address[VB_NL_IPOIB_ADDRESS]);

/* May one of the netlink messages in @length bytes be about a link without an
 * address that is of IPoIB's type? A message of another protocol may look like
 * that. */
bool vb_nl_links_lack(const uint8_t *bytes, size_t length);

/*
 * Write addresses into the messages RTM_NEWLINK among @length bytes that lack
 * them. An address takes the place of IFLA_MAP, which is all zeros for such an
 * interface: so no message becomes longer than the program has room for. The
 * bytes may be anything.
 */
void vb_nl_links_complete(uint8_t *bytes, size_t length,
			  vb_nl_address_of *address_of);

#endif
