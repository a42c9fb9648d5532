#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Programs that find each other through librdmacm: unmodified ones, between
# two hosts and on one; ports. Crowds and crashes are churn.sh's.
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"
need_hosts 1500
hurry_perftest

# They listen on no TCP port: the server is given some time, and on a busy
# machine some more: a client that was refused while it starts tries again.
HEAD_START=0.3
refused='REJECTED|UNREACHABLE|Connection refused|Unexpected CM event bl blka 8'

# client_of HOST PID PROGRAM...: with the server's PID.
client_of() {
	local from=$1 pid=$2 status hurried

	shift 2
	hurry "$1"
	for _ in {1..15}; do
		on "$from" timeout -k 5 30 "${hurried[@]}" "$verbena" run -- \
			"$@" </dev/null >"$work/client" 2>&1 && return
		status=$?
		grep -Eq "$refused" "$work/client" && kill -0 "$pid" ||
			return $status
		sleep 0.3
	done
	return $status
}

# meet NAME SERVER_HOST CLIENT_HOST SERVER... -- CLIENT...: both end with 0.
meet() {
	local name=$1 at=$2 from=$3 server=() pid status=0 all=("$@") hurried

	shift 3
	while [ "$1" != -- ]; do
		server+=("$1")
		shift
	done
	shift
	sometimes 3 || return 0
	command -v "$1" >/dev/null || {
		skip "$name" "no $1 here"
		return
	}
	hurry "${server[0]}"
	become "$at" timeout -k 5 30 "${hurried[@]}" "$verbena" run -- \
		"${server[@]}" </dev/null >"$work/server" 2>&1 &
	pid=$!
	sleep "$HEAD_START"
	client_of "$from" $pid "$@" || {
		status=$?
		echo "(client: exit status $status)" >>"$work/client"
	}
	# Some servers wait for ever, and all for a client that failed.
	[ "${SERVER_STAYS:-no}" = no ] && [ $status -eq 0 ] ||
		kill $pid 2>/dev/null
	if ! wait $pid && [ "${SERVER_STAYS:-no}" = no ]; then
		status=1
	fi
	if [ $status -eq 0 ]; then
		ok "$name"
	elif [ "${again:-0}" -lt 3 ] &&
		grep -q 'get_cm_event: Bad file' "$work/client"; then
		# rping's thread asked the channel that its main thread had
		# just destroyed, all work done: its own race.
		again=$((${again:-0} + 1)) meet "${all[@]}"
	else
		not_ok "$name" "$work/server" "$work/client"
	fi
}

everything() {
	local at=$1 from=$2 ip=$3 ip6=$4 where=$5

	meet "rping, $where" "$at" "$from" \
		rping -s -a "$ip" -C 20 -- rping -c -a "$ip" -C 20 -V
	meet "rping, IPv6, $where" "$at" "$from" \
		rping -s -a "$ip6" -C 20 -- rping -c -a "$ip6" -C 20 -V
	meet "rping, any address, both families, $where" "$at" "$from" \
		rping -s -a :: -C 5 -- rping -c -a "$ip" -C 5
	meet "ucmatose, 20 connections, $where" "$at" "$from" \
		ucmatose -c 20 -C 10 -- ucmatose -s "$ip" -c 20 -C 10
	meet "ucmatose, a given address, $where" "$at" "$from" \
		ucmatose -b "$ip" -c 100 -C 2 -- \
		ucmatose -s "$ip" -c 100 -C 2
	meet "ucmatose, port space IB, $where" "$at" "$from" \
		ucmatose -P ib -- ucmatose -s "$ip" -P ib
	meet "ucmatose, by GID (AF_IB), $where" "$at" "$from" \
		ucmatose -f gid -b "::ffff:$ip" -c 10 -C 3 -- \
		ucmatose -f gid -s "::ffff:$ip" -c 10 -C 3
	meet "rdma_client, $where" "$at" "$from" \
		rdma_server -- rdma_client -s "$ip"
	meet "rdma_xclient, $where" "$at" "$from" \
		rdma_xserver -- rdma_xclient -s "$ip"
	meet "rdma_xclient, XRC, $where" "$at" "$from" \
		rdma_xserver -c x -- rdma_xclient -c x -s "$ip"
	meet "udaddy, $where" "$at" "$from" \
		udaddy -c 5 -C 20 -- udaddy -s "$ip" -c 5 -C 20
	meet "udaddy, IPv6, $where" "$at" "$from" \
		udaddy -b "$ip6" -- udaddy -s "$ip6"
	meet "udaddy, by GID (AF_IB), $where" "$at" "$from" \
		udaddy -f gid -b "$ip6" -C 3 -- \
		udaddy -f gid -s "$ip6" -C 3
	# It does not mind being refused.
	HEAD_START=1 SERVER_STAYS=yes meet "cmtime, 100 connections, $where" "$at" "$from" \
		cmtime -c 100 -- cmtime -s "$ip" -c 100
}

