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

# gtest FILTER FILE: what the suite says of those cases, into FILE.
gtest() {
	(become a env UCX_HANDLE_ERRORS=none timeout -k 5 900 "$verbena" run \
		--device veth0 -- "$built" --gtest_filter="$1") \
		</dev/null >"$2" 2>&1
}

# is_whole FILE: the suite came to its end.
is_whole() { grep -q '^\[==========\] .* ran\.' "$1"; }

# passes_alone NAME: many cases have limits of time in them, which a full machine
# breaks now and then. One that passes in neither of two more turns has failed.
passes_alone() {
	local turn

	for turn in 1 2; do
		gtest "$1" "$work/again"
		grep -qF "[       OK ] $1" "$work/again" || continue
		echo "# $1: failed among the others, passed alone in turn $turn"
		return
	done
	return 1
}

# judge_alone NAME WAY FILE...: a case that has failed, or has ended the suite;
# the files say how.
judge_alone() {
	if passes_alone "$1"; then
		ok "$1 [$2]"
	else
		not_ok "$1 [$2]" "${@:3}" "$work/again"
	fi
}

# tell WAY: a line for each case that was played. gtest lists the cases that failed
# again behind its sum, which is not read.
tell() {
	local verdict name before=$passed skips=

	while read -r verdict name; do
		case $verdict$skips in
		RUN*) skips= ;;
		SKIP*) skips=yes && left_out=$((left_out + 1)) ;;
		OK) ok "$name [$1]" ;;
		FAILED)
			cannot "$name" && continue
			grep -B 40 "FAILED.*$name" "$work/said" >"$work/why"
			judge_alone "$name" "$1" "$work/why"
			;;
		esac
	done < <(sed -nE -e '/^\[==========\] .* ran\./q' \
		-e 's/^\[ +(RUN|OK|FAILED|SKIP) +\] ([^ ,]+).*/\1 \2/p' "$work/said")
	played=$((passed - before))
}

# A case that ends the whole suite is left out of another run of it, and played
# alone. rc_verbs/uct_p2p_rma_test_xfer.fence/1 does that now and then: it posts a
# WRITE to its own queue pair, and frees the memory without waiting.
ended_it=()
gtest "$filter" "$work/said"
while ! is_whole "$work/said" && [ ${#ended_it[@]} -lt 3 ]; do
	ended_it+=("$(sed -nE 's/^\[ +RUN +\] ([^ ,]+).*/\1/p' "$work/said" |
		tail -n 1)")
	cp "$work/said" "$work/ended"
	filter+=:${ended_it[-1]}
	gtest "$filter" "$work/said"
done
tell "one host"
for name in "${ended_it[@]}"; do
	judge_alone "$name" "one host" "$work/ended"
done
if [ $played -ge $least ] && is_whole "$work/said"; then
	ok "UCX's own tests come to their end"
else
	not_ok "UCX's own tests come to their end" "$work/said"
fi
[ $left_out -eq 0 ] || skip "$left_out cases of UCX's own tests" \
	"UCX leaves them out: the transport has not what they want"
summary
