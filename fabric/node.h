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
#define VB_FAB_VLARB_MAX  64 /* entries of one arbitration table */
#define VB_FAB_DESC_BYTES 64 /* NodeDescription; need not end in NUL */
/* value of an entry of the linear forwarding table: discard the frame */
#define VB_FAB_NO_PORT	 0xff
#define VB_FAB_LIDS	 0xc000u /* unicast LIDs are 1..0xbfff */
#define VB_FAB_MLIDS	 0x3fffu /* multicast LIDs are 0xc000..0xfffe */
#define VB_FAB_PORTS_MAX 254

/* The codes of NodeInfo.NodeType. */
enum vb_fab_kind { FAB_CA = 1, FAB_SWITCH = 2, FAB_ROUTER = 3 };

/* The codes of PortInfo.PortState. In a Set, 0 means that the state stays. */
enum vb_fab_state {
	FAB_DOWN = 1,
	FAB_INIT = 2,
	FAB_ARMED = 3,
	FAB_ACTIVE = 4,
};

/* The codes of PortInfo.PortPhysicalState. */
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
	/* Counters of the attribute PortCounters (IBA 16.1.3.5). */
	FAB_SYMBOL_ERRORS,
	FAB_LINK_RECOVERIES, /* the counter LinkErrorRecoveryCounter */
	FAB_LINK_DOWNED,
	/* frames with a wrong VCRC, length, version or VL, and frames that
	 * overran a buffer */
	FAB_RCV_ERRORS,
	FAB_RCV_REMOTE_PHYSICAL, /* received frames that end in EBP */
	FAB_RCV_SWITCH_RELAY,
	FAB_XMIT_DISCARDS,
	/* frames discarded on the way out, by P_Key or as raw frames */
	FAB_XMIT_CONSTRAINT,
	/* frames discarded on the way in, by P_Key or as raw frames */
	FAB_RCV_CONSTRAINT,
	FAB_LINK_INTEGRITY, /* the counter LocalLinkIntegrityErrors */
	FAB_OVERRUNS,	    /* the counter ExcessiveBufferOverrunErrors */
	FAB_QP1_DROPPED,
	FAB_VL15_DROPPED,
	/* ticks (VB_FAB_TICK_NS) in which frames waited for credits */
	FAB_XMIT_WAIT,
	/* Counters of the attribute PortCountersExtended. */
	FAB_XMIT_WORDS,
	FAB_RCV_WORDS,
	/* frames sent; unicast frames are those that FAB_XMIT_MCAST_PKTS does
	 * not count */
	FAB_XMIT_PKTS,
	FAB_RCV_PKTS,
	FAB_XMIT_MCAST_PKTS,
	FAB_RCV_MCAST_PKTS,
	/* Counters of the attribute PortRcvErrorDetails: the causes of
	 * FAB_RCV_ERRORS and FAB_RCV_SWITCH_RELAY. */

	/* frames with a wrong VCRC, and frames that end early */
	FAB_RCV_LOCAL_PHYSICAL,
	/* frames with a wrong length, version or LNH, or on a VL that is not
	 * operational */
	FAB_RCV_MALFORMED,
	FAB_RCV_OVERRUN,
	/* frames whose DLID has no entry in the forwarding table */
	FAB_RCV_DLID_MAPPING,
	/* frames that SL2VL maps to VL15 or to a VL that the port lacks */
	FAB_RCV_VL_MAPPING,
	/* frames whose output port is the port where they came in */
	FAB_RCV_LOOPING,
	/* Counters of the attribute PortXmitDiscardDetails: the causes of
	 * FAB_XMIT_DISCARDS. */
	FAB_XMIT_INACTIVE,
	FAB_XMIT_NEIGHBOR_MTU,
	/* frames older than the switch's lifetime limit (SwitchLifeTime) */
	FAB_XMIT_LIFETIME,
	/* frames discarded for the head-of-queue limit (HOQLife) or on a
	 * stalled VL */
	FAB_XMIT_HOQ,
	/* Counters of the attribute PortFlowCtlCounters: link packets. */
	FAB_XMIT_FLOW_PKTS,
	FAB_RCV_FLOW_PKTS,
	/* Counters of congestion control (IBA annex A10): PortRcvConCtrl,
	 * PortXmitConCtrl. */
	FAB_XMIT_FECN,	    /* frames that this port marked with FECN */
	FAB_RCV_FECN,	    /* frames with FECN that came to an adapter */
	FAB_RCV_BECN,	    /* frames with BECN that came to an adapter */
	FAB_XMIT_TIME_CONG, /* ticks in which a lane was congested */
	FAB_COUNTERS
};

