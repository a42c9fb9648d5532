#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# An emulated InfiniBand subnet under Debian's own programs, unmodified: opensm
# brings it up, infiniband-diags look at it. tests/programs/fabric.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"

export XDG_RUNTIME_DIR=$work/run
mkdir -m 700 "$XDG_RUNTIME_DIR"
examples=/usr/share/doc/ibsim-utils/net-examples
for program in opensm ibnetdiscover; do
	if ! command -v $program >/dev/null; then
		skip "fabric" "$program is not installed"
		summary
		exit
	fi
done
name=test$$

# shellcheck source=tests/programs/fabric_lib.sh
. "$here/fabric_lib.sh"

equal() { python3 "$here/fabric_equal.py" "$1" "$2"; }

discovers() { # NODE FILE: ibnetdiscover prints what the file says
	r "$1" ibnetdiscover >"$work/found" 2>/dev/null && equal "$2" "$work/found"
}

guid() { r "$1" ibstat -p | head -n 1; } # of its first port

# --- the examples of ibsim ---
for file in "$examples"/net*; do
	base=$(basename "$file")
	fabric_up "$file" || {
		not_ok "fabric: $base starts" "$work/fabric"
		continue
	}
	opensm_up Hca1 "$work/$base.log"
	check "$base: the subnet comes up" subnet_up "$work/$base.log"
	check "$base: ibnetdiscover equals the file" discovers Hca2 "$file"
	counts "$base: every link is active at both ends" \
		"$(grep -c '^\[' "$file")" 'Active/ *LinkUp' Hca2 iblinkinfo
	kill "$opensm"
	wait "$opensm" 2>/dev/null
	fabric_down
done

# --- two switches, four adapters, two trunks ---
topology=$examples/net.2sw2path4hca
log=$work/osm.log
fabric_up "$topology" || {
	not_ok "fabric: it starts" "$work/fabric"
	summary
	exit
}
opensm_up Hca1 "$log"
first=$opensm
check "T1 SUBNET UP within 5 s" subnet_up "$log" 5
counts "T2 all links active" 12 'Active/ *LinkUp' Hca3 iblinkinfo
check "T3 discovery equals the file" discovers Hca3 "$topology"
r Hca3 ibnetdiscover 2>/dev/null >"$work/first"
says "T4 ibstat" 'Base lid: 5' Hca3 ibstat ib0 1
says "T4 ibstat -l" '^ib0$' Hca3 ibstat -l
says "T4 ibstat -p" '0x0200ca0000000301' Hca3 ibstat -p
says "T4 sminfo" 'SMINFO_MASTER' Hca3 sminfo
says "T4 ibaddr" 'LID start 0x5' Hca3 ibaddr
says "T5 smpquery nodeinfo" 'NodeType:\.*Switch' Hca3 smpquery nodeinfo 3
says "T5 smpquery by directed route" '^Lid:\.*6$' \
	Hca3 smpquery -D portinfo 0,1,3,2 1
says "T5 smpquery, combined route" 'NodeType:\.*Channel' \
	Hca3 smpquery -c nodeinfo 3 0,2
says "T5 smpquery nodedesc" 'Hca4' Hca3 smpquery nodedesc 6
says "T5 smpquery switchinfo" 'LinearFdbTop:\.*' Hca3 smpquery switchinfo 2
says "T5 smpquery pkeys" '0xffff' Hca3 smpquery pkeys 6
says "T5 smpquery sl2vl" 'ports: in' Hca3 smpquery sl2vl 2 1
says "T5 smpquery vlarb" 'VL' Hca3 smpquery vlarb 2 1
says "T5 smpquery guidinfo" '0x0200ca0000000401' Hca3 smpquery guidinfo 6
says "T5 perfquery -x" 'PortXmitPkts:\.*[1-9]' Hca3 perfquery -x 6 1
says "T5 perfquery -a" 'PortSelect:\.*255' Hca3 perfquery -a 2
says "T5 perfquery -R resets" 'PortXmitPkts:\.*[0-9]$' \
	Hca3 sh -c 'perfquery -R -x 6 1 && perfquery -x 6 1'
