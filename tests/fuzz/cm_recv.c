/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzes a connection manager with datagrams, while its owner accepts, rejects,
 * releases and lets time pass: the effect of each datagram is bounded, and at
 * the end no object is left. Input: in pieces, a byte of what the owner does,
 * and a datagram; local ids are numbered from 0, so that messages can find
 * theirs.
 */
#include "tests/fuzz/fuzz.h"

#include "mgmt/cm_ib.h"

#define MOST	64
#define OUR_QPN 0x8001

static struct vb_cm_conn *owned[MOST];
static unsigned owned_count, said, heard;

static uint32_t no_dice(void)
{
	return 0;
}

static void count_mad(void *arg, const struct vb_mad_path *path,
		      const uint8_t mad[VB_MAD_BYTES])
{
	struct vb_cm_msg m;

	MUST(vb_cm_get(mad, VB_MAD_BYTES, &m));
	said++;
}

static unsigned take_request(void *arg, struct vb_cm_conn *c,
			     const struct vb_cm_msg *m)
{
	if (owned_count == MOST)
		return VB_CM_LATER;
	MUST(m->attr == (c->sidr ? CM_SIDR_REQ : CM_REQ));
	c->owner = &owned[owned_count];
	owned[owned_count++] = c;
	return 0;
}

static void hear(void *arg, struct vb_cm_conn *c, enum vb_cm_happening what,
		 const struct vb_cm_msg *m)
{
	MUST(c->owner);
	heard++;
}

static void act(struct vb_cm *cm, unsigned what, vb_time now)
{
	struct vb_cm_conn *c = owned_count ? owned[owned_count - 1] : NULL;
	struct vb_cm_msg m = { .attr = CM_REP, .rep.qpn = OUR_QPN };
	const struct vb_mad_path path = { 0 };

	if (what % 8 == 1 && owned_count < MOST) {
		m = (struct vb_cm_msg){ .attr = CM_REQ, .req.qpn = OUR_QPN };
		if (vb_cm_connect(cm, &m, &path, &owned[owned_count], now,
				  &c) == 0)
			owned[owned_count++] = c;
	} else if (what % 8 == 2 && c) {
		(void)!vb_cm_accept(c, &m, now);
	} else if (what % 8 == 3 && c) {
		(void)!vb_cm_establish(c, now);
	} else if (what % 8 == 4 && c) {
		(void)!vb_cm_disconnect(c, now);
	} else if (what % 8 == 5 && c) {
		vb_cm_release(c, now);
		owned_count--;
	} else if (what % 8 == 6) {
		vb_cm_listens(cm);
	} else if (what % 8 == 7 && c) {
		m = (struct vb_cm_msg){ .attr = CM_SIDR_REP };
		(void)!vb_cm_answer(c, &m, now);
	}
}

/* Deliver a datagram. It may cause only few answers, and open at most one
 * connection. */
static void deliver(struct vb_cm *cm, const uint8_t *mad, size_t len,
		    vb_time now)
{
	const struct vb_mad_path path = { 0 };
	unsigned before = vb_cm_count(cm);

	said = heard = 0;
	vb_cm_recv(cm, &path, mad, len, now);
	MUST(said <= 2 && heard <= 1);
	MUST(vb_cm_count(cm) <= before + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	const struct vb_cm_ops ops = { .request = take_request,
				       .happen = hear,
				       .out = { count_mad, NULL },
				       .random = no_dice };
	struct vb_cm *cm = vb_cm_create(&ops);
	vb_time now = VB_SEC;

	if (!cm)
		return 0;
	owned_count = 0;
	while (len > 0) {
		size_t take = VB_MIN(len - 1, VB_MAD_BYTES);

		deliver(cm, bytes + 1, take, now);
		act(cm, bytes[0], now);
		if (bytes[0] & 0x80)
			now += VB_SEC << (bytes[0] >> 3 & 7);
		vb_cm_tick(cm, now);
		bytes += 1 + take;
		len -= 1 + take;
	}
	while (owned_count > 0)
		vb_cm_release(owned[--owned_count], now);
	for (; vb_cm_deadline(cm) != VB_NEVER; vb_cm_tick(cm, now))
		now = vb_cm_deadline(cm);
	MUST(vb_cm_count(cm) == 0 && vb_cm_busy(cm) == 0);
	vb_cm_destroy(cm);
	return 0;
}
