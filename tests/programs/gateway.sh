#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A VPI switch: Ethernet ports beside the InfiniBand ones of a fabric's switch,
# and a gateway between IPoIB and Ethernet. Host a has IPoIB alone, hosts b and c
# have Ethernet: tests/programs/gateway.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
# shellcheck source=tests/programs/fabric_lib.sh
. "$here/fabric_lib.sh"
tests_begin "$0" "$@"
# shellcheck source=tests/programs/sshd_lib.sh
. "$here/sshd_lib.sh"

fabric_begin opensm ibnetdiscover smpquery ip ping
layer=gateway
name=gateway$$
if [ "$hosts" = no ] || [ ! -c /dev/net/tun ]; then
	skip gateway "no network namespaces here, or no /dev/net/tun"
	summary
	exit
fi
need_hosts 1500
hold_namespace c && HOSTS_PID_c=$REPLY || exit
export HOSTS_PID_c
port=$((20000 + $$ % 20000))

cat >"$work/topo" <<'END'
Hca 1 "Hca1"
Hca 1 "Hca2"
Hca 1 "Hca3"

Switch 4 "Left"
[1] "Hca1"[1]
[2] "Hca2"[1]
[3] "Right"[1]

Switch 4 "Right"
[2] "Hca3"[1]

#! node "Left" ethernet=4
END

seen() { # PATTERN COMMAND...: its output has it
	local pattern=$1

	shift
	"$@" 2>&1 | grep -Eq -- "$pattern"
}
refuses() { # PATTERN COMMAND...: it fails, and says so in one line
	local pattern=$1

	shift
	! "$@" >"$work/said" 2>&1 && [ "$(wc -l <"$work/said")" = 1 ] &&
		grep -Eq -- "$pattern" "$work/said"
}
show() { "$verbena" fabric show --name "$name" "$@"; }
ether() { # HOST PORT ARGUMENT...: an interface eth1 there
	local host=$1 at=$2

	shift 2
	on "$host" "$verbena" ether --device "ib:$name/Left" --port "$at" \
		--name eth1 "$@"
}
pings() { # HOST ADDRESS [OPTION...]: an answer within 20 s
	local host=$1 address=$2

	shift 2
	within 20 on "$host" ping -c 1 -W 1 "$@" "$address"
}
# count PORT NAME: a counter of the Ethernet port, by `show --json`.
count() {
	show --json | python3 -c '
import json, sys
ports = [n["ethernet"] for n in json.load(sys.stdin)["nodes"] if "ethernet" in n]
print(ports[0][int(sys.argv[1]) - 1][sys.argv[2]])' "$1" "$2"
}

fabric_up --sm "$work/topo" || {
	not_ok "gateway: the fabric starts" "$work/fabric"
	summary
	exit
}
log=$(sed -n 's/^the log of its subnet manager is //p' "$work/fabric")
check "the subnet comes up" subnet_up "$log"

# --- the switch ---
check "an interface at an Ethernet port" \
	seen '^eth1: E1 of Left, MTU 1500' ether b E1 10.9.0.4/24 fd09::4/64
check "at the first free one" \
	seen '^eth1: E2 of Left' ether c "" 10.9.0.5/24 fd09::5/64
check "ibnetdiscover sees the InfiniBand ports only" discovers Hca1 "$work/topo"
says "and so does smpquery" 'NumPorts:\.*4$' Hca1 smpquery -D nodeinfo 0,1
check "ping through the switch" pings b 10.9.0.5
check "by IPv6" pings c fd09::4
check "show has the ports" seen '\[E2\] ethernet, up, 1 MAC address - eth1' show
mac_of() { on "$1" ip link show eth1 | sed -n 's/.*ether \([^ ]*\).*/\1/p'; }
check "the switch has learned where an address is" \
	seen "^$(mac_of c) E2, heard" ctl macs Left
before=$(count 2 xmit_frames)
on b ping -q -c 5 -i 0.1 10.9.0.5 >"$work/got"
check "it counts frames" test $(($(count 2 xmit_frames) - before)) -ge 5
vlans() {
	local hearer

	: >"$work/heard" # no words of the last program
	become c timeout 20 python3 "$here/gateway_vlan.py" hear eth1 \
		>"$work/heard" &
	hearer=$!
	within 10 grep -q listening "$work/heard" &&
		on b python3 "$here/gateway_vlan.py" say eth1 && wait $hearer
}
check "VLAN tags and priorities pass" vlans

