/* SPDX-License-Identifier: BSD-2-Clause */
/* ibv_modify_qp: which state transitions are legal, which attributes each
 * transition requires or permits (IBA 10.3.1, 11.2.5.2), and which values the
 * attributes may have. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "core/migrate.h"
#include "core/transport.h"
#include "core/why.h"
#include "wire/lrh.h"

struct move {
	/* types of queue pairs that have this transition: bits 1 << enum
	 * vb_qp_type */
	uint32_t types;
	uint8_t from, to;
	/* attributes of the transition: enum vb_qp_mask, without STATE */
	uint32_t required, optional;
};

/* The legal transitions. RESET and ERR can be entered from every state, with no
 * other attribute. */
// clang-format off
#define RC (1u << QPT_RC)
#define UC (1u << QPT_UC)
#define UD (1u << QPT_UD)
#define SND (1u << QPT_XRC_SEND)
#define RCV (1u << QPT_XRC_RECV)
#define RAW (1u << QPT_RAW_PACKET)
#define WQ (1u << QPT_WQ)
static const struct move moves[] = {
	/* types  from	     to		required attributes
	 *				optional attributes */
	{ RC, QPS_RESET, QPS_INIT,	QPM_PKEY_INDEX | QPM_PORT |
					QPM_ACCESS_FLAGS,
					0 },
	{ RC, QPS_INIT,  QPS_INIT,	0,
					QPM_PKEY_INDEX | QPM_PORT |
					QPM_ACCESS_FLAGS },
	{ RC, QPS_INIT,  QPS_RTR,	QPM_AV | QPM_PATH_MTU | QPM_DEST_QPN |
					QPM_RQ_PSN | QPM_MAX_DEST_RD_ATOMIC |
					QPM_MIN_RNR_TIMER,
					QPM_ALT_PATH | QPM_ACCESS_FLAGS |
					QPM_PKEY_INDEX },
	{ RC, QPS_RTR,	 QPS_RTS,	QPM_TIMEOUT | QPM_RETRY_CNT |
					QPM_RNR_RETRY | QPM_SQ_PSN |
					QPM_MAX_QP_RD_ATOMIC,
					QPM_CUR_STATE | QPM_ALT_PATH |
					QPM_ACCESS_FLAGS | QPM_MIN_RNR_TIMER |
					QPM_PATH_MIG_STATE },
	{ RC, QPS_RTS,	 QPS_RTS,	0,
					QPM_CUR_STATE | QPM_ALT_PATH |
					QPM_ACCESS_FLAGS | QPM_MIN_RNR_TIMER |
					QPM_PATH_MIG_STATE },
	{ RC | UC | UD | SND | RCV, QPS_RTS, QPS_SQD, 0,
					QPM_EN_SQD_ASYNC_NOTIFY },
	{ RC, QPS_SQD,	 QPS_RTS,	0,
					QPM_CUR_STATE | QPM_ALT_PATH |
					QPM_ACCESS_FLAGS | QPM_MIN_RNR_TIMER |
					QPM_PATH_MIG_STATE },
	{ RC, QPS_SQD,	 QPS_SQD,	0,
					QPM_CUR_STATE | QPM_AV | QPM_ALT_PATH |
					QPM_PORT | QPM_PKEY_INDEX |
					QPM_TIMEOUT | QPM_RETRY_CNT |
					QPM_RNR_RETRY | QPM_ACCESS_FLAGS |
					QPM_MIN_RNR_TIMER |
					QPM_MAX_QP_RD_ATOMIC |
					QPM_MAX_DEST_RD_ATOMIC |
					QPM_PATH_MIG_STATE },
	{ UC, QPS_RESET, QPS_INIT,	QPM_PKEY_INDEX | QPM_PORT |
					QPM_ACCESS_FLAGS,
					0 },
	{ UC, QPS_INIT,  QPS_INIT,	0,
					QPM_PKEY_INDEX | QPM_PORT |
					QPM_ACCESS_FLAGS },
	{ UC, QPS_INIT,  QPS_RTR,	QPM_AV | QPM_PATH_MTU | QPM_DEST_QPN |
					QPM_RQ_PSN,
					QPM_ALT_PATH | QPM_ACCESS_FLAGS |
					QPM_PKEY_INDEX },
	{ UC, QPS_RTR,	 QPS_RTS,	QPM_SQ_PSN,
					QPM_CUR_STATE | QPM_ALT_PATH |
					QPM_ACCESS_FLAGS | QPM_PATH_MIG_STATE },
	{ UC, QPS_RTS,	 QPS_RTS,	0,
					QPM_CUR_STATE | QPM_ALT_PATH |
					QPM_ACCESS_FLAGS | QPM_PATH_MIG_STATE },
	{ UC, QPS_SQD,	 QPS_RTS,	0,
					QPM_CUR_STATE | QPM_ALT_PATH |
					QPM_ACCESS_FLAGS | QPM_PATH_MIG_STATE },
	{ UC, QPS_SQD,	 QPS_SQD,	0,
					QPM_AV | QPM_ALT_PATH |
					QPM_PKEY_INDEX | QPM_ACCESS_FLAGS |
					QPM_PATH_MIG_STATE },
	{ UC, QPS_SQE,	 QPS_RTS,	0,
					QPM_CUR_STATE | QPM_ACCESS_FLAGS },

	{ UD, QPS_RESET, QPS_INIT,	QPM_PKEY_INDEX | QPM_PORT | QPM_QKEY,
					0 },
	{ UD, QPS_INIT,  QPS_INIT,	0,
					QPM_PKEY_INDEX | QPM_PORT | QPM_QKEY },
	{ UD, QPS_INIT,  QPS_RTR,	0,
					QPM_PKEY_INDEX | QPM_QKEY },
	{ UD, QPS_RTR,	 QPS_RTS,	QPM_SQ_PSN,
					QPM_CUR_STATE | QPM_QKEY },
	{ UD, QPS_RTS,	 QPS_RTS,	0,
					QPM_CUR_STATE | QPM_QKEY },
	{ UD, QPS_SQD,	 QPS_RTS,	0,
					QPM_CUR_STATE | QPM_QKEY },
	{ UD, QPS_SQD,	 QPS_SQD,	0,
					QPM_PKEY_INDEX | QPM_QKEY },
	{ UD, QPS_SQE,	 QPS_RTS,	0,
					QPM_CUR_STATE | QPM_QKEY },

	/* XRC: the attributes of RC, divided between the sending and the
	 * receiving side (IBA annex A14). */
	{ SND | RCV, QPS_RESET, QPS_INIT, QPM_PKEY_INDEX | QPM_PORT |
					QPM_ACCESS_FLAGS,
					0 },
	{ SND | RCV, QPS_INIT, QPS_INIT, 0,
					QPM_PKEY_INDEX | QPM_PORT |
					QPM_ACCESS_FLAGS },
	{ SND, QPS_INIT, QPS_RTR,	QPM_AV | QPM_PATH_MTU | QPM_DEST_QPN |
					QPM_RQ_PSN,
					QPM_ALT_PATH | QPM_ACCESS_FLAGS |
					QPM_PKEY_INDEX },
	{ RCV, QPS_INIT, QPS_RTR,	QPM_AV | QPM_PATH_MTU | QPM_DEST_QPN |
					QPM_RQ_PSN | QPM_MAX_DEST_RD_ATOMIC |
					QPM_MIN_RNR_TIMER,
					QPM_ALT_PATH | QPM_ACCESS_FLAGS |
					QPM_PKEY_INDEX },
	{ SND, QPS_RTR,	 QPS_RTS,	QPM_TIMEOUT | QPM_RETRY_CNT |
					QPM_RNR_RETRY | QPM_SQ_PSN |
					QPM_MAX_QP_RD_ATOMIC,
					QPM_CUR_STATE | QPM_ALT_PATH |
					QPM_ACCESS_FLAGS | QPM_PATH_MIG_STATE },
	{ RCV, QPS_RTR,	 QPS_RTS,	QPM_TIMEOUT | QPM_SQ_PSN,
					QPM_CUR_STATE | QPM_ALT_PATH |
					QPM_ACCESS_FLAGS | QPM_MIN_RNR_TIMER |
					QPM_PATH_MIG_STATE },
	{ SND, QPS_RTS,	 QPS_RTS,	0,
					QPM_CUR_STATE | QPM_ALT_PATH |
					QPM_ACCESS_FLAGS | QPM_PATH_MIG_STATE },
	{ RCV, QPS_RTS,	 QPS_RTS,	0,
					QPM_CUR_STATE | QPM_ALT_PATH |
					QPM_ACCESS_FLAGS | QPM_MIN_RNR_TIMER |
					QPM_PATH_MIG_STATE },
	{ SND, QPS_SQD,	 QPS_RTS,	0,
					QPM_CUR_STATE | QPM_ALT_PATH |
					QPM_ACCESS_FLAGS | QPM_PATH_MIG_STATE },
	{ RCV, QPS_SQD,	 QPS_RTS,	0,
					QPM_CUR_STATE | QPM_ALT_PATH |
					QPM_ACCESS_FLAGS | QPM_MIN_RNR_TIMER |
					QPM_PATH_MIG_STATE },
	{ SND, QPS_SQD,	 QPS_SQD,	0,
					QPM_CUR_STATE | QPM_AV | QPM_ALT_PATH |
					QPM_PORT | QPM_PKEY_INDEX |
					QPM_TIMEOUT | QPM_RETRY_CNT |
					QPM_RNR_RETRY | QPM_ACCESS_FLAGS |
					QPM_MAX_QP_RD_ATOMIC |
					QPM_PATH_MIG_STATE },
	{ RCV, QPS_SQD,	 QPS_SQD,	0,
					QPM_CUR_STATE | QPM_AV | QPM_ALT_PATH |
					QPM_PORT | QPM_PKEY_INDEX |
					QPM_TIMEOUT | QPM_ACCESS_FLAGS |
					QPM_MIN_RNR_TIMER |
					QPM_MAX_DEST_RD_ATOMIC |
					QPM_PATH_MIG_STATE },

	/* Raw packets have no peer to agree with on anything. */
	{ RAW, QPS_RESET, QPS_INIT,	QPM_PORT,
					0 },
	{ RAW, QPS_INIT, QPS_INIT,	0,
					QPM_PORT },
	{ RAW, QPS_INIT, QPS_RTR,	0,
					0 },
	{ RAW, QPS_RTR,	 QPS_RTS,	0,
					QPM_CUR_STATE },
	{ RAW, QPS_RTS,	 QPS_RTS,	0,
					QPM_CUR_STATE },
	{ RAW, QPS_RTS,	 QPS_SQD,	0,
					QPM_EN_SQD_ASYNC_NOTIFY },
	{ RAW, QPS_SQD,	 QPS_RTS,	0,
					QPM_CUR_STATE },
	{ RAW, QPS_SQE,	 QPS_RTS,	0,
					QPM_CUR_STATE },

	{ WQ, QPS_RESET, QPS_RTR,	0,
					0 },
	{ WQ, QPS_RTR,	 QPS_RTR,	0,
					0 },
};
#undef RC
#undef UC
#undef UD
#undef SND
#undef RCV
#undef RAW
#undef WQ

