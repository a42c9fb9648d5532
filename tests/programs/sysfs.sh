#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Programs that look into /sys/class/infiniband and /dev/infiniband themselves
# find our devices there, and what stands there follows the host.
# tests/programs/sysfs.sh
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
sees "ls" roce_veth0 ls -1 $class
VERBENA_DEVICES=veth0,lo sees "ls, loopback's asked for" "roce_lo
roce_veth0" ls -1 $class
sees "ls -l says nothing odd" 2 sh -c 'ls -l $class 2>&1 | wc -l'
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
	sees "python" "['roce_veth0'] True" /usr/bin/python3 -c '
import os
c = os.environ["class"]
print(sorted(os.listdir(c)), os.path.exists(c + "/roce_veth0/device/net"))'
fi

# What stands in ibdev_path is there for programs without the preload, too.
sees "ibdev_path" "1: CA" bash -c 'unset LD_PRELOAD
	cat "$VERBENA_TREE/sys/class/infiniband/roce_veth0/node_type"'

# Each call of the C library, in C.
number=$(on a ip -o link show veth0 | cut -d : -f 1)
node=/dev/infiniband/uverbs$number
export node
mapfile -t lines < <(on a timeout 20 "$verbena" run -- \
	"$programs/files_test" "uverbs$number" roce_veth0 2>&1)
cases=0
for line in "${lines[@]}"; do
	case $line in
	"ok "*) ok "sysfs: ${line#ok }" ;;
	"not ok "*) not_ok "sysfs: ${line#not ok }" ;;
	*) echo "$line" && continue ;;
	esac
	cases=$((cases + 1))
done
[ $cases -eq 14 ] || not_ok "sysfs: files_test came to its end"

# The same names as commands and interpreters have them.
sees "/dev/infiniband: ls -l" "crw-rw-rw- 231, $((192 + number)) $node" \
	sh -c 'ls -l $node | sed -E "s/ +/ /g" | cut -d " " -f 1,5,6,10'
sees "/dev/infiniband: the shell's tests" "yes $node" bash -c \
	'test -c $node -a -r $node -a -w $node -a ! -L $node &&
	echo yes /dev/infiniband/uverbs$1*' sh "$number"
sees "/dev/infiniband: find" $'rdma_cm\numad0\n'"uverbs$number" \
	sh -c 'find /dev/infiniband/ -type c -printf "%f\n" | sort'
# Loopback's device, which leads to no other host, is there where it is asked
# for, or alone.
for devices in lo,veth0 lo; do
	VERBENA_DEVICES=$devices sees "/dev/infiniband: --device $devices" \
		uverbs1 sh -c 'ls /dev/infiniband | grep -x uverbs1'
done
sees "/dev/infiniband: from the working directory" "character special file" \
	sh -c 'cd /dev/infiniband/../infiniband && stat -c %F ./${node##*/}'
sees "realpath(1)" "/sys/devices/virtual/verbena/roce_veth0
$node" realpath $class/roce_veth0/device "$node"
sees "a name that passes by the tree" \
	"$(on a stat -c %i /sys/class/net)" stat -c %i $class/../net
if [ -x /usr/bin/python3 ]; then
	sees "/dev/infiniband: python" "True (231, $((192 + number))) True $node" \
		/usr/bin/python3 -c '
import glob, os, stat
n = os.environ["node"]
s = os.stat(n)
print(stat.S_ISCHR(s.st_mode), (os.major(s.st_rdev), os.minor(s.st_rdev)),
      n in glob.glob("/dev/infiniband/uverbs*"), os.path.realpath(n))'
fi
# What programs count: while they run, and when they have ended.
count() {
	on a "$verbena" counters roce_veth0 | sed -n 's/.*sent_pkts *//p'
}
naks() {
	on a "$verbena" counters roce_lo | sed -n 's/.*nak_remote_access *//p'
}
# A namespace may have the number of one that was counted before.
if [ -z "$(count)" ]; then
	ok "verbena counters: a new namespace begins with nothing"
else
	not_ok "verbena counters: a new namespace begins with nothing"
fi
began=$(count)
refused=$(naks)
if pair root a b ibv_rc_pingpong -d roce_veth0 -g 1 -n 100 -- \
	ibv_rc_pingpong -d roce_veth0 -g 1 -n 100 "$HOST_A"; then
	ok "sysfs: ibv_rc_pingpong"
else
	not_ok "sysfs: ibv_rc_pingpong" "$work/server" "$work/client"
fi
ended=$(count)
on a timeout 20 "$verbena" run --device lo -- "$programs/conformance_test" \
	-d roce_lo -4 >"$work/out" 2>&1 || not_ok "conformance" "$work/out"
if [ "${ended:-0}" -ge $((${began:-0} + 100)) ]; then
	ok "verbena counters: what a program counted that has ended"
else
	not_ok "verbena counters: what a program counted that has ended"
fi
if [ "$(naks)" -gt "${refused:-0}" ]; then
	ok "verbena counters: of a program that did not close its device"
else
	not_ok "verbena counters: of a program that did not close its device"
