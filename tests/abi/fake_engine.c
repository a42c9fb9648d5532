/* SPDX-License-Identifier: BSD-2-Clause */
/* A fake of the engine's functions, for the tests of the front end. */
#include "tests/abi/fake_engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/transport.h"
#include "engine/sysfs_tree.h"
#include "link/neigh.h"

struct fake_engine fake;

static int attach(struct vb_qp *qp)
{
	return 0;
}

static void detach(struct vb_qp *qp)
{
}

static void enter(struct vb_qp *qp, enum vb_qp_state from, enum vb_qp_state to,
		  vb_time now)
{
}

static const struct vb_transport transport = {
	.name = "fake",
	.attach = attach,
	.detach = detach,
	.enter = enter,
};

int vb_devices_list(const char *specs, struct vb_device **list, unsigned *count)
{
	struct vb_device *d;

	if (specs)
		return -ENODEV;
	d = calloc(fake.devices + 1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	for (unsigned i = 0; i < fake.devices; i++) {
		snprintf(d[i].name, sizeof(d[i].name), "roce_fake%u", i);
		d[i].ifindex = i + 1;
		d[i].guid = 0x0200000000000001u + i;
	}
	*list = d;
	*count = fake.devices;
	return 0;
}

static struct vb_adapter adapter;

int vb_engine_open(const struct vb_device *device, struct vb_async *async,
		   struct vb_adapter **out)
{
	int rc;

	if (fake.opens++ == 0) {
		rc = vb_adapter_init(&adapter, device->name);
		if (rc)
			return rc;
		adapter.qps = vb_idtab_create(1024, 17);
		adapter.transport = &transport;
		adapter.guid = device->guid;
	}
	*out = &adapter;
	return 0;
}

void vb_engine_close(struct vb_adapter *a, struct vb_async *async)
{
	if (--fake.opens)
		return;
	vb_adapter_fini(&adapter);
	vb_idtab_destroy(adapter.qps);
}

int vb_neigh_resolve(const struct vb_neigh_from *from, const struct vb_gid *to,
		     uint8_t mac[6], uint16_t *vlan)
{
	if (to->raw[15] == 0)
		return -EHOSTUNREACH;
	memcpy(mac, to->raw + 10, 6);
	*vlan = (uint16_t)from->ifindex;
	return 0;
}

int vb_engine_meet(unsigned slot)
{
	return -EACCES;
}

void vb_engine_share_xrc(void)
{
}

void vb_drive(struct vb_qp *qp)
{
	fake.drives++;
}

void vb_engine_begin_posted(void)
{
}

void vb_drive_short(struct vb_qp *qp)
{
	vb_drive(qp);
}

void vb_drive_settle(struct vb_qp *qp)
{
}

void vb_drive_forget(struct vb_qp *qp)
{
}

void vb_engine_poll(void)
{
	fake.polls++;
	if (fake.on_poll)
		fake.on_poll();
}

void vb_engine_poll_hint(struct vb_cq *cq)
{
}

void vb_engine_moderate(struct vb_cq *cq, uint32_t count, vb_time period)
{
	fake.moderate_count = count;
	fake.moderate_period = period;
}

void vb_engine_forget_cq(struct vb_cq *cq)
{
}

bool vb_sysfs_tree_write(char root[PATH_MAX])
{
	if (fake.tree)
		snprintf(root, PATH_MAX, "%s", fake.tree);
	return fake.tree;
}

void vb_engine_forget_channel(struct vb_channel *ch)
{
}

void vb_engine_armed(struct vb_channel *ch)
{
}

int vb_engine_wait(struct vb_channel *ch, struct vb_cq **cq)
{
	return vb_channel_take(ch, cq);
}

int vb_engine_attach(struct vb_qp *qp, const struct vb_gid *gid, uint16_t mlid)
{
	return 0;
}

int vb_engine_detach(struct vb_qp *qp, const struct vb_gid *gid, uint16_t mlid)
{
	return 0;
}

bool vb_engine_is_attached(struct vb_qp *qp)
{
	return false;
}

int vb_engine_raw_create(struct vb_adapter *a, struct vb_qp_init *init,
			 struct vb_qp **qp)
{
	return vb_qp_create(a, init, qp);
}

int vb_engine_raw_destroy(struct vb_qp *qp)
{
	if (fake.flows)
		return -EBUSY;
	vb_qp_destroy(qp);
	return 0;
}

int vb_engine_flow_create(struct vb_qp *qp, const struct vb_flow_rule *rule,
			  struct vb_flow **flow)
{
	static struct vb_flow one;

	if (qp->type != QPT_RAW_PACKET)
		return -EOPNOTSUPP;
	fake.rule = *rule;
	fake.flows++;
	if (rule->counters)
		atomic_fetch_add(&rule->counters->flows, 1);
	one = (struct vb_flow){ .rule = *rule, .qp = qp };
	*flow = &one;
	return vb_flow_check(&fake.rule);
}

void vb_engine_flow_destroy(struct vb_flow *flow)
{
	fake.flows--;
	if (flow->rule.counters)
		atomic_fetch_sub(&flow->rule.counters->flows, 1);
}

unsigned vb_engine_forks(void)
{
	return 0;
}
