#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Tests, layer by layer, from what links one room to whole programs; the last
# line is "N passed, N failed, N skipped" over all of them.
#
#	scripts/check.sh [--quick | --full] [LAYER...]
#
# --quick (`make check`) touches every layer in minutes: the long ones play a
# part of their cases. Without it (`make check-all`) all cases are played.
# --full plays what is judged at its full length (hours). Layers: see the list
# at the end of this file. Layers that do not depend on each other run side by
# side, VERBENA_LANES of them at a time; what a layer says is printed when it
# has ended. A few layers that fail are played again, alone.
set -u

cd "$(dirname "$(readlink -f "$0")")/.." || exit
export VERBENA_BUILD=$PWD/build-check
logs=$VERBENA_BUILD/logs
full=
declare -A layers=()   # the names that is_wanted() was asked for
declare -A commands=() # of the layers that were played, quoted
declare -A verdicts=() # of those that have ended: "passed failed skipped"
ended=()               # their names, in that order

case ${1:-} in
--full) full=--full && unset VERBENA_QUICK && shift ;;
--quick) export VERBENA_QUICK=yes && shift ;;
esac
quick=${VERBENA_QUICK:-no}
wanted=("$@")
# Many layers wait most of the time, so there are more lanes than processors: with
# one more, two processors were idle for half of a short run. A whole run has cases
# that a full machine disturbs.
lanes=$(($(nproc) + 1))
[ "$quick" = no ] || lanes=$((lanes + 2))
lanes=${VERBENA_LANES:-$lanes}

