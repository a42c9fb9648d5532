#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# rdma_cm on the adapters of an emulated fabric, by AF_IB addresses and by the IP
# addresses of IPoIB interfaces: programs of two hosts, which are network
# namespaces, each with its own broker.
# tests/programs/ib_cm.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
# shellcheck source=tests/programs/fabric_lib.sh
. "$here/fabric_lib.sh"
tests_begin "$0" "$@"

fabric_begin opensm ucmatose udaddy
topology=/usr/share/doc/ibsim-utils/net-examples/net.2sw2path4hca
[ -e "$topology" ] || {
	skip "ib_cm" "the examples of ibsim-utils are not installed"
	summary
	exit
}
need_hosts 1500
name=cm$$
layer=ib_cm
test=$programs/ib_cm_test
port=7000
# The GIDs of the adapters, and their LIDs as opensm gives them.
gid3=fe80::200:ca00:0:301 lid3=5
gid4=fe80::200:ca00:0:401 lid4=6

subnet_begins() { # OPTION...: a fabric, and opensm on its Hca1
	rm -f "$work/osm.log"
	fabric_up "$topology" || {
		not_ok "ib_cm: the fabric starts" "$work/fabric"
		summary
		exit
	}
	opensm_up Hca1 "$work/osm.log" "$@"
	check "the subnet comes up" subnet_up "$work/osm.log"
}
# The program that runs below the process: `verbena run` becomes it, but
# `timeout` does not.
program_of() { pgrep -P "$1" || echo "$1"; }
subnet_ends() {
	slain "$opensm"
	fabric_down
}

# node HOST NODE PROGRAM...: this shell becomes the program, which has the node's
# place, on the host.
node() {
	local host=$1 at=$2

	shift 2
	become "$host" timeout -k 5 50 "$verbena" run \
		--device "ib:$name/$at" -- "$@"
}

# Servers listen at no TCP port, so each is given some time. A client that was
# refused while its server starts tries again; but one with many connections
# may wait for ever for those that were accepted.
HEAD_START=0.7
refused='REJECTED|UNREACHABLE|Connection refused'
client_of() { # PID HOST NODE PROGRAM...
	local pid=$1 status

	shift
	for _ in {1..40}; do
		(node "$@") </dev/null >"$work/client" 2>&1 && return
		status=$?
		grep -Eq "$refused" "$work/client" && kill -0 "$pid" ||
			return $status
		sleep 0.1
	done
	return $status
}

# meet NAME SERVER... -- CLIENT...: the server is at Hca4 of host b, the client
# at Hca3 of host a, or at $caller of it. Both end with 0.
caller=Hca3
meet() {
	local what=$1 server=() client=() pid status=0

	shift
	sometimes 2 || return 0
	ends "$@"
	node b Hca4 "${server[@]}" </dev/null >"$work/server" 2>&1 &
	pid=$!
	sleep "$HEAD_START"
	client_of $pid a "$caller" "${client[@]}" || {
		status=$?
		echo "(client: exit status $status)" >>"$work/client"
		kill $pid 2>/dev/null
	}
	wait $pid || status=1
	if [ $status -eq 0 ]; then
		ok "ib_cm: $what"
	else
		not_ok "ib_cm: $what" "$work/server" "$work/client" "$work/fabric"
	fi
}

# said NAME PATTERN FILE: a line of the file matches, soon.
said() {
	if within 10 grep -Eq -- "$2" "$3"; then
		ok "ib_cm: $1"
	else
		not_ok "ib_cm: $1 (wanted: $2)" "$3"
	fi
}

# A connection that stays: its ends are $listener and $connector, which write to
# $work/listener and $work/connector.
joined() { # OPTION...: what follows the port, such as a P_Key
	port=$((port + 1))
	# The last two programs have said the same words.
	: >"$work/listener"
	: >"$work/connector"
	node b Hca4 "$test" listen $gid4 $port "$@" >"$work/listener" 2>&1 &
	listener=$!
	within 10 grep -q listening "$work/listener"
	node a Hca3 "$test" connect $gid3 $gid4 $port "$@" \
		>"$work/connector" 2>&1 &
	connector=$!
	within 10 grep -q way: "$work/connector" &&
		within 10 grep -q way: "$work/listener"
}
# slain PID: the program ends by a signal.
slain() {
	{
		kill -KILL "$(program_of "$1")"
		wait "$1"
	} 2>/dev/null
}
parted() {
	{
		kill "$listener" "$connector"
		wait "$listener" "$connector"
	} 2>/dev/null
}

