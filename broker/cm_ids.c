/* SPDX-License-Identifier: BSD-2-Clause */
/* Ids of librdmacm: listeners, connections and requests of programs, found by
 * the number that the program and the broker use for each. */
#include "broker/cm_priv.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"

#define MAX_IDS 65536 /* the most ids of one program */

static struct vb_cm_id **id_bucket(const struct vb_cm_client *c,
				   uint32_t number)
{
	uint64_t h = vb_hash(c->cm->key, (uintptr_t)c);

	return &c->cm->buckets[vb_hash(h, number) % VB_CM_ID_BUCKETS];
}

struct vb_cm_id *vb_cm_id_find(const struct vb_cm_client *c, uint32_t number)
{
	struct vb_cm_id *id = *id_bucket(c, number);

	while (id && !(id->client == c && id->number == number))
		id = id->next;
	return id;
}

int vb_cm_id_make(struct vb_cm_client *c, uint32_t number,
		  struct vb_cm_id **made)
{
	struct vb_cm_id **at = id_bucket(c, number), *id;

	if (c->ids >= MAX_IDS || !vb_user_take(c->user, VB_QUOTA_IDS, 1))
		return -ENOBUFS;
	id = calloc(1, sizeof(*id));
	if (!id) {
		vb_user_give(c->user, VB_QUOTA_IDS, 1);
		return -ENOMEM;
	}
	id->client = c;
	id->number = number;
	id->next = *at;
	*at = id;
	id->next_own = c->own;
	id->prev_own_at = &c->own;
	if (c->own)
		c->own->prev_own_at = &id->next_own;
	c->own = id;
	c->ids++;
	*made = id;
	return 0;
}

int vb_cm_id_bind_port(struct vb_cm_id *id)
{
	struct vb_user *user = id->client->user;
	int rc = -ENOBUFS;

	if (vb_user_may_have(user, VB_QUOTA_PORTS, 1))
		rc = vb_cm_ports_bind(&id->client->cm->ports, &id->port);
	if (rc)
		id->port.number = 0;
	else
		vb_user_count(user, VB_QUOTA_PORTS, 1);
	return rc;
}

static void free_port(struct vb_cm_id *id)
{
	if (!id->port.number)
		return;
	vb_cm_ports_free(&id->client->cm->ports, &id->port);
	vb_user_give(id->client->user, VB_QUOTA_PORTS, 1);
}

void vb_cm_id_leave_backlog(struct vb_cm_id *id)
{
	struct vb_cm_id *l =
		id->listener ? vb_cm_id_find(id->client, id->listener) : NULL;

	id->listener = 0;
	if (l && l->pending > 0)
		l->pending--;
}

void vb_cm_id_free(struct vb_cm_id *id)
{
	struct vb_cm_id **at = id_bucket(id->client, id->number);

	vb_cm_id_leave_backlog(id);
	vb_cm_id_leave_places(id);
	while (*at != id)
		at = &(*at)->next;
	*at = id->next;
	*id->prev_own_at = id->next_own;
	if (id->next_own)
		id->next_own->prev_own_at = id->prev_own_at;
	free_port(id);
	if (id->conn)
		vb_cm_release(id->conn, id->client->cm->now);
	id->client->ids--;
	vb_user_give(id->client->user, VB_QUOTA_IDS, 1);
	free(id);
}
