#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Built for arm64 on another processor, and run by qemu's emulation of one
# program: the bundle, the unit tests, and pairs of programs of both processors.
#
# qemu-user refuses some socket options, SO_ATTACH_REUSEPORT_CBPF among them, so
# the broker, which needs it, is this machine's own, and so are the broker's
# unit tests. No system call of an emulated program reads another program's
# memory, so pairs use packets. tests/programs/arm64.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"
# shellcheck source=tests/programs/roots.sh
. "$here/roots.sh"

no_arm64() {
	skip "arm64" "$1"
	summary
	exit
}
for tool in aarch64-linux-gnu-gcc qemu-aarch64-static mmdebstrap; do
	command -v $tool >/dev/null || no_arm64 "$tool is not installed"
done
[ "$(uname -m)" = x86_64 ] || no_arm64 "this machine is no x86-64"

# Debian's packages for arm64, of this Debian, unpacked.
sysroot=${VERBENA_ROOTS:-$build-roots}/arm64
make_sysroot() {
	local suite

	[ ! -e "$sysroot/complete" ] || return 0
	suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	rm -rf "$sysroot"
	mkdir -p "$(dirname "$sysroot")" &&
		mmdebstrap --variant=extract --architectures=arm64 \
			--include=libc6-dev,linux-libc-dev,libnl-3-dev,libnl-route-3-dev,libdeflate-dev,libisal-dev,libibverbs-dev,librdmacm-dev,libibumad-dev,libcmocka-dev,ibverbs-utils \
			"$suite" "$sysroot" "$(debian_mirror)" >"$work/sysroot" 2>&1 &&
		touch "$sysroot/complete"
}
[ -n "$(debian_mirror)" ] || no_arm64 "apt has no archive of Debian here"
make_sysroot || no_arm64 "mmdebstrap: $(grep '^E:' "$work/sysroot" | tail -n 1)"

if make_bundle aarch64 "$sysroot"; then
	ok "arm64: make bundle: $(basename "$bundle")"
else
	not_ok "arm64: make bundle" "$work/bundle"
	summary
	exit
fi
mkdir "$work/opt"
tar -C "$work/opt" --strip-components=1 -xf "$bundle"
chmod 755 "$work/opt"
emulated=(qemu-aarch64-static -L "$sysroot")
"${emulated[@]}" "$work/opt/bin/verbena" --version >"$work/version" 2>&1 &&
	grep -q '^verbena ' "$work/version" &&
	ok "arm64: the command" || not_ok "arm64: the command" "$work/version"

# The unit tests, with ISA-L as Debian has it for arm64.
arm=$build-aarch64-tests
pc=$(dirname "$bundle")
printf "[binaries]\nexe_wrapper = ['%s', '%s', '%s']\n" "${emulated[@]}" >"$work/exe.ini"
# Tests that need what qemu's emulation of a program lacks, and what that is.
declare -A lacks=(
	[packet]="socket options of AF_PACKET"
	[roce1]="socket options of AF_PACKET"
	[roce1_recv]="socket options of AF_PACKET"
	[neigh]="NETLINK_ROUTE with answers of neighbours"
	[udp]="SO_ATTACH_REUSEPORT_CBPF"
	[slots]="SO_ATTACH_REUSEPORT_CBPF"
	[broker]="SO_ATTACH_REUSEPORT_CBPF"
	[limits]="SO_ATTACH_REUSEPORT_CBPF"
	[lease]="SO_ATTACH_REUSEPORT_CBPF"
	[runtime_dir]="SO_NETNS_COOKIE"
	[near-session]="unshare(CLONE_NEWUSER)"
	[near-permit]="process_vm_readv()"
	[near-callers]="process_vm_readv()"
	[near-registry]="robust futexes"
	[near-hazard]="the order of STLR and a later LDAR, which the processor keeps"
)
# A directory of an older tree that cannot be configured anew is made again.
export PKG_CONFIG_LIBDIR=$pc/pc PKG_CONFIG_PATH=$pc/deps
[ ! -f "$arm/build.ninja" ] || ninja -C "$arm" build.ninja >/dev/null 2>&1 ||
	rm -rf "$arm"
