/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A broker session and a libibverbs without I/O, for tests of front/rdmacm.
 * Both record what the code under test asks of them.
 */
#ifndef TESTS_UNIT_RDMACM_FAKE_H
#define TESTS_UNIT_RDMACM_FAKE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
// cmocka.h wants those first
#include <cmocka.h>

#include "front/rdmacm/rdmacm.h"

#define FAKE_MOST 32

struct fake_move {
	struct ibv_qp_attr attr;
	int mask;
};

struct fake {
	/* The session: messages in the order in which they left. */
	struct vb_ipc_cm told[FAKE_MOST], asked[FAKE_MOST];
	unsigned tells, asks;
	int tell_rc, ask_rc;  /* what the next calls return */
	uint16_t answer_port; /* for a BIND of port 0 */
	/* Verbs. */
	struct fake_move moves[FAKE_MOST];
	unsigned move_count;
	int modify_rc; /* a positive errno */
	unsigned attaches, detaches;
	int attach_rc; /* a positive errno */
};
extern struct fake fake;

/* For cmocka: a process that has one RoCE device and nothing else. */
int fake_setup(void **state);

/* The device, and a queue pair and a context that belong to it. */
extern struct rcm_device fake_device;
extern struct ibv_qp fake_qp;

/* An id on @channel with the device, in @state, that goes from 10.77.0.1 port
 * 7000 to 10.77.0.2 port 7001. */
struct rcm_id *fake_id(struct rdma_event_channel *channel,
		       enum rdma_port_space ps, enum ibv_qp_type type,
		       enum rcm_state state);

/* A channel whose rdma_get_cm_event() does not block. */
struct rdma_event_channel *fake_channel(void);

/* Whether @fd is readable now. */
bool fake_is_readable(int fd);

#endif
