#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Tag matching as message passing libraries use it, between two hosts, with
# losses, and on one, with and without packets: tests/programs/tags.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"

# tags NAME FROM ADDRESS OPTIONS...: the sender is at that host.
tags() {
	local name="tags $1" from=$2 address=$3

	shift 3
	if pair root a "$from" "$programs/tags_test" "$@" -- \
		"$programs/tags_test" "$@" "$address"; then
		ok "$name: $(tail -n 1 "$work/server")"
	else
		not_ok "$name" "$work/server" "$work/client"
	fi
}

if [ "$hosts" = yes ]; then
	hosts_up 1500 || not_ok "tags: two hosts"
	tags "veth IPv4" b "$HOST_A" -d roce_veth0 -4
	tags "veth IPv6" b "$HOST_A6" -d roce_veth0 -6
	for host in a b; do
		on $host nft -f - <<-END
			table inet loss {
				chain in {
					type filter hook input priority 0;
					udp dport 4791 numgen random mod 50 == 0 drop
				}
			}
		END
	done
	tags "veth IPv4, 2 % lost" b "$HOST_A" -d roce_veth0 -4 -l
else
	HOSTS_PID_a=here
	skip "tags between two hosts" "no network namespaces here"
fi
export VERBENA_DEVICES=lo
tags "one host" a 127.0.0.1 -d roce_lo
export VERBENA_NEAR=off
tags "one host, packets wanted" a 127.0.0.1 -d roce_lo
summary
