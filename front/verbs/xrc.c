/* SPDX-License-Identifier: BSD-2-Clause */
/* XRC: domains, their shared receive queues, and opening a target queue pair
 * again in the process that made it (ibv_open_qp(3)). */
#include "front/verbs/front.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fork.h"
#include "base/log.h"

/*
 * A domain is named by an inode, and it exists as long as any process has it
 * open. Each such process holds a read lock on one byte of the inode, far
 * behind the end of any file, one byte for each device of each network
 * namespace. The kernel drops the lock when the process ends.
 */

static off_t byte_of(const struct ibv_device *device)
{
	const struct vb_device *d =
		&VB_CONTAINER_OF(device, struct vb_front_device, ibv)->found;
	uint32_t number = vb_device_number(d->kind, d->ifindex);
	struct stat ns;

	if (stat("/proc/self/ns/net", &ns))
		ns.st_ino = 0;
	return (off_t)1 << 62 | (off_t)((uint64_t)(uint32_t)ns.st_ino << 20 |
					(number & 0xfffff));
}

/* Acquire a read lock on byte @at of the inode; *@elsewhere: another process
 * also has one. Returns a descriptor that holds the lock, which the caller
 * owns, or -1: the inode cannot be locked, and other processes are not
 * known. */
static int lock_inode(int fd, off_t at, bool *elsewhere)
{
	struct flock lock = { .l_type = F_RDLCK,
			      .l_whence = SEEK_SET,
			      .l_start = at,
			      .l_len = 1 };
	char path[32];
	int own;

	*elsewhere = false;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	/* Open the file again: the program may close its own descriptor, which
	 * must not drop the lock. */
	own = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (own < 0)
		return -1;
	vb_fork_closes(own); /* a child of fork must not keep the lock */
	if (fcntl(own, F_OFD_SETLK, &lock)) {
		close(own);
		return -1;
	}
	/* Test for other processes: a write lock conflicts with every other
	 * process's read lock. */
	lock.l_type = F_WRLCK;
	*elsewhere =
		fcntl(own, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
	return own;
}

static int open_core(struct ibv_context *context,
		     const struct ibv_xrcd_init_attr *attr,
		     struct vb_front_xrcd *x)
{
	struct vb_adapter *a = vb_front_context(context)->adapter;
	unsigned flags = (attr->oflags & O_CREAT ? XRCD_CREATE : 0) |
			 (attr->oflags & O_EXCL ? XRCD_EXCLUSIVE : 0);
	struct vb_xrc_key key;
	struct stat st;
	bool elsewhere;
	int rc;

	x->lock_fd = -1;
	if (attr->fd == -1)
		return vb_xrcd_open(a, NULL, flags, &x->core);
	if (fstat(attr->fd, &st))
		return -errno;
	key = (struct vb_xrc_key){ st.st_dev, st.st_ino };
	x->lock_fd = lock_inode(attr->fd, byte_of(context->device), &elsewhere);
	if (elsewhere)
		flags |= XRCD_ELSEWHERE;
	rc = vb_xrcd_open(a, &key, flags, &x->core);
	if (rc && x->lock_fd >= 0)
		close(x->lock_fd);
	if (rc == 0)
		vb_engine_share_xrc();
	return rc;
}

struct ibv_xrcd *vb_front_open_xrcd(struct ibv_context *context,
				    struct ibv_xrcd_init_attr *attr)
{
	const uint32_t masks =
		IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	struct vb_front_xrcd *x;
	int rc, cancel;

	if (attr->comp_mask & ~masks || vb_front_is_rnic(context))
		return vb_front_null(-EOPNOTSUPP);
	if (attr->comp_mask != masks) {
		vb_why(WHY_CREATE, (uintptr_t)context,
		       "%s: cannot open an XRC domain: it needs fd and oflags, "
		       "and their bits in comp_mask",
		       context->device->name);
		return vb_front_null(-EINVAL);
	}
	x = calloc(1, sizeof(*x));
	if (!x)
		return vb_front_null(-ENOMEM);
	cancel = vb_cancel_off();
	rc = open_core(context, attr, x);
	vb_cancel_back(cancel);
	if (rc) {
		VB_FRONT_TELL(rc, WHY_CREATE, context,
		       "%s: cannot open an XRC domain for fd %d with flags 0x%x: %s",
		       context->device->name, attr->fd, attr->oflags,
		       strerror(-rc));
		free(x);
		return vb_front_null(rc);
	}
	x->ibv.context = context;
	vb_front_live_add(&x->live, FRONT_XRCD, &x->ibv, NULL);
	vb_front_context_get(context);
	return &x->ibv;
}

int vb_front_close_xrcd(struct ibv_xrcd *ibv)
{
	struct vb_front_xrcd *x = vb_front_xrcd(ibv);
	int rc = vb_front_claim(FRONT_XRCD, ibv);

	if (rc)
		return rc;
	if (vb_front_is_inherited(ibv->context))
		return vb_front_keep(&x->live, 0);
	rc = vb_xrcd_close(x->core);
	if (rc) {
		vb_why(WHY_BUSY, (uintptr_t)ibv,
		       "%s: XRC domain not closed: queues still use it",
		       ibv->context->device->name);
		return vb_front_keep(&x->live, rc);
	}
	vb_front_live_del(&x->live);
	if (x->lock_fd >= 0) {
		struct flock none = { .l_type = F_UNLCK, .l_whence = SEEK_SET };

		/* Closing alone would not unlock while a child of fork still
		 * has the descriptor. */
		(void)fcntl(x->lock_fd, F_OFD_SETLK, &none);
		close(x->lock_fd);
	}
	vb_front_context_put(ibv->context);
	free(x);
	return 0;
}

/* Functions for shared receive queues. */

struct ibv_srq *vb_front_create_xrc_srq(struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq_init_attr init = { attr->srq_context, attr->attr };
	struct ibv_srq *ibv;
	int rc;

	if (vb_front_is_rnic(attr->pd->context))
		return vb_front_null_of(-EOPNOTSUPP, "ibv_create_srq_ex");
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) || !attr->xrcd ||
	    !(attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ) || !attr->cq)
		return vb_front_refuse_srq(attr, "XRC needs xrcd and cq, and "
						 "their bits in comp_mask");
	if (vb_front_live(FRONT_XRCD, attr->xrcd) ||
	    vb_front_live(FRONT_CQ, attr->cq))
		return vb_front_null_of(-ENOENT, "ibv_create_srq_ex");
	ibv = ibv_create_srq(attr->pd, &init);
	if (!ibv)
		return NULL;
	rc = vb_xrc_srq_join(vb_front_srq(ibv)->core,
			     vb_front_xrcd(attr->xrcd)->core,
			     vb_front_cq(attr->cq)->core);
	if (rc) {
		/* This cannot fail, because no queue pair uses the SRQ yet. */
		(void)ibv_destroy_srq(ibv);
		if (rc == -EINVAL)
			return vb_front_refuse_srq(attr,
						   "its domains and its "
						   "completion queue are "
						   "of different devices");
		return vb_front_null_of(rc, "ibv_create_srq_ex");
	}
	attr->attr = init.attr;
	return ibv;
}

