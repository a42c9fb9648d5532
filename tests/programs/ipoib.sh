#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# IPoIB: network interfaces on an emulated fabric, in hosts that have no other
# network. tests/programs/ipoib.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
# shellcheck source=tests/programs/fabric_lib.sh
. "$here/fabric_lib.sh"
tests_begin "$0" "$@"
# shellcheck source=tests/programs/sshd_lib.sh
. "$here/sshd_lib.sh"

fabric_begin opensm saquery ip ping
layer=ipoib
name=ipoib$$
if [ "$hosts" = no ] || [ ! -c /dev/net/tun ]; then
	skip ipoib "no network namespaces here, or no /dev/net/tun"
	summary
	exit
fi
need_hosts 1500

# iface HOST NODE ARGUMENT...: an interface there. Its process is $iface, and
# what it says is in $work/iface_HOST.
iface() { interface ipoib "$@"; }
interface() {
	local kind=$1 host=$2 node=$3

	shift 3
	: >"$work/iface_$host"
	become "$host" "$verbena" "$kind" --device "ib:$name/$node" "$@" \
		>"$work/iface_$host" 2>&1 &
	iface=$!
	within 20 grep -q 'MTU' "$work/iface_$host"
}
# iface_ends PID: it is told to end, and does.
iface_ends() {
	kill "$1"
	wait "$1"
}
# seen PATTERN COMMAND...: its output has it.
seen() {
	local pattern=$1

	shift
	"$@" 2>&1 | grep -Eq -- "$pattern"
}
pings() { # HOST ADDRESS [OPTION...]: an answer within 20 s
	local host=$1 address=$2

	shift 2
	within 20 on "$host" ping -c 1 -W 1 "$@" "$address"
}
groups() { r Hca3 saquery -g; }
# members MGID: the ports that the subnet administrator counts as its members
members() { r Hca3 saquery --smkey 1 -m | grep -c "MGID.*$1\$"; }
qpn() { sed -n 's/.*QPN \(0x[0-9a-f]*\).*/\1/p' "$work/iface_$1" | tail -n 1; }

fabric_up --sm --make switch:4 || {
	not_ok "ipoib: the fabric starts" "$work/fabric"
	summary
	exit
}
log=$(sed -n 's/^the log of its subnet manager is //p' "$work/fabric")
check "the subnet comes up" subnet_up "$log"

# --- two hosts ---
check "an interface comes up" iface a Hca1 10.9.0.3/24 fd09::3/64
iface_a=$iface
check "and another one" iface b Hca2 10.9.0.4/24 fd09::4/64
iface_b=$iface
check "its type is InfiniBand, its MTU that of the group less 4" \
	seen 'mtu 2044 .*state UP|link/infiniband' on a ip link show ib0
check "it has the addresses" seen 'inet 10.9.0.3/24' on a ip addr show ib0
check "and the link-local one of its port" \
	seen 'inet6 fe80::200:ca00:0:101/64' on a ip addr show ib0
check "ping" pings a 10.9.0.4
check "ping by IPv6" pings b fd09::3
check "ping by link-local addresses" pings b "fe80::200:ca00:0:101%ib0"
check "a large ping, in fragments" pings a 10.9.0.4 -s 20000
check "a large ping by IPv6" pings a fd09::4 -s 20000
check "no answer from an address that nobody has" \
	seen '100% packet loss' on a ping -c 2 -W 1 10.9.0.77
on b ip addr add 10.99.0.1/32 dev lo
on a ip route add 10.99.0.0/24 via 10.9.0.4 dev ib0
check "a gateway, which the routes name" pings a 10.99.0.1
on a ip route del 10.99.0.0/24
on a ip route add 10.99.0.0/24 dev ib0
check "no gateway any more" seen '100% packet loss' \
	on a ping -c 1 -W 1 10.99.0.1
on a ip -6 route add fd99::/64 via fd09::4 dev ib0
on b ip addr add fd99::1/128 dev lo
check "a gateway of IPv6" pings a fd99::1
on b sysctl -qw net.ipv4.icmp_echo_ignore_broadcasts=0
check "the broadcast address" \
	seen 'bytes from 10.9.0.4' on a ping -b -c 3 -W 1 10.9.0.255
for group in ff12:401b:ffff::ffff:ffff ff12:401b:ffff::1 ff12:601b:ffff::1 \
	ff12:601b:ffff::1:ff00:3; do
	check "saquery shows $group" seen "MGID.*$group\$" groups
