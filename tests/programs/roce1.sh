#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# RoCEv1 beside RoCEv2 on one device, between two hosts and on one: unmodified
# programs by the index of a GID, our own case by case, groups, losses, a
# capture that tshark and a second implementation of the checks read, and the
# sentence where the privilege is missing. tests/programs/roce1.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"
need_hosts 4500
hurry_perftest
export VERBENA_DEVICES=rocev1:veth0
device=rocev1_veth0
# The indices are Linux's: 2k RoCEv1, 2k + 1 RoCEv2; k is 0 for the GID made of
# the MAC address, 1 for IPv4's address, 2 for IPv6's.
v1=2 v2=3 v1_six=4
check=$here/roce1_check.py
have_tshark=no
command -v dumpcap >/dev/null && command -v tshark >/dev/null &&
	have_tshark=yes

# /sys may show another namespace, so this asks ip.
mac_of() {
	on "$1" ip -o link show veth0 | sed 's/.*link\/ether \([0-9a-f:]*\).*/\1/'
}

link_local() {
	on "$1" ip -6 -o addr show dev veth0 scope link |
		sed 's/.*inet6 \([0-9a-f:]*\).*/\1/'
}

# capture_begin FILE; capture_end: RoCEv1's frames, with a tag or without.
capture_begin() {
	[ $have_tshark = no ] ||
		record_begin "${2:-veth0}" "ether proto 0x8915 or (vlan and ether proto 0x8915)" "$1" -s 0
}
capture_end() {
	[ $have_tshark = no ] || record_end yes
}

# judge NAME FILE OPTION... OPERATION...: the second implementation agrees, and
# tshark finds RoCEv1 and nothing malformed.
judge() {
	local name=$1 file=$2 total odd

	shift 2
	if [ $have_tshark = no ]; then
		skip "roce1: capture: $name" "no tshark"
		return
	fi
	if python3 "$check" "$file" "$@" >"$work/check" 2>&1; then
		ok "roce1: capture: $name: $(tail -n 1 "$work/check")"
	else
		not_ok "roce1: capture: $name" "$work/check"
	fi
	# tshark guesses at what a SEND carries.
	tshark -r "$file" -Y '(_ws.malformed or _ws.expert.severity >= "Error")
		and not frame.protocols matches "infiniband:"' \
		>"$work/odd" 2>"$work/tshark"
	total=$(tshark -r "$file" -Y 'infiniband.bth.opcode and infiniband.grh' \
		2>/dev/null | wc -l)
	odd=$(tshark -r "$file" -Y 'not infiniband.grh' 2>/dev/null | wc -l)
	if [ ! -s "$work/odd" ] && [ "$odd" -eq 0 ] && [ "$total" -gt 0 ]; then
		ok "roce1: tshark: $name: nothing malformed"
	else
		not_ok "roce1: tshark: $name ($total of RoCEv1, $odd others)" \
			"$work/odd" "$work/tshark"
	fi
}

# both NAME SERVER... -- CLIENT...: between the hosts, and on one.
both() {
	local name=$1

	shift
	if pair root a b "$@"; then
		ok "roce1: $name [veth]"
	else
		not_ok "roce1: $name [veth]" "$work/server" "$work/client"
	fi
	sometimes 2 || return
	if VERBENA_NEAR=off pair root a a "$@"; then
		ok "roce1: $name [host]"
	else
		not_ok "roce1: $name [host]" "$work/server" "$work/client"
	fi
}

# --- the privilege ---

# Neither root nor an ordinary user has RoCEv1 without CAP_NET_RAW, and both
# have RoCEv2.
without_privilege() {
	local status=0 sentence="no RoCEv1: it needs CAP_NET_RAW"

	on a setpriv --bounding-set=-net_raw --inh-caps=-net_raw -- timeout 20 \
		"$verbena" run -- ibv_rc_pingpong -d $device -g $v1 localhost \
		</dev/null >"$work/out" 2>"$work/err" || status=$?
	if [ $status -ne 0 ] && [ $status -ne 124 ] &&
		[ "$(grep -c "$device: $sentence" "$work/err")" -eq 1 ]; then
		ok "roce1: without CAP_NET_RAW a sentence says so"
	else
		not_ok "roce1: without CAP_NET_RAW ($status)" "$work/out" \
			"$work/err"
	fi
	if on a setpriv --bounding-set=-net_raw --inh-caps=-net_raw -- \
		env VERBENA_DEVICES=veth0 timeout 20 "$verbena" run -- \
		ibv_devinfo -d roce_veth0 </dev/null >"$work/out" 2>&1; then
		ok "roce1: without CAP_NET_RAW there is RoCEv2"
	else
		not_ok "roce1: RoCEv2 without CAP_NET_RAW" "$work/out"
	fi
}