says "T5 ibqueryerrors" '6 nodes checked, 0 bad nodes' Hca3 ibqueryerrors
says "T5 ibportstate with its peer" 'Peer PortInfo' Hca3 ibportstate 3 3 query
says "T6 ibtracert" 'To ca .*"Hca4"' Hca3 ibtracert 5 6
says "T6 ibroute" '0x0006 005' Hca3 ibroute 2
says "T6 dump_fts" '6 valid lids dumped' Hca3 dump_fts
counts "T7 saquery -p, by RMPP" 36 'PathRecord dump' Hca3 saquery -p
counts "T7 saquery, nodes" 6 'NodeRecord dump' Hca3 saquery
says "T7 saquery --src-to-dst" 'dlid\.*6' Hca3 saquery --src-to-dst 5:6
says "T7 saquery -g" 'ff12:401b:ffff::ffff:ffff' Hca3 saquery -g

r Hca4 ibping -S >/dev/null 2>&1 &
r Hca4 ibsysstat -S >/dev/null 2>&1 &
check "T8 the servers are there" within 10 r Hca3 sh -c \
	'ibping -c 1 -f 6 | grep -q "1 received" && ibsysstat 6'
says "T8 ibping" '3 received, 0% packet loss' Hca3 ibping -c 3 -f 6
says "T8 ibsysstat" 'sysstat ping succeeded' Hca3 ibsysstat 6
counts "T8 a second server on the port is refused" 1 "can't" \
	Hca4 ibping -S
# Classes without an agent are answered: an error at once, no silence.
SECONDS=0
r Hca3 vendstat -N 6 >"$work/got" 2>&1
r Hca3 ibccquery congestioninfo 6 >>"$work/got" 2>&1
if [ $SECONDS -le 1 ]; then
	ok "fabric: T8 unknown classes are refused at once"
else
	not_ok "fabric: T8 unknown classes are refused at once" "$work/got"
fi

# Two places at once, in one program.
timeout 60 "$verbena" run --device "ib:$name/Hca3" --device "ib:$name/Hca4" \
	-- "$programs/umad_test" >"$work/umad" 2>&1
cat "$work/umad"
passed=$((passed + $(grep -c '^ok' "$work/umad")))
failed=$((failed + $(grep -c '^not ok' "$work/umad")))
[ "$(grep -c '^ok' "$work/umad")" -ge 20 ] ||
	not_ok "fabric: libibumad: all its cases ran" "$work/umad"

# --- cables ---
routes() { r Hca3 ibroute 2 2>/dev/null | grep -q "$1"; }
check "T9 a cable is pulled" ctl unlink Switch1 5
check "T9 opensm routes around it" within 5 routes '0x0006 003'
says "T9 ibtracert goes the other way" '\[3\] -> switch' Hca3 ibtracert 5 6
check "T9 it is plugged in again" ctl link Switch1 5
check "T9 both trunks are used again" within 5 routes '0x000[346] 005'
check "T9 an adapter is isolated" ctl unlink Switch2 2
check "T9 opensm says so" within 5 grep -q 'GID out of service' "$log"
counts "T9 ibhosts shows three" 3 '^Ca' Hca3 ibhosts
check "T9 it is back" ctl link Switch2 2
check "T9 opensm sees it" within 5 grep -q 'GID in service' "$log"
check "T9 ibportstate takes a link down and up" r Hca3 sh -c \
	'ibportstate 2 3 disable && ibportstate 2 3 enable'
says "show --json is JSON" '"state": "active"' Hca3 \
	"$verbena" fabric show --name "$name" --json
r Hca3 "$verbena" fabric show --name "$name" --json | python3 -c '
import json, sys
assert len(json.load(sys.stdin)["nodes"]) == 6' &&
	ok "fabric: show --json parses" || not_ok "fabric: show --json parses"

# --- who breaks the rules of the socket harms nobody ---
for directory in /run/verbena "$XDG_RUNTIME_DIR/verbena"; do
	[ -S "$directory/fabric-$name/socket" ] && break
done
check "garbage on its socket" timeout 60 python3 "$here/fabric_forged.py" \
	"$directory/fabric-$name/socket"
says "T4 sminfo, still" 'SMINFO_MASTER' Hca3 sminfo
check "as many programs as it takes, and more" timeout 60 python3 \
	"$here/fabric_crowd.py" "$directory/fabric-$name/socket" "$fabric" 1000
