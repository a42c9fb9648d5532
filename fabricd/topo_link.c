/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses what a topology file tells of a link: its parameters, and the names of
 * widths and speeds. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/topology_priv.h"

#define ODDS_MOST 4294967295.0 /* a probability of 1 in units of 2^-32 */
/* bits of the frame whose loss represents the bit error rate */
#define BER_BITS   (8.0 * 2048)
#define DELAY_MOST 1e10 /* longest delay of a link, in nanoseconds */

int vb_topo_fail(char error[VB_TOPO_ERROR], const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(error, VB_TOPO_ERROR, format, list);
	va_end(list);
	return -EINVAL;
}

/* --- parameters --- */

struct unit {
	const char *name;
	double factor;
};

static const struct unit times[] = {
	{ "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }, { NULL, 0 }
};
/* Units of bit rates, as factors to bytes a second (8 bits are a byte). */
static const struct unit rates[] = { { "", 1. / 8 },
				     { "K", 1e3 / 8 },
				     { "M", 1e6 / 8 },
				     { "G", 1e9 / 8 },
				     { NULL, 0 } };
static const struct unit plain[] = { { "", 1 }, { NULL, 0 } };

/* Parse a number that may end in one of @units. */
static bool parse_number(const char *text, const struct unit *units,
			 double *value)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || !isfinite(v) || v < 0)
		return false;
	for (; units->name; units++)
		if (strcmp(end, units->name) == 0) {
			*value = v * units->factor;
			return true;
		}
	return false;
}

static bool set_delay(struct vb_fab_link_spec *s, const char *text)
{
	double v;

	if (!parse_number(text, times, &v) || v > DELAY_MOST)
		return false;
	s->delay = (vb_time)v;
	return true;
}

/* Set the rate of a link from its text. "0": the rate of width and speed;
 * "free": frames take no time. */
static bool set_rate(struct vb_fab_link_spec *s, const char *text)
{
	double v;

	s->unpaced = strcmp(text, "free") == 0;
	if (s->unpaced)
		return true;
	if (!parse_number(text, rates, &v) || v > 1e12)
		return false;
	s->bytes_per_sec = (uint64_t)v;
	return true;
}

static bool set_buffer(struct vb_fab_link_spec *s, const char *text)
{
	double v;

	if (!parse_number(text, plain, &v) || v > 1 << 24)
		return false;
	s->buffer = (uint32_t)v;
	return true;
}

static bool set_credits(struct vb_fab_link_spec *s, const char *text)
{
	s->extended = strcmp(text, "ext") == 0;
	return s->extended || strcmp(text, "std") == 0;
}

static bool parse_odds(const char *text, uint32_t *odds)
{
	double v;

	if (!parse_number(text, plain, &v) || v > 1)
		return false;
	*odds = (uint32_t)(v * ODDS_MOST);
	return true;
}

static bool set_lose(struct vb_fab_link_spec *s, const char *text)
{
	return parse_odds(text, &s->lose);
}

static bool set_corrupt(struct vb_fab_link_spec *s, const char *text)
{
	return parse_odds(text, &s->corrupt);
}

static bool set_lose_flow(struct vb_fab_link_spec *s, const char *text)
{
	return parse_odds(text, &s->lose_flow);
}

static bool set_corrupt_flow(struct vb_fab_link_spec *s, const char *text)
{
	return parse_odds(text, &s->corrupt_flow);
}

/* From a bit error rate: how likely a frame of 2 KiB, or a link packet of 48
 * bits, has an error. */
static bool set_ber(struct vb_fab_link_spec *s, const char *text)
{
	double v;

	if (!parse_number(text, plain, &v) || v > 1)
		return false;
	s->corrupt =
		(uint32_t)(-expm1(BER_BITS * log1p(-fmin(v, 0.5))) * ODDS_MOST);
	s->corrupt_flow =
		(uint32_t)(-expm1(48 * log1p(-fmin(v, 0.5))) * ODDS_MOST);
	return true;
}

