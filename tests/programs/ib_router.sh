#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Three subnets with routers between them, each with an opensm of its own:
# programs, queries for paths, connections. tests/programs/ib_router.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
# shellcheck source=tests/programs/fabric_lib.sh
. "$here/fabric_lib.sh"
tests_begin "$0" "$@"

fabric_begin opensm ibrouters ib_write_bw ucmatose saquery
name=router$$
layer=ib_router
ib_begin

# The first router knows the way to the third subnet by a route of the file, and
# the second one has a route for all that it does not know.
cat >"$work/three.topo" <<'END'
Switch 3 "Left"
[1] "Hca1"[1]
[2] "Hca2"[1]
[3] "Near"[1]

Switch 4 "Middle"
[1] "Hca3"[1]
[2] "Hca4"[1]
[3] "Near"[2]
[4] "Far"[1]

Switch 2 "Right"
[1] "Hca5"[1]
[2] "Far"[2]

Hca 1 "Hca1"

Hca 1 "Hca2"

Hca 1 "Hca3"

Hca 1 "Hca4"

Hca 1 "Hca5"

Rt 2 "Near"

Rt 2 "Far"

#! node "Near" route=0xfec0000000000003:2
#! node "Far" route=any:1
END
gid1=fec0::1:200:ca00:0:101 gid3=fec0::2:200:ca00:0:301
gid5=fec0::3:200:ca00:0:501

subnet_of() { # NODE
	case $1 in
	Hca[12]) echo 1 ;;
	Hca[34]) echo 2 ;;
	*) echo 3 ;;
	esac
}
# gid_of NODE
gid_of() { echo "fec0::$(subnet_of "$1"):200:ca00:0:${1#Hca}01"; }

# lid_to NODE GID: the LID that the subnet administrator tells the node. It is
# asked once.
declare -A lids
ask_lid() {
	r "$1" saquery --sgid-to-dgid "$(gid_of "$1")-$2" 2>&1 |
		sed -n 's/.*dlid\.*//p'
}
learn_lids() {
	local from to

	for from in Hca1 Hca3 Hca5; do
		for to in $gid1 $gid3 $gid5; do
			[ "$to" = "$(gid_of $from)" ] ||
				lids[$(subnet_of $from),$to]=$(ask_lid $from "$to")
		done
	done
}
lid_to() { echo "${lids[$(subnet_of "$1"),$2]}"; }

router_of() { # NODE NODE: the LID of the router between them, for the first one
	local gids=("" "$gid1" "$gid3" "$gid5")

	lid_to "$1" "${gids[$(subnet_of "$2")]}"
}

# forwarded ROUTER, dropped ROUTER WHY: what the fabric has counted.
router_counts() {
	"$verbena" fabric show --name "$name" --json | python3 -c '
import json, sys
node = next(n for n in json.load(sys.stdin)["nodes"] if n["name"] == sys.argv[1])
print(node["forwarded"] if sys.argv[2] == "forwarded"
      else node["dropped"].get(sys.argv[2], 0))' "$1" "$2"
}

# plays PLAY CLIENT SERVER PROGRAM...: perftest by GIDs, with the LID of each
# one's router, which perftest does not ask for. PLAY is play or play_once.
plays() {
	local play=$1 from=$2 at=$3 to back

	shift 3
	to=$(router_of "$from" "$at")
	back=$(router_of "$at" "$from")
	port=$((port + 1))
	words=("$@" -F -x 0 -p "$port")
	"$play" across_serve ib_pair_ready across_call
}
# across NAME CLIENT SERVER PROGRAM...: that succeeds.
across() {
	local what=$1

	shift
	if plays play "$@"; then
		ok "$layer: $what"
	else
		not_ok "$layer: $what" "$work/client" "$work/server" \
			"$work/fabric"
	fi
}
across_serve() { r "$at" "${words[@]}" --dlid "$back"; }
across_call() { r "$from" "${words[@]}" --dlid "$to" localhost; }

# meets NAME CLIENT SERVER PROGRAM...: by rdma_cm and GIDs.
meets() {
	local what=$1 from=$2 at=$3 pid status=0

	shift 3
	r "$at" "$@" -f gid -b "$(gid_of "$at")" >"$work/server" 2>&1 &
	pid=$!
	within 10 r "$from" "$@" -f gid -b "$(gid_of "$from")" \
		-s "$(gid_of "$at")" || status=1
	wait $pid || status=1
	if [ $status -eq 0 ]; then
		ok "$layer: $what"
	else
		not_ok "$layer: $what" "$work/server" "$work/fabric"
	fi
}

