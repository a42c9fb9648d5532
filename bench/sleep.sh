#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Programs that sleep until a message comes, against TCP: in ibv_get_cq_event(),
# and in epoll by the descriptor of a completion channel (bench/sleeper.c).
# shellcheck source=bench/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
bench_begin sleep "$0" "$@"
[ "$hosts" = yes ] || bench_cannot "no network namespaces here"
hosts_up 9000 || bench_cannot "network namespaces cannot be made"
# shellcheck disable=SC2034 # verbs() reads them
device=roce_veth0 address=$HOST_A
# shellcheck disable=SC2034
gid=$(gid_index a roce_veth0 "::ffff:$HOST_A")
times=$((span > 0 ? 10000 : 300))

# Half of there and back, us; qperf tells the mean.
tcp_latency() {
	beside 19765 qperf -- qperf "$HOST_A" -t $((span > 0 ? span : 1)) \
		-m 8 -e 6 -u tcp_lat &&
		awk '/latency/ { by = $4 == "ms" ? 1e3 : $4 == "ns" ? 1e-3 : 1
			print $3 * by }' "$work/client"
}
# verbs_late OPTIONS...: the 99th percentile.
verbs_late() {
	verbs_latency "$@" >/dev/null && column 8
}
# sleeper COLUMN OPTIONS...: 1 is the median, 2 the 99th percentile.
sleeper() {
	local wanted=$1 sleeps

	shift
	sleeps=("$tools/sleeper" -n $times "$@" -d roce_veth0)
	pair root a "$from" "${sleeps[@]}" -- "${sleeps[@]}" "$HOST_A" &&
		awk -v wanted="$wanted" 'NF == 3 { print $wanted }' \
			"$work/client"
}

for from in b a; do
	[ $from = b ] && where=veth || where="one host"
	row "ib_send_lat -e -s 8, $where" us "qperf tcp_lat" \
		"<= 1.15x" "<= 0.9x" \
		verbs_latency $from ib_send_lat -e -s 8 -- tcp_latency
	row "ib_send_lat -e -s 8, $where, 99th percentile" us "epoll, TCP" \
		"<= 1.15x" "<= 0.9x" \
		verbs_late $from ib_send_lat -e -s 8 -- sleeper 2 -t
	row "epoll, $where" us "epoll, TCP" "<= 1.15x" "<= 0.9x" \
		sleeper 1 -- sleeper 1 -t
	row "epoll, $where, 99th percentile" us "epoll, TCP" \
		"<= 1.15x" "<= 0.9x" \
		sleeper 2 -- sleeper 2 -t
done
bench_end
