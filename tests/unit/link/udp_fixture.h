/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of udp_test: links, frames, and the cases. */
#ifndef TESTS_UNIT_LINK_UDP_FIXTURE_H
#define TESTS_UNIT_LINK_UDP_FIXTURE_H

#include "link/udp.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "tests/support/icrc.h"
#include "tests/unit/netns.h"
#include "wire/icrc.h"
#include "wire/ipc.h"

#define FAR_MTU 5000

struct vb_gid gid_of(const char *text);
uint32_t qpn_in(unsigned slot);
struct vb_link *open_link(void);
struct vb_route route_to(struct vb_link *l, const char *from, const char *to,
			 uint32_t dqpn);

/* Append a SEND_ONLY packet whose payload depends on @psn to the batch @q. */
void add_frame(struct vb_txq *q, const struct vb_route *r, uint32_t psn,
	       uint32_t len);
void check_frame(const struct vb_frame *f, uint32_t psn, uint32_t len);
struct vb_link_stats stats_of(struct vb_link *l);
extern uint64_t last_tx_calls;
void wait_readable(struct vb_link *l);
struct vb_txq *txq(void);
struct vb_rxq *rxq(void);
void close_link(struct vb_link *l);
void udp_socket__shares_the_port(void **state);
void udp_socket__port_of_another_program(void **state);
void udp_is_roce__everything_else(void **state);
void udp_steer__top_bits_pick_the_socket(void **state);
void udp_route__a_port_for_each_slot(void **state);
void udp_route__address_of_nobody(void **state);
void udp_route__out_of_descriptors(void **state);

/* Exchange frames over loopback in both directions, in one batch. */
void exchange(const char *from, const char *to, const uint32_t *lens,
	      unsigned count);
void udp_send__one_frame(void **state);
void udp_send__a_batch_is_joined(void **state);
void udp_send__lengths_that_go_up_and_down(void **state);
void udp_send__two_slots_in_one_flush(void **state);
void udp_send__more_than_recv_takes_at_once(void **state);
void udp_send__no_way_there(void **state);
void udp_recv__rubbish_is_counted(void **state);
int setup_far(void **state);
void udp_send__identification_on_the_wire(void **state);
void udp_send__larger_than_the_mtu(void **state);

/* If the interface has no room, the frames stay in the caller's batch, and the
 * call returns at once. */
void udp_send__a_congested_interface(void **state);
void udp_send__joined_is_refused(void **state);
void udp_join__is_not_inherited(void **state);

/* Test: the link opens on a host without IPv6. */
void udp_open__ipv4_only(void **state);

/* Test: the link sends IPv4 when the kernel has IPv6 switched off. */
void udp_send__ipv6_switched_off(void **state);

/* Tests which addresses count as the host's own, even where programs may bind
 * any address. */
void udp_owns__what_is_ours(void **state);

#endif
