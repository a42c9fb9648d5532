#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Build UCX's own tests of its lowest layer (UCT) from Debian's sources:
# tests/sources/ucx.sh DIRECTORY. The last line is the test program's name. A
# build that DIRECTORY holds from an earlier call is used again; one that was
# interrupted begins anew. The sources are not changed; the list of files loses
# the tests of UCX's other layers, which use no verbs and would take most of the
# time. Exit status 3: the sources are not to be had.
set -eu
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/sources/debian.sh
. "$here/debian.sh"
[ -f "$1/built" ] || rm -rf "$1"
mkdir -p "$1"
dir=$(cd "$1" && pwd)
log=$dir/build.log

quietly() { "$@" >>"$log" 2>&1; }

build() {
	local part

	cd "$1"
	# configure.ac names templates of packaging that Debian leaves out.
	for part in rules.in control.in changelog.in compat copyright ucx.prerm; do
		[ -e "debian/$part" ] || : >"debian/$part"
	done
	sed -i -E '/^\t(ucp|ucs|ucm)\/.*\\$/d; s/^\tucs\/arch.*$/\tcommon\/test.cc/' \
		test/gtest/Makefile.am
	sed -i '0,/^\tcommon\/test.cc \\$/{//d}' test/gtest/Makefile.am
	quietly ./autogen.sh
	quietly ./contrib/configure-release --enable-gtest --without-java \
		--without-go --disable-doxygen-doc --without-cuda \
		--without-rocm --without-ze --without-knem --without-xpmem \
		--without-gdrcopy CFLAGS=-O0 CXXFLAGS=-O0
	for part in src/ucm src/ucs src/uct src/ucp src/tools/perf/lib \
		test/gtest/common/googletest; do
		quietly make -s -j"$(nproc)" -C "$part"
	done
	quietly make -s -j"$(nproc)" -C test/gtest gtest
}

if [ ! -f "$dir/built" ]; then
	: >"$log"
	source=$(debian_source ucx "$dir") || exit 3
	build "$source"
	echo "$source/test/gtest/gtest" >"$dir/built"
fi
cat "$dir/built"
