#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Whole frames: what rules steer where, perftest between two hosts, and what an
# ordinary user is told: tests/programs/raw.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"
need_hosts 9000

on a timeout -k 5 60 "$verbena" run -- "$programs/raw_test" roce_veth0 veth0 \
	>"$work/cases" 2>&1 || not_ok "raw packets" "$work/cases"
while read -r line; do
	case $line in
	"ok "*) ok "raw packets: ${line#ok }" ;;
	"not ok "*) not_ok "raw packets: ${line#not ok }" ;;
	esac
done <"$work/cases"

mac() {
	on "$1" ip -o link show veth0 | sed 's/.*link.ether \([0-9a-f:]*\).*/\1/'
}

# perftest_pair TOOL OPTIONS...: its server on a, its client on b. They do not
# talk but by the frames themselves: the client waits for the server's rule.
perftest_pair() {
	local tool=$1 tries=0 server client=0

	shift
	: >"$work/server"
	become a timeout -k 5 30 "$verbena" run -- stdbuf -oL "$tool" \
		-d roce_veth0 --server -B "$mac_a" -E "$mac_b" "$@" \
		>"$work/server" 2>&1 </dev/null &
	server=$!
	until grep -q 'MAC attached' "$work/server"; do
		tries=$((tries + 1))
		[ $tries -lt 200 ] || break
		sleep 0.05
	done
	on b timeout -k 5 30 "$verbena" run -- "$tool" -d roce_veth0 \
		--client -B "$mac_b" -E "$mac_a" "$@" \
		>"$work/client" 2>&1 </dev/null || client=$?
	wait $server && [ $client -eq 0 ]
}

if command -v raw_ethernet_bw >/dev/null; then
	mac_a=$(mac a)
	mac_b=$(mac b)
	# By time: frames are lost, as on any Ethernet, and a count of them
	# might not be reached.
	for options in "raw_ethernet_bw -D 1 -s 1024" \
		"raw_ethernet_bw -D 1 -s 64 -j $HOST_B -J $HOST_A -k 7 -K 8" \
		"raw_ethernet_lat -n 200 -s 64"; do
		# shellcheck disable=SC2086 # words they are
		if again_if_noisy perftest_pair $options; then
			ok "$options"
		else
			not_ok "$options" "$work/server" "$work/client"
		fi
	done
	# shellcheck disable=SC2016 # for the inner shell
	if on a bash -c 'as "$@"' as user "$verbena" run -- raw_ethernet_bw \
		-d roce_veth0 --client -B "$mac_b" -E "$mac_a" -n 5 \
		>"$work/user" 2>&1 </dev/null; then
		not_ok "an ordinary user has no raw packets" "$work/user"
	elif grep -q 'need CAP_NET_RAW' "$work/user"; then
		ok "an ordinary user is told of CAP_NET_RAW"
	else
		not_ok "an ordinary user is told of CAP_NET_RAW" "$work/user"
	fi
else
	skip "raw_ethernet_bw, raw_ethernet_lat" "perftest is not installed"
fi
summary
