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

# Programs that sleep until a message comes, between two hosts and on one.
for from in b a; do
	[ $from = b ] && what=sleeping || what="sleeping on one host"
	if pair root a $from "$programs/sleep_test" -d roce_veth0 -- \
		"$programs/sleep_test" -d roce_veth0 "$HOST_A"; then
		while read -r line; do
			ok "$what: ${line#ok }"
		done < <(grep '^ok ' "$work/server")
	else
		not_ok "$what" "$work/server" "$work/client"
	fi
done

# The same where the kernel has no asynchronous I/O, by which packets wake them.
if [ "$quick" = no ]; then
	denied=("$programs/deny" -a "$programs/sleep_test" -s -d roce_veth0)
	if pair root a b "${denied[@]}" -- "${denied[@]}" "$HOST_A"; then
		ok "sleeping without asynchronous I/O"
	else
		not_ok "sleeping without asynchronous I/O" "$work/server" \
			"$work/client"
	fi
fi

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

# An adapter that is pulled out: its interface goes, and with it the other end
# of the cable. Ids that are connected hear of it, and one that only listens, at
# a given address.
# removal_seen WHO: rping says so, and ends.
removal_seen() {
	local tries=0

	until grep -q 'device removal' "$work/rping.$1"; do
		tries=$((tries + 1))
		[ $tries -lt 100 ] || break
		sleep 0.05
	done
	if [ $tries -lt 100 ]; then
		ok "rdma_cm: the device goes, $1"
	else
		not_ok "rdma_cm: the device goes, $1" "$work/rping.$1"
	fi
}
if command -v rping >/dev/null; then
	become a timeout -k 5 60 "$verbena" run -- rping -s -a "$HOST_A" \
		>"$work/rping.server" 2>&1 </dev/null &
	server=$!
	sleep 1
	become b timeout -k 5 60 "$verbena" run -- rping -c -v -a "$HOST_A" \
		>"$work/rping.client" 2>&1 </dev/null &
	client=$!
	become a timeout -k 5 60 "$verbena" run -- rping -s -p 7999 \
		-a "$HOST_A" >"$work/rping.listener" 2>&1 </dev/null &
	listener=$!
	tries=0
	until grep -q 'ping data' "$work/rping.client" || [ $tries -eq 100 ]; do
		tries=$((tries + 1))
		sleep 0.05
	done
fi
# What only comes near to that is nothing of the kind.
watch_sees "its address goes" GID_CHANGE ip addr del "$HOST_A/24" dev veth0
watch_sees "its address comes" GID_CHANGE ip addr add "$HOST_A/24" dev veth0
for name in "veth0 lan0" "lan0 veth0"; do
	watch_sees "down, to be renamed to ${name#* }" PORT_ERR \
		ip link set "${name% *}" down
	on a ip link set "${name% *}" name "${name#* }"
	watch_sees "up as ${name#* }" PORT_ACTIVE ip link set "${name#* }" up
done
sleep 0.2
if grep -q FATAL "$work/watch" || cat "$work"/rping.* 2>/dev/null |
	grep -q 'device removal'; then
	not_ok "an interface that stays is no device that goes" "$work/watch" \
		"$work"/rping.*
else
	ok "an interface that stays is no device that goes"
fi
watch_sees "the interface is gone" FATAL ip link del veth0
if command -v rping >/dev/null; then
	removal_seen server
	removal_seen client
	removal_seen listener
	kill $server $client $listener 2>/dev/null
	wait $server $client $listener 2>/dev/null
else
	skip "rdma_cm: the device goes" "no rping here"
fi
kill $watch 2>/dev/null
wait $watch 2>/dev/null

# And comes again, and goes: with one end of the cable on the same host.
on a sh -c "ip link add veth0 type veth peer name veth9 &&
	ip addr add $HOST_A/24 dev veth0 && ip link set veth9 up &&
	ip link set veth0 up" || not_ok "an interface anew"
# The kernel finds the carrier a moment after the interface is made.
carrier() {
	local tries

	for ((tries = 0; tries < 100; tries++)); do
		on a ip -o link show veth0 | grep -q 'state UP' && return
		sleep 0.05
	done
}
for device in roce_veth0 iw_veth0; do
	carrier
	on a timeout -k 5 40 env VERBENA_DEVICES=$device "$verbena" run -- \
		"$programs/removal_test" "$HOST_A" >"$work/removal" 2>&1 ||
		not_ok "removal_test $device" "$work/removal"
	while read -r line; do
		case $line in
		"ok "*) ok "$device: ${line#ok }" ;;
		esac
	done <"$work/removal"
done
summary
