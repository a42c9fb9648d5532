/* SPDX-License-Identifier: BSD-2-Clause */
/* The agent for device management: bytes are compared with those that Debian's
 * ibsrpdm reads, and that Linux's target sends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "mgmt/iou.h"
#include "wire/smp.h"

#define GUID 0x0002c90300001230u

static struct world {
	struct vb_fab_node *node;
	struct vb_iou *agent;
	uint8_t mad[VB_MAD_BYTES];
} w;

static int start(void **state)
{
	const struct vb_fab_node_spec spec = {
		.kind = FAB_CA, .ports = 2, .guid = GUID, .desc = "storage1"
	};

	memset(&w, 0, sizeof(w));
	w.node = vb_fab_node_create(&spec);
	w.node->vendor_id = 0x2c9;
	w.node->device_id = 0x1003;
	w.node->revision = 0xa1;
	w.agent = vb_iou_create(w.node);
	assert_non_null(w.agent);
	return 0;
}

static int finish(void **state)
{
	vb_iou_destroy(w.agent);
	vb_fab_node_destroy(w.node);
	return 0;
}

static uint8_t *data(void)
{
	return w.mad + VB_IOU_DATA_AT;
}

static void target(uint8_t controllers)
{
	const struct vb_iou_unit u = { .controllers = controllers };

	vb_iou_set(w.agent, &u);
}

/* Write a MAD of the class before the data of w.mad. */
static void write_header(unsigned method, unsigned attr, uint32_t mod)
{
	const struct vb_mad_hdr h = { 1,
				      MAD_CLASS_DEVICE,
				      VB_IOU_CLASS_VERSION,
				      (uint8_t)method,
				      0,
				      0,
				      77,
				      (uint16_t)attr,
				      mod };
	struct vb_writer to = { w.mad };

	vb_mad_hdr_put(&to, &h);
}

/* Ask by port 1. Returns the status of the answer. */
static unsigned ask(unsigned method, unsigned attr, uint32_t mod)
{
	if (method == MAD_GET)
		memset(w.mad, 0x55, sizeof(w.mad));
	write_header(method, attr, mod);
	assert_true(vb_iou_hear(w.agent, 1, w.mad));
	assert_int_equal(w.mad[3], MAD_GET_RESP);
	assert_int_equal(vb_load_be(w.mad + 8, 8), 77);
	assert_int_equal(vb_load_be(w.mad + 16, 2), attr);
	assert_int_equal(vb_load_be(w.mad + 20, 4), mod);
	return (unsigned)vb_load_be(w.mad + 4, 2);
}

static uint32_t range(unsigned slot, unsigned first, unsigned last)
{
	return slot << 16 | last << 8 | first;
}

static void iou__no_target_no_agent(void **state)
{
	write_header(MAD_GET, IOU_UNIT_INFO, 0);
	assert_false(vb_iou_hear(w.agent, 1, w.mad));
	target(1);
	assert_int_equal(ask(MAD_GET, IOU_UNIT_INFO, 0), MAD_OK);
	target(0);
	write_header(MAD_GET, IOU_UNIT_INFO, 0);
	assert_false(vb_iou_hear(w.agent, 1, w.mad));
	/* MADs that no agent answers: a response, a trap */
	target(1);
	write_header(MAD_GET_RESP, IOU_UNIT_INFO, 0);
	assert_false(vb_iou_hear(w.agent, 1, w.mad));
	write_header(MAD_TRAP, 2, 0);
	assert_false(vb_iou_hear(w.agent, 1, w.mad));
	write_header(MAD_TRAP_REPRESS, 2, 0);
	assert_false(vb_iou_hear(w.agent, 1, w.mad));
}

