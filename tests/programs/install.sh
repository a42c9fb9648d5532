#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# From an installed prefix: verbena run finds its library, and programs find
# each other. tests/programs/install.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"

prefix=$work/prefix
if make -s -C "$top" install BUILD="$work/build" PREFIX="$prefix" \
	MESONFLAGS=-Dtests=disabled >"$work/install" 2>&1; then
	ok "make install PREFIX="
else
	not_ok "make install PREFIX=" "$work/install"
	summary
	exit 1
fi
if make -s -C "$top" install BUILD="$work/build" PREFIX=/usr \
	DESTDIR="$work/stage" >"$work/install" 2>&1 &&
	[ -x "$work/stage/usr/bin/verbena" ]; then
	ok "make install DESTDIR="
else
	not_ok "make install DESTDIR=" "$work/install"
fi
rm -rf "$work/build"
library=$(find "$prefix" -name libibverbs.so.1)
if [[ $library == */verbena/libibverbs.so.1 ]]; then
	ok "the library stands apart from the system's"
else
	not_ok "the library stands apart from the system's: $library"
fi

verbena=$prefix/bin/verbena
[ "$hosts" = no ] && HOSTS_PID_a=here || need_hosts 1500
if pair root a a ibv_rc_pingpong -d roce_lo -g 1 -- \
	ibv_rc_pingpong -d roce_lo -g 1 127.0.0.1; then
	ok "verbena run, installed"
else
	not_ok "verbena run, installed" "$work/server" "$work/client"
fi
summary