subnet_begins

# --- unmodified programs ---
meet "ucmatose, port space IB" ucmatose -f gid -b $gid4 -P ib -- \
	ucmatose -f gid -b $gid3 -s $gid4 -P ib
meet "ucmatose, 50 connections" ucmatose -f gid -b $gid4 -c 50 -C 3 -- \
	ucmatose -f gid -s $gid4 -c 50 -C 3
meet "udaddy" udaddy -f gid -b $gid4 -c 5 -C 20 -- \
	udaddy -f gid -b $gid3 -s $gid4 -c 5 -C 20
meet "udaddy, port space IB" udaddy -f gid -b $gid4 -P ib -C 3 -- \
	udaddy -f gid -s $gid4 -P ib -C 3
on_one_adapter() {
	local pid status=0

	node a Hca3 ucmatose -f gid -b $gid3 -c 5 </dev/null \
		>"$work/server" 2>&1 &
	pid=$!
	sleep "$HEAD_START"
	client_of $pid a Hca3 ucmatose -f gid -s $gid3 -c 5 || status=1
	wait $pid || status=1
	cat "$work/server" "$work/client"
	return $status
}
check "two programs of one adapter" on_one_adapter
no_port() { [ -z "$(on "$1" ss -Hluan 'sport = :4791')" ]; }
check "no UDP port is taken for it" no_port a
check "on the other host neither" no_port b

# --- the path is the subnet administrator's ---
check "a connection stays" joined
said "its path has LIDs" "^path: slid $lid3 dlid $lid4 sl 0 mtu 5 pkey 0xffff" \
	"$work/connector"
said "so has its queue pair" "^way: dlid $lid4 sl 0 pkey index 0 global 0" \
	"$work/connector"
said "and that of the other end" "^way: dlid $lid3 sl 0 pkey index 0 global 0" \
	"$work/listener"

# Both brokers are at work.
other_namespace() {
	! (node b Hca3 "$test" listen $gid3 7999) >"$work/other" 2>&1 &&
		grep 'node Hca3 has another connection manager' "$work/other"
}
check "another host cannot use the adapter at the same time" other_namespace
slain "$connector"
said "kill -9 of the caller: the other end is told" DISCONNECTED \
	"$work/listener"
parted
check "a connection after that" joined
slain "$listener"
said "kill -9 of the listener: the caller is told" DISCONNECTED \
	"$work/connector"
parted

# --- the broker is killed ---
broker_of() { # HOST: the process that listens at the broker's name
	on "$1" ss -Hxlpn | sed -n 's/.*@verbena\/broker .*pid=\([0-9]*\).*/\1/p'
}
check "a connection, before the broker is killed" joined
before=$(broker_of a)
kill -KILL "$before"
another_broker() {
	local now

	now=$(broker_of a)
	[ -n "$now" ] && [ "$now" != "$before" ]
}
check "another broker begins" within 10 another_broker
kill -0 "$connector" || not_ok "ib_cm: the caller lives" "$work/connector"
slain "$listener"
said "it knows the connection" DISCONNECTED "$work/connector"
parted
meet "ucmatose at the next broker" ucmatose -f gid -b $gid4 -- \
	ucmatose -f gid -b $gid3 -s $gid4

