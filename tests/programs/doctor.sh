#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The command itself: help, refusals, `verbena devices`, `verbena counters`, and
# `verbena doctor`, of which each finding is provoked: tests/programs/doctor.sh
# shellcheck disable=SC2016 # scripts for other shells
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"

# says NAME STATUS PATTERN COMMAND...: the command ends so, and prints that.
says() {
	local name=$1 status=$2 pattern=$3 ended=0

	shift 3
	"$@" </dev/null >"$work/said" 2>&1 || ended=$?
	if [ $ended -eq "$status" ] && grep -Eq -- "$pattern" "$work/said"; then
		ok "$name"
	else
		echo "(status $ended, not $status; wanted: $pattern)" >>"$work/said"
		not_ok "$name" "$work/said"
	fi
}

#
# The command line.
#

for word in help --help -h; do
	says "verbena $word" 0 '^usage: verbena COMMAND' "$verbena" $word
done
for word in version --version -V; do
	says "verbena $word" 0 '^verbena [0-9]' "$verbena" $word
done
says "no command" 2 '^verbena: no command' "$verbena"
says "an unknown command" 2 'there is no command "walk"' "$verbena" walk
says "an unknown option" 2 'there is no option "--walk"' "$verbena" --walk
# refused NAME PATTERN WORD...: by one line, with status 2.
refused() {
	local name=$1 pattern=$2

	shift 2
	says "refused: $name" 2 "$pattern" "$verbena" "$@"
	[ "$(wc -l <"$work/said")" -le 2 ] &&
		[ "$(grep -vc '^(status' "$work/said")" -eq 1 ] ||
		not_ok "refused in one line: $name" "$work/said"
}
"$verbena" help --all >"$work/all"
commands=0
while IFS=$'\t' read -r kind name rest; do
	[ "$kind" = command ] || continue
	commands=$((commands + 1))
	# shellcheck disable=SC2086 # one or two words
	{
		says "$name --help" 0 "^usage: verbena $name" "$verbena" \
			$name --help
		says "help $name" 0 "^usage: verbena $name" "$verbena" \
			help $name
		refused "$name --walk" "^verbena $name: there is no option" \
			$name --walk
	}
done <"$work/all"
if [ $commands -ge 14 ]; then
	ok "help --all lists the commands"
else
	not_ok "help --all lists the commands" "$work/all"
fi
refused "a value" '"x" is not "all"' run --rsockets=x true
refused "a value that is missing" 'needs a value, SPEC' run --device
refused "a value that is too much" 'takes no value' broker --daemon=3
refused "seconds" '"soon" is not a number of seconds' broker --linger soon
refused "negative seconds" '"-1" is not a number' fabric --linger -1 x
refused "a partition" '"0" is not a number' ipoib --device ib --pkey 0
refused "a number" 'is not a number from 0 to 65535' eoib --device ib \
	--network 65536
refused "no adapter of a fabric" 'give one adapter' ipoib --device eth0
refused "a word" '"x" is too much' devices x
refused "a second device" '"y" is too much' counters x y
refused "a second peer" '"y" is too much' doctor x y
refused "no program" 'no program follows' doctor --
refused "-- for a device" '--device needs a value, SPEC' run --device -- ls
refused "-- for another value" '--bytes needs a value' \
	fabric capture --bytes -- a
refused "no program to run" 'no program was named' run
refused "two forms" 'exclude each other' fabric show --json --svg x
refused "a fabric's command" 'no command was named' fabric ctl
refused "bytes" '"1X" is not a number of bytes' fabric capture --bytes 1X \
	a b c

need_hosts 1500

# finds NAME STATUS ID PATTERN [PATTERN-OF-MEND] -- COMMAND...: the doctor, run
# by the command, has a finding of that id and status that says so, in JSON that
# Python reads.
finds() {
	local name=$1 status=$2 id=$3 pattern=$4 mend=

	shift 4
	[ "$1" = -- ] || { mend=$1 && shift; }
	shift
	"$@" </dev/null >"$work/said" 2>"$work/errors"
	if python3 - "$work/said" "$status" "$id" "$pattern" "$mend" \
		>"$work/judged" 2>&1 <<-'END'; then
			import json, re, sys
			said = json.load(open(sys.argv[1]))
			status, id, pattern, mend = sys.argv[2:]
			assert said['format'] == 1, said
			assert list(said) == ['format', 'version', 'status',
			                      'findings'], said
			for f in said['findings']:
			    assert list(f) == ['id', 'status', 'text', 'mend'], f
			assert any(f['id'] == id and f['status'] == status
			           and re.search(pattern, f['text'])
			           and re.search(mend, f['mend'] or '')
			           for f in said['findings']), \
			    f'no {status} {id}: {pattern} {mend}'
		END
		ok "doctor: $name"
	else
		not_ok "doctor: $name" "$work/judged" "$work/said" \
			"$work/errors"
	fi
}
doctor=("$verbena" doctor --json)