# --- the table ---

# types HOST: what ibv_devinfo says of the table, and what sysfs says.
types() {
	local said

	said=$(on a "$verbena" run -- ibv_devinfo -v -d $device 2>/dev/null |
		sed -n 's/.*GID\[ *\([0-9]*\)\].*, \(RoCE v[12]\)$/\1 \2/p' |
		head -n 4 | tr '\n' ';')
	if [ "$said" = "0 RoCE v1;1 RoCE v2;2 RoCE v1;3 RoCE v2;" ]; then
		ok "roce1: ibv_devinfo shows both types"
	else
		not_ok "roce1: ibv_devinfo shows: $said"
	fi
	said=$(on a "$verbena" run -- bash -c \
		"cat /sys/class/infiniband/$device/ports/1/gid_attrs/types/[0-3]" \
		2>/dev/null | tr '\n' ';')
	if [ "$said" = "IB/RoCE v1;RoCE v2;IB/RoCE v1;RoCE v2;" ]; then
		ok "roce1: sysfs shows both types"
	else
		not_ok "roce1: sysfs shows: $said"
	fi
	said=$(VERBENA_DEVICES=veth0 on a "$verbena" run -- ibv_devinfo -v \
		-d roce_veth0 2>/dev/null | grep -c 'GID.*RoCE v1')
	if [ "$said" -eq 0 ]; then
		ok "roce1: an ordinary device has RoCEv2 alone"
	else
		not_ok "roce1: an ordinary device has $said entries of RoCEv1"
	fi
}

# --- programs ---

unmodified() {
	local gid options

	for gid in $v1 $v2 $v1_six 0; do
		for options in ibv_rc_pingpong ibv_uc_pingpong \
			"ibv_ud_pingpong -s 2000" "ibv_srq_pingpong -n 50"; do
			sometimes 2 || continue
			# shellcheck disable=SC2086 # words
			both "$options -g $gid" \
				$options -d $device -g $gid -- \
				$options -d $device -g $gid "$HOST_A"
		done
		for options in "ib_write_bw -n 200" "ib_read_bw -n 200" \
			"ib_send_bw -c UC -n 200" "ib_send_lat -c UD -n 200" \
			"ib_atomic_bw -n 200" "ib_write_lat -n 200 -s 60000"; do
			sometimes 3 || continue
			# shellcheck disable=SC2086 # words
			both "$options -x $gid" \
				$options -F -d $device -x $gid -- \
				$options -F -d $device -x $gid "$HOST_A"
		done
	done
}

# Both types at once, by two programs on each host, that share the device.
at_once() {
	local pids=() pid status=0 index

	for index in $v1 $v2; do
		become a timeout -k 5 60 "$verbena" run -- ib_write_bw -F -b \
			-n 2000 -d $device -x "$index" -p $((port + index)) \
			</dev/null >"$work/server$index" 2>&1 &
		pids+=($!)
		listening a $((port + index)) 20 $! || status=1
	done
	for index in $v1 $v2; do
		become b timeout -k 5 60 "$verbena" run -- ib_write_bw -F -b \
			-n 2000 -d $device -x "$index" -p $((port + index)) \
			"$HOST_A" </dev/null >"$work/client$index" 2>&1 &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do
		wait "$pid" || status=1
	done
	if [ $status -eq 0 ]; then
		ok "roce1: both versions at once"
	else
		not_ok "roce1: both versions at once" "$work"/{server,client}?
	fi
}