is_wanted() {
	layers[$1]=yes
	[ ${#wanted[@]} -eq 0 ] || [[ " ${wanted[*]} " == *" $1 "* ]]
}

# layer NAME "WHAT" COMMAND...: the command prints "ok", "not ok" and "skip"
# lines. It waits for a free lane, and runs there while others do.
layer() {
	local name=$1 what=$2

	is_wanted "$name" || return 0
	shift 2
	commands[$name]=${*@Q}
	while [ ${#running[@]} -ge "$lanes" ]; do
		next_ended
	done
	echo ".. $name: $what"
	start "$name" "$@"
}
declare -A running=() # layers, by their processes

start() {
	local name=$1

	shift
	(
		TIMEFORMAT="%0R %0U %0S" # seconds; of processor time, too
		{ time "$@" >"$logs/$name.log" 2>&1; } 2>"$logs/$name.took"
		echo "$? $(<"$logs/$name.took")" >"$logs/$name.ended"
	) </dev/null &
	running[$!]=$name
}

# Print what the next layer that ends has said.
next_ended() {
	local pid

	wait -n -p pid "${!running[@]}"
	count "${running[$pid]}"
	unset "running[$pid]"
}

all_ended() {
	while [ ${#running[@]} -gt 0 ]; do
		next_ended
	done
}

# alone NAME "WHAT" COMMAND...: a layer beside which no other runs.
alone() {
	all_ended
	layer "$@"
	all_ended
}

# count NAME: a layer that has ended. One that ended badly without a "not ok"
# counts as a failure too.
count() {
	local name=$1 log=$logs/$1.log status took user system ok bad skip

	read -r status took user system <"$logs/$name.ended"
	grep -E '^(ok |not ok |skip |# |    [|-])' "$log"
	ok=$(grep -c '^ok ' "$log")
	bad=$(grep -c '^not ok ' "$log")
	skip=$(grep -c '^skip ' "$log")
	if [ "${status:-1}" -ne 0 ] && [ "$bad" -eq 0 ]; then
		bad=1
		echo "not ok $name: exit status ${status:-unknown}"
		tail -n 40 "$log" | sed 's/^/    | /'
	fi
	[ -n "${verdicts[$name]:-}" ] || ended+=("$name")
	verdicts[$name]="$ok $bad $skip"
	echo "== $name: $ok passed, $bad failed, $skip skipped" \
		"(${took:-?} s, $((user + system)) s of a processor)"
}

# failed_layers: their names, a line each.
failed_layers() {
	local name bad

	for name in "${ended[@]}"; do
		read -r _ bad _ <<<"${verdicts[$name]}"
		[ "$bad" -eq 0 ] || echo "$name"
	done
}

# Play the layers that failed a second time, each alone, and let that verdict
# count: beside other layers a case may miss a limit of time. What passes only
# then is named before the last line, because its cause is still to be found.
# More than a few failed layers have a common cause, and are not played again.
play_again() {
	local name names bad

	mapfile -t names < <(failed_layers)
	[ ${#names[@]} -gt 0 ] && [ ${#names[@]} -le "$may_be_played_again" ] ||
		return
	for name in "${names[@]}"; do
		[[ $name != build && $name != style ]] || continue
		# What a sanitizer or a check of locks reports is no missed limit.
		! grep -qE 'Sanitizer:|runtime error:|verbena: lock order:' \
			"$logs/$name.log" || continue
		cp "$logs/$name.log" "$logs/$name.first.log"
		echo ".. $name: once more, alone"
		eval "start $name ${commands[$name]}"
		all_ended
		read -r _ bad _ <<<"${verdicts[$name]}"
		[ "$bad" -ne 0 ] || mapfile -t -O ${#unsteady[@]} unsteady < <(
			sed -n "s/^not ok /$name: /p" "$logs/$name.first.log" |
				grep . || echo "$name: exit status"
		)
	done
}
may_be_played_again=6 # layers
unsteady=()           # cases that failed beside other layers, but not alone

# verdict: what the layers were counted for; the last line is the sum.
verdict() {
	local name ok bad skip passed=0 failed=0 skipped=0

	for name in "${ended[@]}"; do
		read -r ok bad skip <<<"${verdicts[$name]}"
		passed=$((passed + ok))
		failed=$((failed + bad))
		skipped=$((skipped + skip))
		sed -n "s/^skip /skipped: $name: /p" "$logs/$name.log"
	done
	for name in "$@"; do
		[ -z "${layers[$name]:-}" ] || continue
		echo "not ok $name: there is no such layer"
		failed=$((failed + 1))
	done
	[ ${#unsteady[@]} -eq 0 ] ||
		printf 'passed only when played again, alone: %s\n' "${unsteady[@]}"
	for name in $(failed_layers); do
		echo "see $logs/$name.log"
	done
	echo "$passed passed, $failed failed, $skipped skipped"
	[ $failed -eq 0 ]
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

# Findings are shown as what a case says of its failure.
found_none() {
	"$@" 2>&1 | sed '/^#/!s/^/    | /'
	return "${PIPESTATUS[0]}"
}

# A time that a thread read before another one drove the queue pair would put
# its clock back.
times_set_elsewhere() {
	! grep -rnE --include='*.[ch]' 'qp->now = ' \
		core ib iwarp near link engine front | grep -v '^core/qp\.[ch]:'
}

# The sources and the documents by themselves; nothing is built.
style() {
	one "includes are as the table of rooms permits" \
		found_none scripts/rooms.py includes
	one "no source file is too long" found_none scripts/rooms.py lines
	one "no library has two static functions of one name" \
		found_none scripts/rooms.py names
	one "ARCHITECTURE.md is short" found_none scripts/docs.py size
	one "files and functions that documents name exist" \
		found_none scripts/docs.py names
	one "what documents link to exists" found_none scripts/docs.py links
	one "docs/ERRORS.md is what the table of causes says" \
		found_none scripts/errors.py check
	one "the check of docs/ERRORS.md fails where it must" \
		found_none scripts/errors.py self-test
	one "docs/demo.svg is the picture of its recording" \
		found_none demo/cast.py check docs/demo.cast docs/demo.svg
	one "no call can be refused without a word" \
		found_none scripts/refusals.py check
	one "the check of refusals fails where it must" \
		found_none scripts/refusals.py self-test
	one "each environment variable is in the tables" \
		found_none scripts/docs.py variables
	one "the checks of includes, lines and names fail where they must" \
		found_none scripts/rooms.py self-test
	one "the checks of documents fail where they must" \
		found_none scripts/docs.py self-test
	one "only vb_qp_advance() sets a queue pair's time" \
		found_none times_set_elsewhere
	one "functions that need a lock say so to clang" \
		found_none scripts/locks.py check
	one "the check of locks fails where it must" \
		found_none scripts/locks.py self-test
}

build() {
	set_up "$@" && ninja -C "$1" "${targets[@]}"
}
targets=() # none: all

# set_up DIRECTORY OPTION...
set_up() {
	local dir=$1

	shift
	if [ -f "$dir/build.ninja" ]; then
		meson configure "$dir" "$@"
	else
		meson setup "$dir" "$@"
	fi
}

# played_files DIRECTORY SUITE: what must be built for its tests (but abi's and
# that suite's) and fuzzers.
played_files() {
	python3 - "$1" "verbena:$2" <<-'END'
		import json, os, subprocess, sys
		build = os.path.realpath(sys.argv[1])
		def ask(what):
		    return json.loads(subprocess.check_output(
		        ['meson', 'introspect', build, what]))
		targets = ask('--targets')
		files = {t['id']: t['filename'] for t in targets}
		needs = {f for t in targets if t['name'].startswith('fuzz_')
		         and t['type'] == 'executable' for f in t['filename']}
		for test in ask('--tests'):
		    if not {'verbena:abi', sys.argv[2]} & set(test['suite']):
		        needs.add(test['cmd'][0])
		        needs.update(f for i in test['depends'] for f in files[i])
		print(*sorted(os.path.relpath(f, build) for f in needs
		              if os.path.realpath(f).startswith(build + '/')))
	END
}

# How the first build is made. A short run saves an eighth of it by the debug
# information that a stack trace shows.
build_gcc() {
	local args=

	[ "$quick" = no ] || args=-g1
	build "$VERBENA_BUILD" -Dwerror=true -Dc_args=$args
}

# How the builds with sanitizers are made. A short run saves more by a build that
# is not optimized, and that has only the debug information that a stack trace
# shows, than its tests lose. lld, where it is installed, links the sanitizers'
# runtimes in half the time, and with one thread each costs less of a processor.
sanitizer_options() {
	if [ "$quick" = yes ]; then
		echo -Doptimization=0 -Dc_args=-g1
	else
		echo -Doptimization=1 -Dc_args=
	fi
	! command -v ld.lld >/dev/null ||
		echo "-Dc_link_args=['-fuse-ld=lld','-Wl,--threads=1']"
}

# clang, where it is installed, makes the build with AddressSanitizer and
# UndefinedBehaviorSanitizer, so that its warnings, -Wthread-safety among them,
# and libFuzzer's targets come from the same build. Two layers need that build,
# perhaps at the same time. A short run builds only what it plays.
build_asan() (
	export CC
	fuzz=false played= # none: all

	CC=$(asan_compiler)
	[ "$CC" = gcc ] || fuzz=true
	exec {lock}>"$logs/asan.lock"
	flock "$lock"
	# shellcheck disable=SC2046 # words
	set_up "$(asan_dir)" -Dwerror=true -Dfuzz=$fuzz \
		-Db_lundef=false -Db_sanitize=address,undefined \
		-Dlock_ranks=true $(sanitizer_options) || return
	[ "$quick" = no ] || played=$(played_files "$(asan_dir)" "$(asan_leaves)") || return
	# shellcheck disable=SC2086 # words
	ninja -C "$(asan_dir)" $played
)
asan_compiler() {
	if command -v clang >/dev/null; then
		echo clang
	else
		echo gcc
	fi
}
# The suite, besides abi, that a run with AddressSanitizer leaves out. The tests
# of fuzz play the mouths of libFuzzer's targets, and mutate the same corpora; a
# short run plays those targets alone.
asan_leaves() {
	if [ "$quick" = yes ] && [ "$(asan_compiler)" = clang ]; then
		echo fuzz
	else
		echo abi
	fi
}
# meson cannot change the compiler of a directory.
asan_dir() {
	echo "$VERBENA_BUILD-asan-$(asan_compiler)"
}

build_tsan() {
	local targets=("$@" tests/programs/threads_test \
		tests/programs/windows_test tests/programs/sleep_test \
		cli/verbena \
		front/verbs/libibverbs.so.1)

	# shellcheck disable=SC2046 # words
	build "$VERBENA_BUILD-tsan" -Db_lundef=false -Db_sanitize=thread \
		-Dlock_ranks=true $(sanitizer_options)
}

# threaded_tests: the tests whose programs can start threads, a line each: the
# name, the program, and what else must be built. ThreadSanitizer has nothing
# to find in the others. The protocol's tests and others whose names end in "_sim"
# run in virtual time, and never two threads of one at a time: those of near/ hand
# over by semaphores.
# ThreadSanitizer cannot watch tests that catch faults on purpose (guard), tests
# that run under another library path (abi), and fuzzers' corpora.
threaded_tests() {
	python3 - "$VERBENA_BUILD" <<-'END'
		import json, os, subprocess, sys
		build = os.path.realpath(sys.argv[1])
		def ask(what):
		    return json.loads(subprocess.check_output(
		        ['meson', 'introspect', build, what]))
		files = {t['id']: t['filename'][0] for t in ask('--targets')}
		def can_start_threads(test):
		    symbols = subprocess.check_output(['nm', '-u', test['cmd'][0]])
		    return b' pthread_create@' in symbols
		tests = [test for test in ask('--tests') if 'guard' not in test['name']
		         and not test['name'].endswith('_sim')
		         and not {s.split(':')[-1] for s in test['suite']} & {
		             'protocol', 'abi', 'fuzz'}]
		# Two rooms may have tests of one name, which meson plays both.
		names = {test['name'] for test in tests if can_start_threads(test)}
		for test in tests:
		    if test['name'] in names:
		        needs = test['cmd'][:1] + [files[i] for i in test['depends']]
		        print(test['name'], *(os.path.relpath(n, build) for n in needs))
	END
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
	rm -f "$dir/meson-logs/testlog.json"
	meson test -C "$dir" --no-rebuild --print-errorlogs "$@" \
		>"$dir/tests.txt" 2>&1 || status=$?
	sed -nE -e '/^Summary of Failures/q' \
		-e 's,^ *[0-9]+/[0-9]+ (verbena:)?([^ ].*[^ ]) +OK .*,ok \2,p' \
		-e 's,^ *[0-9]+/[0-9]+ (verbena:)?([^ ].*[^ ]) +(FAIL|TIMEOUT|ERROR|INTERRUPT) .*,not ok \2 (\3),p' \
		"$dir/tests.txt"
	if [ -f "$dir/meson-logs/testlog.json" ]; then
		remarks "$dir"
	else
		echo "not ok $dir: no test was played"
		status=1
	fi
	[ $status -eq 0 ] || sed 's/^/    | /' "$dir/tests.txt"
	return $status
}

unit() {
	meson_tests "$VERBENA_BUILD"
}

sanitized() {
	local by

	by=$(asan_compiler)
	case $by in
	clang) by+=", lock annotations of what is built checked" ;;
	*) echo "skip clang # not installed" ;;
	esac
	one "build with AddressSanitizer and UndefinedBehaviorSanitizer by $by" \
		build_asan || return
	UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
		meson_tests "$(asan_dir)" --no-suite abi --no-suite "$(asan_leaves)" \
		--timeout-multiplier 5
}

threads() {
	local names targets status=0

	threaded_tests >"$logs/threaded" || return
	[ -s "$logs/threaded" ] || {
		echo "not ok threads: no test can start threads"
		return 1
	}
	names=$(cut -d' ' -f1 "$logs/threaded" | sort -u)
	targets=$(cut -d' ' -f2- "$logs/threaded")
	# shellcheck disable=SC2086 # words
	one "build with ThreadSanitizer" build_tsan $targets || return
	# shellcheck disable=SC2086 # names are words
	# The lease is tested in children that start threads.
	TSAN_OPTIONS="halt_on_error=1 die_after_fork=0" \
		meson_tests "$VERBENA_BUILD-tsan" --timeout-multiplier 5 \
		--no-suite protocol --no-suite abi --no-suite fuzz $names ||
		status=1
	VERBENA_BUILD=$VERBENA_BUILD-tsan program threads || status=1
	return $status
}

# How long a target runs. A short run gives it so many inputs, a second at most:
# of a mouth that is slow those of its corpus and some hundred changed ones.
fuzz_limits() {
	if [ -n "$full" ]; then
		echo -max_total_time=600
	elif [ "$quick" = yes ]; then
		echo -runs=1000 -max_total_time=1
	else
		echo -max_total_time=15
	fi
}

# A target is busy on one processor; as many of them run at a time as there are.
fuzz() {
	local targets=() target

	if ! command -v clang >/dev/null; then
		echo "skip fuzz # clang is not installed"
		return
	fi
	build_asan || {
		echo "not ok fuzz: its build"
		return 1
	}
	for target in "$(asan_dir)"/tests/fuzz/fuzz_*; do
		[ -f "$target" ] && [ -x "$target" ] && targets+=("$target")
	done
	if [ ${#targets[@]} -eq 0 ]; then
		echo "not ok fuzz: no targets were built"
		return 1
	fi
	export -f one fuzz_one
	# shellcheck disable=SC2016 # that is bash's to expand
	limits=$(fuzz_limits) \
		xargs -P "$(nproc)" -n 1 bash -c 'fuzz_one "$1"' fuzz \
		< <(printf '%s\n' "${targets[@]}")
}

# Their words are told apart by coming all at once, when it has ended.
fuzz_one() {
	local name=${1##*/fuzz_} said
	local corpus=tests/fuzz/corpus/$name found=$VERBENA_BUILD-asan-clang/found/$name

	mkdir -p "$found"
	[ -d "$corpus" ] || corpus=
	# shellcheck disable=SC2086,SC2154 # words, or no corpus; of fuzz()
	said=$(one "fuzz $name" "$1" $limits \
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
	tests/lab/matrix.sh ${full:+--full}
}

mkdir -p "$logs"
scripts/deps.sh build test || {
	scripts/deps.sh build || {
		echo "0 passed, 1 failed, 0 skipped"
		exit 1
	}
	echo "== some tests will be skipped for want of these"
}
[ "$quick" = yes ] || ! is_wanted sources || scripts/deps.sh sources ||
	echo "== some suites cannot be built from their sources"
! is_wanted lab || scripts/deps.sh lab ||
	echo "== some of the lab's needs are missing"

# A layer that is asked for alone stands on the build, which may be old.
[ ${#wanted[@]} -eq 0 ] || [ "${wanted[*]}" = style ] || wanted+=(build)
alone build "gcc, warnings are errors" \
	one "build with gcc" build_gcc
# All others stand on it.
[ -z "$(failed_layers)" ] || wanted=(none)
# A layer that runs alone comes before the others, because processors are idle
# until all that run have ended. ib_near reads counters that programs of other
# layers would add to.
alone ib_near "two programs of one host at one adapter of a fabric" program ib_near
# It takes all processors for a quarter of an hour.
[ -z "$full" ] && [[ " ${wanted[*]} " != *" loaded "* ]] ||
	alone loaded "other layers, each beside 16 busy loops" program loaded
# The longest come first.
layer style "rooms, lengths, and what documents say of the sources" style
layer asan "unit's tests, memory and arithmetic watched; clang's warnings" sanitized
layer lab "the Linux kernel's Soft-RoCE as a peer" lab
layer ib_verbs "verbs over LIDs, through a fabric's switches" program ib_verbs
layer tsan "unit's tests, races watched" threads
layer matrix "unmodified programs" program matrix
layer ipoib "IP over an InfiniBand subnet" program ipoib
layer conformance "the tables of moves and faults, row by row" program conformance
layer ceph "a cluster whose messages go by RDMA" program ceph
layer unit "each room alone, the protocol in virtual time, the ABI" unit
layer apps "applications that stand on verbs, as packaged" program apps
layer iwarp "iWARP between two hosts and on one" program iwarp
layer cm "programs that find each other through librdmacm" program cm
layer roce1 "RoCEv1 beside RoCEv2, and what tshark and a second ICRC say" program roce1
layer data "every byte compared, with losses too" program data
layer fuzz "every mouth, briefly" fuzz
layer mtu "interfaces that do not carry packets of the same size" program mtu
layer rsockets "sockets that become RDMA" program rsockets
layer fabric_sim "an InfiniBand fabric in virtual time, seeds and scale" program fabric_sim
layer install "from an installed prefix" program install
layer packaging "manual page, completions, units, make uninstall" program packaging
# Packages, tars and bare systems cost minutes of a processor.
if [ "$quick" = no ]; then
	layer deb "Debian's packages in bare systems" program deb
	layer bundle "the tar for any image, in bare systems" program bundle
	layer first_hour "the README's first screen in bare systems" program first_hour
	layer containers "what containers share, and what they need" program containers
	layer ci "what other projects' jobs need" program ci
	layer arm64 "built for arm64, under qemu's emulation" program arm64
fi
layer fabric "an InfiniBand subnet under opensm" program fabric
layer fabric_sm "a fabric that brings itself up" program fabric_sm
layer fabric_cc "congestion control and counters of such a subnet" program fabric_cc
layer fabric_far "one InfiniBand subnet in two processes on two hosts" program fabric_far
layer fabric_capture "what passes the ports of an InfiniBand subnet" program fabric_capture
layer fabric_show "pictures of an InfiniBand subnet" program fabric_show
layer fabric_target "storage targets of an InfiniBand subnet" program fabric_target
layer fabric_reports "traps of an InfiniBand subnet, and opensm's reports" program fabric_reports
layer infiniband_doc "the commands of docs/INFINIBAND.md" program infiniband_doc
layer getting_started "the commands of docs/GETTING-STARTED.md" program getting_started
layer ib_mpi "Open MPI on the adapters of a fat tree" program ib_mpi
layer ib_ports "what programs see of a fabric's ports" program ib_ports
layer ib_router "three subnets with routers between them" program ib_router
layer ib_apm "path migration between routes of a fabric, static rates" program ib_apm
layer ib_data "every byte compared over links that damage frames" program ib_data
layer ib_cm "rdma_cm over a fabric, by its subnet administrator" program ib_cm
layer ibacm "the unmodified ibacm on a fabric, and who asks it" program ibacm
layer vpi "one adapter with an InfiniBand and an Ethernet port" program vpi
layer gateway "Ethernet ports of a fabric's switch, and IPoIB joined with them" program gateway
layer near "two programs of one host, without packets" program near
layer garbage "hostile datagrams while traffic runs" program garbage
layer pyverbs "rdma-core's own test suite" program pyverbs
layer libfabric "libfabric's verbs provider" program libfabric
layer churn "crowds and crashes of those that connect" program churn
layer passive "targets that never call verbs" program passive
layer bench "that make bench measures" program bench
layer many "many programs at a time, and kill -9" program many
layer datagrams "datagrams, address handles, groups" program datagrams
[ "$quick" = yes ] ||
	layer sources "test suites built from Debian's sources" program sources
layer ucx "UCX: its perftest over RC and UD, its examples over rdma_cm" program ucx
layer troubleshooting "rows of docs/TROUBLESHOOTING.md" program troubleshooting
layer tags "tag matching as message passing uses it" program tags
layer events "asynchronous events by their causes" program events
layer sysfs "what programs read in /sys and find in /dev/infiniband" program sysfs
layer users "programs that fork, change users, or load nothing" program users
layer doctor "the command: help, refusals, what verbena doctor finds" program doctor
layer tools "sanitizers, valgrind, gdb: no false report" program tools
layer mpi "Open MPI and MPICH, over UCX and libfabric" program mpi
layer raw "whole Ethernet frames, and what steers them" program raw
layer capture "what tshark and a second ICRC say" program capture
layer broker "what one user may cost the others of a host" program broker
layer mistakes "each mistake is told in a sentence" program mistakes
layer misuse "wrong use ends in the error it should" program misuse
layer netlink "what programs hear by NETLINK_RDMA" program netlink
layer container "what a container denies" program container
layer instructions "what a small message costs, counted" program instructions
layer way "which files a message passes, as docs/TOUR.md says" program way
layer refused "what cannot work says why" program refused
layer xrc "extended reliable connections between several programs" program xrc
all_ended
play_again
verdict "$@"
