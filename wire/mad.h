/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Management datagrams (MADs, IBA 13.4) and those of the communication manager
 * (IBA 12.6): the bytes that queue pair 1 sends and receives.
 */
#ifndef WIRE_MAD_H
#define WIRE_MAD_H

#include "base/bytes.h"
#include "wire/gid.h"

#define VB_MAD_BYTES	 256
#define VB_MAD_HDR_BYTES 24
#define VB_GSI_QPN	 1
/* the well-known Q_Key of queue pair 1 (IBA 3.5.3) */
#define VB_GSI_QKEY 0x80010000u

#define VB_MAD_CLASS_CM 0x07

struct vb_mad_hdr {
	uint8_t base_version, class, class_version, method;
	uint16_t status, class_specific;
	uint64_t tid;
	uint16_t attr_id;
	uint32_t attr_mod;
};

enum vb_cm_attr {
	CM_REQ = 0x10,
	CM_MRA,
	CM_REJ,
	CM_REP,
	CM_RTU,
	CM_DREQ,
	CM_DREP,
	CM_SIDR_REQ,
	CM_SIDR_REP,
	CM_LAP,
	CM_APR,
	CM_LAST = CM_APR,
};

/* The message that an MRA or a REJ answers (IBA 12.6.6, 12.6.7). */
enum vb_cm_answered {
	CM_ANSWERS_REQ = 0,
	CM_ANSWERS_REP = 1,
	CM_ANSWERS_OTHER = 2
};

/* The reasons of IBA 12.6.7.2 that Verbena uses. */
enum vb_cm_reason {
	CM_REJ_NO_RESOURCES = 3,
	CM_REJ_TIMEOUT = 4,
	CM_REJ_UNSUPPORTED = 5,
	CM_REJ_INVALID_COMM_ID = 6,
	CM_REJ_INVALID_SERVICE_ID = 8,
	CM_REJ_INVALID_TRANSPORT = 9,
	CM_REJ_STALE_CONN = 10,
	CM_REJ_INVALID_GID = 12,
	/* info[0] of the REJ: code of the largest MTU that is accepted */
	CM_REJ_INVALID_MTU = 26,
	CM_REJ_CONSUMER = 28,
	CM_REJ_DUPLICATE_COMM_ID = 30,
	CM_REJ_VENDOR_OPTION = 35,
};

/* What a REP says of the alternate path that the REQ has (IBA 12.6.8). */
enum vb_cm_failover {
	/* accepted, or the REQ has no alternate path */
	CM_FAILOVER_ACCEPTED = 0,
	CM_FAILOVER_UNSUPPORTED = 1,
	CM_FAILOVER_REJECTED = 2,
};

/* The status codes of an APR (IBA 12.8.2) that Verbena uses. */
enum vb_cm_apr_status {
	CM_APR_INVALID_COMM_ID = 1,
	CM_APR_UNSUPPORTED = 2,
	CM_APR_INVALID_QPN = 6,
};

enum vb_cm_transport { CM_RC = 0, CM_UC = 1, CM_RD = 2, CM_EXTENDED = 3 };

struct vb_cm_path {
	uint16_t local_lid, remote_lid;
	struct vb_gid local_gid, remote_gid;
	uint32_t flow_label;	       /* flow label, 20 bits */
	uint8_t rate;		       /* static rate, 6 bits */
	uint8_t tclass, hop_limit, sl; /* @sl: 4 bits */
	bool subnet_local;
	uint8_t ack_timeout; /* Local ACK Timeout code, 5 bits */
};

struct vb_cm_req {
	uint64_t service_id, ca_guid;
	uint32_t vendor_id; /* 24 bits: the vendor that defines attr_mod */
	uint32_t qkey, qpn, local_eecn, remote_eecn, psn;
	uint8_t responder_resources, initiator_depth;
	uint8_t remote_timeout, local_timeout; /* timeout codes of 5 bits */
	uint8_t transport; /* transport service, an enum vb_cm_transport */
	uint8_t extended_transport; /* extended transport type, 3 bits */
	bool flow_control, rdc_exists, srq;
	uint8_t retry_count, rnr_retry; /* counts of 3 bits each */
	uint8_t mtu, max_cm_retries;	/* fields of 4 bits each */
	uint16_t pkey;
	/* @alternate.local_lid 0: there is no alternate path */
	struct vb_cm_path path, alternate;
};

