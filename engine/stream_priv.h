/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the two files of iWARP's sockets: engine/stream.c reads and writes,
 * engine/stream_life.c begins and ends streams. */
#ifndef ENGINE_STREAM_PRIV_H
#define ENGINE_STREAM_PRIV_H

#include "base/chain.h"
#include "engine/engine_priv.h"
#include "engine/stream.h"

enum vb_stream_phase { OPEN, CLOSING };

struct vb_stream {
	int fd;
	/* The fields below are guarded by rx and, while there is a queue pair,
	 * by its drive. */
	struct vb_qp *qp; /* the queue pair; NULL: it was destroyed */
	/* The fields below are guarded by drive, or by rx when there is no
	 * queue pair. */
	enum vb_stream_phase phase;
	vb_time mss_until;
	/* A thread that has only rx reads the next two fields as hints. */
	/* The time to close the socket, even with bytes still to send; or
	 * VB_NEVER. */
	_Atomic vb_time close_at;
	/* The socket is full: no thread makes a batch, which is much work,
	 * before the socket has room again. */
	_Atomic bool blocked;
	/* the last call of vb_stream_step() left something to send */
	_Atomic bool more;
	_Atomic bool eof;
	bool over, live;
	_Atomic bool met; /* the peer's card (RDMAP_CARD) has been read */
	/* the slot of the peer's program, by its card; set before @met */
	_Atomic unsigned slot;
	/* most messages go by lanes, and few by this socket */
	_Atomic bool near;
	/* Guarded by rx: bytes were in the socket before @mark, and wait until
	 * the peer's lane is processed that far; @seen: their number, or
	 * SIZE_MAX if the end of the stream had come. */
	bool waits;
	size_t seen;
	struct vb_near_mark mark;
	struct vb_stream_listener listener; /* guarded by drive */
	/* in the engine's list of streams; guarded by rx */
	struct vb_chain link;
};

/* Returns the stream whose @link is in the engine's list of streams. */
static inline struct vb_stream *vb_stream_of(struct vb_chain *link)
{
	return VB_CONTAINER_OF(link, struct vb_stream, link);
}

static inline bool vb_stream_is_up(const struct vb_qp *qp)
	VB_REQUIRES(qp->drive)
{
	enum vb_qp_state state = atomic_load(&qp->state);

	return state == QPS_RTS || state == QPS_SQD;
}

/* A function of engine/stream.c: serve one stream. @ready: EPOLL bits. The
 * result is as of vb_stream_drain(). May free @s. */
enum vb_drained vb_stream_serve(struct vb_engine *e, struct vb_stream *s,
				uint32_t ready, vb_time now) VB_REQUIRES(e->rx);

/* Functions of engine/stream_life.c. */
void vb_stream_tell(struct vb_stream *s, enum vb_stream_event event);
/* Send the listener of @s STREAM_OVER, once; the engine closes the socket
 * within 5 s. Later calls do nothing. */
void vb_stream_give_notice(struct vb_engine *e, struct vb_stream *s,
			   vb_time now);
/* Store @blocked and @eof, and make epoll report room in the socket if
 * @blocked, and arriving bytes unless @eof. */
void vb_stream_watch(struct vb_engine *e, struct vb_stream *s, bool blocked,
		     bool eof);
/* The bytes that wait for the peer's lane are about to be read, or are not
 * wanted any more. */
void vb_stream_waits_no_more(struct vb_engine *e, struct vb_stream *s)
	VB_REQUIRES(e->rx);
/* Send FIN: the peer reads the bytes that were sent and then the end. The
 * stream is closing now. */
void vb_stream_begin_close(struct vb_engine *e, struct vb_stream *s,
			   vb_time now);
void vb_stream_throw_away(struct vb_engine *e, struct vb_stream *s, bool *found)
	VB_REQUIRES(e->rx);
bool vb_stream_is_done(const struct vb_stream *s, vb_time now);
/* Close the socket and free @s. A program may then reset its queue pair, whose
 * drive the caller holds, and connect it again. */
void vb_stream_end(struct vb_engine *e, struct vb_stream *s, vb_time now)
	VB_REQUIRES(e->rx);

#endif