# rdma NAME PATTERN SPEC PROGRAM...: server on c, client on b, by the device.
rdma() {
	local what=$1 pattern=$2 spec=$3 words

	shift 3
	port=$((port + 1))
	words=("$@" -p "$port")
	if play rdma_serve rdma_ready rdma_call &&
		grep -Eq -- "$pattern" "$work/client"; then
		ok "gateway: $what"
	else
		not_ok "gateway: $what (wanted: $pattern)" \
			"$work/client" "$work/server"
	fi
}
rdma_serve() {
	become c timeout 50 "$verbena" run --device "${spec/Hca2/Hca3}" -- \
		"${words[@]}"
}
rdma_ready() { listening c "$port" 20 "$1"; }
rdma_call() {
	become b timeout 50 "$verbena" run --device "$spec" -- "${words[@]}" \
		10.9.0.5
}
rdma "RoCEv2, ibv_rc_pingpong" 'remote address' eth1 ibv_rc_pingpong -g 1 -n 200
[ "$quick" = yes ] || rdma "RoCEv2, ibv_ud_pingpong" 'remote address' eth1 \
	ibv_ud_pingpong -g 1 -n 200
rdma "RoCEv1, ibv_rc_pingpong" 'remote address' rocev1:eth1 \
	ibv_rc_pingpong -g 0 -n 200
if command -v ib_write_bw >/dev/null; then
	rdma "RoCEv2, ib_write_bw" '65536 ' eth1 ib_write_bw -F -n 200
	vpi=vpi:ib:$name/Hca2/1,eth=eth1
	rdma "a VPI adapter's Ethernet port, and its other port the same switch's" \
		'GID: .*255:255:10:09:00:05' "$vpi" ib_write_bw -d vpi0 -i 2 -F -n 200
	[ "$quick" = yes ] || rdma "and its InfiniBand port" 'remote address: LID 0x0*[1-9a-f]' \
		"$vpi" ib_write_bw -d vpi0 -i 1 -F -n 200
fi

# --- cables ---
carrier() { seen "state $1" on c ip link show eth1; }
pulled() {
	ctl unlink Left E2 && within 5 carrier DOWN &&
		! on b ping -c 1 -W 1 10.9.0.5 && seen 'E2\] ethernet, unplugged' show
}
check "a cable is pulled" pulled
plugged() { ctl link Left E2 && within 5 carrier UP && pings b 10.9.0.5; }
check "and plugged in again" plugged
check "a port that is taken is refused" \
	refuses 'eth2: E1 is taken by eth1' on c "$verbena" ether \
	--device "ib:$name/Left" --port E1 --name eth2
check "the refused interface is gone" \
	refuses 'does not exist' on c ip link show eth2
check "a port that is not there is refused" \
	refuses '"E9" is no Ethernet port: E1 to E4 are' \
	on c "$verbena" ether --device "ib:$name/Left" --port E9 --name eth2
check "a switch without Ethernet ports refuses" \
	refuses '"Right" has no Ethernet ports; a line #! node' \
	on c "$verbena" ether --device "ib:$name/Right" --name eth2
check "a name that is taken is refused" refuses 'there is such an interface' \
	ether c E4
check "attach without an interface is refused" \
	refuses 'no interface was passed' ctl attach Left E4 x
check "nothing is attached to a free port" \
	refuses 'nothing is attached to E4' ctl detach Left E4
check "the topology keeps the ports" seen '#! node .* ethernet=4' ctl topology
check "a wrong number of ports is refused" \
	refuses 'ethernet is 1 to 32 ports' sh -c "sed 's/ethernet=4/ethernet=33/' \
	'$work/topo' >'$work/wrong' && '$verbena' fabric --write '$work/wrong'"
removed() {
	ctl detach Left E2 && within 5 refuses 'does not exist' \
		on c ip link show eth1
}
check "what is detached is gone" removed
check "and another one comes" seen '^eth1: E2' \
	ether c E2 10.9.0.5/24 fd09::5/64

# --- the gateway ---
gateway_begins() { # ARGUMENT...
	"$verbena" gateway --device "ib:$name/Hca3" --switch "ib:$name/Left" \
		--port E3 "$@" 10.9.0.254/24 fd09::fe/64 >"$work/gateway" 2>&1 &
	gateway=$!
	within 20 grep -q MTU "$work/gateway"
}
gateway_ends() {
	kill "$gateway"
	wait "$gateway"
}
become a "$verbena" ipoib --device "ib:$name/Hca1" 10.9.0.3/24 fd09::3/64 \
	>"$work/ipoib" 2>&1 &
ipoib=$!
check "host a has IPoIB" within 20 grep -q MTU "$work/ipoib"
check "the gateway begins" gateway_begins
check "show has it" seen '\[E3\] ethernet, up, .* - gateway' show
check "ping from IPoIB to Ethernet" pings a 10.9.0.4
check "and from Ethernet to IPoIB" pings c 10.9.0.3
check "the gateway itself answers on both sides" \
	sh -c "true $(pings a 10.9.0.254 && pings b 10.9.0.254 || echo '&& false')"
