#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The commands of docs/INFINIBAND.md, typed as its reader would, and what they
# print: tests/programs/infiniband_doc.sh [--show]
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
# shellcheck source=tests/programs/fabric_lib.sh
. "$here/fabric_lib.sh"
tests_begin "$0" "$@"

fabric_begin opensm ibstat saquery ib_write_bw iperf3 ping ip apt-get
if [ "$hosts" = no ] || [ ! -c /dev/net/tun ]; then
	skip infiniband_doc "no network namespaces here, or no /dev/net/tun"
	summary
	exit
fi

# The reader is in the tree, which has the build in it. A directory of programs'
# own hides fabrics that run on this machine for other reasons.
mkdir "$work/tree"
ln -s "$build" "$work/tree/build"
ln -s "$top/scripts" "$work/tree/scripts"
cd "$work/tree" || exit
export VERBENA_TOP=$top
# shellcheck disable=SC2016 # for the shell that is started
unshare -m sh -c '
	[ ! -d /run/verbena ] || mount -t tmpfs -o mode=711 tmpfs /run/verbena
	exec "$@"' sh python3 "$here/infiniband_doc.py" \
	"$top/docs/INFINIBAND.md" "$@" >"$work/test" 2>&1
status=$?
case "$*" in *--show*) cat "$work/test"; exit ;; esac
cat "$work/test"
passed=$(grep -c '^ok ' "$work/test")
failed=$(grep -c '^not ok ' "$work/test")
[ $status -le 1 ] && [ $((passed + failed)) -gt 0 ] ||
	not_ok "infiniband_doc: the document is read (status $status)" "$work/test"
summary
