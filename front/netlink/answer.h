/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers to NETLINK_RDMA requests, as the kernel's RDMA subsystem gives them,
 * made from facts that the caller has gathered (facts.h). These functions use
 * no socket, no allocation and no clock.
 */
#ifndef FRONT_NETLINK_ANSWER_H
#define FRONT_NETLINK_ANSWER_H

#include "front/netlink/facts.h"

/* The longest datagram of an answer, in bytes: programs read into 4096 bytes,
 * and the kernel's datagrams are shorter than that as well. */
#define VB_NL_ANSWER 3776
/* The longest request that is answered, in bytes; a longer one gets -EMSGSIZE.
 */
#define VB_NL_REQUEST 1024

/* One request: a netlink message with its header. */
struct vb_nl_request {
	const uint8_t *bytes;
	uint32_t length; /* length of the request in bytes */
	uint32_t portid; /* port ID of the socket */
	/* the socket's options NETLINK_CAP_ACK and NETLINK_EXT_ACK */
	bool cap_ack, ext_ack;
};

/* Find the first request in @length bytes that the program has sent. Returns
 * its bytes, with padding; 0: there is no further request. */
size_t vb_nl_split(const uint8_t *bytes, size_t length,
		   struct vb_nl_request *request);

/* Returns the facts that are needed to answer the request: bits of enum
 * vb_nl_need. */
unsigned vb_nl_needs(const struct vb_nl_request *request);

/* The position in the answer to a request; all zeros at first. */
struct vb_nl_cursor {
	uint64_t
		/* in the answer to a list request: the lowest number that the
		 * next entry may have */
		next;
	/* in any other answer: number of datagrams that were written */
	uint32_t step;
	bool done; /* the answer is complete */
};

/*
 * Write the next datagram of the answer to @to, which has VB_NL_ANSWER bytes.
 * Returns its length in bytes; 0: the answer is complete. @facts may differ
 * from those of the previous call: a list then continues by its entries'
 * numbers.
 */
size_t vb_nl_answer(const struct vb_nl_request *request,
		    const struct vb_nl_facts *facts,
		    struct vb_nl_cursor *cursor, uint8_t *to);
/* Write the datagram that reports @error, a negative errno, to a request whose
 * facts could not be gathered. @to has VB_NL_ANSWER bytes. Returns the length
 * in bytes. */
size_t vb_nl_refuse(const struct vb_nl_request *request, int error,
		    struct vb_nl_cursor *cursor, uint8_t *to);

#endif
