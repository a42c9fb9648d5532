#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Programs that ask the kernel about RDMA devices by NETLINK_RDMA, iproute2's
# rdma above all, hear of ours. tests/programs/netlink.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"
need_hosts 9000

export XDG_RUNTIME_DIR=$work/run
mkdir -m 700 "$XDG_RUNTIME_DIR"
if ! command -v rdma >/dev/null; then
	skip "netlink" "iproute2's rdma is not installed"
	summary
	exit
fi

# rdma of host a, under Verbena.
ask() {
	on a timeout 20 "$verbena" run -- rdma "$@" 2>&1 </dev/null
}

# says NAME OUTPUT ARGUMENT...: that is what rdma prints, but for spaces.
says() {
	local name=$1 want=$2 got

	shift 2
	got=$(ask "$@" | sed 's/[[:space:]]*$//')
	if [ "$got" = "$want" ]; then
		ok "netlink: $name"
	else
		echo "$got" >"$work/got"
		not_ok "netlink: $name" "$work/got"
	fi
}

# holds NAME TEST ARGUMENT...: of the JSON that rdma prints, as `o`.
holds() {
	local name=$1 test=$2

	shift 2
	ask -j "$@" >"$work/got"
	if python3 -c "
import json, os, sys
o = json.load(open(sys.argv[1]))
server = int(os.environ.get('SERVER', 0))
assert ($test)" "$work/got" 2>"$work/why"; then
		ok "netlink: $name"
	else
		not_ok "netlink: $name" "$work/got" "$work/why"
	fi
}

says "link" "link roce_veth0/1 state ACTIVE physical_state LINK_UP $(
)netdev veth0" link
export VERBENA_DEVICES=veth0,lo
says "link, loopback's asked for" \
	"link roce_veth0/1 state ACTIVE physical_state LINK_UP netdev veth0
link roce_lo/1 state ACTIVE physical_state LINK_UP netdev lo" link
says "link show of one" "link roce_lo/1 state ACTIVE physical_state LINK_UP$(
) netdev lo" link show roce_lo/1
says "no such device" "Wrong device name" link show nothing/1
says "system" "netns exclusive copy-on-fork on" system
says "dev set says why not" "Error: The names and settings of Verbena's devices $(
)cannot be changed.
error: Operation not supported" dev set roce_lo name other
says "link add says why not" "Error: Verbena makes a device for each network $(
)interface; set VERBENA_DEVICES to choose among them.
error: Operation not supported" link add other type rxe netdev lo

if [ -x /usr/bin/python3 ]; then
	holds "link in JSON" "[(d['ifname'], d['state'], d['netdev'])
		for d in o] == [('roce_veth0', 'ACTIVE', 'veth0'),
				('roce_lo', 'ACTIVE', 'lo')]" link
	holds "dev in JSON" "all(d['node_type'] == 'ca' and
		len(d['node_guid']) == 19 and 'XRC' in d['caps']
		for d in o) and len(o) == 2" -d dev
	holds "statistic in JSON" "o[0]['ifname'] == 'roce_veth0' and
		o[0]['sent_pkts'] >= 0 and 'duplicate_request' in o[0]" \
		statistic show link roce_veth0/1
	holds "no object before there is one" \
		"all(d['qp'] == d['mr'] == d['pd'] == d['ctx'] == 0
		for d in o)" resource show

	become a timeout 120 "$verbena" run -- ibv_rc_pingpong -d roce_veth0 \
		-g 1 -n 100000000 >"$work/server" 2>&1 </dev/null &
	server=$!
	listening a "$port" 10 $server
	become b timeout 120 "$verbena" run -- ibv_rc_pingpong -d roce_veth0 \
		-g 1 -n 100000000 "$HOST_A" >"$work/client" 2>&1 </dev/null &
	client=$!
	tries=0
	until ask resource show qp | grep -q RTS || [ $tries -eq 100 ]; do
		tries=$((tries + 1))
		sleep 0.05
	done
	SERVER=$(on a pgrep -P $server -x ibv_rc_pingpong) || SERVER=$server
	export SERVER
	holds "one of each, while a program runs" \
		"[d for d in o if d['ifname'] == 'roce_veth0'][0].items() >=
		dict(qp=1, mr=1, pd=1, cq=1, ctx=1, srq=0).items()" \
		resource show
	holds "its queue pair" "len(o) == 1 and o[0].items() >= dict(
		ifname='roce_veth0', port=1, type='RC', state='RTS',
		pid=server, comm='ibv_rc_pingpong').items() and
		0 < o[0]['rqpn'] != o[0]['lqpn'] > 0" resource show qp
	holds "a filter" "len(o) == 0" resource show qp link roce_veth0/1 \
		state INIT
	holds "its region" "len(o) == 1 and o[0]['mrlen'] == 4096 and
		o[0]['pid'] == server" resource show mr
	holds "its completion queue" "len(o) == 1 and o[0]['cqe'] >= 501 and
		o[0]['users'] == 2" resource show cq
	holds "its domain" "len(o) == 1 and o[0]['users'] == 2" \
		resource show pd
	id=$(ask -j resource show pd | sed 's/.*"pdn":\([0-9]*\).*/\1/')
	holds "one object by its number" \
		"len(o) == 1 and o[0]['pdn'] == $id" \
		resource show pd dev roce_veth0 pdn "$id"
	# The number of its owner's process is not another user's to see.
	if user_can_reach_build && [ -z "${VERBENA_USERNS:-}" ]; then
		if on a setpriv --reuid=65534 --regid=65534 --clear-groups \
			env -u XDG_RUNTIME_DIR timeout 20 "$verbena" run -- \
			rdma resource show qp >"$work/got" 2>&1 &&
			[ ! -s "$work/got" ]; then
			ok "netlink: another user's objects are not seen"
		else
			not_ok "netlink: another user's objects are not seen" \
				"$work/got"
		fi
	fi
	kill -9 "$SERVER"
	wait $server 2>/dev/null
	holds "nothing is left of one that was killed" \
		"all(d['qp'] == d['mr'] == d['pd'] == d['ctx'] == 0
		for d in o)" resource show
	kill $client 2>/dev/null
	wait $client 2>/dev/null

	# Sockets as others use them.
	if on a timeout 20 "$verbena" run -- /usr/bin/python3 \
		"$here/netlink_socket.py" >"$work/got" 2>&1; then
		while read -r line; do ok "netlink: $line"; done <"$work/got"
	else
		not_ok "netlink: the socket" "$work/got"
	fi
else
	skip "netlink: what JSON says" "there is no python3"
fi
summary
