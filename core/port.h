/* SPDX-License-Identifier: BSD-2-Clause */
/* A port: its GID table, P_Keys, MTU, state. */
#ifndef CORE_PORT_H
#define CORE_PORT_H

#include "base/sync.h"
#include "core/types.h"

#define VB_MAX_GIDS 256

enum vb_port_state {
	PORT_DOWN = 1,
	PORT_INIT = 2,
	PORT_ARMED = 3,
	PORT_ACTIVE = 4
};

struct vb_gid_entry {
	struct vb_gid gid; /* all zero: empty */
	uint32_t ifindex;
};

struct vb_port {
	struct vb_mutex lock;
	/* lock */
	struct vb_gid_entry gids[VB_MAX_GIDS];
	unsigned gid_count; /* highest used index + 1 */
	enum vb_port_state state;
	uint8_t active_mtu, max_mtu; /* enum ibv_mtu */
	uint32_t netdev_mtu;	     /* bytes */
	uint32_t ifindex;	     /* of the last that there was */
	bool present;		     /* it is there now */
	uint32_t mbits;		     /* link speed; 0 unknown */
	char netdev[16];
	uint8_t mac[6];
};

void vb_port_init(struct vb_port *p);
void vb_port_fini(struct vb_port *p);

/* What the system says of the interface now. */
struct vb_port_update {
	uint32_t ifindex; /* 0: there is no such interface now */
	bool stays;	  /* the one before is still there, if not listed */
	uint8_t mac[6];
	bool up;
	uint32_t mtu, mbits;
	struct vb_gid only; /* an RNIC's GID, which has no other; or zero */
	unsigned count;	    /* addresses, not the default GID */
	struct vb_gid addresses[VB_MAX_GIDS - 1];
};

enum vb_port_change {
	PORT_SAME = 0,
	PORT_GIDS = 1,
	PORT_UP = 2,
	PORT_WENT_DOWN = 4,
	PORT_MTU = 8,
	PORT_GONE = 16 /* the interface; another may have its name by now */
};

/*
 * Bring the table to what @news says: index 0 keeps the default GID, an
 * address that stays keeps its index, one that goes leaves a hole, a new one
 * takes the lowest hole. Returns enum vb_port_change bits. Idempotent.
 */
unsigned vb_port_update(struct vb_port *p, const struct vb_port_update *news);

/* False: no such index, or empty. */
bool vb_port_gid(struct vb_port *p, unsigned index, struct vb_gid_entry *out);
/* The index of @gid, or -1. */
int vb_port_find_gid(struct vb_port *p, const struct vb_gid *gid);

/* An Ethernet speed in the words of an InfiniBand port: codes of width (1 is
 * 1X, 2 is 4X) and speed (1 SDR, 2 DDR, 8 FDR10, 32 EDR), and as sysfs has it.
 * Unknown counts as slow. */
struct vb_port_rate {
	uint32_t up_to_mbits;
	uint8_t width, speed;
	const char *text;
};
const struct vb_port_rate *vb_port_rate(uint32_t mbits);

/* The largest IB MTU (enum) that fits an interface MTU with 96 bytes of
 * headers (as rdma_cm reckons); at least 256. */
uint8_t vb_mtu_for_netdev(uint32_t netdev_mtu);

#endif
