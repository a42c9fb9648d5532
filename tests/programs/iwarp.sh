#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# iWARP devices: unmodified programs between two hosts and on one, every byte
# compared, what tshark says of it, what a killed side and a faulty request end
# in, and what an RNIC has not. tests/programs/iwarp.sh [--full]
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"
need_hosts 9000
export VERBENA_DEVICES=iw_veth0
full=${1:-}
[ -n "$full" ] || hurry_perftest

# on_port PORT NAME SERVER_HOST CLIENT_HOST SERVER... -- CLIENT...
on_port() {
	local port=$1 name=$2

	shift 2
	sometimes 3 || return 0
	command -v "$3" >/dev/null || {
		skip "$name" "no $3 here"
		return
	}
	if pair root "$@"; then
		ok "$name"
	elif [ "${again:-0}" -lt 3 ] &&
		grep -q 'get_cm_event: Bad file' "$work/server" \
			"$work/client"; then
		# rping's own race: tests/programs/cm.sh
		again=$((${again:-0} + 1)) on_port "$port" "$name" "$@"
	else
		not_ok "$name" "$work/server" "$work/client"
	fi
}

# told NAME TEXT FILE
told() {
	if grep -q "$2" "$3"; then
		ok "$1"
	else
		not_ok "$1" "$3"
	fi
}

# The device, as Linux's Soft-iWARP shows its. ibv_devinfo prints no GID whose
# second half is 0; the files have it.
a "$verbena" run -- ibv_devinfo -v >"$work/devinfo" 2>&1
a "$verbena" run -- sh -c 'cd /sys/class/infiniband/iw_veth0 &&
	cat node_type ports/1/gids/0' >>"$work/devinfo" 2>&1
mac=$(a ip -o link show veth0 | sed 's/.*link.ether \([0-9a-f:]*\).*/\1/')
for line in 'hca_id:.*iw_veth0' 'transport:.*iWARP (1)' \
	'link_layer:.*Ethernet' 'state:.*PORT_ACTIVE' '4: RNIC' \
	"^${mac:0:2}${mac:3:2}:${mac:6:2}${mac:9:2}:${mac:12:2}${mac:15:2}:0000:0000:0000:0000:0000"; do
	grep -q "$line" "$work/devinfo" || missing="${missing:-} $line"
done
if [ -z "${missing:-}" ]; then
	ok "ibv_devinfo"
else
	not_ok "ibv_devinfo: no$missing" "$work/devinfo"
fi
if a env -u VERBENA_DEVICES "$verbena" run -- ibv_devices | grep -q iw_; then
	not_ok "no iWARP device but for who asks for it"
else
	ok "no iWARP device but for who asks for it"
fi

# No broker was needed for this, nor for anything that follows but where RoCE
# is, too.
if a "$verbena" status 2>&1 | grep -q '^broker'; then
	not_ok "there is no broker"
else
	ok "there is no broker"
fi

everything() {
	local at=$1 from=$2 where=$3 what

	on_port 7174 "rping, $where" "$at" "$from" \
		rping -s -a "$HOST_A" -p 7174 -C 20 -- \
		rping -c -a "$HOST_A" -p 7174 -C 20 -V
	on_port 7174 "rping, IPv6, $where" "$at" "$from" \
		rping -s -a "$HOST_A6" -p 7174 -C 20 -- \
		rping -c -a "$HOST_A6" -p 7174 -C 20 -V
	on_port 7174 "rping, any address, both families, $where" "$at" "$from" \
		rping -s -a :: -p 7174 -C 5 -- rping -c -a "$HOST_A" -p 7174 -C 5
	on_port 7471 "ucmatose, 20 connections, $where" "$at" "$from" \
		ucmatose -c 20 -C 10 -- ucmatose -s "$HOST_A" -c 20 -C 10
	on_port 7471 "rdma_client, $where" "$at" "$from" \
		rdma_server -p 7471 -- rdma_client -s "$HOST_A" -p 7471
	on_port 7471 "rstream, $where" "$at" "$from" \
		rstream -S 100000 -I 50 -C 10 -T v -- \
		rstream -s "$HOST_A" -S 100000 -I 50 -C 10 -T v
	for what in ib_write_bw ib_send_lat ${4:-}; do
		# shellcheck disable=SC2086 # words
		on_port 18515 "$what -R, $where" "$at" "$from" \
			$what -R -F -n 200 -- $what -R -F -n 200 "$HOST_A"
	done
}
# rsockets say by SEND what they say by WRITE with immediate over RoCE; a half
# ring, small answers, and what programs expect of sockets.
sockets() {
	local mode word rest said=0

	for mode in "-S all" "-S 1 -T n" "-S 100000 -T a" "-S 100000 -B 4096"; do
		# shellcheck disable=SC2086 # words
		on_port 7471 "rstream $mode" a b rstream $mode -I 20 -C 5 -T v \
			-- rstream -s "$HOST_A" $mode -I 20 -C 5 -T v
	done
	on_port 7471 "riostream" a b riostream -S 64 -I 100 -C 2 -T v -- \
		riostream -s "$HOST_A" -S 64 -I 100 -C 2 -T v
	while read -r word rest; do
		said=$((said + 1))
		if [ "$word" = ok ]; then
			ok "$rest"
		else
			not_ok "$word $rest"
		fi
	done < <(on a timeout -k 5 30 "$verbena" run --rsockets -- \
		/usr/bin/python3 "$here/rsockets_test.py" "$HOST_A" \
		not_blocking one_shot_is_quiet all_have_their_turn half_closed \
		duplicates child_that_answers 2>&1)
	[ $said -eq 6 ] || not_ok "rsockets: what programs expect, to the end"
}

