#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Programs that look into /sys/class/infiniband themselves find our devices
# there, and what stands there follows the host. tests/programs/sysfs.sh
# shellcheck disable=SC2016 # the inner shell expands
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"
need_hosts 9000

export XDG_RUNTIME_DIR=$work/run
mkdir -m 700 "$XDG_RUNTIME_DIR"
class=/sys/class/infiniband
gids=$class/roce_veth0/ports/1/gids
export class gids

# sees NAME OUTPUT COMMAND...: a program's output, run with the adapter.
sees() {
	local name=$1 want=$2 got

	shift 2
	got=$(on a timeout 20 "$verbena" run -- "$@" 2>&1 </dev/null)
	if [ "$got" = "$want" ]; then
		ok "sysfs: $name"
	else
		echo "$got" >"$work/got"
		not_ok "sysfs: $name" "$work/got"
	fi
}

sees "cat" "4: ACTIVE" cat $class/roce_veth0/ports/1/state
sees "ls" "roce_lo
roce_veth0" ls -1 $class
sees "ls -l says nothing odd" 3 sh -c 'ls -l $class 2>&1 | wc -l'
sees "the shell's tests and globs" "yes $gids/0" \
	sh -c 'test -d $class/roce_veth0 && echo yes $gids/0*'
sees "find" "$class/roce_veth0/device/net/veth0" \
	find $class/roce_veth0/device/net -mindepth 1 -maxdepth 1
sees "the interface behind the device" 9000 \
	cat $class/roce_veth0/device/net/veth0/mtu
sees "after another exec" "RoCE v2" env -- bash -c \
	"exec env cat $class/roce_veth0/ports/1/gid_attrs/types/1"
sees "other names are untouched" 1 cat /sys/class/net/lo/ifindex
if [ -x /usr/bin/python3 ]; then
	sees "python" "['roce_lo', 'roce_veth0'] True" /usr/bin/python3 -c '
import os
c = os.environ["class"]
print(sorted(os.listdir(c)), os.path.exists(c + "/roce_lo/device/net"))'
fi

# What stands in ibdev_path is there for programs without the preload, too.
sees "ibdev_path" "1: CA" bash -c 'unset LD_PRELOAD
	cat "$VERBENA_TREE/sys/class/infiniband/roce_veth0/node_type"'

# What programs count: while they run, and when they have ended.
count() {
	on a "$verbena" counters roce_veth0 | sed -n 's/.*sent_pkts *//p'
}
if pair root a b ibv_rc_pingpong -d roce_veth0 -g 1 -n 100 -- \
	ibv_rc_pingpong -d roce_veth0 -g 1 -n 100 "$HOST_A"; then
	ok "sysfs: ibv_rc_pingpong"
else
	not_ok "sysfs: ibv_rc_pingpong" "$work/server" "$work/client"
fi
ended=$(count)
on a timeout 20 "$verbena" run -- "$programs/conformance_test" \
	-d roce_lo -4 >"$work/out" 2>&1 || not_ok "conformance" "$work/out"
if [ "${ended:-0}" -ge 100 ]; then
	ok "verbena counters: what a program counted that has ended"
else
	not_ok "verbena counters: what a program counted that has ended"
fi
if on a "$verbena" counters roce_lo | grep -q 'nak_remote_access *[1-9]'; then
	ok "verbena counters: of a program that did not close its device"
else
	not_ok "verbena counters: of a program that did not close its device"
fi
counter=$class/roce_veth0/ports/1/hw_counters/sent_pkts
export counter
ended=$(count)
sees "hw_counters: cat" "$ended" cat "$counter"
sees "hw_counters: the shell reads" "$ended" bash -c 'read -r n <"$counter"
	echo "$n"'
sees "hw_counters: another device's is another" yes \
	bash -c '[ "$(cat ${counter/veth0/lo})" != "$(cat $counter)" ] && echo yes'
sees "hw_counters: as many as verbena counters has" \
	"$(on a "$verbena" counters roce_veth0 | grep -c '^	')" \
	sh -c 'ls -1 "${counter%/*}" | wc -l'
sees "hw_counters: none of that name" no \
	sh -c 'cat "${counter}x" 2>/dev/null || echo no'
if [ -x /usr/bin/python3 ]; then
	sees "hw_counters: python" "$ended" /usr/bin/python3 -c '
import os
print(open(os.environ["counter"]).read(), end="")'
fi
# There nobody answers: better nothing than an old number.
sees "hw_counters: empty in ibdev_path" 0 bash -c 'unset LD_PRELOAD
	cat "$VERBENA_TREE$counter" | wc -c'
become a timeout 20 "$verbena" run -- ibv_rc_pingpong -d roce_veth0 -g 1 \
	-n 100000000 >"$work/server" 2>&1 </dev/null &
server=$!
listening a "$port" 10 $server
become b timeout 20 "$verbena" run -- ibv_rc_pingpong -d roce_veth0 -g 1 \
	-n 100000000 "$HOST_A" >"$work/client" 2>&1 </dev/null &
tries=0
until [ "$(count)" -gt $((ended + 1000)) ] || [ $tries -eq 100 ]; do
	tries=$((tries + 1))
	sleep 0.05
done
if [ $tries -lt 100 ]; then
	ok "verbena counters: what a program counts that runs"
else
	not_ok "verbena counters: what a program counts that runs"
fi
kill $server $!
wait $server $! 2>/dev/null

# A new address: a program that runs tells it, or the next one that is run.
on a ip addr add 192.0.2.99/32 dev veth0
sees "an address more" 1 sh -c 'grep -c c000:0263 -r $gids/ | grep -c :1'
summary
