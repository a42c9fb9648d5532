/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Misuse of verbs, one case in each function: each misuse must end in the error
 * that the specification names, and have no other effect. Each case has two new
 * queue pairs of this process: "a" sends requests, "b" answers them. After each
 * case both are connected anew and must still work. This file has the list of
 * cases and runs them.
 *
 *	bad_input_test [-d DEVICE] [-6] [-a ADDRESS] [CASE]
 *
 * -a: the device is an RNIC, and this is its IP address.
 */
#include "bad_input.h"

#define CASE(name)                                                             \
	{                                                                      \
#name, name, false                                             \
	}
/* Cases that an RNIC does not support, or that need a connection which a child
 * of fork makes. */
#define NO_RNIC(name)                                                          \
	{                                                                      \
#name, name, true                                              \
	}

static const struct {
	const char *name;
	void (*run)(void);
	bool no_rnic;
} cases[] = {
	CASE(send_in_wrong_state),
	CASE(receive_in_reset),
	CASE(post_in_error_is_flushed),
	CASE(too_many_sges),
	CASE(too_much_inline),
	CASE(unknown_operation),
	CASE(too_many_requests),
	CASE(lkey_of_another_pd),
	CASE(rkey_of_another_pd),
	CASE(lkey_of_nothing),
	CASE(local_range),
	CASE(address_that_wraps),
	CASE(read_into_read_only),
	CASE(rkey_after_deregistration),
	CASE(write_one_past),
	CASE(write_one_before),
	CASE(long_write_one_past),
	CASE(read_one_past),
	CASE(remote_address_that_wraps),
	CASE(unaligned_atomic),
	CASE(atomic_outside),
	CASE(region_without_write),
	CASE(region_without_read),
	CASE(region_without_atomic),
	CASE(qp_without_write),
	CASE(qp_without_read),
	CASE(qp_without_atomic),
	CASE(remote_write_needs_local_write),
	CASE(receive_too_small),
	CASE(receive_with_bad_lkey),
	CASE(nobody_receives),
	CASE(peer_is_gone),
	CASE(rest_is_flushed),
	CASE(unmapped_source),
	CASE(unmapped_inline_source),
	CASE(unmapped_sink),
	CASE(unmapped_receive),
	CASE(unmapped_write_target),
	CASE(unmapped_read_target),
	CASE(unmapped_atomic_target),
	CASE(read_only_page_as_target),
	CASE(destroying_what_is_in_use),
	NO_RNIC(bad_moves),
	CASE(impossible_creations),
	CASE(longest_message),
	CASE(receive_only),
	CASE(destroyed_by_two_threads),
	CASE(child_tidies_up),
	NO_RNIC(child_opens_its_own),
	CASE(cancelled_poller),
	CASE(cancelled_poster),
	CASE(cancelled_in_any_verb),
	NO_RNIC(child_and_xrc_domain),
};

/* After a refused call, other queue pairs must still exchange messages. */
void still_works(void)
{
	struct ibv_sge sge = piece(&a, 0, 4);
	struct ibv_send_wr wr =
		rdma(IBV_WR_RDMA_WRITE, &sge, at(&b, 0), b.mr->rkey);
	double until = seconds() + WAIT;

	connected();
	memcpy(a.memory + BYTES, "word", 4);
	refused(post(&a, &wr), 0, "post afterwards");
	ends_in(&a, IBV_WC_SUCCESS);
	while (rnic && memcmp(b.memory + BYTES, "word", 4) && seconds() < until)
		/* wait until the peer's memory has the bytes of the request */
		usleep(1000);
	if (memcmp(b.memory + BYTES, "word", 4))
		wrong("the data afterwards");
}

void in_fresh_sides(void (*run)(void))
{
	enum ibv_mtu mtu = device.mtu;

	make_side(&a, RC_ALL_ACCESS);
	make_side(&b, RC_ALL_ACCESS);
	run();
	drop_side(&a);
	drop_side(&b);
	device.mtu = mtu;
}

int main(int argc, char **argv)
{
	unsigned failed = 0;
	int c;

	while ((c = getopt(argc, argv, "a:d:46")) != -1) {
		if (c == 'a')
			rnic = true, stream_begin(optarg);
		else if (c == 'd')
			options.device = optarg;
		else if (c == '4' || c == '6')
			options.family = c - '0';
		else
			return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	rc_open(&device, &options);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (argv[optind] && strcmp(argv[optind], cases[i].name))
			continue;
		if (rnic && cases[i].no_rnic)
			continue;
		problem = NULL;
		in_fresh_sides(cases[i].run);
		in_fresh_sides(still_works);
		if (problem)
			printf("not ok %s: %s\n", cases[i].name, problem);
		else
			printf("ok %s\n", cases[i].name);
		failed += !!problem;
	}
	rc_close(&device);
	return failed ? 1 : 0;
}
