# SPDX-License-Identifier: BSD-2-Clause
# What the tests of fabrics share; sourced after lib.sh. $name is the fabric's
# name.
# shellcheck shell=bash disable=SC2154,SC2034 # lib.sh and the caller set them

layer=fabric # what begins the names of cases

# fabric_begin PROGRAM...: the test needs these programs; else its layer is
# skipped. The fabrics' files are the test's own.
fabric_begin() {
	local program

	export XDG_RUNTIME_DIR=$work/run
	mkdir -m 700 "$XDG_RUNTIME_DIR"
	for program; do
		command -v "$program" >/dev/null && continue
		skip "$(basename "$0" .sh)" "$program is not installed"
		summary
		exit
	done
}

# fabric_up ARGUMENT...: runs a fabric until fabric_down. Its process is $fabric;
# what it says is in $work/fabric.
fabric_up() {
	: >"$work/fabric" # else the words of the last one may be found
	"$verbena" fabric --name "$name" "$@" >"$work/fabric" 2>&1 &
	fabric=$!
	within 10 grep -q 'fabric "' "$work/fabric"
}

fabric_down() {
	kill "$fabric"
	wait "$fabric"
}

# within SECONDS COMMAND...: until it succeeds; false: it never did.
within() {
	local end=$((SECONDS + $1))

	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -le $end ] || return 1
		sleep 0.05
	done
}

# The fabric that has the node; a test with several says it otherwise.
fabric_of() { echo "$name"; }

# r NODE PROGRAM...: takes the node's place.
r() {
	local node=$1

	shift
	timeout 60 "$verbena" run --device "ib:$(fabric_of "$node")/$node" \
		-- "$@"
}

# program_of SHELL: the process in which a shell that runs r() has its program.
# Other tests, which run at the same time, have programs with the same words.
program_of() {
	local process=$1 child

	while child=$(pgrep -P "$process"); do
		process=$child
	done
	echo "$process"
}

# opensm_up NODE LOG OPTION...: with a cache of its own, since what it remembers
# of another fabric is wrong here; lines of $opensm_more are in its configuration.
# Its process is $opensm.
opensm_more=
opensm_up() {
	local node=$1 log=$2 cache

	shift 2
	cache=$(mktemp -d -p "$work")
	printf 'force_log_flush TRUE\nsminfo_polling_timeout 500\n%s\n' \
		"polling_retry_number 2
$opensm_more" >"$cache/conf"
	OSM_CACHE_DIR=$cache OSM_TMP_DIR=$cache "$verbena" run \
		--device "ib:$(fabric_of "$node")/$node" -- opensm -F "$cache/conf" \
		-f "$log" -D 0x43 -s 5 "$@" >"$log.out" 2>&1 &
	opensm=$!
}

subnet_up() {
	within "${2:-20}" grep -q 'SUBNET UP' "$1"
}

# check NAME COMMAND...: it succeeds.
check() {
	local what=$1

	shift
	if "$@" >"$work/got" 2>&1; then
		ok "$layer: $what"
	else
		not_ok "$layer: $what" "$work/got"
		return 1
	fi
}

# says NAME PATTERN NODE PROGRAM...: it succeeds, and a line of its output
# matches.
says() {
	local what=$1 pattern=$2

	shift 2
	if r "$@" >"$work/got" 2>&1 </dev/null && grep -Eq -- "$pattern" "$work/got"; then
		ok "$layer: $what"
	else
		not_ok "$layer: $what (wanted: $pattern)" "$work/got"
	fi
}

# counts NAME NUMBER PATTERN NODE PROGRAM...: so many lines match.
counts() {
	local what=$1 number=$2 pattern=$3

	shift 3
	r "$@" >"$work/got" 2>&1 </dev/null
	if [ "$(grep -Ec -- "$pattern" "$work/got")" = "$number" ]; then
		ok "$layer: $what"
	else
		not_ok "$layer: $what (wanted: $number lines of $pattern)" "$work/got"
	fi
}

equal() { python3 "$here/fabric_equal.py" "$1" "$2"; }

discovers() { # NODE FILE: ibnetdiscover prints what the file says
	r "$1" ibnetdiscover >"$work/found" 2>/dev/null && equal "$2" "$work/found"
}

guid() { r "$1" ibstat -p | head -n 1; } # of its first port

