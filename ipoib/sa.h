/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The questions to the subnet administrator (IBA 15.2) that IPoIB has: to join
 * a multicast group or leave it (MCMemberRecord), and for the path to a port
 * (PathRecord). Bytes only; the caller sends the datagrams.
 */
#ifndef IPOIB_SA_H
#define IPOIB_SA_H

#include "ipoib/neigh.h"

#define VB_SA_BYTES 256
#define VB_SA_CLASS 0x03
/* the version of the class */
#define VB_SA_VERSION 2

/* How a port takes part in a group, bits of JoinState. */
enum vb_sa_join {
	SA_JOIN_FULL = 1,      /* it sends and receives */
	SA_JOIN_SEND_ONLY = 4, /* it sends, to a group that others have made */
};

/* What a group is, of the members' record. */
struct vb_sa_group {
	struct vb_gid mgid, port_gid;
	uint32_t qkey, flow_label;
	uint16_t mlid, pkey;
	uint8_t mtu, rate, sl, tclass, hop_limit; /* @mtu, @rate: codes */
	uint8_t join;				  /* bits of enum vb_sa_join */
};

/* Write the question whether @g->port_gid may join the group @g->mgid with
 * @g->join. @as: a group after which this one is made if there is none; NULL:
 * it is not made. */
void vb_sa_put_join(uint8_t mad[VB_SA_BYTES], uint64_t tid,
		    const struct vb_sa_group *g, const struct vb_sa_group *as);
/* Write the question to end the membership that @g has. */
void vb_sa_put_leave(uint8_t mad[VB_SA_BYTES], uint64_t tid,
		     const struct vb_sa_group *g);
/* Write the question for a reversible path from @from to @to. */
void vb_sa_put_path(uint8_t mad[VB_SA_BYTES], uint64_t tid,
		    const struct vb_gid *from, const struct vb_gid *to,
		    uint16_t pkey);

enum vb_sa_kind { SA_OTHER, SA_GROUP, SA_PATH };

struct vb_sa_answer {
	enum vb_sa_kind kind;
	uint64_t tid;
	uint16_t status; /* 0: the record is there */
	bool left;	 /* of SA_GROUP: the answer to a departure */
	struct vb_sa_group group;
	struct vb_ipoib_path path;
};

/* Read an answer of @len bytes. False: it is too short, or no answer of the
 * subnet administrator. */
bool vb_sa_get(const uint8_t *mad, size_t len, struct vb_sa_answer *a);

/* Returns the bytes of an MTU's code (IBA 9.6.1.5.4), 0 for no code. */
unsigned vb_sa_mtu_bytes(unsigned code);

#endif
