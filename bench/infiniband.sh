#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Two adapters of an emulated InfiniBand fabric, through one switch, against
# RoCEv2 between two hosts (network namespaces and veth); and two programs at
# one adapter.
# shellcheck source=bench/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
# shellcheck source=tests/programs/fabric_lib.sh
. "$top/tests/programs/fabric_lib.sh"
bench_begin infiniband "$0" "$@"
[ "$hosts" = yes ] || bench_cannot "no network namespaces here"
command -v opensm >/dev/null || bench_cannot "opensm is not installed"
hosts_up 9000 || bench_cannot "network namespaces cannot be made"
name=bench$$
ib_begin
export XDG_RUNTIME_DIR=$work/run
mkdir -m 700 "$XDG_RUNTIME_DIR"
fabric_up --sm --make switch:2 || bench_cannot "the fabric does not start"
is_up() { r "$1" ibv_devinfo | grep -q PORT_ACTIVE; }
within 30 is_up Hca1 && within 30 is_up Hca2 ||
	bench_cannot "the subnet manager does not bring the fabric up"
# The links have the rate of EDR: QDR, what they are without this, carries 4 GB/s,
# and the kernel's veth has no rate.
for ca in Hca1 Hca2; do
	"$verbena" fabric ctl --name "$name" tune $ca 1 rate=100G ||
		bench_cannot "the links' rate cannot be set"
done
device=roce_veth0
address=$HOST_A
gid=$(gid_index a $device "::ffff:$HOST_A")

# roce COMMAND...: run a command of bench/lib.sh with perftest's default port.
roce() {
	local port=18515

	"$@"
}
# ib CLIENT PROGRAM OPTIONS...: the server is at Hca1.
ib() {
	local from=$1

	shift
	ib_pair "$from" Hca1 "$@" -F -d ib0
}
# GB/s, M messages/s, us one way (of ib_read_lat: there and back).
ib_bandwidth() {
	bandwidth_span
	# shellcheck disable=SC2086 # words
	ib "$@" $REPLY && column 4 0.001048576
}
ib_rate() {
	bandwidth_span
	# shellcheck disable=SC2086
	ib "$@" $REPLY && column 5
}
ib_latency() {
	latency_span "$@"
	# shellcheck disable=SC2086
	ib "$@" $REPLY && column 5
}

row "ib_write_bw -s 1048576, one switch" GB/s "RoCEv2 on veth" ">= 0.7x" \
	">= 2.5" ib_bandwidth Hca2 ib_write_bw -s 1048576 -- \
	roce verbs_bandwidth b ib_write_bw -s 1048576
row "ib_send_lat -s 8, one switch" us "RoCEv2 on veth" "<= 1.3x" "" \
	ib_latency Hca2 ib_send_lat -s 8 -- \
	roce verbs_latency b ib_send_lat -s 8
row "ib_write_bw -s 64, messages, one switch" M/s "RoCEv2 on veth" "" "" \
	ib_rate Hca2 ib_write_bw -s 64 -- roce verbs_rate b ib_write_bw -s 64
row "ib_write_bw -s 1048576, one adapter" GB/s "RoCEv2 on one host" \
	">= 0.9x" "" ib_bandwidth Hca1 ib_write_bw -s 1048576 -- \
	roce verbs_bandwidth a ib_write_bw -s 1048576
row "ib_send_lat -s 8, one adapter" us "RoCEv2 on one host" "<= 1.1x" "" \
	ib_latency Hca1 ib_send_lat -s 8 -- roce verbs_latency a ib_send_lat -s 8
bench_end
