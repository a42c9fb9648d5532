#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Test suites that nobody packages, built from Debian's sources: UCX's own tests
# of rc_verbs and ud_verbs, both ends in one process. Building takes some minutes;
# VERBENA_BUILD-sources keeps what was built.
here=$(dirname "$(readlink -f "$0")")
# Before a network namespace of our own hides the network.
sources=${VERBENA_BUILD:-$here/../../build}-sources
if [ -z "${VERBENA_SOURCES_BUILT:-}" ]; then
	"$here/../sources/ucx.sh" "$sources" >/dev/null 2>&1
	export VERBENA_SOURCES_BUILT=$?
fi
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"
case $VERBENA_SOURCES_BUILT in
0) built=$(<"$sources/built") ;;
3)
	skip "UCX's own tests" "Debian's sources of UCX are not to be had"
	summary
	exit
	;;
*)
	not_ok "UCX's own tests: build" "$sources/apt.log" "$sources/build.log"
	summary
	exit 1
	;;
esac
need_hosts 9000

# Left out: what measures speed; two crowds of peers that are killed, which wait
# for a minute and a half each; and a case that passes a limit which only a build
# that checks parameters looks at, whereupon UCX aborts.
filter='rc_verbs/*:ud_verbs/*:ib/*:-*perf*:*loopback.envelope*'
filter+=':*peer_failure_multiple*:*get_size_limit*'

# cannot CASE: a case that cannot pass here, by UCX.
cannot() {
	case $1 in
	ib/test_md.sys_device/*) return 0 ;; # it wants the address of a PCI device
	esac
	return 1
}

# Cases that UCX skips by itself, since the transport has not what they want.
left_out=0

# So many cases of a release pass at least; fewer, and the suite has hardly run.
least=100

# tell WAY: a line for each case that was played.
tell() {
	local verdict name before=$passed skips=

	while read -r verdict name; do
		case $verdict$skips in
		RUN*) skips= ;;
		SKIP*) skips=yes && left_out=$((left_out + 1)) ;;
		OK) ok "$name [$1]" ;;
		FAILED) cannot "$name" || {
			grep -B 40 "FAILED.*$name" "$work/said" >"$work/why"
			not_ok "$name [$1]" "$work/why"
		} ;;
		esac
	done < <(sed -nE 's/^\[ +(RUN|OK|FAILED|SKIP) +\] ([^ ,]+).*/\1 \2/p' \
		"$work/said" | sed '/^FAILED [0-9]/d')
	played=$((passed - before))
}

# gtest FILTER: into $work/said.
gtest() {
	(become a env UCX_HANDLE_ERRORS=none timeout -k 5 900 "$verbena" run \
		--device veth0 -- "$built" --gtest_filter="$1") \
		</dev/null >"$work/said" 2>&1
}

# Did the suite come to its end, with no failure but those that must be? Its
# cases have limits of time, so that a full machine fails one now and then: then
# all are played once more, and that run is told.
is_good() {
	local name

	grep -q '^\[==========\] .* ran\.' "$work/said" || return
	while read -r name; do
		cannot "$name" || return
	done < <(sed -nE 's/^\[ +FAILED +\] ([a-z][^ ,]+).*/\1/p' "$work/said")
}

gtest "$filter"
is_good || gtest "$filter"
tell "one host"
if [ $played -ge $least ] && grep -q '^\[==========\] .* ran\.' "$work/said"; then
	ok "UCX's own tests come to their end"
else
	not_ok "UCX's own tests come to their end" "$work/said"
fi
[ $left_out -eq 0 ] || skip "$left_out cases of UCX's own tests" \
	"UCX leaves them out: the transport has not what they want"
summary
