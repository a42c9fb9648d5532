/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The options that this side asks an iWARP peer for: vb_mpa_usual, changed by
 * the words of the environment variable VERBENA_IWARP, separated by commas.
 */
#include "front/rdmacm/iw.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"

struct word {
	const char *text;
	void (*does)(struct vb_mpa_offer *offer);
};

static void no_crc(struct vb_mpa_offer *o)
{
	o->crc = false;
}

static void markers(struct vb_mpa_offer *o)
{
	o->markers = true;
}

static void first_revision(struct vb_mpa_offer *o)
{
	o->revision = 1;
	o->rtr = RTR_NONE;
}

static void client_first(struct vb_mpa_offer *o)
{
	o->rtr = RTR_NONE;
}

static void rtr_send(struct vb_mpa_offer *o)
{
	o->rtr = RTR_SEND;
}

static void rtr_write(struct vb_mpa_offer *o)
{
	o->rtr = RTR_WRITE;
}

static void rtr_read(struct vb_mpa_offer *o)
{
	o->rtr = RTR_READ;
}

static const struct word words[] = {
	{ "no-crc", no_crc },
	{ "markers", markers },
	{ "revision-1", first_revision },
	{ "no-rtr", client_first },
	{ "rtr-send", rtr_send },
	{ "rtr-write", rtr_write },
	{ "rtr-read", rtr_read },
};

static void apply_word(struct vb_mpa_offer *o, const char *text, size_t len)
{
	for (size_t i = 0; i < VB_COUNT(words); i++)
		if (strlen(words[i].text) == len &&
		    memcmp(words[i].text, text, len) == 0) {
			words[i].does(o);
			return;
		}
	vb_log(LOG_WARN, "VERBENA_IWARP: unknown word \"%.*s\" ignored",
	       (int)len, text);
}

struct vb_mpa_offer iw_offer(void)
{
	const char *text = getenv("VERBENA_IWARP");
	struct vb_mpa_offer o = vb_mpa_usual;

	while (text && *text) {
		size_t len = strcspn(text, ",");

		if (len)
			apply_word(&o, text, len);
		text += len + (text[len] == ',');
	}
	return o;
}