# xsrq HOST: three clients of one server, from there.
xsrq() {
	local from=$1 pids=() pid status=0 shared=/tmp/xrc_domain

	rm -f $shared
	become a timeout -k 5 60 "$verbena" run -- ibv_xsrq_pingpong \
		-d $device -g $v1 -c 3 -n 50 </dev/null >"$work/server" 2>&1 &
	pids+=($!)
	listening a "$port" 20 $! || status=1
	for i in 1 2 3; do
		become "$from" timeout -k 5 60 "$verbena" run -- \
			ibv_xsrq_pingpong -d $device -g $v1 -n 50 "$HOST_A" \
			</dev/null >"$work/client$i" 2>&1 &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do
		wait "$pid" || status=1
	done
	rm -f $shared
	return $status
}

extended() {
	local from

	for from in b a; do
		if VERBENA_NEAR=off xsrq $from; then
			ok "roce1: ibv_xsrq_pingpong from host $from"
		else
			not_ok "roce1: ibv_xsrq_pingpong from host $from" \
				"$work/server" "$work"/client?
		fi
	done
}

# Our own programs, case by case.
cases() {
	local family

	for family in 4 6; do
		VERBENA_NEAR=off lines "roce1: roce1_test ends, IPv$family" \
			"$verbena" run -- "$programs/roce1_test" -d $device \
			-$family
		lines "roce1: roce1_test ends without packets, IPv$family" \
			"$verbena" run -- "$programs/roce1_test" -d $device \
			-$family
		lines "roce1: datagram_test ends, IPv$family" "$verbena" run \
			-- "$programs/datagram_test" -d $device -$family
	done
}

# member HOST FILE OPTIONS...: in the background.
member() {
	local host=$1 file=$2

	shift 2
	become "$host" timeout -k 5 20 "$verbena" run -- \
		"$programs/datagram_test" -d $device "$@" \
		</dev/null >"$work/$file" 2>&1 &
	members+=($!)
}

# group GROUP OPTION: two listeners here and one there hear what another
# program sends once.
group() {
	local name="roce1: a group, $1, heard by two programs here, one there"
	local tries=0 pid good=yes members=()

	member a one -g "$@" -l
	member a two -g "$@" -l
	member b three -g "$@" -l
	until [ "$(cat "$work"/{one,two,three} 2>/dev/null |
		grep -c '^listening')" -eq 3 ]; do
		tries=$((tries + 1))
		[ $tries -lt 200 ] || break
		sleep 0.1
	done
	on a timeout 20 "$verbena" run -- "$programs/datagram_test" \
		-d $device -g "$@" -s </dev/null >"$work/sender" 2>&1 ||
		good=no
	for pid in "${members[@]}"; do
		wait "$pid" || good=no
	done
	if [ $good = yes ]; then
		ok "$name"
	else
		not_ok "$name" "$work"/{sender,one,two,three}
	fi
}

# --- connections ---

# call HOST PID PROGRAM...: until the server of that PID listens, which it does
# on no TCP port: a client that was refused tries again.
call() {
	local from=$1 pid=$2 status

	shift 2
	for _ in {1..40}; do
		on "$from" timeout -k 5 30 "$verbena" run -- "$@" </dev/null \
			>"$work/client" 2>&1 && return
		status=$?
		grep -Eq 'REJECTED|UNREACHABLE|Connection refused' \
			"$work/client" && kill -0 "$pid" || return $status
		sleep 0.2
	done
	return 1
}

# meet NAME FROM SERVER... -- CLIENT...: both end with 0; the server's device
# and default are $its_devices and $its_type.
meet() {
	local name="roce1: $1" from=$2 server client pid status=0

	shift 2
	ends "$@"
	VERBENA_DEVICES=${its_devices:-rocev1:veth0} \
		VERBENA_CM_GID_TYPE=${its_type-v1} become a timeout -k 5 60 \
		"$verbena" run -- "${server[@]}" </dev/null \
		>"$work/server" 2>&1 &
	pid=$!
	VERBENA_CM_GID_TYPE=v1 call "$from" $pid "${client[@]}" || status=$?
	[ $status -eq 0 ] || kill $pid 2>/dev/null
	wait $pid || status=1
	if [ $status -eq 0 ]; then
		ok "$name"
	else
		not_ok "$name" "$work/server" "$work/client"
	fi
}

