/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * riomap() gives the peer access to memory under an offset that the program
 * chooses; riowrite() writes to such an offset of the peer, beside the stream.
 * Each end has a table of the peer's mappings. Before it sends the next bytes
 * of the stream, the end that mapped memory writes an entry into the peer's
 * table, and a message names the entry (stream.h, RS_IOMAP).
 */
#include "front/rsockets/rs.h"

#include <errno.h>
#include <fcntl.h>
#include <rdma/rsocket.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/defs.h"

struct rs_iomapping {
	struct ibv_mr *mr; /* the registered region; NULL: the entry is free */
	uint64_t offset;
	/* the peer may write; false: only this side has the mapping */
	bool remote;
	bool told; /* the peer's table has this entry */
};

/*
 * Returns the number of mappings that the peer is told of. rs->iomappings
 * begins with one entry for each entry of the peer's table. Behind these are as
 * many entries, and one more, for mappings that the peer is not told of and has
 * no right to write to.
 */
static unsigned shown(const struct rs_sock *rs)
{
	return rs->stream.peer_iomaps.length;
}
static unsigned places(const struct rs_sock *rs)
{
	return 2 * shown(rs) + 1;
}

static struct rs_iomapping *free_place(struct rs_sock *rs, bool remote)
{
	unsigned from = remote ? 0 : shown(rs);
	unsigned to = remote ? shown(rs) : places(rs);

	if (!rs->iomappings)
		rs->iomappings = calloc(places(rs), sizeof(*rs->iomappings));
	for (unsigned i = from; rs->iomappings && i < to; i++)
		if (!rs->iomappings[i].mr)
			return &rs->iomappings[i];
	return NULL;
}

static off_t iomap_map(struct rs_sock *rs, void *buf, size_t len, int prot,
		       off_t offset)
{
	bool remote = prot & PROT_WRITE;
	struct rs_iomapping *m;

	if (rs->state != RS_CONNECTED || (prot & ~(PROT_WRITE | PROT_NONE)) ||
	    len == 0 || len > UINT32_MAX)
		return -EINVAL;
	m = free_place(rs, remote);
	if (!m)
		return -ENOMEM;
	m->mr = ibv_reg_mr(rs->id->qp->pd, buf, len,
			   IBV_ACCESS_LOCAL_WRITE |
				   (remote ? IBV_ACCESS_REMOTE_WRITE : 0));
	if (!m->mr)
		return -errno;
	m->offset = offset == -1 ? (uintptr_t)buf : (uint64_t)offset;
	m->remote = remote;
	m->told = !remote;
	rs->iomaps_wait |= remote;
	return (off_t)m->offset;
}

RS_EXPORT off_t riomap(int socket, void *buf, size_t len, int prot, int flags,
		       off_t offset)
{
	struct rs_sock *rs = rs_take(socket);

	return rs ? (off_t)rs_done(rs, iomap_map(rs, buf, len, prot, offset))
		  : -1;
}

/* Ends a mapping. The peer still has the entry of this mapping: if the peer
 * writes there later, the key is invalid and the queue pair fails. */
static int iomap_unmap(struct rs_sock *rs, const void *buf, size_t len)
{
	struct rs_iomapping *m;

	for (unsigned i = 0; rs->iomappings && i < places(rs); i++) {
		m = &rs->iomappings[i];
		if (!m->mr || m->mr->addr != buf || m->mr->length != len)
			continue;
		ibv_dereg_mr(m->mr);
		m->mr = NULL;
		return 0;
	}
	return -EINVAL;
}

RS_EXPORT int riounmap(int socket, void *buf, size_t len)
{
	struct rs_sock *rs = rs_take(socket);
	int rc;

	if (!rs)
		return -1;
	rc = iomap_unmap(rs, buf, len);
	return (int)rs_done(rs, rc);
}

static struct rs_iomap entry_of(const struct rs_sock *rs,
				const struct rs_iomapping *m)
{
	struct rs_iomap e = { m->offset,
			      { (uintptr_t)m->mr->addr, m->mr->rkey,
				(uint32_t)m->mr->length } };

	if (rs->stream.swap)
		e = (struct rs_iomap){ __builtin_bswap64(e.offset),
				       { __builtin_bswap64(e.area.addr),
					 __builtin_bswap32(e.area.key),
					 __builtin_bswap32(e.area.length) } };
	return e;
}

static bool may_send(struct rs_sock *rs)
{
	return !rs->writes || rs_stream_may_send(&rs->stream);
}

