# SPDX-License-Identifier: BSD-2-Clause
# What the tables' scripts share; sourced. A script measures rows and curves,
# one after the other, and leaves them in $out/TABLE.rows and $out/TABLE.curves
# for bench/bench.sh:
#
#	rows	what, figure, unit, against, figure, reach, then
#	curves	place, metric, who, bytes, figure
#
# separated by tabs. A figure is the median of its runs; what failed is the
# word "failed" and never a number.
# shellcheck shell=bash disable=SC2034,SC2154 # set there, used there

# shellcheck source=tests/programs/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../tests/programs/lib.sh"
tools=$build/bench
only=${BENCH_ONLY:-.}
out=${BENCH_OUT:-$build/bench/out}
export LC_ALL=C

# How long is long enough: in full, for a first look, or only to see that
# everything works.
effort=${BENCH_EFFORT:-full}
case $effort in
full) runs=${BENCH_RUNS:-5} curve_runs=$(((runs + 1) / 2)) span=1 ;;
quick) runs=3 curve_runs=1 span=1 ;;
*) runs=1 curve_runs=1 span=0 ;;
esac

# bench_begin TABLE "$0" "$@": see tests_begin.
bench_begin() {
	table=$1
	shift
	tests_begin "$@"
	mkdir -p "$out"
	rm -f "$out/$table".*
	rows=$out/$table.rows
	curves=$out/$table.curves
	: >"$rows"
	: >"$out/$table.busy"
	: >"$curves"
}

# bench_cannot "WHY": the table is left as it was.
bench_cannot() {
	rm -f "$out/$table".*
	echo "  not measured here: $1"
	exit 0
}

# The table is whole. Its status is the script's: 1 when a row failed.
bench_end() {
	touch "$out/$table.whole"
	echo "$runs" >"$out/$table.runs"
	! cut -f 2,5 "$rows" "$curves" | grep -qw failed
}

median() {
	sort -g "$1" | awk '{ v[NR] = $1 }
		END { h = int((NR + 1) / 2)
			printf "%.6g\n", (v[h] + v[NR + 1 - h]) / 2 }'
}

# What other work there is, in percent of all processors, over a quarter of a
# second.
busy() {
	local before after

	read -ra before </proc/stat
	sleep 0.25
	read -ra after </proc/stat
	echo "${before[*]} ${after[*]}" | awk '{
		for (i = 2; i <= 9; i++)
			all += $(i + NF / 2) - $i
		idle = $(5 + NF / 2) - $5 + $(6 + NF / 2) - $6
		printf "%.0f\n", all ? 100 * (all - idle) / all : 0 }'
}

# Wait for a quiet moment, but not for ever, and remember how quiet it was.
settle() {
	local until=$((SECONDS + ${BENCH_PATIENCE:-0})) now

	now=$(busy)
	while [ "$now" -gt 15 ] && [ $SECONDS -lt $until ]; do
		now=$(busy)
	done
	echo "$now" >>"$out/$table.busy"
}

# What must be so before each run: a table's own.
ready() {
	:
}

