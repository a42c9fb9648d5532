#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# From an installed prefix: verbena run finds its library, and programs find
# each other. tests/programs/install.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"

# installs WHAT PROGRAM OPTIONS...: `make install` with these puts it there.
installs() {
	local what=$1 program=$2

	shift 2
	if make -s -C "$top" install "$@" >"$work/install" 2>&1 &&
		[ -x "$program" ]; then
		ok "make install $what="
	else
		not_ok "make install $what=" "$work/install"
		return 1
	fi
}

# A short run installs what is built already.
if [ "$quick" = yes ]; then
	prefix=$work/stage/usr/local
	installs DESTDIR "$prefix/bin/verbena" BUILD="$build" \
		PREFIX=/usr/local DESTDIR="$work/stage"
else
	prefix=$work/prefix
	installs PREFIX "$prefix/bin/verbena" BUILD="$work/build" \
		PREFIX="$prefix" MESONFLAGS=-Dtests=disabled || {
		summary
		exit 1
	}
	installs DESTDIR "$work/stage/usr/bin/verbena" BUILD="$work/build" \
		PREFIX=/usr DESTDIR="$work/stage"
	rm -rf "$work/build"
fi
library=$(find "$prefix" -name libibverbs.so.1)
if [[ $library == */verbena/libibverbs.so.1 ]]; then
	ok "the library stands apart from the system's"
else
	not_ok "the library stands apart from the system's: $library"
fi

if [ -n "$(find "$prefix/share/verbena" -name ib_link.lua)" ]; then
	ok "the dissector of link packets is there"
else
	not_ok "the dissector of link packets is there"
fi

verbena=$prefix/bin/verbena
# It looks for its program before it looks for a fabric.
if "$verbena" ipoib --device "ib:none$$/Hca1" 2>&1 | grep -q 'no fabric "none'; then
	ok "verbena ipoib finds its program"
else
	not_ok "verbena ipoib finds its program"
fi
[ "$hosts" = no ] && HOSTS_PID_a=here || need_hosts 1500
export VERBENA_DEVICES=lo
if pair root a a ibv_rc_pingpong -d roce_lo -g 1 -- \
	ibv_rc_pingpong -d roce_lo -g 1 127.0.0.1; then
	ok "verbena run, installed"
else
	not_ok "verbena run, installed" "$work/server" "$work/client"
fi
summary