finds "a host without faults" ok device 'roce_veth0: active.*-g 1' -- \
	a "${doctor[@]}"
finds "its own packets arrive" ok echo "$HOST_A to itself" -- a "${doctor[@]}"
finds "one host" ok one-host 'copy directly' -- a "${doctor[@]}"
says "doctor: as text, status 0" 0 '^ok +kernel +Linux' a "$verbena" doctor
says "doctor: at most ten seconds" 0 '' timeout 10 nsenter -t "$HOSTS_PID_a" \
	-n -- "$verbena" doctor
finds "an ordinary user" ok echo 'to itself' -- \
	a bash -c 'as user "$@"' as "${doctor[@]}"
finds "a network namespace without a network" problem device 'no device' \
	'ip link set' -- unshare -n "${doctor[@]}"
finds "without /proc" warning proc 'not mounted' 'mount -t proc' -- \
	a unshare -m sh -c 'mount -t tmpfs none /proc && exec "$@"' sh \
	"${doctor[@]}"
finds "a broker that runs" ok broker 'a broker runs' -- \
	a sh -c '"$1" broker --linger 3 & sleep 0.3; "$@" doctor --json' sh \
	"$verbena"

# Limits.
finds "little locked memory" note memlock 'limited to 64 KiB' -- \
	a bash -c 'ulimit -l 64 && exec "$@"' sh "${doctor[@]}"
finds "few descriptors" warning nofile 'limited to 100:' 'ulimit -n' -- \
	a bash -c 'ulimit -n 100 && exec "$@"' sh "${doctor[@]}"
finds "small files" warning fsize 'limited to 1000 KiB' 'ulimit -f' -- \
	a bash -c 'ulimit -f 1000 && exec "$@"' sh "${doctor[@]}"
finds "a small address space" warning as 'limited to 900000 KiB' 'ulimit -v' \
	-- a bash -c 'ulimit -v 900000 && exec "$@"' sh "${doctor[@]}"
finds "no direct copies" warning one-host 'exchange packets over loopback' -- \
	a "$programs/deny" "${doctor[@]}"
finds "no direct copies wanted" note one-host 'VERBENA_NEAR is off' unset -- \
	a env VERBENA_NEAR=off "${doctor[@]}"
if [ -w /proc/sys/kernel/yama/ptrace_scope ] &&
	scope=$(cat /proc/sys/kernel/yama/ptrace_scope) &&
	echo 2 2>/dev/null >/proc/sys/kernel/yama/ptrace_scope; then
	finds "ptrace_scope" warning one-host 'ptrace_scope is 2' sysctl -- \
		a bash -c 'as user "$@"' as "${doctor[@]}"
	echo "$scope" >/proc/sys/kernel/yama/ptrace_scope
else
	skip "doctor: ptrace_scope" "the kernel has no Yama that may be set"
fi
finds "a user namespace" note namespaces 'user namespace' -- \
	a unshare -Ur "${doctor[@]}"
finds "no directory for files" warning files 'cannot be used' \
	XDG_RUNTIME_DIR -- a unshare -m sh -c 'unset XDG_RUNTIME_DIR
	for d in /run/verbena "/tmp/verbena-$(id -u)"; do
		mkdir -p "$d" && mount -t tmpfs -o uid=12345,mode=700 none "$d"
	done && exec "$@"' sh "${doctor[@]}"

# The port.
# port_is HOST [-z]: until port 4791 is taken there, or (-z) free.
port_is() {
	for _ in {1..200}; do
		case ${2:-}$(on "$1" ss -Hlun 'sport = :4791') in
		-z | [!-]*) return ;;
		esac
		sleep 0.05
	done
	return 1
}
port_is a -z
become a "$programs/hold_port" >"$work/holder" < <(exec sleep 60) &
holder=$!
port_is a
# with_slot N COMMAND...: while a program has the name of that slot.
with_slot() {
	python3 -c 'import socket, subprocess, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.bind("\0verbena/slot/" + sys.argv[1])
sys.exit(subprocess.call(sys.argv[2:]))' "$@"
}
export -f with_slot
finds "programs without RoCE do not have the port" problem port \
	'taken by hold_port' -- a bash -c 'with_slot 300 "$@"' sh "${doctor[@]}"
