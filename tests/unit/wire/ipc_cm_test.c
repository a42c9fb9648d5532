/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "wire/ipc_cm.h"

static struct vb_ipc_cm sample(uint8_t kind)
{
	struct vb_ipc_cm m;

	memset(&m, 0, sizeof(m));
	m.kind = kind;
	m.version = VB_IPC_CM_VERSION;
	m.event = IPC_CM_REJECTED;
	m.flags = IPC_CM_REUSE;
	m.space = 0x106;
	m.src_port = 7471;
	m.dst_port = 65535;
	m.id = 0x80000001;
	m.listener = 7;
	m.status = -5;
	memset(m.src.raw, 0x11, 16);
	memset(m.dst.raw, 0x22, 16);
	m.src_name = vb_gid_from_ipv4((const uint8_t[]){ 127, 0, 0, 1 });
	m.dst_name.raw[15] = 1;
	m.ifindex = 3;
	m.guid = 0x1122334455667788;
	m.qpn = 0xffffff;
	m.psn = 0x123456;
	m.flow_label = 0xfffff;
	m.backlog = 1024;
	m.responder_resources = 255;
	m.initiator_depth = 254;
	m.retry_count = 7;
	m.rnr_retry = 6;
	m.flow_control = true;
	m.srq = true;
	m.mtu = 5;
	m.tclass = 0x60;
	m.hop_limit = 64;
	m.ack_timeout = 31;
	m.place = VB_IPC_CM_PLACES;
	m.sl = 15;
	m.path_bits = 127;
	m.rate = 63;
	m.dlid = 0xbfff;
	m.pkey = 0x8001;
	m.alternate.place = VB_IPC_CM_PLACES;
	m.alternate.sl = 14;
	m.alternate.path_bits = 127;
	m.alternate.rate = 63;
	m.alternate.tclass = 0x61;
	m.alternate.hop_limit = 63;
	m.alternate.ack_timeout = 31;
	m.alternate.dlid = 0xbffe;
	m.alternate.flow_label = 0xfffff;
	memset(m.alternate.src.raw, 0x33, 16);
	memset(m.alternate.dst.raw, 0x44, 16);
	m.timeout_ms = 0xfffffffe;
	m.private_bytes = VB_IPC_CM_PRIVATE;
	memset(m.private_data, 0x5a, sizeof(m.private_data));
	return m;
}

static void ipc_cm__round_trip(void **state)
{
	uint8_t bytes[VB_IPC_CM_BYTES];

	for (uint8_t kind = IPC_CM_BIND; kind <= IPC_CM_LAST; kind++) {
		struct vb_ipc_cm a = sample(kind), b;

		assert_int_equal(vb_ipc_cm_put(bytes, &a), sizeof(bytes));
		assert_true(vb_ipc_cm_get(bytes, sizeof(bytes), &b));
		assert_memory_equal(&a, &b, sizeof(a));
	}
}

static void ipc_cm__other_lengths(void **state)
{
	struct vb_ipc_cm a = sample(IPC_CM_BIND), b;
	uint8_t bytes[VB_IPC_CM_BYTES];

	(void)vb_ipc_cm_put(bytes, &a);
	for (size_t len = 0; len < sizeof(bytes); len++) {
		uint8_t *exact = malloc(len ? len : 1);

		memcpy(exact, bytes, len);
		assert_false(vb_ipc_cm_get(exact, len, &b));
		free(exact);
	}
}

static bool gets(const struct vb_ipc_cm *m)
{
	uint8_t bytes[VB_IPC_CM_BYTES];
	struct vb_ipc_cm back;

	(void)vb_ipc_cm_put(bytes, m);
	return vb_ipc_cm_get(bytes, sizeof(bytes), &back);
}

#define REFUSES(field, value)                                                  \
	do {                                                                   \
		struct vb_ipc_cm bad = sample(IPC_CM_BIND);                    \
		bad.field = value;                                             \
		assert_false(gets(&bad));                                      \
	} while (0)

/* IP addresses as names of ids are accepted for InfiniBand; for other adapters
 * only loopback ones. */
static bool names(struct vb_gid src, struct vb_gid dst, uint8_t place)
{
	struct vb_ipc_cm m = sample(IPC_CM_BIND);

	m.src_name = src;
	m.dst_name = dst;
	m.place = place;
	return gets(&m);
}

static void ipc_cm__names(void **state)
{
	const struct vb_gid none = { { 0 } }, other = { { [15] = 2 } };
	const struct vb_gid ip =
		vb_gid_from_ipv4((const uint8_t[]){ 128, 0, 0, 1 });

	(void)state;
	assert_false(names(ip, none, 0));
	assert_false(names(none, other, 0));
	assert_true(names(ip, other, 1));
	assert_true(names(none, none, 0));
}

/* Each service ID that an id can have stands for one port space and one
 * port. */
static void ipc_cm__service(void **state)
{
	static const struct {
		uint64_t service;
		uint16_t space, port;
	} cases[] = {
		{ 0x01060001, 0x0106, 1 },
		{ 0x013fffff, 0x013f, 0xffff },
		{ 0x1000000000000000, 0xf000, 0x8000 },
		{ 0x1000000000e6b112, 0xfe6b, 0x8112 },
		{ 0x1000000000ffffff, 0xffff, 0x8fff },
	};
	static const uint64_t others[] = {
		0xf0008000,	    0x100000000,	0x1000000001000000,
		0x1001000000000001, 0x2000000000000001, UINT64_MAX,
	};
	uint16_t space, port;

	(void)state;
	for (unsigned i = 0; i < VB_COUNT(cases); i++) {
		assert_true(vb_ipc_cm_service_split(cases[i].service, &space,
						    &port));
		assert_int_equal(space, cases[i].space);
		assert_int_equal(port, cases[i].port);
		assert_true(vb_ipc_cm_service(space, port) == cases[i].service);
	}
	for (unsigned i = 0; i < VB_COUNT(others); i++)
		assert_false(vb_ipc_cm_service_split(others[i], &space, &port));
}

static void ipc_cm__out_of_range(void **state)
{
	REFUSES(kind, IPC_CM_BIND - 1);
	REFUSES(kind, IPC_CM_LAST + 1);
	REFUSES(version, VB_IPC_CM_VERSION + 1);
	REFUSES(qpn, 0x1000000);
	REFUSES(psn, 0x1000000);
	REFUSES(flow_label, 0x100000);
	REFUSES(retry_count, 8);
	REFUSES(rnr_retry, 8);
	REFUSES(mtu, 6);
	REFUSES(ack_timeout, 32);
	REFUSES(private_bytes, VB_IPC_CM_PRIVATE + 1);
	REFUSES(place, VB_IPC_CM_PLACES + 1);
	REFUSES(sl, 16);
	REFUSES(path_bits, 128);
	REFUSES(rate, 64);
	REFUSES(alternate.place, VB_IPC_CM_PLACES + 1);
	REFUSES(alternate.sl, 16);
	REFUSES(alternate.path_bits, 128);
	REFUSES(alternate.rate, 64);
	REFUSES(alternate.ack_timeout, 32);
	REFUSES(alternate.flow_label, 0x100000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ipc_cm__round_trip),
		cmocka_unit_test(ipc_cm__other_lengths),
		cmocka_unit_test(ipc_cm__names),
		cmocka_unit_test(ipc_cm__service),
		cmocka_unit_test(ipc_cm__out_of_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
