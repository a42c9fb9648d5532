#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Targets that never call verbs again are served: tests/programs/passive.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"

# passive NAME FROM HOW OPTIONS...
passive() {
	local name="passive target, $1" from=$2 how=$3

	shift 3
	if pair root a "$from" "$programs/passive_test" "$@" "$how" -- \
		"$programs/passive_test" "$@" "$how" "$address"; then
		ok "$name: $(tail -n 1 "$work/client")"
	else
		not_ok "$name" "$work/server" "$work/client"
	fi
}

# starved WHAT PROGRAM OPTIONS...: with two programs that spin on every
# processor. A target that has to wait for its turn among them takes some ms;
# one that is starved ends the connection (RETRY_EXC), or takes hundreds. The bounds,
# in us, leave room for other work on the machine.
starved() {
	local name="every processor taken twice, $1" spinners=() i status=0
	local how=(-d roce_veth0 -x "$gid" -F)

	shift
	for ((i = 2 * $(nproc); i > 0; i--)); do
		bash -c 'while :; do :; done' &
		spinners+=($!)
	done
	pair root a b "$@" "${how[@]}" -- \
		"$@" "${how[@]}" "$address" || status=1
	kill "${spinners[@]}"
	wait "${spinners[@]}" 2>/dev/null
	if [ $status -eq 0 ] && is_bounded; then
		ok "$name: $bounded"
	else
		not_ok "$name" "$work/server" "$work/client"
	fi
}

# perftest's last line: the median and the 99th percentile.
is_bounded() {
	bounded=$(awk '$1 == 8 && NF == 9 && $5 < 20000 && $8 < 1000000 {
		print "median " $5 " us, 99 % " $8 " us" }' "$work/client")
	[ -n "$bounded" ]
}

address=127.0.0.1
[ "$hosts" = no ] && HOSTS_PID_a=here || need_hosts 9000
VERBENA_DEVICES=lo passive "sleeping, loopback" a pause -d roce_lo
VERBENA_DEVICES=lo passive "spinning, loopback" a spin -d roce_lo
if [ "$hosts" = yes ]; then
	address=$HOST_A
	passive "sleeping, another host" b pause -d roce_veth0 -6
	passive "spinning, another host" b spin -d roce_veth0 -4
else
	skip "passive target, another host" "no network namespaces here"
fi
if [ "$hosts" = yes ]; then
	gid=$(gid_index a roce_veth0 "::ffff:$address")
	starved "a passive target" ib_read_lat -s 8 -n 300
	starved "asleep for events" ib_send_lat -s 8 -n 300 -e
else
	skip "every processor taken twice" "no network namespaces here"
fi
summary