check "by IPv6" pings a fd09::4
check "and back" pings c fd09::3
check "by link-local addresses" pings c fe80::200:ca00:0:101%eth1
check "a large ping, in fragments of either side" pings a 10.9.0.4 -s 20000
check "by IPv6, too" pings b fd09::3 -s 20000
check "nobody has this address" seen '100% packet loss' \
	on a ping -c 1 -W 1 10.9.0.77
gateway_mac=$(ctl macs Left | sed -n 's/ E3,.*//p')
check "the Ethernet's host sees the gateway's MAC address" \
	seen "10.9.0.3 .*$gateway_mac" on c ip neigh
check "a packet of IPoIB's length that may not be cut: its sender is told" \
	seen 'Frag needed and DF set \(mtu = 1500\)' \
	on a ping -c 1 -W 2 -M 'do' -s 1900 10.9.0.4
check "by IPv6, too" seen 'Packet too big: mtu=1500' \
	on a ping -c 1 -W 2 -M 'do' -s 1900 fd09::5

flow() { # FROM TO ADDRESS [OPTION...]: iperf3; its words are in $work/client
	local from=$1 at=$2 address=$3 server

	shift 3
	port=$((port + 1))
	become "$at" iperf3 -s -1 -p $port >"$work/server" 2>&1 &
	server=$!
	listening "$at" $port 20 $server || return
	on "$from" timeout 60 iperf3 -c "$address" -p $port "$@" \
		>"$work/client" 2>&1 && wait $server
}
rate() { awk '/receiver/ { for (i = 2; i <= NF; i++) if ($i ~ /bits\/sec/) {
	r = $(i - 1); if ($i ~ /^G/) r *= 1000; if ($i ~ /^K/) r /= 1000 } }
	END { print int(r) }' "$work/client"; }
carries() { flow "$@" && [ "$(rate)" -ge 10 ]; }
flows() { # NAME FROM TO ADDRESS [OPTION...]
	local what=$1

	shift
	check "$what" carries "$@" || cat "$work/client"
	echo "# $what: $(rate) Mbit/s"
}
if command -v iperf3 >/dev/null; then
	seconds=$([ "$quick" = yes ] && echo 1 || echo 5)
	flows "TCP from IPoIB to Ethernet" a b 10.9.0.4 -t "$seconds"
	if [ "$quick" != yes ]; then
		flows "TCP from Ethernet to IPoIB" c a 10.9.0.3 -t "$seconds"
		flows "TCP, IPv6" a c fd09::5 -t "$seconds"
		flows "UDP" a b 10.9.0.4 -u -b 20M -t "$seconds"
		flows "TCP between Ethernet ports" b c 10.9.0.5 -t "$seconds"
	fi
fi

if find_sshd 10.9.0.3; then
	check "ssh on Ethernet, sshd on IPoIB" ssh_carries b a 10.9.0.3
else
	skip "gateway: ssh" "no sshd to be had, or no root"
fi

# A program on one side is a member, one on the other sends until it is heard.
multicast() { # FAMILY GROUP FROM IFACE TO IFACE
	local receiver

	: >"$work/heard" # the last one was a member, too
	become "$5" python3 "$here/ipoib_multicast.py" receive "$1" "$2" "$6" \
		>"$work/heard" 2>&1 &
	receiver=$!
	within 10 grep -q member "$work/heard" || return
	on "$3" timeout 30 python3 "$here/ipoib_multicast.py" send "$1" "$2" \
		"$4" &
	wait $receiver || return
	wait $!
	grep -q heard "$work/heard"
}
check "a group from IPoIB to Ethernet" multicast 4 239.255.1.2 a ib0 b eth1
check "and from Ethernet to IPoIB" multicast 4 239.255.1.3 c eth1 a ib0
if [ "$quick" != yes ]; then
	check "by IPv6" multicast 6 ff05::1234 a ib0 c eth1
	check "and back" multicast 6 ff05::1235 b eth1 a ib0
fi

# --- what goes wrong ---
dead() {
	kill -KILL "$gateway"
	wait "$gateway" 2>/dev/null
	within 5 sh -c "! '$verbena' fabric show --name '$name' | grep -q E3"
}
check "a gateway that is killed leaves its port" dead
check "another one takes its place" gateway_begins
check "and the hosts go on" pings a 10.9.0.4
check "by IPv6, too" pings a fd09::4
check "frames of any kind do no harm" \
	on c python3 "$here/gateway_garbage.py" eth1 "$gateway_mac" \
	"$([ "$quick" = yes ] && echo 3000 || echo 30000)"
