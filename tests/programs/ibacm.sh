#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The unmodified ibacm on an emulated fabric: ib_acme asks it, and so does
# rdma_getaddrinfo(), by which programs connect to IP addresses that no
# interface has. tests/programs/ibacm.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
# shellcheck source=tests/programs/fabric_lib.sh
. "$here/fabric_lib.sh"
tests_begin "$0" "$@"

fabric_begin opensm ibacm ib_acme ucmatose rdma_client
topology=/usr/share/doc/ibsim-utils/net-examples/net.2sw2path4hca
[ -e "$topology" ] || {
	skip "ibacm" "the examples of ibsim-utils are not installed"
	summary
	exit
}
need_hosts 1500
name=acm$$
layer=ibacm
lid4=6

# ibacm has the names of its sockets built in, in /run. Each host gets a /run of
# its own, where Verbena's files are those of all.
for host in a b; do
	mkdir -p "$work/run_$host/verbena" "$work/acm_$host"
done
# at HOST NODE PROGRAM...: this shell becomes the program.
at() {
	local host=$1 node=$2

	shift 2
	# shellcheck disable=SC2016 # for that shell
	become "$host" unshare -m sh -c '
		[ ! -d /run/verbena ] || mount --rbind /run/verbena "$0/verbena"
		mount --rbind "$0" /run
		exec "$@"' "$work/run_$host" timeout -k 5 50 "$verbena" run \
		--device "ib:$name/$node" -- "$@"
}
# daemon HOST NODE NAME...: ibacm, whose port has the names, or addresses. Its
# process is $daemon.
providers=$(echo "$(dirname "$(command -v ibacm)")"/../lib/*/ibacm)
daemon() {
	local dir=$work/acm_$1 host=$1 node=$2

	shift 2
	printf '%s ib0 1 default\n' "$@" >"$dir/addresses"
	rm -f "$work/run_$host/ibacm.sock"
	cat >"$dir/options" <<-END
		log_file $dir/log
		log_level 1
		lock_file $dir/lock
		provider_lib_path $providers
		support_ips_in_addr_cfg 1
	END
	at "$host" "$node" ibacm -P -A "$dir/addresses" -O "$dir/options" \
		>"$dir/out" 2>&1 &
	daemon=$!
	within 10 test -S "$work/run_$host/ibacm.sock"
}
# acme NAME PATTERN OPTION...: ib_acme at host a succeeds, and says so.
acme() {
	local what=$1 pattern=$2

	shift 2
	if (at a Hca3 ib_acme "$@") >"$work/acme" 2>&1 &&
		grep -Eq -- "$pattern" "$work/acme"; then
		ok "ibacm: $what"
	else
		not_ok "ibacm: $what (wanted: $pattern)" "$work/acme" \
			"$work/acm_a/log" "$work/acm_b/log"
	fi
}
# meet NAME SERVER... -- CLIENT...: both end well. The server is at Hca4.
meet() {
	local what=$1 server=() client=() pid

	shift
	ends "$@"
	(at b Hca4 "${server[@]}") </dev/null >"$work/server" 2>&1 &
	pid=$!
	if within 10 met && wait $pid; then
		ok "ibacm: $what"
	else
		kill $pid 2>/dev/null
		not_ok "ibacm: $what" "$work/server" "$work/client"
	fi
}
# The client, until there is a server.
met() { (at a Hca3 "${client[@]}") </dev/null >"$work/client" 2>&1; }

fabric_up "$topology" || {
	not_ok "ibacm: the fabric starts" "$work/fabric"
	summary
	exit
}
opensm_up Hca1 "$work/osm.log"
check "the subnet comes up" subnet_up "$work/osm.log"

if check "ibacm runs on host a" daemon a Hca3 10.9.0.3 hosta; then
	daemon_a=$daemon
	check "ibacm runs on host b" daemon b Hca4 10.9.0.4 hostb

	acme "an address leads to a path" "dlid: $lid4\$" \
		-f i -s 10.9.0.3 -d 10.9.0.4 -v
	acme "which is the subnet administrator's" 'SA verification: success' \
		-f i -s 10.9.0.3 -d 10.9.0.4 -v
	acme "so does a name" "dlid: $lid4\$" -f n -s hosta -d hostb
	acme "LIDs lead to a path" 'SA verification: success' \
		-f l -s 5 -d 6 -v
	acme "its end points" ',0xffff,.*,ibacmp,10.9.0.3' -e

	# No interface has these addresses.
	meet "ucmatose" ucmatose -C 3 -- ucmatose -b 10.9.0.3 -s 10.9.0.4 -C 3
	# Where the program names no source, ibacm takes that of the route.
	on a ip addr add 10.9.0.3/32 dev lo
	on a ip route add 10.9.0.4/32 via 10.77.0.2 src 10.9.0.3
	acme "the source is that of the route" "dlid: $lid4\$" \
		-f i -d 10.9.0.4 -v
	meet "rdma_client, by rdma_create_ep()" rdma_server -- \
		rdma_client -s 10.9.0.4

	# A daemon that hangs costs 3 s; one that has ended, nothing.
	hangs() {
		local begun=$SECONDS

		! met && [ $((SECONDS - begun)) -ge 2 ] &&
			[ $((SECONDS - begun)) -le 10 ]
	}
	ends_at_once() {
		local begun=$SECONDS

		! met && [ $((SECONDS - begun)) -le 2 ]
	}
	client=(ucmatose -s 10.9.0.4)
	process=$(program_of "$daemon_a")
	kill -STOP "$process"
	check "a daemon that hangs: the client goes on without" hangs
	kill -KILL "$process"
	wait "$daemon_a" 2>/dev/null
	check "a daemon that was killed: the client goes on at once" ends_at_once
fi
kill "$daemon" 2>/dev/null
wait "$daemon" 2>/dev/null

# --- beside IPoIB: ibacm takes the addresses of the interfaces ---
ipoib() { # HOST NODE ADDRESS: an interface there; its process is $iface
	become "$1" "$verbena" ipoib --device "ib:$name/$2" --name ib0 "$3" \
		>"$work/iface_$1" 2>&1 &
	iface=$!
	within 20 grep -q MTU "$work/iface_$1"
}
if [ "$hosts" = no ] || [ ! -c /dev/net/tun ]; then
	skip "ibacm: beside IPoIB" \
		"no network namespaces here, or no /dev/net/tun"
elif check "an interface of IPoIB on host a" ipoib a Hca3 10.9.1.3/24; then
	iface_a=$iface
	check "and on host b" ipoib b Hca4 10.9.1.4/24
	iface_b=$iface
	check "ibacm runs beside it on host a" daemon a Hca3 hosta
	daemon_a=$daemon
	check "and on host b" daemon b Hca4 hostb
	acme "it knows the interface's address" ',0xffff,.*,ibacmp,.*10.9.1.3' -e
	acme "which leads to a path" "dlid: $lid4\$" \
		-f i -s 10.9.1.3 -d 10.9.1.4 -v
	on a ip addr add 10.9.1.33/24 dev ib0
	later() { (at a Hca3 ib_acme -e) 2>&1 | grep -q 10.9.1.33; }
	check "it learns an address that comes later" within 10 later
	address() { # the address of RFC 4391, of the port fe80::200:ca00:0:301
		(at a Hca3 cat /sys/class/net/ib0/address) |
			grep -Eqx '00(:[0-9a-f]{2}){3}:fe:80:.*:00:03:01'
	}
	check "the interface has the address of its port" address
	kill "$iface_a" "$iface_b" "$daemon_a" "$daemon"
	wait "$iface_a" "$iface_b" "$daemon_a" "$daemon" 2>/dev/null
fi
kill "$opensm" 2>/dev/null
wait "$opensm" 2>/dev/null
fabric_down
summary
