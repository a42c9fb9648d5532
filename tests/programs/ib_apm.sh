#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Automatic path migration between two routes of a fabric, by hand and by a
# pulled cable, and static rates. tests/programs/ib_apm.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
# shellcheck source=tests/programs/fabric_lib.sh
. "$here/fabric_lib.sh"
tests_begin "$0" "$@"

fabric_begin opensm ib_write_bw ibtracert iblinkinfo
name=ibapm$$
layer=ib_apm
ib_begin

# Two switches with two trunks, at ports 3 and 5. A link has the speed that both
# ends support.
cat >"$work/two.topo" <<-END
	Switch 8 "Switch1"
	[1] "Hca1"[1] # 4xEDR
	[2] "Hca3"[1] # 4xEDR
	[3] "Switch2"[3] # 4xEDR
	[5] "Switch2"[5] # 4xEDR

	Switch 8 "Switch2"
	[2] "Hca4"[1] # 4xEDR
	[3] "Switch1"[3] # 4xEDR
	[5] "Switch1"[5] # 4xEDR

	Hca 1 "Hca1"
	[1] "Switch1"[1] # 4xEDR

	Hca 1 "Hca3"
	[1] "Switch1"[2] # 4xEDR

	Hca 1 "Hca4"
	[1] "Switch2"[2] # 4xEDR
END

lid_of() { r "$1" ibstat ib0 1 | awk '/Base lid:/ { print $3 }'; }
# trunk FROM TO: the port of Switch1 or Switch2 by which a frame from LID to LID
# leaves for the other switch. Both ends of a trunk have one port number.
trunk() {
	"$verbena" fabric show --name "$name" --path "$1:$2" |
		sed -n 's/^  \[[0-9]*\] Switch[12] \[\([35]\)\].*/\1/p' | head -n 1
}
# bits_to FROM TO PORT: the path bits of TO's LID to which frames take this trunk.
bits_to() {
	local bits

	for bits in 0 1; do
		[ "$(trunk "$1" $(($2 + bits)))" = "$3" ] || continue
		echo $bits
		return
	done
}
both_trunks() { [ "$(r Hca1 iblinkinfo 2>/dev/null | grep -cE 'Active/ *LinkUp')" = 10 ]; }
# ways: the path bits by which the two ports use trunk 3 alone, in both
# directions, and with the other bits trunk 5 alone.
ways() {
	lid3=$(lid_of Hca3)
	lid4=$(lid_of Hca4)
	bits3=$(bits_to "$lid4" "$lid3" 3)
	bits4=$(bits_to "$lid3" "$lid4" 3)
	echo "LIDs $lid3 and $lid4, path bits $bits3 and $bits4" >"$work/ways"
	[ "$bits3$bits4" ] && [ "$(trunk "$lid4" $((lid3 + !bits3)))" = 5 ] &&
		[ "$(trunk "$lid3" $((lid4 + !bits4)))" = 5 ]
}

