/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of the UDP link: frames over loopback. */
#include "udp_fixture.h"

/* Exchange frames over loopback in both directions, in one batch. */
void exchange(const char *from, const char *to, const uint32_t *lens,
	      unsigned count)
{
	struct vb_link *l = open_link();
	struct vb_route r = route_to(l, from, to, qpn_in(0));
	struct vb_gid src = gid_of(from), dst = gid_of(to);
	struct vb_txq *q = txq();
	unsigned got = 0;

	r.tclass = 0x68;
	r.hop_limit = 7;
	for (unsigned i = 0; i < count; i++)
		add_frame(q, &r, i, lens[i]);
	l->ops->send(l, q);
	assert_int_equal(q->count, 0);
	assert_int_equal(q->used, 0);
	while (got < count) {
		wait_readable(l);
		assert_int_equal(l->ops->recv(l, rxq()), 0);
		for (unsigned i = 0; i < rxq()->count; i++, got++) {
			const struct vb_frame *f = &rxq()->frames[i];

			check_frame(f, got, lens[got]);
			assert_int_equal(f->if_ip_id, -1);
			assert_true(vb_gid_equal(f->src, &src));
			assert_true(vb_gid_equal(f->dst, &dst));
			assert_int_equal(f->src_port, r.src_port);
			assert_int_equal(f->tclass, 0x68);
			assert_int_equal(f->ttl, 7);
			assert_int_equal(f->ifindex, 1);
		}
	}
	last_tx_calls = stats_of(l).tx_calls;
	assert_int_equal(stats_of(l).tx_frames, count);
	assert_int_equal(stats_of(l).rx_frames, count);
	assert_int_equal(stats_of(l).rx_bytes, stats_of(l).tx_bytes);
	assert_int_equal(stats_of(l).tx_lost, 0);
	assert_int_equal(stats_of(l).rx_icrc_errors, 0);
	close_link(l);
}

static void exchange_both(const uint32_t *lens, unsigned count)
{
	exchange("127.0.0.2", "127.0.0.1", lens, count);
	exchange("::1", "::1", lens, count);
}

void udp_send__one_frame(void **state)
{
	exchange_both((uint32_t[]){ VB_BTH_BYTES }, 1);
	exchange_both((uint32_t[]){ 1040 }, 1);
}

void udp_send__a_batch_is_joined(void **state)
{
	uint32_t lens[VB_TXQ_FRAMES];

	for (unsigned i = 0; i < VB_COUNT(lens); i++)
		lens[i] = 64;
	exchange_both(lens, VB_COUNT(lens));
	assert_int_equal(last_tx_calls, 1);
	for (unsigned i = 0; i < 15; i++)
		lens[i] = 4096 + 16;
	lens[15] = 28;
	exchange_both(lens, 16);
	assert_int_equal(last_tx_calls, 1);
}

void udp_send__lengths_that_go_up_and_down(void **state)
{
	exchange_both((uint32_t[]){ 100, 100, 60, 60, 200, 12, 12, 12, 4112, 16,
				    4112 },
		      11);
}

void udp_send__two_slots_in_one_flush(void **state)
{
	struct vb_link *l = open_link();
	struct vb_route r[2] = { route_to(l, "::1", "::1", qpn_in(0)),
				 route_to(l, "::1", "::1", qpn_in(5)) };
	struct vb_txq *q = txq();
	unsigned got[2] = { 0 };

	for (unsigned i = 0; i < 40; i++)
		add_frame(q, &r[i & 1], i, 32);
	l->ops->send(l, q);
	while (got[0] + got[1] < 40) {
		wait_readable(l);
		assert_int_equal(l->ops->recv(l, rxq()), 0);
		for (unsigned i = 0; i < rxq()->count; i++) {
			const struct vb_frame *f = &rxq()->frames[i];
			bool second = f->src_port == r[1].src_port;

			check_frame(f, got[second]++ * 2 + second, 32);
		}
	}
	close_link(l);
}

void udp_send__more_than_recv_takes_at_once(void **state)
{
	struct vb_link *l = open_link();
	struct vb_route r = route_to(l, "::1", "::1", qpn_in(0));
	unsigned sent = 0, got = 0;

	for (int i = 0; i < 10; i++) {
		struct vb_txq *q = txq();

		while (vb_txq_has_room(q))
			add_frame(q, &r, sent++, 16);
		l->ops->send(l, q);
	}
	while (got < sent) {
		wait_readable(l);
		do {
			assert_int_equal(l->ops->recv(l, rxq()), 0);
			for (unsigned i = 0; i < rxq()->count; i++)
				check_frame(&rxq()->frames[i], got++, 16);
		} while (rxq()->count);
	}
	assert_int_equal(got, sent);
	close_link(l);
}

void udp_send__no_way_there(void **state)
{
	struct vb_link *l = open_link();
	struct vb_route there = route_to(l, "127.0.0.1", "192.0.2.9", 0);
	struct vb_route alien = route_to(l, "127.0.0.1", "127.0.0.1", 0);
	struct vb_route alien6 = route_to(l, "::1", "::1", 0);
	struct vb_txq *q = txq();

	/* Packets whose source address the host no longer has: */
	alien.sgid = gid_of("192.0.2.9");
	alien6.sgid = gid_of("2001:db8::9");
	add_frame(q, &there, 0, 16);
	add_frame(q, &alien, 0, 16);
	add_frame(q, &alien6, 0, 16);
	add_frame(q, &alien6, 1, 16);
	l->ops->send(l, q);
	assert_int_equal(stats_of(l).tx_lost, 4);
	assert_int_equal(stats_of(l).tx_frames, 0);
	close_link(l);
}

static void throw_at_port(const void *bytes, size_t len)
{
	struct sockaddr_in6 to = { .sin6_family = AF_INET6,
				   .sin6_addr = IN6ADDR_LOOPBACK_INIT,
				   .sin6_port = htons(VB_ROCE_PORT) };
	int tx = socket(AF_INET6, SOCK_DGRAM, 0);

	assert_int_equal(
		sendto(tx, bytes, len, 0, (struct sockaddr *)&to, sizeof(to)),
		len);
	close(tx);
}

void udp_recv__rubbish_is_counted(void **state)
{
	struct vb_link *l = open_link();
	static uint8_t zeros[60000];

	throw_at_port(zeros, 0);
	throw_at_port(zeros, 1);
	throw_at_port(zeros, 15);
	throw_at_port(zeros, 17);
	throw_at_port(zeros, 16);
	throw_at_port(zeros, sizeof(zeros));
	wait_readable(l);
	assert_int_equal(l->ops->recv(l, rxq()), 0);
	assert_int_equal(rxq()->count, 0);
	assert_int_equal(stats_of(l).rx_malformed, 4);
	assert_int_equal(stats_of(l).rx_icrc_errors, 2);
	assert_int_equal(l->ops->recv(l, rxq()), 0);
	assert_int_equal(rxq()->count, 0);
	close_link(l);
}
