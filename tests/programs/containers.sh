#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# What docs/CONTAINERS.md says of two containers, each made by bubblewrap: what
# they share, and whether their programs then exchange packets or copy directly.
# tests/programs/containers.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"

no_containers() {
	skip "containers" "$1"
	summary
	exit
}
[ "$hosts" = yes ] || no_containers "no namespaces here"
command -v bwrap >/dev/null || no_containers "bubblewrap is not installed"
bwrap --ro-bind / / --unshare-all true 2>"$work/bwrap" ||
	no_containers "$(tail -n 1 "$work/bwrap")"
[ -n "${VERBENA_USERNS:-}" ] || user_can_reach_build ||
	no_containers "an ordinary user cannot reach the build"
need_hosts 1500
export VERBENA_LOG=info
command=$verbena

# No capability, every directory read-only, /dev/shm too, nothing of the
# caller's environment but Verbena's.
confined=(--ro-bind / / --dev /dev --remount-ro /dev --proc /proc --cap-drop ALL
	--unshare-ipc --unshare-uts --unshare-cgroup-try --die-with-parent
	--unsetenv XDG_RUNTIME_DIR --setenv HOME /)

# Each end of a pair is in a container with these options. The client's last
# word is an address.
cat >"$work/verbena" <<-'END'
	#!/bin/bash
	end=server
	[[ ${*: -1} != *[.:]*[.:]* ]] || end=client
	mapfile -t options <"$(dirname "$0")/$end.options"
	exec "${options[@]}" "$COMMAND" "$@"
END
chmod 755 "$work/verbena"
export COMMAND=$command

# boxes SERVER... -- CLIENT...: the command that makes each one's container.
boxes() {
	local server client

	ends "$@"
	printf '%s\n' "${server[@]}" >"$work/server.options"
	printf '%s\n' "${client[@]}" >"$work/client.options"
}

# tries NAME near|packets AT FROM [ADDRESS]: two programs in those containers,
# on these hosts.
tries() {
	local name=$1 way=$2 address=${5:-127.0.0.1} verbena=$work/verbena

	if pair root "$3" "$4" "$programs/data_test" -n 200 -- \
		"$programs/data_test" -n 200 "$address" && went "$way"; then
		ok "$name"
	else
		not_ok "$name" "$work/server" "$work/client"
	fi
}
went() {
	if grep -q 'no packets to slot' "$work/client"; then
		[ "$1" = near ]
	else
		[ "$1" = packets ]
	fi
}

# user N: that user, in the caller's user namespace, without any way back.
user() {
	echo setpriv --no-new-privs --reuid="$1" --regid="$1" --clear-groups --
}
rootless=(bwrap "${confined[@]}" --unshare-user --uid 1000 --gid 1000)

# A test of confinement that is none would pass always.
if "${rootless[@]}" --unshare-pid sh -c 'touch /tmp/x || touch /dev/shm/x ||
	touch /dev/x || touch /run/x || unshare -n true' 2>/dev/null ||
	! "${rootless[@]}" grep -q '^CapBnd:[[:space:]]*0*$' /proc/self/status; then
	not_ok "containers: they confine"
else
	ok "containers: they confine"
fi
boxes "${rootless[@]}" --unshare-pid -- "${rootless[@]}" --unshare-pid
tries "no privilege, nothing writable, no /dev/shm; two networks" packets a b "$HOST_A"
tries "two containers of one network" packets a a "$HOST_A"
tries "the same, by 127.0.0.1" packets a a

# Root of a container may see the host's directory for files, and not write it.
if on a bwrap "${confined[@]}" --unshare-user --uid 0 --gid 0 --tmpfs /run \
	--dir /run/verbena --remount-ro /run --perms 0700 --tmpfs /mnt \
	--setenv XDG_RUNTIME_DIR /mnt "$command" run -- \
	ls /sys/class/infiniband >"$work/files" 2>&1 &&
	grep -qx roce_veth0 "$work/files"; then
	ok "root, read-only but for XDG_RUNTIME_DIR: the devices' files"
