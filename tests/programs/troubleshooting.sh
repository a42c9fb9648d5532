#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Rows of docs/TROUBLESHOOTING.md that no other test provokes, and that each row
# names a test that there is: tests/programs/troubleshooting.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"
page=$top/docs/TROUBLESHOOTING.md

# A row is a line of a table that is neither its head nor the line below that.
rows() {
	sed -n '/^| /{/^| you see\|^| `verbena doctor -- /d;p}' "$page"
}
untested=$(rows | while IFS= read -r row; do
	last=$(sed 's/ |$//; s/.*| //' <<<"$row")
	[[ $last != "not by a test"* ]] || continue
	named=no
	for test in $(grep -oE '`[a-z0-9_]+\.(sh|c)`' <<<"$last" | tr -d '`'); do
		named=yes
		[ -n "$(find "$top/tests" -name "$test")" ] || named=no
	done
	[ $named = yes ] || echo "$row"
done)
[ "$(rows | wc -l)" -gt 40 ] && [ -z "$untested" ] &&
	ok "each row of TROUBLESHOOTING.md names a test, or says that none is" ||
	not_ok "rows of TROUBLESHOOTING.md name no test that there is: $untested"

need_hosts 1500
# sees NAME PATTERN FILE: what the page shows is what the program printed.
sees() {
	grep -qE -- "$2" "$3" && grep -qF -- "$1" "$page" && ok "$1" ||
		not_ok "$1" "$3"
}

# fails SERVER... -- CLIENT...: the pair must not work.
fails() {
	VERBENA_TIMEOUT=20 pair root a b "$@" && echo "(it works)" >"$work/client"
	cat "$work/server" "$work/client" >"$work/out"
}
fails ibv_rc_pingpong -d roce_veth0 -g 0 -- \
	ibv_rc_pingpong -d roce_veth0 "$HOST_A"
sees "Failed to modify QP to RTR" "Failed to modify QP to RTR" "$work/out"
VERBENA_DEVICES=iwarp:veth0 fails ibv_rc_pingpong -g 0 -- \
	ibv_rc_pingpong -g 0 "$HOST_A"
sees "Failed to modify QP to RTR\`, over iWARP" "Failed to modify QP to RTR" \
	"$work/out"
a timeout 20 "$verbena" run -- rping -s -a 10.99.9.9 </dev/null \
	>"$work/out" 2>&1
sees "EADDRNOTAVAIL" "rdma_bind_addr.*(Cannot assign|-1)" "$work/out"
a "$verbena" run -- ibv_devices >"$work/out" 2>&1
if grep -q roce_veth0 "$work/out" && ! grep -q roce_lo "$work/out"; then
	sees "shows no \`roce_lo\`" "roce_veth0" "$work/out"
else
	not_ok "ibv_devices shows no roce_lo" "$work/out"
fi
a "$verbena" run --device lo -- ibv_devices >"$work/out" 2>&1
sees "give \`--device lo\`" "roce_lo" "$work/out"

cat >"$work/asan.c" <<-'END'
	#include <infiniband/verbs.h>
	int main(void) { int n; return !ibv_get_device_list(&n); }
END
if ! gcc -fsanitize=address -o "$work/asan" "$work/asan.c" -libverbs 2>/dev/null; then
	skip "ASan runtime does not come first" "gcc has no AddressSanitizer here"
else
	a "$verbena" run -- sh -c "ASAN_OPTIONS=detect_leaks=0 $work/asan" \
		>"$work/out" 2>&1
	sees "ASan runtime does not come first" \
		"ASan runtime does not come first" "$work/out"
	a "$verbena" run -- sh -c \
		"ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0 $work/asan" \
		>"$work/out" 2>&1 && ok "verify_asan_link_order=0 mends it" ||
		not_ok "verify_asan_link_order=0 mends it" "$work/out"
fi
summary
