#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Two hosts and a cable (network namespaces and veth): RoCEv2 packets against
# the kernel's TCP and UDP.
# shellcheck source=bench/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
bench_begin wire "$0" "$@"
[ "$hosts" = yes ] || bench_cannot "no network namespaces here"
hosts_up 9000 || bench_cannot "network namespaces cannot be made"
from=b
device=roce_veth0
address=$HOST_A
gid=$(gid_index a $device "::ffff:$HOST_A")

iperf_span() {
	[ $span -gt 0 ] && REPLY="-t $span" || REPLY="-n 16M"
}
# tcp OPTIONS...: GB/s that arrived.
tcp() {
	iperf_span
	# shellcheck disable=SC2086 # words
	beside 5201 iperf3 -s -1 -- iperf3 -c "$HOST_A" $REPLY -f k "$@" &&
		awk '/receiver/ { printf "%.6g\n", $7 / 8e6 }' "$work/client"
}
tcp_at() {
	tcp -l "$1"
}
# Half of there and back, us.
udp_latency_at() {
	[ "$1" -le 32768 ] || return $does_not_apply
	beside 19765 qperf -- qperf "$HOST_A" -t $((span > 0 ? span : 1)) \
		-m "$1" -e 6 -u udp_lat &&
		awk '/latency/ { by = $4 == "ms" ? 1e3 : $4 == "ns" ? 1e-3 : 1
			print $3 * by }' "$work/client"
}
# Millions a second.
udp_rate() {
	local pid

	become a timeout 60 "$tools/udp_rate" -t $((span > 0 ? span : 1)) \
		>"$work/client" 2>"$work/server" &
	pid=$!
	until_bound 4999 $pid || return
	b "$tools/udp_rate" -t $((span > 0 ? span : 1)) -s 64 "$HOST_A" \
		2>>"$work/server"
	wait $pid && awk '{ printf "%.6g\n", $1 / 1e6 }' "$work/client"
}

# Four pairs at a time, with work and port of their own; GB/s together. Eight
# programs fill 16 MiB each with random bytes first, a second of both
# processors, and those that are done measure while others still fill: so the
# first second does not count, for neither side.
# shellcheck disable=SC2030,SC2031
verbs_four() {
	local i pids=() status=0

	bandwidth_span
	[ $span -eq 0 ] || REPLY="-D 5 -f 1"
	for i in 1 2 3 4; do
		# shellcheck disable=SC2086 # words
		(
			work=$work/four$i
			mkdir -p "$work"
			port=$((18515 + i))
			verbs b ib_write_bw -p $port -q 8 -s 1048576 $REPLY &&
				column 4 0.001048576 >"$work/figure"
		) &
		pids+=($!)
	done
	four_together
}
# shellcheck disable=SC2030,SC2031
tcp_four() {
	local i pids=()

	iperf_span
	[ $span -eq 0 ] || REPLY="-t 3 -O 1"
	for i in 1 2 3 4; do
		# shellcheck disable=SC2086 # words
		(
			work=$work/four$i
			mkdir -p "$work"
			port=$((5201 + i))
			beside $port iperf3 -s -1 -p $port -- iperf3 \
				-c "$HOST_A" $REPLY -p $port -f k &&
				awk '/receiver/ { print $7 / 8e6 }' \
					"$work/client" >"$work/figure"
		) &
		pids+=($!)
	done
	four_together
}
# shellcheck disable=SC2031
four_together() {
	local pid status=0

	for pid in "${pids[@]}"; do
		wait "$pid" || status=1
	done
	[ $status -eq 0 ] && cat "$work"/four?/figure |
		awk '{ s += $1 } END { if (NR == 4) printf "%.6g\n", s }'
	status=$?
	tail -n 3 "$work"/four?/{client,server} >&2
	rm -rf "$work"/four?
	return $status
}

# lossy PERMILLE COMMAND...: while both hosts lose that many of a thousand
# packets as they arrive, whatever they are.
lossy() {
	local loss=$1 status=0

	shift
	lose "$loss" && "$@" || status=1
	lose 0
	return $status
}
lose() {
	local host

	for host in a b; do
		on $host nft -f - <<-END || return
			add table inet loss
			delete table inet loss
			table inet loss {
				chain in {
					type filter hook input priority 0;
					meta iifname veth0 numgen random mod 1000 < $1 counter drop
				}
			}
		END
	done
}

for program in ib_write_bw ib_send_bw ib_read_bw; do
	row "$program -s 1048576" GB/s "iperf3 TCP" ">= 1.0x" ">= 1.4x" \
		verbs_bandwidth b $program -s 1048576 -- tcp
done
row "ib_send_lat -s 8" us "qperf udp_lat" "<= 0.7x" "<= 0.5x" \
	verbs_latency b ib_send_lat -s 8 -- udp_latency_at 8
row "ib_write_lat -s 8" us "qperf udp_lat" "<= 0.7x" "<= 0.5x" \
	verbs_latency b ib_write_lat -s 8 -- udp_latency_at 8
row "ib_read_lat -s 8 (there and back)" us "qperf udp_lat" "<= 1.0x" "<= 0.5x" \
	verbs_latency b ib_read_lat -s 8 -- udp_latency_at 8
for program in ib_write_bw ib_send_bw; do
	row "$program -s 64, messages" M/s "UDP datagrams, GSO and GRO" \
		">= 0.7x" ">= 0.9x" \
		verbs_rate b $program -s 64 -- udp_rate
done
row "ib_write_bw, 32 QPs in 4 processes" GB/s "4 iperf3" ">= 1.0x" "" \
	verbs_four -- tcp_four
curve wire bandwidth "Verbena, write=verbs_write_at" "TCP, iperf3=tcp_at"
curve wire latency "Verbena, send=verbs_send_at" "UDP, qperf=udp_latency_at"

hosts_mtu 1500
for program in ib_write_bw ib_send_bw ib_read_bw; do
	row "$program -s 1048576 -m 1024, interface of 1500" GB/s \
		"iperf3 TCP" ">= 0.8x" ">= 1.0x" \
		verbs_bandwidth b $program -s 1048576 -m 1024 -- tcp
done
hosts_mtu 9000

# A batch would be lost as a whole: from here on each packet passes by itself,
# also where nothing is lost.
hosts_unbatched
for loss in 1 10; do
	percent=$((loss / 10)).$((loss % 10))
	[ $loss -eq 1 ] && reach=">= 0.9x" then=">= 0.97x" ||
		reach=">= 0.6x" then=">= 0.85x"
	row "ib_write_bw -s 1048576, $percent % lost" GB/s "itself, none lost" \
		"$reach" "$then" \
		lossy $loss verbs_bandwidth b ib_write_bw -s 1048576 -- \
		verbs_bandwidth b ib_write_bw -s 1048576
	row "ib_write_bw -s 1048576, $percent % lost (TCP)" GB/s \
		"iperf3 TCP, $percent % lost" "> 1.0x" "" \
		lossy $loss verbs_bandwidth b ib_write_bw -s 1048576 -- \
		lossy $loss tcp
done
bench_end
