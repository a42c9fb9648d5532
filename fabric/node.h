/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The nodes of an InfiniBand fabric and their ports: every value that the data
 * plane obeys and that management reads and writes. All fields are plain values
 * in host byte order. The agents (mgmt) translate them from and to MADs; the
 * data plane (fabric) reads them for each frame, so a change takes effect at
 * once and needs no further call. Only the two states of a port are different:
 * vb_fab_set_state() and vb_fab_set_phys() (fabric/net.h) change them, because
 * they act on the link.
 *
 * Codes are those of the attributes' fields (IBA 14.2.5): the comment names the
 * field where the name here does not. One thread owns a fabric; nothing here
 * has a lock.
 */
#ifndef FABRIC_NODE_H
#define FABRIC_NODE_H

#include "base/defs.h"

#define VB_FAB_VLS	  16 /* VL0..VL14 carry data, VL15 subnet management */
#define VB_FAB_SLS	  16
#define VB_FAB_VLARB_MAX  64	  /* entries of one arbitration table */
#define VB_FAB_DESC_BYTES 64	  /* NodeDescription; need not end in NUL */
#define VB_FAB_NO_PORT	  0xff	  /* linear table: discard */
#define VB_FAB_LIDS	  0xc000u /* unicast LIDs are 1..0xbfff */
#define VB_FAB_MLIDS	  0x3fffu /* multicast LIDs are 0xc000..0xfffe */
#define VB_FAB_PORTS_MAX  254

/* NodeInfo.NodeType. */
enum vb_fab_kind { FAB_CA = 1, FAB_SWITCH = 2, FAB_ROUTER = 3 };

/* PortInfo.PortState; 0 in a Set means no change. */
enum vb_fab_state {
	FAB_DOWN = 1,
	FAB_INIT = 2,
	FAB_ARMED = 3,
	FAB_ACTIVE = 4,
};

/* PortInfo.PortPhysicalState. */
enum vb_fab_phys {
	FAB_SLEEP = 1,
	FAB_POLLING = 2,
	FAB_DISABLED = 3,
	FAB_TRAINING = 4,
	FAB_LINK_UP = 5,
	FAB_RECOVERY = 6,
};

/* LinkWidth bits, and LinkSpeed bits with one value of 4 for each lane. */
enum vb_fab_width {
	FAB_1X = 1,
	FAB_4X = 2,
	FAB_8X = 4,
	FAB_12X = 8,
	FAB_2X = 16,
};
enum vb_fab_speed { FAB_SDR = 1, FAB_DDR = 2, FAB_QDR = 4 };
/* LinkSpeedExt bits; 0: none is in use, then LinkSpeed says the speed. */
enum vb_fab_speed_ext {
	FAB_FDR = 1,
	FAB_EDR = 2,
	FAB_HDR = 4,
	FAB_NDR = 8,
};

/*
 * What a port counts. Counters only grow, in 64 bits, and only the data plane
 * (FAB_QP1_DROPPED: mgmt) adds to them. The performance agent subtracts the
 * value that each had when a manager reset it, and limits the result to the
 * width of its field. Words are units of 4 bytes, from the LRH to the ICRC. The
 * headings name the attributes that show the counters.
 */
