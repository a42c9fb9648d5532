#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs inside the lab's guest for bench/soft_roce.sh:
#
#	guest.sh set_up
#	guest.sh pair verbena|rxe cable|host PROGRAM OPTIONS...
#	guest.sh connections verbena|rxe cable|host COUNT
#
# Each has a cable (veth) of its own, of the same MTU. Soft-RoCE 6.1 works in
# the machine's first network namespace only, so both ends of its cable are
# there, and rules make packets between its two addresses take the cable and
# not the short way through loopback. The ends of Verbena's are in a namespace
# each, since it would find by itself that two programs share a host. On "host"
# both do: rxe's own loopback, and Verbena's way without packets.
set -u
verbena=${VERBENA:-verbena}
port=18515

# cable NAME: NAME0 and NAME1.
cable() {
	ip link add "${1}0" mtu 9000 type veth peer name "${1}1" mtu 9000
}

# One end's addresses are the other's neighbours, although both are local.
rxe_end() {
	local here=$1 mine=$2 other=$3 table=$4 dir=/proc/sys/net/ipv4/conf

	ip address add "$mine/24" dev "$here" && ip link set "$here" up
	echo 1 >$dir/"$here"/accept_local
	echo 0 >$dir/"$here"/rp_filter
	ip rule add pref 10 iif "$here" lookup local
	ip rule add pref 20 to "$other" lookup "$table"
	ip route add "$other/32" dev "$here" src "$mine" table "$table"
	rdma link add "rxe_$here" type rxe netdev "$here"
}

verbena_end() {
	ip netns add "$1" && ip link set "$2" netns "$1" &&
		ip -n "$1" link set lo up &&
		ip -n "$1" address add "$3/24" dev "$2" &&
		ip -n "$1" link set "$2" up
}

set_up() {
	echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter
	cable k && rxe_end k0 10.9.0.1 10.9.0.2 100 &&
		rxe_end k1 10.9.0.2 10.9.0.1 101 || return
	cable v && verbena_end a v0 10.8.0.1 && verbena_end b v1 10.8.0.2 ||
		return
	sleep 2 # link-local addresses take their place before others
	[ -e /sys/class/infiniband/rxe_k1 ]
}

# Which program prefix, device and address either side has.
places() {
	server=() client=()
	case $1-$2 in
	rxe-cable) devices=(rxe_k0 rxe_k1) address=127.0.0.1 ;;
	rxe-host) devices=(rxe_k0 rxe_k0) address=127.0.0.1 ;;
	verbena-cable)
		server=(ip netns exec a "$verbena" run --)
		client=(ip netns exec b "$verbena" run --)
		devices=(roce_v0 roce_v1) address=10.8.0.1
		;;
	verbena-host)
		server=(ip netns exec a "$verbena" run --)
		client=("${server[@]}")
		devices=(roce_v0 roce_v0) address=10.8.0.1
		;;
	*) return 2 ;;
	esac
}

# cmtime finds devices by addresses, and its server, which nothing tells of,
# stays.
connections() {
	local pid status=0 from=10.9.0.2 to=10.9.0.1

	places "$1" "$2" || return
	[ "$1" = rxe ] || { from=10.8.0.2 && to=10.8.0.1; }
	[ "$2" = cable ] || from=$to
	ulimit -n 20000
	"${server[@]}" cmtime -c "$3" >/run/server 2>&1 &
	pid=$!
	sleep 3
	"${client[@]}" cmtime -b $from -s $to -c "$3" || status=1
	kill $pid
	wait $pid
	[ $status -eq 0 ] || tail -n 5 /run/server
	return $status
}

listening() {
	local tries=0

	until "${server[@]:0:4}" ss -Hltn "sport = :$port" | grep -q .; do
		tries=$((tries + 1))
		[ $tries -lt 300 ] && kill -0 "$1" || return 1
		sleep 0.05
	done
}

pair() {
	local pid status=0

	places "$1" "$2" || return
	shift 2
	"${server[@]}" "$@" -F -d "${devices[0]}" -x 1 >/run/server 2>&1 &
	pid=$!
	listening $pid &&
		"${client[@]}" "$@" -F -d "${devices[1]}" -x 1 "$address" ||
		status=1
	[ $status -eq 0 ] || kill $pid
	wait $pid || status=1
	[ $status -eq 0 ] || tail -n 5 /run/server
	return $status
}

"$@"
