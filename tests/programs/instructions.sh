#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# How many instructions ibv_post_send and ibv_poll_cq take for a WRITE of 8
# bytes, as callgrind counts them in the program's own thread. A table of limits, little above what they
# are; whoever makes them fewer lowers the limit.
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"
[ "$hosts" = yes ] || {
	skip instructions "no network namespaces here"
	summary
	exit
}
command -v valgrind >/dev/null || {
	skip instructions "no valgrind"
	summary
	exit
}
need_hosts 9000
post_poll=$build/bench/post_poll

counted() {
	local pid

	become a timeout 60 "$verbena" run -- "$post_poll" -d roce_veth0 \
		</dev/null >"$work/server" 2>&1 &
	pid=$!
	rm -f "$work"/calls.*
	listening a "$port" 20 $pid &&
		on "$1" timeout 60 "$verbena" run -- valgrind -q \
			--tool=callgrind --callgrind-out-file="$work/calls.%p" \
			--toggle-collect=count_post --toggle-collect=count_poll \
			"$post_poll" -d roce_veth0 "$HOST_A" \
			</dev/null >"$work/client" 2>&1 &&
		wait $pid
}

# each_message FROM: the instructions for one message, in REPLY; none if a
# program fails.
each_message() {
	REPLY=
	counted "$1" || return
	REPLY=$(awk 'FNR == NR { if ($1 ~ /^[0-9]+$/) n = $1; next }
		$1 == "totals:" { sum += $2 }
		END { if (n) print int(sum / n) }' \
		"$work/client" "$work"/calls.*)
}

# limit FROM INSTRUCTIONS "WHERE": for one message. On a full machine the peer
# answers late at times, and the program then polls a longer way: the least of
# three runs counts.
limit() {
	local name="instructions of post and poll, $3" least= try

	for try in 1 2 3; do
		each_message "$1"
		[ "${REPLY:-0}" -gt 0 ] || break
		[ "${least:-$REPLY}" -lt "$REPLY" ] || least=$REPLY
		[ "$least" -gt "$2" ] || break
	done
	if [ "${REPLY:-0}" -gt 0 ] && [ "$least" -le "$2" ]; then
		ok "$name: $least, at most $2, run $try"
	else
		not_ok "$name: ${least:-none}, at most $2" "$work/server" \
			"$work/client"
	fi
}

limit b 634 "the wire"
limit a 218 "one host"
summary
