#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Pictures of an emulated InfiniBand subnet, and ways through it.
# tests/programs/fabric_show.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
# shellcheck source=tests/programs/fabric_lib.sh
. "$here/fabric_lib.sh"
tests_begin "$0" "$@"

fabric_begin opensm python3
name=show$$

show() { "$verbena" fabric show --name "$name" "$@"; }
# states_of FILE: of links, as JSON says.
states_of() {
	python3 -c '
import json, sys
for n in json.load(open(sys.argv[1], encoding="utf-8"))["nodes"]:
    print(ascii(n["name"]), [(p["port"], p["state"]) for p in n["ports"]])' "$1"
}
# draw KIND: a picture, and JSON of the same states: links may change theirs
# meanwhile, when the fabric or a subnet manager has just begun.
draw() {
	local try

	for try in 1 2 3 4 5 6 7 8 9 10; do
		show --json >"$work/before" &&
			show "--$1" "$work/picture" "${options[@]}" &&
			show --json >"$work/json" || return
		states_of "$work/before" >"$work/states"
		states_of "$work/json" | cmp -s - "$work/states" && return
	done
	echo "the links changed their states during each of $try pictures"
	return 1
}
# pictured NAME KIND CHECK...: with the options in ${options[@]}.
pictured() {
	local what=$1 kind=$2

	shift 2
	draw "$kind" >"$work/got" 2>&1 &&
		python3 "$here/fabric_picture.py" "$work/picture" "$work/json" \
			"$@" >"$work/got" 2>&1 &&
		ok "fabric: $what" || not_ok "fabric: $what" "$work/got"
}
says_way() { # NAME PATTERN ARGUMENT...
	show "${@:3}" >"$work/got" 2>&1
	if grep -Eq -- "$2" "$work/got"; then
		ok "fabric: $1"
	else
		not_ok "fabric: $1 (wanted: $2)" "$work/got"
	fi
}
options=()

fabric_up /usr/share/doc/ibsim-utils/net-examples/net.2sw2path4hca
pictured "a picture before any subnet manager" svg
opensm_up Hca1 "$work/osm.log"
check "the subnet comes up" subnet_up "$work/osm.log"
says_way "a way" '^  \[2\] Switch1 \[5\], 40 Gbit/s' --path 5:6
says_way "its end" '^  \[1\] Hca4$' --path 5:6
says_way "a way from a switch" '^  Switch1 \[5\]' --path 2:6
says_way "a way to itself" '^  Hca3$' --path 5:5
says_way "a LID that nobody has" 'no port has LID 77' --path 77:5
says_way "a way that ends nowhere" '"Switch1" has no port for LID 77' \
	--path 5:77
says_way "no LIDs" 'is not LID:LID' --path 5
says_way "a multicast LID" 'is not LID:LID' --path 5:49152
"$verbena" fabric ctl --name "$name" unlink Switch1 3
options=(--path 5:6)
# The ports are busy from before the picture until after it.
: >"$work/busy"
: >"$work/load"
(while [ -e "$work/busy" ]; do r Hca3 saquery -p; done) >"$work/load" 2>&1 &
load=$!
check "ports are busy" within 20 test -s "$work/load"
pictured "a page with a way, a link that is down, and busy ports" html \
	way down=1 hot
rm "$work/busy"
wait $load
pictured "the same as SVG" svg way down=1
options=()
if show --svg /dev/full >"$work/full" 2>&1; then
	not_ok "fabric: a full disk" "$work/full"
else
	check "a full disk is said" grep -q 'No space left' "$work/full"
fi
kill "$opensm"
wait "$opensm" 2>/dev/null
fabric_down

# Names that would be something else in a page.
printf '%s\n' 'Switch 4 "A" # "<script>alert(1)</script>&amp;"' \
	'[1] "B"[1]' '[2] "C"[1]' 'Ca 1 "B" # "it'"'"'s ]]> --> x"' '' \
	$'Ca 1 "C" # "\x01\x1b[31m\xe9"' >"$work/names.topo"
fabric_up "$work/names.topo"
pictured "names are escaped" html 'name=<script>alert(1)</script>&amp;'
fabric_down

for kind in switch:2 fat-tree:2:18x36 fat-tree:3:8x8 torus:4x4 torus:10x10 \
	dragonfly:4:2:2; do
	fabric_up --make "$kind"
	pictured "$kind" html
	fabric_down
done
if [ "$quick" = no ]; then
	fabric_up --make fat-tree:3:288x24 # 4176 nodes
	SECONDS=0
	pictured "a fat tree of thousands" svg
	check "within 30 s" test $SECONDS -le 30
	fabric_down
fi
summary
