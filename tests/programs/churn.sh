#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Crowds and crashes of programs that connect through librdmacm: many
# connections of one program, many programs one after the other, nothing lost
# and nothing left; and kill -9 of either end in each state of a connection.
#
#	tests/programs/churn.sh [--full]
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"

full=${1:-}
at_once=1000 # connections of one program
crowd=1000   # programs, one after the other, within 60 s
rounds=3     # of deaths
if [ "$full" = --full ]; then
	at_once=10000
	rounds=20
fi
connections=10 # of each of the crowd
kind=rc
tests_begin "$0" "$@"
need_hosts 1500
# So few that a port of each program would not do.
for host in a b; do
	on $host sysctl -qw net.ipv4.ip_local_port_range="40000 $((40000 +
		at_once + 200))"
done

# serve OPTIONS...: sets $server; it listens when this returns.
serve() {
	local tries=0

	: >"$work/server"
	become a timeout -k 5 150 "$verbena" run -- "$programs/cm_many" \
		-m "$kind" -s "$HOST_A" "$@" </dev/null >"$work/server" 2>&1 &
	server=$!
	until grep -q listening "$work/server"; do
		tries=$((tries + 1))
		[ $tries -lt 250 ] && kill -0 $server || return 1
		sleep 0.02
	done
}

# call OPTIONS...: this shell becomes the client.
call() {
	become b timeout -k 5 150 "$verbena" run -- "$programs/cm_many" \
		-m "$kind" -c "$HOST_A" "$@" </dev/null
}

# pair_up SERVER_OPTIONS CLIENT_OPTIONS: sets the statuses $served and $called.
pair_up() {
	served=0
	called=0
	: >"$work/client"
	# shellcheck disable=SC2086 # words
	if serve $1; then
		(call $2) >"$work/client" 2>&1 || called=$?
	else
		called=1
	fi
	[ $called -lt 2 ] || [ $called -eq 137 ] || kill $server 2>/dev/null
	wait $server 2>/dev/null || served=$?
}

if pair_up "-n $at_once" "-n $at_once -w 1000" && [ $served$called = 00 ]; then
	ok "$at_once connections of one program, at once"
else
	not_ok "$at_once connections of one program" "$work/server" \
		"$work/client"
fi
if pair_up "-n 100 -b" "-n 100" && [ $served$called = 00 ]; then
	ok "100 connections that both ends end at the same time"
else
	not_ok "connections that both ends end" "$work/server" "$work/client"
fi

# Programs one after the other.

# The one in this host's network namespace.
broker_of() {
	local pid host=HOSTS_PID_$1

	for pid in $(pgrep -f 'verbena broker'); do
		[ "$(readlink "/proc/$pid/ns/net")" != \
			"$(readlink "/proc/${!host}/ns/net")" ] || echo "$pid"
	done
}
descriptors() {
	find "/proc/$1/fd" -mindepth 1 2>/dev/null | wc -l
}
kibibytes() {
	sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$1/status"
}
connections_of() {
	on "$1" "$verbena" status | sed -n 's/.* \([0-9]*\) connections.*/\1/p'
}

# crowd_of FROM TO: programs, up to eight at a time; prints who failed.
# shellcheck disable=SC2016 # the inner shell expands
crowd_of() {
	seq "$1" "$2" | on b xargs -P 8 -I{} sh -c '
		timeout -k 5 30 "$0" run -- "$1" -c "$2" -n "$3" \
			>"$4/member{}" 2>&1 </dev/null || echo {}' \
		"$verbena" "$programs/cm_many" "$HOST_A" $connections "$work"
}

# Time wait is over, and so are the sessions of those that have gone.
settle() {
	local host tries=0

	for host in a b; do
		until [ "$(connections_of $host)" = 0 ]; do
			tries=$((tries + 1))
			[ $tries -lt 150 ] || return 1
			sleep 0.1
		done
	done
}

# What the two brokers and the server hold: descriptors, then memory.
held() {
	local pid

	for pid in "$(broker_of a)" "$(broker_of b)" "$(pgrep -P $server)"; do
		echo "$(descriptors "$pid") $(kibibytes "$pid")"
	done
}

