#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Unmodified programs with the options of matrix.txt, between two hosts and on
# one, over IPv4 and IPv6, MTU 1500 and 9000, as root and as an ordinary user:
#
#	tests/programs/matrix.sh [--all] [--only REGEX] [--list]
#
# --all runs the whole product with the programs' own numbers of iterations;
# without it each row runs in two of the sixteen places (in a short run in one), in
# turn, so that all places are covered and all rows are. With --all perftest has the time that it
# takes to measure the processor's clock (tests/programs/quick_clock.c).
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"

all=no
only=.
list=no
arguments=("$@")
while [ $# -gt 0 ]; do
	case $1 in
	--all | --full) all=yes ;;
	--only)
		only=$2
		shift
		;;
	--list) list=yes ;;
	*)
		echo "matrix: unknown option $1" >&2
		exit 2
		;;
	esac
	shift
done
# perftest measures the processor's clock before each size, for seconds where
# the processor is not its own.
export VERBENA_TIMEOUT=150
if [ $all = no ]; then
	hurry_perftest
else
	VERBENA_TIMEOUT=1200
fi
tests_begin "$0" "${arguments[@]}"

# place N: the Nth of sixteen, as variables.
place() {
	where=host
	family=ipv4
	mtu=1500
	who=root
	[ $(($1 & 1)) -eq 0 ] || where=veth
	[ $(($1 & 2)) -eq 0 ] || family=ipv6
	[ $(($1 & 4)) -eq 0 ] || who=user
	[ $(($1 & 8)) -eq 0 ] || mtu=9000
}

# plan: "MTU PLACE PROGRAM ITERATIONS OPTIONS" lines, grouped by MTU.
plan() {
	local row=0 first second program short options n

	while read -r program short options; do
		case $program in '' | \#*) continue ;; esac
		# A row's two places are each other's complement.
		first=$((row * 5 % 16))
		second=$((15 - first))
		[[ " $options " != *" -a "* && $quick = no ]] || second=$first
		for n in {0..15}; do
			[ $all = yes ] || [ "$n" -eq $first ] ||
				[ "$n" -eq $second ] || continue
			place "$n"
			echo "$mtu $n $program $short $options"
		done
		row=$((row + 1))
	done <"$here/matrix.txt" | sort -s -k1,1n
}

name_of() {
	echo "$*" | tr -s ' '
}

# gid HOST: its index into REPLY, of this case's family, looked up once for each MTU and host.
gid() {
	local address=HOST_${1^^} key=$1$family$mtu

	if [ -z "${gids[$key]:-}" ]; then
		[ $family = ipv4 ] || address+=6
		address=${!address}
		[ $family = ipv6 ] || address=::ffff:$address
		gids[$key]=$(gid_index "$1" "$device" "$address")
	fi
	REPLY=${gids[$key]}
	[ -n "$REPLY" ]
}

# one PROGRAM ITERATIONS OPTIONS...: run a case in the place that is set.
one() {
	local program=$1 short=$2 from=a x=-x server_gid client_gid name start

	shift 2
	name=$(name_of "$program" "$@" "[$where $family mtu $mtu $who]")
	[[ $name =~ $only ]] && sometimes 4 || return
	can_be $who || {
		skip "$name" "$REPLY"
		return
	}
	if [ $where = veth ]; then
		[ "$hosts" = yes ] || {
			skip "$name" "no network namespaces here"
			return
		}
		from=b
	fi
	[[ $program != ibv_*_pingpong ]] || x=-g
	gid a && server_gid=$REPLY && gid $from && client_gid=$REPLY || {
		not_ok "$name (no such GID)"
		return
	}
	[ $all = yes ] || [ "$short" = - ] || set -- "$@" -n "$short"
	# Left by XRC's programs at fixed places, for nobody but their user.
	rm -f /tmp/xrc_domain{,_server,_client}
	start=$EPOCHREALTIME
	if pair $who a $from "$program" -d "$device" $x "$server_gid" "$@" -- \
		"$program" -d "$device" $x "$client_gid" "$@" "$HOST_A"; then
		ok "$name ($(seconds_since "$start") s)"
	else
		not_ok "$name ($(seconds_since "$start") s)" \
			"$work/server" "$work/client"
	fi
}

# can_be WHO: or why not, in $REPLY.
can_be() {
	REPLY="an ordinary user cannot be or cannot read $build"
	[ "$1" = root ] || [ $user = yes ]
}

seconds_since() {
	local now=$EPOCHREALTIME us

	us=$((${now/./} - ${1/./}))
	printf '%d.%d' $((us / 1000000)) $((us / 100000 % 10))
}

# What needs no peer: that the devices are there, and say so in full.
queries() {
	local who program

	for who in root user; do
		for program in ibv_devices "ibv_devinfo -v"; do
			query $who "$program"
		done
	done
}

query() {
	local name="$2 [$1]"

	[[ $name =~ $only ]] || return
	can_be "$1" || {
		skip "$name" "$REPLY"
		return
	}
	# shellcheck disable=SC2086 # a program and its option
	if on a bash -c 'as "$@"' as "$1" timeout 20 "$verbena" run -- $2 \
		</dev/null >"$work/query" 2>&1 &&
		grep -q "$device" "$work/query" &&
		{ [ "$device" = roce_lo ] || ! grep -q roce_lo "$work/query"; }; then
		ok "$name"
	else
		not_ok "$name" "$work/query"
	fi
}

if [ $list = yes ]; then
	plan
	exit
fi
declare -A gids
device=roce_veth0
if [ "$hosts" = yes ]; then
	need_hosts 1500
else
	# Loopback of this very machine is what is left.
	device=roce_lo
	HOSTS_PID_a=here
	export HOSTS_PID_a
	HOST_A=127.0.0.1
	HOST_A6=::1
fi
user=no
user_can_reach_build 2>/dev/null && user=yes
queries
mtu_now=1500
while read -r mtu n program short options; do
	place "$n"
	[ "$mtu" = "$mtu_now" ] || [ "$hosts" = no ] || hosts_mtu "$mtu"
	mtu_now=$mtu
	# shellcheck disable=SC2086 # options are words
	one "$program" "$short" $options
done < <(plan)
summary
