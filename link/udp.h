/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCEv2 (IBA Annex A17): UDP port 4791 over IPv4 and IPv6, in batches
 * (UDP_SEGMENT, UDP_GRO) where the kernel has them.
 *
 * The link receives by one dual-stack socket that the broker made
 * (broker/broker.h). It sends by sockets of this process's own, unconnected,
 * with IP_MTU_DISCOVER = PROBE, so that it knows the IPv4 Identification
 * (segment i of a batch carries i) and can compute the ICRC, which covers it,
 * beforehand. Each destination slot (the top bits of the destination QPN) gets
 * a socket, and so a source port, of its own: a receiver's GRO then never joins
 * packets for two of its processes.
 */
#ifndef LINK_UDP_H
#define LINK_UDP_H

#include "link/link.h"

#define VB_ROCE_PORT 4791

/*
 * Make a socket that shares port 4791 by SO_REUSEPORT, dual-stack when the host
 * has IPv6, else IPv4. The caller closes *@fd. 0 or -errno; -EADDRINUSE:
 * another program holds the port.
 */
VB_MUST_CHECK int vb_udp_socket(int *fd);
/* Does any socket of this network namespace use UDP port 4791? */
bool vb_udp_port_taken(void);
/* Does this host have the address @gid? @ifindex: the interface of a link-local
 * address. */
bool vb_udp_owns(const struct vb_gid *gid, uint32_t ifindex);
/* Attach a BPF filter to the SO_REUSEPORT group: the top bits of the
 * destination QPN in the BTH choose the socket; numbers of @slots and above
 * mean slot 0. 0 or -errno. */
VB_MUST_CHECK int vb_udp_steer(int fd, unsigned slots);
/* Take the program of vb_udp_steer() away from the group in which @fd is. 0;
 * -ENOENT: @fd has left the group, or the group has no program; or another
 * -errno, where the kernel (before Linux 5.3) cannot do so. */
VB_MUST_CHECK int vb_udp_unsteer(int fd);

/* The user whom a slot's socket is limited to. */
struct vb_udp_owner {
	uint32_t uid;
	/* An earlier socket of the slot was still in this user's hands when the
	 * broker replaced it. */
	bool kept;
};
/*
 * Let @fd receive only packets of @slot and multicast packets, and let nobody
 * attach programs or filters to it, for as long as the socket exists. The
 * broker does this before it gives a socket to a user who must not read the
 * packets of other users. 0 or -errno; -EPERM: @fd has a locked filter already.
 */
VB_MUST_CHECK int vb_udp_limit(int fd, unsigned slot,
			       const struct vb_udp_owner *owner);
/* Read the owner that vb_udp_limit() wrote for this slot. 0; -ENOENT: @fd has
 * no filter; -EINVAL: @fd has another filter. */
VB_MUST_CHECK int vb_udp_owner_of(int fd, unsigned slot,
				  struct vb_udp_owner *owner);
/* Take @fd out of the SO_REUSEPORT group, also when other processes hold the
 * socket, too: the group's last socket moves into its place. 0, also when @fd
 * had left the group before; or -errno: there is no route to loopback. */
VB_MUST_CHECK int vb_udp_retire(int fd);

/* Is @fd a UDP socket bound to port 4791? For checking descriptors that come
 * from another process. */
bool vb_udp_is_roce(int fd);

/* Open the link; on success the link owns @rx_fd. 0 or -errno. */
VB_MUST_CHECK int vb_udp_open(int rx_fd, struct vb_link **link);

/*
 * Start to report packets that did not arrive, for a caller that sends single
 * packets to slot 0: hosts and routers report them by ICMP and quote the
 * packet.
 */
void vb_udp_want_returns(struct vb_link *link);
struct vb_udp_return {
	struct vb_gid to;
	size_t len; /* bytes quoted, from the BTH on; 0: none */
	/* the errno of the ICMP message. ECONNREFUSED: the host has no such
	 * port; EHOSTUNREACH: there is no such host; ... */
	int error;
};
/* Read the next returned packet; its first bytes, at most @room, go to @bytes.
 * False: there are no more. Any host that can send to this host can forge a
 * returned packet. */
VB_MUST_CHECK bool vb_udp_next_return(struct vb_link *link, uint8_t *bytes,
				      size_t room, struct vb_udp_return *r);

#endif
