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

# says NAME PATTERN FILE: the file has one line of Verbena's that matches.
says() {
	if [ "$(grep -c "^verbena" "$3")" -eq 1 ] &&
		grep -Eq "^verbena.*$2" "$3"; then
		ok "$1"
	else
		not_ok "$1" "$3"
	fi
}

# variable NAME=VALUE PATTERN: a mistyped variable, as `verbena run` and the
# doctor tell it. No PATTERN: nothing is told.
variable() {
	local name="environment: $1"

	on a env "$1" "$verbena" run -- true >"$work/run" 2>&1
	on a env "$1" "$verbena" doctor >"$work/doctor" 2>&1
	if [ -n "$2" ]; then
		says "$name" "warning: $2" "$work/run"
		grep -Eq "^warning environment +$2" "$work/doctor"
	else
		[ ! -s "$work/run" ] && ! grep -q environment "$work/doctor" &&
			ok "$name"
	fi || not_ok "$name" "$work/run" "$work/doctor"
}
variables() {
	variable VERBENA_NAER=off "VERBENA_NAER is set.*is VERBENA_NEAR meant"
	variable VERBENA_LOGG=info "VERBENA_LOGG is set.*is VERBENA_LOG meant"
	variable VERBENA_DEVICE=lo "VERBENA_DEVICE is.*is VERBENA_DEVICES meant"
	variable VERBENA_LOG=verbose 'VERBENA_LOG is "verbose".*off.error.warn'
	variable VERBENA_NEAR=no 'VERBENA_NEAR is "no".*may be on.off'
	variable VERBENA_NEAR=off ""
	variable VERBENA_NEAR=on ""
	variable VERBENA_LOG=quiet ""
	variable VERBENA_QUICK=yes ""
	variable VERBENA_DEVICES=lo ""
}

# spec_without_interface: a word that only begins a device's name.
spec_without_interface() {
	local name="--device iwarp, without an interface"

	on a "$verbena" run --device iwarp -- ibv_devices >"$work/out" 2>&1
	if grep -q "^verbena: device iwarp: .*takes one: iwarp:eth0" \
		"$work/out"; then
		ok "$name"
	else
		not_ok "$name" "$work/out"
	fi
}

# ends_disagree NAME PATTERN OPTIONS -- OPTIONS: ibv_rc_pingpong on two hosts;
# one of the two says PATTERN.
ends_disagree() {
	local name=$1 pattern=$2

	shift 2
	pair root a b ibv_rc_pingpong -s 8192 -n 10 "$@" "$HOST_A"
	cat "$work/server" "$work/client" >"$work/both"
	if grep -Eq "^verbena: $pattern" "$work/both"; then
		ok "$name"
	else
		not_ok "$name" "$work/both"
	fi
}

# few_descriptors: wherever a program meets the limit, it names the limit.
few_descriptors() {
	local name="too few descriptors" n times=0

	: >"$work/few"
	for n in 6 8 10 12 14 16 18 20; do
		on a bash -c "ulimit -n $n && exec \"\$0\" run -- ibv_devinfo" \
			"$verbena" </dev/null >"$work/out" 2>&1 && continue
		times=$((times + 1))
		grep -q "RLIMIT_NOFILE" "$work/out" || {
			echo "(ulimit -n $n)"
			cat "$work/out"
		} >>"$work/few"
	done
	if [ ! -s "$work/few" ] && [ $times -gt 0 ]; then
		ok "$name"
	else
		not_ok "$name ($times failed)" "$work/few"
	fi
}

# few_threads: a user who may start no process and no thread.
few_threads() {
	local name="too few threads: $1"

	on a setpriv --reuid=12345 --regid=12345 --clear-groups bash -c \
		'ulimit -u 1 && exec "$0" run -- ibv_devinfo' "$verbena" \
		</dev/null >"$work/out" 2>&1
	says "$name" "RLIMIT_NPROC" "$work/out"
}
threads() {
	local pid

	if [ "$(id -u)" -ne 0 ] || [ -n "${VERBENA_USERNS:-}" ] ||
		! user_can_reach_build; then
		skip "too few threads" "needs root, and a build that users reach"
		return
	fi
	become a "$verbena" run -- sh -c 'ibv_devinfo && sleep 60' \
		</dev/null >"$work/holds" 2>&1 &
	pid=$!
	until grep -q hca_id "$work/holds"; do sleep 0.1; done
	few_threads "a broker runs"
	kill $pid
	wait $pid
}

# no_mistake: a program that makes none is told nothing.
no_mistake() {
	on a "$verbena" run -- ibv_devinfo -v >"$work/out" 2>&1
	if grep -q 'GID' "$work/out" && ! grep -q '^verbena' "$work/out"; then
		ok "ibv_devinfo -v: no sentence"
	else
		not_ok "ibv_devinfo -v: no sentence" "$work/out"
	fi
}

if [ "$hosts" = yes ]; then
	need_hosts 1500
	no_mistake
	variables
	spec_without_interface
	few_descriptors
	threads
	ends_disagree "path MTUs that differ" \
		"qp .*sends packets of 1024 bytes, and .*path_mtu is 512: .*112 MTU" \
		-d roce_veth0 -g 1 -m 512 -- \
		ibv_rc_pingpong -s 8192 -n 10 -d roce_veth0 -g 1 -m 1024
	VERBENA_DEVICES=lo,veth0 ends_disagree "a peer by its loopback address" \
		"qp .*to qp 0x[0-9a-f]+ at 127.0.0.1 .*another device than roce_lo.*205 SIL" \
		-d roce_lo -g 1 -- \
		ibv_rc_pingpong -s 8192 -n 10 -d roce_veth0 -g 1
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