# --- groups ---
group=ff12:e01b::4:5
receives() { # NODE FILE: becomes a member of the group on host b
	node b "$1" "$test" receive "$2" $group 20
}
# Send until both programs have what they wait for: the switches' tables come after
# the answer about the group.
sends_until() { # PID PID
	for _ in {1..20}; do
		(node a Hca3 "$test" send $gid3 $group 20) \
			>"$work/sender" 2>&1 || return
		within 1 both_ended "$@" && return
	done
	return 1
}
both_ended() { ! kill -0 "$1" 2>/dev/null && ! kill -0 "$2" 2>/dev/null; }
in_a_group() {
	local one two status=0

	receives Hca4 $gid4 >"$work/one" 2>&1 &
	one=$!
	receives Hca4 $gid4 >"$work/two" 2>&1 &
	two=$!
	within 10 grep -q joined "$work/one" &&
		within 10 grep -q joined "$work/two" &&
		sends_until $one $two || status=1
	wait $one || status=1
	wait $two || status=1
	cat "$work/one" "$work/two" "$work/sender"
	return $status
}
check "a group's datagrams reach two programs" in_a_group
says "the group has a LID of the manager's" 'mlid 0xc[0-9a-f]{3}' Hca1 \
	cat "$work/sender"
no_members() {
	! r Hca1 saquery -m 2>/dev/null | grep -q '4:5\|04:0005\|:4:5'
}
check "who leaves is no member any more" within 5 no_members

# --- services ---
# The ID of a port of the port space IB.
service=0x13f1d58
reports() {
	local at=$1

	shift
	r "$at" "$programs/umad_reports" "$@" >"$work/reports" 2>&1
}
services() { r Hca1 saquery -S 2>/dev/null; }
check "a program registers a service" reports Hca4 service $service verbena 10
check "and another one" reports Hca3 service 0x77 other 1000
says "saquery -S lists the first" 'ServiceName\.+verbena$' Hca1 saquery -S
says "and the second" 'ServiceID\.+0x0*77$' Hca1 saquery -S
finds() { # PATTERN SERVICE
	(node a Hca3 "$test" find $gid3 "$2") >"$work/find" 2>&1
	cat "$work/find"
	grep -Eq -- "$1" "$work/find"
}
check "RAI_SA: a name leads to a port" \
	finds "^service $service at $gid4 pkey 0xffff" verbena
check "RAI_SA: so does an ID" finds "^service $service at $gid4" $service
check "RAI_SA: an unknown service" finds '^RDMA_CM_EVENT_ADDRINFO_ERROR -22' \
	nobody
reaches() {
	local server status=0

	: >"$work/listener" # the last one was listening, too
	node b Hca4 "$test" listen $gid4 $((service & 0xffff)) \
		>"$work/listener" 2>&1 &
	server=$!
	within 10 grep -q listening "$work/listener" &&
		(node a Hca3 "$test" reach verbena) >"$work/reach" 2>&1 ||
		status=1
	wait $server || status=1
	cat "$work/listener" "$work/reach"
	return $status
}
check "RAI_SA: a connection to what has been found" reaches
check "the end of a registration" reports Hca3 no-service 0x77 other
none_left() { ! services | grep -q ServiceName; }
check "the end of a lease" within 15 none_left
check "RAI_SA: the service is gone" \
	finds '^RDMA_CM_EVENT_ADDRINFO_ERROR -22' verbena

# --- IP addresses ---
interface() { # HOST NODE ADDRESS...
	local host=$1 at=$2

