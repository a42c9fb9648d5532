#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# UCX, Debian's: ucx_info, ucx_perftest over RC and UD, and UCX's examples over
# rdma_cm, between two hosts and on one: tests/programs/ucx.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"
examples=/usr/share/doc/libucx-dev/examples
export VERBENA_TIMEOUT=30

# quiet NAME FILE...: the case is good, if UCX and we had nothing to say.
quiet() {
	local name=$1

	shift
	if grep -qE 'WARN|ERROR|FATAL|verbena:' "$@"; then
		not_ok "$name: without a warning" "$@"
	else
		ok "$name"
	fi
}

# perf NAME SERVER CLIENT ADDRESS "VARIABLES" OPTIONS...: ucx_perftest on both,
# with the variables of its environment and the options of both.
perf() {
	local name="ucx_perftest $1" at=$2 from=$3 address=$4 vars both=()

	read -ra vars <<<"$5"
	shift 5
	case $address in *:*) both+=(-6) ;; esac
	case " $* " in *" -E sleep "*) both+=(-E sleep) ;; esac
	if pair root "$at" "$from" \
		env "${vars[@]}" ucx_perftest -p $port "${both[@]}" -- \
		env "${vars[@]}" ucx_perftest "$address" -p $port \
		"${both[@]}" -w 10 "$@" &&
		grep -q '^Final:' "$work/client"; then
		quiet "$name" "$work"/{server,client}
	else
		not_ok "$name" "$work"/{server,client}
	fi
}

# ucp WHERE SERVER CLIENT ADDRESS TLS TEST...
ucp() {
	local where=$1 at=$2 from=$3 address=$4 tls=$5 test size

	shift 5
	for test; do
		case $test in
		*_bw) size=65536 ;;
		*) size=8 ;;
		esac
		perf "$test, UCX_TLS=$tls [$where]" "$at" "$from" "$address" \
			"UCX_TLS=$tls" -t "$test" -s $size -n 200
	done
}

# uct TRANSPORT "TEST SIZE DATA"...: below UCP, one operation is one verb.
uct() {
	local tl=$1 row test size data

	shift
	for row; do
		read -r test size data <<<"$row"
		perf "$test -D $data -x $tl [two hosts]" a b "$HOST_A" \
			UCX_TLS=all -d roce_veth0:1 -x "$tl" -t "$test" \
			-s "$size" -D "$data" -n 200
	done
}

# info NAME PATTERN: ucx_info -d has such a line of that device.
info() {
	if sed -n '/domain: roce_veth0/,$p' "$work/info" |
		grep -qE "$2"; then
		ok "ucx_info -d: $1"
	else
		not_ok "ucx_info -d: $1" "$work/info"
	fi
}

devices() {
	local VERBENA_LINES=200

	on a timeout 30 "$verbena" run -- ucx_info -d </dev/null \
		>"$work/info" 2>&1
	info "rc_verbs" 'Transport: rc_verbs'
	info "ud_verbs" 'Transport: ud_verbs'
	info "the device" 'Device: roce_veth0:1'
	info "the speed, 10 Gbit/s" 'bandwidth: 10[0-9][0-9]\.[0-9]*/ppn'
	info "the MTU" 'put_align_mtu: <= 1K'
	info "atomics" 'atomic_cswap: 64 bit'
	quiet "ucx_info -d" "$work/info"
}

# Its server serves until it is told to end.
example_ready() {
	local tries=0

	until grep -q 'server is listening' "$work/server"; do
		tries=$((tries + 1))
		[ $tries -lt 100 ] && kill -0 "$1" 2>/dev/null || return 1
		sleep 0.05
	done
}
example_serve() {
	become "$at" timeout 20 "$verbena" run -- env "${vars[@]}" \
		stdbuf -oL "$work/client_server" "${options[@]}"
}
example_call() {
	pair_at "$from" env "${vars[@]}" "$work/client_server" \
		"${options[@]}" -a "$address"
}