# --- each subnet has a manager, and a prefix ---
fabric_up --sm "$work/three.topo" ||
	not_ok "$layer: the fabric starts" "$work/fabric"
log=$(sed -n 's/^the log of its subnet manager is //p' "$work/fabric")
subnets_up() {
	grep -q 'SUBNET UP' "$log" && grep -q 'SUBNET UP' "${log%.log}-2.log" &&
		grep -q 'SUBNET UP' "${log%.log}-3.log"
}
check "three subnets come up" within 10 subnets_up
active() {
	[ "$("$verbena" fabric show --name "$name" | grep -c '\] active')" = 18 ]
}
check "all ports are active" within 10 active
says "the GID has the prefix of the subnet" 'fec0:0000:0000:0002:' Hca3 \
	ibv_devinfo -v
says "the manager is the subnet's own" 'sm guid 0x200500000000300' Hca5 sminfo
counts "ibrouters: the router of the first subnet" 1 '"Near"$' Hca1 ibrouters
counts "ibrouters: both routers of the second one" 2 '^Rt.* ports 2 ' Hca3 \
	ibrouters
counts "ibnetdiscover looks no further than the router" 2 '^(Switch|Rt)' \
	Hca1 ibnetdiscover
says "ibstat, at the router" 'Router type: Verbena' Near ibstat
says "no program has queue pairs there" 'No IB devices found' Near \
	sh -c 'ibv_devinfo 2>&1; true'

# --- paths ---
learn_lids
says "the path to a foreign GID has the router's LID" \
	"dlid\\.*$(r Near ibstat ib0 1 | sed -n 's/.*Base lid: //p')\$" \
	Hca1 saquery --sgid-to-dgid $gid1-$gid3
says "and a hop limit" 'hop_flow_raw\.*0xFF' Hca1 \
	saquery --sgid-to-dgid $gid1-$gid5
counts "none to a subnet that no router knows" 0 dlid Hca1 \
	saquery --sgid-to-dgid $gid1-fec0::9:1:1:1:1

says "smpquery knows its kind" 'NodeType:\.*Router' Hca1 \
	smpquery nodeinfo "$(lid_to Hca1 $gid3)"

# --- data ---
across "RC: ib_write_bw" Hca1 Hca3 ib_write_bw -n 500
across "UD: ib_send_lat" Hca1 Hca3 ib_send_lat -c UD -n 200
if [ "$quick" = no ]; then
	across "RC: ib_read_bw" Hca3 Hca2 ib_read_bw -n 500
	across "RC: ib_send_bw, events" Hca2 Hca3 ib_send_bw -e -n 500
	across "UC: ib_write_bw" Hca1 Hca3 ib_write_bw -c UC -n 500
	across "UD: ib_send_bw" Hca2 Hca4 ib_send_bw -c UD -n 500
	across "atomics: ib_atomic_bw" Hca1 Hca4 ib_atomic_bw -n 500
	across "both directions at a time" Hca1 Hca3 ib_write_bw -b -n 500
	across "ib_write_lat" Hca1 Hca3 ib_write_lat -n 500
fi
across "over two routers: ib_write_bw" Hca1 Hca5 ib_write_bw -n 500
moved() { [ "$(router_counts Far forwarded)" -gt 500 ]; }
check "the second router has forwarded it" moved
says "its performance agent has counted, too" \
	'PortXmitPkts:\.*[1-9][0-9]{3}' Hca5 \
	perfquery -x "$(lid_to Hca5 $gid1)" 2

# --- the frames on both sides of a router ---
# What came in at one port with the hop limit 255 leaves by the other one with
# 254, the same ICRC and another VCRC.
captured() {
	local capture status=0

	"$verbena" fabric capture --name "$name" Near all "$work/x.pcapng" \
		2>"$work/said" &
	capture=$!
	within 5 test -s "$work/x.pcapng"
	plays play Hca1 Hca3 ib_write_bw -s 4096 -n 10 || status=1
	sleep 0.3
	kill -INT $capture
	wait $capture
	tshark -r "$work/x.pcapng" -Y 'infiniband.bth.opcode == 10' -T fields \
		-e frame.interface_name -e infiniband.grh.hoplmt \
		-e infiniband.invariant.crc -e infiniband.variant.crc \
		2>"$work/tshark" | awk '
		$1 == "Near[1]" && $2 == 255 { icrc[$3] = $4; came++ }
		$1 == "Near[2]" && $2 == 254 && $3 in icrc {
			left++
			same += $4 == icrc[$3]
		}
		END {
			print came + 0, "came,", left + 0, "left"
			exit !(came >= 10 && left == came && !same)
		}' || status=1
	cat "$work/said" "$work/tshark"
	return $status
}
if [ "$quick" = no ] && command -v tshark >/dev/null; then
	check "the ICRC stays, the hop limit and the VCRC do not" captured
