/* SPDX-License-Identifier: BSD-2-Clause */
/* A port: its GID table, P_Keys, MTU and state. */
#ifndef CORE_PORT_H
#define CORE_PORT_H

#include <stdatomic.h>

#include "base/sync.h"
#include "core/types.h"

#define VB_MAX_GIDS  256
#define VB_MAX_PKEYS 128
#define VB_PKEY_ALL  0xffffu /* the default partition, as a full member */

enum vb_port_state {
	PORT_DOWN = 1,
	PORT_INIT = 2,
	PORT_ARMED = 3,
	PORT_ACTIVE = 4
};

struct vb_gid_entry {
	struct vb_gid gid; /* all bytes zero: the entry is unused */
	uint32_t ifindex;
	enum vb_gid_type type;
};

/* What only a port of an InfiniBand fabric has. Codes are those of PortInfo
 * (IBA 14.2.5.6), and of struct ibv_port_attr. */
struct vb_port_ib {
	bool present; /* the fabric has reported the port */
	uint8_t phys, lmc, sm_sl, vls, init_type, subnet_timeout;
	uint8_t width, speed;
	uint16_t lid, sm_lid, gid_room;
	uint16_t pkey_violations, qkey_violations;
	uint32_t caps;
	/* how often the subnet manager has asked clients to register again */
	uint32_t reregisters;
};

struct vb_link;
struct vb_addressing;

struct vb_port {
	/* Set before the adapter is used, and not changed later: the port's
	 * number, the link that carries its packets (the engine owns it), and
	 * the functions for the kind of addresses that the port has. */
	uint8_t number;
	struct vb_link *link;
	const struct vb_addressing *addressing;
	/* A random number that identifies a port of a fabric: all programs that
	 * use the same port have the same number. 0: this port is in no
	 * fabric. */
	uint64_t place;
	struct vb_mutex lock;
	/* The fields below are protected by lock. */
	struct vb_gid_entry gids[VB_MAX_GIDS];
	unsigned gid_count; /* the highest used index of @gids, plus 1 */
	enum vb_port_state state;
	/* codes of the active and the largest IB MTU (enum ibv_mtu) */
	uint8_t active_mtu, max_mtu;
	uint32_t netdev_mtu; /* MTU of the network interface, in bytes */
	/* index of the network interface; of a deleted one, the last index */
	uint32_t ifindex;
	bool present;	/* the network interface exists now */
	uint32_t mbits; /* link speed in Mbit/s; 0: unknown */
	char netdev[16];
	uint8_t mac[6];
	struct vb_port_ib ib;
	/* Written under lock, read without: an entry is 0 if it is unused. An
	 * Ethernet port has only VB_PKEY_ALL. */
	_Atomic uint16_t pkeys[VB_MAX_PKEYS];
	_Atomic uint16_t pkey_count;
	/* LMC of an InfiniBand port; written under lock, read without */
	_Atomic uint8_t lmc;
	/* Bits 1 << enum vb_port_state: a log message has told the user that
	 * the port was in this state when a program needed it. */
	_Atomic uint32_t known;
};

/* Zero the port and set the default state: down, an empty table of GIDs, and
 * the default P_Key. Its number is 1. */
void vb_port_init(struct vb_port *p);
void vb_port_fini(struct vb_port *p);

/* A report of the system about a port's network interface. */
struct vb_port_update {
	/* index of the interface; 0: there is no such interface */
	uint32_t ifindex;
	/* the interface still exists, although the kernel did not list it */
	bool stays;
	uint8_t mac[6];
	bool up;
	uint32_t mtu, mbits;
	/* the only GID of an iWARP device's port; zero on other devices */
	struct vb_gid only;
	/* Each address has two entries in the GID table: RoCEv1's at an even
	 * index, and RoCEv2's behind it. False: it has only RoCEv2's. */
	bool both_types;
	/* number of `addresses`, which do not include the default GID */
	unsigned count;
	struct vb_gid addresses[VB_MAX_GIDS - 1];
};