# A READ of no bytes asks whether there is still anybody.
keepalive() {
	local quiet="/usr/bin/python3 $here/rsockets_keepalive.py $HOST_A" pid

	# shellcheck disable=SC2086 # words
	become a timeout -k 5 60 "$verbena" run --rsockets -- $quiet serve \
		</dev/null >"$work/server" 2>&1 &
	pid=$!
	listening a 9099 20 $pid
	# shellcheck disable=SC2086
	b "$verbena" run --rsockets -- $quiet idle >"$work/client" 2>&1
	told "rsockets: a silent peer stays" "^nothing" "$work/client"
	# shellcheck disable=SC2086
	b "$verbena" run --rsockets -- $quiet stopped >"$work/client" 2>&1
	told "rsockets: it stays for one who was stopped, too" "^nothing" \
		"$work/client"
	: >"$work/client" # the last client has said "quiet", too
	# shellcheck disable=SC2086
	become b "$verbena" run --rsockets -- $quiet watch \
		>"$work/client" 2>&1 &
	until grep -q '^quiet' "$work/client"; do
		kill -0 $! 2>/dev/null || break
		sleep 0.1
	done
	a nft 'table inet deaf { chain in {
		type filter hook input priority -1; meta l4proto tcp drop; }; }'
	wait $!
	a nft delete table inet deaf
	told "rsockets: of a peer that is gone one hears" "^ETIMEDOUT soon" \
		"$work/client"
	{ kill $pid && wait $pid; } 2>/dev/null
}

