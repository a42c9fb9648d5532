/* SPDX-License-Identifier: BSD-2-Clause */
/* MPA request and reply frames (RFC 5044 s7.1, RFC 6581 s9). */
#include "iwarp/setup.h"

#include <errno.h>

#define REVISION_MAX 2
/* The most READs that the peer may have outstanding at this side. */
#define DEPTH_HERE 128

/* Error codes of layer LLP, error type MPA (RFC 5044 s8, RFC 6581 s9.2). */
#define CODE_FRAME 4
#define CODE_IRD   6
#define CODE_RTR   7

const struct vb_mpa_offer vb_mpa_usual = {
	.revision = 2,
	.crc = true,
	.rtr = RTR_WRITE | RTR_READ,
	.ird = DEPTH_HERE,
	.ord = DEPTH_HERE,
};

unsigned vb_mpa_private_max(unsigned revision)
{
	return VB_MPA_PRIVATE_MAX - (revision >= 2 ? VB_MPA_DEPTH_BYTES : 0);
}

static enum vb_mpa_state break_off(struct vb_mpa_setup *m, uint8_t code)
{
	m->code = code;
	m->out_bytes = 0;
	m->state = MPA_BROKEN;
	return m->state;
}

/* Refuse the connection by a Terminate, because the peer already considers it
 * open (RFC 6581 s9.2). */
static enum vb_mpa_state terminate(struct vb_mpa_setup *m, uint8_t code)
{
	const struct vb_ddp_seg seg = {
		.last = true,
		.ddp_version = VB_DDP_VERSION,
		.rdmap_version = VB_RDMAP_VERSION,
		.opcode = RDMAP_TERMINATE,
		.queue = DDP_QUEUE_TERMINATE,
		.msn = 1,
	};
	const struct vb_term term = { .layer = TERM_LLP, .code = code };
	struct vb_writer w = { m->out + VB_MPA_LEN_BYTES };

	break_off(m, code);
	vb_ddp_seg_put(&w, &seg);
	vb_term_put(&w, &term);
	m->out_bytes = (uint16_t)vb_mpa_seal(
		m->out, (uint32_t)(w.at - m->out) - VB_MPA_LEN_BYTES,
		m->terms.crc);
	return m->state;
}

static struct vb_mpa_depths depths_of(uint8_t rtr, uint16_t ird, uint16_t ord)
{
	return (struct vb_mpa_depths){
		.peer_to_peer = rtr != RTR_NONE,
		.rtr_send = rtr & RTR_SEND,
		.rtr_write = rtr & RTR_WRITE,
		.rtr_read = rtr & RTR_READ,
		.ird = ird,
		.ord = ord,
	};
}

static uint8_t rtr_of(const struct vb_mpa_depths *d)
{
	if (!d->peer_to_peer)
		return RTR_NONE;
	return (d->rtr_send ? RTR_SEND : 0) | (d->rtr_write ? RTR_WRITE : 0) |
	       (d->rtr_read ? RTR_READ : 0);
}

/* Choose one RTR message of those that both sides offer. SEND is the last
 * choice, since the fewest adapters support it. */
static uint8_t pick_rtr(uint8_t set)
{
	static const uint8_t best[] = { RTR_WRITE, RTR_READ, RTR_SEND };

	for (size_t i = 0; i < VB_COUNT(best); i++)
		if (set & best[i])
			return best[i];
	return RTR_NONE;
}

static int mpa_put_frame(struct vb_mpa_setup *m, struct vb_mpa_frame *f,
			 const struct vb_mpa_depths *d,
			 const void *private_data, unsigned bytes)
{
	struct vb_writer w = { m->out };

	if (bytes > vb_mpa_private_max(f->enhanced ? 2 : 1))
		return -EINVAL;
	f->private_bytes =
		(uint16_t)(bytes + (f->enhanced ? VB_MPA_DEPTH_BYTES : 0));
	vb_mpa_frame_put(&w, f);
	if (f->enhanced)
		vb_mpa_depths_put(&w, d);
	if (bytes)
		memcpy(w.at, private_data, bytes);
	m->out_bytes = (uint16_t)(w.at + bytes - m->out);
	return 0;
}