# subnet_tools: what infiniband-diags say of ibsim's net.2sw2path4hca, whose file
# is $topology, as opensm at Hca1 has set it up. Leaves $work/first.
subnet_tools() {
	counts "T2 all links active" 12 'Active/ *LinkUp' Hca3 iblinkinfo
	check "T3 discovery equals the file" discovers Hca3 "$topology"
	r Hca3 ibnetdiscover 2>/dev/null >"$work/first"
	says "T4 ibstat" 'Base lid: 5' Hca3 ibstat ib0 1
	says "T4 ibstat -l" '^ib0$' Hca3 ibstat -l
	says "T4 ibstat -p" '0x0200ca0000000301' Hca3 ibstat -p
	says "T4 sminfo" 'SMINFO_MASTER' Hca3 sminfo
	says "T4 ibaddr" 'LID start 0x5' Hca3 ibaddr
	says "T5 smpquery nodeinfo" 'NodeType:\.*Switch' Hca3 smpquery nodeinfo 3
	says "T5 smpquery by directed route" '^Lid:\.*6$' \
		Hca3 smpquery -D portinfo 0,1,3,2 1
	says "T5 smpquery, combined route" 'NodeType:\.*Channel' \
		Hca3 smpquery -c nodeinfo 3 0,2
	says "T5 smpquery nodedesc" 'Hca4' Hca3 smpquery nodedesc 6
	says "T5 smpquery switchinfo" 'LinearFdbTop:\.*' Hca3 smpquery switchinfo 2
	says "T5 smpquery pkeys" '0xffff' Hca3 smpquery pkeys 6
	says "T5 smpquery sl2vl" 'ports: in' Hca3 smpquery sl2vl 2 1
	says "T5 smpquery vlarb" 'VL' Hca3 smpquery vlarb 2 1
	says "T5 smpquery guidinfo" '0x0200ca0000000401' Hca3 smpquery guidinfo 6
	says "T5 perfquery -x" 'PortXmitPkts:\.*[1-9]' Hca3 perfquery -x 6 1
	says "T5 perfquery -a" 'PortSelect:\.*255' Hca3 perfquery -a 2
	says "T5 perfquery -R resets" 'PortXmitPkts:\.*[0-9]$' \
		Hca3 sh -c 'perfquery -R -x 6 1 && perfquery -x 6 1'
	says "T5 ibqueryerrors" '6 nodes checked, 0 bad nodes' Hca3 ibqueryerrors
	says "T5 ibportstate with its peer" 'Peer PortInfo' Hca3 ibportstate 3 3 query
	says "T6 ibtracert" 'To ca .*"Hca4"' Hca3 ibtracert 5 6
	says "T6 ibroute" '0x0006 005' Hca3 ibroute 2
	says "T6 dump_fts" '6 valid lids dumped' Hca3 dump_fts
	counts "T7 saquery -p, by RMPP" 36 'PathRecord dump' Hca3 saquery -p
	counts "T7 saquery, nodes" 6 'NodeRecord dump' Hca3 saquery
	says "T7 saquery --src-to-dst" 'dlid\.*6' Hca3 saquery --src-to-dst 5:6
	says "T7 saquery -g" 'ff12:401b:ffff::ffff:ffff' Hca3 saquery -g

	r Hca4 ibping -S >/dev/null 2>&1 &
	r Hca4 ibsysstat -S >/dev/null 2>&1 &
	check "T8 the servers are there" within 10 r Hca3 sh -c \
		'ibping -c 1 -f 6 | grep -q "1 received" && ibsysstat 6'
	says "T8 ibping" '3 received, 0% packet loss' Hca3 ibping -c 3 -f 6
	says "T8 ibsysstat" 'sysstat ping succeeded' Hca3 ibsysstat 6
	counts "T8 a second server on the port is refused" 1 "can't" \
		Hca4 ibping -S
	# Classes without an agent are answered: an error at once, no silence.
	SECONDS=0
	r Hca3 vendstat -N 6 >"$work/got" 2>&1
	r Hca3 ibccquery congestioninfo 6 >>"$work/got" 2>&1
	if [ $SECONDS -le 1 ]; then
		ok "fabric: T8 unknown classes are refused at once"
	else
		not_ok "fabric: T8 unknown classes are refused at once" "$work/got"
	fi
}

# script PROGRAM...: at Hca3, a script of infiniband-diags. Those in Perl have a
# cache of topologies in /var, which only root may write; here it is $work/perl.
script() {
	mkdir -p "$work/perl"
	cat >"$work/perl/TestCache.pm" <<-'END'
		use IBswcountlimits;
		$IBswcountlimits::cache_dir = $ENV{TEST_CACHE};
		1;
	END
	r Hca3 env PERL5OPT="-I$work/perl -MTestCache" \
		TEST_CACHE="$work/perl/cache" "$@" </dev/null
}