done
check "the interface is no RoCE device" seen '^roce_veth0$' \
	on a "$verbena" devices
fails() { # PATTERN COMMAND...: it fails, and says so
	local pattern=$1

	shift
	! "$@" >"$work/said" 2>&1 && grep -Eq -- "$pattern" "$work/said"
}
check "also if it is asked for" seen 'ib0 carries IP over InfiniBand' \
	on a "$verbena" devices --device ib0
on a "$verbena" devices >"$work/devices"
check "nor in the list" test "$(grep -c roce_ib0 "$work/devices")" = 0

# --- TCP, UDP ---
# flow OPTION...: iperf3 from a to b. What it says is in $work/client.
flow() {
	become b iperf3 -s -1 -p $port >"$work/server" 2>&1 &
	listening b $port 20 $! || return
	on a timeout 60 iperf3 -c 10.9.0.4 -p $port "$@" \
		>"$work/client" 2>&1 || return
	wait $!
}
# Megabits a second that arrived.
rate() { awk '/receiver/ { for (i = 2; i <= NF; i++) if ($i ~ /bits\/sec/) {
	r = $(i - 1); if ($i ~ /^G/) r *= 1000; if ($i ~ /^K/) r /= 1000 } }
	END { print int(r) }' "$work/client"; }
carries() { flow "$@" && [ "$(rate)" -ge 10 ]; }
if command -v iperf3 >/dev/null; then
	seconds=$([ "$quick" = yes ] && echo 1 || echo 5)
	check "iperf3, TCP" carries -t "$seconds" || cat "$work/client"
	echo "# TCP: $(rate) Mbit/s"
	check "iperf3, TCP, the other way" carries -R -t "$seconds" ||
		cat "$work/client"
	check "iperf3, UDP" carries -u -b 50M -t "$seconds" ||
		cat "$work/client"
	echo "# UDP: $(rate) Mbit/s of 50"
else
	skip "ipoib: iperf3" "it is not installed"
fi

if find_sshd 10.9.0.4; then
	check "ssh and sshd" ssh_carries a b 10.9.0.4
else
	skip "ipoib: ssh" "no sshd to be had, or no root"
fi

# --- multicast ---
# A program on host b is a member, one on host a sends until it is heard.
multicast() { # FAMILY GROUP MGID [BYTES]
	: >"$work/heard" # the last one was a member, too
	become b python3 "$here/ipoib_multicast.py" receive "$1" "$2" ib0 \
		>"$work/heard" 2>&1 &
	local receiver=$!
	within 10 grep -q member "$work/heard" || return
	within 10 seen "MGID.*$3\$" groups || return
	on a timeout 30 python3 "$here/ipoib_multicast.py" send "$1" "$2" ib0 \
		"${4:-5}" &
	wait $receiver || return
	wait $!
	grep -q "heard ${4:-5} bytes hello" "$work/heard"
}
check "a group of IPv4" multicast 4 239.255.1.2 ff12:401b:ffff::fff:102
check "a group of IPv6" multicast 6 ff05::1234 ff12:601b:ffff::1234
check "a host that leaves a group leaves it at the subnet administrator" \
	within 20 sh -c "! XDG_RUNTIME_DIR='$XDG_RUNTIME_DIR' '$verbena' run \
		--device 'ib:$name/Hca3' -- saquery -g | grep -q fff:102"

# --- questions of programs ---
lookup() { on a python3 "$here/ipoib_ask.py" "$@"; }
check "the interface tells its adapter" \
	seen 'guid 200ca0000000100 port 1 pkey ffff mtu 2044 qkey b1b gid fe80::200:ca00:0:101' \
	lookup ib0 own
check "and a neighbour's GID" seen 'gid fe80::200:ca00:0:201' \
	lookup ib0 10.9.0.4
check "by IPv6, too" seen 'gid fe80::200:ca00:0:201' lookup ib0 fd09::4
check "and its own" seen 'gid fe80::200:ca00:0:101' lookup ib0 10.9.0.3
check "EHOSTUNREACH: nobody has the address" seen 'error -113' \
	lookup ib0 10.9.0.99

check "bytes that are no question end the connection" seen '^closed$' \
	lookup ib0 garbage
