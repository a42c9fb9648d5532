#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Traps of an emulated InfiniBand subnet, and what opensm reports of it: each is
# provoked, and a program that has subscribed gets the report of it.
# tests/programs/fabric_reports.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
# shellcheck source=tests/programs/fabric_lib.sh
. "$here/fabric_lib.sh"
tests_begin "$0" "$@"

topology=/usr/share/doc/ibsim-utils/net-examples/net.2sw2path4hca
fabric_begin opensm smpquery
[ -e "$topology" ] || {
	skip "fabric_reports" "the examples of ibsim-utils are not installed"
	summary
	exit
}
name=reports$$
ctl() { "$verbena" fabric ctl --name "$name" "$@"; }
reports=$programs/umad_reports

# subnet_begins: a fabric and opensm, with $opensm_more in its configuration, and
# a program at Hca2 that has subscribed. opensm gives Hca1 the LID 1, Switch1 2,
# Switch2 3, Hca3 5, Hca4 6. Hca3 is the only member of a partition.
printf '%s\n' 'Default=0x7fff: ALL=full, SELF=full;' \
	'Other=0x0002: 0x0200ca0000000301=full;' >"$work/partitions"
subnet_begins() {
	fabric_up "$topology"
	opensm_up Hca1 "$work/osm.log" -P "$work/partitions"
	check "the subnet comes up" subnet_up "$work/osm.log" || {
		kill "$opensm" "$fabric"
		summary
		exit
	}
	: >"$work/reports"
	timeout 300 "$verbena" run --device "ib:$name/Hca2" -- \
		"$reports" listen >"$work/reports" 2>&1 &
	listener=$!
	check "a program subscribes" within 20 grep -qx subscribed \
		"$work/reports"
}
subnet_ends() {
	kill "$listener" "$opensm"
	wait "$listener" "$opensm" 2>/dev/null
	fabric_down
	rm -f "$work/osm.log"
}

# reported NAME NUMBER [LID]: a report has come, of the LID.
reported() {
	if within 20 grep -qx "report $2 of LID ${3:-[0-9]*}" "$work/reports"
	then
		ok "fabric: $2: $1"
	else
		not_ok "fabric: $2: $1" "$work/reports" "$work/osm.log"
	fi
}
# with_keys Q_KEY P_KEY_INDEX: Hca3 sends a request to Hca4 with these keys.
with_keys() { r Hca3 "$reports" send 6 "$1" "$2"; }

# --- links, capabilities, members, Q_Keys, P_Keys at a switch ---
subnet_begins
check "a cable between the switches is pulled" ctl unlink Switch1 5
reported "a link has changed its state" 128
check "it is plugged in again" ctl link Switch1 5
check "an adapter's cable is pulled" ctl unlink Switch2 2
reported "an adapter has gone" 65
check "that is plugged in again, too" ctl link Switch2 2
reported "an adapter has come" 64
check "a group is made and left" r Hca3 "$reports" group
reported "a group has been made" 66
reported "a group has gone" 67
check "Hca3 becomes a target" ctl node Hca3 target=1
reported "capabilities have changed" 144 5
check "a request with a wrong Q_Key" with_keys 0x80010001 0
reported "an adapter got a wrong Q_Key" 258 6
check "a request with a P_Key that the receiver lacks" with_keys 0x80010000 1
reported "a switch has dropped a P_Key" 259
# Hca4 answers Hca3 over a trunk that damages all frames. The frames that come to
# Switch1 are the answers to this trunk's end; opensm is behind Switch1.
check "a link damages all frames" ctl tune Switch1 3 corrupt=1
check "the other trunk is pulled, so all frames take it" ctl unlink Switch1 5
for _ in 1 2 3 4 5 6 7 8 9 10; do
	r Hca3 smpquery -t 50 -D nodeinfo 0,1,3 >/dev/null 2>&1
	r Hca4 smpquery -t 50 -D nodeinfo 0,1,3 >/dev/null 2>&1
done
check "129: a link damages more frames than its threshold" within 20 \
	grep -q 'num:129 .* from LID:2 Port 3' "$work/osm.log"
says "129 is counted" 'LocalLinkIntegrityErrors:\.*[1-9]' \
	Hca3 perfquery 2 3
check "it damages none any more" ctl tune Switch1 3 corrupt=0
check "the other trunk is back" ctl link Switch1 5
check "a link loses its link packets" ctl tune Switch1 3 lose_flow=1
# opensm keeps this one to itself.
check "131: a link had no link packets for too long" within 20 \
	grep -q 'num:131 .* from LID:[23] Port 3' "$work/osm.log"
check "it loses none any more" ctl tune Switch1 3 lose_flow=0
subnet_ends

# --- P_Keys at an adapter, M_Keys ---
opensm_more='part_enforce off
m_key 0x0000000000000005
m_key_protection_level 2
m_key_lease_period 0'
subnet_begins
check "a P_Key that switches let pass" with_keys 0x80010000 1
reported "an adapter got a wrong P_Key" 257 6
r Hca3 smpquery -t 200 nodeinfo 6 >"$work/got" 2>&1 &&
	not_ok "fabric: a port with an M_Key does not answer without" "$work/got" ||
	ok "fabric: a port with an M_Key does not answer without"
reported "a port got a wrong M_Key" 256 6
says "with its M_Key it answers" 'NodeType:\.*Channel' \
	Hca3 smpquery -y 5 nodeinfo 6
subnet_ends
summary
