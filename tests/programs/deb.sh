#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The packages of `make deb`: built twice, installed into bare systems, used by
# an ordinary user, upgraded, and removed without a trace.
# tests/programs/deb.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"
# shellcheck source=tests/programs/roots.sh
. "$here/roots.sh"

if ! command -v dh >/dev/null || ! command -v dpkg-buildpackage >/dev/null; then
	skip "deb" "no debhelper here"
	summary
	exit
fi
# Each build in a directory of its own, of another length.
for dir in one two/deeper; do
	make -s -C "$top" deb BUILD="$work/$dir/b" DEPS=0 >"$work/make" 2>&1 || {
		not_ok "make deb" "$work/make"
		summary
		exit
	}
done
ok "make deb"
debs=$work/one/b-deb
deb=$(echo "$debs"/verbena_*.deb)
differ=$(for f in "$debs"/*.deb "$debs"/*.tar.xz "$debs"/*.dsc; do
	cmp "$f" "$work/two/deeper/b-deb/${f##*/}" 2>&1
done)
[ -z "$differ" ] && ok "deb: two builds give the same bytes" ||
	not_ok "deb: two builds give the same bytes: $differ"

version=$(sed -n "s/^  version: '\(.*\)',/\1/p" "$top/meson.build")
[ "$(dpkg-deb -f "$deb" Version)" = "$version" ] &&
	ok "deb: debian/changelog and meson.build have one version" ||
	not_ok "deb: debian/changelog and meson.build have one version"
dpkg-deb -f "$deb" Depends Provides Conflicts Replaces Breaks >"$work/fields"
if grep -qE 'libibverbs|librdmacm|libibumad|ibverbs-providers' "$work/fields" ||
	dpkg-deb --ctrl-tarfile "$deb" | tar t | grep -qE 'shlibs|symbols|triggers'; then
	not_ok "deb: claims nothing of rdma-core's" "$work/fields"
else
	ok "deb: claims nothing of rdma-core's"
fi
# What the documents link to is in the package, under the same names.
dpkg-deb -x "$deb" "$work/package"
if python3 "$top/scripts/docs.py" links \
	"$work/package/usr/share/doc/verbena" >"$work/links" 2>&1; then
	ok "deb: the documents' links lead somewhere"
else
	not_ok "deb: the documents' links lead somewhere" "$work/links"
fi
if ! command -v lintian >/dev/null; then
	skip "deb: lintian" "not installed"
elif lintian --allow-root --fail-on error,warning "$debs"/*.changes \
	>"$work/lintian" 2>&1; then
	ok "deb: lintian finds no error and nothing to warn of"
else
	not_ok "deb: lintian finds no error and nothing to warn of" \
		"$work/lintian"
fi

# The same package with a higher version.
newer() {
	dpkg-deb -R "$deb" "$work/newer" &&
		sed -i "s/^Version: .*/Version: $version+1/" "$work/newer/DEBIAN/control" &&
		dpkg-deb --root-owner-group -b "$work/newer" "$1" >/dev/null
	rm -rf "$work/newer"
}

# traces ROOT: every file but what dpkg and apt keep for themselves.
traces() {
	(cd "$1" && find . -xdev \( -path ./proc -o -path ./var/log -o -path ./var/cache \
		-o -path ./var/lib/apt -o -path ./tmp -o -path './var/lib/dpkg/*-old' \
		-o -path ./var/lib/dpkg/status -o -path ./var/lib/dpkg/lock \) -prune \
		-o -type f -printf '%p %m %u %s ' -exec md5sum {} \; \
		-o -printf '%p %m %u %l\n' | sort)
}

# A case that is a command in the bare system.
does() {
	local name=$1

	shift
	if "$@" >"$work/does" 2>&1; then
		ok "$name"
	else
		not_ok "$name" "$work/does"
		return 1
	fi
}

uses() {
	pair_at_root "$1" /usr/bin/verbena /usr/bin/ibv_rc_pingpong \
		-d roce_lo -g 1
}
# The system's own libraries are those that programs find without the command.
stays_apart() {
	at_root "$1" sh -c '! ldconfig -p | grep verbena &&
		ldd /usr/bin/ibv_rc_pingpong | grep "libibverbs.so.1 => /lib"'
}

try() {
	local suite=$1 root=$work/$1 needs

	if why=$(no_root "$suite"); then
		skip "deb: $suite" "$why"
		return
	fi
	unpack_root "$suite" "$root"
	needs=$(dpkg-deb -f "$deb" Depends | sed "s/([^)]*)//g; s/,/ /g" | xargs)
	# shellcheck disable=SC2086 # words
	at_root "$root" sh -c "apt-get update -qq && apt-get install -y -qq \
		--no-install-recommends ibverbs-utils $needs" >"$work/apt" 2>&1 || {
		skip "deb: $suite" "apt: $(tail -n 1 "$work/apt")"
		return
	}
	traces "$root" >"$work/before"
	mkdir -p "$root/tmp"
	cp "$deb" "$root/tmp/verbena.deb"
	newer "$root/tmp/newer.deb"
	does "deb: $suite: installed" at_root "$root" apt-get install -y -qq \
		/tmp/verbena.deb || return
	traces "$root" >"$work/installed"
	does "deb: $suite: two programs of an ordinary user" uses "$root"
	does "deb: $suite: the system's libraries stay the system's" \
		stays_apart "$root"
	does "deb: $suite: upgraded" at_root "$root" sh -c \
		"dpkg -i /tmp/newer.deb && verbena --version"
	does "deb: $suite: two programs after the upgrade" uses "$root"
	does "deb: $suite: removed" at_root "$root" dpkg -P verbena
	traces "$root" >"$work/after"
	if [ -s "$work/after" ] && ! cmp -s "$work/before" "$work/installed" &&
		diff "$work/before" "$work/after" >"$work/traces"; then
		ok "deb: $suite: no trace is left"
	else
		not_ok "deb: $suite: no trace is left" "$work/traces"
	fi
	rm -rf "$root"
}
try bookworm
try trixie
summary
