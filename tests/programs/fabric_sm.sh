#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Fabrics that bring themselves up: a subnet manager that `verbena fabric --sm`
# starts, the fabric that `verbena run --device ib` starts, and what programs
# find in /sys. tests/programs/fabric_sm.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
# shellcheck source=tests/programs/fabric_lib.sh
. "$here/fabric_lib.sh"
tests_begin "$0" "$@"

fabric_begin opensm ibnetdiscover
name=sm$$

# The subnet manager's process, which is the fabric's only child.
manager() { pgrep -P "$fabric"; }
gone() { ! kill -0 "$1" 2>/dev/null; }
log_file() { sed -n 's/^the log of its subnet manager is //p' "$work/fabric"; }
master() { r Hca2 sminfo | grep -q SMINFO_MASTER; }

# fails NAME PATTERN COMMAND...: it fails, and says so.
fails() {
	local what=$1 pattern=$2

	shift 2
	if ! "$@" >"$work/got" 2>&1 && grep -Eq -- "$pattern" "$work/got"; then
		ok "fabric: $what"
	else
		not_ok "fabric: $what (wanted: $pattern)" "$work/got"
	fi
}

# --- a subnet manager in a switch ---
# An ordinary user's PATH has no directory for administrators.
PATH=/usr/bin:/bin fabric_up --sm --make fat-tree:2:4x4 ||
	not_ok "fabric: --sm starts" "$work/fabric"
log=$(log_file)
check "--sm brings the subnet up within 5 s" within 5 grep -q 'SUBNET UP' "$log"
counts "--sm: all links are active" 32 'Active/ *LinkUp' Hca2 iblinkinfo
says "--sm: the subnet manager is in a switch" \
	'sm guid 0x200500000000100.*SMINFO_MASTER' Hca2 sminfo
first=$(manager)
kill -9 "$first"
check "--sm starts opensm again when it was killed" within 10 master
check "--sm: that is another process" test "$first" != "$(manager)"
check "--sm says that it was killed" grep -q 'opensm was ended by signal 9' \
	"$work/fabric"
last=$(manager)
fabric_down
check "--sm ends opensm with the fabric" within 3 gone "$last"
directory=${log%.log}
check "--sm: the fabric's files are gone" test ! -e "$directory"
check "--sm: the log is still there" grep -q 'Exiting SM' "$log"
rm -f "$log"

fabric_up --sm --make fat-tree:2:4x4
within 5 master
last=$(manager)
{
	kill -9 "$fabric"
	wait "$fabric"
} 2>/dev/null
check "--sm: opensm ends when the fabric is killed" within 3 gone "$last"
rm -rf "$(log_file)" "$directory"

# One that ends each time is not started for ever, and harms nobody.
mkdir "$work/bin"
printf '#!/bin/sh\nexit 3\n' >"$work/bin/opensm"
chmod 755 "$work/bin/opensm"
PATH=$work/bin:$PATH fabric_up --sm --make switch:2
check "--sm gives up in the end" within 20 \
	grep -q 'goes on without a subnet manager' "$work/fabric"
check "--sm: it was started six times" test \
	"$(grep -c 'opensm ended with status 3' "$work/fabric")" = 6
says "--sm: the fabric serves all the same" 'State: Initializing' Hca1 ibstat
fabric_down
rm -f "$(log_file)"

# without_opensm COMMAND...: as if it were not installed.
without_opensm() {
	# shellcheck disable=SC2016 # for the inner shell
	unshare -m bash -c 'mount --bind /dev/null "$0" && exec "$@"' \
		"$(command -v opensm)" "$@"
}
if without_opensm true 2>/dev/null; then
	fails "--sm without opensm names the package" \
		'^verbena fabric: opensm.* is not installed.*apt install opensm' \
		without_opensm "$verbena" fabric --sm --make switch:2
else
	skip "fabric: --sm without opensm" "no mount namespaces here"
fi

# --- places that are not there ---
fabric_up --make switch:12
run() { "$verbena" run "$@"; }
fails "an unknown fabric: which run" \
	"^verbena run: --device ib:other$$/Hca1: no fabric \"other$$\".*\"$name\"" \
	run --device "ib:other$$/Hca1" -- true
fails "an unknown node: which there are" \
	'has no node "Hca99"; it has Switch1, Hca1, .* and 5 others' \
	run --device "ib:$name/Hca99" -- true
