#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# All tests: `make check`. Layer by layer, from what links one room to whole
# programs; the last line is "N passed, N failed, N skipped" over all of them.
#
#	scripts/check.sh [--full] [LAYER...]
#
# --full runs what is judged at its full length (hours); without it the same
# cases are fewer or shorter. Layers: see the list at the end of this file.
set -u

cd "$(dirname "$(readlink -f "$0")")/.." || exit
export VERBENA_BUILD=$PWD/build-check
logs=$VERBENA_BUILD/logs
full=
passed=0
failed=0
skipped=0
failures=()
skips=()
builder=

[ "${1:-}" = --full ] && full=--full && shift
wanted=("$@")

is_wanted() {
	[ ${#wanted[@]} -eq 0 ] || [[ " ${wanted[*]} " == *" $1 "* ]]
}

# layer NAME "WHAT" COMMAND...: the command prints "ok", "not ok" and "skip"
# lines. One that ends badly without a "not ok" counts as a failure too.
layer() {
	local name=$1 what=$2 log=$logs/$1.log start=$SECONDS status ok bad skip

	is_wanted "$name" || return 0
	shift 2
	echo "== $name: $what"
	"$@" 2>&1 | tee "$log" |
		grep --line-buffered -E '^(ok |not ok |skip |# |    [|-])'
	status=${PIPESTATUS[0]}
	ok=$(grep -c '^ok ' "$log")
	bad=$(grep -c '^not ok ' "$log")
	skip=$(grep -c '^skip ' "$log")
	if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then
		bad=1
		echo "not ok $name: exit status $status"
		tail -n 40 "$log" | sed 's/^/    | /'
	fi
	passed=$((passed + ok))
	failed=$((failed + bad))
	skipped=$((skipped + skip))
	[ "$skip" -eq 0 ] || mapfile -t -O ${#skips[@]} skips < <(
		sed -n "s/^skip /$name: /p" "$log"
	)
	[ "$bad" -eq 0 ] || failures+=("$log")
	echo "== $name: $ok passed, $bad failed, $skip skipped" \
		"($((SECONDS - start)) s)"
}

# One line: the work as a whole passes or fails.
one() {
	local name=$1

	shift
	if "$@"; then
		echo "ok $name"
	else
		echo "not ok $name"
		return 1
	fi
}

build() {
	local dir=$1

	shift
	if [ -f "$dir/build.ninja" ]; then
		meson configure "$dir" "$@"
	else
		meson setup "$dir" "$@"
	fi && ninja -C "$dir" "${targets[@]}"
}
targets=() # none: all

build_clang() {
	CC=clang build "$VERBENA_BUILD-clang" -Dwerror=true -Dfuzz=true \
		-Db_lundef=false
}
build_asan() {
	local targets=(meson-test-prereq)

	build "$VERBENA_BUILD-asan" -Db_lundef=false \
		-Db_sanitize=address,undefined
}
build_tsan() {
	local targets=(meson-test-prereq tests/programs/threads_test)

	build "$VERBENA_BUILD-tsan" -Db_lundef=false -Db_sanitize=thread
}

# Three more builds, on what is left of the processors by programs that mostly
# wait; who needs one asks for it by built(). With one processor there is
# nothing left.
build_beside() {
	local names=(asan tsan) name

	! command -v clang >/dev/null || names=(clang "${names[@]}")
	[ $failed -eq 0 ] && [ ${#wanted[@]} -eq 0 ] && [ "$(nproc)" -gt 1 ] ||
		return 0
	rm -f "$logs"/build-*
	set -m
	(
		renice -n 19 -p $BASHPID >/dev/null
		for name in "${names[@]}"; do
			"build_$name" >"$logs/build-$name.log" 2>&1
			echo $? >"$logs/build-$name.status"
		done
	) </dev/null &
	set +m
	builder=$!
	trap 'kill -- -$builder 2>/dev/null' EXIT
}

# built NAME: its build, made beside or now.
built() {
	[ -n "$builder" ] || {
		"build_$1"
		return
	}
	while ! [ -s "$logs/build-$1.status" ] &&
		kill -0 "$builder" 2>/dev/null; do
		sleep 0.2
	done
	cat "$logs/build-$1.log"
	return "$(cat "$logs/build-$1.status" || echo 1)"
}

# What a test says of itself behind "# ", of what it was or why it was not.
remarks() {
	python3 - "$1/meson-logs/testlog.json" <<-'END'
		import json, sys
		for test in map(json.loads, open(sys.argv[1])):
		    name = test['name'].replace('verbena:', '')
		    lines = test.get('stdout', '').splitlines()
		    said = [line[2:] for line in lines if line.startswith('# ')]
		    said += sorted({'not run here: ' + line.split()[-1] for line in lines
		                    if line.startswith('[  SKIPPED ]') and
		                    'test(s)' not in line})
		    if test['result'] == 'SKIP':
		        print('skip', name, '#', ' '.join(said) or 'it does not say why')
		    else:
		        for line in said:
		            print('# %s: %s' % (name, line))
	END
}

# meson_tests DIRECTORY [OPTIONS]: its tests, one line each. A list that is
# empty is no success: it would be silence about tests that are gone.
meson_tests() {
	local dir=$1 status=0

	shift
	meson test -C "$dir" --no-rebuild --print-errorlogs "$@" \
		>"$dir/tests.txt" 2>&1 || status=$?
	sed -nE -e '/^Summary of Failures/q' \
		-e 's,^ *[0-9]+/[0-9]+ (verbena:)?([^ ].*[^ ]) +OK .*,ok \2,p' \
		-e 's,^ *[0-9]+/[0-9]+ (verbena:)?([^ ].*[^ ]) +(FAIL|TIMEOUT|ERROR|INTERRUPT) .*,not ok \2 (\3),p' \
		"$dir/tests.txt"
	remarks "$dir"
	[ $status -eq 0 ] || sed 's/^/    | /' "$dir/tests.txt"
	return $status
}

unit() {
	meson_tests "$VERBENA_BUILD"
}

sanitized() {
	one "build with AddressSanitizer and UndefinedBehaviorSanitizer" \
		built asan || return
	UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
		meson_tests "$VERBENA_BUILD-asan" --no-suite abi \
		--timeout-multiplier 5
}

# Faults caught on purpose, and what runs under another library path, are not
# for ThreadSanitizer: it takes over signals, and must be loaded first.
threads() {
	local names

	one "build with ThreadSanitizer" \
		built tsan || return
	names=$(meson test -C "$VERBENA_BUILD-tsan" --no-rebuild --list \
		--no-suite abi --no-suite fuzz 2>/dev/null |
		sed -n 's,.* / ,,p' | grep -v guard)
	# shellcheck disable=SC2086 # names are words
	# The lease is tested in children that start threads.
	# A name may stand in two suites.
	TSAN_OPTIONS="halt_on_error=1 die_after_fork=0" meson_tests "$VERBENA_BUILD-tsan" \
		--no-suite fuzz --timeout-multiplier 5 $names
	VERBENA_BUILD=$VERBENA_BUILD-tsan program threads
}

# The other compiler: its warnings, -Wthread-safety among them, and libFuzzer.
clang_build() {
	command -v clang >/dev/null || {
		echo "skip clang # not installed"
		return
	}
	one "build with clang, lock annotations checked" built clang
}

# A target is busy on one processor; as many of them run at a time as there are.
fuzz() {
	local targets=() target

	for target in "$VERBENA_BUILD"-clang/tests/fuzz/fuzz_*; do
		[ -f "$target" ] && [ -x "$target" ] && targets+=("$target")
	done
	if [ ${#targets[@]} -eq 0 ]; then
		echo "skip fuzz # no targets were built"
		return
	fi
	export -f one fuzz_one
	# shellcheck disable=SC2016 # that is bash's to expand
	seconds=$([ -z "$full" ] && echo 15 || echo 600) \
		xargs -P "$(nproc)" -n 1 bash -c 'fuzz_one "$1"' fuzz \
		< <(printf '%s\n' "${targets[@]}")
}

# Their words are told apart by coming all at once, when it has ended.
fuzz_one() {
	local name=${1##*/fuzz_} said
	local corpus=tests/fuzz/corpus/$name found=$VERBENA_BUILD-clang/found/$name

	mkdir -p "$found"
	[ -d "$corpus" ] || corpus=
	# shellcheck disable=SC2086,SC2154 # there may be no corpus; of fuzz()
	said=$(one "fuzz $name ($seconds s)" "$1" -max_total_time="$seconds" \
		-timeout=10 -rss_limit_mb=2048 -artifact_prefix="$found/" \
		"$found" $corpus 2>&1)
	set -- $?
	echo "$said"
	return "$1"
}

program() {
	"tests/programs/$1.sh" ${full:+--full}
}

lab() {
	scripts/deps.sh lab || echo "# some of the lab's needs are missing"
	tests/lab/matrix.sh ${full:+--full}
}

mkdir -p "$logs"
scripts/deps.sh build || {
	echo "0 passed, 1 failed, 0 skipped"
	exit 1
}
scripts/deps.sh test || echo "== some tests will be skipped for want of these"

# A layer that is asked for alone stands on the build, too.
[ ${#wanted[@]} -eq 0 ] || [ -f "$VERBENA_BUILD/build.ninja" ] ||
	wanted+=(build)
layer build "gcc, warnings are errors" \
	one "build with gcc" build "$VERBENA_BUILD" -Dwerror=true
# All others stand on it.
[ $failed -eq 0 ] || wanted=(none)
layer unit "each room alone, the protocol in virtual time, the ABI" unit
build_beside
layer matrix "unmodified programs" program matrix
layer pyverbs "rdma-core's own test suite" program pyverbs
layer events "asynchronous events by their causes" program events
layer data "every byte compared, with losses too" program data
layer near "two programs of one host, without packets" program near
layer tags "tag matching as message passing uses it" program tags
layer xrc "extended reliable connections between several programs" program xrc
layer datagrams "datagrams, address handles, groups" program datagrams
layer raw "whole Ethernet frames, and what steers them" program raw
layer cm "programs that find each other through librdmacm" program cm
layer ucx "UCX: its perftest over RC and UD, its examples over rdma_cm" program ucx
layer churn "crowds and crashes of those that connect" program churn
layer apps "applications that stand on verbs, as packaged" program apps
layer iwarp "iWARP between two hosts and on one" program iwarp
layer libfabric "libfabric's verbs provider" program libfabric
layer mpi "Open MPI and MPICH, over UCX and libfabric" program mpi
layer rsockets "sockets that become RDMA" program rsockets
layer misuse "wrong use ends in the error it should" program misuse
layer clang "the other compiler" clang_build
layer fuzz "every mouth, briefly" fuzz
layer asan "unit's tests, memory and arithmetic watched" sanitized
layer tsan "unit's tests, races watched" threads
layer conformance "the tables of moves and faults, row by row" program conformance
layer mtu "interfaces that do not carry packets of the same size" program mtu
layer passive "targets that never call verbs" program passive
layer refused "what cannot work says why" program refused
layer many "many programs at a time, and kill -9" program many
layer garbage "hostile datagrams while traffic runs" program garbage
layer capture "what tshark and a second ICRC say" program capture
layer container "what a container denies" program container
layer bench "that make bench measures" program bench
layer instructions "what a small message costs, counted" program instructions
layer lab "the Linux kernel's Soft-RoCE as a peer" lab
layer sysfs "what programs read in /sys and find in /dev/infiniband" program sysfs
layer users "programs that fork, change users, or load nothing" program users
layer broker "what one user may cost the others of a host" program broker
layer netlink "what programs hear by NETLINK_RDMA" program netlink
layer ceph "a cluster whose messages go by RDMA" program ceph
layer install "from an installed prefix" program install

[ ${#skips[@]} -eq 0 ] || printf 'skipped: %s\n' "${skips[@]}"
[ ${#failures[@]} -eq 0 ] || printf 'see %s\n' "${failures[@]}"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
