/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests to the subnet administrator and its answers (IBA 15.2): a record
 * with a mask that says which of its components count. A MAD here has one
 * record.
 */
#ifndef WIRE_SA_H
#define WIRE_SA_H

#include "wire/smp.h"

#define VB_SA_CLASS_VERSION 2
/* a P_Key without the bit that tells a full member from a limited one */
#define VB_PKEY_NUMBER 0x7fff
/* the most bytes of a record in one MAD */
#define VB_SA_DATA_BYTES 200

enum vb_sa_method {
	SA_GET = MAD_GET,
	SA_SET = MAD_SET,
	SA_GET_TABLE = MAD_GET_TABLE,
	SA_DELETE = 0x15,
	SA_GET_RESP = MAD_GET_RESP,
	SA_GET_TABLE_RESP = 0x92,
	SA_DELETE_RESP = 0x95,
};

enum vb_sa_attr { SA_SERVICE = 0x31, SA_PATH = 0x35, SA_MCMEMBER = 0x38 };

/* The status codes of the class (IBA 15.2.5), as the whole field has them. */
enum vb_sa_status {
	SA_NO_RESOURCES = 0x0100,
	SA_REQ_INVALID = 0x0200,
	SA_NO_RECORDS = 0x0300,
	SA_TOO_MANY_RECORDS = 0x0400,
	SA_INVALID_GID = 0x0500,
	SA_INSUFFICIENT_COMPONENTS = 0x0600,
	SA_DENIED = 0x0700,
};

struct vb_sa_hdr {
	uint8_t base_version, class, class_version;
	uint8_t method;	  /* an enum vb_sa_method */
	uint16_t status;  /* 0, an enum vb_sa_status or enum vb_mad_status */
	uint16_t attr_id; /* an enum vb_sa_attr */
	uint64_t tid;
	/* of an answer with several records: the bytes from one to the next,
	 * divided by 8 */
	uint16_t attr_offset;
	uint64_t mask; /* the components of the record that count */
};

/* Components of a PathRecord (IBA 15.2.5.16). */
enum vb_sa_path_component {
	/* two bits, one for each half of the service ID */
	SA_PATH_SERVICE_ID = 0x3,
	SA_PATH_DGID = 1 << 2,
	SA_PATH_SGID = 1 << 3,
	SA_PATH_TCLASS = 1 << 10,
	SA_PATH_REVERSIBLE = 1 << 11,
	SA_PATH_NUMB_PATH = 1 << 12,
	SA_PATH_PKEY = 1 << 13,
	SA_PATH_QOS_CLASS = 1 << 14,
};

struct vb_sa_path {
	uint64_t service_id;
	struct vb_gid dgid, sgid;
	uint16_t dlid, slid;
	uint32_t flow_label; /* flow label, 20 bits */
	uint8_t hop_limit, tclass, reversible, numb_path;
	uint16_t pkey, qos_class; /* @qos_class: 12 bits */
	uint8_t sl;
	/* The selectors say how a request's MTU, rate and life time compare
	 * with those of the path; an answer has the path's exact values. @mtu
	 * and @rate are codes of enum ibv_mtu and enum ibv_rate, @life is a
	 * timeout code. */
	uint8_t mtu_selector, mtu, rate_selector, rate, life_selector, life;
	uint8_t preference;
};

/* Components of a MCMemberRecord (IBA 15.2.5.17). */
enum vb_sa_mcmember_component {
	SA_MC_MGID = 1 << 0,
	SA_MC_PORT_GID = 1 << 1,
	SA_MC_QKEY = 1 << 2,
	SA_MC_MTU = 3 << 4, /* two bits: MTU selector and MTU */
	SA_MC_TCLASS = 1 << 6,
	SA_MC_PKEY = 1 << 7,
	SA_MC_RATE = 3 << 8, /* two bits: rate selector and rate */
	SA_MC_SL = 1 << 12,
	SA_MC_FLOW_LABEL = 1 << 13,
	SA_MC_HOP_LIMIT = 1 << 14,
	SA_MC_JOIN_STATE = 1 << 16,
};