fails "no place at all" 'a place is ib:NODE' run --device ib: -- true
for device in "ib:other$$/Hca1" "ib:$name/Hca99" "ib:$name/Hca1"; do
	run --device "$device" -- ibv_devices >"$work/words" 2>&1
	if grep -qi 'network interface' "$work/words"; then
		not_ok "fabric: $device: no word of interfaces" "$work/words"
	else
		ok "fabric: ${device%"$$"*}/${device#*/}: no word of interfaces"
	fi
done
fails "an unknown node of ctl" 'has no node "Hca99"; it has' \
	"$verbena" fabric ctl --name "$name" unlink Hca99 1
fabric_down

# --- /sys ---
fabric_up --sm --make fat-tree:2:4x4
within 5 master
says "ibstatus: active" 'state:.*4: ACTIVE' Hca3 ibstatus
says "ibstatus: GID" 'default gid:.*fe80:0000:0000:0000:0200:ca00:0000:0301' \
	Hca3 ibstatus
says "ibstatus: rate" 'rate:.*40 Gb/sec \(4X QDR\)' Hca3 ibstatus ib0:1
says "ibstatus: link layer" 'link_layer:.*InfiniBand' Hca3 ibstatus
says "ibstatus of a switch has port 0" "'ib0' port 0" Switch1 ibstatus
lid=$(r Hca3 ibaddr -l | sed 's/.*start 0x\([0-9a-f]*\).*/\1/')
class=/sys/class/infiniband
for line in "ports/1/lid 0x$lid" "ports/1/sm_lid 0x1" "ports/1/sm_sl 0" \
	"ports/1/lid_mask_count 0" "ports/1/phys_state 5:.LinkUp" \
	"ports/1/cap_mask 0x0201084[08]" "ports/1/pkeys/0 0xffff" \
	"ports/1/gids/1 0000:.*:0000" "node_type 1:.CA" "node_desc Hca3" \
	"node_guid 0200:ca00:0000:0300" "sys_image_guid 0200:ca00:0000:0300" \
	"hca_type Verbena" "fw_ver [0-9.]+" \
	"ports/1/counters/port_rcv_packets [1-9][0-9]*" \
	"ports/1/counters/symbol_error 0"; do
	says "$class/ib0/${line% *}" "^${line#* }\$" Hca3 \
		cat "$class/ib0/${line% *}"
done
says "ibstat has the same version" \
	"Firmware version: $(r Hca3 cat $class/ib0/fw_ver)\$" Hca3 ibstat
says "a MAD device" '^ib0$' Hca3 cat /sys/class/infiniband_mad/umad0/ibdev
# Two places are two devices, in one program.
if "$verbena" run --device "ib:$name/Hca3" --device "ib:$name/Hca4" -- \
	ibstatus >"$work/got" 2>&1 &&
	[ "$(grep -c 'ACTIVE' "$work/got")" = 2 ]; then
	ok "fabric: ibstatus of two adapters"
else
	not_ok "fabric: ibstatus of two adapters" "$work/got"
fi
# The files say what is so now, also within one program that runs on.
cat >"$work/watch" <<-END
	cat $class/ib0/ports/1/phys_state
	"$verbena" fabric ctl --name $name unlink Hca3 1
	for i in \$(seq 100); do
		grep -q Polling $class/ib0/ports/1/phys_state && echo seen && exit
		sleep 0.05
	done
END
says "a pulled cable is seen in /sys" '^seen$' Hca3 bash "$work/watch"
says "verbena devices lists places" 'node Hca4 of fabric' Hca3 \
	"$verbena" devices --device "ib:$name/Hca4"

# --- parameters of nodes ---
fabric_down
rm -f "$(log_file)"
"$verbena" fabric --write --make switch:2 >"$work/topology"
cat >>"$work/topology" <<-END
	#! node "Switch1" vls=4 linear=64 mcast=32 latency=2us
	#! node "Hca2" mtu=1024 pkeys=5 vls=1
END
fabric_up --sm "$work/topology"
within 5 master
says "mtu of a node" '^MtuCap:\.*1024' Hca2 smpquery -D portinfo 0 1
says "the subnet manager heeds it" '^NeighborMTU:\.*1024' Hca2 \
	smpquery -D portinfo 0 1