else
	not_ok "root, read-only but for XDG_RUNTIME_DIR" "$work/files"
fi

boxes "${rootless[@]}" -- "${rootless[@]}"
tries "one network, one PID namespace, two user namespaces" packets a a

# Docker's containers are in one user namespace, and so are those that a
# rootless podman makes.
if [ -n "${VERBENA_USERNS:-}" ]; then
	skip "containers of one user namespace" "needs root"
else
	read -ra one < <(user 1000)
	read -ra other < <(user 1001)
	box=(bwrap "${confined[@]}" --cap-add CAP_SETUID --cap-add CAP_SETGID)
	boxes "${box[@]}" "${one[@]}" -- "${box[@]}" "${one[@]}"
	tries "one network, one PID namespace, one user: copies" near a a
	boxes "${box[@]}" "${one[@]}" -- "${box[@]}" "${other[@]}"
	tries "the same, two users" packets a a
	boxes "${box[@]}" "${one[@]}" -- \
		"${box[@]}" "${one[@]}" "$programs/deny"
	tries "the same, one may not call process_vm_readv" packets a a
fi

# The broker is of the container whose program came first, and ends with it.
survives() {
	local first second

	boxes "${rootless[@]}" --unshare-pid -- "${rootless[@]}" --unshare-pid
	verbena=$work/verbena
	mkfifo "$work/first"
	# An ended container takes along what ran in it, the broker too.
	a "$verbena" run -- sh -c 'ibv_devinfo >&2; echo up >&2; cat' \
		<"$work/first" 2>"$work/first.log" &
	first=$!
	exec {hold_first}>"$work/first"
	until grep -q up "$work/first.log"; do sleep 0.1; done
	a "$verbena" run -- "$programs/data_test" -n 200 </dev/null \
		>"$work/server" 2>&1 {hold_first}>&- &
	second=$!
	listening a "$port" 20 $second || return
	exec {hold_first}>&-
	wait $first
	a "$verbena" run -- "$programs/data_test" -n 200 127.0.0.1 </dev/null \
		>"$work/client" 2>&1 && wait $second
}
if survives; then
	ok "the container that has the broker ends, and another one goes on"
else
	not_ok "the container that has the broker ends" "$work/first.log" \
		"$work/server" "$work/client"
fi

# Addresses that a network translates, as for a published port, are in the
# invariant CRC.
translates() {
	a ip route add 10.77.1.2 via "$HOST_B" && b nft -f - <<-END
		table ip published {
			chain in {
				type filter hook prerouting priority -300
				ip daddr 10.77.1.2 ip daddr set $HOST_B
			}
			chain out {
				type filter hook output priority 300
				ip daddr $HOST_A ip saddr set 10.77.1.2
			}
		}
	END
}
# pings ADDRESS: rping's client on host a.
pings() {
	a timeout -k 5 12 "$command" run -- rping -c -a "$1" -C 1 \
		</dev/null >"$work/client" 2>&1
}
serve_pings() {
	become b timeout -k 5 30 "$command" run -- rping -s -P </dev/null \
		>"$work/server" 2>&1 &
	for ((i = 0; i < 100; i++)); do
		[ -z "$(b ss -Hlun "sport = :4791")" ] || break
		sleep 0.1
	done
	sleep 1 # it listens soon after
}
if ! command -v rping >/dev/null || ! command -v nft >/dev/null; then
	skip "a network that translates addresses" "no rping or nft here"
else
	serve_pings
	if ! pings "$HOST_B"; then
		not_ok "rping by the container's own address" "$work/client"
	elif ! translates 2>"$work/nft"; then
		skip "a network that translates addresses" "$(head -n 1 "$work/nft")"
	elif ! pings 10.77.1.2 && grep -q 'no answer for 4 s' "$work/client"; then
		ok "a network that translates addresses: the sentence"
	else
		not_ok "a network that translates addresses" "$work/client"
	fi
fi
summary