enum vb_fab_counter {
	/* PortCounters (IBA 16.1.3.5) */
	FAB_SYMBOL_ERRORS,
	FAB_LINK_RECOVERIES, /* LinkErrorRecoveryCounter */
	FAB_LINK_DOWNED,
	FAB_RCV_ERRORS,		 /* VCRC, length, version, VL, overrun */
	FAB_RCV_REMOTE_PHYSICAL, /* frames that end in EBP */
	FAB_RCV_SWITCH_RELAY,
	FAB_XMIT_DISCARDS,
	FAB_XMIT_CONSTRAINT, /* P_Key and raw frames, outbound */
	FAB_RCV_CONSTRAINT,  /* the same, inbound */
	FAB_LINK_INTEGRITY,  /* LocalLinkIntegrityErrors */
	FAB_OVERRUNS,	     /* ExcessiveBufferOverrunErrors */
	FAB_QP1_DROPPED,
	FAB_VL15_DROPPED,
	FAB_XMIT_WAIT, /* ticks in which data waited for credits */
	/* PortCountersExtended */
	FAB_XMIT_WORDS,
	FAB_RCV_WORDS,
	FAB_XMIT_PKTS, /* all frames; unicast is what is not multicast */
	FAB_RCV_PKTS,
	FAB_XMIT_MCAST_PKTS,
	FAB_RCV_MCAST_PKTS,
	/* PortRcvErrorDetails: the causes of FAB_RCV_ERRORS and
	 * FAB_RCV_SWITCH_RELAY */
	FAB_RCV_LOCAL_PHYSICAL, /* VCRC, and frames that end early */
	FAB_RCV_MALFORMED,	/* length, version, LNH, VL not operational */
	FAB_RCV_OVERRUN,
	FAB_RCV_DLID_MAPPING, /* no entry in the forwarding table */
	FAB_RCV_VL_MAPPING,   /* SL2VL says VL15 or a VL that is not there */
	FAB_RCV_LOOPING,      /* it would leave where it came in */
	/* PortXmitDiscardDetails: the causes of FAB_XMIT_DISCARDS */
	FAB_XMIT_INACTIVE,
	FAB_XMIT_NEIGHBOR_MTU,
	FAB_XMIT_LIFETIME, /* SwitchLifeTime */
	FAB_XMIT_HOQ,	   /* HOQLife, and stalled VLs */
	/* PortFlowCtlCounters: link packets */
	FAB_XMIT_FLOW_PKTS,
	FAB_RCV_FLOW_PKTS,
	/* congestion (annex A10); PortRcvConCtrl, PortXmitConCtrl */
	FAB_XMIT_FECN, /* frames that this port marked */
	FAB_RCV_FECN,
	FAB_RCV_BECN,
	FAB_XMIT_TIME_CONG, /* ticks in which a lane was congested */
	FAB_COUNTERS
};

/* A tick of FAB_XMIT_WAIT and FAB_XMIT_TIME_CONG is the time of one symbol at
 * 2.5 Gbit/s a lane. */
#define VB_FAB_TICK_NS 4

/* PortVLXmitWaitCounters, SwPortVLCongestion, PortVLXmitTimeCong, and the
 * samples PortXmitDataVL, PortRcvDataVL, PortXmitPktVL and PortRcvPktVL. */
struct vb_fab_vl_counters {
	uint64_t xmit_words, rcv_words, xmit_pkts, rcv_pkts;
	uint64_t xmit_wait, xmit_fecn;
	uint64_t xmit_late; /* discarded for HOQLife or LifeTimeValue */
	uint64_t time_cong; /* ticks in which the lane was congested */
};

/* PortXmitDataSL, PortRcvDataSL, PortSLRcvFECN, PortSLRcvBECN. Subnet
 * management packets (VL15) have no service level and are not counted. */
struct vb_fab_sl_counters {
	uint64_t xmit_words, rcv_words, rcv_fecn, rcv_becn;
};

struct vb_fab_vlarb {
	uint8_t vl;	/* 0..14 */
	uint8_t weight; /* units of 64 bytes; 0: the entry is skipped */
};

/* What CongestionLog shows: of a switch, that a lane became congested; of an
 * adapter, that the index of a flow reached its Trigger_Threshold. */
#define VB_FAB_CC_EVENTS 15 /* the latest are kept, in a ring */
struct vb_fab_cc_event {
	vb_time at;
	/* Of the marked frame; of an adapter: remote LID, own LID. */
	uint16_t slid, dlid;
	uint8_t sl, service; /* service: the upper 3 bits of the opcode */
	uint32_t qpn;	     /* adapter: the queue pair that got BECN */
};
struct vb_fab_cc_log {
	uint32_t count; /* event i stands at i modulo VB_FAB_CC_EVENTS */
	struct vb_fab_cc_event event[VB_FAB_CC_EVENTS];
	uint64_t ports[4]; /* switch: port p, bit p % 64 of word p / 64 */
	uint16_t sls;	   /* adapter: service levels */
};

