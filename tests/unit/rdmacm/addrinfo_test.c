/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_getaddrinfo() of numeric addresses, and its event-driven form. */
#include "tests/unit/rdmacm/fake.h"

#include <arpa/inet.h>
#include <endian.h>
#include <netdb.h>
#include <string.h>

int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info);
int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node,
			  const char *service,
			  const struct rdma_addrinfo *hints);

/* RAI_SA, a flag that the system's header does not have yet */
#define RAI_SA 0x10

static struct rdma_addrinfo *look_up(const char *node,
				     const struct rdma_addrinfo *hints)
{
	struct rdma_addrinfo *r = NULL;

	assert_int_equal(rdma_getaddrinfo(node, "7471", hints, &r), 0);
	assert_non_null(r);
	return r;
}

static void active__destination_alone(void **state)
{
	struct rdma_addrinfo *r = look_up("10.77.0.2", NULL);
	const struct sockaddr_in *to = (struct sockaddr_in *)r->ai_dst_addr;

	assert_int_equal(r->ai_family, AF_INET);
	assert_int_equal(r->ai_dst_len, sizeof(*to));
	assert_int_equal(to->sin_port, htons(7471));
	assert_int_equal(ntohl(to->sin_addr.s_addr), 0x0a4d0002);
	assert_null(r->ai_src_addr);
	assert_int_equal(r->ai_qp_type, IBV_QPT_RC);
	assert_int_equal(r->ai_port_space, RDMA_PS_TCP);
	rdma_freeaddrinfo(r);
}

static void passive__source_alone(void **state)
{
	const struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE };
	struct rdma_addrinfo *r = look_up("10.77.0.1", &hints);

	assert_null(r->ai_dst_addr);
	assert_int_equal(rcm_port_of(r->ai_src_addr), 7471);
	assert_int_equal(r->ai_flags, RAI_PASSIVE);
	rdma_freeaddrinfo(r);
}

/* The hints may give the queue pair type, the port space, or both. */
static void type_and_space__follow_each_other(void **state)
{
	static const struct {
		int type, space, want_type, want_space;
	} cases[] = {
		{ 0, 0, IBV_QPT_RC, RDMA_PS_TCP },
		{ IBV_QPT_UD, 0, IBV_QPT_UD, RDMA_PS_UDP },
		{ 0, RDMA_PS_UDP, IBV_QPT_UD, RDMA_PS_UDP },
		{ 0, RDMA_PS_IPOIB, IBV_QPT_UD, RDMA_PS_IPOIB },
		{ IBV_QPT_UC, RDMA_PS_IB, IBV_QPT_UC, RDMA_PS_IB },
		{ IBV_QPT_UD, RDMA_PS_IB, IBV_QPT_UD, RDMA_PS_IB },
	};

	for (unsigned i = 0; i < VB_COUNT(cases); i++) {
		const struct rdma_addrinfo hints = {
			.ai_flags = RAI_NUMERICHOST,
			.ai_qp_type = cases[i].type,
			.ai_port_space = cases[i].space,
		};
		struct rdma_addrinfo *r = look_up("10.77.0.2", &hints);

		assert_int_equal(r->ai_qp_type, cases[i].want_type);
		assert_int_equal(r->ai_port_space, cases[i].want_space);
		rdma_freeaddrinfo(r);
	}
}

static void af_ib__a_gid_of_either_family(void **state)
{
	static const char *const nodes[] = { "10.77.0.2", "fd77::2" };
	static const struct vb_gid gids[] = {
		{ { [10] = 0xff, 0xff, 10, 77, 0, 2 } },
		{ { 0xfd, 0x77, [15] = 2 } },
	};
	const struct rdma_addrinfo hints = {
		.ai_flags = RAI_FAMILY | RAI_NUMERICHOST,
		.ai_family = AF_IB,
	};

	for (unsigned i = 0; i < VB_COUNT(nodes); i++) {
		struct rdma_addrinfo *r = look_up(nodes[i], &hints);
		const struct sockaddr_ib *to =
			(struct sockaddr_ib *)r->ai_dst_addr;

		assert_int_equal(r->ai_family, AF_IB);
		assert_int_equal(r->ai_dst_len, sizeof(*to));
		assert_int_equal(to->sib_family, AF_IB);
		assert_memory_equal(to->sib_addr.sib_raw, gids[i].raw, 16);
		assert_true(be64toh(to->sib_sid) ==
			    ((uint64_t)RDMA_PS_TCP << 16 | 7471));
		rdma_freeaddrinfo(r);
	}
}

