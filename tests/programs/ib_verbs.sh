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
ib_begin

# states_of COMMAND...: the port's state and LID, as three programs and the
# files in /sys see them: "active 5".
states_of() {
	"$@" ibstat ib0 1 | awk '/State:/ && !s { s = tolower($2) }
		/Base lid:/ { print s, $3 }'
	"$@" ibv_devinfo -d ib0 | awk '/state:/ { s = tolower($2) }
		/port_lid:/ { sub("port_", "", s); print s, $2 }'
	"$@" cat /sys/class/infiniband/ib0/ports/1/{state,lid} |
		awk '/:/ { s = tolower($2) } /0x/ { print s, $1 }' |
		while read -r state lid; do echo "$state $((lid))"; done
}

# agree NAME PATTERN COMMAND...: all of them say so.
agree() {
	local what=$1 pattern=$2

	shift 2
	states_of "$@" >"$work/got" 2>&1
	if [ "$(grep -Ec "^$pattern\$" "$work/got")" = 3 ]; then
		ok "ib_verbs: $what"
	else
		not_ok "ib_verbs: $what (wanted: 3 lines of $pattern)" "$work/got"
	fi
}

# --- T10: programs over LIDs ---
subnet_begins "$topology"
says "T10 ibv_devinfo" 'link_layer:[[:space:]]*InfiniBand' Hca4 ibv_devinfo
says "T10 its LID" 'port_lid:[[:space:]]*6$' Hca4 ibv_devinfo
says "T10 the manager's LID" 'sm_lid:[[:space:]]*1$' Hca4 ibv_devinfo
says "T10 ibv_devices" 'ib0[[:space:]]*0200ca0000000300' Hca3 ibv_devices
says "T10 a device of verbs in /sys" '^ib0$' Hca3 sh -c \
	'cat /sys/class/infiniband_verbs/uverbs*/ibdev'
agree "T10 all see an active port" 'active 5' r Hca3
for kind in rc ud uc srq; do
	sometimes 2 || continue
	pairs "T10 ibv_${kind}_pingpong" 'remote address: *LID 0x0006' \
		Hca3 Hca4 ibv_${kind}_pingpong -d ib0
done
sent=$(counter Hca3 5 PortXmitData)
pairs "T10 ib_write_bw" 'LID 0x' Hca3 Hca4 \
	ib_write_bw -d ib0 -F -s 65536 -n 500
check "T10 the link is InfiniBand" grep -q 'Link type *: IB' "$work/client"
sent=$((($(counter Hca3 5 PortXmitData) - sent) * 4))
# 500 messages of 16 packets; what is beyond the payload are headers, and
# packets that a slow machine made the sender repeat.
between "T10 the counter agrees with the bytes that moved" \
	$((sent / 1000)) 32768 45000
perftest() { # NAME PATTERN PROGRAM...: of Hca3 and Hca4
	local what=$1 pattern=$2 program=$3

	shift 3
	sometimes 3 || return 0
	pairs "T10 $what" "$pattern" Hca3 Hca4 "$program" -d ib0 -F "$@"
}
perftest ib_send_lat t_typical ib_send_lat -n 300
perftest ib_read_bw 65536 ib_read_bw -s 65536 -n 300
perftest ib_atomic_lat t_typical ib_atomic_lat -n 300
perftest "ib_send_bw, UD" 4096 ib_send_bw -c UD -s 4096 -n 1000
perftest "ib_send_bw, UC, both ways" 65536 ib_send_bw -c UC -b -n 300
perftest "with a GRH" GID ib_write_bw -x 0 -n 100
perftest "a service level" 'LID 0x' ib_write_bw -S 3 -n 100
pairs "two programs at one adapter" 'LID 0x05' Hca3 Hca3 \
	ib_write_bw -d ib0 -F -n 100
says "no error was counted" '0 bad nodes' Hca3 ibqueryerrors -s PortXmitWait