static void iou__class_port_info(void **state)
{
	target(1);
	assert_int_equal(ask(MAD_GET, IOU_CLASS_PORT_INFO, 0), MAD_OK);
	/* versions 1 and 1, no capabilities, RespTimeValue 18 */
	assert_int_equal(vb_load_be(data(), 8), 0x0101000000000012);
	for (unsigned i = 8; i < 72; i++)
		assert_int_equal(data()[i], 0);
	/* a Set of TrapGID and TrapLID, as ibsrpdm sends it to some targets */
	memset(data(), 0, VB_IOU_DATA_BYTES);
	data()[0] = 9; /* a version, which a Set does not change */
	vb_store_be(data() + 40, 0xfe80000000000000, 8);
	vb_store_be(data() + 48, GUID, 8);
	vb_store_be(data() + 60, 0x12, 2);
	assert_int_equal(ask(MAD_SET, IOU_CLASS_PORT_INFO, 0), MAD_OK);
	assert_int_equal(ask(MAD_GET, IOU_CLASS_PORT_INFO, 0), MAD_OK);
	assert_int_equal(vb_load_be(data(), 8), 0x0101000000000012);
	assert_int_equal(vb_load_be(data() + 48, 8), GUID);
	assert_int_equal(vb_load_be(data() + 60, 2), 0x12);
	/* a LID that no port can have is refused */
	vb_store_be(data() + 60, 0xc001, 2);
	assert_int_equal(ask(MAD_SET, IOU_CLASS_PORT_INFO, 0), MAD_BAD_FIELD);
	assert_int_equal(ask(MAD_GET, IOU_CLASS_PORT_INFO, 0), MAD_OK);
	assert_int_equal(vb_load_be(data() + 60, 2), 0x12);
	/* port 2 has a TrapLID of its own */
	write_header(MAD_GET, IOU_CLASS_PORT_INFO, 0);
	assert_true(vb_iou_hear(w.agent, 2, w.mad));
	assert_int_equal(vb_load_be(data() + 60, 2), 0);
}

static void iou__unit_info(void **state)
{
	target(3);
	assert_int_equal(ask(MAD_GET, IOU_UNIT_INFO, 0), MAD_OK);
	/* ChangeID 1, 16 slots, no ROM */
	assert_int_equal(vb_load_be(data(), 4), 0x00011000);
	assert_int_equal(vb_load_be(data() + 4, 8), 0x1110000000000000);
	for (unsigned i = 8; i < VB_IOU_LIST_BYTES; i++)
		assert_int_equal(data()[4 + i], 0xff);
	for (unsigned i = 4 + VB_IOU_LIST_BYTES; i < VB_IOU_DATA_BYTES; i++)
		assert_int_equal(data()[i], 0);
	/* setting equal controllers again does not change the ChangeID */
	target(3);
	assert_int_equal(ask(MAD_GET, IOU_UNIT_INFO, 0), MAD_OK);
	assert_int_equal(vb_load_be(data(), 2), 1);
	target(0);
	target(16);
	assert_int_equal(ask(MAD_GET, IOU_UNIT_INFO, 0), MAD_OK);
	assert_int_equal(vb_load_be(data(), 2), 3);
	assert_int_equal(vb_load_be(data() + 4, 8), 0x1111111111111111);
}

static void iou__controller_profile(void **state)
{
	static const uint8_t expected[64] = {
		0x00, 0x02, 0xc9, 0x03, 0, 0, 0x12, 0x30, /* GUID */
		0x00, 0x02, 0xc9, 0,	/* vendor and a reserved byte */
		0x00, 0x00, 0x10, 0x03, /* device */
		0x00, 0xa1, 0x00, 0x00, /* version */
		0x00, 0x02, 0xc9, 0,	/* vendor of the subsystem */
		0x00, 0x00, 0x10, 0x03, /* subsystem */
		0x01, 0x00, 0x60, 0x9e, /* class and subclass: SRP */
		0x01, 0x08, 0x00, 0x01, /* protocol and version: SRP */
		0x00, 0x00, 0x00, 0x00, /* reserved */
		0x00, 0x80, 0x00, 0x10, /* depths of queues: 128 and 16 */
		0x00, 0x00, 0x20, 0x40, /* messages of 8256 bytes */
		0x00, 0x01, 0x00, 0x00, /* transfers of 65,536 bytes */
		0x2b, 0x00, 0x01, 0x00, /* operations; one service */
	};

	target(2);
	assert_int_equal(ask(MAD_GET, IOU_CONTROLLER_PROFILE, 1), MAD_OK);
	assert_memory_equal(data(), expected, sizeof(expected));
	assert_string_equal((char *)data() + 64, "storage1 I/O controller 1");
	for (unsigned i = 128; i < VB_IOU_DATA_BYTES; i++)
		assert_int_equal(data()[i], 0);
	assert_int_equal(ask(MAD_GET, IOU_CONTROLLER_PROFILE, 2), MAD_OK);
	assert_string_equal((char *)data() + 64, "storage1 I/O controller 2");
	assert_int_equal(vb_load_be(data(), 8), 0x0202c80300001230);
}

