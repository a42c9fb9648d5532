/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the parameters of a link in a topology file, and the names of widths
 * and speeds. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/topology_priv.h"

#define ODDS_MOST 4294967295.0 /* a probability of 1 in units of 2^-32 */
/* Bits of the frame from which a bit error rate is converted to the odds that a
 * frame is damaged. */
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

const struct vb_topo_unit vb_topo_times[] = {
	{ "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }, { NULL, 0 }
};
/* Units of a rate, each with the bytes a second that it stands for; rates are
 * in bits a second. */
static const struct vb_topo_unit rates[] = { { "", 1. / 8 },
					     { "K", 1e3 / 8 },
					     { "M", 1e6 / 8 },
					     { "G", 1e9 / 8 },
					     { NULL, 0 } };
const struct vb_topo_unit vb_topo_plain[] = { { "", 1 }, { NULL, 0 } };

bool vb_topo_number(const char *text, const struct vb_topo_unit *units,
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

	if (!vb_topo_number(text, vb_topo_times, &v) || v > DELAY_MOST)
		return false;
	s->delay = (vb_time)v;
	return true;
}

/* The slowest rate: a smaller number most likely lacks its unit. */
#define RATE_LEAST (1000. / 8)

/* Set the rate of a link from its text. "0": the rate of width and speed;
 * "free": frames take no time. */
static bool take_rate(struct vb_fab_link_spec *s, const char *text)
{
	double v;

	s->unpaced = strcmp(text, "free") == 0;
	if (s->unpaced)
		return true;
	if (!vb_topo_number(text, rates, &v) || v > 1e12 ||
	    (v > 0 && v < RATE_LEAST))
		return false;
	s->bytes_per_sec = (uint64_t)v;
	return true;
}

static bool set_buffer(struct vb_fab_link_spec *s, const char *text)
{
	double v;

	if (!vb_topo_number(text, vb_topo_plain, &v) || v > 1 << 24)
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

	if (!vb_topo_number(text, vb_topo_plain, &v) || v > 1)
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

/* Set from a bit error rate how likely a frame has an error, computed for one
 * of 2 KiB, and how likely a link packet of 48 bits has one. */
static bool set_ber(struct vb_fab_link_spec *s, const char *text)
{
	double v;

	if (!vb_topo_number(text, vb_topo_plain, &v) || v > 1)
		return false;
	s->corrupt =
		(uint32_t)(-expm1(BER_BITS * log1p(-fmin(v, 0.5))) * ODDS_MOST);
	s->corrupt_flow =
		(uint32_t)(-expm1(48 * log1p(-fmin(v, 0.5))) * ODDS_MOST);
	return true;
}

#define FIXED                                                                  \
	"width and speed are those with which the fabric began; rate= slows "  \
	"a link, and ibportstate enables another width or speed"

static const struct {
	const char *name;
	/* NULL: a running fabric cannot change the parameter; @what is the
	 * reason */
	bool (*set)(struct vb_fab_link_spec *s, const char *text);
	const char *what;
} parameters[] = {
	{ "delay", set_delay, "a time of at most 10 s: 500ns, 50us, 1ms" },
	{ "rate", take_rate, "bits a second, 1K at least: 8G, 2.5G, 100M; or free" },
	{ "buf", set_buffer, "blocks of 64 bytes for each VL" },
	{ "credits", set_credits, "std or ext" },
	{ "ber", set_ber, "a bit error rate from 0 to 1" },
	{ "lose", set_lose, "a probability from 0 to 1" },
	{ "corrupt", set_corrupt, "a probability from 0 to 1" },
	{ "lose_flow", set_lose_flow, "a probability from 0 to 1" },
	{ "corrupt_flow", set_corrupt_flow, "a probability from 0 to 1" },
	/* In a topology file, vb_topo_rate_take() has taken these two
	 * before. */
	{ "width", NULL, FIXED },
	{ "speed", NULL, FIXED },
};

static int set_parameter(const char *word, struct vb_fab_link_spec *spec,
			 char *error)
{
	size_t len = strcspn(word, "=");

	for (unsigned i = 0; i < VB_COUNT(parameters); i++) {
		if (strlen(parameters[i].name) != len ||
		    strncmp(parameters[i].name, word, len) != 0)
			continue;
		if (!parameters[i].set)
			return vb_topo_fail(error, "\"%s\": %s", word,
					    parameters[i].what);
		if (word[len] && parameters[i].set(spec, word + len + 1))
			return 0;
		return vb_topo_fail(error, "\"%s\": %s is %s", word,
				    parameters[i].name, parameters[i].what);
	}
	return vb_topo_fail(error,
			    "\"%s\" is no parameter of a link: delay, rate, "
			    "width, speed, buf, credits, ber, lose, corrupt, "
			    "lose_flow and corrupt_flow are",
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

/* Set the bits of all speeds that a port supports whose fastest speed is row
 * @row of vb_fab_speeds. */
static void speeds_up_to(unsigned row, uint8_t *speed, uint8_t *ext)
{
	*speed = *ext = 0;
	for (unsigned i = 0; i <= row; i++) {
		*speed |= vb_fab_speeds[i].speed;
		*ext |= vb_fab_speeds[i].ext;
	}
}

static bool find_speed(const char *name, struct vb_topo_port *p)
{
	for (unsigned i = 0; i < VB_FAB_SPEEDS; i++)
		if (strcmp(vb_fab_speeds[i].name, name) == 0) {
			speeds_up_to(i, &p->speed, &p->speed_ext);
			return true;
		}
	return false;
}

bool vb_topo_rate_get(const char *text, struct vb_topo_port *p)
{
	for (unsigned i = 0; i < VB_FAB_WIDTHS; i++) {
		size_t len = strlen(vb_fab_widths[i].name);

		if (strncmp(text, vb_fab_widths[i].name, len) != 0 ||
		    !find_speed(text + len, p))
			continue;
		p->width = vb_fab_widths[i].with;
		return true;
	}
	return false;
}

static const char *name_of_speed(const struct vb_topo_port *p)
{
	for (unsigned i = 0; i < VB_FAB_SPEEDS; i++) {
		uint8_t speed, ext;

		speeds_up_to(i, &speed, &ext);
		if (speed == p->speed && ext == p->speed_ext)
			return vb_fab_speeds[i].name;
	}
	return NULL;
}

static bool take_width(const char *text, struct vb_topo_port *p)
{
	for (unsigned i = 0; i < VB_FAB_WIDTHS; i++)
		if (strcmp(vb_fab_widths[i].name, text) == 0)
			p->width = vb_fab_widths[i].with;
	return p->width;
}

int vb_topo_rate_take(char *text, struct vb_topo_port *p,
		      char error[VB_TOPO_ERROR])
{
	char word[24];
	int n;

	for (; sscanf(text, " %23s%n", word, &n) == 1; text += n) {
		char *value = strchr(word, '=');
		bool good;

		if (strncmp(word, "width=", 6) == 0)
			good = take_width(value + 1, p);
		else if (strncmp(word, "speed=", 6) == 0)
			good = find_speed(value + 1, p);
		else
			continue;
		if (!good)
			return vb_topo_fail(
				error,
				"\"%s\": width is 1x, 2x, 4x, 8x or "
				"12x, speed is SDR, DDR, QDR, "
				"FDR10, FDR, EDR, HDR or NDR",
				word);
		memset(text, ' ', (size_t)n);
	}
	return 0;
}

bool vb_topo_rate_put(const struct vb_topo_port *p, char text[16])
{
	const char *speed = name_of_speed(p);

	for (unsigned w = 0; speed && w < VB_FAB_WIDTHS; w++)
		if (vb_fab_widths[w].with == p->width) {
			snprintf(text, 16, "%s%s", vb_fab_widths[w].name,
				 speed);
			return true;
		}
	return false;
}