finds "programs with RoCE have it" note port 'whose broker has ended' -- \
	a bash -c 'with_slot 200 "$@"' sh "${doctor[@]}"
finds "the port is another program's" problem port \
	'taken by hold_port \(PID [0-9]+' '^kill [0-9]+' -- a "${doctor[@]}"
says "doctor: a problem is status 1" 1 '^problem +port' a "$verbena" doctor
finds "the port is one's that this user does not see" problem port \
	'UDP port 4791 is taken' -- a unshare -m sh -c \
	'mount -t tmpfs none /proc && exec "$@"' sh "${doctor[@]}"
says "devices, the port taken" 0 'GID 1: ::ffff:10.77.0.1, RoCE v2' \
	a "$verbena" devices
kill $holder
wait $holder 2>/dev/null
# A program that holds the port chooses its own name.
printf -v name 'h\033]0;x\a'
cp "$programs/hold_port" "$work/$name"
become a "$work/$name" >"$work/holder" < <(exec sleep 60) &
holder=$!
port_is a
says "doctor: no byte of a program's name commands the terminal" 1 \
	'taken by h\?\]0;x\?' a "$verbena" doctor
kill $holder
wait $holder 2>/dev/null
port_is a -z

# Devices.
says "devices: the port" 0 'port 1: ACTIVE, link layer Ethernet' \
	a "$verbena" devices
says "devices: which index" 0 'give -g 1 .* -x 1' a "$verbena" devices
says "devices: iWARP" 0 'GID 0: .*, iWARP' a "$verbena" devices \
	--device iwarp:veth0

#
# Peers.
#

# answers SECONDS HOST: a doctor there answers others.
answers() {
	become "$2" "$verbena" doctor --answer "$1" &
	answer_pid=$!
	port_is "$2"
}
silent() {
	kill "$answer_pid" 2>/dev/null
	wait "$answer_pid" 2>/dev/null
	port_is b -z
}
to_b=("${doctor[@]}" "$HOST_B")
finds "a peer without Verbena" problem peer 'port 4791 is closed' \
	'doctor --answer' -- a "${to_b[@]}"
finds "no such host" problem peer 'do not arrive: No route to host|off' ping \
	-- a "${doctor[@]}" 10.77.0.99
finds "no such name" problem peer-name 'no known name' getent -- \
	a "${doctor[@]}" nobody.invalid
finds "no route" problem peer-route 'no route' 'ip route' -- \
	a "${doctor[@]}" 192.0.2.1
finds "this host by loopback" ok peer 'packets with 32 to 1024 bytes' -- \
	a "${doctor[@]}" 127.0.0.1
answers 120 b
finds "a peer with Verbena" ok peer \
	'^12 packets with 32 to 1024 bytes went to 10.77.0.2' -- a "${to_b[@]}"
finds "by IPv6" ok peer 'fd77::2\) and back' -- a "${doctor[@]}" "$HOST_B6"
finds "the index to give" ok peer-device 'roce_veth0 -g 1 .*-x 1' -- \
	a "${to_b[@]}"
b ip link set veth0 mtu 4000
a ip link set veth0 mtu 4000
finds "equal MTUs" ok peer '32 to 2048 bytes' -- a "${to_b[@]}"
b ip link set veth0 mtu 1500
finds "the peer's MTU is smaller" problem peer-mtu \
	'2048 bytes or more do not get to .* MTU of 4000, the peer.s 1500' \
	'^-m 1024' -- a "${to_b[@]}"
finds "the peer's MTU is larger" note peer-mtu \
	'MTU is 1500 here and 4000 there' '^-m 1024' -- \
	b "${doctor[@]}" "$HOST_A"
a ip link set veth0 mtu 1500
if ! a nft list ruleset >/dev/null 2>&1; then
	skip "doctor: firewalls" "no nft here"
