/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The agent's table of attributes. The class has no key, so every initiator may
 * ask. Attributes of diagnosis (IBA 16.3.3.6 to 16.3.3.10) have no row: a
 * controller here has nothing that could be tested.
 */
#include "mgmt/iou.h"

#include <stdio.h>
#include <stdlib.h>

#include "wire/cc.h"
#include "wire/smp.h"

#define IOU_RESP_TIME 18 /* RespTimeValue: 4.096 us * 2^18, about a second */
/* What the profile says of a controller's queue pairs. */
#define SEND_DEPTH 128
#define SEND_SIZE  8256 /* a command with 8 KiB of immediate data */
#define READ_DEPTH 16
#define RDMA_SIZE  65536
/* bit of a GUID that marks it as locally administered, and not made from the
 * number of a manufacturer */
#define LOCAL_GUID ((uint64_t)1 << 57)
/* the lowest bit of the manufacturer's number in a GUID */
#define MAKER_BIT 40

struct vb_iou {
	const struct vb_fab_node *node;
	struct vb_iou_unit unit;
	uint16_t change_id;
	/* ClassPortInfo as set, for each of the node's ports 0..ports */
	struct vb_class_info *class;
};

struct iou_ask {
	struct vb_iou *agent;
	/* ClassPortInfo of the port that the request came to */
	struct vb_class_info *class;
	uint32_t mod;		     /* attribute modifier of the request */
	uint8_t *data; /* the request's data, VB_IOU_DATA_BYTES long */
};

struct vb_iou *vb_iou_create(const struct vb_fab_node *node)
{
	struct vb_iou *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->node = node;
	a->class = calloc(node->ports + 1u, sizeof(*a->class));
	if (!a->class) {
		free(a);
		return NULL;
	}
	return a;
}

void vb_iou_destroy(struct vb_iou *a)
{
	if (!a)
		return;
	free(a->class);
	free(a);
}

/* Do two units consist of the same controllers and service entries? Compares
 * the fields, since the padding between them has no fixed value. */
static bool same_units(const struct vb_iou_unit *a, const struct vb_iou_unit *b)
{
	if (a->controllers != b->controllers || a->entries != b->entries)
		return false;
	for (unsigned i = 0; i < a->entries; i++)
		if (a->entry[i].slot != b->entry[i].slot ||
		    a->entry[i].service.id != b->entry[i].service.id ||
		    strcmp(a->entry[i].service.name,
			   b->entry[i].service.name) != 0)
			return false;
	return true;
}

void vb_iou_set(struct vb_iou *a, const struct vb_iou_unit *unit)
{
	if (same_units(&a->unit, unit))
		return;
	a->unit = *unit;
	a->change_id++;
}

/* Returns a GUID. The first controller has that of its node, as with Linux's
 * target. The others differ from it in the manufacturer's number, which is then
 * a local one, since the numbers next to it may be those of other nodes. */
uint64_t vb_iou_guid(const struct vb_fab_node *node, unsigned slot)
{
	if (slot == 1)
		return node->guid;
	return (node->guid | LOCAL_GUID) ^ (uint64_t)(slot - 1) << MAKER_BIT;
}

/* Functions for services. */

static bool is_srp(const struct vb_iou_service *s)
{
	return strncmp(s->name, VB_IOU_SRP_PREFIX, strlen(VB_IOU_SRP_PREFIX)) ==
	       0;
}

/* Returns the only service of a controller for which no entry was given. */
static struct vb_iou_service own_service(const struct vb_iou *a, unsigned slot)
{
	struct vb_iou_service s = { .id = vb_iou_guid(a->node, slot) };

	snprintf(s.name, sizeof(s.name), VB_IOU_SRP_PREFIX "%016jx",
		 (uintmax_t)s.id);
	return s;
}

/* Write the services of the controller in @slot to @to. Returns how many there
 * are, one at least. */
static unsigned list_services(const struct vb_iou *a, unsigned slot,
			      struct vb_iou_service to[VB_IOU_SERVICES])
{
	unsigned count = 0;

	for (unsigned i = 0; i < a->unit.entries; i++)
		if (a->unit.entry[i].slot == slot)
			to[count++] = a->unit.entry[i].service;
	if (count == 0)
		to[count++] = own_service(a, slot);
	return count;
}

/* Returns MAD_OK if a controller is in @slot, else the status that says why
 * not. */
static unsigned judge_slot(const struct vb_iou *a, unsigned slot)
{
	if (slot < 1 || slot > VB_IOU_SLOTS)
		return MAD_BAD_FIELD;
	return slot > a->unit.controllers ? IOU_NO_CONTROLLER : MAD_OK;
}

/* Functions for the attributes. Get fills in the data, which are zero before.
 */

static unsigned iou_get_class(struct iou_ask *q)
{
	struct vb_class_info c = *q->class;

	c.base_version = VB_MAD_BASE_VERSION;
	c.class_version = VB_IOU_CLASS_VERSION;
	c.cap_mask = 0;
	c.cap_mask2 = 0;
	c.resp_time = IOU_RESP_TIME;
	vb_class_info_put(q->data, &c);
	return MAD_OK;
}

/* Set the address for traps. Nothing here sends a trap of this class, but
 * initiators set the address all the same, and take a refusal for a fault. */
static unsigned iou_set_class(struct iou_ask *q)
{
	struct vb_class_info c;

	vb_class_info_get(q->data, &c);
	if (c.trap_lid >= VB_LID_MCAST)
		return MAD_BAD_FIELD;
	*q->class = c;
	return MAD_OK;
}

