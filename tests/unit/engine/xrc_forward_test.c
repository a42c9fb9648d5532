/* SPDX-License-Identifier: BSD-2-Clause */
/* Which process gets a packet for another process's shared queue, and which
 * queue pairs that process remembers. The test reads internal state, because
 * errors here show late, or in other processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/clock.h"
#include "core/lock_order.h"
#include "engine/engine_priv.h"
#include "tests/support/lingering.h"

static struct vb_engine engine;

static struct vb_engine *the_engine(void)
{
	return &engine;
}

#define vb_engine_running the_engine
#include "engine/xrc_forward.c"

#define GUID 0x4711

static struct vb_open_adapter device;
static struct vb_xrc_domain domain;
static struct vb_qp target;
static struct session session;

static int begin(void **state)
{
	struct vb_forward *f;

	/* Names are shared by the whole host: this one must not be a process's
	 * slot, nor another test's name. */
	engine.lease.slot = 0x10000u | ((unsigned)getpid() & 0xffff);
	vb_mutex_init(&engine.list_lock, RANK_LIST);
	if (vb_adapter_init(&device.adapter, "test") ||
	    vb_forward_create(&engine, &f))
		return -1;
	device.adapter.guid = GUID;
	engine.adapters = &device;
	atomic_store(&engine.forward, f);
	target.adapter = &device.adapter;
	target.xrc_domain = &domain;
	memset(&session, 0, sizeof(session));
	return 0;
}

static int finish(void **state)
{
	end_guests(&engine, &session);
	vb_forward_destroy(atomic_load(&engine.forward));
	vb_adapter_fini(&device.adapter);
	vb_mutex_fini(&engine.list_lock);
	return 0;
}

static enum vb_fault send_to(uint32_t slot)
{
	struct vb_ib_pkt pkt = { .bth = { .opcode = CODE_SEND_ONLY },
				 .xrc_srqn = slot << VB_QPN_BITS | 5 };
	uint64_t id;

	return eng_xrc_forward_hand_over(&target, &pkt, 1, &id);
}

static void slot__of_nobody_reaches_no_caller(void **state)
{
	struct vb_forward *f = atomic_load(&engine.forward);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
	struct forward_msg l;

	assert_int_equal(eng_xrc_forward_connect_to(fd, engine.lease.slot), 0);
	vb_forward_serve(f);
	assert_non_null(f->sessions);
	assert_int_equal(send_to(0), FAULT_XRC_SRQ);
	assert_true(recv(fd, &l, sizeof(l), 0) < 0 && errno == EAGAIN);
	close(fd);
}

static void slot__of_its_own_is_not_called(void **state)
{
	assert_int_equal(send_to(engine.lease.slot), FAULT_XRC_SRQ);
	assert_null(
		((struct vb_forward *)atomic_load(&engine.forward))->sessions);
}

static struct guest *guest(uint32_t tqpn)
{
	const struct forward_msg l = { .tqpn = tqpn, .guid = GUID };

	return guest_of(&session, &l);
}

static bool is_known(uint32_t tqpn)
{
	const struct forward_msg l = { .tqpn = tqpn, .guid = GUID };
	struct guest *g = session.guests;

	while (g && !is_of(g, &l))
		g = g->next;
	return g;
}

static const struct vb_ib_op *op(uint8_t code)
{
	return vb_ib_op(CLASS_XRC << 5 | code);
}

static void guests__the_oldest_makes_room(void **state)
{
	for (uint32_t i = 1; i <= MOST_GUESTS; i++)
		guest(i)->forward.prev = op(CODE_SEND_LAST);
	/* guest 1 (state of a foreign queue pair) becomes the latest in use */
	guest(1);
	guest(2)->forward.qp.recv_busy = true;
	guest(3)->forward.prev = op(CODE_WRITE_FIRST);
	for (uint32_t i = 5; i <= MOST_GUESTS; i++)
		guest(i);
	guest(4);
	assert_non_null(guest(MOST_GUESTS + 1));
	assert_false(is_known(1));
	assert_non_null(guest(MOST_GUESTS + 2));
	assert_true(is_known(2));
	assert_true(is_known(3));
	assert_true(is_known(4));
	assert_false(is_known(5));
	assert_int_equal(session.guest_count, MOST_GUESTS);
}

static void guests__in_the_midst_of_a_message_stay(void **state)
{
	for (uint32_t i = 1; i <= MOST_GUESTS; i++)
		guest(i)->forward.prev = op(CODE_SEND_FIRST);
	assert_null(guest(MOST_GUESTS + 1));
	assert_int_equal(session.guest_count, MOST_GUESTS);
	assert_true(is_known(1));
}

/* The device is closed and opened again while a message is under way. */
static void guests__end_with_the_device_that_is_there(void **state)
{
	struct guest *g = guest(1);

	g->forward.qp.adapter = (struct vb_adapter *)(uintptr_t)8;
	g->forward.qp.recv_busy = true;
	end_guests(&engine, &session);
	assert_null(session.guests);
}

/* A program, also another user's, sends a socket with SO_LINGER, which the
 * kernel closes when nothing receives it. */
static void session__waits_for_no_descriptor(void **state)
{
	struct vb_forward *f = atomic_load(&engine.forward);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
	int reader, linger = make_lingering(&reader);
	vb_time then = vb_clock_read();
	char byte = 0;

	assert_int_equal(eng_xrc_forward_connect_to(fd, engine.lease.slot), 0);
	vb_forward_serve(f);
	assert_non_null(f->sessions);
	for (int i = 0; i < 2; i++)
		assert_int_equal(vb_fdmail_send(fd, &byte, 1, &linger, 1, 0),
				 0);
	close(linger);
	vb_forward_serve(f);
	assert_null(f->sessions);
	assert_true(vb_clock_read() - then < 10 * VB_SEC);
	close(fd);
	close(reader);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(slot__of_nobody_reaches_no_caller),
		TEST(slot__of_its_own_is_not_called),
		TEST(session__waits_for_no_descriptor),
		TEST(guests__the_oldest_makes_room),
		TEST(guests__in_the_midst_of_a_message_stay),
		TEST(guests__end_with_the_device_that_is_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