/* Slots without a controller, and slots beyond the last one. */
static void iou__bad_slots(void **state)
{
	static const uint32_t none[] = { 0, 17, 255, 256, 0x10001, UINT32_MAX };

	target(2);
	for (unsigned s = 3; s <= 16; s++) {
		assert_int_equal(ask(MAD_GET, IOU_CONTROLLER_PROFILE, s),
				 IOU_NO_CONTROLLER);
		assert_int_equal(
			ask(MAD_GET, IOU_SERVICE_ENTRIES, range(s, 0, 0)),
			IOU_NO_CONTROLLER);
	}
	for (unsigned i = 0; i < VB_COUNT(none); i++)
		assert_int_equal(ask(MAD_GET, IOU_CONTROLLER_PROFILE, none[i]),
				 MAD_BAD_FIELD);
	assert_int_equal(ask(MAD_GET, IOU_SERVICE_ENTRIES, range(0, 0, 0)),
			 MAD_BAD_FIELD);
	assert_int_equal(ask(MAD_GET, IOU_SERVICE_ENTRIES, range(17, 0, 0)),
			 MAD_BAD_FIELD);
	assert_int_equal(ask(MAD_GET, IOU_SERVICE_ENTRIES, range(0x101, 0, 0)),
			 MAD_BAD_FIELD);
}

static void says_entry(unsigned at, const char *name, uint64_t id)
{
	const uint8_t *entry = data() + at * VB_IOU_SERVICE_BYTES;

	assert_string_equal((const char *)entry, name);
	assert_int_equal(vb_load_be(entry + 40, 8), id);
}

static void iou__srp_by_itself(void **state)
{
	char name[VB_IOU_NAME];

	target(16);
	assert_int_equal(ask(MAD_GET, IOU_SERVICE_ENTRIES, range(1, 0, 0)),
			 MAD_OK);
	says_entry(0, "SRP.T10:0002c90300001230", GUID);
	for (unsigned i = VB_IOU_SERVICE_BYTES; i < VB_IOU_DATA_BYTES; i++)
		assert_int_equal(data()[i], 0);
	/* All controllers have different GUIDs, and each its own ID. */
	for (unsigned s = 2; s <= 16; s++) {
		uint64_t guid = vb_iou_guid(w.node, s);

		for (unsigned t = 1; t < s; t++)
			assert_int_not_equal(guid, vb_iou_guid(w.node, t));
		assert_int_equal(guid & 0xffffffffffu, GUID & 0xffffffffffu);
		assert_true(guid & 1ull << 57);
		snprintf(name, sizeof(name), "SRP.T10:%016jx", (uintmax_t)guid);
		assert_int_equal(
			ask(MAD_GET, IOU_SERVICE_ENTRIES, range(s, 0, 3)),
			MAD_OK);
		says_entry(0, name, guid);
	}
}

/* Gives controller 2 six services, and controller 3 one. */
static void six_services(void)
{
	struct vb_iou_unit u = { .controllers = 3, .entries = 7 };

	for (unsigned i = 0; i < 7; i++) {
		u.entry[i].slot = i == 2 ? 3 : 2;
		snprintf(u.entry[i].service.name, VB_IOU_NAME, "store%u", i);
		u.entry[i].service.id = 100 + i;
	}
	/* the longest name that a service can have */
	memset(u.entry[6].service.name, 'x', VB_IOU_NAME - 1);
	vb_iou_set(w.agent, &u);
}