/* RNICs: a program never moves a queue pair to RTS. The connection manager
 * gives the queue pair a TCP stream, and that moves it to RTS (docs/WIRE.md
 * 4.3, engine/stream.c). InfiniBand's attributes are accepted and ignored. A
 * program that has finished moves the queue pair to SQD: the stream ends when
 * everything is sent. */
#define IB_WORDS (QPM_PKEY_INDEX | QPM_PORT | QPM_ACCESS_FLAGS)
static const struct move rnic_moves[] = {
	{ 0, QPS_RESET, QPS_INIT, 0, IB_WORDS },
	{ 0, QPS_INIT, QPS_INIT, 0, IB_WORDS },
	{ 0, QPS_RTS, QPS_RTS, 0, QPM_CUR_STATE | QPM_ACCESS_FLAGS },
	{ 0, QPS_RTS, QPS_SQD, 0, QPM_EN_SQD_ASYNC_NOTIFY },
};
#undef IB_WORDS

static const struct move anywhere = { 0 };

/* One attribute: its place in struct vb_qp_attr and, for a number, its range.
 * bytes == 0: the attribute is not supported. */
struct field {
	uint32_t bit;
	const char *name;
	uint16_t at, bytes;
	uint32_t min, max;
};

#define ROW(bit, member, min, max)                             \
	{ QPM_##bit, #bit, offsetof(struct vb_qp_attr, member), \
	  sizeof(((struct vb_qp_attr *)0)->member), min, max }
