/* SPDX-License-Identifier: BSD-2-Clause */
/* The agent for congestion control: bytes are compared with those that Debian's
 * ibccquery and ibccconfig read and write. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "mgmt/cca.h"
#include "wire/cc.h"
#include "wire/smp.h"

static struct world {
	struct vb_fab_node *node;
	struct vb_cca *agent;
	uint8_t own;
	uint64_t key;
	uint8_t mad[VB_MAD_BYTES];
	vb_time now;
} w;

static void begin(uint8_t kind, uint8_t ports)
{
	const struct vb_fab_node_spec spec = { .kind = kind,
					       .ports = ports,
					       .guid = 0x100 };

	memset(&w, 0, sizeof(w));
	w.node = vb_fab_node_create(&spec);
	w.agent = vb_cca_create(w.node);
	assert_non_null(w.agent);
	w.own = kind == FAB_SWITCH ? 0 : 1;
	w.node->port[w.own].lid = 7;
	w.now = VB_SEC;
}

static void end(void)
{
	vb_cca_destroy(w.agent);
	vb_fab_node_destroy(w.node);
}

static uint8_t *data(void)
{
	return w.mad + VB_CC_DATA_AT;
}

/* Give the agent a MAD with the data of w.mad. Returns what the agent did. */
static enum vb_cca_verdict say(unsigned method, unsigned attr, uint32_t mod)
{
	const struct vb_mad_hdr h = { 1,
				      MAD_CLASS_CC,
				      VB_CC_CLASS_VERSION,
				      (uint8_t)method,
				      0,
				      0,
				      77,
				      (uint16_t)attr,
				      mod };
	struct vb_writer to = { w.mad };

	vb_mad_hdr_put(&to, &h);
	vb_store_be(w.mad + VB_CC_KEY_AT, w.key, 8);
	return vb_cca_hear(w.agent, w.own, w.mad, w.now);
}

static unsigned ask(unsigned method, unsigned attr, uint32_t mod)
{
	if (method == MAD_GET)
		memset(w.mad, 0, sizeof(w.mad));
	assert_int_equal(say(method, attr, mod), CCA_ANSWERED);
	assert_int_equal(w.mad[3], MAD_GET_RESP);
	assert_int_equal(vb_load_be(w.mad + 8, 8), 77);
	return (unsigned)vb_load_be(w.mad + 4, 2);
}

static void cca__what_each_kind_can_do(void **state)
{
	begin(FAB_SWITCH, 4);
	assert_int_equal(ask(MAD_GET, CC_CLASS_PORT_INFO, 0), MAD_OK);
	assert_int_equal(vb_load_be(data(), 4), 0x01020001);
	assert_int_equal(ask(MAD_GET, CC_INFO, 0), MAD_OK);
	assert_int_equal(vb_load_be(data(), 3), 0x000e00);
	assert_int_equal(ask(MAD_GET, CC_CA_SETTING, 0), MAD_BAD_ATTRIBUTE);
	assert_int_equal(ask(MAD_GET, CC_TABLE, 0), MAD_BAD_ATTRIBUTE);
	assert_int_equal(ask(MAD_SET, CC_INFO, 0), MAD_BAD_ATTRIBUTE);
	assert_int_equal(ask(MAD_SET, CC_LOG, 0), MAD_BAD_ATTRIBUTE);
	assert_int_equal(ask(MAD_GET, 0x19, 0), MAD_BAD_ATTRIBUTE);
	assert_int_equal(ask(MAD_GET_TABLE, CC_INFO, 0), MAD_BAD_METHOD);
	assert_int_equal(say(MAD_TRAP_REPRESS, CC_NOTICE, 0), CCA_NOT_MINE);
	assert_int_equal(say(MAD_GET_RESP, CC_INFO, 0), CCA_NOT_MINE);
	end();
	begin(FAB_CA, 1);
	assert_int_equal(ask(MAD_GET, CC_INFO, 0), MAD_OK);
	assert_int_equal(vb_load_be(data(), 3), 0x00c002);
	assert_int_equal(ask(MAD_GET, CC_SWITCH_SETTING, 0), MAD_BAD_ATTRIBUTE);
	assert_int_equal(ask(MAD_GET, CC_SWITCH_PORT_SETTING, 0),
			 MAD_BAD_ATTRIBUTE);
	w.now = 1024 * 1000;
	assert_int_equal(ask(MAD_GET, CC_TIME_STAMP, 0), MAD_OK);
	assert_int_equal(vb_load_be(data(), 4), 1000);
	end();
	begin(FAB_ROUTER, 1);
	assert_int_equal(ask(MAD_GET, CC_INFO, 0), MAD_BAD_ATTRIBUTE);
	assert_int_equal(ask(MAD_GET, CC_KEY_INFO, 0), MAD_OK);
	end();
}

