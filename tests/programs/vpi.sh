#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# VPI: one adapter with two ports of either kind. Two hosts, which are network
# namespaces, with a veth pair and a fabric between them: tests/programs/vpi.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
# shellcheck source=tests/programs/fabric_lib.sh
. "$here/fabric_lib.sh"
tests_begin "$0" "$@"

fabric_begin opensm ib_write_bw ibv_rc_pingpong
need_hosts 9000
layer=vpi
test=$programs/vpi_test
spec=vpi:ib,eth=veth0

# v HOST PROGRAM...: this shell becomes the program, with the adapter $spec of
# the host.
v() {
	local host=$1

	shift
	become "$host" timeout -k 5 50 "$verbena" run --device "$spec" -- "$@"
}

# v_says NAME PATTERN PROGRAM...: on host a it succeeds, and a line matches.
v_says() {
	local what=$1 pattern=$2

	shift 2
	if (v a "$@") >"$work/got" 2>&1 </dev/null &&
		grep -Eq -- "$pattern" "$work/got"; then
		ok "vpi: $what"
	else
		not_ok "vpi: $what (wanted: $pattern)" "$work/got"
	fi
}

# v_pair NAME PATTERN ADDRESS PROGRAM...: a server on b, a client on a that calls
# ADDRESS; a line of the client's matches.
v_pair() {
	local what=$1 pattern=$2 address=$3 words

	shift 3
	port=$((port + 1))
	words=("$@" -p "$port")
	if play v_serve v_ready v_call && grep -Eq -- "$pattern" "$work/client"
	then
		ok "vpi: $what"
	else
		not_ok "vpi: $what (wanted: $pattern)" "$work"/{client,server}
	fi
}
v_serve() { v b "${words[@]}"; }
v_ready() { listening b "$port" 20 "$1"; }
v_call() { v a "${words[@]}" "$address"; }

# lines_from NAME FILE: each line of a program is a case.
lines_from() {
	cat "$2"
	passed=$((passed + $(grep -c '^ok ' "$2")))
	failed=$((failed + $(grep -c '^not ok ' "$2")))
	grep -q '^ok ' "$2" || not_ok "vpi: $1" "$2"
}

# refuses SPEC PATTERN: `verbena run` says why, in one line, and runs nothing.
refuses() {
	(become a "$verbena" run --device "$1" -- echo started) \
		>"$work/got" 2>&1 </dev/null
	if [ "$(wc -l <"$work/got")" = 1 ] && grep -q -- "$2" "$work/got" &&
		! grep -q started "$work/got"; then
		ok "vpi: $1 is refused"
	else
		not_ok "vpi: $1 is refused (wanted: $2)" "$work/got"
	fi
}

# --- what programs see ---
v_says "ibv_devinfo: two ports" 'phys_port_cnt:[[:space:]]*2' ibv_devinfo
cp "$work/got" "$work/devinfo"
# shellcheck disable=SC2016 # that is awk's to expand
check "one of InfiniBand, with a LID, and one of Ethernet" \
	awk '/port:/ { p = $2 } /port_lid:/ && p == 1 { lid = $2 }
	/link_layer:/ { layer[p] = $2 }
	END { exit !(lid > 0 && layer[1] == "InfiniBand" && layer[2] == "Ethernet") }' \
	"$work/devinfo"
v_says "ibv_devinfo -v -i 2: an Ethernet port" 'link_layer:[[:space:]]*Ethernet' \
	ibv_devinfo -v -d vpi0 -i 2
v_says "ibv_devinfo -v -i 2: its address" 'GID.*::ffff:10\.77\.0\.1, RoCE v2' \
	ibv_devinfo -v -d vpi0 -i 2
