#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Programs that know TCP only, by rsockets and by TCP: redis-server, which sleeps
# in epoll, and redis-benchmark. A run gives two figures, the requests a second
# and what each request takes of a processor in the server.
# shellcheck source=bench/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
bench_begin sockets "$0" "$@"
[ "$hosts" = yes ] || bench_cannot "no network namespaces here"
command -v redis-benchmark redis-check-rdb >/dev/null ||
	bench_cannot "redis-tools is not installed"
hosts_up 9000 || bench_cannot "network namespaces cannot be made"
# redis-tools has the server too, under another name.
ln -sf "$(command -v redis-check-rdb)" "$work/redis-server"
at=7000
ticks=$(getconf CLK_TCK)

# requests_served WAY OPTIONS...: by "rdma" or "tcp".
requests_served() {
	local server status run=()

	at=$((at + 1))
	[ "$1" = tcp ] || run=("$verbena" run --rsockets --)
	shift
	rm -f "$work/pid"
	become a timeout -k 2 60 "${run[@]}" "$work/redis-server" --bind "$HOST_A" \
		--port $at --save '' --protected-mode no --pidfile "$work/pid" \
		</dev/null >"$work/server" 2>&1 &
	server=$!
	until grep -q 'Ready to accept' "$work/server"; do
		kill -0 $server 2>/dev/null || return
		sleep 0.02
	done
	on "$from" timeout -k 2 50 "${run[@]}" redis-benchmark -h "$HOST_A" \
		-p $at -n "$requests" -t get --csv "$@" \
		</dev/null >"$work/client" 2>&1
	status=$?
	[ ! -s "$work/pid" ] || cat "/proc/$(<"$work/pid")/stat" >"$work/stat"
	{ kill $server && wait $server; } 2>/dev/null
	[ $status -eq 0 ] && awk -F '"' '$2 == "GET" { print $4 }' "$work/client"
}

# The server's processor time, us a request: of the program and of the kernel.
time_each() {
	sed 's/.*) //' "$work/stat" | awk -v n="$requests" -v hz="$ticks" \
		'{ printf "%.4g\n", ($12 + $13) * 1e6 / hz / n }'
}

# served WHAT COUNT OPTIONS...: two rows from the same runs.
served() {
	local what="redis, $1, $where" requests=$2

	shift 2
	[[ $what =~ $only ]] || return 0
	[ $span -gt 0 ] || requests=500
	two_figures "$what" "rdma tcp" requests_served time_each "$@"
	echo " $(figure_of rdma) a second, TCP $(figure_of tcp)"
	put_row "$what" "$(figure_of rdma)" /s TCP "$(figure_of tcp)" \
		">= 1.0x" "$then"
	put_row "$what, server's processor time" "$(figure_of second_rdma)" \
		us TCP "$(figure_of second_tcp)" "<= 1.2x" "<= 0.8x"
}

for from in b a; do
	[ $from = b ] && where=veth then='-' || where="one host" then='>= 1.5x'
	served "50 clients" 50000 -c 50
	served "1 client" 10000 -c 1
	served "50 clients, 16 requests at a time" 200000 -c 50 -P 16
done
bench_end
