/* SPDX-License-Identifier: BSD-2-Clause */
/* The MADs that programs send and receive by their connections. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/umad.h>

#include "base/log.h"
#include "base/memfile.h"
#include "fabricd/client_priv.h"

/* --- to a program --- */

static void put_mad_address(struct ib_mad_addr *to, const struct vb_mad_addr *a)
{
	to->qpn = htobe32(a->qpn);
	to->qkey = htobe32(a->qkey);
	to->lid = htobe16(a->lid);
	to->sl = a->sl;
	to->path_bits = a->path_bits;
	to->grh_present = a->global;
	to->pkey_index = a->pkey_index;
	if (!a->global)
		return;
	to->gid_index = a->gid_index;
	to->hop_limit = a->hop_limit;
	to->traffic_class = a->tclass;
	to->flow_label = htobe32(a->flow_label);
	memcpy(to->gid, a->gid.raw, sizeof(to->gid));
}

void vb_fabricd_deliver(void *arg, void *client,
			const struct vb_mad_delivery *d)
{
	bool is_long = d->len > VB_UMAD_INLINE;
	struct vb_umad_mad m = {
		.head = { .magic = VB_UMAD_MAGIC,
			  .kind = UMAD_MAD,
			  .length = (uint32_t)d->len },
	};
	struct ib_user_mad u = {
		.agent_id = d->agent,
		.status = d->status,
		.length = (uint32_t)(sizeof(u) + d->len),
	};
	struct queued_message *l =
		malloc(sizeof(*l) + sizeof(m) + (is_long ? 0 : d->len));

	if (!l)
		return;
	put_mad_address(&u.addr, d->addr);
	memcpy(m.header, &u, sizeof(m.header));
	l->memory = is_long ? vb_memfile_make(d->bytes, d->len) : -1;
	l->memory_len = is_long ? d->len : 0;
	l->len = sizeof(m) + (is_long ? 0 : d->len);
	memcpy(l->bytes, &m, sizeof(m));
	if (!is_long)
		memcpy(l->bytes + sizeof(m), d->bytes, d->len);
	if (is_long && l->memory < 0)
		vb_queued_message_free(l);
	else
		vb_client_post(client, l);
}

/* --- from a program --- */

static struct vb_mad_addr read_mad_address(const struct ib_mad_addr *from)
{
	struct vb_mad_addr a = {
		.qpn = be32toh(from->qpn) & 0xffffff,
		.qkey = be32toh(from->qkey),
		.lid = be16toh(from->lid),
		.sl = from->sl & 15,
		.path_bits = from->path_bits,
		.global = from->grh_present,
		.gid_index = from->gid_index,
		.hop_limit = from->hop_limit,
		.tclass = from->traffic_class,
		.flow_label = be32toh(from->flow_label) & 0xfffff,
		.pkey_index = from->pkey_index,
	};

	memcpy(a.gid.raw, from->gid, sizeof(a.gid.raw));
	return a;
}

/* Return to the program the header of a MAD that could not be sent, so that the
 * program does not wait for an answer. @data: the first @len bytes of the MAD,
 * as far as they are known. */
static void refuse_mad(struct client *c, const struct vb_umad_mad *m,
		       const uint8_t *data, size_t len, int why)
{
	uint8_t header[VB_MAD_HDR_BYTES] = { 0 };
	struct vb_mad_delivery d = { .bytes = header, .len = sizeof(header) };
	struct vb_mad_addr to;
	struct ib_user_mad u;

	memcpy(&u, m->header, sizeof(u));
	memcpy(header, data, VB_MIN(len, sizeof(header)));
	to = read_mad_address(&u.addr);
	d.agent = u.agent_id;
	d.status = u.timeout_ms ? VB_AGENT_TIMEOUT : (uint32_t)-why;
	d.addr = &to;
	vb_log(LOG_DEBUG, "a program's MAD of %u bytes by agent %u: %s",
	       m->head.length, u.agent_id, strerror(-why));
	vb_fabricd_deliver(c->f, c, &d);
}

void vb_client_send(struct client *c, const struct vb_umad_mad *m,
		    const uint8_t *data, vb_time now)
{
	struct ib_user_mad u;
	struct vb_mad_send s = { .bytes = data, .len = m->head.length };
	int rc;

	memcpy(&u, m->header, sizeof(u));
	s.agent = u.agent_id;
	s.to = read_mad_address(&u.addr);
	s.timeout_ms = u.timeout_ms;
	s.retries = VB_MIN(u.retries, 1000u);
	rc = vb_agents_send(c->agents, c, &s, now);
	if (rc)
		refuse_mad(c, m, data, s.len, rc);
}

/* Read the @len bytes of a message that is too long for a datagram from its
 * memfd. *@data: the bytes, which the caller frees. 0 or -errno. */
static int read_long(int memory, size_t len, uint8_t **data)
{
	if (len > VB_UMAD_MOST)
		return -EMSGSIZE;
	*data = malloc(len);
	if (!*data)
		return -ENOMEM;
	return pread(memory, *data, len, 0) == (ssize_t)len ? 0 : -EINVAL;
}

void vb_client_send_long(struct client *c, const struct vb_umad_mad *m,
			 int memory, vb_time now)
{
	uint8_t *data = NULL, header[VB_MAD_HDR_BYTES] = { 0 };
	int rc = -EINVAL;

	if (vb_memfile_is_sealed(memory)) {
		(void)!pread(memory, header, sizeof(header), 0);
		rc = read_long(memory, m->head.length, &data);
	}
	if (rc)
		refuse_mad(c, m, header, sizeof(header), rc);
	else
		vb_client_send(c, m, data, now);
	free(data);
}
