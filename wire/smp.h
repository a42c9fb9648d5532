/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Subnet management packets (SMPs, IBA 14.2) and their attributes (IBA 14.2.5):
 * the bytes that queue pair 0 sends and receives.
 */
#ifndef WIRE_SMP_H
#define WIRE_SMP_H

#include "base/bytes.h"
#include "wire/lrh.h"
#include "wire/mad.h"

#define VB_SMP_DATA_AT	  64
#define VB_SMP_DATA_BYTES 64
/* entries of a directed route; entry 0 is unused */
#define VB_SMP_HOPS 64

/* The management classes (IBA 13.4.4). */
enum vb_mad_class {
	MAD_CLASS_SMP = 0x01,
	MAD_CLASS_SA = 0x03,
	MAD_CLASS_PERF = 0x04,
	MAD_CLASS_BASEBOARD = 0x05,
	MAD_CLASS_DEVICE = 0x06,
	MAD_CLASS_SNMP = 0x08,
	MAD_CLASS_VENDOR1 = 0x09,
	MAD_CLASS_VENDOR1_LAST = 0x0f,
	MAD_CLASS_CC = 0x21,
	MAD_CLASS_VENDOR2 = 0x30,
	MAD_CLASS_VENDOR2_LAST = 0x4f,
	MAD_CLASS_SMP_DIRECTED = 0x81,
};

/* The methods of MADs (IBA 13.4.5). A response has the highest bit set. */
enum vb_mad_method {
	MAD_GET = 0x01,
	MAD_SET = 0x02,
	MAD_SEND = 0x03,
	MAD_TRAP = 0x05,
	MAD_REPORT = 0x06,
	MAD_TRAP_REPRESS = 0x07,
	MAD_GET_TABLE = 0x12,
	MAD_RESPONSE = 0x80,
	MAD_GET_RESP = 0x81,
};

/* The status codes of MADs (IBA 13.4.7). In a directed-route SMP the highest
 * bit is D. */
enum vb_mad_status {
	MAD_OK = 0,
	MAD_BAD_VERSION = 0x04,
	MAD_BAD_METHOD = 0x08,
	/* the attribute is unknown, or the method does not fit it */
	MAD_BAD_ATTRIBUTE = 0x0c,
	MAD_BAD_FIELD = 0x1c,
};
/* bit D of the status: the SMP is on its way back */
#define VB_SMP_DIRECTION 0x8000

#define VB_MAD_BASE_VERSION 1

/* Make the checks that every agent of a node makes first in a Get or a Set (IBA
 * 13.4.7). The agent's class has the version @expected. Returns MAD_OK,
 * MAD_BAD_VERSION or MAD_BAD_METHOD. */
unsigned vb_mad_judge(unsigned base_version, unsigned class_version,
		      unsigned expected, unsigned method);

enum vb_smp_attr {
	SMP_NOTICE = 0x02,
	SMP_NODE_DESCRIPTION = 0x10,
	SMP_NODE_INFO = 0x11,
	SMP_SWITCH_INFO = 0x12,
	SMP_GUID_INFO = 0x14,
	SMP_PORT_INFO = 0x15,
	SMP_PKEY_TABLE = 0x16,
	SMP_SL2VL = 0x17,
	SMP_VLARB = 0x18,
	SMP_LINEAR_TABLE = 0x19,
	SMP_RANDOM_TABLE = 0x1a,
	SMP_MULTICAST_TABLE = 0x1b,
	SMP_SM_INFO = 0x20,
};

/* The header of an SMP, without its data and paths. */
struct vb_smp_hdr {
	uint8_t base_version, class, class_version, method;
	uint16_t status; /* status of the answer, with the bit D */
	uint8_t hop_pointer, hop_count;
	uint64_t tid;
	uint16_t attr_id;
	uint32_t attr_mod;
	uint64_t mkey;
	uint16_t dr_slid, dr_dlid;
};

#define VB_SMP_INITIAL_PATH_AT 128
#define VB_SMP_RETURN_PATH_AT  192

