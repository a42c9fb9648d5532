/* SPDX-License-Identifier: BSD-2-Clause */
/* Automatic path migration: what arrives, what the program sets, and the move
 * to the other path (IBA 17.2.8). */
#include "core/migrate.h"

#include <string.h>

#include "base/log.h"
#include "core/transport.h"
#include "wire/lrh.h"

/*
 * What an arrival means, by state, MigReq and path.
 *
 * Rearm, alternate path, MigReq: the peer was Armed and has migrated, but none
 * of its packets without MigReq arrived here. It can have become Armed only by
 * a packet of this queue pair in Rearm, so this one follows.
 *
 * Armed, primary path, MigReq: the packet is older than the peer's Rearm and
 * was overtaken, or the peer's program has called the alternate path off. It
 * means nothing.
 *
 * Armed, MigReq, by no path that was loaded: the peer has migrated to a path
 * that is not the alternate path here, so migrating fails. The state is Rearm
 * then, so the program hears of it once.
 */
// clang-format off
static const struct vb_mig_row rows[MIG_STATES][2][BY_COUNT] = {
	[MIG_MIGRATED] = {
		{ [BY_STRANGER]	 = { MIG_REFUSE, MIG_MIGRATED },
		  [BY_PEER]	 = { MIG_TAKE,	 MIG_MIGRATED },
		  [BY_PRIMARY]	 = { MIG_TAKE,	 MIG_MIGRATED },
		  [BY_ALTERNATE] = { MIG_TAKE,	 MIG_MIGRATED } },
		{ [BY_STRANGER]	 = { MIG_REFUSE, MIG_MIGRATED },
		  [BY_PEER]	 = { MIG_TAKE,	 MIG_MIGRATED },
		  [BY_PRIMARY]	 = { MIG_TAKE,	 MIG_MIGRATED },
		  [BY_ALTERNATE] = { MIG_TAKE,	 MIG_MIGRATED } },
	},
	[MIG_REARM] = {
		{ [BY_STRANGER]	 = { MIG_REFUSE, MIG_REARM },
		  [BY_PEER]	 = { MIG_TAKE,	 MIG_ARMED },
		  [BY_PRIMARY]	 = { MIG_TAKE,	 MIG_ARMED },
		  [BY_ALTERNATE] = { MIG_TAKE,	 MIG_ARMED } },
		{ [BY_STRANGER]	 = { MIG_REFUSE, MIG_REARM },
		  [BY_PEER]	 = { MIG_TAKE,	 MIG_REARM },
		  [BY_PRIMARY]	 = { MIG_TAKE,	 MIG_REARM },
		  [BY_ALTERNATE] = { MIG_SWITCH, MIG_MIGRATED } },
	},
	[MIG_ARMED] = {
		{ [BY_STRANGER]	 = { MIG_REFUSE, MIG_ARMED },
		  [BY_PEER]	 = { MIG_TAKE,	 MIG_ARMED },
		  [BY_PRIMARY]	 = { MIG_TAKE,	 MIG_ARMED },
		  [BY_ALTERNATE] = { MIG_TAKE,	 MIG_ARMED } },
		{ [BY_STRANGER]	 = { MIG_REFUSE, MIG_ARMED },
		  [BY_PEER]	 = { MIG_ERROR,	 MIG_REARM },
		  [BY_PRIMARY]	 = { MIG_TAKE,	 MIG_ARMED },
		  [BY_ALTERNATE] = { MIG_SWITCH, MIG_MIGRATED } },
	},
};
// clang-format on

struct vb_mig_row vb_mig_hear(enum vb_mig_state state, bool requested,
			      enum vb_mig_path path)
{
	return rows[state][requested][path];
}

/* Functions that move the queue pair to its alternate path. */

void vb_mig_unload(struct vb_qp_attr *a)
{
	a->alt_av = (struct vb_av){ .port_num = 0 };
	a->alt_port_num = a->alt_timeout = 0;
	a->alt_pkey_index = 0;
	a->path_mig_state = MIG_MIGRATED;
}

