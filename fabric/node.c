/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes nodes, and translates the codes of PortInfo and SwitchInfo. */
#include "fabric/router.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_PKEY	0xffff
#define DEFAULT_PREFIX	0xfe80000000000000u
#define DEFAULT_WEIGHT	4
#define DEFAULT_MTU	5
#define DEFAULT_VL_CAP	4
#define DEFAULT_PKEYS	32
#define DEFAULT_MCAST	1024
#define DEFAULT_LATENCY 100
#define DEFAULT_ERRORS	8
#define GUID_CAP	8
#define LIFE_UNIT_NS	4096
#define LIFE_MOST	19
#define ROUND_TRIP_NONE 0xffffffu

static const uint8_t vls_of[] = { 1, 1, 2, 4, 8, 15 };
static const uint16_t mtu_of[] = { 0, 256, 512, 1024, 2048, 4096 };

unsigned vb_fab_vls(uint8_t code)
{
	return code < VB_COUNT(vls_of) ? vls_of[code] : 1;
}

unsigned vb_fab_mtu_bytes(uint8_t code)
{
	return code < VB_COUNT(mtu_of) ? mtu_of[code] : 0;
}

vb_time vb_fab_life_ns(uint8_t code)
{
	return code > LIFE_MOST ? VB_NEVER : (vb_time)LIFE_UNIT_NS << code;
}

const struct vb_fab_width_row vb_fab_widths[] = {
	{ "1x", FAB_1X, FAB_1X, 1 },
	{ "2x", FAB_2X, FAB_1X | FAB_2X, 2 },
	{ "4x", FAB_4X, FAB_1X | FAB_4X, 4 },
	{ "8x", FAB_8X, FAB_1X | FAB_4X | FAB_8X, 8 },
	{ "12x", FAB_12X, FAB_1X | FAB_4X | FAB_12X, 12 },
};

/* Data rates, without the overhead of the coding: 8b/10b, from FDR on 64b/66b.
 * FDR10 is a speed of one vendor; here it stands for QDR. */
const struct vb_fab_speed_row vb_fab_speeds[] = {
	{ "SDR", FAB_SDR, 0, 25, 250000000u },
	{ "DDR", FAB_DDR, 0, 50, 500000000u },
	{ "QDR", FAB_QDR, 0, 100, 1000000000u },
	{ "FDR10", FAB_QDR, 0, 100, 1000000000u },
	{ "FDR", 0, FAB_FDR, 140, 1704545455u },
	{ "EDR", 0, FAB_EDR, 250, 3125000000u },
	{ "HDR", 0, FAB_HDR, 500, 6250000000u },
	{ "NDR", 0, FAB_NDR, 1000, 12500000000u },
};

/* Returns the row of the port's active speed; NULL: its link is down. */
static const struct vb_fab_speed_row *speed_of(const struct vb_fab_port *p)
{
	for (unsigned i = 0; i < VB_FAB_SPEEDS; i++) {
		const struct vb_fab_speed_row *s = &vb_fab_speeds[i];

		if (p->speed_ext_active
			    ? s->ext == p->speed_ext_active
			    : s->speed && s->speed == p->speed_active)
			return s;
	}
	return NULL;
}

static unsigned lanes_of(const struct vb_fab_port *p)
{
	for (unsigned i = 0; i < VB_FAB_WIDTHS; i++)
		if (p->width_active == vb_fab_widths[i].bit)
			return vb_fab_widths[i].lanes;
	return 0;
}

uint64_t vb_fab_bytes_per_sec(const struct vb_fab_port *p)
{
	const struct vb_fab_speed_row *s = speed_of(p);

	return s ? lanes_of(p) * s->rate : 0;
}

unsigned vb_fab_gbits(const struct vb_fab_port *p)
{
	const struct vb_fab_speed_row *s = speed_of(p);

	return s ? lanes_of(p) * s->tenths / 10 : 0;
}