# lines_of PROGRAM...: a line of it for each.
lines_of() {
	local word rest

	while read -r word rest; do
		case $word in
		ok) ok "$rest" ;;
		verbena:) ;; # the mistakes that the test makes on purpose
		*) not_ok "${1##*/}: $word $rest" ;;
		esac
	done < <(on a timeout -k 5 30 "$verbena" run -- "$@" 2>&1 ||
		echo "not ok: exit status $?")
}

# sees NAME FILTER FIELD... -- VALUES: what was captured has such packets, all
# with these values, one line of them each.
sees() {
	local name=$1 filter=$2 fields=()

	shift 2
	while [ "$1" != -- ]; do
		fields+=(-e "$1")
		shift
	done
	tshark -r "$work/captured" -Y "$filter" -T fields -E separator=' ' \
		"${fields[@]}" 2>/dev/null | sort -u >"$work/seen"
	if [ "$(cat "$work/seen")" = "$2" ]; then
		ok "$name"
	else
		not_ok "$name" "$work/seen"
	fi
}

# nobody_at NAME ADDRESS STATUS: who takes no requests is not waited for. It is
# told in seconds, and was in two minutes.
nobody_at() {
	local begun=$SECONDS

	b timeout -k 5 60 "$verbena" run -- rping -c -a "$2" -C 1 \
		</dev/null >"$work/client" 2>&1
	echo "after $((SECONDS - begun)) s" >>"$work/client"
	if grep -q "UNREACHABLE, error $3" "$work/client" &&
		[ $((SECONDS - begun)) -lt 30 ]; then
		ok "nobody there: $1"
	else
		not_ok "nobody there: $1" "$work/client"
	fi
}

# Before anything of Verbena's runs on host a.
nobody() {
	if ! command -v rping >/dev/null; then
		skip "nobody there" "no rping here"
		return
	fi
	nobody_at "a host without Verbena" "$HOST_A" -111
	nobody_at "a host without Verbena, IPv6" "$HOST_A6" -111
	nobody_at "no such host" "${HOST_A%.*}.99" -113
	nobody_at "no such host, IPv6" "${HOST_A6%::*}::99" -113
}

# Few ports, and one of them reserved; and options that are seen outside.
rules() {
	local range

	range=$(a sysctl -n net.ipv4.ip_local_port_range)
	a sysctl -qw net.ipv4.ip_local_port_range="50000 50020" \
		net.ipv4.ip_local_reserved_ports=50001
	lines_of "$programs/cm_rules" "$HOST_A" "$HOST_A6"
	a sysctl -qw net.ipv4.ip_local_port_range="$range" \
		net.ipv4.ip_local_reserved_ports=
	if ! command -v ucmatose >/dev/null; then
		skip "ucmatose, TOS" "no ucmatose here"
		return
	fi
	meet "ucmatose, TOS" a b ucmatose -C 3 -- ucmatose -t 0x68 \
		-s "$HOST_A" -C 3
}
rules_captured() {
	local dumpcap

	become a dumpcap -q -i lo -i veth0 -f 'udp port 4791' \
		-w "$work/captured" >"$work/dumpcap" 2>&1 &
	dumpcap=$!
	for _ in {1..100}; do
		! grep -q File: "$work/dumpcap" || break
		sleep 0.05
	done
	rules
	sleep 0.5
	kill -INT $dumpcap
	wait $dumpcap
	sees "ACK_TIMEOUT and TOS, in the REQ" \
		'infiniband.mad.attributeid == 0x0010 and ip.dsfield == 0x68' \
		infiniband.cm.req.prim_tfcclass \
		infiniband.cm.req.prim_localacktout -- "0x68 0x0d
0x68 0x13"
	sees "TOS, of what the connection sends" \
		"ip.src == $HOST_B and infiniband.bth.opcode < 0x20" \
		ip.dsfield -- 0x68
}

