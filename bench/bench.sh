#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# `make bench`: measures Verbena against what else there is, in turn, at the
# same moment, on this machine; prints the tables and keeps them in
# docs/PERFORMANCE.md, with a plot.
#
#	bench/bench.sh [TABLE...]	see $tables below; none: all of them
#
# BENCH_ONLY=REGEX	only rows and curves with such names
# BENCH_QUICK=1		fewer and shorter runs, for a first look
# BENCH_RUNS=N		runs of each side, instead of five
# BENCH_PATIENCE=SECONDS	before each run, wait so long for a quiet machine
#
# What is not the whole of a table, at full length, does not go into docs/.
set -u
tables=(one_host wire iwarp sleep sockets busy mpi infiniband soft_roce growth profile)
here=$(dirname "$(readlink -f "$0")")
top=$(dirname "$here")
build=${VERBENA_BUILD:-$top/build}
page=$top/docs/PERFORMANCE.md
points=$top/docs/performance.tsv
export BENCH_OUT=${BENCH_OUT:-$build/bench/out}
export BENCH_EFFORT=${BENCH_EFFORT:-full}
[ -z "${BENCH_QUICK:-}" ] || BENCH_EFFORT=quick

commit() {
	local commit

	commit=$(git -C "$top" rev-parse --short HEAD 2>/dev/null) || {
		echo "no commit"
		return
	}
	git -C "$top" diff --quiet HEAD -- '*.[chS]' meson.build 2>/dev/null ||
		commit+=", changed"
	echo "commit $commit"
}

# circumstances TABLE COMMIT: the line above a table: when, where, what.
circumstances() {
	local processor

	processor=$(sed -n 's/^model name[^:]*: //p;T;q' /proc/cpuinfo)
	echo "$(date -u +'%Y-%m-%d %H:%M') UTC, $2;" \
		"${processor:-$(uname -m)}, $(nproc) processors," \
		"Linux $(uname -r);" \
		"runs: $(cat "$BENCH_OUT/$1.runs");" \
		"before each, other work kept the processors" \
		"$(sort -n "$BENCH_OUT/$1.busy" | awk '{ v[NR] = $1 }
			END { print v[int((NR + 1) / 2)] + 0 }') % busy."
}

# splice TABLE FILE: between the page's two marks for it.
splice() {
	awk -v from="<!-- bench $1 -->" -v with="$2" '
		$0 == from {
			print
			while ((getline line < with) > 0)
				print line
			inside = 1
		}
		$0 == "<!-- end -->" { inside = 0 }
		!inside' "$page" >"$page.new" && mv "$page.new" "$page"
}

# The points of the places just measured take the place of older ones.
keep_points() {
	[ -s "$1" ] || return 0
	touch "$points"
	{
		awk -F '\t' 'NR == FNR { new[$1] = 1; next } !($1 in new)' \
			"$1" "$points"
		cat "$1"
	} >"$points.new" && mv "$points.new" "$points"
}

# What the table's script left: rows, or a text that is ready.
table() {
	if [ -s "$BENCH_OUT/$1.rows" ]; then
		awk -f "$here/table.awk" "$BENCH_OUT/$1.rows"
		echo
	else
		cat "$BENCH_OUT/$1.text"
	fi
}

measure() {
	local table=$1 status=0 made_of

	echo "== $table"
	made_of=$(commit) # as it was built, whatever happens meanwhile
	"$here/$table.sh" || status=1
	[ -e "$BENCH_OUT/$table.busy" ] || return $status # not here
	[ -e "$BENCH_OUT/$table.whole" ] || {
		echo "bench: $table was interrupted" >&2
		return 1
	}
	{
		echo
		circumstances "$table" "$made_of"
		echo
		table "$table"
	} >"$BENCH_OUT/$table.md"
	cat "$BENCH_OUT/$table.md"
	[ "$BENCH_EFFORT" = full ] && [ -z "${BENCH_ONLY:-}" ] ||
		return $status
	splice "$table" "$BENCH_OUT/$table.md"
	keep_points "$BENCH_OUT/$table.curves"
	return $status
}

failed=0
mkdir -p "$BENCH_OUT"
[ $# -gt 0 ] || set -- "${tables[@]}"
for table; do
	[ -x "$here/$table.sh" ] && [ "$table" != bench ] || {
		echo "bench: no table $table" \
			"(${tables[*]})" >&2
		exit 2
	}
	measure "$table" || failed=1
done
if [ "$BENCH_EFFORT" = full ] && [ -s "$points" ]; then
	awk -f "$here/plot.awk" "$points" >"$top/docs/performance.svg"
else
	cat "$BENCH_OUT"/*.curves 2>/dev/null |
		awk -f "$here/plot.awk" >"$BENCH_OUT/performance.svg"
	echo "A first look: docs/ is as it was; see $BENCH_OUT."
fi
[ $failed -eq 0 ] || echo "bench: some rows failed, see above" >&2
exit $failed