/* Congestion at a switch port (annex A10): a frame gets FECN when its output
 * queue holds more than @threshold blocks of 64 bytes. */
struct vb_fab_marking {
	uint32_t threshold;  /* 0: never */
	uint16_t rate;	     /* that many frames pass between two marks */
	uint8_t packet_size; /* frames of fewer blocks are not marked */
	bool victim;	     /* mark although the port itself lacks credits */
};

/* Congestion at a source (annex A10): CACongestionSetting and
 * CongestionControlTable of an adapter's port. */
#define VB_FAB_CCT 128
struct vb_fab_cc_sl {
	uint8_t increase, trigger, min; /* CCTI_Increase, Trigger, CCTI_Min */
	uint16_t timer;			/* CCTI_Timer: units of 1.024 us */
};
struct vb_fab_cc {
	uint16_t port_control; /* bit 0: flows are SLs, not queue pairs */
	uint16_t control_map;  /* the SLs that are controlled, as bits */
	struct vb_fab_cc_sl sl[VB_FAB_SLS];
	uint16_t limit;		  /* CCTI_Limit, below VB_FAB_CCT */
	uint16_t cct[VB_FAB_CCT]; /* shift (2 bits), multiplier (14) */
	struct vb_fab_cc_log log;
};

/*
 * A port. Port 0 of a switch is its own adapter: always LinkUp and Active, it
 * has a LID but no link. The external ports of a switch have no LID: they use
 * port 0's.
 */
struct vb_fab_port {
	/* The link. The data plane sets these; mgmt only reads them. */
	uint8_t state; /* enum vb_fab_state */
	uint8_t phys;  /* enum vb_fab_phys */
	uint8_t width_active, speed_active, speed_ext_active;
	bool connected; /* there is a link, plugged in or not */

	/* What the hardware has; set when the node is made. */
	uint8_t width_supported, speed_supported, speed_ext_supported;
	uint8_t mtu_cap; /* IB MTU code: 1 = 256 .. 5 = 4096 bytes */
	uint8_t vl_cap;	 /* VLCap: 1 VL0, 2 VL0-1, 3 VL0-3, 4 VL0-7, 5 VL0-14 */
	uint8_t arb_high_cap, arb_low_cap; /* entries, 0..64 */

	/* What the subnet manager sets and the data plane obeys. */
	uint8_t width_enabled, speed_enabled, speed_ext_enabled;
	uint8_t mtu;	    /* NeighborMTU: the longest frame that may leave */
	uint8_t oper_vls;   /* as vl_cap; 0 in a fresh port, which is VL0 */
	uint8_t high_limit; /* VLHighLimit: units of 4 KiB; 255 no limit */
	uint8_t hoq_life;   /* 4.096 us * 2^n; above 19: for ever */
	uint8_t vl_stall;   /* HOQ drops in a row that stall a VL; 0: never */
	bool pkey_in, pkey_out; /* PartitionEnforcement (switch, external) */
	bool raw_in, raw_out;	/* FilterRaw: discard raw frames */
	struct vb_fab_vlarb arb_high[VB_FAB_VLARB_MAX];
	struct vb_fab_vlarb arb_low[VB_FAB_VLARB_MAX];
	uint16_t *pkey; /* P_KeyTable: @pkeys entries, 0 invalid */
	uint16_t pkeys;
	/* Adapters and port 0: the VL of each SL on the way out. The external
	 * ports of a switch use node->sl2vl. */
	uint8_t sl2vl[VB_FAB_SLS];

