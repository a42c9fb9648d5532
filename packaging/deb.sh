#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Debian's packages from this tree: packaging/deb.sh DIRECTORY
#
# They are built in a copy of the files that git knows (all of them where there
# is no git), so the tree stays as it is. Two builds of one tree by one
# compiler give the same bytes: times are those of debian/changelog, and paths
# of the copy do not appear.
set -eu
top=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
mkdir -p "$1"
to=$(cd "$1" && pwd)

version() {
	sed -n '1s/.*(\(.*\)).*/\1/p' "$top/debian/changelog"
}

# The files of the tree, as names that end in NUL.
list() {
	cd "$top"
	if git rev-parse --git-dir >/dev/null 2>&1; then
		git ls-files -z -co --exclude-standard --deduplicate |
			while IFS= read -r -d '' f; do
				[ ! -e "$f" ] || printf '%s\0' "$f"
			done
	else
		find . -name 'build*' -prune -o -type f -print0
	fi
}

command -v dpkg-buildpackage >/dev/null && command -v dh >/dev/null || {
	echo "deb: dpkg-dev and debhelper are missing" >&2
	exit 1
}
source=$to/verbena-$(version)
rm -rf "$source"
mkdir "$source"
list | tar -C "$top" --null -T - -cf - | tar -C "$source" -xf -
cd "$source"
umask 022
if ! DEB_BUILD_OPTIONS="${DEB_BUILD_OPTIONS:-} parallel=${JOBS:-$(nproc)}" \
	dpkg-buildpackage -us -uc -F >../build.log 2>&1; then
	tail -n 40 ../build.log >&2
	echo "deb: the build failed; $to/build.log has all of it" >&2
	exit 1
fi
cd ..
rm -rf "$source"
ls verbena_"$(version)"_*.deb
