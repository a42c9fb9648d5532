# SPDX-License-Identifier: BSD-2-Clause
# What the tests of an emulated fabric share; sourced after lib.sh. The one that
# sources it has set $name, the fabric's, and has a directory of its own in
# XDG_RUNTIME_DIR.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # variables of those who source this
layer=$(basename "$0" .sh) # what begins its lines

# The fabric runs until fabric_down; its words are in $work/fabric.
fabric_up() {
	: >"$work/fabric" # else the words of the last one may be found
	"$verbena" fabric --name "$name" "$@" >"$work/fabric" 2>&1 &
	fabric=$!
	within 10 grep -q 'fabric "' "$work/fabric"
}

fabric_down() {
	kill "$fabric"
	wait "$fabric"
}

# within SECONDS COMMAND...: until it succeeds; false: it never did.
within() {
	local end=$((SECONDS + $1))

	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -le $end ] || return 1
		sleep 0.05
	done
}

# r NODE PROGRAM...: takes the node's place.
r() {
	local node=$1

	shift
	timeout 60 "$verbena" run --device "ib:$name/$node" -- "$@"
}

# opensm_up NODE LOG OPTION...: with a cache of its own, since what it remembers
# of another fabric is wrong here. Its process is $opensm.
opensm_up() {
	local node=$1 log=$2 cache

	shift 2
	cache=$(mktemp -d -p "$work")
	printf 'force_log_flush TRUE\nsminfo_polling_timeout 500\n%s\n' \
		'polling_retry_number 2' >"$cache/conf"
	OSM_CACHE_DIR=$cache OSM_TMP_DIR=$cache "$verbena" run \
		--device "ib:$name/$node" -- opensm -F "$cache/conf" \
		-f "$log" -D 0x43 -s 5 "$@" >"$log.out" 2>&1 &
	opensm=$!
}

subnet_up() {
	within "${2:-20}" grep -q 'SUBNET UP' "$1"
}

# check NAME COMMAND...: it succeeds.
check() {
	local what=$1

	shift
	if "$@" >"$work/got" 2>&1; then
		ok "$layer: $what"
	else
		not_ok "$layer: $what" "$work/got"
		return 1
	fi
}

# says NAME PATTERN NODE PROGRAM...: it succeeds, and a line of its output
# matches.
says() {
	local what=$1 pattern=$2

	shift 2
	if r "$@" >"$work/got" 2>&1 </dev/null && grep -Eq -- "$pattern" "$work/got"; then
		ok "$layer: $what"
	else
		not_ok "$layer: $what (wanted: $pattern)" "$work/got"
	fi
}

# counts NAME NUMBER PATTERN NODE PROGRAM...: so many lines match.
counts() {
	local what=$1 number=$2 pattern=$3

	shift 3
	r "$@" >"$work/got" 2>&1 </dev/null
	if [ "$(grep -Ec -- "$pattern" "$work/got")" = "$number" ]; then
		ok "$layer: $what"
	else
		not_ok "$layer: $what (wanted: $number lines of $pattern)" "$work/got"
	fi
}

ctl() { "$verbena" fabric ctl --name "$name" "$@"; }