	/* What only management uses. */
	uint64_t guid;	 /* the first entry of GUIDInfo */
	uint64_t *guids; /* GUIDInfo: @guid_cap entries; [0] is @guid */
	uint8_t guid_cap;
	uint64_t gid_prefix, mkey;
	uint16_t mkey_lease;	/* seconds; 0: for ever */
	vb_time mkey_lease_end; /* VB_NEVER: the timer does not run */
	uint8_t mkey_protect;	/* M_KeyProtectBits */
	uint16_t lid, sm_lid;
	uint8_t lmc, sm_sl;
	uint32_t cap_mask;
	uint16_t cap_mask2;
	uint8_t down_default; /* LinkDownDefaultState: 1 sleep, 2 polling */
	uint8_t init_type, init_reply;
	uint8_t subnet_timeout, resp_time;	  /* 4.096 us * 2^n */
	uint8_t local_phy_errors, overrun_errors; /* thresholds */
	bool client_reregister;
	uint16_t max_credit_hint;
	uint32_t round_trip; /* LinkRoundTripLatency: 24 bits, 0xffffff none */
	/* mgmt counts these at the node's own port (mgmt/sma.h). */
	uint16_t mkey_violations, pkey_violations, qkey_violations;

	/* Congestion control: a switch marks, an adapter slows down. */
	struct vb_fab_marking marking;
	struct vb_fab_cc *cc; /* NULL in switches */

	uint64_t count[FAB_COUNTERS];
	struct vb_fab_vl_counters vl[VB_FAB_VLS];
	struct vb_fab_sl_counters sl[VB_FAB_SLS];

	struct vb_fab_end *end; /* fabric/net.c's; NULL: no link, or port 0 */
};

/* One entry of a random forwarding table: 2^lmc LIDs from @lid. */
struct vb_fab_random {
	uint16_t lid;
	uint8_t lmc, port;
	bool valid;
};

/* The ports of one multicast LID: port p is bit p % 64 of word p / 64. Position
 * q of a MulticastForwardingTable block holds ports 16q .. 16q+15. */
struct vb_fab_mcast {
	uint64_t ports[4];
};

/* SwitchInfo and the tables of a switch; all 0 and NULL in other nodes. */
struct vb_fab_switch {
	/* What it has. */
	uint16_t linear_cap, random_cap, mcast_cap; /* entries */
	uint16_t pkey_cap; /* PartitionEnforcementCap: entries of a port */
	bool enhanced_port0;
	bool store_and_forward; /* false: cut-through */
	uint32_t latency_ns;	/* from a frame's head in to its head out */

	/* What the subnet manager sets. */
	uint16_t linear_top;  /* LIDs above it are discarded */
	uint16_t mcast_top;   /* 0: up to mcast_cap */
	uint8_t default_port; /* random table: for LIDs without an entry */
	/* For multicast LIDs without an entry; VB_FAB_NO_PORT: discard. */
	uint8_t default_mcast_primary, default_mcast_other;
	uint8_t life; /* LifeTimeValue: 4.096 us * 2^n; above 19: for ever */
	uint16_t lids_per_port;
	/* PortStateChange: the data plane sets it, a Set with 1 clears it. */
	bool state_change;

	uint8_t *linear;	      /* [linear_cap]: LID to port */
	struct vb_fab_random *random; /* [random_cap]; used if !linear_cap */
	struct vb_fab_mcast *mcast;   /* [mcast_cap], from MLID 0xc000 */
	uint8_t *sl2vl;		      /* vb_fab_sl2vl() */
	struct vb_fab_cc_log cc_log;
	/* fabric/adaptive.c's; NULL: the linear table decides alone. */
	struct vb_fab_adaptive *adaptive;
};

struct vb_fab_node {
	uint8_t kind;  /* enum vb_fab_kind */
	uint8_t ports; /* external ports: 1..ports; port 0 is a switch's only */
	uint64_t guid, sys_guid;
	uint32_t vendor_id, device_id, revision;
	uint16_t partition_cap; /* entries of a P_Key table */
	char desc[VB_FAB_DESC_BYTES];
	struct vb_fab_port *port; /* [0..ports]; [0] is unused in adapters */
	struct vb_fab_switch sw;
	uint32_t index; /* its place in the network, set by vb_fab_add() */
	void *mgmt;	/* the agents' own */
};

/* What the caller of vb_fab_node_create() wants; 0 stands for the default in
 * brackets. */
