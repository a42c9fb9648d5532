/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fake broker session and a fake libibverbs without I/O, for tests of
 * front/rdmacm. Both record the calls of the code under test.
 */
#ifndef TESTS_UNIT_RDMACM_FAKE_H
#define TESTS_UNIT_RDMACM_FAKE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
// cmocka.h needs the headers above
#include <cmocka.h>

#include "front/rdmacm/rdmacm.h"

#define FAKE_MOST 32

struct fake_move {
	struct ibv_qp_attr attr;
	int mask;
};

struct fake {
	/* The messages of the session, in the order in which they were sent. */
	struct vb_ipc_cm told[FAKE_MOST], asked[FAKE_MOST];
	unsigned tells, asks;
	/* what the next calls of the fake session return */
	int tell_rc, ask_rc;
	/* port in the broker's answer to a BIND of port 0 */
	uint16_t answer_port;
	/* Calls of the fake verbs, and what they return: */
	struct fake_move moves[FAKE_MOST];
	unsigned move_count;
	/* what the fake ibv_modify_qp() returns: 0 or a positive errno */
	int modify_rc;
	unsigned attaches, detaches;
	/* what the fake ibv_attach_mcast() returns: 0 or a positive errno */
	int attach_rc;
	/* The fake device has RoCEv1's entry of its GID at index 2, too. */
	bool both_types;
	/* what the fake ibv_resolve_eth_l2_from_gid() returns */
	int resolve_rc;
	unsigned resolves;
	/* the LID of the last group that was attached */
	uint16_t group_lid;
};
extern struct fake fake;

/* A set-up function of cmocka: a process that has one RoCE device. */
int fake_setup(void **state);

/* The device, and a queue pair and a context that belong to it. */
/* the port of fake ids: not the first one, which is every number's default */
#define FAKE_PORT 2
extern struct rcm_device fake_device;
extern struct ibv_qp fake_qp;

/* An id on @channel with the device, in @state, that goes from 10.77.0.1 port
 * 7000 to 10.77.0.2 port 7001. */
struct rcm_id *fake_id(struct rdma_event_channel *channel,
		       enum rdma_port_space ps, enum ibv_qp_type type,
		       enum rcm_state state);

/* Make an event channel whose rdma_get_cm_event() does not block. */
struct rdma_event_channel *fake_channel(void);

/* Has @fd data to read at present? */
bool fake_is_readable(int fd);

#endif
