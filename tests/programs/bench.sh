#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# That `make bench` measures: a few rows of it, as short as can be. That the
# figures are numbers, not that they are good.
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"
[ "$hosts" = yes ] || {
	skip bench "no network namespaces here"
	summary
	exit
}
export BENCH_EFFORT=smoke BENCH_OUT=$work/out

# table NAME ROWS POINTS REGEX: so many are measured, and nothing failed.
table() {
	local name=$1 rows=$2 points=$3

	if BENCH_ONLY=$4 "$top/bench/bench.sh" "$name" >"$work/$name" 2>&1 &&
		whole "$work/out/$name.rows" "$rows" 7 &&
		whole "$work/out/$name.curves" "$points" 5 &&
		[ "$(grep -c '^| .* |$' "$work/$name")" -eq $((rows + 1)) ]; then
		ok "bench $name: $rows rows, $points points"
	else
		not_ok "bench $name" "$work/$name"
	fi
}

# whole FILE LINES FIELDS: and the second field of rows, the last of points,
# are numbers.
whole() {
	awk -F '\t' -v lines="$2" -v fields="$3" '
		{ figure = fields == 7 ? $2 : $5 }
		NF != fields || figure !~ /^[0-9]+[0-9.e+-]*$/ { bad = 1 }
		END { exit bad || NR != lines }' "$1"
}

table one_host 2 0 'ib_send_lat -e'
table wire 1 4 '^ib_read_bw -s 1048576$|wire bandwidth'
if command -v opensm >/dev/null; then
	table infiniband 1 0 'ib_send_lat -s 8, one switch'
else
	skip "bench infiniband" "opensm is not installed"
fi
table sleep 2 0 '^ib_send_lat -e -s 8, veth$|^epoll, one host$'
if command -v redis-check-rdb >/dev/null; then
	table sockets 2 0 'redis, 1 client, veth'
else
	skip "bench sockets" "redis-tools is not installed"
fi
if command -v mpirun.openmpi >/dev/null; then
	table mpi 1 0 'allreduce 8 bytes, one host'
else
	skip "bench mpi" "Open MPI is not installed"
fi
table growth 2 0 'idle|each has'
if grep -q '<circle' "$work/out/performance.svg"; then
	ok "bench: the plot has points"
else
	not_ok "bench: the plot has points" "$work/out/performance.svg"
fi
summary