# A receiver is ready when its host lets in the group's MAC address.
group_by_name() {
	local pid tries=0 name="roce1: mckey by RoCEv1"

	VERBENA_CM_GID_TYPE=v1 become a timeout -k 5 30 "$verbena" run -- \
		mckey -m 239.1.2.3 -b "$HOST_A" -C 5 </dev/null \
		>"$work/server" 2>&1 &
	pid=$!
	until on a ip maddr show dev veth0 | grep -q 33:33:ef:01:02:03; do
		tries=$((tries + 1))
		[ $tries -lt 200 ] || break
		sleep 0.05
	done
	if VERBENA_CM_GID_TYPE=v1 on b timeout -k 5 30 "$verbena" run -- \
		mckey -m 239.1.2.3 -b "$HOST_B" -s -C 5 </dev/null \
		>"$work/client" 2>&1 && wait $pid; then
		ok "$name"
	else
		kill $pid 2>/dev/null
		not_ok "$name" "$work/server" "$work/client"
	fi
}

# A broker without the privilege says so, and does not let the program wait.
broker_without_privilege() {
	local pid status=0 tries=0
	local name="roce1: a broker without CAP_NET_RAW says so"

	hold_namespace c && HOSTS_PID_c=$REPLY || {
		not_ok "$name: no third host"
		return
	}
	become c setpriv --bounding-set=-net_raw --inh-caps=-net_raw -- \
		"$verbena" broker </dev/null >"$work/broker" 2>&1 &
	pid=$!
	until on c "$verbena" status 2>/dev/null | grep -q PID; do
		tries=$((tries + 1))
		[ $tries -lt 200 ] || break
		sleep 0.05
	done
	VERBENA_DEVICES=rocev1:lo VERBENA_CM_GID_TYPE=v1 on c timeout 20 \
		"$verbena" run -- rping -c -a 127.0.0.1 -C 1 </dev/null \
		>"$work/client" 2>&1 || status=$?
	kill $pid
	wait $pid 2>/dev/null
	kill "$HOSTS_PID_c"
	if [ $status -ne 0 ] && [ $status -ne 124 ] && grep -q \
		"the broker of this host lacks CAP_NET_RAW" "$work/client"; then
		ok "$name"
	else
		not_ok "$name ($status)" "$work/client" "$work/broker"
	fi
}

connections() {
	if ! command -v rping mckey >/dev/null; then
		skip "roce1: connections" "no rping or mckey here"
		return
	fi
	record_begin veth0 "udp port 4791 or ether proto 0x8915" \
		"$work/cm.pcap" -s 0
	meet "rping by RoCEv1" b rping -s -a "$HOST_A" -C 5 -- \
		rping -c -a "$HOST_A" -C 5
	meet "rping by RoCEv1, IPv6" b rping -s -a "$HOST_A6" -C 5 -- \
		rping -c -a "$HOST_A6" -C 5
	meet "rping by RoCEv1, one host" a rping -s -a "$HOST_A" -C 5 -- \
		rping -c -a "$HOST_A" -C 5
	its_type='' meet "rping, who listens follows who connects" b \
		rping -s -a :: -C 5 -- rping -c -a "$HOST_A" -C 5
	meet "ucmatose by RoCEv1" b ucmatose -c 5 -C 5 -- \
		ucmatose -s "$HOST_A" -c 5 -C 5
	meet "udaddy by RoCEv1" b udaddy -C 5 -- udaddy -s "$HOST_A" -C 5
	group_by_name
	record_end yes
	if [ $have_tshark = no ]; then
		skip "roce1: capture: connections" "no tshark"
	elif [ "$(tshark -r "$work/cm.pcap" -Y udp 2>/dev/null | wc -l)" -eq 0 ]
	then
		ok "roce1: no connection by RoCEv1 sends UDP"
	else
		not_ok "roce1: a connection by RoCEv1 sends UDP"
	fi
	judge "connections" "$work/cm.pcap" --hosts "$hosts" UD_SEND_ONLY \
		RC_SEND_ONLY UD_SEND_ONLY_IMM_GROUP
	# A device with RoCEv2 alone cannot take part, and rejects at once.
	VERBENA_DEVICES=veth0 become a timeout -k 5 30 "$verbena" run -- \
		rping -s -a "$HOST_A" -C 1 </dev/null >"$work/server" 2>&1 &
	if VERBENA_CM_GID_TYPE=v1 call b $! rping -c -a "$HOST_A" -C 1; then
		not_ok "roce1: a device without RoCEv1 rejects" "$work/client"
	elif grep -q REJECTED "$work/client"; then
		ok "roce1: a device without RoCEv1 rejects"
	else
		not_ok "roce1: a device without RoCEv1 rejects" "$work/client"
	fi
	kill $! 2>/dev/null
	wait $! 2>/dev/null
	broker_without_privilege
}

