#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Sockets over RDMA: rdma-core's own programs for them, and programs that know
# TCP only, under `verbena run --rsockets`; between two hosts and on one.
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"
# shellcheck source=tests/programs/sshd_lib.sh
. "$here/sshd_lib.sh"
need_hosts 9000
sockets=()
limit=100

# What has gone by TCP after all fails.
# Datagrams by UDP are counted.
rdma_only='table inet rdma_only {
	counter by_udp { }
	chain in {
		type filter hook input priority 0;
		meta l4proto tcp reject with tcp reset
		udp dport 7174 counter name by_udp
	}
}'
a nft "$rdma_only" && b nft "$rdma_only" || {
	not_ok "rsockets: hosts without TCP"
	summary
	exit 1
}

# serve HOST PROGRAM...
serve() {
	local at=$1

	shift
	become "$at" timeout -k 5 $((limit + 20)) "$verbena" run "${sockets[@]}" -- "$@" \
		</dev/null >"$work/server" 2>&1 &
	server=$!
}

# call HOST PROGRAM...: nothing shows when the server listens, so who was
# refused tries again.
call() {
	local from=$1 tries status

	shift
	for tries in {1..20}; do
		on "$from" timeout -k 5 $limit "$verbena" run "${sockets[@]}" -- \
			"$@" </dev/null >"$work/client" 2>&1 && return
		status=$?
		grep -qiE "refused|couldn't connect" "$work/client" || break
		sleep 0.2
	done
	echo "(client: exit status $status, try $tries)" >>"$work/client"
	return $status
}

stop() {
	{ kill "$server" && wait "$server"; } 2>/dev/null
}

verdict() {
	local status=$?

	if [ $status -eq 0 ]; then
		ok "rsockets $1"
	else
		not_ok "rsockets $1" "$work/server" "$work/client"
	fi
}

# both PROGRAM OPTIONS...: one that is its own peer, with -s ADDRESS.
both() {
	serve a "$@" && call "$from" "$@" -s "$HOST_A" && wait "$server"
	verdict "${*##*/}, $where"
	stop
}

copies() {
	head -c 20000000 /dev/urandom >"$work/in"
	serve a rcopy
	call "$from" rcopy "$work/in" "$HOST_A:$work/out" &&
		cmp "$work/in" "$work/out" >>"$work/client" 2>&1
	verdict "rcopy, $where"
	stop
	rm -f "$work/out"
}

# 440,000 times each side answers in the very byte that told it, and spins
# meanwhile: between two hosts the engines' threads must have their turns. That
# takes minutes of both processors.
as_it_comes() {
	local limit=400

	both rstream
	both riostream
}

# Only the first ones, which look for a queue pair, go by UDP.
few_by_udp() {
	local packets

	packets=$(a nft reset counter inet rdma_only by_udp |
		sed -n 's/.*packets \([0-9]*\) .*/\1/p')
	echo "by UDP: $packets" >>"$work/client"
	[ "$packets" -ge 1 ] && [ "$packets" -lt 50 ]
}

# bound PORT: until a program on host a has it for UDP.
bound() {
	local tries

	for tries in {1..100}; do
		[ -z "$(a ss -Hlun "sport = :$1")" ] || return
		sleep 0.05
	done
}

# datagrams ADDRESS OPTIONS...: the server of udpong's does not end.
datagrams() {
	local to=$1 status

	shift
	serve a udpong -b "$to" "$@"
	bound 7174
	# A datagram may be lost on a full machine, and udpong then waits for ever.
	limit=30
	for _ in 1 2 3; do
		call "$from" udpong -s "$to" -S 1500 -C 500 "$@"
		status=$?
		[ $status -ne 0 ] || break
	done
	limit=100
	[ $status -eq 0 ] && grep -q '^custom' "$work/client" && few_by_udp
	verdict "udpong $to${*:+ $*}, $where"
	stop
}

# Of one host: nobody has these addresses but loopback, whose device is there
# only for who asks for it.
loopback_programs() {
	local HOST_A from=a where

	for HOST_A in ::1 127.0.0.1; do
		where="to $HOST_A"
		datagrams "$HOST_A" -T b -T e
		serve a rstream -b "$HOST_A" -S 64 -I 500 -C 1 -T v
		call a rstream -s "$HOST_A" -S 64 -I 500 -C 1 -T v &&
			wait "$server"
		verdict "rstream, $where"
		stop
	done
	copies
}

