/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs that use verbs, and what they cannot do to others. The fabric, a
 * switch with two adapters, runs in a thread; the test is the programs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/fdmail.h"
#include "base/shm.h"
#include "base/shring.h"
#include "engine/fabric_path.h"
#include "tests/support/fab_run.h"
#include "tests/support/fabric_host.h"
#include "wire/ib_hdr.h"
#include "wire/ipc.h"
#include "wire/lrh.h"
#include "wire/verbs_ipc.h"

#define PATIENCE   (5 * VB_SEC)
#define UD_SEND	   0x64
#define MLID	   0xc001
#define FREE_PORTS 6 /* number of the switch's ports that have no adapter */
#define HEAD	   (VB_LRH_BYTES + VB_BTH_BYTES + 8)

static const char text[] = "Switch 8 \"S1\"\n"
			   "[1] \"H1\"[1]\n"
			   "[2] \"H2\"[1]\n"
			   "Hca 2 \"H1\"\n"
			   "[1] \"S1\"[1]\n"
			   "Hca 1 \"H2\"\n"
			   "[1] \"S1\"[2]\n";

static struct fabric_host w;
static pthread_t fabric_thread;

struct program {
	int control, bell;
	struct vb_verbs_port port;
	void *own, *theirs;
	struct vb_shring_out out;
	struct vb_shring_in in;
};

static void *run(void *arg)
{
	assert_int_equal(vb_fabricd_run(w.f, w.stop[0]), 0);
	return NULL;
}

static void set_active(const char *name, uint8_t port)
{
	struct vb_fab_node *n = vb_fabricd_node(w.f, name);
	vb_time now = vb_clock_read();

	for (unsigned state = FAB_ARMED; state <= FAB_ACTIVE; state++)
		assert_int_equal(vb_fab_set_state(w.f->net, n, port,
						  (enum vb_fab_state)state,
						  now),
				 0);
}

/* Give H1 the LID 1 and H2 the LID 2, and enter both into the switch's
 * table. */
static void bring_up(void)
{
	struct vb_fab_node *s = vb_fabricd_node(w.f, "S1");

	usleep(1000); /* wait until the links are trained */
	fab_run(w.f->net, vb_clock_read());
	set_active("S1", 1);
	set_active("S1", 2);
	set_active("H1", 1);
	set_active("H2", 1);
	vb_fabricd_node(w.f, "H1")->port[1].lid = 1;
	vb_fabricd_node(w.f, "H2")->port[1].lid = 2;
	s->sw.linear_top = 2;
	s->sw.linear[1] = 1;
	s->sw.linear[2] = 2;
}

static int start(void **state)
{
	fabric_host_begin(&w, "verbs", text);
	bring_up();
	assert_int_equal(pthread_create(&fabric_thread, NULL, run, NULL), 0);
	alarm(60);
	return 0;
}

static int finish(void **state)
{
	assert_int_equal(write(w.stop[1], "", 1), 1);
	pthread_join(fabric_thread, NULL);
	alarm(0);
	return fabric_host_end(&w);
}

/* --- programs --- */

/* the port of an adapter at which programs attach */
static uint8_t at_port = 1;

/* Ask for the slot @slot (0: any) at the adapter @node. Returns 0, or a
 * negative errno from the fabric; then @p has no slot. */
static int ask_for(struct program *p, const char *node, uint16_t slot,
		   int fds[VERBS_FDS])
{
	struct vb_fabric_place place = { 0 };
	struct vb_umad_where where;
	unsigned count = VERBS_FDS;
	int rc;

	memset(p, 0, sizeof(*p));
	snprintf(place.fabric, sizeof(place.fabric), "%s", w.name);
	snprintf(place.node, sizeof(place.node), "%s", node);
	where = vb_fabric_where(VERBS_ATTACH, &place, at_port);
	where.slot = slot;
	p->control = vb_fabric_reach(&place);
	assert_true(p->control >= 0);
	rc = vb_fabric_ask(p->control, &where, &p->port, sizeof(p->port), fds,
			   &count);
	assert_int_equal(count, rc ? 0 : VERBS_FDS);
	if (rc)
		close(p->control);
	return rc;
}