#define ANY UINT32_MAX
static const struct field fields[] = {
	/*  bit			member		    min	 max */
	ROW(CUR_STATE,		cur_qp_state,	    0,	 QPS_COUNT - 1),
	ROW(EN_SQD_ASYNC_NOTIFY, sqd_async_notify,  0,	 1),
	ROW(ACCESS_FLAGS,	access_flags,	    0,	 ANY),
	ROW(PKEY_INDEX,		pkey_index,	    0,	 VB_MAX_PKEYS - 1),
	ROW(PORT,		port_num,	    1,	 VB_MAX_PORTS),
	ROW(QKEY,		qkey,		    0,	 ANY),
	ROW(AV,			av,		    0,	 0),
	ROW(PATH_MTU,		path_mtu,	    1,	 5),
	ROW(TIMEOUT,		timeout,	    0,	 31),
	ROW(RETRY_CNT,		retry_cnt,	    0,	 7),
	ROW(RNR_RETRY,		rnr_retry,	    0,	 7),
	ROW(RQ_PSN,		rq_psn,		    0,	 ANY),
	ROW(MAX_QP_RD_ATOMIC,	max_rd_atomic,	    0,	 VB_MAX_RD_ATOM),
	ROW(MIN_RNR_TIMER,	min_rnr_timer,	    0,	 31),
	ROW(SQ_PSN,		sq_psn,		    0,	 ANY),
	ROW(MAX_DEST_RD_ATOMIC,	max_dest_rd_atomic, 0,	 VB_MAX_RD_ATOM),
	/* A program cannot set Armed: the two ends agree on it. */
	ROW(PATH_MIG_STATE,	path_mig_state,	    0,	 MIG_REARM),
	ROW(DEST_QPN,		dest_qp_num,	    0,	 0xffffff),
	ROW(RATE_LIMIT,		rate_limit,	    0,	 ANY),
	ROW(ALT_PATH,		alt_av,		    0,	 0),
	{ QPM_CAP,	"CAP",	    0, 0, 0, 0 },
};
#undef ANY
#undef ROW
// clang-format on

