/* SPDX-License-Identifier: BSD-2-Clause */
/* near/registry: peers may do exactly what the registry shows, and see whether
 * its owner lives. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/shm.h"
#include "near/registry.h"

#define SLOT 3u

struct registries {
	struct vb_registry *own;
	const struct vb_registry *seen;
	int fd;
	struct vb_adapter a;
};

static int set_up(void **state)
{
	struct registries *t = calloc(1, sizeof(*t));
	int readable;

	if (vb_registry_create(SLOT, &t->own, &t->fd) ||
	    vb_shm_share_readable(t->fd, &readable) ||
	    vb_registry_map(readable, SLOT, &t->seen))
		return -1;
	close(readable);
	t->a.number = 1;
	t->a.key_mask = 0x123456;
	t->a.key_inv = 1;
	*state = t;
	return 0;
}

static int tear_down(void **state)
{
	struct registries *t = *state;

	vb_registry_unmap(t->seen);
	vb_registry_destroy(t->own, t->fd);
	free(t);
	return 0;
}

static uint32_t key_of(const struct registries *t, uint32_t index)
{
	return (index ^ t->a.key_mask) << 8 | 0x77;
}

static struct vb_grant VB_UNCHECKED grant(struct registries *t, uint32_t index,
					  uint32_t qpn)
{
	const struct vb_grant g = {
		.key = key_of(t, index),
		.index = index,
		.pd = 9,
		.access = ACCESS_REMOTE_READ | ACCESS_LOCAL_WRITE,
		.qpn = qpn,
		.base = 0x700000001000,
		.iova = 0x5000,
		.length = 100,
	};
	static struct vb_qp qp;

	qp.adapter = &t->a;
	qp.port = &t->a.ports[0];
	qp.pd = &(struct vb_pd){ .id = 9 };
	/* Showing a queue pair writes key_mask and key_inv of the adapter. */
	vb_registry_show(t->own, &qp, &(struct vb_registry_name){ .life = 1 });
	vb_registry_grant(t->own, &t->a, &g);
	return g;
}

static bool opens(const struct registries *t, uint32_t adapter, uint32_t pd,
		  uint32_t qpn, uint32_t key, uint32_t need)
{
	const struct vb_remote_side remote = { .adapter = adapter,
					       .pd = pd,
					       .qpn = qpn,
					       .key = key,
					       .need = need };
	struct vb_permit permit;
	struct vb_grant g;

	return vb_registry_open(t->seen, &remote, &g, &permit);
}

/* Is an access permitted now, and does the permit still hold after @later? */
static bool is_permitted(struct registries *t, uint32_t key,
			 void (*later)(struct vb_registry *))
{
	const struct vb_remote_side remote = { .adapter = 1,
					       .pd = 9,
					       .key = key };
	struct vb_permit permit;
	bool holds = true;
	struct vb_grant g;

	assert_true(vb_registry_open(t->seen, &remote, &g, &permit));
	if (later)
		later(t->own);
	for (unsigned i = 0; i < VB_COUNT(permit.word); i++)
		holds &= atomic_load(permit.word[i]) == permit.is[i];
	return holds;
}

/* The process number of a process that has ended may belong to another. */
static void open__permits_until_the_owner_ends(void **state)
{
	struct registries *t = *state;
	struct vb_grant g = grant(t, 42, 0);

	assert_false(is_permitted(t, g.key, NULL));
	vb_registry_live(t->own);
	assert_true(is_permitted(t, g.key, NULL));
	assert_false(is_permitted(t, g.key, vb_registry_die));
	assert_false(is_permitted(t, g.key, NULL));
}

static bool covers(struct registries *t, const struct vb_grant *granted,
		   uint64_t iova, uint64_t len, uint64_t *at)
{
	const struct vb_remote_side remote = { .adapter = 1,
					       .pd = 9,
					       .key = granted->key,
					       .need = ACCESS_REMOTE_READ };
	struct vb_permit permit;
	struct vb_grant g;

	assert_true(vb_registry_open(t->seen, &remote, &g, &permit));
	return vb_registry_covers(&g, iova, len, at);
}

static void covers__every_byte_around_a_region(void **state)
{
	struct registries *t = *state;
	struct vb_grant g = grant(t, 42, 0);
	uint64_t at = 0;

	for (uint64_t i = 0; i < 100; i++) {
		assert_true(covers(t, &g, 0x5000 + i, 100 - i, &at));
		assert_int_equal(at, g.base + i);
		assert_false(covers(t, &g, 0x5000 + i, 101 - i, &at));
	}
	assert_false(covers(t, &g, 0x4fff, 1, &at));
	assert_false(covers(t, &g, 0x5065, 1, &at));
	assert_false(covers(t, &g, 0x5064, 1, &at));
	assert_false(covers(t, &g, 0x5000, UINT64_MAX, &at));
	assert_false(covers(t, &g, UINT64_MAX, 2, &at));
}

static void open__key_domain_rights_queue_pair(void **state)
{
	struct registries *t = *state;
	struct vb_grant g = grant(t, 42, 0), bound = grant(t, 200, 0x18001);
	uint32_t read = ACCESS_REMOTE_READ;

	assert_true(opens(t, 1, 9, 0, g.key, read));
	assert_false(opens(t, 1, 10, 0, g.key, read));
	assert_false(opens(t, 1, 9, 0, g.key, ACCESS_REMOTE_WRITE));
	assert_false(opens(t, 0, 9, 0, g.key, read));
	assert_false(opens(t, 99, 9, 0, g.key, read));
	assert_true(opens(t, 1, 9, 0x18001, bound.key, read));
	assert_false(opens(t, 1, 9, 0x18002, bound.key, read));
	for (unsigned bit = 0; bit < 32; bit++)
		assert_false(opens(t, 1, 9, 0, g.key ^ 1u << bit, read));
	vb_registry_revoke(t->own, &t->a, 42);
	assert_false(opens(t, 1, 9, 0, g.key, read));
}

