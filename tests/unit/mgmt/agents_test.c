/* SPDX-License-Identifier: BSD-2-Clause */
/* The agents of two ports, which send to each other over a queue that may lose
 * MADs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "mgmt/agents.h"
#include "mgmt/rmpp.h"
#include "wire/smp.h"

#define OPENIB	  0x001405
#define MOST	  4096
#define GET_TABLE 0x12

struct flying {
	unsigned to;
	uint8_t mad[VB_MAD_BYTES];
};

/* The MADs that a program got, with the fields of the last one. */
struct got {
	unsigned count;
	uint32_t agent, status;
	uint16_t lid;
	size_t len;
	uint8_t *bytes; /* bytes of the last MAD that the program got */
};

struct world {
	struct vb_timers timers;
	/* The agents of two ports: port[0] has LID 1, port[1] has LID 2. */
	struct vb_agents *port[2];
	struct side {
		struct world *w;
		unsigned me;
	} side[2];
	struct flying *queue;
	unsigned first, count, sent;
	unsigned drop; /* number of the next MADs that the network loses */
	/* MADs that each program got, by the program's number */
	struct got got[4];
	vb_time now;
};

static void transmit(void *arg, unsigned qpn, const struct vb_mad_addr *to,
		     const uint8_t mad[VB_MAD_BYTES], vb_time now)
{
	const struct side *s = arg;
	struct world *w = s->w;
	struct flying *f;

	assert_int_equal(qpn, mad[1] == 1 || mad[1] == 0x81 ? 0 : 1);
	w->sent++;
	if (w->drop > 0) {
		w->drop--;
		return;
	}
	f = &w->queue[(w->first + w->count++) % MOST];
	assert_true(w->count <= MOST);
	f->to = to->lid - 1u;
	memcpy(f->mad, mad, VB_MAD_BYTES);
}

static void deliver(void *arg, void *client, const struct vb_mad_delivery *d)
{
	struct got *g = client;

	g->count++;
	g->agent = d->agent;
	g->status = d->status;
	g->lid = d->addr->lid;
	g->len = d->len;
	free(g->bytes);
	g->bytes = malloc(d->len);
	memcpy(g->bytes, d->bytes, d->len);
}

static void start(struct world *w)
{
	memset(w, 0, sizeof(*w));
	w->queue = calloc(MOST, sizeof(*w->queue));
	vb_timers_init(&w->timers);
	for (unsigned i = 0; i < 2; i++) {
		struct vb_agents_ops ops = { .transmit = transmit,
					     .deliver = deliver,
					     .transmit_arg = &w->side[i] };

		w->side[i].w = w;
		w->side[i].me = i;
		w->port[i] = vb_agents_create(&ops, &w->timers);
	}
}

static void finish(struct world *w)
{
	for (unsigned i = 0; i < 2; i++)
		vb_agents_destroy(w->port[i]);
	for (unsigned i = 0; i < VB_COUNT(w->got); i++)
		free(w->got[i].bytes);
	assert_int_equal(vb_timers_next(&w->timers), VB_NEVER);
	vb_timers_fini(&w->timers);
	free(w->queue);
}

/* Deliver the MADs that are under way. Returns how many were for no agent. */
static unsigned carry(struct world *w)
{
	unsigned unwanted = 0;

	while (w->count > 0) {
		struct flying f = w->queue[w->first];
		const struct vb_mad_addr from = { .lid = (uint16_t)(2 - f.to),
						  .qpn = 1 };

		w->first = (w->first + 1) % MOST;
		w->count--;
		unwanted +=
			!vb_agents_hear(w->port[f.to], &from, f.mad, w->now);
	}
	return unwanted;
}

/* Run the timers that end until @until, each at its own time. */
static void pass(struct world *w, vb_time until)
{
	struct vb_timer *t;

	carry(w);
	while (vb_timers_next(&w->timers) <= until) {
		w->now = vb_timers_next(&w->timers);
		while ((t = vb_timers_pop(&w->timers, w->now)))
			vb_agents_expire(t, w->now);
		carry(w);
	}
	w->now = until;
}

