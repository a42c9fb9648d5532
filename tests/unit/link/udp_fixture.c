/* SPDX-License-Identifier: BSD-2-Clause */
/* The fixture of the UDP link's tests: links and frames, and the far host. */
#include "udp_fixture.h"

struct vb_gid gid_of(const char *text)
{
	struct vb_gid gid;
	uint8_t v4[4];

	if (inet_pton(AF_INET, text, v4) == 1)
		return vb_gid_from_ipv4(v4);
	assert_int_equal(inet_pton(AF_INET6, text, gid.raw), 1);
	return gid;
}

uint32_t qpn_in(unsigned slot)
{
	return slot << VB_QPN_BITS | 0x12;
}

struct vb_link *open_link(void)
{
	struct vb_link *l;
	int fd;

	assert_int_equal(vb_udp_socket(&fd), 0);
	assert_int_equal(vb_udp_open(fd, &l), 0);
	return l;
}

struct vb_route route_to(struct vb_link *l, const char *from, const char *to,
			 uint32_t dqpn)
{
	struct vb_route r = { .sgid = gid_of(from),
			      .dgid = gid_of(to),
			      .dqpn = dqpn };

	assert_int_equal(l->ops->route(l, &r), 0);
	return r;
}

/* Append a SEND_ONLY packet whose payload depends on @psn to the batch @q. */
void add_frame(struct vb_txq *q, const struct vb_route *r, uint32_t psn,
	       uint32_t len)
{
	struct vb_writer w = { vb_txq_begin(q) };
	struct vb_bth bth = { .opcode = 4, .dqpn = r->dqpn, .psn = psn };

	assert_true(vb_txq_has_room(q));
	vb_bth_put(&w, &bth);
	for (uint32_t i = VB_BTH_BYTES; i < len; i++)
		vb_put_be(&w, (psn * 31 + i) & 0xff, 1);
	vb_txq_commit(q, len, r);
}

void check_frame(const struct vb_frame *f, uint32_t psn, uint32_t len)
{
	assert_int_equal(f->len, len);
	assert_int_equal(vb_load_be(f->bytes + 9, 3), psn);
	for (uint32_t i = VB_BTH_BYTES; i < len; i++)
		assert_int_equal(f->bytes[i], (psn * 31 + i) & 0xff);
}

struct vb_link_stats stats_of(struct vb_link *l)
{
	struct vb_link_stats s;

	l->ops->stats(l, &s);
	return s;
}

/* Number of system calls to send in the last exchange(). */
uint64_t last_tx_calls;

void wait_readable(struct vb_link *l)
{
	struct pollfd p = { l->ops->fd(l), POLLIN, 0 };

	assert_int_equal(poll(&p, 1, 2000), 1);
}

struct vb_txq *txq(void)
{
	static struct vb_txq q;

	vb_txq_reset(&q);
	return &q;
}

struct vb_rxq *rxq(void)
{
	static struct vb_rxq q;

	return &q;
}

void close_link(struct vb_link *l)
{
	l->ops->close(l);
	assert_false(vb_udp_port_taken());
}