nobody
lines_of "$programs/cm_corners" "$HOST_A"
lines_of "$programs/cm_late" "$HOST_A"
if command -v dumpcap >/dev/null && command -v tshark >/dev/null; then
	rules_captured
else
	rules
	skip "options, seen outside" "no tshark"
fi

everything a b "$HOST_A" "$HOST_A6" "two hosts"
everything a a "$HOST_A" "$HOST_A6" "one host"

# Loopback addresses are no device's: as on Linux, they lead through the
# interface's, whichever address of this host's the server listens at.
loopback() {
	local at where=$1

	for at in 0.0.0.0 127.0.0.1 "$HOST_A"; do
		meet "rping to 127.0.0.1, listener at $at, $where" a a \
			rping -s -a $at -C 5 -- rping -c -a 127.0.0.1 -C 5 -V
	done
	for at in :: ::1 "$HOST_A6"; do
		meet "rping to ::1, listener at $at, $where" a a \
			rping -s -a $at -C 5 -- rping -c -a ::1 -C 5 -V
	done
}
loopback_all() {
	loopback "$1"
	meet "rping to 127.0.0.2, $1" a a \
		rping -s -a 127.0.0.2 -C 5 -- rping -c -a 127.0.0.2 -C 5
	meet "ucmatose to 127.0.0.1, $1" a a ucmatose -c 20 -C 5 -- \
		ucmatose -s 127.0.0.1 -c 20 -C 5
	meet "ucmatose from and to 127.0.0.1, $1" a a \
		ucmatose -b 127.0.0.1 -C 5 -- \
		ucmatose -b 127.0.0.1 -s 127.0.0.1 -C 5
	meet "ucmatose from an interface to 127.0.0.1, $1" a a \
		ucmatose -C 5 -- ucmatose -b "$HOST_A" -s 127.0.0.1 -C 5
	meet "ucmatose from 127.0.0.1 to an interface, $1" a a \
		ucmatose -C 5 -- ucmatose -b 127.0.0.1 -s "$HOST_A" -C 5
	meet "udaddy to 127.0.0.1, $1" a a \
		udaddy -c 5 -C 5 -- udaddy -s 127.0.0.1 -c 5 -C 5
	meet "udaddy to ::1, $1" a a udaddy -b ::1 -- udaddy -s ::1
	meet "rdma_xclient, XRC, to 127.0.0.1, $1" a a \
		rdma_xserver -c x -- rdma_xclient -c x -s 127.0.0.1
	meet "ib_send_bw -R to 127.0.0.1, $1" a a ib_send_bw -R -F -n 100 -- \
		ib_send_bw -R -F -n 100 127.0.0.1
}
# refused_at NAME REASON HOST PROGRAM...: by a server at 127.0.0.1 of host a's.
refused_at() {
	local name=$1 reason=$2 from=$3 server

	shift 3
	become a timeout -k 5 20 "$verbena" run -- rping -s -a 127.0.0.1 \
		</dev/null >"$work/server" 2>&1 &
	server=$!
	sleep 1
	if on "$from" timeout -k 5 20 "$verbena" run -- "$@" </dev/null \
		>"$work/client" 2>&1 ||
		! grep -q "REJECTED, error $reason\$" "$work/client"; then
		not_ok "$name" "$work/server" "$work/client"
	else
		ok "$name"
	fi
	kill $server
	wait $server 2>/dev/null
}
# told NAME LISTENER WANTED COMMAND...: what a server there is told of who calls
# it by the command.
told() {
	local name=$1 at=$2 wanted=$3 tries=0 server

	shift 3
	: >"$work/server" # the last one was listening, too
	become a timeout -k 5 20 "$verbena" run -- "$programs/cm_peer" "$at" \
		7174 </dev/null >"$work/server" 2>&1 &
	server=$!
	until grep -q listening "$work/server" || [ $tries -eq 100 ]; do
		tries=$((tries + 1))
		sleep 0.05
	done
	"$@" </dev/null >"$work/client" 2>&1
	for _ in {1..20}; do
		! grep -q from "$work/server" || break
		sleep 0.05
	done
	kill $server
	wait $server 2>/dev/null
	if [ "$(cat "$work/server")" = "listening${wanted:+
$wanted}" ]; then
		ok "$name"
	else
		not_ok "$name" "$work/server" "$work/client"
	fi
}
names() {
	local rping=(a timeout -k 5 20 "$verbena" run -- rping -c -C 1 -a)
	local forged=(b /usr/bin/python3 "$here/cm_forged.py" "$HOST_B"
		"$HOST_A")

	told "who calls from and to 127.0.0.1" 0.0.0.0 \
		"from 127.0.0.1 to 127.0.0.1 by ::ffff:$HOST_A" \
		"${rping[@]}" 127.0.0.1
	told "who calls from and to ::1" ::1 "from ::1 to ::1 by $HOST_A6" \
		"${rping[@]}" ::1
	told "who calls an interface" "$HOST_A" \
		"from $HOST_A to $HOST_A by ::ffff:$HOST_A" \
		"${rping[@]}" "$HOST_A"
	told "a request by hand" "$HOST_A" \
		"from $HOST_B to $HOST_A by ::ffff:$HOST_A" \
		"${forged[@]}" "$HOST_B" "$HOST_A" 7174
	told "another host's request that says it is from 127.0.0.1" "$HOST_A" \
		"from $HOST_B to $HOST_A by ::ffff:$HOST_A" \
		"${forged[@]}" 127.0.0.1 "$HOST_A" 7174
	told "another host's request to 127.0.0.1 is not heard" 127.0.0.1 "" \
		"${forged[@]}" "$HOST_B" 127.0.0.1 7174
	told "another host's request to 127.0.0.1 is heard nowhere" 0.0.0.0 "" \
		"${forged[@]}" "$HOST_B" 127.0.0.1 7174
}

