#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Random operations with every byte compared, over both address families, both
# MTUs, on one host and between two, and with 1 % of the packets dropped.
#
#	tests/programs/data.sh [--full] [--only REGEX]
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"

only=.
limit=8
[ "${VERBENA_QUICK:-no}" = no ] || limit=1
arguments=("$@")
while [ $# -gt 0 ]; do
	case $1 in
	--full) limit=120 ;;
	--only)
		only=$2
		shift
		;;
	esac
	shift
done
export VERBENA_TIMEOUT=$((limit + 100))
tests_begin "$0" "${arguments[@]}"

# data NAME FROM OPTIONS...: one run, from that host to a.
data() {
	local name="data $1" from=$2

	[[ $name =~ $only ]] || return
	shift 2
	if pair root a "$from" "$programs/data_test" "$@" -- \
		"$programs/data_test" "$@" -t $limit -n 1000000 "$address"; then
		ok "$name: $(tail -n 1 "$work/client")"
	else
		not_ok "$name" "$work/server" "$work/client"
	fi
}

# lose ONE_IN: drop one of so many packets as they arrive, at both hosts.
lose() {
	local host

	for host in a b; do
		on $host nft -f - <<-END || return
			table inet loss {
				chain in {
					type filter hook input priority 0;
					udp dport 4791 numgen random mod $1 == 0 counter drop
				}
			}
		END
	done
}

dropped() {
	on a nft list table inet loss |
		sed -n 's/.*counter packets \([0-9]*\).*/\1/p'
}

address=127.0.0.1
if [ "$hosts" = no ]; then
	HOSTS_PID_a=here
	export VERBENA_DEVICES=lo
	data "loopback IPv4" a -d roce_lo -4
	data "loopback IPv6" a -d roce_lo -6
	skip "data between two hosts" "no network namespaces here"
	summary
	exit
fi
need_hosts 9000
VERBENA_DEVICES=lo data "loopback IPv4" a -d roce_lo -4
VERBENA_DEVICES=lo VERBENA_NEAR=off data "loopback IPv4, packets" a \
	-d roce_lo -4
address=$HOST_A
data "one host, IPv6" a -d roce_veth0 -6
data "MTU 9000, IPv4" b -d roce_veth0 -4
data "MTU 9000, IPv6" b -d roce_veth0 -6
hosts_mtu 1500
data "MTU 1500, IPv4" b -d roce_veth0 -4
data "MTU 1500, IPv6, path MTU 256" b -d roce_veth0 -6 -m 256 -x 1000000
if lose 100 2>"$work/nft"; then
	data "1 % lost, MTU 1500, IPv4" b -d roce_veth0 -4
	hosts_mtu 9000
	data "1 % lost, MTU 9000, IPv6" b -d roce_veth0 -6
	# Until here a batch was lost as a whole; now each packet by itself.
	hosts_unbatched
	data "1 % lost singly, MTU 9000, IPv4" b -d roce_veth0 -4
	data "1 % lost singly, path MTU 512, IPv6" b -d roce_veth0 -6 -m 512
	[ "$only" != . ] || [ "$(dropped)" -gt 100 ] ||
		not_ok "data: packets were really dropped"
else
	skip "data with losses" "nft: $(head -n 1 "$work/nft")"
fi
summary
