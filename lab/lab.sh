#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The lab: this machine's network namespace "a" and, at the other end of a
# cable (a tap device), the Linux kernel with Soft-RoCE in a virtual machine
# that has this machine's programs. docs/LAB.md shows what to do with it.
#
#	lab/lab.sh			boot; a shell at the host's end
#	lab/lab.sh run SCRIPT [ARG]...	boot; run a script instead
#	lab/lab.sh guest [COMMAND]...	from another terminal: in the guest
#	lab/lab.sh host [COMMAND]...	from another terminal: at the host's end
#
# Sourced, it gives the functions below and those of scripts/netns.sh.

lab_top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/netns.sh
. "$lab_top/scripts/netns.sh"
PATH=$PATH:/usr/sbin:/sbin
HOST_GUEST=10.77.0.2
HOST_GUEST6=fd77::2
lab_port=7

# lab_possible: tells whether a lab can run here; if not, REPLY says why.
lab_possible() {
	local lab_why

	lab_why=$(mktemp) || return
	REPLY=
	if ! hosts_possible; then
		REPLY="no network namespaces here"
	elif ! command -v qemu-system-x86_64 >/dev/null; then
		REPLY="no qemu-system-x86_64"
	elif ! busybox true 2>/dev/null || ldd "$(command -v busybox)" \
		>/dev/null 2>&1; then
		REPLY="no static busybox"
	elif [ ! -w /dev/net/tun ]; then
		REPLY="no /dev/net/tun"
	elif ! lab_boot=$("$lab_top/lab/kernel.sh" 2>"$lab_why"); then
		REPLY=$(sed -n 's/^lab: //p' "$lab_why" | tail -n 1)
	fi
	lab_no_siw=$(sed -n 's/^lab: siw: //p' "$lab_why" | tail -n 1)
	export lab_no_siw
	rm -f "$lab_why"
	[ -z "$REPLY" ]
}

# lab_network MTU: makes the host's network namespace with its end of the cable.
lab_network() {
	hosts_begin && hold_namespace a && HOSTS_PID_a=$REPLY || return
	export HOSTS_PID_a
	a ip tuntap add dev tap0 mode tap || return
	# The guest is slow, and UC and UD do not retransmit, so packets for it
	# wait in a long queue here and are not dropped.
	a sh -c "ip link set tap0 mtu $1 txqueuelen 30000
		echo 0 >/proc/sys/net/ipv6/conf/all/accept_dad
		echo 0 >/proc/sys/net/ipv6/conf/tap0/accept_dad
		ip address add $HOST_A/24 dev tap0 &&
		ip address add $HOST_A6/64 dev tap0 nodad &&
		ip link set tap0 up"
}

# guest_start MTU: boots the guest. By default qemu interprets its instructions
# (tcg), which works everywhere; the boot takes seconds. LAB_ACCEL=kvm is
# faster, but inside a virtual machine /dev/kvm may exist and hang. tsc=reliable
# makes the guest's kernel trust the TSC; otherwise each reading of the clock is
# a system call that reads a device.
guest_start() {
	# The kernel kills qemu when this shell ends, even if it is killed.
	become a setpriv --pdeathsig KILL \
		qemu-system-x86_64 -nodefaults -no-reboot -display none \
		-machine q35 -cpu "${LAB_CPU:-max}" -smp "${LAB_CPUS:-2}" -m "${LAB_MEMORY:-640}" \
		-accel "${LAB_ACCEL:-tcg,thread=multi}" -serial "file:$hosts_dir/console" \
		-kernel "${lab_boot%%$'\n'*}" -initrd "${lab_boot##*$'\n'}" \
		-append "console=ttyS0 quiet panic=-1 mitigations=off no_timer_check \
tsc=reliable clocksource=tsc \
lab.mtu=$1 lab.ip4=$HOST_GUEST/24 lab.ip6=$HOST_GUEST6/64" \
		-virtfs local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap \
		-netdev tap,id=cable,ifname=tap0,script=no,downscript=no \
		-device "virtio-net-pci,netdev=cable,host_mtu=$1" \
		</dev/null >"$hosts_dir/qemu" 2>&1 {hosts_pipe_write}>&- &
	guest_pid=$!
	guest_await
}

guest_await() {
	local until=$((SECONDS + 120)) what="did not boot"

	while [ $SECONDS -lt $until ] && kill -0 $guest_pid 2>/dev/null; do
		case $(lab_patience=5 guest ls /sys/class/infiniband 2>&1) in
		*rxe0*) return ;;
		"") what="has no rxe0" ;;
		esac
		sleep 0.3
	done
	echo "lab: the guest $what" >&2
	tail -n 20 "$hosts_dir/qemu" "$hosts_dir/console" >&2
	return 1
}

guest_kill() {
	[ -n "${guest_pid:-}" ] || return 0
	kill -KILL "$guest_pid" 2>/dev/null
	wait "$guest_pid" 2>/dev/null
	guest_pid=
}

# lab_up MTU: makes the network and boots the guest. Call lab_possible before.
lab_up() {
	lab_network "$1" && guest_start "$1"
}

lab_down() {
	guest_kill
	hosts_down
}

