/* SPDX-License-Identifier: BSD-2-Clause */
/* The RSS hash is checked with Microsoft's published vectors; and the states of
 * work queues are checked. */
#include "qp_fixture.h"

#include <arpa/inet.h>

#include "core/rss.h"

/* The key and the two tables of Microsoft's "Verifying the RSS Hash
 * Calculation". */
static const uint8_t ms_key[VB_TOEPLITZ_KEY_BYTES] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
	0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
	0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
	0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

static const struct vector {
	const char *dst;
	uint16_t dport;
	const char *src;
	uint16_t sport;
	uint32_t addresses, with_ports;
} vectors[] = {
	{ "161.142.100.80", 1766, "66.9.149.187", 2794, 0x323e8fc2,
	  0x51ccc178 },
	{ "65.69.140.83", 4739, "199.92.111.2", 14230, 0xd718262a, 0xc626b0ea },
	{ "12.22.207.184", 38024, "24.19.198.95", 12898, 0xd2d0a5de,
	  0x5c2b394a },
	{ "209.142.163.6", 2217, "38.27.205.30", 48228, 0x82989176,
	  0xafc7327f },
	{ "202.188.127.2", 1303, "153.39.163.191", 44251, 0x5d1809c5,
	  0x10e828a2 },
	{ "3ffe:2501:200:3::1", 1766, "3ffe:2501:200:1fff::7", 2794, 0x2cc18cd5,
	  0x40207d3d },
	{ "ff02::1", 4739, "3ffe:501:8::260:97ff:fe40:efab", 14230, 0x0f0c461c,
	  0xdde51bbf },
	{ "fe80::200:f8ff:fe21:67cf", 38024,
	  "3ffe:1900:4545:3:200:f8ff:fe21:67cf", 44251, 0x4b61e985,
	  0x02d1feef },
};

static struct vb_eth_key key_of(const struct vector *v, uint16_t l4)
{
	bool v6 = strchr(v->dst, ':');
	struct vb_eth_key k = { .layers = l4 | (v6 ? LAYER_IPV6 : LAYER_IPV4) };
	uint16_t sport = htons(v->sport), dport = htons(v->dport);
	int family = v6 ? AF_INET6 : AF_INET;

	assert_int_equal(inet_pton(family, v->src, k.sip), 1);
	assert_int_equal(inet_pton(family, v->dst, k.dip), 1);
	memcpy(k.sport, &sport, 2);
	memcpy(k.dport, &dport, 2);
	return k;
}

static uint32_t hash(uint32_t fields, struct vb_eth_key k)
{
	struct vb_rss rss = { .fields = fields, .count = 1 };

	memcpy(rss.key, ms_key, sizeof(ms_key));
	return vb_rss_hash(&rss, &k);
}

#define ADDRESSES  (RSS_SRC_IPV4 | RSS_DST_IPV4)
#define ADDRESSES6 (RSS_SRC_IPV6 | RSS_DST_IPV6)
#define TCP_PORTS  (RSS_SRC_PORT_TCP | RSS_DST_PORT_TCP)
#define UDP_PORTS  (RSS_SRC_PORT_UDP | RSS_DST_PORT_UDP)

static void hash__published_vectors(void **state)
{
	for (size_t i = 0; i < VB_COUNT(vectors); i++) {
		const struct vector *v = &vectors[i];
		uint32_t ip = strchr(v->dst, ':') ? ADDRESSES6 : ADDRESSES;

		assert_int_equal(hash(ip, key_of(v, LAYER_TCP)), v->addresses);
		assert_int_equal(hash(ip | TCP_PORTS, key_of(v, LAYER_TCP)),
				 v->with_ports);
		assert_int_equal(hash(ip | UDP_PORTS, key_of(v, LAYER_UDP)),
				 v->with_ports);
	}
}

/* The hash leaves out fields that a frame does not have. */
static void hash__fields_that_are_not_there(void **state)
{
	const struct vector *v = &vectors[0];

	assert_int_equal(hash(ADDRESSES | TCP_PORTS, key_of(v, LAYER_UDP)),
			 v->addresses);
	assert_int_equal(hash(ADDRESSES6, key_of(v, LAYER_TCP)), 0);
	assert_int_equal(hash(0, key_of(v, LAYER_TCP)), 0);
}