# way_trunk WAY: the trunk of the first way (0) or the second one (1), if both
# directions use one.
way_trunk() {
	local to from

	to=$(trunk "$lid3" $((lid4 + (bits4 ^ $1))))
	from=$(trunk "$lid4" $((lid3 + (bits3 ^ $1))))
	[ "$to" = "$from" ] && echo "$to"
}
disjoint() {
	[ "$(way_trunk 0)" ] && [ "$(way_trunk 1)" ] &&
		[ "$(way_trunk 0)" != "$(way_trunk 1)" ]
}
# pull WAY: the subnet manager is stopped first, so that it cannot lead the LIDs
# another way.
pull() {
	kill -STOP "$opensm"
	disjoint || echo "the two ways share a trunk"
	echo "way $1 has trunk $(way_trunk "$1")"
	ctl unlink Switch1 "$(way_trunk "$1")"
}
serve() {
	case $1 in
	pull) pull 0 ;;
	pull-other) pull 1 ;;
	plug)
		ctl link Switch1 3
		ctl link Switch1 5
		kill -CONT "$opensm"
		within 20 both_trunks
		within 10 disjoint
		;;
	esac >>"$work/served" 2>&1
}
# migrations CASES DEVICE DEVICE ARGUMENT...: apm_test between the two devices.
migrations() {
	local line status=0 cases=$1 one=$2 other=$3

	shift 3
	rm -f "$work/answers"
	mkfifo "$work/answers"
	: >"$work/apm" # for tail, which may come before the program
	timeout 120 "$verbena" run --device "$one" --device "$other" -- \
		"$programs/apm_test" "$@" <"$work/answers" 2>&1 >>"$work/apm" &
	exec 7>"$work/answers"
	tail -n +1 -f --pid=$! "$work/apm" | while read -r line; do
		echo "$line"
		case $line in
		"do "*)
			serve "${line#do }"
			echo "done" >&7
			;;
		esac
	done
	wait $! || status=$?
	exec 7>&-
	passed=$((passed + $(grep -c '^ok ' "$work/apm")))
	failed=$((failed + $(grep -c '^not ok ' "$work/apm")))
	[ "$status $(grep -c '^ok ' "$work/apm")" = "0 $cases" ] ||
		not_ok "ib_apm: $cases cases of apm_test (status $status)" \
			"$work/apm" "$work/served" "$work/ways" "$work/fabric"
}

subnet_begins "$work/two.topo" -l 1
if check "the LIDs of a port lead over two trunks" within 10 ways; then
	cat "$work/ways"
	migrations 20 "ib:$name/Hca3" "ib:$name/Hca4" "$bits3" "$bits4"
fi

# --- the alternate path of a request of rdma_cm ---
gid_of() { r "$1" cat /sys/class/infiniband/ib0/ports/1/gids/0; }
test=$programs/ib_cm_test
# said NAME PATTERN FILE: a line of the file matches.
said() {
	if grep -Eq -- "$2" "$3"; then
		ok "ib_apm: $1"
	else
		not_ok "ib_apm: $1 (wanted: $2)" "$3"
	fi
}
# Two programs connect by the first way, with the second one as the alternate
# path, and the first way's cable is pulled under their messages.
rdma_cm_migrates() {
	local watcher caller status=0 gid3 gid4

	gid3=$(gid_of Hca3)
	gid4=$(gid_of Hca4)
	r Hca4 "$test" watch "$gid4" 7000 >"$work/watcher" 2>&1 &
	watcher=$!
	within 10 grep -q listening "$work/watcher" || return
	r Hca3 "$test" migrate "$gid3" "$gid4" 7000 $((lid3 + bits3)) \
		$((lid4 + bits4)) $((lid3 + !bits3)) $((lid4 + !bits4)) \
		>"$work/caller" 2>&1 &
	caller=$!
	within 10 grep -Eq 'armed|state 2' "$work/watcher" &&
		within 10 grep -Eq 'armed|state 2' "$work/caller" || status=1
	serve pull
	wait "$caller" || status=1
	wait "$watcher" || status=1
	serve plug
	cat "$work/watcher" "$work/caller" "$work/served"
	return $status
}
if [ "${bits3:-}" ]; then
	check "rdma_cm: a pulled cable under a connection" rdma_cm_migrates
	said "rdma_cm: the caller has the alternate path" \
		"^alternate: dlid $((lid4 + !bits4)) bits $((!bits3)) port 1 state 1" \
		"$work/caller"
	said "rdma_cm: the other end has it, too" \
		"^alternate: dlid $((lid3 + !bits3)) bits $((!bits4)) port 1 state [12]" \
		"$work/watcher"
	said "rdma_cm: both records are in its route" '^paths: 2' "$work/watcher"
	said "rdma_cm: the caller has migrated" \
		"^way: dlid $((lid4 + !bits4)) " "$work/caller"
	said "rdma_cm: the other end has migrated" \
		"^way: dlid $((lid3 + !bits3)) " "$work/watcher"
fi

