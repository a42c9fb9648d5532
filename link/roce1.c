/* SPDX-License-Identifier: BSD-2-Clause */
/* The RoCEv1 link: its socket and the filter in the kernel, groups, and the
 * link's table of functions. */
#include "link/roce1_priv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "link/group.h"
#include "wire/ipc.h"

#define RX_QUEUE_FORCED (8 << 20)
#define RX_QUEUE_ASKED	(4 << 20)
#define TX_QUEUE	(1 << 20)

/* Offsets from the Ethernet header, at which a filter begins to count. */
#define AT_NEXT_HEADER 20
#define AT_QPN_WORD    58
#define QPN_MULTICAST  0xffffff

/*
 * Let in frames to this host (and no frames to others, which an interface in
 * promiscuous mode reports, too), with a GRH behind which a BTH follows, and a
 * destination QPN in the slot. A frame that is too short for a load is refused.
 */
static int filter_frames(const struct vb_roce1 *r1, bool groups)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS,
			 (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE)),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, PACKET_MULTICAST, 9, 0),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, AT_NEXT_HEADER),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, VB_GRH_IBA, 0, 7),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, AT_QPN_WORD),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xffffff),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, QPN_MULTICAST, 3, 0),
		BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, VB_QPN_BITS),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, r1->slot, 0, 2),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, groups ? UINT32_MAX : 0),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	const struct sock_fprog program = { VB_COUNT(code), code };

	return setsockopt(r1->fd, SOL_SOCKET, SO_ATTACH_FILTER, &program,
			  sizeof(program)) < 0
		       ? -errno
		       : 0;
}

static void size_queues(int fd)
{
	static const int forced = RX_QUEUE_FORCED, asked = RX_QUEUE_ASKED,
			 tx = TX_QUEUE;

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &forced,
		       sizeof(forced)) < 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &asked, sizeof(asked)) < 0)
		vb_log(LOG_DEBUG, "roce1: cannot enlarge the receive queue: %s",
		       strerror(errno));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &tx, sizeof(tx)) < 0)
		vb_log(LOG_DEBUG, "roce1: cannot enlarge the send queue: %s",
		       strerror(errno));
}

/* Returns a packet socket that receives nothing before it is bound, or
 * -errno. */
static int open_packets(void)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : fd;
}

/* Receive the frames of all interfaces, because a bond, a bridge or a VLAN can
 * be made while the link is open. */
static int receive_frames(int fd)
{
	const struct sockaddr_ll a = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(VB_ROCE1_TYPE),
	};

	return bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0 ? -errno
								    : 0;
}

static int admit_groups(struct vb_roce1 *r1)
{
	int rc = 0;

	vb_mutex_lock(&r1->lock);
	if (!r1->has_groups)
		rc = filter_frames(r1, true);
	r1->has_groups |= rc == 0;
	vb_mutex_unlock(&r1->lock);
	return rc;
}

static int roce1_join(struct vb_link *l, const struct vb_link_group *group)
{
	struct packet_mreq m = { .mr_ifindex = (int)group->ifindex,
				 .mr_type = PACKET_MR_MULTICAST,
				 .mr_alen = 6 };
	int fd, rc;

	vb_neigh_group(&group->gid, m.mr_address);
	fd = vb_group_join(open_packets(), SOL_PACKET, PACKET_ADD_MEMBERSHIP,
			   &m, sizeof(m));
	if (fd < 0)
		return fd;
	rc = admit_groups(vb_roce1_of(l));
	if (rc == 0)
		return fd;
	vb_group_leave(l, fd);
	return rc;
}

static int roce1_fd(const struct vb_link *l)
{
	return vb_roce1_of(l)->fd;
}

static void roce1_stats(const struct vb_link *l, struct vb_link_stats *out)
{
	const struct vb_roce1 *r1 = vb_roce1_of(l);

#define READ(field)                                                            \
	out->field =                                                           \
		atomic_load_explicit(&r1->stats.field, memory_order_relaxed)
	READ(tx_frames);
	READ(tx_calls);
	READ(tx_bytes);
	READ(tx_lost);
	READ(rx_frames);
	READ(rx_calls);
	READ(rx_bytes);
	READ(rx_icrc_errors);
	READ(rx_malformed);
#undef READ
}

static void roce1_close(struct vb_link *l)
{
	struct vb_roce1 *r1 = vb_roce1_of(l);
	struct vb_link_stats s;

	roce1_stats(l, &s);
	vb_log(LOG_INFO,
	       "roce1: %llu packets sent in %llu calls, %llu received in %llu",
	       (unsigned long long)s.tx_frames, (unsigned long long)s.tx_calls,
	       (unsigned long long)s.rx_frames, (unsigned long long)s.rx_calls);
	close(r1->fd);
	vb_mutex_fini(&r1->lock);
	free(r1->buffers);
	free(r1);
}

static const struct vb_link_ops roce1_ops = {
	.name = "roce1",
	.route = vb_roce1_route,
	.aim = vb_roce1_aim,
	.join = roce1_join,
	.leave = vb_group_leave,
	.send = vb_roce1_send,
	.drop = vb_roce1_drop,
	.recv = vb_roce1_recv,
	.fd = roce1_fd,
	.stats = roce1_stats,
	.close = roce1_close,
};

/* Open the socket. The filter comes first, so that no other frame is ever
 * queued. */
static int open_filtered(struct vb_roce1 *r1)
{
	int rc;

	r1->fd = open_packets();
	if (r1->fd < 0)
		return r1->fd;
	size_queues(r1->fd);
	rc = filter_frames(r1, false);
	if (rc == 0)
		rc = receive_frames(r1->fd);
	if (rc)
		close(r1->fd);
	return rc;
}

int vb_roce1_open(unsigned slot, bool waits, struct vb_link **link)
{
	struct vb_roce1 *r1 = calloc(1, sizeof(*r1));
	int rc;

	if (!r1)
		return -ENOMEM;
	r1->link.ops = &roce1_ops;
	r1->slot = slot;
	r1->waits = waits;
	rc = vb_roce1_rx_init(r1);
	if (rc == 0)
		rc = open_filtered(r1);
	if (rc) {
		free(r1->buffers);
		free(r1);
		return rc == -EACCES ? -EPERM : rc;
	}
	vb_mutex_init(&r1->lock, VB_RANK_LEAF);
	*link = &r1->link;
	return 0;
}
