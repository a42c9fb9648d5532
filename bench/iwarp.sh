#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# iWARP: between two hosts (network namespaces and veth) against the TCP that it
# stands on, with MPA's CRC and without; and two programs of one host.
# shellcheck source=bench/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
bench_begin iwarp "$0" "$@"
[ "$hosts" = yes ] || bench_cannot "no network namespaces here"
hosts_up 9000 || bench_cannot "network namespaces cannot be made"
export VERBENA_DEVICES=iw_veth0
from=b

iperf_span() {
	[ $span -gt 0 ] && REPLY="-t $span" || REPLY="-n 16M"
}
# GB/s that arrived.
tcp() {
	iperf_span
	# shellcheck disable=SC2086 # words
	beside 5201 iperf3 -s -1 -- iperf3 -c "$HOST_A" $REPLY -f k &&
		awk '/receiver/ { printf "%.6g\n", $7 / 8e6 }' "$work/client"
}
# Half of there and back, us.
tcp_latency() {
	beside 19765 qperf -- qperf "$HOST_A" -t $((span > 0 ? span : 1)) \
		-m 8 -e 6 -u tcp_lat &&
		awk '/latency/ { by = $4 == "ms" ? 1e3 : $4 == "ns" ? 1e-3 : 1
			print $3 * by }' "$work/client"
}

# connected FROM WORDS PROGRAM OPTIONS...: WORDS are VERBENA_IWARP's.
connected() {
	local caller=$1 words=$2

	shift 2
	VERBENA_IWARP=$words pair root a "$caller" "$@" -R -F -- \
		"$@" -R -F "$HOST_A"
}
bandwidth() {
	bandwidth_span
	# shellcheck disable=SC2086 # words
	connected "$@" $REPLY && column 4 0.001048576
}
latency() {
	latency_span "$@"
	# shellcheck disable=SC2086 # words
	connected "$@" $REPLY && column 5
}

row "ib_write_bw -R -s 1048576, CRC" GB/s "iperf3 TCP" ">= 0.85x" "" \
	bandwidth b "" ib_write_bw -s 1048576 -- tcp
row "ib_write_bw -R -s 1048576, no CRC" GB/s "iperf3 TCP" ">= 0.95x" "" \
	bandwidth b no-crc ib_write_bw -s 1048576 -- tcp
row "ib_write_lat -R -s 8" us "qperf tcp_lat" "<= 1.15x" "" \
	latency b "" ib_write_lat -s 8 -- tcp_latency
row "ib_send_lat -R -s 8" us "qperf tcp_lat" "<= 1.15x" "" \
	latency b "" ib_send_lat -s 8 -- tcp_latency
row "ib_read_lat -R -s 8 (there and back)" us "qperf tcp_lat" "" "" \
	latency b "" ib_read_lat -s 8 -- tcp_latency
from=a
row "ib_write_bw -R -s 1048576, one host" GB/s "iperf3 TCP" "" "" \
	bandwidth a "" ib_write_bw -s 1048576 -- tcp
row "ib_send_lat -R -s 8, one host" us "qperf tcp_lat" "" "" \
	latency a "" ib_send_lat -s 8 -- tcp_latency
row "ib_read_lat -R -s 8, one host (there and back)" us "qperf tcp_lat" "" "" \
	latency a "" ib_read_lat -s 8 -- tcp_latency
bench_end