int vb_mpa_connect(struct vb_mpa_setup *m, const struct vb_mpa_offer *offer,
		   const void *private_data, unsigned bytes)
{
	const struct vb_mpa_depths d =
		depths_of(offer->rtr, offer->ird, offer->ord);
	struct vb_mpa_frame f = {
		.markers = offer->markers,
		.crc = offer->crc,
		.near = offer->near,
		.enhanced = offer->revision >= 2,
		.revision = offer->revision,
	};

	if (offer->revision < 1 || offer->revision > REVISION_MAX)
		return -EINVAL;
	*m = (struct vb_mpa_setup){ .state = MPA_ASKING, .offer = *offer };
	m->terms.initiator = true;
	return mpa_put_frame(m, &f, &d, private_data, bytes);
}

void vb_mpa_listen(struct vb_mpa_setup *m, const struct vb_mpa_offer *offer)
{
	*m = (struct vb_mpa_setup){ .state = MPA_WAITING, .offer = *offer };
}

unsigned vb_mpa_want(const struct vb_mpa_setup *m)
{
	if (m->state != MPA_ASKING && m->state != MPA_WAITING)
		return 0;
	if (m->in_bytes < VB_MPA_HDR_BYTES)
		return VB_MPA_HDR_BYTES - m->in_bytes;
	return VB_MPA_HDR_BYTES + m->peer.private_bytes - m->in_bytes;
}

static uint16_t at_most(uint16_t ours, uint16_t theirs)
{
	/* VB_MPA_DEPTH_MAX means that the peer does not negotiate, and the
	 * programs agree on the depth by themselves (RFC 6581 s9.1). */
	return theirs == VB_MPA_DEPTH_MAX ? ours : VB_MIN(ours, theirs);
}

/* Compute the terms from the reply that the initiator has received. */
static enum vb_mpa_state conclude(struct vb_mpa_setup *m,
				  const struct vb_mpa_depths *d)
{
	uint8_t common = m->offer.rtr & rtr_of(d);

	m->terms.crc = m->offer.crc || m->peer.crc;
	m->terms.tx_markers = m->peer.markers;
	m->terms.rx_markers = m->offer.markers;
	m->terms.near = m->offer.near && m->peer.near;
	m->terms.ird = m->offer.ird;
	m->terms.ord = m->offer.ord;
	m->state = MPA_OPEN;
	if (!m->peer.enhanced)
		return m->state;
	m->terms.ord = at_most(m->offer.ord, d->ird);
	/* If the responder wants more READs in progress than this side offered,
	 * allow its number, up to DEPTH_HERE. */
	if (d->ord != VB_MPA_DEPTH_MAX)
		m->terms.ird = d->ord;
	if (m->terms.ird > DEPTH_HERE)
		return terminate(m, CODE_IRD);
	m->terms.rtr = pick_rtr(common);
	if (d->peer_to_peer && m->offer.rtr && !common)
		return terminate(m, CODE_RTR);
	return m->state;
}

static enum vb_mpa_state iw_take_request(struct vb_mpa_setup *m,
					 const struct vb_mpa_depths *d)
{
	m->terms.crc = m->offer.crc || m->peer.crc;
	m->terms.tx_markers = m->peer.markers;
	m->terms.rx_markers = m->offer.markers;
	m->terms.rtr = pick_rtr(m->offer.rtr & rtr_of(d));
	m->state = MPA_ASKED;
	return m->state;
}

static enum vb_mpa_state iw_take_frame(struct vb_mpa_setup *m)
{
	struct vb_reader r =
		vb_reader(m->in + VB_MPA_HDR_BYTES, m->peer.private_bytes);
	struct vb_mpa_depths d = { 0 };

	if (m->peer.enhanced && !vb_mpa_depths_get(&r, &d))
		return break_off(m, CODE_FRAME);
	m->private_data = r.at;
	m->private_bytes = (uint16_t)vb_reader_left(&r);
	m->peer_ird =
		at_most(m->offer.ord, m->peer.enhanced ? d.ird : m->offer.ord);
	m->peer_ord =
		at_most(m->offer.ird, m->peer.enhanced ? d.ord : m->offer.ird);
	m->out_bytes = 0;
	if (m->state == MPA_WAITING)
		return iw_take_request(m, &d);
	if (m->peer.reject) {
		m->state = MPA_REFUSED;
		return m->state;
	}
	return conclude(m, &d);
}