struct vb_node_info {
	uint8_t base_version, class_version, node_type, num_ports;
	uint64_t system_guid, node_guid, port_guid;
	uint16_t partition_cap, device_id;
	uint32_t revision;
	uint8_t local_port;
	uint32_t vendor_id; /* OUI of the vendor, 24 bits */
};
enum vb_node_type { NODE_CA = 1, NODE_SWITCH = 2, NODE_ROUTER = 3 };

struct vb_switch_info {
	uint16_t linear_cap, random_cap, multicast_cap, linear_top;
	uint8_t default_port, default_primary, default_secondary;
	uint8_t life_time, port_state_change, sl_to_vl_optimized;
	uint16_t lids_per_port, partition_cap;
	uint8_t inbound_enforcement, outbound_enforcement;
	uint8_t raw_inbound, raw_outbound, enhanced_port0;
	uint16_t multicast_top;
};

struct vb_port_info {
	uint64_t mkey, gid_prefix;
	uint16_t lid, sm_lid;
	uint32_t cap_mask;
	uint16_t diag_code, mkey_lease;
	uint8_t local_port;
	uint8_t width_enabled, width_supported, width_active;
	uint8_t speed_supported, state, phys_state, down_default;
	uint8_t mkey_protect, lmc, speed_active, speed_enabled;
	uint8_t neighbor_mtu, sm_sl, vl_cap, init_type, high_limit;
	uint8_t vlarb_high_cap, vlarb_low_cap, init_reply, mtu_cap;
	uint8_t vl_stall, hoq_life, oper_vls;
	uint8_t pkey_enforce_in, pkey_enforce_out, raw_in, raw_out;
	uint16_t mkey_violations, pkey_violations, qkey_violations;
	uint8_t guid_cap, client_reregister, subnet_timeout, resp_time;
	uint8_t local_phys_errors, overrun_errors;
	uint16_t max_credit_hint;
	uint32_t round_trip; /* round trip latency, 24 bits */
	uint16_t cap_mask2;
	uint8_t ext_speed_active, ext_speed_supported, ext_speed_enabled;
};

/* Capabilities of a port (IBA 14.2.5.6) that Verbena uses. */
#define VB_CAP_SM	       0x00000002u
#define VB_CAP_NOTICE	       0x00000004u
#define VB_CAP_TRAP	       0x00000008u
#define VB_CAP_SL_MAP	       0x00000040u
#define VB_CAP_EXTENDED_SPEEDS 0x00004000u
#define VB_CAP_SYSTEM_GUID     0x00000800u
#define VB_CAP_CM	       0x00010000u
#define VB_CAP_DEVICE	       0x00080000u
#define VB_CAP_REREGISTER      0x02000000u

struct vb_notice {
	uint8_t generic, type;
	/* producer of the Notice, 24 bits: enum vb_node_type, or a vendor */
	uint32_t producer;
	uint16_t number; /* number of the trap */
	uint16_t issuer_lid;
	uint8_t toggle;
	uint16_t count;
};
/* Notice.Type (IBA 13.4.8.2). */
enum vb_notice_type {
	VB_NOTICE_URGENT = 1,
	VB_NOTICE_SECURITY = 2,
	VB_NOTICE_INFORMATIONAL = 4
};
#define VB_NOTICE_BYTES 80
/* offset of the details in the bytes of a Notice */
#define VB_NOTICE_DETAILS_AT 10

void vb_smp_hdr_get(const uint8_t mad[VB_MAD_BYTES], struct vb_smp_hdr *h);
void vb_smp_hdr_put(uint8_t mad[VB_MAD_BYTES], const struct vb_smp_hdr *h);

/* Read and write the attributes. @data: the SMP's data (VB_SMP_DATA_AT); for a
 * Notice, the data at the offset of the MAD's class. */
void vb_node_info_get(const uint8_t *data, struct vb_node_info *n);
void vb_node_info_put(uint8_t *data, const struct vb_node_info *n);
void vb_switch_info_get(const uint8_t *data, struct vb_switch_info *s);
void vb_switch_info_put(uint8_t *data, const struct vb_switch_info *s);
void vb_port_info_get(const uint8_t *data, struct vb_port_info *p);
void vb_port_info_put(uint8_t *data, const struct vb_port_info *p);
void vb_notice_get(const uint8_t *data, struct vb_notice *n);
void vb_notice_put(uint8_t *data, const struct vb_notice *n);

#endif
