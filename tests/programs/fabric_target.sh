#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Targets of an emulated InfiniBand subnet under Debian's ibsrpdm and srp_daemon:
# they find what the topology says, and what changes while the fabric runs.
# tests/programs/fabric_target.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
# shellcheck source=tests/programs/fabric_lib.sh
. "$here/fabric_lib.sh"
tests_begin "$0" "$@"

fabric_begin opensm ibsrpdm srp_daemon saquery smpquery
name=target$$
log=$work/osm.log
ctl() { "$verbena" fabric ctl --name "$name" "$@"; }

# Hca1 has the subnet manager, Hca2 looks. Hca3 is a target of SRP. Of Hca4's
# controllers the second has services of its own, and the third no SRP.
cat >"$work/topology" <<-END
	Switch 8 "Switch1"
	[1] "Hca1"[1]
	[2] "Hca2"[1]
	[3] "Hca3"[1]
	[4] "Hca4"[1]
	Hca 1 "Hca1"

	Hca 1 "Hca2"

	Hca 1 "Hca3"

	Hca 2 "Hca4"
	#! node "Hca3" target=1
	#! node "Hca4" target=3 service=2:other:5
	#! node "Hca4" service=2:SRP.T10:00000000000000aa:0xbb service=3:block:7
END
fabric_up "$work/topology"
opensm_up Hca1 "$log"
check "the subnet comes up" subnet_up "$log" || {
	kill "$opensm" "$fabric"
	summary
	exit
}

# command ID CONTROLLER PORT SERVICE: what ibsrpdm -c prints of a target.
command_for() {
	echo "id_ext=$1,ioc_guid=$2,dgid=fe80000000000000$3,pkey=ffff,service_id=$4"
}
hca2=0200ca0000000200
hca3=0200ca0000000300
hca4=0200ca0000000400
second=0200cb0000000400 # controller of Hca4
{
	command_for $hca3 $hca3 ${hca3%0}1 $hca3
	command_for $hca4 $hca4 ${hca4%0}1 $hca4
	command_for 00000000000000aa $second ${hca4%0}1 00000000000000bb
} >"$work/three"
{
	cat "$work/three"
	command_for $hca2 $hca2 ${hca2%0}1 $hca2
} >"$work/four"

# finds FILE [PROGRAM...]: the program, which is ibsrpdm, prints the lines of the
# file, in any order.
finds() {
	local file=$1

	shift
	[ $# -gt 0 ] || set -- ibsrpdm -c
	r Hca2 "$@" >"$work/found" 2>"$work/found.errors" </dev/null
	diff <(sort "$file") <(sort "$work/found") && [ ! -s "$work/found.errors" ]
}

# --- what the topology says ---
check "ibsrpdm -c finds the topology's targets" finds "$work/three"
check "srp_daemon finds the same" finds "$work/three" \
	srp_daemon -o -c -a -i ib0 -f /dev/null
counts "ibsrpdm tells of two units" 2 '^IO Unit Info' Hca2 ibsrpdm
counts "ibsrpdm tells of four controllers" 4 '^ *controller\[' Hca2 ibsrpdm
counts "ibsrpdm: three services are SRP's" 3 '^ *service\[' Hca2 ibsrpdm
says "ibsrpdm: 16 slots" 'max controllers: 0x10' Hca2 ibsrpdm
says "ibsrpdm: nothing has changed" 'change ID: *0001' Hca2 ibsrpdm
says "ibsrpdm: the text of a controller" 'ID: *Hca4 I/O controller 2$' \
	Hca2 ibsrpdm
says "ibsrpdm: a service that was given" \
	'service\[ *1\]: 00000000000000bb / SRP.T10:00000000000000aa' Hca2 ibsrpdm
counts "ibsrpdm: one controller is not of SRP's class" 1 'IO class : ffff' \
	Hca2 ibsrpdm
check "a target finds itself, too" sh -c "
	'$verbena' run --device 'ib:$name/Hca3' -- ibsrpdm -c | grep -q '$hca3'"

# --- the capability, in the agent and in the database ---
lid_of() { r "$1" ibstat ib0 1 | sed -n 's/.*Base lid: *//p'; }
capable='IsDeviceManagementSupported'
declare -A lid
for node in Hca1 Hca2 Hca3 Hca4; do
	lid[$node]=$(lid_of $node)
done
says "smpquery: Hca3 is a target" "$capable" Hca2 smpquery portinfo "${lid[Hca3]}"
counts "smpquery: Hca1 is none" 0 "$capable" Hca2 smpquery portinfo "${lid[Hca1]}"
# is_target NODE NUMBER: so many ports of the node are targets to saquery.
is_target() {
	r Hca2 saquery PIR "${lid[$1]}" >"$work/records" 2>&1 &&
		grep -q '^PortInfoRecord' "$work/records" &&
		[ "$(grep -c "$capable" "$work/records")" = "$2" ]
}
check "saquery: Hca4 is a target" is_target Hca4 1
check "saquery: Hca2 is none" is_target Hca2 0

# --- changes ---
check "Hca2 becomes a target" ctl node Hca2 target=1
check "opensm gets trap 144" within 10 grep -q 'num:144' "$log"
check "saquery sees it" within 10 is_target Hca2 1
check "ibsrpdm finds it" finds "$work/four"
says "show says so" "Hca2: guid 0x${hca2#0}, target, 1 I/O controllers" Hca1 \
	"$verbena" fabric show --name "$name"
check "Hca2 is none any more" ctl node Hca2 target=0
check "saquery sees that, too" within 10 is_target Hca2 0
check "ibsrpdm does not find it" finds "$work/three"
check "a service gets another ID" ctl node Hca4 \
	service=2:SRP.T10:00000000000000aa:0xcc
sed 's/00000000000000bb/00000000000000cc/' "$work/three" >"$work/other"
check "ibsrpdm finds that" finds "$work/other"
says "the unit's ChangeID counts up" 'change ID: *0002' Hca2 ibsrpdm
check "fewer controllers" ctl node Hca4 target=1
grep -v $second "$work/three" >"$work/two"
check "ibsrpdm finds fewer" finds "$work/two"

# --- words ---
ctl topology >"$work/written"
check "the topology has the targets" sh -c "
	grep -q '^#! node \"H-$hca3\" target=1$' '$work/written' &&
	! grep -q 'service=' '$work/written'"
refused() { # PATTERN ARGUMENT...
	! ctl "${@:2}" >"$work/refused" 2>&1 && grep -q -- "$1" "$work/refused"
}
check "a switch is no target" refused 'only adapters have target' \
	node Switch1 target=1
check "an empty slot has no services" refused 'controller that target= gives' \
	node Hca4 service=2:a:1
check "a change that fails changes nothing" refused 'is no parameter' \
	node Hca4 target=5 nothing=1
check "ibsrpdm finds the same" finds "$work/two"
kill "$opensm"
wait "$opensm" 2>/dev/null
fabric_down
summary
