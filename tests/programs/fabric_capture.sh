#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# What passes the ports of an emulated InfiniBand subnet, as tshark decodes it;
# and captures whose reader fails, which cost the fabric nothing.
# tests/programs/fabric_capture.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
# shellcheck source=tests/programs/fabric_lib.sh
. "$here/fabric_lib.sh"
tests_begin "$0" "$@"

topology=/usr/share/doc/ibsim-utils/net-examples/net.2sw2path4hca
fabric_begin opensm ibnetdiscover tshark
name=capture$$
ib_begin

fabric_up "$topology"

# begin FILE ARGUMENT...: a capture, whose process is $capture.
begin() {
	local file=$1

	shift
	"$verbena" fabric capture --name "$name" "$@" "$file" \
		2>"$work/said" &
	capture=$!
}
finish() {
	kill -INT "$capture"
	wait "$capture"
}
decode() {
	tshark -X lua_script:"$top/fabricd/ib_link.lua" -r "$1" "${@:2}" \
		2>"$work/tshark"
}
# sees NAME PATTERN FILE
sees() {
	if decode "$3" >"$work/got" && grep -Eq -- "$2" "$work/got"; then
		ok "fabric: $1"
	else
		not_ok "fabric: $1 (wanted: $2)" "$work/got" "$work/tshark"
	fi
}
# is_clean FILE: tshark finds nothing wrong in it.
is_clean() {
	decode "$1" -Y '_ws.malformed || _ws.expert.severity == error' \
		>"$work/bad" && [ ! -s "$work/bad" ] && [ -n "$(decode "$1")" ]
}

begin "$work/all.pcapng" --flow Switch1 all
within 5 test -s "$work/all.pcapng"
opensm_up Hca1 "$work/osm.log"
subnet_up "$work/osm.log" 20
r Hca3 saquery --src-to-dst 5:6 >/dev/null 2>&1
r Hca3 perfquery -x 6 1 >/dev/null 2>&1
r Hca3 ibportstate 2 5 reset >/dev/null 2>&1
sleep 1
check "T19 a capture ends when its user ends it" finish
check "T19 it says how much it saw" \
	grep -Eq '^[0-9]{3,} packets, 0 lost$' "$work/said"
sees "T19 SubnGet(NodeInfo)" 'SubnGet\(NodeInfo\)' "$work/all.pcapng"
sees "T19 an answer" 'SubnGetResp\(NodeInfo\)' "$work/all.pcapng"
sees "T19 a query for a path" 'PathRecord' "$work/all.pcapng"
sees "T19 counters" 'PERF \(PortCounters' "$work/all.pcapng"
sees "T19 link packets" 'FC Init VL=0 FCTBS=' "$work/all.pcapng"
check "T19 nothing malformed" is_clean "$work/all.pcapng"
decode "$work/all.pcapng" -T fields -e frame.interface_name >"$work/ports"
check "T19 ports have their names" grep -qx 'Switch1\[5\]' "$work/ports"

# A program of verbs: 20 writes of 8 KiB, two packets of 4 KiB each, as they come
# in from Hca3 and leave by a trunk.
if command -v ib_write_bw >/dev/null; then
	begin "$work/write.pcapng" Switch1 all
	within 5 test -s "$work/write.pcapng"
	check "T19 ib_write_bw" ib_pair Hca3 Hca4 \
		ib_write_bw -d ib0 -F -s 8192 -n 20
	sleep 0.5
	check "T19 the capture of it ends" finish
	sees "T19 RC RDMA Write" 'LID: 5 . LID: 6 .*RC RDMA Write' \
		"$work/write.pcapng"
	sees "T19 RC Acknowledge" 'LID: 6 . LID: 5 .*RC Acknowledge' \
		"$work/write.pcapng"
	check "T19 nothing of it is malformed" is_clean "$work/write.pcapng"
	# Opcodes 6 and 10 begin a write and have its length; each is seen where
	# it comes in, and where it leaves. Retries may add to them.
	decode "$work/write.pcapng" -Y 'infiniband.reth.dmalen == 8192' \
		-T fields -e frame.interface_name | sort | uniq -c \
		>"$work/writes"
	# shellcheck disable=SC2016 # for awk
	check "T19 each write is seen at both ports" awk '
		$2 == "Switch1[2]" { in_ = $1 }
		$2 ~ /Switch1\[[35]\]/ { out = $1 }
		END { exit !(in_ >= 20 && in_ <= 40 && in_ == out) }' \
		"$work/writes"
else
	skip "fabric: T19 RC RDMA Write" "ib_write_bw is not installed"
fi

# Of one port, without link packets, to a pipe.
"$verbena" fabric capture --name "$name" --seconds 2 Hca3 1 - \
	2>"$work/said" >"$work/one.pcapng" &
capture=$!
within 5 test -s "$work/one.pcapng"
r Hca3 sminfo >/dev/null 2>&1
check "T19 a capture ends in time" wait $capture
sees "T19 SMInfo at one port" 'SubnGet\(SMInfo\)' "$work/one.pcapng"
decode "$work/one.pcapng" | grep -q ' FC ' &&
	not_ok "fabric: T19 no link packets without --flow" ||
	ok "fabric: T19 no link packets without --flow"

# --- ends of its own ---
begin "$work/small.pcapng" --bytes 20K Switch1 all
r Hca3 ibnetdiscover >/dev/null 2>&1
check "a capture ends at its bound" wait $capture
check "it says so" grep -q 'as many bytes as it may' "$work/said"
check "the file has no more" test "$(stat -c %s "$work/small.pcapng")" -le 21480
check "it is whole" is_clean "$work/small.pcapng"

"$verbena" fabric capture --name "$name" Switch1 all /dev/full \
	>"$work/full" 2>&1 && not_ok "fabric: a full disk" "$work/full"
check "a full disk is said" grep -q 'No space left' "$work/full"

# A reader that stops: the fabric goes on, and gives it up.
mkfifo "$work/fifo"
# shellcheck disable=SC2217 # it reads nothing, which is the case
sleep 60 <"$work/fifo" &
sleeper=$!
begin "$work/fifo" --flow Switch1 all
# shellcheck disable=SC2016 # for that shell
check "tools work while nobody reads the capture" r Hca3 sh -c '
	for i in $(seq 40); do saquery -p && ibnetdiscover; done >/dev/null'
says "sminfo, still" 'SMINFO_MASTER' Hca3 sminfo
{
	kill -9 "$capture" "$sleeper"
	wait "$capture" "$sleeper"
} 2>/dev/null
check "a capture whose reader died leaves the fabric alive" \
	r Hca3 ibnetdiscover
check "a capture that its program does not take ends" timeout 120 python3 \
	"$here/fabric_capture_stuck.py" "$XDG_RUNTIME_DIR" "$name" \
	"$verbena"

# --- what is wrong is said ---
wrong() { # NAME PATTERN ARGUMENT...
	if ! "$verbena" fabric capture "${@:3}" >"$work/got" 2>&1 &&
		grep -Eq -- "$2" "$work/got"; then
		ok "fabric: $1"
	else
		not_ok "fabric: $1 (wanted: $2)" "$work/got"
	fi
}
wrong "capture: no such node" 'no node "X"' --name "$name" X 1 "$work/x"
wrong "capture: no such port" 'no port 99' --name "$name" Switch1 99 "$work/x"
wrong "capture: no such fabric" 'no such fabric' --name none Switch1 1 "$work/x"
wrong "capture: no such directory" 'No such file' --name "$name" Switch1 1 \
	"$work/absent/x"
kill "$opensm"
wait "$opensm" 2>/dev/null
kill "$fabric"
summary
