#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Congestion control and counters of an emulated InfiniBand subnet under Debian's
# opensm, ibccquery, ibccconfig and perfquery: what they set is what the fabric
# does. Adaptive routing, too. tests/programs/fabric_cc.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
# shellcheck source=tests/programs/fabric_lib.sh
. "$here/fabric_lib.sh"
tests_begin "$0" "$@"

topology=/usr/share/doc/ibsim-utils/net-examples/net.2sw2path4hca
fabric_begin opensm ibccquery ibccconfig perfquery
name=cc$$
log=$work/osm.log
ctl() { "$verbena" fabric ctl --name "$name" "$@"; }

# The manager of congestion control in opensm: what it sets is looked at below.
# opensm gives Hca1 the LID 1, Switch1 2, Switch2 3, Hca3 5, Hca4 6.
cache=$(mktemp -d -p "$work")
cat >"$cache/conf" <<-END
	force_log_flush TRUE
	congestion_control TRUE
	cc_sw_cong_setting_control_map 0x1f
	cc_sw_cong_setting_victim_mask 0x3e
	cc_sw_cong_setting_threshold 0xf
	cc_sw_cong_setting_packet_size 1
	cc_sw_cong_setting_marking_rate 0x0
	cc_ca_cong_setting_control_map 0x3
	cc_ca_cong_setting_ccti_timer 0 150
	cc_ca_cong_setting_ccti_increase 0 1
	cc_ca_cong_setting_trigger_threshold 0 1
	cc_cct 0:0,0:1,0:2,0:3,0:4
END
fabric_up "$topology"
OSM_CACHE_DIR=$cache OSM_TMP_DIR=$cache "$verbena" run \
	--device "ib:$name/Hca1" -- opensm -F "$cache/conf" -f "$log" -D 0x43 \
	>"$log.out" 2>&1 &
opensm=$!
check "the subnet comes up" subnet_up "$log" || {
	kill "$fabric"
	summary
	exit
}

# --- what opensm has set ---
opensm_has_set() {
	r Hca3 ibccquery CT 6 | grep -q 'CCTI_Limit:\.*4' &&
		r Hca3 ibccquery SS 3 | grep -q 'Threshold:\.*0x0f'
}
check "opensm sets congestion control" within 10 opensm_has_set
check "opensm has no complaint about it" sh -c "! grep -E 'ERR C[0-9A-F]' '$log'"
says "a switch has opensm's masks" 'Victim_Mask:\.*0{62}3e' Hca3 ibccquery SS 2
says "an adapter has opensm's timer" 'CCTI_Timer:\.*150' Hca3 ibccquery CS 6
says "its table, too" 'CCT_Multiplier:\.*4' Hca3 ibccquery CT 6

# --- each operation of ibccquery, at a switch and an adapter ---
while read -r op lid pattern; do
	says "ibccquery $op $lid" "$pattern" Hca3 ibccquery "$op" "$lid" </dev/null
done <<-'END'
	CP 2 ClassVersion:\.*2
	CI 2 CongestionInfo:\.*0x000e
	CK 2 CC_KeyProtectBit:\.*0
	CL 2 LogType:\.*1
	SP 2 Port:\.*8
	TI 2 Timestamp:\.*[1-9]
	CP 6 CapabilityMask:\.*0x0001
	CI 6 ControlTableCap:\.*2
	CL 6 LogType:\.*2
	TI 6 Timestamp:\.*[1-9]
END
refused() { ! r "$@" 2>&1; } # and at once, or it takes the 60 s of r
check "a switch has no table for sources" refused Hca3 ibccquery CT 2
check "an adapter marks nothing" refused Hca3 ibccquery SS 6

# --- congestion: a link of 2 Mbit/s, and answers of many segments over it ---
check "a link becomes slow" ctl tune Switch1 2 rate=2M
fecn() { r Hca2 perfquery --rcvcc 5 1 | sed -n 's/^PortPktRcvFECN:\.*//p'; }
becn() { r Hca2 perfquery --rcvcc 1 1 | sed -n 's/^PortPktRcvBECN:\.*//p'; }
congested() {
	r Hca3 saquery -p >/dev/null 2>&1 &
	r Hca3 saquery -p >/dev/null 2>&1 &
	r Hca3 saquery -p >/dev/null 2>&1
	[ "$(fecn)" -gt 0 ] && [ "$(becn)" -gt 0 ]
}
check "frames are marked, their source is told" within 20 congested
says "per service level" 'PortSLRcvFECN0:\.*[1-9]' Hca2 perfquery --slrcvfecn 5 1
says "at the source, too" 'PortSLRcvBECN0:\.*[1-9]' Hca2 perfquery --slrcvbecn 1 1
says "the switch's lane was congested" 'PortVLXmitTimeCong0:\.*[1-9]' \
	Hca2 perfquery --vlxmittimecc 2 2