# A program that makes its own queue pair, and moves it as librdmacm says.
for own in "-q:" ":-q" "-q:-q"; do
	# shellcheck disable=SC2086 # words, or none
	on_port 7174 "rping with queue pairs of its own, server:client $own" \
		a b rping -s ${own%:*} -a "$HOST_A" -p 7174 -C 5 -- \
		rping -c ${own#*:} -a "$HOST_A" -p 7174 -C 5 -V
done
everything a b "two hosts" "ib_read_bw ib_send_bw ib_write_lat ib_read_lat ib_atomic_bw ib_atomic_lat"
everything a a "one host"
sockets
keepalive
for what in "ib_write_bw -a" "ib_write_bw -q 4 -b" "ib_send_lat -e"; do
	# shellcheck disable=SC2086 # words
	on_port 18515 "$what -R" a b $what -R -F -n 50 -- \
		$what -R -F -n 50 "$HOST_A"
done

# Who speaks first, and how the stream is framed.
for word in no-crc markers revision-1 no-rtr rtr-send rtr-write rtr-read; do
	export VERBENA_IWARP=$word
	on_port 18516 "data_test, VERBENA_IWARP=$word" a b \
		"$programs/data_test" -R -p 18515 -- \
		"$programs/data_test" -R -p 18515 -n 60 -x 300000 "$HOST_A"
done
unset VERBENA_IWARP

on_port 18516 "data_test: every operation, every byte" a b \
	"$programs/data_test" -R -p 18515 -- \
	"$programs/data_test" -R -p 18515 -n "${full:+10}1000" \
	-t "${full:+60}10" "$HOST_A"
# near_port WANTED NAME...: and it exchanged no packets, or it did.
near_port() {
	local wanted=$1 before=$passed

	shift
	VERBENA_LOG=info on_port "${near_at:-18516}" "$@"
	[ "$passed" -gt "$before" ] || return
	if grep -q 'no packets to slot' "$work/client"; then
		[ "$wanted" = near ] && return
	elif [ "$wanted" = stream ]; then
		return
	fi
	not_ok "$1: by another way than $wanted" "$work/server" "$work/client"
}
near_port near "data_test, one host" a a \
	"$programs/data_test" -R -p 18515 -- \
	"$programs/data_test" -R -p 18515 -n 500 -t 10 "$HOST_A"
near_port stream "data_test, one host, one of them wants TCP" a a \
	"$programs/data_test" -R -p 18515 -- env VERBENA_NEAR=off \
	"$programs/data_test" -R -p 18515 -n 100 -t 10 "$HOST_A"
near_port stream "data_test, one host, one may not reach the other" a a \
	"$programs/deny" "$programs/data_test" -R -p 18515 -- \
	"$programs/data_test" -R -p 18515 -n 100 -t 10 "$HOST_A"
# With a RoCE device beside it, opened later: an address is the first's.
VERBENA_DEVICES=iw_veth0,roce_veth0 on_port 18516 "data_test, RoCE beside it" \
	a b "$programs/data_test" -R -p 18515 -- \
	"$programs/data_test" -R -p 18515 -n 100 -t 10 "$HOST_A"
# With its first RoCE device a program gets a slot from the broker, and keeps
# the one that it took before: peers find it by either.
later="env VERBENA_DEVICES=iw_lo,roce_veth0"
first="env VERBENA_DEVICES=roce_veth0,iw_lo"
for who in "$later:$first" "$first:$later" "$later:$later"; do
	# shellcheck disable=SC2086 # words
	near_at=7174 near_port near "rping by RoCE, ${who//env VERBENA_/}" \
		a a ${who%%:*} rping -s -a 0.0.0.0 -p 7174 -C 5 -- \
		${who#*:} rping -c -a "$HOST_A" -p 7174 -C 5
done
# Whatever carries TCP: losses, a long way, an address translated, no cable.
lossy() {
	local host

	hosts_unbatched
	for host in a b; do
		on $host nft 'table inet lossy { chain in {
			type filter hook input priority 0;
			meta l4proto tcp numgen random mod 100 == 0 counter drop
		}; }'
	done
	on_port 18516 "data_test, 1 % loss" a b \
		"$programs/data_test" -R -p 18515 -- \
		"$programs/data_test" -R -p 18515 -n 300 -t 10 "$HOST_A"
	a nft list table inet lossy >"$work/lossy"
	told "packets were lost" "packets [1-9]" "$work/lossy"
	for host in a b; do
		on $host nft delete table inet lossy
		on $host ip link set veth0 gso_max_segs 65535
	done
}

# A round trip of 100 ms with 1 % lost on either way.
far_away() {
	local pid tries

	/usr/bin/python3 "$here/wan.py" "/proc/$HOSTS_PID_a/ns/net" \
		"/proc/$HOSTS_PID_b/ns/net" 50 1 >"$work/wan" 2>&1 &
	pid=$!
	for tries in {1..50}; do
		grep -q '^up' "$work/wan" && break
		sleep 0.1
	done
	a sh -c "ip addr add 10.79.0.1/24 dev wan0 && ip link set wan0 up" &&
		b sh -c "ip addr add 10.79.0.2/24 dev wan0 &&
			ip link set wan0 up" || {
		not_ok "a long way, try $tries" "$work/wan"
		return
	}
	VERBENA_DEVICES=iw_wan0 on_port 18516 "data_test, 100 ms and 1 % loss" \
		a b "$programs/data_test" -R -p 18515 -- \
		"$programs/data_test" -R -p 18515 -n 40 -t 15 -x 100000 \
		10.79.0.1
	VERBENA_DEVICES=iw_wan0 on_port 18515 \
		"ib_write_bw -R, 100 ms and 1 % loss" a b \
		ib_write_bw -R -F -n 20 -- ib_write_bw -R -F -n 20 10.79.0.1
	kill $pid
}

