# SPDX-License-Identifier: BSD-2-Clause
# What the whole-program tests share; sourced. A test prints one line a case,
# "ok NAME", "not ok NAME" or "skip NAME # why", which scripts/check.sh counts.
# shellcheck shell=bash
set -u

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=${VERBENA_BUILD:-$top/build}
verbena=$build/cli/verbena
# shellcheck disable=SC2034 # for those who source this
programs=$build/tests/programs
PATH=$PATH:/usr/sbin:/sbin
port=18515
# shellcheck source=scripts/netns.sh
. "$top/scripts/netns.sh"

# tests_begin "$0" "$@": enter a user namespace when not root, and promise to
# clean up. Sets $hosts to "yes" where network namespaces can be made.
tests_begin() {
	if hosts_possible; then
		hosts=yes
		[ -n "${VERBENA_USERNS:-}" ] || hosts_reenter "$@"
	else
		hosts=no
	fi
	failed=0
	passed=0
	skipped=0
	work=$(mktemp -d) || exit
	chmod 755 "$work"
	trap tests_end EXIT
	trap 'exit 130' INT TERM
}

tests_end() {
	local pids

	pids=$(jobs -p)
	# shellcheck disable=SC2086 # one word a process
	[ -z "$pids" ] || kill $pids 2>/dev/null
	hosts_down
	rm -rf "$work"
}

# need_hosts [MTU]: two hosts, or the end of a test that cannot do without.
need_hosts() {
	if [ "$hosts" = no ]; then
		skip "$(basename "$0" .sh)" "no network namespaces here"
		summary
		exit
	fi
	hosts_up "${1:-9000}" || {
		not_ok "$(basename "$0" .sh): two hosts"
		summary
		exit 1
	}
}

ok() {
	passed=$((passed + 1))
	echo "ok $*"
}

skip() {
	skipped=$((skipped + 1))
	echo "skip $1 # $2"
}

# not_ok NAME [FILE...]: the files are the outputs that tell why.
not_ok() {
	local name=$1 file

	shift
	failed=$((failed + 1))
	echo "not ok $name"
	for file; do
		[ -s "$file" ] || continue
		echo "    ---- ${file##*/}"
		tail -n "${VERBENA_LINES:-60}" "$file" | sed 's/^/    | /'
	done
}

# untold FILE...: true if Verbena has told of no mistake there (core/why.h). What
# programs provoke in normal work, as when they find out what a device can do,
# is none.
untold() {
	! grep -qE '^verbena: .* \[[0-9]+ [A-Z_]+\]$' "$@"
}

# The last line of a test; its status is the script's.
summary() {
	echo "# $(basename "$0" .sh): $passed passed, $failed failed," \
		"$skipped skipped"
	[ "$failed" -eq 0 ]
}

# sometimes N: in a short run (`make check`) each Nth case, beginning with the
# first; in a whole one (`make check-all`) all.
sometimes() {
	[ "$quick" = yes ] || return 0
	cases_met=$((cases_met + 1))
	[ $(((cases_met - 1) % $1)) -eq 0 ]
}
cases_met=0
quick=${VERBENA_QUICK:-no}

# span SHORT LONG: how much of something a short run plays, and a whole one.
span() {
	if [ "$quick" = yes ]; then
		echo "$1"
	else
		echo "$2"
	fi
}

# crowded: programs wait for a processor now. The load average says so a minute
# later. What the test itself keeps running counts, too.
crowded() {
	local n key value sum=0

	for n in {1..25}; do
		while read -r key value; do
			# less this shell
			[ "$key" != procs_running ] || sum=$((sum + value - 1))
		done </proc/stat
		sleep 0.02
	done
	echo "# $((sum / n)) programs want a processor, of $(nproc)"
	[ $sum -gt $((n * $(nproc))) ]
}

# again_if_noisy COMMAND...: two programs fail where other work on the machine
# disturbs them, which says nothing of us: try again. perftest samples the
# processor's clock and ends with status 1. ibv_rc_pingpong -e -t arms the
# queue, polls up to two completions, and takes it for an error (ENOENT, 2) when
# the event of the second one, which it has polled already, wakes it next.
again_if_noisy() {
	local tries

	for tries in 1 2 3 4 5; do
		"$@" && return
		grep -qsE "Can't produce a report|poll CQ failed 2" \
			"$work/server" "$work/client" || return
	done
	return 1
}

# as WHO PROGRAM...: this shell becomes the program, as "root" or as "user",
# an ordinary one without any capability.
as() {
	local who=$1 drop=(--bounding-set=-all --inh-caps=-all)

	shift
	[ -n "${VERBENA_USERNS:-}" ] ||
		drop+=(--reuid=65534 --regid=65534 --clear-groups)
	if [ "$who" = user ]; then
		exec setpriv "${drop[@]}" -- "$@"
	else
		exec "$@"
	fi
}
export -f as

# An ordinary user may be unable to reach a build tree in root's home.
user_can_reach_build() {
	(as user test -x "$verbena") &&
		(as user test -r "$build/front/verbs/libibverbs.so.1")
}

