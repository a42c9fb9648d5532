#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Which files a message passes, from ibv_post_send to sendmmsg and from recvmmsg
# to its effect: as callgrind sees it, and as docs/TOUR.md says (way.py).
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"
[ "$hosts" = yes ] || {
	skip way "no network namespaces here"
	summary
	exit
}
command -v valgrind >/dev/null || {
	skip way "no valgrind"
	summary
	exit
}
need_hosts 9000
way_test=$programs/way_test
# What is done with a packet: the link's part, and the dispatcher's with all that
# it calls. What leaves after that is another message's way.
received=(--toggle-collect=vb_udp_recv --toggle-collect=eng_dispatch_hand_over)

# collect SIDE TOGGLE...: the program under callgrind, with what follows "--".
collect() {
	local side=$1 toggles=()

	shift
	while [ "$1" != -- ]; do
		toggles+=("$1")
		shift
	done
	shift
	become "$side" timeout 60 "$verbena" run -- valgrind -q \
		--tool=callgrind "--callgrind-out-file=$work/$side.%p" \
		"${toggles[@]}" "$way_test" -d roce_veth0 "$@" \
		</dev/null >"$work/out.$side" 2>&1
}

# pass KIND TOGGLE...: messages of this kind from b to a; a collects what it does
# with a request, b what the toggles say.
pass() {
	local kind=$1 pid

	shift
	rm -f "$work"/a.* "$work"/b.*
	collect a "${received[@]}" -- "$kind" &
	pid=$!
	listening a "$port" 40 $pid &&
		(collect b "$@" -- "$kind" "$HOST_A") &&
		wait $pid
}

# is_as_told "WAY" SIDE
is_as_told() {
	if python3 "$here/way.py" "$1" "$work/$2".* >"$work/told" 2>&1; then
		ok "$1: $(head -n 1 "$work/told")"
	else
		not_ok "$1" "$work/told"
	fi
}

# ways KIND "SENT" "RECEIVED" "ANSWER": the names in docs/TOUR.md
ways() {
	if pass "$1" '--toggle-collect=count_post*'; then
		is_as_told "$2" b
		is_as_told "$3" a
	else
		not_ok "messages: $1" "$work/out.a" "$work/out.b"
	fi
	if pass "$1" "${received[@]}"; then
		is_as_told "$4" b
	else
		not_ok "answers: $1" "$work/out.a" "$work/out.b"
	fi
}

ways write "A WRITE or SEND of one packet, sent" "A WRITE, received" \
	"An ACK, received"
ways long-write "A WRITE of many packets, sent" "A WRITE, received" \
	"An ACK, received"
ways send "A WRITE or SEND of one packet, sent" "A SEND, received" \
	"An ACK, received"
ways read "A READ, sent" "A READ, received" "A READ response, received"
summary