struct vb_fab_node_spec {
	uint8_t kind, ports;
	uint64_t guid;	     /* needed; the node's. Port p of an adapter: +p */
	const char *desc;    /* [""] cut at 64 bytes */
	uint16_t linear_cap; /* [0xc000, unless random_cap is given] */
	uint16_t random_cap; /* [0: the switch has a linear table] */
	uint16_t mcast_cap;  /* [1024] */
	uint16_t pkeys;	     /* [32] entries of each table */
	uint8_t vl_cap;	     /* [4: VL0-7] */
	uint8_t mtu_cap;     /* [5: 4096] */
	uint8_t width, speed, speed_ext; /* supported [1x|4x, SDR..QDR, none] */
	bool store_and_forward;
	uint32_t latency_ns; /* [100] */
};

/*
 * Make a node, which the caller owns. Its ports are Down and Polling (a
 * switch's port 0: LinkUp, Active) and its tables are those before a subnet
 * manager has set any: no LIDs, linear entries VB_FAB_NO_PORT, P_Key 0xffff at
 * index 0, SL i on VL i modulo the number of VLs, every VL in the low
 * arbitration table with weight 4. NULL: no memory, or no ports, or more than
 * VB_FAB_PORTS_MAX, or another value out of its range.
 */
struct vb_fab_node *vb_fab_node_create(const struct vb_fab_node_spec *spec);
void vb_fab_node_destroy(struct vb_fab_node *node);

/* The 16 VLs of SLToVLMappingTable for frames from port @in to port @out of a
 * switch, both in 0..ports. */
static inline uint8_t *vb_fab_sl2vl(const struct vb_fab_node *node, unsigned in,
				    unsigned out)
{
	return node->sw.sl2vl +
	       ((size_t)in * (node->ports + 1u) + out) * VB_FAB_SLS;
}

/* How many data VLs a VLCap or OperVLs code means: 1, 2, 4, 8 or 15; codes out
 * of range mean 1. */
unsigned vb_fab_vls(uint8_t code);

/* The bytes of payload of an MTU code, 256..4096; 0: no such code. */
unsigned vb_fab_mtu_bytes(uint8_t code);

/* The nanoseconds of HOQLife and LifeTimeValue; VB_NEVER above 19. */
vb_time vb_fab_life_ns(uint8_t code);

/* Widths and speeds of links, each with its name in topologies. A port that has
 * one has those of @with, too, and in the table of speeds all rows before. */
struct vb_fab_width_row {
	const char *name;
	uint8_t bit, with, lanes;
};
struct vb_fab_speed_row {
	const char *name;
	uint8_t speed, ext; /* bits of LinkSpeed, of LinkSpeedExt */
	unsigned tenths;    /* of Gbit/s, a lane, coding included */
	uint64_t rate;	    /* bytes of data a second, a lane */
};
#define VB_FAB_WIDTHS 5
#define VB_FAB_SPEEDS 8
extern const struct vb_fab_width_row vb_fab_widths[VB_FAB_WIDTHS];
extern const struct vb_fab_speed_row vb_fab_speeds[VB_FAB_SPEEDS];

/* The nominal Gbit/s of a port's link, coding included: 4X EDR is 100. 0: the
 * link is down. */
unsigned vb_fab_gbits(const struct vb_fab_port *port);

/* Data bytes a second that the active width and speed carry, and 0 for a link
 * that is down. */
uint64_t vb_fab_bytes_per_sec(const struct vb_fab_port *port);

/* Do two P_Keys match (IBA 10.9.3)? */
static inline bool vb_fab_pkeys_match(uint16_t a, uint16_t b)
{
	return ((a ^ b) & 0x7fff) == 0 && (a & 0x7fff) && ((a | b) & 0x8000);
}

/* The index of the port's first P_Key that matches; -1: there is none. */
int vb_fab_find_pkey(const struct vb_fab_port *port, uint16_t pkey);

/* Is @dlid one of the LIDs of @port, which is an adapter's port or a switch's
 * port 0? LID 0 is nobody's. A basic port 0 has one LID, whatever its LMC. */
bool vb_fab_is_own_lid(const struct vb_fab_node *node, uint8_t port,
		       uint16_t dlid);

/* Add to a counter. */
static inline void vb_fab_count(struct vb_fab_port *port,
				enum vb_fab_counter which, uint64_t n)
{
	port->count[which] += n;
}

#endif
