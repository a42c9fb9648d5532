#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# What many queue pairs, many regions and many processes cost, against few.
# shellcheck source=bench/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
bench_begin growth "$0" "$@"
[ "$hosts" = yes ] || bench_cannot "no network namespaces here"
hosts_up 9000 || bench_cannot "network namespaces cannot be made"
address=$HOST_A
VERBENA_TIMEOUT=180
many=10000
regions=1000000
processes=100
[ "$effort" != smoke ] || many=200 regions=5000 processes=5
thousands() {
	echo "$1" | sed -E ':a; s/^([0-9]+)([0-9]{3})/\1,\2/; ta'
}

# turns FROM QPS COLUMN [BY]: 1 ns a message, 2 and 3 KiB a queue pair.
turns() {
	pair root a "$1" "$tools/many_qps" -d roce_veth0 -n "$2" -- \
		"$tools/many_qps" -d roce_veth0 -n "$2" "$address" &&
		awk -v c="$3" -v by="${4:-1}" 'NF == 3 {
			printf "%.6g\n", $c * by }' "$work/client"
}
# One run measures four things; they are kept for the rows that come next.
regions_cost() {
	local kept=$work/regions$((run))

	[ -s "$kept" ] || {
		pair root a a "$tools/many_mrs" -n $regions -d roce_veth0 -- \
			"$tools/many_mrs" -n $regions -d roce_veth0 "$address" ||
			return
		grep -E '^[0-9 ]+$' "$work/client" >"$kept"
	}
	awk -v c="$1" '{ printf "%.6g\n", $c / 1000 }' "$kept"
}
each_to_each() {
	on a timeout -k 2 170 "$verbena" run -- "$tools/all_to_all" \
		-d roce_veth0 -n "$1" -r "$2" </dev/null >"$work/client" 2>&1 &&
		cat "$work/client"
}

for from in a b; do
	[ $from = a ] && where="one host" || where="the wire"
	for n in 100 $many; do
		row "a WRITE on each of $(thousands "$n") QPs in turn, $where" \
			us "1 QP" "<= 1.3x" "" \
			turns $from "$n" 1 0.001 -- turns $from 1 1 0.001
	done
done
row "memory of one of $(thousands $many) idle QPs" KiB "" "<= 12" "" \
	turns b $many 2
row "and when each has sent a message" KiB "" "<= 12" "" \
	turns b $many 3
row "register one more, at $(thousands $regions) regions" us \
	"the first 1,000" "<= 1.3x" "" regions_cost 2 -- regions_cost 1
row "a WRITE between any of $(thousands $regions) regions" us \
	"any of 1,000" "<= 1.3x" "" regions_cost 4 -- regions_cost 3
row "$processes processes, each with each, messages" k/s \
	"2 processes" "" "" \
	each_to_each $processes 20 -- each_to_each 2 20000
bench_end
