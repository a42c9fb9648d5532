#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Two programs of one host at one adapter of a fabric: without packets, and with
# them where those are all there is. tests/programs/ib_near.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
# shellcheck source=tests/programs/fabric_lib.sh
. "$here/fabric_lib.sh"
tests_begin "$0" "$@"

fabric_begin opensm ib_write_bw ibv_xsrq_pingpong
topology=/usr/share/doc/ibsim-utils/net-examples/net.2sw2path4hca
[ -e "$topology" ] || {
	skip "ib_near" "the examples of ibsim-utils are not installed"
	summary
	exit
}
name=ibnear$$
layer=ib_near
export VERBENA_LOG=info
ib_begin

# Packets that programs of ib0 have sent so far; the adapters of all nodes have
# that name, and a program adds its packets when it ends.
packets() { "$verbena" counters ib0 | awk '/sent_pkts/ { print $NF }'; }

# went near|packets [LEAST]: what the log says, and how many packets were sent
# since $before.
went() {
	local sent=$(($(packets) - before))

	echo "(sent_pkts grew by $sent)" >>"$work/client"
	if grep -q 'no packets to slot' "$work/client" "$work/server"; then
		[ "$1" = near ] && [ $sent -eq 0 ]
	else
		[ "$1" = packets ] && [ $sent -gt "${2:-100}" ]
	fi
}

# try NAME near|packets CLIENT SERVER PROGRAM...
try() {
	local what=$1 way=$2

	shift 2
	before=$(packets)
	if ib_pair "$@" && went "$way"; then
		ok "$layer: $what: $(grep -hv '^verbena:\|^(\|^-*$' \
			"$work/server" "$work/client" | tail -n 1)"
	else
		not_ok "$layer: $what" "$work/server" "$work/client"
	fi
}
data=("$programs/data_test" -d ib0 -n 200)

subnet_begins "$topology"
try "every byte compared, no packets" near Hca3 Hca3 "${data[@]}"
try "the same, addresses with a GRH" near Hca3 Hca3 "${data[@]}" -6
export VERBENA_NEAR=off
try "the same, packets wanted" packets Hca3 Hca3 "${data[@]}"
unset VERBENA_NEAR
try "two adapters of one host: by the switches" packets Hca3 Hca4 \
	"${data[@]}"
try "ib_write_bw at one adapter" near Hca4 Hca4 \
	ib_write_bw -d ib0 -F -n 200
dereg=("$programs/dereg_test" -d ib0)
try "nothing is written after ibv_dereg_mr" near Hca3 Hca3 "${dereg[@]}"

# --- XRC ---
lines_of "$verbena" run --device "ib:$name/Hca3" -- \
	"$programs/xrc_forward_test" -d ib0
VERBENA_NEAR=off lines_of "$verbena" run --device "ib:$name/Hca3" -- \
	"$programs/xrc_forward_test" -d ib0
# The server sends to each client by the target queue pairs of all of them in
# turn, so that what comes to one program is for the shared queue of another.
clients=3
shared=/tmp/xrc_domain # of the program, which all tests share
crowd() { # CLIENT_NODE SERVER_NODE
	local from=$1 at=$2 pids=() pid i status=0

	port=$((port + 1))
	rm -f $shared
	r "$at" ibv_xsrq_pingpong -d ib0 -p $port -c $clients -n 50 \
		>"$work/server" 2>&1 </dev/null &
	pids+=($!)
	listening here $port 20 "${pids[0]}" || return
	for ((i = 0; i < clients; i++)); do
		r "$from" ibv_xsrq_pingpong -d ib0 -p $port -n 50 localhost \
			>"$work/client$i" 2>&1 </dev/null &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do
		wait "$pid" || status=1
	done
	rm -f $shared
	return $status
}
for at in Hca3 Hca4; do
	what="ibv_xsrq_pingpong -c $clients, Hca3 to $at"
	if crowd Hca3 $at; then
		ok "$layer: $what"
	else
		not_ok "$layer: $what" "$work/server" "$work"/client?
	fi
done

# --- the port changes under a connection of one adapter ---
set_lid() { r Hca1 ibportstate -D "$1" 1 lid "$2"; }
port_changes() {
	local pid

	r Hca3 "$programs/ib_verbs_test" follow >"$work/test" 2>&1 &
	pid=$!
	check "it talks to itself" within 20 grep -q '^now another LID' \
		"$work/test"
	check "another LID is set" set_lid "$1" 77
	check "it has seen that" within 20 grep -q '^now the first LID' \
		"$work/test"
	check "the first LID is set" set_lid "$1" 5
	wait $pid || not_ok "$layer: ib_verbs_test follow ends" "$work/test"
	cat "$work/test"
	passed=$((passed + $(grep -c '^ok ' "$work/test")))
	failed=$((failed + $(grep -c '^not ok ' "$work/test")))
}
port_changes "$(r Hca1 ibtracert 1 5 2>/dev/null | awk -F'[][]' '
	/\] ->/ { route = route "," $2 } END { print "0" route }')"

# --- the fabric's process is killed ---
fabric_is_killed() {
	local server client status

	port=$((port + 1))
	r Hca3 ib_write_bw -d ib0 -F -D 50 -p $port >"$work/server" 2>&1 &
	server=$!
	listening here $port 20 $server
	rm -f "$work/client" # the last case's has the same words
	r Hca3 ib_write_bw -d ib0 -F -D 50 -p $port localhost \
		>"$work/client" 2>&1 &
	client=$!
	check "killed: it went near" within 20 grep -q 'no packets to slot' \
		"$work/client"
	kill -KILL "$fabric" "$opensm"
	wait "$fabric" "$opensm" 2>/dev/null
	wait $client
	status=$?
	kill $server 2>/dev/null
	wait $server 2>/dev/null
	if [ $status -ne 0 ] && [ $status -ne 124 ] &&
		grep -q 'status 5' "$work/client"; then # WR_FLUSH_ERR
		ok "$layer: killed: requests that went near are flushed"
	else
		not_ok "$layer: killed: requests that went near are flushed" \
			"$work/client"
	fi
}
subnet_ends
subnet_begins "$topology"
fabric_is_killed

# --- two hosts, which are network namespaces, at one adapter ---
if [ "$hosts" = no ]; then
	skip "ib_near: two hosts at one adapter" "no network namespaces here"
	summary
	exit
fi
need_hosts 1500
subnet_begins "$topology"
at_host() { # HOST NODE PROGRAM...
	local host=$1 node=$2

	shift 2
	become "$host" timeout 60 "$verbena" run --device "ib:$name/$node" \
		-- "$@"
}
two_hosts() {
	words=("$@")
	port=$((port + 1))
	before=$(packets)
	play hosts_serve hosts_ready hosts_call
}
hosts_serve() { at_host a Hca3 "${words[@]}" -p "$port"; }
hosts_ready() { listening a "$port" 20 "$1"; }
hosts_call() { at_host b Hca3 "${words[@]}" -p "$port" "$HOST_A"; }
what="two hosts at one adapter: packets"
if two_hosts "${data[@]}" &&
	! grep -q 'no packets to slot' "$work/client" "$work/server"; then
	ok "$layer: $what: $(tail -n 1 "$work/client")"
else
	not_ok "$layer: $what" "$work/server" "$work/client"
fi
subnet_ends
summary