static void attach_as(struct program *p, const char *node, uint16_t slot)
{
	int fds[VERBS_FDS];

	assert_int_equal(ask_for(p, node, slot, fds), 0);
	assert_int_equal(vb_shm_map(fds[VERBS_FD_PROGRAM],
				    VB_SHRING_BYTES(VB_VERBS_RING), true,
				    &p->own),
			 0);
	assert_int_equal(vb_shm_map(fds[VERBS_FD_FABRIC],
				    VB_SHRING_BYTES(VB_VERBS_RING), false,
				    &p->theirs),
			 0);
	close(fds[VERBS_FD_PROGRAM]);
	close(fds[VERBS_FD_FABRIC]);
	p->bell = fds[VERBS_FD_BELL];
	vb_shring_open(&p->out, &p->in, p->own, p->theirs, VB_VERBS_RING);
}

static void attach(struct program *p, const char *node)
{
	attach_as(p, node, 0);
}

static void leave(struct program *p)
{
	close(p->control);
	close(p->bell);
	vb_shm_unmap(p->own, VB_SHRING_BYTES(VB_VERBS_RING));
	vb_shm_unmap(p->theirs, VB_SHRING_BYTES(VB_VERBS_RING));
}

/* The fields of a datagram that a hostile program would choose. */
struct frame {
	uint8_t vl, lnh, opcode;
	uint16_t slid, dlid, pkey, words;
	uint32_t dqpn, sqpn, payload;
};

static struct frame good(const struct program *from, const struct program *to)
{
	return (struct frame){
		.lnh = LNH_LOCAL,
		.opcode = UD_SEND,
		.slid = from->port.lid,
		.dlid = to->port.lid,
		.pkey = 0xffff,
		.dqpn = to->port.slot << VB_QPN_BITS | 7,
		.sqpn = from->port.slot << VB_QPN_BITS | 5,
		.payload = 32,
	};
}

static uint32_t build(uint8_t *bytes, const struct frame *f)
{
	uint32_t len = HEAD + f->payload + VB_ICRC_BYTES;
	const struct vb_lrh h = {
		.vl = f->vl,
		.lnh = f->lnh,
		.dlid = f->dlid,
		.slid = f->slid,
		.words = f->words ? f->words : (uint16_t)(len / 4),
	};
	uint8_t *bth = bytes + VB_LRH_BYTES;

	memset(bytes, 0x5a, len);
	vb_lrh_put(bytes, &h);
	memset(bth, 0, VB_BTH_BYTES);
	bth[0] = f->opcode;
	vb_store_be(bth + 2, f->pkey, 2);
	vb_store_be(bth + 5, f->dqpn, 3);
	vb_store_be(bth + VB_BTH_BYTES, 0, 4);
	vb_store_be(bth + VB_BTH_BYTES + 4, f->sqpn, 4);
	return len;
}

static bool put_bytes(struct program *p, const uint8_t *bytes, uint32_t len)
{
	uint8_t *to = vb_shring_begin(&p->out, len);

	if (!to)
		return false;
	memcpy(to, bytes, len);
	vb_shring_commit(&p->out, len);
	if (vb_shring_publish(&p->out))
		assert_int_equal(send(p->bell, "", 1, MSG_DONTWAIT), 1);
	return true;
}

static bool put(struct program *p, const struct frame *f)
{
	uint8_t bytes[VB_VERBS_FRAME];

	return put_bytes(p, bytes, build(bytes, f));
}

static const uint8_t *await_frame(struct program *p, uint32_t *len,
				  vb_time span)
{
	vb_time end = vb_clock_read() + span;
	const uint8_t *bytes;

	do {
		bytes = vb_shring_next(&p->in, len);
		if (!bytes)
			usleep(200);
	} while (!bytes && vb_clock_read() < end);
	return bytes;
}