static const struct {
	const char *name;
	bool (*set)(struct vb_fab_link_spec *s, const char *text);
	const char *what;
} parameters[] = {
	{ "delay", set_delay, "a time of at most 10 s: 500ns, 50us, 1ms" },
	{ "rate", set_rate, "bits a second: 8G, 2.5G, 100M; or free" },
	{ "buf", set_buffer, "blocks of 64 bytes for each VL" },
	{ "credits", set_credits, "std or ext" },
	{ "ber", set_ber, "a bit error rate from 0 to 1" },
	{ "lose", set_lose, "a probability from 0 to 1" },
	{ "corrupt", set_corrupt, "a probability from 0 to 1" },
	{ "lose_flow", set_lose_flow, "a probability from 0 to 1" },
	{ "corrupt_flow", set_corrupt_flow, "a probability from 0 to 1" },
};

static int set_parameter(const char *word, struct vb_fab_link_spec *spec,
			 char *error)
{
	size_t len = strcspn(word, "=");

	for (unsigned i = 0; i < VB_COUNT(parameters); i++) {
		if (strlen(parameters[i].name) != len ||
		    strncmp(parameters[i].name, word, len) != 0)
			continue;
		if (word[len] && parameters[i].set(spec, word + len + 1))
			return 0;
		return vb_topo_fail(error, "\"%s\": %s is %s", word,
				    parameters[i].name, parameters[i].what);
	}
	return vb_topo_fail(error,
			    "\"%s\" is no parameter of a link: delay, rate, "
			    "buf, credits, ber, lose, corrupt, lose_flow and "
			    "corrupt_flow are",
			    word);
}

int vb_topo_link_spec(const char *text, struct vb_fab_link_spec *spec,
		      char error[VB_TOPO_ERROR])
{
	char word[64];
	int n;

	while (sscanf(text, " %63s%n", word, &n) == 1) {
		int rc = set_parameter(word, spec, error);

		if (rc)
			return rc;
		text += n;
	}
	return 0;
}

/* --- widths and speeds --- */

static const struct {
	const char *name;
	uint8_t bits;
} widths[] = {
	{ "1x", FAB_1X },
	{ "2x", FAB_1X | FAB_2X },
	{ "4x", FAB_1X | FAB_4X },
	{ "8x", FAB_1X | FAB_4X | FAB_8X },
	{ "12x", FAB_1X | FAB_4X | FAB_12X },
};

/* A port that knows a speed knows the slower ones. */
static const struct {
	const char *name;
	uint8_t speed, ext;
} speeds[] = {
	{ "SDR", FAB_SDR, 0 },
	{ "DDR", FAB_SDR | FAB_DDR, 0 },
	{ "QDR", FAB_SDR | FAB_DDR | FAB_QDR, 0 },
	{ "FDR10", FAB_SDR | FAB_DDR | FAB_QDR, 0 },
	{ "FDR", FAB_SDR | FAB_DDR | FAB_QDR, FAB_FDR },
	{ "EDR", FAB_SDR | FAB_DDR | FAB_QDR, FAB_FDR | FAB_EDR },
	{ "HDR", FAB_SDR | FAB_DDR | FAB_QDR, FAB_FDR | FAB_EDR | FAB_HDR },
	{ "NDR", FAB_SDR | FAB_DDR | FAB_QDR,
	  FAB_FDR | FAB_EDR | FAB_HDR | FAB_NDR },
};

static bool find_speed(const char *name, struct vb_topo_port *p)
{
	for (unsigned i = 0; i < VB_COUNT(speeds); i++)
		if (strcmp(speeds[i].name, name) == 0) {
			p->speed = speeds[i].speed;
			p->speed_ext = speeds[i].ext;
			return true;
		}
	return false;
}

bool vb_topo_rate_get(const char *text, struct vb_topo_port *p)
{
	for (unsigned i = 0; i < VB_COUNT(widths); i++) {
		size_t len = strlen(widths[i].name);

		if (strncmp(text, widths[i].name, len) != 0 ||
		    !find_speed(text + len, p))
			continue;
		p->width = widths[i].bits;
		return true;
	}
	return false;
}

bool vb_topo_rate_put(const struct vb_topo_port *p, char text[16])
{
	for (unsigned w = 0; w < VB_COUNT(widths); w++)
		for (unsigned s = 0; s < VB_COUNT(speeds); s++)
			if (widths[w].bits == p->width &&
			    speeds[s].speed == p->speed &&
			    speeds[s].ext == p->speed_ext) {
				snprintf(text, 16, "%s%s", widths[w].name,
					 speeds[s].name);
				return true;
			}
	return false;
}