# A program that has sent all and exits, long before the cable has carried it.
slow() {
	local host

	for host in a b; do
		on $host tc qdisc add dev veth0 root tbf rate 20mbit \
			burst 32kb latency 50ms 2>/dev/null || {
			skip "a slow cable" "tc has no tbf here"
			return
		}
	done
	VERBENA_TIMEOUT=20 on_port 7471 "rstream to its last byte, 20 Mbit/s" \
		a b rstream -S 1000000 -I 1 -C 2 -T v -- \
		rstream -s "$HOST_A" -S 1000000 -I 1 -C 2 -T v
	for host in a b; do
		on $host tc qdisc del dev veth0 root
	done
}

# c, behind b, has an address that a cannot reach.
translated() {
	hold_namespace c && HOSTS_PID_c=$REPLY
	export HOSTS_PID_c
	b ip link add veth1 mtu 9000 type veth \
		peer name veth0 mtu 9000 netns "$HOSTS_PID_c" &&
		b sh -c 'ip addr add 10.78.0.1/24 dev veth1 &&
			ip link set veth1 up &&
			echo 1 >/proc/sys/net/ipv4/ip_forward' &&
		on c sh -c 'ip addr add 10.78.0.2/24 dev veth0 &&
			ip link set veth0 up &&
			ip route add default via 10.78.0.1' &&
		b nft 'table ip nat { chain out {
			type nat hook postrouting priority 100;
			oifname "veth0" masquerade; }; }' || {
		skip "through a translator of addresses" "none to be had here"
		return
	}
	on_port 7174 "rping, through a translator of addresses" a c \
		rping -s -a "$HOST_A" -p 7174 -C 20 -- \
		rping -c -a "$HOST_A" -p 7174 -C 20 -V
	on_port 18516 "data_test, through a translator of addresses" a c \
		"$programs/data_test" -R -p 18515 -- \
		"$programs/data_test" -R -p 18515 -n 100 -t 10 "$HOST_A"
}

loopback() {
	local at

	for at in 127.0.0.1 ::1; do
		VERBENA_DEVICES=iw_lo on_port 7174 "rping, $at" a a \
			rping -s -a $at -p 7174 -C 20 -- \
			rping -c -a $at -p 7174 -C 20 -V
		VERBENA_DEVICES=iw_lo on_port 18516 "data_test, $at" a a \
			"$programs/data_test" -R -p 18515 -- \
			"$programs/data_test" -R -p 18515 -n 100 -t 10 $at
	done
}
lossy
slow
if [ -w /dev/net/tun ]; then
	far_away
else
	skip "a long way" "no /dev/net/tun"
fi
translated
loopback
hosts_mtu 1500
on_port 18516 "data_test, MTU 1500" a b \
	"$programs/data_test" -R -p 18515 -- \
	"$programs/data_test" -R -p 18515 -n 300 -t 10 "$HOST_A"

# What tshark makes of all that.
capture() {
	local file=$work/iwarp.pcap said

	record_begin veth0 tcp "$file"
	(port=18516 && pair root a b "$programs/data_test" -R -p 18515 -- \
		"$programs/data_test" -R -p 18515 -n 60 -x 9000 -s 42 \
		"$HOST_A") || not_ok "capture: data_test" "$work/server" "$work/client"
	record_end yes
	tshark -r "$file" -o tcp.check_checksum:FALSE -q -z io,phs \
		>"$work/protocols" 2>/dev/null
	tshark -r "$file" -Y '_ws.malformed or iwarp_mpa.bad_length or
		iwarp_mpa.crc_check == 0' >"$work/odd" 2>"$work/tshark"
	said=$(tshark -r "$file" -T fields -e iwarp_rdma.opcode 2>/dev/null |
		tr ',' '\n' | grep -v '^$' | sort -u | wc -l)
	if grep -q iwarp_ddp_rdmap "$work/protocols" && [ ! -s "$work/odd" ] &&
		[ "$said" -ge 6 ]; then
		ok "capture: tshark: $said kinds of messages, none malformed"
	else
		not_ok "capture: tshark ($said kinds of messages)" \
			"$work/protocols" "$work/odd" "$work/tshark"
	fi
}
if command -v dumpcap >/dev/null && command -v tshark >/dev/null; then
	capture
else
	skip "capture" "no tshark"
fi
hosts_mtu 9000