own_programs() {
	datagrams "$HOST_A" -T b
	datagrams "$HOST_A" -T b -T e
	datagrams "$HOST_A" -T a
	datagrams "$HOST_A6" -T b -T e
	both rstream -S 64 -I 500 -C 1 -T v
	both rstream -S 100000 -I 50 -C 10 -T v
	both rstream -S 100000 -I 50 -C 10 -T v -T n
	both rstream -S 100000 -I 50 -C 10 -T v -T a
	if [ "$quick" = yes ]; then
		skip "rsockets rstream and riostream as they come, $where" \
			"takes minutes; make check-all plays them"
	else
		as_it_comes
	fi
	both "$programs/duplex_test"
	both riostream -S 64 -I 200 -C 1 -T v
	both riostream -S 1000000 -I 5 -C 5 -T v
	copies
}

iperf() {
	serve a iperf3 -s -1 -B "$HOST_A"
	call "$from" iperf3 -c "$HOST_A" -t 1 "$@" && wait "$server"
	verdict "iperf3${*:+ $*}, $where"
	stop
}

# A package of it would start a service, so it is only unpacked.
find_nginx() {
	[ -z "${nginx:-}" ] || return 0
	nginx=$(command -v nginx) && return
	(cd "$work" && apt-get download -qq nginx && dpkg-deb -x nginx_*.deb .) \
		>/dev/null 2>&1
	nginx=$work/usr/sbin/nginx
	has_libraries "$nginx"
}

# web NAME DIRECTIVES...: how nginx is to run.
web() {
	local name="curl and nginx, $1, $where" how=$2 to="http://$HOST_A:$3/in"

	find_nginx || {
		skip "rsockets $name" "no nginx to be had"
		return
	}
	cat >"$work/nginx.conf" <<-EOF
		daemon off; $how
		pid $work/nginx.pid; error_log $work/nginx.log;
		events { worker_connections 64; }
		http {
			access_log off; client_body_temp_path $work/body;
			proxy_temp_path $work/proxy;
			fastcgi_temp_path $work/fastcgi;
			uwsgi_temp_path $work/uwsgi;
			scgi_temp_path $work/scgi;
			server { listen $HOST_A:$3; root $work; }
		}
	EOF
	serve a "$nginx" -e "$work/nginx.log" -c "$work/nginx.conf"
	call "$from" curl -sS --parallel -o "$work/out1" "$to" \
		-o "$work/out2" "$to" &&
		cmp "$work/in" "$work/out1" && cmp "$work/in" "$work/out2"
	verdict "$name"
	stop
	rm -f "$work/out1" "$work/out2"
}

# Its workers are children that accept, and other users than the one who
# bound the port, where there are other users.
webs() {
	local workers="worker_processes 2;"

	[ -n "${VERBENA_USERNS:-}" ] || workers+=" user nobody nogroup;"
	web "one process" "master_process off;" 8080
	web "workers" "$workers" 80
}

# redis-tools has the server too, under another name.
database() {
	command -v redis-check-rdb >/dev/null || {
		skip "rsockets redis, $where" "no redis here"
		return
	}
	ln -sf "$(command -v redis-check-rdb)" "$work/redis-server"
	serve a "$work/redis-server" --bind "$HOST_A" --port 7000 --save '' \
		--protected-mode no
	call "$from" redis-benchmark -h "$HOST_A" -p 7000 -n 3000 -c 20 \
		-t set,get -q && grep -q 'GET: .* requests' "$work/client"
	verdict "redis-benchmark and redis-server, $where"
	stop
}

# A server that forks for each connection, and execs itself.
shell() {
	if ! find_sshd "$HOST_A"; then
		skip "rsockets ssh and sshd, $where" \
			"no sshd to be had, or no root"
		return
	fi
	serve a unshare -m sh -c ". $work/sshd"
	call "$from" "${ssh_words[@]}" "root@$HOST_A" "echo \$SSH_CLIENT; head -c 3000000 /dev/zero | wc -c" &&
		grep -q '^3000000' "$work/client" &&
		grep -q '^10.77.0.' "$work/client"
	verdict "ssh and sshd, $where"
	stop
}

tcp_programs() {
	sockets=(--rsockets)
	iperf
	iperf -R
	iperf -P 3
	webs
	shell
	database
	sockets=()
}

# A server at the wildcard has IPv6's socket, and peers of IPv4.
anywhere() {
	serve a iperf3 -s -1
	call "$from" iperf3 -c "$HOST_A" -u -l 1400 -b 100M -t 1 &&
		wait "$server"
	verdict "iperf3 -u at the wildcard, $where"
	stop
}