loopback_all "one device"
if command -v rping >/dev/null && [ -x /usr/bin/python3 ]; then
	names
fi
if command -v rping >/dev/null; then
	refused_at "a listener at 127.0.0.1 hears no other host" 8 b \
		rping -c -a "$HOST_A" -C 1
	refused_at "a listener at 127.0.0.1 is not at the interface" 8 a \
		rping -c -a "$HOST_A" -C 1
	refused_at "a listener at 127.0.0.1 is not at 127.0.0.2" 8 a \
		rping -c -a 127.0.0.2 -C 1
	refused_at "a caller with loopback's device, a server without" 28 a \
		env VERBENA_DEVICES=lo rping -c -a 127.0.0.1 -C 1
	VERBENA_DEVICES=lo refused_at "the other way" 28 a \
		env -u VERBENA_DEVICES rping -c -a 127.0.0.1 -C 1
fi
for VERBENA_DEVICES in lo,veth0 veth0,lo iwarp:veth0 veth0,iwarp:veth0; do
	export VERBENA_DEVICES
	meet "rping to 127.0.0.1, --device $VERBENA_DEVICES" a a \
		rping -s -a 127.0.0.1 -C 5 -- rping -c -a 127.0.0.1 -C 5
	meet "rping to ::1, --device $VERBENA_DEVICES" a a \
		rping -s -a :: -C 5 -- rping -c -a ::1 -C 5
done
unset VERBENA_DEVICES

# perftest destroys its listener when it has accepted, and listens again for
# its second connection: the client's request may be first, and has to wait.
perftest() {
	local at=$1 from=$2 where=$3 what

	for what in ib_send_bw ib_write_bw ib_read_bw ib_send_lat \
		"ib_send_bw -c UD" "ib_send_lat -c UD"; do
		# shellcheck disable=SC2086 # words
		meet "$what -R, $where" "$at" "$from" \
			$what -R -F -n 100 -- $what -R -F -n 100 "$HOST_A"
	done
}
perftest a b "two hosts"
perftest a a "one host"

