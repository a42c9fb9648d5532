#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Everything at once in one program: threads that post, poll, make and destroy.
# With a build for ThreadSanitizer in VERBENA_BUILD, a race is a failure.
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"
need_hosts 9000

# Without `verbena run`, whose preload would be loaded before the sanitizer.
export LD_LIBRARY_PATH=$build/front/verbs
export TSAN_OPTIONS="halt_on_error=1 history_size=7"

# crowd NAME near|packets OPTIONS...
crowd() {
	local name=$1 near=on

	[ "$2" = near ] || near=off
	shift 2
	if on a env VERBENA_NEAR=$near timeout -k 5 120 \
		"$programs/threads_test" "$@" >"$work/out" 2>&1; then
		ok "threads, $name: $(tail -n 1 "$work/out")"
	else
		not_ok "threads, $name" "$work/out"
	fi
}

# Two programs of one host bind and unbind memory windows, which
# takes the locks of core/ and of near/ together.
windows() {
	local test=("$programs/windows_test" -d roce_veth0 -4) server

	on a timeout -k 5 120 "${test[@]}" >"$work/server" 2>&1 &
	server=$!
	if on a timeout -k 5 120 "${test[@]}" "$HOST_A" >"$work/out" 2>&1 &&
		wait $server; then
		ok "threads, windows between two programs"
	else
		kill $server 2>/dev/null
		not_ok "threads, windows between two programs" \
			"$work/server" "$work/out"
	fi
}

# Two programs sleep, in ibv_get_cq_event() and in epoll, while packets and the
# engine's thread wake them.
sleepers() {
	local test=("$programs/sleep_test" -s -d roce_veth0) server

	on a timeout -k 5 120 "${test[@]}" >"$work/server" 2>&1 &
	server=$!
	if listening a "$port" 20 $server &&
		on b timeout -k 5 120 "${test[@]}" "$HOST_A" \
			>"$work/out" 2>&1 && wait $server; then
		ok "threads, two programs that sleep"
	else
		kill $server 2>/dev/null
		not_ok "threads, two programs that sleep" \
			"$work/server" "$work/out"
	fi
}

VERBENA_DEVICES=lo crowd "no packets" near -d roce_lo
VERBENA_DEVICES=lo crowd "packets, IPv4" packets -d roce_lo
crowd "packets, IPv6" packets -d roce_veth0 -6
windows
sleepers
summary
