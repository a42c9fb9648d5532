#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The specification's tables of moves and of faults, row by row, over packets
# and without: tests/programs/conformance.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
# shellcheck source=tests/programs/fabric_lib.sh
. "$here/fabric_lib.sh"
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

# --- InfiniBand: addresses are LIDs, and with -6 they have a GRH ---
# one_adapter WHERE OPTIONS...: both ends are in one process.
one_adapter() {
	local where=$1 status=0

	shift
	r Hca3 "$programs/conformance_test" -d ib0 "$@" </dev/null \
		>"$work/out" 2>"$work/err" || status=$?
	take_lines "$where" "$work/out"
	[ $status -eq 0 ] && [ -s "$work/out" ] ||
		not_ok "conformance ends by itself ($status) [$where]" \
			"$work/err"
}
# two_adapters WHERE OPTIONS...: the client's lines are what is judged.
two_adapters() {
	local where=$1 words

	shift
	port=$((port + 1))
	words=("$programs/conformance_test" -d ib0 -p "$port" "$@")
	{ play adapters_serve adapters_ready adapters_call &&
		[ -s "$work/client" ]; } ||
		not_ok "conformance ends by itself [$where]" "$work/server" \
			"$work/client"
	take_lines "$where" "$work/client"
}
adapters_serve() { r Hca4 "${words[@]}" -; }
adapters_ready() { listening here "$port" 20 "$1"; }
adapters_call() { r Hca3 "${words[@]}" localhost; }

topology=/usr/share/doc/ibsim-utils/net-examples/net.2sw2path4hca
if [ -e "$topology" ] && command -v opensm >/dev/null; then
	name=conformance$$
	layer=conformance
	ib_begin
	export XDG_RUNTIME_DIR=$work/run
	mkdir -m 700 "$XDG_RUNTIME_DIR"
	subnet_begins "$topology"
	two_adapters "ib0, two adapters"
	two_adapters "ib0, two adapters, GRH" -6
	one_adapter "ib0, no packets"
	VERBENA_NEAR=off one_adapter "ib0, packets"
	subnet_ends
else
	skip "conformance on ib0" "opensm or ibsim-utils is not installed"
fi
summary
