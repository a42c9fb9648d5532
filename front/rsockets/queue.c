/* SPDX-License-Identifier: BSD-2-Clause */
/* A completion queue and its channel, which is registered in the socket's
 * epoll descriptor. */
#include "front/rsockets/rs.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>

int rs_queue_open(struct rs_queue *q, int epoll, struct ibv_context *verbs,
		  int depth)
{
	struct epoll_event event = { .events = EPOLLIN };

	q->comp = ibv_create_comp_channel(verbs);
	if (!q->comp)
		return -errno;
	q->cq = ibv_create_cq(verbs, depth, NULL, q->comp, 0);
	if (!q->cq || fcntl(q->comp->fd, F_SETFL, O_NONBLOCK) ||
	    epoll_ctl(epoll, EPOLL_CTL_ADD, q->comp->fd, &event))
		return -errno;
	return 0;
}

void rs_queue_close(struct rs_queue *q)
{
	if (q->cq) {
		ibv_ack_cq_events(q->cq, q->unacked);
		ibv_destroy_cq(q->cq);
	}
	if (q->comp)
		ibv_destroy_comp_channel(q->comp);
	*q = (struct rs_queue){};
}

bool rs_queue_arm(struct rs_queue *q)
{
	if (!q->cq || q->armed)
		return false;
	q->armed = true;
	ibv_req_notify_cq(q->cq, 0);
	return true;
}

bool rs_queue_woken(struct rs_queue *q)
{
	enum { ACK_AT = 64 };
	struct ibv_cq *cq;
	void *context;

	if (!q->comp || ibv_get_cq_event(q->comp, &cq, &context))
		return false;
	q->armed = false;
	if (++q->unacked == ACK_AT) {
		ibv_ack_cq_events(cq, q->unacked);
		q->unacked = 0;
	}
	return true;
}
