/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The management class of congestion control (IBA annex A10.4), and
 * ClassPortInfo, which most classes have (IBA 13.4.8.1). A MAD of the class has
 * the CC_Key behind the common header, and the data of its attribute at
 * VB_CC_DATA_AT; the data of CongestionLog begin at VB_CC_LOG_AT.
 */
#ifndef WIRE_CC_H
#define WIRE_CC_H

#include "wire/gid.h"
#include "wire/mad.h"

#define VB_CC_CLASS_VERSION 2
#define VB_CC_KEY_AT	    24
#define VB_CC_LOG_AT	    32
#define VB_CC_LOG_BYTES	    224
#define VB_CC_DATA_AT	    64
#define VB_CC_DATA_BYTES    192

enum vb_cc_attr {
	CC_CLASS_PORT_INFO = 0x01,
	CC_NOTICE = 0x02,
	CC_INFO = 0x11,
	CC_KEY_INFO = 0x12,
	CC_LOG = 0x13,
	CC_SWITCH_SETTING = 0x14,
	CC_SWITCH_PORT_SETTING = 0x15,
	CC_CA_SETTING = 0x16,
	CC_TABLE = 0x17,
	CC_TIME_STAMP = 0x18,
};

/* number of the only trap of the class congestion control */
#define VB_CC_TRAP_BAD_KEY 0

/* A time stamp counts units of 1.024 us, modulo 2^32. */
#define VB_CC_STAMP_NS 1024

/* Bits of CongestionInfo: what a node can do. */
enum vb_cc_ability {
	CC_CAN_STARVATION = 1u << 0, /* a switch: it has credit starvation */
	/* a switch: each port can have its own threshold */
	CC_CAN_PORT_THRESHOLD = 1u << 1,
	CC_CAN_PORT_SIZE = 1u << 2,
	CC_CAN_PORT_RATE = 1u << 3,
	CC_CAN_BY_QP = 1u << 6, /* an adapter: a flow can be a queue pair */
	CC_CAN_BY_SL = 1u << 7, /* an adapter: a flow can be a service level */
};

struct vb_class_info {
	uint8_t base_version, class_version;
	uint16_t cap_mask;
	uint32_t cap_mask2; /* CapabilityMask2, 27 bits */
	uint8_t resp_time;  /* RespTimeValue, 5 bits: 4.096 us * 2^n */
	/* The fields below say where the class sends its traps. */
	uint64_t trap_prefix, trap_guid; /* GID of the receiver of traps */
	uint8_t trap_class, trap_sl, trap_hop_limit;
	uint32_t trap_flow; /* flow label of traps, 20 bits */
	uint16_t trap_lid, trap_pkey;
	uint32_t trap_qpn; /* QPN of the receiver of traps, 24 bits */
	uint32_t trap_qkey;
};
/* bit of cap_mask: the agent can send traps */
#define VB_CLASS_CAN_TRAP 0x0001

struct vb_cc_key_info {
	uint64_t key;
	uint8_t protect; /* KeyProtectBit, 1 bit */
	uint16_t lease;	 /* lease period of the key in seconds; 0: for ever */
	uint16_t violations;
};

/* Control_Map of SwitchCongestionSetting: which fields a Set changes. */
enum vb_cc_switch_map {
	CC_MAP_VICTIM = 1u << 0,
	CC_MAP_CREDIT = 1u << 1,
	CC_MAP_THRESHOLD = 1u << 2, /* the fields Threshold and Packet_Size */
	CC_MAP_STARVATION = 1u << 3,
	CC_MAP_RATE = 1u << 4,
};
/* Offsets of Victim_Mask and Credit_Mask, of VB_CC_MASK_BYTES each. */
#define VB_CC_VICTIM_AT	 4
#define VB_CC_CREDIT_AT	 36
#define VB_CC_MASK_BYTES 32

struct vb_cc_switch_setting {
	/* the fields that a Set changes, bits of enum vb_cc_switch_map */
	uint32_t map;
	uint8_t threshold;
	/* frames with fewer blocks of 64 bytes are not marked */
	uint8_t packet_size;
	uint8_t starvation_threshold;
	uint16_t starvation_delay;
	uint16_t rate;
};

