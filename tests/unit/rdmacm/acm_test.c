/* SPDX-License-Identifier: BSD-2-Clause */
/* Questions to ibacm: a thread of the test plays the daemon. */
#include "tests/unit/rdmacm/fake.h"

#include "front/rdmacm/acm.c"

/* the one GID of the fake device */
static const uint8_t own_gid[16] = { [10] = 0xff, 0xff, 10, 77, 0, 1 };
static const uint8_t peer_gid[16] = { 0xfe, 0x80, [15] = 9 };

static int ends[2];
/* The answer of the daemon, which copies the number of the question into it. */
static struct acm_message says;
/* the question that the daemon received last */
static struct acm_message heard;
/* how many bytes of the answer the daemon sends */
static size_t says_bytes;

static int setup(void **state)
{
	(void)fake_setup(state);
	fake_device.ib = true;
	fake_device.place = 3;
	rcm.has_ib = true;
	says = (struct acm_message){
		.header = { .version = 1,
			    .opcode = 1,
			    .length = 16 + 2 * 72 },
	};
	says.entries[0].flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY |
				IBV_PATH_FLAG_BIDIRECTIONAL;
	says.entries[0].type = ACM_PATH;
	says.entries[0].path.dlid = htobe16(6);
	says.entries[0].path.pkey = htobe16(0x8001);
	says.entries[0].path.flowlabel_hoplimit = htobe32(0x12345 << 8);
	memcpy(says.entries[0].path.sgid.raw, own_gid, 16);
	memcpy(says.entries[0].path.dgid.raw, peer_gid, 16);
	says.entries[1].flags = ACM_SOURCE;
	says.entries[1].type = ACM_IPV4;
	memcpy(says.entries[1].address, own_gid + 12, 4);
	says_bytes = sizeof(says);
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends);
}

static int teardown(void **state)
{
	(void)state;
	close(ends[0]);
	if (ends[1] >= 0)
		close(ends[1]);
	rcm.has_ib = false;
	return 0;
}

static void *daemon_of(void *arg)
{
	struct pollfd p = { .fd = ends[1], .events = POLLIN };

	(void)arg;
	(void)!poll(&p, 1, 5000);
	(void)!read(ends[1], &heard, sizeof(heard));
	says.header.tid += heard.header.tid;
	(void)!write(ends[1], &says,
		     VB_MIN(says_bytes, (size_t)says.header.length));
	if (says_bytes < says.header.length) {
		close(ends[1]);
		ends[1] = -1;
	}
	return NULL;
}

static struct rdma_addrinfo *to_ip(void)
{
	const struct vb_gid ip =
		vb_gid_from_ipv4((const uint8_t[]){ 10, 9, 0, 4 });
	struct rdma_addrinfo *r = calloc(1, sizeof(*r));

	r->ai_family = AF_INET;
	r->ai_port_space = RDMA_PS_TCP;
	r->ai_qp_type = IBV_QPT_RC;
	r->ai_dst_addr = calloc(1, sizeof(struct sockaddr_in6));
	rcm_address_of(r->ai_dst_addr, &ip, 7174, 0);
	r->ai_dst_len = sizeof(struct sockaddr_in);
	return r;
}

/* Asks for the path to 10.9.0.4, with @flags in the hints. */
static struct rdma_addrinfo *ask(int flags)
{
	const struct rdma_addrinfo hints = { .ai_flags = flags };
	struct rdma_addrinfo *r = to_ip();
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, daemon_of, NULL), 0);
	resolve_at(ends[0], &r, &hints);
	pthread_join(thread, NULL);
	return r;
}