else
	drop() { # HOST CHAIN WHAT
		on "$1" nft -f - <<-END
			table inet test {
				chain c {
					type filter hook $2 priority 0;
					udp dport 4791 $3
				}
			}
		END
	}
	pass() { on "$1" nft delete table inet test; }
	drop b input drop
	finds "the peer's firewall drops" problem peer \
		'is there, but answers no packet' 'nft' -- a "${to_b[@]}"
	finds "there it says so" problem firewall 'udp dport 4791 drop' \
		'nft -a list ruleset' -- b "${doctor[@]}"
	finds "an ordinary user there hears of it, too" problem echo \
		'do not arrive' 'nft' -- b bash -c 'as user "$@"' as \
		"${doctor[@]}"
	pass b
	drop b input reject
	finds "the peer's firewall rejects" problem peer 'is closed' -- \
		a "${to_b[@]}"
	pass b
	drop a output drop
	finds "this host's firewall drops what leaves" problem firewall \
		'as they leave' -- a bash -c 'as user "$@"' as "${to_b[@]}"
	pass a
	drop a input 'meta length > 1000 drop'
	finds "long packets do not come back" problem peer-mtu \
		'1024 bytes or more come to, but not back' -- a "${to_b[@]}"
	pass a
	b nft -f - <<-'END'
		table inet test {
			chain c {
				type filter hook input priority 0;
				policy drop;
				tcp dport 4791 accept
			}
		}
	END
	finds "a policy of drop" warning firewall 'drops what no rule' accept \
		-- b "${doctor[@]}"
	pass b
	# judged WANTED RULE [SET]: of the doctor's findings "firewall", where
	# the input chain has the policy drop and this rule.
	judged() {
		local got

		on b nft -f - <<-END
			table inet test {
				${3:-}
				chain c {
					type filter hook input priority 0; policy drop;
					$2
				}
			}
		END
		# Without the port's own directory in PATH, as ordinary users.
		got=$(on b env PATH=/usr/bin:/bin "$verbena" doctor |
			awk '$2 == "firewall" { print $1 }' | xargs)
		[ "${got:-none}" = "$1" ] && ok "doctor: nft: $2" ||
			not_ok "doctor: nft: $2: ${got:-none}, not $1"
		pass b
	}
	judged none 'udp dport 4791 accept'
	judged none 'udp dport { 53, 4790-4792 } accept'
	judged none 'udp dport @s accept' \
		'set s { type inet_service; elements = { 53, 4791 }; }'
	judged warning 'udp dport @s drop' \
		'set s { type inet_service; elements = { 53, 14791 }; }'
	judged problem 'udp dport { 53, 4791 } counter packets 1 bytes 2 drop'
	judged problem 'udp dport 4000-5000 reject'
	judged warning 'udp dport 53 counter packets 4791 bytes 4791 drop'
	judged warning 'udp dport 14791 drop'
	judged warning 'tcp dport 4791 drop'
	judged warning 'udp sport 4791 drop'
	judged warning 'udp dport 53 drop comment "udp dport 4791 drop"'
	# Verdict maps, and what is not understood.
	judged none 'udp dport vmap { 53 : drop, 4791 : accept }'
	judged problem 'udp dport vmap { 53 : accept, 4000-5000 : drop }'
	judged warning 'udp dport vmap { 53 : drop, 14791 : accept }'
	judged problem 'udp dport vmap @m' \
		'map m { type inet_service : verdict; elements = { 53 : accept, 4791 : drop }; }'
	judged none 'udp dport vmap @m' \
		'map m { type inet_service : verdict; elements = { 4791 : accept }; }'
	# Behind the key of an element may stand more.
	judged problem 'udp dport vmap @m' \
		'map m { type inet_service : verdict; flags interval; counter; elements = { 53 counter packets 4791 bytes 2 : accept, 4000-5000 counter packets 4 bytes 5 : drop }; }'
	judged none 'udp dport vmap @m' \
		'map m { type inet_service : verdict; counter; elements = { 53 counter packets 4791 bytes 4791 : drop, 4791 comment "a : drop" : accept }; }'
	judged warning 'udp dport @s drop' \
		'set s { type inet_service; counter; elements = { 53 counter packets 4791 bytes 4791 }; }'
	judged problem 'udp dport @s drop' \
		'set s { type inet_service; counter; elements = { 53, 4791 counter packets 1 bytes 2 }; }'
	judged "warning note" 'ip saddr . udp dport vmap { 10.0.0.1 . 4791 : drop }'
	judged "warning note" 'udp dport . ip saddr @s drop' \
		'set s { type inet_service . ipv4_addr; elements = { 4791 . 10.0.0.1 }; }'
	judged "warning note" 'udp dport vmap { 4791 : jump d }' 'chain d { }'
