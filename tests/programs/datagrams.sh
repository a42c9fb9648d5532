#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Datagrams case by case, and multicast groups with members on two hosts, two
# of them on one: tests/programs/datagrams.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"

# cases WHERE OPTIONS...: its lines become ours.
cases() {
	local where=$1 verdict rest status=0

	shift
	on a timeout -k 5 60 "$verbena" run -- "$programs/datagram_test" \
		"$@" </dev/null >"$work/out" 2>"$work/err" || status=$?
	while read -r verdict rest; do
		case $verdict in
		ok) ok "datagrams $rest [$where]" ;;
		not) not_ok "datagrams ${rest#ok } [$where]" ;;
		esac
	done <"$work/out"
	[ $status -le 1 ] && [ -s "$work/out" ] ||
		not_ok "datagrams end by themselves ($status) [$where]" \
			"$work/err"
}

# member HOST FILE OPTIONS...: in the background.
member() {
	local host=$1 file=$2

	shift 2
	become "$host" timeout -k 5 20 "$verbena" run -- \
		"$programs/datagram_test" -d roce_veth0 "$@" \
		</dev/null >"$work/$file" 2>&1 &
	members+=($!)
}

# group GROUP OPTIONS...: three listeners hear what a fourth process sends.
group() {
	local name="datagrams to $1, heard by two processes here, one there"
	local tries=0 pid good=yes
	members=()

	member a one -g "$@" -l
	member a two -g "$@" -l
	member b three -g "$@" -l
	until [ "$(cat "$work"/{one,two,three} 2>/dev/null |
		grep -c '^listening')" -eq 3 ]; do
		tries=$((tries + 1))
		[ $tries -lt 100 ] || break
		sleep 0.1
	done
	on a timeout 20 "$verbena" run -- "$programs/datagram_test" \
		-d roce_veth0 -g "$@" -s </dev/null >"$work/sender" 2>&1 ||
		good=no
	for pid in "${members[@]}"; do
		wait "$pid" || good=no
	done
	if [ $good = yes ]; then
		ok "$name"
	else
		not_ok "$name" "$work"/{sender,one,two,three}
	fi
}

if [ "$hosts" = yes ]; then
	need_hosts 1500
	cases "veth IPv6" -d roce_veth0 -6
	cases "veth IPv4" -d roce_veth0 -4
	group 239.1.2.3 -4
	group ff0e::1:2:3 -6
else
	HOSTS_PID_a=here
	skip "datagrams on veth" "no network namespaces here"
fi
VERBENA_DEVICES=lo cases "loopback IPv4" -d roce_lo -4
summary
