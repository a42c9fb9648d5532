# SPDX-License-Identifier: BSD-2-Clause
# Two programs of the guest, which use no packets, until Yama's scope is raised;
# sourced by matrix.sh. The guest has the whole machine's scope to itself.
# shellcheck shell=bash disable=SC2154 # set there

# The guest's Soft-RoCE holds port 4791, but not in another network namespace.
yama_begins() {
	guest timeout -k 5 150 unshare -n sh -c '
		ip link set lo up &&
			VERBENA_LOG=info VERBENA_DEVICES=lo exec "$@"' sh \
		"$verbena" run -- "$programs/denied_test" -d roce_lo yama
}

# Each connection uses the other program's memory first. It says so in the log
# when it does no longer.
yama_runs() {
	local lines

	yama_begins >"$work/client" 2>&1 || return
	lines=$(grep -c '^ok denied' "$work/client")
	REPLY="$lines kinds of request"
	[ "$lines" -eq 6 ] && ! grep -q '^not ok' "$work/client" &&
		[ "$(grep -c 'the kernel no longer lets it access' \
			"$work/client")" -ge 6 ]
}

yama_matrix() {
	guest test -e /proc/sys/kernel/yama/ptrace_scope || {
		skip "lab, Yama" "the guest's kernel has none"
		return
	}
	lab_each=1 lab_case "lab, Yama denies copies from some time on" \
		yama_runs
}
