/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends RoCEv1 frames: which Ethernet address a route leads to, and the headers
 * in front of each packet. */
#include "link/roce1_priv.h"

#include <errno.h>
#include <linux/if_packet.h>
#include <string.h>
#include <sys/socket.h>

#include "base/bytes.h"
#include "base/log.h"
#include "wire/icrc.h"

#define TX_FRAMES   64
#define TAG_BYTES   4
#define HEAD_MAX    (VB_ROCE1_HEAD + TAG_BYTES)
#define DEFAULT_TTL 64
#define PCP_SHIFT   13

static const uint8_t no_mac[6];

/* Functions that complete a route. */

static void keep_port(struct vb_roce1 *r1, uint32_t ifindex,
		      const struct vb_neigh_port *is) VB_REQUIRES(r1->lock)
{
	unsigned i = 0;

	while (i < VB_ROCE1_PORTS && r1->ports[i].ifindex != ifindex)
		i++;
	if (i == VB_ROCE1_PORTS) {
		i = r1->next;
		r1->next = (r1->next + 1) % VB_ROCE1_PORTS;
	}
	r1->ports[i] = (struct vb_roce1_port){ ifindex, *is };
}

static bool known_port(struct vb_roce1 *r1, uint32_t ifindex,
		       struct vb_neigh_port *is)
{
	bool found = false;

	vb_mutex_lock(&r1->lock);
	for (unsigned i = 0; !found && i < VB_ROCE1_PORTS; i++) {
		found = r1->ports[i].ifindex == ifindex;
		if (found)
			*is = r1->ports[i].is;
	}
	vb_mutex_unlock(&r1->lock);
	return found;
}

int vb_roce1_learn(struct vb_link *l, uint32_t ifindex)
{
	struct vb_roce1 *r1 = vb_roce1_of(l);
	struct vb_neigh_port is;
	int rc = ifindex ? vb_neigh_port(ifindex, &is) : -ENODEV;

	if (rc)
		return rc;
	vb_mutex_lock(&r1->lock);
	keep_port(r1, ifindex, &is);
	vb_mutex_unlock(&r1->lock);
	return 0;
}

/* Complete the route @r to this host itself: its frames leave by loopback. */
static void stay_here(struct vb_route *r)
{
	r->hop.ifindex = VB_ROCE1_LOOPBACK;
	memset(r->hop.dst, 0, sizeof(r->hop.dst));
	vb_store_be(r->hop.src, VB_ROCE1_LOCAL, 2);
	vb_store_be(r->hop.src + 2, r->ifindex, 4);
	r->hop.tpid = 0;
}

/* Complete the hop of @r, whose destination address is set. A VLAN's frames go
 * to the interface below with their tag, because the VLAN's interface would
 * choose the priority by a map of its own. Where that interface is in another
 * namespace, that map decides. */
static void finish_hop(struct vb_route *r, const struct vb_neigh_port *is)
{
	struct vb_hop *h = &r->hop;
	bool group = h->dst[0] & 1;

	if (memcmp(h->dst, no_mac, sizeof(no_mac)) == 0 ||
	    memcmp(h->dst, is->mac, sizeof(is->mac)) == 0) {
		stay_here(r);
		return;
	}
	memcpy(h->src, is->mac, sizeof(h->src));
	h->ifindex = r->ifindex;
	h->tpid = 0;
	if (group && r->ifindex == VB_ROCE1_LOOPBACK) {
		vb_store_be(h->src, VB_ROCE1_LOCAL, 2);
		vb_store_be(h->src + 2, r->ifindex, 4);
	}
	if (is->vlan == VB_NO_VLAN || !is->below)
		return;
	h->ifindex = is->below;
	h->tpid = is->tpid;
	h->tci = (uint16_t)(r->priority << PCP_SHIFT | (is->vlan & 0xfff));
}

/* Does the link-local GID contain a MAC address (Annex A16)? If so, copies that
 * to @mac. */
static bool says_mac(const struct vb_gid *gid, uint8_t mac[6])
{
	struct vb_gid same;

	if (!vb_gid_is_link_local(gid))
		return false;
	memcpy(mac, gid->raw + 8, 3);
	memcpy(mac + 3, gid->raw + 13, 3);
	mac[0] ^= 2;
	same = vb_gid_from_mac(mac);
	return vb_gid_equal(gid, &same);
}