struct vb_cm_rep {
	uint32_t vendor_id; /* OUI of the vendor, 24 bits */
	uint32_t qkey, qpn, eecn, psn;
	uint8_t responder_resources, initiator_depth;
	uint8_t ack_delay; /* Target ACK Delay code, 5 bits */
	uint8_t failover;  /* Failover Accepted, an enum vb_cm_failover */
	bool flow_control, srq;
	uint8_t rnr_retry; /* count of 3 bits */
	uint64_t ca_guid;
};

/* Returns the QPN in a REP. A REP has the number of an XRC target in the field
 * for an EE context, but a DREQ has it in the field for a QPN (annex A14). */
static inline uint32_t vb_cm_rep_qpn(const struct vb_cm_rep *r)
{
	return r->qpn ? r->qpn : r->eecn;
}

#define VB_CM_INFO_BYTES 72
/* bytes of private data in the message that has the most */
#define VB_CM_PRIVATE_BYTES 224

/* The contents of MRA and REJ: the message they answer, and the reason. */
struct vb_cm_answer {
	uint8_t message; /* the answered message, an enum vb_cm_answered */
	uint8_t timeout; /* of MRA: timeout code, 5 bits */
	uint16_t reason; /* of REJ: why the peer rejects */
	uint8_t info_bytes;
	uint8_t info[VB_CM_INFO_BYTES];
};

/* The status codes of IBA 12.11.2 that Verbena uses. */
enum vb_cm_sidr_status {
	CM_SIDR_OK = 0,
	CM_SIDR_UNSUPPORTED = 1,
	CM_SIDR_REJECTED = 2,
};

struct vb_cm_sidr {
	uint64_t service_id;
	uint16_t pkey; /* of a SIDR REQ: the P_Key of the path */
	/* of a SIDR REP: the status, an enum vb_cm_sidr_status */
	uint8_t status;
	/* of a SIDR REP: the queue pair's number and Q_Key */
	uint32_t qpn, qkey;
};

/* The contents of LAP: the receiver's queue pair, and a new alternate path, in
 * which "local" is the sender. */
struct vb_cm_lap {
	uint32_t remote_qpn;
	uint8_t remote_timeout; /* timeout code of 5 bits */
	struct vb_cm_path alternate;
};

struct vb_cm_apr {
	uint8_t status; /* an enum vb_cm_apr_status; 0: the path is loaded */
	uint8_t info_bytes;
	uint8_t info[VB_CM_INFO_BYTES];
};

/* One message of the communication manager. REQ and the SIDR messages have no
 * @remote_id; the request number of SIDR messages is @local_id in both
 * directions. */
struct vb_cm_msg {
	uint16_t attr; /* kind of the message, an enum vb_cm_attr */
	uint64_t tid;
	uint32_t attr_mod;
	uint32_t local_id, remote_id;
	union {
		struct vb_cm_req req;
		struct vb_cm_rep rep;
		/* contents of the messages MRA and REJ */
		struct vb_cm_answer answer;
		uint32_t remote_qpn; /* contents of the message DREQ */
		struct vb_cm_sidr sidr;
		struct vb_cm_lap lap;
		struct vb_cm_apr apr;
	};
	/* Private data; the message uses vb_cm_private_bytes(attr) bytes of
	 * this array. */
	uint8_t private_data[VB_CM_PRIVATE_BYTES];
};

void vb_mad_hdr_put(struct vb_writer *w, const struct vb_mad_hdr *h);
bool vb_mad_hdr_get(struct vb_reader *r, struct vb_mad_hdr *h);

/* Returns the bytes of private data that the message @attr has; 0: no message
 * has this number. */
unsigned vb_cm_private_bytes(unsigned attr);

void vb_cm_put(uint8_t mad[VB_MAD_BYTES], const struct vb_cm_msg *m);
/* Parse a MAD of @len bytes. False: the MAD is too short, not of the
 * communication manager, or of an unknown kind. The values are not checked, but
 * each is within the bits of its field. */
bool vb_cm_get(const uint8_t *bytes, size_t len, struct vb_cm_msg *m);

#endif
