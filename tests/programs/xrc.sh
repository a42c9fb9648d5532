#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# XRC between several programs: ibv_xsrq_pingpong's server sends to each client
# by the target queue pairs of all of them in turn, so that what comes to one
# program is for another's shared queue. Between two hosts and on one.
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"
need_hosts 9000
device=roce_veth0
clients=3
shared=/tmp/xrc_domain

# pingpong CLIENT_HOST OPTIONS...: all of them end well.
pingpong() {
	local from=$1 gid pids=() pid i status=0

	shift
	rm -f $shared
	gid=$(gid_index a $device "::ffff:$HOST_A")
	on a timeout -k 5 60 "$verbena" run -- ibv_xsrq_pingpong -d $device \
		-g "$gid" -c $clients "$@" </dev/null >"$work/server" 2>&1 &
	pids+=($!)
	[ "$from" = a ] || gid=$(gid_index b $device "::ffff:$HOST_B")
	listening a "$port" 20 "${pids[0]}" || return
	for ((i = 0; i < clients; i++)); do
		on "$from" timeout -k 5 60 "$verbena" run -- \
			ibv_xsrq_pingpong -d $device -g "$gid" "$@" "$HOST_A" \
			</dev/null >"$work/client$i" 2>&1 &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do
		wait "$pid" || status=1
	done
	return $status
}

for from in b a; do
	for options in "-n 50" "-n 50 -e" "-n 20 -s 60000 -m 4096"; do
		name="ibv_xsrq_pingpong -c $clients $options"
		[ $from = a ] && name+=" [host]" || name+=" [veth]"
		# shellcheck disable=SC2086 # options are words
		if pingpong $from $options; then
			ok "$name"
		else
			not_ok "$name" "$work/server" "$work"/client?
		fi
	done
done
rm -f $shared

# Three programs: who asks, whose target it comes to, whose memory it is.
lines "xrc far: ends well" "$verbena" run -- "$programs/xrc_forward_test" \
	-d $device
summary