/* Find the Ethernet address of the destination. This may ask the network, and
 * wait for the answer. */
static int find_hop_mac(const struct vb_roce1 *r1, struct vb_route *r,
			const struct vb_neigh_port *is)
{
	struct vb_neigh_from from = { .ifindex = r->ifindex,
				      .no_router = true,
				      .no_wait = !r1->waits };
	char text[VB_GID_TEXT];
	uint16_t vlan;
	int rc;

	if (vb_gid_is_multicast(&r->dgid)) {
		vb_neigh_group(&r->dgid, r->hop.dst);
		return 0;
	}
	if (says_mac(&r->dgid, r->hop.dst))
		return 0;
	memcpy(from.mac, is->mac, sizeof(from.mac));
	rc = vb_neigh_resolve(&from, &r->dgid, r->hop.dst, &vlan);
	if (rc == -ENETUNREACH)
		vb_log(LOG_WARN,
		       "roce1: %s is behind a router, which forwards no RoCEv1",
		       vb_gid_text(&r->dgid, text));
	return rc;
}

int vb_roce1_route(struct vb_link *l, struct vb_route *r)
{
	struct vb_neigh_port is;
	int rc;

	if (vb_gid_is_ipv4(&r->dgid) != vb_gid_is_ipv4(&r->sgid) &&
	    !vb_gid_is_multicast(&r->dgid))
		return -EAFNOSUPPORT;
	rc = vb_roce1_learn(l, r->ifindex);
	if (rc)
		return rc;
	if (!known_port(vb_roce1_of(l), r->ifindex, &is))
		return -ENODEV;
	rc = find_hop_mac(vb_roce1_of(l), r, &is);
	if (rc == 0)
		finish_hop(r, &is);
	return rc;
}

/* For a route that answers a frame, the receiver has set only the destination
 * of the hop, which is that frame's source address. */
int vb_roce1_aim(struct vb_link *l, struct vb_route *r)
{
	struct vb_neigh_port is;

	if (r->hop.ifindex)
		return 0;
	if (!known_port(vb_roce1_of(l), r->ifindex, &is))
		return -EHOSTUNREACH;
	finish_hop(r, &is);
	return 0;
}

/* Functions that send frames. */

/* Messages for sendmmsg(), of which each is a frame; a frame to a group has
 * two. */
struct roce1_out {
	struct mmsghdr msgs[2 * TX_FRAMES];
	struct sockaddr_ll to[2 * TX_FRAMES];
	struct iovec parts[2 * TX_FRAMES][2];
	uint8_t heads[2 * TX_FRAMES][HEAD_MAX];
	/* The number of the frame in its batch, for each message. */
	uint16_t frame[2 * TX_FRAMES];
	unsigned count;
};
_Static_assert(sizeof(struct roce1_out) <= VB_TXQ_ROOM, "in each batch");

static size_t put_ethernet(uint8_t *to, const struct vb_hop *h)
{
	struct vb_writer w = { to };

	memcpy(w.at, h->dst, sizeof(h->dst));
	memcpy(w.at + 6, h->src, sizeof(h->src));
	w.at += 12;
	if (h->tpid) {
		vb_put_be(&w, h->tpid, 2);
		vb_put_be(&w, h->tci, 2);
	}
	vb_put_be(&w, VB_ROCE1_TYPE, 2);
	return (size_t)(w.at - to);
}

static size_t put_roce1_head(uint8_t *to, const struct vb_route *r,
			     const struct vb_hop *h, uint32_t len)
{
	const struct vb_grh grh = {
		.sgid = r->sgid,
		.dgid = r->dgid,
		.flow_label = r->flow_label,
		.udp_bytes = (uint16_t)(len + VB_ICRC_BYTES),
		.iba = true,
		.tclass = r->tclass,
		.hop_limit = r->hop_limit ? r->hop_limit : DEFAULT_TTL,
	};
	size_t at = put_ethernet(to, h);

	vb_grh_put(to + at, &grh);
	return at + VB_GRH_BYTES;
}

