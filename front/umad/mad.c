/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MADs: their addresses, sending, receiving. A port's descriptor is the socket
 * of its connection, so a program can wait for it by poll() and the like; a MAD
 * that is too long for the caller's buffer stays in the socket's queue.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/fdmail.h"
#include "base/fork.h"
#include "base/memfile.h"
#include "base/sync.h"
#include "front/umad/umad.h"

#define HEADER sizeof(struct ib_user_mad)
_Static_assert(sizeof(struct ib_user_mad) == VB_UMAD_HEADER,
	       "the public header and that of messages are one");

#define METHOD_WORDS (16 / sizeof(long))
#define OPENIB_OUI   0x001405
/* bytes of a MAD, or of one segment of an RMPP message */
#define SEGMENT 256

/* --- the fields of the caller's buffer --- */

UMAD_EXPORT void *umad_get_mad(void *umad)
{
	return ((struct ib_user_mad *)umad)->data;
}

UMAD_EXPORT size_t umad_size(void)
{
	return HEADER;
}

UMAD_EXPORT int umad_status(void *umad)
{
	return (int)((struct ib_user_mad *)umad)->status;
}

UMAD_EXPORT ib_mad_addr_t *umad_get_mad_addr(void *umad)
{
	return &((struct ib_user_mad *)umad)->addr;
}

int umad_set_grh_net(void *umad, void *mad_addr)
{
	struct ib_user_mad *mad = umad;
	const struct ib_mad_addr *from = mad_addr;

	mad->addr.grh_present = from != NULL;
	if (!from)
		return 0;
	memcpy(mad->addr.gid, from->gid, sizeof(mad->addr.gid));
	mad->addr.flow_label = from->flow_label;
	mad->addr.hop_limit = from->hop_limit;
	mad->addr.traffic_class = from->traffic_class;
	mad->addr.gid_index = from->gid_index;
	return 0;
}

/* Does what umad_set_grh_net() does, but the flow label of @mad_addr is in host
 * order. */
UMAD_EXPORT int umad_set_grh(void *umad, void *mad_addr)
{
	struct ib_user_mad *mad = umad;

	umad_set_grh_net(umad, mad_addr);
	if (mad_addr)
		mad->addr.flow_label = htobe32(mad->addr.flow_label);
	return 0;
}

UMAD_EXPORT int umad_set_addr_net(void *umad, __be16 dlid, __be32 dqp, int sl,
				  __be32 qkey)
{
	struct ib_user_mad *mad = umad;

	mad->addr.qpn = dqp;
	mad->addr.lid = dlid;
	mad->addr.qkey = qkey;
	mad->addr.sl = (uint8_t)sl;
	return 0;
}

UMAD_EXPORT int umad_set_addr(void *umad, int dlid, int dqp, int sl, int qkey)
{
	return umad_set_addr_net(umad, htobe16((uint16_t)dlid),
				 htobe32((uint32_t)dqp), sl,
				 htobe32((uint32_t)qkey));
}

UMAD_EXPORT int umad_set_pkey(void *umad, int pkey_index)
{
	((struct ib_user_mad *)umad)->addr.pkey_index = (uint16_t)pkey_index;
	return 0;
}

UMAD_EXPORT int umad_get_pkey(void *umad)
{
	return ((struct ib_user_mad *)umad)->addr.pkey_index;
}

/* --- agents --- */

static int register_agent(int fd, const struct vb_umad_wish *wish)
{
	int rc = vb_fabric_call(fd, wish, sizeof(*wish));

	if (rc < 0)
		vb_why(WHY_UMAD, wish->class,
		       "umad: cannot register an agent of class 0x%x: %s",
		       wish->class, strerror(-rc));
	return rc;
}

static struct vb_umad_wish wish_for(int class, int version, uint8_t rmpp)
{
	return (struct vb_umad_wish){
		.head = { .magic = VB_UMAD_MAGIC, .kind = UMAD_REGISTER },
		.class = (uint8_t) class,
		.class_version = (uint8_t)version,
		.rmpp_version = rmpp,
	};
}

/* The functions of libibumad return one error, EPERM, whatever the cause. */
static int all_are_eperm(int rc)
{
	return rc < 0 ? -EPERM : rc;
}

UMAD_EXPORT int umad_register(int portid, int mgmt_class, int mgmt_version,
			      uint8_t rmpp_version,
			      long method_mask[METHOD_WORDS])
{
	struct vb_umad_wish w =
		wish_for(mgmt_class, mgmt_version, rmpp_version);

	/* the fabric uses the OUI only for classes 0x30 to 0x4f */
	w.oui = OPENIB_OUI;
	if (method_mask)
		memcpy(w.methods, method_mask, sizeof(w.methods));
	return all_are_eperm(register_agent(portid, &w));
}