# listening HOST PORT TIME: until a program there listens; false: it never did.
listening() {
	local tries=0 bound=$(($3 * 20))

	until [ -n "$(on "$1" ss -Hltn "sport = :$2")" ]; do
		tries=$((tries + 1))
		[ $tries -lt $bound ] || return 1
		[ -z "${4:-}" ] || kill -0 "$4" 2>/dev/null || return 1
		sleep 0.05
	done
}

# ends SERVER... -- CLIENT...: into ${server[@]} and ${client[@]}, which the
# caller has made its own.
ends() {
	server=()
	while [ "$1" != -- ]; do
		server+=("$1")
		shift
	done
	shift
	client=("$@")
}

# play SERVE READY CALL: SERVE becomes the server, "READY PID" is true as soon
# as it listens, CALL runs the client. True: both ended with 0. What they wrote
# is in $work/server and $work/client.
play() {
	again_if_noisy play_once "$@"
}
play_once() {
	local pid status=0

	: >"$work/client"
	: >"$work/server"
	("$1") </dev/null >"$work/server" 2>&1 &
	pid=$!
	if $2 $pid; then
		("$3") </dev/null >"$work/client" 2>&1 || status=$?
		[ $status -eq 0 ] ||
			echo "(client: exit status $status)" >>"$work/client"
	else
		echo "(the server never listened)" >>"$work/server"
		kill $pid 2>/dev/null
		status=1
	fi
	# A client that failed leaves its server waiting.
	[ $status -eq 0 ] || { sleep 0.5 && kill $pid 2>/dev/null; }
	wait $pid || {
		echo "(server: exit status $?)" >>"$work/server"
		status=1
	}
	return $status
}

# pair WHO SERVER_HOST CLIENT_HOST SERVER... -- CLIENT...: play them under
# Verbena; the client starts when the server listens on $port.
pair() {
	local who=$1 at=$2 from=$3 server client

	shift 3
	ends "$@"
	play pair_serve pair_ready pair_call
}
pair_serve() {
	pair_at "$at" "${server[@]}"
}
pair_ready() {
	listening "$at" "$port" 20 "$1"
}
pair_call() {
	pair_at "$from" "${client[@]}"
}
pair_at() {
	local host=$1 hurried

	shift
	hurry "$1"
	become "$host" bash -c 'as "$@"' as "$who" timeout -k 5 \
		"${VERBENA_TIMEOUT:-60}" "${hurried[@]}" "$verbena" run -- "$@"
}

# hurry_perftest: from now on by a clock for which it does not wait long, and
# by which its figures are wrong (tests/programs/quick_clock.c).
quick_clock=
hurry_perftest() {
	quick_clock=$programs/quick_clock.so
}

# hurry PROGRAM: what it is to be run by into ${hurried[@]}, if so.
hurry() {
	hurried=()
	[[ $1 != ib_[swra]* ]] || [ -z "$quick_clock" ] ||
		hurried=(env LD_PRELOAD="$quick_clock")
}

# record_begin INTERFACE FILTER FILE [OPTION...]: what passes at host a's
# interface goes to the file; dumpcap has begun, and dies with us.
record_begin() {
	local interface=$1 filter=$2 file=$3 tries=0

	shift 3
	: >"$work/dumpcap"
	become a setpriv --pdeathsig KILL dumpcap -q -P -B 64 "$@" \
		-i "$interface" -f "$filter" -w "$file" >"$work/dumpcap" 2>&1 &
	record_pid=$!
	until grep -q File: "$work/dumpcap"; do
		tries=$((tries + 1))
		[ $tries -lt 100 ] || break
		sleep 0.05
	done
}
# record_end [yes]: the last packets, still on their way to it, are wanted.
record_end() {
	[ -z "${1:-}" ] || sleep 0.5
	kill -INT "$record_pid" 2>/dev/null
	wait "$record_pid" 2>/dev/null
}

# gid_index HOST DEVICE ADDRESS: where in the device's table the address is.
gid_index() {
	on "$1" "$verbena" run -- ibv_devinfo -v -d "$2" \
		</dev/null 2>/dev/null |
		sed -n "s/.*GID\[ *\([0-9]*\)\]:[[:space:]]*$3, .*/\1/p" |
		head -n 1
}

# lines NAME COMMAND...: on host a; each line that it prints is a case, and
# other lines before a case say why it failed.
lines() {
	local name=$1 line

	shift
	on a timeout -k 5 60 "$@" </dev/null >"$work/lines" 2>"$work/errors" ||
		not_ok "$name" "$work/lines" "$work/errors"
	while read -r line; do
		case $line in
		"ok "*) ok "${line#ok }" ;;
		"skip "*) skip "${line#skip }" ;;
		"not ok "*) not_ok "${line#not ok }" "$work/cause" "$work/errors" ;;
		*)
			echo "$line" >>"$work/cause"
			continue
			;;
		esac
		rm -f "$work/cause"
	done <"$work/lines"
	rm -f "$work/cause"
}
