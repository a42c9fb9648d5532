/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues, shared receive queues, completion channels and
 * asynchronous events. Destroying an object waits until the program has
 * acknowledged the events about the object that it has read
 * (ibv_get_async_event(3)). */
#include "core/lock_order.h"
#include "front/verbs/front.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/log.h"

/*
 * Asynchronous events. When the program reads an event about an object, this
 * file counts the event under async.lock; destroying the object waits until the
 * program has acknowledged as many.
 */

static uint32_t *taken_counter(enum vb_event_type type, void *owner)
{
	switch (type) {
	case EVENT_CQ_ERR:
		return &((struct vb_front_cq *)owner)->async_taken;
	case EVENT_SRQ_ERR:
	case EVENT_SRQ_LIMIT:
		return &((struct vb_front_srq *)owner)->async_taken;
	case EVENT_WQ_FATAL:
		return &vb_front_wq(owner)->async_taken;
	default:
		return &((struct vb_front_qp *)owner)->async_taken;
	}
}

void vb_front_count_taken(const struct vb_event *e)
{
	if (e->object)
		++*taken_counter(e->type, e->object);
}

/* If acknowledgements are missing for this time, the user is told why
 * destroying an object has not returned. */
#define ACKS_LATE 4 /* seconds */

/* Wait until *@acked is @taken: destroying an object waits until all of its
 * events are acknowledged (ibv_get_cq_event(3)). @object: the object, for the
 * sentence to the user if that takes long. */
static void wait_acked(pthread_mutex_t *mutex, pthread_cond_t *cond,
		       const uint32_t *acked, uint32_t taken,
		       const void *object)
{
	int cancel = vb_cancel_off(), rc = 0;
	struct timespec late;

	vb_may_wait();
	clock_gettime(CLOCK_REALTIME, &late);
	late.tv_sec += ACKS_LATE;
	pthread_mutex_lock(mutex);
	while (*acked != taken && rc != ETIMEDOUT)
		rc = pthread_cond_timedwait(cond, mutex, &late);
	if (*acked != taken) {
		uint32_t missing = taken - *acked;

		/* Unlock the mutex, because writing the message may wait for a
		 * slow reader of standard error. */
		pthread_mutex_unlock(mutex);
		vb_why(WHY_EVENTS, (uintptr_t)object,
		       "destroying an object has waited for %d s: %u of its "
		       "events are not acknowledged",
		       ACKS_LATE, missing);
		pthread_mutex_lock(mutex);
	}
	while (*acked != taken)
		pthread_cond_wait(cond, mutex);
	pthread_mutex_unlock(mutex);
	vb_cancel_back(cancel);
}

void vb_front_drain_async(struct ibv_context *context, const void *owner,
			  const uint32_t *taken, pthread_mutex_t *mutex,
			  pthread_cond_t *cond, const uint32_t *acked)
{
	struct vb_async *async = &vb_front_context(context)->async;
	uint32_t n;

	vb_async_forget(async, owner);
	vb_mutex_lock(&async->lock);
	n = *taken;
	vb_mutex_unlock(&async->lock);
	wait_acked(mutex, cond, acked, n, owner);
}

static void ack(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *acked,
		unsigned n)
{
	pthread_mutex_lock(mutex);
	*acked += n;
	pthread_cond_broadcast(cond);
	pthread_mutex_unlock(mutex);
}

int ibv_get_async_event(struct ibv_context *context,
			struct ibv_async_event *event)
{
	struct vb_event e;
	int rc = vb_async_take(&vb_front_context(context)->async, &e);