static void iou__services_that_were_given(void **state)
{
	six_services();
	assert_int_equal(ask(MAD_GET, IOU_CONTROLLER_PROFILE, 2), MAD_OK);
	assert_int_equal(data()[54], 6);
	/* these services are not SRP: class, subclass and protocol are a
	 * vendor's */
	assert_int_equal(vb_load_be(data() + 28, 8), 0xffffffffffff0000);
	assert_int_equal(ask(MAD_GET, IOU_SERVICE_ENTRIES, range(2, 0, 3)),
			 MAD_OK);
	says_entry(0, "store0", 100);
	says_entry(1, "store1", 101);
	says_entry(2, "store3", 103);
	says_entry(3, "store4", 104);
	assert_int_equal(ask(MAD_GET, IOU_SERVICE_ENTRIES, range(2, 4, 5)),
			 MAD_OK);
	says_entry(0, "store5", 105);
	says_entry(1, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 106);
	says_entry(2, "", 0);
	assert_int_equal(ask(MAD_GET, IOU_SERVICE_ENTRIES, range(3, 0, 0)),
			 MAD_OK);
	says_entry(0, "store2", 102);
	/* controller 1 has the standard service, as it was given no other */
	assert_int_equal(ask(MAD_GET, IOU_CONTROLLER_PROFILE, 1), MAD_OK);
	assert_int_equal(data()[54], 1);
	assert_int_equal(vb_load_be(data() + 28, 2), 0x0100);
}

static void iou__bad_ranges(void **state)
{
	static const struct {
		unsigned first, last, status;
	} rows[] = {
		{ 1, 0, MAD_BAD_FIELD },
		{ 0, 4, MAD_BAD_FIELD },
		{ 0, 255, MAD_BAD_FIELD },
		{ 255, 0, MAD_BAD_FIELD },
		{ 255, 255, IOU_NO_SERVICE },
		{ 6, 6, IOU_NO_SERVICE },
		{ 5, 8, MAD_OK },
		{ 3, 6, MAD_OK },
	};

	six_services();
	for (unsigned i = 0; i < VB_COUNT(rows); i++)
		assert_int_equal(ask(MAD_GET, IOU_SERVICE_ENTRIES,
				     range(2, rows[i].first, rows[i].last)),
				 rows[i].status);
	says_entry(0, "store4", 104);
	says_entry(3, "", 0);
}

static void iou__what_is_unsupported(void **state)
{
	static const struct {
		unsigned method, attr, status;
	} rows[] = {
		{ MAD_SET, IOU_UNIT_INFO, MAD_BAD_ATTRIBUTE },
		{ MAD_SET, IOU_CONTROLLER_PROFILE, MAD_BAD_ATTRIBUTE },
		{ MAD_SET, IOU_SERVICE_ENTRIES, MAD_BAD_ATTRIBUTE },
		{ MAD_GET, IOU_DIAGNOSTIC_TIMEOUT, MAD_BAD_ATTRIBUTE },
		{ MAD_GET, IOU_PREPARE_TO_TEST, MAD_BAD_ATTRIBUTE },
		{ MAD_SET, IOU_PREPARE_TO_TEST, MAD_BAD_ATTRIBUTE },
		{ MAD_SET, IOU_TEST_DEVICE_ONCE, MAD_BAD_ATTRIBUTE },
		{ MAD_SET, IOU_TEST_DEVICE_LOOP, MAD_BAD_ATTRIBUTE },
		{ MAD_GET, IOU_DIAG_CODE, MAD_BAD_ATTRIBUTE },
		{ MAD_GET, 0xff00, MAD_BAD_ATTRIBUTE },
		{ MAD_GET_TABLE, IOU_UNIT_INFO, MAD_BAD_METHOD },
	};

	target(1);
	for (unsigned i = 0; i < VB_COUNT(rows); i++)
		assert_int_equal(ask(rows[i].method, rows[i].attr, 1),
				 rows[i].status);
	write_header(MAD_GET, IOU_UNIT_INFO, 0);
	w.mad[2] = 2; /* a class version that does not exist */
	assert_true(vb_iou_hear(w.agent, 1, w.mad));
	assert_int_equal(vb_load_be(w.mad + 4, 2), MAD_BAD_VERSION);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, start, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(iou__no_target_no_agent),
		CASE(iou__class_port_info),
		CASE(iou__unit_info),
		CASE(iou__controller_profile),
		CASE(iou__bad_slots),
		CASE(iou__srp_by_itself),
		CASE(iou__services_that_were_given),
		CASE(iou__bad_ranges),
		CASE(iou__what_is_unsupported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
