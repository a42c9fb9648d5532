/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The management class of device management (IBA 16.3): what a port tells of
 * the I/O unit behind it. A MAD of the class has the data of its attribute at
 * VB_IOU_DATA_AT, behind bytes that are reserved. The class's ClassPortInfo is
 * struct vb_class_info (wire/cc.h).
 */
#ifndef WIRE_IOU_H
#define WIRE_IOU_H

#include "wire/mad.h"

#define VB_IOU_CLASS_VERSION 1
#define VB_IOU_DATA_AT	     64
#define VB_IOU_DATA_BYTES    192

enum vb_iou_attr {
	IOU_CLASS_PORT_INFO = 0x01,
	IOU_UNIT_INFO = 0x10,
	IOU_CONTROLLER_PROFILE = 0x11, /* the modifier is a slot */
	/* the modifier is a slot, the last and the first entry */
	IOU_SERVICE_ENTRIES = 0x12,
	IOU_DIAGNOSTIC_TIMEOUT = 0x20,
	IOU_PREPARE_TO_TEST = 0x21,
	IOU_TEST_DEVICE_ONCE = 0x22,
	IOU_TEST_DEVICE_LOOP = 0x23,
	IOU_DIAG_CODE = 0x24,
};

/* Status codes that only this class has (IBA 16.3.1.1). */
enum vb_iou_status {
	IOU_NO_CONTROLLER = 0x0100, /* no controller answers in the slot */
	IOU_NO_SERVICE = 0x0200,    /* no service entry is in the range */
};

/* IOUnitInfo, without its list of slots. */
struct vb_iou_info {
	uint16_t change_id; /* counts changes of the list of slots */
	uint8_t slots;	    /* MaxControllers: number of slots of the list */
	uint8_t diag_device_id, option_rom; /* flags of 1 bit each */
};
/* The list of slots: 4 bits for each slot, slot 1 in the high bits of the first
 * byte. */
#define VB_IOU_LIST_AT	  4
#define VB_IOU_LIST_BYTES 128
enum vb_iou_slot {
	IOU_SLOT_EMPTY = 0x0,
	IOU_SLOT_TAKEN = 0x1, /* a controller is in the slot */
	IOU_SLOT_NONE = 0xf,  /* the unit has no such slot */
};

/* IOControllerProfile, without its text. */
struct vb_iou_profile {
	uint64_t guid;
	uint32_t vendor_id, subsystem_vendor; /* OUIs, 24 bits each */
	uint32_t device_id, subsystem_id;
	uint16_t device_version;
	uint16_t io_class, io_subclass, protocol, protocol_version;
	uint16_t send_depth; /* entries of the queue of messages */
	uint8_t read_depth;  /* RDMA READs that may be outstanding */
	uint32_t send_size;  /* largest message, in bytes */
	uint32_t rdma_size;  /* largest RDMA transfer, in bytes */
	uint8_t operations;  /* mask of enum vb_iou_operation */
	uint8_t services;    /* number of service entries */
};
/* IDString: text with a NUL at its end. */
#define VB_IOU_TEXT_AT	  64
#define VB_IOU_TEXT_BYTES 64
enum vb_iou_operation {
	IOU_SEND_TO = 1u << 0,
	IOU_SEND_FROM = 1u << 1,
	IOU_READ_FROM = 1u << 3,
	IOU_WRITE_FROM = 1u << 5,
};

/* Codes of a controller that no standard describes. */
#define VB_IOU_VENDOR_SPECIFIC 0xffff
/* Codes of a target of the SCSI RDMA Protocol (SRP, INCITS 365, annex B.7), and
 * how the name of its service begins; 16 hexadecimal digits follow. */
#define VB_IOU_SRP_CLASS	    0x0100
#define VB_IOU_SRP_SUBCLASS	    0x609e
#define VB_IOU_SRP_PROTOCOL	    0x0108
#define VB_IOU_SRP_PROTOCOL_VERSION 1
#define VB_IOU_SRP_PREFIX	    "SRP.T10:"

/* ServiceEntries: the entries of the range, from the first byte on. */
#define VB_IOU_SERVICE_BYTES 48
#define VB_IOU_ENTRIES	     4	/* entries in one MAD */
#define VB_IOU_NAME	     40 /* bytes of a name, with a NUL at its end */
struct vb_iou_service {
	char name[VB_IOU_NAME];
	uint64_t id; /* the service ID by which a client connects */
};

/* Write the attributes; @data is where the attribute or its entry begins. Bits
 * that have no member do not change. */
void vb_iou_info_put(uint8_t *data, const struct vb_iou_info *i);
void vb_iou_slot_put(uint8_t *data, unsigned slot, enum vb_iou_slot what);
void vb_iou_profile_put(uint8_t *data, const struct vb_iou_profile *p);
void vb_iou_service_put(uint8_t *data, const struct vb_iou_service *s);

#endif
