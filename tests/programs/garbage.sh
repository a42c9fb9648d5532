#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Garbage and hostile packets at full speed while two hosts talk: nothing
# stops, and the data stays right.
#
#	tests/programs/garbage.sh [--full]
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"

# Half of them over each address family.
count=150000
[ "${1:-}" != --full ] || count=5000000
export VERBENA_TIMEOUT=$((60 + count / 10000))
tests_begin "$0" "$@"
need_hosts 1500

throw_garbage() {
	b "$programs/garbage" -n $count "$HOST_B" "$HOST_A" &&
		b "$programs/garbage" -n $count "$HOST_B6" "$HOST_A6"
} >"$work/garbage" 2>&1

# under_fire NAME SERVER... -- CLIENT...
under_fire() {
	local name=$1 garbage status=0

	shift
	throw_garbage &
	garbage=$!
	pair root a b "$@" || status=$?
	wait $garbage || status=$?
	if [ $status -eq 0 ]; then
		ok "garbage: $name ($(tail -n 1 "$work/garbage"))"
	else
		not_ok "garbage: $name" "$work/garbage" "$work/server" \
			"$work/client"
	fi
}

under_fire "data_test stays right" "$programs/data_test" -d roce_veth0 -- \
	"$programs/data_test" -d roce_veth0 -t 10 -n 1000000 "$HOST_A"
under_fire "ib_write_bw goes on" ib_write_bw -x 1 -D 8 -- \
	ib_write_bw -x 1 -D 8 "$HOST_A"
# And when it is over, everything is as before.
if pair root a b ibv_rc_pingpong -g 1 -c -- ibv_rc_pingpong -g 1 -c "$HOST_A"
then
	ok "garbage: afterwards"
else
	not_ok "garbage: afterwards" "$work/server" "$work/client"
fi
summary