static int serve(struct world *w, unsigned port, unsigned client, uint8_t class,
		 uint32_t oui, unsigned method, uint8_t rmpp)
{
	struct vb_agent_wish wish = { .class = class,
				      .class_version = 1,
				      .rmpp_version = rmpp,
				      .oui = oui };

	if (method)
		wish.methods[method / 64] = 1ull << method % 64;
	return vb_agents_register(w->port[port], &w->got[client], &wish);
}

/* A program at port[@port] sends a MAD to the other port. */
static int say(struct world *w, unsigned port, unsigned client, int agent,
	       uint8_t *bytes, size_t len, unsigned timeout_ms,
	       unsigned retries)
{
	const struct vb_mad_send s = {
		.agent = (uint32_t)agent,
		.to = { .lid = (uint16_t)(2 - port), .qpn = 1 },
		.timeout_ms = timeout_ms,
		.retries = retries,
		.bytes = bytes,
		.len = len,
	};

	return vb_agents_send(w->port[port], &w->got[client], &s, w->now);
}

static void make_mad(uint8_t *mad, uint8_t class, unsigned method, uint64_t tid,
		     uint32_t oui)
{
	memset(mad, 0, VB_MAD_BYTES);
	mad[0] = 1;
	mad[1] = class;
	mad[2] = 1;
	mad[3] = (uint8_t)method;
	vb_store_be(mad + 8, tid, 8);
	vb_store_be(mad + 37, oui, 3);
}

static void agents__request_and_answer(void **state)
{
	const uint64_t tid = 0x1122334455667788;
	struct world w;
	uint8_t mad[VB_MAD_BYTES];
	int client, server;

	start(&w);
	client = serve(&w, 0, 0, MAD_CLASS_PERF, 0, 0, 0);
	server = serve(&w, 1, 1, MAD_CLASS_PERF, 0, MAD_GET, 0);
	assert_int_equal(client, 0);
	assert_int_equal(server, 0);
	make_mad(mad, MAD_CLASS_PERF, MAD_GET, tid, 0);
	mad[100] = 42;
	assert_int_equal(say(&w, 0, 0, client, mad, sizeof(mad), 100, 3), 0);
	assert_int_equal(carry(&w), 0);
	assert_int_equal(w.got[1].count, 1);
	assert_int_equal(w.got[1].lid, 1);
	assert_int_equal(w.got[1].len, VB_MAD_BYTES);
	assert_int_equal(w.got[1].bytes[100], 42);
	/* The lower half of the transaction ID on the wire is the program's. */
	assert_int_equal(vb_load_be(w.got[1].bytes + 12, 4), 0x55667788);
	w.got[1].bytes[3] = MAD_GET_RESP;
	assert_int_equal(
		say(&w, 1, 1, server, w.got[1].bytes, VB_MAD_BYTES, 0, 0), 0);
	assert_int_equal(carry(&w), 0);
	assert_int_equal(w.got[0].count, 1);
	assert_int_equal(w.got[0].status, 0);
	assert_int_equal(vb_load_be(w.got[0].bytes + 8, 8), tid);
	/* The request has its answer, so a second answer is dropped. */
	assert_int_equal(
		say(&w, 1, 1, server, w.got[1].bytes, VB_MAD_BYTES, 0, 0), 0);
	assert_int_equal(carry(&w), 1);
	pass(&w, VB_SEC);
	assert_int_equal(w.got[0].count, 1);
	finish(&w);
}

/* The method of all their messages is Send, and both sides use the ID of the
 * one that began. */
static void agents__connection_managers_keep_their_ids(void **state)
{
	const uint64_t tid = 0x1122334455667788;
	struct world w;
	uint8_t mad[VB_MAD_BYTES];
	int client;

	start(&w);
	client = serve(&w, 0, 0, VB_MAD_CLASS_CM, 0, MAD_SEND, 0);
	(void)serve(&w, 1, 1, VB_MAD_CLASS_CM, 0, MAD_SEND, 0);
	make_mad(mad, VB_MAD_CLASS_CM, MAD_SEND, tid, 0);
	assert_int_equal(say(&w, 0, 0, client, mad, sizeof(mad), 0, 0), 0);
	assert_int_equal(carry(&w), 0);
	assert_int_equal(w.got[1].count, 1);
	assert_int_equal(vb_load_be(w.got[1].bytes + 8, 8), tid);
	finish(&w);
}

