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

# subnet_begins [OPTION...]: a fabric and opensm, with $opensm_more in its configuration, and
# a program at Hca2 that has subscribed. opensm gives Hca1 the LID 1, Switch1 2,
# Switch2 3, Hca3 5, Hca4 6. Hca3 is the only member of a partition.
printf '%s\n' 'Default=0x7fff: ALL=full, SELF=full;' \
	'Other=0x0002: 0x0200ca0000000301=full;' >"$work/partitions"
subnet_begins() {
	fabric_up "$topology"
	opensm_up Hca1 "$work/osm.log" -P "$work/partitions" "$@"
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
	kill "$listener" "$opensm" 2>/dev/null
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

# --- M_Keys, by the level of protection that opensm sets (IBA 14.2.4.1) ---
# Without the key, a Get is answered up to level 1, and shows the key at level 0
# alone; a Set never is.
silent() { # COMMAND...: at Hca3; it fails
	! r Hca3 "$@"
}
portinfo() { r Hca3 smpquery -K -t 200 "$@" portinfo 6; }
shows_key() { # KEY OPTION...
	portinfo "${@:2}" >"$work/portinfo" && cat "$work/portinfo" &&
		grep -Eq "^Mkey:\\.*$1\$" "$work/portinfo"
}
link_is() { # STATE: of the trunk at port 5
	r Hca3 smpquery -y 5 portinfo 3 5 >"$work/link" && cat "$work/link" &&
		grep -q "PhysLinkState:\\.*$1" "$work/link"
}
for level in 0 1 2 3; do
	opensm_more="m_key 0x0000000000000005
m_key_protection_level $level
m_key_lease_period 0"
	subnet_begins
	case $level in
	0) check "M_Key level 0: a Get shows the key" shows_key 0x0*5 ;;
	1) check "M_Key level 1: a Get hides the key" shows_key 0x0* ;;
	*) check "M_Key level $level: a Get is not answered" \
		silent smpquery -t 200 portinfo 6 ;;
	esac
	check "M_Key level $level: with the key, a Get shows it" \
		shows_key 0x0*5 -y 5
	check "M_Key level $level: a Set is not answered" \
		silent ibportstate -t 200 3 5 disable
	check "M_Key level $level: the Set has changed nothing" link_is LinkUp
	reported "level $level: a port got a wrong M_Key" 256 3
	check "M_Key level $level: with the key, a Set works" \
		r Hca3 ibportstate -y 5 3 5 disable
	check "M_Key level $level: it has taken the link down" \
		within 10 link_is Disabled
	subnet_ends
done

# The lease ends so many seconds after a wrong key, if the right one does not
# come. Then any manager can read the key.
opensm_more='m_key 0x0000000000000005
m_key_protection_level 2
m_key_lease_period 3
sweep_interval 1'
subnet_begins -s 1 # a lease must be longer than a sweep
kill "$opensm" # nobody with the key is left
wait "$opensm" 2>/dev/null
sleep 4
check "M_Key lease: it does not end by itself" silent smpquery -t 200 portinfo 6
sleep 1
check "M_Key lease: before its end" silent smpquery -t 200 portinfo 6
check "M_Key lease: the right key" shows_key 0x0*5 -y 5
sleep 3
check "M_Key lease: the right key has stopped it" \
	silent smpquery -t 200 portinfo 6
check "M_Key lease: after its end the port shows its key" \
	within 6 shows_key 0x0*5
check "M_Key lease: the wrong keys were counted" sh -c \
	"grep -E '^MkeyViolations:\\.*[1-9]' '$work/portinfo'"
subnet_ends
summary