# cases NUMBER ARGUMENT... -- NODE...: ib_verbs_test at these nodes, with so many
# cases.
cases() {
	local number=$1 words=() devices=() rc=0

	shift
	for (( ; $# > 0 && ${#devices[@]} == 0; )); do
		if [ "$1" = -- ]; then
			shift
			for node; do devices+=(--device "ib:$name/$node"); done
		else
			words+=("$1")
			shift
		fi
	done
	timeout 60 "$verbena" run "${devices[@]}" -- \
		"$programs/ib_verbs_test" "${words[@]}" >"$work/test" 2>&1 ||
		rc=$?
	cat "$work/test"
	passed=$((passed + $(grep -c '^ok' "$work/test")))
	failed=$((failed + $(grep -c '^not ok' "$work/test")))
	[ "$rc $(grep -c '^ok' "$work/test")" = "0 $number" ] ||
		not_ok "ib_verbs: $number cases of ib_verbs_test (status $rc)" \
			"$work/test"
}
cases 27 -- Hca3 Hca4

silence() {
	VERBENA_NEAR=off r Hca4 "$programs/mistakes_test" -d ib0 -f 2>&1 |
		tee "$work/out"
	grep -q '^ok' "$work/out" && ! grep -q '^not ok' "$work/out"
}
check "a peer's silence is told in InfiniBand's words" silence

# --- a group that the programs join at the subnet manager ---
group() {
	port=$((port + 1))
	r Hca4 ib_send_bw -d ib0 -F -c UD -g -D 3 -p $port \
		>"$work/server" 2>&1 &
	listening here $port 20 $!
	r Hca3 ib_send_bw -d ib0 -F -c UD -g -D 3 -p $port localhost \
		>"$work/client" 2>&1
	wait $!
	awk '$1 == 4096 { n = $2 } END { exit n < 1000 }' "$work/server"
}
[ "$quick" = yes ] || check "T14 a group's datagrams cross the switches" group

# --- events ---
# watch NODE: $watcher is a program that writes what ib0 there is told.
watch() {
	: >"$work/events" # the last one was watching, too
	r "$1" "$programs/ib_verbs_test" events >"$work/events" 2>&1 &
	shell=$!
	within 5 grep -q watching "$work/events"
	watcher=$(program_of $shell)
}
# A signal to the shell of r() would leave the program running.
unwatch() {
	kill "$watcher"
	wait "$shell"
} 2>/dev/null
check "events: a program watches" watch Hca3
# told PATTERN: a line of the events since mark_events.
mark_events() { events=$(wc -l <"$work/events"); }
told() { tail -n "+$((events + 1))" "$work/events" | grep -q "$1"; }
mark_events
ctl unlink Switch1 2
check "events: the cable is pulled" within 5 told '^port error'
agree "all see a port that is down" 'down [05]' r Hca3
mark_events
ctl link Switch1 2
check "events: it is active again" within 10 told '^port active'
if [ "$quick" = no ]; then
	kill "$opensm"
	wait "$opensm" 2>/dev/null
	mark_events
	opensm_up Hca2 "$work/osm2.log"
	check "events: another manager" within 20 told '^SM change'
	check "events: clients register again" within 10 \
		told '^client reregistration'
fi
unwatch

# --- one that is stopped, and one that is killed ---
stopped_and_killed() {
	local stopped sender receivers

	port=$((port + 1))
	r Hca4 ib_write_bw -d ib0 -F -D 30 -p $port >"$work/stopped" 2>&1 &
	stopped=$!
	listening here $port 20 $stopped
	r Hca3 ib_write_bw -d ib0 -F -D 30 -p $port localhost >/dev/null 2>&1 &
	sender=$!
	sleep 2
	receivers=$(pgrep -f "ib_write_bw -d ib0 -F -D 30 -p $port$")
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
}
[ "$quick" = yes ] || stopped_and_killed

# --- T11: the trunk is pulled under load ---
reroute_under_load "$(span 2 20)" \
	ctl unlink Switch1 5
subnet_ends

# --- partitions ---
cat >"$work/partitions" <<-END
	Default=0x7fff, ipoib : ALL=full, SELF=full;
	blue=0x0002 : 0x0200ca0000000301=full, 0x0200ca0000000401=limited,
	0x0200ca0000000201=limited;
END
subnet_begins "$topology" -P "$work/partitions"
cases 9 partitions -- Hca3 Hca4 Hca2
subnet_ends

# --- the fabric's process is killed ---
ended() { ! kill -0 "$1"; }
# ticks PID: the processor time that it has used, in hundredths of a second.
ticks() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }
fabric_is_killed() {
	local server client before

	watch Hca2
	mark_events
	port=$((port + 1))
	r Hca4 ib_write_bw -d ib0 -F -D 50 -p $port >"$work/server" 2>&1 &
	server=$!
	listening here $port 20 $server
	r Hca3 ib_write_bw -d ib0 -F -D 50 -p $port localhost \
		>"$work/client" 2>&1 &
	client=$!
	sleep 1
	kill -KILL "$fabric" "$opensm"
	wait "$fabric" "$opensm" 2>/dev/null
	check "killed: a program under load ends" within 10 ended $client
	check "killed: it says why" grep 'its fabric has ended' "$work/client"
	check "killed: one that sleeps is told" within 5 told '^port error'
	before=$(ticks "$watcher")
	sleep 1
	check "killed: it lives" kill -0 "$watcher"
	between "killed: the processor that it uses then, in 1/100 s" \
		$(($(ticks "$watcher") - before)) 0 10
	unwatch
	kill $server 2>/dev/null
	wait $server $client 2>/dev/null
}
subnet_begins "$topology"
fabric_is_killed

# --- T12: credits on a long link ---
# one_trunk PARAMETER...: the switches have one link, with these.
one_trunk() {
	grep -v '^\[3\]' "$topology" >"$work/one.topo"
	echo "#! link \"Switch1\"[5] $*" >>"$work/one.topo"
}
one_trunk delay=500us rate=8G
subnet_begins "$work/one.topo"
pairs "T12 12-bit credits" 'LID 0x' Hca3 Hca4 \
	ib_write_bw -d ib0 -F -s 1048576 -n 100
# tests/protocol/far_test.c has the lower bounds in virtual time.
between "T12 12-bit credits allow 128 KiB in a round trip, MB/s" \
	"$(rate_of "$work/client")" 5 135
says "T12 nothing is discarded" 'PortXmitDiscards:\.*0$' \
	Hca3 perfquery 2 5
says "T12 the trunk waited for credits" 'PortXmitWait:\.*[1-9][0-9]{3}' \
	Hca3 perfquery 2 5
subnet_ends
one_trunk delay=500us rate=8G credits=ext buf=65536
subnet_begins "$work/one.topo"
# The link carries 1 GB/s, credits of 12 bits 131 MB/s. A fabric whose process
# waits for a processor meanwhile cannot catch up.
for try in 1 2 3; do
	pairs "T12 a range extender, $try" 'LID 0x' Hca3 Hca4 \
		ib_write_bw -d ib0 -F -s 1048576 -n "$(span 300 1500)"
	[ "$(rate_of "$work/client")" -lt 150 ] || break
done
what="T12 a range extender carries more than 12-bit credits"
if [ "$(rate_of "$work/client")" -lt 150 ] && crowded; then
	skip "ib_verbs: $what" "other programs have the processors"
else
	between "$what, MB/s" "$(rate_of "$work/client")" 150 1000
fi
subnet_ends

# --- T13: service levels on their lanes, and cut-through ---
# Lane 0 may send 64 blocks for each 16 of lane 1. Service level 1 has lane 0,
# and level 0 lane 1: a switch by itself would do it the other way. The trunk is
# slow, so the frames that wait in the fabric keep both lanes full while other
# work of the machine keeps the programs from a processor.
# lanes: the words that lanes 0 and 1 of the trunk have carried, the frames of
# lane 1, and the time in us.
lanes() {
	local now=${EPOCHREALTIME/[.,]/}

	"$verbena" fabric show --name "$name" --json | python3 -c '
import json, sys
for n in json.load(sys.stdin)["nodes"]:
    for p in n["ports"]:
        if (n["name"], p["port"]) == ("Switch1", 5):
            vl = {l["vl"]: l for l in p["lanes"]}
            print(*(vl.get(i, {}).get("xmit_words", 0) for i in (0, 1)),
                  vl.get(1, {}).get("xmit_pkts", 0), sys.argv[1])' "$now"
}
# lanes_carry FRAMES: lane 1 has carried so many, and lane 0 something.
lanes_carry() {
	lanes >"$work/lanes" && awk -v most="$1" \
		'{ exit !($1 > 0 && $3 >= most) }' "$work/lanes"
}
# shares: $first and $second are the bytes that the lanes carried in the midst of
# two streams, in $took ms.
shares() {
	local clients=() servers=() from=(Hca1 Hca3) to=(Hca2 Hca4) sl
	local words=(-d ib0 -F -D 60 -s 65536 -t 16 -u 21) before now

	for sl in 0 1; do
		r "${to[sl]}" ib_write_bw "${words[@]}" -S $sl \
			-p $((port + sl)) >"$work/server$sl" 2>&1 &
		servers+=($!)
		listening here $((port + sl)) 20 $!
	done
	for sl in 0 1; do
		r "${from[sl]}" ib_write_bw "${words[@]}" -S $sl \
			-p $((port + sl)) localhost >"$work/client$sl" 2>&1 &
		clients+=($!)
	done
	# Lane 0 has moved four times as much in the meantime: both streams have
	# begun.
	check "T13 both lanes carry frames" within 30 lanes_carry \
		"$(span 100 250)"
	lanes >"$work/lanes.before"
	check "T13 both lanes carry more" within 30 lanes_carry \
		$(($(cut -d' ' -f3 "$work/lanes.before") + $(span 400 800)))
	read -r first second _ now <"$work/lanes"
	read -r -a before <"$work/lanes.before"
	took=$(((now - before[3]) / 1000))
	first=$(((first - before[0]) * 4))
	second=$(((second - before[1]) * 4))
	check "T13 both programs went on until then" kill -0 "${clients[@]}"
	for sl in "${clients[@]}" "${servers[@]}"; do
		kill "$(program_of "$sl")" 2>/dev/null
	done
	wait "${clients[@]}" "${servers[@]}" 2>/dev/null
	port=$((port + 2))
}
one_trunk rate=40M
opensm_more='qos_max_vls 2
qos_high_limit 0
qos_vlarb_high 0:0,1:0
qos_vlarb_low 0:64,1:16
qos_sl2vl 1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0'
subnet_begins "$work/one.topo" -Q
opensm_more=
# A program that waits for a processor longer than the frames in the fabric last
# leaves its lane empty.
for try in 1 2 3; do
	shares
	share=$((1000 * second / (first ? first : 1)))
	[ "$share" -lt 237 ] || [ "$share" -gt 263 ] || break
done
# 5 MB/s. Other work of the machine may keep the fabric from its processor.
between "T13 the trunk carries what its rate allows, KB/s" \
	$(((first + second) / (took ? took : 1))) 500 5200
what="T13 lane 1 has a quarter of the share of lane 0, within 5 %"
if { [ "$share" -lt 237 ] || [ "$share" -gt 263 ]; } && crowded; then
	skip "ib_verbs: $what" "other programs have the processors"
else
	between "$what, in 1/1000" "$share" 237 263
fi
says "T13 no errors" '0 bad nodes' Hca3 ibqueryerrors -s PortXmitWait
subnet_ends

if [ "$quick" = no ]; then
	# A frame of 4 KiB takes 41 us on each of three links.
	one_trunk rate=0.8G
	for end in 1 2; do
		for hca in 1 2; do
			echo "#! link \"Switch$end\"[$hca] rate=0.8G"
		done
	done >>"$work/one.topo"
	# shortest MODE: the shortest time in ns, which has the least of others
	# than the fabric; into the variable MODE if it is shorter than that.
	shortest() {
		local ns

		printf '#! node "Switch%d" forward=%s\n' 1 "$1" 2 "$1" |
			cat "$work/one.topo" - >"$work/$1.topo"
		subnet_begins "$work/$1.topo"
		pairs "T13 ib_write_lat, $1" t_typical Hca3 Hca4 \
			ib_write_lat -d ib0 -F -s 4096 -n 1000
		ns=$(awk '$1 == 4096 { print int($3 * 1000) }' "$work/client")
		[ "${!1}" -le "${ns:-0}" ] || declare -g "$1=$ns"
		subnet_ends
	}
	# On a full machine even the shortest time may have others in it.
	cut=999999999 store=$cut
	for _ in 1 2 3; do
		shortest cut
		shortest store
		[ $((store - cut)) -lt 60000 ] || [ $((store - cut)) -gt 110000 ] ||
			break
	done
	between "T13 two switches that store cost 82 us, ns" $((store - cut)) \
		60000 110000
fi

# --- what a hop costs ---
# row NUMBER LATENCY: two adapters at the ends of so many switches. Frames take no time on
# the links, so the difference between two rows is what their switches cost.
row() {
	local i

	printf 'Hca 1 "Hca%d"\n\n' 1 2
	for ((i = 1; i <= $1; i++)); do
		printf 'Switch 2 "Switch%d"\n' "$i"
		[ "$i" = 1 ] && echo '[1] "Hca1"[1]'
		if [ "$i" = "$1" ]; then
			echo '[2] "Hca2"[1]'
		else
			echo "[2] \"Switch$((i + 1))\"[1]"
		fi
		echo
	done
	for ((i = 1; i <= $1; i++)); do
		printf '#! link "Switch%d"[%d] rate=free\n' "$i" 1 "$i" 2
		printf '#! node "Switch%d" latency=%s\n' "$i" "$2"
	done
}
# crossed NUMBER FRAMES: so many switches have sent at least so many frames by
# each of their two ports.
crossed() {
	"$verbena" fabric show --name "$name" --json | python3 -c '
import json, sys
sent = [p["xmit_pkts"] for n in json.load(sys.stdin)["nodes"]
        if n["kind"] == "switch" for p in n["ports"]]
print(sent)
sys.exit(len(sent) != 2 * int(sys.argv[1]) or min(sent) < int(sys.argv[2]))
' "$1" "$2"
}
# shortest NUMBER LATENCY TRIES MESSAGES: the least time that a message of 8 bytes
# took through so many switches, in ns, is $least. Others than the fabric only make
# it longer.
shortest() {
	local try now

	least=
	row "$1" "$2" >"$work/row.topo"
	subnet_begins "$work/row.topo"
	for ((try = 1; try <= $3; try++)); do
		pairs "ib_send_lat through $1 switches, $try" t_typical \
			Hca1 Hca2 ib_send_lat -d ib0 -F -s 8 -n "$4"
		now=$(awk '$1 == 8 { print int($3 * 1000) }' "$work/client")
		[ "${now:-0}" -gt 0 ] && [ "$now" -lt "${least:-999999999}" ] &&
			least=$now
	done
	check "each of these messages has crossed $1 switches both ways" \
		crossed "$1" $(($3 * $4))
	subnet_ends
}
# What a switch waits by its latency= is seen in the messages' times, which thus
# measure the switches. Between two waits the fabric's process may sleep.
shortest 9 50us 2 "$(span 500 3000)"
nine=$least
shortest 1 50us 2 "$(span 500 3000)"
between "each of eight more switches with a latency of 50 us costs that, ns" \
	$(((${nine:-0} - ${least:-0}) / 8)) 45000 400000
shortest 9 1ns 4 3000
nine=$least
shortest 1 1ns 4 3000
# A switch costs less than the machine's other work does, which may make the
# difference negative.
between "each of eight more switches costs less than 3 us, ns" \
	$(((${nine:-999999999} - ${least:-0}) / 8)) -20000 2999

# --- the own fabric, of an ordinary user ---
# Two hosts; the second one joins when the first one's programs use verbs.
if ! user_can_reach_build || [ "$hosts" = no ]; then
	skip "ib_verbs: --device ib" "no network namespaces, or a build tree" \
		"that an ordinary user cannot reach"
	summary
	exit
fi
need_hosts 1500
files=$work/own
mkdir -m 700 "$files"
[ -n "${VERBENA_USERNS:-}" ] || chown 65534:65534 "$files"
# own HOST PROGRAM...
own() {
	local host=$1

	shift
	(become "$host" bash -c 'as "$@"' as user env XDG_RUNTIME_DIR="$files" \
		timeout 60 "$verbena" run --device ib -- "$@")
}
own_serve() { own a "${words[@]}"; }
own_ready() { listening a "$port" 20 "$1"; }
own_call() { own b "${words[@]}" "$HOST_A"; }
# own_pairs NAME PATTERN PROGRAM...: of hosts a and b.
own_pairs() {
	local what=$1 pattern=$2 words

	port=$((port + 1))
	words=("${@:3}" -p "$port")
	if play own_serve own_ready own_call &&
		grep -Eq -- "$pattern" "$work/client"; then
		ok "ib_verbs: --device ib: $what"
	else
		not_ok "ib_verbs: --device ib: $what (wanted: $pattern)" \
			"$work/client" "$work/server"
	fi
}
own_pairs "ibv_rc_pingpong with a host that joins" \
	'remote address: *LID 0x000' ibv_rc_pingpong
agree "--device ib: all see an active port" 'active 3' own b
for kind in ud uc srq; do
	sometimes 3 || continue
	own_pairs "ibv_${kind}_pingpong" 'remote address: *LID 0x000' \
		ibv_${kind}_pingpong
done
own_pairs "ib_write_bw" 'LID 0x' ib_write_bw -F -n 500
own_pairs "ib_send_lat" 't_typical' ib_send_lat -F -n 300
own_pairs "programs see each other's LID" 'LID 0x02' ib_read_bw -F -n 100

summary