# by_rdmacm WHERE SERVER CLIENT ADDRESS KIND: ucp_client_server, 20 messages.
by_rdmacm() {
	local at=$2 from=$3 address=$4 who=root pid
	local name="ucp_client_server -c $5 by rdma_cm [$1]"
	local vars=(UCX_TLS=rc UCX_SOCKADDR_TLS_PRIORITY=rdmacm)
	local options=(-c "$5" -i 20 -s 1000 -p "$port")

	case $address in *:*) options+=(-6) ;; esac
	: >"$work/server"
	(example_serve) </dev/null >"$work/server" 2>&1 &
	pid=$!
	if example_ready $pid &&
		(example_call) </dev/null >"$work/client" 2>&1 &&
		wait_for_success; then
		quiet "$name" "$work"/{server,client}
	else
		not_ok "$name" "$work"/{server,client}
	fi
	kill $pid 2>/dev/null
	wait $pid 2>/dev/null
}
wait_for_success() {
	local tries=0

	until grep -q 'UCP TEST SUCCESS' "$work/server"; do
		tries=$((tries + 1))
		[ $tries -lt 60 ] || return 1
		sleep 0.05
	done
}

need_hosts 1500
if ! command -v ucx_perftest >/dev/null; then
	skip ucx "no ucx_perftest here"
	summary
	exit
fi
devices
ucp "two hosts" a b "$HOST_A" rc_v ucp_am_lat ucp_am_bw tag_lat tag_bw \
	stream_bw ucp_put_bw ucp_get ucp_add ucp_fadd ucp_swap ucp_cswap
ucp "two hosts" a b "$HOST_A" ud_verbs ucp_am_lat tag_bw stream_bw \
	ucp_put_lat ucp_fadd
ucp "two hosts" a b "$HOST_A" ib tag_lat
ucp "two hosts" a b "$HOST_A" all tag_bw
ucp "one host" a a 127.0.0.1 rc_v tag_lat tag_bw ucp_cswap
ucp "one host" a a 127.0.0.1 ud_verbs tag_lat
# UCX has lanes over each device that it takes for a way to the other host.
perf "tag_bw, lanes of any speed" a b "$HOST_A" \
	"UCX_TLS=rc_v UCX_MULTI_LANE_MAX_RATIO=100" -t tag_bw -s 1000000 -n 100
uct rc_verbs "am_lat 8 short" "am_bw 8000 zcopy" "put_lat 8 short" \
	"put_bw 8000 bcopy" "get 8000 zcopy" "fadd 8 short" "cswap 8 short"
uct ud_verbs "am_lat 8 short" "am_bw 1000 zcopy"
for tls in rc_v ud_verbs; do
	perf "tag_lat that sleeps, UCX_TLS=$tls" a b "$HOST_A" \
		"UCX_TLS=$tls" -t tag_lat -E sleep -s 1024 -n 100
	perf "tag_bw that sleeps, UCX_TLS=$tls" a b "$HOST_A" \
		"UCX_TLS=$tls" -t tag_bw -E sleep -s 1024 -n 2000
	perf "tag_lat in 3 threads, UCX_TLS=$tls" a b "$HOST_A" \
		"UCX_TLS=$tls" -t tag_lat -T 3 -s 1024 -n 100
	perf "tag_lat, an IPv6 GID by index, UCX_TLS=$tls" a b "$HOST_A" \
		"UCX_TLS=$tls UCX_NET_DEVICES=roce_veth0:1 UCX_IB_GID_INDEX=$(
			gid_index a roce_veth0 $HOST_A6
		)" -t tag_lat -s 1024 -n 100
done
if gcc -w -O1 -o "$work/client_server" "$examples/ucp_client_server.c" \
	-lucp -lucs 2>/dev/null; then
	for kind in tag stream am; do
		by_rdmacm "two hosts" a b "$HOST_A" $kind
	done
	by_rdmacm "one host" a a "$HOST_A" tag
	for kind in tag stream am; do
		by_rdmacm "one host, 127.0.0.1" a a 127.0.0.1 $kind
	done
	by_rdmacm "one host, ::1" a a ::1 tag
	VERBENA_DEVICES=lo by_rdmacm "loopback alone" a a 127.0.0.1 tag
	VERBENA_DEVICES=lo,veth0 by_rdmacm "both devices" a a 127.0.0.1 tag
	by_rdmacm "two hosts, IPv6" a b "$HOST_A6" tag
else
	skip "ucp_client_server by rdma_cm" "no libucx-dev here"
fi

# From here on there is no IPv4.
for host in a b; do
	on $host ip addr flush dev veth0 scope global
	on $host ip addr flush dev lo
	on $host ip addr add ::1/128 dev lo 2>/dev/null
done
on a ip addr add "$HOST_A6/64" dev veth0 nodad
on b ip addr add "$HOST_B6/64" dev veth0 nodad
ucp "IPv6 only" a b "$HOST_A6" rc_v tag_lat tag_bw ucp_cswap
ucp "IPv6 only" a b "$HOST_A6" ud_verbs tag_lat
summary
