#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Targets that never call verbs again are served: tests/programs/passive.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"

# passive NAME FROM HOW OPTIONS...
passive() {
	local name="passive target, $1" from=$2 how=$3

	shift 3
	if pair root a "$from" "$programs/passive_test" "$@" "$how" -- \
		"$programs/passive_test" "$@" "$how" "$address"; then
		ok "$name: $(tail -n 1 "$work/client")"
	else
		not_ok "$name" "$work/server" "$work/client"
	fi
}

address=127.0.0.1
[ "$hosts" = no ] && HOSTS_PID_a=here || need_hosts 9000
passive "sleeping, loopback" a pause -d roce_lo
passive "spinning, loopback" a spin -d roce_lo
if [ "$hosts" = yes ]; then
	address=$HOST_A
	passive "sleeping, another host" b pause -d roce_veth0 -6
	passive "spinning, another host" b spin -d roce_veth0 -4
else
	skip "passive target, another host" "no network namespaces here"
fi
summary
