#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Makes `verbena` ready for the following steps of a CI job, without root:
#
#	ci/setup.sh BUNDLE DIRECTORY [dev]
#
# BUNDLE is the tar of `make bundle`, a file or an https URL. With "dev", the
# headers and libraries with which verbs programs are built come too, from
# Debian's or Ubuntu's packages, if the image does not have them; they are
# unpacked, not installed. DIRECTORY/env has the variables, for `. DIRECTORY/env`;
# in a job of GitHub they are set for the next steps.
set -eu
bundle=$1
mkdir -p "$2"
to=$(cd "$2" && pwd)

case $bundle in
https://*) curl -fsSL --retry 3 "$bundle" | tar -xz -C "$to" --strip-components=1 ;;
*) tar -xzf "$bundle" -C "$to" --strip-components=1 ;;
esac
"$to/bin/verbena" --version
echo "export PATH=\"$to/bin:\$PATH\"" >"$to/env"
[ -z "${GITHUB_PATH:-}" ] || echo "$to/bin" >>"$GITHUB_PATH"

if [ "${3:-}" = dev ] &&
	! echo '#include <infiniband/verbs.h>' | ${CC:-cc} -E - >/dev/null 2>&1; then
	mkdir -p "$to/dev"
	cd "$to/dev"
	# An image may have no lists of packages, and only root may fetch them to
	# the system's directories.
	mkdir -p apt/state/lists/partial apt/cache/archives/partial
	apt() {
		apt-get -qq -o Dir::State="$to/dev/apt/state" \
			-o Dir::Cache="$to/dev/apt/cache" -o Debug::NoLocking=1 \
			-o APT::Sandbox::User=root "$@"
	}
	apt update
	apt download libibverbs-dev libibverbs1 librdmacm-dev librdmacm1
	for deb in *.deb; do
		dpkg -x "$deb" .
	done
	rm -rf ./*.deb apt
	libraries=$(dirname "$(find "$PWD/usr" -name libibverbs.so | head -n 1)")
	{
		echo "export CPATH=\"$to/dev/usr/include\${CPATH:+:\$CPATH}\""
		echo "export LIBRARY_PATH=\"$libraries\${LIBRARY_PATH:+:\$LIBRARY_PATH}\""
	} >>"$to/env"
	[ -z "${GITHUB_ENV:-}" ] || {
		echo "CPATH=$to/dev/usr/include${CPATH:+:$CPATH}"
		echo "LIBRARY_PATH=$libraries${LIBRARY_PATH:+:$LIBRARY_PATH}"
	} >>"$GITHUB_ENV"
fi