# many COUNT SERVER_OPTIONS CLIENT_OPTIONS: sets $served and $called.
many() {
	local pid

	# shellcheck disable=SC2086 # words
	become a timeout -k 5 60 "$verbena" run -- "$programs/cm_many" \
		-s "$HOST_A" -n "$1" $2 </dev/null >"$work/server" 2>&1 &
	pid=$!
	listening a 7471 20 $pid
	called=0
	# shellcheck disable=SC2086 # words
	on "${caller:-b}" timeout -k 5 60 "$verbena" run -- "$programs/cm_many" \
		-c "$HOST_A" -n "$1" $3 </dev/null >"$work/client" 2>&1 ||
		called=$?
	served=0
	wait $pid || served=$?
}

ulimit -n "$(ulimit -Hn)"
if many 1000 "" "-w 1000" && [ $served$called = 00 ]; then
	ok "1000 connections of one program, at once"
else
	not_ok "1000 connections of one program" "$work/server" "$work/client"
fi

# killed WHO WHEN: that end kills itself; the other is told, before its
# timeout kills it.
killed() {
	local begun=$SECONDS other

	if [ "$1" = server ]; then
		many 1 "-k $2" ""
		other=$called
	else
		many 1 "" "-k $2"
		other=$served
	fi
	if [ $other -le 1 ] && [ $((SECONDS - begun)) -lt 6 ]; then
		ok "kill -9 of the $1, at: $2${caller:+, one host}"
	else
		not_ok "kill -9 of the $1, at: $2${caller:+, one host}" \
			"$work/server" "$work/client"
	fi
}
for moment in request accept established timewait; do
	killed server $moment
done
for moment in established disconnect timewait; do
	killed client $moment
done
caller=a
killed server established
killed client established
unset caller

# One that dies while it connects nobody need have heard of: the next is served.
unmissed() {
	local pid

	become a timeout -k 5 60 "$verbena" run -- "$programs/cm_many" \
		-s "$HOST_A" -t </dev/null >"$work/server" 2>&1 &
	pid=$!
	listening a 7471 20 $pid
	b "$verbena" run -- "$programs/cm_many" -c "$HOST_A" -k "$1" \
		</dev/null >"$work/dies" 2>&1
	if grep -q '^dies' "$work/dies" && b timeout 20 "$verbena" run -- \
		"$programs/cm_many" -c "$HOST_A" </dev/null \
		>"$work/client" 2>&1; then
		ok "kill -9 of the client, at: $1; the next is served"
	else
		not_ok "kill -9 of the client, at: $1" "$work/dies" \
			"$work/server" "$work/client"
	fi
	{ kill $pid && wait $pid; } 2>/dev/null
}
for moment in resolve connect; do
	unmissed $moment
done

b timeout 10 "$verbena" run -- ucmatose -s "$HOST_A" -c 1 \
	</dev/null >"$work/client" 2>&1
told "nobody listens: refused" "REJECTED, error: -111" "$work/client"
b timeout 10 "$verbena" run -- rcopy "$0" "$HOST_A:$work/copy" \
	</dev/null >"$work/client" 2>&1
told "nobody listens: a socket, too" "Connection refused" "$work/client"
(unset VERBENA_DEVICES && a "$verbena" devices --device iwarp:veth0) \
	>"$work/client" 2>&1
told "verbena devices --device" "^iw_veth0" "$work/client"

# cases NAME ENVIRONMENT...
cases() {
	local name=$1 count

	shift
	a timeout -k 5 120 env VERBENA_DEVICES=iw_veth0,roce_veth0 "$@" \
		"$verbena" run -- \
		"$programs/iwarp_test" "$HOST_A" ${only:+"$only"} \
		>"$work/faults" 2>&1
	count=$(grep -c '^ok ' "$work/faults")
	if [ "$count" -gt 0 ] && tail -n 1 "$work/faults" | grep -q ' 0 failed'; then
		ok "iwarp_test$name: $count cases of what ends a stream, and" \
			"what is not there"
	else
		not_ok "iwarp_test$name" "$work/faults"
	fi
}
cases "" ROCE_DEVICE=roce_veth0
cases ", over TCP" VERBENA_NEAR=off ROCE_DEVICE=roce_veth0
for only in datagrams_by_librdmacm addresses_of_infiniband; do
	cases ", without RoCE" VERBENA_DEVICES=iw_veth0
done
summary
