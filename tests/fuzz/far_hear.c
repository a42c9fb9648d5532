/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzes one end of a link between two processes with arbitrary messages. An
 * input is a row of (control, length, bytes). Bit 0 of control puts a right
 * head before the bytes, bit 1 the end's present nonce, bit 2 a new sequence
 * number, bit 3 the identities of the ends, so that some messages pass for
 * those of a peer in a session. For any input, buffers are not overrun and the
 * end still sends hellos.
 */
#include <string.h>

#include "base/bytes.h"
#include "fabric/far.h"
#include "fabric/net_priv.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/fab_run.h"

#define PORT 1

struct world {
	struct vb_fab_net *net;
	struct vb_fab_node *sw;
	struct vb_far *far;
	uint64_t nonce, seq;
	unsigned hellos;
};

static void keep(void *arg, const uint8_t *bytes, size_t len)
{
	struct world *w = arg;
	struct vb_far_hello h;
	enum vb_far_kind kind;
	unsigned version;

	MUST(len <= VB_FAR_MESSAGE);
	MUST(vb_far_look(bytes, len, &kind, &version) == FAR_GOOD);
	if (kind != FAR_HELLO)
		return;
	MUST(vb_far_hello_get(bytes, &h));
	w->nonce = h.mine;
	w->hellos++;
}

static uint64_t count_up(void *arg)
{
	static uint64_t last;

	return ++last;
}

static void on_far(void *arg, struct vb_fab_node *node, uint8_t port,
		   const uint8_t *bytes, size_t len, vb_time now)
{
	struct world *w = arg;

	vb_far_carry(w->far, bytes, len);
}

static void on_event(void *arg, struct vb_fab_node *node, uint8_t port,
		     const struct vb_fab_event_info *i, vb_time now)
{
	struct world *w = arg;

	if (i->event == FAB_EV_FAR && w->far)
		vb_far_changed(w->far, now);
}

static void build(struct world *w)
{
	struct vb_fab_ops ops = { .on_far = on_far,
				  .on_event = on_event,
				  .arg = w };
	struct vb_fab_node_spec spec = {
		.kind = FAB_SWITCH, .ports = 2, .guid = 1, .linear_cap = 64
	};
	struct vb_fab_link_spec link = { .buffer = 80 };
	struct vb_far_spec far = { .port = PORT,
				   .far = { 2, 2 },
				   .room = 1400,
				   .send = keep,
				   .random = count_up,
				   .arg = w };

	w->net = vb_fab_net_create(&ops, 1);
	w->sw = vb_fab_node_create(&spec);
	MUST(w->net && w->sw && !vb_fab_add(w->net, w->sw));
	MUST(!vb_fab_link_far(w->net, w->sw, PORT, &link, 0));
	w->sw->port[PORT].oper_vls = 3;
	far.net = w->net;
	far.node = w->sw;
	w->far = vb_far_create(&far, 0);
	MUST(w->far);
	vb_far_run(w->far, 0);
}

/* Give the message those parts of a peer's message that @control asks for. */
static void dress(struct world *w, uint8_t control, uint8_t *m, size_t len)
{
	const struct vb_far_data d = { .to = w->nonce, .seq = ++w->seq };
	struct vb_far_hello h = { .to = w->nonce,
				  .mine = 99,
				  .from = { 2, 2 },
				  .want = { 1, PORT },
				  .phase = FAR_TRAIN,
				  .width = 3,
				  .speed = 7 };

	if (len < VB_FAR_DATA_BYTES)
		return;
	if (control & 8 && len == VB_FAR_HELLO_BYTES) {
		h.phase = m[0] & 3;
		h.mine = 1 + m[1];
		vb_far_hello_put(m, &h);
	} else if (control & 4) {
		vb_far_data_put(m, &d);
	} else if (control & 1) {
		vb_store_be(m, (uint64_t)VB_FAR_MAGIC << 8 | VB_FAR_VERSION, 4);
		if (control & 2)
			vb_store_be(m + 8, w->nonce, 8);
		vb_far_check_put(m, len == VB_FAR_HELLO_BYTES
					    ? VB_FAR_HELLO_BYTES
					    : VB_FAR_DATA_BYTES);
	}
}

static void check(struct world *w)
{
	const struct vb_fab_end *e = w->sw->port[PORT].end;

	for (unsigned vl = 0; vl < DATA_VLS; vl++)
		MUST(e->flow[vl].used <= e->flow[vl].size);
	MUST(vb_far_next(w->far) != VB_NEVER);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct world w = { 0 };
	vb_time now = 0;

	build(&w);
	while (len >= 2) {
		uint8_t control = bytes[0], *m;
		size_t n = VB_MIN((size_t)bytes[1], len - 2);

		m = malloc(n ? n : 1);
		MUST(m);
		memcpy(m, bytes + 2, n);
		bytes += 2 + n;
		len -= 2 + n;
		dress(&w, control, m, n);
		vb_far_hear(w.far, m, n, now);
		free(m);
		now += control & 16 ? 50 * VB_MSEC : 20 * VB_USEC;
		fab_run(w.net, now);
		vb_far_run(w.far, now);
		vb_far_flush(w.far);
		check(&w);
	}
	w.hellos = 0;
	vb_far_run(w.far, now + VB_SEC);
	MUST(w.hellos == 1);
	vb_far_destroy(w.far);
	w.far = NULL;
	vb_fab_net_destroy(w.net);
	return 0;
}
