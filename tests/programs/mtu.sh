#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Two hosts whose interfaces do not carry packets of the same size, or do so no
# more: tests/programs/mtu.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"
need_hosts 9000

data=("$programs/data_test" -d roce_veth0 -a 12)

# mtus A B: of the interfaces, from now on. Packets of the end that is slower to
# change are lost meanwhile, so both change at a time.
mtus() {
	on a ip link set veth0 mtu "$1" &
	on b ip link set veth0 mtu "$2"
	wait $!
}

# fall_to A B: as soon as data flows.
fall_to() {
	local tries=0 sent=0

	until [ "$sent" -gt 3000000 ]; do
		tries=$((tries + 1))
		[ $tries -lt 300 ] || return
		sleep 0.1
		sent=$(on a ip -s link show veth0 |
			awk '/TX:/ { getline; print $1 }')
	done
	mtus "$1" "$2"
}

# Every interface's counts begin anew.
new_hosts() {
	hosts_down
	hosts_up 9000
}

# Every byte is compared (data_test), before the fall and behind it.
falls() {
	local family=$1 to=$2 falling

	new_hosts
	fall_to 1500 1500 &
	falling=$!
	if pair root a b "${data[@]}" "-$family" -t 5 -n 1000000 -x 100000 -s 5 -- \
		"${data[@]}" "-$family" -t 5 -n 1000000 -x 100000 -s 5 "$to" &&
		grep -q "go in fragments" "$work/server" "$work/client"; then
		ok "the MTU falls while data flows, IPv$family: slower"
	else
		not_ok "the MTU falls while data flows, IPv$family" \
			"$work/server" "$work/client"
	fi
	wait $falling
}

# At one end only: what it sends goes in fragments, and what is sent to it may
# be lost for good. Who waits for an answer hears of that; who waits for the
# other to begin (data_test does, for half a minute) does not.
falls_at_one_end() {
	local falling

	new_hosts
	fall_to 1500 9000 &
	falling=$!
	if VERBENA_TIMEOUT=20 pair root a b "${data[@]}" -t 5 -n 1000000 \
		-x 100000 -s 5 -- "${data[@]}" -t 5 -n 1000000 -x 100000 -s 5 \
		"$HOST_A" || grep -qs "retry counter exceeded" \
		"$work/client" "$work/server"; then
		ok "the MTU falls at one end: data or a status"
	else
		not_ok "the MTU falls at one end" "$work/server" "$work/client"
	fi
	wait $falling
}

# Nothing shows from outside that a server listens.
give_time() {
	sleep "${HEAD_START:-2}"
}

# Who meets through librdmacm agrees on what both carry.
meets() {
	local what=$1 who=root at=a from=b server client

	command -v ib_send_bw >/dev/null || {
		skip "librdmacm: $what" "ib_send_bw is not installed"
		return
	}
	mtus "$2" "$3"
	server=(ib_send_bw -R -F -s 65536 -n 200)
	client=("${server[@]}" "$HOST_A")
	if play pair_serve give_time pair_call; then
		ok "librdmacm: $what"
	else
		not_ok "librdmacm: $what" "$work/server" "$work/client"
	fi
}

# Programs that name a path MTU themselves: one that both carry works; one that
# only one end carries ends in an error and a sentence.
named() {
	local what="path MTU $4, $1" good=$5 status=0
	local run=("${data[@]}" -m "$4" -n 50 -x 100000 -s 5)

	mtus "$2" "$3"
	VERBENA_TIMEOUT=50 pair root a b "${run[@]}" -- "${run[@]}" "$HOST_A" ||
		status=$?
	if [ "$good" = yes ]; then
		[ $status -eq 0 ]
	else
		[ $status -ne 0 ] &&
			grep -q "give both ends path MTU 1024" \
				"$work/server" "$work/client"
	fi && ok "$what" || not_ok "$what" "$work/server" "$work/client"
}

# pings rc|uc: the receiver names the path MTU, and the sender of a refused
# message what may be the cause. Over UC nothing is refused: the program waits.
pings() {
	local what="path MTU 4096, one interface carries less, ibv_$1_pingpong"
	local run=("ibv_$1_pingpong" -d roce_veth0 -g 1 -m 4096 -s 65536 -n 5)

	mtus 1500 9000
	if ! VERBENA_TIMEOUT=5 pair root a b "${run[@]}" -- \
		"${run[@]}" "$HOST_A" &&
		[ "$(grep -c "give both ends path MTU 1024" \
			"$work/server")" -eq 1 ] && {
		[ "$1" = uc ] || grep -q "give both ends a smaller path MTU" \
			"$work/client"
	}; then
		ok "$what"
	else
		not_ok "$what" "$work/server" "$work/client"
	fi
}

falls 4 "$HOST_A"
if [ "$quick" = no ]; then
	falls 6 "$HOST_A6"
	falls_at_one_end
fi
meets "the server's interface carries less" 1500 9000
meets "the client's interface carries less" 9000 1500
if [ "$quick" = no ]; then
	named "both interfaces carry less" 1500 1500 4096 yes
	named "one interface carries less" 1500 9000 1024 yes
	named "the server's interface carries less" 1500 9000 4096 no
	named "the client's interface carries less" 9000 1500 4096 no
fi
pings rc
pings uc
summary