int vb_fab_find_pkey(const struct vb_fab_port *p, uint16_t pkey)
{
	for (unsigned i = 0; i < p->pkeys; i++)
		if (vb_fab_pkeys_match(p->pkey[i], pkey))
			return (int)i;
	return -1;
}

bool vb_fab_is_own_lid(const struct vb_fab_node *node, uint8_t port,
		       uint16_t dlid)
{
	const struct vb_fab_port *p = &node->port[port];
	bool one = node->kind == FAB_SWITCH && !node->sw.enhanced_port0;
	unsigned lids = one ? 1 : 1u << p->lmc;

	return p->lid && dlid >= p->lid && dlid < p->lid + lids;
}

static void fill_sl2vl(uint8_t sl2vl[VB_FAB_SLS], uint8_t vl_cap)
{
	for (unsigned sl = 0; sl < VB_FAB_SLS; sl++)
		sl2vl[sl] = (uint8_t)(sl % vb_fab_vls(vl_cap));
}

static void fill_arb(struct vb_fab_port *p)
{
	unsigned vls = vb_fab_vls(p->vl_cap);

	p->arb_high_cap = p->arb_low_cap = (uint8_t)VB_MAX(vls, 8u);
	for (unsigned vl = 0; vl < vls; vl++) {
		p->arb_low[vl].vl = (uint8_t)vl;
		p->arb_low[vl].weight = DEFAULT_WEIGHT;
	}
}

static bool fill_port(struct vb_fab_port *p, const struct vb_fab_node_spec *s)
{
	p->state = FAB_DOWN;
	p->phys = p->down_default = FAB_POLLING;
	p->width_supported = p->width_enabled = s->width;
	p->speed_supported = p->speed_enabled = s->speed;
	p->speed_ext_supported = p->speed_ext_enabled = s->speed_ext;
	p->mtu_cap = s->mtu_cap;
	p->mtu = 1;
	p->vl_cap = s->vl_cap;
	p->hoq_life = LIFE_MOST + 1;
	p->gid_prefix = DEFAULT_PREFIX;
	p->mkey_lease_end = VB_NEVER;
	p->local_phy_errors = p->overrun_errors = DEFAULT_ERRORS;
	p->round_trip = ROUND_TRIP_NONE;
	fill_arb(p);
	fill_sl2vl(p->sl2vl, s->vl_cap);
	p->pkeys = s->pkeys;
	p->pkey = calloc(s->pkeys, sizeof(*p->pkey));
	p->guid_cap = GUID_CAP;
	p->guids = calloc(GUID_CAP, sizeof(*p->guids));
	if (s->kind == FAB_CA)
		p->cc = calloc(1, sizeof(*p->cc));
	if (!p->pkey || !p->guids || (s->kind == FAB_CA && !p->cc))
		return false;
	p->pkey[0] = DEFAULT_PKEY;
	return true;
}

static bool fill_ports(struct vb_fab_node *n, const struct vb_fab_node_spec *s)
{
	for (unsigned i = 0; i <= s->ports; i++) {
		struct vb_fab_port *p = &n->port[i];

		if (!fill_port(p, s))
			return false;
		p->guid = p->guids[0] =
			s->guid + (s->kind == FAB_SWITCH ? 0 : i);
	}
	if (s->kind == FAB_SWITCH) {
		n->port[0].state = FAB_ACTIVE;
		n->port[0].phys = FAB_LINK_UP;
		n->port[0].mtu = s->mtu_cap;
	}
	return true;
}