static void a_path__becomes_a_result_with_gids(void **state)
{
	struct rdma_addrinfo *r = ask(0);
	const struct sockaddr_ib *src = (struct sockaddr_ib *)r->ai_src_addr;
	const struct sockaddr_ib *dst = (struct sockaddr_ib *)r->ai_dst_addr;
	const struct ibv_path_data *d = r->ai_route;
	const uint8_t *h = r->ai_connect;

	(void)state;
	assert_int_equal(heard.header.version, 1);
	assert_int_equal(heard.header.opcode, 1);
	assert_int_equal(heard.header.length, 16 + 72);
	assert_int_equal(heard.entries[0].flags, ACM_DESTINATION);
	assert_int_equal(heard.entries[0].type, 2);
	assert_memory_equal(heard.entries[0].address, "\x0a\x09\x00\x04", 4);

	assert_int_equal(r->ai_family, AF_IB);
	assert_int_equal(r->ai_port_space, RDMA_PS_TCP);
	assert_memory_equal(src->sib_addr.sib_raw, own_gid, 16);
	assert_memory_equal(dst->sib_addr.sib_raw, peer_gid, 16);
	assert_int_equal(be64toh(dst->sib_sid), 0x01060000 + 7174);
	assert_int_equal(dst->sib_pkey, htobe16(0x8001));
	assert_int_equal(be32toh(dst->sib_flowinfo), 0x12345);
	assert_int_equal(r->ai_route_len, sizeof(*d));
	assert_int_equal(d->flags, says.entries[0].flags);
	assert_int_equal(d->path.dlid, htobe16(6));
	/* the header of rdma_cm for IPv4 addresses, 36 bytes */
	assert_int_equal(r->ai_connect_len, 36);
	assert_int_equal(h[1], 0x40);
	assert_memory_equal(h + 16, own_gid + 12, 4);
	assert_memory_equal(h + 32, "\x0a\x09\x00\x04", 4);
	/* behind it is the result with the IP address */
	assert_non_null(r->ai_next);
	assert_int_equal(r->ai_next->ai_family, AF_INET);
	assert_int_equal(r->ai_next->ai_route_len, sizeof(*d));
	assert_int_equal(r->ai_next->ai_src_len, sizeof(struct sockaddr_in));
	rdma_freeaddrinfo(r);
}

static void numeric__takes_no_time(void **state)
{
	struct rdma_addrinfo *r = ask(RAI_NUMERICHOST);

	(void)state;
	assert_int_equal(heard.entries[0].flags, ACM_DESTINATION | 1u << 30);
	rdma_freeaddrinfo(r);
}

static void assert_unchanged(void)
{
	struct rdma_addrinfo *r = ask(0);

	assert_int_equal(r->ai_family, AF_INET);
	assert_null(r->ai_route);
	assert_null(r->ai_src_addr);
	assert_null(r->ai_next);
	rdma_freeaddrinfo(r);
}

static void a_path__of_another_adapter(void **state)
{
	(void)state;
	says.entries[0].path.sgid.raw[15]++;
	assert_unchanged();
}

static void an_answer__that_says_no(void **state)
{
	(void)state;
	says.header.status = 6;
	assert_unchanged();
}

static void an_answer__to_another_question(void **state)
{
	(void)state;
	says.header.tid = 1;
	assert_unchanged();
}

static void an_answer__of_another_form(void **state)
{
	(void)state;
	says.header.opcode = 2;
	assert_unchanged();
}

static void an_answer__of_half_an_entry(void **state)
{
	(void)state;
	says.header.length = 16 + 72 + 36;
	assert_unchanged();
}

static void an_answer__shorter_than_its_header(void **state)
{
	(void)state;
	says.header.length = 15;
	says_bytes = 15;
	assert_unchanged();
}

static void an_answer__longer_than_any(void **state)
{
	(void)state;
	says.header.length = 16 + 9 * 72;
	assert_unchanged();
}

static void an_answer__that_breaks_off(void **state)
{
	(void)state;
	says_bytes = 16 + 72;
	assert_unchanged();
}

static void silence__does_not_last(void **state)
{
	const vb_time begun = vb_clock_read();
	struct rdma_addrinfo *r = to_ip();

	(void)state;
	resolve_at(ends[0], &r, NULL);
	assert_in_range(vb_clock_read() - begun, 2 * VB_SEC, 5 * VB_SEC);
	assert_int_equal(r->ai_family, AF_INET);
	rdma_freeaddrinfo(r);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_path__becomes_a_result_with_gids),
		CASE(numeric__takes_no_time),
		CASE(a_path__of_another_adapter),
		CASE(an_answer__that_says_no),
		CASE(an_answer__to_another_question),
		CASE(an_answer__of_another_form),
		CASE(an_answer__of_half_an_entry),
		CASE(an_answer__shorter_than_its_header),
		CASE(an_answer__longer_than_any),
		CASE(an_answer__that_breaks_off),
		CASE(silence__does_not_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