fi

# --- connections ---
meets "over two routers: ucmatose" Hca5 Hca1 ucmatose -c 3
if [ "$quick" = no ]; then
	meets "UD: udaddy" Hca2 Hca3 udaddy -c 3
	meets "port space IB" Hca1 Hca5 ucmatose -P ib
	meets "RC: ucmatose" Hca1 Hca3 ucmatose -c 3
fi

# --- what a router does not forward ---
# The pingpongs of libibverbs say the hop limit 1, and send to the LID that the
# other one has in its subnet: this one is also the router's here.
lid() { r "$1" ibstat ib0 1 | sed -n 's/.*Base lid: //p'; }
one_hop() {
	[ "$(lid Hca5)" = "$(lid_to Hca1 $gid5)" ] || return
	port=$((port + 1))
	words=(ibv_ud_pingpong -g 0 -n 10 -p "$port")
	timeout 6 "$verbena" run --device "ib:$name/Hca5" -- "${words[@]}" \
		>"$work/server" 2>&1 &
	listening here "$port" 20 $!
	timeout 2 "$verbena" run --device "ib:$name/Hca1" -- "${words[@]}" \
		localhost >"$work/client" 2>&1
	[ "$(router_counts Near hop_limit)" -gt 0 ]
}
check "datagrams with the hop limit 1 are dropped, and counted" one_hop
says "verbena fabric show says so" \
	'^router Near: .* frames forwarded, [0-9]+ dropped \(hop_limit\)' Hca1 \
	"$verbena" fabric show --name "$name"

# --- a manager that does not answer ---
if [ "$quick" = no ]; then
	manager=$(pgrep -P "$fabric" -f "sm2/opensm.conf")
	kill -STOP "$manager"
	across "its manager is stopped: paths in use stay" Hca1 Hca3 \
		ib_write_bw -D 10
	kill -CONT "$manager"
fi

fabric_down
check "the managers' files are gone" test ! -e "${log%.log}"
rm -f "$log" "${log%.log}"-[23].log

# --- managers of one's own, and a partition in both subnets ---
# Hca1 and Hca3 are in it; the routers are if $1 says so.
managers=()
managed() {
	local at logs=() i=0

	for at in Left Middle; do
		i=$((i + 1))
		logs+=("$work/own$i.log")
		rm -f "$work/own$i.log"
		cat >"$work/partitions" <<-END
			Default=0x7fff, ipoib : ALL=full, SELF=full;
			blue=0x0002 : 0x0200ca0000000101=full, 0x0200ca0000000301=full$1;
		END
		echo "* 0x020070000000010$i" >"$work/routes$i"
		opensm_more="subnet_prefix 0xfec000000000000$i
prefix_routes_file $work/routes$i"
		opensm_up $at "$work/own$i.log" -P "$work/partitions"
		managers+=("$opensm")
	done
	subnet_up "${logs[0]}" && subnet_up "${logs[1]}"
}
unmanaged() {
	kill "${managers[@]}"
	wait "${managers[@]}" 2>/dev/null
	managers=()
}
blue() {
	r Hca1 smpquery pkeys "$(lid Hca1)" | grep -q 0x8002 &&
		r Hca3 smpquery pkeys "$(lid Hca3)" | grep -q 0x8002
}
# Requests have no answer, so perftest fails after its retries.
no_way() {
	! plays play_once Hca1 Hca3 ib_write_bw -n 5 --pkey_index 1 &&
		grep 'Completion with error' "$work/client"
}
if [ "$quick" = no ]; then
	fabric_up "$work/three.topo"
	check "managers of one's own" managed ", ALL_ROUTERS=full"
	check "a partition" within 10 blue
	learn_lids
	across "a partition of both subnets" Hca1 Hca3 \
		ib_write_bw -n 100 --pkey_index 1
	unmanaged
	check "managers, without the routers in the partition" managed ""
	check "no frame passes the switch at the router" no_way
	unmanaged
	fabric_down
fi
summary