/* Make the alternate path in @a the primary one. */
static void promote(struct vb_qp_attr *a)
{
	a->av = a->alt_av;
	a->port_num = a->alt_port_num;
	a->pkey_index = a->alt_pkey_index;
	a->timeout = a->alt_timeout;
	vb_mig_unload(a);
}

/* Returns why the queue pair cannot use port @p, that of the alternate path in
 * @a; NULL: it can. */
static const char *port_fault(struct vb_port *p, const struct vb_qp_attr *a)
{
	uint8_t active;

	if (!p)
		return "the adapter does not have the alternate path's port";
	/* Linux refuses alternate paths of RoCE ports as well. */
	if (!vb_port_is_ib(p))
		return "only InfiniBand has alternate paths";
	if (a->alt_pkey_index >= atomic_load(&p->pkey_count))
		return "the alternate path's P_Key index is out of range";
	vb_mutex_lock(&p->lock);
	active = p->active_mtu;
	vb_mutex_unlock(&p->lock);
	if (a->path_mtu > active)
		return "the path MTU is above that of the alternate path's "
		       "port";
	return NULL;
}

/* Returns why there is no route for the alternate path in @a; NULL: *@r is
 * it. */
static const char *route_of(struct vb_qp *qp, const struct vb_qp_attr *a,
			    struct vb_route *r)
{
	const char *why =
		port_fault(vb_adapter_port(qp->adapter, a->alt_port_num), a);

	if (why)
		return why;
	return vb_av_route(qp->adapter, &a->alt_av, atomic_load(&qp->qpn),
			   a->dest_qp_num, r, &why)
		       ? why
		       : NULL;
}

void vb_mig_switched(struct vb_qp *qp)
{
	qp->migrations++;
	vb_log(LOG_INFO, "qp 0x%x: migrated to LID %u by port %u",
	       atomic_load(&qp->qpn), qp->route.ib.dlid, qp->attr.port_num);
	vb_qp_event(qp, EVENT_PATH_MIG);
}

/* Move to the alternate path. What was valid when the program loaded the path
 * may be gone: its GID or its P_Key. Then the queue pair stays where it is,
 * without an alternate path: in Migrated, the program loads a path before it
 * sets Rearm (IBA 17.2.8), and a stale path would fail again. */
static bool migrate(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	struct vb_port *p = vb_mig_port(qp);
	struct vb_route r;
	const char *why = route_of(qp, &qp->attr, &r);

	if (!why && !vb_port_pkey(p, qp->attr.alt_pkey_index))
		why = "there is no P_Key at its index";
	if (why) {
		vb_log(LOG_WARN,
		       "qp 0x%x: cannot migrate to the alternate path: %s",
		       atomic_load(&qp->qpn), why);
		vb_mig_unload(&qp->attr);
		vb_mig_note_port(qp);
		vb_qp_event(qp, EVENT_PATH_MIG_ERR);
		return false;
	}
	promote(&qp->attr);
	vb_mig_note_port(qp);
	qp->route = r;
	atomic_store(&qp->port, p);
	vb_mig_switched(qp);
	return true;
}

bool vb_mig_fail_over(struct vb_qp *qp)
{
	return qp->attr.path_mig_state == MIG_ARMED && migrate(qp);
}

/* Has @pkey the P_Key of the primary path or, if @alternate, that of the
 * alternate one? */
static bool path_has_pkey(const struct vb_qp *qp, bool alternate, uint16_t pkey)
	VB_REQUIRES(qp->drive)
{
	const struct vb_qp_attr *a = &qp->attr;
	struct vb_port *p = alternate ? vb_mig_port(qp) : vb_qp_port(qp);
	uint16_t index = alternate ? a->alt_pkey_index : a->pkey_index;

	return vb_pkeys_match(vb_port_pkey(p, index), pkey);
}