/* ibccconfig SwitchCongestionSetting 7 0x1f 0x6 0x0 0xF 8 0 0:0 3 */
static void cca__switch_setting_reaches_every_port(void **state)
{
	static const uint8_t tail[] = { 0xf0, 8, 0, 0, 0, 0, 0, 3 };

	begin(FAB_SWITCH, 70);
	data()[3] = 0x1f;
	/* Victim_Mask: ports 1 and 2 */
	data()[VB_CC_VICTIM_AT + 31] = 0x06;
	data()[VB_CC_VICTIM_AT + 31 - 8] = 0x20; /* Victim_Mask: port 69 */
	memcpy(data() + 68, tail, sizeof(tail));
	assert_int_equal(ask(MAD_SET, CC_SWITCH_SETTING, 0), MAD_OK);
	for (unsigned i = 1; i <= 70; i++) {
		const struct vb_fab_marking *m = &w.node->port[i].marking;

		assert_int_equal(m->threshold, 128);
		assert_int_equal(m->packet_size, 8);
		assert_int_equal(m->rate, 3);
		assert_int_equal(m->victim, i == 1 || i == 2 || i == 69);
	}
	assert_int_equal(ask(MAD_GET, CC_SWITCH_SETTING, 0), MAD_OK);
	assert_int_equal(vb_load_be(data(), 4), 0x1f);
	assert_memory_equal(data() + 68, tail, sizeof(tail));
	/* A Set changes only the fields that Control_Map names. */
	memset(w.mad, 0, sizeof(w.mad));
	data()[3] = CC_MAP_THRESHOLD;
	data()[68] = 0x10; /* Threshold 1, which marks the fewest packets */
	assert_int_equal(ask(MAD_SET, CC_SWITCH_SETTING, 0), MAD_OK);
	assert_int_equal(w.node->port[5].marking.threshold, 1920);
	assert_int_equal(w.node->port[5].marking.rate, 3);
	assert_true(w.node->port[1].marking.victim);
	data()[68] = 0;
	assert_int_equal(ask(MAD_SET, CC_SWITCH_SETTING, 0), MAD_OK);
	assert_int_equal(w.node->port[5].marking.threshold, 0);
	end();
}

static void cca__a_port_may_have_its_own(void **state)
{
	begin(FAB_SWITCH, 70);
	data()[4 * 3] = 0x80 | 8; /* port 3: setting valid, threshold 8 */
	data()[4 * 3 + 1] = 2;
	data()[4 * 3 + 3] = 7;
	assert_int_equal(ask(MAD_SET, CC_SWITCH_PORT_SETTING, 0), MAD_OK);
	assert_int_equal(w.node->port[3].marking.threshold, 1024);
	assert_int_equal(w.node->port[3].marking.packet_size, 2);
	assert_int_equal(w.node->port[3].marking.rate, 7);
	assert_int_equal(w.node->port[4].marking.threshold, 0);
	/* Block 1 of the attribute has the settings of ports 48 to 70. */
	memset(w.mad, 0, sizeof(w.mad));
	data()[4 * 22] = 0x80 | 15;
	assert_int_equal(ask(MAD_SET, CC_SWITCH_PORT_SETTING, 1), MAD_OK);
	assert_int_equal(w.node->port[70].marking.threshold, 128);
	assert_int_equal(w.node->port[3].marking.threshold, 1024);
	assert_int_equal(ask(MAD_GET, CC_SWITCH_PORT_SETTING, 1), MAD_OK);
	assert_int_equal(data()[4 * 22], 0x8f);
	assert_int_equal(ask(MAD_GET, CC_SWITCH_PORT_SETTING, 2),
			 MAD_BAD_FIELD);
	/* Credit starvation, which no port has, cannot be set. */
	memset(w.mad, 0, sizeof(w.mad));
	data()[4 * 5] = 0xc0;
	assert_int_equal(ask(MAD_SET, CC_SWITCH_PORT_SETTING, 0),
			 MAD_BAD_FIELD);
	assert_int_equal(w.node->port[3].marking.threshold, 1024);
	end();
}