# What programs that know UDP only send, too, if they are asked to.
all_sockets() {
	sockets=(--rsockets=all)
	iperf -u -l 1400 -b 100M
	anywhere
	sockets=()
}

# The client, within ten seconds.
ended() {
	local tries

	for tries in {1..100}; do
		kill -0 $client 2>/dev/null || return 0
		sleep 0.1
	done
	return 1
}

# Who talks to a program that is killed comes to an end.
killed() {
	local tries

	sockets=(--rsockets)
	serve a iperf3 -s -1 -B "$HOST_A"
	sleep 1
	become b timeout 30 "$verbena" run "${sockets[@]}" -- \
		iperf3 -c "$HOST_A" -t 20 --forceflush </dev/null >"$work/client" 2>&1 &
	client=$!
	for tries in {1..100}; do
		grep -qs 'Bytes .*bits/sec' "$work/client" && break
		sleep 0.1
	done
	kill -0 $client 2>/dev/null && grep -q 'Bytes .*bits/sec' "$work/client" &&
		pkill -9 -P $server -x iperf3 && ended
	verdict "the other end of one that was killed ends, too"
	{ kill $client && wait $client; } 2>/dev/null
}

# Host a hears nothing from now on.
deafen() {
	a nft 'table inet deaf { chain in {
		type filter hook input priority -1; udp dport 4791 drop; }; }'
}

is_stopped() {
	grep -qs '^State:.*stopped' "/proc/$1/status"
}

# The program $1 stops itself for a while. When it goes on, the answer to its
# first question takes longer than all its questions at once would.
stopped_meanwhile() {
	local tries client

	# shellcheck disable=SC2086 # words
	become b "$verbena" run "${sockets[@]}" -- $1 </dev/null \
		>"$work/client" 2>&1 &
	client=$!
	for tries in {1..100}; do
		is_stopped $client && break
		sleep 0.1
	done
	deafen
	while is_stopped $client; do sleep 0.02; done
	sleep 0.4
	a nft delete table inet deaf
	wait $client
	grep -q '^nothing' "$work/client"
}

# While nobody says anything, one asks: an end that is there may stay silent;
# of one that is not there any more, the other hears in time.
alive() {
	local quiet="/usr/bin/python3 $here/rsockets_keepalive.py $HOST_A" tries

	sockets=(--rsockets)
	# shellcheck disable=SC2086 # words
	serve a $quiet serve
	# shellcheck disable=SC2086
	call b $quiet idle && grep -q '^nothing' "$work/client"
	verdict "keepalive: a silent peer stays"
	stopped_meanwhile "$quiet stopped"
	verdict "keepalive: it stays for one who was stopped, too"
	: >"$work/client"
	# shellcheck disable=SC2086
	call b $quiet watch &
	client=$!
	for tries in {1..50}; do
		grep -qs '^quiet' "$work/client" && break
		sleep 0.1
	done
	deafen
	wait $client
	a nft delete table inet deaf
	grep -q '^ETIMEDOUT soon' "$work/client"
	verdict "keepalive: of a peer that is gone one hears"
	stop
}

# A broker that has just come does not know yet whose queue pairs are whose:
# half of these were told ECONNABORTED.
first_calls() {
	local _

	for _ in {1..6}; do
		on a timeout -k 5 40 "$verbena" run --rsockets -- \
			/usr/bin/python3 "$here/rsockets_first.py" "$HOST_A" \
			</dev/null >"$work/client" 2>&1 || break
		grep -q '^ok' "$work/client" || break
	done
	grep -q '^ok' "$work/client"
	verdict "the first connection, while one broker follows another"
}

# What each of its lines says.
expectations() {
	local word rest said=0

	while read -r word rest; do
		said=$((said + 1))
		case $word in
		ok) ok "$rest" ;;
		*) not_ok "${rest#ok }" ;;
		esac
	done < <(on a timeout -k 5 200 "$verbena" run --rsockets -- \
		/usr/bin/python3 "$here/rsockets_test.py" "$HOST_A" 2>&1)
	[ $said -ge 20 ] || not_ok "rsockets: what programs expect, to the end"
}

peers=(b a)
[ "$quick" = no ] || peers=(b)
for from in "${peers[@]}"; do
	where="two hosts"
	[ "$from" = b ] || where="one host"
	own_programs
	tcp_programs
	all_sockets
done
loopback_programs
killed
alive
first_calls
expectations
summary
