/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes questions to the subnet administrator, and reads its answers. The
 * layouts are those of IBA 15.2.5.16 and 15.2.5.17. */
#include "ipoib/sa.h"

#include "base/bytes.h"

#define METHOD_GET    0x01
#define METHOD_SET    0x02
#define METHOD_DELETE 0x15
#define METHOD_ANSWER 0x80

#define ATTR_GROUP 0x38
#define ATTR_PATH  0x35

#define AT_MASK	    48
#define AT_RECORD   56
#define GROUP_BYTES 52
#define PATH_BYTES  64

#define EXACTLY 0x80 /* the selector "equal to", above a code of 6 bits */
#define CODE	0x3f

#define ONE_REVERSIBLE 0x81 /* Reversible, and NumbPath 1 */

/* Bits of the component masks. */
enum {
	GROUP_MGID = 1 << 0,
	GROUP_PORT_GID = 1 << 1,
	GROUP_QKEY = 1 << 2,
	GROUP_MTU = 3 << 4, /* selector and value */
	GROUP_TCLASS = 1 << 6,
	GROUP_PKEY = 1 << 7,
	GROUP_RATE = 3 << 8,
	GROUP_SL = 1 << 12,
	GROUP_FLOW = 1 << 13,
	GROUP_HOPS = 1 << 14,
	GROUP_JOIN = 1 << 16,
	PATH_DGID = 1 << 2,
	PATH_SGID = 1 << 3,
	PATH_REVERSIBLE = 1 << 11,
	PATH_COUNT = 1 << 12,
	PATH_PKEY = 1 << 13,
};

static void sa_put_head(uint8_t mad[VB_SA_BYTES], unsigned method,
			unsigned attr, uint64_t tid, uint64_t mask)
{
	memset(mad, 0, VB_SA_BYTES);
	mad[0] = 1; /* the base version */
	mad[1] = VB_SA_CLASS;
	mad[2] = VB_SA_VERSION;
	mad[3] = (uint8_t)method;
	vb_store_be(mad + 8, tid, 8);
	vb_store_be(mad + 16, attr, 2);
	vb_store_be(mad + AT_MASK, mask, 8);
}

static void put_group(uint8_t *record, const struct vb_sa_group *g,
		      const struct vb_sa_group *as)
{
	struct vb_writer w = { record };

	memcpy(w.at, g->mgid.raw, 16);
	memcpy(w.at + 16, g->port_gid.raw, 16);
	w.at += 32;
	vb_put_be(&w, as->qkey, 4);
	vb_put_be(&w, 0, 2);
	vb_put_be(&w, EXACTLY | as->mtu, 1);
	vb_put_be(&w, as->tclass, 1);
	vb_put_be(&w, g->pkey, 2);
	vb_put_be(&w, EXACTLY | as->rate, 1);
	vb_put_be(&w, 0, 1);
	vb_put_be(&w,
		  (uint32_t)as->sl << 28 | as->flow_label << 8 | as->hop_limit,
		  4);
	vb_put_be(&w, g->join, 1);
}

void vb_sa_put_join(uint8_t mad[VB_SA_BYTES], uint64_t tid,
		    const struct vb_sa_group *g, const struct vb_sa_group *as)
{
	static const struct vb_sa_group none;
	uint64_t mask = GROUP_MGID | GROUP_PORT_GID | GROUP_PKEY | GROUP_JOIN;

	if (as)
		mask |= GROUP_QKEY | GROUP_MTU | GROUP_TCLASS | GROUP_RATE |
			GROUP_SL | GROUP_FLOW | GROUP_HOPS;
	sa_put_head(mad, METHOD_SET, ATTR_GROUP, tid, mask);
	put_group(mad + AT_RECORD, g, as ? as : &none);
}

void vb_sa_put_leave(uint8_t mad[VB_SA_BYTES], uint64_t tid,
		     const struct vb_sa_group *g)
{
	static const struct vb_sa_group none;

	sa_put_head(mad, METHOD_DELETE, ATTR_GROUP, tid,
		    GROUP_MGID | GROUP_PORT_GID | GROUP_JOIN);
	put_group(mad + AT_RECORD, g, &none);
}

void vb_sa_put_path(uint8_t mad[VB_SA_BYTES], uint64_t tid,
		    const struct vb_gid *from, const struct vb_gid *to,
		    uint16_t pkey)
{
	uint8_t *record = mad + AT_RECORD;

	sa_put_head(mad, METHOD_GET, ATTR_PATH, tid,
		    PATH_DGID | PATH_SGID | PATH_REVERSIBLE | PATH_COUNT |
			    PATH_PKEY);
	memcpy(record + 8, to->raw, 16);
	memcpy(record + 24, from->raw, 16);
	record[49] = ONE_REVERSIBLE;
	vb_store_be(record + 50, pkey, 2);
}

static void get_group(const uint8_t *record, struct vb_sa_group *g)
{
	uint32_t sl_flow_hops = (uint32_t)vb_load_be(record + 44, 4);

	memcpy(g->mgid.raw, record, 16);
	memcpy(g->port_gid.raw, record + 16, 16);
	g->qkey = (uint32_t)vb_load_be(record + 32, 4);
	g->mlid = (uint16_t)vb_load_be(record + 36, 2);
	g->mtu = record[38] & CODE;
	g->tclass = record[39];
	g->pkey = (uint16_t)vb_load_be(record + 40, 2);
	g->rate = record[42] & CODE;
	g->sl = (uint8_t)(sl_flow_hops >> 28);
	g->flow_label = sl_flow_hops >> 8 & 0xfffff;
	g->hop_limit = sl_flow_hops & 0xff;
	g->join = record[48] & 0x0f;
}

/* A path that leaves the subnet has a hop limit above 1 (IBA 15.2.5.16). */
static void sa_get_path(const uint8_t *record, struct vb_ipoib_path *p)
{
	uint32_t flow_hops = (uint32_t)vb_load_be(record + 44, 4);

	p->dlid = (uint16_t)vb_load_be(record + 40, 2);
	p->flow_label = flow_hops >> 8 & 0xfffff;
	p->hop_limit = flow_hops & 0xff;
	p->tclass = record[48];
	p->sl = record[53] & 0x0f;
	p->rate = record[55] & CODE;
	p->global = p->hop_limit > 1;
}

bool vb_sa_get(const uint8_t *mad, size_t len, struct vb_sa_answer *a)
{
	unsigned attr;

	*a = (struct vb_sa_answer){ .kind = SA_OTHER };
	if (len < AT_RECORD + PATH_BYTES || mad[1] != VB_SA_CLASS ||
	    !(mad[3] & METHOD_ANSWER))
		return false;
	attr = (unsigned)vb_load_be(mad + 16, 2);
	a->tid = vb_load_be(mad + 8, 8);
	a->status = (uint16_t)vb_load_be(mad + 4, 2);
	if (attr == ATTR_GROUP) {
		a->kind = SA_GROUP;
		a->left = mad[3] == (METHOD_DELETE | METHOD_ANSWER);
		get_group(mad + AT_RECORD, &a->group);
	} else if (attr == ATTR_PATH) {
		a->kind = SA_PATH;
		sa_get_path(mad + AT_RECORD, &a->path);
	}
	return true;
}

unsigned vb_sa_mtu_bytes(unsigned code)
{
	return code >= 1 && code <= 5 ? 128u << code : 0;
}