fi
silent
# with_tool SCRIPT: the doctor's line of the firewall where iptables-save, which
# this shell script plays, is the only tool.
with_tool() {
	on b unshare -m sh -c 'mount -t tmpfs none /usr/sbin &&
		{ [ -z "$1" ] || { printf "#!/bin/sh\n%s\n" "$1" \
			>/usr/sbin/iptables-save &&
			chmod 755 /usr/sbin/iptables-save; }; } &&
		PATH=/usr/bin:/bin && exec "$2" doctor' sh "$1" "$verbena"
}
if [ -e /usr/bin/nft ] || [ -e /usr/bin/iptables-save ] || [ ! -L /sbin ]; then
	skip "doctor: iptables" "tools are elsewhere"
else
	# tool NAME PATTERN SCRIPT
	tool() {
		with_tool "$3" >"$work/said" 2>&1
		grep -E '^[a-z]+ +firewall' "$work/said" >"$work/line" ||
			echo none >"$work/line"
		grep -qE "$2" "$work/line" && ok "doctor: $1" ||
			not_ok "doctor: $1" "$work/said"
	}
	tool "no tool" 'note .*no nft or iptables here' ''
	tool "a tool that refuses" 'note .*may not see' 'exit 1'
	tool "many rules" 'note .*too many to read' \
		'yes -- "-A INPUT -p udp --dport 53 -j DROP"'
	while IFS='|' read -r wanted rule; do
		tool "iptables: $rule" "$wanted" "echo ':INPUT DROP [4791:4791]'
			echo '$rule'"
	done <<-'END'
		^problem .*stops|-A INPUT -p udp -m udp --dport 4791 -m comment --comment "no x" -j DROP
		^problem .*stops|-A INPUT -p udp -m multiport --dports 53,4790:4795 -j REJECT
		^none|-A INPUT -p udp -m udp --dport 4791 -j ACCEPT
		^warning|-A INPUT -p tcp -m tcp --dport 4791 -j DROP
		^warning|-A INPUT -p udp -m udp ! --dport 4791 -j ACCEPT
		^warning|-A INPUT -p udp -m udp --dport 53 -m comment --comment DROP -j ACCEPT
		^warning|-A INPUT -p udp -m udp --dport 14791 -c 4791 4791 -j DROP
		^note .*not understand|-A INPUT -p udp -m set --match-set blocked dst -j DROP
	END
fi

#
# Programs.
#

compile() { # COMPILER... : $work/program
	echo 'int main(void) { return 0; }' |
		"$@" -x c -o "$work/program" - 2>/dev/null
}
finds "a plain program" ok program "loads Verbena's libibverbs" -- \
	a "${doctor[@]}" -- ibv_rc_pingpong
finds "one that is not linked with it" ok program 'is not linked' -- \
	a "${doctor[@]}" -- true
finds "none" problem program 'there is no program' -- \
	a "${doctor[@]}" -- no-such-program
compile gcc -static && finds "a static program" problem program \
	'statically linked' -- a "${doctor[@]}" -- "$work/program"
if compile musl-gcc; then
	finds "a program for musl" problem program 'linked for musl' -- \
		a "${doctor[@]}" -- "$work/program"
else
	skip "doctor: a program for musl" "no musl-gcc"