/* The settings that ibccconfig CACongestionSetting 7 1 0x5 150 2 9 1 sends, and
 * a congestion control table. */
static void cca__an_adapter_is_told_how_to_slow_down(void **state)
{
	static const uint8_t entry[] = { 0, 150, 2, 9, 1, 0, 0, 0 };
	struct vb_fab_cc *cc;

	begin(FAB_CA, 1);
	cc = w.node->port[1].cc;
	data()[1] = 1;
	data()[3] = 5;
	for (unsigned sl = 0; sl < 16; sl++)
		memcpy(data() + 4 + 8 * sl, entry, sizeof(entry));
	assert_int_equal(ask(MAD_SET, CC_CA_SETTING, 0), MAD_OK);
	assert_int_equal(cc->port_control, 1);
	assert_int_equal(cc->control_map, 5);
	assert_int_equal(cc->sl[2].timer, 150);
	assert_int_equal(cc->sl[2].increase, 2);
	assert_int_equal(cc->sl[2].trigger, 9);
	assert_int_equal(cc->sl[2].min, 1);
	/* the default: SL 1 is not in the Set's Port_Map */
	assert_int_equal(cc->sl[1].timer, 0);
	assert_int_equal(ask(MAD_GET, CC_CA_SETTING, 0), MAD_OK);
	assert_memory_equal(data() + 4 + 16, entry, sizeof(entry));
	memset(w.mad, 0, sizeof(w.mad));
	data()[1] = 127;
	vb_store_be(data() + 4 + 2 * 3, 1u << 14 | 5, 2);
	assert_int_equal(ask(MAD_SET, CC_TABLE, 1), MAD_OK);
	assert_int_equal(cc->limit, 127);
	assert_int_equal(cc->cct[67], 1u << 14 | 5);
	assert_int_equal(ask(MAD_GET, CC_TABLE, 1), MAD_OK);
	assert_int_equal(vb_load_be(data() + 10, 2), 1u << 14 | 5);
	assert_int_equal(ask(MAD_GET, CC_TABLE, 2), MAD_BAD_FIELD);
	vb_store_be(data(), 128, 2);
	assert_int_equal(ask(MAD_SET, CC_TABLE, 0), MAD_BAD_FIELD);
	end();
}

static void set_key(uint64_t key, bool protect, uint16_t lease)
{
	memset(w.mad, 0, sizeof(w.mad));
	vb_store_be(data(), key, 8);
	data()[8] = protect ? 0x80 : 0;
	vb_store_be(data() + 10, lease, 2);
	assert_int_equal(ask(MAD_SET, CC_KEY_INFO, 0), MAD_OK);
}

static void cca__key(void **state)
{
	begin(FAB_CA, 1);
	set_key(0x1234, true, 0);
	assert_int_equal(say(MAD_GET, CC_CA_SETTING, 0), CCA_BAD_KEY);
	assert_int_equal(say(MAD_SET, CC_KEY_INFO, 0), CCA_BAD_KEY);
	assert_int_equal(ask(MAD_GET, CC_CLASS_PORT_INFO, 0), MAD_OK);
	assert_int_equal(ask(MAD_GET, CC_KEY_INFO, 0), MAD_OK);
	/* a protected CC_Key is read as 0 */
	assert_int_equal(vb_load_be(data(), 8), 0);
	assert_int_equal(vb_load_be(data() + 12, 2), 2);
	w.key = 0x1234;
	assert_int_equal(ask(MAD_GET, CC_CA_SETTING, 0), MAD_OK);
	/* setting the key also resets the violation counter */
	set_key(0x1234, false, 0);
	w.key = 1;
	assert_int_equal(ask(MAD_GET, CC_KEY_INFO, 0), MAD_OK);
	assert_int_equal(vb_load_be(data(), 8), 0x1234);
	assert_int_equal(vb_load_be(data() + 12, 2), 0);
	end();
}