/* One request to modify a queue pair, and its result. */
struct change {
	struct vb_qp *qp;
	const struct vb_qp_attr *asked;
	uint32_t mask;
	enum vb_qp_state from, to;
	/* the port after the change; NULL: the adapter has no such port */
	struct vb_port *port;
	struct vb_qp_attr attr;
	struct vb_route route, alt_route;
	/* the program has forced the queue pair to its alternate path */
	bool migrates;
	uint32_t mtu;
};

static const struct move *find_rnic_move(const struct change *c)
{
	for (size_t i = 0; i < VB_COUNT(rnic_moves); i++)
		if (rnic_moves[i].from == c->from && rnic_moves[i].to == c->to)
			return &rnic_moves[i];
	return NULL;
}

static const struct move *find_move(const struct change *c)
{
	if (c->to == QPS_RESET || c->to == QPS_ERR)
		return &anywhere;
	if (c->qp->adapter->rnic)
		return find_rnic_move(c);
	for (size_t i = 0; i < VB_COUNT(moves); i++)
		if (moves[i].types & 1u << c->qp->type &&
		    moves[i].from == c->from && moves[i].to == c->to)
			return &moves[i];
	return NULL;
}

/* Writes the names of the attributes in @mask to @text, as "AV, PATH_MTU". */
static const char *mask_text(uint32_t mask, char *text, size_t room)
{
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < VB_COUNT(fields) && used < room; i++) {
		if (!(mask & fields[i].bit))
			continue;
		used += (size_t)snprintf(text + used, room - used, "%s%s",
					 used ? ", " : "", fields[i].name);
		mask &= ~fields[i].bit;
	}
	if (mask && used < room)
		snprintf(text + used, room - used, "%s0x%x", used ? ", " : "",
			 mask);
	return text;
}