stranger() {
	(become a bash -c 'as "$@"' as user /usr/bin/python3 \
		"$here/ipoib_ask.py" ib0 own)
}
if [ -z "${VERBENA_USERNS:-}" ] && user_can_reach_build; then
	check "another user is not answered" seen '^closed$' stranger
fi
check "and the next program is" seen 'mtu 2044' lookup ib0 own

# --- a peer that is killed, and comes back with another queue pair ---
before=$(qpn b)
{
	kill -KILL "$iface_b"
	wait "$iface_b"
} 2>/dev/null
check "a peer comes back" iface b Hca2 10.9.0.4/24 fd09::4/64
iface_b=$iface
check "with another queue pair" test "$before" != "$(qpn b)"
check "its neighbour finds it again" pings a 10.9.0.4
check "by IPv6, too" pings a fd09::4

# --- the subnet manager is killed ---
rejoined() { [ "$(members ff12:401b:ffff::ffff:ffff)" -ge 2 ]; }
kill -KILL "$(pgrep -P "$fabric")"
check "all groups are joined again at another subnet manager" \
	within 30 rejoined
check "and pings are answered" pings a 10.9.0.4
check "by IPv6, too" pings b fd09::3

# --- a cable is pulled ---
"$verbena" fabric ctl --name "$name" unlink Hca2 1
check "without a cable there is no carrier" within 10 \
	seen NO-CARRIER on b ip link show ib0
"$verbena" fabric ctl --name "$name" link Hca2 1
check "with it there is one" within 20 seen LOWER_UP on b ip link show ib0
check "and pings are answered" pings b 10.9.0.3

# --- what an administrator does to the interface ---
on a ip link set ib0 down
on a ip link set ib0 up
check "down and up again: it carries packets" pings a 10.9.0.4
on a ip link set ib0 mtu 4000
check "packets beyond the group's MTU are dropped" \
	seen '100% packet loss' on a ping -c 1 -W 1 -s 3000 -M "do" 10.9.0.4
on a ip link set ib0 mtu 2044
check "and others are not" pings a 10.9.0.4
on b ip addr add 10.9.5.4/24 dev ib0
on a ip addr add 10.9.5.3/24 dev ib0
check "an address that comes later" pings a 10.9.5.4
on b ip addr del 10.9.5.4/24 dev ib0
on a ip link del ib0
ended() { ! kill -0 "$1" 2>/dev/null; }
check "the interface is deleted: the process ends" within 10 ended "$iface_a"
check "and says so" grep -q 'the interface was removed' "$work/iface_a"
check "it can be made again" iface a Hca1 10.9.0.3/24 fd09::3/64
iface_a=$iface

# --- the end ---
check "SIGTERM ends it" iface_ends "$iface_b"
left() { [ "$(members ff12:401b:ffff::ffff:ffff)" -le 1 ]; }
check "it has left its groups" within 10 left
check "SIGTERM ends the other one" iface_ends "$iface_a"
gone() { ! on a ip link show ib0; }
check "the interface is gone" gone

# --- connected mode (RFC 4755) ---
both() { # MODE MODE: interfaces on host a and host b
	iface a Hca1 --mode "$1" 10.9.0.3/24 fd09::3/64 || return
	iface_a=$iface
	iface b Hca2 --mode "$2" 10.9.0.4/24 fd09::4/64 || return
	iface_b=$iface
}
neither() {
	iface_ends "$iface_a"
	iface_ends "$iface_b"
}
whole() { # HOST ADDRESS: packets of 60000 bytes, each in one frame
	pings "$1" "$2" -s 60000 -M "do"
}
# Random bytes by TCP from a to b, which arrive as they were.
same_bytes() { # MEGABYTES
	: >"$work/received" # without the last receiver's word
	become b python3 "$here/ipoib_stream.py" receive "$port" \
		>"$work/received" 2>&1 &
	local receiver=$!
	within 10 grep -q listening "$work/received" || return
	on a timeout 90 python3 "$here/ipoib_stream.py" send 10.9.0.4 "$port" \
		"$1" >"$work/sent" || return
	wait $receiver || return
	grep -q '^sum ' "$work/sent" &&
		[ "$(grep sum "$work/sent")" = "$(grep sum "$work/received")" ]
}
check "connected: two interfaces" both connected connected
check "connected: their MTU is 65520" \
	seen 'mtu 65520 .*state UP' on a ip link show ib0
whole b 10.9.0.3 &
other=$!
check "connected: both ends call at once: a packet of 60000 bytes" \
	whole a 10.9.0.4