# names_are NAME KIND PROGRAM: the script lists exactly the nodes of the kind, a
# pattern, that the file has.
names_are() {
	grep -E "^$2[[:space:]]" "$topology" |
		sed 's/^[^"]*"\([^"]*\)".*/\1/' | sort >"$work/want"
	script "$3" >"$work/got" 2>&1
	sed -En 's/^[A-Z][a-z]*[[:space:]]*:.* "([^"]*)".*/\1/p' "$work/got" |
		sort >"$work/names"
	if [ -s "$work/want" ] && cmp -s "$work/want" "$work/names"; then
		ok "$layer: $1"
	else
		not_ok "$layer: $1" "$work/got" "$work/want"
	fi
}

# ibidsverify is silent if it finds neither a zero nor a duplicate, and what it
# has looked at is the topology.
ids_are_verified() {
	local cache=$work/perl/cache/ibnetdiscover--.topology

	rm -f "$cache"
	script ibidsverify -R && equal "$topology" "$cache"
}
# ibfindnodesusing says who uses the trunk of Switch1's port $1: the adapters
# behind it ("==>>"), which ibroute gives that port, too.
nodes_use() {
	script ibfindnodesusing -R "$(guid Switch1)" "$1" >"$work/using" 2>&1
	r Hca3 ibroute -G "$(guid Switch1)" |
		sed -En "s/^0x[0-9a-f]+ 0*$1 : \(Channel.*'(.*)'\).*/\1/p" |
		sort >"$work/want"
	sed -n '/==>>/{n;p;}' "$work/using" | tr -s ' ' '\n' |
		sed -E '/^$/d; s/^(Hca)([0-9])-([0-9])$/\1\2\n\1\3/' | sort |
		cmp - "$work/want" && grep "==>>.*Switch2" "$work/using" && return
	cat "$work/using"
	return 1
}
# member_ports NODE: the ports of the switch that have the group, "2 3".
member_ports() {
	r Hca3 ibroute -M -G "$(guid "$1")" | awk -v group="$group" '
		index($0, group) == 1 {
			for (i = 12; i < length($0); i += 2)
				if (substr($0, i + 1, 1) == "x")
					printf "%s%d", n++ ? " " : "",
						(i - 12) / 2
		}'
}

# subnet_scripts: the rest of infiniband-diags, of the same subnet: its scripts,
# and multicast.
subnet_scripts() {
	local group node

	names_are "ibhosts lists the file's adapters" '(Hca|Ca)' ibhosts
	names_are "ibswitches lists the file's switches" Switch ibswitches
	names_are "ibnodes lists the file's nodes" '(Hca|Ca|Switch)' ibnodes
	if perl -MIBswcountlimits -e 1 2>/dev/null; then
		check "ibidsverify finds every node, and nothing wrong" \
			ids_are_verified
		check "ibfindnodesusing: who uses trunk 3" nodes_use 3
		check "ibfindnodesusing: who uses trunk 5" nodes_use 5
	else
		skip "$layer: ibidsverify" "the modules of infiniband-diags" \
			"are not installed"
	fi
	for node in Hca3 Hca4; do
		check "$node joins a group" r $node "$programs/umad_reports" join
	done
	group=$(r Hca3 saquery -g |
		sed -n '/MGID.*ff12::77$/{n;s/.*0x\(.*\)/0x\L\1/p;}')
	check "ibroute -M: the group reaches Hca3, and a trunk" within 10 \
		group_reaches Switch1
	check "ibroute -M: the group reaches Hca4, and the same trunk" \
		within 10 group_reaches Switch2
	says "ibtracert -m goes by that trunk" \
		"^\\[$(member_ports Switch1 | tail -c 1)\\] -> switch.*Switch2" \
		Hca3 ibtracert -m "$group" 5 6
	# shellcheck disable=SC2016 # for that shell
	check "ibtracert -m: Hca2 is no member" r Hca3 sh -c \
		'! ibtracert -m "$0" 5 4' "$group"
}
# The group has the adapter's port, 2, and one trunk, the same in both switches.
group_reaches() {
	local ports

	ports=$(member_ports "$1")
	[[ $ports =~ ^2\ [35]$ ]] && [ "$ports" = "$(member_ports Switch1)" ]
}

# What the tests of verbs on a fabric's adapters share. The caller has set $name
# and $layer.

