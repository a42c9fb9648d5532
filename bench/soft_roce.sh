#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Verbena against the kernel's Soft-RoCE (rxe), both inside the same guest of
# docs/LAB.md: the same program with the same options, in turn. bench/guest.sh
# says how either is set up there.
# shellcheck source=bench/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
# shellcheck source=lab/lab.sh
. "$top/lab/lab.sh"
table=soft_roce
# Some instructions that save time in a processor cost it where each is
# interpreted: a string copied by the byte, a product of polynomials for the
# checksum. Both sides do without.
export LAB_CPU=${LAB_CPU:-max,-erms,-fsrm,-pclmulqdq}
[ -n "${VERBENA_USERNS:-}" ] || lab_possible || bench_cannot "$REPLY"
export lab_boot
bench_begin $table "$0" "$@"
trap 'guest_kill; tests_end' EXIT
helper=$top/bench/guest.sh
set_up() {
	lab_patience=60 guest env VERBENA="$verbena" bash "$helper" set_up \
		>"$work/set_up" 2>&1 || {
		cat "$work/set_up"
		return 1
	}
}
echo "  (booting the guest)"
lab_up 9000 || bench_cannot "the guest does not boot"
set_up || bench_cannot "the guest cannot be set up"
# Each run takes seconds here.
[ "$runs" -lt 3 ] || runs=3 curve_runs=1
[ "$effort" = smoke ] || sizes="8 512 4096 65536 1048576"

# inside WHOSE PLACE PROGRAM OPTIONS...: what the client wrote.
inside() {
	again_if_noisy in_guest "$@"
}
in_guest() {
	lab_patience=70 guest env VERBENA="$verbena" timeout -k 2 60 \
		bash "$helper" pair "$@" >"$work/client" 2>&1
}
# A guest that hangs costs the row that it hangs in, not those that follow.
ready() {
	lab_patience=10 guest true >/dev/null 2>&1 && return
	printf '\n    the guest does not answer: another one\n'
	guest_kill
	guest_start 9000 && set_up
}
# By number and not by the clock, which an interpreted guest keeps badly. So
# many that the first half second, in which the interpreter meets most
# instructions for the first time, does not count for much: a few seconds.
span_bytes=500000000 most=100000
[ "$effort" != smoke ] || span_bytes=64000000 most=20000
bandwidth() {
	local bytes=${!#} n

	n=$((span_bytes / bytes))
	n=$((n > most ? most : n))
	inside "$@" -n $n && column 4 0.001048576
}
rate() {
	inside "$@" -n $most && column 5
}
latency() {
	inside "$@" -n $((most / (${!#} > 4096 ? 100 : 10))) && column 5
}
verbena_write_at() { bandwidth verbena cable ib_write_bw -s "$1"; }
rxe_write_at() { bandwidth rxe cable ib_write_bw -s "$1"; }
verbena_send_at() { latency verbena cable ib_send_lat -s "$1"; }
rxe_send_at() { latency rxe cable ib_send_lat -s "$1"; }

# same PLACE "WHAT" UNIT REACH MEASURE OPTIONS...: of ours and of rxe.
same() {
	local place=$1 what=$2 unit=$3 reach=$4 measure=$5 where=veth

	shift 5
	[ "$place" = cable ] || where="one host"
	row "$what, $where" "$unit" rxe "$reach" "" \
		"$measure" verbena "$place" "$@" -- "$measure" rxe "$place" "$@"
}

for program in ib_write_bw ib_send_bw ib_read_bw; do
	for size in 65536 1048576; do
		same cable "$program -s $size" GB/s ">= 3x" bandwidth \
			$program -s $size
	done
done
for program in ib_write_bw ib_send_bw; do
	same cable "$program -s 8, messages" M/s ">= 5x" \
		rate $program -s 8
done
for program in ib_write_lat ib_send_lat ib_read_lat; do
	same cable "$program -s 8" us "<= 1x" latency $program -s 8
done
curve "guest, veth" bandwidth "Verbena, write=verbena_write_at" \
	"rxe, write=rxe_write_at"
curve "guest, veth" latency "Verbena, send=verbena_send_at" \
	"rxe, send=rxe_send_at"
for size in 65536 1048576; do
	same host "ib_write_bw -s $size" GB/s ">= 3x" bandwidth \
		ib_write_bw -s $size
done
same host "ib_write_bw -s 8, messages" M/s ">= 5x" rate ib_write_bw -s 8
for program in ib_write_lat ib_send_lat ib_read_lat; do
	same host "$program -s 8" us "<= 1x" latency $program -s 8
done
# All steps of a thousand connections, from an id to its end.
connecting() {
	local whose=$1 place=$2

	lab_patience=70 guest env VERBENA="$verbena" timeout -k 2 60 \
		bash "$helper" connections "$whose" "$place" 1000 \
		>"$work/client" 2>&1 &&
		awk -F: '/^[a-z ]*: +[0-9.]+ +[0-9.]+ +[0-9.]+/ {
				sum += $2; n++ }
			END { print sum; exit n != 8 }' "$work/client"
}
same cable "cmtime -c 1000, all steps" ms "<= 1.5x" connecting
bench_end