static void agents__timeout_comes_after_all_repeats(void **state)
{
	struct world w;
	uint8_t mad[VB_MAD_BYTES];
	int client;

	start(&w);
	client = serve(&w, 0, 0, MAD_CLASS_PERF, 0, 0, 0);
	make_mad(mad, MAD_CLASS_PERF, MAD_GET, 99, 0);
	assert_int_equal(say(&w, 0, 0, client, mad, sizeof(mad), 200, 3), 0);
	pass(&w, 800 * VB_MSEC - 1);
	assert_int_equal(w.sent, 4);
	assert_int_equal(w.got[0].count, 0);
	pass(&w, 800 * VB_MSEC);
	assert_int_equal(w.sent, 4);
	assert_int_equal(w.got[0].count, 1);
	assert_int_equal(w.got[0].status, 110);
	assert_int_equal(w.got[0].len, 24);
	assert_int_equal(vb_load_be(w.got[0].bytes + 8, 8), 99);
	finish(&w);
}

static void agents__one_owner_for_each_method(void **state)
{
	struct world w;

	start(&w);
	assert_int_equal(serve(&w, 0, 0, 1, 0, MAD_TRAP, 0), 0);
	assert_int_equal(serve(&w, 0, 1, 1, 0, MAD_TRAP, 0), -EPERM);
	assert_int_equal(serve(&w, 0, 1, 1, 0, MAD_GET, 0), 0);
	assert_int_equal(serve(&w, 0, 1, 0x81, 0, MAD_TRAP, 0), 1);
	/* An agent without methods (mask 0) conflicts with no other agent. */
	assert_int_equal(serve(&w, 0, 1, 1, 0, 0, 0), 2);
	/* In the classes that have an OUI, the OUI distinguishes agents. */
	assert_int_equal(serve(&w, 0, 2, 0x32, OPENIB, 127, 0), 0);
	assert_int_equal(serve(&w, 0, 2, 0x32, 0x2c9, 127, 0), 1);
	assert_int_equal(serve(&w, 0, 3, 0x32, OPENIB, 127, 0), -EPERM);
	assert_int_equal(serve(&w, 0, 3, 0x32, 0, 127, 0), -EINVAL);
	/* The other port has its own table of agents. */
	assert_int_equal(serve(&w, 1, 3, 1, 0, MAD_TRAP, 0), 0);
	/* RMPP of a class that has no RMPP header is refused. */
	assert_int_equal(serve(&w, 0, 3, MAD_CLASS_PERF, 0, 0, 1), -EINVAL);
	/* After unregistering, the methods and the agent's number are free. */
	assert_int_equal(vb_agents_unregister(w.port[0], &w.got[0], 0), 0);
	assert_int_equal(vb_agents_unregister(w.port[0], &w.got[0], 0),
			 -EINVAL);
	assert_int_equal(serve(&w, 0, 3, 1, 0, MAD_TRAP, 0), 0);
	/* When a program ends, the port removes all agents of that program. */
	vb_agents_forget(w.port[0], &w.got[2]);
	assert_int_equal(serve(&w, 0, 3, 0x32, OPENIB, 127, 0), 1);
	for (unsigned i = 3; i < 32; i++)
		assert_int_equal(serve(&w, 0, 1, 0x09, 0, 0, 0), i);
	assert_int_equal(serve(&w, 0, 1, 0x09, 0, 0, 0), -ENOSPC);
	finish(&w);
}

