#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Verbs over LIDs: unmodified programs on the adapters of an emulated fabric,
# through its switches. tests/programs/ib_verbs.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
# shellcheck source=tests/programs/fabric_lib.sh
. "$here/fabric_lib.sh"
tests_begin "$0" "$@"

fabric_begin opensm ib_write_bw ibv_rc_pingpong
topology=/usr/share/doc/ibsim-utils/net-examples/net.2sw2path4hca
[ -e "$topology" ] || {
	skip "ib_verbs" "the examples of ibsim-utils are not installed"
	summary
	exit
}
name=verbs$$
layer=ib_verbs
ctl() { "$verbena" fabric ctl --name "$name" "$@"; }

subnet_begins() { # FILE OPTION...: a fabric, and opensm on its Hca1
	local file=$1

	shift
	rm -f "$work/osm.log"
	fabric_up "$file" || {
		not_ok "ib_verbs: the fabric starts" "$work/fabric"
		summary
		exit
	}
	opensm_up Hca1 "$work/osm.log" "$@"
	check "the subnet comes up" subnet_up "$work/osm.log"
}

subnet_ends() {
	kill "$opensm"
	wait "$opensm" 2>/dev/null
	fabric_down
}

# pair CLIENT SERVER PROGRAM...: both sides; their words are in $work/client and
# $work/server. The client tries until the server listens.
pair() {
	local client=$1 server=$2 tries status

	shift 2
	for tries in 1 2 3; do
		port=$((port + 1))
		r "$server" "$@" -p $port >"$work/server" 2>&1 &
		served=$!
		sleep "$tries"
		r "$client" "$@" -p $port localhost >"$work/client" 2>&1
		status=$?
		if grep -q "Couldn't connect" "$work/client"; then
			kill $served
			wait $served
			continue
		fi
		wait $served && return $status
		return 1
	done 2>/dev/null
	return 1
}

# pairs NAME PATTERN CLIENT SERVER PROGRAM...: both succeed, and a line of the
# client's matches.
pairs() {
	local what=$1 pattern=$2

	shift 2
	if pair "$@" && grep -Eq -- "$pattern" "$work/client"; then
		ok "ib_verbs: $what"
	else
		not_ok "ib_verbs: $what (wanted: $pattern)" \
			"$work/client" "$work/server" "$work/fabric"
	fi
}

# Megabytes a second that the last ib_write_bw of $1 says: average.
rate_of() { awk 'NF >= 5 && $1 ~ /^[0-9]+$/ { r = $4 } END { print int(r) }' "$1"; }

# between NAME VALUE LOW HIGH
between() {
	if [ "${2:-0}" -ge "$3" ] && [ "${2:-0}" -le "$4" ]; then
		ok "ib_verbs: $1 ($2)"
	else
		not_ok "ib_verbs: $1 ($2; wanted: $3 to $4)" \
			"$work/client" "$work/server"
	fi
}

counter() { # NODE LID NAME: a counter of the performance agent
	r "$1" perfquery -x "$2" 1 2>/dev/null |
		sed -n "s/^$3:\.*//p"
}

# --- T10: programs over LIDs ---
subnet_begins "$topology"
says "T10 ibv_devinfo" 'link_layer:[[:space:]]*InfiniBand' Hca4 ibv_devinfo
says "T10 its LID" 'port_lid:[[:space:]]*6$' Hca4 ibv_devinfo
says "T10 the manager's LID" 'sm_lid:[[:space:]]*1$' Hca4 ibv_devinfo
says "T10 ibv_devices" 'ib0[[:space:]]*0200ca0000000300' Hca3 ibv_devices
for kind in rc uc ud srq; do
	pairs "T10 ibv_${kind}_pingpong" 'remote address: *LID 0x0006' \
		Hca3 Hca4 ibv_${kind}_pingpong -d ib0
done
sent=$(counter Hca3 5 PortXmitData)
pairs "T10 ib_write_bw" 'LID 0x' Hca3 Hca4 \
	ib_write_bw -d ib0 -F -s 65536 -n 500
grep -q 'Link type *: IB' "$work/client" &&
	ok "ib_verbs: T10 the link is InfiniBand" ||
	not_ok "ib_verbs: T10 the link is InfiniBand" "$work/client"
sent=$((($(counter Hca3 5 PortXmitData) - sent) * 4))
# 500 messages of 16 packets; what is beyond the payload are headers, and
# packets that a slow machine made the sender repeat.
between "T10 the counter agrees with the bytes that moved" \
	$((sent / 1000)) 32768 45000
pairs "T10 ib_read_bw" '65536' Hca3 Hca4 ib_read_bw -d ib0 -F -s 65536 -n 300
pairs "T10 ib_send_lat" 't_typical' Hca3 Hca4 ib_send_lat -d ib0 -F -n 300
pairs "T10 ib_atomic_lat" 't_typical' Hca3 Hca4 ib_atomic_lat -d ib0 -F -n 300
pairs "T10 ib_send_bw, UD" '4096' Hca3 Hca4 \
	ib_send_bw -d ib0 -F -c UD -s 4096 -n 1000
