#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Installs what is missing:
# scripts/deps.sh [--check] [build] [demo] [test] [sources] [lab] [bench] [deb]
# With --check, or with DEPS=0 in the environment, it installs nothing, but says
# what is missing, and fails.
#
# Each need is tested by use, so that nothing is asked of a package manager
# where it is met already; Debian's and Ubuntu's package names stand beside.
# Silent when nothing is missing, and never asks a question.
set -u

missing=()

# need PACKAGE COMMAND...: PACKAGE is missing unless COMMAND succeeds.
need() {
	local package=$1
	shift
	"$@" >/dev/null 2>&1 || missing+=("$package")
}

have() { PATH=$PATH:/usr/sbin:/sbin command -v "$1"; }
library() { have pkg-config && pkg-config --exists "$@"; }
# is_least WANTED VERSION: VERSION is that or newer.
is_least() { [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }
meson_works() { have meson && is_least "$oldest_meson" "$(meson --version)"; }
compiles() { echo "#include <$1>" | gcc -E -; }
compiles_cpp() { echo "#include <$1>" | g++ -x c++ -E -; }
loads() { PATH=$PATH:/usr/sbin:/sbin ldconfig -p | grep -q "^[[:space:]]$1 "; }
# The package with clang's run-time libraries, by the clang that is there or that
# apt would install: it is called after clang's major version.
clang_rt() {
	local version

	version=$(clang -dumpversion 2>/dev/null | cut -d. -f1)
	[ -n "$version" ] || version=$(apt-cache depends clang 2>/dev/null |
		sed -n 's/.*Depends: clang-\([0-9]*\)$/\1/p' | head -n 1)
	echo "libclang-rt-${version:-14}-dev"
}
clang_links() {
	echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' |
		clang -x c -fsanitize=fuzzer,address -o /dev/null -
}

# As in meson.build, which cannot say what a reader should do.
oldest_glibc=2.33
oldest_meson=1.0.0
oldest_verbs=1.14.44 # rdma-core 44: the values of ATOMIC WRITE

# What no package of this release can mend is said before any is installed.
can_build() {
	local glibc

	glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null | cut -d' ' -f2)
	[ -n "$glibc" ] && ! is_least "$oldest_glibc" "$glibc" || return 0
	echo "deps: this system has glibc $glibc, and Verbena needs" \
		"$oldest_glibc or newer: use Debian 12 or newer" \
		"(docs/INSTALL.md#debian-11 says why)" >&2
	return 1
}

need_build() {
	can_build || exit 1
	need gcc have gcc
	need libc6-dev compiles stdio.h
	need meson meson_works
	need ninja-build have ninja
	need pkg-config have pkg-config
	need libibverbs-dev library "libibverbs >= $oldest_verbs"
	need librdmacm-dev library librdmacm
	need libibumad-dev library libibumad
	need libdeflate-dev library libdeflate
	need libisal-dev library libisal
	need libnl-3-dev library libnl-3.0
	need libnl-route-3-dev library libnl-route-3.0
	need libcmocka-dev library cmocka
}

need_demo() {
	need iproute2 have ip
	need ibverbs-utils have ibv_rc_pingpong
	need rdmacm-utils have rping
	need perftest have ib_write_bw
}

need_test() {
	need_demo
	need procps have pgrep
	need nftables have nft
	need tshark have tshark
	need iperf3 have iperf3
	need iputils-ping have ping
	need valgrind have valgrind
	need gdb have gdb
	need man-db have man
	need python3-pyverbs pyverbs
	need rdmacm-utils have rping
	need libfabric-bin have fi_pingpong
	need openmpi-bin have mpirun.openmpi
	need libopenmpi-dev have mpicc.openmpi
	need mpich have mpirun.mpich
	need libmpich-dev have mpicc.mpich
	need curl have curl
	need openssh-client have ssh
	need musl-tools have musl-gcc
	need infiniband-diags have ibstat
	need opensm have opensm
	need ibsim-utils have ibsim
	need srptools have ibsrpdm
	need ibacm have ib_acme
	need ucx-utils have ucx_info
	need libwrap0 loads libwrap.so.0 # its server's, which is only unpacked
	need redis-tools have redis-benchmark
	need ucx-utils have ucx_perftest
	need libucx-dev compiles ucp/api/ucp.h
	need ceph-mon have ceph-mon
	need ceph-osd have ceph-osd
	need ceph-common have rados
	need fio have fio
	need qperf have qperf
	need dapl2-utils have dtest
	need tgt have tgtd
	need libiscsi-bin have iscsi-inq
	need qemu-utils have qemu-img
	need qemu-block-extra iscsi_blocks
	need qemu-system-x86 have qemu-system-x86_64
	need librpma-dev library librpma
	need g++ have g++
	need libgloo-dev compiles_cpp gloo/transport/ibverbs/device.h
	need clang have clang
	need "$(clang_rt)" clang_links
	need debootstrap have debootstrap
	need mmdebstrap have mmdebstrap
	need qemu-user-static have qemu-aarch64-static
	need gcc-aarch64-linux-gnu have aarch64-linux-gnu-gcc
	need bubblewrap have bwrap
	need lintian have lintian
	need python3-yaml yaml
	need zsh have zsh
	need_deb
}