UMAD_EXPORT int umad_register_oui(int portid, int mgmt_class,
				  uint8_t rmpp_version, uint8_t oui[3],
				  long method_mask[METHOD_WORDS])
{
	struct vb_umad_wish w = wish_for(mgmt_class, 1, rmpp_version);

	if (mgmt_class < 0x30 || mgmt_class > 0x4f)
		return -EINVAL;
	w.oui = (uint32_t)oui[0] << 16 | (uint32_t)oui[1] << 8 | oui[2];
	if (method_mask)
		memcpy(w.methods, method_mask, sizeof(w.methods));
	return all_are_eperm(register_agent(portid, &w));
}

/* Returns 0 or a positive errno. UMAD_USER_RMPP: the program does RMPP
 * itself. */
UMAD_EXPORT int umad_register2(int port_fd, struct umad_reg_attr *attr,
			       uint32_t *agent_id)
{
	struct vb_umad_wish w;
	int rc;

	if (!attr || !agent_id || attr->flags & ~(uint32_t)UMAD_USER_RMPP)
		return EINVAL;
	w = wish_for(attr->mgmt_class, attr->mgmt_class_version,
		     attr->flags & UMAD_USER_RMPP ? 0 : attr->rmpp_version);
	w.oui = attr->oui;
	memcpy(w.methods, attr->method_mask, sizeof(w.methods));
	rc = register_agent(port_fd, &w);
	if (rc < 0)
		return -rc;
	*agent_id = (uint32_t)rc;
	return 0;
}

UMAD_EXPORT int umad_unregister(int portid, int agentid)
{
	const struct vb_umad_agent u = {
		.head = { .magic = VB_UMAD_MAGIC, .kind = UMAD_UNREGISTER },
		.agent = (uint32_t)agentid,
	};

	return vb_fabric_call(portid, &u, sizeof(u));
}

UMAD_EXPORT int umad_close_port(int portid)
{
	close(portid);
	return 0;
}

UMAD_EXPORT int umad_get_fd(int portid)
{
	return portid;
}

/* --- sending --- */

static int send_long(int fd, const struct vb_umad_mad *m, const void *data,
		     size_t len)
{
	int memory = vb_memfile_make(data, len), rc;

	if (memory < 0)
		return memory;
	rc = vb_fdmail_send(fd, m, sizeof(*m), &memory, 1, MSG_DONTWAIT);
	close(memory);
	return rc;
}