fi
# Any file may have the name of what counters lie in: here a FIFO, which nobody
# writes to.
if [ -x /usr/bin/python3 ]; then
	on a unshare -m /usr/bin/python3 -c '
import os, subprocess, sys, time
subprocess.run(["mount", "-t", "tmpfs", "none", "/mnt"], check=True)
os.mkfifo("/mnt/memfd:verbena-counters")
os.open("/mnt/memfd:verbena-counters", os.O_PATH)
subprocess.run(["umount", "-l", "/mnt"], check=True)
print("ready", flush=True)
time.sleep(30)' >"$work/fifo" 2>&1 &
	fifo=$!
	tries=0
	until grep -q ready "$work/fifo" || [ $tries -eq 100 ]; do
		tries=$((tries + 1))
		sleep 0.05
	done
	if grep -q ready "$work/fifo" &&
		on a timeout 10 "$verbena" counters >/dev/null; then
		ok "verbena counters: a FIFO with the name of counters"
	else
		not_ok "verbena counters: a FIFO with the name of counters" \
			"$work/fifo"
	fi
	kill $fifo 2>/dev/null
	wait $fifo 2>/dev/null
fi
counter=$class/roce_veth0/ports/1/hw_counters/sent_pkts
export counter
ended=$(count)
sees "hw_counters: cat" "$ended" cat "$counter"
sees "hw_counters: the shell reads" "$ended" bash -c 'read -r n <"$counter"
	echo "$n"'
VERBENA_DEVICES=veth0,lo sees "hw_counters: another device's is another" yes \
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
before=$(count)
# shellcheck disable=SC2046 # the programs, and not what stops them in time
kill -9 $(pgrep -P "$server,$!")
wait $server $! 2>/dev/null
if [ "$(count)" -ge "$before" ] && [ "$(count)" = "$(count)" ]; then
	ok "verbena counters: of programs that were killed"
else
	not_ok "verbena counters: of programs that were killed"
fi

# Tools that other packages bring.
if command -v ibstat >/dev/null; then
	sees "ibstat" "Active LinkUp Ethernet" bash -c "ibstat roce_veth0 2>&1 |
		sed -nE 's/^\s*(State|Physical state|Link layer): //p' | xargs"
	sees "ibstat says nothing odd" "" \
		bash -c 'ibstat 2>&1 >/dev/null; ibstat -l | grep -v ^roce_'
	sees "ibstatus" "4: ACTIVE 5: LinkUp" bash -c "ibstatus roce_veth0 2>&1 |
		sed -nE 's/^\s*(state|phys state):\s*//p' | xargs"
else
	skip "sysfs: ibstat, ibstatus" "they are not installed"
fi
# As the adapters' makers write it: by the device's interfaces.
VERBENA_DEVICES=veth0,lo sees "ibdev2netdev" "roce_lo port 1 ==> lo (Up)
roce_veth0 port 1 ==> veth0 (Up)" bash -c 'for port in $class/*/ports/*; do
	device=${port%/ports/*}
	for net in "$device"/device/net/*; do
		[ $(($(<"$net/dev_id"))) = $((${port##*/} - 1)) ] || continue
		[ "$(<"$port/gid_attrs/ndevs/0")" = "${net##*/}" ] || continue
		state=$(<"$net/operstate")
		echo "${device##*/} port ${port##*/} ==> ${net##*/} (${state^})"
	done
done'
if command -v ucx_info >/dev/null; then
	sees "ucx_info -d lists the devices, without a warning" \
		"rc_verbs roce_veth0:1 ud_verbs roce_veth0:1" bash -c 'ucx_info -d 2>&1 | awk "
		!/^#/ { print } /Transport:/ { t = \$3 }
		/Device: roce_/ { print t, \$3 }" | sort | xargs'
else
	skip "sysfs: ucx_info" "it is not installed"
fi

# A daemon that root starts, and that goes on as another user.
if setpriv --reuid=65534 --regid=65534 --clear-groups test -r "$verbena" \
	2>/dev/null && [ -x /usr/bin/python3 ]; then
	sees "after setuid()" "roce_veth0 4: ACTIVE True
1 True" /usr/bin/python3 -c '
import ctypes, os
os.umask(0o077)
verbs = ctypes.CDLL("libibverbs.so.1")
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
c = os.environ["class"]
with open(c + "/roce_veth0/ports/1/state") as f:
    print(*sorted(os.listdir(c)), f.read().strip(),
          os.access(os.environ["node"], os.R_OK | os.W_OK))
verbs.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
verbs.ibv_open_device.restype = ctypes.c_void_p
verbs.ibv_open_device.argtypes = [ctypes.c_void_p]
count = ctypes.c_int()
devices = verbs.ibv_get_device_list(ctypes.byref(count))
print(count.value, bool(verbs.ibv_open_device(devices[0])))'
else
	skip "sysfs: after setuid()" "this user can become no other"
fi

# A new address: a program that runs tells it, or the next one that is run.
on a ip addr add 192.0.2.99/32 dev veth0
sees "an address more" 1 sh -c 'grep -c c000:0263 -r $gids/ | grep -c :1'
summary