# What builds other projects' test suites: tests/sources.
need_sources() {
	need apt have apt-get
	need dpkg-dev have dpkg-source
	need make have make
	need g++ have g++
	need autoconf have autoconf
	need automake have automake
	need libtool have libtoolize
}

need_deb() {
	need dpkg-dev have dpkg-buildpackage
	need debhelper have dh
}

# A kernel to boot is fetched, not installed: lab/kernel.sh.
need_lab() {
	need_demo
	need qemu-system-x86 have qemu-system-x86_64
	need busybox-static static_busybox
	# lab/siw.sh builds a module.
	need gcc have gcc
	need make have make
	need xz-utils have xz
	need nftables have nft
	need tshark have tshark
}
yaml() { /usr/bin/python3 -c 'import yaml'; }
iscsi_blocks() { compgen -G "/usr/lib/*/qemu/block-iscsi.so"; }
pyverbs() { /usr/bin/python3 -c 'import pyverbs.device'; }
static_busybox() { have busybox && ! ldd "$(command -v busybox)"; }

need_bench() {
	need_lab
	need iperf3 have iperf3
	need qperf have qperf
	need opensm have opensm
	need rdmacm-utils have cmtime
	need ucx-utils have ucx_perftest
}

# Root's rights for apt into ${as[@]}; false: there is no way to them.
find_root() {
	as=()
	if ! have apt-get >/dev/null; then
		echo "deps: missing, and there is no apt-get here." \
			"Install what these Debian packages hold: ${missing[*]}" >&2
		return 1
	fi
	if [ "$(id -u)" -ne 0 ]; then
		if ! have sudo >/dev/null; then
			echo "deps: missing: ${missing[*]}" >&2
			echo "deps: neither root nor sudo; as root, run:" \
				"apt-get install ${missing[*]}" >&2
			return 1
		fi
		as=(sudo)
	fi
	as+=(env DEBIAN_FRONTEND=noninteractive)
}

# One package that a release lacks must not cost the others.
drop_unknown() {
	local package known=() unknown=()

	for package in "${missing[@]}"; do
		if apt-get install -s --no-install-recommends "$package" \
			>/dev/null 2>&1; then
			known+=("$package")
		else
			unknown+=("$package")
		fi
	done
	missing=("${known[@]}")
	[ ${#unknown[@]} -eq 0 ] ||
		echo "deps: apt cannot install these here: ${unknown[*]}" >&2
}

install_missing() {
	local as install=(apt-get install -y -qq --no-install-recommends)

	find_root || return
	echo "deps: installing ${missing[*]}"
	# The package lists may be absent or old; fetch them only then.
	"${as[@]}" "${install[@]}" "${missing[@]}" >/dev/null 2>&1 && return
	"${as[@]}" apt-get update -qq
	"${as[@]}" "${install[@]}" "${missing[@]}" >/dev/null 2>&1 && return
	drop_unknown
	[ ${#missing[@]} -gt 0 ] &&
		"${as[@]}" "${install[@]}" "${missing[@]}" >/dev/null
}

check=no
[ "${DEPS:-1}" != 0 ] || check=yes
if [ "${1:-}" = --check ]; then
	check=yes
	shift
fi
[ $# -gt 0 ] || set -- build
for group in "$@"; do
	case $group in
	build | demo | test | sources | lab | bench | deb) "need_$group" ;;
	*)
		echo "deps: no group '$group' (build, demo, test, sources, lab, bench, deb)" >&2
		exit 2
		;;
	esac
done
[ ${#missing[@]} -eq 0 ] && exit 0
mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)
if [ $check = yes ]; then
	echo "deps: missing: ${missing[*]} (these are names of Debian's packages)" >&2
	exit 1
fi
install_missing || exec "$0" --check "$@"
"$0" --check "$@" || {
	echo "deps: apt has installed what it has, which is too old: Verbena" \
		"needs Meson $oldest_meson and rdma-core 44 (docs/INSTALL.md)" >&2
	exit 1
}
