/* SPDX-License-Identifier: BSD-2-Clause */
/* Traps (IBA 13.4.8, 14.2.5.1): a node reports an event to the subnet manager
 * unasked, and repeats the report until the manager represses it. No I/O. */
#ifndef MGMT_TRAP_H
#define MGMT_TRAP_H

#include "base/timer.h"
#include "fabric/node.h"
#include "wire/mad_frame.h"
#include "wire/smp.h"

enum vb_trap_number {
	TRAP_LINK_STATE = 128,
	TRAP_INTEGRITY = 129,
	TRAP_OVERRUN = 130,
	TRAP_WATCHDOG = 131,
	TRAP_CAPABILITIES = 144,
	TRAP_BAD_MKEY = 256,
	TRAP_BAD_PKEY = 257,
	TRAP_BAD_QKEY = 258,
	TRAP_SWITCH_PKEY = 259,
};

struct vb_trap {
	uint16_t number; /* the kind of trap, an enum vb_trap_number */
	uint8_t details[VB_SMP_DATA_BYTES - VB_NOTICE_DETAILS_AT];
};

/* Fill in a trap. @own: the port of @node whose LID the trap names
 * (vb_sma_own_port()). */
void vb_trap_link_state(struct vb_trap *t, const struct vb_fab_node *node);
void vb_trap_link_error(struct vb_trap *t, const struct vb_fab_node *node,
			uint8_t own, enum vb_trap_number number, uint8_t port);
void vb_trap_capabilities(struct vb_trap *t, const struct vb_fab_node *node,
			  uint8_t own);
/* Fill in trap 256 for the SMP @mad, which had a wrong M_Key. */
void vb_trap_bad_mkey(struct vb_trap *t, uint16_t slid,
		      const uint8_t mad[VB_MAD_BYTES]);
/* Fill in TRAP_BAD_PKEY or TRAP_BAD_QKEY for @frame, which had a wrong key. */
void vb_trap_bad_key(struct vb_trap *t, enum vb_trap_number number,
		     const struct vb_mad_frame *frame);
/* Fill in trap 259 for a frame that port @port of the switch discarded: @bytes,
 * LRH to ICRC. */
void vb_trap_switch_pkey(struct vb_trap *t, const struct vb_fab_node *node,
			 uint8_t port, const uint8_t *bytes, size_t len);

/* Returns the least time between two traps of one number from one port, and
 * between the repetitions of a trap: the port's SubnetTimeout, but 100 ms at
 * least. */
vb_time vb_trap_pause(const struct vb_fab_port *port);

#define VB_TRAPS_PENDING 12
#define VB_TRAP_REPEATS	 60

/* The traps of a node that the subnet manager has not repressed. */
struct vb_traps {
	uint64_t last_tid;
	/* Notice.Count of the next trap; each trap gets another value */
	uint16_t count;
	struct vb_trap_pending {
		bool used;
		struct vb_traps *owner;
		/* The node sends no trap of this number and port before this
		 * time, so a link that flaps does not flood the subnet manager.
		 * The value stays when the trap is repressed. */
		vb_time not_before;
		uint8_t own;
		uint16_t number;
		unsigned repeats;
		uint64_t tid;
		uint8_t mad[VB_MAD_BYTES];
		struct vb_timer timer;
	} list[VB_TRAPS_PENDING];
};

void vb_traps_init(struct vb_traps *ts);

/*
 * Begin to send @t: writes the SMP to @mad, which the caller sends to the
 * subnet manager of port @own. @t replaces a trap of the same number and port,
 * or uses a free entry, or replaces the oldest trap. False: the caller sends
 * nothing now. Either the port has no subnet manager; or the port has sent such
 * a trap less than vb_trap_pause() ago, and vb_traps_repeat() sends this one,
 * or a later one, when that time is over.
 */
VB_MUST_CHECK bool vb_traps_begin(struct vb_traps *ts, struct vb_timers *timers,
				  const struct vb_fab_node *node, uint8_t own,
				  const struct vb_trap *t,
				  uint8_t mad[VB_MAD_BYTES], vb_time now);
/* The timer of the trap @p has expired. True: the caller sends the trap's SMP
 * again. False: the trap was sent often enough, and its entry is free now. */
VB_MUST_CHECK bool vb_traps_repeat(struct vb_trap_pending *p,
				   struct vb_timers *timers,
				   const struct vb_fab_node *node, vb_time now);
/* A TrapRepress for the trap @tid has come: stop repeating that trap. False: no
 * pending trap has this transaction ID. */
VB_MUST_CHECK bool vb_traps_repress(struct vb_traps *ts,
				    struct vb_timers *timers, uint64_t tid);
void vb_traps_fini(struct vb_traps *ts, struct vb_timers *timers);

#endif