# guest_ask REQUEST: sends the request to lab/agent in the guest, prints the
# output of the command, and exits with the command's status. If this process
# dies, the connection closes, and the agent kills the command.
guest_ask() {
	local line
	exec 3<>"/dev/tcp/$HOST_GUEST/$lab_port" || exit 255
	printf '%s\n' "$1" >&3
	while IFS= read -r line <&3; do
		case $line in
		*"@status "[0-9]*)
			# The command's last line may lack a newline, so print
			# what stands before the status.
			printf '%s' "${line%@status *}"
			exit "${line##*@status }"
			;;
		*) printf '%s\n' "$line" ;;
		esac
	done
	exit 255
}
# The time limit in seconds of a command in the guest, because a guest that
# hangs neither answers nor ends the command.
lab_patience=150
export -f guest_ask
export HOST_GUEST HOST_GUEST6 lab_port lab_patience

# guest [COMMAND]...: runs the command, or a shell, in the guest.
# `guest_become COMMAND &` does so in one process of this host.
guest() {
	if [ $# -gt 0 ]; then
		(guest_become "$@")
	else
		guest_shell
	fi
}
guest_become() {
	become a timeout -k 2 "$lab_patience" bash -c "guest_ask \"\$1\"" guest "run $(printf '%q ' "$@")"
}
# guest_serve PORT COMMAND...: runs the command in the guest, and prints
# "@listening" when a process in the guest listens at the port.
guest_serve() {
	local at=$1

	shift
	become a timeout -k 2 "$lab_patience" bash -c "guest_ask \"\$1\"" guest \
		"serve $at $(printf '%q ' "$@")"
}

# Opens a shell in the guest, and connects the present terminal to it.
guest_shell() {
	local size saved
	size=$(stty size 2>/dev/null) || size="24 80"
	saved=$(stty -g 2>/dev/null)
	# shellcheck disable=SC2016 # the inner shell expands the variables
	a bash -c '
		exec 3<>"/dev/tcp/$HOST_GUEST/$lab_port" || exit
		echo "shell $1" >&3
		[ ! -t 0 ] || stty raw -echo
		cat >&3 <&0 & cat <&3
		kill $!' guest "$size"
	[ -z "$saved" ] || stty "$saved"
}

# The file in which a running lab stores the number of the process that has the
# host's network namespace. Each clone of the repository has one file. Its name
# contains the user's number; inside a user namespace this script is root, so
# LAB_STATE passes the name on.
lab_state=${LAB_STATE:-${XDG_RUNTIME_DIR:-/tmp}/verbena-lab-$(id -u)-$(
	cksum <<<"$lab_top" | cut -d' ' -f1)}
export LAB_STATE=$lab_state

# lab_join COMMAND...: enters the namespaces of the running lab, by starting
# this script there again if necessary.
lab_join() {
	local user=()

	# Do not trust a file that another user has made.
	[ -O "$lab_state" ] && [ ! -L "$lab_state" ] &&
		HOSTS_PID_a=$(cat "$lab_state")
	[ -n "${HOSTS_PID_a:-}" ] && kill -0 "$HOSTS_PID_a" 2>/dev/null || {
		echo "lab: none is running; start one with: make lab" >&2
		exit 1
	}
	export HOSTS_PID_a
	[ "$(id -u)" -eq 0 ] || [ -n "${LAB_JOINED:-}" ] || user=(nsenter -t
		"$HOSTS_PID_a" -U --preserve-credentials)
	[ ${#user[@]} -eq 0 ] ||
		LAB_JOINED=1 exec "${user[@]}" "$lab_top/lab/lab.sh" "$@"
}

lab_publish() {
	rm -f "$lab_state"
	(set -C && echo "$HOSTS_PID_a" >"$lab_state") || {
		echo "lab: $lab_state is in the way" >&2
		return 1
	}
	trap 'rm -f "$lab_state"; lab_down' EXIT
}

lab_shell() {
	cat <<-END
		This shell is the host's end of the cable, $HOST_A and $HOST_A6,
		device roce_tap0. The other end is Linux $(guest uname -r) with
		rxe0, $HOST_GUEST and $HOST_GUEST6. Try:

		  guest ib_write_bw -d rxe0 -x 1 &
		  verbena run -- ib_write_bw -d roce_tap0 -x 1 $HOST_GUEST

		guest            a shell there; another terminal: make lab-guest
		exit             ends the lab
	END
	export PS1='host# ' PATH=$lab_top/build/cli:$PATH
	export -f a on become guest guest_become guest_shell
	# Ignore the exit status of the shell's last command.
	a bash --norc || :
}

lab_main() {
	local what=${1:-shell}

	case $what in
	shell | run)
		[ -n "${VERBENA_USERNS:-}" ] || lab_possible || {
			echo "lab: $REPLY" >&2
			return 1
		}
		export lab_boot
		[ -n "${VERBENA_USERNS:-}" ] || hosts_reenter "$0" "$@"
		trap lab_down EXIT
		lab_up 9000 || return
		lab_publish || return
		[ "$what" = run ] || { lab_shell; return; }
		shift
		PATH=$lab_top/build/cli:$PATH
		# shellcheck source=/dev/null
		. "$@"
		;;
	guest)
		lab_join "$@"
		shift
		guest "$@"
		;;
	host)
		lab_join "$@"
		shift
		[ $# -gt 0 ] || set -- bash --norc
		PS1='host# ' PATH=$lab_top/build/cli:$PATH a "$@"
		;;
	*)
		sed -n '3,12s/^# \{0,1\}//p' "$0"
		return 2
		;;
	esac
}

[ "${BASH_SOURCE[0]}" != "$0" ] || lab_main "$@"