static void af_ib__without_both_flags_is_ip(void **state)
{
	const struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST,
					     .ai_family = AF_IB };
	struct rdma_addrinfo *r = look_up("10.77.0.2", &hints);

	assert_int_equal(r->ai_family, AF_INET);
	assert_int_equal(r->ai_dst_addr->sa_family, AF_INET);
	rdma_freeaddrinfo(r);
}

static void hints_alone__are_copied(void **state)
{
	struct sockaddr_in src = { .sin_family = AF_INET, .sin_port = 1 };
	struct sockaddr_in dst = { .sin_family = AF_INET, .sin_port = 2 };
	struct rdma_addrinfo hints = { .ai_family = AF_INET,
				       .ai_src_addr = (struct sockaddr *)&src,
				       .ai_src_len = sizeof(src),
				       .ai_dst_addr = (struct sockaddr *)&dst,
				       .ai_dst_len = sizeof(dst) };
	struct rdma_addrinfo *r;

	assert_int_equal(rdma_getaddrinfo(NULL, NULL, &hints, &r), 0);
	assert_memory_equal(r->ai_src_addr, &src, sizeof(src));
	assert_memory_equal(r->ai_dst_addr, &dst, sizeof(dst));
	assert_ptr_not_equal(r->ai_src_addr, hints.ai_src_addr);
	rdma_freeaddrinfo(r);
	hints.ai_dst_len = sizeof(struct sockaddr_storage) + 1;
	assert_int_equal(rdma_getaddrinfo(NULL, NULL, &hints, &r), -1);
}

static void refused__table(void **state)
{
	const struct rdma_addrinfo sa = { .ai_flags = RAI_SA };
	const struct rdma_addrinfo numeric = { .ai_flags = RAI_NUMERICHOST };
	struct rdma_addrinfo *r;

	errno = 0;
	assert_int_equal(rdma_getaddrinfo(NULL, NULL, NULL, &r), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(rdma_getaddrinfo("10.77.0.2", "1", NULL, NULL), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(rdma_getaddrinfo("10.77.0.2", "1", &sa, &r), -1);
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(rdma_getaddrinfo("a.name", "1", &numeric, &r),
			 EAI_NONAME);
}

/* The result waits for rdma_query_addrinfo(); until then the id is busy. */
static void resolve__one_at_a_time(void **state)
{
	const struct rdma_addrinfo numeric = { .ai_flags = RAI_NUMERICHOST };
	struct rdma_event_channel *c = fake_channel();
	struct rcm_id *id = fake_id(c, RDMA_PS_TCP, IBV_QPT_RC, RCM_NEW);
	struct rdma_addrinfo *r;
	struct rdma_cm_event *e;

	id->in_broker = false;
	assert_int_equal(rdma_query_addrinfo(&id->pub, &r), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(
		rdma_resolve_addrinfo(&id->pub, "10.77.0.2", "1", &numeric), 0);
	assert_int_equal(
		rdma_resolve_addrinfo(&id->pub, "10.77.0.2", "1", &numeric),
		-1);
	assert_int_equal(errno, EBUSY);
	assert_int_equal(rdma_get_cm_event(c, &e), 0);
	assert_int_equal(e->event, RCM_EVENT_ADDRINFO_RESOLVED);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	assert_int_equal(rdma_query_addrinfo(&id->pub, &r), 0);
	assert_int_equal(rcm_port_of(r->ai_dst_addr), 1);
	rdma_freeaddrinfo(r);
	/* A failure leaves the id free, and each EAI_ number has an errno. */
	assert_int_equal(
		rdma_resolve_addrinfo(&id->pub, "a.name", "1", &numeric), -1);
	assert_int_equal(errno, ENODATA);
	assert_int_equal(
		rdma_resolve_addrinfo(&id->pub, "10.77.0.2", "1", &numeric), 0);
	/* destroying the id also frees its result and its waiting event */
	rdma_destroy_id(&id->pub);
	assert_false(fake_is_readable(c->fd));
	rdma_destroy_event_channel(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(active__destination_alone),
		cmocka_unit_test(passive__source_alone),
		cmocka_unit_test(type_and_space__follow_each_other),
		cmocka_unit_test(af_ib__a_gid_of_either_family),
		cmocka_unit_test(af_ib__without_both_flags_is_ip),
		cmocka_unit_test(hints_alone__are_copied),
		cmocka_unit_test(refused__table),
		cmocka_unit_test_setup(resolve__one_at_a_time, fake_setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