fi
# The doctor executes nothing of these, of which each would make a file.
mkdir -m 777 "$work/ran"
echo "#include <fcntl.h>
int main(void) { return creat(\"$work/ran/file\", 0666) < 0; }" >"$work/ran.c"
# untouched NAME PATTERN COMMAND...: and no file is there afterwards.
untouched() {
	local name=$1 pattern=$2

	shift 2
	finds "$name" note program "$pattern" -- "$@"
	[ ! -e "$work/ran/file" ] && ok "doctor: $name: not executed" ||
		not_ok "doctor: $name: executed"
	rm -f "$work/ran/file"
}
gcc -static -o "$work/loader" "$work/ran.c" &&
	gcc -no-pie -Wl,--dynamic-linker="$work/loader" -o "$work/odd" "$work/ran.c"
untouched "a loader of its own" "names a loader that is not glibc's, $work/lo" \
	a "${doctor[@]}" -- "$work/odd"
cp "$work/loader" "$work/ld-linux-x.so"
gcc -no-pie -Wl,--dynamic-linker="$work/ld-linux-x.so" -o "$work/odd" "$work/ran.c"
finds "a loader with glibc's name" ok program 'is not linked' -- \
	a "${doctor[@]}" -- "$work/odd"
[ ! -e "$work/ran/file" ] && ok "doctor: a loader with glibc's name: not executed" ||
	not_ok "doctor: a loader with glibc's name: executed"
rm -f "$work/ran/file"
cp "$work/loader" "$work/unread" && chmod 111 "$work/unread"
untouched "a program that may not be read" 'may execute .*, but not read it' \
	a bash -c 'as user "$@"' as "${doctor[@]}" -- "$work/unread"
echo ": >$work/ran/file" >"$work/text" && chmod 755 "$work/text"
untouched "a text" 'neither an ELF program nor a script' \
	a "${doctor[@]}" -- "$work/text"
if [ -n "${VERBENA_USERNS:-}" ]; then
	skip "doctor: privileges of files" "not root"
else
	compile gcc
	chmod 4755 "$work/program"
	finds "a set-user-ID program" problem program 'is set-user-ID' \
		'chmod' -- a bash -c 'as user "$@"' as "${doctor[@]}" -- \
		"$work/program"
	chmod 755 "$work/program"
	if setcap cap_net_raw+ep "$work/program" 2>/dev/null; then
		finds "file capabilities" problem program \
			'has file capabilities' 'setcap -r' -- \
			a bash -c 'as user "$@"' as "${doctor[@]}" -- \
			"$work/program"
	else
		skip "doctor: file capabilities" "setcap does not work here"
	fi
fi
# A program with an rpath of the old kind, which goes before the library path.
mkdir -p "$work/other" "$work/venv/bin" "$work/dist"
echo 'int ibv_fork_init(void) { return 0; }' | gcc -shared -fPIC \
	-Wl,-soname,libibverbs.so.1 -x c -o "$work/other/libibverbs.so.1" -
echo 'int ibv_fork_init(void); int main(void) { return ibv_fork_init(); }' |
	gcc -x c -o "$work/rpath" - -x none "$work/other/libibverbs.so.1" \
		-Wl,--disable-new-dtags,-rpath,"$work/other"
finds "an rpath" problem program 'would load .*/other/libibverbs.so.1' \
	patchelf -- a "${doctor[@]}" -- "$work/rpath"
# What pip makes of a wheel with libraries.
wheel=$work/venv/lib/python3.11/site-packages
mkdir -p "$wheel/torchlike.libs"
touch "$wheel/torchlike.libs/libibverbs-1a2b3c4d.so.1.14.41.0"
ln -s /usr/bin/python3 "$work/venv/bin/python3"
finds "a wheel in a Python's packages" problem program \
	'libibverbs-1a2b3c4d.so.1.14.41.0 is a libibverbs that a package' \
	patchelf -- a "${doctor[@]}" -- "$work/venv/bin/python3"
finds "a directory with a wheel" problem program 'libibverbs-1a2b' -- \
	a "${doctor[@]}" -- "$work/venv"
mkdir -p "$work/it's \$(x)/a.libs"
touch "$work/it's \$(x)/a.libs/libibverbs.so.1"
finds "names in a mend are words of a shell" problem program 'a package' \
	"^mv '$work/it'.''s .\(x\)/a.libs/libibverbs.so.1' '" -- \
	a "${doctor[@]}" -- "$work/it's \$(x)"
finds "a directory without one" ok program 'nothing in' -- \
	a "${doctor[@]}" -- "$work/dist"
says "run warns of the wheel" 0 'warning: .*libibverbs-1a2b.* a package' \
	a "$verbena" run -- "$work/venv/bin/python3" -c ''

#
# Counters.
#

count() { a "$verbena" counters roce_veth0 | awk "/$1/ { print \$NF }"; }
before=$(count one_host_requests)
if pair root a a "$programs/data_test" -d roce_veth0 -- "$programs/data_test" \
	-d roce_veth0 -n 100 "$HOST_A" &&
	[ $(($(count one_host_requests) - ${before:-0})) -ge 100 ] &&
	[ "$(count one_host_bytes)" -gt 0 ]; then
	ok "counters: requests of one host"
else
	a "$verbena" counters >"$work/said"
	not_ok "counters: requests of one host" "$work/said" "$work/client"
fi
summary
