/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks the kernel for routes, by rtnetlink, and remembers its answers. */
#include "ipoib/route.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/bytes.h"
#include "base/hash.h"

#define IPV4_AT 12 /* offset of the IPv4 address in an IPv4-mapped address */
/* the most messages that are read while looking for the answer to the last
 * request: late answers to earlier requests may come first */
#define LATE_MOST 8

int route_open(struct routes *r, const char *name, uint64_t seed)
{
	const struct timeval longest = { .tv_sec = 1 };

	*r = (struct routes){ .ifindex = if_nametoindex(name), .seed = seed };
	r->nl = nl_socket_alloc();
	if (!r->nl)
		return -ENOMEM;
	if (nl_connect(r->nl, NETLINK_ROUTE) < 0)
		return -EIO;
	/* without acknowledgements, the kernel sends one message for each
	 * request */
	nl_socket_disable_auto_ack(r->nl);
	return setsockopt(nl_socket_get_fd(r->nl), SOL_SOCKET, SO_RCVTIMEO,
			  &longest, sizeof(longest)) < 0
		       ? -errno
		       : 0;
}

void route_close(struct routes *r)
{
	if (r->nl)
		nl_socket_free(r->nl);
	r->nl = NULL;
}

void route_forget(struct routes *r)
{
	memset(r->cache, 0, sizeof(r->cache));
}

/* Send a request for the route to @ip. Returns its sequence number, which the
 * answer repeats; 0: sending failed. */
static uint32_t send_question(const struct routes *r, const struct vb_gid *ip)
{
	struct nl_msg *m = nlmsg_alloc_simple(RTM_GETROUTE, 0);
	bool v4 = vb_gid_is_ipv4(ip);
	struct rtmsg head = {
		.rtm_family = v4 ? AF_INET : AF_INET6,
		.rtm_dst_len = v4 ? 32 : 128,
	};
	uint32_t number = 0;

	if (m && nlmsg_append(m, &head, sizeof(head), NLMSG_ALIGNTO) >= 0 &&
	    nla_put(m, RTA_DST, v4 ? 4 : 16, ip->raw + (v4 ? IPV4_AT : 0)) >=
		    0 &&
	    nla_put_u32(m, RTA_OIF, r->ifindex) >= 0)
		number = nl_send_auto(r->nl, m) < 0 ? 0
						    : nlmsg_hdr(m)->nlmsg_seq;
	nlmsg_free(m);
	return number;
}

/* A route without a gateway leaves @via as it is. */
static void take_gateway(struct nlmsghdr *h, struct vb_gid *via)
{
	const struct nlattr *a;

	if (h->nlmsg_type != RTM_NEWROUTE ||
	    !nlmsg_valid_hdr(h, sizeof(struct rtmsg)))
		return;
	a = nlmsg_find_attr(h, sizeof(struct rtmsg), RTA_GATEWAY);
	if (a && nla_len(a) == 4)
		*via = vb_gid_from_ipv4(nla_data(a));
	else if (a && nla_len(a) == 16)
		memcpy(via->raw, nla_data(a), 16);
}

/* Read one message. True: it is the answer to request @number. *@ended: there
 * is nothing more to read. */
static bool take_answer(struct routes *r, uint32_t number, struct vb_gid *via,
			bool *ended)
{
	struct sockaddr_nl from;
	unsigned char *bytes = NULL;
	struct nlmsghdr *h;
	int n = nl_recv(r->nl, &from, &bytes, NULL);
	bool mine;

	*ended = n <= 0;
	h = (struct nlmsghdr *)bytes;
	mine = n > 0 && nlmsg_ok(h, n) && h->nlmsg_seq == number;
	if (mine)
		take_gateway(h, via);
	free(bytes);
	return mine;
}

/* Ask the kernel for the next hop to @ip. The kernel answers before sendmsg()
 * returns, so this does not block; if an answer should be missing, it blocks
 * for a second at most. */
static void ask_kernel(struct routes *r, const struct vb_gid *ip,
		       struct vb_gid *via)
{
	uint32_t number = send_question(r, ip);
	bool ended = !number;

	for (unsigned i = 0; !ended && i < LATE_MOST; i++)
		if (take_answer(r, number, via, &ended))
			return;
}

const struct vb_gid *route_next_hop(struct routes *r, const struct vb_gid *ip)
{
	uint64_t h = vb_hash(vb_hash(r->seed, vb_load_be(ip->raw, 8)),
			     vb_load_be(ip->raw + 8, 8));
	struct route *known = &r->cache[h % ROUTE_CACHE];

	if (!vb_gid_equal(&known->ip, ip)) {
		known->ip = known->via = *ip;
		ask_kernel(r, ip, &known->via);
	}
	return &known->via;
}