/* Log why the change @c is refused. */
static int core_refuse(const struct change *c, enum vb_why why,
		       const char *what, uint32_t mask)
{
	uint32_t qpn = atomic_load(&c->qp->qpn);
	char text[320];

	vb_why(why, qpn, "qp 0x%x: ibv_modify_qp from %s to %s %s %s", qpn,
	       vb_qp_state_name(c->from), vb_qp_state_name(c->to), what,
	       mask_text(mask, text, sizeof(text)));
	return -EINVAL;
}

static int refuse_move(const struct change *c)
{
	uint32_t qpn = atomic_load(&c->qp->qpn);
	bool iwarp = c->qp->adapter->rnic && c->to != QPS_INIT;

	vb_why(iwarp ? WHY_IWARP_MOVE : WHY_TRANSITION, qpn,
	       "qp 0x%x: ibv_modify_qp from %s to %s is no legal transition%s",
	       qpn, vb_qp_state_name(c->from), vb_qp_state_name(c->to),
	       iwarp ? " on an iWARP device" : "");
	return -EINVAL;
}

static int refuse_number(const struct change *c, const char *name,
			 uint32_t value, uint32_t min, uint32_t max)
{
	uint32_t qpn = atomic_load(&c->qp->qpn);

	vb_why(WHY_ATTR_RANGE, qpn,
	       "qp 0x%x: ibv_modify_qp from %s to %s: %s is %u, allowed is "
	       "%u to %u",
	       qpn, vb_qp_state_name(c->from), vb_qp_state_name(c->to), name,
	       value, min, max);
	return -EINVAL;
}

static int check_mask(const struct change *c)
{
	const struct move *m = find_move(c);
	uint32_t given = c->mask & ~(uint32_t)QPM_STATE;

	if (!m)
		return refuse_move(c);
	if (m->required & ~given)
		return core_refuse(c, WHY_ATTR_MISSING, "needs",
				   m->required & ~given);
	if (given & ~(m->required | m->optional))
		return core_refuse(c, WHY_ATTR_EXTRA, "does not take",
				   given & ~(m->required | m->optional));
	return 0;
}

/* Read an attribute of any width from @attr; an enum is as wide as an int. */
static uint32_t value_of(const struct vb_qp_attr *attr, const struct field *f)
{
	const char *at = (const char *)attr + f->at;

	switch (f->bytes) {
	case 1:
		return *(const uint8_t *)at;
	case 2:
		return *(const uint16_t *)at;
	case 4:
		return *(const uint32_t *)at;
	/* an address vector has no number to check; apply_av() and
	 * vb_mig_modify() check it */
	default:
		return f->min;
	}
}