/* A tick of FAB_XMIT_WAIT and FAB_XMIT_TIME_CONG is the time of one symbol at
 * 2.5 Gbit/s a lane. */
#define VB_FAB_TICK_NS 4

/* The counters of one VL: PortVLXmitWaitCounters, SwPortVLCongestion,
 * PortVLXmitTimeCong, and the samples PortXmitDataVL, PortRcvDataVL,
 * PortXmitPktVL and PortRcvPktVL. */
struct vb_fab_vl_counters {
	uint64_t xmit_words, rcv_words, xmit_pkts, rcv_pkts;
	uint64_t xmit_wait, xmit_fecn;
	/* frames discarded because HOQLife or LifeTimeValue had passed */
	uint64_t xmit_late;
	uint64_t time_cong; /* ticks in which the lane was congested */
};

/* PortXmitDataSL, PortRcvDataSL, PortSLRcvFECN, PortSLRcvBECN. Subnet
 * management packets (VL15) have no service level and are not counted. */
struct vb_fab_sl_counters {
	uint64_t xmit_words, rcv_words, rcv_fecn, rcv_becn;
};

struct vb_fab_vlarb {
	uint8_t vl;	/* virtual lane, 0..14 */
	uint8_t weight; /* units of 64 bytes; 0: the entry is skipped */
};

/* What CongestionLog shows: of a switch, that a lane became congested; of an
 * adapter, that the index of a flow reached its Trigger_Threshold. */
/* number of latest events that a log keeps, in a ring */
#define VB_FAB_CC_EVENTS 15
struct vb_fab_cc_event {
	vb_time at;
	/* LIDs of the marked frame; in the log of an adapter: remote LID, own
	 * LID */
	uint16_t slid, dlid;
	/* @service: the upper 3 bits of the BTH's opcode */
	uint8_t sl, service;
	/* in the log of an adapter: the queue pair that got the BECN */
	uint32_t qpn;
};
struct vb_fab_cc_log {
	/* number of events so far; event i is at index i modulo
	 * VB_FAB_CC_EVENTS */
	uint32_t count;
	struct vb_fab_cc_event event[VB_FAB_CC_EVENTS];
	/* of a switch: mask of ports with events; port p is bit p % 64 of word
	 * p / 64 */
	uint64_t ports[4];
	/* of an adapter: mask of the service levels with events */
	uint16_t sls;
};

/* Congestion at a switch port (annex A10): a frame gets FECN when its output
 * queue holds more than @threshold blocks of 64 bytes. */
struct vb_fab_marking {
	/* blocks of 64 bytes in the queue above which frames are marked; 0:
	 * never */
	uint32_t threshold;
	uint16_t rate; /* frames that pass unmarked between two marked ones */
	/* frames of fewer blocks (64 bytes each) are not marked */
	uint8_t packet_size;
	bool victim; /* mark frames even while this port itself lacks credits */
};

/* Congestion at a source (annex A10): CACongestionSetting and
 * CongestionControlTable of an adapter's port. */
#define VB_FAB_CCT 128
struct vb_fab_cc_sl {
	/* how much a notification raises the index (CCTI_Increase), the index
	 * at which an event is logged (Trigger), and the lowest index
	 * (CCTI_Min) */
	uint8_t increase, trigger, min;
	/* how often the index falls by one (CCTI_Timer), in units of 1.024
	 * us */
	uint16_t timer;
};
struct vb_fab_cc {
	/* bit 0: a flow is a service level (SL), not a queue pair */
	uint16_t port_control;
	/* mask of the service levels (SLs) under congestion control */
	uint16_t control_map;
	struct vb_fab_cc_sl sl[VB_FAB_SLS];
	uint16_t limit; /* the highest index (CCTI_Limit), below VB_FAB_CCT */
	/* congestion control table: each entry a shift (2 bits) and a
	 * multiplier (14 bits) */
	uint16_t cct[VB_FAB_CCT];
	struct vb_fab_cc_log log;
};