static bool fill_switch(struct vb_fab_node *n, const struct vb_fab_node_spec *s)
{
	struct vb_fab_switch *sw = &n->sw;
	size_t pairs = (s->ports + 1u) * (s->ports + 1u);

	sw->linear_cap = s->linear_cap;
	sw->random_cap = s->random_cap;
	sw->mcast_cap = s->mcast_cap;
	sw->pkey_cap = s->pkeys;
	sw->store_and_forward = s->store_and_forward;
	sw->latency_ns = s->latency_ns;
	sw->life = LIFE_MOST + 1;
	sw->default_port = sw->default_mcast_primary = VB_FAB_NO_PORT;
	sw->default_mcast_other = VB_FAB_NO_PORT;
	sw->linear = malloc(s->linear_cap + 1u);
	sw->random = calloc(s->random_cap + 1u, sizeof(*sw->random));
	sw->mcast = calloc(s->mcast_cap + 1u, sizeof(*sw->mcast));
	sw->sl2vl = malloc(pairs * VB_FAB_SLS);
	if (!sw->linear || !sw->random || !sw->mcast || !sw->sl2vl)
		return false;
	memset(sw->linear, VB_FAB_NO_PORT, s->linear_cap + 1u);
	for (size_t i = 0; i < pairs; i++)
		fill_sl2vl(sw->sl2vl + i * VB_FAB_SLS, s->vl_cap);
	return true;
}

static bool fill_router(struct vb_fab_node *n, const struct vb_fab_node_spec *s)
{
	n->router = calloc(1, sizeof(*n->router));
	if (n->router)
		n->router->latency_ns = s->latency_ns;
	return n->router;
}

#define DEFAULT(field, value)                                                  \
	do {                                                                   \
		if (!(field))                                                  \
			(field) = (value);                                     \
	} while (0)

/* Fills in defaults for fields that are 0. False: a value is out of range. */
static bool complete(struct vb_fab_node_spec *s)
{
	if (!s->random_cap)
		DEFAULT(s->linear_cap, VB_FAB_LIDS);
	DEFAULT(s->mcast_cap, DEFAULT_MCAST);
	DEFAULT(s->pkeys, DEFAULT_PKEYS);
	DEFAULT(s->vl_cap, DEFAULT_VL_CAP);
	DEFAULT(s->mtu_cap, DEFAULT_MTU);
	DEFAULT(s->width, FAB_1X | FAB_4X);
	DEFAULT(s->speed, FAB_SDR | FAB_DDR | FAB_QDR);
	DEFAULT(s->latency_ns, DEFAULT_LATENCY);
	DEFAULT(s->desc, "");
	return s->kind >= FAB_CA && s->kind <= FAB_ROUTER && s->guid &&
	       s->ports && s->ports <= VB_FAB_PORTS_MAX &&
	       s->linear_cap <= VB_FAB_LIDS && s->mcast_cap <= VB_FAB_MLIDS &&
	       s->vl_cap < VB_COUNT(vls_of) && s->mtu_cap < VB_COUNT(mtu_of);
}

struct vb_fab_node *vb_fab_node_create(const struct vb_fab_node_spec *spec)
{
	struct vb_fab_node_spec s = *spec;
	struct vb_fab_node *n;

	if (!complete(&s))
		return NULL;
	n = calloc(1, sizeof(*n));
	if (!n)
		return NULL;
	n->kind = s.kind;
	n->ports = s.ports;
	n->guid = n->sys_guid = s.guid;
	n->partition_cap = s.pkeys;
	memcpy(n->desc, s.desc, strnlen(s.desc, sizeof(n->desc)));
	n->port = calloc(s.ports + 1u, sizeof(*n->port));
	if (!n->port || !fill_ports(n, &s) ||
	    (s.kind == FAB_SWITCH && !fill_switch(n, &s)) ||
	    (s.kind == FAB_ROUTER && !fill_router(n, &s))) {
		vb_fab_node_destroy(n);
		return NULL;
	}
	return n;
}

void vb_fab_node_destroy(struct vb_fab_node *n)
{
	for (unsigned i = 0; n->port && i <= n->ports; i++) {
		free(n->port[i].pkey);
		free(n->port[i].guids);
		free(n->port[i].cc);
	}
	free(n->port);
	free(n->sw.linear);
	free(n->sw.random);
	free(n->sw.mcast);
	free(n->sw.sl2vl);
	free(n->router);
	free(n);
}