static int check_values(const struct change *c)
{
	for (size_t i = 0; i < VB_COUNT(fields); i++) {
		const struct field *f = &fields[i];
		uint32_t value = value_of(c->asked, f);

		if (!(c->mask & f->bit))
			continue;
		if (f->bytes == 0)
			return core_refuse(c, WHY_NO_SUPPORT,
					   "does not support", f->bit);
		if (value < f->min || value > f->max)
			return refuse_number(c, f->name, value, f->min, f->max);
	}
	if (!c->port)
		return refuse_number(c, "PORT", c->asked->port_num, 1,
				     c->qp->adapter->port_count);
	if (c->mask & QPM_PKEY_INDEX &&
	    c->asked->pkey_index >= atomic_load(&c->port->pkey_count))
		return core_refuse(
			c, WHY_ATTR_RANGE,
			"names an entry that is not there:", QPM_PKEY_INDEX);
	if (c->mask & QPM_CUR_STATE && c->asked->cur_qp_state != c->from)
		return core_refuse(c, WHY_ATTR_RANGE, "has another state than",
				   QPM_CUR_STATE);
	return 0;
}

static bool moves_port(const struct change *c)
{
	return c->port != vb_qp_port(c->qp);
}

/* Are the path MTU and the P_Key index, which the queue pair keeps, valid at
 * its new port? */
static int check_kept(const struct change *c)
{
	uint8_t active;

	if (!moves_port(c))
		return 0;
	if (!(c->mask & QPM_PKEY_INDEX) &&
	    c->qp->attr.pkey_index >= atomic_load(&c->port->pkey_count))
		return core_refuse(c, WHY_ATTR_MISSING,
				   "changes the port, which has no P_Key at "
				   "the index of the old one, and needs",
				   QPM_PKEY_INDEX);
	vb_mutex_lock(&c->port->lock);
	active = c->port->active_mtu;
	vb_mutex_unlock(&c->port->lock);
	if (c->qp->mtu > vb_mtu_bytes(active))
		return core_refuse(c, WHY_ATTR_RANGE,
				   "keeps a path MTU above that of the new "
				   "port in",
				   QPM_PORT);
	return 0;
}

/* A queue pair for raw packets cannot change its port, since its packet socket
 * belongs to one port. A connected queue pair changes its port only together
 * with its address vector. */
static int check_port(const struct change *c)
{
	const struct vb_port *ethernet = vb_adapter_ethernet(c->qp->adapter);

	if (!(c->mask & QPM_PORT))
		return 0;
	/* an adapter without such a port has no queue pairs for raw packets */
	if (c->qp->type == QPT_RAW_PACKET && ethernet && c->port != ethernet)
		return core_refuse(c, WHY_ATTR_RANGE,
				   "is of raw packets, and names another port "
				   "than the first Ethernet one in",
				   QPM_PORT);
	if (c->from == QPS_SQD && moves_port(c) && !(c->mask & QPM_AV))
		return core_refuse(c, WHY_ATTR_MISSING,
				   "changes the port, and needs", QPM_AV);
	return check_kept(c);
}

/* attributes that vb_mig_modify() applies */
#define PATHS ((uint32_t)(QPM_ALT_PATH | QPM_PATH_MIG_STATE))

static void apply(struct change *c)
{
	c->attr = c->qp->attr;
	for (size_t i = 0; i < VB_COUNT(fields); i++) {
		const struct field *f = &fields[i];

		if (c->mask & f->bit & ~PATHS)
			memcpy((char *)&c->attr + f->at,
			       (const char *)c->asked + f->at, f->bytes);
	}
	c->attr.rq_psn &= VB_PSN_MASK;
	c->attr.sq_psn &= VB_PSN_MASK;
	/* The alternate path belongs to the old port: unload it. */
	if (moves_port(c) && !(c->mask & QPM_ALT_PATH))
		vb_mig_unload(&c->attr);
	if (c->to != QPS_SQD)
		c->attr.sq_draining = false;
	if (c->from != QPS_RTS || c->to != QPS_SQD)
		return;
	/* A program must ask for the event of a drained send queue anew at each
	 * move to SQD. */
	if (!(c->mask & QPM_EN_SQD_ASYNC_NOTIFY))
		c->attr.sqd_async_notify = false;
	c->attr.sq_draining = true;
}