static int send_short(int fd, struct vb_umad_mad *m, const void *data,
		      size_t len)
{
	struct iovec iov[] = { { m, sizeof(*m) },
			       { (void *)(uintptr_t)data, len } };
	const struct msghdr h = { .msg_iov = iov, .msg_iovlen = 2 };

	return sendmsg(fd, &h, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

/* Send a message to the fabric's process. 0 or -errno; -ETIMEDOUT: that process
 * did not read for 10 s. */
static int send_in_time(int fd, struct vb_umad_mad *m, const void *data)
{
	vb_time due = vb_fabric_due();
	size_t len = m->head.length;
	int rc;

	do {
		rc = len > VB_UMAD_INLINE ? send_long(fd, m, data, len)
					  : send_short(fd, m, data, len);
		if (rc != -EAGAIN)
			return rc;
		rc = vb_fabric_wait(fd, POLLOUT, due);
	} while (!rc);
	return rc;
}

UMAD_EXPORT int umad_send(int portid, int agentid, void *umad, int length,
			  int timeout_ms, int retries)
{
	struct ib_user_mad *mad = umad;
	struct vb_umad_mad m = {
		.head = { .magic = VB_UMAD_MAGIC, .kind = UMAD_MAD },
	};
	int rc;

	if (length < 0 || length > (int)VB_UMAD_MOST) {
		errno = EINVAL;
		return -EINVAL;
	}
	mad->timeout_ms = (uint32_t)timeout_ms;
	mad->retries = (uint32_t)retries;
	mad->agent_id = (uint32_t)agentid;
	m.head.length = (uint32_t)length;
	memcpy(m.header, mad, sizeof(m.header));
	rc = send_in_time(portid, &m, mad->data);
	if (!rc)
		return 0;
	UMAD_SAY("cannot send: %s\n", strerror(-rc));
	errno = -rc;
	return rc;
}

/* --- receiving --- */

UMAD_EXPORT int umad_poll(int portid, int timeout_ms)
{
	struct pollfd p = { .fd = portid, .events = POLLIN };
	int n = poll(&p, 1, timeout_ms);

	if (n == 1)
		return 0;
	if (n == 0) {
		errno = ETIMEDOUT;
		return -ETIMEDOUT;
	}
	return -EIO;
}

/* A thread holds this lock from looking at a message to removing it from the
 * socket, so that no other thread removes the message in between. */
static struct vb_mutex taking = VB_MUTEX_INITIALIZER(VB_RANK_LEAF);

static void drop_after_fork(void)
{
	vb_mutex_init(&taking, VB_RANK_LEAF);
}
VB_FORGET_AT_FORK(drop_after_fork)

/* Copy the head and the MAD header of the first message to *@m; the message
 * stays in the socket's queue. */
static int look(int fd, struct vb_umad_mad *m)
{
	ssize_t n = recv(fd, m, sizeof(*m), MSG_PEEK | MSG_DONTWAIT);

	if (n < 0)
		return -errno;
	if (n == 0)
		return -EIO; /* the fabric's process has ended */
	if (n != sizeof(*m) || m->head.magic != VB_UMAD_MAGIC ||
	    m->head.kind != UMAD_MAD || m->head.length > VB_UMAD_MOST)
		return -EPROTO;
	return 0;
}

/* Read a long message, of which the caller wants @len bytes. With MSG_PEEK in
 * @flags the message stays in the queue. */
static int take_long(int fd, struct vb_umad_mad *m, void *data, size_t len,
		     int flags)
{
	unsigned count = 1;
	int memory, rc = 0;
	ssize_t n = vb_fdmail_recv(fd, m, sizeof(*m), &memory, &count,
				   flags | MSG_DONTWAIT);

	if (n < 0 || count != 1)
		return n < 0 ? (int)n : -EPROTO;
	if (pread(memory, data, len, 0) != (ssize_t)len)
		rc = -EPROTO;
	close(memory);
	return rc;
}

static int take_short(int fd, struct vb_umad_mad *m, void *data, size_t len,
		      int flags)
{
	struct iovec iov[] = { { m, sizeof(*m) }, { data, len } };
	struct msghdr h = { .msg_iov = iov, .msg_iovlen = 2 };
	ssize_t n = recvmsg(fd, &h, flags | MSG_DONTWAIT);

	if (n < 0)
		return -errno;
	return (size_t)n == sizeof(*m) + len ? 0 : -EPROTO;
}

/*
 * Returns 0, or -errno. If the caller has too little room, the message stays in
 * the queue, and *@length is its length. As with the kernel's device, the
 * result is then -ENOSPC if there is room for the header and the first segment,
 * which has RMPP's header: these are copied; or -EINVAL if there is not. The
 * caller holds @taking.
 */
static int take_first(int fd, struct ib_user_mad *mad, int *length)
{
	size_t room = (size_t)VB_MAX(*length, 0), whole, wanted;
	struct vb_umad_mad m;
	int rc = look(fd, &m), flags;

	if (rc)
		return rc;
	whole = m.head.length;
	if (room < VB_MIN(whole, (size_t)SEGMENT)) {
		*length = (int)whole;
		return -EINVAL;
	}
	flags = room < whole ? MSG_PEEK : 0;
	wanted = flags ? SEGMENT : whole;
	rc = whole > VB_UMAD_INLINE
		     ? take_long(fd, &m, mad->data, wanted, flags)
		     : take_short(fd, &m, mad->data, wanted, flags);
	if (rc)
		return rc;
	memcpy(mad, m.header, sizeof(m.header));
	*length = (int)whole;
	return flags ? -ENOSPC : 0;
}

/* A thread that is cancelled in the calls of take_first() would leave the lock
 * held and lose the message. None of these calls waits, so cancellation is
 * disabled meanwhile. */
static int take(int fd, struct ib_user_mad *mad, int *length)
{
	int before, rc;

	pthread_testcancel();
	before = vb_cancel_off();
	vb_mutex_lock(&taking);
	rc = take_first(fd, mad, length);
	vb_mutex_unlock(&taking);
	vb_cancel_back(before);
	return rc;
}

/* The fabric's process has ended, so each further call fails at once, too. Some
 * programs call again without a pause: opensm fills its disk with a line for
 * each call. So this thread sleeps for as long as it wanted to wait, at most a
 * second. */
static void pause_at_end(int timeout_ms)
{
	const unsigned second = 1000;
	unsigned ms = timeout_ms < 0 ? second : (unsigned)timeout_ms;

	ms = VB_MIN(ms, second);
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000l }, NULL);
}

UMAD_EXPORT int umad_recv(int portid, void *umad, int *length, int timeout_ms)
{
	struct ib_user_mad *mad = umad;
	int rc;

	errno = 0;
	if (!umad || !length) {
		errno = EINVAL;
		return -EINVAL;
	}
	do {
		rc = timeout_ms ? umad_poll(portid, timeout_ms) : 0;
		if (rc) {
			if (!errno)
				errno = -rc;
			return rc;
		}
		rc = take(portid, mad, length);
		/* Another thread has received the message: wait for the next
		 * one, if the caller set no time limit. */
	} while (rc == -EAGAIN && timeout_ms < 0);
	if (rc == 0)
		return (int)mad->agent_id;
	if (rc == -EIO)
		pause_at_end(timeout_ms);
	errno = -rc;
	return rc;
}