/* One element of SwitchPortCongestionSetting, whose modifier is a block of 48
 * ports. */
#define VB_CC_PORTS_BLOCK   48
#define VB_CC_ELEMENT_BYTES 4
struct vb_cc_port_setting {
	uint8_t valid;	   /* 1: the port uses this setting; 1 bit */
	uint8_t type;	   /* 1 bit; 1: the port uses credit starvation */
	uint8_t threshold; /* code of the threshold, 4 bits */
	uint8_t packet_size;
	uint16_t rate;
};

/* CACongestionSetting: Port_Control and Control_Map, 16 bits each, and an entry
 * for each service level. */
#define VB_CC_ENTRIES_AT  4
#define VB_CC_ENTRY_BYTES 8
struct vb_cc_entry {
	uint16_t timer;
	uint8_t increase, trigger, min;
};

/* CongestionControlTable: CCTI_Limit, and a block of entries of 16 bits, which
 * the modifier names. */
#define VB_CC_TABLE_AT	  4
#define VB_CC_TABLE_BLOCK 64

/* The types of CongestionLog: that of a switch, and that of an adapter. */
enum vb_cc_log_type { CC_LOG_SWITCH = 1, CC_LOG_CA = 2 };
struct vb_cc_log {
	uint8_t type; /* type of the log, an enum vb_cc_log_type */
	uint16_t events;
	/* of an adapter: mask of the service levels with events */
	uint16_t sls;
	/* time at which the log was read, in units of VB_CC_STAMP_NS */
	uint32_t stamp;
};
#define VB_CC_LOG_PORTS_AT 8
/* offset of the entries in the log of a switch */
#define VB_CC_LOG_SWITCH_AT	 40
#define VB_CC_LOG_SWITCH_BYTES	 12
#define VB_CC_LOG_SWITCH_ENTRIES 15
#define VB_CC_LOG_CA_AT		 12
#define VB_CC_LOG_CA_BYTES	 16
#define VB_CC_LOG_CA_ENTRIES	 13

struct vb_cc_log_switch_entry {
	uint16_t slid, dlid;
	uint8_t sl;
	uint32_t stamp;
};
struct vb_cc_log_ca_entry {
	uint32_t local_qpn, remote_qpn; /* QPNs, 24 bits each */
	uint8_t sl, service;		/* fields of 4 bits each */
	uint16_t local_lid, remote_lid;
	uint32_t stamp;
};

/* Details of the Notice with the number VB_CC_TRAP_BAD_KEY. */
struct vb_cc_notice {
	uint16_t slid;
	uint8_t method;
	uint16_t attr_id;
	uint32_t attr_mod, qpn;
	uint64_t key;
	/* GID of the sender of the MAD with the wrong key */
	uint64_t prefix, guid;
};

/* Read and write the attributes; @data is where the attribute or its element
 * begins. Writing does not change bits that have no member. */
void vb_class_info_get(const uint8_t *data, struct vb_class_info *c);
void vb_class_info_put(uint8_t *data, const struct vb_class_info *c);
void vb_cc_key_info_get(const uint8_t *data, struct vb_cc_key_info *k);
void vb_cc_key_info_put(uint8_t *data, const struct vb_cc_key_info *k);
void vb_cc_switch_setting_get(const uint8_t *data,
			      struct vb_cc_switch_setting *s);
void vb_cc_switch_setting_put(uint8_t *data,
			      const struct vb_cc_switch_setting *s);
void vb_cc_port_setting_get(const uint8_t *data, struct vb_cc_port_setting *s);
void vb_cc_port_setting_put(uint8_t *data, const struct vb_cc_port_setting *s);
void vb_cc_entry_get(const uint8_t *data, struct vb_cc_entry *e);
void vb_cc_entry_put(uint8_t *data, const struct vb_cc_entry *e);
void vb_cc_log_put(uint8_t *data, const struct vb_cc_log *l);
void vb_cc_log_switch_entry_put(uint8_t *data,
				const struct vb_cc_log_switch_entry *e);
void vb_cc_log_ca_entry_put(uint8_t *data, const struct vb_cc_log_ca_entry *e);
void vb_cc_notice_put(uint8_t *data, const struct vb_cc_notice *n);

#endif
