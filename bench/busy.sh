#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Programs that want a processor which others keep busy: perftest beside 2, 4
# and 8 endless loops, against a ping-pong over TCP beside the same loops
# (bench/sleeper.c). A run gives two figures, the mean and the 99th percentile.
# shellcheck source=bench/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
bench_begin busy "$0" "$@"
[ "$hosts" = yes ] || bench_cannot "no network namespaces here"
hosts_up 9000 || bench_cannot "network namespaces cannot be made"
# shellcheck disable=SC2034 # verbs() reads them
device=roce_veth0 address=$HOST_A
# shellcheck disable=SC2034
gid=$(gid_index a roce_veth0 "::ffff:$HOST_A")
times=$((span > 0 ? 1000 : 100))

# loops_are COUNT: so many endless loops run from now on.
loops=()
loops_are() {
	[ ${#loops[@]} -ne "$1" ] || return 0
	[ ${#loops[@]} -eq 0 ] ||
		{ kill "${loops[@]}" && wait "${loops[@]}"; } 2>/dev/null
	loops=()
	while [ ${#loops[@]} -lt "$1" ]; do
		setpriv --pdeathsig KILL bash -c 'while :; do :; done' &
		loops+=($!)
	done
}

# mean_of SIDE PROGRAM OPTIONS...: the mean of a run, by "verbs" or "tcp".
mean_of() {
	local sleeps=("$tools/sleeper" -t -n "$times" -d roce_veth0)

	if [ "$1" = verbs ]; then
		verbs "$from" "${@:2}" -s 8 -n $times && column 6
	else
		pair root a "$from" "${sleeps[@]}" -- "${sleeps[@]}" "$HOST_A" &&
			awk 'NF == 3 { print $3 }' "$work/client"
	fi
}
# late_of SIDE: the 99th percentile of the run before.
late_of() {
	if [ "$1" = verbs ]; then
		column 8
	else
		awk 'NF == 3 { print $2 }' "$work/client"
	fi
}

# beside_loops WHAT COUNT PROGRAM OPTIONS...: two rows from the same runs.
beside_loops() {
	local what=$1 count=$2 of

	shift 2
	[[ $what =~ $only ]] || return 0
	loops_are "$count"
	two_figures "$what" "verbs tcp" mean_of late_of "$@"
	for of in "" second_; do
		set -- "$what$([ -z $of ] || echo ", 99th percentile")" \
			"$(figure_of ${of}verbs)" us "TCP, beside the same" \
			"$(figure_of ${of}tcp)" "<= 1.5x" "<= 1.0x"
		put_row "$@"
		printf ' %s us, TCP %s' "$2" "$5"
	done
	echo
}

for from in b a; do
	[ $from = b ] && where=veth || where="one host"
	for count in 2 4 8; do
		for program in ib_send_lat ib_write_lat ib_read_lat \
			"ib_send_lat -e"; do
			# shellcheck disable=SC2086 # words
			beside_loops "$program, $count loops, $where" $count $program
		done
	done
done
bench_end
