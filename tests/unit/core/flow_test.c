/* SPDX-License-Identifier: BSD-2-Clause */
/* core/flow: which flow rule matches which frame, and which queue pair gets the
 * frame. */
#include "fixture.h"

#include "core/flow.h"

static struct vb_qp qp_a, qp_b, qp_c;

/* Returns a frame's match key, as wire/eth.c would make from the frame. */
static struct vb_eth_key frame(uint8_t dst0, uint16_t layers, uint8_t sip,
			       uint8_t dport)
{
	struct vb_eth_key k = { .layers = LAYER_ETH | layers };

	k.dst[0] = dst0;
	k.sip[0] = sip;
	k.dport[1] = dport;
	return k;
}

static struct vb_flow flow_on(struct vb_qp *qp, enum vb_flow_kind kind,
			      uint16_t priority)
{
	return (struct vb_flow){
		.rule = { .kind = kind, .priority = priority },
		.qp = qp,
	};
}

static struct vb_flow for_port(struct vb_qp *qp, uint16_t priority,
			       uint8_t dport)
{
	struct vb_flow f = flow_on(qp, FLOW_NORMAL, priority);

	f.rule.mask.layers = f.rule.value.layers = LAYER_UDP;
	f.rule.mask.dport[0] = f.rule.mask.dport[1] = 0xff;
	f.rule.value.dport[1] = dport;
	return f;
}

static const uint16_t udp = LAYER_IPV4 | LAYER_UDP;

static char gets(const struct vb_flow *first, const struct vb_qp *qp,
		 struct vb_eth_key k)
{
	uint32_t tag = 0;

	return vb_flow_steer(first, qp, &k, 100, &tag);
}

/* Each row has a rule and a frame, and says whether the rule matches the
 * frame. */
static void steer__spec_by_frame(void **state)
{
	static const struct {
		const char *name;
		struct vb_eth_key value, mask, frame;
		bool match;
	} rows[] = {
#define ROW(name, member, v, m, f, match)                                      \
	{ name,                                                                \
	  { .member = { v } },                                                 \
	  { .member = { m } },                                                 \
	  { .member = { f } },                                                 \
	  match }
		ROW("dst", dst, 2, 255, 2, true),
		ROW("dst, another", dst, 2, 255, 3, false),
		ROW("dst, masked away", dst, 2, 0, 3, true),
		ROW("dst, one bit", dst, 1, 1, 3, true),
		ROW("src", src, 2, 255, 3, false),
		ROW("type", ether_type, 8, 255, 0x86, false),
		ROW("type, right", ether_type, 8, 255, 8, true),
		ROW("tag", vlan_tag, 0xac, 255, 0xac, true),
		ROW("tag, another", vlan_tag, 0xac, 255, 0, false),
		ROW("sip", sip, 10, 255, 10, true),
		ROW("sip, prefix", sip, 10, 0xf0, 15, true),
		ROW("sip, another", sip, 10, 255, 11, false),
		ROW("dip, another", dip, 10, 255, 11, false),
		ROW("label", flow_label, 1, 255, 2, false),
		ROW("sport", sport, 1, 255, 2, false),
		ROW("dport", dport, 2, 255, 2, true),
#undef ROW
#define ROW(name, member, v, m, f, match)                                      \
	{ name, { .member = v }, { .member = m }, { .member = f }, match }
		ROW("proto", proto, 6, 255, 17, false),
		ROW("proto, right", proto, 17, 255, 17, true),
		ROW("tos", tos, 6, 255, 6, true),
		ROW("ttl", ttl, 6, 255, 7, false),
		ROW("flags", ip_flags, VB_IPV4_DF, 255, 0, false),
		ROW("layer", layers, LAYER_TCP, LAYER_TCP, LAYER_UDP, false),
		ROW("layer, right", layers, LAYER_TCP, LAYER_TCP,
		    LAYER_ETH | LAYER_IPV6 | LAYER_TCP, true),
#undef ROW
	};

	for (size_t i = 0; i < VB_COUNT(rows); i++) {
		struct vb_flow f = flow_on(&qp_a, FLOW_NORMAL, 0), *first = &f;

		f.rule.value = rows[i].value;
		f.rule.mask = rows[i].mask;
		assert_int_equal(vb_flow_check(&f.rule), 0);
		if (gets(first, &qp_a, rows[i].frame) != rows[i].match)
			fail_msg("%s", rows[i].name);
		assert_false(gets(first, &qp_b, rows[i].frame));
	}
}

static void steer__priority_then_age(void **state)
{
	struct vb_flow low = for_port(&qp_a, 5, 80),
		       high = flow_on(&qp_b, FLOW_NORMAL, 1),
		       late = for_port(&qp_c, 5, 80), *first = NULL;

	vb_flow_insert(&first, &low);
	assert_true(gets(first, &qp_a, frame(2, udp, 1, 80)));
	vb_flow_insert(&first, &high);
	assert_false(gets(first, &qp_a, frame(2, udp, 1, 80)));
	assert_true(gets(first, &qp_b, frame(2, udp, 1, 80)));
	vb_flow_remove(&first, &high);
	/* If two queue pairs have equal rules, both get the frame. If their
	 * rules differ but have equal rank, only the first rule's queue pair
	 * gets it. */
	vb_flow_insert(&first, &late);
	assert_true(gets(first, &qp_a, frame(2, udp, 1, 80)));
	assert_true(gets(first, &qp_c, frame(2, udp, 1, 80)));
	late.rule.mask.dport[0] = 0;
	assert_true(gets(first, &qp_a, frame(2, udp, 1, 80)));
	assert_false(gets(first, &qp_c, frame(2, udp, 1, 80)));
}

