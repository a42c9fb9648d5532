/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of cm_ib_test: a manager whose peer the test plays, and
 * the cases. */
#ifndef TESTS_UNIT_MGMT_CM_IB_FIXTURE_H
#define TESTS_UNIT_MGMT_CM_IB_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include <errno.h>

#include "mgmt/cm_ib.h"

#define PEER_GUID 0x1111
#define PEER_ID	  0x77
#define PEER_QPN  0x1234
#define OUR_QPN	  0x4321

extern struct vb_cm *cm;
extern struct vb_mad_path path;
extern vb_time now;
/* the last message that the connection manager under test sent */
extern struct vb_cm_msg sent;
extern unsigned sent_count;
extern struct vb_mad_path sent_by; /* the path of that message */
extern int happened; /* the last event that the program got; -1: none */
extern unsigned refuse_with, requests;
extern struct vb_cm_conn *conn;
extern int owner;
int begin(void **state);
int finish(void **state);
void deliver(struct vb_cm_msg *m);
void say(enum vb_cm_attr attr, uint64_t tid);
void request(uint32_t id, uint32_t qpn);
void run_timer(void);
void expect_sent(enum vb_cm_attr attr);

/* Expects the early repetitions, after 250 ms, 0.5 s, 1 s, and then @count
 * more. */
void expect_repeats(enum vb_cm_attr attr, unsigned count);
void accept_it(void);
void connect_it(void);
void make_passive(void);
void make_active(void);
void passive__asks_patience_then_repeats_its_reply(void **state);
void passive__gives_up(void **state);
/* On InfiniBand MADs need not say GIDs, and LIDs identify their senders. */
void lids__identify_a_peer_without_gids(void **state);
void lids__identify_who_looks_up(void **state);
/* Messages of a connection with an alternate path. */
void alternate__a_dreq_goes_by_both_paths(void **state);
void alternate__answers_go_the_peers_way(void **state);
void flood__gives_up_the_oldest(void **state);
void flood__what_comes_later_is_as_if_lost(void **state);
void resume__knows_its_peer(void **state);

/* A request that an earlier manager received can be accepted at the new one. */
void resume__answers_a_request(void **state);

/* When a peer says at once that no program listens, the REQ is repeated for
 * half a second. */
void refused__at_once(void **state);

/* A peer that refuses late has waited for a listener, so its REJ is final. */
void refused__after_a_while(void **state);
void active__asks_for_less(void **state);
void active__cannot_ask_for_less(void **state);
void passive__says_how_much(void **state);
void resume__insists(void **state);
void passive__refuses(void **state);
void held__nobody_comes(void **state);
void held__somebody_comes(void **state);
void held__the_peer_gives_up(void **state);

/* The number of requests that wait is limited, and one peer may have only a
 * part of them. */
void held__are_few(void **state);
void sidr__answers_and_repeats_its_answer(void **state);
void sidr__refuses(void **state);
void sidr__owner_dies(void **state);
void look_it_up(void);
void sidr__asks_again_and_gives_up(void **state);
void sidr__is_answered_once(void **state);
void passive__hears_that_the_peer_gave_up(void **state);
void active__repeats_and_gives_up(void **state);
void active__gives_up_soon_where_nobody_is(void **state);

/* The kernel looks for a host for 3 s and then returns all packets to it. Such
 * a burst counts once. */
void active__outlasts_a_burst_of_returns(void **state);

/* A request ends when its returns last a second, however long it has waited. */
void active__outlasts_a_second_of_returns(void **state);

/* Consecutive requests must not have consecutive transaction IDs. */
void active__transactions_are_no_sequence(void **state);
void active__heeds_no_other_returns(void **state);
void active__knows_its_own_requests(void **state);

/* A host that got our REQ and sends the same numbers is not taken for us. */
void active__does_not_own_what_a_host_reflects(void **state);
void active__is_patient_when_asked(void **state);
void active__repeats_its_rtu(void **state);
void active__is_rejected(void **state);
void both__disconnect_at_once(void **state);
void both__disconnect_without_an_answer(void **state);
void dreq__for_nobody_is_answered(void **state);
void dreq__for_another_queue_pair_is_not_ours(void **state);
void lap__is_answered(void **state);

/* The REP of an XRC target has its number in another field (IBA annex A14), and
 * a DREQ for it must still match. */
void xrc__target_is_disconnected(void **state);
void xrc__target_is_named_in_a_disconnect(void **state);
void stale__peer_came_back(void **state);
void stranger__reaches_nothing(void **state);
void doors__refuse_at_the_wrong_time(void **state);

#endif