# grew BEFORE AFTER: by more than a pool may: a dozen descriptors, or half a MiB,
# a hundred bytes a connection.
grew() {
	paste -d ' ' "$1" "$2" | awk '
		{ if ($3 > $1 + 12 || $4 > $2 + 512 || $3 == 0) bad = 1 }
		END { exit !bad }'
}

churn() {
	local begun

	# One more than are measured: the server is to live until they are.
	serve -n $(((crowd + 1) * connections)) || return
	# One that stays, so that the broker there does, too.
	become b timeout -k 5 150 "$verbena" run -- "$programs/cm_many" \
		-s "$HOST_B" </dev/null >"$work/stays" 2>&1 &
	stays=$!
	# The first half fills pools: those who are in time wait are many.
	begun=$EPOCHREALTIME
	crowd_of 1 $((crowd / 2)) >"$work/lost"
	settle || echo "connections do not end" >>"$work/lost"
	held >"$work/before"
	crowd_of $((crowd / 2 + 1)) "$crowd" >>"$work/lost"
	took=$(((${EPOCHREALTIME/./} - ${begun/./}) / 1000))
	settle || echo "connections do not end" >>"$work/lost"
	held >"$work/after"
	crowd_of 0 0 >>"$work/lost"
	wait $server || echo "the server: $(tail -n 1 "$work/server")" \
		>>"$work/lost"
	kill $stays
	wait $stays 2>/dev/null
}

took=0
churn
if [ ! -s "$work/lost" ] && [ "$took" -lt 60000 ]; then
	ok "$crowd programs, one after the other, $connections connections" \
		"each ($took ms)"
else
	not_ok "$crowd programs, one after the other ($took ms)" "$work/lost" \
		"$work/server" "$work"/member*
fi
if ! grew "$work/before" "$work/after"; then
	ok "and nothing is left of them: descriptors, memory, connections"
else
	not_ok "something is left of $crowd programs (descriptors and KiB of" \
		"the brokers and the server)" "$work/before" "$work/after"
fi

# Deaths.

# in_time VICTIM'S_OUTPUT OTHER'S_OUTPUT EVENT: the other's last word is such
# an event, within a second.
in_time() {
	awk -v wanted="$3" '
		$1 == "dies" { died = $2 }
		$1 == "heard" && FILENAME != ARGV[1] { at = $2; what = $3 }
		END {
			if (at < died) at = died
			printf "%s after %.3f s\n", what, at - died
			exit !(died && what ~ wanted && at - died < 1)
		}' "$1" "$2"
}

# dies WHO WHEN EVENT: that end kills itself then; the other hears the event.
dies() {
	local victim=server other=client i

	[ "$1" = server ] || { victim=client && other=server; }
	for ((i = 0; i < rounds; i++)); do
		if [ "$1" = server ]; then
			pair_up "-k $2 ${4:-}" "-v" 2>/dev/null
		else
			pair_up "-v ${4:-}" "-k $2" 2>/dev/null
		fi
		in_time "$work/$victim" "$work/$other" "$3" >"$work/told" &&
			continue
		not_ok "kill -9 of the $1, $kind, at: $2 (round $i)" \
			"$work/told" "$work/server" "$work/client"
		return
	done
	ok "kill -9 of the $1, $kind, at: $2, $rounds times:" \
		"$(cat "$work/told")"
}

