#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Static libraries that can become part of a shared one:
#
#	scripts/static_libs.sh DIRECTORY
#
# fills the directory with libnl-3, libnl-route-3 and libdeflate, and with the
# files by which pkg-config finds these copies. Distributions compile them
# for programs, where code refers to stdin, stdout and stderr of the C library
# as if they were in the program itself; a shared library cannot do so. The
# copies refer to variables of their own in place of these, which a constructor
# sets. CC, OBJCOPY, AR and PKG_CONFIG choose the tools (for another processor).
set -eu
to=$1
cc=${CC:-gcc}
objcopy=${OBJCOPY:-objcopy}
ar=${AR:-ar}
pkg_config=${PKG_CONFIG:-pkg-config}
libraries=(libnl-3.0 libnl-route-3.0 libdeflate)
streams=(stdin stdout stderr)

mkdir -p "$to"
to=$(cd "$to" && pwd)

find_archive() {
	local file

	file=$($cc ${CFLAGS:-} "-print-file-name=$1")
	[ -e "$file" ] || file=$($pkg_config --variable=libdir "$2")/$1
	[ -e "$file" ] || {
		echo "static_libs: $1 is missing: the package with" \
			"$($pkg_config --variable=libdir "$2") of $2 has no static library" >&2
		exit 1
	}
	echo "$file"
}

write_streams() {
	echo '#include <stdio.h>'
	for s in "${streams[@]}"; do
		echo "__attribute__((visibility(\"hidden\"))) FILE *vb_static_$s;"
	done
	echo '__attribute__((constructor(101))) static void set_streams(void)'
	echo '{'
	for s in "${streams[@]}"; do
		echo "	vb_static_$s = $s;"
	done
	echo '}'
}

renames=()
for s in "${streams[@]}"; do
	renames+=(--redefine-sym "$s=vb_static_$s")
done
write_streams >"$to/streams.c"
$cc ${CFLAGS:-} -O2 -fPIC -c "$to/streams.c" -o "$to/streams.o"

for library in "${libraries[@]}"; do
	name=${library#lib}
	name=${name%.0}
	$objcopy "${renames[@]}" "$(find_archive "lib$name.a" "$library")" \
		"$to/libvb$name.a"
	# Each link takes the streams from the library that refers to them.
	[ "$name" != nl-3 ] || $ar q "$to/libvb$name.a" "$to/streams.o"
	cat >"$to/$library.pc" <<-END
		Name: $library
		Description: for scripts/static_libs.sh
		Version: $($pkg_config --modversion "$library")
		Cflags: $($pkg_config --cflags "$library")
		Libs: $to/libvb$name.a
	END
done
# libnl-route stands on libnl.
sed -i "s,/libvbnl-route-3.a,& $to/libvbnl-3.a -pthread," "$to/libnl-route-3.0.pc"
