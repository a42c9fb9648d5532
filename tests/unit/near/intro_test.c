/* SPDX-License-Identifier: BSD-2-Clause */
/* How two programs get to know each other: here both are this one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <cmocka.h>

#include "near/near_priv.h"
#include "tests/unit/netns.h"
#include "wire/ipc.h"

struct program {
	struct vb_near *near;
	int name_fd, wake_fd;
};

static void begin(struct program *p, unsigned slot)
{
	struct vb_near_config c = { .slot = 0 };
	struct sockaddr_un a;
	char name[32];
	socklen_t len;

	snprintf(name, sizeof(name), "verbena/slot/%u", slot);
	len = vb_ipc_address(&a, name);
	p->name_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	p->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	assert_int_equal(bind(p->name_fd, (void *)&a, len), 0);
	c.slot = slot;
	c.name_fd = p->name_fd;
	c.wake_fd = p->wake_fd;
	assert_int_equal(vb_near_create(&c, &p->near), 0);
	vb_near_begin(p->near);
}

static void end(struct program *p)
{
	vb_near_end(p->near);
	vb_near_destroy(p->near);
	close(p->name_fd);
	close(p->wake_fd);
}

/* Who calls may use the lane, and rings, before the other side takes its last
 * word: who waits there looked in vain, and is to look again. */
static void session__comes_up_and_wakes_who_waits(void **state)
{
	struct program caller, called;
	struct vb_bell *bell;

	begin(&caller, 1);
	begin(&called, 2);
	bell = vb_near_bell(called.near);
	(void)vb_intro_want(caller.near, 2);
	vb_near_meet(caller.near, 0); /* HELLO */
	vb_near_meet(called.near, 0); /* WELCOME */
	vb_near_meet(caller.near, 0); /* READY */
	assert_true(vb_peer_is_up(caller.near->peers[2]));
	assert_false(vb_peer_is_up(called.near->peers[1]));
	vb_bell_set(bell);
	vb_near_meet(called.near, 0);
	assert_true(vb_peer_is_up(called.near->peers[1]));
	assert_int_equal(atomic_load(&bell->sleeps), 0);
	end(&caller);
	end(&called);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(session__comes_up_and_wakes_who_waits),
	};

	if (!netns_enter())
		return NETNS_SKIP;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