static void check__fields(void **state)
{
	assert_int_equal(vb_rss_check(0), 0);
	assert_int_equal(vb_rss_check(ADDRESSES | TCP_PORTS), 0);
	assert_int_equal(vb_rss_check(ADDRESSES | RSS_DST_IPV6), -EINVAL);
	assert_int_equal(vb_rss_check(TCP_PORTS | RSS_DST_PORT_UDP), -EINVAL);
	assert_int_equal(vb_rss_check(1 << 8), -EOPNOTSUPP);
	assert_int_equal(vb_rss_check(1ull << 31), -EOPNOTSUPP);
}

static void pick__low_bits_of_the_hash(void **state)
{
	struct vb_qp queues[4];
	struct vb_rss *rss =
		calloc(1, sizeof(*rss) + 4 * sizeof(rss->queues[0]));
	struct vb_eth_key k = key_of(&vectors[0], LAYER_TCP);

	memcpy(rss->key, ms_key, sizeof(ms_key));
	rss->fields = ADDRESSES;
	rss->count = 4;
	for (unsigned i = 0; i < 4; i++)
		rss->queues[i] = &queues[i];
	assert_ptr_equal(vb_rss_pick(rss, &k), &queues[0x323e8fc2 & 3]);
	free(rss);
}

static int move(struct vb_qp *wq, enum vb_qp_state to)
{
	struct vb_qp_attr attr = { .qp_state = to };

	return vb_qp_modify(wq, &attr, QPM_STATE, 1);
}

static struct vb_qp *make_wq(struct fixture *f)
{
	struct vb_qp_init init = init_of(f);

	init.type = QPT_WQ;
	init.max_send_wr = init.max_send_sge = 0;
	return make(f, init);
}

static void wq__states(void **state)
{
	static const struct {
		enum vb_qp_state from, to;
		int rc;
	} rows[] = {
		{ QPS_RESET, QPS_RTR, 0 },     { QPS_RTR, QPS_RTR, 0 },
		{ QPS_RTR, QPS_RESET, 0 },     { QPS_RTR, QPS_ERR, 0 },
		{ QPS_RESET, QPS_ERR, 0 },     { QPS_ERR, QPS_RESET, 0 },
		{ QPS_ERR, QPS_RTR, -EINVAL }, { QPS_RESET, QPS_INIT, -EINVAL },
		{ QPS_RTR, QPS_RTS, -EINVAL }, { QPS_RTR, QPS_SQD, -EINVAL },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < VB_COUNT(rows); i++) {
		struct vb_qp *wq = make_wq(f);

		if (rows[i].from != QPS_RESET)
			assert_int_equal(move(wq, rows[i].from), 0);
		assert_int_equal(move(wq, rows[i].to), rows[i].rc);
		vb_qp_destroy(wq);
	}
}

/* Moving a work queue to ERR flushes its receives; RESET drops them. */
static void wq__flush_and_purge(void **state)
{
	struct fixture *f = *state;
	struct vb_qp *wq = make_wq(f);
	struct vb_cqe e[2];

	assert_int_equal(move(wq, QPS_RTR), 0);
	assert_int_equal(vb_rq_post(&wq->rq, 7, NULL, 0), 0);
	assert_int_equal(move(wq, QPS_ERR), 0);
	assert_int_equal(vb_cq_poll(f->cq, 2, e), 1);
	assert_int_equal(e[0].wr_id, 7);
	assert_int_equal(e[0].status, WC_FLUSH_ERR);
	assert_int_equal(e[0].qpn, atomic_load(&wq->qpn));
	assert_int_equal(move(wq, QPS_RESET), 0);
	assert_int_equal(move(wq, QPS_RTR), 0);
	assert_int_equal(vb_rq_post(&wq->rq, 8, NULL, 0), 0);
	assert_int_equal(move(wq, QPS_RESET), 0);
	assert_int_equal(vb_cq_poll(f->cq, 2, e), 0);
	assert_int_equal(vb_cq_destroy(f->cq), -EBUSY);
	vb_qp_destroy(wq);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hash__published_vectors),
		cmocka_unit_test(hash__fields_that_are_not_there),
		cmocka_unit_test(check__fields),
		cmocka_unit_test(pick__low_bits_of_the_hash),
		cmocka_unit_test_setup_teardown(wq__states, set_up, tear_down),
		cmocka_unit_test_setup_teardown(wq__flush_and_purge, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