enum vb_port_change {
	PORT_SAME = 0,
	PORT_GIDS = 1,
	PORT_UP = 2,
	PORT_WENT_DOWN = 4,
	PORT_MTU = 8,
	/* The interface is gone; a new interface may have its name. */
	PORT_GONE = 16,
	/* changes that only a port of an InfiniBand fabric has */
	PORT_LID = 32,
	PORT_SM = 64,
	PORT_PKEYS = 128,
	PORT_REREGISTER = 256
};

/* Apply @update to the GID table: index 0 keeps the default GID, an address
 * that stays keeps its index, a removed address leaves its index unused, and a
 * new address gets the lowest unused index; with @both_types each of these is a
 * pair of indices, and addresses for which the table has no pair are left out.
 * @both_types is the same in all calls for a port. Returns bits of enum
 * vb_port_change. Repeating a call changes nothing. Takes p->lock. */
unsigned vb_port_update(struct vb_port *p, const struct vb_port_update *update)
	VB_EXCLUDES(p->lock);

/* What the fabric reports about an InfiniBand port. */
struct vb_port_ib_update {
	struct vb_port_ib ib;
	enum vb_port_state state;
	uint8_t active_mtu, max_mtu; /* MTU codes, 1..5 */
	uint16_t pkeys, gids; /* number of valid entries of @pkey, @gid */
	uint16_t pkey[VB_MAX_PKEYS];
	struct vb_gid gid[VB_MAX_GIDS]; /* all zero: no entry */
};

/* Apply @update. Returns bits of enum vb_port_change, which say what differs
 * from the previous call; the first call returns 0. Takes p->lock. */
unsigned vb_port_ib_update(struct vb_port *p,
			   const struct vb_port_ib_update *update)
	VB_EXCLUDES(p->lock);

/* The fabric has ended: the port is down and disabled, and its tables keep what
 * they have. Returns bits of enum vb_port_change. Takes p->lock. */
unsigned vb_port_ib_end(struct vb_port *p) VB_EXCLUDES(p->lock);

/* Call this when a program needs the port; @name is the adapter's name. If the
 * port is an InfiniBand port that is not ACTIVE, the function logs the reason,
 * once for each state. Takes p->lock. */
void vb_port_ib_tell(struct vb_port *p, const char *name) VB_EXCLUDES(p->lock);

/* Is the port in state PORT_ACTIVE? Takes p->lock. */
bool vb_port_is_active(struct vb_port *p) VB_EXCLUDES(p->lock);

/* Returns the P_Key at @index; 0: none. No lock. */
static inline uint16_t vb_port_pkey(const struct vb_port *p, unsigned index)
{
	return index < VB_MAX_PKEYS ? atomic_load_explicit(&p->pkeys[index],
							   memory_order_relaxed)
				    : 0;
}

/* True if the P_Keys of a packet and of a queue pair match (IBA 10.9.3). Two
 * limited members do not receive each other's packets. */
static inline bool vb_pkeys_match(uint16_t a, uint16_t b)
{
	return ((a ^ b) & 0x7fff) == 0 && (a & 0x7fff) && ((a | b) & 0x8000);
}

/* Copy entry @index to @out. False: @index is out of range, or the entry is
 * unused. Takes p->lock. */
bool vb_port_gid(struct vb_port *p, unsigned index, struct vb_gid_entry *out)
	VB_EXCLUDES(p->lock);
/* Returns the index of the entry of @gid that has @type, or -1. Takes
 * p->lock. */
int vb_port_find_gid(struct vb_port *p, const struct vb_gid *gid,
		     enum vb_gid_type type) VB_EXCLUDES(p->lock);

/* The InfiniBand values shown for an Ethernet speed: width code (1: 1X, 2: 4X),
 * speed code (1: SDR, 2: DDR, 8: FDR10, 32: EDR), and the text in sysfs. An
 * unknown speed counts as the slowest. */
struct vb_port_rate {
	uint32_t up_to_mbits;
	uint8_t width, speed;
	const char *text;
};
/* Returns the row of the table for a link of @mbits Mbit/s; static memory. */
const struct vb_port_rate *vb_port_rate(uint32_t mbits);

/* Returns the largest IB MTU code whose packets fit into an interface MTU of
 * @netdev_mtu bytes with 96 bytes of headers, which rdma_cm assumes; at least
 * 256 bytes. */
uint8_t vb_mtu_for_netdev(uint32_t netdev_mtu);

#endif