/* When a manager has gone, the key can be read a lease after the next one has
 * tried another. */
static void cca__lease(void **state)
{
	begin(FAB_CA, 1);
	set_key(9, true, 2);
	w.now += 100 * VB_SEC;
	assert_int_equal(say(MAD_GET, CC_CA_SETTING, 0), CCA_BAD_KEY);
	w.now += 2 * VB_SEC - 1;
	assert_int_equal(ask(MAD_GET, CC_KEY_INFO, 0), MAD_OK);
	assert_int_equal(vb_load_be(data(), 8), 0);
	w.now++;
	assert_int_equal(ask(MAD_GET, CC_KEY_INFO, 0), MAD_OK);
	assert_int_equal(vb_load_be(data(), 8), 9);
	end();
}

static void cca__trap_of_a_bad_key(void **state)
{
	const struct vb_mad_frame f = { .slid = 0x55, .dqpn = 1 };
	uint8_t trap[VB_MAD_BYTES];
	const uint8_t *n = trap + 64, *d = n + 10;
	struct vb_mad_addr to;

	begin(FAB_SWITCH, 4);
	w.node->port[0].subnet_timeout = 18;
	set_key(9, true, 0);
	w.key = 0xbad;
	assert_int_equal(say(MAD_SET, CC_SWITCH_SETTING, 3), CCA_BAD_KEY);
	assert_false(vb_cca_trap(w.agent, 0, &f, w.mad, trap, &to, w.now));
	w.key = 9;
	memset(w.mad, 0, sizeof(w.mad));
	data()[57] = 0x30; /* TrapSL 3 in ClassPortInfo */
	vb_store_be(data() + 60, 0x77, 2);
	vb_store_be(data() + 62, 0xffff, 2);
	vb_store_be(data() + 65, 5, 3);
	assert_int_equal(ask(MAD_SET, CC_CLASS_PORT_INFO, 0), MAD_OK);
	assert_int_equal(ask(MAD_GET, CC_CLASS_PORT_INFO, 0), MAD_OK);
	assert_int_equal(vb_load_be(data() + 60, 2), 0x77);
	w.key = 0xbad;
	memset(w.mad, 0, sizeof(w.mad));
	assert_int_equal(say(MAD_SET, CC_SWITCH_SETTING, 3), CCA_BAD_KEY);
	assert_true(vb_cca_trap(w.agent, 0, &f, w.mad, trap, &to, w.now));
	assert_int_equal(to.lid, 0x77);
	assert_int_equal(to.sl, 3);
	assert_int_equal(to.qpn, 5);
	assert_int_equal(to.qkey, VB_GSI_QKEY);
	/* the header of a Trap MAD */
	assert_int_equal(vb_load_be(trap, 4), 0x01210205);
	assert_int_equal(vb_load_be(trap + 16, 2), CC_NOTICE);
	assert_int_equal(n[0], 0x80 | VB_NOTICE_SECURITY);
	assert_int_equal(vb_load_be(n + 1, 3), NODE_SWITCH);
	assert_int_equal(vb_load_be(n + 4, 2), VB_CC_TRAP_BAD_KEY);
	assert_int_equal(vb_load_be(n + 6, 2), 7);
	assert_int_equal(vb_load_be(d, 2), 0x55);
	assert_int_equal(d[2], MAD_SET);
	assert_int_equal(vb_load_be(d + 4, 2), CC_SWITCH_SETTING);
	assert_int_equal(vb_load_be(d + 8, 4), 3);
	assert_int_equal(vb_load_be(d + 13, 3), 1);
	assert_int_equal(vb_load_be(d + 16, 8), 0xbad);
	/* A second trap within the pause is not sent. */
	w.now += VB_SEC;
	assert_false(vb_cca_trap(w.agent, 0, &f, w.mad, trap, &to, w.now));
	w.now += VB_SEC;
	assert_true(vb_cca_trap(w.agent, 0, &f, w.mad, trap, &to, w.now));
	end();
}

