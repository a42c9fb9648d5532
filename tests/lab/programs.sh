# SPDX-License-Identifier: BSD-2-Clause
# Unmodified programs, with sizes from 1 byte to 1 MiB; sourced by matrix.sh.
# shellcheck shell=bash disable=SC2154 # set there

# place N: the Nth of eight, as variables.
place() {
	family=4
	mtu=1024
	how=polling
	[ $(($1 & 1)) -eq 0 ] || family=6
	[ $(($1 & 2)) -eq 0 ] || mtu=4096
	[ $(($1 & 4)) -eq 0 ] || how=events
}

# options_at SIDE: device and GID index, as words.
options_at() {
	if [ "$1" = host ]; then
		echo "-d roce_tap0 -x ${host_gid[$family]}"
	else
		echo "-d rxe0 -x ${guest_gid[$family]}"
	fi
}

# perftest SERVER_SIDE PROGRAM OPTIONS...
perftest() {
	local at=$1 program=$2

	shift 2
	# shellcheck disable=SC2046 # words
	lab_pair "$at" "$program" $(options_at "$at") "$@" -- \
		"$program" $(options_at "$(other "$at")") "$@" \
		"$(address_of "$at")"
}

# row PROGRAM OPTIONS...: in its place, both ways.
row() {
	local n at

	for at in guest host; do
		for n in {0..7}; do
			[ $full = yes ] || [ $((place_now % 8)) -eq "$n" ] ||
				continue
			# perftest has no events for WRITE.
			if [[ $1 = ib_write_* ]]; then
				[ $full = no ] || [ "$n" -lt 4 ] || continue
				n=$((n & 3))
			fi
			place "$n"
			row_at "$at" "$@"
		done
		place_now=$((place_now + 3))
	done
	# Odd in all, so that each row's families change sides.
	place_now=$((place_now + 1))
}
place_now=0

# -u 16: an ACK timeout of 268 ms. An interpreted kernel may be late, and rxe
# (6.1), having repeated what was acknowledged meanwhile, may send no more.
row_at() {
	local at=$1 event=()

	shift
	[ $how = polling ] || event=(-e)
	lab_case "lab $*$where [server $at, IPv$family, mtu $mtu, $how]" \
		perftest "$at" "$@" -m $mtu -u 16 "${event[@]}"
}
where= # added to the names

programs_matrix() {
	local size

	for size in 1 4097 65536 1048576; do
		row ib_send_bw -s $size -n 20
		row ib_write_bw -s $size -n 20
		row ib_read_bw -s $size -n 20
	done
	row ib_send_lat -s 1 -n 100
	row ib_write_lat -s 1 -n 100
	row ib_read_lat -s 4096 -n 100
	row ib_atomic_bw -n 100
	row ib_atomic_lat -n 100 -A CMP_AND_SWAP
	for size in 4097 1048576; do
		row ib_send_bw -c UC -s $size -n 10
		row ib_write_lat -c UC -s $size -n 10
	done
	row ib_send_lat -c UC -s 64 -n 100
	row ib_send_bw -c UD -s 1024 -n 100
	row ib_send_lat -c UD -s 64 -n 100
}

# Again with losses: what must be repeated, is.
lossy_programs() {
	where=", 1 % lost"
	row ib_send_bw -s 65536 -n 40
	row ib_read_bw -s 65536 -n 40
	row ib_write_bw -s 65536 -n 40
	where=
}