int vb_front_get_srq_num(struct ibv_srq *ibv, uint32_t *number)
{
	const struct vb_srq *core = vb_front_srq(ibv)->core;

	if (!core->xrcd) {
		vb_why(WHY_REFUSED, (uintptr_t)ibv,
		       "srq %u: ibv_get_srq_num of a shared receive queue that "
		       "is not of type XRC",
		       ibv->handle);
		return vb_front_errno(-EINVAL);
	}
	*number = core->number;
	return 0;
}

/* Functions for target queue pairs. */

static int open_core_qp(struct vb_front_qp *qp, struct ibv_context *context,
			const struct ibv_qp_open_attr *attr)
{
	int rc;

	qp->share = (struct vb_qp_share){
		.async = &vb_front_context(context)->async,
		.owner = qp,
		.xrcd = vb_front_xrcd(attr->xrcd)->core,
	};
	rc = vb_qp_open(&qp->share, attr->qp_num, &qp->core);
	if (rc)
		vb_why(WHY_HANDLE, (uintptr_t)context,
		       "%s: cannot open qp 0x%x: it is not an XRC target that this process made in this domain",
		       context->device->name, attr->qp_num);
	else
		/* vb_qp_open() held the queue pair's lock `drive`: do the work
		 * of threads that found it held. */
		vb_drive(qp->core);
	return rc;
}

struct ibv_qp *vb_front_open_qp(struct ibv_context *context,
				struct ibv_qp_open_attr *attr)
{
	const uint32_t needs = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
			       IBV_QP_OPEN_ATTR_TYPE;
	struct vb_front_qp *qp;
	int rc;

	if (attr->comp_mask & ~(needs | IBV_QP_OPEN_ATTR_CONTEXT) ||
	    vb_front_is_rnic(context))
		return vb_front_null(-EOPNOTSUPP);
	if ((attr->comp_mask & needs) != needs || !attr->xrcd ||
	    attr->qp_type != IBV_QPT_XRC_RECV) {
		vb_why(WHY_HANDLE, (uintptr_t)context,
		       "%s: cannot open a queue pair: it needs qp_num, xrcd "
		       "and qp_type IBV_QPT_XRC_RECV, and their bits in "
		       "comp_mask",
		       context->device->name);
		return vb_front_null(-EINVAL);
	}
	if (vb_front_live(FRONT_XRCD, attr->xrcd))
		return vb_front_null(-ENOENT);
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return vb_front_null(-ENOMEM);
	rc = open_core_qp(qp, context, attr);
	if (rc) {
		free(qp);
		return vb_front_null(rc);
	}
	qp->ibv.context = context;
	if (attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT)
		qp->ibv.qp_context = attr->qp_context;
	qp->ibv.handle = vb_front_handle();
	qp->ibv.qp_num = attr->qp_num;
	qp->ibv.qp_type = attr->qp_type;
	qp->ibv.state = (enum ibv_qp_state)atomic_load(&qp->core->state);
	pthread_mutex_init(&qp->ibv.mutex, NULL);
	pthread_cond_init(&qp->ibv.cond, NULL);
	vb_front_live_add(&qp->live, FRONT_QP, &qp->ibv, &qp->ibv.handle);
	vb_front_context_get(context);
	return &qp->ibv;
}
