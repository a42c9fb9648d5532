#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# One tar that works in any image with glibc: packaging/bundle.sh DIRECTORY
# [CROSS SYSROOT]
#
# The libraries in it need the C library only, and the command, which is linked
# statically, nothing at all: it runs where there is musl or no C library,
# too, and says there what cannot work. The name of the tar has the oldest glibc
# with which the libraries load, which the compiler's glibc decides: build on
# the oldest distribution that is wanted. CROSS is a processor as in
# CROSS-linux-gnu-gcc (aarch64), and SYSROOT has its development packages.
set -eu
top=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
mkdir -p "$1"
to=$(cd "$1" && pwd)
cross=${2:-}
sysroot=${3:+$(cd "$3" && pwd)}
export CCACHE_DISABLE=1 # its objects name the directories of other builds
version=$(sed -n "s/^  version: '\(.*\)',/\1/p" "$top/meson.build")
readelf=readelf
options=(-Dtests=disabled -Disal=disabled -Dstatic_command=true
	-Dprefix=/opt/verbena -Dlibdir=lib -Dsystemd_unit_dir=)

# use_cross: tools and libraries of the other processor. The files of pkg-config
# are copied with the sysroot in their paths.
use_cross() {
	local triplet=$cross-linux-gnu file

	readelf=$triplet-readelf
	export CC=$triplet-gcc OBJCOPY=$triplet-objcopy AR=$triplet-ar
	export CFLAGS=--sysroot=$sysroot
	export PKG_CONFIG_LIBDIR=$to/pc
	mkdir -p "$to/pc"
	for file in "$sysroot"/usr/lib/"$triplet"/pkgconfig/*.pc; do
		sed "s,^\(prefix\|libdir\|includedir\|exec_prefix\)=/,\1=$sysroot/," \
			"$file" >"$to/pc/${file##*/}"
	done
	cat >"$to/cross.ini" <<-END
		[binaries]
		c = '$CC'
		ar = '$AR'
		strip = '$triplet-strip'
		pkgconfig = 'pkg-config'
		[built-in options]
		c_args = ['--sysroot=$sysroot']
		c_link_args = ['--sysroot=$sysroot']
		[properties]
		pkg_config_libdir = ['$to/deps', '$to/pc']
		[host_machine]
		system = 'linux'
		cpu_family = '$cross'
		cpu = '$cross'
		endian = 'little'
	END
	options+=(--cross-file "$to/cross.ini")
}

# The newest symbol version of glibc that any library needs.
baseline() {
	find "$1" -name '*.so*' -type f -exec "$readelf" -VW {} + |
		grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1 | cut -d_ -f2
}

# Licences of what is linked in, where the packages of Debian have them.
licences() {
	local package

	cp "$top/LICENSE" "$1/"
	for package in libnl-3-dev libnl-route-3-dev libdeflate-dev libc6-dev; do
		file=$sysroot/usr/share/doc/$package/copyright
		[ ! -r "$file" ] || cp "$file" "$1/LICENSE.${package%-dev}"
	done
}

read_me() {
	cat <<-END
		Verbena $version for $arch, glibc $glibc or newer.

		bin/verbena run -- PROGRAM runs a program that uses libibverbs on Verbena's
		adapter. This directory may have any name and be read-only. The libraries in
		lib/verbena need glibc only; bin/verbena is linked statically. Linked in are
		libnl and libdeflate, and glibc in bin/verbena: LICENSE.* has their licences.
		"make bundle" in Verbena's sources makes this tar.
		CRC-32C of iWARP is computed without ISA-L here.
	END
}

rm -rf "$to/stage" "$to/deps"
[ -z "$cross" ] || use_cross
"$top/scripts/static_libs.sh" "$to/deps"
export PKG_CONFIG_PATH=$to/deps
[ -f "$to/build/build.ninja" ] ||
	meson setup "${options[@]}" "$to/build" "$top" >"$to/setup.log" 2>&1 || {
	tail -n 20 "$to/setup.log" >&2
	exit 1
}
# ld warns that static programs look up names by the libraries of the glibc
# that built them; from 2.34 on, files and DNS are in the program itself.
ninja -C "$to/build" >"$to/build.log" 2>&1 || {
	tail -n 40 "$to/build.log" >&2
	exit 1
}
DESTDIR=$to/stage meson install -C "$to/build" --no-rebuild --strip >/dev/null
name=verbena-$version
stage=$to/stage/opt
mv "$stage/verbena" "$stage/$name"
find "$stage" -name '*.so' -type l -delete # nobody links with these
arch=$($readelf -h "$stage/$name/bin/verbena" |
	sed -n -e 's/.*Machine: .*X86-64/x86_64/p' -e 's/.*Machine: .*AArch64/aarch64/p')
glibc=$(baseline "$stage")
licences "$stage/$name"
read_me >"$stage/$name/README"
tar -C "$stage" --sort=name --owner=0 --group=0 --numeric-owner \
	--mtime="@${SOURCE_DATE_EPOCH:-0}" --mode=go=rX,u+rw \
	-cf - "$name" | gzip -9n >"$to/$name-$arch-glibc$glibc.tar.gz"
rm -rf "$to/stage"
echo "$to/$name-$arch-glibc$glibc.tar.gz"
