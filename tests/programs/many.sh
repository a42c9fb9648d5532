#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Many programs on one host share the adapter: 200 at a time, up to the limit
# of 256, a clear error past it; kill -9 of some and of the broker costs the
# others nothing.
#
#	tests/programs/many.sh [--full]
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"
need_hosts 1500
export VERBENA_DEVICES=lo

mkfifo "$work/go_on"
exec {go_on}<>"$work/go_on"
declare -A pids
programs_now=0

# start_one NUMBER: an even one waits for its neighbour, the next number.
start_one() {
	local n=$1 host=

	[ $((n % 2)) -eq 0 ] || host=127.0.0.1
	# shellcheck disable=SC2086 # there may be no host
	become a "$verbena" run -- "$programs/small_pair" -d roce_lo \
		-p $((20000 + n / 2)) $host <"$work/go_on" \
		>"$work/out$n" 2>"$work/err$n" {go_on}>&- &
	pids[$n]=$!
}

# start_up_to COUNT: false when one did not get ready in time.
start_up_to() {
	local n from=$programs_now tries=0

	for ((n = from; n < $1; n++)); do
		start_one $n
	done
	programs_now=$1
	for ((n = from; n < $1; n++)); do
		until grep -q ready "$work/out$n"; do
			tries=$((tries + 1))
			[ $tries -lt 1200 ] || return 1
			kill -0 "${pids[$n]}" 2>/dev/null || return 1
			sleep 0.1
		done
	done
}

# started COUNT [OF_ALL]: so many live at a time.
started() {
	local n all=${2:-$1}

	if start_up_to "$all" && alive "${!pids[@]}"; then
		ok "${#pids[@]} programs at a time"
		return
	fi
	for ((n = 0; n < all; n++)); do
		grep -q ready "$work/out$n" || break
	done
	not_ok "$1 programs at a time (number $n is not ready)" \
		"$work/err$n" "$work/err$((n ^ 1))"
}

alive() {
	local n

	for n; do
		kill -0 "${pids[$n]}" 2>/dev/null || return 1
	done
}

# Two more that come and go, while the rest stays.
newcomers_work() {
	pair root a a "$programs/small_pair" -d roce_lo -p "$port" -- \
		"$programs/small_pair" -d roce_lo -p "$port" 127.0.0.1
}

started 40
started 200

leaving=()
# The processes are small_pair itself: `verbena run` became it.
for n in 11 50 97; do
	disown "${pids[$n]}"
	kill -9 "${pids[$n]}"
	unset "pids[$n]"
	# Its neighbour learns of it, and is not counted on any more.
	leaving+=("${pids[$((n ^ 1))]}")
	unset "pids[$((n ^ 1))]"
done
sleep 1
if alive "${!pids[@]}"; then
	ok "kill -9 of three: the others go on"
else
	not_ok "kill -9 of three: the others go on"
fi
if newcomers_work; then
	ok "kill -9 of three: new ones work"
else
	not_ok "kill -9 of three: new ones work" "$work/server" "$work/client"
fi

# The broker lives in this network namespace, and nothing else does that is
# called so.
broker() {
	local pid

	for pid in $(pgrep -f 'verbena broker'); do
		[ "$(readlink "/proc/$pid/ns/net")" != \
			"$(readlink "/proc/$HOSTS_PID_a/ns/net")" ] ||
			echo "$pid"
	done
}

old=$(broker)
if [ -n "$old" ]; then
	# shellcheck disable=SC2086 # there is one
	kill -9 $old
	sleep 1
	if alive "${!pids[@]}"; then
		ok "kill -9 of the broker: the programs go on"
	else
		not_ok "kill -9 of the broker: the programs go on"
	fi
	if newcomers_work; then
		ok "kill -9 of the broker: new ones work"
	else
		not_ok "kill -9 of the broker: new ones work" \
			"$work/server" "$work/client"
	fi
else
	not_ok "the broker is there while programs are"
fi


# The neighbours give up after their retries, and then their slots are free.
for _ in {1..100}; do
	kill -0 "${leaving[@]}" 2>/dev/null || break
	sleep 0.1
done
started 256 262 # six have gone
if on a timeout -k 5 30 "$verbena" run -- "$programs/small_pair" -d roce_lo \
	-p 19999 </dev/null >"$work/out" 2>&1; then
	not_ok "one program too many is refused" "$work/out"
elif grep -qiE 'programs|slots' "$work/out"; then
	ok "one program too many is refused: $(tail -n 1 "$work/out")"
else
	not_ok "one program too many is told why" "$work/out"
fi

# End of input: all stop, in good order.
exec {go_on}>&-
: >"$work/bad"
for n in "${!pids[@]}"; do
	wait "${pids[$n]}" || {
		echo "program $n: $? $(tail -n 1 "$work/err$n")" >>"$work/bad"
	}
done
if [ -s "$work/bad" ]; then
	not_ok "all others end well" "$work/bad"
else
	ok "all others end well (${#pids[@]})"
fi

# And the broker leaves when nobody is left.
tries=0
until [ -z "$(broker)" ] || [ $tries -ge 300 ]; do
	tries=$((tries + 1))
	sleep 0.1
done
if [ -z "$(broker)" ]; then
	ok "the broker leaves when idle"
else
	not_ok "the broker leaves when idle"
fi
summary