pairs "T10 ib_send_bw, UC, both ways" '65536' Hca3 Hca4 \
	ib_send_bw -d ib0 -F -c UC -b -n 300
pairs "T10 with a GRH" 'GID' Hca3 Hca4 ib_write_bw -d ib0 -F -x 0 -n 100
pairs "T10 a service level" 'LID 0x' Hca3 Hca4 \
	ib_write_bw -d ib0 -F -S 3 -n 100
pairs "two programs at one adapter" 'LID 0x05' Hca3 Hca3 \
	ib_write_bw -d ib0 -F -n 100
says "no error was counted" '0 bad nodes' Hca3 ibqueryerrors -s PortXmitWait

timeout 60 "$verbena" run --device "ib:$name/Hca3" --device "ib:$name/Hca4" \
	-- "$programs/ib_verbs_test" >"$work/test" 2>&1
cat "$work/test"
passed=$((passed + $(grep -c '^ok' "$work/test")))
failed=$((failed + $(grep -c '^not ok' "$work/test")))
[ "$(grep -c '^ok' "$work/test")" -ge 25 ] ||
	not_ok "ib_verbs: all cases of ib_verbs_test ran" "$work/test"

# --- events ---
r Hca3 "$programs/ib_verbs_test" events >"$work/events" 2>&1 &
watcher=$!
check "events: a program watches" within 5 grep -q watching "$work/events"
ctl unlink Switch1 2
check "events: the cable is pulled" within 5 grep -q '^port error' \
	"$work/events"
ctl link Switch1 2
check "events: it is active again" within 10 grep -q '^port active' \
	"$work/events"
kill "$opensm"
wait "$opensm" 2>/dev/null
opensm_up Hca2 "$work/osm2.log"
check "events: another manager" within 20 grep -q '^SM change' "$work/events"
check "events: clients register again" within 10 \
	grep -q '^client reregistration' "$work/events"
kill $watcher
wait $watcher 2>/dev/null

# --- one that is stopped, and one that is killed ---
r Hca4 ib_write_bw -d ib0 -F -D 30 -p 19001 >"$work/stopped" 2>&1 &
stopped=$!
sleep 2
r Hca3 ib_write_bw -d ib0 -F -D 30 -p 19001 localhost >/dev/null 2>&1 &
sender=$!
sleep 2
receivers=$(pgrep -f "ib_write_bw -d ib0 -F -D 30 -p 19001$")
# shellcheck disable=SC2086 # several
kill -STOP $receivers
pairs "another program of the adapter goes on beside one that is stopped" \
	'LID 0x06' Hca2 Hca4 ib_write_bw -d ib0 -F -n 100
# shellcheck disable=SC2086
kill -KILL $receivers 2>/dev/null
kill $stopped $sender 2>/dev/null
wait $stopped $sender 2>/dev/null
pairs "and after it was killed" 'LID 0x06' Hca3 Hca4 \
	ib_write_bw -d ib0 -F -n 100

# --- T11: the trunk is pulled under load ---
r Hca4 ib_write_bw -d ib0 -F -D 6 -p 19002 >"$work/server" 2>&1 &
server=$!
sleep 1
r Hca3 ib_write_bw -d ib0 -F -D 6 -p 19002 localhost >"$work/client" 2>&1 &
client=$!
sleep 3
ctl unlink Switch1 5
if wait $client && wait $server; then
	ok "ib_verbs: T11 a reroute under ib_write_bw is no error"
else
	not_ok "ib_verbs: T11 a reroute under ib_write_bw is no error" \
		"$work/client" "$work/server"
fi
says "T11 the way is the other one" '\[3\] -> switch' Hca3 ibtracert 5 6
subnet_ends

# --- T12: credits on a long link ---
# One trunk, with 500 us each way.
long_link() { # OPTION...
	grep -v '^\[3\] "S-\|^\[3\] "Switch' "$topology" >"$work/one.topo"
	echo "#! link \"Switch1\"[5] delay=500us rate=8G $*" >>"$work/one.topo"
	subnet_begins "$work/one.topo"
}
long_link
pairs "T12 12-bit credits" 'LID 0x' Hca3 Hca4 \
	ib_write_bw -d ib0 -F -s 1048576 -n 100
between "T12 12-bit credits allow 128 KiB in a round trip, MB/s" \
	"$(rate_of "$work/client")" 60 135
says "T12 nothing is discarded" 'PortXmitDiscards:\.*0$' \
	Hca3 perfquery 2 5
if r Hca3 perfquery 2 5 2>/dev/null |
	grep -Eq 'PortXmitWait:\.*[1-9][0-9]{3}'; then
	ok "ib_verbs: T12 the trunk waited for credits"
else
	not_ok "ib_verbs: T12 the trunk waited for credits"
fi
subnet_ends
long_link credits=ext buf=65536
pairs "T12 a range extender" 'LID 0x' Hca3 Hca4 \
	ib_write_bw -d ib0 -F -s 1048576 -n 1500
# The link carries 1 GB/s, and as much arrives on an idle machine. A fabric whose
# process waits for a processor meanwhile cannot catch up.
between "T12 a range extender carries several times as much, MB/s" \
	"$(rate_of "$work/client")" 260 1000
subnet_ends

summary
