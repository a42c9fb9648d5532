/* SPDX-License-Identifier: BSD-2-Clause */
/* A fake process of a fabric, as the broker sees it. The test writes what the
 * fabric says, and reads what the broker sends to it, at one end of a socket
 * pair. */
#ifndef TESTS_UNIT_BROKER_FAKE_FABRIC_H
#define TESTS_UNIT_BROKER_FAKE_FABRIC_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include <sys/socket.h>
#include <unistd.h>

#include <infiniband/umad.h>

#include "base/bytes.h"
#include "wire/mad.h"
#include "wire/verbs_ipc.h"

#define NODE_GUID 0x0200ca0000000300u
#define PORT_GUID 0x0200ca0000000301u
#define PREFIX	  0xfe80000000000000u
#define OWN_LID	  5
#define PEER_LID  6
#define SM_LID	  1
#define CM_AGENT  3
#define SA_AGENT  4

struct fake_fabric {
	int broker; /* the end that the broker gets */
	int fd;
	struct vb_verbs_port port;
};

static inline void fake_say_port(const struct fake_fabric *f)
{
	assert_int_equal(send(f->fd, &f->port, sizeof(f->port), 0),
			 sizeof(f->port));
}

/* Begin with a port that is active, with LID 5 and LMC 1. */
static inline void fake_fabric_begin(struct fake_fabric *f)
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	*f = (struct fake_fabric){
		.broker = ends[0],
		.fd = ends[1],
		.port = { .head = { .magic = VB_UMAD_MAGIC,
				    .kind = VERBS_PORT },
			  .node_guid = NODE_GUID,
			  .state = 4,
			  .lmc = 1,
			  .lid = OWN_LID & ~1,
			  .sm_lid = SM_LID,
			  .gid_prefix = PREFIX,
			  .guids = 2,
			  .guid = { PORT_GUID, 0x77 },
			  .pkeys = 3,
			  .pkey = { 0xffff, 0x0002, 0x8002 } },
	};
}

static inline struct vb_gid fake_gid(uint64_t guid)
{
	struct vb_gid gid;

	vb_store_be(gid.raw, PREFIX, 8);
	vb_store_be(gid.raw + 8, guid, 8);
	return gid;
}

/* Tell the broker that a MAD has come from the LID @lid, or, if @status is not
 * 0, that a request got no answer. */
static inline void fake_say_mad(const struct fake_fabric *f, uint32_t agent,
				uint32_t status, uint16_t lid,
				const uint8_t *mad, size_t len)
{
	uint8_t bytes[sizeof(struct vb_umad_mad) + 8 * VB_MAD_BYTES];
	struct vb_umad_mad m = { .head = { .magic = VB_UMAD_MAGIC,
					   .kind = UMAD_MAD,
					   .length = (uint32_t)len } };
	struct ib_user_mad u = { .agent_id = agent, .status = status };

	u.addr.lid = htobe16(lid);
	memcpy(m.header, &u, sizeof(u));
	memcpy(bytes, &m, sizeof(m));
	memcpy(bytes + sizeof(m), mad, len);
	len += sizeof(m);
	assert_int_equal(send(f->fd, bytes, len, 0), len);
}

/* Reads a MAD that the broker has sent. False: there is none. */
static inline bool fake_hear(const struct fake_fabric *f, struct ib_user_mad *u,
			     uint8_t mad[VB_MAD_BYTES])
{
	uint8_t bytes[sizeof(struct vb_umad_mad) + VB_MAD_BYTES];
	struct vb_umad_mad m;
	ssize_t n = recv(f->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	/* gcc 14 does not know assert_true(), and warns that callers read *@u
	 * although this function may not have set it */
	memset(u, 0, sizeof(*u));
	if (n < 0)
		return false;
	assert_int_equal(n, sizeof(bytes));
	memcpy(&m, bytes, sizeof(m));
	assert_int_equal(m.head.kind, UMAD_MAD);
	assert_int_equal(m.head.length, VB_MAD_BYTES);
	memcpy(u, m.header, sizeof(*u));
	memcpy(mad, bytes + sizeof(m), VB_MAD_BYTES);
	return true;
}

#endif
