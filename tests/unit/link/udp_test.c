/* SPDX-License-Identifier: BSD-2-Clause */
/* The UDP link on real sockets, in network namespaces of the test's own. */
#include "udp_fixture.h"

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(udp_owns__what_is_ours),
	cmocka_unit_test(udp_socket__shares_the_port),
	cmocka_unit_test(udp_socket__port_of_another_program),
	cmocka_unit_test(udp_is_roce__everything_else),
	cmocka_unit_test(udp_steer__top_bits_pick_the_socket),
	cmocka_unit_test(udp_route__a_port_for_each_slot),
	cmocka_unit_test(udp_route__address_of_nobody),
	cmocka_unit_test(udp_route__out_of_descriptors),
	cmocka_unit_test(udp_send__one_frame),
	cmocka_unit_test(udp_send__a_batch_is_joined),
	cmocka_unit_test(udp_send__lengths_that_go_up_and_down),
	cmocka_unit_test(udp_send__two_slots_in_one_flush),
	cmocka_unit_test(udp_send__more_than_recv_takes_at_once),
	cmocka_unit_test(udp_send__no_way_there),
	cmocka_unit_test(udp_recv__rubbish_is_counted),
	cmocka_unit_test(udp_send__identification_on_the_wire),
	cmocka_unit_test(udp_send__larger_than_the_mtu),
	cmocka_unit_test(udp_send__a_congested_interface),
	cmocka_unit_test(udp_send__joined_is_refused),
	cmocka_unit_test(udp_join__is_not_inherited),
	cmocka_unit_test(udp_send__ipv6_switched_off),
	cmocka_unit_test(udp_open__ipv4_only),
};

int main(void)
{
	if (!netns_enter())
		return NETNS_SKIP;
	return cmocka_run_group_tests(tests, setup_far, NULL);
}