static bool has_untold(const struct rs_sock *rs)
{
	for (unsigned i = 0; i < shown(rs); i++)
		if (rs->iomappings[i].mr && !rs->iomappings[i].told)
			return true;
	return false;
}

int rs_iomaps_send(struct rs_sock *rs, int timeout)
{
	struct rs_iomapping *m;
	struct rs_iomap entry;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < shown(rs); i++) {
		m = &rs->iomappings[i];
		if (!m->mr || m->told)
			continue;
		rc = rs_wait(rs, may_send, timeout);
		if (rc)
			return rc;
		if (!rs->writes)
			return -ECONNRESET;
		/* rs_wait() has released the lock: another thread may have told
		 * the peer, or unmapped the memory. */
		if (!m->mr || m->told)
			continue;
		entry = entry_of(rs, m);
		rc = rs_qp_iomap(rs, i, &entry);
		m->told = true;
	}
	/* rs_wait() has released the lock, so another thread may have mapped
	 * memory meanwhile. */
	rs->iomaps_wait = has_untold(rs);
	return rc;
}

void rs_iomaps_forget(struct rs_sock *rs)
{
	for (unsigned i = 0; rs->iomappings && i < places(rs); i++)
		if (rs->iomappings[i].mr)
			ibv_dereg_mr(rs->iomappings[i].mr);
	free(rs->iomappings);
	rs->iomappings = NULL;
	/* The socket may connect again, and then begins without mappings to
	 * send. */
	rs->iomaps_wait = false;
}

/* Copies the entry of the peer's mappings that covers @offset. The peer may
 * overwrite the table at any time. False: no entry does. */
static bool find_target(const struct rs_sock *rs, uint64_t offset,
			struct rs_iomap *found)
{
	const volatile struct rs_iomap *e =
		(struct rs_iomap *)(rs->room.slots + RS_SLOTS);

	for (unsigned i = 0; i < rs->room.iomaps; i++) {
		*found = e[i];
		if (offset >= found->offset &&
		    offset - found->offset < found->area.length)
			return true;
	}
	return false;
}

/* Writes as many bytes as one WRITE can have. Returns the number of bytes; 0:
 * the out ring or the send queue has no room yet; -errno. */
static int write_piece(struct rs_sock *rs, const uint8_t *bytes, size_t left,
		       uint64_t offset)
{
	struct rs_stream *s = &rs->stream;
	struct rs_iomap e;
	size_t n;
	int rc;

	if (!find_target(rs, offset, &e))
		return -EFAULT;
	if (s->sends >= s->sends_max)
		return 0;
	n = VB_MIN(left, e.area.length - (offset - e.offset));
	n = VB_MIN(n, s->out_size - s->out_used);
	if (n == 0)
		return 0;
	rc = rs_qp_place(rs, bytes, (uint32_t)n,
			 e.area.addr + (offset - e.offset), e.area.key);
	return rc ? rc : (int)n;
}

static bool has_room(struct rs_sock *rs)
{
	return !rs->writes || (rs->stream.sends < rs->stream.sends_max &&
			       rs->stream.out_used < rs->stream.out_size);
}

static ssize_t iomap_write_at(struct rs_sock *rs, const uint8_t *bytes,
			      size_t count, uint64_t offset, int timeout)
{
	size_t written = 0;
	int n = 0;

	if (rs->iomaps_wait)
		n = rs_iomaps_send(rs, timeout);
	while (n >= 0 && written < count) {
		if (!rs->writes) {
			n = -ECONNRESET;
			break;
		}
		n = write_piece(rs, bytes + written, count - written,
				offset + written);
		if (n == 0)
			n = rs_wait(rs, has_room, timeout);
		else if (n > 0)
			written += (size_t)n;
	}
	return written ? (ssize_t)written : n;
}

RS_EXPORT size_t riowrite(int socket, const void *buf, size_t count,
			  off_t offset, int flags)
{
	struct rs_sock *rs = rs_take(socket);
	bool waits;

	if (!rs)
		return (size_t)-1;
	if (rs->state != RS_CONNECTED)
		return (size_t)rs_done(rs, -ENOTCONN);
	waits = !(rs->file_flags & O_NONBLOCK) && !(flags & MSG_DONTWAIT);
	return (size_t)rs_done(rs,
			       iomap_write_at(rs, buf, count, (uint64_t)offset,
					      waits ? -1 : 0));
}
