/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two connection managers with a bad wire between them, in virtual time: ends
 * connect, accept, reject, disconnect and vanish at random while messages are
 * lost, repeated, late and damaged. Three properties must hold: no end gets
 * contradicting events; every connection ends; no memory leaks.
 */
#include <stdio.h>
#include <stdlib.h>

#include "mgmt/cm_ib.h"

#define ENDS   512
#define FLYING 4096
#define SEEDS  60
#define STEPS  400
#define LOSE   2000 /* chance in 10000 that the network loses a message */
#define COPY   1500
#define DAMAGE 100

#define MUST(x)                                                                \
	do                                                                     \
		if (!(x))                                                      \
			fail(#x, __LINE__);                                    \
	while (0)

enum told { TOLD_NOTHING, TOLD_REPLY, TOLD_UP, TOLD_DOWN, TOLD_OVER };

struct end {
	struct vb_cm_conn *conn;
	unsigned side;
	enum told told;
	uint64_t service; /* service ID that the peer's request asks for */
};

struct mail {
	vb_time at;
	unsigned to;
	bool damaged;
	struct vb_mad_path path;
	uint8_t mad[VB_MAD_BYTES];
};

static uint64_t seed, state;
static struct vb_cm *side[2];
static struct vb_gid gid[2] = { { { 1 } }, { { 2 } } };
static struct end ends[ENDS];
static struct mail flying[FLYING];
static unsigned in_flight, ups, answers, damaged;
static vb_time now;
static bool quiet;
static bool hears_damage; /* the message that is being received was damaged */

static void fail(const char *what, int line)
{
	printf("cm_sim: seed %llu, line %d: does not hold: %s\n",
	       (unsigned long long)seed, line, what);
	exit(1);
}

static uint32_t dice(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33);
}

static bool maybe(unsigned chance)
{
	return dice() % 10000 < chance;
}

static void put_in_flight(unsigned to, const struct vb_mad_path *path,
			  const uint8_t mad[VB_MAD_BYTES])
{
	struct mail *m;

	if (in_flight == FLYING)
		return;
	m = &flying[in_flight++];
	m->at = now + VB_MSEC * (1 + dice() % (maybe(200) ? 9000 : 50));
	m->to = to;
	m->path =
		(struct vb_mad_path){ .sgid = path->dgid, .dgid = path->sgid };
	memcpy(m->mad, mad, VB_MAD_BYTES);
	m->damaged = maybe(DAMAGE) && ++damaged;
	if (m->damaged)
		m->mad[dice() % VB_MAD_BYTES] ^= (uint8_t)(1 + dice() % 255);
}

static void send_mad(void *arg, const struct vb_mad_path *path,
		     const uint8_t mad[VB_MAD_BYTES])
{
	unsigned from = (unsigned)(size_t)arg;

	MUST(vb_gid_equal(&path->sgid, &gid[from]));
	if (!maybe(LOSE))
		put_in_flight(!from, path, mad);
	if (maybe(COPY))
		put_in_flight(!from, path, mad);
}

static struct end *free_end(void)
{
	for (unsigned i = 0; i < ENDS; i++)
		if (!ends[i].conn)
			return &ends[i];
	return NULL;
}

static unsigned on_request(void *arg, struct vb_cm_conn *c,
			   const struct vb_cm_msg *req)
{
	struct end *e = free_end();

	if (quiet || !e)
		return CM_REJ_NO_RESOURCES;
	if (maybe(2000)) /* chance of 2000 in 10000 that no program listens */
		return CM_REJ_INVALID_SERVICE_ID;
	*e = (struct end){ c, (unsigned)(size_t)arg, TOLD_NOTHING };
	e->service = req->sidr.service_id;
	c->owner = e;
	return 0;
}

/* Check the Q_Key in a reply: the answering end sends twice the service ID. */
static void check_address(const struct vb_cm_msg *m)
{
	if (m->sidr.qkey != m->sidr.service_id * 2)
		MUST(damaged > 0);
	else
		answers++;
}

/* Check that the events of one end of a connection come in order. */
static void on_happen(void *arg, struct vb_cm_conn *c,
		      enum vb_cm_happening what, const struct vb_cm_msg *m)
{
	struct end *e = c->owner;

	MUST(e->conn == c);
	switch (what) {
	case CM_HAS_REPLY:
		MUST(e->told == TOLD_NOTHING && m);
		e->told = TOLD_REPLY;
		break;
	case CM_IS_ESTABLISHED:
		MUST(e->told == TOLD_NOTHING);
		e->told = TOLD_UP;
		ups++;
		break;
	case CM_IS_REJECTED:
		MUST(e->told <= TOLD_REPLY && m && m->attr == CM_REJ);
		e->told = TOLD_DOWN;
		break;
	case CM_IS_UNREACHABLE:
		MUST(e->told == TOLD_NOTHING);
		e->told = TOLD_DOWN;
		break;
	case CM_IS_DISCONNECTED:
		/* Even if both ends disconnect, this event comes once. */
		MUST(e->told < TOLD_DOWN);
		e->told = TOLD_DOWN;
		break;
	case CM_IS_OVER:
		MUST(e->told == TOLD_DOWN);
		e->told = TOLD_OVER;
		break;
	case CM_HAS_ADDRESS:
		MUST(e->told == TOLD_NOTHING && c->sidr && !c->passive);
		MUST(m->sidr.status <= CM_SIDR_REJECTED || hears_damage);
		if (m->sidr.status == CM_SIDR_OK)
			check_address(m);
		e->told = TOLD_DOWN;
		break;
	}
}

