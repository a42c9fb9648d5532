/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCEv2: UDP port 4791 over IPv4 and IPv6, in batches (UDP_SEGMENT, UDP_GRO)
 * where the kernel has them.
 *
 * Receiving is one dual-stack socket that the broker made (broker/broker.h).
 * Sending uses sockets of this process's own, unconnected, with
 * IP_MTU_DISCOVER = PROBE, so that the IPv4 Identification is known (segment
 * i of a batch carries i) and the ICRC can be computed before the call. Each
 * destination slot (the top bits of the destination QPN) gets a socket, hence
 * a source port, of its own: a receiver's GRO never joins packets for two of
 * its processes.
 */
#ifndef LINK_UDP_H
#define LINK_UDP_H

#include "link/link.h"

#define VB_ROCE_PORT 4791

/*
 * Make the socket that shares port 4791 by SO_REUSEPORT, dual-stack when the
 * host has IPv6, else IPv4. *@fd. -EADDRINUSE: another program holds 4791.
 */
VB_MUST_CHECK int vb_udp_socket(int *fd);
/* Is somebody's socket on port 4791 of this network namespace? */
bool vb_udp_port_taken(void);
/* Is it an address of this host's? @ifindex: of a link-local one. */
bool vb_udp_owns(const struct vb_gid *gid, uint32_t ifindex);
/* Attach to the SO_REUSEPORT group: the top bits of the BTH's destination QPN
 * pick the socket; what is not below @slots goes to slot 0. -errno. */
VB_MUST_CHECK int vb_udp_steer(int fd, unsigned slots);
/* Is @fd a UDP socket bound to 4791? Nothing from outside is trusted. */
bool vb_udp_is_roce(int fd);

/* @rx_fd is taken over. */
VB_MUST_CHECK int vb_udp_open(int rx_fd, struct vb_link **link);

/*
 * For who sends packet by packet, to slot 0, and would know which of them
 * nobody takes: hosts and routers say so, by ICMP, and quote what they mean.
 */
void vb_udp_want_returns(struct vb_link *link);
struct vb_udp_return {
	struct vb_gid to;
	size_t len; /* of its bytes, from the BTH on; 0: none is quoted */
	/* ECONNREFUSED: no such port there; EHOSTUNREACH, no such host; ... */
	int error;
};
/* The next one that came back; false: no more. Whoever can send to us may have
 * made it up. */
VB_MUST_CHECK bool vb_udp_next_return(struct vb_link *link, uint8_t *bytes,
				      size_t room, struct vb_udp_return *r);

#endif