# members NAME GROUP "HOST ADDRESS"... -- [OPTION...]: who is named hears what
# one more says, on the last host or $from, who has $says for options.
members() {
	local name=$1 group=$2 pids=() status=0 i=0 pid at places=()

	shift 2
	while [ "$1" != -- ]; do
		places+=("$1")
		shift
	done
	shift
	for at in "${places[@]}"; do
		i=$((i + 1))
		become "${at% *}" timeout -k 5 30 "$verbena" run -- \
			mckey -m "$group" -b "${at#* }" -C 5 "$@" \
			</dev/null >"$work/member$i" 2>&1 &
		pids+=($!)
	done
	sleep "$HEAD_START"
	at=${from:-$at}
	# shellcheck disable=SC2086 # words
	on "${at% *}" timeout -k 5 30 "$verbena" run -- mckey -m "$group" -s \
		-b "${at#* }" -C 5 ${says:-} "$@" </dev/null \
		>"$work/client" 2>&1 || status=$?
	[ $status -eq 0 ] || kill "${pids[@]}"
	for pid in "${pids[@]}"; do
		wait "$pid" || status=1
	done
	if [ $status -eq 0 ]; then
		ok "$name"
	else
		not_ok "$name" "$work/client" "$work"/member?
	fi
}

# Four hosts at a switch, beside the two. It hands on what is sent to a group
# to those who joined it by IGMP or MLD, and to nobody else.
switch_up() {
	local i=0 host

	hold_namespace s && export HOSTS_PID_s=$REPLY || return
	on s ip link add br0 type bridge mcast_snooping 1 mcast_querier 1 \
		mcast_query_response_interval 10 \
		mcast_igmp_version 3 mcast_mld_version 2 &&
		on s ip link set br0 up || return
	become s stdbuf -oL bridge monitor mdb >"$work/mdb" 2>&1 &
	monitor=$!
	for host in c d e f; do
		i=$((i + 1))
		hold_namespace $host && export HOSTS_PID_$host="$REPLY" &&
			on s ip link add p$i mtu 1500 type veth peer \
				name veth0 mtu 1500 netns "$REPLY" &&
			on s ip link set p$i master br0 up &&
			on s bridge link set dev p$i fastleave on &&
			dress_host $host 10.78.0.$i fd78::$i || return
	done
	for host in c d e f; do
		wait_for_cable $host || return
	done
}
switch_down() {
	local host pid

	[ -z "${monitor:-}" ] || kill "$monitor"
	wait "${monitor:-}" 2>/dev/null
	for host in c d e f s; do
		pid=HOSTS_PID_$host
		[ -z "${!pid:-}" ] || kill "${!pid}"
		wait "${!pid:-}" 2>/dev/null
	done
}

# members_were GROUP HOSTS: these joined it, and left it in the end.
members_were() {
	local joined='' left='' tries=0

	until [ "$joined" = "$2" ] && [ "$left" = "$2" ]; do
		tries=$((tries + 1))
		if [ $tries -eq 50 ]; then
			not_ok "who joined $1: $joined; who left: $left" \
				"$work/mdb"
			return
		fi
		sleep 0.1
		joined=$(sed -n "/^Deleted/d;s/.*port \(p[0-9]\) grp $1 .*/\1/p" \
			"$work/mdb" | sort -u | xargs)
		left=$(sed -n "s/^Deleted.*port \(p[0-9]\) grp $1 .*/\1/p" \
			"$work/mdb" | sort -u | xargs)
	done
	ok "the switch saw who joined $1 and left it"
}

groups() {
	local a="a $HOST_A" a6="a $HOST_A6"

	members "mckey, four members, IPv4" 239.1.1.1 "$a" "$a" "b $HOST_B" --
	members "mckey, four members, IPv6" ff15::77 "$a6" "$a6" \
		"b $HOST_B6" --
	members "mckey, port space IPoIB" 239.1.1.2 "$a" "$a" "b $HOST_B" -- \
		-p 0x2
	if ! switch_up; then
		not_ok "mckey: four hosts"
	else
		members "mckey, four hosts, IPv4" 239.1.1.3 "c 10.78.0.1" \
			"d 10.78.0.2" "e 10.78.0.3" "f 10.78.0.4" --
		members_were 239.1.1.3 "p1 p2 p3 p4"
		from="f fd78::4" says=-o members \
			"mckey, four hosts, one only sends" ff15::78 \
			"c fd78::1" "d fd78::2" "e fd78::3" --
		members_were ff15::78 "p1 p2 p3"
	fi
	switch_down
}

