#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Two programs of one host: without packets, and with them where those are all
# there is: tests/programs/near.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"
export VERBENA_LOG=info

# went near|packets: by what the logs say. A server may never have asked.
went() {
	if grep -q 'no packets to slot' "$work/client"; then
		[ "$1" = near ]
	else
		[ "$1" = packets ] &&
			! grep -q 'no packets to slot' "$work/server"
	fi
}

# try NAME near|packets SERVER... -- CLIENT...
try() {
	local name=$1 way=$2

	shift 2
	if pair root a a "$@" && went "$way"; then
		ok "$name: $(grep -v '^verbena:' "$work/${show:-client}" |
			tail -n 1)"
	else
		not_ok "$name" "$work/server" "$work/client"
	fi
}

[ "$hosts" = no ] && HOSTS_PID_a=here || need_hosts 1500
# Beside an interface's there is loopback's device for who asks for it.
export VERBENA_DEVICES=lo
data=("$programs/data_test" -d roce_lo)
again=("${data[@]}" -n 300 127.0.0.1)
try "every byte compared, no packets" near "${data[@]}" -- "${again[@]}"
export VERBENA_NEAR=off
try "the same, packets wanted" packets "${data[@]}" -- "${again[@]}"
unset VERBENA_NEAR
try "the same, one of them wants packets" packets \
	env VERBENA_NEAR=off "${data[@]}" -- "${again[@]}"
try "the same, one may not reach the other" packets \
	"$programs/deny" "${data[@]}" -- "${again[@]}"
try "the same, the other way" packets \
	"${data[@]}" -- "$programs/deny" "${again[@]}"
try "the same, files may not be large" packets \
	"${data[@]}" -- bash -c 'ulimit -f 1000; exec "$@"' sh "${again[@]}"
# Long messages are copied by both; one that is stopped in the midst is waited
# for, and only by who talks to it.
stops() {
	"$@" &
	for _ in {1..30}; do
		sleep 0.03
		kill -STOP $! && sleep 0.01 && kill -CONT $! || break
	done 2>/dev/null
	wait $!
}
export -f stops
try "the same, one is stopped now and then" near \
	bash -c 'stops "$@"' sh "${data[@]}" -- "${again[@]}"
# One that waits for an event meanwhile is told of the end.
lat=(ib_send_lat -d roce_lo -x 1 -e -s 524288 -n 2000)
try "long messages and events, one is stopped now and then" near \
	bash -c 'stops "$@"' sh "${lat[@]}" -- "${lat[@]}" 127.0.0.1
show=server
try "nothing is written after ibv_dereg_mr" near \
	"$programs/dereg_test" -d roce_lo -- \
	"$programs/dereg_test" -d roce_lo 127.0.0.1
waits() {
	local name=$1

	shift
	if on a timeout -k 2 60 "$verbena" run -- "$@" "$programs/wait_test" \
		-d roce_lo >"$work/client" 2>&1 && went near; then
		ok "$name"
	else
		not_ok "$name" "$work/client"
	fi
}
waits "who waits for an event is woken, and always again"
waits "the same by the engine's thread, on a kernel without futex_waitv" \
	"$programs/deny" -w
hasty=("$verbena" run -- "$programs/hasty_test" -d roce_lo)
rounds=$(span 1000 10000)
for way in on off; do
	name="ibv_dereg_mr right behind ibv_post_send, VERBENA_NEAR=$way"
	if VERBENA_NEAR=$way on a timeout -k 5 60 "${hasty[@]}" "$rounds" \
		>"$work/client" 2>&1; then
		ok "$name: $(tail -n 1 "$work/client")"
	else
		not_ok "$name" "$work/client"
	fi
done
# The first post of a connection waits until the programs have met.
first() {
	local i

	for ((i = 0; i < 25; i++)); do
		on a timeout -k 5 60 "${hasty[@]}" 1 >"$work/client" 2>&1 ||
			return 1
	done
}
name="the same at once after the connection, 25 times"
if first; then
	ok "$name"
else
	not_ok "$name" "$work/client"
fi
lines "a neighbour that stops, lies or is busy" "$verbena" run -- \
	"$programs/neighbour_test" -d roce_lo
name="the log tells which process wrote anything"
if grep -Eq 'slot [0-9]+: process [0-9]+ wrote an impossible stamp' \
	"$work/errors"; then
	ok "$name"
else
	not_ok "$name" "$work/errors"
fi
lines "copies that the kernel denies from some time on" "$verbena" run -- \
	"$programs/denied_test" -d roce_lo
name="each of those had copied before, by the log"
if [ "$(grep -c 'the kernel no longer lets it access' "$work/errors")" -ge \
	12 ]; then
	ok "$name"
else
	not_ok "$name" "$work/errors"
fi
lines "objects of another process" "$verbena" run -- "$programs/import_test" \
	roce_lo
if ! VERBENA_NEAR=off on a timeout -k 5 60 "$verbena" run -- \
	"$programs/import_test" roce_lo >"$work/lines" 2>&1 &&
	grep -q 'ibv_import_pd: Operation not supported' "$work/lines"; then
	ok "the same, packets wanted: refused"
else
	not_ok "the same, packets wanted: refused" "$work/lines"
fi
burst=("$programs/burst_test" -d roce_lo)
try "many small WRITEs at a time" near "${burst[@]}" -- "${burst[@]}" 127.0.0.1
export VERBENA_NEAR=off
try "the same, packets" packets "${burst[@]}" -- "${burst[@]}" 127.0.0.1
unset VERBENA_NEAR

# Where any address can be bound to, another host's is still not this one's,
# though its programs have the same slots.
nonlocal() {
	for version in 4 6; do
		for host in a b; do
			echo "$1" | on $host tee >/dev/null \
				/proc/sys/net/ipv$version/ip_nonlocal_bind
		done
	done
}
if [ "$hosts" = no ]; then
	skip "two hosts that bind to any address" "no network namespaces here"
else
	show=client
	nonlocal 1
	if VERBENA_DEVICES=veth0 pair root a b \
		"$programs/data_test" -d roce_veth0 -- \
		"$programs/data_test" -d roce_veth0 -n 100 "$HOST_A" &&
		went packets; then
		ok "two hosts that bind to any address"
	else
		not_ok "two hosts that bind to any address" \
			"$work/server" "$work/client"
	fi
	try "one host that binds to any address" near "${data[@]}" -- \
		"${again[@]}"
	export VERBENA_DEVICES=iwarp:veth0
	if pair root a b "$programs/users_test" -- \
		"$programs/users_test" "$HOST_A" && went packets; then
		ok "the same, iWARP"
	else
		not_ok "the same, iWARP" "$work/server" "$work/client"
	fi
	unset VERBENA_DEVICES
	nonlocal 0
fi
summary
