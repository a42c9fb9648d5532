/* SPDX-License-Identifier: BSD-2-Clause */
/* Address formats of rdma_cm ids: IPv4, IPv6 and AF_IB. */
#include "tests/unit/rdmacm/fake.h"

#include <arpa/inet.h>
#include <endian.h>
#include <string.h>

union any {
	struct sockaddr a;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_ib ib;
	struct sockaddr_storage storage;
};

static union any ip(const char *text, uint16_t port)
{
	union any x = { .storage = { 0 } };

	if (inet_pton(AF_INET, text, &x.v4.sin_addr) == 1) {
		x.v4.sin_family = AF_INET;
		x.v4.sin_port = htons(port);
		return x;
	}
	x.v6.sin6_family = AF_INET6;
	x.v6.sin6_port = htons(port);
	assert_int_equal(inet_pton(AF_INET6, text, &x.v6.sin6_addr), 1);
	return x;
}

static const struct vb_gid gid4 = { { [10] = 0xff, 0xff, 10, 77, 0, 1 } };
static const struct vb_gid gid6 = { { 0xfd, 0x77, [15] = 1 } };

static void gid_of__each_family(void **state)
{
	union any v4 = ip("10.77.0.1", 1), v6 = ip("fd77::1", 1), ib = { 0 };
	struct vb_gid g;

	g = rcm_gid_of(&v4.a);
	assert_memory_equal(g.raw, gid4.raw, 16);
	g = rcm_gid_of(&v6.a);
	assert_memory_equal(g.raw, gid6.raw, 16);
	rcm_address_of_ib(&ib.a, &gid6, RDMA_PS_TCP, 9);
	g = rcm_gid_of(&ib.a);
	assert_memory_equal(g.raw, gid6.raw, 16);
}

static void address_bytes__each_family(void **state)
{
	struct sockaddr a = { .sa_family = AF_INET };

	assert_int_equal(rcm_address_bytes(&a), sizeof(struct sockaddr_in));
	a.sa_family = AF_INET6;
	assert_int_equal(rcm_address_bytes(&a), sizeof(struct sockaddr_in6));
	a.sa_family = AF_IB;
	assert_int_equal(rcm_address_bytes(&a), sizeof(struct sockaddr_ib));
	a.sa_family = AF_UNIX;
	assert_int_equal(rcm_address_bytes(&a), 0);
}

static void address_of__family_follows_the_gid(void **state)
{
	union any want = ip("10.77.0.1", 0x1234), got;

	memset(&got, 0xee, sizeof(got));
	rcm_address_of(&got.a, &gid4, 0x1234, 5);
	assert_memory_equal(&got.v4, &want.v4, sizeof(want.v4));
	want = ip("fd77::1", 0x1234);
	memset(&got, 0xee, sizeof(got));
	rcm_address_of(&got.a, &gid6, 0x1234, 5);
	assert_memory_equal(&got.v6, &want.v6, sizeof(want.v6));
}

static void address_of__scope_only_of_link_local(void **state)
{
	static const struct vb_gid local = { { 0xfe, 0x80, [15] = 1 } };
	union any got;

	rcm_address_of(&got.a, &local, 1, 5);
	assert_int_equal(got.v6.sin6_scope_id, 5);
	rcm_address_of(&got.a, &gid6, 1, 5);
	assert_int_equal(got.v6.sin6_scope_id, 0);
}

static void address_of_ib__service_id(void **state)
{
	union any ib;

	memset(&ib, 0xee, sizeof(ib));
	rcm_address_of_ib(&ib.a, &gid4, RDMA_PS_UDP, 0x1234);
	assert_int_equal(ib.ib.sib_family, AF_IB);
	assert_int_equal(be16toh(ib.ib.sib_pkey), 0xffff);
	assert_true(be64toh(ib.ib.sib_sid) == 0x01111234);
	assert_true(ib.ib.sib_sid_mask == UINT64_MAX);
	assert_true(ib.ib.sib_scope_id == 0);
}

static void port__read_and_set(void **state)
{
	union any x[3] = { ip("10.77.0.1", 7), ip("fd77::1", 7) };

	rcm_address_of_ib(&x[2].a, &gid4, RDMA_PS_TCP, 7);
	for (unsigned i = 0; i < VB_COUNT(x); i++) {
		assert_int_equal(rcm_port_of(&x[i].a), 7);
		rcm_port_set(&x[i].a, 0xabcd);
		assert_int_equal(rcm_port_of(&x[i].a), 0xabcd);
	}
	assert_true(be64toh(x[2].ib.sib_sid) >> 16 == RDMA_PS_TCP);
	assert_int_equal(x[0].v4.sin_port, htons(0xabcd));
}