static void add_frame(struct roce1_out *o, struct vb_txq *q, unsigned number,
		      const struct vb_hop *h)
{
	const struct vb_tx_frame *f = &q->frames[number];
	unsigned i = o->count++;

	o->frame[i] = (uint16_t)number;
	o->to[i] = (struct sockaddr_ll){
		.sll_family = AF_PACKET,
		.sll_ifindex = (int)h->ifindex,
	};
	o->parts[i][0].iov_base = o->heads[i];
	o->parts[i][0].iov_len =
		put_roce1_head(o->heads[i], f->route, h, f->len);
	o->parts[i][1].iov_base = q->bytes + f->at;
	o->parts[i][1].iov_len = f->len + VB_ICRC_BYTES;
	o->msgs[i].msg_hdr = (struct msghdr){
		.msg_name = &o->to[i],
		.msg_namelen = sizeof(o->to[i]),
		.msg_iov = o->parts[i],
		.msg_iovlen = 2,
	};
}

static void put_icrc(struct vb_txq *q, const struct vb_tx_frame *f)
{
	struct vb_icrc_prefix prefix;
	uint8_t *at = q->bytes + f->at;

	vb_icrc_prefix_grh(&prefix, &f->route->sgid, &f->route->dgid, f->len);
	vb_store_le32(at + f->len, vb_icrc(&prefix, at, 0));
}

/* The members of a group on this host get a copy by loopback. */
static void add_group_copy(struct roce1_out *o, struct vb_txq *q,
			   unsigned number)
{
	struct vb_route copy = *q->frames[number].route;

	stay_here(&copy);
	memcpy(copy.hop.dst, q->frames[number].route->hop.dst,
	       sizeof(copy.hop.dst));
	add_frame(o, q, number, &copy.hop);
}

static void fill_out(struct roce1_out *o, struct vb_txq *q)
{
	o->count = 0;
	for (unsigned i = q->first; i < q->count && i < q->first + TX_FRAMES;
	     i++) {
		const struct vb_hop *h = &q->frames[i].route->hop;

		put_icrc(q, &q->frames[i]);
		add_frame(o, q, i, h);
		if (h->dst[0] & 1 && h->ifindex != VB_ROCE1_LOOPBACK)
			add_group_copy(o, q, i);
	}
}

/* Send messages from @first on. Returns how many are done, at least 1, because
 * a message that the kernel refuses is lost; or 0: the kernel has no room. */
static unsigned send_out(struct vb_roce1 *r1, struct roce1_out *o,
			 unsigned first)
{
	int sent = sendmmsg(r1->fd, o->msgs + first, o->count - first,
			    MSG_DONTWAIT);

	vb_roce1_count(&r1->stats.tx_calls, 1);
	if (sent > 0)
		return (unsigned)sent;
	if (errno == EAGAIN || errno == ENOBUFS)
		return 0;
	vb_log(LOG_DEBUG, "roce1: a frame is lost: %s", strerror(errno));
	vb_roce1_count(&r1->stats.tx_lost, 1);
	return 1;
}

/* Send up to TX_FRAMES frames. False: the kernel has no room for the frames
 * from @q->first on. If it has no room only for the second copy of a frame to a
 * group, that copy is lost. */
static bool send_part(struct vb_roce1 *r1, struct vb_txq *q)
{
	struct roce1_out *o = (void *)q->room;
	unsigned done = 0, n = 1;
	uint64_t bytes = 0;

	fill_out(o, q);
	while (done < o->count && (n = send_out(r1, o, done)))
		done += n;
	for (unsigned i = 0; i < done; i++)
		bytes += o->parts[i][0].iov_len + o->parts[i][1].iov_len;
	vb_roce1_count(&r1->stats.tx_frames, done);
	vb_roce1_count(&r1->stats.tx_bytes, bytes);
	if (done && done < o->count && o->frame[done] == o->frame[done - 1]) {
		vb_roce1_count(&r1->stats.tx_lost, 1);
		done++;
	}
	if (done < o->count) {
		q->first = o->frame[done];
		return false;
	}
	q->first = VB_MIN(q->first + TX_FRAMES, q->count);
	return true;
}

bool vb_roce1_send(struct vb_link *l, struct vb_txq *q)
{
	struct vb_roce1 *r1 = vb_roce1_of(l);

	while (q->first < q->count)
		if (!send_part(r1, q))
			return false;
	vb_txq_reset(q);
	return true;
}

void vb_roce1_drop(struct vb_link *l, struct vb_txq *q)
{
	vb_roce1_count(&vb_roce1_of(l)->stats.tx_lost, q->count - q->first);
	vb_txq_reset(q);
}
