#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The tar of `make bundle` where nothing is installed: a root with glibc
# and one program, a bare Debian, a root with musl, a root with no C library.
# tests/programs/bundle.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"
# shellcheck source=tests/programs/roots.sh
. "$here/roots.sh"

if make_bundle; then
	ok "make bundle: $(basename "$bundle")"
else
	not_ok "make bundle" "$work/bundle"
	summary
	exit
fi
mkdir "$work/opt"
tar -C "$work/opt" --strip-components=1 -xf "$bundle"

other=$(find "$work/opt" -type f \( -name '*.so*' -o -name verbena-ipoib \) \
	-exec readelf -d {} + | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
	grep -vE '^(libc|ld-linux.*|libibverbs|librdmacm|libibumad)\.so')
[ -z "$other" ] && ok "bundle: its libraries need glibc only" ||
	not_ok "bundle: its libraries need glibc only: $other"
[ -z "$(readelf -l "$work/opt/bin/verbena" | grep INTERP)" ] &&
	ok "bundle: the command is linked statically" ||
	not_ok "bundle: the command is linked statically"
named=$(sed -n 's/.*-glibc\(.*\)\.tar\.gz/\1/p' <<<"$bundle")
newest=$(find "$work/opt/lib" -type f -exec readelf -VW {} + |
	grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1)
[ "GLIBC_$named" = "$newest" ] &&
	ok "bundle: the name has the oldest glibc, $named" ||
	not_ok "bundle: the name has $named, the libraries need $newest"
foreign=$(nm -D --defined-only "$work"/opt/lib/verbena/*.so* "$work"/opt/lib/verbena/umad/* |
	grep -E ' (nl|rtnl|libdeflate|vb_static)_' | head -n 3)
[ -z "$foreign" ] && ok "bundle: what is linked in is not exported" ||
	not_ok "bundle: exported: $foreign"

if [ "$(id -u)" -ne 0 ] || [ -n "${VERBENA_USERNS:-}" ] || [ "$hosts" = no ]; then
	skip "bundle: bare roots" "chroot and mounts need root"
	summary
	exit
fi

# grow ROOT [FILE...]: a root with the bundle and these files, at their places.
grow() {
	local root=$1 file

	shift
	mkdir -p "$root"/{proc,tmp,run,dev,opt}
	[ -e "$root/dev/null" ] || mknod -m 666 "$root/dev/null" c 1 3
	cp -a "$work/opt" "$root/opt/verbena"
	for file; do
		mkdir -p "$root$(dirname "$file")"
		cp -L "$file" "$root$file"
	done
}

# case_at ROOT NAME: two unmodified programs there.
case_at() {
	if pair_at_root "$1" /opt/verbena/bin/verbena /usr/bin/ibv_rc_pingpong \
		-d roce_lo -g 1 >"$work/pair" 2>&1 &&
		[ "$(grep -c 'bytes in' "$work/pair")" -eq 2 ]; then
		ok "$2"
	else
		not_ok "$2" "$work/pair"
	fi
}

if ! command -v ibv_rc_pingpong >/dev/null; then
	skip "bundle: a root with glibc and one program" "no ibverbs-utils"
else
	pingpong=/usr/bin/ibv_rc_pingpong
	loader=$(readelf -l $pingpong | sed -n 's/.*interpreter: \(.*\)]/\1/p')
	libc=$(ldd $pingpong | sed -n 's/.*libc\.so\.6 => \([^ ]*\).*/\1/p')
	grow "$work/tiny" "$loader" "$libc" $pingpong
	case_at "$work/tiny" "bundle: a root with glibc and one program"
fi

# says FILE WORDS...: in one line.
says() {
	tr '\n' ' ' <"$1" | grep -qF -- "$2"
}

# A root without any C library: the command works by itself.
grow "$work/none"
chroot "$work/none" /opt/verbena/bin/verbena --version >"$work/none.txt" 2>&1
says "$work/none.txt" "verbena " &&
	ok "bundle: the command in a root without a C library" ||
	not_ok "bundle: the command in a root without a C library" "$work/none.txt"

if ! command -v musl-gcc >/dev/null; then
	skip "bundle: musl" "no musl-gcc"
else
	echo 'int main(void) { return 7; }' >"$work/seven.c"
	musl-gcc -o "$work/seven" "$work/seven.c"
	loader=$(readelf -l "$work/seven" | sed -n 's/.*interpreter: \(.*\)]/\1/p')
	grow "$work/musl" "$loader"
	cp "$work/seven" "$work/musl/seven"
	chroot "$work/musl" /opt/verbena/bin/verbena run -- /seven \
		>"$work/musl.txt" 2>&1
	status=$?
	sentence="/seven is linked for musl and cannot load Verbena's libibverbs.so.1, which needs glibc"
	if [ $status -eq 7 ] && says "$work/musl.txt" "$sentence"; then
		ok "bundle: a program for musl runs without RDMA, and that is said"
	else
		not_ok "bundle: musl: status $status" "$work/musl.txt"
	fi
fi

suites="bookworm trixie"
[ "$quick" = no ] || suites=bookworm
for suite in $suites; do
	name="bundle: a bare Debian ($suite)"
	if why=$(no_root "$suite"); then
		skip "$name" "$why"
		continue
	fi
	root=$work/$suite
	unpack_root "$suite" "$root"
	rm -rf "$root/opt"
	grow "$root"
	# The program alone: its package would bring libnl and rdma-core.
	at_root "$root" sh -c 'apt-get update -qq && cd /tmp &&
		apt-get download -qq ibverbs-utils && dpkg -x ibverbs-utils*.deb / &&
		rm -f *.deb' >"$work/apt" 2>&1 || {
		skip "$name" "apt: $(tail -n 1 "$work/apt")"
		continue
	}
	case_at "$root" "$name"
	rm -rf "$root"
done
summary