check "connected: and the other way" wait $other
check "connected: by IPv6" whole b fd09::3
check "connected: TCP, every byte right" \
	same_bytes "$([ "$quick" = yes ] && echo 16 || echo 256)" ||
	cat "$work/sent" "$work/received"
if command -v iperf3 >/dev/null; then
	check "connected: iperf3, TCP" carries -t "$seconds" ||
		cat "$work/client"
	echo "# connected, TCP: $(rate) Mbit/s"
	check "connected: iperf3, UDP" carries -u -b 50M -l 30000 \
		-t "$seconds" || cat "$work/client"
fi
check "connected: a packet to a group that no datagram takes is lost" \
	seen '100% packet loss' on a ping -b -c 1 -W 1 -s 5000 10.9.0.255
on a ip route add 224.0.0.0/4 dev ib0 mtu 2044
on a ip -6 route replace multicast ff00::/8 dev ib0 table local metric 256 \
	mtu 2044
check "connected: a long packet to a group, where a route says its MTU" \
	multicast 4 239.255.1.4 ff12:401b:ffff::fff:104 9000
check "connected: by IPv6, too" multicast 6 ff05::1236 \
	ff12:601b:ffff::1236 9000
{
	kill -KILL "$iface_b"
	wait "$iface_b"
} 2>/dev/null
check "connected: a peer that was killed comes back" \
	iface b Hca2 --mode connected 10.9.0.4/24 fd09::4/64
iface_b=$iface
check "connected: a new connection" whole a 10.9.0.4
# A third program calls as no interface does.
check "connected: a neighbour that calls too often loses its own connections" \
	seen '16 of 20 connections ended' on b "$verbena" run \
	--device "ib:$name/Hca4" -- "$build/tests/programs/ipoib_callers_test" \
	fe80::200:ca00:0:101 "$(qpn a)" fe80::200:ca00:0:401
check "connected: and takes nothing from others" whole a 10.9.0.4
# A stopped peer takes nothing; its neighbours' other traffic goes on.
on a ip addr add 10.9.7.3/24 dev ib0
become b "$verbena" ipoib --device "ib:$name/Hca3" --mode connected --name ib1 \
	10.9.7.5/24 >"$work/iface_third" 2>&1 &
iface_third=$!
check "connected: a third one" whole a 10.9.7.5
kill -STOP "$iface_b"
become a ping -q -i 0.002 -s 60000 -M "do" -W 1 -c 600 10.9.0.4 \
	>/dev/null 2>&1 &
flood=$!
sleep 0.5
check "connected: one peer is stopped, and others are reached" \
	on a ping -c 3 -i 0.3 -W 2 -s 60000 -M "do" 10.9.7.5
kill -CONT "$iface_b"
wait $flood
check "connected: it goes on, and is reached" whole a 10.9.0.4
iface_ends "$iface_third"
# A stopped connection manager delays new connections, and nothing else. The call
# is under way when the first of the packets has been sent.
become b "$verbena" ipoib --device "ib:$name/Hca3" --mode connected --name ib1 \
	10.9.7.6/24 >"$work/iface_third" 2>&1 &
iface_third=$!
check "connected: one more" within 20 grep -q MTU "$work/iface_third"
manager=$(on a ss -Hxlpn |
	sed -n 's/.*@verbena\/broker .*pid=\([0-9]*\).*/\1/p')
check "connected: the connection manager is stopped" kill -STOP "$manager"
become a ping -q -s 60000 -M "do" -i 0.1 -w 5 10.9.7.6 >/dev/null 2>&1 &
flood=$!
check "connected: a stopped connection manager holds up no other packets" \
	seen ' 0% packet loss' on a ping -i 0.2 -c 15 -W 1 10.9.0.4
check "connected: nor those of existing connections" \
	seen ' 0% packet loss' on a ping -i 0.2 -c 5 -W 1 -s 60000 -M "do" 10.9.0.4
kill -CONT "$manager"
wait $flood
check "connected: it goes on, and the new connection comes" whole a 10.9.7.6
iface_ends "$iface_third"

# --- one end has connected mode, the other one has not ---
iface_ends "$iface_b"
check "mixed: a peer of datagrams" iface b Hca2 --mode datagram 10.9.0.4/24 \
	fd09::4/64