# --- losses ---

# lose ONE_IN: drop one of so many RoCEv1 frames as they arrive.
lose() {
	local host

	for host in a b; do
		on $host nft -f - <<-END || return
			table netdev loss {
				chain in {
					type filter hook ingress device "veth0" priority 0
					ether type 0x8915 numgen random mod $1 == 0 counter drop
				}
			}
		END
	done
}
dropped() {
	on "$1" nft list table netdev loss |
		sed -n 's/.*counter packets \([0-9]*\).*/\1/p'
}

# One of 50 frames is lost; every byte is right nevertheless.
losses() {
	local name="roce1: every byte, with losses"

	if ! lose 50 2>"$work/nft"; then
		skip "$name" "nft: $(head -n 1 "$work/nft")"
		return
	fi
	capture_begin "$work/losses.pcap"
	if pair root a b "$programs/data_test" -d $device -4 -- \
		"$programs/data_test" -d $device -4 -s 7 -n 300 -x 20000 \
		"$HOST_A" && [ "$(dropped a)" -gt 20 ] &&
		[ "$(dropped b)" -gt 20 ]; then
		ok "$name ($(dropped a) and $(dropped b) frames)"
	else
		not_ok "$name" "$work/server" "$work/client"
	fi
	capture_end
	judge "RC, with losses" "$work/losses.pcap" RC_ACKNOWLEDGE
	on a nft delete table netdev loss
	on b nft delete table netdev loss
}

# --- hostile frames ---

# A third program repeats host b's frames, each spoilt in one way: no byte is
# wrong, and no connection ends.
garbage() {
	local name="roce1: every byte, amid frames that are spoilt" pid sent

	become b timeout 60 python3 "$here/roce1_garbage.py" veth0 \
		"$(span 5 8)" 42 \
		</dev/null >"$work/garbage" 2>&1 &
	pid=$!
	if pair root a b "$programs/data_test" -d $device -4 -- \
		"$programs/data_test" -d $device -4 -s 9 -t "$(span 3 5)" -n 1000000 \
		-x 20000 "$HOST_A" && wait $pid; then
		sent=$(sed -n 's/ sent: .*//p' "$work/garbage")
		if [ "${sent:-0}" -gt 100 ]; then
			ok "$name ($(<"$work/garbage"))"
			return
		fi
	fi
	kill $pid 2>/dev/null
	not_ok "$name" "$work/garbage" "$work/server" "$work/client"
}

# --- what is on the wire ---

# All that a reliable connection says.
reliable() {
	printf ' RC_%s' SEND_FIRST SEND_MIDDLE SEND_LAST SEND_LAST_IMM \
		SEND_ONLY SEND_ONLY_IMM WRITE_FIRST WRITE_MIDDLE WRITE_LAST \
		WRITE_LAST_IMM WRITE_ONLY WRITE_ONLY_IMM READ_REQUEST \
		READ_RESPONSE_FIRST READ_RESPONSE_MIDDLE READ_RESPONSE_LAST \
		READ_RESPONSE_ONLY ACKNOWLEDGE ATOMIC_ACKNOWLEDGE CMP_SWAP \
		FETCH_ADD
}

