/* SPDX-License-Identifier: BSD-2-Clause */
/* A gateway: an IPoIB interface that has an Ethernet port of a switch in place
 * of the host. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/log.h"
#include "base/rand.h"
#include "ipoib/cable.h"
#include "ipoib/iface_priv.h"

/* size of the socket's buffer, if the kernel permits it */
#define SOCKET_BYTES (4 << 20)

/* A frame for which the switch has no room is lost, as on any Ethernet. */
static void send_to_switch(void *arg, const uint8_t to[VB_MAC_BYTES],
			   const uint8_t *frame, size_t len)
{
	struct iface *f = arg;
	struct iovec parts[2] = {
		{ (void *)(uintptr_t)to, VB_MAC_BYTES },
		{ (void *)(uintptr_t)(frame + VB_MAC_BYTES),
		  len - VB_MAC_BYTES },
	};
	const struct msghdr m = { .msg_iov = parts, .msg_iovlen = 2 };

	if (sendmsg(f->tun.fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
	    errno != EAGAIN)
		vb_log(LOG_DEBUG, "%s: %s", f->tun.name, strerror(errno));
}

static void send_to_group(void *arg, const struct vb_gid *group,
			  const uint8_t *frame, size_t len)
{
	struct iface *f = arg;
	struct vb_gid mgid = vb_ip_mgid(group, f->pkey);

	if (f->groups && len <= f->longest)
		vb_groups_send(f->groups, &mgid, frame, len, f->now);
}

static void hear_group(void *arg, const struct vb_gid *group)
{
	struct iface *f = arg;
	struct vb_gid mgid = vb_ip_mgid(group, f->pkey);

	if (f->groups)
		vb_groups_enter(f->groups, &mgid, f->now);
}

static void leave_group(void *arg, const struct vb_gid *group)
{
	struct iface *f = arg;
	struct vb_gid mgid = vb_ip_mgid(group, f->pkey);

	if (f->groups)
		vb_groups_leave(f->groups, &mgid);
}

static const struct vb_gw_ops gw_ops = {
	.eth_send = send_to_switch,
	.ib_group = send_to_group,
	.ib_enter = hear_group,
	.ib_leave = leave_group,
};

/* --- the functions of struct iface_kind --- */

/* Make a pair of sockets, and give one of them to the switch. */
static int gw_open(struct iface *f, const char *name, uint64_t seed,
		   const char **what)
{
	static char said[CABLE_TEXT];
	int fds[2], rc, bytes = SOCKET_BYTES;

	*what = "a socket";
	snprintf(f->tun.name, sizeof(f->tun.name), "%s", name);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC,
		       0, fds) < 0)
		return -errno;
	f->tun.fd = fds[0];
	for (unsigned i = 0; i < 2; i++)
		(void)setsockopt(fds[i], SOL_SOCKET, SO_SNDBUF, &bytes,
				 sizeof(bytes));
	rc = cable_plug(&f->gateway.place, f->gateway.port, fds[1], name, said);
	close(fds[1]);
	if (rc)
		f->failure = said;
	return rc;
}

static int make_gateway(struct iface *f)
{
	struct vb_gw_config c = {
		.eth_mtu = f->gateway.mtu,
		.seed = (uint64_t)vb_rand32() << 32 | vb_rand32(),
	};

	memcpy(c.router, f->gateway.router, sizeof(c.router));
	iface_eth_mac(f, c.mac);
	c.nets.list[c.nets.count++] = iface_link_local(f);
	for (unsigned i = 0; i < f->wanted_count; i++)
		if (c.nets.count < VB_IP_NETS)
			c.nets.list[c.nets.count++] = f->wanted[i];
	f->tun.nets = c.nets;
	f->gw = vb_gw_create(&gw_ops, f, &c, f->nbrs);
	if (f->gw)
		return 0;
	f->failure = "there is no memory";
	return -ENOMEM;
}

static int gw_bring_up(struct iface *f, unsigned mtu)
{
	f->mtu = mtu;
	return f->gw ? 0 : make_gateway(f);
}

static void gw_enter(struct iface *f)
{
	const struct vb_ipoib_hw hw = { .qpn = f->port.qp->qp_num,
					.gid = f->port.gid };

	iface_enter_groups(f);
	vb_gw_begin(f->gw, &hw, f->mtu, f->now);
}

static void gw_send_frame(struct iface *f, uint8_t *frame, size_t len)
{
	if (f->gw)
		vb_gw_from_eth(f->gw, frame + VB_IPOIB_HEADER,
			       len - VB_IPOIB_HEADER, f->now);
}

static void gw_take_frame(struct iface *f, const struct ibv_wc *wc,
			  unsigned type, const uint8_t *packet, size_t len)
{
	if (f->gw)
		vb_gw_from_ib(f->gw, type, packet, len, wc->src_qp, f->now);
}

/* Nothing to do: the table of neighbours asks for all paths again by itself. */
static void gw_moved(struct iface *f)
{
}

static void gw_hear_told(struct iface *f, const struct vb_gid *ip,
			 const struct vb_ipoib_hw *hw)
{
	if (f->gw)
		vb_gw_told(f->gw, ip, hw);
}

const struct iface_kind iface_gateway = {
	.open = gw_open,
	.send = gw_send_frame,
	.take = gw_take_frame,
	.bring_up = gw_bring_up,
	.enter = gw_enter,
	.moved = gw_moved,
	.told = gw_hear_told,
};