# forgotten WHEN: the client kills itself then, and of that the server hears
# nothing; the next is served.
forgotten() {
	local i pid

	for ((i = 0; i < rounds; i++)); do
		called=1
		if serve -t -v; then
			{ (call -k "$1") >"$work/victim" 2>&1; } 2>/dev/null
			called=0
			(call) >"$work/client" 2>&1 || called=$?
			pid=$(pgrep -P $server)
			kill $server
		fi
		wait $server 2>/dev/null
		[ -z "${pid:-}" ] || ! kill -0 "$pid" 2>/dev/null || called=1
		[ $called -eq 0 ] && grep -q dies "$work/victim" && continue
		not_ok "kill -9 of the client, $kind, at: $1 (round $i)" \
			"$work/victim" "$work/server" "$work/client"
		return
	done
	ok "kill -9 of the client, $kind, at: $1, $rounds times: the next is" \
		"served"
}
# Each of these listens on the port of the one before, at once.
dies server request REJECTED
dies server accept 'REJECTED|DISCONNECTED'
dies server established DISCONNECTED
dies server disconnect DISCONNECTED -b
dies server timewait DISCONNECTED
dies client connect 'REJECTED|CONNECT_ERROR|DISCONNECTED'
dies client established DISCONNECTED
dies client disconnect DISCONNECTED
dies client timewait DISCONNECTED

# Of who has only looked for the way nobody knows; the next is served.
if serve -v; then
	{ (call -k resolve) >"$work/victim" 2>&1; } 2>/dev/null
	(call) >"$work/client" 2>&1
fi
if wait $server && grep -q dies "$work/victim" &&
	[ "$(grep -c heard "$work/server")" -eq 3 ]; then
	ok "kill -9 of the client, at: resolve: the server hears nothing of it"
else
	not_ok "kill -9 of the client, at: resolve" "$work/victim" \
		"$work/server" "$work/client"
fi

kind=xrc
dies server request REJECTED
dies server accept 'REJECTED|DISCONNECTED'
dies server established DISCONNECTED
dies client connect 'REJECTED|CONNECT_ERROR|DISCONNECTED'
dies client established DISCONNECTED
dies client disconnect DISCONNECTED
# A datagram's queue pair is looked up, and that is all.
kind=ud
dies server request UNREACHABLE
dies server accept 'ESTABLISHED|UNREACHABLE'
forgotten resolve
forgotten connect
forgotten established
kind=rc

# The broker dies, and what it knew is said to the next one.

kill_brokers() {
	local host pid

	for host; do
		pid=$(broker_of "$host")
		[ -z "$pid" ] || kill -9 "$pid"
	done
}
until_says() {
	local tries=0

	until grep -q "$1" "$2"; do
		tries=$((tries + 1))
		[ $tries -lt 250 ] || return 1
		sleep 0.02
	done
}
judge() {
	if [ "$called$served" = 00 ]; then
		ok "the broker dies: $1"
	else
		not_ok "the broker dies: $1 ($called, $served)" \
			"$work/server" "$work/client"
	fi
}
# call_then OPTIONS BROKERS...: they die when all connections are there.
call_then() {
	local pid options=$1

	shift
	called=0
	: >"$work/client"
	# shellcheck disable=SC2086 # words
	call $options >"$work/client" 2>&1 &
	pid=$!
	until_says sleeps "$work/client" && kill_brokers "$@"
	wait $pid || called=$?
}
finish() {
	served=0
	[ $called -eq 0 ] || kill $server
	wait $server || served=$?
}

called=0
serve && kill_brokers a
(call) >"$work/client" 2>&1 || called=$?
finish
judge "who listens, listens with the next one"

serve -n 50 && call_then "-n 50 -z 1" a b
finish
judge "50 connections go on, and are ended"

# The next broker tells the peers of who is killed.
served=1
called=0
: >"$work/client"
serve -v
call -z 30 >"$work/client" 2>&1 &
client=$!
until_says sleeps "$work/client" && kill_brokers a b
sleep 1
pkill -9 -P $client
for _ in {1..50}; do
	! kill -0 $server 2>/dev/null || sleep 0.02
done
kill -0 $server 2>/dev/null || served=0
kill $server 2>/dev/null
{ wait $client $server; } 2>/dev/null
judge "and of a program that is killed then its peer hears in a second"

# While hundreds connect, everywhere in what they say to each other.
serve -n 1000
call -n 1000 -w 20 -z 1 >"$work/client" 2>&1 &
client=$!
for _ in 1 2 3; do
	sleep 0.0$((RANDOM % 8 + 1))
	kill_brokers a b
done
called=0
wait $client || called=$?
finish
judge "three times while 1000 connect, twenty at a time: none is lost"
summary