	if (rc)
		return vb_front_minus(rc);
	event->event_type = (enum ibv_event_type)e.type;
	/* The first member of an owner is its public struct, whatever its
	 * kind. */
	if (e.object)
		event->element.qp = e.object;
	else
		event->element.port_num = e.port;
	vb_tools_wrote(event, sizeof(*event));
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	struct ibv_srq *srq = event->element.srq;
	struct ibv_cq *cq = event->element.cq;
	struct ibv_qp *qp = event->element.qp;
	struct ibv_wq *wq = event->element.wq;

	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		ack(&cq->mutex, &cq->cond, &cq->async_events_completed, 1);
		return;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		ack(&srq->mutex, &srq->cond, &srq->events_completed, 1);
		return;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		ack(&qp->mutex, &qp->cond, &qp->events_completed, 1);
		return;
	case IBV_EVENT_WQ_FATAL:
		ack(&wq->mutex, &wq->cond, &wq->events_completed, 1);
		return;
	/* an event of the port or the device, which no destroyed object waits
	 * for */
	default:
		return;
	}
}

/* Functions for completion channels. */

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct vb_front_channel *ch = calloc(1, sizeof(*ch));
	int rc;

	if (!ch)
		return vb_front_null(-ENOMEM);
	rc = vb_channel_init(&ch->core);
	if (rc) {
		free(ch);
		return vb_front_null(rc);
	}
	ch->ibv.context = context;
	ch->ibv.fd = ch->core.fd;
	vb_front_live_add(&ch->live, FRONT_CHANNEL, &ch->ibv, NULL);
	vb_front_context_get(context);
	return &ch->ibv;
}

/* A completion queue begins (@by 1) or ends (-1) to use the channel. Returns
 * the number of queues that use it now. ch->refcnt is public, and so is the
 * context's mutex, which guards it. */
static int hold_channel(struct ibv_comp_channel *ch, int by)
{
	int left;

	pthread_mutex_lock(&ch->context->mutex);
	ch->refcnt += by;
	left = ch->refcnt;
	pthread_mutex_unlock(&ch->context->mutex);
	return left;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *ibv)
{
	struct vb_front_channel *ch =
		VB_CONTAINER_OF(ibv, struct vb_front_channel, ibv);
	int rc = vb_front_claim(FRONT_CHANNEL, ibv);

	if (rc)
		return rc;
	if (vb_front_is_inherited(ibv->context))
		return vb_front_keep(&ch->live, 0);
	if (hold_channel(ibv, 0) != 0) {
		vb_why(WHY_BUSY, (uintptr_t)ibv,
		       "completion channel of fd %d: not destroyed: completion queues still use it",
		       ibv->fd);
		return vb_front_keep(&ch->live, -EBUSY);
	}
	vb_front_live_del(&ch->live);
	vb_engine_forget_channel(&ch->core);
	vb_channel_fini(&ch->core);
	vb_front_context_put(ibv->context);
	free(ch);
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *ibv, struct ibv_cq **cq,
		     void **cq_context)
{
	struct vb_front_channel *ch =
		VB_CONTAINER_OF(ibv, struct vb_front_channel, ibv);
	struct vb_cq *core;
	int rc = vb_engine_wait(&ch->core, &core);

	if (rc)
		return vb_front_minus(rc);
	*cq = &((struct vb_front_cq *)core->owner)->ibv;
	*cq_context = (*cq)->cq_context;
	vb_tools_wrote(cq, sizeof(struct ibv_cq *));
	vb_tools_wrote(cq_context, sizeof(void *));
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	if (nevents)
		ack(&cq->mutex, &cq->cond, &cq->comp_events_completed, nevents);
}

/* Functions for completion queues. */

#define CQ_WC_FLAGS                                                            \
	((uint64_t)IBV_WC_STANDARD_FLAGS |                                     \
	 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |                                 \
	 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK |                       \
	 IBV_WC_EX_WITH_FLOW_TAG | IBV_WC_EX_WITH_TM_INFO)