iface_b=$iface
check "mixed: ping" pings a 10.9.0.4
check "mixed: the sender is told of the peer's MTU" within 20 \
	seen 'mtu ?= ?2044' on a ping -c 2 -W 1 -s 60000 -M "do" 10.9.0.4
check "mixed: by IPv6" within 20 \
	seen 'mtu[=:] ?2044' on a ping -c 2 -W 1 -s 60000 -M "do" fd09::4
check "mixed: a large ping, in fragments" pings a 10.9.0.4 -s 20000
check "mixed: by IPv6, the other way" pings b fd09::3 -s 20000
check "mixed: TCP, every byte right" same_bytes 8 ||
	cat "$work/sent" "$work/received"
# One network namespace has the adapter's connection manager.
become b "$verbena" ipoib --device "ib:$name/Hca1" --mode connected --name ib2 \
	10.9.8.5/24 fd98::a1b2/64 >"$work/iface_guest" 2>&1 &
guest=$!
within 20 grep -q 'MTU' "$work/iface_guest"
check "mixed: without a connection manager there are datagrams" \
	grep -q '^ib2: MTU 2044' "$work/iface_guest"
check "mixed: and it says why" grep -q \
	'no connected mode: the connection manager' "$work/iface_guest"
on a ip addr add 10.9.8.3/24 dev ib0
check "mixed: by which it is reached" pings a 10.9.8.5
# The guest leaves its own group, and not those that the other one is in.
own_group='ff12:601b:ffff::1:ff00:a1b2'
check "two at one adapter: a group of one of them" \
	within 10 seen "MGID.*$own_group\$" groups
iface_ends "$guest"
has_left() { ! seen "MGID.*$own_group\$" groups; }
check "two at one adapter: one ends, and leaves it" within 10 has_left
check "two at one adapter: the other stays in the groups of both" \
	test "$(members ff12:401b:ffff::ffff:ffff)" = 2
on a ip addr add 10.9.0.33/24 dev ib0
check "two at one adapter: and hears them" pings b 10.9.0.33
neither

# --- Ethernet over InfiniBand ---
check "eoib: an Ethernet" interface eoib a Hca1 10.9.3.3/24 fd93::3/64
iface_a=$iface
check "eoib: and another one" interface eoib b Hca2 10.9.3.4/24 fd93::4/64
iface_b=$iface
check "eoib: its address is the port's" \
	seen 'link/ether 02:00:00:00:01:01' on a ip link show eib0
check "eoib: its MTU is that of the group less 22" seen 'LOWER_UP> mtu 2026' on a ip link show eib0
check "eoib: ping" pings a 10.9.3.4
check "eoib: ping by IPv6" pings b fd93::3
check "eoib: a large ping" pings b 10.9.3.3 -s 20000
check "eoib: the kernel knows the neighbour" \
	seen '10.9.3.4 lladdr 02:00:00:00:02:01' on a ip neigh show dev eib0
# Frames for an address that has been heard go to its queue pair alone.
to_groups() { r Hca1 perfquery -x | sed -n 's/^PortMulticastXmitPkts:\.*//p'; }
unicast() {
	local before after

	before=$(to_groups)
	on a ping -c 30 -i 0.02 -W 2 10.9.3.4 | grep -q ' 0% packet loss' || return
	after=$(to_groups)
	[ -n "$after" ] && [ $((after - before)) -lt 15 ]
}
check "eoib: frames to an address that was heard go there alone" unicast
check "eoib: packets of the whole MTU" \
	pings a 10.9.3.4 -M "do" -s $((2026 - 28))
{
	kill -KILL "$iface_b"
	wait "$iface_b"
} 2>/dev/null
check "eoib: a peer comes back with another queue pair" \
	interface eoib b Hca2 10.9.3.4/24 fd93::4/64
iface_b=$iface
check "eoib: its neighbour finds it again" pings a 10.9.3.4
iface_ends "$iface_b"
check "eoib: another network" interface eoib b Hca2 --network 9 10.9.3.4/24
iface_b=$iface
check "eoib: it does not hear the first one" \
	seen '100% packet loss' on a ping -c 2 -W 1 10.9.3.4
check "eoib: saquery shows the networks" \
	seen 'MGID.*ff12:e01b:ffff::9$' groups
check "eoib: SIGTERM ends it" iface_ends "$iface_b"
iface_ends "$iface_a"

# --- in the background ---
background=ib$$
check "--daemon returns when the interface is up" \
	on a "$verbena" ipoib --daemon --device "ib:$name/Hca1" \
	--name "$background" 10.9.1.3/24
