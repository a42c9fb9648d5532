#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# `make demo`: Debian's own RDMA programs, unmodified, between two hosts made of
# network namespaces and then between two programs on one, and what they
# measured. Root is not needed; nothing of this machine's network is touched.
set -u
top=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
# shellcheck source=tests/programs/lib.sh
. "$top/tests/programs/lib.sh"
tests_begin "$0" "$@"
rows=$work/rows

say() {
	printf '%s\n' "$*"
}

# How each program's last figures read: bandwidth in MiB/s of ib_*_bw, the
# typical latency of ib_*_lat, and the time of a turn of ibv_rc_pingpong.
figures() {
	case $1 in
	*_bw) awk '$1 ~ /^[0-9]+$/ { bw = $4 }
		END { printf "%.2f GB/s\t-\n", bw * 1048576 / 1e9 }' "$2" ;;
	*_lat) awk '$1 ~ /^[0-9]+$/ { us = $5 }
		END { printf "-\t%.1f us\n", us }' "$2" ;;
	*) awk '/usec.iter/ { us = $(NF - 1) / 2 }
		END { printf "-\t%.1f us\n", us }' "$2" ;;
	esac
}

# run WHERE FROM SIZE "WHAT" PROGRAM OPTIONS...: one row of the table.
run() {
	local where=$1 from=$2 size=$3 what=$4 program=$5

	shift 4
	printf '  %-11s %-16s ' "$where" "$program"
	if ! pair root a "$from" "$@" -- "$@" "$address"; then
		say "failed"
		say
		say "The server's output:"
		sed 's/^/  | /' "$work/server"
		say "The client's output:"
		sed 's/^/  | /' "$work/client"
		exit 1
	fi
	say "done"
	printf '%s\t%s\t%s\t%s\t%s\n' "$where" "$program" "$what" "$size" \
		"$(figures "$program" "$work/client")" >>"$rows"
}

# five WHERE FROM DEVICE GID: the same five programs everywhere.
five() {
	local where=$1 from=$2 device=$3 gid=$4

	run "$where" "$from" 4096 "send, and back" \
		ibv_rc_pingpong -d "$device" -g "$gid"
	run "$where" "$from" 1048576 "send" \
		ib_send_bw -d "$device" -x "$gid" -s 1048576
	run "$where" "$from" 1048576 "write into the peer's memory" \
		ib_write_bw -d "$device" -x "$gid" -s 1048576
	run "$where" "$from" 1048576 "read the peer's memory" \
		ib_read_bw -d "$device" -x "$gid" -s 1048576
	run "$where" "$from" 2 "write, seen by the peer" \
		ib_write_lat -d "$device" -x "$gid"
}

table() {
	say
	printf '%-11s %-16s %-29s %9s %11s %9s\n' where program operation \
		bytes bandwidth "one way"
	printf '%.0s-' {1..90}
	say
	while IFS=$'\t' read -r where program what size bandwidth latency; do
		printf '%-11s %-16s %-29s %9s %11s %9s\n' "$where" "$program" \
			"$what" "$size" "$bandwidth" "$latency"
	done <"$rows"
}

# hint COMMAND WHAT: a line of what to try next.
hint() {
	printf '  %-47s %s\n' "$1" "$2"
}

next() {
	local run=${verbena#"$top/"}

	say
	say "These were Debian's programs as they are; only their libibverbs was"
	say "Verbena's, put there by \`verbena run\`. What to try next:"
	say
	hint "$run run -- ibv_devinfo -v" "the devices there are now"
	hint "$run run -- YOUR-PROGRAM ARGS" "anything that uses verbs"
	hint "scripts/netns.sh" "a shell with two hosts, a and b:"
	hint "  a verbena run -- ib_send_lat &" "the server on one"
	hint "  b verbena run -- ib_send_lat $HOST_A" "the client on the other"
	hint "make check" "the tests"
}

say "Verbena: RDMA in software, without a special card, driver or privilege."
say
address=$HOST_A
if [ "$hosts" = yes ]; then
	hosts_up 9000 || {
		say "Could not make two hosts out of network namespaces."
		exit 1
	}
	gid=$(gid_index a roce_veth0 "::ffff:$HOST_A")
	five "two hosts" b roce_veth0 "${gid:-1}"
	five "one host" a roce_veth0 "${gid:-1}"
else
	say "Network namespaces cannot be made here (a container without the"
	say "right to?), so only the second half is shown: one host, loopback."
	HOSTS_PID_a=here
	address=127.0.0.1
	export VERBENA_DEVICES=lo
	gid=$(gid_index a roce_lo "::ffff:127.0.0.1")
	five "one host" a roce_lo "${gid:-1}"
fi
table
next
