/* SPDX-License-Identifier: BSD-2-Clause */
/* Static rates: tables of rates, speeds and widths. */
#include "core/rate.h"

// clang-format off
const struct vb_rate_row vb_rates[VB_RATES] = {
	{ 2,  1,   2500 },   { 5,  2,   5000 },	  { 3,	4,   10000 },
	{ 6,  8,   20000 },  { 4,  12,	30000 },  { 7,	16,  40000 },
	{ 8,  24,  60000 },  { 9,  32,	80000 },  { 10, 48,  120000 },
	{ 11, 0,   14062 },  { 12, 0,	56250 },  { 13, 0,   112500 },
	{ 14, 0,   168750 }, { 15, 0,	25781 },  { 16, 0,   103125 },
	{ 17, 0,   206250 }, { 18, 0,	309375 }, { 19, 11,  28125 },
	{ 20, 20,  53125 },  { 21, 160, 425000 }, { 22, 240, 637500 },
	{ 23, 320, 850000 }, { 24, 480, 1275000 },
};
// clang-format on

static const struct vb_rate_row *row_of(uint8_t code)
{
	for (size_t i = 0; i < VB_RATES; i++)
		if (vb_rates[i].code == code)
			return &vb_rates[i];
	return NULL;
}

bool vb_rate_is_known(uint8_t code)
{
	return code == 0 || row_of(code);
}

#define SPEED_QDR 4

/* Returns the signalling rate, in Mbit/s, of a port with the codes @speed in
 * LinkSpeedActive and @width in LinkWidthActive (struct vb_port_ib); 0: the
 * port has no link. */
static uint32_t port_mbps(uint8_t speed, uint8_t width)
{
	static const struct {
		uint8_t code;
		uint32_t mbps;
	} lanes[] = { { 1, 2500 },   { 2, 5000 },    { 4, 10000 },
		      { 8, 10312 },  { 16, 14062 },  { 32, 25781 },
		      { 64, 53125 }, { 128, 106250 } };
	static const struct {
		uint8_t code, lanes;
	} widths[] = { { 1, 1 }, { 2, 4 }, { 4, 8 }, { 8, 12 }, { 16, 2 } };

	for (size_t i = 0; i < VB_COUNT(lanes); i++)
		for (size_t w = 0; w < VB_COUNT(widths); w++)
			if (lanes[i].code == speed && widths[w].code == width)
				return lanes[i].mbps * widths[w].lanes;
	return 0;
}

/* the time of a byte in picoseconds at 1 Mbit/s */
#define PS_MBPS 8000000ull

uint32_t vb_rate_ps(struct vb_port *p, uint8_t code)
{
	const struct vb_rate_row *row = row_of(code);
	uint8_t speed, width;
	uint32_t most;

	if (!row)
		return 0;
	vb_mutex_lock(&p->lock);
	speed = p->ib.speed;
	width = p->ib.width;
	vb_mutex_unlock(&p->lock);
	most = port_mbps(speed, width);
	if (most && (uint32_t)row->mbps >= most)
		return 0;
	if (speed <= SPEED_QDR)
		return (uint32_t)(PS_MBPS * 10 / 8 / (uint32_t)row->mbps);
	return (uint32_t)(PS_MBPS * 66 / 64 / (uint32_t)row->mbps);
}
