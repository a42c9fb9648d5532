#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Builds the kernel's Soft-iWARP (siw), which Debian's kernel package leaves
# out, from Debian's packages of its source and headers, taken apart and not
# installed: lab/siw.sh linux-image-VERSION MODULE, both paths; from kernel.sh.
#
# What a MPA peer may ask for stands in siw as constants. They become module
# parameters, to be changed in /sys/module/siw/parameters; the values are
# siw's own.
set -u -o pipefail

version=${1##*/linux-image-}
to=$2
apart=$(mktemp -d "${to%/*}/aside.XXXXXX") || exit
trap 'rm -rf "$apart"' EXIT

fail() {
	echo "lab: siw: $*" >&2
	exit 1
}

# What the headers stand on, by name: without asking the network.
packages() {
	local headers=linux-headers-$version

	echo "$headers" | sed 's/headers-\([0-9]*\.[0-9]*\).*/source-\1/'
	echo "$headers"
	apt-cache depends "$headers" 2>/dev/null |
		sed -nE 's/.*Depends: (linux-(headers|kbuild)-.*)/\1/p'
}

fetch() {
	local package

	cd "$apart" || exit
	for package in $(packages); do
		apt-get download -qq "$package" >/dev/null 2>&1 ||
			fail "the package $package cannot be fetched"
	done
}

unpack() {
	local package

	for package in linux-headers-*.deb linux-kbuild-*.deb; do
		dpkg-deb -x "$package" "$apart" || fail "dpkg-deb"
	done
	dpkg-deb --fsys-tarfile linux-source-*.deb |
		tar -xO --wildcards './usr/src/linux-source-*.tar.xz' |
		xz -dc -T0 | tar -x --strip-components=4 --wildcards \
		'*/drivers/infiniband/sw/siw/*' || fail "no source of siw"
	# It names its common half by where it would be installed.
	sed -i "s,/usr/src/,$apart/usr/src/," \
		"usr/src/linux-headers-$version/Makefile"
}

# parameter FILE NAME TYPE: a constant of this name no more.
parameter() {
	sed -i -E "s/^(static |extern )?const (.*\<$2\>)/\1\2/" siw/siw.h siw/*.c
	echo "module_param($2, $3, 0644);" >>"siw/$1"
}

build() {
	local name

	for name in mpa_crc_required mpa_crc_strict peer_to_peer try_gso; do
		parameter siw_main.c $name bool
	done
	parameter siw_main.c mpa_version byte
	parameter siw_cm.c rtr_type ushort
	make -C "usr/src/linux-headers-$version" M="$apart/siw" \
		CONFIG_RDMA_SIW=m modules >make.log 2>&1 ||
		fail "$(grep -m 1 -iE 'error|not found' make.log)"
	strip -g siw/siw.ko && mv siw/siw.ko "$to" || fail "no module"
}

fetch
unpack
build