	shift 2
	become "$host" "$verbena" ipoib --device "ib:$name/$at" "$@" \
		>"$work/interface_$host" 2>&1 &
}
pings() { within 20 on "$1" ping -c 1 -W 1 "$2"; }
# Servers of cmtime and mckey do not end, or need a member more.
over_ip() {
	local to=10.9.0.4

	meet "IPv4: rping" rping -s -a $to -C 10 -- rping -c -a $to -C 10 -V
	meet "IPv4: rping at any address" rping -s -a 0.0.0.0 -C 5 -- \
		rping -c -a $to -C 5
	meet "IPv6: rping" rping -s -a fd09::4 -C 5 -- rping -c -a fd09::4 -C 5
	meet "IPv4: ucmatose" ucmatose -c 20 -- ucmatose -s $to -c 20
	meet "IPv4: udaddy" udaddy -c 3 -- udaddy -s $to -c 3
	meet "IPv4: rdma_xclient" rdma_xserver -- rdma_xclient -s $to
	meet "IPv4: rstream" rstream -S 4096 -I 10 -C 10 -- \
		rstream -s $to -S 4096 -I 10 -C 10
	meet "IPv4: ib_write_bw -R" ib_write_bw -R -F -n 500 -- \
		ib_write_bw -R -F -n 500 $to
	check "IPv4: nobody has the address" unreachable
	check "IPv4: a group of the port space IPoIB" in_ipoib_group
}
# The interfaces are in the group already, so a member with another Q_Key than
# IPoIB's would be refused.
in_ipoib_group() {
	local group=239.5.5.5 words=(-p 0x0002 -C 3) status=0 receiver

	on a ip addr add $group/32 dev ib0 autojoin
	within 10 r Hca3 sh -c 'saquery -g | grep -q f05:505' || return
	node b Hca4 stdbuf -oL mckey -m $group -b 10.9.0.4 "${words[@]}" \
		>"$work/receiver" 2>&1 &
	receiver=$!
	within 10 grep -q 'joined dgid' "$work/receiver" &&
		(node a Hca3 mckey -m $group -s -b 10.9.0.3 "${words[@]}") \
			>"$work/sender" 2>&1 || status=1
	[ $status -eq 0 ] || kill $receiver
	wait $receiver || status=1
	cat "$work/receiver" "$work/sender"
	return $status
}
unreachable() {
	! (node a Hca3 rping -c -a 10.9.0.77 -C 1) >"$work/none" 2>&1
	cat "$work/none"
	grep -q "ADDR_ERROR, error -110" "$work/none" # in rping's 2 s
}
if ! "$verbena" help 2>&1 | grep -q '^  ipoib ' ||
	[ ! -c /dev/net/tun ]; then
	skip "ib_cm: IP addresses" "no verbena ipoib here, or no /dev/net/tun"
else
	interface a Hca3 10.9.0.3/24 fd09::3/64
	interface_a=$!
	interface b Hca4 10.9.0.4/24 fd09::4/64
	interface_b=$!
	check "IP: the interfaces reach each other" pings a 10.9.0.4 &&
		pings a fd09::4 && over_ip
	kill $interface_a $interface_b
	wait $interface_a $interface_b 2>/dev/null
fi

# --- nobody answers for paths ---
route_fails() { # ERROR
	(node a Hca3 "$test" connect $gid3 $gid4 7000) >"$work/route" 2>&1
	cat "$work/route"
	grep -q "ROUTE_ERROR -$1$" "$work/route"
}
manager=$(program_of "$opensm")
kill -STOP "$manager"
check "a subnet manager that is stopped: a route times out" route_fails 110
kill -CONT "$manager"
# Its node answers that nobody serves there, as Linux does.
slain "$opensm"
check "kill -9 of the subnet manager: there is no route" route_fails 22
fabric_down

# --- partitions ---
cat >"$work/partitions" <<-END
	Default=0x7fff, ipoib : ALL=full, SELF=full;
	blue=0x0002 : 0x0200ca0000000301=full, 0x0200ca0000000401=full;
	red=0x0003 : 0x0200ca0000000301=full;
END
subnet_begins -P "$work/partitions"
check "partitions: a connection in one that both have" joined 0x8002
said "partitions: its path has the P_Key" 'pkey 0x8002' "$work/connector"
said "partitions: and its queue pair" 'pkey index [1-9]' "$work/listener"
parted
no_path() {
	(node a Hca3 "$test" connect $gid3 $gid4 7000 0x8003) \
		>"$work/red" 2>&1
	cat "$work/red"
	grep -q "ROUTE_ERROR -22$" "$work/red"
}
check "partitions: no path in one that the peer has not" no_path
subnet_ends

# --- a fabric that nobody uses any more ends ---
ended() { ! kill -0 "$fabric" 2>/dev/null; }
lingers() {
	# longer than the first program takes to come, on a full machine, too
	fabric_up --sm --linger 3 "$topology" &&
		within 30 r Hca3 sh -c 'ibstat ib0 1 | grep -q Active' &&
		meet "a fabric with its own manager" ucmatose -f gid -b $gid4 -- \
			ucmatose -f gid -s $gid4 && within 20 ended
}
check "no broker keeps a fabric alive" lingers

summary