static void agents__vendors_are_told_apart(void **state)
{
	struct world w;
	uint8_t mad[VB_MAD_BYTES];
	int client;

	start(&w);
	client = serve(&w, 0, 0, 0x32, OPENIB, 0, 0);
	assert_int_equal(serve(&w, 1, 1, 0x32, OPENIB, 1, 0), 0);
	assert_int_equal(serve(&w, 1, 2, 0x32, 0x2c9, 1, 0), 0);
	make_mad(mad, 0x32, 1, 5, 0x2c9);
	assert_int_equal(say(&w, 0, 0, client, mad, sizeof(mad), 0, 0), 0);
	assert_int_equal(carry(&w), 0);
	assert_int_equal(w.got[1].count, 0);
	assert_int_equal(w.got[2].count, 1);
	make_mad(mad, 0x32, 1, 5, 0x123456);
	assert_int_equal(say(&w, 0, 0, client, mad, sizeof(mad), 0, 0), 0);
	assert_int_equal(carry(&w), 1);
	/* a request whose method 2 the agent does not serve */
	make_mad(mad, 0x32, 2, 5, OPENIB);
	assert_int_equal(say(&w, 0, 0, client, mad, sizeof(mad), 0, 0), 0);
	assert_int_equal(carry(&w), 1);
	finish(&w);
}

static void agents__what_a_program_may_not_send(void **state)
{
	struct world w;
	uint8_t mad[VB_MAD_BYTES], *big = calloc(1, VB_RMPP_MOST + 1);
	int perf, smp, sa;

	start(&w);
	perf = serve(&w, 0, 0, MAD_CLASS_PERF, 0, 0, 0);
	smp = serve(&w, 0, 0, 0x81, 0, 0, 0);
	sa = serve(&w, 0, 0, MAD_CLASS_SA, 0, 0, 1);
	make_mad(mad, MAD_CLASS_PERF, MAD_GET, 5, 0);
	assert_int_equal(say(&w, 0, 0, smp, mad, sizeof(mad), 0, 0), -EINVAL);
	assert_int_equal(say(&w, 0, 0, 7, mad, sizeof(mad), 0, 0), -EINVAL);
	assert_int_equal(say(&w, 0, 1, perf, mad, sizeof(mad), 0, 0), -EINVAL);
	assert_int_equal(say(&w, 0, 0, perf, mad, 23, 0, 0), -EINVAL);
	assert_int_equal(say(&w, 0, 0, perf, big, 257, 0, 0), -EINVAL);
	/* An agent of class 0x81 may answer class 1: opensm does so. */
	make_mad(mad, 1, MAD_GET_RESP, 5, 0);
	assert_int_equal(say(&w, 0, 0, smp, mad, sizeof(mad), 0, 0), 0);
	make_mad(big, MAD_CLASS_SA, 0x92, 5, 0);
	big[24] = 1;
	big[25] = RMPP_DATA;
	big[26] = VB_RMPP_ACTIVE;
	assert_int_equal(say(&w, 0, 0, sa, big, VB_RMPP_MOST + 1, 0, 0),
			 -EMSGSIZE);
	assert_int_equal(carry(&w), 1);
	assert_int_equal(w.sent, 1);
	free(big);
	finish(&w);
}

/* Transfer a table of @bytes by RMPP, with losses; the server is client 1. */
static void table(size_t bytes, unsigned lose_after)
{
	struct world w;
	uint8_t mad[VB_MAD_BYTES], *answer = calloc(1, 56 + bytes + 256);
	int client, server;

	start(&w);
	client = serve(&w, 0, 0, MAD_CLASS_SA, 0, 0, 1);
	server = serve(&w, 1, 1, MAD_CLASS_SA, 0, GET_TABLE, 1);
	make_mad(mad, MAD_CLASS_SA, GET_TABLE, 0xabcdef, 0);
	assert_int_equal(say(&w, 0, 0, client, mad, sizeof(mad), 10000, 3), 0);
	assert_int_equal(carry(&w), 0);
	assert_int_equal(w.got[1].count, 1);
	memcpy(answer, w.got[1].bytes, VB_MAD_BYTES);
	answer[3] = GET_TABLE | 0x80;
	answer[24] = 1;
	answer[25] = RMPP_DATA;
	answer[26] = VB_RMPP_ACTIVE;
	for (size_t i = 0; i < bytes; i++)
		answer[56 + i] = (uint8_t)(i ^ i >> 8);
	w.drop = lose_after;
	assert_int_equal(say(&w, 1, 1, server, answer, 56 + bytes, 0, 0), 0);
	pass(&w, 5 * VB_SEC);
	assert_int_equal(w.got[0].count, 1);
	assert_int_equal(w.got[0].status, 0);
	assert_int_equal(w.got[0].len, 56 + bytes);
	assert_int_equal(vb_load_be(w.got[0].bytes + 8, 8), 0xabcdef);
	assert_memory_equal(w.got[0].bytes + 56, answer + 56, bytes);
	/* a successful transfer is not reported to the sending program */
	assert_int_equal(w.got[1].count, 1);
	pass(&w, 60 * VB_SEC);
	free(answer);
	finish(&w);
}

