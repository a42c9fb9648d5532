/* SPDX-License-Identifier: BSD-2-Clause */
/* Static rates of InfiniBand (IBA 9.11): what enum ibv_rate means, and how slow
 * the packets of an address are. */
#ifndef CORE_RATE_H
#define CORE_RATE_H

#include "core/port.h"

struct vb_rate_row {
	uint8_t code; /* value of enum ibv_rate */
	/* in units of 2.5 Gbit/s; 0 for rates with 64b/66b coding, which are
	 * not multiples of that unit */
	int mult;
	int mbps; /* signalling rate in Mbit/s, coding included */
};
#define VB_RATES 23
extern const struct vb_rate_row vb_rates[VB_RATES];

/* Is @code a value of enum ibv_rate? 0 is one: the rate of the port. */
bool vb_rate_is_known(uint8_t code);

/* Returns the time in picoseconds that a byte takes at the static rate @code on
 * the port @p; 0: packets are not slowed, because the rate is 0 or not below
 * the port's. A static rate is a signalling rate, as with hardware adapters: up
 * to QDR 8 of 10 bits are data, above QDR 64 of 66. Takes p->lock. */
uint32_t vb_rate_ps(struct vb_port *p, uint8_t code) VB_EXCLUDES(p->lock);

#endif