/*
 * Returns the MTU that the queue pair uses: the path MTU, limited to what the
 * interface carries, because the kernel would fragment every longer packet.
 * Programs request such path MTUs nevertheless. A peer on a link with equal MTU
 * limits its own MTU alike. A peer whose interface carries more sends longer
 * packets; then both sides log the cause at the first such packet
 * (vb_rc_explain_length()). @path_mtu 0: no limit but the interface's.
 */
static uint32_t usable_mtu(const struct vb_qp *qp, struct vb_port *p,
			   uint8_t path_mtu)
{
	uint8_t active;

	vb_mutex_lock(&p->lock);
	active = p->active_mtu;
	vb_mutex_unlock(&p->lock);
	if (path_mtu > active)
		vb_log(LOG_WARN,
		       "qp 0x%x: path MTU %u is more than %s carries; using "
		       "%u, which the peer refuses if its interface carries "
		       "more or if it is not Verbena",
		       atomic_load(&qp->qpn), vb_mtu_bytes(path_mtu), p->netdev,
		       vb_mtu_bytes(active));
	return vb_mtu_bytes(path_mtu ? VB_MIN(path_mtu, active) : active);
}

/* Does the port refuse the path MTU? */
static int check_mtu(const struct change *c)
{
	uint8_t active;

	if (!(c->mask & QPM_PATH_MTU) || !c->port->addressing->strict_mtu)
		return 0;
	vb_mutex_lock(&c->port->lock);
	active = c->port->active_mtu;
	vb_mutex_unlock(&c->port->lock);
	if (c->asked->path_mtu > active)
		return core_refuse(
			c, WHY_ATTR_RANGE,
			"asks for more than the port carries:", QPM_PATH_MTU);
	return 0;
}

/* True if the new address is that of a group, which is refused: a connected
 * queue pair has one peer. */
static bool av_is_group(const struct change *c)
{
	return vb_port_is_ib(c->port) && c->attr.av.dlid >= VB_LID_MCAST;
}

static int apply_av(struct change *c)
{
	const struct vb_av *av = &c->attr.av;
	uint32_t qpn = atomic_load(&c->qp->qpn);
	char text[VB_GID_TEXT];
	const char *why;
	int rc;

	if (av->port_num != c->port->number)
		return core_refuse(c, WHY_ADDRESS,
				   "has another port than the queue pair in",
				   QPM_AV);
	if (av_is_group(c))
		return core_refuse(c, WHY_ADDRESS, "takes no multicast LID in",
				   QPM_AV);
	rc = vb_av_route(c->qp->adapter, av, qpn, c->attr.dest_qp_num,
			 &c->route, &why);

	if (rc)
		vb_why(vb_av_why(rc, av, c->port), qpn,
		       "qp 0x%x: ibv_modify_qp from %s to %s: no route to %s "
		       "from sgid_index %u: %s: %s",
		       qpn, vb_qp_state_name(c->from), vb_qp_state_name(c->to),
		       vb_gid_text(&av->dgid, text), av->sgid_index, why,
		       strerror(-rc));
	return rc;
}

/* Log @why, a sentence of vb_mig_modify(), as the reason of a refusal. */
static int refuse_paths(const struct change *c, const char *why)
{
	uint32_t qpn = atomic_load(&c->qp->qpn);
	enum vb_why code = WHY_ADDRESS;

	if (!(c->mask & QPM_ALT_PATH))
		code = c->asked->path_mig_state == MIG_REARM ? WHY_ATTR_MISSING
							     : WHY_ROUTE;
	else if (!vb_port_is_ib(c->port))
		code = WHY_NO_SUPPORT;
	vb_why(code, qpn, "qp 0x%x: ibv_modify_qp from %s to %s: %s", qpn,
	       vb_qp_state_name(c->from), vb_qp_state_name(c->to), why);
	return -EINVAL;
}