# ib_begin: the test uses ports of this machine, which other tests use as well.
# shellcheck disable=SC2034 # on() reads it
ib_begin() {
	HOSTS_PID_here=here
	port=$((20000 + $$ % 20000))
}
ctl() { "$verbena" fabric ctl --name "$name" "$@"; }

subnet_begins() { # FILE OPTION...: a fabric, and opensm on its Hca1
	local file=$1

	shift
	rm -f "$work/osm.log"
	fabric_up "$file" || {
		not_ok "$layer: the fabric starts" "$work/fabric"
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

# ib_pair CLIENT SERVER PROGRAM...: both ends, at the places of these nodes. What
# they write is in $work/client and $work/server.
ib_pair() {
	local from=$1 at=$2 words

	shift 2
	port=$((port + 1))
	words=("$@" -p "$port")
	play ib_pair_serve ib_pair_ready ib_pair_call
}
ib_pair_serve() { r "$at" "${words[@]}"; }
ib_pair_ready() { listening here "$port" 20 "$1"; }
ib_pair_call() { r "$from" "${words[@]}" localhost; }

# pairs NAME PATTERN CLIENT SERVER PROGRAM...: both succeed, and a line of the
# client's matches.
pairs() {
	local what=$1 pattern=$2

	shift 2
	if ib_pair "$@" && grep -Eq -- "$pattern" "$work/client"; then
		ok "$layer: $what"
	else
		not_ok "$layer: $what (wanted: $pattern)" \
			"$work/client" "$work/server" "$work/fabric"
	fi
}

# Megabytes a second that the last ib_write_bw of $1 says: average.
rate_of() { awk 'NF >= 5 && $1 ~ /^[0-9]+$/ { r = $4 } END { print int(r) }' "$1"; }

# moving FILE: the bytes that Hca4 has received, with the time, until killed.
moving() {
	while :; do
		echo "$(date +%s%N) $(counter Hca1 6 PortRcvData)"
	done >"$1"
}
# The longest time in ms without growth, while there was any to come.
longest_stall() {
	awk 'NF == 2 { if ($2 != last) { if (begun && $1 - at > most) most = $1 - at
		begun = last != ""; last = $2; at = $1 } }
		END { print int(most / 1000000) }' "$1"
}
# reroute_under_load SECONDS PULL...: T11. Hca3 writes to Hca4, and in the midst
# of it the command pulls the trunk at port 5.
reroute_under_load() {
	local seconds=$1 sampler server client

	shift
	moving "$work/moving" &
	sampler=$!
	port=$((port + 1))
	r Hca4 ib_write_bw -d ib0 -F -D "$seconds" -p $port \
		>"$work/server" 2>&1 &
	server=$!
	listening here $port 20 $server
	r Hca3 ib_write_bw -d ib0 -F -D "$seconds" -p $port localhost \
		>"$work/client" 2>&1 &
	client=$!
	sleep $((seconds / 2))
	"$@"
	if wait $client && wait $server; then
		ok "$layer: T11 a reroute under ib_write_bw is no error"
	else
		not_ok "$layer: T11 a reroute under ib_write_bw is no error" \
			"$work/client" "$work/server"
	fi
	{
		kill $sampler
		wait $sampler
	} 2>/dev/null
	between "T11 the longest pause, ms" \
		"$(longest_stall "$work/moving")" 1 2000
	says "T11 the way is the other one" '\[3\] -> switch' \
		Hca3 ibtracert 5 6
}

# between NAME VALUE LOW HIGH
between() {
	if [ "${2:-0}" -ge "$3" ] && [ "${2:-0}" -le "$4" ]; then
		ok "$layer: $1 ($2)"
	else
		not_ok "$layer: $1 ($2; wanted: $3 to $4)" \
			"$work/client" "$work/server"
	fi
}

counter() { # NODE LID NAME: a counter of the performance agent
	r "$1" perfquery -x "$2" 1 2>/dev/null |
		sed -n "s/^$3:\.*//p"
}

# lines_of COMMAND...: each line that it prints is a case.
lines_of() {
	local status=0

	timeout 60 "$@" >"$work/test" 2>&1 </dev/null || status=$?
	cat "$work/test"
	passed=$((passed + $(grep -c '^ok ' "$work/test")))
	failed=$((failed + $(grep -c '^not ok ' "$work/test")))
	[ $status -eq 0 ] && grep -q '^ok ' "$work/test" ||
		not_ok "$layer: ${*: -1} ends well (status $status)" \
			"$work/test"
}
