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
[ "${VERBENA_QUICK:-no}" = no ] || count=40000
[ "${1:-}" != --full ] || count=5000000
export VERBENA_TIMEOUT=$((60 + count / 10000))
tests_begin "$0" "$@"
need_hosts 1500

throw_garbage() {
	b "$programs/garbage" -n $count "$HOST_B" "$HOST_A" &&
		b "$programs/garbage" -n $count "$HOST_B6" "$HOST_A6"
} >"$work/garbage" 2>&1

# That no run has to be repeated when the garbage is all thrown.
hurry_perftest

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
	"$programs/data_test" -d roce_veth0 -t "$(span 3 10)" -n 1000000 \
	"$HOST_A"
# perftest starts to measure after two seconds, and ends two before the end.
lasts=$(span 5 8)
under_fire "ib_write_bw goes on" ib_write_bw -x 1 -D "$lasts" -- \
	ib_write_bw -x 1 -D "$lasts" "$HOST_A"
# Requests to connect: made of captured ones, sent as fast as can be.

captured=()
for file in "$top"/tests/fuzz/corpus/cm_get/captured_*; do
	captured+=(-m "$file")
done

# Memory of the broker at that host, in KiB.
broker_memory() {
	local pid host=HOSTS_PID_$1

	for pid in $(pgrep -f 'verbena broker'); do
		[ "$(readlink "/proc/$pid/ns/net")" != \
			"$(readlink "/proc/${!host}/ns/net")" ] ||
			sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' \
				"/proc/$pid/status"
	done
}

# Until it is enough.
flood() {
	until [ -e "$work/enough" ]; do
		b "$programs/garbage" "${captured[@]}" -n 100000 \
			"$HOST_B" "$HOST_A" || return
	done >"$work/flood" 2>&1
}

# Programs connect, one after the other, and all of them in time.
connects=20
[ "${1:-}" != --full ] || connects=500
become a "$verbena" run -- "$programs/cm_many" -t -v -s "$HOST_A" </dev/null >"$work/server" 2>&1 &
server=$!
until grep -q listening "$work/server"; do sleep 0.05; done
flood &
flooder=$!
begun=$EPOCHREALTIME
slowest=0
bad=0
for ((i = 0; i < connects; i++)); do
	one=$EPOCHREALTIME
	b timeout -k 5 60 "$verbena" run -- "$programs/cm_many" -c "$HOST_A" \
		-n 10 </dev/null >"$work/client" 2>&1 || bad=$((bad + 1))
	one=$(((${EPOCHREALTIME/./} - ${one/./}) / 1000))
	[ $one -le $slowest ] || slowest=$one
done
memory=$(broker_memory a)
touch "$work/enough"
wait $flooder || bad=$((bad + 1))
kill $server
wait $server 2>/dev/null
# A request is nobody's connection before its third message.
opened=$(grep -c ESTABLISHED "$work/server")
[ "$opened" -le $((connects * 10)) ] || bad=$((bad + 1))
said="$((connects * 10)) connections, the slowest ten in $slowest ms;\
 $(tail -n 1 "$work/flood"); the broker has $memory KiB"
if [ $bad -eq 0 ] && [ "${memory:-99999}" -lt 40000 ]; then
	ok "flood of requests: programs connect: $said"
else
	not_ok "flood of requests: programs connect: $bad bad, $opened open, $said" \
		"$work/flood" "$work/server" "$work/client"
fi

# And when it is over, everything is as before.
if pair root a b ibv_rc_pingpong -g 1 -c -- ibv_rc_pingpong -g 1 -c "$HOST_A"
then
	ok "garbage: afterwards"
else
	not_ok "garbage: afterwards" "$work/server" "$work/client"
fi
summary