check "the gateway still passes packets" pings a 10.9.0.4
check "and the switch" pings b 10.9.0.5
check "the gateway still runs" kill -0 "$gateway"
# 10.9.0.5 goes from the Ethernet to IPoIB, where the interface announces it, and
# back, where its host's first question shows it.
moves() {
	on c ip addr del 10.9.0.5/24 dev eth1 &&
		on a ip addr add 10.9.0.5/24 dev ib0 &&
		pings b 10.9.0.5 &&
		on a ip addr del 10.9.0.5/24 dev ib0 &&
		on c ip addr add 10.9.0.5/24 dev eth1 &&
		on c ip neigh flush dev eth1 &&
		pings c 10.9.0.254 -I 10.9.0.5 &&
		pings a 10.9.0.5
}
check "an address moves from one side to the other, and back" moves
check "a gateway needs an address" refuses 'give the gateway an address' \
	"$verbena" gateway --device "ib:$name/Hca2" --switch "ib:$name/Left"
check "and a switch" refuses 'give the switch, --switch ib:SWITCH' \
	"$verbena" gateway --device "ib:$name/Hca2" 10.9.0.253/24
check "an MTU that is none is refused" refuses '"100" is not a number of bytes' \
	"$verbena" gateway --device "ib:$name/Hca2" --switch "ib:$name/Left" \
	--mtu 100 10.9.0.253/24
check "it says which port is taken" refuses 'gateway: E3 is taken by gateway' \
	"$verbena" gateway --device "ib:$name/Hca2" --switch "ib:$name/Left" \
	--port E3 10.9.0.253/24
# A router on the Ethernet, named to the gateway, leads to another network.
routes() {
	gateway_ends
	gateway_begins --router 10.9.0.4 &&
		on b ip addr add 10.99.0.1/32 dev lo &&
		on a ip route add 10.99.0.0/24 via 10.9.0.4 dev ib0 &&
		pings a 10.99.0.1
}
check "a router of the Ethernet leads to another network" routes
# A router of IPv6 that advertises itself on the Ethernet is heard of on IPoIB.
advertises() {
	on b ip addr add 2001:db8:9::1/128 dev lo &&
		on b python3 "$here/gateway_router.py" eth1 &&
		within 10 seen 'default via fe80' on a ip -6 route show dev ib0 &&
		pings a 2001:db8:9::1
}
check "a router of IPv6 advertises itself to the other side" advertises
# The gateway has datagrams only, which its neighbours in connected mode know.
connects() {
	kill "$ipoib"
	wait "$ipoib"
	: >"$work/ipoib"
	become a "$verbena" ipoib --device "ib:$name/Hca1" --mode connected \
		10.9.0.3/24 fd09::3/64 >"$work/ipoib" 2>&1 &
	ipoib=$!
	within 20 grep -q 'MTU 65520' "$work/ipoib" && pings a 10.9.0.4
}
check "a host in connected mode reaches the Ethernet" connects
check "and the Ethernet it" pings c 10.9.0.3
check "what fits in no datagram may not leave whole" \
	seen 'Frag needed and DF set \(mtu = 2044\)' \
	on a ping -c 1 -W 2 -M 'do' -s 60000 10.9.0.5
check "by IPv6, too" seen 'Packet too big: mtu=2044' \
	on a ping -c 1 -W 2 -M 'do' -s 60000 fd09::4
check "but in fragments" pings a 10.9.0.4 -s 20000
if command -v iperf3 >/dev/null && [ "$quick" != yes ]; then
	flows "TCP from connected mode to Ethernet" a b 10.9.0.4 -t 2
	flows "and back" b a 10.9.0.3 -t 2
fi
check "a gateway itself has no connected mode" \
	refuses 'there is no option --mode' "$verbena" gateway --mode connected \
	--device "ib:$name/Hca2" --switch "ib:$name/Left" 10.9.0.253/24
check "nor has an Ethernet" \
	refuses 'verbena eoib: connected mode is for interfaces of IPoIB only' \
	"$build/ipoib/verbena-ipoib" --ethernet 0 --mode connected
detached() {
	ctl detach Left E3 && ! wait "$gateway" &&
		grep -q 'its Ethernet port was detached' "$work/gateway"
}
check "a gateway whose port is detached ends, and says so" detached
gateway_begins
gateway_ends
check "the gateway ends, and its port is free" \
	within 5 sh -c "! '$verbena' fabric show --name '$name' | grep -q E3"
kill "$ipoib"
wait "$ipoib"
fabric_down
check "the fabric's end takes the interfaces away" \
	within 5 refuses 'does not exist' on b ip link show eth1
summary
