#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Each of a table of planted mistakes is told in a sentence: on packets, on one
# host, on iWARP, and by librdmacm: tests/programs/mistakes.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"

# mistakes WHERE OPTIONS...: its lines become ours.
mistakes() {
	local where=$1 line status=0

	shift
	on a timeout -k 5 300 "$verbena" run -- "$programs/mistakes_test" "$@" \
		</dev/null >"$work/out" 2>"$work/err" || status=$?
	while read -r line; do
		case $line in
		"ok "*) ok "${line#ok } [$where]" ;;
		"not ok "*) not_ok "${line#not ok } [$where]" "$work/cause" ;;
		*)
			echo "$line" >>"$work/cause"
			continue
			;;
		esac
		rm -f "$work/cause"
	done <"$work/out"
	[ $status -le 1 ] && [ -s "$work/out" ] ||
		not_ok "mistakes_test ends by itself ($status) [$where]" \
			"$work/err"
}

# A client of librdmacm behind a firewall that drops what it sends.
behind_firewall() {
	local name="rping behind a dropping firewall says so within 5 s" begun
	local pid

	a nft -f - <<-END 2>"$work/nft" || {
		table inet verbena_test {
			chain out {
				type filter hook output priority 0
				udp dport 4791 drop
			}
		}
	END
		skip "$name" "no nftables here"
		return
	}
	begun=$SECONDS
	: >"$work/rping"
	become a timeout 20 "$verbena" run -- rping -c -a "$HOST_B" -C 1 \
		</dev/null >"$work/rping" 2>&1 &
	pid=$!
	until grep -q 'CM_SILENCE' "$work/rping" ||
		[ $((SECONDS - begun)) -gt 6 ]; do
		sleep 0.2
	done
	if grep -qE "rdmacm: .*$HOST_B.*no answer for 4 s.*4791.*CM_SILENCE" \
		"$work/rping"; then
		ok "$name"
	else
		not_ok "$name" "$work/rping"
	fi
	kill $pid 2>/dev/null
	wait $pid
	a nft delete table inet verbena_test
}

# nobody_listens: the port of a host on which another program listens.
nobody_listens() {
	local name="rdma_cm to a port where nobody listens"

	on a timeout 20 "$verbena" run -- rping -c -a "$HOST_A" -C 1 \
		</dev/null >"$work/rping" 2>&1
	if [ "$(grep -c "CM_NOBODY" "$work/rping")" -eq 1 ] &&
		grep -q "rdmacm: .*$HOST_A port 7174.*start the server" \
			"$work/rping"; then
		ok "$name"
	else
		not_ok "$name" "$work/rping"
	fi
}

# no_device: a server at an address that no device of its own has.
no_device() {
	local name="rdma_cm at an address without a device"

	VERBENA_DEVICES=lo on a timeout 20 "$verbena" run -- rping -s \
		-a "$HOST_A" -C 1 </dev/null >"$work/rping" 2>&1
	if [ "$(grep -c "verbena: " "$work/rping")" -eq 1 ] &&
		grep -q "rdmacm: $HOST_A is not resolved .*no RDMA device .*403" \
			"$work/rping"; then
		ok "$name"
	else
		not_ok "$name" "$work/rping"
	fi
}

# nobody_there: a host on which no program uses RDMA. Its kernel says so, on a busy
# host after the 4 s.
nobody_there() {
	local name="rdma_cm to a host without RoCE"

	on a timeout 20 "$verbena" run -- rping -c -a "$HOST_B" -C 1 \
		</dev/null >"$work/rping" 2>&1
	if [ "$(grep -c "verbena: " "$work/rping")" -eq 1 ] &&
		grep -Eq "rdmacm: asked $HOST_B port 7174 .*(heard nothing: .*closed|no answer for 4 s).*CM_SILENCE" \
			"$work/rping"; then
		ok "$name"
	else
		not_ok "$name" "$work/rping"
	fi
}

if [ "$hosts" = yes ]; then
	need_hosts 1500
	VERBENA_NEAR=off mistakes "packets, IPv6" -d roce_veth0 -6
	mistakes "one host" -d roce_veth0 -4
	mistakes "another host" -d roce_veth0 -4 -n "$HOST_B"
	mistakes "calls" -d roce_veth0 -c "$HOST_A"
	nobody_listens
	nobody_there
	no_device
	behind_firewall
	export VERBENA_DEVICES=iw_veth0
	VERBENA_NEAR=off mistakes "iWARP, TCP" -d iw_veth0 -a "$HOST_A"
	mistakes "iWARP, no TCP" -d iw_veth0 -a "$HOST_A"
	unset VERBENA_DEVICES
else
	HOSTS_PID_a=here
	skip "mistakes on veth" "no network namespaces here"
	VERBENA_DEVICES=lo mistakes "loopback" -d roce_lo -4
fi
summary
