#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Where users are: 64 MB of /dev/shm, 8 MB of locked memory, system calls
# denied, no capability, a read-only root with a writable /tmp, and no network
# but loopback. All of it must work there: tests/programs/container.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"

no_container() {
	skip "container" "$1"
	summary
	exit
}
[ "$hosts" = yes ] || no_container "no namespaces here"
# In a chroot that is no mount point, nobody can make the root read-only.
unshare -n -m true 2>/dev/null || no_container "no private mounts here"

# Runs inside, as the container's own first process: a loopback, the limits,
# then the cases, which print their verdicts.
inside() {
	# shellcheck source=tests/programs/lib.sh
	. "$here/lib.sh"
	passed=0 failed=0 skipped=0
	work=$1
	HOSTS_PID_a=here
	export HOSTS_PID_a
	ip link set lo up
	mount --make-rprivate /
	mount -t tmpfs -o size=64m tmpfs /dev/shm
	mount --bind /tmp /tmp
	mount -o remount,bind,ro /
	ulimit -l 8192
	is_confined
	verbena=$work/verbena
	cases
	summary
}

# A test of confinement that is none would pass always.
is_confined() {
	if "$programs/deny" unshare -n true 2>/dev/null ||
		[ -w / ] || [ ! -w /tmp ] ||
		[ "$(df --output=size -m /dev/shm | tail -n 1)" -ne 64 ] ||
		[ "$(ip -o link | wc -l)" -ne 1 ]; then
		not_ok "container: it confines"
	else
		ok "container: it confines"
	fi
}

cases() {
	local program who=root

	user_can_reach_build 2>/dev/null && who=user
	for program in "ibv_rc_pingpong -g 1 -c" "ib_write_bw" "ib_send_bw -e" \
		"ib_read_bw" "ib_atomic_lat" "ib_write_lat" \
		"$programs/data_test -n 200"; do
		# shellcheck disable=SC2086 # a program and its options
		if pair $who a a $program -- $program 127.0.0.1; then
			ok "container: ${program##*/}"
		else
			not_ok "container: ${program##*/}" "$work/server" \
				"$work/client"
		fi
	done
}

# Each program of a pair runs under the filter.
cat >"$work/verbena" <<-END
	#!/bin/sh
	exec "$programs/deny" "$verbena" "\$@"
END
chmod 755 "$work/verbena"
chmod 777 "$work"
export here verbena programs build top
export -f inside is_confined cases
# The verdicts pass through; they are counted from what is printed.
unshare -n -m -- bash -c "inside $work" container