static void agents__tables_by_rmpp(void **state)
{
	for (size_t bytes = 0; bytes < 100000; bytes += 1 + bytes / 3)
		table(bytes, 0);
	table(50000, 1);
}

static void agents__request_by_rmpp(void **state)
{
	struct world w;
	size_t len = 40 + 5000;
	uint8_t *message = calloc(1, len);
	int client;

	start(&w);
	client = serve(&w, 0, 0, 0x33, OPENIB, 0, 1);
	assert_int_equal(serve(&w, 1, 1, 0x33, OPENIB, MAD_GET, 1), 0);
	make_mad(message, 0x33, MAD_GET, 1, OPENIB);
	message[24] = 1;
	message[25] = RMPP_DATA;
	message[26] = VB_RMPP_ACTIVE;
	message[len - 1] = 9;
	assert_int_equal(say(&w, 0, 0, client, message, len, 500, 0), 0);
	carry(&w);
	assert_int_equal(w.got[1].count, 1);
	assert_int_equal(w.got[1].len, len);
	assert_int_equal(w.got[1].bytes[len - 1], 9);
	/* No agent answers: the time-out begins when the request has
	 * arrived. */
	pass(&w, 499 * VB_MSEC);
	assert_int_equal(w.got[0].count, 0);
	pass(&w, 501 * VB_MSEC);
	assert_int_equal(w.got[0].status, 110);
	pass(&w, 60 * VB_SEC);
	free(message);
	finish(&w);
}

/* The peer ends while a table is being sent to it. */
static void agents__table_that_nobody_takes(void **state)
{
	struct world w;
	size_t len = 56 + 100000;
	uint8_t *message = calloc(1, len);
	int server;

	start(&w);
	server = serve(&w, 1, 1, MAD_CLASS_SA, 0, GET_TABLE, 1);
	make_mad(message, MAD_CLASS_SA, GET_TABLE | 0x80, 1, 0);
	message[26] = VB_RMPP_ACTIVE;
	w.drop = 1000000;
	assert_int_equal(say(&w, 1, 1, server, message, len, 0, 0), 0);
	pass(&w, 60 * VB_SEC);
	assert_int_equal(w.got[1].count, 1);
	assert_int_equal(w.got[1].status, 110);
	/* sent: the first segments, their repetitions, and an ABORT */
	assert_int_equal(w.sent, VB_RMPP_RETRIES + 2);
	free(message);
	finish(&w);
}

/* Returns a long request of @len bytes and class 0x33, which @client begins. */
static uint8_t *begin_long_request(struct world *w, int client, size_t len)
{
	uint8_t *message = calloc(1, len);

	make_mad(message, 0x33, MAD_GET, 1, OPENIB);
	message[24] = 1;
	message[25] = RMPP_DATA;
	message[26] = VB_RMPP_ACTIVE;
	assert_int_equal(say(w, 0, 0, client, message, len, 500, 0), 0);
	return message;
}