static void release_frames(struct program *p)
{
	if (vb_shring_release(&p->in))
		assert_int_equal(send(p->bell, "", 1, MSG_DONTWAIT), 1);
}

/* Check that the next frame that @to gets is @f, and that none follows. */
static void arrives_alone(struct program *to, const struct frame *f)
{
	uint8_t bytes[VB_VERBS_FRAME];
	uint32_t len, want = build(bytes, f);
	const uint8_t *got = await_frame(to, &len, PATIENCE);

	assert_non_null(got);
	assert_int_equal(len, want);
	assert_memory_equal(got + 1, bytes + 1, len - 1);
	release_frames(to);
	assert_null(await_frame(to, &len, 20 * VB_MSEC));
}

static bool is_expelled(const struct program *p)
{
	char byte[4096];

	for (;;) {
		ssize_t n = recv(p->control, byte, sizeof(byte), 0);

		if (n <= 0)
			return n == 0 || errno == ECONNRESET;
	}
}

/* --- tests --- */

static void verbs__frames_cross_the_switch(void **state)
{
	struct program a, b;
	struct frame f;

	attach(&a, "H1");
	attach(&b, "H2");
	assert_int_equal(a.port.lid, 1);
	assert_int_equal(a.port.pkey[0], 0xffff);
	assert_true(a.port.slot > 0 && a.port.slot < VB_SLOTS);
	for (unsigned i = 0; i < 100; i++) {
		f = good(&a, &b);
		f.payload = i * 40;
		assert_true(put(&a, &f));
		arrives_alone(&b, &f);
	}
	leave(&a);
	leave(&b);
}

/* Two programs at one adapter get different slots, and can send to each
 * other. */
static void verbs__two_of_one_adapter(void **state)
{
	struct program a, b;
	struct frame f;

	attach(&a, "H1");
	attach(&b, "H1");
	assert_int_not_equal(a.port.slot, b.port.slot);
	f = good(&a, &b);
	assert_true(put(&a, &f));
	arrives_alone(&b, &f);
	f = good(&b, &b);
	assert_true(put(&b, &f));
	arrives_alone(&b, &f);
	leave(&a);
	leave(&b);
}

static void verbs__only_what_a_program_may_send(void **state)
{
	struct program a, b;
	struct frame bad[13], f;
	uint8_t bytes[VB_VERBS_FRAME] = { 0 };

	attach(&a, "H1");
	attach(&b, "H2");
	for (unsigned i = 0; i < VB_COUNT(bad); i++)
		bad[i] = good(&a, &b);
	bad[0].slid = 2;
	bad[1].slid = 0;
	bad[2].dlid = 0;
	bad[3].dlid = VB_LID_PERMISSIVE;
	bad[4].pkey = 0x7fff; /* a P_Key that is not in the port's table */
	bad[5].pkey = 0;
	bad[6].dqpn = 0;
	bad[7].dqpn = 1;
	bad[8].sqpn = b.port.slot << VB_QPN_BITS | 5;
	bad[8].sqpn ^= a.port.slot == b.port.slot ? 1u << VB_QPN_BITS : 0;
	bad[9].words = 2;
	bad[10].lnh = LNH_RAW;
	bad[11].lnh = LNH_IP;
	bad[12].words = 1000;
	for (unsigned i = 0; i < VB_COUNT(bad); i++)
		assert_true(put(&a, &bad[i]));
	for (uint32_t len = 0; len < 24; len++)
		assert_true(put_bytes(&a, bytes, len));
	f = good(&a, &b);
	/* a program cannot send on VL15: the fabric chooses the lane */
	f.vl = VB_VL_MGMT;
	assert_true(put(&a, &f));
	f.vl = 0;
	arrives_alone(&b, &f);
	leave(&a);
	leave(&b);
}

