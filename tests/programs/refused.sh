#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# What cannot work says why, and ends: tests/programs/refused.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"

# refused NAME PATTERN PROGRAM...: it must end by itself, badly, with a message
# that says as much.
refused() {
	local name=$1 pattern=$2 status=0

	shift 2
	on a timeout -k 5 30 "$verbena" run -- "$@" </dev/null \
		>"$work/out" 2>&1 || status=$?
	# From 129 on it was a signal; 255 is a program's own -1.
	if [ $status -eq 124 ] || { [ $status -gt 128 ] && [ $status -lt 200 ]; }
	then
		not_ok "$name: hangs or crashes ($status)" "$work/out"
	elif [ $status -eq 0 ]; then
		not_ok "$name: nothing is said to be wrong" "$work/out"
	elif ! grep -qiE "$pattern" "$work/out"; then
		not_ok "$name: no clear message" "$work/out"
	else
		ok "$name"
	fi
}

need_hosts 1500
mkfifo "$work/hold"
on a "$programs/hold_port" <"$work/hold" >"$work/held" &
exec {hold}>"$work/hold"
until [ -s "$work/held" ]; do sleep 0.05; done
refused "port 4791 is taken" 4791 ibv_rc_pingpong -g 1
exec {hold}>&-
wait $!

# Without the other program, the same host works.
if pair root a a ibv_rc_pingpong -g 1 -- ibv_rc_pingpong -g 1 "$HOST_A"; then
	ok "port 4791 is free again"
else
	not_ok "port 4791 is free again" "$work/server" "$work/client"
fi

# A transport that is one vendor's: both ends end by themselves.
if VERBENA_TIMEOUT=20 pair root a a ib_send_bw -x 1 -c DC -- \
	ib_send_bw -x 1 -c DC "$HOST_A"; then
	not_ok "perftest -c DC: nothing is said to be wrong" "$work/client"
elif [ "$(grep -l 'Failed to create QP' "$work/server" "$work/client" |
	wc -l)" -eq 2 ] && ! grep -qE 'status (12[4-9]|1[3-9].)' \
	"$work/server" "$work/client"; then
	ok "perftest -c DC"
else
	not_ok "perftest -c DC" "$work/server" "$work/client"
fi

refused "a device that is not there" nosuch ibv_devinfo -d nosuch
status=0
on a timeout -k 5 30 "$verbena" run \
	--device nosuch -- ibv_devices </dev/null >"$work/out" 2>&1 || status=$?
if [ $status -lt 124 ] && grep -q nosuch "$work/out"; then
	ok "a device spec that names nothing"
else
	not_ok "a device spec that names nothing ($status)" "$work/out"
fi

a ip link set veth0 down
a ip link set lo down
refused "no usable interface" "no.*(interface|device)" ibv_rc_pingpong -g 1
refused "no usable interface, perftest" "no.*(interface|device)" ib_write_bw
summary