v_says "ibstat: port 1" 'Link layer: InfiniBand' ibstat vpi0 1
v_says "ibstat: port 2" 'Link layer: Ethernet' ibstat vpi0 2
v_says "rdma link: port 1" 'vpi0/1 .*lid [1-9].* state ACTIVE' rdma link
v_says "rdma link: port 2" 'vpi0/2 state ACTIVE .*netdev veth0' rdma link
v_says "/sys: port 1" InfiniBand cat /sys/class/infiniband/vpi0/ports/1/link_layer
v_says "/sys: port 2" Ethernet cat /sys/class/infiniband/vpi0/ports/2/link_layer
v_says "/sys: a GID of port 2 is the interface's" '^veth0$' \
	cat /sys/class/infiniband/vpi0/ports/2/gid_attrs/ndevs/0
v_says "/sys: counters of both ports together" '^[0-9]+$' \
	cat /sys/class/infiniband/vpi0/hw_counters/sent_pkts
(v a "$test" rules) >"$work/rules" 2>&1 </dev/null
lines_from "the rules of ports" "$work/rules"

# --- programs by either port ---
v_pair "ib_write_bw -i 1" 'remote address: LID 0x0*[1-9a-f]' "$HOST_B" \
	ib_write_bw -d vpi0 -i 1 -F -n 200
v_pair "ib_write_bw -i 2" 'GID: .*255:255:10:77:00:02' "$HOST_B" \
	ib_write_bw -d vpi0 -i 2 -F -n 200
v_pair "ib_send_bw -i 1, UD" ' 2048 ' "$HOST_B" \
	ib_send_bw -d vpi0 -i 1 -F -c UD -s 2048 -n 500
v_pair "ib_send_bw -i 2, UD" ' 2048 ' "$HOST_B" \
	ib_send_bw -d vpi0 -i 2 -F -c UD -s 2048 -n 500
v_pair "ibv_rc_pingpong -i 1" 'remote address: *LID 0x0*[1-9a-f]' "$HOST_B" \
	ibv_rc_pingpong -d vpi0 -i 1
v_pair "ibv_rc_pingpong -i 2 -g 1" '::ffff:10.77.0.2' "$HOST_B" \
	ibv_rc_pingpong -d vpi0 -i 2 -g 1
v_pair "ibv_srq_pingpong -i 1" 'remote address: *LID 0x0*[1-9a-f]' "$HOST_B" \
	ibv_srq_pingpong -d vpi0 -i 1
spec=vpi:eth=veth0,ib
v_pair "the ports the other way round" 'GID: .*255:255:10:77:00:02' "$HOST_B" \
	ib_write_bw -d vpi0 -i 1 -F -n 100
v_pair "the fabric at port 2" 'remote address: LID 0x0*[1-9a-f]' "$HOST_B" \
	ib_write_bw -d vpi0 -i 2 -F -n 100
spec=vpi:eth=veth0,eth=lo
v_pair "two Ethernet ports" 'GID: .*255:255:10:77:00:02' "$HOST_B" \
	ib_write_bw -d vpi0 -i 1 -F -n 100
v_says "ibstat of two Ethernet ports" 'Link layer: Ethernet' ibstat vpi0 2
spec=vpi:ib,ib
v_pair "two ports in the fabric: the first" 'LID 0x' "$HOST_B" \
	ib_write_bw -d vpi0 -i 1 -F -n 100
v_pair "two ports in the fabric: the second" 'LID 0x' "$HOST_B" \
	ib_write_bw -d vpi0 -i 2 -F -n 100
spec=vpi:ib,eth=veth0

# --- UCX by either port ---
ucx() { # DEVICE
	v_pair "ucx_perftest, UCX_NET_DEVICES=$1" '^Final:' "$HOST_B" env \
		"UCX_NET_DEVICES=$1" UCX_TLS=rc,self ucx_perftest -t ucp_put_bw \
		-s 65536 -n 200 -w 10
}
if command -v ucx_perftest >/dev/null; then
	ucx vpi0:1
	ucx vpi0:2
else
	skip "vpi: UCX" "ucx_perftest is not installed"