static void VB_UNCHECKED view__follows_the_queue_pair(void **state)
{
	struct registries *t = *state;
	struct vb_pd pd = { .id = 4 };
	struct vb_qp qp = {
		.adapter = &t->a, .port = &t->a.ports[0], .pd = &pd, .index = 77
	};
	uint32_t qpn = SLOT << VB_QPN_BITS | 77;
	struct vb_registry_view v;

	assert_false(vb_registry_view(t->seen, qpn, &v));
	atomic_store(&qp.qpn, qpn);
	qp.attr.access_flags = ACCESS_REMOTE_WRITE;
	qp.route.sgid.raw[0] = 0xfe;
	vb_registry_show(t->own, &qp,
			 &(struct vb_registry_name){ qpn, 0x123, 5 });
	assert_true(vb_registry_view(t->seen, qpn, &v));
	assert_int_equal(v.life, 5);
	assert_int_equal(v.dest_qpn, 0x123);
	assert_int_equal(v.access, ACCESS_REMOTE_WRITE);
	assert_int_equal(v.pd, 4);
	assert_memory_equal(v.sgid, qp.route.sgid.raw, 16);
	assert_true(vb_registry_is_current(t->seen, qpn, &v));
	/* A queue pair of another slot, with the same low bits. */
	assert_false(vb_registry_view(t->seen, qpn + (1u << VB_QPN_BITS), &v));
	assert_true(vb_registry_view(t->seen, qpn, &v));
	vb_registry_hide(t->own, 77);
	assert_false(vb_registry_is_current(t->seen, qpn, &v));
	assert_false(vb_registry_view(t->seen, qpn, &v));
}

static void map__only_what_cannot_shrink(void **state)
{
	int fd = memfd_create("small", MFD_ALLOW_SEALING);
	struct registries *t = *state;
	const struct vb_registry *y;

	assert_int_equal(vb_registry_map(fd, SLOT, &y), -EPROTO);
	assert_int_equal(ftruncate(fd, sizeof(struct vb_registry)), 0);
	assert_int_equal(vb_registry_map(fd, SLOT, &y), -EPROTO);
	close(fd);
	assert_int_equal(vb_registry_map(t->fd, SLOT + 1, &y), -EPROTO);
	t->own->version++;
	assert_int_equal(vb_registry_map(t->fd, SLOT, &y), -EPROTO);
}

/* A page of such a file is missing where the host has none left: SIGBUS. */
static void map__no_huge_pages(void **state)
{
	const size_t bytes = (size_t)4 << 20;
	int fd = memfd_create("huge",
			      MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
	void *at;

	if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0)
		skip();
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	assert_int_equal(vb_shm_map(fd, bytes, false, &at), -EPROTO);
	close(fd);
}

static void map__readers_cannot_write(void **state)
{
	struct registries *t = *state;
	int readable;

	assert_int_equal(vb_shm_share_readable(t->fd, &readable), 0);
	assert_ptr_equal(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED,
			      readable, 0),
			 MAP_FAILED);
	close(readable);
}

/* Start a process that holds the registry as the owner's engine thread does,
 * until it is killed. */
static pid_t live_elsewhere(struct registries *t)
{
	int ready[2], fd = fcntl(t->fd, F_DUPFD, 100);
	pid_t child;
	char byte;

	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (child == 0) {
		void *at;

		/* A child inherits neither the mapping nor its descriptor. */
		if (vb_shm_map(fd, sizeof(struct vb_registry), true, &at))
			_exit(1);
		vb_registry_live(at);
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(fd);
	return child;
}

static void alive__until_killed(void **state)
{
	struct registries *t = *state;
	pid_t child;

	assert_false(vb_registry_is_alive(t->seen));
	child = live_elsewhere(t);
	assert_true(vb_registry_is_alive(t->seen));
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_false(vb_registry_is_alive(t->seen));
}

static void alive__until_it_says_so(void **state)
{
	struct registries *t = *state;

	vb_registry_live(t->own);
	assert_true(vb_registry_is_alive(t->seen));
	vb_registry_die(t->own);
	assert_false(vb_registry_is_alive(t->seen));
}

static bool is_open(const struct registries *t)
{
	const struct vb_registry_proof proof =
		vb_registry_proof(t->seen, getpid());

	return vb_registry_is_open(&proof);
}

static void open__only_with_the_nonce(void **state)
{
	struct registries *t = *state;

	if (!is_open(t))
		skip(); /* skipped where process_vm_readv is denied */
	t->own->nonce_at = (uintptr_t)&t->fd;
	assert_false(is_open(t));
	t->own->nonce_at = 8; /* nothing is mapped at this address */
	assert_false(is_open(t));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(covers__every_byte_around_a_region),
		TEST(open__key_domain_rights_queue_pair),
		TEST(open__permits_until_the_owner_ends),
		TEST(view__follows_the_queue_pair),
		TEST(map__only_what_cannot_shrink),
		TEST(map__no_huge_pages),
		TEST(map__readers_cannot_write),
		TEST(alive__until_killed),
		TEST(alive__until_it_says_so),
		TEST(open__only_with_the_nonce),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
