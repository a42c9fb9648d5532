/* SPDX-License-Identifier: BSD-2-Clause */
/* What the two files of iWARP's sockets share: engine/stream.c, which reads and
 * writes, and engine/stream_life.c, in which they begin and end. */
#ifndef ENGINE_STREAM_PRIV_H
#define ENGINE_STREAM_PRIV_H

#include "base/chain.h"
#include "engine/engine_priv.h"
#include "engine/stream.h"

enum vb_stream_phase { OPEN, CLOSING };

struct vb_stream {
	int fd;
	/* rx and, while it has a queue pair, its drive */
	struct vb_qp *qp; /* NULL: it was destroyed */
	/* drive, or rx when there is no queue pair */
	enum vb_stream_phase phase;
	vb_time mss_until;
	/* These two are looked at by who has rx alone: a hint. */
	_Atomic vb_time close_at; /* whatever is left to do; VB_NEVER */
	_Atomic bool blocked;	  /* until the socket has room: it is not tried
				   * before, as a batch is much work */
	bool more;		  /* was left for the next turn */
	bool eof, over, live;
	_Atomic bool met;  /* the peer's card has been looked at */
	_Atomic bool near; /* requests go another way: little comes here */
	struct vb_stream_listener listener; /* drive */
	struct vb_chain link;		    /* rx */
};

/* One of struct vb_engine's. */
static inline struct vb_stream *vb_stream_of(struct vb_chain *link)
{
	return VB_CONTAINER_OF(link, struct vb_stream, link);
}

static inline bool vb_stream_is_up(const struct vb_qp *qp)
{
	enum vb_qp_state state = atomic_load(&qp->state);

	return state == QPS_RTS || state == QPS_SQD;
}

/* engine/stream.c: what has come, or the room that there is, and what it makes
 * due. */
bool vb_stream_serve(struct vb_engine *e, struct vb_stream *s, uint32_t ready,
		     vb_time now) VB_REQUIRES(e->rx);

/* engine/stream_life.c */
void vb_stream_tell(struct vb_stream *s, enum vb_stream_event news);
/* From now on it is only to end, and does in a while. */
void vb_stream_give_notice(struct vb_engine *e, struct vb_stream *s,
			   vb_time now);
/* Wake the thread when there is room, and unless @eof when something comes. */
void vb_stream_watch(struct vb_engine *e, struct vb_stream *s, bool blocked,
		     bool eof);
/* FIN: the peer reads what was sent, and then that this was all. */
void vb_stream_begin_close(struct vb_engine *e, struct vb_stream *s,
			   vb_time now);
void vb_stream_throw_away(struct vb_engine *e, struct vb_stream *s,
			  bool *found);
bool vb_stream_is_done(const struct vb_stream *s, vb_time now);
/* The socket is left; its queue pair, if any, may be reset and start anew. */
void vb_stream_end(struct vb_engine *e, struct vb_stream *s, vb_time now)
	VB_REQUIRES(e->rx);

#endif