says "T4 sminfo, after them" 'SMINFO_MASTER' Hca3 sminfo

# --- a second subnet manager ---
opensm_up Hca4 "$work/osm2.log"
second=$opensm
check "T17 the second one stands by" \
	within 10 grep -q 'Entering STANDBY' "$work/osm2.log"
{
	kill -9 "$first"
	wait "$first"
} 2>/dev/null
check "T17 it takes over within 5 s" \
	within 5 grep -q 'Entering MASTER' "$work/osm2.log"
says "T17 sminfo finds it" 'SMINFO_MASTER' Hca3 sminfo 6
kill "$second"
fabric_down
check "its files are gone" test ! -e "$directory/fabric-$name"

# --- without descriptors: it knows, or learns it when they are used up ---
for limit in 40 20000; do
	(
		ulimit -n $limit 2>/dev/null
		exec "$verbena" fabric --name "$name" "$topology"
	) >"$work/fabric" 2>&1 &
	fabric=$!
	within 10 grep -q 'fabric "' "$work/fabric"
	prlimit --pid "$fabric" --nofile=40:40
	check "quiet with 40 descriptors, from $limit" timeout 60 python3 \
		"$here/fabric_crowd.py" "$directory/fabric-$name/socket" \
		"$fabric" 15
	fabric_down
done

# --- ways to route, on topologies for which they are meant ---
# updn finds no root by itself where all switches are alike.
echo 0x0200500000000100 >"$work/roots"
while read -r engine kind options; do
	fabric_up --make "$kind"
	# shellcheck disable=SC2086 # words
	opensm_up Hca1 "$work/way.log" -R "$engine" $options
	check "$kind by $engine $options" subnet_up "$work/way.log" ||
		tail -n 5 "$work/way.log" "$work/way.log.out" "$work/fabric"
	check "$kind: it is $engine that routes" \
		grep -q "$engine tables configured on all" "$work/way.log"
	says "$kind by $engine: a path" 'To ca' Hca2 ibtracert -G \
		"$(guid Hca1)" "$(guid Hca2)"
	kill "$opensm"
	wait "$opensm" 2>/dev/null
	fabric_down
	rm -f "$work/way.log"
done <<-END
	minhop torus:3x3 -l 1 -Q
	minhop fat-tree:3:4x4 -l 7
	updn torus:3x3 -l 1 -Q -a $work/roots
	updn fat-tree:2:4x4 -l 1
	ftree fat-tree:2:4x4
	dfsssp torus:4x4 -Q
	dfsssp dragonfly:2:2:1 -l 1
	lash torus:3x3
	dor torus:4x4 -l 1
END

# --- what is wrong is said ---
wrong() { # NAME PATTERN ARGUMENT...
	local what=$1 pattern=$2

	shift 2
	if ! "$verbena" fabric "$@" >"$work/got" 2>&1 &&
		grep -Eq -- "$pattern" "$work/got"; then
		ok "fabric: $what"
	else
		not_ok "fabric: $what (wanted: $pattern)" "$work/got"
	fi
}
printf 'Switch 8 "A"\n[1] "B"[1]\n' >"$work/bad"
wrong "an error in a file has its line" 'bad:2: there is no node "B"' \
	"$work/bad"
wrong "an absent file" 'No such file' "$work/absent"
wrong "an unknown kind" 'no topology that can be made' --make ring:4
wrong "a fabric that does not run" 'no fabric "nothing" is running' \
	show --name nothing
wrong "a bad name" 'cannot be called' --name ../x "$topology"

# --- a fat tree of 324 adapters ---
fabric_up --make fat-tree:2:18x36
"$verbena" fabric --write --make fat-tree:2:18x36 >"$work/tree"
opensm_up Hca1 "$work/tree.log" -R ftree
check "T18 351 nodes come up" subnet_up "$work/tree.log" 20
counts "T18 ibnetdiscover finds them" 351 '^(Switch|Ca)' Hca2 ibnetdiscover
check "T18 it equals the file" discovers Hca2 "$work/tree"
# 7.9 MB by RMPP. ftree has no path between two spines.
counts "T18 saquery has a path for each other pair" $((351 * 351 - 9 * 8)) \
	'PathRecord dump' Hca3 saquery -t 20000 -p
kill "$opensm"
fabric_down
summary