static void verbs__a_broken_ring_ends_its_program(void **state)
{
	struct program a, b, c;
	struct frame f;

	attach(&a, "H1");
	attach(&b, "H2");
	attach(&c, "H1");
	atomic_store(&((struct vb_shring_side *)c.own)->head, 77);
	(void)!send(c.bell, "", 1, MSG_DONTWAIT);
	assert_true(is_expelled(&c));
	f = good(&a, &b);
	assert_true(put(&a, &f));
	arrives_alone(&b, &f);
	leave(&a);
	leave(&b);
	leave(&c);
}

/* A program that reads nothing delays others for a moment only, and a program
 * that reads loses nothing. */
static void verbs__one_that_stops(void **state)
{
	struct program a, stopped, b;
	vb_time end = vb_clock_read() + 20 * VB_SEC;
	struct frame f;
	unsigned sent = 0;

	attach(&a, "H1");
	attach(&stopped, "H2");
	attach(&b, "H2");
	f = good(&a, &stopped);
	f.payload = 4096;
	/* more frames than fit into the stopped program's ring, the fabric and
	 * the sender's ring */
	while (sent < 4 * VB_VERBS_RING / 4096 && vb_clock_read() < end) {
		if (put(&a, &f))
			sent++;
		else
			usleep(1000);
	}
	assert_int_equal(sent, 4 * VB_VERBS_RING / 4096);
	f = good(&a, &b);
	while (!put(&a, &f) && vb_clock_read() < end)
		usleep(1000);
	arrives_alone(&b, &f);
	leave(&a);
	leave(&b);
	leave(&stopped);
}

static void verbs__a_slow_one_loses_nothing(void **state)
{
	const unsigned all = 3000;
	struct program a, b;
	struct frame f;
	unsigned sent = 0, got = 0;

	attach(&a, "H1");
	attach(&b, "H2");
	f = good(&a, &b);
	f.payload = 2048;
	while (got < all) {
		uint32_t len;

		while (sent < all && put(&a, &f))
			sent++;
		assert_non_null(await_frame(&b, &len, PATIENCE));
		assert_int_equal(len, HEAD + 2048 + VB_ICRC_BYTES);
		got++;
		release_frames(&b);
	}
	assert_int_equal(sent, all);
	leave(&a);
	leave(&b);
}

static int ask_group(const struct program *p, uint32_t kind, uint16_t mlid)
{
	const struct vb_verbs_group g = {
		.head = { .magic = VB_UMAD_MAGIC, .kind = kind },
		.mlid = mlid,
	};

	return vb_fabric_call(p->control, &g, sizeof(g));
}

static void verbs__groups(void **state)
{
	struct program a, b;
	struct frame f;
	uint32_t len;

	attach(&a, "H1");
	attach(&b, "H1");
	f = good(&a, &b);
	f.dlid = MLID;
	f.dqpn = 0xffffff;
	assert_true(put(&a, &f));
	assert_null(await_frame(&b, &len, 50 * VB_MSEC));
	assert_int_equal(ask_group(&b, VERBS_JOIN, MLID), 0);
	assert_true(put(&a, &f));
	arrives_alone(&b, &f);
	assert_int_equal(ask_group(&b, VERBS_LEAVE, MLID), 0);
	assert_true(put(&a, &f));
	assert_null(await_frame(&b, &len, 50 * VB_MSEC));
	assert_int_equal(ask_group(&b, VERBS_LEAVE, MLID), -EINVAL);
	assert_int_equal(ask_group(&a, VERBS_JOIN, 5), -EINVAL);
	assert_int_equal(ask_group(&a, VERBS_JOIN, VB_LID_PERMISSIVE), -EINVAL);
	for (unsigned i = 0; i < 512; i++)
		assert_int_equal(
			ask_group(&a, VERBS_JOIN, (uint16_t)(MLID + i)), 0);
	assert_int_equal(ask_group(&a, VERBS_JOIN, MLID), 0);
	assert_int_equal(ask_group(&a, VERBS_JOIN, MLID + 512), -ENOSPC);
	assert_int_equal(ask_group(&b, 99, MLID), -ECONNRESET);
	assert_true(is_expelled(&b));
	leave(&a);
	leave(&b);
}

