/* SPDX-License-Identifier: BSD-2-Clause */
/* Flow steering (ibv_create_flow(3)): makes a rule of core/flow.h from a struct
 * ibv_flow_attr, and the counters that count a flow's packets. */
#include "front/verbs/front.h"

#include <stdlib.h>

#include "base/log.h"

struct vb_front_flow {
	struct ibv_flow ibv;
	struct vb_front_live live;
	struct vb_flow *core;
};

struct vb_front_counters {
	struct vb_front_live live;
	struct ibv_counters ibv;
	struct vb_counters *core;
};

static struct vb_front_counters *counters_of(struct ibv_counters *c)
{
	return VB_CONTAINER_OF(c, struct vb_front_counters, ibv);
}

/*
 * The specs of which a flow rule can consist: for each spec, the layer that a
 * frame must have, and the offsets of the spec's fields in struct vb_eth_key
 * (wire/eth.h), with which frames are compared.
 */

struct field {
	uint16_t from, to, bytes;
};
#define MAX_FIELDS 7

// clang-format off
#define MAP(filter, member, key) \
	{ offsetof(struct ibv_flow_##filter, member), \
	  offsetof(struct vb_eth_key, key), \
	  sizeof(((struct ibv_flow_##filter *)0)->member) }
static const struct spec {
	uint32_t type;
	uint16_t layer, size;
	/* offsets of the value and of its mask in the spec, in bytes */
	uint16_t value, mask;
	struct field fields[MAX_FIELDS];
} specs[] = {
#define ROW(type, layer, spec) \
	IBV_FLOW_SPEC_##type, LAYER_##layer, \
	sizeof(struct ibv_flow_spec_##spec), \
	offsetof(struct ibv_flow_spec_##spec, val), \
	offsetof(struct ibv_flow_spec_##spec, mask)
	{ ROW(ETH, ETH, eth), {
		MAP(eth_filter, dst_mac, dst),
		MAP(eth_filter, src_mac, src),
		MAP(eth_filter, ether_type, ether_type),
		MAP(eth_filter, vlan_tag, vlan_tag) } },
	{ ROW(IPV4, IPV4, ipv4), {
		MAP(ipv4_filter, src_ip, sip),
		MAP(ipv4_filter, dst_ip, dip) } },
	{ ROW(IPV4_EXT, IPV4, ipv4_ext), {
		MAP(ipv4_ext_filter, src_ip, sip),
		MAP(ipv4_ext_filter, dst_ip, dip),
		MAP(ipv4_ext_filter, proto, proto),
		MAP(ipv4_ext_filter, tos, tos),
		MAP(ipv4_ext_filter, ttl, ttl),
		MAP(ipv4_ext_filter, flags, ip_flags) } },
	{ ROW(IPV6, IPV6, ipv6), {
		MAP(ipv6_filter, src_ip, sip),
		MAP(ipv6_filter, dst_ip, dip),
		MAP(ipv6_filter, flow_label, flow_label),
		MAP(ipv6_filter, next_hdr, proto),
		MAP(ipv6_filter, traffic_class, tos),
		MAP(ipv6_filter, hop_limit, ttl) } },
	{ ROW(TCP, TCP, tcp_udp), {
		MAP(tcp_udp_filter, dst_port, dport),
		MAP(tcp_udp_filter, src_port, sport) } },
	{ ROW(UDP, UDP, tcp_udp), {
		MAP(tcp_udp_filter, dst_port, dport),
		MAP(tcp_udp_filter, src_port, sport) } },
#undef ROW
};
#undef MAP

static const struct {
	uint32_t kind, layers;
} layer_groups[] = { /* a flow has at most one spec of each group */
	{ 2, LAYER_ETH }, { 3, LAYER_IPV4 | LAYER_IPV6 },
	{ 4, LAYER_TCP | LAYER_UDP },
};

/* Specs that this adapter refuses, because they need an adapter that
 * decapsulates tunnels or decrypts. */
static const uint32_t unsupported[] = {
	IBV_FLOW_SPEC_ESP, IBV_FLOW_SPEC_VXLAN_TUNNEL, IBV_FLOW_SPEC_GRE,
	IBV_FLOW_SPEC_MPLS, IBV_FLOW_SPEC_ACTION_HANDLE,
};
// clang-format on

static const struct spec *front_find_spec(uint32_t type)
{
	for (size_t i = 0; i < VB_COUNT(specs); i++)
		if (specs[i].type == type)
			return &specs[i];
	return NULL;
}

static bool has_such_layer(const struct vb_flow_rule *rule, uint16_t layer)
{
	for (size_t i = 0; i < VB_COUNT(layer_groups); i++)
		if (layer_groups[i].layers & layer)
			return layer_groups[i].layers & rule->mask.layers;
	return false;
}

static void copy_fields(const struct spec *s, const uint8_t *filter,
			struct vb_eth_key *key)
{
	for (const struct field *f = s->fields; f->bytes; f++)
		memcpy((uint8_t *)key + f->to, filter + f->from, f->bytes);
}

static int take_match(struct vb_flow_rule *rule, const struct spec *s,
		      const struct ibv_flow_spec *in)
{
	const uint8_t *bytes = (const uint8_t *)in;

	if (in->hdr.size != s->size || has_such_layer(rule, s->layer))
		return -EINVAL;
	copy_fields(s, bytes + s->value, &rule->value);
	copy_fields(s, bytes + s->mask, &rule->mask);
	rule->mask.layers |= s->layer;
	rule->value.layers |= s->layer;
	/* A rule that names a VLAN tag matches tagged frames only. */
	if (rule->mask.vlan_tag[0] || rule->mask.vlan_tag[1]) {
		rule->mask.layers |= LAYER_VLAN;
		rule->value.layers |= LAYER_VLAN;
	}
	return 0;
}

static int take_action(struct vb_flow_rule *rule,
		       const struct ibv_flow_spec *in)
{
	switch ((uint32_t)in->hdr.type) {
	case IBV_FLOW_SPEC_ACTION_TAG:
		if (in->hdr.size != sizeof(in->flow_tag))
			return -EINVAL;
		rule->tag = in->flow_tag.tag_id;
		return 0;
	case IBV_FLOW_SPEC_ACTION_DROP:
		if (in->hdr.size != sizeof(in->drop))
			return -EINVAL;
		rule->drop = true;
		return 0;
	case IBV_FLOW_SPEC_ACTION_COUNT:
		if (in->hdr.size != sizeof(in->flow_count) ||
		    !in->flow_count.counters || rule->counters)
			return -EINVAL;
		rule->counters = counters_of(in->flow_count.counters)->core;
		return 0;
	default:
		return -EINVAL;
	}
}

static int take_spec(struct vb_flow_rule *rule, const struct ibv_flow_spec *in)
{
	uint32_t type = in->hdr.type & ~(uint32_t)IBV_FLOW_SPEC_INNER;
	const struct spec *s = front_find_spec(type);

	for (size_t i = 0; i < VB_COUNT(unsupported); i++)
		if (unsupported[i] == type)
			return -EOPNOTSUPP;
	if (!s)
		return take_action(rule, in);
	if (type != (uint32_t)in->hdr.type)
		/* the spec is for a layer inside a tunnel */
		return -EOPNOTSUPP;
	return take_match(rule, s, in);
}

/* Copy the flow's kind and priority from @a to @rule. @port: the number of the
 * port by which raw packets come, which @a must name. Returns 0 or -errno. */
static int take_kind(struct vb_flow_rule *rule, const struct ibv_flow_attr *a,
		     uint8_t port)
{
	static const enum vb_flow_kind kinds[] = {
		[IBV_FLOW_ATTR_NORMAL] = FLOW_NORMAL,
		[IBV_FLOW_ATTR_ALL_DEFAULT] = FLOW_ALL_DEFAULT,
		[IBV_FLOW_ATTR_MC_DEFAULT] = FLOW_MC_DEFAULT,
		[IBV_FLOW_ATTR_SNIFFER] = FLOW_SNIFFER,
	};

	if ((unsigned)a->type >= VB_COUNT(kinds) || a->port != port ||
	    a->comp_mask)
		return -EINVAL;
	if (a->flags & ~(uint32_t)IBV_FLOW_ATTR_FLAGS_DONT_TRAP)
		return -EOPNOTSUPP;
	rule->kind = kinds[a->type];
	rule->priority = a->priority;
	rule->dont_trap = a->flags & IBV_FLOW_ATTR_FLAGS_DONT_TRAP;
	return 0;
}

/* Copy a spec before reading it: programs put the specs behind each other
 * without padding (ibv_create_flow(3)), so its address may not be aligned. */
static int take_packed_spec(struct vb_flow_rule *rule, const uint8_t *at,
			    uint16_t *size)
{
	struct ibv_flow_spec spec = { 0 };

	memcpy(&spec.hdr, at, sizeof(spec.hdr));
	if (spec.hdr.size > sizeof(spec))
		return -EINVAL;
	memcpy(&spec, at, spec.hdr.size);
	*size = spec.hdr.size;
	return take_spec(rule, &spec);
}

static int take_rule(struct vb_flow_rule *rule, const struct ibv_flow_attr *a,
		     uint8_t port)
{
	const uint8_t *at = (const uint8_t *)(a + 1);
	int rc = take_kind(rule, a, port);

	for (unsigned i = 0; !rc && i < a->num_of_specs; i++) {
		uint16_t size = 0;

		rc = take_packed_spec(rule, at, &size);
		at += size;
	}
	return rc;
}

/* Returns the number of the port of raw packets; 1 also where the device has
 * none. */
static uint8_t raw_port(struct ibv_context *context)
{
	const struct vb_port *p =
		vb_adapter_ethernet(vb_front_context(context)->adapter);

	return p ? p->number : 1;
}

struct ibv_flow *vb_front_create_flow(struct ibv_qp *qp,
				      struct ibv_flow_attr *attr)
{
	struct vb_flow_rule rule = { 0 };
	struct vb_front_flow *flow;
	int rc = vb_front_live(FRONT_QP, qp);

	if (rc)
		return vb_front_null(rc);
	flow = calloc(1, sizeof(*flow));
	rc = -ENOMEM;
	if (flow)
		rc = take_rule(&rule, attr, raw_port(qp->context));
	if (!rc)
		rc = vb_engine_flow_create(vb_front_qp(qp)->core, &rule,
					   &flow->core);
	if (rc) {
		VB_FRONT_TELL(
			rc, WHY_CREATE, qp,
			"qp 0x%x: cannot create a flow of type %d with %u specs at port %u (raw packets come at port %u): %s",
			qp->qp_num, (int)attr->type, attr->num_of_specs,
			attr->port, raw_port(qp->context), strerror(-rc));
		free(flow);
		return vb_front_null(rc);
	}
	flow->ibv.context = qp->context;
	flow->ibv.handle = vb_front_handle();
	vb_front_live_add(&flow->live, FRONT_FLOW, &flow->ibv,
			  &flow->ibv.handle);
	return &flow->ibv;
}

int vb_front_destroy_flow(struct ibv_flow *ibv)
{
	struct vb_front_flow *flow =
		VB_CONTAINER_OF(ibv, struct vb_front_flow, ibv);
	int cancel, rc = vb_front_claim(FRONT_FLOW, ibv);

	if (rc)
		return rc;
	if (vb_front_is_inherited(ibv->context))
		return vb_front_keep(&flow->live, 0);
	vb_front_live_del(&flow->live);
	cancel = vb_cancel_off();
	vb_engine_flow_destroy(flow->core);
	vb_cancel_back(cancel);
	free(flow);
	return 0;
}

/* Sets of counters. */

struct ibv_counters *vb_front_create_counters(struct ibv_context *context,
					      struct ibv_counters_init_attr *in)
{
	struct vb_front_counters *c;
	int rc;

	if (in->comp_mask)
		return vb_front_null(-EINVAL);
	c = calloc(1, sizeof(*c));
	if (!c)
		return vb_front_null(-ENOMEM);
	rc = vb_counters_create(&c->core);
	if (rc) {
		free(c);
		return vb_front_null(rc);
	}
	c->ibv.context = context;
	vb_front_live_add(&c->live, FRONT_COUNTERS, &c->ibv, NULL);
	vb_front_context_get(context);
	return &c->ibv;
}

int vb_front_destroy_counters(struct ibv_counters *ibv)
{
	int rc = vb_front_claim(FRONT_COUNTERS, ibv);

	if (rc)
		return rc;
	if (vb_front_is_inherited(ibv->context))
		return vb_front_keep(&counters_of(ibv)->live, 0);
	rc = vb_counters_destroy(counters_of(ibv)->core);
	if (rc)
		vb_why(WHY_BUSY, (uintptr_t)ibv,
		       "set of counters not destroyed: flows still use it");
	if (rc)
		return vb_front_keep(&counters_of(ibv)->live, rc);
	vb_front_live_del(&counters_of(ibv)->live);
	vb_front_context_put(ibv->context);
	free(counters_of(ibv));
	return 0;
}

/* Attach counters. The program does this first and creates flows with them
 * afterwards. An existing @flow is refused, because its count would begin at an
 * unknown moment. */
int vb_front_attach_counters(struct ibv_counters *ibv,
			     struct ibv_counter_attach_attr *a,
			     struct ibv_flow *flow)
{
	static const enum vb_counter_unit units[] = {
		[IBV_COUNTER_PACKETS] = COUNT_PACKETS,
		[IBV_COUNTER_BYTES] = COUNT_BYTES,
	};

	if (a->comp_mask)
		return vb_front_errno(-EINVAL);
	if (flow || (unsigned)a->counter_desc >= VB_COUNT(units))
		return vb_front_errno(-ENOTSUP);
	return vb_front_errno(vb_counters_attach(
		counters_of(ibv)->core, units[a->counter_desc], a->index));
}

int vb_front_read_counters(struct ibv_counters *ibv, uint64_t *values,
			   uint32_t count, uint32_t flags)
{
	if (flags & ~(uint32_t)IBV_READ_COUNTERS_ATTR_PREFER_CACHED)
		return vb_front_errno(-EINVAL);
	vb_counters_read(counters_of(ibv)->core, values, count);
	return 0;
}