/* Check the first 20 bytes of the frame. */
static bool header_is_good(struct vb_mpa_setup *m)
{
	struct vb_reader r = vb_reader(m->in, VB_MPA_HDR_BYTES);
	struct vb_mpa_frame *f = &m->peer;

	if (!vb_mpa_frame_get(&r, f) || f->reply != (m->state == MPA_ASKING) ||
	    f->private_bytes > VB_MPA_PRIVATE_MAX || f->revision > REVISION_MAX)
		return false;
	f->enhanced = f->enhanced && f->revision >= 2;
	if (!f->reply)
		return !f->reject;
	/* A reply that accepts must have the form of the request (enhanced or
	 * not). A reply that rejects need not. */
	return f->reject || f->enhanced == (m->offer.revision >= 2);
}

enum vb_mpa_state vb_mpa_got(struct vb_mpa_setup *m, const void *bytes,
			     unsigned count)
{
	if (count == 0)
		return m->state;
	if (count > vb_mpa_want(m))
		return break_off(m, CODE_FRAME);
	memcpy(m->in + m->in_bytes, bytes, count);
	m->in_bytes += (uint16_t)count;
	if (m->in_bytes == VB_MPA_HDR_BYTES && !header_is_good(m))
		return break_off(m, CODE_FRAME);
	if (m->in_bytes < VB_MPA_HDR_BYTES || vb_mpa_want(m))
		return m->state;
	return iw_take_frame(m);
}

static int reply(struct vb_mpa_setup *m, bool reject,
		 const struct vb_mpa_depths *d, const void *private_data,
		 unsigned bytes)
{
	struct vb_mpa_frame f = {
		.reply = true,
		.markers = m->offer.markers,
		.crc = m->terms.crc,
		.near = m->terms.near && !reject,
		.reject = reject,
		.enhanced = m->peer.enhanced,
		.revision = m->peer.revision,
	};

	return mpa_put_frame(m, &f, d, private_data, bytes);
}

/* Returns the RTR messages that the reply names: the one agreed on, or, if
 * there is none, all that this side offers; none if the peer did not ask for
 * peer-to-peer mode. */
static uint8_t rtr_reply(const struct vb_mpa_setup *m)
{
	struct vb_reader r =
		vb_reader(m->in + VB_MPA_HDR_BYTES, VB_MPA_DEPTH_BYTES);
	struct vb_mpa_depths d = { 0 };

	if (!m->peer.enhanced || !vb_mpa_depths_get(&r, &d) || !d.peer_to_peer)
		return RTR_NONE;
	return m->terms.rtr ? m->terms.rtr : m->offer.rtr;
}

int vb_mpa_accept(struct vb_mpa_setup *m, uint16_t ird, uint16_t ord,
		  const void *private_data, unsigned bytes)
{
	struct vb_mpa_depths d;
	int rc;

	if (m->state != MPA_ASKED)
		return -EINVAL;
	m->terms.near = m->offer.near && m->peer.near;
	m->terms.ird = m->peer.enhanced ? VB_MIN(ird, m->peer_ord) : ird;
	m->terms.ord = m->peer.enhanced ? VB_MIN(ord, m->peer_ird) : ord;
	d = depths_of(rtr_reply(m), m->terms.ird, m->terms.ord);
	rc = reply(m, false, &d, private_data, bytes);
	if (rc == 0)
		m->state = MPA_OPEN;
	return rc;
}

int vb_mpa_reject(struct vb_mpa_setup *m, const void *private_data,
		  unsigned bytes)
{
	const struct vb_mpa_depths none = { 0 };
	int rc;

	if (m->state != MPA_ASKED)
		return -EINVAL;
	rc = reply(m, true, &none, private_data, bytes);
	if (rc == 0)
		m->state = MPA_SHUT;
	return rc;
}