/* --- a client without queue pairs --- */

static struct vb_verbs_port next_port(int fd)
{
	struct vb_verbs_port p;

	assert_int_equal(recv(fd, &p, sizeof(p), 0), sizeof(p));
	assert_int_equal(p.head.magic, VB_UMAD_MAGIC);
	assert_int_equal(p.head.kind, VERBS_PORT);
	assert_int_equal(p.slot, 0);
	return p;
}

static void command(const char *words)
{
	char error[VB_TOPO_ERROR], said[64];
	FILE *to = fmemopen(said, sizeof(said), "w");
	int fd = vb_fabricd_open(w.name);

	assert_true(fd >= 0);
	assert_int_equal(vb_fabricd_ask(fd, words, to, error), 0);
	fclose(to);
	close(fd);
}

static int attach_umad(const char *node)
{
	struct vb_fabric_place place = { 0 };
	struct vb_umad_where where;
	struct vb_umad_head head;
	unsigned none = 0;
	int fd;

	snprintf(place.fabric, sizeof(place.fabric), "%s", w.name);
	snprintf(place.node, sizeof(place.node), "%s", node);
	fd = vb_fabric_reach(&place);
	assert_true(fd >= 0);
	where = vb_fabric_where(UMAD_ATTACH, &place, 1);
	assert_int_equal(
		vb_fabric_ask(fd, &where, &head, sizeof(head), NULL, &none), 0);
	return fd;
}

static void watch__tells_the_port_and_its_changes(void **state)
{
	const struct vb_umad_head watch = { .magic = VB_UMAD_MAGIC,
					    .kind = UMAD_WATCH };
	int fd = attach_umad("H2"), other = vb_fabricd_open(w.name);
	struct vb_verbs_port p;
	char byte;

	assert_int_equal(send(fd, &watch, sizeof(watch), 0), sizeof(watch));
	p = next_port(fd);
	assert_int_equal(p.lid, 2);
	assert_int_equal(p.state, FAB_ACTIVE);
	/* watch again: there is no answer, as nothing has changed */
	assert_int_equal(send(fd, &watch, sizeof(watch), 0), sizeof(watch));
	command("unlink\nH2\n1");
	assert_int_equal(next_port(fd).state, FAB_DOWN);
	/* a program that has attached no port cannot watch one */
	assert_int_equal(send(other, &watch, sizeof(watch), 0), sizeof(watch));
	assert_int_equal(recv(other, &byte, 1, 0), 0);
	close(other);
	close(fd);
}

/* A node that joins later has an index beyond the nodes that were there when
 * the first program attached. */
static void verbs__a_host_joins_later(void **state)
{
	char error[VB_TOPO_ERROR], said[64] = "", command[32], node[16];
	struct program first, later[FREE_PORTS];
	int fd[FREE_PORTS];

	attach(&first, "H1");
	for (unsigned i = 0; i < FREE_PORTS; i++) {
		FILE *to = fmemopen(said, sizeof(said), "w");

		fd[i] = vb_fabricd_open(w.name);
		assert_true(fd[i] >= 0);
		snprintf(command, sizeof(command), "join\n%u", i + 1);
		assert_int_equal(vb_fabricd_ask(fd[i], command, to, error), 0);
		fclose(to);
		assert_int_equal(sscanf(said, "%15s", node), 1);
		attach(&later[i], node);
		assert_int_not_equal(later[i].port.node_guid,
				     first.port.node_guid);
		for (unsigned k = 0; k < i; k++)
			assert_int_not_equal(later[i].port.node_guid,
					     later[k].port.node_guid);
	}
	for (unsigned i = 0; i < FREE_PORTS; i++) {
		leave(&later[i]);
		close(fd[i]);
	}
	leave(&first);
}

