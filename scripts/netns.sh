#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Two hosts on one machine: network namespaces a and b joined by a cable
# (veth). Sourced, it gives the functions below; run, it opens a shell in which
# `a PROGRAM` and `b PROGRAM` run programs on the one and the other:
#
#	scripts/netns.sh [--mtu BYTES]
#
# As root the namespaces are made directly; an ordinary user gets them inside
# a user namespace. Nothing of the machine's own network is touched, runs side
# by side do not meet, and the hosts vanish with the process that made them,
# kill -9 included: each is held by a process that waits for our end of a pipe
# to close.

HOST_A=10.77.0.1
HOST_B=10.77.0.2
HOST_A6=fd77::1
HOST_B6=fd77::2
export HOST_A HOST_B HOST_A6 HOST_B6

# Can there be namespaces here at all?
hosts_possible() {
	if [ "$(id -u)" -eq 0 ]; then
		unshare -n true 2>/dev/null
	else
		unshare -Urn true 2>/dev/null
	fi
}

# hosts_reenter "$0" "$@": an ordinary user's script goes on inside a user
# namespace, where it may make network namespaces. Root's goes on as it is.
hosts_reenter() {
	[ "$(id -u)" -eq 0 ] && return
	VERBENA_USERNS=1 exec unshare -Ur -- "$@"
}

# One namespace, held by a process that lives as long as our end of the pipe.
# Sets REPLY to its process id.
hold_namespace() {
	unshare -n -- sh -c 'ip link set lo up && echo up && exec cat' \
		<&"$hosts_pipe_read" >"$hosts_dir/$1" {hosts_pipe_write}>&- &
	REPLY=$!
	local tries=0
	until [ -s "$hosts_dir/$1" ]; do
		tries=$((tries + 1))
		[ $tries -lt 200 ] && kill -0 "$REPLY" 2>/dev/null || return 1
		sleep 0.02
	done
}

# What namespaces are held by: first of all.
hosts_begin() {
	hosts_dir=$(mktemp -d) || return
	mkfifo "$hosts_dir/pipe" || return
	# Opened for both first, as a FIFO blocks whoever opens it alone.
	exec {hosts_pipe_write}<>"$hosts_dir/pipe" || return
	exec {hosts_pipe_read}<"$hosts_dir/pipe" || return
	exec {hosts_pipe_write}>"$hosts_dir/pipe"
}

# hosts_up [MTU]: make both, with IPv4 and IPv6 addresses on veth0.
hosts_up() {
	local mtu=${1:-9000}

	hosts_begin || return
	hold_namespace a && HOSTS_PID_a=$REPLY || return
	hold_namespace b && HOSTS_PID_b=$REPLY || return
	export HOSTS_PID_a HOSTS_PID_b
	a ip link add veth0 mtu "$mtu" type veth \
		peer name veth0 mtu "$mtu" netns "$HOSTS_PID_b" || return
	dress_host a "$HOST_A" "$HOST_A6" && dress_host b "$HOST_B" "$HOST_B6" &&
		wait_for_cable a && wait_for_cable b
}

# Without duplicate address detection, an address is usable at once.
dress_host() {
	on "$1" sh -c "
		echo 0 >/proc/sys/net/ipv6/conf/all/accept_dad
		echo 0 >/proc/sys/net/ipv6/conf/veth0/accept_dad
		ip addr add $2/24 dev veth0 &&
		ip addr add $3/64 dev veth0 nodad &&
		ip link set veth0 up" 2>/dev/null
}

wait_for_cable() {
	local tries=0

	until on "$1" ip link show veth0 | grep -q 'state UP'; do
		tries=$((tries + 1))
		[ $tries -lt 100 ] || return 1
		sleep 0.02
	done
}

hosts_mtu() {
	a ip link set veth0 mtu "$1" && b ip link set veth0 mtu "$1"
}

# A batch that one call sends passes a cable as one large packet, which is cut
# up, if ever, at the far end: captures and filters see it whole. After this,
# the kernel cuts it up before.
hosts_unbatched() {
	local host

	for host in a b; do
		on $host ip link set veth0 gso_max_segs 1 &&
			on $host ip link set lo gso_max_segs 1 || return
	done
}

hosts_down() {
	[ -n "${hosts_dir:-}" ] || return 0
	exec {hosts_pipe_write}>&- {hosts_pipe_read}<&-
	kill "${HOSTS_PID_a:-}" "${HOSTS_PID_b:-}" 2>/dev/null
	wait "${HOSTS_PID_a:-}" "${HOSTS_PID_b:-}" 2>/dev/null
	rm -rf "$hosts_dir"
	hosts_dir=
}

# on HOST PROGRAM...: run it there. A host may be "here", this very machine.
on() {
	(become "$@")
}

# become HOST PROGRAM...: the same, but this shell becomes the program. In
# `become HOST PROGRAM &`, $! is then the program and not a shell around it.
become() {
	local pid=HOSTS_PID_$1

	shift
	if [ "${!pid}" = here ]; then
		exec "$@"
	else
		exec nsenter -t "${!pid}" -n -- "$@"
	fi
}
a() { on a "$@"; }
b() { on b "$@"; }

shell_with_hosts() {
	local mtu=9000 top

	[ "${1:-}" = --mtu ] && mtu=$2
	top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
	trap hosts_down EXIT
	hosts_up "$mtu" || {
		echo "netns: no namespaces here" >&2
		return 1
	}
	export -f on become a b
	export PATH=$top/build/cli:$PATH
	cat <<-END
		Two hosts: a ($HOST_A, $HOST_A6) and b ($HOST_B, $HOST_B6).
		Try:  a verbena run -- ib_write_bw &
		      b verbena run -- ib_write_bw $HOST_A
		exit leaves, and takes the hosts away.
	END
	bash --norc
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
	hosts_possible || {
		echo "netns: this system lets you make no network namespaces:" \
			"an ordinary user needs user namespaces" \
			"(sysctl user.max_user_namespaces; not in a chroot)," \
			"root needs CAP_SYS_ADMIN" >&2
		exit 1
	}
	[ -n "${VERBENA_USERNS:-}" ] || hosts_reenter "$0" "$@"
	shell_with_hosts "$@"
fi
