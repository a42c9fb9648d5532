/* SPDX-License-Identifier: BSD-2-Clause */
/* Which echo requests the broker answers, and how many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "broker/echo.h"
#include "wire/ipc.h"
#include "wire/mad.h"

#define SQPN (3u << VB_QPN_BITS | 2)

static uint8_t payload[600];
static struct vb_gid host = { { [10] = 0xff, [11] = 0xff, [12] = 10 } };
static struct vb_gid group = { { 0xff, 0x0e } };

static struct vb_ib_pkt question(uint32_t back)
{
	const struct vb_echo ask = {
		.kind = ECHO_ASK, .token = 5, .number = 9, .bytes = back
	};

	vb_echo_put(payload, sizeof(payload), &ask);
	return (struct vb_ib_pkt){ .bth = { .opcode = 0x64,
					    .dqpn = VB_GSI_QPN },
				   .deth = { VB_GSI_QKEY, SQPN },
				   .payload = payload,
				   .payload_bytes = sizeof(payload) };
}

static bool asked(const struct vb_ib_pkt *pkt, const struct vb_gid *to,
		  struct vb_echo *answer, uint32_t *len)
{
	const struct vb_frame f = { .src = &host, .dst = to, .ifindex = 1 };
	uint32_t qpn;

	return vb_echo_is_asked(&f, pkt, answer, len, &qpn) && qpn == SQPN;
}

static void question__has_an_answer(void **state)
{
	struct vb_ib_pkt pkt = question(80);
	struct vb_echo answer;
	uint32_t len;

	assert_true(asked(&pkt, &host, &answer, &len));
	assert_int_equal(len, 80);
	assert_int_equal(answer.kind, ECHO_ANSWER);
	assert_int_equal(answer.token, 5);
	assert_int_equal(answer.number, 9);
	assert_int_equal(answer.bytes, sizeof(payload));
	assert_true(vb_echo_mtu(1) >= 1500); /* the loopback interface's MTU */
}

static void packet__of_another_kind_has_none(void **state)
{
	struct vb_ib_pkt pkt = question(80);
	struct vb_echo answer;
	uint32_t len;

	assert_false(asked(&pkt, &group, &answer, &len));
	pkt.deth.qkey++;
	assert_false(asked(&pkt, &host, &answer, &len));
	pkt = question(80);
	pkt.bth.dqpn = 2;
	assert_false(asked(&pkt, &host, &answer, &len));
	pkt = question(80);
	pkt.bth.opcode = 0x04;
	assert_false(asked(&pkt, &host, &answer, &len));
	/* the broker must not answer an echo from a broker's queue pair,
	 * because that would be answered in turn for ever */
	pkt = question(80);
	pkt.deth.sqpn = VB_GSI_QPN;
	assert_false(asked(&pkt, &host, &answer, &len));
	pkt = question(80);
	payload[7] = ECHO_ANSWER;
	assert_false(asked(&pkt, &host, &answer, &len));
	pkt = question(sizeof(payload) + 4);
	assert_false(asked(&pkt, &host, &answer, &len));
}

/* Sends echo requests from @sources addresses in turn. Returns how many are
 * answered. */
static unsigned answers(struct vb_echo_limit *l, unsigned sources, vb_time from,
			vb_time until, vb_time step)
{
	struct vb_gid source = host;
	unsigned n = 0, next = 0;

	for (vb_time t = from; t < until; t += step) {
		source.raw[14] = (uint8_t)(next >> 8);
		source.raw[15] = (uint8_t)next;
		next = (next + 1) % sources;
		n += vb_echo_may(l, &source, t);
	}
	return n;
}

static void answers__are_few(void **state)
{
	const vb_time start = 1000 * VB_SEC;
	struct vb_echo_limit l = { 0 };
	unsigned n;

	/* During a flood the broker answers one burst, and then at its rate. */
	n = answers(&l, 1000, start, start + VB_SEC, 100 * VB_USEC);
	assert_in_range(n, VB_ECHO_RATE, VB_ECHO_RATE + VB_ECHO_BURST);
	n = answers(&l, 1000, start + VB_SEC, start + 2 * VB_SEC,
		    100 * VB_USEC);
	assert_in_range(n, VB_ECHO_RATE - 1, VB_ECHO_RATE + 1);
	/* After a pause the broker answers one burst again, and no more. */
	n = answers(&l, 1000, start + 100 * VB_SEC,
		    start + 100 * VB_SEC + 100 * VB_USEC, VB_USEC / 10);
	assert_int_equal(n, VB_ECHO_BURST);
}

/* The limit for one address is lower than that for all addresses, so that a
 * host which asks all the time leaves answers for others. */
static void answers__to_one_source_are_fewer(void **state)
{
	const vb_time start = 1000 * VB_SEC;
	struct vb_gid other = host;
	struct vb_echo_limit l = { 0 };
	unsigned n;

	n = answers(&l, 1, start, start + VB_SEC, 100 * VB_USEC);
	assert_in_range(n, VB_ECHO_SOURCE_RATE,
			VB_ECHO_SOURCE_RATE + VB_ECHO_SOURCE_BURST);
	/* this source has another entry in the table of sources */
	other.raw[15] = 77;
	n = 0;
	for (unsigned i = 0; i < VB_ECHO_SOURCE_BURST; i++)
		n += vb_echo_may(&l, &other, start + VB_SEC);
	assert_int_equal(n, VB_ECHO_SOURCE_BURST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(question__has_an_answer),
		cmocka_unit_test(packet__of_another_kind_has_none),
		cmocka_unit_test(answers__are_few),
		cmocka_unit_test(answers__to_one_source_are_fewer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
