#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# What programs see of the ports of a fabric: nodes and rates as the topology
# has them, and events by their causes. tests/programs/ib_ports.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
# shellcheck source=tests/programs/fabric_lib.sh
. "$here/fabric_lib.sh"
tests_begin "$0" "$@"

fabric_begin opensm ibv_devinfo ibportstate
topology=/usr/share/doc/ibsim-utils/net-examples/net.2sw2path4hca
[ -e "$topology" ] || {
	skip "ib_ports" "the examples of ibsim-utils are not installed"
	summary
	exit
}
name=ibports$$
layer=ib_ports
ib_begin

# --- rates, from SDR to NDR ---
# The link of each adapter, what ibv_devinfo says of width and speed, and the
# rate in /sys.
rates=(
	"4xSDR|4X \(2\)|2.5 Gbps \(1\)|10 Gb/sec (4X SDR)"
	"4xDDR|4X \(2\)|5.0 Gbps \(2\)|20 Gb/sec (4X DDR)"
	"4xQDR|4X \(2\)|10.0 Gbps \(4\)|40 Gb/sec (4X QDR)"
	"4xFDR|4X \(2\)|14.0 Gbps \(16\)|56 Gb/sec (4X FDR)"
	"4xEDR|4X \(2\)|25.0 Gbps \(32\)|100 Gb/sec (4X EDR)"
	"2xHDR|2X \(16\)|50.0 Gbps \(64\)|100 Gb/sec (2X HDR)"
	"4xNDR|4X \(2\)|100.0 Gbps \(128\)|400 Gb/sec (4X NDR)"
	"1xSDR|1X \(1\)|2.5 Gbps \(1\)|2.5 Gb/sec (1X SDR)"
	"12xQDR|12X \(8\)|10.0 Gbps \(4\)|120 Gb/sec (12X QDR)"
)
links() { # the lines of a switch with such links, and of its adapters
	local i

	echo "Switch ${#rates[@]} \"Switch1\""
	for i in "${!rates[@]}"; do
		echo "[$((i + 1))] \"Hca$((i + 1))\"[1] # ${rates[i]%%|*}"
	done
	for i in "${!rates[@]}"; do
		printf '\nvendid=0x2c9\ndevid=0x%x\nHca 1 "Hca%d"\n' \
			$((0x1003 + i)) $((i + 1))
		echo "[1] \"Switch1\"[$((i + 1))] # ${rates[i]%%|*}"
	done
}
links >"$work/rates.topo"
check "a fabric with links of all rates" fabric_up "$work/rates.topo"
for i in "${!rates[@]}"; do
	sometimes 2 || continue
	IFS='|' read -r link width speed rate <<<"${rates[i]}"
	node=Hca$((i + 1))
	says "$link: ibv_devinfo's width" "active_width:.*$width" $node \
		ibv_devinfo -v
	says "$link: ibv_devinfo's speed" "active_speed:.*$speed" $node \
		ibv_devinfo -v
	counts "$link: /sys" 1 "^${rate//[()]/.}$" $node \
		cat /sys/class/infiniband/ib0/ports/1/rate
done
says "the vendor, as the topology has it" 'vendor_id:.*0x02c9' Hca2 \
	ibv_devinfo
says "the device" "vendor_part_id:[[:space:]]*$((0x1004))" Hca2 ibv_devinfo
says "no raw packets" 'max_raw_ethy_qp:[[:space:]]*0$' Hca2 ibv_devinfo -v

# --- no subnet manager, and the doctor ---
# examined NAME PATTERN NODE: the doctor says so of the node.
examined() {
	"$verbena" doctor --device "ib:$name/$3" >"$work/got" 2>&1 </dev/null
	if grep -Eq -- "$2" "$work/got"; then
		ok "$layer: doctor: $1"
	else
		not_ok "$layer: doctor: $1 (wanted: $2)" "$work/got"
	fi
}
counts "no subnet manager: a program hears of it, once" 1 \
	'^verbena: ib0, port 1: INIT: no subnet manager .*501 NO_SM' Hca2 \
	ibv_devinfo -v
r Hca2 smpquery -P 9 -D nodeinfo 0 >"$work/got" 2>&1 </dev/null
if [ "$(grep -c '^verbena: umad: umad_[a-z_]* of .*port 9: .*503 UMAD' \
	"$work/got")" -eq 1 ]; then
	ok "$layer: libibumad says why it opens no port"
else
	not_ok "$layer: libibumad says why it opens no port" "$work/got"
fi
examined "no subnet manager" \
	'^problem +device +ib0, port 1: init, LID 0: no subnet manager' Hca2
examined "what mends that" 'verbena run --device ib:.*/Hca2 -- opensm' Hca2
examined "no node" '^problem +device +ib0: .* has no node Hca77' Hca77
kill -STOP "$fabric"
examined "a stopped fabric" \
	"^problem +fabric +ib0: .*PID $fabric. is stopped" Hca2
kill -CONT "$fabric"
fabric_down
examined "no fabric" '^problem +fabric +ib0: no fabric .* runs at .*/socket' \
	Hca2

# --- events ---
# told PATTERN: the program that watches Hca3 has said so since mark_events.
mark_events() { events=$(wc -l <"$work/events"); }
told() { tail -n "+$((events + 1))" "$work/events" | grep -q "$1"; }
cat >"$work/partitions" <<-END
	Default=0x7fff, ipoib : ALL=full, SELF=full;
END
subnet_begins "$topology" -P "$work/partitions"
r Hca3 "$programs/ib_verbs_test" events >"$work/events" 2>&1 &
watcher=$!
examined "a fabric that runs" "^ok +fabric +ib0: .*PID $fabric, user" Hca3
examined "an active port" '^ok +device +ib0, port 1: active, 40 Gb/sec, LID [1-9]' \
	Hca3
examined "a port without a cable" '^note +device +ib0, port 2: down' Hca3
examined "its partitions" '^ok +partition +ib0, port 1: .*0: 0xffff .full' Hca3
check "a program watches" within 5 grep -q watching "$work/events"
mark_events
check "another LID is set" r Hca1 ibportstate -D 0,1,2 1 lid 77
check "the event: LID" within 10 told '^LID change'
says "and ibv_devinfo says so" 'port_lid:[[:space:]]*77$' Hca3 ibv_devinfo
mark_events
check "the first LID is set" r Hca1 ibportstate -D 0,1,2 1 lid 5
check "the event: LID, again" within 10 told '^LID change'
mark_events
echo 'blue=0x0002 : 0x0200ca0000000301=full;' >>"$work/partitions"
kill -HUP "$opensm"
check "the event: P_Keys, when the manager reads partitions anew" \
	within 30 told '^P_Key change'
says "and the table has the partition" '0x8002' Hca3 smpquery pkeys 5
mark_events
kill "$opensm"
wait "$opensm" 2>/dev/null
opensm_more='subnet_prefix 0xfec0000000000007'
opensm_up Hca1 "$work/osm2.log"
opensm_more=
check "another manager, with another prefix" subnet_up "$work/osm2.log"
check "the event: GIDs" within 20 told '^GID table change'
says "and the GID has the prefix" 'fec0:0000:0000:0007' Hca3 ibv_devinfo -v
kill $watcher
wait $watcher 2>/dev/null
subnet_ends
summary