static int check_cq_attr(struct ibv_context *context,
			 const struct ibv_cq_init_attr_ex *attr)
{
	const uint32_t masks =
		IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
	const uint32_t flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;

	if (attr->channel && vb_front_live(FRONT_CHANNEL, attr->channel))
		return -ENOENT;
	if (attr->comp_vector >= (uint32_t)context->num_comp_vectors)
		return -EINVAL;
	if (attr->comp_mask & ~masks || attr->wc_flags & ~CQ_WC_FLAGS)
		return -EOPNOTSUPP;
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD &&
	    (!attr->parent_domain ||
	     vb_front_live(FRONT_PD, attr->parent_domain) ||
	     !vb_front_pd(attr->parent_domain)->is_parent))
		return -EINVAL;
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS &&
	    attr->flags & ~flags)
		return -EOPNOTSUPP;
	return 0;
}

/* Returns why the completion queue could not be made. The sentence of the
 * caller already names the limits, so this text leaves them out. */
static const char *cq_reason(const struct ibv_context *context,
			     const struct ibv_cq_init_attr_ex *attr, int rc,
			     char text[80])
{
	const uint32_t vectors = (uint32_t)context->num_comp_vectors;

	if (attr->comp_vector >= vectors)
		snprintf(text, 80,
			 "comp_vector is %u, and 0 to %u are possible",
			 attr->comp_vector, vectors - 1);
	else if (rc == -EINVAL && attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD)
		snprintf(text, 80, "parent_domain is no parent domain");
	else
		snprintf(text, 80, "%s", strerror(-rc));
	return text;
}

static int create_core_cq(struct ibv_context *context,
			  const struct ibv_cq_init_attr_ex *attr,
			  struct vb_cq **core)
{
	int rc = check_cq_attr(context, attr);
	struct vb_channel *ch = NULL;
	struct vb_memory *m = NULL;
	char text[80];

	if (attr->channel)
		ch = &VB_CONTAINER_OF(attr->channel, struct vb_front_channel,
				      ibv)
			      ->core;
	if (!rc && attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD)
		m = vb_front_memory(attr->parent_domain);
	if (!rc)
		rc = vb_cq_create_in(
			vb_front_context(context)->adapter, attr->cqe, ch,
			&vb_front_context(context)->async, m, core);
	if (rc)
		VB_FRONT_TELL(
			rc, WHY_CREATE, context,
			"%s: cannot create a completion queue of %u entries (1 to %u are possible): %s",
			context->device->name, attr->cqe, vb_limits.max_cqe,
			cq_reason(context, attr, rc, text));
	return rc;
}

struct ibv_cq_ex *vb_front_create_cq_ex(struct ibv_context *context,
					struct ibv_cq_init_attr_ex *attr)
{
	struct vb_front_cq *cq = calloc(1, sizeof(*cq));
	int rc;

	if (!cq)
		return vb_front_null(-ENOMEM);
	rc = create_core_cq(context, attr, &cq->core);
	if (rc) {
		free(cq);
		return vb_front_null(rc);
	}
	cq->core->owner = cq;
	vb_roster_own(&cq->core->adapter->roster, cq->core->row,
		      vb_front_context(context)->row);
	cq->ibv.context = context;
	cq->ibv.channel = attr->channel;
	cq->ibv.cq_context = attr->cq_context;
	cq->ibv.handle = vb_front_handle();
	cq->ibv.cqe = (int)cq->core->cap;
	pthread_mutex_init(&cq->ibv.mutex, NULL);
	pthread_cond_init(&cq->ibv.cond, NULL);
	vb_mutex_init(&cq->poll, RANK_POLL);
	vb_front_cq_ex_init(cq);
	if (attr->channel)
		hold_channel(attr->channel, 1);
	vb_front_live_add(&cq->live, FRONT_CQ, &cq->ibv, &cq->ibv.handle);
	vb_front_context_get(context);
	return &cq->ex;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe,
			     void *cq_context, struct ibv_comp_channel *channel,
			     int comp_vector)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = cqe < 0 ? 0 : (uint32_t)cqe,
		.cq_context = cq_context,
		.channel = channel,
		.comp_vector = (uint32_t)comp_vector,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
	};
	struct ibv_cq_ex *cq = vb_front_create_cq_ex(context, &attr);

	return cq ? ibv_cq_ex_to_cq(cq) : NULL;
}