# established FILE PID: until the rping that writes FILE says so, or has ended.
established() {
	local tries

	for tries in {1..200}; do
		grep -qs ESTABLISHED "$1" && return
		kill -0 "$2" 2>/dev/null || return
		sleep 0.05
	done
}

# One server that stays, and eight clients from both hosts. The server of rping
# has one place for a request that it has not accepted, and a second request
# takes the first one's place: rdma_create_qp() is then called twice for one
# identifier (EINVAL). So each client waits for the connection before it.
persistent() {
	local pids=() status=0 i server pings=1000

	[ "$quick" = no ] || pings=300
	become a "$verbena" run -- rping -s -P -a "$HOST_A" \
		</dev/null >"$work/server" 2>&1 &
	server=$!
	sleep 1
	for i in a b a b a b a b; do
		become $i timeout -k 5 90 "$verbena" run -- stdbuf -oL \
			rping -c -d -a "$HOST_A" -C "$pings" </dev/null \
			>"$work/client$((${#pids[@]} + 1))" 2>&1 &
		pids+=($!)
		established "$work/client${#pids[@]}" $!
	done
	for i in "${!pids[@]}"; do
		# rping's own race at its end, as above: all pings were right.
		wait "${pids[i]}" ||
			grep -q 'get_cm_event: Bad file' \
				"$work/client$((i + 1))" || status=1
	done
	kill $server
	wait $server 2>/dev/null
	if [ $status -eq 0 ]; then
		ok "rping, a persistent server and eight clients"
	else
		not_ok "rping, a persistent server and eight clients" \
			"$work/server" "$work"/client[1-8]
	fi
}
if command -v rping >/dev/null; then
	persistent
fi
if command -v mckey >/dev/null; then
	groups
fi

# after SECONDS PID: it has ended by then.
ended_in() {
	local tries=$(($1 * 20))

	while kill -0 "$2" 2>/dev/null; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 1
		sleep 0.05
	done
}

# An endless rping, and the pids of its ends.
begin_endless() {
	become a "$verbena" run -- rping -s -a "$HOST_A" -v \
		</dev/null >"$work/server" 2>&1 &
	listener=$!
	sleep "$HEAD_START"
	for _ in {1..15}; do
		: >"$work/client" # the last one had data, too
		become b "$verbena" run -- rping -c -a "$HOST_A" -v \
			</dev/null >"$work/client" 2>&1 &
		client=$!
		until grep -q 'ping data' "$work/client"; do
			kill -0 $client 2>/dev/null || break
			sleep 0.1
		done
		grep -q REJECTED "$work/client" || return
		wait $client
		sleep 0.3 # the server does not listen yet
	done
}

# survivor NAME KILLED OTHER FILE: the one is killed, the other told at once.
survivor() {
	kill -9 "$2"
	wait "$2" 2>/dev/null
	if ended_in 2 "$3" && grep -qi disconnect "$4"; then
		ok "$1"
	else
		not_ok "$1" "$4"
		kill "$3" 2>/dev/null
	fi
	wait "$3" 2>/dev/null
}

if command -v rping >/dev/null; then
	begin_endless
	survivor "kill -9 of the client: the server is told within 2 s" \
		$client $listener "$work/server"
	begin_endless
	survivor "kill -9 of the server: the client is told within 2 s" \
		$listener $client "$work/client"

	# Ports.
	begin_endless
	if a timeout 5 "$verbena" run -- rping -s -a "$HOST_A" \
		</dev/null >"$work/second" 2>&1; then
		not_ok "a port that is taken" "$work/second"
	elif grep -q "Address already in use" "$work/second"; then
		ok "a port that is taken"
	else
		not_ok "a port that is taken" "$work/second"
	fi
	kill -9 $listener $client
	wait $listener $client 2>/dev/null
	meet "a port is free at once after kill -9" a b \
		rping -s -a "$HOST_A" -C 5 -- rping -c -a "$HOST_A" -C 5

	if b timeout 10 "$verbena" run -- rping -c -a "$HOST_A" -C 1 -p 9 \
		</dev/null >"$work/client" 2>&1 ||
		! grep -q "REJECTED, error 8" "$work/client"; then
		not_ok "nobody listens: refused" "$work/client"
	else
		ok "nobody listens: refused"
	fi
fi
summary