/*
 * A port. Port 0 of a switch is its own adapter: always LinkUp and Active, it
 * has a LID but no link. The external ports of a switch have no LID: they use
 * port 0's.
 */
struct vb_fab_port {
	/* The link's state. The data plane writes these fields; mgmt only reads
	 * them. */
	uint8_t state; /* the logical state, an enum vb_fab_state */
	uint8_t phys;  /* the physical state, an enum vb_fab_phys */
	uint8_t width_active, speed_active, speed_ext_active;
	bool connected; /* the port has a link, plugged in or not */

	/* What the hardware supports; vb_fab_node_create() sets these
	 * fields. */
	uint8_t width_supported, speed_supported, speed_ext_supported;
	/* code of the largest MTU: 1 = 256 .. 5 = 4096 bytes */
	uint8_t mtu_cap;
	/* VLCap, a code: 1 VL0, 2 VL0-1, 3 VL0-3, 4 VL0-7, 5 VL0-14 */
	uint8_t vl_cap;
	/* entries of the two VL arbitration tables, 0..64 */
	uint8_t arb_high_cap, arb_low_cap;

	/* The settings that the subnet manager writes and the data plane
	 * obeys. */
	uint8_t width_enabled, speed_enabled, speed_ext_enabled;
	uint8_t mtu; /* NeighborMTU: the longest frame that may leave */
	/* operational VLs, a code like @vl_cap; 0 in a port that was never set,
	 * which means VL0 */
	uint8_t oper_vls;
	/* bytes that high-priority VLs may send in a row: units of 4 KiB; 255:
	 * no limit */
	uint8_t high_limit;
	/* longest wait at the head of a queue (HOQLife): 4.096 us * 2^n; above
	 * 19: no limit */
	uint8_t hoq_life;
	/* items in a row discarded for HOQLife after which the VL stalls; 0: it
	 * never stalls */
	uint8_t vl_stall;
	/* PartitionEnforcement: an external port of a switch checks P_Keys */
	bool pkey_in, pkey_out;
	/* FilterRawInbound, FilterRawOutbound: the port discards raw frames */
	bool raw_in, raw_out;
	struct vb_fab_vlarb arb_high[VB_FAB_VLARB_MAX];
	struct vb_fab_vlarb arb_low[VB_FAB_VLARB_MAX];
	/* P_KeyTable, @pkeys entries; an entry of 0 is invalid */
	uint16_t *pkey;
	uint16_t pkeys;
	/* Adapters and port 0: the VL of each SL on the way out. The external
	 * ports of a switch use node->sl2vl. */
	uint8_t sl2vl[VB_FAB_SLS];

	/* The fields below are mainly for management. */

	/* the port's GUID, which is the first entry of GUIDInfo */
	uint64_t guid;
	uint64_t *guids; /* GUIDInfo: @guid_cap entries; [0] is @guid */
	uint8_t guid_cap;
	uint64_t gid_prefix, mkey;
	/* how long a missed M_Key check may last, in seconds; 0: for ever */
	uint16_t mkey_lease;
	/* the time when the M_Key's lease ends; VB_NEVER: its timer does not
	 * run */
	vb_time mkey_lease_end;
	uint8_t mkey_protect; /* the field M_KeyProtectBits */
	uint16_t lid, sm_lid;
	uint8_t lmc, sm_sl;
	uint32_t cap_mask;
	uint16_t cap_mask2;
	uint8_t down_default; /* LinkDownDefaultState: 1 Sleep, 2 Polling */
	uint8_t init_type, init_reply;
	/* SubnetTimeOut and RespTimeValue: 4.096 us * 2^n */
	uint8_t subnet_timeout, resp_time;
	/* the error thresholds of traps 129 and 130 (fabric/threshold.h) */
	uint8_t local_phy_errors, overrun_errors;
	bool client_reregister;
	uint16_t max_credit_hint;
	uint32_t round_trip; /* LinkRoundTripLatency: 24 bits, 0xffffff none */
	/* Violations of keys; mgmt counts them at the node's own port
	 * (mgmt/sma.h). */
	uint16_t mkey_violations, pkey_violations, qkey_violations;

