# SPDX-License-Identifier: BSD-2-Clause
# Errors that cross the border: completion statuses at both ends, and what
# becomes of the queue pair; sourced by matrix.sh, last: it ends the guest.
# shellcheck shell=bash disable=SC2154 # set there

# The specification's (IBA 9.9.2, 9.9.3): the request, the one behind it, a
# receive that was posted, the refuser's queue pair and memory, its event. An
# event is raised where no completion tells.
errors_expected="
write_rkey         REM_ACCESS_ERR    WR_FLUSH_ERR WR_FLUSH_ERR ERR intact QP_ACCESS_ERR
read_rkey          REM_ACCESS_ERR    WR_FLUSH_ERR WR_FLUSH_ERR ERR intact QP_ACCESS_ERR
imm_rkey           REM_ACCESS_ERR    WR_FLUSH_ERR LOC_ACCESS_ERR ERR intact none
atomic_rkey        REM_ACCESS_ERR    WR_FLUSH_ERR WR_FLUSH_ERR ERR intact QP_ACCESS_ERR
write_beyond       REM_ACCESS_ERR    WR_FLUSH_ERR WR_FLUSH_ERR ERR intact QP_ACCESS_ERR
read_before        REM_ACCESS_ERR    WR_FLUSH_ERR WR_FLUSH_ERR ERR intact QP_ACCESS_ERR
write_no_rights    REM_INV_REQ_ERR   WR_FLUSH_ERR WR_FLUSH_ERR ERR intact QP_REQ_ERR
write_read_only    REM_ACCESS_ERR    WR_FLUSH_ERR WR_FLUSH_ERR ERR intact QP_ACCESS_ERR
atomic_misaligned  REM_INV_REQ_ERR   WR_FLUSH_ERR WR_FLUSH_ERR ERR intact QP_REQ_ERR
send_oversized     REM_INV_REQ_ERR   WR_FLUSH_ERR LOC_LEN_ERR  ERR intact none
send_stale_receive REM_OP_ERR        WR_FLUSH_ERR LOC_PROT_ERR ERR intact none
send_rnr           RNR_RETRY_EXC_ERR WR_FLUSH_ERR none         RTS intact none
imm_rnr            RNR_RETRY_EXC_ERR WR_FLUSH_ERR none         RTS intact none
left               RETRY_EXC_ERR     WR_FLUSH_ERR none         none none  none
"
errors_gone="RETRY_EXC_ERR WR_FLUSH_ERR none none none none"

# Where rxe (6.1) does otherwise. As the refuser it raises no events, and takes
# a message that does not fit, or has nowhere to go, for a fault of its own
# (0x63, and LOC_QP_OP_ERR); a receive that a WRITE with a wrong key would have
# taken gets the requester's status. As the requester it refuses a misaligned atomic
# before it is sent.
rxe_refuses="
imm_rkey           REM_ACCESS_ERR    WR_FLUSH_ERR REM_ACCESS_ERR ERR intact none
send_oversized     REM_OP_ERR        WR_FLUSH_ERR LOC_QP_OP_ERR ERR intact none
send_stale_receive REM_OP_ERR        WR_FLUSH_ERR LOC_QP_OP_ERR ERR intact none
"
rxe_asks="
atomic_misaligned  not_posted        none         none         RTS intact none
"

# check_errors REFUSER FILE: a line for each.
check_errors() {
	local refuser=$1 name want status=0

	while read -r name want; do
		[ -n "$name" ] || continue
		want=$(expected_of "$refuser" "$name" "$want")
		compare_error "lab error $name [the $refuser refuses]" \
			"$want" "$(sed -n "s/^$name //p" "$2")" || status=1
	done <<<"$errors_expected"
	return $status
}

expected_of() {
	local want=$3 otherwise=$rxe_asks

	if [ "$1" = guest ]; then
		want="${want% *} none"
		otherwise=$rxe_refuses
	fi
	otherwise=$(sed -n "s/^$2 //p" <<<"$otherwise")
	tr -s ' ' <<<"${otherwise:-$want}" | sed 's/^ //'
}

compare_error() {
	if [ "$2" = "$3" ]; then
		ok "$1: $3"
	else
		echo "    | must be: $2"
		not_ok "$1: $3"
	fi
	[ "$2" = "$3" ]
}

# One run for all cases of a direction.
errors_run() {
	lab_pair "$1" "$programs/border_test" -d "$(device_at "$1")" -- \
		"$programs/border_test" -d "$(device_at "$(other "$1")")" \
		"$(address_of "$1")" && check_errors "$1" "$work/client"
}

# The guest ends while its queue pairs are connected to ours.
guest_is_gone() {
	local pid

	mkfifo "$work/go" || return
	exec {go}<>"$work/go"
	(serve_at guest "$programs/border_test" -g -d rxe0) </dev/null \
		>"$work/server" 2>&1 &
	serves guest $! || return
	: >"$work/client"
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
	REPLY=
	compare_error "lab error gone [the guest ends]" "$errors_gone" \
		"$(sed -n 's/^gone //p' "$work/client")"
}

errors_matrix() {
	local at

	for at in host guest; do
		lab_case "lab errors, the $at refuses" errors_run $at
	done
	lab_case "lab errors, the guest ends" guest_is_gone
}
