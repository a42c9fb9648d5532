/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection manager with one program. The test plays the program, and also
 * the fabric that the program gives to the broker, with the fabric's subnet
 * administrator. */
#ifndef TESTS_UNIT_BROKER_CM_BED_H
#define TESTS_UNIT_BROKER_CM_BED_H

#include "tests/unit/broker/fake_fabric.h"

#include <errno.h>

#include "broker/cm.h"
#include "wire/sa.h"

#define OWN_QPN	  0x18001
#define PEER_QPN  0x20002
#define PEER_GUID 0x0200ca0000000401u
#define SPACE	  0x13f
#define LISTENER  7
#define CALLER	  8

static struct fake_fabric fabric;
static struct vb_host_cm *cm;
static struct vb_cm_client *client;
static struct vb_users users;
static struct vb_user *user;
static int ends[2];
static vb_time now;

static inline bool owns(void *arg, const struct vb_process *who, uint32_t qpn)
{
	(void)arg, (void)who, (void)qpn;
	return false; /* the program has no queue pairs of RoCEv2 */
}

static inline int begin(void **state)
{
	const struct vb_process self = { .pid = getpid(), .uid = getuid() };

	(void)state;
	now = VB_SEC;
	fake_fabric_begin(&fabric);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) ||
	    vb_host_cm_create(owns, NULL, now, &cm))
		return -1;
	user = vb_user_enter(&users, getuid(), true);
	client = user ? vb_host_cm_join(cm, ends[0], &self, user) : NULL;
	return client ? 0 : -1;
}

static inline int end(void **state)
{
	(void)state;
	vb_host_cm_leave(client, now);
	vb_host_cm_destroy(cm);
	vb_user_leave(user);
	close(fabric.broker);
	close(fabric.fd);
	close(ends[0]);
	close(ends[1]);
	return 0;
}

static inline struct vb_ipc_cm message(enum vb_ipc_cm_kind kind, uint32_t id)
{
	return (struct vb_ipc_cm){ .kind = (uint8_t)kind,
				   .version = VB_IPC_CM_VERSION,
				   .id = id,
				   .tid = id };
}

static inline void say(const struct vb_ipc_cm *m, int fd)
{
	struct vb_mail mail = { .fds = { fd }, .fd_count = fd >= 0 };

	mail.len = vb_ipc_cm_put(mail.bytes, m);
	assert_int_equal(vb_host_cm_take(client, &mail, now), 0);
	vb_mail_close(&mail);
}

static inline bool hears(struct vb_ipc_cm *m)
{
	uint8_t bytes[VB_IPC_CM_BYTES];
	ssize_t n = recv(ends[1], bytes, sizeof(bytes), MSG_DONTWAIT);

	return n > 0 && vb_ipc_cm_get(bytes, (size_t)n, m);
}

static inline struct vb_ipc_cm answer(void)
{
	struct vb_ipc_cm m;

	assert_true(hears(&m));
	return m;
}

/* Gives the fabric to the broker, as place 1 (an adapter of a fabric). */
static inline void give(void)
{
	struct vb_ipc_cm m = message(IPC_CM_PLACE, 0);

	m.guid = NODE_GUID;
	m.dst_port = 1;
	m.flags = IPC_CM_ONLY_PLACES;
	say(&m, dup(fabric.broker));
	assert_int_equal(answer().status, ENOENT);
	fake_say_port(&fabric);
	m.flags |= IPC_CM_AGENTS;
	m.backlog = CM_AGENT;
	m.listener = SA_AGENT;
	say(&m, dup(fabric.broker));
	m = answer();
	assert_int_equal(m.status, 0);
	assert_int_equal(m.place, 1);
}

static inline void bind_to(uint32_t id, struct vb_gid gid, uint16_t port,
			   int status)
{
	struct vb_ipc_cm m = message(IPC_CM_BIND, id);

	m.space = SPACE;
	m.src = gid;
	m.src_port = port;
	m.flags = IPC_CM_PLAIN;
	say(&m, -1);
	assert_int_equal(answer().status, status);
}

static inline struct vb_ipc_cm path_of(uint32_t id, enum vb_ipc_cm_kind kind)
{
	struct vb_ipc_cm m = message(kind, id);

	m.place = 1;
	m.src = fake_gid(PORT_GUID);
	m.dst = fake_gid(PEER_GUID);
	m.pkey = 0xffff;
	m.space = SPACE;
	m.dst_port = 7000;
	m.flags = IPC_CM_PLAIN;
	m.timeout_ms = 300;
	return m;
}

#endif