wire() {
	local family

	for family in 4 6; do
		capture_begin "$work/rc$family.pcap"
		if pair root a b "$programs/data_test" -d $device -$family -- \
			"$programs/data_test" -d $device -$family -s 42 -n 300 \
			-x 20000 "$HOST_A"; then
			ok "roce1: every byte of every operation, IPv$family"
		else
			not_ok "roce1: every byte, IPv$family" \
				"$work/server" "$work/client"
		fi
		capture_end
		# shellcheck disable=SC2046 # words
		judge "RC, IPv$family" "$work/rc$family.pcap" \
			--hosts "$hosts" $(reliable)
	done
	capture_begin "$work/others.pcap"
	both "ibv_uc_pingpong, recorded" \
		ibv_uc_pingpong -d $device -g $v1 -n 20 -m 1024 -s 5000 -- \
		ibv_uc_pingpong -d $device -g $v1 -n 20 -m 1024 -s 5000 "$HOST_A"
	both "ibv_ud_pingpong, recorded" \
		ibv_ud_pingpong -d $device -g $v1 -n 20 -s 999 -- \
		ibv_ud_pingpong -d $device -g $v1 -n 20 -s 999 "$HOST_A"
	xsrq b >/dev/null
	group 239.1.2.3 -4
	group ff0e::1:2:3 -6
	capture_end
	judge "UC, UD, XRC, groups" "$work/others.pcap" --hosts "$hosts" \
		UC_SEND_FIRST UC_SEND_MIDDLE UC_SEND_LAST UD_SEND_ONLY \
		XRC_SEND_LAST XRC_ACKNOWLEDGE UD_SEND_ONLY_IMM_GROUP
}

# A peer's silence is told in RoCEv1's words.
silence() {
	if VERBENA_NEAR=off on a timeout -k 5 60 "$verbena" run -- \
		"$programs/mistakes_test" -d $device -4 -v \
		</dev/null >"$work/out" 2>"$work/err" &&
		grep -q '^ok' "$work/out"; then
		ok "roce1: nothing is heard from the peer: the sentence"
	else
		not_ok "roce1: the sentence about silence" "$work/out" \
			"$work/err"
	fi
}

# A VLAN's device: each frame has the VLAN's tag, with the service level's or
# the traffic class's priority.
vlans() {
	local name="roce1: VLAN" index

	if ! on a ip link add link veth0 name v5 type vlan id 5 2>"$work/ip" ||
		! on b ip link add link veth0 name v5 type vlan id 5; then
		skip "$name" "$(head -n 1 "$work/ip")"
		return
	fi
	on a ip addr add 10.78.0.1/24 dev v5
	on b ip addr add 10.78.0.2/24 dev v5
	on a ip link set v5 up
	on b ip link set v5 up
	export VERBENA_DEVICES=rocev1:v5
	index=$(on a "$verbena" run -- ibv_devinfo -v -d rocev1_v5 2>/dev/null |
		sed -n 's/.*GID\[ *\([0-9]*\)\].*:0a4e:0001, RoCE v1$/\1/p')
	capture_begin "$work/vlan.pcap"
	for options in "--sl 3" "--tclass 160"; do
		# shellcheck disable=SC2086 # words
		both "ib_send_bw $options on a VLAN" \
			ib_send_bw -F -n 100 -d rocev1_v5 -x "$index" \
			$options -- ib_send_bw -F -n 100 -d rocev1_v5 \
			-x "$index" $options 10.78.0.1
	done
	capture_end
	judge "VLAN" "$work/vlan.pcap" --vlan 5 --priority 3,5 \
		"priority 3" "priority 5"
	export VERBENA_DEVICES=rocev1:veth0
}

# Which MAC address and which IP addresses belong together.
hosts="$(mac_of a)=$HOST_A,$(mac_of b)=$HOST_B"
hosts+=",$(mac_of a)=$HOST_A6,$(mac_of b)=$HOST_B6"
hosts+=",$(mac_of a)=$(link_local a),$(mac_of b)=$(link_local b)"
types
unmodified
at_once
extended
cases
connections
losses
garbage
wire
silence
vlans
# Last, since a program without the privilege may start a broker without it.
without_privilege
summary