/* Deliver to @port an ACK of the other port, for @mad as it was on the wire. */
static void acknowledge(struct world *w, unsigned port, const uint8_t *mad,
			uint32_t segment, uint32_t window)
{
	const struct vb_mad_addr from = { .lid = (uint16_t)(2 - port),
					  .qpn = 1 };
	const struct vb_rmpp h = { .version = 1,
				   .type = RMPP_ACK,
				   .flags = VB_RMPP_ACTIVE,
				   .segment = segment,
				   .length = window };
	uint8_t ack[VB_MAD_BYTES];

	memcpy(ack, mad, sizeof(ack));
	ack[3] ^= 0x80;
	vb_rmpp_put(ack, &h);
	assert_true(vb_agents_hear(w->port[port], &from, ack, w->now));
}

/* A peer that accepts a segment and closes the window for ever. */
static void agents__closed_window_ends(void **state)
{
	struct world w;
	uint8_t *message;

	start(&w);
	message = begin_long_request(&w, serve(&w, 0, 0, 0x33, OPENIB, 0, 1),
				     5000);
	w.now += VB_RMPP_PATIENCE / 2;
	acknowledge(&w, 0, w.queue[0].mad, 1, 1);
	/* The ACK starts the transfer's time-out again. */
	assert_int_equal(vb_timers_next(&w.timers), w.now + VB_RMPP_PATIENCE);
	pass(&w, 60 * VB_SEC);
	assert_int_equal(w.got[0].count, 1);
	assert_int_equal(w.got[0].status, 110);
	assert_int_equal(w.sent, 2); /* sent: one segment and an ABORT */
	free(message);
	finish(&w);
}

/* The request's last ACK comes twice, before the answer to the request. */
static void agents__repeated_ack_is_no_answer(void **state)
{
	struct world w;
	uint8_t *message, answer[VB_MAD_BYTES];
	int server;

	start(&w);
	server = serve(&w, 1, 1, 0x33, OPENIB, MAD_GET, 1);
	message = begin_long_request(&w, serve(&w, 0, 0, 0x33, OPENIB, 0, 1),
				     5000);
	carry(&w);
	assert_int_equal(w.got[1].count, 1);
	memcpy(answer, w.got[1].bytes, sizeof(answer));
	acknowledge(&w, 0, answer, 24, 88);
	assert_int_equal(w.got[0].count, 0);
	assert_int_equal(w.count, 0); /* the second ACK causes no MAD */
	answer[3] |= 0x80;
	answer[26] = 0;
	assert_int_equal(say(&w, 1, 1, server, answer, sizeof(answer), 0, 0),
			 0);
	carry(&w);
	assert_int_equal(w.got[0].count, 1);
	assert_int_equal(w.got[0].status, 0);
	/* An ACK of answer segments is no segment of the request. */
	acknowledge(&w, 1, answer, 1, 65);
	assert_int_equal(w.count, 0);
	pass(&w, 60 * VB_SEC);
	free(message);
	finish(&w);
}

/* The end of a program leaves nothing behind, whatever is under way. */
static void agents__program_ends(void **state)
{
	struct world w;
	uint8_t mad[VB_MAD_BYTES];
	int client;

	start(&w);
	client = serve(&w, 0, 0, MAD_CLASS_SA, 0, 0, 1);
	make_mad(mad, MAD_CLASS_SA, MAD_GET, 5, 0);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(
			say(&w, 0, 0, client, mad, sizeof(mad), 1000, 1), 0);
	vb_agents_forget(w.port[0], &w.got[0]);
	assert_int_equal(vb_timers_next(&w.timers), VB_NEVER);
	assert_int_equal(carry(&w), 10);
	assert_int_equal(w.got[0].count, 0);
	finish(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agents__request_and_answer),
		cmocka_unit_test(agents__connection_managers_keep_their_ids),
		cmocka_unit_test(agents__timeout_comes_after_all_repeats),
		cmocka_unit_test(agents__one_owner_for_each_method),
		cmocka_unit_test(agents__vendors_are_told_apart),
		cmocka_unit_test(agents__what_a_program_may_not_send),
		cmocka_unit_test(agents__tables_by_rmpp),
		cmocka_unit_test(agents__request_by_rmpp),
		cmocka_unit_test(agents__table_that_nobody_takes),
		cmocka_unit_test(agents__closed_window_ends),
		cmocka_unit_test(agents__repeated_ack_is_no_answer),
		cmocka_unit_test(agents__program_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