enum vb_counter vb_mig_arrive(struct vb_qp *qp, const struct vb_link *link,
			      const struct vb_frame *f, bool requested,
			      uint16_t pkey)
{
	struct vb_qp_attr *a = &qp->attr;
	enum vb_mig_path path = vb_ib_path_of(qp, link, f);
	struct vb_mig_row row = vb_mig_hear(
		(enum vb_mig_state)a->path_mig_state, requested, path);

	if (row.act == MIG_REFUSE)
		return CNT_DROP_ADDRESS;
	if (!path_has_pkey(qp, path == BY_ALTERNATE, pkey))
		return CNT_DROP_PKEY;
	if (row.act == MIG_SWITCH)
		return migrate(qp) ? CNT_COUNT : CNT_DROP_ADDRESS;
	a->path_mig_state = (uint8_t)row.next;
	if (row.act == MIG_TAKE)
		return CNT_COUNT;
	vb_log(LOG_WARN,
	       "qp 0x%x: the peer has migrated to LIDs %u to %u, which are not "
	       "those of the alternate path here",
	       atomic_load(&qp->qpn), f->slid, f->dlid);
	vb_qp_event(qp, EVENT_PATH_MIG_ERR);
	return CNT_DROP_ADDRESS;
}

/* Functions for the attributes of paths that the program sets. */

/* Returns a sentence that says what is wrong with the alternate path in @asked;
 * NULL: nothing. @p: the queue pair's port; the alternate path may use another
 * port of the adapter (IBA 11.2.5.2). */
static const char *alternate_fault(const struct vb_port *p,
				   const struct vb_qp_attr *asked)
{
	if (!vb_port_is_ib(p))
		return "only InfiniBand has alternate paths";
	if (asked->alt_av.port_num != asked->alt_port_num)
		return "the alternate path's address has another port than the "
		       "path";
	if (asked->alt_timeout > 31)
		return "the alternate path's timeout is above 31";
	if (asked->alt_av.dlid >= VB_LID_MCAST)
		return "the alternate path's DLID is a multicast group's";
	return NULL;
}

/* Load the alternate path of @asked. A queue pair that was Armed with another
 * one must agree with the peer again. */
static const char *load(struct vb_qp *qp, const struct vb_qp_attr *asked,
			struct vb_qp_attr *attr, struct vb_route *alt)
	VB_REQUIRES(qp->drive)
{
	struct vb_port *p = vb_adapter_port(qp->adapter, attr->port_num);
	const char *why = alternate_fault(p ? p : vb_qp_port(qp), asked);

	if (why)
		return why;
	attr->alt_av = asked->alt_av;
	attr->alt_port_num = asked->alt_port_num;
	attr->alt_pkey_index = asked->alt_pkey_index;
	attr->alt_timeout = asked->alt_timeout;
	if (attr->path_mig_state == MIG_ARMED)
		attr->path_mig_state = MIG_REARM;
	return route_of(qp, attr, alt);
}

const char *vb_mig_modify(struct vb_qp *qp, const struct vb_qp_attr *asked,
			  uint32_t mask, struct vb_qp_attr *attr,
			  struct vb_route *alt, bool *switches)
{
	const char *why = NULL;

	if (mask & QPM_ALT_PATH)
		why = load(qp, asked, attr, alt);
	if (why || !(mask & QPM_PATH_MIG_STATE))
		return why;
	if (asked->path_mig_state == MIG_REARM && !vb_mig_is_loaded(attr))
		return "no alternate path is loaded that Rearm could use";
	/* If the port changes in the same call, vb_mig_unload() has removed the
	 * path, and there is nothing to switch to. */
	*switches = asked->path_mig_state == MIG_MIGRATED &&
		    qp->attr.path_mig_state == MIG_ARMED &&
		    vb_mig_is_loaded(attr);
	attr->path_mig_state = asked->path_mig_state;
	if (!*switches)
		return NULL;
	why = route_of(qp, attr, alt);
	promote(attr);
	return why;
}
