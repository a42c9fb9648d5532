#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Makes what the guest boots from: Debian's packaged kernel, taken apart and
# not installed, and an initramfs of busybox, some modules and lab/init.
# Prints the paths of both. They are kept for the next time, which then needs no
# network; a checksum in their names tells what they were made of. If the module
# of Soft-iWARP cannot be built (lab/siw.sh), a message says why, and the guest
# boots without it.
set -u -o pipefail

here=$(dirname "$(readlink -f "$0")")
cache=${VERBENA_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/verbena}/lab
PATH=$PATH:/usr/sbin:/sbin

# The modules of the guest, in the order in which they are loaded. Modules that
# these depend on are found in modules.dep, except the checksums, which are
# requested by the name of the algorithm and so are listed here.
modules="crc32c_generic crc32_generic crc32_pclmul virtio_pci virtio_net libcrc32c 9pnet_virtio 9p veth 8021q nf_tables nft_numgen
	ib_uverbs rdma_ucm ib_umad rdma_rxe"

fail() {
	echo "lab: $*" >&2
	exit 1
}

as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	else
		sudo -n "$@" 2>/dev/null
	fi
}

# Prints the name of the package on which linux-image-amd64 depends. Asks only
# the lists that apt has already, and not the network.
kernel_package() {
	apt-cache depends linux-image-amd64 2>/dev/null |
		sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1
}

# download PACKAGE: downloads the package's .deb into the current directory.
download() {
	apt-get download -qq "$1" >/dev/null 2>&1 && return
	as_root apt-get update -qq >/dev/null 2>&1 &&
		apt-get download -qq "$1" >/dev/null 2>&1
}

# Unpacks the kernel in a temporary directory and then moves it into the cache,
# so that a kernel in the cache is always complete.
fetch_kernel() {
	local package aside

	package=$(kernel_package)
	[ -n "$package" ] || {
		as_root apt-get update -qq >/dev/null 2>&1
		package=$(kernel_package)
	}
	[ -n "$package" ] || fail "no package linux-image-amd64 to be had here"
	aside=$(mktemp -d "$cache/aside.XXXXXX") || exit
	(cd "$aside" && download "$package") ||
		fail "the package $package cannot be fetched"
	dpkg-deb -x "$aside"/*.deb "$aside/tree" || fail "dpkg-deb"
	busybox depmod -b "$aside/tree" "${package#linux-image-}" ||
		fail "depmod"
	mv -T "$aside/tree" "$cache/$package" || fail "the cache"
	rm -rf "$aside"
}

# wanted_modules TREE: prints the modules' paths below /lib/modules/VERSION,
# each one behind the modules that it depends on.
wanted_modules() {
	local dep=$1/modules.dep name path

	for name in $modules; do
		path=$(grep -oE "^[^:]*/${name//_/[-_]}\.ko" "$dep") ||
			fail "the kernel has no module $name"
		# In modules.dep a module's dependencies stand behind it, and
		# those that depend on nothing stand last.
		sed -n "s,^$path:,,p" "$dep" | tr ' ' '\n' | sed '/^$/d' | tac
		echo "$path"
	done | awk '!seen[$0]++'
}

# Sets $siw to the path of Soft-iWARP's module, or to nothing if it cannot be
# built.
build_siw() {
	local made_of

	made_of=$(cksum <"$here/siw.sh" | cut -d' ' -f1)
	siw=$1/siw-$made_of.ko
	[ -f "$siw" ] && return
	rm -f "$1"/siw-*.ko
	"$here/siw.sh" "$1" "$siw" || siw=
}

make_initramfs() {
	local tree=$1/lib/modules/${1##*/linux-image-} to=$2 root list path
	local status=0

	root=$(mktemp -d "$cache/aside.XXXXXX") || exit
	mkdir -p "$root"/{bin,proc,sys,dev,host,modules}
	cp "$(command -v busybox)" "$root/bin/busybox"
	cp "$here/init" "$root/init"
	cp "$here/agent" "$root/agent"
	chmod 755 "$root/init" "$root/agent"
	list=$(wanted_modules "$tree") || exit
	for path in $list; do
		cp "$tree/$path" "$root/modules/" || exit
		echo "${path##*/}"
	done >"$root/modules/order"
	if [ -n "$siw" ]; then
		cp "$siw" "$root/modules/siw.ko" &&
			echo siw.ko >>"$root/modules/order" || exit
	fi
	(cd "$root" && find . | busybox cpio -o -H newc 2>/dev/null |
		gzip -1) >"$root.gz" && mv "$root.gz" "$to" || status=1
	rm -rf "$root"
	return $status
}

[ "$(uname -m)" = x86_64 ] || fail "the guest is an x86-64 machine"
mkdir -p "$cache" || exit
# All clones of this repository share the cache, so it is locked.
exec 9>"$cache/lock" && flock 9 || fail "the cache $cache cannot be locked"
rm -rf "$cache"/aside.* "$cache"/*/aside.*
newest_kernel() {
	find "$cache" -maxdepth 1 -name 'linux-image-*' | sort -V | tail -n 1
}
kernel=$(newest_kernel)
if [ -z "$kernel" ]; then
	fetch_kernel
	kernel=$(newest_kernel)
fi
build_siw "$kernel"
made_of=$(cat "$here/kernel.sh" "$here/init" "$here/agent" ${siw:+"$siw"} \
	"$(command -v busybox)" | cksum | cut -d' ' -f1)
dir=$kernel/boot
initramfs=$dir/initramfs-$made_of
find "$dir" -name 'initramfs-*' -mtime +7 -delete
[ -f "$initramfs" ] || make_initramfs "$kernel" "$initramfs" ||
	fail "no initramfs"
touch "$initramfs"
printf '%s\n' "$dir"/vmlinuz-* "$initramfs"