static void connect_one(unsigned from)
{
	const struct vb_mad_path path = { .sgid = gid[from],
					  .dgid = gid[!from] };
	struct vb_cm_msg req = { .attr = CM_REQ };
	struct end *e = free_end();

	if (!e)
		return;
	req.req.ca_guid = from + 1;
	/* Few queue pair numbers, so that old numbers come again. */
	req.req.qpn = dice() % 64;
	req.req.local_timeout = req.req.remote_timeout = VB_CM_TIMEOUT_CODE;
	req.req.max_cm_retries = VB_CM_RETRIES;
	req.req.path.ack_timeout = VB_CM_ACK_TIMEOUT;
	*e = (struct end){ .side = from };
	MUST(vb_cm_connect(side[from], &req, &path, e, now, &e->conn) == 0);
}

static void look_up_one(unsigned from)
{
	const struct vb_mad_path path = { .sgid = gid[from],
					  .dgid = gid[!from] };
	struct vb_cm_msg req = { .attr = CM_SIDR_REQ };
	struct end *e = free_end();

	if (!e)
		return;
	req.sidr.service_id = dice() % 1000;
	*e = (struct end){ .side = from };
	MUST(vb_cm_look_up(side[from], &req, &path, e, now, &e->conn) == 0);
}

static void release(struct end *e)
{
	struct vb_cm_conn *c = e->conn;

	e->conn = NULL;
	vb_cm_release(c, now);
}

static void answer_look_up(struct end *e)
{
	struct vb_cm_msg rep = { 0 };

	rep.sidr.service_id = e->service;
	rep.sidr.qkey = (uint32_t)e->service * 2;
	if (maybe(1500))
		MUST(vb_cm_reject(e->conn, CM_REJ_CONSUMER, "no", 2) == 0);
	else
		MUST(vb_cm_answer(e->conn, &rep, now) == 0);
}

static void answer(struct end *e)
{
	struct vb_cm_msg rep = { .attr = CM_REP };

	rep.rep.qpn = dice() % 64;
	rep.rep.ca_guid = e->side + 1;
	if (e->conn->state == CM_SIDR_RCVD) {
		answer_look_up(e);
		return;
	}
	if (maybe(1500))
		MUST(vb_cm_reject(e->conn, CM_REJ_CONSUMER, "no", 2) == 0);
	else if (e->conn->state == CM_REQ_RCVD)
		MUST(vb_cm_accept(e->conn, &rep, now) == 0);
	else
		MUST(vb_cm_establish(e->conn, now) == 0);
}

static void act(struct end *e)
{
	enum vb_cm_state s = e->conn->state;

	if (quiet || s == CM_CLOSED || maybe(300))
		release(e);
	else if (s == CM_REQ_RCVD || s == CM_REP_RCVD || s == CM_SIDR_RCVD)
		answer(e);
	else if (s == CM_ESTABLISHED && maybe(3000))
		MUST(vb_cm_disconnect(e->conn, now) == 0);
}

static void deliver_due(void)
{
	for (unsigned i = 0; i < in_flight;) {
		struct mail m = flying[i];

		if (m.at > now) {
			i++;
			continue;
		}
		flying[i] = flying[--in_flight];
		hears_damage = m.damaged;
		vb_cm_recv(side[m.to], &m.path, m.mad, VB_MAD_BYTES, now);
	}
}

static void step(void)
{
	now += VB_MSEC * (1 + dice() % 400);
	deliver_due();
	vb_cm_tick(side[0], now);
	vb_cm_tick(side[1], now);
	if (!quiet && maybe(3000))
		connect_one(dice() % 2);
	if (!quiet && maybe(1000))
		look_up_one(dice() % 2);
	vb_cm_listens(side[dice() % 2]);
	for (unsigned i = 0; i < ENDS; i++)
		if (ends[i].conn && maybe(quiet ? 10000 : 2000))
			act(&ends[i]);
}

static bool all_over(void)
{
	return in_flight == 0 && vb_cm_deadline(side[0]) == VB_NEVER &&
	       vb_cm_deadline(side[1]) == VB_NEVER;
}

static void play(uint64_t s)
{
	unsigned steps = 0;

	seed = s;
	state = s * 0x9e3779b97f4a7c15u + 1;
	now = VB_SEC;
	quiet = false;
	for (unsigned i = 0; i < 2; i++) {
		const struct vb_cm_ops ops = { .request = on_request,
					       .happen = on_happen,
					       .arg = (void *)(size_t)i,
					       .out = { send_mad,
							(void *)(size_t)i },
					       .random = dice };

		side[i] = vb_cm_create(&ops);
		MUST(side[i]);
	}
	for (unsigned i = 0; i < STEPS; i++)
		step();
	for (quiet = true; !all_over(); steps++) {
		MUST(steps < 10000);
		step();
	}
	for (unsigned i = 0; i < 2; i++) {
		MUST(vb_cm_busy(side[i]) == 0);
		vb_cm_destroy(side[i]);
	}
}

int main(int argc, char **argv)
{
	uint64_t count = SEEDS, first = 1;

	if (argc > 1 && argv[1][0] != '-') {
		first = strtoull(argv[1], NULL, 0);
		count = 1;
	} else if (argc > 2) {
		count = strtoull(argv[2], NULL, 0);
		first = argc > 3 ? strtoull(argv[3], NULL, 0) : 1;
	}
	for (uint64_t s = first; s < first + count; s++)
		play(s);
	printf("%llu runs, %u connections up, %u looked up\n",
	       (unsigned long long)count, ups, answers);
	return count > 10 && (ups < 100 || answers < 100);
}