	/* congestion control of a switch's port: which frames it marks with
	 * FECN */
	struct vb_fab_marking marking;
	/* congestion control of an adapter's port; NULL in switches */
	struct vb_fab_cc *cc;

	uint64_t count[FAB_COUNTERS];
	struct vb_fab_vl_counters vl[VB_FAB_VLS];
	struct vb_fab_sl_counters sl[VB_FAB_SLS];

	/* the port in the data plane (fabric/net.c); NULL: no link, or port
	 * 0 */
	struct vb_fab_end *end;
};

/* What became of a router's question about a path. */
enum vb_fab_answer {
	PATH_KNOWN,
	PATH_NONE, /* the subnet administrator says that there is none */
	PATH_UNANSWERED, /* nobody could be asked, or no answer came */
};

/* A path of a router into the next subnet, as its subnet administrator knows
 * it. */
struct vb_fab_path {
	uint16_t dlid; /* a unicast LID: the destination's, or a router's */
	uint8_t sl;    /* service level of the path, 4 bits */
	uint8_t mtu;   /* the code of the path's MTU, 1..5 */
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
	/* The capacities of the switch. */

	/* sizes of the forwarding tables, in entries; 0: the switch does not
	 * have this table */
	uint16_t linear_cap, random_cap, mcast_cap;
	/* PartitionEnforcementCap: P_Key entries of an external port */
	uint16_t pkey_cap;
	bool enhanced_port0;
	/* forward a frame only when it has come wholly; false: cut-through */
	bool store_and_forward;
	/* time between a frame's first byte in and its first byte out */
	uint32_t latency_ns;

	/* The settings that the subnet manager writes. */

	/* highest LID of the linear table; frames to LIDs above it are
	 * discarded */
	uint16_t linear_top;
	/* highest multicast LID that has an entry; 0: all @mcast_cap have
	 * one */
	uint16_t mcast_top;
	/* output port for LIDs that the random table lacks */
	uint8_t default_port;
	/* Output ports for multicast LIDs that have no entry; VB_FAB_NO_PORT:
	 * discard the frame. */
	uint8_t default_mcast_primary, default_mcast_other;
	/* longest stay of a frame in the switch: 4.096 us * 2^n; above 19: no
	 * limit */
	uint8_t life;
	uint16_t lids_per_port;
	/* PortStateChange: the data plane sets it, a Set with 1 clears it. */
	bool state_change;

	/* linear forwarding table: @linear_cap output ports, one for each
	 * LID */
	uint8_t *linear;
	/* random forwarding table: @random_cap entries, used if @linear_cap is
	 * 0 */
	struct vb_fab_random *random;
	/* multicast forwarding table: @mcast_cap entries, the first for MLID
	 * 0xc000 */
	struct vb_fab_mcast *mcast;
	/* SLToVLMappingTable of all pairs of ports: see vb_fab_sl2vl() */
	uint8_t *sl2vl;
	struct vb_fab_cc_log cc_log;
	/* state of adaptive routing (fabric/adaptive.c); NULL: the linear table
	 * decides alone */
	struct vb_fab_adaptive *adaptive;
};

struct vb_fab_node {
	uint8_t kind; /* the node's type, an enum vb_fab_kind */
	/* number of external ports, which are 1..ports; only a switch has a
	 * port 0 */
	uint8_t ports;
	uint64_t guid, sys_guid;
	uint32_t vendor_id, device_id, revision;
	uint16_t partition_cap; /* entries of the P_Key table of each port */
	char desc[VB_FAB_DESC_BYTES];
	/* the ports, @ports + 1 of them; an adapter does not use [0] */
	struct vb_fab_port *port;
	struct vb_fab_switch sw;
	/* what only a router has (fabric/router.h); NULL in other nodes */
	struct vb_fab_router *router;
	/* the node's index in the network, set by vb_fab_add() */
	uint32_t index;
	void *mgmt; /* state of the node's management agents (mgmt/nodes.c) */
};

/* Properties of a node that vb_fab_node_create() is to make. A field of 0 means
 * the default, which stands in brackets. */