int ibv_resize_cq(struct ibv_cq *ibv, int cqe)
{
	struct vb_cq *core;
	int rc = vb_front_unknown(FRONT_CQ, ibv);

	if (rc)
		return rc;
	core = vb_front_cq(ibv)->core;
	rc = cqe <= 0 ? -EINVAL : vb_cq_resize(core, (uint32_t)cqe);
	if (rc) {
		VB_FRONT_TELL(rc, WHY_RESIZE, ibv, "cq %u: cannot resize to %d entries (it holds %u, and at most %u are possible): %s",
		       ibv->handle, cqe,
		       atomic_load_explicit(&core->count,
					    memory_order_relaxed),
		       vb_limits.max_cqe, strerror(-rc));
		return vb_front_errno(rc);
	}
	ibv->cqe = (int)core->cap;
	return 0;
}

int vb_front_modify_cq(struct ibv_cq *ibv, struct ibv_modify_cq_attr *attr)
{
	int rc = vb_front_unknown(FRONT_CQ, ibv);

	if (rc)
		return rc;
	if (!attr->attr_mask || attr->attr_mask & ~IBV_CQ_ATTR_MODERATE) {
		vb_why(WHY_REFUSED, (uintptr_t)ibv,
		       "cq %u: ibv_modify_cq with attr_mask 0x%x, and only "
		       "IBV_CQ_ATTR_MODERATE is possible",
		       ibv->handle, attr->attr_mask);
		return vb_front_errno(-EINVAL);
	}
	vb_engine_moderate(vb_front_cq(ibv)->core, attr->moderate.cq_count,
			   attr->moderate.cq_period * VB_USEC);
	return 0;
}

/* Drop the queue's completion events that the program has not read. Returns the
 * number of events that the program has read. */
static uint32_t drain_channel(struct vb_cq *core)
{
	uint32_t taken;

	if (!core->channel)
		return 0;
	vb_channel_forget(core->channel, core);
	vb_mutex_lock(&core->channel->lock);
	taken = core->events_taken;
	vb_mutex_unlock(&core->channel->lock);
	return taken;
}

static void free_cq(struct vb_front_cq *cq)
{
	if (cq->ibv.channel)
		hold_channel(cq->ibv.channel, -1);
	vb_front_context_put(cq->ibv.context);
	pthread_mutex_destroy(&cq->ibv.mutex);
	pthread_cond_destroy(&cq->ibv.cond);
	vb_mutex_fini(&cq->poll);
	free(cq);
}

int ibv_destroy_cq(struct ibv_cq *ibv)
{
	struct vb_front_cq *cq = vb_front_cq(ibv);
	int rc = vb_front_claim(FRONT_CQ, ibv);

	if (rc)
		return rc;
	if (vb_front_is_inherited(ibv->context))
		return vb_front_keep(&cq->live, 0);
	if (atomic_load(&cq->core->refs)) {
		vb_why(WHY_BUSY, (uintptr_t)ibv, "cq %u: not destroyed: queues still use it",
		       ibv->handle);
		return vb_front_keep(&cq->live, -EBUSY);
	}
	vb_front_live_del(&cq->live);
	vb_engine_forget_cq(cq->core);
	wait_acked(&ibv->mutex, &ibv->cond, &ibv->comp_events_completed,
		   drain_channel(cq->core), cq);
	vb_front_drain_async(ibv->context, cq, &cq->async_taken, &ibv->mutex,
			     &ibv->cond, &ibv->async_events_completed);
	rc = vb_cq_destroy(cq->core);
	if (rc)
		return vb_front_errno(rc);
	free_cq(cq);
	return 0;
}

/* Functions for shared receive queues. */

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd,
			       struct ibv_srq_init_attr *init)
{
	struct vb_front_srq *srq;
	int rc = vb_front_live(FRONT_PD, pd);

