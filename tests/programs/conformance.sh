#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The specification's tables of moves and of faults, row by row, over packets
# and without: tests/programs/conformance.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"

take_lines() {
	local where=$1 verdict rest

	while read -r verdict rest; do
		case $verdict in
		ok) ok "$rest [$where]" ;;
		not) not_ok "${rest#ok } [$where]" ;;
		skip) skip "${rest%% \#*} [$where]" "${rest#*\# }" ;;
		'#') echo "    | $rest" ;;
		esac
	done <"$2"
}

# conformance WHERE OPTIONS...: its lines become ours.
conformance() {
	local where=$1 status=0

	shift
	on a timeout -k 5 60 "$verbena" run -- "$programs/conformance_test" \
		"$@" </dev/null >"$work/out" 2>"$work/err" || status=$?
	take_lines "$where" "$work/out"
	[ $status -eq 0 ] && [ -s "$work/out" ] ||
		not_ok "conformance ends by itself ($status) [$where]" \
			"$work/err"
}

# The tables between two hosts: the client's lines are what is judged.
between() {
	local where=$1

	shift
	{ pair root a b "$programs/conformance_test" "$@" - -- \
		"$programs/conformance_test" "$@" "$HOST_A" &&
		[ -s "$work/client" ]; } ||
		not_ok "conformance ends by itself [$where]" "$work/server" \
			"$work/client"
	take_lines "$where" "$work/client"
}

if [ "$hosts" = yes ]; then
	need_hosts 9000
	between "two hosts, IPv4" -d roce_veth0 -4
	between "two hosts, IPv6" -d roce_veth0 -6
	VERBENA_NEAR=off conformance "veth IPv6, packets" -d roce_veth0 -6
	conformance "veth IPv4, no packets" -d roce_veth0 -4
	export VERBENA_DEVICES=iw_veth0
	VERBENA_NEAR=off conformance "iWARP, TCP" -d iw_veth0 "$HOST_A"
	conformance "iWARP, no TCP" -d iw_veth0 "$HOST_A"
	unset VERBENA_DEVICES
else
	HOSTS_PID_a=here
fi
VERBENA_DEVICES=lo VERBENA_NEAR=off conformance "loopback IPv4, packets" \
	-d roce_lo -4
summary
