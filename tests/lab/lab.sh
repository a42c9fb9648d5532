# SPDX-License-Identifier: BSD-2-Clause
# What the tests with a foreign kernel share; sourced. Their hosts are "host",
# where Verbena runs, and "guest", with Linux's Soft-RoCE.
# shellcheck shell=bash disable=SC2034,SC2154 # set there, used there

# shellcheck source=tests/programs/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../programs/lib.sh"
# shellcheck source=lab/lab.sh
. "$top/lab/lab.sh"
keep=$build/logs/lab
patience=60

# lab_begin "$0" "$@": boot, or the end of a test that cannot do without.
lab_begin() {
	local name

	name="lab $(basename "$1" .sh)"
	lab_possible || {
		echo "skip $name # $REPLY"
		exit 0
	}
	tests_begin "$@"
	trap 'keep_console; guest_kill; tests_end' EXIT
	rm -rf "$keep" && mkdir -p "$keep"
	lab_up 9000 || {
		not_ok "$name: the guest boots"
		summary
		exit 1
	}
	# UC repeats nothing: not what is lost while its neighbour is sought.
	a bash -c "echo >/dev/udp/$HOST_GUEST6/9" 2>/dev/null
	for family in 4 6; do
		host_gid[$family]=$(a "$verbena" run -- ibv_devinfo -v \
			-d roce_tap0 </dev/null 2>&1 | gid_of_family)
		guest_gid[$family]=$(guest ibv_devinfo -v -d rxe0 |
			gid_of_family)
	done
}

# What the guest's kernel said, when something went wrong.
keep_console() {
	[ "$failed" -eq 0 ] || cp "$hosts_dir/console" "$hosts_dir/qemu" "$keep"
}

# The index of the address of $family in what ibv_devinfo says.
gid_of_family() {
	local pattern=::ffff:10

	[ "$family" = 4 ] || pattern=fd77:
	sed -n "s/.*GID\[ *\([0-9]*\)\]:[[:space:]]*$pattern.*/\1/p" |
		head -n 1
}
declare -A host_gid guest_gid

# run_at SIDE PROGRAM...: this shell becomes it.
run_at() {
	local side=$1 hurried

	shift
	hurry "$1"
	if [ "$side" = guest ]; then
		guest_become timeout -k 5 $patience "${hurried[@]}" "$@"
	else
		become a timeout -k 5 $patience "${hurried[@]}" \
			"$verbena" run -- "$@"
	fi
}

serve_at() {
	local side=$1 hurried

	shift
	hurry "$1"
	if [ "$side" = guest ]; then
		guest_serve "$port" timeout -k 5 $patience "${hurried[@]}" "$@"
	else
		run_at host "$@"
	fi
}

# Until the server at that side, process $2, listens.
serves() {
	local tries=0

	[ "$1" = guest ] || {
		listening a "$port" 20 "$2"
		return
	}
	until grep -q '^@listening' "$work/server"; do
		tries=$((tries + 1))
		[ $tries -lt 400 ] && kill -0 "$2" 2>/dev/null || return 1
		sleep 0.05
	done
}

other() {
	[ "$1" = host ] && echo guest || echo host
}
address_of() {
	[ "$1" = host ] && echo "$HOST_A" || echo "$HOST_GUEST"
}
address6_of() {
	[ "$1" = host ] && echo "$HOST_A6" || echo "$HOST_GUEST6"
}
device_at() {
	[ "$1" = host ] && echo "$host_device" || echo "$guest_device"
}
host_device=roce_tap0
guest_device=rxe0

# lab_pair SERVER_SIDE SERVER... -- CLIENT...: play them, a side each.
lab_pair() {
	local at=$1 server client

	shift
	ends "$@"
	play lab_serve lab_ready lab_call
}
lab_serve() {
	serve_at "$at" "${server[@]}"
}
lab_ready() {
	serves "$at" "$1"
}
lab_call() {
	run_at "$(other "$at")" "${client[@]}"
}

capture_filter='udp port 4791'

# What passes the cable while a case runs; kept, and decoded, if it fails.
capture_start() {
	command -v dumpcap >/dev/null || return 0
	# The last of a long one is what tells.
	record_begin tap0 "$capture_filter" "$work/pcap" -b filesize:20000 \
		-b files:2
}

# capture_stop [NAME]: without a name, throw it away.
capture_stop() {
	local name=${1:-} file

	[ -n "${record_pid:-}" ] || return 0
	record_end "${1:+yes}"
	record_pid=
	[ -n "${1:-}" ] && capture_keep "$keep/${name//[^a-zA-Z0-9]/_}"
	rm -f "$work"/pcap_*
}

# Two files at most, one list; in full the last packets only.
capture_keep() {
	local file n=0 last

	for file in "$work"/pcap_*; do
		[ -f "$file" ] || continue
		n=$((n + 1))
		mv "$file" "$1.$n.pcap"
		tshark -r "$1.$n.pcap" 2>/dev/null
	done >"$1.list"
	[ $n -gt 0 ] || return 0
	last=$(tshark -r "$1.$n.pcap" 2>/dev/null | wc -l)
	tshark -r "$1.$n.pcap" -V -Y "frame.number > $((last - 500))" \
		>"$1.txt" 2>/dev/null
	echo "    | see $1.*.pcap, .list and .txt (tshark)"
}

# lab_case NAME COMMAND...: captured; the command says ok by its status.
lab_case() {
	local name=$1 start=$EPOCHREALTIME

	shift
	[[ $name =~ $only ]] && sometimes "${lab_each:-8}" || return 0
	REPLY= # what the case says of itself
	capture_start
	if "$@"; then
		capture_stop
		ok "$name ($(since "$start") s)${REPLY:+: $REPLY}"
	else
		not_ok "$name ($(since "$start") s)" "$work/server" \
			"$work/client"
		console_tells
		capture_stop "$name"
	fi
}

# A guest whose kernel has fallen fails every case behind it: once is said why.
console_tells() {
	grep -aE 'kernel BUG|Oops:|BUG: |blocked for more' \
		"$hosts_dir/console" | sed 's/^/    | guest: /' | head -n 3
}

since() {
	local now=$EPOCHREALTIME us

	us=$((${now/./} - ${1/./}))
	printf '%d.%d' $((us / 1000000)) $((us / 100000 % 10))
}