	if (rc)
		return vb_front_null(rc);
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return vb_front_null(-ENOMEM);
	rc = vb_srq_create(vb_front_pd(pd)->core, init->attr.max_wr,
			   init->attr.max_sge,
			   &vb_front_context(pd->context)->async,
			   vb_front_memory(pd), &srq->core);
	if (rc) {
		VB_FRONT_TELL(rc, WHY_CREATE, pd,
		       "pd %u: cannot create a shared receive queue of %u entries of %u SGEs (at most %u and %u are possible): %s",
		       pd->handle, init->attr.max_wr, init->attr.max_sge,
		       vb_limits.max_srq_wr, vb_limits.max_srq_sge,
		       strerror(-rc));
		free(srq);
		return vb_front_null(rc);
	}
	srq->core->owner = srq;
	srq->ibv.context = pd->context;
	srq->ibv.srq_context = init->srq_context;
	srq->ibv.pd = pd;
	srq->ibv.handle = vb_front_handle();
	pthread_mutex_init(&srq->ibv.mutex, NULL);
	pthread_cond_init(&srq->ibv.cond, NULL);
	init->attr.max_wr = srq->core->rq.cap;
	init->attr.max_sge = srq->core->rq.max_sge;
	vb_front_live_add(&srq->live, FRONT_SRQ, &srq->ibv, &srq->ibv.handle);
	vb_front_context_get(pd->context);
	return &srq->ibv;
}

void *vb_front_refuse_srq(const struct ibv_srq_init_attr_ex *attr,
			  const char *why)
{
	vb_why(WHY_CREATE, (uintptr_t)attr->pd,
	       "cannot create a shared receive queue of type %d: %s",
	       attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE ? (int)attr->srq_type
							: IBV_SRQT_BASIC,
	       why);
	return vb_front_null_of(-EINVAL, "ibv_create_srq_ex");
}

static struct ibv_srq *create_plain(struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq_init_attr init = { attr->srq_context, attr->attr };
	struct ibv_srq *srq = ibv_create_srq(attr->pd, &init);

	if (srq)
		attr->attr = init.attr;
	return srq;
}

static struct ibv_srq *create_tagged(struct ibv_srq_init_attr_ex *attr)
{
	const uint32_t needs = IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM;
	struct ibv_srq *srq;
	int rc;

	if (vb_front_is_rnic(attr->pd->context))
		return vb_front_null_of(-EOPNOTSUPP, "ibv_create_srq_ex");
	if ((attr->comp_mask & needs) != needs || !attr->cq ||
	    attr->tm_cap.max_ops > VB_TAG_MAX_OPS)
		return vb_front_refuse_srq(
			attr, "tag matching needs cq and tm_cap, "
			      "their bits in comp_mask, and max_ops "
			      "within ibv_query_device_ex's tm_caps");
	if (vb_front_live(FRONT_CQ, attr->cq))
		return vb_front_null_of(-ENOENT, "ibv_create_srq_ex");
	srq = create_plain(attr);
	if (!srq)
		return NULL;
	rc = vb_tag_join(vb_front_srq(srq)->core, vb_front_cq(attr->cq)->core,
			 attr->tm_cap.max_num_tags);
	if (rc == 0)
		return srq;
	VB_FRONT_TELL(rc, WHY_CREATE, srq, "srq %u: cannot make a list of %u tags: %s",
	       srq->handle, attr->tm_cap.max_num_tags, strerror(-rc));
	/* This cannot fail, because no queue pair uses the SRQ yet. */
	(void)ibv_destroy_srq(srq);
	return vb_front_null_of(rc, "ibv_create_srq_ex");
}