# sample SIDE COMMAND...: one run; the command prints its figure, or its status
# is $does_not_apply.
does_not_apply=9
sample() {
	local side=$1 figure status=0

	shift
	[ ! -e "$work/$side.failed" ] || return
	: >"$work/server"
	: >"$work/client"
	ready
	settle
	figure=$("$@" 2>"$work/why") || status=$?
	[ $status -ne $does_not_apply ] || return
	if [[ $figure =~ ^[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?$ ]]; then
		echo "$figure" >>"$work/$side.figures"
		return
	fi
	touch "$work/$side.failed"
	printf '\n    %s: failed\n' "$*"
	tail -qn 6 "$work/why" "$work/server" "$work/client" |
		sed 's/^/    | /'
}

forget() {
	rm -f "$work"/*.figures "$work"/*.failed
}

figure_of() {
	if [ -e "$work/$1.failed" ]; then
		echo failed
	elif [ -s "$work/$1.figures" ]; then
		median "$work/$1.figures"
	else
		echo -
	fi
}

# row "WHAT" UNIT "AGAINST" "REACH" "THEN" COMMAND... [-- COMMAND...]: ours
# and theirs in turn, so that both see the machine in the same mood. REACH is
# "<= 1.5x" of theirs, or "<= 1.5", in the row's unit.
row() {
	local what=$1 unit=$2 against=$3 reach=$4 then=$5 ours=() run

	shift 5
	[[ $what =~ $only ]] || return 0
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		ours+=("$1")
		shift
	done
	[ $# -eq 0 ] || shift
	printf '  %-58s' "$what"
	forget
	for ((run = 0; run < runs; run++)); do
		sample ours "${ours[@]}"
		[ $# -eq 0 ] || sample theirs "$@"
		printf .
	done
	set -- "$(figure_of ours)" "$(figure_of theirs)"
	echo " $1 $unit$([ "$2" = - ] || echo ", $against $2")"
	put_row "$what" "$1" "$unit" "$against" "$2" "$reach" "$then"
}

put_row() { # the seven fields of a line of $rows
	printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$@" >>"$rows"
}

# two_figures "WHAT" "OURS THEIRS" FIRST SECOND OPTIONS...: the two sides in turn.
# FIRST SIDE OPTIONS... makes a run and prints its figure, for figure_of SIDE;
# SECOND SIDE prints another one of what that run has left, for figure_of
# second_SIDE. The caller puts the rows.
two_figures() {
	local what=$1 sides=$2 first=$3 second=$4 run side

	shift 4
	printf '  %-58s' "$what"
	forget
	for ((run = 0; run < runs; run++)); do
		for side in $sides; do
			sample "$side" "$first" "$side" "$@"
			[ -e "$work/$side.failed" ] ||
				"$second" "$side" >>"$work/second_$side.figures"
		done
		printf .
	done
}

# curve PLACE METRIC "WHO=COMMAND"...: each at every size, in turn.
sizes="8 64 512 4096 32768 262144 1048576"
[ "$effort" != smoke ] || sizes="64 4096"
curve() {
	local place=$1 metric=$2 size run who

	shift 2
	[[ "$place $metric" =~ $only ]] || return 0
	for size in $sizes; do
		printf '  %-58s' "$place, $metric, $size bytes"
		forget
		for ((run = 0; run < curve_runs; run++)); do
			for who; do
				sample "${who%%=*}" "${who#*=}" "$size"
				printf .
			done
		done
		for who; do
			curve_point "$place" "$metric" "${who%%=*}" "$size"
		done
		echo
	done
}

curve_point() {
	local figure

	figure=$(figure_of "$3")
	[ "$figure" != - ] || return
	printf ' %s %s' "$3" "$figure"
	printf '%s\t%s\t%s\t%s\t%s\n' "$@" "$figure" >>"$curves"
}

# perftest's last line, a column of it: MiB/s, M messages/s, or us.
column() {
	awk -v column="$1" -v by="${2:-1}" '
		$1 ~ /^[0-9]+$/ && NF >= column { v = $column * by }
		END { if (v > 0) printf "%.6g\n", v }' "$work/client"
}

# How long perftest runs: by the clock, or just a few.
bandwidth_span() {
	[ $span -gt 0 ] && REPLY="-D $span" || REPLY="-n 200"
}
# latency_span OPTIONS...: by the size that follows -s. Not more, because on a
# busy machine whoever does not run waits for milliseconds.
latency_span() {
	local n=200

	while [ "$1" != -s ]; do
		shift
	done
	[ $span -eq 0 ] || n=$(($2 > 32768 ? 1000 : 10000))
	REPLY="-n $n"
}

# verbs FROM PROGRAM OPTIONS...: the server on host a. What is measured is in
# $device, $address and $gid.
verbs() {
	local from=$1

	shift
	set -- "$@" -F -d "$device" -x "$gid"
	pair root a "$from" "$@" -- "$@" "$address"
}

# GB/s, M messages/s, us one way (of ib_read_lat: there and back).
verbs_bandwidth() {
	bandwidth_span
	# shellcheck disable=SC2086 # words
	verbs "$@" $REPLY && column 4 0.001048576
}
verbs_rate() {
	bandwidth_span
	# shellcheck disable=SC2086
	verbs "$@" $REPLY && column 5
}
verbs_latency() {
	latency_span "$@"
	# shellcheck disable=SC2086
	verbs "$@" $REPLY && column 5
}
# At SIZE, for curves.
verbs_write_at() {
	verbs_bandwidth "$from" ib_write_bw -s "$1"
}
verbs_send_at() {
	verbs_latency "$from" ib_send_lat -s "$1"
}

# beside SERVER_PORT SERVER... -- CLIENT...: a pair of programs that know
# nothing of verbs, from $from to a; what they write is in $work/server and
# $work/client. The server may have to be told to go.
beside() {
	local at=$1 server=() pid status=0

	shift
	while [ "$1" != -- ]; do
		server+=("$1")
		shift
	done
	shift
	become a timeout -k 2 60 "${server[@]}" </dev/null \
		>"$work/server" 2>&1 &
	pid=$!
	until_bound "$at" $pid && on "$from" timeout -k 2 60 "$@" \
		</dev/null >"$work/client" 2>&1 || status=1
	{ kill $pid && wait $pid; } 2>/dev/null
	return $status
}

# Until a socket of either kind has that port.
until_bound() {
	local tries=0

	until [ -n "$(on a ss -Hltun "sport = :$1")" ]; do
		tries=$((tries + 1))
		[ $tries -lt 200 ] && kill -0 "$2" 2>/dev/null || return 1
		sleep 0.02
	done
}
