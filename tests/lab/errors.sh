# SPDX-License-Identifier: BSD-2-Clause
# Errors that cross the border: completion statuses at both ends, and what
# becomes of the queue pair; sourced by matrix.sh, last: it ends the guest.
# shellcheck shell=bash disable=SC2154 # set there

# The specification's (IBA 9.9.2, 9.9.3 and tables 57 to 59): the request, the
# one behind it, a receive that was posted, the refuser's queue pair, its
# event. An event is raised where no completion tells.
errors_expected="
write_rkey         REM_ACCESS_ERR    WR_FLUSH_ERR WR_FLUSH_ERR ERR QP_ACCESS_ERR
read_rkey          REM_ACCESS_ERR    WR_FLUSH_ERR WR_FLUSH_ERR ERR QP_ACCESS_ERR
atomic_rkey        REM_ACCESS_ERR    WR_FLUSH_ERR WR_FLUSH_ERR ERR QP_ACCESS_ERR
write_beyond       REM_ACCESS_ERR    WR_FLUSH_ERR WR_FLUSH_ERR ERR QP_ACCESS_ERR
read_before        REM_ACCESS_ERR    WR_FLUSH_ERR WR_FLUSH_ERR ERR QP_ACCESS_ERR
write_no_rights    REM_INV_REQ_ERR   WR_FLUSH_ERR WR_FLUSH_ERR ERR QP_REQ_ERR
write_read_only    REM_ACCESS_ERR    WR_FLUSH_ERR WR_FLUSH_ERR ERR QP_ACCESS_ERR
atomic_misaligned  REM_INV_REQ_ERR   WR_FLUSH_ERR WR_FLUSH_ERR ERR QP_REQ_ERR
send_oversized     REM_INV_REQ_ERR   WR_FLUSH_ERR LOC_LEN_ERR  ERR none
send_stale_receive REM_OP_ERR        WR_FLUSH_ERR LOC_PROT_ERR ERR none
send_rnr           RNR_RETRY_EXC_ERR WR_FLUSH_ERR none         RTS none
imm_rnr            RNR_RETRY_EXC_ERR WR_FLUSH_ERR none         RTS none
left               RETRY_EXC_ERR     WR_FLUSH_ERR none         none none
gone               RETRY_EXC_ERR     WR_FLUSH_ERR none         none none
"

# Where rxe (6.1) does otherwise. It raises no events; takes a message that
# does not fit, or has nowhere to go, for a fault of its own (0x63, and
# LOC_QP_OP_ERR); and refuses a misaligned atomic before it is sent.
rxe_refuses="
write_rkey         REM_ACCESS_ERR    WR_FLUSH_ERR WR_FLUSH_ERR ERR none
read_rkey          REM_ACCESS_ERR    WR_FLUSH_ERR WR_FLUSH_ERR ERR none
atomic_rkey        REM_ACCESS_ERR    WR_FLUSH_ERR WR_FLUSH_ERR ERR none
write_beyond       REM_ACCESS_ERR    WR_FLUSH_ERR WR_FLUSH_ERR ERR none
read_before        REM_ACCESS_ERR    WR_FLUSH_ERR WR_FLUSH_ERR ERR none
write_no_rights    REM_INV_REQ_ERR   WR_FLUSH_ERR WR_FLUSH_ERR ERR none
write_read_only    REM_ACCESS_ERR    WR_FLUSH_ERR WR_FLUSH_ERR ERR none
atomic_misaligned  REM_INV_REQ_ERR   WR_FLUSH_ERR WR_FLUSH_ERR ERR none
send_oversized     REM_OP_ERR        WR_FLUSH_ERR LOC_QP_OP_ERR ERR none
send_stale_receive REM_OP_ERR        WR_FLUSH_ERR LOC_QP_OP_ERR ERR none
"
rxe_asks="
atomic_misaligned  not_posted        none         none         RTS none
"

# check_errors REFUSER FILE
check_errors() {
	local refuser=$1 name want found

	while read -r name want; do
		[ -n "$name" ] && [ "$name" != gone ] || continue
		found=$(sed -n "s/^$name //p" "$2")
		error_case "$refuser" "$name" "$want" "$found"
	done <<<"$errors_expected"
}

error_case() {
	local refuser=$1 name=$2 want found=$4 deviates=

	want=$(tr -s ' ' <<<"$3")
	[ "$refuser" = guest ] && deviates=$rxe_refuses || deviates=$rxe_asks
	deviates=$(tr -s ' ' <<<"$deviates" | sed -n "s/^$name //p")
	[ -z "$deviates" ] || want=$deviates
	name="lab error $name [the $refuser refuses]: $found"
	if [ "$found" = "$want" ]; then
		ok "$name${deviates:+ (rxe differs)}"
	else
		echo "    must be: $want"
		not_ok "$name"
	fi
}

# One run for all cases of a direction; lab_case keeps what was on the wire.
errors_run() {
	lab_pair "$1" "$programs/border_test" -d "$(device_at "$1")" -- \
		"$programs/border_test" -d "$(device_at "$(other "$1")")" \
		"$(address_of "$1")" &&
		cp "$work/client" "$work/errors"
}

# The guest ends while its queue pairs are connected to ours.
guest_is_gone() {
	local pid

	mkfifo "$work/go" || return
	exec {go}<>"$work/go"
	(serve_at guest "$programs/border_test" -g -d rxe0) </dev/null \
		>"$work/server" 2>&1 &
	serves guest $! || return
	(run_at host "$programs/border_test" -g -d roce_tap0 "$HOST_GUEST") \
		<"$work/go" >"$work/client" 2>&1 &
	pid=$!
	until grep -q '^go' "$work/client"; do
		kill -0 $pid 2>/dev/null || return
		sleep 0.05
	done
	guest_kill
	echo >&"$go"
	wait $pid
}

errors_matrix() {
	local at

	for at in host guest; do
		rm -f "$work/errors"
		lab_case "lab errors, the $at refuses" errors_run $at
		[ ! -f "$work/errors" ] || check_errors $at "$work/errors"
	done
	[[ "lab error gone" =~ $only ]] || return 0
	guest_is_gone
	error_case nobody gone "$(sed -n 's/^gone *//p' <<<"$errors_expected")" \
		"$(sed -n 's/^gone //p' "$work/client")"
}