struct ibv_srq *vb_front_create_srq_ex(struct ibv_context *context,
				       struct ibv_srq_init_attr_ex *attr)
{
	const uint32_t known = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			       IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ |
			       IBV_SRQ_INIT_ATTR_TM;
	enum ibv_srq_type type = attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE
					 ? attr->srq_type
					 : IBV_SRQT_BASIC;

	if (attr->comp_mask & ~known || type > IBV_SRQT_TM)
		return vb_front_null(-EOPNOTSUPP);
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd)
		return vb_front_refuse_srq(attr, "it needs pd, and its bit in "
						 "comp_mask");
	if (vb_front_live(FRONT_PD, attr->pd))
		return vb_front_null(-ENOENT);
	if (attr->pd->context != context)
		return vb_front_refuse_srq(attr, "its protection domain is of "
						 "another context");
	switch (type) {
	case IBV_SRQT_XRC:
		return vb_front_create_xrc_srq(attr);
	case IBV_SRQT_TM:
		return create_tagged(attr);
	default:
		return create_plain(attr);
	}
}

int ibv_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr, int mask)
{
	int rc = vb_front_unknown(FRONT_SRQ, ibv);
	struct vb_srq *core;
	uint32_t cap;

	if (rc)
		return rc;
	core = vb_front_srq(ibv)->core;
	cap = mask & IBV_SRQ_MAX_WR ? attr->max_wr : core->rq.cap;
	if (mask & ~(IBV_SRQ_LIMIT | IBV_SRQ_MAX_WR)) {
		vb_why(WHY_REFUSED, (uintptr_t)ibv,
		       "srq %u: ibv_modify_srq with mask 0x%x, and only "
		       "IBV_SRQ_LIMIT and IBV_SRQ_MAX_WR are possible",
		       ibv->handle, (unsigned)mask);
		return vb_front_errno(-EINVAL);
	}
	if (mask & IBV_SRQ_LIMIT && attr->srq_limit > cap)
		rc = -EINVAL;
	if (rc == 0 && mask & IBV_SRQ_MAX_WR)
		rc = vb_srq_resize(core, cap);
	if (rc) {
		VB_FRONT_TELL(rc, WHY_RESIZE, ibv,
		       "srq %u: cannot change to %u entries with limit %u: %s",
		       ibv->handle, cap, attr->srq_limit, strerror(-rc));
		return vb_front_errno(rc);
	}
	if (mask & IBV_SRQ_LIMIT)
		vb_srq_set_limit(core, attr->srq_limit);
	return 0;
}

int ibv_query_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr)
{
	int rc = vb_front_unknown(FRONT_SRQ, ibv);
	struct vb_srq *core;

	if (rc)
		return rc;
	core = vb_front_srq(ibv)->core;
	attr->max_sge = core->rq.max_sge;
	vb_mutex_lock(&core->rq.lock);
	attr->max_wr = core->rq.cap;
	attr->srq_limit = core->limit;
	vb_mutex_unlock(&core->rq.lock);
	vb_tools_wrote(attr, sizeof(*attr));
	return 0;
}

int ibv_destroy_srq(struct ibv_srq *ibv)
{
	struct vb_front_srq *srq = vb_front_srq(ibv);
	int rc = vb_front_claim(FRONT_SRQ, ibv);

	if (rc)
		return rc;
	if (vb_front_is_inherited(ibv->context))
		return vb_front_keep(&srq->live, 0);
	rc = vb_srq_destroy(srq->core);
	if (rc) {
		vb_why(WHY_BUSY, (uintptr_t)ibv,
		       "srq %u: not destroyed: queue pairs still use it",
		       ibv->handle);
		return vb_front_keep(&srq->live, rc);
	}
	vb_front_live_del(&srq->live);
	vb_front_drain_async(ibv->context, srq, &srq->async_taken, &ibv->mutex,
			     &ibv->cond, &ibv->events_completed);
	vb_front_context_put(ibv->context);
	pthread_mutex_destroy(&ibv->mutex);
	pthread_cond_destroy(&ibv->cond);
	free(srq);
	return 0;
}
