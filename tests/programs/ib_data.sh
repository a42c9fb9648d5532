#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Every byte compared over links that damage 1 % of their frames: reliable
# connections lose nothing, others deliver no damaged message.
# tests/programs/ib_data.sh [--full]
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
# shellcheck source=tests/programs/fabric_lib.sh
. "$here/fabric_lib.sh"
limit=8
[ "${VERBENA_QUICK:-no}" = no ] || limit=1
[ "${1:-}" != --full ] || limit=30
tests_begin "$0" "$@"

fabric_begin opensm ib_write_bw ibv_xsrq_pingpong
topology=/usr/share/doc/ibsim-utils/net-examples/net.2sw2path4hca
[ -e "$topology" ] || {
	skip "ib_data" "the examples of ibsim-utils are not installed"
	summary
	exit
}
name=ibdata$$
layer=ib_data
ib_begin

# errors: frames that Switch2 has received damaged by the two trunks.
errors() {
	local at all=0 n

	for at in 3 5; do
		n=$(r Hca4 perfquery 3 $at 2>/dev/null |
			sed -n 's/^PortRcvErrors:\.*//p')
		all=$((all + ${n:-0}))
	done
	echo $all
}
# damaged NAME LEAST PATTERN PROGRAM...: of Hca3 and Hca4, while the trunks
# damaged at least so many frames.
damaged() {
	local what=$1 least=$2 pattern=$3 before after

	shift 3
	before=$(errors)
	pairs "$what" "$pattern" Hca3 Hca4 "$@"
	after=$(errors)
	between "frames that were damaged meanwhile" $((after - before)) \
		"$least" 65535
}
trunks() { # PARAMETER...
	ctl tune Switch1 3 "$@" && ctl tune Switch1 5 "$@"
}

subnet_begins "$topology"
data=("$programs/data_test" -d ib0 -t "$limit" -n 1000000)
pairs "links without faults" 'bytes' Hca3 Hca4 "${data[@]}"
check "the trunks damage 1 % of the frames" trunks corrupt=0.01
damaged "RC, every byte compared" 50 'bytes' "${data[@]}"
if [ "$quick" = no ]; then
	damaged "RC, MTU 256, with a GRH" 50 'bytes' "${data[@]}" -6 -m 256
fi
damaged "UC: what is damaged is lost, and nothing else comes" 5 \
	'^ok UC' "$programs/unreliable_test" -d ib0
damaged "XRC, ib_write_bw" 50 65536 ib_write_bw -c XRC -d ib0 -F -n 500
damaged "XRC, ibv_xsrq_pingpong" 1 '^success' ibv_xsrq_pingpong -d ib0 -n 1000
check "the trunks lose 1 % of the frames" trunks corrupt=0 lose=0.01
pairs "RC, frames that are lost" 'bytes' Hca3 Hca4 "${data[@]}"

# --- the trunks change under programs that run ---
# Each second they damage, lose, or slow frames, or are well again.
worse_and_better() {
	while :; do
		for how in corrupt=0.05 lose=0.02 delay=200us rate=1G \
			corrupt_flow=0.2 corrupt=0; do
			trunks $how || exit
			sleep 0.7
		done
	done
}
check "the trunks are well again" trunks corrupt=0
before=$(errors)
worse_and_better &
changer=$!
pairs "RC, while the trunks change" 'bytes' Hca3 Hca4 \
	"$programs/data_test" -d ib0 -t "$(span 5 $((limit + 3)))" -n 1000000
pairs "XRC, while they change" 65536 Hca3 Hca4 \
	ib_write_bw -c XRC -d ib0 -F -n 1000
check "they changed until then" kill -0 $changer
{
	kill $changer
	wait $changer
} 2>/dev/null
between "frames that were damaged meanwhile" $(($(errors) - before)) 20 65535
subnet_ends
summary