struct vb_fab_node_spec {
	uint8_t kind, ports;
	/* NodeGUID, which has no default; port p of an adapter or router gets
	 * the GUID + p */
	uint64_t guid;
	const char *desc; /* NodeDescription, cut at 64 bytes [empty] */
	/* entries of the linear table [0xc000; none if @random_cap is given] */
	uint16_t linear_cap;
	/* entries of the random table [0: the switch has a linear table] */
	uint16_t random_cap;
	uint16_t mcast_cap; /* entries of the multicast table [1024] */
	uint16_t pkeys;	    /* entries of the P_Key table of each port [32] */
	uint8_t vl_cap;	 /* VLCap, the code of the number of VLs [4: VL0-7] */
	uint8_t mtu_cap; /* code of the largest MTU [5: 4096 bytes] */
	/* supported link widths and speeds [1x and 4x; SDR to QDR; no extended
	 * speed] */
	uint8_t width, speed, speed_ext;
	bool store_and_forward;
	/* latency of a switch or router in nanoseconds [100] */
	uint32_t latency_ns;
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

/* Returns the 16 VLs of SLToVLMappingTable for frames from port @in to port
 * @out of a switch, both in 0..ports. */
static inline uint8_t *vb_fab_sl2vl(const struct vb_fab_node *node, unsigned in,
				    unsigned out)
{
	return node->sw.sl2vl +
	       ((size_t)in * (node->ports + 1u) + out) * VB_FAB_SLS;
}

/* Returns how many data VLs a VLCap or OperVLs code means: 1, 2, 4, 8 or 15;
 * codes out of range mean 1. */
unsigned vb_fab_vls(uint8_t code);

/* Returns the bytes of payload that an MTU code means, 256..4096; 0: no such
 * code. */
unsigned vb_fab_mtu_bytes(uint8_t code);

/* Returns the nanoseconds that a code of HOQLife or LifeTimeValue means;
 * VB_NEVER above 19. */
vb_time vb_fab_life_ns(uint8_t code);

/* Widths and speeds of links, each with its name in topologies. A port that
 * supports a width supports those in @with, too; a port that supports a speed
 * supports the speeds of all rows before it. */
struct vb_fab_width_row {
	const char *name;
	uint8_t bit, with, lanes;
};
struct vb_fab_speed_row {
	const char *name;
	/* the speed's bit in LinkSpeed, or in LinkSpeedExt; else 0 */
	uint8_t speed, ext;
	/* rate of a lane in tenths of a Gbit/s, coding included */
	unsigned tenths;
	uint64_t rate; /* bytes of data that a lane carries in a second */
};
#define VB_FAB_WIDTHS 5
#define VB_FAB_SPEEDS 8
extern const struct vb_fab_width_row vb_fab_widths[VB_FAB_WIDTHS];
extern const struct vb_fab_speed_row vb_fab_speeds[VB_FAB_SPEEDS];

/* Returns the nominal rate of a port's link in Gbit/s, coding included: 100 for
 * 4X EDR. 0: the link is down. */
unsigned vb_fab_gbits(const struct vb_fab_port *port);

/* Data bytes a second that the active width and speed carry, and 0 for a link
 * that is down. */
uint64_t vb_fab_bytes_per_sec(const struct vb_fab_port *port);

/* Do two P_Keys match (IBA 10.9.3)? */
static inline bool vb_fab_pkeys_match(uint16_t a, uint16_t b)
{
	return ((a ^ b) & 0x7fff) == 0 && (a & 0x7fff) && ((a | b) & 0x8000);
}

/* Returns the index of the port's first P_Key that matches @pkey; -1: no P_Key
 * of the port does. */
int vb_fab_find_pkey(const struct vb_fab_port *port, uint16_t pkey);

/* Is @dlid one of the LIDs of @port, which is an adapter's port or a switch's
 * port 0? No port has LID 0. A basic port 0 has one LID, whatever its LMC. */
bool vb_fab_is_own_lid(const struct vb_fab_node *node, uint8_t port,
		       uint16_t dlid);

/* Count a violation of a key; the counter stays at its largest value. */
static inline void vb_fab_count_violation(uint16_t *violations)
{
	if (*violations < UINT16_MAX)
		++*violations;
}

/* Add @n to the counter @which of @port. */
static inline void vb_fab_count(struct vb_fab_port *port,
				enum vb_fab_counter which, uint64_t n)
{
	port->count[which] += n;
}

#endif
