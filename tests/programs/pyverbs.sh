#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# rdma-core's own test suite (Debian's python3-pyverbs), unmodified, on a device
# of ours: tests/programs/pyverbs.sh [--only GLOB]
#
# pyverbs.txt beside this says which tests may be skipped, and why; so do
# pyverbs_rnic.txt for an iWARP device, and pyverbs_ib.txt for an adapter of a
# fabric.
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
# shellcheck source=tests/programs/fabric_lib.sh
. "$here/fabric_lib.sh"
tests_begin "$0" "$@"

suite=/usr/share/doc/rdma-core/tests
# The one the package is for, whichever comes first in PATH.
python=/usr/bin/python3
only='*'
[ "${1:-}" != --only ] || only=$2
table=$here/pyverbs.txt

# excused TEST: sets $REPLY to the glob and $why, when the table has it.
excused() {
	local glob reason

	while read -r glob reason; do
		[[ -n $glob && $glob != \#* ]] || continue
		# shellcheck disable=SC2053 # a glob it is
		[[ $1 == ${glob#[?]} ]] || continue
		REPLY=$glob
		why=$reason
		return 0
	done <"$table"
	return 1
}

# judge KIND: what $work/results says, against the table.
judge() {
	local word name said
	local -A skips=() whys=()

	while read -r word name said; do
		case $word in
		pass) ok "pyverbs $1: $name" ;;
		skip)
			if excused "$name"; then
				skips[$REPLY]=$((${skips[$REPLY]:-0} + 1))
				whys[$REPLY]="$why ($said)"
			else
				not_ok "pyverbs $1: $name: skipped: $said"
			fi
			;;
		fail) not_ok "pyverbs $1: $name: $said" ;;
		esac
	done <"$work/results"
	for name in "${!skips[@]}"; do
		skip "pyverbs $1: ${skips[$name]} tests of $name" \
			"${whys[$name]}"
	done
}

# stale: lines of the table whose every test passed. But for those that tell
# of the machine (they begin with "?"), they are a mistake: what passes once
# is to pass for ever.
stale() {
	local glob reason name

	[ "$only" = '*' ] || return 0
	while read -r glob reason; do
		[[ -n $glob && $glob != [#?]* ]] || continue
		while read -r _ name _; do
			# shellcheck disable=SC2053 # a glob it is
			[[ $name == $glob ]] && continue 2
		done < <(grep '^skip ' "$work/results")
		not_ok "${table##*/}: all of $glob passes; take it out ($reason)"
	done <"$table"
}

# Tests of huge pages want a few; who may not reserve them skips those. The
# number is the machine's: it is put back at the end.
huge=/proc/sys/vm/nr_hugepages
reserve_huge_pages() {
	local had

	read -r had 2>/dev/null <$huge || return 0
	trap 'return_huge_pages; tests_end' EXIT
	huge_before=$had
	{ echo $((had + 16)) >$huge; } 2>/dev/null
}

return_huge_pages() {
	{ echo "$huge_before" >$huge; } 2>/dev/null
}

# Where the suite runs: on host a, or at an adapter of a fabric.
host_a() { on a timeout -k 5 120 "$verbena" run -- "$@"; }
adapter() { timeout -k 5 120 "$verbena" run --device "ib:$name/Hca3" -- "$@"; }
suite_at=host_a

# run_suite KIND GID [DEVICE TESTS]
run_suite() {
	local before=$failed

	: >"$work/results"
	"$suite_at" "$python" \
		"$here/pyverbs_run.py" "$work" "$work/results" "${4:-$only}" \
		--dev "${3:-roce_veth0}" --gid "$2" </dev/null \
		>"$work/suite" 2>&1 || not_ok "pyverbs $1: the suite ends"
	judge "$1"
	[ "$failed" -eq "$before" ] ||
		tail -n "${VERBENA_LINES:-60}" "$work/suite" | sed 's/^/    | /'
}

if ! "$python" -c 'import pyverbs.device' 2>/dev/null || [ ! -d $suite ]; then
	skip pyverbs "python3-pyverbs and rdma-core's tests are not installed"
	summary
	exit
fi
need_hosts 9000
reserve_huge_pages
mkdir "$work/tests" && cp $suite/* "$work/tests" &&
	gunzip -q "$work"/tests/*.gz
run_suite IPv4 "$(gid_index a roce_veth0 "::ffff:$HOST_A")"
run_suite IPv6 "$(gid_index a roce_veth0 "$HOST_A6")"
stale

# Those whose players may be on two hosts, so: one in each namespace.
between='test_qpex.QpExTestCase.test_qp_ex_[ux]*
	test_qpex.QpExTestCase.test_qp_ex_rc_[ars]*
	test_cqex.CqExTestCase.* test_cq_events.* test_atomic.AtomicTest.*
	test_odp.OdpTestCase.* test_parent_domain.*traffic*
	test_relaxed_ordering.* test_rdmacm.*'
# between_hosts WHERE DEVICE GID TESTS
between_hosts() {
	local before=$failed

	: >"$work/results"
	on a timeout -k 5 150 "$verbena" run -- "$python" \
		"$here/pyverbs_hosts.py" "$work" "$work/results" \
		"/proc/$HOSTS_PID_b/ns/net" "$HOST_B" "$4" --dev "$2" --gid "$3" \
		</dev/null >"$work/suite" 2>&1 ||
		not_ok "pyverbs $1: it ends"
	judge "$1"
	[ "$failed" -eq "$before" ] ||
		tail -n "${VERBENA_LINES:-60}" "$work/suite" | sed 's/^/    | /'
}
if [ "$only" = '*' ]; then
	between_hosts "between two hosts" roce_veth0 \
		"$(gid_index a roce_veth0 "::ffff:$HOST_A")" "$between"
fi

# An RNIC's: its queue pairs are connected by librdmacm alone, so those that
# connect them by hand (ibv_modify_qp to RTR is EINVAL) are not for it, nor
# three of test_rdmacm: of datagrams, of InfiniBand's time-out, of a reply that
# is an event of its own.
rnic_cm='test_rdmacm.CMTestCase.test_rdmacm_sync_traffic
	test_rdmacm.CMTestCase.test_rdmacm_async_reject_traffic
	test_rdmacm.CMTestCase.test_rdmacm_async_read
	test_rdmacm.CMTestCase.test_rdmacm_async_write'
rnic="$rnic_cm test_addr.* test_cq.CQAPITest.* test_cqex.CQEXAPITest.*
	test_device.* test_fork.ForkAPITest.* test_mr.DeviceMemoryAPITest.*
	test_mr.MRTest.test_reg_mr_bad_flags
	test_mr.MWTest.test_reg_mw_wrong_type test_pd.*
	test_qp.QPTest.test_create_* test_qp.QPTest.test_query_rc_qp
	test_rdmacm.*multicast*"
if [ "$only" = '*' ]; then
	export VERBENA_DEVICES=iw_veth0
	table=$here/pyverbs_rnic.txt
	run_suite iWARP 0 iw_veth0 "$rnic"
	stale
	between_hosts "iWARP, between two hosts" iw_veth0 0 "$rnic_cm"
	unset VERBENA_DEVICES
fi

# An adapter of a fabric: queue pairs of one program, by packets and without.
topology=/usr/share/doc/ibsim-utils/net-examples/net.2sw2path4hca
if [ -e "$topology" ] && command -v opensm >/dev/null; then
	name=pyverbs$$
	layer=pyverbs
	ib_begin
	export XDG_RUNTIME_DIR=$work/run
	mkdir -m 700 "$XDG_RUNTIME_DIR"
	subnet_begins "$topology"
	suite_at=adapter
	table=$here/pyverbs_ib.txt
	run_suite InfiniBand 0 ib0
	stale
	VERBENA_NEAR=off run_suite "InfiniBand, packets" 0 ib0
	subnet_ends
else
	skip "pyverbs on ib0" "opensm or ibsim-utils is not installed"
fi
summary