static void verbs__switches_have_none(void **state)
{
	struct vb_fabric_place place = { .node = "S1" };
	struct vb_umad_where where;
	struct vb_verbs_port port;
	unsigned count = 0;
	int fd;

	snprintf(place.fabric, sizeof(place.fabric), "%s", w.name);
	fd = vb_fabric_reach(&place);
	assert_true(fd >= 0);
	where = vb_fabric_where(VERBS_ATTACH, &place, 0);
	assert_int_equal(
		vb_fabric_ask(fd, &where, &port, sizeof(port), NULL, &count),
		-ENODEV);
	close(fd);
}

/* Programs of one host can ask for the slot that they have there already. */
static void verbs__a_slot_that_is_asked_for(void **state)
{
	vb_time until = vb_clock_read() + PATIENCE;
	struct program one, two, other;
	int fds[VERBS_FDS], rc;

	attach_as(&one, "H1", 417);
	assert_int_equal(one.port.slot, 417);
	assert_int_equal(ask_for(&two, "H1", 417, fds), -EADDRINUSE);
	assert_int_equal(ask_for(&two, "H1", VB_SLOTS, fds), -EINVAL);
	attach(&two, "H1");
	assert_int_not_equal(two.port.slot, 417);
	attach_as(&other, "H2", 417);
	assert_int_equal(other.port.slot, 417);
	leave(&one);
	/* The fabric frees the slot once it has noticed the program's end. */
	do
		rc = ask_for(&one, "H1", 417, fds);
	while (rc == -EADDRINUSE && vb_clock_read() < until);
	assert_int_equal(rc, 0);
	vb_fdmail_close(fds, VERBS_FDS);
	close(one.control);
	leave(&two);
	leave(&other);
}

/* A program with two ports of an adapter has one slot at both, because its
 * queue pairs have one number. */
static void verbs__one_slot_at_two_ports(void **state)
{
	struct program first, second, other;
	int fds[VERBS_FDS];

	attach_as(&first, "H1", 417);
	at_port = 2;
	attach_as(&second, "H1", 417);
	assert_int_equal(ask_for(&other, "H1", 417, fds), -EADDRINUSE);
	leave(&first);
	assert_int_equal(ask_for(&other, "H1", 417, fds), -EADDRINUSE);
	/* a program that asks for no slot gets one that is free at all ports */
	attach_as(&first, "H1", 418);
	at_port = 1;
	for (unsigned i = 0; i < 5; i++) {
		attach(&other, "H1");
		assert_int_not_equal(other.port.slot, 417);
		assert_int_not_equal(other.port.slot, 418);
		leave(&other);
	}
	leave(&first);
	leave(&second);
}

static void verbs__places_differ(void **state)
{
	struct program one, two, other;

	attach(&one, "H1");
	attach(&two, "H1");
	attach(&other, "H2");
	assert_true(one.port.place);
	assert_true(one.port.place == two.port.place);
	assert_true(one.port.place != other.port.place);
	leave(&one);
	leave(&two);
	leave(&other);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, start, finish)
	const struct CMUnitTest tests[] = {
		TEST(verbs__one_slot_at_two_ports),
		TEST(verbs__frames_cross_the_switch),
		TEST(verbs__two_of_one_adapter),
		TEST(verbs__only_what_a_program_may_send),
		TEST(verbs__a_broken_ring_ends_its_program),
		TEST(verbs__one_that_stops),
		TEST(verbs__a_slow_one_loses_nothing),
		TEST(verbs__groups),
		TEST(verbs__a_host_joins_later),
		TEST(watch__tells_the_port_and_its_changes),
		TEST(verbs__switches_have_none),
		TEST(verbs__a_slot_that_is_asked_for),
		TEST(verbs__places_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