/* Bits of JoinState. */
enum vb_sa_join_state {
	SA_FULL_MEMBER = 1,
	/* the member only sends, and does not keep the group alive */
	SA_SEND_ONLY_NON_MEMBER = 4,
	SA_SEND_ONLY_FULL_MEMBER = 8,
};

/* Values of the selectors of MTU, rate and life time in a request. */
enum vb_sa_selector { SA_EXACTLY = 2 };

struct vb_sa_mcmember {
	struct vb_gid mgid, port_gid;
	uint32_t qkey;
	uint16_t mlid;
	uint8_t mtu_selector, mtu, tclass;
	uint16_t pkey;
	uint8_t rate_selector, rate, life_selector, life, sl;
	uint32_t flow_label; /* flow label, 20 bits */
	uint8_t hop_limit, scope;
	uint8_t join_state; /* bits of enum vb_sa_join_state */
	uint8_t proxy_join;
};

/* Components of a ServiceRecord (IBA 15.2.5.14). */
enum vb_sa_service_component {
	SA_SERVICE_ID = 1 << 0,
	SA_SERVICE_NAME = 1 << 6,
};

#define VB_SA_SERVICE_BYTES 176 /* bytes of a ServiceRecord */
#define VB_SA_SERVICE_NAME  64

struct vb_sa_service {
	uint64_t id;
	struct vb_gid gid; /* GID of the port that has the service */
	uint16_t pkey;
	uint32_t lease;		       /* seconds; 0xffffffff: for ever */
	char name[VB_SA_SERVICE_NAME]; /* the last byte may be other than 0 */
};

/* Each of these functions writes a whole MAD of VB_MAD_BYTES bytes: the header
 * @h and the record. */
void vb_sa_path_put(uint8_t mad[VB_MAD_BYTES], const struct vb_sa_hdr *h,
		    const struct vb_sa_path *p);
void vb_sa_mcmember_put(uint8_t mad[VB_MAD_BYTES], const struct vb_sa_hdr *h,
			const struct vb_sa_mcmember *m);
void vb_sa_service_put(uint8_t mad[VB_MAD_BYTES], const struct vb_sa_hdr *h,
		       const struct vb_sa_service *s);
/* Reads the header of a MAD of @len bytes. False: the MAD is too short, or not
 * of the subnet administrator's class and version. */
VB_MUST_CHECK bool vb_sa_hdr_get(const uint8_t *mad, size_t len,
				 struct vb_sa_hdr *h);
/* Reads the record of an answer whose header vb_sa_hdr_get() has accepted.
 * False: the record describes no path that a port could use: a LID that is no
 * unicast LID, or a code of the MTU that does not exist. */
VB_MUST_CHECK bool vb_sa_path_get(const uint8_t mad[VB_MAD_BYTES],
				  struct vb_sa_path *p);
/* Reads the MCMemberRecord of an answer whose header vb_sa_hdr_get() has
 * accepted. False: MGID or MLID is not that of a group, or the code of the MTU
 * does not exist. */
VB_MUST_CHECK bool vb_sa_mcmember_get(const uint8_t mad[VB_MAD_BYTES],
				      struct vb_sa_mcmember *m);

/* Returns the number of ServiceRecords in the answer @mad of @len bytes, whose
 * header vb_sa_hdr_get() has accepted as @h. An answer to SA_GET_TABLE may have
 * any number of them. */
unsigned vb_sa_service_count(const struct vb_sa_hdr *h, size_t len);
/* Reads ServiceRecord number @i of the answer, from 0. False: the record's GID
 * is not that of a port. */
VB_MUST_CHECK bool vb_sa_service_get(const uint8_t *mad,
				     const struct vb_sa_hdr *h, unsigned i,
				     struct vb_sa_service *s);

/* Returns the bytes of an MTU's code; 0 if the code does not exist. */
unsigned vb_sa_mtu_bytes(unsigned code);

#endif