says "so was its port" 'PortXmitTimeCong:\.*[1-9]' Hca2 perfquery --xmitcc 2 2
r Hca2 ibccquery CL 2 >"$work/log" 2>&1
for pattern in 'LogEventsCounter:\.*[1-9]' 'PortMap:\.*0{63}4' 'DLID:\.*5'; do
	check "the switch's log has $pattern" grep -Eq "$pattern" "$work/log"
done
says "the source's log has the flow" 'Remote_LID_CN_Entry:\.*5' \
	Hca2 ibccquery CL 1
check "the link is as before" ctl tune Switch1 2 rate=0
counts "answers still come whole" 36 'PathRecord dump' Hca3 saquery -p

# --- ibccconfig ---
check "ibccconfig SS" r Hca3 ibccconfig SS 2 0x14 0 0 0x3 8 0 0:0 5
says "only what its map names changes" 'Victim_Mask:\.*0{62}3e' \
	Hca3 ibccquery SS 2
says "a threshold and a rate" 'Marking_Rate:\.*5' Hca3 ibccquery SS 2
check "ibccconfig SP" r Hca3 ibccconfig SP 2 3 1 0 5 2 7
says "the port has it" 'Cong_Parm_Marking_Rate:\.*7' Hca3 ibccquery SP 2 3
check "credit starvation is refused" refused Hca3 ibccconfig SP 2 3 1 1 5 2 7
check "ibccconfig CS" r Hca3 ibccconfig CS 6 1 0x4 200 2 0 0
says "the other service levels stay" 'CCTI_Timer:\.*150' Hca3 ibccquery CS 6
says "the named one changes" 'CCTI_Timer:\.*200' Hca3 ibccquery CS 6
check "ibccconfig CT" r Hca3 ibccconfig CT 6 2 0 0:0 1:1 2:7
says "the adapter has the table" 'CCT_Multiplier:\.*7' Hca3 ibccquery CT 6
check "ibccconfig CK" r Hca3 ibccconfig CK 6 0x1234 1 0 0
says "the key is not shown" 'CC_Key:\.*0x0{16}' Hca3 ibccquery CK 6
check "nobody reads without it" refused Hca3 ibccquery -t 200 CS 6
says "that was counted" 'CC_KeyViolations:\.*[1-9]' \
	Hca3 ibccquery -c 0x1234 CK 6
says "with it all is as before" 'CCTI_Timer:\.*200' \
	Hca3 ibccquery -c 0x1234 CS 6
check "the key is taken away" r Hca3 ibccconfig -c 0x1234 CK 6 0 0 0 0

# --- perfquery's other options: a value, or status 0x0c ---
for option in --xmtsl --rcvsl --xmtdisc --rcverr --smplctl --flowctlcounters \
	--vlxmitcounters --swportvlcong --rcvcc --slrcvfecn --slrcvbecn \
	--xmitcc --vlxmittimecc; do
	says "perfquery $option" 'PortSelect:\.*1$' Hca3 perfquery $option 2 1
done
for option in --extended_speeds --oprcvcounters --vloppackets --vlopdata \
	--vlxmitflowctlerrors; do
	check "perfquery $option is refused" refused Hca3 perfquery $option 2 1
done
check "an adapter counts no congestion of lanes" \
	refused Hca3 perfquery --swportvlcong 6 1
says "perfquery --xmtsl counts" 'XmtDataSL0:\.*[1-9]' Hca3 perfquery --xmtsl 6 1
says "its counters can be reset" 'XmtDataSL0:\.*[0-9]{1,3}$' Hca3 sh -c \
	'perfquery -R --xmtsl 6 1 && perfquery --xmtsl 6 1'
says "perfquery -x has errors of 64 bits" 'QP1Dropped:\.*0' \
	Hca3 perfquery -x 2 1
says "the mask of optional counters" 'OptionMask:\.*0x01ff0000008cfffc' \
	Hca3 perfquery --smplctl 2 1

# --- counters of lanes, as the fabric shows them ---
"$verbena" fabric show --name "$name" --json >"$work/json"
python3 - "$work/json" <<-'END' && ok "fabric: show --json has lanes" ||
	import json, sys
	nodes = json.load(open(sys.argv[1]))['nodes']
	ports = [p for n in nodes for p in n['ports']]
	for p in ports:
	    for what in 'xmit_words', 'rcv_words', 'xmit_pkts', 'rcv_pkts':
	        assert sum(l[what] for l in p['lanes']) == p[what], p
	assert {l['vl'] for p in ports for l in p['lanes']} == {0, 15}
	assert sum(l['xmit_fecn'] for p in ports for l in p['lanes']) > 0
END
	not_ok "fabric: show --json has lanes" "$work/json"

# --- adaptive routing ---
check "adaptive routing is turned on" ctl adaptive Switch1 on
counts "answers come over it" 36 'PathRecord dump' Hca3 saquery -p
check "and off" ctl adaptive Switch1 off
check "an adapter does not route" sh -c \
	"! '$verbena' fabric ctl --name $name adaptive Hca1 on"

kill "$opensm"
wait "$opensm" 2>/dev/null
kill "$fabric"
wait "$fabric"
summary
