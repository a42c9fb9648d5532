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

# Two switches with two trunks, at ports 3 and 5.
cat >"$work/two.topo" <<-END
	Switch 8 "Switch1"
	[1] "Hca1"[1] # 4xEDR
	[2] "Hca3"[1] # 4xEDR
	[3] "Switch2"[3] # 4xEDR
	[5] "Switch2"[5] # 4xEDR

	Switch 8 "Switch2"
	[2] "Hca4"[1] # 4xEDR

	Hca 1 "Hca1"

	Hca 1 "Hca3"

	Hca 1 "Hca4"
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

# The subnet manager is stopped while a cable is pulled, so that it cannot lead
# the LIDs another way.
serve() {
	case $1 in
	pull)
		kill -STOP "$opensm"
		ctl unlink Switch1 3
		;;
	pull-other)
		kill -STOP "$opensm"
		ctl unlink Switch1 5
		;;
	plug)
		ctl link Switch1 3
		ctl link Switch1 5
		kill -CONT "$opensm"
		within 20 both_trunks
		within 10 ways
		;;
	esac >>"$work/served" 2>&1
}
migrations() {
	local line status=0

	mkfifo "$work/answers"
	timeout 120 "$verbena" run --device "ib:$name/Hca3" \
		--device "ib:$name/Hca4" -- "$programs/apm_test" \
		"$bits3" "$bits4" <"$work/answers" 2>&1 >"$work/apm" &
	exec 7>"$work/answers"
	tail -n +1 -f --pid=$! "$work/apm" | while read -r line; do
		echo "$line"
		[ "${line%% *}" != do ] || {
			serve "${line#do }"
			echo done >&7
		}
	done
	wait $! || status=$?
	exec 7>&-
	passed=$((passed + $(grep -c '^ok ' "$work/apm")))
	failed=$((failed + $(grep -c '^not ok ' "$work/apm")))
	[ "$status $(grep -c '^ok ' "$work/apm")" = "0 $1" ] ||
		not_ok "ib_apm: $1 cases of apm_test (status $status)" \
			"$work/apm" "$work/served" "$work/ways" "$work/fabric"
}

subnet_begins "$work/two.topo" -l 1
if check "the LIDs of a port lead over two trunks" within 10 ways; then
	cat "$work/ways"
	migrations 20
fi
subnet_ends
summary