static unsigned get_unit(struct iou_ask *q)
{
	const struct vb_iou_info i = {
		.change_id = q->agent->change_id,
		.slots = VB_IOU_SLOTS,
	};

	vb_iou_info_put(q->data, &i);
	memset(q->data + VB_IOU_LIST_AT, 0xff, VB_IOU_LIST_BYTES);
	for (unsigned s = 1; s <= VB_IOU_SLOTS; s++)
		vb_iou_slot_put(q->data, s,
				s <= q->agent->unit.controllers
					? IOU_SLOT_TAKEN
					: IOU_SLOT_EMPTY);
	return MAD_OK;
}

static unsigned get_profile(struct iou_ask *q)
{
	const struct vb_fab_node *n = q->agent->node;
	struct vb_iou_service services[VB_IOU_SERVICES];
	unsigned status = judge_slot(q->agent, q->mod), count;
	struct vb_iou_profile p = {
		.vendor_id = n->vendor_id,
		.device_id = n->device_id,
		.device_version = (uint16_t)n->revision,
		.subsystem_vendor = n->vendor_id,
		.subsystem_id = n->device_id,
		.io_class = VB_IOU_VENDOR_SPECIFIC,
		.io_subclass = VB_IOU_VENDOR_SPECIFIC,
		.protocol = VB_IOU_VENDOR_SPECIFIC,
		.send_depth = SEND_DEPTH,
		.read_depth = READ_DEPTH,
		.send_size = SEND_SIZE,
		.rdma_size = RDMA_SIZE,
		.operations = IOU_SEND_TO | IOU_SEND_FROM | IOU_READ_FROM |
			      IOU_WRITE_FROM,
	};

	if (status != MAD_OK)
		return status;
	count = list_services(q->agent, q->mod, services);
	p.guid = vb_iou_guid(n, q->mod);
	p.services = (uint8_t)count;
	for (unsigned i = 0; i < count; i++) {
		if (!is_srp(&services[i]))
			continue;
		p.io_class = VB_IOU_SRP_CLASS;
		p.io_subclass = VB_IOU_SRP_SUBCLASS;
		p.protocol = VB_IOU_SRP_PROTOCOL;
		p.protocol_version = VB_IOU_SRP_PROTOCOL_VERSION;
	}
	vb_iou_profile_put(q->data, &p);
	/* The text has room for 64 bytes. At most 40 of them are the node's
	 * description, so that the words after it fit, too. */
	snprintf((char *)q->data + VB_IOU_TEXT_AT, VB_IOU_TEXT_BYTES,
		 "%.40s I/O controller %u", n->desc, q->mod);
	return MAD_OK;
}

/* Write the entries of a range. It may end behind the last entry: the answer
 * has those that there are. */
static unsigned get_services(struct iou_ask *q)
{
	unsigned slot = q->mod >> 16, last = q->mod >> 8 & 0xff;
	unsigned first = q->mod & 0xff, count;
	unsigned status = judge_slot(q->agent, slot);
	struct vb_iou_service services[VB_IOU_SERVICES];

	if (status != MAD_OK)
		return status;
	if (first > last || last - first >= VB_IOU_ENTRIES)
		return MAD_BAD_FIELD;
	count = list_services(q->agent, slot, services);
	if (first >= count)
		return IOU_NO_SERVICE;
	for (unsigned i = first; i <= last && i < count; i++)
		vb_iou_service_put(q->data + (i - first) * VB_IOU_SERVICE_BYTES,
				   &services[i]);
	return MAD_OK;
}

static const struct iou_attribute {
	uint16_t id;
	unsigned (*get)(struct iou_ask *q), (*set)(struct iou_ask *q);
} iou_attributes[] = {
	{ IOU_CLASS_PORT_INFO, iou_get_class, iou_set_class },
	{ IOU_UNIT_INFO, get_unit, NULL },
	{ IOU_CONTROLLER_PROFILE, get_profile, NULL },
	{ IOU_SERVICE_ENTRIES, get_services, NULL },
};

/* Functions that handle requests. */

static unsigned iou_answer(struct iou_ask *q, const struct vb_mad_hdr *h)
{
	const struct iou_attribute *a = iou_attributes;
	unsigned status = vb_mad_judge(h->base_version, h->class_version,
				       VB_IOU_CLASS_VERSION, h->method);

	if (status != MAD_OK)
		return status;
	while (a < iou_attributes + VB_COUNT(iou_attributes) &&
	       a->id != h->attr_id)
		a++;
	if (a == iou_attributes + VB_COUNT(iou_attributes) ||
	    (h->method == MAD_SET && !a->set))
		return MAD_BAD_ATTRIBUTE;
	if (h->method == MAD_SET)
		status = a->set(q);
	if (status != MAD_OK)
		return status;
	memset(q->data, 0, VB_IOU_DATA_BYTES);
	return a->get(q);
}

bool vb_iou_hear(struct vb_iou *a, uint8_t own, uint8_t mad[VB_MAD_BYTES])
{
	struct iou_ask q = {
		.agent = a,
		.class = &a->class[own],
		.data = mad + VB_IOU_DATA_AT,
	};
	struct vb_reader r = vb_reader(mad, VB_MAD_BYTES);
	struct vb_writer w = { mad };
	struct vb_mad_hdr h;

	if (a->unit.controllers == 0 || !vb_mad_hdr_get(&r, &h) ||
	    h.method & MAD_RESPONSE || h.method == MAD_TRAP ||
	    h.method == MAD_TRAP_REPRESS)
		return false;
	q.mod = h.attr_mod;
	h.status = (uint16_t)iou_answer(&q, &h);
	h.method = MAD_GET_RESP;
	vb_mad_hdr_put(&w, &h);
	return true;
}