says "vls of a node" '^VLCap:\.*VL0$' Hca2 smpquery -D portinfo 0 1
says "vls of a switch" '^VLCap:\.*VL0-3' Hca1 smpquery -D portinfo 0,1 1
says "linear of a switch" '^LinearFdbCap:\.*64$' Hca1 smpquery -D switchinfo 0,1
says "mcast of a switch" '^McastFdbCap:\.*32$' Hca1 smpquery -D switchinfo 0,1
says "pkeys of a node" '^PartCap:\.*5$' Hca2 smpquery -D nodeinfo 0
ctl() { "$verbena" fabric --name "$name" ctl "$@"; }
check "latency changes while it runs" ctl node Switch1 latency=5us forward=store
ctl topology >"$work/again"
check "the topology has what changed" grep -q \
	'^#! node .* vls=4 linear=64 mcast=32 latency=5000ns forward=store$' \
	"$work/again"
check "the topology can be read again" cmp <("$verbena" fabric --write \
	"$work/again") "$work/again"
fails "mtu stays while it runs" 'mtu stays as it is while the fabric runs' \
	ctl node Hca2 mtu=2048
fails "only switches have a latency" 'only switches have latency' \
	ctl node Hca2 latency=1us
fabric_down
rm -f "$(log_file)"

# --- the user's own fabric ---
if ! user_can_reach_build || [ "$hosts" = no ]; then
	skip "fabric: --device ib" "no network namespaces, or a build tree" \
		"that an ordinary user cannot reach"
	summary
	exit
fi
need_hosts 1500
own=$work/own
mkdir -m 700 "$own"
[ -n "${VERBENA_USERNS:-}" ] || chown 65534:65534 "$own"
files=$own/verbena/fabric-default

# u HOST PROGRAM...: an ordinary user's program there, in the own fabric.
u() {
	local host=$1

	shift
	(become "$host" bash -c 'as "$@"' as user env XDG_RUNTIME_DIR="$own" \
		timeout 60 "$verbena" run --device ib -- "$@")
}
u a sh -c 'sleep 12; ibaddr' >"$work/long" 2>&1 &
long=$!
if u a ibstat >"$work/a" 2>&1 && grep -q 'State: Active' "$work/a"; then
	ok "fabric: --device ib: an active adapter at once"
else
	not_ok "fabric: --device ib: an active adapter at once" "$work/a"
fi
u a ibstat -p >"$work/a1" 2>&1
u a ibstat -p >"$work/a2" 2>&1
SECONDS=0
u b ibstat -p >"$work/b1" 2>&1
# opensm looks by itself only each 5 s: here the switch's trap 128 has told it.
check "--device ib: a host that joins later is soon active" test $SECONDS -le 3
u b sh -c 'ibstat -p; ibhosts; sminfo; ibstatus' >"$work/b2" 2>&1
check "--device ib: programs of one host share an adapter" \
	cmp "$work/a1" "$work/a2"
if grep -q '^0x' "$work/a1" && ! grep -qf "$work/a1" <(head -n 1 "$work/b1") &&
	[ "$(head -n 1 "$work/b2")" = "$(head -n 1 "$work/b1")" ]; then
	ok "fabric: --device ib: another host has another adapter"
else
	not_ok "fabric: --device ib: another host has another adapter" \
		"$work/a1" "$work/b1" "$work/b2"
fi
check "--device ib: both are in one subnet" test \
	"$(grep -c '^Ca' "$work/b2")" = 2
check "--device ib: the subnet manager is in the switch" \
	grep -q 'sm lid 1 .*SMINFO_MASTER' "$work/b2"
check "--device ib: ibstatus" grep -q 'state:.*4: ACTIVE' "$work/b2"
wait $long
check "--device ib: it lives as long as a program" \
	grep -q 'LID start' "$work/long"
check "--device ib: it is there at first" test -e "$files/socket"
check "--device ib: it is gone when idle" within 16 test ! -e "$files"
if without_opensm true 2>/dev/null; then
	fails "--device ib without opensm: one sentence" \
		'^verbena fabric: opensm.* is not installed.*apt install opensm' \
		without_opensm "$(command -v bash)" -c \
		"$(declare -f as); as user env XDG_RUNTIME_DIR=$own \
		\"$verbena\" run --device ib -- true"
	check "--device ib without opensm: no more than that" test \
		"$(wc -l <"$work/got")" = 1
fi
summary
