#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Wrong use of verbs, case by case, between two hosts' addresses and on
# loopback: tests/programs/misuse.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"

# cases PROGRAM WHERE OPTIONS...: its lines become ours.
cases() {
	local program=$1 where=$2 verdict rest status=0

	shift 2
	on a timeout -k 5 200 "$verbena" run -- "$programs/$program" \
		"$@" </dev/null >"$work/out" 2>"$work/err" || status=$?
	while read -r verdict rest; do
		case $verdict in
		ok) ok "$rest [$where]" ;;
		not) not_ok "${rest#ok } [$where]" ;;
		skip) skip "${rest%% \#*} [$where]" "${rest#*\# }" ;;
		esac
	done <"$work/out"
	# It ends with 0 or, after a failed case, 1: all else is a crash.
	[ $status -le 1 ] && [ -s "$work/out" ] ||
		not_ok "$program ends by itself ($status) [$where]" "$work/err"
}

misuse() {
	cases bad_input_test "$@"
}

# 65536 objects of a kind, or as many as there may be; in a short run fewer.
objects() {
	[ "$quick" = yes ] || set -- "$@" -n 65536
	cases objects_test "$@"
}

if [ "$hosts" = yes ]; then
	need_hosts 1500
	VERBENA_NEAR=off misuse "veth IPv6, packets" -d roce_veth0 -6
	misuse "veth IPv6" -d roce_veth0 -6
	objects "RoCE" -d roce_veth0 -6
	export VERBENA_DEVICES=iw_veth0
	VERBENA_NEAR=off misuse "iWARP, TCP" -d iw_veth0 -a "$HOST_A"
	misuse "iWARP, no TCP" -d iw_veth0 -a "$HOST_A"
	objects "iWARP" -d iw_veth0
	unset VERBENA_DEVICES
else
	HOSTS_PID_a=here
	skip "misuse on veth" "no network namespaces here"
fi
VERBENA_DEVICES=lo misuse "loopback IPv4" -d roce_lo -4
summary