static void is_any__table(void **state)
{
	static const struct {
		const char *text;
		bool any, loopback;
	} cases[] = {
		{ "0.0.0.0", true, false },
		{ "::", true, false },
		{ "10.77.0.1", false, false },
		{ "fd77::1", false, false },
		{ "127.0.0.1", false, true },
		{ "127.9.8.7", false, true },
		{ "::1", false, true },
		{ "128.0.0.1", false, false },
		{ "::ffff:0.0.0.0", false, false },
	};

	for (unsigned i = 0; i < VB_COUNT(cases); i++) {
		union any x = ip(cases[i].text, 7);

		assert_int_equal(rcm_address_is_any(&x.a), cases[i].any);
		assert_int_equal(rcm_address_is_loopback(&x.a),
				 cases[i].loopback);
	}
}

static void space_of__table(void **state)
{
	static const struct {
		uint16_t in_address;
		enum rdma_port_space own;
		int want;
	} cases[] = {
		{ 0, RDMA_PS_TCP, RDMA_PS_TCP },
		{ RDMA_PS_TCP, RDMA_PS_TCP, RDMA_PS_TCP },
		{ RDMA_PS_UDP, RDMA_PS_UDP, RDMA_PS_UDP },
		{ RDMA_PS_TCP, RDMA_PS_IB, RDMA_PS_TCP },
		{ RDMA_PS_UDP, RDMA_PS_IB, RDMA_PS_UDP },
		{ RDMA_PS_IB, RDMA_PS_IB, RDMA_PS_IB },
		{ RDMA_PS_UDP, RDMA_PS_TCP, -EPROTONOSUPPORT },
		{ RDMA_PS_IPOIB, RDMA_PS_IB, -EPROTONOSUPPORT },
		{ 0xfe6b, RDMA_PS_IB, 0xfe6b },
		{ 0xfe6b, RDMA_PS_TCP, -EPROTONOSUPPORT },
	};
	union any x = ip("10.77.0.1", 7);

	assert_int_equal(rcm_space_of(&x.a, RDMA_PS_UDP), RDMA_PS_UDP);
	for (unsigned i = 0; i < VB_COUNT(cases); i++) {
		rcm_address_of_ib(&x.a, &gid4, cases[i].in_address, 7);
		assert_int_equal(rcm_space_of(&x.a, cases[i].own),
				 cases[i].want);
	}
}

/* An AF_IB address with a service ID of IPoIB (RFC 4755): the id keeps all bits
 * of the service ID. */
static void service__of_ipoib(void **state)
{
	union any x;

	rcm_address_of_ib(&x.a, &gid4, 0xfe6b, 0x8112);
	assert_true(be64toh(x.ib.sib_sid) == 0x1000000000e6b112);
	assert_int_equal(rcm_port_of(&x.a), 0x8112);
	rcm_port_set(&x.a, 0x8112);
	assert_true(be64toh(x.ib.sib_sid) == 0x1000000000e6b112);
	x.ib.sib_sid = htobe64(0x1001000000e6b112);
	assert_int_equal(rcm_space_of(&x.a, RDMA_PS_IB), -EPROTONOSUPPORT);
}

static void space_of__mask_hides_the_space(void **state)
{
	union any x;

	rcm_address_of_ib(&x.a, &gid4, RDMA_PS_UDP, 7);
	x.ib.sib_sid_mask = htobe64(0xffff);
	assert_int_equal(rcm_space_of(&x.a, RDMA_PS_TCP), RDMA_PS_TCP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gid_of__each_family),
		cmocka_unit_test(address_bytes__each_family),
		cmocka_unit_test(address_of__family_follows_the_gid),
		cmocka_unit_test(address_of__scope_only_of_link_local),
		cmocka_unit_test(address_of_ib__service_id),
		cmocka_unit_test(port__read_and_set),
		cmocka_unit_test(is_any__table),
		cmocka_unit_test(space_of__table),
		cmocka_unit_test(service__of_ipoib),
		cmocka_unit_test(space_of__mask_hides_the_space),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
