/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/probe.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rand.h"
#include "engine/lease.h"
#include "link/udp.h"
#include "wire/echo.h"
#include "wire/mad.h"

#define PROBE_OPCODE 0x64 /* UD SEND ONLY */
#define PROBE_PKEY   0xffff
/* The number of the queue pair in the slot; the broker gives the slot to one
 * program only, so that there is no other. */
#define PROBE_QP 2

struct vb_probe {
	struct vb_lease lease;
	struct vb_link *link;
	uint64_t token;
	uint32_t psn;
	unsigned next; /* index of the frame of @rxq to look at */
	struct vb_txq txq;
	struct vb_rxq rxq;
};

bool vb_probe_port_taken(void)
{
	return vb_udp_port_taken();
}

static int open_probe_link(struct vb_probe *p)
{
	int rc = vb_udp_open(p->lease.rx_fd, &p->link);

	if (rc)
		return rc;
	p->lease.rx_fd = -1; /* the link's now */
	vb_udp_want_returns(p->link);
	return 0;
}

int vb_probe_open(struct vb_probe **probe)
{
	struct vb_probe *p = calloc(1, sizeof(*p));
	int rc;

	if (!p)
		return -ENOMEM;
	rc = vb_lease_claim(&p->lease);
	if (rc) {
		free(p);
		return rc;
	}
	rc = open_probe_link(p);
	if (rc) {
		vb_lease_release(&p->lease);
		free(p);
		return rc;
	}
	p->token = (uint64_t)vb_rand32() << 32 | vb_rand32();
	p->psn = vb_rand32() & VB_PSN_MASK;
	*probe = p;
	return 0;
}

void vb_probe_close(struct vb_probe *p)
{
	p->link->ops->close(p->link);
	vb_lease_release(&p->lease);
	free(p);
}

static uint32_t probe_qpn(const struct vb_probe *p)
{
	return (uint32_t)p->lease.slot << VB_QPN_BITS | PROBE_QP;
}

static void put_probe(struct vb_probe *p, const struct vb_route *route,
		      const struct vb_echo *ask, uint32_t bytes)
{
	const struct vb_ib_pkt pkt = {
		.bth = { .opcode = PROBE_OPCODE,
			 .migrated = true,
			 .pkey = PROBE_PKEY,
			 .dqpn = VB_GSI_QPN,
			 .psn = p->psn++ & VB_PSN_MASK },
		.deth = { VB_GSI_QKEY, probe_qpn(p) },
	};
	uint8_t *at = vb_txq_begin(&p->txq);
	size_t head = vb_ib_put_headers(at, &pkt);

	vb_echo_put(at + head, bytes, ask);
	vb_txq_commit(&p->txq, (uint32_t)head + bytes, route);
}

int vb_probe_ask(struct vb_probe *p, const struct vb_gid *from,
		 const struct vb_gid *to, uint32_t ifindex, uint32_t number,
		 uint32_t bytes, uint32_t back)
{
	const struct vb_echo ask = { .kind = ECHO_ASK,
				     .token = p->token,
				     .number = number,
				     .bytes = back };
	struct vb_route route = { .sgid = *from,
				  .dgid = *to,
				  .ifindex = ifindex,
				  .dqpn = VB_GSI_QPN,
				  .sqpn = probe_qpn(p) };
	int rc = p->link->ops->route(p->link, &route);

	if (rc)
		return rc;
	put_probe(p, &route, &ask, bytes);
	if (p->link->ops->send(p->link, &p->txq))
		return 0;
	p->link->ops->drop(p->link, &p->txq);
	return -ENOBUFS;
}

/* Is the frame an answer to a question of this probe? */
static bool is_answer(const struct vb_probe *p, const struct vb_frame *f,
		      struct vb_probe_answer *a)
{
	struct vb_ib_pkt pkt;
	struct vb_echo e;

	if (vb_ib_parse(f->bytes, f->len, &pkt) != PARSE_OK ||
	    pkt.bth.opcode != PROBE_OPCODE || pkt.bth.dqpn != probe_qpn(p) ||
	    !vb_echo_get(pkt.payload, pkt.payload_bytes, &e) ||
	    e.kind != ECHO_ANSWER || e.token != p->token)
		return false;
	*a = (struct vb_probe_answer){ .number = e.number, .mtu = e.mtu };
	return true;
}

static bool find_answer(struct vb_probe *p, struct vb_probe_answer *a)
{
	while (p->next < p->rxq.count)
		if (is_answer(p, &p->rxq.frames[p->next++], a))
			return true;
	p->next = 0;
	p->rxq.count = 0;
	return false;
}

static bool find_return(struct vb_probe *p, struct vb_probe_answer *a)
{
	uint8_t bytes[64];
	struct vb_udp_return r;

	if (!vb_udp_next_return(p->link, bytes, sizeof(bytes), &r))
		return false;
	*a = (struct vb_probe_answer){ .error = r.error };
	return true;
}

bool vb_probe_hear(struct vb_probe *p, vb_time until, struct vb_probe_answer *a)
{
	struct pollfd fd = { p->link->ops->fd(p->link), POLLIN, 0 };

	for (;;) {
		if (find_answer(p, a) || find_return(p, a))
			return true;
		if (vb_clock_read() >= until)
			return false;
		/* Returned packets wake nobody, so the wait is short. */
		(void)poll(&fd, 1, 10);
		if (p->link->ops->recv(p->link, &p->rxq) < 0)
			p->rxq.count = 0;
	}
}
