/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the kernel's RDMA subsystem answers to a NETLINK_RDMA request, from
 * facts: no socket, no allocation, no clock.
 */
#ifndef FRONT_NETLINK_ANSWER_H
#define FRONT_NETLINK_ANSWER_H

#include "front/netlink/facts.h"

/* No answer is longer: programs read into 4096 bytes, as the kernel knows. */
#define VB_NL_ANSWER 3776
/* No request that is answered is longer. */
#define VB_NL_REQUEST 1024

/* One request: a netlink message with its header. */
struct vb_nl_request {
	const uint8_t *bytes;
	uint32_t length;
	uint32_t portid;       /* of the socket */
	bool cap_ack, ext_ack; /* what it has set: NETLINK_CAP_ACK, _EXT_ACK */
};

/* The first request of @length bytes that were sent, and how many of them it
 * takes up; 0: there is no further one. */
size_t vb_nl_split(const uint8_t *bytes, size_t length,
		   struct vb_nl_request *request);

/* enum vb_nl_need */
unsigned vb_nl_needs(const struct vb_nl_request *request);

/* How far the answer to a request has come; zeros: nowhere. */
struct vb_nl_cursor {
	uint64_t next; /* a list's: entries from this number on */
	uint32_t step; /* datagrams of an answer that is no list */
	bool done;
};

/*
 * The next datagram of the answer into @to, which has VB_NL_ANSWER bytes:
 * its length; 0: there is none. @facts may have changed since the last call.
 */
size_t vb_nl_answer(const struct vb_nl_request *request,
		    const struct vb_nl_facts *facts,
		    struct vb_nl_cursor *cursor, uint8_t *to);
/* For want of facts: the datagram that says @error, a negative errno. */
size_t vb_nl_refuse(const struct vb_nl_request *request, int error,
		    struct vb_nl_cursor *cursor, uint8_t *to);

#endif
