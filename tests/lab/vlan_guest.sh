#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# RoCEv1 on a VLAN's interface, between two network namespaces of one machine;
# each frame that passes is checked: vlan_guest.sh VERBENA CHECKER. It runs in the
# lab's guest, whose kernel has VLANs.
set -u
verbena=$1 checker=$2
work=$(mktemp -d /run/vlan.XXXXXX) || exit
export XDG_RUNTIME_DIR=$work TMPDIR=$work VERBENA_DEVICES=rocev1:v5
pids=()
trap 'kill "${pids[@]}" 2>/dev/null; rm -rf "$work"' EXIT

at() { # END COMMAND...: in the namespace of that end, 0 or 1
	local end=$1

	shift
	nsenter -t "${pids[end]}" -n "$@"
}
within() { # SECONDS COMMAND...: until it succeeds
	local end=$((SECONDS + $1))

	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -le $end ] || return
		sleep 0.2
	done
}
has_own() { [ "$(readlink "/proc/$1/ns/net")" != "$(readlink /proc/$$/ns/net)" ]; }
for end in 0 1; do
	unshare -n sleep infinity &
	pids[end]=$!
	within 20 has_own $! || exit
done
ip link add p0 type veth peer name p1 || exit
for end in 0 1; do
	ip link set p$end netns "${pids[end]}" || exit
	at $end ip link set lo up
	at $end ip link set p$end up
	at $end ip link add link p$end name v5 type vlan id 5 || exit
	at $end ip address add 10.78.0.$((end + 1))/24 dev v5
	at $end ip link set v5 up
done

nsenter -t "${pids[0]}" -n dumpcap -q -P -i p0 -w "$work/frames" \
	-f 'ether proto 0x8915 or (vlan and ether proto 0x8915)' \
	>"$work/dumpcap" 2>&1 &
dumpcap=$!
pids+=("$dumpcap")
within 30 grep -q File: "$work/dumpcap" || exit
index=$(at 0 "$verbena" run -- ibv_devinfo -v -d rocev1_v5 |
	sed -n 's/.*GID\[ *\([0-9]*\)\].*:0a4e:0001, RoCE v1$/\1/p')
listens() { at 0 ss -Hltn "sport = $1" | grep -q .; }
port=18515
for options in "--sl 3" "--tclass 160"; do
	port=$((port + 1))
	# shellcheck disable=SC2206 # words
	words=(timeout 60 "$verbena" run -- ib_send_bw -F -n 20 -s 5000 -p $port
		-d rocev1_v5 -x "$index" $options)
	at 0 "${words[@]}" >"$work/server" 2>&1 &
	server=$!
	within 40 listens $port && at 1 "${words[@]}" 10.78.0.1 &&
		wait $server || {
		cat "$work/server"
		exit 1
	}
done
sleep 0.5 # the last frames, on their way to the file
kill -TERM $dumpcap
wait $dumpcap
python3 "$checker" "$work/frames" --vlan 5 --priority 3,5 "priority 3" \
	"priority 5"