static int apply_paths(struct change *c)
{
	struct vb_qp *qp = c->qp;
	const char *why;

	vb_mutex_assert_held(&qp->drive);
	if (!(c->mask & PATHS))
		return 0;
	why = vb_mig_modify(qp, c->asked, c->mask, &c->attr, &c->alt_route,
			    &c->migrates);
	if (why)
		return refuse_paths(c, why);
	if (!c->migrates)
		return 0;
	c->route = c->alt_route;
	c->port = vb_adapter_port(qp->adapter, c->attr.port_num);
	return 0;
}

/* Set the MTU, on the move to RTR only: a connection counts the packets of its
 * messages by the path MTU, so that must not change later. A datagram may be as
 * long as the port allows. */
static void apply_mtu(struct change *c)
{
	if (c->from != QPS_INIT || c->to != QPS_RTR)
		return;
	c->mtu = usable_mtu(c->qp, c->port,
			    c->qp->type == QPT_UD ? 0 : c->attr.path_mtu);
}

static int plan(struct change *c)
{
	int rc = check_mask(c);

	c->port = c->mask & QPM_PORT
			  ? vb_adapter_port(c->qp->adapter, c->asked->port_num)
			  : vb_qp_port(c->qp);
	if (rc == 0)
		rc = check_values(c);
	if (rc == 0)
		rc = check_port(c);
	if (rc == 0)
		rc = check_mtu(c);
	if (rc)
		return rc;
	apply(c);
	c->route = c->qp->route;
	c->alt_route = c->qp->alt_route;
	c->mtu = c->qp->mtu;
	if (c->mask & QPM_AV)
		rc = apply_av(c);
	if (rc == 0)
		rc = apply_paths(c);
	if (rc == 0)
		apply_mtu(c);
	return rc;
}

/* Apply the change @c, which is fully checked: no step can fail from here
 * on. */
static void core_carry_out(const struct change *c, vb_time now)
{
	struct vb_qp *qp = c->qp;

	vb_mutex_assert_held(&qp->drive);
	qp->attr = c->attr;
	qp->route = c->route;
	qp->alt_route = c->alt_route;
	qp->mtu = c->mtu;
	atomic_store(&qp->port, c->port);
	vb_mig_note_port(qp);
	atomic_store(&qp->state, c->to);
	if (c->from == QPS_SQE)
		qp->why = 0;
	qp->adapter->transport->enter(qp, c->from, c->to, now);
	if (c->to == QPS_RESET)
		vb_qp_clear(qp);
	vb_qp_note(qp);
	if (c->migrates)
		vb_mig_switched(qp);
	if (c->to == QPS_ERR)
		vb_qp_flush(qp);
}

static void core_qp_state_settle(struct vb_qp *qp)
{
	const struct vb_transport *t = qp->adapter->transport;

	if (t->settle)
		t->settle(qp->adapter, qp->index);
}

int vb_qp_modify(struct vb_qp *qp, const struct vb_qp_attr *attr, uint32_t mask,
		 vb_time now)
{
	struct change c = { .qp = qp, .asked = attr, .mask = mask };
	int rc;

	vb_mutex_lock(&qp->drive);
	now = vb_qp_advance(qp, now);
	c.from = atomic_load(&qp->state);
	c.to = mask & QPM_STATE ? attr->qp_state : c.from;
	rc = plan(&c);
	if (rc == 0)
		core_carry_out(&c, now);
	vb_mutex_unlock(&qp->drive);
	if (rc == 0 && (c.to == QPS_RESET || c.to == QPS_ERR))
		core_qp_state_settle(qp);
	return rc;
}
