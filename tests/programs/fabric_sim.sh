#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# An InfiniBand fabric in virtual time, at length: random fabrics with errors by
# seeds, more than ten thousand ports, and what one processor forwards.
# tests/programs/fabric_sim.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"

protocol=$build/tests/protocol
seeds=10000 first=1 pods=12 turn=0.3
# The layer unit plays the first seeds in a short run, so this one plays others.
[ "$quick" = no ] || seeds=200 first=101 pods=4 turn=0.05

# passes NAME COMMAND...: it ends well; what it printed last is in the name.
passes() {
	local name=$1

	shift
	if "$@" >"$work/out" 2>&1; then
		ok "fabric: $name: $(grep -v '^every' "$work/out" | tail -1)"
	else
		not_ok "fabric: $name" "$work/out"
	fi
}

# within_limits SECONDS MIB: what fab_scale has just used, of the processor and of
# memory.
within_limits() {
	local what seconds mib

	what=$(sed -n 's/.* \([0-9]*\) ports: .*/\1 ports/p' "$work/out")
	seconds=$(sed -n 's/.*, \([0-9.]*\) s of processor.*/\1/p' "$work/out")
	mib=$(sed -n 's/.*; \([0-9]*\) MiB$/\1/p' "$work/out")
	if awk -v s="${seconds:-999}" -v m="${mib:-9999}" -v sl="$1" -v ml="$2" \
		'BEGIN { exit !(s <= sl && m <= ml) }'; then
		ok "fabric: $what take $seconds s, of $1, and $mib MiB, of $2"
	else
		not_ok "fabric: $what are beyond $1 s or $2 MiB" "$work/out"
	fi
}

# forwards BYTES RATE: frames of BYTES, at least RATE million a second.
forwards() {
	local got

	got=$(sed -n "s,^frames of *$1 bytes: \([0-9.]*\) M/s.*,\1,p" \
		"$work/bench")
	if awk -v got="${got:-0}" -v want="$2" 'BEGIN { exit !(got >= want) }'
	then
		ok "fabric: $got M frames of $1 bytes a second, $2 wanted"
	else
		not_ok "fabric: frames of $1 bytes" "$work/bench"
	fi
}

passes "random fabrics" "$protocol/fab_sim" -n "$seeds" "$first"
passes "links between processes" "$protocol/far_sim" -n $((seeds / 20)) \
	"$first"
passes "scale" "$protocol/fab_scale" "$pods"
within_limits 20 512
"$build/bench/fabric_switch" "$turn" >"$work/bench"
forwards 256 1
forwards 4096 0.733 # 3 GB/s
summary
