/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends messages to a program, and queues those for which its socket has no
 * room. */
#include "broker/outbox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fdmail.h"
#include "base/log.h"

struct vb_outbox_message {
	struct vb_outbox_message *next;
	size_t len;
	uint8_t bytes[];
};

/* Returns the bytes that a queued message of @len bytes counts as. */
static size_t weight(size_t len)
{
	return sizeof(struct vb_outbox_message) + len;
}

void vb_outbox_init(struct vb_outbox *o, int fd, struct vb_user *user)
{
	*o = (struct vb_outbox){ .fd = fd, .user = user };
	o->last = &o->first;
}

static void drop_first(struct vb_outbox *o)
{
	struct vb_outbox_message *l = o->first;

	o->first = l->next;
	if (!o->first)
		o->last = &o->first;
	o->bytes -= weight(l->len);
	vb_user_give(o->user, VB_QUOTA_BYTES, weight(l->len));
	free(l);
}

void vb_outbox_fini(struct vb_outbox *o)
{
	while (o->first)
		drop_first(o);
}

static int post(const struct vb_outbox *o, const uint8_t *bytes, size_t len)
{
	return vb_fdmail_send(o->fd, bytes, len, NULL, 0, MSG_DONTWAIT);
}

static void give_up(struct vb_outbox *o, const char *why)
{
	vb_log(LOG_WARN,
	       "broker: a program does not read its messages, so its session "
	       "is closed: %zu bytes wait; %s",
	       o->bytes, why);
	o->error = -ENOBUFS;
}

static void outbox_keep(struct vb_outbox *o, const uint8_t *bytes, size_t len)
{
	struct vb_outbox_message *l;
	char why[128];

	if (weight(len) > VB_OUTBOX_BYTES - o->bytes) {
		give_up(o, "a session may have no more");
		return;
	}
	if (!vb_user_take(o->user, VB_QUOTA_BYTES, weight(len))) {
		vb_user_word_quota(o->user, VB_QUOTA_BYTES, why, sizeof(why));
		give_up(o, why);
		return;
	}
	l = malloc(weight(len));
	if (!l) {
		vb_user_give(o->user, VB_QUOTA_BYTES, weight(len));
		o->error = -ENOMEM;
		return;
	}
	l->next = NULL;
	l->len = len;
	memcpy(l->bytes, bytes, len);
	*o->last = l;
	o->last = &l->next;
	o->bytes += weight(len);
}

void vb_outbox_put(struct vb_outbox *o, const uint8_t *bytes, size_t len)
{
	int rc = -EAGAIN;

	if (o->error)
		return;
	if (!o->first)
		rc = post(o, bytes, len);
	if (rc == -EAGAIN)
		outbox_keep(o, bytes, len);
	else
		o->error = rc;
}

void vb_outbox_flush(struct vb_outbox *o)
{
	while (o->first && !o->error) {
		int rc = post(o, o->first->bytes, o->first->len);

		if (rc == -EAGAIN)
			return;
		o->error = rc;
		if (rc == 0)
			drop_first(o);
	}
}