fi

# --- rdma_cm: the address chooses the port ---
# cm NAME ADDRESS: rping to this address of b.
cm() {
	port=$((port + 1))
	(v b rping -s -a "$2" -p $port -C 5 -v) >"$work/server" 2>&1 </dev/null &
	for _ in {1..40}; do
		(v a rping -c -a "$2" -p $port -C 5 -v) >"$work/client" 2>&1 \
			</dev/null && break
		sleep 0.1
	done
	if grep -q 'ping data: rdma-ping-4' "$work/client"; then
		ok "vpi: $1"
	else
		not_ok "vpi: $1" "$work"/{client,server}
	fi
	kill $! 2>/dev/null
	wait $! 2>/dev/null
}
if command -v rping >/dev/null; then
	cm "rping by the Ethernet port's address" "$HOST_B"
	if [ -c /dev/net/tun ]; then
		(become a "$verbena" ipoib --device ib --name vib0 \
			10.88.0.1/24) >"$work/ipoib.a" 2>&1 &
		(become b "$verbena" ipoib --device ib --name vib0 \
			10.88.0.2/24) >"$work/ipoib.b" 2>&1 &
		check "IPoIB interfaces beside the adapter" within 15 \
			on a ping -c 1 -W 1 10.88.0.2
		cm "rping by an IPoIB address" 10.88.0.2
	else
		skip "vpi: rping by an IPoIB address" "no /dev/net/tun"
	fi
else
	skip "vpi: rdma_cm" "rping is not installed"
fi

# --- one program by both ports at once; then one port goes down ---
# both NAME COMMAND...: the program on both hosts; the command takes a port down
# when both wait.
both() {
	local what=$1 server client

	shift
	rm -f "$work/socket"
	(v b "$test" listen "$work/socket") >"$work/server" 2>&1 </dev/null &
	server=$!
	(v a "$test" connect "$work/socket") >"$work/client" 2>&1 </dev/null &
	client=$!
	if within 20 grep -q waiting "$work/server" &&
		within 20 grep -q waiting "$work/client"; then
		"$@"
	fi
	wait $server
	wait $client
	lines_from "$what, on b" "$work/server"
	lines_from "$what, on a" "$work/client"
	check "$what" grep -q "$named" "$work/client"
}
own() { "$verbena" fabric ctl "$@"; }
# The hosts' nodes have joined in this order.
pull_cables() {
	"$verbena" fabric show | sed -n 's/.*\(Hca[0-9]*\).*/\1/p' | sort -u |
		while read -r node; do own unlink "$node" 1; done
}
plug_cables() {
	"$verbena" fabric show | sed -n 's/.*\(Hca[0-9]*\).*/\1/p' | sort -u |
		while read -r node; do own link "$node" 1; done
}
named='port 2 is down'
both "the Ethernet port goes down" on a ip link set veth0 down
on a ip link set veth0 up
has_carrier() { ! on "$1" ip link show veth0 | grep -q NO-CARRIER; }
# The kernel reports a carrier some time after the interface is up.
within 20 has_carrier a && within 20 has_carrier b
named='port 1 is down'
both "the InfiniBand port goes down" pull_cables
plug_cables >/dev/null 2>&1

# --- what is refused ---
refuses vpi:ib "two ports"
refuses vpi:ib,eth=veth0,eth=lo "this one has 3"
refuses vpi:eth=veth0,eth=veth0 "cannot be both ports"
refuses vpi:ib,eth=nosuch "no interface nosuch"
refuses vpi:ib,token=veth0 "no kind of port"
refuses vpi:ib,iwarp=veth0 "iWARP"
refuses vpi:ib:nofabric/Hca1,eth=veth0 'no fabric "nofabric"'
refuses vpi:ib:NoNode,eth=veth0 'no node "NoNode"'
refuses vpi:ib:default/Hca1/7,eth=veth0 'no port 7'

summary
