# SPDX-License-Identifier: BSD-2-Clause
# Random operations (WRITE with immediate data among them), every byte
# compared, then with packets lost; sourced by matrix.sh.
# shellcheck shell=bash disable=SC2154 # set there

limit=12
steps=40
[ $full = no ] || {
	limit=60
	steps=100000
}

# data NAME SERVER_SIDE OPTIONS...
data() {
	local name=$1 at=$2

	shift 2
	lab_case "lab data$name [server $at: $*]" data_pair "$at" "$@"
}

# An interpreted kernel that compares megabytes may answer late: -a 16 is
# 268 ms. rxe (6.1) is spared one thing (-f, no fences at its side): a fenced
# request that is repeated. Its fence counts the READs and atomics that were
# sent, those behind it and itself too, and so it waits for ever (rxe_req.c:
# rxe_wqe_is_fenced, req_retry).
data_pair() {
	local at=$1 seed=$((RANDOM + 1)) server=() client=()

	shift
	[ "$at" = host ] && client=(-f) || server=(-f)
	lab_pair "$at" "$programs/data_test" -d "$(device_at "$at")" \
		-s $seed -a 16 "${server[@]}" "$@" -- \
		"$programs/data_test" -d "$(device_at "$(other "$at")")" \
		-s $seed -a 16 "${client[@]}" "$@" -t $limit -n $steps \
		"$(address_of "$at")" && did_enough
}

# Some of every kind, in more than a step or two.
did_enough() {
	REPLY=$(tail -n 1 "$work/client")
	[[ $REPLY =~ ^([0-9]+)" steps" ]] && [ "${BASH_REMATCH[1]}" -ge 8 ] &&
		! grep -qE ' [A-Z_]+ 0( |$)' <<<"$REPLY"
}

data_matrix() {
	local at

	for at in guest host; do
		data "" $at -4 -m 1024 -x 1048576
		data "" $at -6 -m 4096 -x 1048576
	done
}

lossy_data() {
	local at

	for at in guest host; do
		data ", 1 % lost" $at -4 -m 1024 -x 20000
		data ", 1 % lost" $at -6 -m 4096 -x 200000
	done
}

# Dropped as they arrive, at both ends.
loss_rules='table inet loss {
	chain in {
		type filter hook input priority 0;
		udp dport 4791 numgen random mod 100 == 0 counter drop
	}
}'
lose() {
	a nft "$loss_rules" && guest nft "$loss_rules"
}
lose_no_more() {
	a nft delete table inet loss
	guest nft delete table inet loss
}

# SIDE: how many were.
lost() {
	local command=(nft list table inet loss)

	if [ "$1" = host ]; then
		a "${command[@]}"
	else
		guest "${command[@]}"
	fi | sed -n 's/.*counter packets \([0-9]*\).*/\1/p'
}

were_lost() {
	local side

	for side in host guest; do
		if [ "$(lost $side)" -gt 10 ]; then
			ok "lab: packets were lost on the way to the $side:" \
				"$(lost $side)"
		else
			not_ok "lab: packets were lost on the way to the $side"
		fi
	done
}

loss_matrix() {
	lose >"$work/nft" 2>&1 || {
		lose_no_more 2>/dev/null
		not_ok "lab with losses" "$work/nft"
		return
	}
	lossy_programs
	lossy_data
	[ "$only" != . ] || [ "$quick" = yes ] || were_lost
	lose_no_more
}