static void cca__log_of_a_switch(void **state)
{
	struct vb_fab_cc_log *log;
	const uint8_t *at = w.mad + VB_CC_LOG_AT;

	begin(FAB_SWITCH, 70);
	log = &w.node->sw.cc_log;
	assert_int_equal(ask(MAD_GET, CC_LOG, 0), MAD_OK);
	assert_int_equal(vb_load_be(at, 4), 0x01000000);
	for (unsigned i = 0; i < 17; i++)
		log->event[log->count++ % VB_FAB_CC_EVENTS] =
			(struct vb_fab_cc_event){ .at = i * 1024,
						  .slid = (uint16_t)(100 + i),
						  .dlid = 3,
						  .sl = 2 };
	log->ports[0] = 1u << 2;
	log->ports[1] = 1u << 5;
	w.now = 100 * 1024;
	assert_int_equal(ask(MAD_GET, CC_LOG, 0), MAD_OK);
	assert_int_equal(vb_load_be(at + 2, 2), 17);
	assert_int_equal(vb_load_be(at + 4, 4), 100);
	assert_int_equal(at[8 + 31], 1u << 2);
	assert_int_equal(at[8 + 31 - 8], 1u << 5);
	/* The log has 15 entries, the latest first. */
	assert_int_equal(vb_load_be(at + 40, 4), 116u << 16 | 3);
	assert_int_equal(at[44], 0x20);
	assert_int_equal(vb_load_be(at + 48, 4), 16);
	assert_int_equal(vb_load_be(at + 40 + 14 * 12, 2), 102);
	/* Events that were read are not counted in the next Get. */
	assert_int_equal(ask(MAD_GET, CC_LOG, 0), MAD_OK);
	assert_int_equal(vb_load_be(at + 2, 2), 0);
	assert_int_equal(at[8 + 31], 0);
	assert_int_equal(vb_load_be(at + 40, 2), 116);
	/* Events whose 32-bit time stamp wrapped are not in the log. */
	w.now += 1024ull << 32;
	assert_int_equal(ask(MAD_GET, CC_LOG, 0), MAD_OK);
	assert_int_equal(vb_load_be(at + 40, 2), 0);
	end();
}

static void cca__log_of_an_adapter(void **state)
{
	struct vb_fab_cc_log *log;
	const uint8_t *at = w.mad + VB_CC_LOG_AT;

	begin(FAB_CA, 1);
	log = &w.node->port[1].cc->log;
	log->sls = 1u << 4;
	log->event[log->count++] = (struct vb_fab_cc_event){ .at = 2048,
							     .slid = 9,
							     .dlid = 7,
							     .sl = 4,
							     .service = 3,
							     .qpn = 0x123456 };
	assert_int_equal(ask(MAD_GET, CC_LOG, 0), MAD_OK);
	assert_int_equal(vb_load_be(at, 2), 0x0200);
	assert_int_equal(vb_load_be(at + 2, 2), 1);
	assert_int_equal(vb_load_be(at + 4, 2), 1u << 4);
	assert_int_equal(vb_load_be(at + 12, 4), 0x12345643);
	assert_int_equal(vb_load_be(at + 20, 4), 7u << 16 | 9);
	assert_int_equal(vb_load_be(at + 24, 4), 2);
	assert_int_equal(ask(MAD_GET, CC_LOG, 0), MAD_OK);
	assert_int_equal(vb_load_be(at + 2, 4), 0);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cca__what_each_kind_can_do),
		cmocka_unit_test(cca__switch_setting_reaches_every_port),
		cmocka_unit_test(cca__a_port_may_have_its_own),
		cmocka_unit_test(cca__an_adapter_is_told_how_to_slow_down),
		cmocka_unit_test(cca__key),
		cmocka_unit_test(cca__lease),
		cmocka_unit_test(cca__trap_of_a_bad_key),
		cmocka_unit_test(cca__log_of_a_switch),
		cmocka_unit_test(cca__log_of_an_adapter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