check "it is there" seen 'inet 10.9.1.3' on a ip addr show "$background"
check "a second one of that name is refused" \
	fails 'there is such an interface already' \
	on a timeout 20 "$verbena" ipoib --daemon --device "ib:$name/Hca1" \
	--name "$background"
pkill -TERM -f "verbena-ipoib --name $background --daemon 10.9.1.3/24\$"
check "and ends on SIGTERM" within 10 sh -c "! nsenter -t $HOSTS_PID_a -n \
	ip link show $background"

# --- without the privilege ---
check "without CAP_NET_ADMIN one sentence says so" \
	fails '^verbena ipoib: ib0: a network interface needs CAP_NET_ADMIN' \
	on a setpriv --bounding-set=-net_admin --inh-caps=-net_admin \
	timeout 20 "$verbena" ipoib --device "ib:$name/Hca1"
check "that is all" test "$(wc -l <"$work/said")" = 1
for words in "--device eth0" "" "--device ib:$name/Hca1 --pkey 0x18001" \
	"--device ib:$name/Hca1 10.9.0.3" "--device ib:$name/Hca1 10.9.0.3/33" \
	"--device ib:$name/Hca1 --mode fast 10.9.0.3/24"; do
	# shellcheck disable=SC2086 # words
	check "refused: ${words:-no device}" fails 'help ipoib|not an address' \
		on a timeout 20 "$verbena" ipoib $words
done
check "a node that is not there" fails 'has no node "Hca99"' \
	on a timeout 20 "$verbena" ipoib --device "ib:$name/Hca99"
check "the fabric ends" iface a Hca1 10.9.0.3/24
iface_a=$iface
fabric_down
check "and the interface with it" within 10 ended "$iface_a"
check "it says why" grep -q 'the fabric has ended' "$work/iface_a"

# --- the user's own fabric ---
own() { # HOST ADDRESS: an interface at the host's adapter
	: >"$work/iface_$1"
	become "$1" "$verbena" ipoib --device ib "$2" >"$work/iface_$1" 2>&1 &
	iface=$!
	within 30 grep -q MTU "$work/iface_$1"
}
check "--device ib: this host's adapter" own a 10.9.4.3/24
iface_a=$iface
check "--device ib: another host's" own b 10.9.4.4/24
check "--device ib: ping" pings a 10.9.4.4
iface_ends "$iface_a"
iface_ends "$iface"

# --- partitions ---
cat >"$work/partitions" <<-END
	Default=0x7fff, ipoib : ALL=full, SELF=full;
	blue=0x0002, ipoib, mtu=5 : 0x0200ca0000000201=full,
	0x0200ca0000000301=full;
END
fabric_up --make switch:4
opensm_up Hca1 "$work/osm.log" -P "$work/partitions"
check "a subnet with two partitions comes up" subnet_up "$work/osm.log"
check "a child interface" iface a Hca2 --pkey 0x8002 10.9.2.3/24
iface_a=$iface
check "and its peer" iface b Hca3 --pkey 0x2 10.9.2.4/24
iface_b=$iface
check "its name has the P_Key, its MTU is the partition's" \
	seen 'ib0.8002: .* mtu 4092' on a ip link show ib0.8002
check "ping within a partition" pings a 10.9.2.4
check "a large ping within a partition" pings b 10.9.2.3 -s 30000
check "an interface in the default partition beside it" \
	iface a Hca2 10.9.0.3/24
check "it does not hear the other partition" \
	seen '100% packet loss' on a ping -I ib0 -c 2 -W 1 10.9.2.4
kill "$iface"
become a "$verbena" ipoib --device "ib:$name/Hca4" --pkey 0x8002 --name not \
	>"$work/waits" 2>&1 &
check "a port without the P_Key waits, and says so" within 15 \
	grep -q 'waiting for the P_Key 0x8002' "$work/waits"
kill $!
neither
check "connected: a partition" iface a Hca2 --pkey 0x8002 --mode connected \
	10.9.2.3/24
iface_a=$iface
check "connected: and its peer" iface b Hca3 --pkey 0x8002 --mode connected \
	10.9.2.4/24
iface_b=$iface
check "connected: a packet of 60000 bytes within a partition" whole a 10.9.2.4
neither
kill "$opensm"
wait "$opensm" 2>/dev/null
fabric_down

summary
