/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the reports of hosts and routers (ICMP) that a packet did not
 * arrive. */
#include "link/udp_priv.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <string.h>

#include "base/log.h"

void vb_udp_want_returns(struct vb_link *l)
{
	static const int on = 1;
	struct vb_udp *u = vb_udp_of(l);
	int fd = atomic_load_explicit(&u->channels[0].whole.fd,
				      memory_order_relaxed);

	u->wants_returns = true;
	if (setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof(on)) < 0)
		vb_log(LOG_DEBUG, "udp: cannot set IP_RECVERR: %s",
		       strerror(errno));
	if (u->family == AF_INET6 &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_RECVERR, &on, sizeof(on)) < 0)
		vb_log(LOG_DEBUG, "udp: cannot set IPV6_RECVERR: %s",
		       strerror(errno));
}

static const struct sock_extended_err *why_returned(struct msghdr *h)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(h);

	while (c &&
	       !((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) ||
		 (c->cmsg_level == IPPROTO_IPV6 &&
		  c->cmsg_type == IPV6_RECVERR)))
		c = CMSG_NXTHDR(h, c);
	return c && c->cmsg_len >= CMSG_LEN(sizeof(struct sock_extended_err))
		       ? (const struct sock_extended_err *)CMSG_DATA(c)
		       : NULL;
}

static struct vb_gid gid_of(const union vb_udp_addr *a)
{
	struct vb_gid gid;

	if (a->any.sa_family == AF_INET)
		return vb_gid_from_ipv4((const uint8_t *)&a->v4.sin_addr);
	memcpy(gid.raw, &a->v6.sin6_addr, sizeof(gid.raw));
	return gid;
}

bool vb_udp_next_return(struct vb_link *l, uint8_t *bytes, size_t room,
			struct vb_udp_return *r)
{
	_Alignas(struct cmsghdr) uint8_t control[256];
	union vb_udp_addr to = { 0 };
	struct iovec v = { bytes, room };
	struct msghdr h = { .msg_name = &to,
			    .msg_namelen = sizeof(to),
			    .msg_iov = &v,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(vb_udp_of(l)->channels[0].whole.fd, &h,
			    MSG_ERRQUEUE | MSG_DONTWAIT);
	const struct sock_extended_err *why = n < 0 ? NULL : why_returned(&h);

	r->to = gid_of(&to);
	r->len = why ? (size_t)n : 0;
	r->error = why ? (int)why->ee_errno : 0;
	return n >= 0;
}