static void steer__defaults_take_the_rest(void **state)
{
	struct vb_flow all = flow_on(&qp_a, FLOW_ALL_DEFAULT, 0),
		       mc = flow_on(&qp_b, FLOW_MC_DEFAULT, 9),
		       port = for_port(&qp_c, 60000, 80), *first = NULL;

	vb_flow_insert(&first, &all);
	vb_flow_insert(&first, &mc);
	vb_flow_insert(&first, &port);
	assert_true(gets(first, &qp_c, frame(1, udp, 1, 80)));
	assert_false(gets(first, &qp_b, frame(1, udp, 1, 80)));
	assert_true(gets(first, &qp_b, frame(1, udp, 1, 81)));
	assert_false(gets(first, &qp_a, frame(1, udp, 1, 81)));
	assert_true(gets(first, &qp_a, frame(2, udp, 1, 81)));
	assert_false(gets(first, &qp_b, frame(2, udp, 1, 81)));
}

static void steer__sniffer_takes_nothing_away(void **state)
{
	struct vb_flow sniffer = flow_on(&qp_a, FLOW_SNIFFER, 0),
		       port = for_port(&qp_b, 0, 80), *first = NULL;

	vb_flow_insert(&first, &sniffer);
	vb_flow_insert(&first, &port);
	assert_true(gets(first, &qp_a, frame(2, udp, 1, 80)));
	assert_true(gets(first, &qp_b, frame(2, udp, 1, 80)));
	assert_true(gets(first, &qp_a, frame(2, 0, 0, 0)));
}

static void steer__dont_trap_goes_on(void **state)
{
	struct vb_flow copy = flow_on(&qp_a, FLOW_NORMAL, 0),
		       port = for_port(&qp_b, 1, 80), *first = NULL;

	copy.rule.dont_trap = true;
	vb_flow_insert(&first, &copy);
	vb_flow_insert(&first, &port);
	assert_true(gets(first, &qp_a, frame(2, udp, 1, 80)));
	assert_true(gets(first, &qp_b, frame(2, udp, 1, 80)));
}

static void steer__drop_tag_count(void **state)
{
	struct vb_flow drop = for_port(&qp_a, 0, 80),
		       rest = flow_on(&qp_a, FLOW_ALL_DEFAULT, 0),
		       *first = NULL;
	struct vb_eth_key k = frame(2, udp, 1, 80);
	uint64_t values[3];
	uint32_t tag = 0;

	drop.rule.drop = true;
	rest.rule.tag = 0x1234;
	assert_int_equal(vb_counters_create(&drop.rule.counters), 0);
	assert_int_equal(vb_counters_attach(drop.rule.counters, COUNT_BYTES, 2),
			 0);
	assert_int_equal(
		vb_counters_attach(drop.rule.counters, COUNT_PACKETS, 0), 0);
	assert_int_equal(
		vb_counters_attach(drop.rule.counters, COUNT_PACKETS, 32),
		-EINVAL);
	vb_flow_insert(&first, &drop);
	vb_flow_insert(&first, &rest);
	assert_false(vb_flow_steer(first, &qp_a, &k, 100, &tag));
	assert_false(vb_flow_steer(first, &qp_a, &k, 60, &tag));
	k.dport[1] = 81;
	assert_true(vb_flow_steer(first, &qp_a, &k, 100, &tag));
	assert_int_equal(tag, 0x1234);
	vb_counters_read(drop.rule.counters, values, 3);
	assert_int_equal(values[0], 2);
	assert_int_equal(values[1], 0);
	assert_int_equal(values[2], 160);
	atomic_store(&drop.rule.counters->flows, 1);
	assert_int_equal(vb_counters_attach(drop.rule.counters, COUNT_BYTES, 1),
			 -EBUSY);
	assert_int_equal(vb_counters_destroy(drop.rule.counters), -EBUSY);
	atomic_store(&drop.rule.counters->flows, 0);
	assert_int_equal(vb_counters_destroy(drop.rule.counters), 0);
}

static void check__contradictions(void **state)
{
	struct vb_flow_rule r = { .kind = FLOW_NORMAL, .drop = true };

	assert_int_equal(vb_flow_check(&r), 0);
	r.dont_trap = true;
	assert_int_equal(vb_flow_check(&r), -EINVAL);
	r = (struct vb_flow_rule){ .kind = FLOW_SNIFFER };
	assert_int_equal(vb_flow_check(&r), 0);
	r.mask.proto = 1;
	assert_int_equal(vb_flow_check(&r), -EINVAL);
	r = (struct vb_flow_rule){ .kind = FLOW_MC_DEFAULT, .dont_trap = true };
	assert_int_equal(vb_flow_check(&r), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steer__spec_by_frame),
		cmocka_unit_test(steer__priority_then_age),
		cmocka_unit_test(steer__defaults_take_the_rest),
		cmocka_unit_test(steer__sniffer_takes_nothing_away),
		cmocka_unit_test(steer__dont_trap_goes_on),
		cmocka_unit_test(steer__drop_tag_count),
		cmocka_unit_test(check__contradictions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
