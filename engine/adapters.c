/* SPDX-License-Identifier: BSD-2-Clause */
/* The adapters that the engine serves: one for each open device, shared by all
 * callers that open it. The caller of the functions here holds list_lock. */
#include "engine/engine_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fork.h"
#include "engine/counters.h"

_Static_assert(VB_VPI_PORTS <= VB_MAX_PORTS, "an adapter has the ports");

static struct vb_open_adapter *find_adapter(struct vb_engine *e,
					    const char *name)
	VB_REQUIRES(e->list_lock)
{
	struct vb_open_adapter *oa = e->adapters;

	while (oa && strcmp(oa->device.name, name) != 0)
		oa = oa->next;
	return oa;
}

static bool has_number(const struct vb_engine *e, unsigned number)
	VB_REQUIRES(e->list_lock)
{
	for (struct vb_open_adapter *oa = e->adapters; oa; oa = oa->next)
		if (oa->adapter.number == number)
			return true;
	return false;
}

static unsigned free_number(const struct vb_engine *e) VB_REQUIRES(e->list_lock)
{
	unsigned number = 0;

	while (has_number(e, number))
		number++;
	return number;
}

static void choose_ops(struct vb_adapter *a, enum vb_device_kind kind)
{
	static const struct {
		const struct vb_transport *transport;
		const struct vb_key_ops *keys;
		const struct vb_forward_ops *forward;
	} ops[] = {
		[DEVICE_ROCE] = { &vb_mux_transport, &vb_mux_keys,
				  &vb_engine_forward_ops },
		[DEVICE_IWARP] = { &vb_mux_stream_transport, &vb_mux_keys,
				   NULL },
		[DEVICE_ROCEV1] = { &vb_mux_transport, &vb_mux_keys,
				    &vb_engine_forward_ops },
		[DEVICE_IB] = { &vb_mux_transport, &vb_mux_keys,
				&vb_engine_forward_ops },
		[DEVICE_VPI] = { &vb_mux_transport, &vb_mux_keys,
				 &vb_engine_forward_ops },
	};

	a->transport = ops[kind].transport;
	a->key_ops = ops[kind].keys;
	a->forward_ops = ops[kind].forward;
}

/* Give port @i of the adapter, from 0, its state, and a link if it is not the
 * engine's. */
static int set_up_port(struct vb_engine *e, struct vb_open_adapter *oa,
		       unsigned i) VB_REQUIRES(e->list_lock)
{
	enum vb_device_kind kind = oa->device.port[i].kind;
	int rc = 0;

	if (kind == DEVICE_IB)
		return vb_fabric_open(e, oa, i);
	if (kind == DEVICE_ROCEV1)
		rc = vb_engine_roce1_enter(e, oa, i);
	return rc ? rc : vb_ports_setup(e, oa, i);
}

static int set_up_ports(struct vb_engine *e, struct vb_open_adapter *oa)
	VB_REQUIRES(e->list_lock)
{
	int rc = 0;

	oa->adapter.port_count = oa->device.port_count;
	for (unsigned i = 0; i < oa->adapter.port_count; i++)
		oa->adapter.ports[i].link = e->link;
	for (unsigned i = 0; rc == 0 && i < oa->adapter.port_count; i++)
		rc = set_up_port(e, oa, i);
	if (rc)
		vb_fabric_close(e, oa);
	return rc;
}

static int make_adapter(struct vb_engine *e, const struct vb_device *device,
			struct vb_open_adapter **out) VB_REQUIRES(e->list_lock)
{
	struct vb_open_adapter *oa = calloc(1, sizeof(*oa));
	int rc;

	if (!oa)
		return -ENOMEM;
	rc = vb_adapter_init(&oa->adapter, device->name);
	if (rc)
		goto free_adapter;
	oa->device = *device;
	oa->adapter.guid = device->guid;
	oa->adapter.qps = e->qps;
	oa->adapter.qpn_base = e->lease.slot << VB_QPN_BITS;
	oa->adapter.host_slot = e->lease.slot;
	oa->adapter.rnic = device->kind == DEVICE_IWARP;
	choose_ops(&oa->adapter, device->kind);
	oa->adapter.number = free_number(e);
	rc = set_up_ports(e, oa);
	if (rc)
		goto fini_adapter;
	vb_counter_file_open(&oa->adapter);
	if (oa->adapter.counters != oa->adapter.own_counters)
		vb_fork_closes(oa->adapter.counters_fd);
	oa->next = e->adapters;
	e->adapters = oa;
	*out = oa;
	return 0;

fini_adapter:
	vb_adapter_fini(&oa->adapter);
free_adapter:
	free(oa);
	return rc;
}

static void drop_adapter(struct vb_engine *e, struct vb_open_adapter *oa)
	VB_REQUIRES(e->list_lock)
{
	struct vb_open_adapter **at = &e->adapters;

	while (*at != oa)
		at = &(*at)->next;
	*at = oa->next;
	vb_fabric_close(e, oa);
	vb_counter_file_close(&oa->adapter);
	vb_adapter_fini(&oa->adapter);
	free(oa);
}

int vb_adapters_open(struct vb_engine *e, const struct vb_device *device,
		     struct vb_async *async, struct vb_adapter **adapter)
{
	struct vb_open_adapter *oa = find_adapter(e, device->name);
	struct vb_watcher *w = malloc(sizeof(*w));
	int rc = 0;

	if (!w)
		return -ENOMEM;
	if (!oa)
		rc = make_adapter(e, device, &oa);
	if (rc) {
		free(w);
		return rc;
	}
	*w = (struct vb_watcher){ async, oa->watchers };
	oa->watchers = w;
	oa->refs++;
	*adapter = &oa->adapter;
	return 0;
}

static void stop_watching(struct vb_open_adapter *oa,
			  const struct vb_async *async)
{
	struct vb_watcher **at = &oa->watchers, *w;

	while ((*at)->async != async)
		at = &(*at)->next;
	w = *at;
	*at = w->next;
	free(w);
}

void vb_adapters_close(struct vb_engine *e, struct vb_adapter *adapter,
		       struct vb_async *async)
{
	struct vb_open_adapter *oa =
		VB_CONTAINER_OF(adapter, struct vb_open_adapter, adapter);

	stop_watching(oa, async);
	if (--oa->refs == 0)
		drop_adapter(e, oa);
}

/* Save the counters when the program exits, since many programs do not close
 * their devices. list_lock is only tried: a thread that no longer runs may hold
 * it. */
static void __attribute__((destructor)) save_counts(void)
{
	struct vb_engine *e = vb_engine_running();

	if (!e || !vb_mutex_trylock(&e->list_lock))
		return;
	for (struct vb_open_adapter *oa = e->adapters; oa; oa = oa->next)
		vb_counter_file_save(&oa->adapter);
	vb_mutex_unlock(&e->list_lock);
}

void vb_engine_with_adapters(struct vb_engine *e,
			     void (*f)(struct vb_open_adapter *oa, void *arg),
			     void *arg)
{
	vb_mutex_lock(&e->list_lock);
	for (struct vb_open_adapter *oa = e->adapters; oa; oa = oa->next)
		f(oa, arg);
	vb_mutex_unlock(&e->list_lock);
}