# --- static rates ---
# Gbit/s times 100 of the last line of the client.
hundredths() { awk 'NF >= 5 && $1 ~ /^[0-9]+$/ { r = $4 } END { print int(r * 100) }' "$work/client"; }
# stream PROGRAM OPTION...: between Hca3 and Hca4; sets $got.
stream() {
	got=0
	ib_pair Hca3 Hca4 "$@" -d ib0 -F -D 2 --report_gbits &&
		got=$(hundredths)
}
# The links have 64b/66b coding, so of 2.5 Gbit/s 2.42 are data; perftest counts
# the payload. A machine with much other work is slower, never faster: then a third
# of what is measured beside it without a static rate is enough.
# tests/unit/engine/drive_test.c has the lower bound in virtual time.
# rate NAME GBITS LOW HIGH PROGRAM...: hundredths of Gbit/s, within five tries.
rate() {
	local what=$1 gbits=$2 low=$3 high=$4 limited try

	shift 4
	sometimes 2 || return 0
	for try in 1 2 3 4 5; do
		stream "$@" --rate_limit "$gbits" --rate_units g \
			--rate_limit_type HW
		limited=$got
		[ "$limited" -lt "$low" ] || break
		stream "$@"
		echo "# $what: $limited, without a static rate $got"
		[ "$got" -eq 0 ] || [ "$limited" -lt $((got / 3)) ] || {
			low=$((got / 3))
			break
		}
	done
	between "$what, Gbit/s / 100, try $try" "$limited" "$low" "$high"
}
stream ib_write_bw
free=$got
echo "# without a static rate: ${free:-0} Gbit/s / 100"
if [ "${free:-0}" -ge 400 ]; then
	rate "ib_write_bw at 2.5 Gbit/s" 2.5 225 260 ib_write_bw
	rate "ib_read_bw at 2.5 Gbit/s" 2.5 225 260 ib_read_bw
	rate "ib_send_bw at 2.5 Gbit/s" 2.5 225 260 ib_send_bw
	lines_of "$verbena" run --device "ib:$name/Hca3" \
		--device "ib:$name/Hca4" -- "$programs/apm_test" rate
	! grep -q '^busy' "$work/test" ||
		skip "ib_apm: a rate of datagrams" "this machine is too busy"
else
	skip "ib_apm: a rate of 2.5 Gbit/s" "this machine is too busy"
fi
if [ "${free:-0}" -ge 800 ]; then
	rate "ib_write_bw at 5 Gbit/s" 5 450 520 ib_write_bw
else
	skip "ib_apm: a rate of 5 Gbit/s" "this machine is too busy"
fi
subnet_ends

# --- two ports of one adapter ---
# Each port has a switch of its own. The switches are joined, so that the subnet
# manager sees all, but no way between equal ports uses that cable.
cat >"$work/ports.topo" <<-END
	Switch 8 "Switch1"
	[1] "Hca1"[1]
	[2] "Hca3"[1]
	[3] "Hca4"[1]
	[4] "Switch2"[4]

	Switch 8 "Switch2"
	[2] "Hca3"[2]
	[3] "Hca4"[2]

	Hca 1 "Hca1"
	Hca 2 "Hca3"
	Hca 2 "Hca4"
END
two_ports_of() { echo "vpi:ib:$name/$1/1,ib:$name/$1/2"; }
four_ports() { [ "$(r Hca1 iblinkinfo 2>/dev/null | grep -cE 'Active/ *LinkUp')" = 12 ]; }
serve() {
	case $1 in
	pull) kill -STOP "$opensm" && ctl unlink Hca3 1 ;;
	pull-other) ctl unlink Hca4 2 ;;
	plug)
		ctl link Hca3 1
		ctl link Hca4 2
		kill -CONT "$opensm"
		within 20 four_ports
		;;
	esac >>"$work/served" 2>&1
}
: >"$work/served"
subnet_begins "$work/ports.topo"
check "two ports: all links are active" within 20 four_ports &&
	migrations 12 "$(two_ports_of Hca3)" "$(two_ports_of Hca4)" ports
subnet_ends
summary
