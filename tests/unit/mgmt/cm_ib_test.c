/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks the state machine of connections; the test plays the peer, message by
 * message. */
#include "cm_ib_fixture.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(passive__asks_patience_then_repeats_its_reply),
		TEST(passive__gives_up),
		TEST(lids__identify_a_peer_without_gids),
		TEST(lids__identify_who_looks_up),
		TEST(alternate__a_dreq_goes_by_both_paths),
		TEST(alternate__answers_go_the_peers_way),
		TEST(resume__knows_its_peer),
		TEST(resume__answers_a_request),
		TEST(active__asks_for_less),
		TEST(active__cannot_ask_for_less),
		TEST(passive__says_how_much),
		TEST(resume__insists),
		TEST(refused__at_once),
		TEST(refused__after_a_while),
		TEST(flood__gives_up_the_oldest),
		TEST(flood__what_comes_later_is_as_if_lost),
		TEST(passive__refuses),
		TEST(held__nobody_comes),
		TEST(held__somebody_comes),
		TEST(held__the_peer_gives_up),
		TEST(held__are_few),
		TEST(sidr__answers_and_repeats_its_answer),
		TEST(sidr__refuses),
		TEST(sidr__owner_dies),
		TEST(sidr__asks_again_and_gives_up),
		TEST(sidr__is_answered_once),
		TEST(passive__hears_that_the_peer_gave_up),
		TEST(active__repeats_and_gives_up),
		TEST(active__gives_up_soon_where_nobody_is),
		TEST(active__outlasts_a_burst_of_returns),
		TEST(active__outlasts_a_second_of_returns),
		TEST(active__transactions_are_no_sequence),
		TEST(active__heeds_no_other_returns),
		TEST(active__is_patient_when_asked),
		TEST(active__knows_its_own_requests),
		TEST(active__does_not_own_what_a_host_reflects),
		TEST(active__repeats_its_rtu),
		TEST(active__is_rejected),
		TEST(both__disconnect_at_once),
		TEST(both__disconnect_without_an_answer),
		TEST(dreq__for_nobody_is_answered),
		TEST(dreq__for_another_queue_pair_is_not_ours),
		TEST(lap__is_answered),
		TEST(xrc__target_is_disconnected),
		TEST(xrc__target_is_named_in_a_disconnect),
		TEST(stale__peer_came_back),
		TEST(stranger__reaches_nothing),
		TEST(doors__refuse_at_the_wrong_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
