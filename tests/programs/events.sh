#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Asynchronous events by their causes, and windows: tests/programs/events.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"
need_hosts 9000

# Those of queues.
on a timeout -k 5 60 "$verbena" run -- "$programs/events_test" roce_veth0 \
	>"$work/events" 2>&1 || not_ok "events of queues" "$work/events"
while read -r line; do
	case $line in
	"ok "*) ok "${line#ok }" ;;
	"not ok "*) not_ok "${line#not ok }" ;;
	esac
done <"$work/events"

# Windows, between two hosts and between two programs of one.
for from in b a; do
	for family in 4 6; do
		name="windows from $from, IPv$family"
		if pair root a $from "$programs/windows_test" -d roce_veth0 \
			-$family -- "$programs/windows_test" -d roce_veth0 \
			-$family "$HOST_A"; then
			ok "$name"
		else
			not_ok "$name" "$work/server" "$work/client"
		fi
	done
done

# watch_sees NAME EVENT COMMAND...: the example of rdma-core, unmodified,
# prints the event after the command was run on its host.
watch_sees() {
	local name=$1 event=$2 before tries=0

	shift 2
	before=$(grep -c "$event" "$work/watch")
	on a "$@" || return
	until [ "$(grep -c "$event" "$work/watch")" -gt "$before" ]; do
		tries=$((tries + 1))
		[ $tries -lt 100 ] || {
			not_ok "ibv_asyncwatch: $name" "$work/watch"
			return
		}
		sleep 0.05
	done
	ok "ibv_asyncwatch: $name"
}

: >"$work/watch"
# A line at a time, though it writes to a file.
become a timeout -k 5 60 "$verbena" run -- stdbuf -oL ibv_asyncwatch \
	-d roce_veth0 >"$work/watch" 2>&1 </dev/null &
watch=$!
tries=0
until grep -q 'async event FD' "$work/watch"; do
	tries=$((tries + 1))
	[ $tries -lt 100 ] || break
	sleep 0.05
done
watch_sees "an address more" GID_CHANGE ip addr add 10.88.0.1/24 dev veth0
watch_sees "an address less" GID_CHANGE ip addr del 10.88.0.1/24 dev veth0
watch_sees "the link goes" PORT_ERR ip link set veth0 down
watch_sees "the link comes" PORT_ACTIVE ip link set veth0 up
kill $watch 2>/dev/null
wait $watch 2>/dev/null
summary