if [ ! -f "$arm/build.ninja" ]; then
	meson setup "$arm" "$top" \
		-Dtests=enabled --cross-file "$pc/cross.ini" \
		--cross-file "$work/exe.ini" >"$work/setup" 2>&1 || {
		not_ok "arm64: meson setup" "$work/setup"
		summary
		exit
	}
fi

meson test -C "$arm" --list --no-suite abi --no-suite fuzz --no-suite protocol \
	2>/dev/null | sed -n 's,.* / ,,p' | sort -u >"$work/all"
for test in "${!lacks[@]}"; do
	grep -qx "$test" "$work/all" || continue
	skip "arm64: $test" "qemu-user lacks ${lacks[$test]}"
done
printf '%s\n' "${!lacks[@]}" | sort >"$work/lacking"
mapfile -t names < <(comm -23 "$work/all" "$work/lacking")
[ "$quick" = no ] || names=(crc guard icrc)
mapfile -t targets < <(ninja -C "$arm" -t targets all |
	sed -n 's,^\(tests/unit/.*_test\): .*,\1,p')
if [ ${#names[@]} -eq 0 ]; then
	not_ok "arm64: there are no unit tests"
elif ! nice ninja -C "$arm" "${targets[@]}" tests/programs/data_test \
	cli/verbena >"$work/ninja" 2>&1; then
	not_ok "arm64: the unit tests' build" "$work/ninja"
else
	meson test -C "$arm" --no-rebuild --timeout-multiplier 10 --no-suite abi \
		--no-suite fuzz --no-suite protocol "${names[@]}" >"$work/unit" 2>&1
	while read -r verdict name; do
		[ "$verdict" = OK ] && ok "arm64: $name" ||
			not_ok "arm64: $name ($verdict)"
	done < <(sed -nE 's,^ *[0-9]+/[0-9]+ (verbena:)?([^ ].*[^ ]) +(OK|FAIL|TIMEOUT|ERROR|INTERRUPT) .*,\3 \2,p' "$work/unit")
	grep -qE '(OK|FAIL) ' "$work/unit" || not_ok "arm64: no test was played" "$work/unit"
fi

# An emulated program is run by the emulator, which `verbena run` cannot do.
native=("$build/cli/verbena" run) # no --, which ends() looks for
foreign=("${emulated[@]}" -E "LD_LIBRARY_PATH=$work/opt/lib/verbena")

# both NAME SERVER... -- CLIENT...: with the broker of this machine.
both() {
	local name=$1 server client

	shift
	ends "$@"
	if [ "$hosts" = no ]; then
		skip "$name" "no network namespaces here"
		return
	fi
	play emulated_serve emulated_ready emulated_call &&
		ok "$name" || not_ok "$name" "$work/server" "$work/client"
}
emulated_serve() {
	become a timeout -k 5 120 "${server[@]}"
}
emulated_call() {
	become b timeout -k 5 120 "${client[@]}"
}
emulated_ready() {
	listening a $port 40 "$1"
}
if [ "$hosts" = yes ]; then
	hosts_up 9000 || hosts=no
	# Neither emulated program can start it.
	for host in a b; do
		become $host "$build/cli/verbena" broker --linger 600 >/dev/null 2>&1 &
	done
	sleep 1
fi
arm_pong=("${foreign[@]}" "$sysroot/usr/bin/ibv_rc_pingpong" -d roce_veth0 -g 2)
our_pong=("${native[@]}" ibv_rc_pingpong -d roce_veth0 -g 2)
both "arm64: pingpong" "${arm_pong[@]}" -- "${arm_pong[@]}" "$HOST_A"
if command -v ibv_rc_pingpong >/dev/null; then
	both "arm64: pingpong, called by x86-64" "${arm_pong[@]}" -- \
		"${our_pong[@]}" "$HOST_A"
	both "arm64: pingpong, calling x86-64" "${our_pong[@]}" -- \
		"${arm_pong[@]}" "$HOST_A"
else
	skip "arm64: pingpong with x86-64" "no ibverbs-utils"
fi
if [ -x "$programs/data_test" ]; then
	both "arm64: every byte compared, with x86-64" \
		"${foreign[@]}" "$arm/tests/programs/data_test" -d roce_veth0 -n 300 -- \
		"${native[@]}" "$programs/data_test" -d roce_veth0 -n 300 "$HOST_A"
fi
summary
